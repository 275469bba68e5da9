/*
 * duration.c: nanoseconds as seconds, with all nine decimals.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "command.h"

#define SECOND UINT64_C(1000000000)

const char *seconds_text(char text[TEXT_LEN], uint64_t ns)
{
	if (ns == UINT64_MAX)
		snprintf(text, TEXT_LEN, "never");
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 ".%09" PRIu64 " s", ns / SECOND, ns % SECOND);
	return text;
}

const char *span_text(char text[TEXT_LEN], uint64_t ns)
{
	uint64_t minutes = ns / SECOND / 60;

	if (ns == UINT64_MAX || minutes == 0)
		return seconds_text(text, ns);
	snprintf(text, TEXT_LEN, "%" PRIu64 ".%09" PRIu64 " s (%" PRIu64 " d %" PRIu64 " h %" PRIu64 " m)",
	         ns / SECOND, ns % SECOND, minutes / 60 / 24, minutes / 60 % 24, minutes % 60);
	return text;
}
