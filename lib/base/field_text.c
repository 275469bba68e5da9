/*
 * field_text: see field_text.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "field_text.h"

/*
 * WHY NOT snprintf(): it may not be called in a signal handler, and a server
 * that writes two fields for each of its answers notices the difference.
 */
char *field_number_put(char *to, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char *end = to + 1, *at;

	value = value < FIELD_INTEGER_MAX ? value : FIELD_INTEGER_MAX;
	for (uint64_t power = 10; power <= value; power *= 10)
		end++;
	*end = '\0';
	at = end;
	for (; at - to >= 2; value /= 100)
		at = (char *)memcpy(at - 2, &pairs[2 * (value % 100)], 2);
	if (at > to)
		*to = (char)('0' + value);
	return end;
}

char *field_parameter_put(char *to, char name, uint64_t value)
{
	*to++ = ';';
	*to++ = name;
	*to++ = '=';
	return field_number_put(to, value);
}
