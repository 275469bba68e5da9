/*
 * lease: 8 workers spend leases while a killer ends them by SIGKILL at random moments and starts others. No token is
 * spent that was not deposited, or twice, or after its time. One worker at a time asks for a key; if it is killed, no
 * other asks until its claim has expired: I1 and I4 for leases.
 *
 * The backend is a few numbers in shared memory. What it gives is recorded before it is deposited, and what is spent
 * when it is spent. So a worker that is killed in between makes the recorded spending too small, and never too large.
 * Now and then the backend does not answer: then the worker that asks waits until it is killed.
 *
 * Rounds: time stands still in a round, so a claim ends only by its answer. Each worker makes a fixed number of calls
 * on each key. When all have, and none is in a call, the ledger is checked. Then time goes on: by a claim's length, so
 * that the claims of killed workers expire, or by a lease's length, so that all leases expire and the ledger begins
 * again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 8
#define KEYS 3
#define CAPACITY 64u
#define COST_MAX 3
#define CALLS 40 /* of a worker, a round and key */
#define START_NS 1000000000000u
#define CLAIM_NS 1000000u
#define LEASE_NS 1000000000u
#define KILLS 1000
#define KILLS_MAX 20000   /* for those to be seen that prove something */
#define CLAIMS_A_LEASE 50 /* rounds */

struct play {
	struct shmlimit *l;
	int rule;
	_Atomic uint64_t round, now_ns, errors, crowds, asked, denied, waited;
	struct {
		_Atomic uint64_t given, spent;
		_Atomic int asking; /* the workers that ask now */
	} __attribute__((aligned(64))) key[KEYS];
	struct {
		_Atomic uint64_t calls;
		_Atomic uint64_t finished; /* rounds: 1 + the last one of which it made all calls */
		_Atomic int inside, hangs;
	} __attribute__((aligned(64))) worker[WORKERS];
};

static struct play *play;

static struct {
	uint64_t kills, inside, asking, rounds, expiries, over;
	int ended_badly;
} sum;

/* It asks the backend: it gives, refuses, or does not answer. */
static void answer(uint64_t key, uint64_t cost, const struct shmlimit_lease *lease, struct rng *rng, uint64_t now_ns)
{
	int error = 0;

	switch (rng_below(rng, 8)) {
	case 0:
		atomic_fetch_sub(&play->key[key].asking, 1);
		error = shmlimit_lease_abandon(at_time(play->l, now_ns), play->rule, &key, sizeof(key));
		break;
	case 1:
		atomic_fetch_sub(&play->key[key].asking, 1);
		error = shmlimit_lease_deny(at_time(play->l, now_ns), play->rule, &key, sizeof(key), cost, CLAIM_NS / 2,
		                            NULL);
		error -= SHMLIMIT_DENIED;
		break;
	default:
		atomic_fetch_add(&play->key[key].given, lease->want);
		atomic_fetch_sub(&play->key[key].asking, 1);
		error = shmlimit_lease_deposit(at_time(play->l, now_ns), play->rule, &key, sizeof(key), lease->want,
		                               cost, 0, LEASE_NS, NULL);
		if (error == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->key[key].spent, cost);
		else if (error == SHMLIMIT_LEASE_WAIT)
			error = 0;
	}
	if (error != 0)
		atomic_fetch_add(&play->errors, 1);
}

static void call(int index, uint64_t key, struct rng *rng)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	uint64_t cost = 1 + rng_below(rng, COST_MAX), now_ns = atomic_load(&play->now_ns);

	switch (shmlimit_lease_take(
		at_time(play->l, now_ns), play->rule, &key, sizeof(key),
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .lease_ns = LEASE_NS,
	                                          .claim_ns = CLAIM_NS },
		&lease, NULL)) {
	case SHMLIMIT_ALLOWED:
		atomic_fetch_add(&play->key[key].spent, cost);
		break;
	case SHMLIMIT_DENIED:
		atomic_fetch_add(&play->denied, 1);
		break;
	case SHMLIMIT_LEASE_WAIT:
		atomic_fetch_add(&play->waited, 1);
		break;
	case SHMLIMIT_LEASE_ASK:
		atomic_fetch_add(&play->asked, 1);
		/* Set after it got the claim and cleared before it gives it up: two at once are two too many. */
		if (atomic_fetch_add(&play->key[key].asking, 1) != 0)
			atomic_fetch_add(&play->crowds, 1);
		if (rng_below(rng, 200) == 0)
			atomic_store(&play->worker[index].hangs, 1);
		while (atomic_load(&play->worker[index].hangs))
			sched_yield();
		answer(key, cost, &lease, rng, now_ns);
		break;
	default:
		atomic_fetch_add(&play->errors, 1);
	}
}

static void spend(struct crew *crew, int index)
{
	struct rng rng = { (uint64_t)getpid() << 16 };

	(void)crew;
	for (;;) {
		uint64_t round = atomic_load(&play->round);

		for (unsigned i = 0; i < CALLS * KEYS; i++) {
			atomic_store(&play->worker[index].inside, 1);
			call(index, rng_below(&rng, KEYS), &rng);
			atomic_store(&play->worker[index].inside, 0);
			atomic_fetch_add(&play->worker[index].calls, 1);
		}
		atomic_store(&play->worker[index].finished, round + 1);
		while (atomic_load(&play->round) == round)
			sched_yield();
	}
}

static int all_finished(uint64_t round)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load(&play->worker[i].finished) != round + 1)
			return 0;
	return 1;
}

static void end(struct crew *crew, int victim)
{
	sum.ended_badly += !crew_kill(crew, victim);
	sum.kills++;
	if (atomic_exchange(&play->worker[victim].hangs, 0))
		sum.asking++;
	else
		sum.inside += (uint64_t)atomic_load(&play->worker[victim].inside);
	atomic_store(&play->worker[victim].inside, 0);
	atomic_store(&play->worker[victim].finished, 0);
	crew_spawn(crew, victim, 0);
}

static void end_those_who_hang(struct crew *crew)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load(&play->worker[i].hangs))
			end(crew, i);
}

/* Inside a call, if it is seen in one. BOUND: the wait ends for a worker that does not run. */
static void kill_one(struct crew *crew, struct rng *rng)
{
	int victim = (int)rng_below(rng, WORKERS);
	uint64_t calls = atomic_load(&play->worker[victim].calls), some = rng_below(rng, CALLS * KEYS);

	for (int i = 0; i < 2000 && atomic_load(&play->worker[victim].calls) - calls <= some; i++)
		if (i % 100 == 0)
			crew_await();
		else
			relax();
	for (int i = 0; i < 10000 && !atomic_load(&play->worker[victim].inside); i++)
		relax();
	end(crew, victim);
}

/* No worker is in a call. */
static void look_at_books(int expires)
{
	uint64_t now_ns = atomic_load(&play->now_ns);

	for (uint64_t key = 0; key < KEYS; key++) {
		uint64_t given = atomic_load(&play->key[key].given), spent = atomic_load(&play->key[key].spent);
		struct shmlimit_result r;

		(void)shmlimit_peek(at_time(play->l, now_ns), play->rule, &key, sizeof(key), 0, &r);
		sum.over += spent + r.remaining > given;
		atomic_store(&play->key[key].asking, 0);
		if (expires) {
			atomic_store(&play->key[key].given, 0);
			atomic_store(&play->key[key].spent, 0);
		}
	}
	sum.expiries += (uint64_t)expires;
	atomic_store(&play->now_ns, now_ns + (expires ? 2 * LEASE_NS : 2 * CLAIM_NS));
}

static int seen_enough(void)
{
	return sum.inside > 0 && sum.asking > 0 && sum.expiries > 0 && play->denied > 0 && play->waited > 0 &&
	       counters_of(play->l, play->rule).failed_cas > 0;
}

int main(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = CAPACITY,
		                      .refill = 1000,
		                      .period_ns = 1000000000 };
	struct rng rng;
	struct crew crew;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("lease");
	rng.state = rng_seed();
	play = shared_memory(sizeof(*play));
	play->l = stage_create(64, 2, SHMLIMIT_FULL_EVICT);
	atomic_store(&play->now_ns, START_NS);
	play->rule = shmlimit_rule_set(at_time(play->l, START_NS), "lease", &rule);
	if (play->rule < 0)
		bail("rule_set: %s", shmlimit_strerror(play->rule));
	crew_start(&crew, WORKERS, spend, NULL);
	while (sum.kills < scaled(KILLS) || (!seen_enough() && sum.kills < KILLS_MAX)) {
		uint64_t round = atomic_load(&play->round);

		/* Not in the first round: all others would wait for a worker that is killed before the gate. */
		if (round != 0 && rng_below(&rng, 4) != 0)
			kill_one(&crew, &rng);
		while (!all_finished(round)) {
			end_those_who_hang(&crew);
			crew_await();
		}
		sum.rounds++;
		look_at_books(round % CLAIMS_A_LEASE == CLAIMS_A_LEASE - 1);
		atomic_store(&play->round, round + 1);
	}
	for (int i = 0; i < WORKERS; i++)
		sum.ended_badly += !crew_kill(&crew, i);
	is(sum.ended_badly, 0, "workers die by the killer alone");
	is(play->errors, 0, "no call fails");
	is(play->crowds, 0, "one worker a key asks at a time");
	is(sum.over, 0, "no key spends more than it was given, and what has expired is not spent");
	ok(sum.inside > 0 && sum.asking > 0, "there were kills inside a call, and of a worker that asked");
	ok(play->asked > sum.rounds / 2, "the claims of the killed end: others ask");
	ok(play->denied > 0 && play->waited > 0 && sum.expiries > 0, "there were denials, waits, and expired leases");
	ok(counters_of(play->l, play->rule).failed_cas > 0, "workers did contend");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	diag("%" PRIu64 " rounds, %" PRIu64 " kills, %" PRIu64 " inside a call, %" PRIu64 " of askers; %" PRIu64
	     " asked, %" PRIu64 " waited, %" PRIu64 " denied",
	     sum.rounds, sum.kills, sum.inside, sum.asking, play->asked, play->waited, play->denied);
	stage_hide();
	shmlimit_close(play->l);
	return tap_done();
}
