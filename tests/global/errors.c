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

/* The first words of a backend error's text, up to its colon. */
static size_t words_of(enum backend_error_kind kind, char text[BACKEND_ERROR_TEXT_MAX])
{
	struct backend_error failure = { .kind = kind };

	return strcspn(backend_error_text(&failure, text), ":");
}

int main(void)
{
	char text[BACKEND_ERROR_TEXT_MAX];

	for (enum backend_error_kind kind = ERROR_LATE; kind < ERROR_KINDS; kind++) {
		struct backend_error failure = { .kind = kind };
		int error = backend_error_errno(&failure), found = 0;
		const char *said = shmlimit_global_strerror(error);

		if (error == 0)
			continue;
		/* Several kinds may share an error. */
		for (enum backend_error_kind of = ERROR_LATE; of < ERROR_KINDS; of++) {
			struct backend_error other = { .kind = of };
			size_t len = words_of(of, text);

			found |= backend_error_errno(&other) == error && strlen(said) == len &&
			         memcmp(said, text, len) == 0;
		}
		text[words_of(kind, text)] = '\0';
		ok(found, "error %d has the words of the backend error that it means: %s; the report says %s", error,
		   said, text);
		is_str(shmlimit_global_strerror(-error), said, "error %d has the same text without its sign", error);
	}
	is_str(shmlimit_global_strerror(-ECONNREFUSED), "Connection refused",
	       "a refused connection has the system's words");
	is_str(shmlimit_global_strerror(-ENOTTY), "Inappropriate ioctl for device",
	       "an error that no backend causes has the system's words");
	return tap_done();
}
