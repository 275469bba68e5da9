/*
 * debt: many processes reserve at once, on a clock that stands still, and some are killed (I1, I2, I4 with debt).
 *
 * A funnel of CAPACITY tokens that may go into debt for DEBT tokens' time admits CAPACITY + DEBT reservations of one
 * token. The first CAPACITY need not wait. Each other one gets a wait of its own, one token's time longer than the
 * last: so no process waits too long, and none goes on before its token is there. A token that a killed process had
 * reserved and not noted is missing once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define SECOND ((uint64_t)1000000000)
#define T0 (1000 * SECOND)
#define WORKERS 8
#define CAPACITY 1000
#define DEBT 500000
#define TOKEN_NS 1000000 /* 1,000 a second */
#define AGAIN_MAX 200    /* rounds, for contention to be seen */

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed;
	_Atomic uint64_t errors, calls, denied;
	_Atomic uint32_t told[DEBT + 1]; /* how many had to wait for this many tokens */
};

static struct play *play;

static void reserver(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };
	int dry = 0;

	(void)crew;
	/* Until it is empty; some give back what they reserved, so that the debt goes to and fro. */
	while (dry < 100) {
		struct shmlimit_result r;
		int answer = shmlimit_reserve(at_time(play->l, T0), play->rule, "k", 1, 1, UINT64_MAX, &r);

		atomic_fetch_add(&play->calls, 1);
		if (answer == SHMLIMIT_DENIED) {
			atomic_fetch_add(&play->denied, 1);
			dry++;
		} else if (answer != SHMLIMIT_ALLOWED || r.wait_ns % TOKEN_NS != 0 || r.wait_ns / TOKEN_NS > DEBT) {
			atomic_fetch_add(&play->errors, 1);
		} else {
			atomic_fetch_add(&play->told[r.wait_ns / TOKEN_NS], 1);
			if (rng_below(&rng, 64) == 0)
				sched_yield();
		}
	}
}

/* One round with up to `kills` processes killed. Returns how many were; *bad counts others that did not end well. */
static int reserve_all(int kills, int *bad)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.capacity = CAPACITY,
		.refill = SECOND / TOKEN_NS,
		.period_ns = SECOND,
		.max_wait_ns = (uint64_t)DEBT * TOKEN_NS,
	};
	struct rng rng = { play->seed };
	struct crew crew;
	int killed = 0;

	for (int i = 0; i <= DEBT; i++)
		atomic_store(&play->told[i], 0);
	atomic_store(&play->denied, 0);
	play->l = stage_create(64, 4, SHMLIMIT_FULL_DENY);
	play->rule = shmlimit_rule_set(at_time(play->l, T0), "debt", &rule);
	crew_start(&crew, WORKERS, reserver, NULL);
	while (killed < kills && atomic_load(&play->denied) == 0) {
		uint64_t seen = atomic_load(&play->calls);
		int victim = (int)rng_below(&rng, WORKERS);

		while (atomic_load(&play->calls) < seen + 50 && atomic_load(&play->denied) == 0)
			sched_yield();
		killed += crew_kill(&crew, victim);
		crew_spawn(&crew, victim, 0);
	}
	*bad = crew_wait(&crew);
	return killed;
}

static void round_of(int kills)
{
	uint64_t twice = 0, missing = 0, contended;
	struct shmlimit_result r;
	int bad, killed = reserve_all(kills, &bad);

	/* On a busy machine they may take turns: again, until two met, and one was killed. */
	for (int again = 0; again < AGAIN_MAX; again++) {
		contended = counters_of(play->l, play->rule).failed_cas;
		if (bad != 0 || (contended > 0 && (kills == 0 || killed > 0)))
			break;
		stage_hide();
		shmlimit_close(play->l);
		killed = reserve_all(kills, &bad);
	}
	is(bad, 0, "all workers that were not killed end as they should");
	for (int i = 1; i <= DEBT; i++) {
		uint32_t n = atomic_load(&play->told[i]);

		twice += n > 1;
		missing += n == 0;
	}
	is(twice, 0, "no two reservations report the same time");
	ok(missing <= (uint64_t)killed, "each time is told, but for those of the killed (%" PRIu64 " of %d)", missing,
	   killed);
	ok(atomic_load(&play->told[0]) <= CAPACITY && atomic_load(&play->told[0]) + (uint64_t)killed >= CAPACITY,
	   "the capacity is had without a wait");
	shmlimit_peek(at_time(play->l, T0), play->rule, "k", 1, 1, &r);
	is(r.retry_after_ns, (DEBT + 1) * (uint64_t)TOKEN_NS, "the debt is as long as the rule allows");
	shmlimit_peek(at_time(play->l, T0 + (DEBT + CAPACITY) * (uint64_t)TOKEN_NS), play->rule, "k", 1, 1, &r);
	is(r.remaining, CAPACITY, "the debt is paid, and the funnel full, just when it should be");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	ok(counters_of(play->l, play->rule).failed_cas > 0, "they did contend");
	ok(kills == 0 || killed > 0, "processes were killed (%d)", killed);
	stage_hide();
	shmlimit_close(play->l);
}

int main(void)
{
	stage_begin("debt");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	round_of(0);
	round_of((int)scaled(100));
	is(atomic_load(&play->errors), 0, "no call failed, no wait was anything but whole tokens");
	return tap_done();
}
