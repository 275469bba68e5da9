/*
 * backoff: how long a server that failed is left alone. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_BACKOFF_H
#define GLOBAL_BACKOFF_H

#include <stdint.h>

/*
 * Returns 3/4 to 5/4 of `open_ns`, so that hosts do not come back together. `random` is a random
 * number that uses all 64 bits.
 */
static inline uint64_t backoff_ns(uint64_t open_ns, uint64_t random)
{
	__extension__ typedef unsigned __int128 u128;

	return open_ns / 4 * 3 + (uint64_t)((u128)random * (open_ns / 2 + 1) >> 64);
}

#endif
