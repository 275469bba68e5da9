/*
 * rng: see rng.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <math.h>

#include "rng.h"

/*
 * By rejection: k is drawn from the continuous density 1 / x^s over
 * (k, k + 1], which its integral inverts, and kept with a probability that makes up
 * for how much steeper that is (Devroye: "Non-uniform random variate generation", 1986).
 */
void rng_zipf(struct rng *rng, uint64_t n, double s, uint32_t *draws, uint64_t count)
{
	double whole = 1 + (pow((double)n, 1 - s) - 1) / (1 - s);

	for (uint64_t i = 0; i < count;) {
		double area = rng_unit(rng) * whole;
		/* The envelope: 1 up to x = 1, then 1 / x^s. */
		double x = area <= 1 ? area : pow(1 + (area - 1) * (1 - s), 1 / (1 - s));
		double k = floor(x) + 1;
		double height = x <= 1 ? 1 : pow(x, -s);

		if (k > (double)n || rng_unit(rng) * height > pow(k, -s))
			continue;
		draws[i++] = (uint32_t)(k - 1);
	}
}
