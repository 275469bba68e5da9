/*
 * schedule: decides before each access to shared memory which of several actors goes on. An actor runs the library's
 * own code, as a process would, on a stack of its own in this one process; exactly one runs at a time. So a seed is a
 * schedule, and always shows the same. A killed actor is never resumed. Time passes when the scheduler says so, while
 * an actor is stopped.
 *
 * An actor is stopped only where it matters: at words that some actor wrote to in one of the first schedules of each
 * scene, whose seeds are fixed. One schedule in four stops anywhere. Seeds choose between two kinds:
 *
 *   a walk     at each such place another actor goes on, by a chance that differs
 *   ranks      the actor highest in rank goes on. At a few places, chosen beforehand, the running actor falls
 *              behind all others. Of faults that need d stops, n actors and k places, each is found with a
 *              chance of 1 / (n * k^(d-1)) or more (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A
 *              randomized scheduler with probabilistic guarantees of finding bugs", 2010)
 *
 * Then all schedules are tried in which one actor is stopped once, and another once while the first is (Musuvathi,
 * Qadeer: "Iterative context bounding for systematic testing of multithreaded programs", 2007).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SCHEDULE_SCHEDULE_H
#define TESTS_SCHEDULE_SCHEDULE_H

/* Actors jump from stack to stack, which FORTIFY_SOURCE takes for an error. */
#undef _FORTIFY_SOURCE

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <ucontext.h>

#include "../rng.h"
#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif
#include "../unit/unit.h"
#include "atomic.h"
#include "cells.h"
#include "limiter.h"

#define ACTORS_MAX 4
#define STACK_SIZE ((size_t)256 * 1024)
#ifndef SCHEDULES
#define SCHEDULES 12000 /* of each scene; the environment's SCHEDULES is another number */
#endif
#define FIRST_SCHEDULES 300 /* that learn where it matters */
#define STOPS_MAX 4
#define NEVER UINT32_MAX
#define AWAY_MAX 3
#define START_NS 1000000000000000u
#define IN_TURN ((uint64_t)1 << 63) /* seeds of those that are gone through in turn */

/*
 * BOUND: what a call takes when no other actor runs, whatever the others left half done (I4, I6). The most by far is the
 * change of a rule, with two walks over the table.
 */
#define ALONE_MAX 3000
#define POINTS_MAX 200000 /* of a whole schedule: it does not end */

struct scene {
	const char *title;
	unsigned actors;
	unsigned mortals;              /* the first this many may be killed */
	int every;                     /* schedules in turn: all of them, not only as many as SCHEDULES */
	uint64_t away_ns[AWAY_MAX];    /* what may pass while an actor is stopped; 0: time stands */
	struct shmlimit *(*set)(void); /* the stage, once */
	void (*begin)(void);           /* before each schedule, or NULL */
	void (*act)(unsigned who);
	void (*watch)(const void *where); /* before each access to shared memory, or NULL; calls blame() */
	void (*judge)(void);              /* when all have ended or were killed; calls blame() */
};

/* What stage.h keeps of a schedule: to be forgotten before the next; and did the scene so far show anything? */
static void stage_clear(void);
static int stage_was_used(void);

struct actor {
	jmp_buf here;
	char *stack;
	enum { NOT_BEGUN, STOPPED, ENDED, KILLED } state;
	int rank;
	unsigned places;    /* where it could have been stopped */
	unsigned dies;      /* at which of them; NEVER */
	unsigned alone;     /* points since another actor ran, or its call began */
	uint64_t behind_ns; /* its clock is */
};

static struct {
	const struct scene *scene;
	struct shmlimit *l;
	unsigned char *before;  /* the segment, as each schedule finds it */
	unsigned char *written; /* a byte for each of its words: does it matter? */
	int cells_written[CELLS_SIZES];

	/* One schedule. */
	uint64_t seed, now_ns;
	struct actor actor[ACTORS_MAX], *acting, *last;
	jmp_buf home;
	struct rng rng;
	int anywhere, learning, telling;
	uint64_t odds;                   /* one in this many places is left; 0: by rank */
	unsigned stops, stop[STOPS_MAX]; /* ranks: where */
	int lowest;
	unsigned places, points, turns;
	struct actor *writer; /* has the lock */
	char blamed[300];

	/* All of a scene. */
	unsigned places_likely, places_most, alone_most;
	uint64_t kills, judged;
} schedule;

/* Records what is wrong with this schedule. The running actor does not go on. */
__attribute__((format(printf, 1, 2))) static void blame(const char *format, ...)
{
	va_list ap;

	if (schedule.blamed[0] == '\0') {
		va_start(ap, format);
		vsnprintf(schedule.blamed, sizeof(schedule.blamed), format, ap);
		va_end(ap);
	}
	if (schedule.acting != NULL)
		_longjmp(schedule.home, 1);
}

/* ---- Cells ---- */

/* Rules of scenes have none of more: each schedule begins with the same cells. */
#ifndef CELLS_SIZES_OF_SCENES
#define CELLS_SIZES_OF_SCENES 11u
#endif

/* Where a place is in schedule.before, if it is in the segment, or SIZE_MAX. *size: of the cells that it is among. */
static size_t place_of(const void *where, unsigned *size)
{
	const struct shmlimit *l = schedule.l;
	size_t at = (size_t)((uintptr_t)where - (uintptr_t)l->header);

	*size = CELLS_SIZES;
	if (at < l->size)
		return at;
	for (unsigned i = 0; i < CELLS_SIZES_OF_SCENES; i++) {
		at = (size_t)((uintptr_t)where - l->regions[i]);
		if (at >= layout_region_bytes(l->lines_max, i))
			continue;
		*size = i;
		return l->size + layout_region(l->lines_max, i) + at;
	}
	return SIZE_MAX;
}

static size_t places_end(void)
{
	return schedule.l->size + layout_region(schedule.l->lines_max, CELLS_SIZES_OF_SCENES);
}

/* To or from schedule.before; of cells only what was written. */
static void copy_places(int back)
{
	const struct shmlimit *l = schedule.l;

	memcpy(back ? (void *)l->header : schedule.before, back ? schedule.before : (void *)l->header, l->size);
	for (unsigned i = 0; i < CELLS_SIZES_OF_SCENES; i++) {
		void *cells = (void *)(uintptr_t)l->regions[i];
		unsigned char *kept = schedule.before + l->size + layout_region(l->lines_max, i);

		if (cells == NULL)
			continue;
		if (!back)
			memcpy(kept, cells, layout_region_bytes(l->lines_max, i));
		else if (schedule.cells_written[i])
			memcpy(cells, kept, layout_region_bytes(l->lines_max, i));
		schedule.cells_written[i] = 0;
	}
}

/* ---- What is printed of a schedule that failed ---- */

/* The table that a place is in; slots NULL: none. */
static struct table table_at(const char *p)
{
	const struct layout_header *h = schedule.l->header;
	uint64_t offsets[3] = { h->slots_offset, h->tables[0].offset, h->tables[1].offset };
	uint64_t lines[3] = { h->lines, h->tables[0].lines, h->tables[1].lines };

	for (unsigned i = 0; i < 3; i++) {
		struct layout_slot *slots = (struct layout_slot *)(uintptr_t)((const char *)h + offsets[i]);

		if (lines[i] != 0 && p >= (const char *)slots && p < (const char *)slots + lines[i] * LINE)
			return (struct table){ slots, lines[i] };
	}
	return (struct table){ .slots = NULL };
}

static void tell_where(const void *where, char *text, size_t size)
{
	const struct shmlimit *l = schedule.l;
	const char *p = where;
	struct table t = where == NULL ? (struct table){ .slots = NULL } : table_at(p);
	ptrdiff_t slot = p - (const char *)t.slots, record = p - (const char *)l->rules;
	const struct layout_slot *s = t.slots + slot / (ptrdiff_t)sizeof(*s);
	unsigned of = CELLS_SIZES;
	size_t cell = where == NULL ? 0 : place_of(where, &of);

	if (where == NULL)
		snprintf(text, size, "%s", "");
	else if (t.slots != NULL)
		snprintf(text, size, " slot %td of %" PRIu64 ", which is %012" PRIx64 " %04" PRIx64 " %016" PRIx64,
		         slot / (ptrdiff_t)sizeof(*s), t.lines * SLOTS_PER_LINE, s->tag >> TAG_FINGERPRINT_SHIFT,
		         s->tag & 0xffff, s->word);
	else if (of != CELLS_SIZES)
		snprintf(text, size, " cell %zu of size %u, which is %" PRIu64,
		         (cell - l->size - layout_region(l->lines_max, of)) / 8, of, *(const uint64_t *)where);
	else if (record >= 0 && record < (ptrdiff_t)(l->rule_count * sizeof(struct layout_rule)))
		snprintf(text, size, " rule %td, byte %td, which is %" PRIx64,
		         record / (ptrdiff_t)sizeof(struct layout_rule), record % (ptrdiff_t)sizeof(struct layout_rule),
		         *(const uint64_t *)where);
	else
		snprintf(text, size, " byte %td", p - (const char *)l->header);
}

static void tell(const struct actor *a, const char *so, enum point what, const void *where)
{
	static const char *const names[] = {
		[POINT_LOAD] = "reads",      [POINT_STORE] = "writes",      [POINT_SWAP] = "swaps",
		[POINT_SWAP_SLOT] = "swaps", [POINT_TICKET] = "takes",      [POINT_CLOCK] = "reads the clock",
		[POINT_PAUSE] = "backs off", [POINT_LOCK] = "has the lock",
	};
	char text[120];

	tell_where(where, text, sizeof(text));
	diag("  %td: %s%s%s", a - schedule.actor, so, names[what], text);
}

/* ---- Actors ---- */

static void stop(struct actor *a)
{
	if (_setjmp(a->here) == 0)
		_longjmp(schedule.home, 1);
}

static void perform(void)
{
	struct actor *a = schedule.acting;

	schedule.scene->act((unsigned)(a - schedule.actor));
	a->state = ENDED;
	_longjmp(schedule.home, 1);
}

static void begin_actor(struct actor *a)
{
	static ucontext_t context;

	a->state = STOPPED;
#ifdef UNDER_ASAN
	/* The actor that had this stack before may have been killed: its frames are still marked. */
	ASAN_UNPOISON_MEMORY_REGION(a->stack, STACK_SIZE);
#endif
	getcontext(&context);
	context.uc_stack.ss_sp = a->stack;
	context.uc_stack.ss_size = STACK_SIZE;
	context.uc_link = NULL;
	makecontext(&context, perform, 0);
	setcontext(&context);
}

/* Let one actor go on until it is stopped or has ended. */
static void resume(struct actor *a)
{
	if (schedule.last != a) {
		a->alone = 0;
		schedule.turns++;
	}
	schedule.last = schedule.acting = a;
	if (_setjmp(schedule.home) == 0) {
		if (a->state == NOT_BEGUN)
			begin_actor(a);
		_longjmp(a->here, 1);
	}
	schedule.acting = NULL;
}

/* A call begins: its steps are counted from here. */
static void actor_calls(void)
{
	schedule.acting->alone = 0;
}

static void kill_actor(struct actor *a)
{
	if (schedule.telling)
		diag("  %td: is killed", a - schedule.actor);
	a->state = KILLED;
	schedule.kills++;
	/* The kernel drops it. */
	if (schedule.writer == a)
		schedule.writer = NULL;
	_longjmp(schedule.home, 1);
}

/* ---- Points ---- */

static unsigned char *written_at(const void *where)
{
	unsigned ignored;

	return &schedule.written[place_of(where, &ignored) / 8];
}

/* What a process keeps for itself is its own. */
static int is_shared(const void *where, int writes)
{
	unsigned size;
	size_t at = place_of(where, &size);

	if (size != CELLS_SIZES && writes)
		schedule.cells_written[size] = 1;
	return at != SIZE_MAX;
}

static int matters(enum point what, const void *where)
{
	if (what == POINT_CLOCK)
		return schedule.scene->away_ns[0] != 0;
	if (what == POINT_TICKET)
		return 0;
	return *written_at(where);
}

/* Is it stopped here? */
static int leaves(struct actor *a, enum point what, const void *where)
{
	unsigned place;

	if (what == POINT_PAUSE || what == POINT_LOCK) {
		a->rank = --schedule.lowest;
		return 1;
	}
	if (!schedule.anywhere && !matters(what, where))
		return 0;
	place = schedule.places++;
	if (a->places++ == a->dies)
		kill_actor(a);
	for (unsigned i = 0; i < schedule.stops; i++) {
		if (schedule.stop[i] == place) {
			a->rank = -1 - (int)i;
			return 1;
		}
	}
	return schedule.odds != 0 && rng_below(&schedule.rng, schedule.odds) == 0;
}

void point_reached(enum point what, const void *where)
{
	struct actor *a = schedule.acting;
	int writes = what == POINT_STORE || what == POINT_SWAP || what == POINT_SWAP_SLOT;

	if (schedule.before == NULL || (where != NULL && !is_shared(where, writes)) || a == NULL)
		return;
	if (schedule.scene->watch != NULL && where != NULL)
		schedule.scene->watch(where);
	if (++a->alone > schedule.alone_most)
		schedule.alone_most = a->alone;
	if (a->alone > ALONE_MAX)
		blame("a call does not end in %d steps of its own", ALONE_MAX);
	if (++schedule.points > POINTS_MAX)
		blame("nobody gets on");
	if (schedule.learning && writes) {
		*written_at(where) = 1;
		if (what == POINT_SWAP_SLOT)
			written_at(where)[1] = 1;
	}
	if (schedule.telling && writes)
		tell(a, "", what, where);
	if (!leaves(a, what, where))
		return;
	if (schedule.telling)
		tell(a, "is stopped before it ", what, where);
	stop(a);
}

uint64_t point_clock(int clock_id)
{
	(void)clock_id;
	if (schedule.acting == NULL)
		return schedule.now_ns;
	point_reached(POINT_CLOCK, NULL);
	return schedule.now_ns - schedule.acting->behind_ns;
}

/* The writers' lock: one of the scheduler's. */
int __wrap_segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock);
void __wrap_segment_unlock(int lock);

int __wrap_segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock)
{
	(void)name, (void)device, (void)inode, (void)lock;
	while (schedule.acting != NULL && schedule.writer != NULL && wait_ns != 0)
		point_reached(POINT_LOCK, NULL);
	if (schedule.acting != NULL && schedule.writer != NULL)
		return -EAGAIN;
	schedule.writer = schedule.acting;
	return 0;
}

void __wrap_segment_unlock(int lock)
{
	(void)lock;
	schedule.writer = NULL;
}

/* ---- One schedule ---- */

static struct actor *next(void)
{
	struct actor *ready[ACTORS_MAX], *best = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < schedule.scene->actors; i++) {
		struct actor *a = &schedule.actor[i];

		if (a->state != NOT_BEGUN && a->state != STOPPED)
			continue;
		ready[n++] = a;
		if (best == NULL || a->rank > best->rank)
			best = a;
	}
	return n != 0 && schedule.odds != 0 ? ready[rng_below(&schedule.rng, n)] : best;
}

/* Time passes, now and then. */
static void be_away(void)
{
	const uint64_t *away_ns = schedule.scene->away_ns;
	unsigned n = 0;

	while (n < AWAY_MAX && away_ns[n] != 0)
		n++;
	if (n == 0 || rng_below(&schedule.rng, 2) == 0)
		return;
	schedule.now_ns += away_ns[rng_below(&schedule.rng, n)];
	if (schedule.telling)
		diag("  it is %" PRIu64 " ns later", schedule.now_ns - START_NS);
}

/* Schedule number `index` of those in which `first` stops once, and `second` stops once while `first` is stopped. */
static void in_turn(uint64_t index)
{
	unsigned k = schedule.places_most + 1, n = schedule.scene->actors;
	unsigned i = (unsigned)(index % k), j = (unsigned)(index / k % k);
	unsigned first = (unsigned)(index / k / k % n), second = (unsigned)(index / k / k / n % (n - 1));

	schedule.anywhere = 0;
	schedule.odds = 0;
	schedule.stops = 2;
	schedule.stop[0] = i;
	schedule.stop[1] = i + j;
	for (unsigned actor = 0; actor < n; actor++)
		schedule.actor[actor].dies = NEVER;
	schedule.actor[first].rank = ACTORS_MAX + 2;
	schedule.actor[(first + 1 + second) % n].rank = ACTORS_MAX + 1;
}

static uint64_t in_turns(void)
{
	uint64_t k = schedule.places_most + 1, n = schedule.scene->actors;

	return k * k * n * (n - 1);
}

static void plan(uint64_t seed)
{
	struct rng *rng = &schedule.rng;

	*rng = (struct rng){ seed };
	for (unsigned i = schedule.scene->actors, j; i-- > 0;) {
		/* Ranks 0 to n - 1, in some order. */
		schedule.actor[i].rank = (int)i;
		j = i + (unsigned)rng_below(rng, schedule.scene->actors - i);
		schedule.actor[i].rank = schedule.actor[j].rank;
		schedule.actor[j].rank = (int)i;
	}
	schedule.anywhere = schedule.learning || rng_below(rng, 4) == 0;
	schedule.stops = rng_below(rng, 3) == 0 ? 0 : 1 + (unsigned)rng_below(rng, STOPS_MAX);
	schedule.odds = schedule.stops == 0 ? (uint64_t)1 << rng_below(rng, 6) : 0;
	for (unsigned i = 0; i < schedule.stops; i++)
		schedule.stop[i] = (unsigned)rng_below(rng, schedule.places_likely + 1);
	for (unsigned i = 0; i < schedule.scene->mortals; i++)
		if (rng_below(rng, 3) == 0)
			schedule.actor[i].dies =
				(unsigned)rng_below(rng, schedule.places_likely / schedule.scene->actors + 1);
	if (seed & IN_TURN)
		in_turn(seed & ~IN_TURN);
}

/* Returns true if no law was broken. */
static int run_one(uint64_t seed)
{
	struct actor *a;

	for (unsigned i = 0; i < ACTORS_MAX; i++)
		schedule.actor[i] = (struct actor){ .stack = schedule.actor[i].stack, .dies = NEVER };
	copy_places(1);
	schedule.seed = seed;
	schedule.now_ns = START_NS;
	schedule.last = schedule.writer = NULL;
	schedule.places = schedule.points = schedule.turns = 0;
	schedule.lowest = -1 - STOPS_MAX;
	schedule.blamed[0] = '\0';
	plan(seed);
	stage_clear();
	if (schedule.scene->begin != NULL)
		schedule.scene->begin();
	while (schedule.blamed[0] == '\0' && (a = next()) != NULL) {
		resume(a);
		if (a->state == STOPPED)
			be_away();
	}
	schedule.writer = NULL;
	if (schedule.blamed[0] == '\0') {
		schedule.scene->judge();
		schedule.judged++;
	}
	return schedule.blamed[0] == '\0';
}

/* ---- A scene ---- */

/* Where does it matter, and how many such places does a schedule have? */
static void learn(void)
{
	uint64_t sum = 0;

	schedule.learning = 1;
	schedule.places_likely = 1000;
	for (unsigned i = 0; i < FIRST_SCHEDULES && run_one(i); i++)
		;
	schedule.learning = 0;
	schedule.places_most = 0;
	for (unsigned i = 0; i < FIRST_SCHEDULES; i++) {
		(void)run_one(i);
		sum += schedule.places;
		for (unsigned j = 0; j < schedule.scene->actors; j++)
			if (schedule.actor[j].places > schedule.places_most && !schedule.anywhere)
				schedule.places_most = schedule.actor[j].places;
	}
	schedule.places_likely = (unsigned)(sum / FIRST_SCHEDULES);
}

/* Once more, and tell. */
static inline void retell(void)
{
	uint64_t seed = schedule.seed;

	diag("SCENE='%s' SEED=%#" PRIx64 " SCHEDULES=1 %s # shows it again:", schedule.scene->title, seed,
	     program_invocation_name);
	schedule.telling = 1;
	(void)run_one(seed);
	schedule.telling = 0;
	diag("%s", schedule.blamed);
}

static uint64_t given(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value == NULL ? otherwise : strtoull(value, NULL, 0);
}

static void stage_open(const struct scene *scene)
{
	schedule.scene = scene;
	schedule.now_ns = START_NS;
	schedule.l = scene->set();
	schedule.before = malloc(places_end());
	schedule.written = calloc(places_end() / 8, 1);
	for (unsigned i = 0; i < ACTORS_MAX && schedule.actor[i].stack == NULL; i++)
		schedule.actor[i].stack = malloc(STACK_SIZE);
	copy_places(0);
	learn();
	schedule.kills = schedule.judged = 0;
	schedule.alone_most = 0;
}

static void stage_close(void)
{
	free(schedule.before);
	free(schedule.written);
	schedule.before = NULL;
	shmlimit_close(schedule.l);
}

/* As many schedules as the scene is worth, until one fails: schedule.seed is that. Returns true if none did. */
static int search(void)
{
	uint64_t first = given("SEED", 1), n = given("SCHEDULES", scaled(SCHEDULES));
	uint64_t turns = getenv("SEED") != NULL ? 0 : in_turns(), each = schedule.scene->every ? 1 : turns / n + 1;
	int good = 1;

	for (uint64_t i = 0; i < n && good; i++)
		good = run_one(first + i);
	for (uint64_t i = 0; i < turns && good; i += each)
		good = run_one(i | IN_TURN);
	diag("%" PRIu64 " schedules, the last %" PRIu64 " one in %" PRIu64 " of those in turn; %u places, %" PRIu64
	     " killed, a call took up to %u steps",
	     schedule.judged, (turns + each - 1) / each, each, schedule.places_likely, schedule.kills,
	     schedule.alone_most);
	return good;
}

/* Play a scene: one law, and one that there was something to it. */
static inline void play(const struct scene *scene)
{
	const char *only = getenv("SCENE");
	int good;

	if (only != NULL && strcmp(only, scene->title) != 0)
		return;
	stage_open(scene);
	good = search();
	ok(good, "%s", scene->title);
	if (!good)
		retell();
	else if (given("SCHEDULES", SCHEDULES) > 1)
		ok(stage_was_used(), "actors met: %s", scene->title);
	stage_close();
}

#endif
