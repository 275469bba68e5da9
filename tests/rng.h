/*
 * rng: random numbers that can be thrown again, and how much of them: the
 * environment's SEED and TEST_SCALE. Which sanitizer this is built for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RNG_H
#define TESTS_RNG_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "../bench/kit/rng.h"
#include "tap.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(UNDER_TSAN)
#define UNDER_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(UNDER_ASAN)
#define UNDER_ASAN 1
#endif

/* n, times the environment's TEST_SCALE; at least 1. For what is done at the least; what is done at the most is not scaled. */
static inline uint64_t scaled(uint64_t n)
{
	const char *scale = getenv("TEST_SCALE");
	double product = (double)n * (scale == NULL ? 1.0 : strtod(scale, NULL));

	/* What a sanitizer, another compiler or processor shows it shows in fewer rounds; how often a race is met is for gcc's build. */
#if defined(UNDER_TSAN) || defined(UNDER_EMULATOR)
	product /= 10;
#elif defined(UNDER_ASAN)
	product /= 4;
#elif defined(__clang__)
	product /= 3;
#endif
	return product < 1.0 ? 1 : (uint64_t)product;
}

/* The environment's SEED or a new one. Says which. */
static inline uint64_t rng_seed(void)
{
	const char *given = getenv("SEED");
	uint64_t seed = 0;

	if (given != NULL)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)getpid();
	diag("SEED=%" PRIu64, seed);
	return seed;
}

#endif
