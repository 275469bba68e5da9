/*
 * spec: the words of a gate's spec (shmlimit_gate(3)).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

#include <errno.h>

void spec_append(smart_str *spec, const char *word, const zend_string *value)
{
	smart_str_appends(spec, word);
	smart_str_appends(spec, "=\"");
	if (EXPECTED(strpbrk(ZSTR_VAL(value), "\"\\") == NULL)) {
		smart_str_append(spec, value);
	} else {
		for (size_t i = 0; i < ZSTR_LEN(value); i++) {
			if (ZSTR_VAL(value)[i] == '"' || ZSTR_VAL(value)[i] == '\\')
				smart_str_appendc(spec, '\\');
			smart_str_appendc(spec, ZSTR_VAL(value)[i]);
		}
	}
	smart_str_appends(spec, "\" ");
}

void spec_throw(const char *spec, int error)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	char *word;

	/* Right as far as C reads it: there is a NUL in it, or no memory. */
	if (shmlimit_gate_check(spec, &wrong) == 0) {
		shmlimit_throw_words(error, "gate", shmlimit_strerror(error));
		return;
	}
	spprintf(&word, 0, "gate: %.*s", (int)wrong.length, spec + wrong.offset);
	shmlimit_throw_words(-EINVAL, word, wrong.text);
	efree(word);
}
