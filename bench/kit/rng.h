/*
 * rng: random numbers, evenly or by Zipf's law; tests/rng.h includes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_RNG_H
#define BENCH_KIT_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state;
};

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static inline uint64_t rng_draw(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n - 1. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return (uint64_t)((unsigned __int128)rng_draw(rng) * n >> 64);
}

/* 0 or more, below 1. */
static inline double rng_unit(struct rng *rng)
{
	return (double)(rng_draw(rng) >> 11) * 0x1p-53;
}

/*
 * Fill `draws` with numbers from 0 to n - 1, of which k comes with a
 * probability in proportion to 1 / (k + 1)^s, 0 < s < 1.
 */
void rng_zipf(struct rng *rng, uint64_t n, double s, uint32_t *draws, uint64_t count);

#endif
