/*
 * lifecycle: segments that are created, opened and destroyed by 8 processes at
 * once, under a few shared names, while creators are killed at random: no process
 * ever sees a half-made segment, a handle is on what was asked for, errors are
 * the documented ones, and nothing is left behind (I4 for create, open,
 * destroy; I11).
 *
 * No two creations ask for the same geometry, so that a creator with
 * a handle on another's segment is found out. Kills are paced by what
 * the victim has done, and are counted where they fell.
 *
 * It all happens in a /dev/shm of the test's own where that is permitted: then
 * nothing at all may be in there in the end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/statvfs.h>

#include "layout.h"
#include "process.h"

#define WORKERS 8
#define NAMES 3
#define OPERATIONS 40000
#define OPERATIONS_MAX (20 * OPERATIONS) /* for kills to have fallen everywhere */
#define KILLS 400

enum operation { CREATE, CREATE_ONLY, OPEN, OPEN_READ_ONLY, DESTROY, VERIFY, IDLE };

/* What one operation may return besides 0: as shmlimit.h says. */
static const struct {
	const char *title;
	int errors[3];
} documented[] = {
	[CREATE] = { "create and open", { -EEXIST } },
	[CREATE_ONLY] = { "create", { -EEXIST } },
	[OPEN] = { "open", { -ENOENT } },
	[OPEN_READ_ONLY] = { "open for reading", { -ENOENT } },
	[DESTROY] = { "destroy", { -ENOENT } },
	[VERIFY] = { "verify", { -ENOENT } },
};

struct play {
	uint64_t seed;
	char name[NAMES][80];
	_Atomic int over;
	_Atomic uint64_t done;
	_Atomic uint64_t geometry; /* counts: each creation asks for another */
	_Atomic uint64_t succeeded[IDLE], failed[IDLE];
	_Atomic uint64_t undocumented[IDLE];
	_Atomic int error[IDLE]; /* the last undocumented one */
	_Atomic uint64_t wrong_geometry, wrong_info, unusable;
	_Atomic int unusable_error;
	struct {
		_Atomic int doing;
		_Atomic uint64_t done;
	} __attribute__((aligned(64))) worker[WORKERS];
};

static struct play *play;

static void answered(enum operation operation, int error)
{
	if (error == 0) {
		atomic_fetch_add(&play->succeeded[operation], 1);
		return;
	}
	atomic_fetch_add(&play->failed[operation], 1);
	for (size_t i = 0; i < sizeof(documented[0].errors) / sizeof(documented[0].errors[0]); i++)
		if (error == documented[operation].errors[i])
			return;
	atomic_fetch_add(&play->undocumented[operation], 1);
	atomic_store(&play->error[operation], error);
}

static void unusable(int error)
{
	atomic_fetch_add(&play->unusable, 1);
	atomic_store(&play->unusable_error, error);
}

/* Whatever was opened works, and goes on working when its name is gone. */
static void use(struct shmlimit *l, struct rng *rng, int writable)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 5, .refill = 1, .period_ns = 1000000 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t key = rng_draw(rng);
	struct shmlimit_result r;
	int id, answer;

	if (shmlimit_info(l, &info) != 0 || info.slots < 16 || info.slots % 4 != 0 || info.rules < 1 ||
	    info.mode != 0600 || info.enabled != 1 || info.layout_version != LAYOUT_VERSION || info.uid != geteuid())
		atomic_fetch_add(&play->wrong_info, 1);
	id = writable ? shmlimit_rule_set(l, "r", &rule) : shmlimit_rule_find(l, "r");
	if ((id == -ENOENT || id == -EAGAIN) && writable)
		return; /* destroyed by another, or others held the lock all the time: as documented */
	if (id == -ESRCH && !writable)
		return;
	if (id < 0) {
		unusable(id);
		return;
	}
	answer = writable ? shmlimit_take(l, id, &key, sizeof(key), 1, &r)
	                  : shmlimit_peek(l, id, &key, sizeof(key), 1, &r);
	if (answer < 0 || r.limit != 5)
		unusable(answer);
}

/* Two numbers that make a geometry: of the first 100,000 each is another, and none is large. */
static void create(const char *name, struct rng *rng, enum operation operation)
{
	uint64_t n = atomic_fetch_add(&play->geometry, 1);
	struct shmlimit_options options = {
		.struct_size = sizeof(options),
		.slots = 16 + 4 * (n % 500),
		.rules = 1 + (uint32_t)(n / 500 % 200),
	};
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l;
	int error = shmlimit_create(name, &options, operation == CREATE ? &l : NULL);

	answered(operation, error);
	if (error != 0 || operation != CREATE)
		return;
	if (shmlimit_info(l, &info) != 0 || info.slots != options.slots || info.rules != options.rules)
		atomic_fetch_add(&play->wrong_geometry, 1);
	use(l, rng, 1);
	shmlimit_close(l);
}

static void open_and_use(const char *name, struct rng *rng, enum operation operation)
{
	struct shmlimit *l;
	int error = shmlimit_open(name, operation == OPEN ? 0 : SHMLIMIT_OPEN_READ_ONLY, NULL, &l);

	answered(operation, error);
	if (error != 0)
		return;
	use(l, rng, operation == OPEN);
	shmlimit_close(l);
}

static void live(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ ((uint64_t)getpid() << 20) ^ (uint64_t)index };

	(void)crew;
	while (!atomic_load(&play->over)) {
		enum operation operation = (enum operation)rng_below(&rng, IDLE);
		const char *name = play->name[rng_below(&rng, NAMES)];

		atomic_store(&play->worker[index].doing, (int)operation);
		switch (operation) {
		case CREATE:
		case CREATE_ONLY:
			create(name, &rng, operation);
			break;
		case OPEN:
		case OPEN_READ_ONLY:
			open_and_use(name, &rng, operation);
			break;
		case DESTROY:
			answered(DESTROY, shmlimit_destroy(name));
			break;
		case VERIFY:
			answered(VERIFY, shmlimit_verify(name, NULL, 0));
			break;
		case IDLE:
			break;
		}
		atomic_store(&play->worker[index].doing, IDLE);
		atomic_fetch_add(&play->worker[index].done, 1);
		atomic_fetch_add(&play->done, 1);
	}
}

/* Have there been creators, openers and destroyers among the killed? */
static int killed_everywhere(const uint64_t kills[IDLE + 1])
{
	return kills[CREATE] + kills[CREATE_ONLY] > 0 && kills[OPEN] + kills[OPEN_READ_ONLY] > 0 && kills[DESTROY] > 0;
}

static int seen_enough(const uint64_t kills[IDLE + 1])
{
	for (int i = 0; i < IDLE; i++)
		if (play->succeeded[i] == 0 || play->failed[i] == 0)
			return 0;
	return killed_everywhere(kills);
}

/* Kill workers, one after the other, each when it has done a few more things. Returns how many ended otherwise. */
static int kill_some(struct crew *crew, uint64_t kills[IDLE + 1])
{
	struct rng rng = { play->seed + 1 };
	uint64_t each = OPERATIONS / KILLS, done = 0;
	int bad = 0;

	while (bad == 0 && (done < scaled(OPERATIONS) || (!seen_enough(kills) && done < OPERATIONS_MAX))) {
		int victim = (int)rng_below(&rng, WORKERS);
		uint64_t until = atomic_load(&play->worker[victim].done) + rng_below(&rng, 10), next = done + each;

		while (atomic_load(&play->done) < next || atomic_load(&play->worker[victim].done) < until)
			crew_await();
		bad += !crew_kill(crew, victim);
		kills[atomic_exchange(&play->worker[victim].doing, IDLE)]++;
		crew_spawn(crew, victim, 0);
		done = atomic_load(&play->done);
	}
	atomic_store(&play->over, 1);
	return bad;
}

/* All of the play, in a /dev/shm of its own where `is_private`. */
static void perform(int is_private)
{
	uint64_t kills[IDLE + 1] = { 0 };
	struct statvfs before, after;
	struct crew crew;
	int bad, left;

	statvfs("/dev/shm", &before);
	crew_start(&crew, WORKERS, live, NULL);
	bad = kill_some(&crew, kills);
	is(bad + crew_wait(&crew), 0, "workers end well, or are killed by the test");
	ok(killed_everywhere(kills), "creators, openers and destroyers were killed inside");
	diag("killed in create %" PRIu64 ", open %" PRIu64 ", destroy %" PRIu64 ", verify %" PRIu64
	     ", between %" PRIu64,
	     kills[CREATE] + kills[CREATE_ONLY], kills[OPEN] + kills[OPEN_READ_ONLY], kills[DESTROY], kills[VERIFY],
	     kills[IDLE]);

	for (int i = 0; i < IDLE; i++) {
		const char *title = documented[i].title;

		ok(play->succeeded[i] > 0 && play->failed[i] > 0, "%s did succeed and did fail", title);
		if (!ok(play->undocumented[i] == 0, "%s returns only documented errors", title))
			diag("%" PRIu64 " others, the last %d (%s)", play->undocumented[i], play->error[i],
			     shmlimit_strerror(play->error[i]));
	}
	is(play->wrong_geometry, 0, "a creator gets a handle on the segment that it created");
	is(play->wrong_info, 0, "a process that opens a segment finds it complete");
	if (!ok(play->unusable == 0, "a rule can be set in it, and tokens taken"))
		diag("%" PRIu64 " times not, the last %d (%s)", play->unusable, play->unusable_error,
		     shmlimit_strerror(play->unusable_error));

	for (int i = 0; i < NAMES; i++) {
		is(shmlimit_verify(play->name[i], NULL, 0) > 0, 0, "in the end segment %d is sound or gone", i);
		shmlimit_destroy(play->name[i]);
	}
	left = is_private ? shm_files() : stage_sweep();
	is(left, 0, "killed creators leave no files behind");
	statvfs("/dev/shm", &after);
	if (is_private)
		is(after.f_bfree, before.f_bfree, "killed creators leave no memory behind");
}

int main(void)
{
	int error;

	stage_begin("lifecycle");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	for (int i = 0; i < NAMES; i++)
		snprintf(play->name[i], sizeof(play->name[i]), "%s.%d", stage_name, i);
	for (int i = 0; i < WORKERS; i++)
		play->worker[i].doing = IDLE;
	error = private_shm("size=64m");
	if (error != 0)
		diag("in the host's /dev/shm: no private one: %s", strerror(-error));
	perform(error == 0);
	return tap_done();
}
