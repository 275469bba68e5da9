/*
 * strict: an adversary that knows the algorithm gets no more than N in any period, ends included, of a limit
 * "N/period strict", and of the same limit as a window no more than N in a period without one of its ends. Of a plain
 * limit it gets nearly twice as many, so it is an adversary that can win.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#define HOUR (3600 * SECOND)
#define TAKES_MAX 20000

static struct shmlimit *l;

/* What passed, in the order of time. */
static struct {
	uint64_t ns, cost;
} passed[TAKES_MAX];
static size_t passes;

static int rule_of(const char *text)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int id;

	if (shmlimit_rule_parse(text, &rule, NULL) != 0)
		bail("%s", text);
	shmlimit_rule_remove(l, "r");
	id = unit_id(shmlimit_rule_set(l, "r", &rule));
	return id;
}

static int take(int rule, uint64_t cost, uint64_t at_ns, struct shmlimit_result *r)
{
	int answer = shmlimit_take(at_time(l, at_ns), rule, "k", 1, cost, r);

	if (answer == SHMLIMIT_ALLOWED && passes < TAKES_MAX) {
		passed[passes].ns = at_ns;
		passed[passes++].cost = cost;
	}
	return answer;
}

/* The most in any period: [t, t + period], or without its end. */
static uint64_t worst(uint64_t period_ns, int end)
{
	uint64_t most = 0, sum = 0;
	size_t first = 0;

	for (size_t i = 0; i < passes; i++) {
		sum += passed[i].cost;
		for (; passed[i].ns - passed[first].ns >= period_ns + (uint64_t)end; first++)
			sum -= passed[first].cost;
		most = sum > most ? sum : most;
	}
	return most;
}

/* All that there is, then each token as soon as it is there; from `at_ns` on, for three periods. */
static void greedy(int rule, uint64_t at_ns, uint64_t period_ns)
{
	struct shmlimit_result r;

	for (uint64_t now = at_ns; now <= at_ns + 3 * period_ns && passes < TAKES_MAX; now += r.retry_after_ns)
		while (take(rule, 1, now, &r) == SHMLIMIT_ALLOWED)
			;
}

/* One request opens a period; then silence to just before its end; then all that can be had. */
static void late(int rule, uint64_t at_ns, uint64_t period_ns, uint64_t before_ns)
{
	struct shmlimit_result r;

	take(rule, 1, at_ns, &r);
	greedy(rule, at_ns + period_ns - before_ns, period_ns);
}

/* Any costs at any times: often as soon as it fits, and a nanosecond before. */
static void random_takes(struct rng *rng, int rule, uint64_t at_ns, uint64_t period_ns, uint64_t count)
{
	struct shmlimit_result r;
	uint64_t now = at_ns;

	for (int i = 0; i < 2000; i++) {
		uint64_t cost = rng_below(rng, 4) == 0 ? 1 + rng_below(rng, count) : 1;
		int answer = take(rule, cost, now, &r);
		uint64_t wait = answer == SHMLIMIT_DENIED && r.retry_after_ns != UINT64_MAX ? r.retry_after_ns : 0;

		if (rng_below(rng, 8) == 0)
			now += rng_below(rng, 2 * period_ns);
		else if (wait > 0)
			now += wait - rng_below(rng, 2);
		else if (rng_below(rng, 8) == 0)
			now += rng_below(rng, 3);
	}
}

/* The most that any strategy gets in a period. */
static uint64_t attack(struct rng *rng, const char *text, uint64_t count, uint64_t period_ns, int end)
{
	uint64_t most = 0;

	for (int strategy = 0; strategy < 8; strategy++) {
		int rule = rule_of(text);
		/* Times that are no multiples of a tick. */
		uint64_t at_ns = 1000000 * SECOND + rng_below(rng, period_ns + 1), got;

		passes = 0;
		if (strategy == 0)
			greedy(rule, at_ns, period_ns);
		else if (strategy < 4)
			late(rule, at_ns, period_ns, strategy == 1 ? 1 : rng_below(rng, period_ns / 1000 + 1));
		else
			random_takes(rng, rule, at_ns, period_ns, count);
		got = worst(period_ns, end);
		most = got > most ? got : most;
	}
	return most;
}

int main(void)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} periods[] = {
		{ "hour", HOUR },
		{ "s", SECOND },
		{ "7ns", 7 },
		{ "1.234567891s", 1234567891 },
		{ "day", 24 * HOUR },
		{ "month", 30 * 24 * HOUR },
		{ "year", 365 * 24 * HOUR },
		{ "3ms", 3000000 },
	};
	static const uint64_t counts[] = { 1, 2, 3, 5, 7, 10, 99, 100, 999, 1000, 1001 };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct rng rng = { .state = rng_seed() };
	uint64_t seldom = 0;
	char text[64];

	l = unit_create("strict", &options);
	for (size_t p = 0; p < sizeof(periods) / sizeof(periods[0]); p++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			uint64_t n = counts[c], got;

			/* A token a nanosecond and more is no rate. */
			if (n > periods[p].ns)
				continue;
			snprintf(text, sizeof(text), "%llu/%s strict", (unsigned long long)n, periods[p].text);
			got = attack(&rng, text, n, periods[p].ns, 1);
			ok(got <= n, "%s: %llu pass in any period, at most", text, (unsigned long long)got);
			seldom += got < n;
		}
	is((int)seldom, 0, "each of these limits is reached");
	for (size_t c = 1; c < sizeof(counts) / sizeof(counts[0]); c++) {
		uint64_t n = counts[c];

		snprintf(text, sizeof(text), "%llu/hour", (unsigned long long)n);
		ok(attack(&rng, text, n, HOUR, 1) > n, "of %s an adversary gets more", text);
		snprintf(text, sizeof(text), "%llu/hour window", (unsigned long long)n);
		ok(attack(&rng, text, n, HOUR, 0) <= n, "%s: a window admits no more, without the end of the period",
		   text);
	}
	shmlimit_close(l);
	return tap_done();
}
