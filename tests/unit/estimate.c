/*
 * estimate: requests take an estimate, and give back what they did not use. In each interval a key is admitted its capacity and
 * what refilled, and at most what requests that were in flight at its beginning give back in it (I1).
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#define REQUESTS 40
#define CAPACITY 20
#define TOKEN_NS 1000
#define KEY "user:42"

static struct shmlimit *l;
static struct rng rng;

/* A request that was admitted; back: 0 while it is in flight. */
struct taken {
	uint64_t at_ns, ends_ns, back_ns, cost, used;
};

/* All that was taken from `from` on until `to`, as it was used, less what came back of earlier requests, is at most that. */
static int is_within(const struct taken *t, size_t n, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t used = 0, back = 0, refilled = (to_ns - from_ns) / TOKEN_NS + 1;

	for (size_t i = 0; i < n; i++) {
		int is_back = t[i].back_ns != 0 && t[i].back_ns <= to_ns;

		if (t[i].at_ns >= from_ns && t[i].at_ns <= to_ns)
			used += is_back ? t[i].used : t[i].cost;
		else if (t[i].at_ns < from_ns && is_back && t[i].back_ns >= from_ns)
			back += t[i].cost - t[i].used;
	}
	return used <= CAPACITY + refilled + back;
}

static void settle(struct taken *t, size_t n, int rule, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++) {
		if (t[i].back_ns != 0 || t[i].ends_ns > now_ns)
			continue;
		shmlimit_refund(at_time(l, now_ns), rule, KEY, strlen(KEY), t[i].cost - t[i].used, NULL);
		t[i].back_ns = now_ns;
	}
}

static uint64_t history(int rule, uint64_t *came_back)
{
	uint64_t now_ns = 1000 * SECOND, wrong = 0;
	struct taken t[REQUESTS];
	size_t n = 0;

	shmlimit_reset(l, rule, KEY, strlen(KEY));
	for (int calls = 0; calls < 4 * REQUESTS && n < REQUESTS; calls++) {
		uint64_t cost = 1 + rng_below(&rng, CAPACITY);

		now_ns += rng_below(&rng, 6 * TOKEN_NS);
		settle(t, n, rule, now_ns);
		if (shmlimit_take(at_time(l, now_ns), rule, KEY, strlen(KEY), cost, NULL) == SHMLIMIT_ALLOWED)
			t[n++] = (struct taken){ now_ns, now_ns + rng_below(&rng, 40 * TOKEN_NS), 0, cost,
				                 rng_below(&rng, cost + 1) };
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			wrong += !is_within(t, n, t[i].at_ns, t[j].at_ns);
	for (size_t i = 0; i < n; i++)
		*came_back += t[i].back_ns != 0 && t[i].cost > t[i].used;
	return wrong;
}

int main(void)
{
	static const uint32_t algorithms[] = { SHMLIMIT_FUNNEL, SHMLIMIT_GCRA };

	rng.state = rng_seed();
	l = unit_create("estimate", NULL);
	for (size_t i = 0; i < 2; i++) {
		struct shmlimit_rule r = {
			.algorithm = algorithms[i], .capacity = CAPACITY, .refill = 1, .period_ns = TOKEN_NS
		};
		int rule = unit_rule_of(l, i == 0 ? "funnel" : "gcra", r);
		uint64_t wrong = 0, came_back = 0, n = scaled(2000);

		for (uint64_t j = 0; j < n; j++)
			wrong += history(rule, &came_back);
		is(wrong, 0, "%s: no interval has more than its capacity, refill and what was in flight",
		   i == 0 ? "FUNNEL" : "GCRA");
		ok(came_back > n, "%s: estimates were too high", i == 0 ? "FUNNEL" : "GCRA");
	}
	shmlimit_close(l);
	return tap_done();
}
