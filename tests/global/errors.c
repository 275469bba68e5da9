/*
 * errors: the texts of errors. Each error that ping returns has words of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "../tap.h"
#include "errors.h"
#include "shmlimit_global.h"

/* The first words of a trouble's text, up to its colon. */
static size_t words_of(enum trouble_kind kind, char text[TROUBLE_TEXT_MAX])
{
	struct trouble trouble = { .kind = kind };

	return strcspn(trouble_text(&trouble, text), ":");
}

int main(void)
{
	char text[TROUBLE_TEXT_MAX];

	for (enum trouble_kind kind = TROUBLE_LATE; kind < TROUBLE_KINDS; kind++) {
		struct trouble trouble = { .kind = kind };
		int error = trouble_errno(&trouble), found = 0;
		const char *said = shmlimit_global_strerror(error);

		if (error == 0)
			continue;
		/* Several kinds may share an error. */
		for (enum trouble_kind of = TROUBLE_LATE; of < TROUBLE_KINDS; of++) {
			struct trouble other = { .kind = of };
			size_t len = words_of(of, text);

			found |= trouble_errno(&other) == error && strlen(said) == len && memcmp(said, text, len) == 0;
		}
		text[words_of(kind, text)] = '\0';
		ok(found, "error %d has the words of the trouble that it means: %s; the report says %s", error, said,
		   text);
		is_str(shmlimit_global_strerror(-error), said, "error %d has the same text without its sign", error);
	}
	is_str(shmlimit_global_strerror(-ECONNREFUSED), "Connection refused",
	       "a refused connection has the system's words");
	is_str(shmlimit_global_strerror(-ENOTTY), "Inappropriate ioctl for device",
	       "an error that no backend causes has the system's words");
	return tap_done();
}
