/*
 * fraction: rates that are no whole number, exactly: 0.5, 2.5k or 1e-3 of a text, 0.1 of a double.
 * Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FRACTION_H
#define SHMLIMIT_LIB_FRACTION_H

#include <stdint.h>

/*
 * The longest period of a rate whose count is a fraction: 36 years. The numbers of such a rate are
 * then within the resolution of every algorithm.
 */
#define FRACTION_PERIOD_MAX (UINT64_MAX >> 4)

/* In lowest terms. */
struct fraction {
	uint64_t num, den;
};

/*
 * Read a number with a point, an exponent and a suffix, or without them. Returns 0 with *text past
 * it; or, with *text unchanged, -EINVAL: there is no number; -ERANGE: it has more than 64
 * bits; -EDOM: its denominator has.
 */
int fraction_scan(const char **text, struct fraction *f);

/*
 * The fraction of a token every `per_ns`, as whole tokens: *count every *period_ns. 0 or -ERANGE.
 */
int fraction_rate(struct fraction f, uint64_t per_ns, uint64_t *count, uint64_t *period_ns);

/* shmlimit_rate_from_double(), with arguments that are there and above 0. */
int fraction_rate_double(double rate, uint64_t per_ns, uint64_t *count, uint64_t *period_ns);

#endif
