/*
 * hold: 8 workers enter, renew and leave places at full speed, while a killer ends them by SIGKILL at random moments
 * and starts others. Never are more places held than there are. A killed worker's places are free after the period, and
 * no other place is lost (I13).
 *
 * Rounds: time stands still in a round and is passed to each call, so no place expires in it. A worker notes a place
 * after it has entered it, and deletes the note before it leaves, so each noted place is held. What a killed worker had
 * noted stays held to the end of the round. There are more keys than slots, so slots pass from key to key.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 8
#define SLOTS 16u
#define KEYS 24
#define PLACES 3
#define IN_HAND 4 /* places that a worker holds at once, at most */
#define ROUNDS 20
#define ROUNDS_MAX 2000 /* for them to have met */
#define KILLS_A_ROUND 20
#define CALLS_BETWEEN 200
#define HOUR_NS UINT64_C(3600000000000)
#define START_NS UINT64_C(1000000000000)

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed, now_ns;
	_Atomic uint64_t over, refused; /* places beyond the capacity; places that could not be left */
	_Atomic uint64_t noted[KEYS];   /* places that are held, those of the killed too */
	struct {
		_Atomic uint64_t done; /* calls */
	} __attribute__((aligned(64))) worker[WORKERS];
};

static struct play *play;

static struct {
	uint64_t kills, over, lost, unexplained, kept;
	int ended_badly;
} sum;

static void enter(uint32_t key, struct shmlimit_hold *hold)
{
	int answer;

	*hold = (struct shmlimit_hold){ .struct_size = sizeof(*hold) };
	answer = shmlimit_enter_at(play->l, play->rule, &key, sizeof(key), hold, NULL, play->now_ns);
	worker_check(answer >= 0, "enter: %s", shmlimit_strerror(answer));
	if (hold->value == 0)
		return;
	if (atomic_fetch_add(&play->noted[key], 1) >= PLACES)
		atomic_fetch_add(&play->over, 1);
}

static void leave(uint32_t key, struct shmlimit_hold *hold)
{
	atomic_fetch_sub(&play->noted[key], 1);
	if (shmlimit_leave_at(play->l, play->rule, &key, sizeof(key), hold, play->now_ns) != 0)
		atomic_fetch_add(&play->refused, 1);
	hold->value = 0;
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)getpid() };
	struct shmlimit_hold hold[IN_HAND] = { 0 };
	uint32_t key[IN_HAND] = { 0 };

	(void)crew;
	for (;;) {
		int i = (int)rng_below(&rng, IN_HAND);

		if (hold[i].value == 0) {
			/* Two keys are asked for as often as all others. */
			key[i] = (uint32_t)rng_below(&rng, rng_below(&rng, 2) == 0 ? 2 : KEYS);
			enter(key[i], &hold[i]);
		} else if (rng_below(&rng, 4) == 0) {
			if (shmlimit_renew_at(play->l, play->rule, &key[i], sizeof(key[i]), &hold[i], play->now_ns) !=
			    0)
				atomic_fetch_add(&play->refused, 1);
		} else {
			leave(key[i], &hold[i]);
		}
		atomic_fetch_add(&play->worker[index].done, 1);
	}
}

static void end_one(struct crew *crew, int index)
{
	sum.ended_badly += !crew_kill(crew, index);
	sum.kills++;
}

static void kill_one(struct crew *crew, struct rng *rng)
{
	int victim = (int)rng_below(rng, WORKERS);
	uint64_t goal = atomic_load(&play->worker[victim].done) + 1 + rng_below(rng, CALLS_BETWEEN);

	while (atomic_load(&play->worker[victim].done) < goal)
		crew_await();
	end_one(crew, victim);
	crew_spawn(crew, victim, 0);
}

static uint64_t left(uint32_t key)
{
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_peek_at(play->l, play->rule, &key, sizeof(key), 0, &r, play->now_ns);

	if (answer < 0)
		bail("peek: %s", shmlimit_strerror(answer));
	return r.remaining;
}

/* Places that a killed worker was about to note, or whose note it had deleted, have no holder: one a worker at most. */
static void audit(uint64_t kills)
{
	uint64_t missing = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		uint64_t n = left(key) + atomic_load(&play->noted[key]);

		sum.over += n > PLACES ? n - PLACES : 0;
		missing += n < PLACES ? PLACES - n : 0;
	}
	sum.lost += missing;
	sum.unexplained += missing > kills;
	play->now_ns += 2 * HOUR_NS;
	for (uint32_t key = 0; key < KEYS; key++)
		sum.kept += PLACES - left(key);
}

static void round_of_kills(struct rng *rng)
{
	uint64_t before = sum.kills;
	struct crew crew;

	for (uint32_t key = 0; key < KEYS; key++)
		atomic_store(&play->noted[key], 0);
	play->seed = rng_draw(rng);
	crew_start(&crew, WORKERS, work, NULL);
	for (int i = 0; i < KILLS_A_ROUND; i++)
		kill_one(&crew, rng);
	for (int i = 0; i < WORKERS; i++)
		end_one(&crew, i);
	munmap(crew.gate, sizeof(*crew.gate));
	audit(sum.kills - before);
}

static int met(const struct shmlimit_counters *c)
{
	return c->denied != 0 && c->reclaims != 0 && c->failed_cas != 0;
}

int main(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .window_max = PLACES, .on_full = SHMLIMIT_FULL_DENY
	};
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = HOUR_NS
	};
	struct shmlimit_counters counters = { 0 };
	struct rng rng = { rng_seed() };

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer's swaps are private to a process");
	play = shared_memory(sizeof(*play));
	stage_begin("hold");
	if (shmlimit_create(stage_name, &options, &play->l) != 0)
		bail("create");
	play->now_ns = START_NS;
	play->rule = shmlimit_rule_set_at(play->l, "places", &rule, play->now_ns);
	if (play->rule < 0)
		bail("rule_set: %s", shmlimit_strerror(play->rule));
	for (uint64_t i = 0; i < scaled(ROUNDS) || (i < ROUNDS_MAX && !met(&counters)); i++) {
		round_of_kills(&rng);
		counters = counters_of(play->l, play->rule);
	}
	diag("%" PRIu64 " kills, %" PRIu64 " allowed, %" PRIu64 " denied, %" PRIu64 " reclaims, %" PRIu64
	     " swaps lost; %" PRIu64 " places were being entered or left",
	     sum.kills, counters.allowed, counters.denied, counters.reclaims, counters.failed_cas, sum.lost);
	is((long long)play->over, 0, "no worker enters when all places of a key are held, whichever worker was killed");
	is((long long)sum.over, 0, "what is free and what is held are no more than there are");
	is((long long)play->refused, 0, "each place that is held can be renewed and left");
	is((long long)sum.unexplained, 0, "no place is missing but those that a killed worker was entering or leaving");
	is((long long)sum.kept, 0, "after the period all places of the killed are free");
	is(sum.ended_badly, 0, "all workers went on until they were killed");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	ok(met(&counters), "they met: some were denied, slots went from key to key, swaps were lost");
	shmlimit_close(play->l);
	return tap_done();
}
