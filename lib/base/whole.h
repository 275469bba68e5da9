/*
 * whole: arithmetic of whole numbers that several files need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WHOLE_H
#define SHMLIMIT_LIB_WHOLE_H

#include <stdint.h>

typedef unsigned __int128 u128;

/* Bits that x needs; of 0 none. */
static inline unsigned bit_length(uint64_t x)
{
	return x == 0 ? 0 : 64 - (unsigned)__builtin_clzll(x);
}

/* The largest number that divides both, by Euclid; of a number and 0 the number. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

#endif
