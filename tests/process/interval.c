/*
 * interval: on the limiter's own clock, from outside: over every interval a key
 * is admitted no more than its capacity and what comes back in that time (I1).
 *
 * Each worker reads the clock before and after each call and keeps both where
 * the call was admitted. Of all calls that began at a or later and ended at b
 * or earlier there may be at most
 *
 *	capacity + count * (b - a) / period
 *
 * for every a < b. (As many ended by b, less as many began before a, is what
 * is compared: one pass over the sorted times, exact except for the few calls
 * that began before a and ended after it.) The rules are fast, some so fast
 * that a call takes longer than a funnel takes to fill: then the clock that a
 * call read is old when it decides, now and then by a whole time slice.
 *
 * With more keys than slots, funnels refill and are reclaimed all the time. A worker
 * with a reservation goes on when it has waited: that moment counts. A worker that
 * is killed inside a call may have taken tokens that are not logged, which is no excess.
 *
 * The last scene is one process that a timer interrupts: the handler takes from
 * the key that was being decided on, lets it refill, and lets strangers come in
 * that take its slot. The call that then goes on may have a clock that is older
 * than a whole life of that funnel.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "hash.h"
#include "table.h"

#define WORKERS 8
#define LOG_MAX 1000000 /* admissions, over all workers */
#define CALLS 100000    /* a round, over all workers */
#define ROUNDS_MIN 1
#define ROUNDS_MAX 1000     /* for contention to be seen */
#define TICK_NS 20000       /* from one interruption to the next */
#define STRANGER_NS 1000000 /* how long it stays: where all is slow, too, some fill a line */
#define TICKS_INSIDE 500    /* in which the slot was taken, inside a call */

struct scene {
	const char *title;
	unsigned keys;
	uint64_t capacity, count, period_ns;
	uint64_t slots;
	int interrupted;      /* one worker, by a timer; else 8 of them, and no timer */
	uint64_t max_wait_ns; /* reservations of up to this instead of takes */
	int killed;           /* workers are, and started again */
	int all;              /* asked by shmlimit_take_all() */
};

struct entry {
	uint32_t key;
	_Atomic uint32_t written; /* last: its worker may be killed before that */
	uint64_t began_ns, ended_ns;
};

struct play {
	const struct scene *scene;
	struct shmlimit *l;
	int rule, strangers; /* ids; the latter of processes that come in while one is interrupted */
	uint64_t seed;
	_Atomic uint64_t calls, admitted; /* since the segment was made */
	_Atomic uint64_t logged;          /* in this round */
	_Atomic uint64_t inside;          /* ticks of the timer, inside a call */
	struct entry log[LOG_MAX];
};

static struct play *play;

/* One call, logged if it was admitted. */
static void ask(uint32_t key)
{
	uint64_t began_ns = shmlimit_now(play->l), ended_ns, at;
	struct shmlimit_request request = { .rule = play->rule, .key = &key, .key_len = sizeof(key), .cost = 1 };
	struct shmlimit_result r = { .wait_ns = 0 };
	int answer;

	if (play->scene->all)
		answer = shmlimit_take_all(play->l, &request, 1, NULL, NULL);
	else if (play->scene->max_wait_ns == 0)
		answer = shmlimit_take(play->l, play->rule, &key, sizeof(key), 1, NULL);
	else
		answer = shmlimit_reserve(play->l, play->rule, &key, sizeof(key), 1, UINT64_MAX, &r);
	ended_ns = shmlimit_now(play->l);
	worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
	worker_check(r.wait_ns <= play->scene->max_wait_ns, "a wait of %" PRIu64 " ns", r.wait_ns);
	/* Who waits goes on when it has. */
	began_ns += r.wait_ns;
	ended_ns += r.wait_ns;
	atomic_fetch_add(&play->calls, 1);
	if (answer != SHMLIMIT_ALLOWED)
		return;
	atomic_fetch_add(&play->admitted, 1);
	at = atomic_fetch_add(&play->logged, 1);
	if (at >= LOG_MAX)
		return;
	play->log[at].key = key;
	play->log[at].began_ns = began_ns;
	play->log[at].ended_ns = ended_ns;
	atomic_store(&play->log[at].written, 1);
}

static void hammer(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };
	uint64_t n = scaled(CALLS) / (uint64_t)crew->n;

	/* Where others take the place of the killed there are more calls than planned. */
	for (uint64_t i = 0; i < n && atomic_load(&play->logged) < LOG_MAX - WORKERS; i++)
		ask((uint32_t)rng_below(&rng, play->scene->keys));
}

/* ---- The interrupted ---- */

static volatile sig_atomic_t asking = -1; /* the key that is being decided on */
static struct rng strangers;

static uint64_t hash_of(int rule, const void *key, size_t key_len)
{
	return hash_bytes(play->l->secret, (uint32_t)rule, key, key_len);
}

/* Where a key's funnel stands, or NULL; a key that is being claimed has none. */
static const struct layout_slot *slot_of(uint32_t key)
{
	uint64_t hash = hash_of(play->rule, &key, sizeof(key)), tag = tag_pack(hash, (uint32_t)play->rule, 0);

	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		const struct layout_slot *line = table_line(play->l->tables, table_window(play->l->tables, hash), i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			uint64_t there = load_relaxed(&line[j].tag);

			if (tag_same_key(rule_plain(play->l, there), tag) && (there & TAG_TENTATIVE) == 0)
				return &line[j];
		}
	}
	return NULL;
}

/* A stranger comes in, whose first choice is the line of that slot. */
static void let_in(const struct layout_slot *slot)
{
	uint64_t line = (uint64_t)(slot - play->l->tables[0].slots) / SLOTS_PER_LINE, stranger;

	do {
		stranger = rng_draw(&strangers);
	} while (table_window(play->l->tables, hash_of(play->strangers, &stranger, sizeof(stranger))).home[0] != line);
	worker_check(shmlimit_take(play->l, play->strangers, &stranger, sizeof(stranger), 1, NULL) >= 0,
	             "a stranger is not answered");
}

static void come_in(void)
{
	uint64_t refill_ns = play->scene->capacity * play->scene->period_ns / play->scene->count, full_ns, tag;
	const struct layout_slot *slot;

	if (asking < 0)
		return;
	ask((uint32_t)asking);
	full_ns = shmlimit_now(play->l) + refill_ns;
	slot = slot_of((uint32_t)asking);
	if (slot == NULL)
		return;
	tag = load_relaxed(&slot->tag);
	while (shmlimit_now(play->l) < full_ns)
		;
	for (unsigned i = 0; i < 4 * WINDOW_LINES * SLOTS_PER_LINE && load_relaxed(&slot->tag) == tag; i++)
		let_in(slot);
	atomic_fetch_add(&play->inside, load_relaxed(&slot->tag) != tag);
}

static timer_t timer;

static void arm_timer(long after_ns)
{
	timer_settime(timer, 0, &(struct itimerspec){ { 0, 0 }, { 0, after_ns } }, NULL);
}

/* WHY NOT a timer that repeats: where a tick is shorter than this, the call would be interrupted again before it goes on. */
static void interrupt(int number)
{
	(void)number;
	come_in();
	arm_timer(TICK_NS);
}

static void be_interrupted(struct crew *crew, int index)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
	struct rng rng = { play->seed };

	(void)crew;
	(void)index;
	strangers.state = play->seed + 1;
	sigaction(SIGUSR1, &action, NULL);
	worker_check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: %s", strerror(errno));
	arm_timer(TICK_NS);
	/* Twice: a funnel that had come back before its time would show at once. */
	while (atomic_load(&play->inside) < scaled(TICKS_INSIDE) && atomic_load(&play->logged) < LOG_MAX / 2) {
		asking = (sig_atomic_t)rng_below(&rng, play->scene->keys);
		ask((uint32_t)asking);
		ask((uint32_t)asking);
		asking = -1;
	}
	signal(SIGUSR1, SIG_IGN);
	timer_delete(timer);
}

/* ---- Judging ---- */

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The most that any interval has above the capacity and what came back in it: thousandths of a token, 0 or more. */
static uint64_t excess(const uint64_t *began, const uint64_t *ended, size_t n, uint64_t resolution_ps)
{
	const struct scene *scene = play->scene;
	__int128 best = 0, worst = 0;
	uint64_t since = n == 0 ? 0 : began[0];
	size_t i = 0;

	/* In units of 1 / period of a token. An interval may be off by a tick at either end. */
	for (size_t j = 0; j < n; j++) {
		__int128 over;

		for (; i < n && began[i] <= ended[j]; i++) {
			__int128 gained = (__int128)(began[i] - since) * scene->count - (__int128)i * scene->period_ns;

			if (gained > best)
				best = gained;
		}
		over = (__int128)(j + 1) * scene->period_ns - (__int128)(ended[j] - since) * scene->count + best -
		       (__int128)scene->capacity * scene->period_ns -
		       (__int128)(2 * resolution_ps / 1000 + 1) * scene->count;
		if (over > worst)
			worst = over;
	}
	return (uint64_t)(worst * 1000 / scene->period_ns);
}

/* The same, for the key that is worst. */
static uint64_t worst_key(uint64_t resolution_ps)
{
	uint64_t *began = calloc(LOG_MAX, sizeof(*began)), *ended = calloc(LOG_MAX, sizeof(*ended)), worst = 0;
	size_t logged = atomic_load(&play->logged), end;

	if (began == NULL || ended == NULL)
		bail("no memory");
	if (logged > LOG_MAX)
		logged = LOG_MAX;
	qsort(play->log, logged, sizeof(play->log[0]), by_key);
	for (size_t first = 0; first < logged; first = end) {
		uint64_t over;
		size_t n = 0;

		for (end = first; end < logged && play->log[end].key == play->log[first].key; end++) {
			if (!play->log[end].written)
				continue;
			began[n] = play->log[end].began_ns;
			ended[n++] = play->log[end].ended_ns;
		}
		qsort(began, n, sizeof(*began), ascending);
		qsort(ended, n, sizeof(*ended), ascending);
		over = excess(began, ended, n, resolution_ps);
		if (over > worst)
			worst = over;
	}
	free(began);
	free(ended);
	return worst;
}

/* What was to be seen was. */
static int seen_enough(void)
{
	struct shmlimit_counters c = counters_of(play->l, play->rule);

	if (play->scene->interrupted && atomic_load(&play->inside) < scaled(TICKS_INSIDE))
		return 0;
	return (play->scene->keys > 1 || c.failed_cas > 0) && (play->scene->keys <= 16 || c.reclaims > 0);
}

/* Eight at work, some of whom are killed wherever they are, and others take their place. */
static int hammer_and_kill(uint64_t seed)
{
	struct rng rng = { seed };
	struct crew crew;
	int badly = 0;

	crew_start(&crew, WORKERS, hammer, NULL);
	for (uint64_t i = 0; i < scaled(50); i++) {
		int victim = (int)rng_below(&rng, WORKERS);

		for (uint64_t turns = rng_below(&rng, 20); turns > 0; turns--)
			sched_yield();
		badly += crew_kill(&crew, victim) != 1;
		crew_spawn(&crew, victim, 0);
	}
	return badly + crew_wait(&crew);
}

static int work(const struct scene *scene)
{
	if (scene->interrupted)
		return crew_run(1, be_interrupted, NULL);
	return scene->killed ? hammer_and_kill(play->seed) : crew_run(WORKERS, hammer, NULL);
}

static void make_rule(const struct scene *scene)
{
	struct shmlimit_rule rule = { .capacity = scene->capacity,
		                      .refill = scene->count,
		                      .period_ns = scene->period_ns,
		                      .max_wait_ns = scene->max_wait_ns };

	play->rule = stage_rule_of(play->l, "interval", rule);
}

static void perform(const struct scene *scene, uint64_t seed)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	const char *title = scene->title;
	struct shmlimit_counters c;
	uint64_t worst = 0;
	int bad = 0, complete = 1;

	play->scene = scene;
	atomic_store(&play->calls, 0);
	atomic_store(&play->admitted, 0);
	play->l = stage_create(scene->slots, 2, SHMLIMIT_FULL_DENY);
	make_rule(scene);
	play->strangers = stage_rule(play->l, "strangers", 1, 1, STRANGER_NS);
	stage_hide();
	if (shmlimit_rule_range(play->l, play->rule, &range) != 0)
		bail("no range");
	for (unsigned round = 0; round < ROUNDS_MAX && bad == 0 && worst == 0; round++) {
		if (round >= ROUNDS_MIN && seen_enough())
			break;
		play->seed = seed + round * 1009;
		memset(play->log, 0, sizeof(play->log));
		atomic_store(&play->logged, 0);
		atomic_store(&play->inside, 0);
		bad = work(scene);
		complete &= atomic_load(&play->logged) <= LOG_MAX;
		worst = worst_key(range.resolution_ps);
	}
	is(bad, 0, "%s: workers end well", title);
	ok(complete, "%s: the log is complete", title);
	is(worst, 0, "%s: no interval has more than the capacity and what refilled", title);
	if (worst != 0)
		diag("%" PRIu64 " thousandths of a token too many, %" PRIu64 " admitted", worst,
		     atomic_load(&play->logged));
	c = counters_of(play->l, play->rule);
	if (!scene->killed) {
		is(c.allowed, atomic_load(&play->admitted), "%s: the counter of allowed is the sum of the answers",
		   title);
		is(c.allowed + c.denied, atomic_load(&play->calls), "%s: every call was counted", title);
	}
	if (scene->keys == 1)
		ok(c.failed_cas > 0, "%s: workers did contend", title);
	if (scene->keys > 16)
		ok(c.reclaims > 0, "%s: funnels did refill and were reclaimed", title);
	if (scene->interrupted)
		ok(atomic_load(&play->inside) >= scaled(TICKS_INSIDE), "%s: calls were interrupted", title);
	shmlimit_close(play->l);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "1 token, 1 a microsecond", 1, 1, 1, 1000, 16, 0, 0, 0, 0 },
		{ "2 tokens, 1 in 100 ns", 1, 2, 1, 100, 16, 0, 0, 0, 0 },
		{ "10 tokens, 1 a microsecond", 1, 10, 1, 1000, 16, 0, 0, 0, 0 },
		{ "1,000 tokens, 3 in 7 microseconds", 1, 1000, 3, 7000, 16, 0, 0, 0, 0 },
		{ "100 tokens, 1,000 a second", 1, 100, 1000, 1000000000, 16, 0, 0, 0, 0 },
		{ "50 keys in 16 slots, 1 token, 1 a microsecond", 50, 1, 1, 1000, 16, 0, 0, 0, 0 },
		{ "50 keys in 16 slots, 2 tokens, 1 in 50 microseconds", 50, 2, 1, 50000, 16, 0, 0, 0, 0 },
		{ "interrupted, 1 token, 1 in 10 microseconds", 1000, 1, 1, 10000, 256, 1, 0, 0, 0 },
		{ "all at once, 10 tokens, 1 a microsecond", 1, 10, 1, 1000, 16, 0, 0, 0, 1 },
		{ "all at once, 50 keys in 16 slots, 2 tokens, 1 in 50 microseconds", 50, 2, 1, 50000, 16, 0, 0, 0, 1 },
		{ "killed, 20 tokens, 1 a microsecond", 3, 20, 1, 1000, 16, 0, 0, 1, 0 },
		{ "reserved, 10 tokens, 1 a microsecond", 1, 10, 1, 1000, 16, 0, 50000, 0, 0 },
		{ "reserved and killed, 10 tokens, 1 a microsecond", 3, 10, 1, 1000, 16, 0, 50000, 1, 0 },
	};
	uint64_t seed;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("interval");
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		perform(&scenes[i], seed + i * 1000003);
	return tap_done();
}
