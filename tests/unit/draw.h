/*
 * draw: a test program's random numbers, which SEED repeats: `draws.state = rng_seed()` comes first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_UNIT_DRAW_H
#define TESTS_UNIT_DRAW_H

#include "../rng.h"

static struct rng draws;

static inline uint64_t draw(void)
{
	return rng_draw(&draws);
}

/* 0 to n, evenly. */
static inline uint64_t up_to(uint64_t n)
{
	return n == UINT64_MAX ? draw() : rng_below(&draws, n + 1);
}

#endif
