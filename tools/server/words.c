/*
 * words: see words.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "words.h"

size_t words_write(char *to, const char *word)
{
	size_t n = 0;

	if (to != NULL)
		to[n] = ' ';
	for (n = 1; *word != '\0'; word++) {
		if (strchr(" \t\r\n\"\\#", *word) != NULL) {
			if (to != NULL)
				to[n] = '\\';
			n++;
		}
		if (to != NULL)
			to[n] = *word;
		n++;
	}
	return n;
}

/* Check the spec that begins with `before` and ends with the word. */
static const char *check(const char *before, const char *word, struct shmlimit_gate_wrong *wrong)
{
	size_t length = strlen(before), n = words_write(NULL, word);
	char *spec = malloc(length + n + 1);
	int error;

	if (spec == NULL)
		return "cannot be checked: out of memory";
	memcpy(spec, before, length);
	words_write(spec + length, word);
	spec[length + n] = '\0';
	wrong->struct_size = sizeof(*wrong);
	error = shmlimit_gate_check(spec, wrong);
	free(spec);
	return error == 0 ? NULL : wrong->text;
}

const char *words_check_segment(const char *name)
{
	return shmlimit_check_names(name, NULL) == 0
	               ? NULL
	               : "must be a segment's name: 1 to 239 bytes, no / or control characters, not a dot first";
}

const char *words_check_rule(const char *name)
{
	return shmlimit_check_names(NULL, name) == 0 ? NULL
	                                             : "must be a rule's name: 1 to 63 letters, digits and . _ : @ + -";
}

const char *words_check_gate(const char *word, struct shmlimit_gate_wrong *wrong)
{
	return strncmp(word, "rule=", 5) == 0 ? "belongs to a limit" : check("segment=x", word, wrong);
}

const char *words_check_limit(const char *word, struct shmlimit_gate_wrong *wrong)
{
	return strncmp(word, "rule=", 5) == 0 ? "is a second rule" : check("segment=x create=yes rule=x", word, wrong);
}

const char *words_outcome(const struct shmlimit_gate_answer *answer)
{
	static const char *const outcomes[] = {
		[SHMLIMIT_GATE_PASSED] = "PASSED",
		[SHMLIMIT_GATE_REJECTED] = "REJECTED",
		[SHMLIMIT_GATE_REJECTED_DRY_RUN] = "REJECTED_DRY_RUN",
		[SHMLIMIT_GATE_FAILED] = "FAILED",
	};

	return outcomes[answer->outcome];
}
