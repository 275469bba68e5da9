/*
 * shares: processes of several tenants share places, and are killed anywhere. Looked at from outside, with all of them
 * stopped: never more are at work than there are places. When all have ended every place is free again.
 *
 * A worker marks a place in shared memory after it was entered, and takes the mark away before it leaves it. So there
 * are at most as many marks as places, and those of a killed worker are taken away for it.
 *
 * The first tenant has a share that denies it, those of the others let them take the last place.
 *
 * SEED=n repeats what is drawn; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 8
#define PLACES 16u
#define TENANTS 3
#define EACH 4 /* places that a worker holds at most */
#define KILLS 40
#define LOOKS 100

static struct play {
	struct shmlimit *l;
	int total, tenant;
	uint64_t seed;
	_Atomic uint64_t allowed, denied_total, denied_share, errors, unbound;
	_Atomic uint32_t marks[WORKERS][EACH];
} * play;

struct held {
	int tenant;
	struct shmlimit_place place[2];
};

static void fill(struct shmlimit_request q[2], struct held *h)
{
	static const char all[] = "all";

	q[0] = (struct shmlimit_request){
		.rule = play->total, .key = all, .key_len = sizeof(all), .cost = 1, .place = &h->place[0]
	};
	q[1] = (struct shmlimit_request){ .rule = play->tenant,
		                          .share = h->tenant == 0 ? SHMLIMIT_SHARE_ONE : PLACES * SHMLIMIT_SHARE_ONE,
		                          .key = &h->tenant,
		                          .key_len = sizeof(h->tenant),
		                          .cost = 1,
		                          .place = &h->place[1] };
}

static int enter(struct held *h, int tenant)
{
	struct shmlimit_request q[2];
	size_t failed = 0;
	int answer;

	h->tenant = tenant;
	for (int i = 0; i < 2; i++)
		h->place[i] =
			(struct shmlimit_place){ .struct_size = sizeof(h->place[i]), .flags = SHMLIMIT_PLACE_BIND };
	fill(q, h);
	answer = shmlimit_take_all(play->l, q, 2, &failed, NULL);
	if (answer == SHMLIMIT_ALLOWED) {
		atomic_fetch_add(&play->allowed, 1);
		if (h->place[0].bind_error != 0 || h->place[1].bind_error != 0)
			atomic_fetch_add(&play->unbound, 1);
	} else if (answer == SHMLIMIT_DENIED) {
		atomic_fetch_add(failed == 0 ? &play->denied_total : &play->denied_share, 1);
	} else {
		atomic_fetch_add(&play->errors, 1);
	}
	return answer;
}

static void leave(struct held *h)
{
	struct shmlimit_request q[2];

	fill(q, h);
	for (int i = 2; i-- > 0;)
		if (shmlimit_leave(play->l, q[i].rule, q[i].key, q[i].key_len, q[i].place) != 0)
			atomic_fetch_add(&play->errors, 1);
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)getpid() << 16 };
	struct held held[EACH] = { 0 };

	(void)crew;
	for (;;) {
		uint64_t i = rng_below(&rng, EACH);

		if (atomic_load(&play->marks[index][i]) != 0) {
			atomic_store(&play->marks[index][i], 0);
			leave(&held[i]);
		} else if (enter(&held[i], (int)rng_below(&rng, TENANTS)) == SHMLIMIT_ALLOWED) {
			atomic_store(&play->marks[index][i], 1);
		}
	}
}

static void await_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WUNTRACED) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	if (!WIFSTOPPED(status))
		bail("process %d ended by itself: status %d", (int)pid, status);
}

/* How many are at work, while nothing moves. */
static unsigned look(const struct crew *crew)
{
	unsigned marks = 0;

	for (int i = 0; i < WORKERS; i++)
		kill(crew->pid[i], SIGSTOP);
	for (int i = 0; i < WORKERS; i++)
		await_stop(crew->pid[i]);
	for (int i = 0; i < WORKERS; i++)
		for (int j = 0; j < EACH; j++)
			marks += atomic_load(&play->marks[i][j]);
	for (int i = 0; i < WORKERS; i++)
		kill(crew->pid[i], SIGCONT);
	return marks;
}

static int end(struct crew *crew, int index)
{
	int well = crew_kill(crew, index);

	for (int i = 0; i < EACH; i++)
		atomic_store(&play->marks[index][i], 0);
	return well;
}

static int hold_rule(const char *name)
{
	return stage_rule_of(
		play->l, name,
		(struct shmlimit_rule){ .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = 3600000000000 });
}

int main(void)
{
	unsigned most = 0, over = 0, badly = 0, free_again = 0;
	struct rng rng = { rng_seed() };
	struct held last = { 0 };
	struct crew crew;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("shares");
	play = shared_memory(sizeof(*play));
	play->l = stage_create(64, 0, SHMLIMIT_FULL_DENY);
	play->total = hold_rule("total");
	play->tenant = hold_rule("tenant");
	play->seed = rng_below(&rng, UINT64_MAX);
	crew_start(&crew, WORKERS, work, NULL);
	/* And until the total denied, and a share did. The watchdog ends that. */
	for (uint64_t looks = 0, kills = 0;
	     looks < scaled(LOOKS) || kills < scaled(KILLS) || play->denied_total == 0 || play->denied_share == 0;
	     looks++) {
		unsigned marks = look(&crew);

		over += marks > PLACES;
		most = marks > most ? marks : most;
		/* They go on from where they were, for a moment of any length. */
		for (uint64_t i = rng_below(&rng, 8); i > 0; i--)
			crew_await();
		if (kills < scaled(KILLS) && rng_below(&rng, 2) == 0) {
			int victim = (int)rng_below(&rng, WORKERS);

			badly += !end(&crew, victim);
			kills++;
			crew_spawn(&crew, victim, 0);
		}
	}
	for (int i = 0; i < WORKERS; i++)
		badly += !end(&crew, i);
	is(over, 0, "never more are at work than there are places");
	is(badly, 0, "workers die by the killer alone");
	is(play->errors, 0, "no call fails");
	is(play->unbound, 0, "each place is bound in the step that enters it");
	/* All places of the total and of each tenant. That a holder is dead may be known after 10 ms only. */
	for (unsigned tenant = 0; tenant <= TENANTS; tenant++)
		for (unsigned tries = 0, n = 0; n < PLACES && tries < 6000; tries++) {
			struct timespec moment = { 0, 5000000 };
			struct shmlimit_request q[2];

			last.tenant = (int)tenant;
			last.place[0] = (struct shmlimit_place){ .struct_size = sizeof(last.place[0]) };
			last.place[1] = last.place[0];
			fill(q, &last);
			q[1].share = 0;
			if (shmlimit_take_all(play->l, tenant < TENANTS ? &q[1] : &q[0], 1, NULL, NULL) ==
			    SHMLIMIT_ALLOWED) {
				n++;
				free_again++;
			} else {
				nanosleep(&moment, NULL);
			}
		}
	is(free_again, PLACES * (TENANTS + 1), "all places of the total and of each tenant are free at the end");
	diag("%" PRIu64 " entries; %" PRIu64 " denied by the total, %" PRIu64 " by shares; %u at work at most",
	     (uint64_t)play->allowed, (uint64_t)play->denied_total, (uint64_t)play->denied_share, most);
	stage_hide();
	shmlimit_close(play->l);
	return tap_done();
}
