/*
 * shares: places that keys share: a key holds at most a share of the places that are free in the limit before it. By hand,
 * and random histories against plain counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sched.h>
#include <sys/wait.h>

#include "../rng.h"
#include "unit.h"

#include "limiter.h"

#define T0 (1000 * SECOND)
#define PERIOD (1000 * SECOND)
#define LEVELS 3 /* site, organization, user */
#define KEYS 4
#define HELD_MAX 64
#define ONE SHMLIMIT_SHARE_ONE

static struct shmlimit *l;
static struct shmlimit_result r[LEVELS];
static size_t failed;

static int rule_in(const char *name, uint64_t capacity, uint32_t mode)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = capacity,
		                      .period_ns = PERIOD,
		                      .mode = mode };

	return unit_id(shmlimit_rule_set(at_time(l, T0), name, &rule));
}

static int rule(const char *name, uint64_t capacity)
{
	return rule_in(name, capacity, SHMLIMIT_ENFORCE);
}

/* One request of each level, all or none: of level i the key with that number. */
struct visit {
	int key[LEVELS];
	struct shmlimit_place place[LEVELS];
};

static int enter(struct visit *v, const int *rules, const uint32_t *share, const struct shmlimit_limit *const *limit,
                 size_t n, uint32_t flags)
{
	struct shmlimit_request q[LEVELS];

	for (size_t i = 0; i < n; i++) {
		v->place[i] = (struct shmlimit_place){ .struct_size = sizeof(v->place[i]), .flags = flags };
		q[i] = (struct shmlimit_request){ .rule = rules[i],
			                          .share = share[i],
			                          .key = &v->key[i],
			                          .key_len = sizeof(v->key[i]),
			                          .cost = 1,
			                          .limit = limit == NULL ? NULL : limit[i],
			                          .place = &v->place[i] };
	}
	return shmlimit_take_all(at_time(l, T0), q, n, &failed, r);
}

static unsigned leave(const struct visit *v, const int *rules, size_t n)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += shmlimit_leave(at_time(l, T0), rules[i], &v->key[i], sizeof(v->key[i]), &v->place[i]) != 0;
	return wrong;
}

/* Each of k tenants asks in turn until none gets more. */
static void greedy(void)
{
	static const uint32_t shares[] = { ONE / 4, ONE, 4 * ONE, 100 * ONE };
	int rules[2] = { rule("all", 64), rule("each", 64) };
	unsigned wrong = 0;

	for (size_t s = 0; s < 4; s++)
		for (int k = 1; k <= 8; k++) {
			double factor = (double)shares[s] / ONE, each = factor * 64 / (1 + factor * k);
			unsigned held[8] = { 0 }, entered = 1;

			shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
			while (entered > 0) {
				entered = 0;
				for (int i = 0; i < k; i++) {
					struct visit v = { .key = { -1, i } };

					if (enter(&v, rules, (const uint32_t[]){ 0, shares[s] }, NULL, 2, 0) ==
					    SHMLIMIT_ALLOWED) {
						held[i]++;
						entered++;
					}
				}
			}
			for (int i = 0; i < k; i++)
				wrong += held[i] + 1 < each || held[i] > each + 1;
		}
	is(wrong, 0, "k greedy tenants hold share * 64 / (1 + share * k) each, within one place");
}

static void said(void)
{
	int rules[2] = { rule("all", 4), rule("each", 4) }, tried[2], off[2];
	struct visit a[4] = { { .key = { -1, 1 } }, { .key = { -1, 1 } }, { .key = { -1, 1 } }, { .key = { -1, 2 } } };
	const uint32_t share[2] = { 0, ONE };
	struct shmlimit_limit one = { .struct_size = sizeof(one), .flags = SHMLIMIT_LIMIT_PLACES, .capacity = 1 };
	const struct shmlimit_limit *limits[2] = { NULL, &one };

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	is(enter(&a[0], rules, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "a key enters");
	is(r[1].limit, 4, "its share is all that was free");
	is(r[1].remaining, 3, "it may have that many more");
	is(enter(&a[1], rules, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "it enters again");
	is(r[1].limit, 3, "its share is smaller");
	is(enter(&a[2], rules, share, NULL, 2, 0), SHMLIMIT_DENIED, "it holds as many as are free");
	is(failed, 1, "the key's request denies");
	is(r[1].limit, 2, "by its share");
	is(r[1].retry_after_ns, SECOND, "any place that is left may help it");
	is(a[2].place[0].value, 0, "the place in the limit before it is left");
	is(enter(&a[3], rules, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "another key enters");
	is(leave(&a[3], rules, 2), 0, "it leaves");
	is(enter(&a[3], rules, share, limits, 2, 0), SHMLIMIT_ALLOWED, "by a limit of its own, too");
	a[2].key[1] = 2;
	is(enter(&a[2], rules, share, limits, 2, 0), SHMLIMIT_DENIED, "that denies where the share would not");
	ok(r[1].retry_after_ns > SECOND, "it is told when its own place ends");
	is(r[1].limit, 1, "the result has the limit of the request");

	/* Where the limit before holds nothing. */
	tried[0] = rule_in("tried", 1, SHMLIMIT_DRY_RUN);
	off[0] = rule_in("off", 1, SHMLIMIT_OFF);
	tried[1] = off[1] = rules[1];
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	is(enter(&a[0], tried, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "a limit on trial is shared, too");
	is(enter(&a[1], tried, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "what it would deny is bounded by no share of it");
	is(r[1].limit, 4, "the rule's capacity is");
	for (int i = 0; i < 2; i++)
		is(enter(&a[2], off, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "a limit that is off bounds nothing");
	is(enter(&a[3], off, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "of any key");
}

static void errors(void)
{
	int rules[2] = { rule("all", 4), rule("each", 4) };
	struct visit v = { .key = { -1, 1 } };
	struct shmlimit_request q = {
		.rule = rules[0], .share = ONE, .key = "k", .key_len = 1, .cost = 1, .place = &v.place[0]
	};
	int answer;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	is(enter(&v, rules, (const uint32_t[]){ ONE, 0 }, NULL, 2, 0), -EINVAL, "a share of nothing is refused");
	is(enter(&v, rules, (const uint32_t[]){ 0, ONE }, NULL, 1, 0), SHMLIMIT_ALLOWED, "the limit alone is entered");
	is(shmlimit_take_all(l, &q, 1, NULL, NULL), -EINVAL, "a share in a single request is refused");
	is(shmlimit_decide(l, SHMLIMIT_TAKE, &q, NULL), -EINVAL, "a share of a key that enters alone is refused");
	is(shmlimit_decide(l, SHMLIMIT_PEEK, &q, NULL), -EINVAL, "a share in a peek is refused");
	is(shmlimit_take_many(l, &q, 1, &answer, NULL), -EINVAL, "a share among independent requests is refused");
	q.place = NULL;
	is(shmlimit_take_all(l, &q, 1, NULL, NULL), -EINVAL, "a share without a place is refused");
}

/* Processes that died have no places in the limit before, though nothing was denied by that. */
static void dead(void)
{
	int rules[2] = { rule("all", 4), rule("each", 4) };
	const uint32_t share[2] = { 0, ONE };
	struct visit v = { .key = { -1, 1 } };
	int status = 0, answer = SHMLIMIT_DENIED;
	pid_t pid;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	pid = fork();
	if (pid == 0) {
		struct visit mine = { .key = { -1, 2 } };

		_exit(enter(&mine, rules, share, NULL, 2, SHMLIMIT_PLACE_BIND) +
		      enter(&mine, rules, share, NULL, 2, SHMLIMIT_PLACE_BIND));
	}
	waitpid(pid, &status, 0);
	is(status, 0, "a process enters twice, and ends");
	is(enter(&v, rules, share, NULL, 2, 0), SHMLIMIT_ALLOWED, "another key enters");
	/* That it lived a few milliseconds ago may be remembered. */
	for (long asks = 0; answer != SHMLIMIT_ALLOWED && asks < 1000000; asks++) {
		answer = enter(&v, rules, share, NULL, 2, 0);
		sched_yield();
	}
	is(answer, SHMLIMIT_ALLOWED, "its places are free for that key");
	is(enter(&v, rules, share, NULL, 2, 0), SHMLIMIT_DENIED, "that has its share then");
}

static unsigned held_by(const struct visit *visits, unsigned n, size_t level, int key)
{
	unsigned held = 0;

	for (unsigned i = 0; i < n; i++)
		held += visits[i].key[level] == key;
	return held;
}

static void histories(struct rng *rng)
{
	static const uint32_t factors[] = { 1, ONE / 3, ONE / 2, ONE, 2 * ONE, 4 * ONE, UINT32_MAX };
	uint64_t did[3] = { 0 };
	unsigned wrong = 0;

	for (uint64_t i = 0; i < scaled(2000) && wrong == 0; i++) {
		struct visit visits[HELD_MAX];
		uint32_t share[LEVELS] = { 0, factors[rng_below(rng, 7)], factors[rng_below(rng, 7)] };
		uint64_t capacity[LEVELS];
		int rules[LEVELS];
		unsigned n = 0;

		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		for (size_t level = 0; level < LEVELS; level++) {
			static const char *const names[LEVELS] = { "site", "organization", "user" };

			capacity[level] = 1 + rng_below(rng, 12);
			rules[level] = rule(names[level], capacity[level]);
		}
		/* The last level's share may be of the site, where no organization is asked. */
		size_t levels = 2 + rng_below(rng, 2);

		for (int ask = 0; ask < 40; ask++) {
			struct visit *v = &visits[n];
			uint64_t before = UINT64_MAX;
			size_t denies = levels;

			if (n > 0 && (n == HELD_MAX || rng_below(rng, 3) == 0)) {
				unsigned which = (unsigned)rng_below(rng, n);

				wrong += leave(&visits[which], rules, levels);
				visits[which] = visits[--n];
				continue;
			}
			*v = (struct visit){ .key = { -1, (int)rng_below(rng, KEYS), (int)rng_below(rng, KEYS) } };
			for (size_t level = 0; level < levels && denies == levels; level++) {
				uint64_t most = capacity[level], held = held_by(visits, n, level, v->key[level]);

				if (level > 0 && before * share[level] / ONE < most)
					most = before * share[level] / ONE;
				if (held >= most)
					denies = level;
				else
					before = most - held;
			}
			int answer = enter(v, rules, share, NULL, levels, 0);

			wrong += answer != (denies == levels ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED) ||
			         (answer == SHMLIMIT_DENIED && failed != denies);
			did[answer == SHMLIMIT_ALLOWED ? 0 : failed == 0 ? 1 : 2]++;
			n += answer == SHMLIMIT_ALLOWED;
		}
	}
	is(wrong, 0, "random histories of two and three levels are those of plain counts");
	for (int i = 0; i < 3; i++)
		ok(did[i] > scaled(2000),
		   "they have much that is allowed, and denied by the first limit and by shares (%d)", i);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 256 };
	struct rng rng;

	rng.state = rng_seed();
	l = unit_create("shares", &options);
	greedy();
	said();
	errors();
	dead();
	histories(&rng);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	return tap_done();
}
