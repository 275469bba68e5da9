/*
 * field_text: the parts of the header fields RateLimit-Policy, RateLimit and Retry-After, as
 * shmlimit_fields() writes them. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FIELD_TEXT_H
#define SHMLIMIT_LIB_FIELD_TEXT_H

#include "shmlimit.h"

#define FIELD_NS_PER_S UINT64_C(1000000000)
#define FIELD_RETRY_AFTER_MAX 16 /* bytes of Retry-After, with the NUL */

/* The largest Integer of a structured field: 15 digits. */
#define FIELD_INTEGER_DIGITS 15
#define FIELD_INTEGER_MAX UINT64_C(999999999999999)

/* Rounded up. */
static inline uint64_t field_seconds(uint64_t ns)
{
	return ns / FIELD_NS_PER_S + (ns % FIELD_NS_PER_S != 0);
}

/* Those that end in _put return where their text ends, and put a NUL there. */
char *field_number_put(char *to, uint64_t value);

/* A parameter whose name is one letter: ";q=15". */
char *field_parameter_put(char *to, char name, uint64_t value);

/* What follows the name in RateLimit; t is left out of a limit that has no time. */
static inline char *field_limit_put(char *to, uint64_t remaining, int has_time, uint64_t t_s)
{
	to = field_parameter_put(to, 'r', remaining);
	return has_time ? field_parameter_put(to, 't', t_s) : to;
}

/*
 * Write Retry-After, which is empty unless the answer is a denial with a time. Returns the t of
 * RateLimit.
 */
static inline uint64_t field_wait_put(char *retry_after, int has_time, int answer, const struct shmlimit_result *r)
{
	uint64_t t_s;

	retry_after[0] = '\0';
	if (!has_time || answer != SHMLIMIT_DENIED || r->retry_after_ns == UINT64_MAX)
		return field_seconds(r->reset_after_ns);
	t_s = field_seconds(r->retry_after_ns);
	t_s = t_s > 0 ? t_s : 1;
	field_number_put(retry_after, t_s);
	return t_s;
}

#endif
