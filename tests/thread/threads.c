/*
 * threads: tests/process/conserve and claim again, with threads on one mapping, which is what ThreadSanitizer can see
 * (make SAN=thread). A hot key and a race to claim each new key are exact (I1, I2, I3), also while other threads set,
 * switch, remove and read rules, and read slots, counters and all other introspection (I10). With the sanitizer no data
 * race may be reported: a report ends the program with a status of its own.
 *
 * A planted race proves that the sanitizer sees this memory at all: this program, started again with the argument
 * "race", writes a slot with plain stores beside a thread that takes. That must be reported.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "../process/process.h"

#include "fast.h"
#include "limiter.h"
#include "rule.h"

#define THREADS 8
#define START_NS 1000000000000u
#define CAPACITY 100000u
#define HOT_PERIOD_NS 1000000u /* so slow that it would not be evicted */
#define KEY_CAPACITY 3u        /* of the keys that are raced for */
#define FILL_NS 3000u          /* ... which are full again after this */
#define CLAIMS 10000
#define BUSY 20000      /* decisions beside the busybodies */
#define ROUNDS_MAX 1000 /* for contention to be seen */

static struct shmlimit *l;
static int hot, raced;
static struct gate gate;

static struct {
	uint64_t seed;
	_Atomic uint64_t allowed, denied, errors, late, done;
	_Atomic int dry, stop;
	_Atomic uint64_t now_ns;
	_Atomic uint64_t won;     /* of the key of this round */
	uint64_t off, duplicates; /* rounds with another sum than the capacity; with two slots for a key */
	_Atomic uint64_t busy;    /* what the busybodies have done */
	_Atomic uint64_t named;   /* keys that were shown beside slots */
} play;

static void reset_play(uint64_t seed)
{
	memset(&play, 0, sizeof(play));
	play.seed = seed;
	play.now_ns = START_NS;
	gate = (struct gate){ .n = THREADS };
	l = stage_create(64, 16, SHMLIMIT_FULL_EVICT);
	hot = stage_rule(l, "hot", CAPACITY, 1, HOT_PERIOD_NS);
}

static void run_threads(void *(*work)(void *), pthread_t *threads, int n)
{
	static int numbers[THREADS] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
			bail("no thread");
}

static void join_threads(pthread_t *threads, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

/* One token. WHY NOT shmlimit_set_time(): the threads of a handle have one time, and these have their own. */
static int at_once(enum operation op, int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	const struct request q = request_make(op, rule, key_bytes(key, key_len), 1, when_given(now_ns));

	return fast_call(l, &q, NULL);
}

static int take(int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	int was_dry = atomic_load(&play.dry);
	int answer = at_once(OP_TAKE, rule, key, key_len, now_ns);

	if (answer == SHMLIMIT_ALLOWED) {
		atomic_fetch_add(&play.allowed, 1);
		atomic_fetch_add(&play.late, was_dry != 0);
	} else if (answer == SHMLIMIT_DENIED) {
		atomic_fetch_add(&play.denied, 1);
	} else {
		atomic_fetch_add(&play.errors, 1);
	}
	return answer;
}

static void *drain_hot(void *arg)
{
	(void)arg;
	gate_pass(&gate);
	while (take(hot, "key", 3, START_NS) == SHMLIMIT_ALLOWED)
		;
	atomic_store(&play.dry, 1);
	return NULL;
}

static void hot_key(uint64_t seed)
{
	struct shmlimit_counters c = { 0 };
	uint64_t off = 0, late = 0;
	pthread_t threads[THREADS];

	for (int round = 0; round < ROUNDS_MAX && c.failed_cas == 0; round++) {
		reset_play(seed);
		run_threads(drain_hot, threads, THREADS);
		join_threads(threads, THREADS);
		c = counters_of(l, hot);
		off += play.allowed != CAPACITY || c.allowed != play.allowed || c.denied != play.denied ||
		       play.errors != 0;
		late += play.late;
		stage_hide();
		shmlimit_close(l);
	}
	is(off, 0, "a hot key is admitted exactly its capacity, and all is counted");
	is(late, 0, "nothing is admitted after a denial");
	ok(c.failed_cas > 0, "threads did contend");
}

/* Two committed slots for one key? Looked for while no thread decides. */
static int has_duplicate(void)
{
	for (uint64_t i = 0; i < l->tables[0].lines * SLOTS_PER_LINE; i++)
		for (uint64_t j = 0; j < i; j++)
			if (l->tables[0].slots[i].tag != 0 && !(l->tables[0].slots[i].tag & TAG_TENTATIVE) &&
			    !(l->tables[0].slots[j].tag & TAG_TENTATIVE) &&
			    tag_same_key(rule_plain(l, l->tables[0].slots[i].tag),
			                 rule_plain(l, l->tables[0].slots[j].tag)))
				return 1;
	return 0;
}

/* Every round another key, and all those before are full again. */
static void *race_to_claim(void *arg)
{
	int number = *(int *)arg;

	for (uint64_t round = 0; round < scaled(CLAIMS); round++) {
		uint64_t now_ns = START_NS + 2 * round * FILL_NS;

		gate_pass(&gate);
		while (take(raced, &round, sizeof(round), now_ns) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play.won, 1);
		gate_pass(&gate);
		if (number == 0) {
			play.off += atomic_exchange(&play.won, 0) != KEY_CAPACITY;
			play.duplicates += (uint64_t)has_duplicate();
		}
	}
	return NULL;
}

static void new_keys(uint64_t seed)
{
	struct shmlimit_counters c = { 0 };
	pthread_t threads[THREADS];

	for (int round = 0; round < ROUNDS_MAX && c.failed_cas == 0; round++) {
		if (round > 0) {
			stage_hide();
			shmlimit_close(l);
		}
		reset_play(seed);
		raced = stage_rule(l, "raced", KEY_CAPACITY, KEY_CAPACITY, FILL_NS);
		run_threads(race_to_claim, threads, THREADS);
		join_threads(threads, THREADS);
		c = counters_of(l, raced);
	}
	is(play.off, 0, "a key that is raced for is admitted exactly its capacity");
	is(play.duplicates, 0, "a key that is raced for has one slot");
	is(c.claims, scaled(CLAIMS), "each key is given a slot once");
	ok(c.reclaims > 0, "slots were reclaimed");
	ok(c.evictions == 0 && c.no_slot == 0 && play.errors == 0, "there is room for all");
	is(c.allowed, play.allowed, "every answer of allowed is counted");
	is(c.denied, play.denied, "every answer of denied is counted");
	ok(c.failed_cas > 0, "threads did contend");
	stage_hide();
	shmlimit_close(l);
}

/* ---- Busybodies: each does one kind of thing for as long as the takers take ---- */

static void busy(int as_documented)
{
	atomic_fetch_add(&play.busy, 1);
	if (!as_documented)
		atomic_fetch_add(&play.errors, 1);
}

static void *set_and_remove(void *arg)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .refill = 1, .period_ns = 1000 };

	(void)arg;
	for (uint64_t i = 0; !atomic_load(&play.stop); i++) {
		char name[16];
		int id;

		snprintf(name, sizeof(name), "rule%u", (unsigned)(i % 5));
		rule.capacity = 1 + i % 7;
		rule.mode = (uint32_t)(i % 3);
		id = shmlimit_rule_set(l, name, &rule);
		busy(id >= 0 || id == -EBUSY);
		if (id >= 0)
			busy(take(id, &i, sizeof(i), START_NS) >= 0);
		if (i % 3 == 0)
			busy(shmlimit_rule_remove(l, name) == 0);
	}
	return NULL;
}

static void *read_rules(void *arg)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	(void)arg;
	while (!atomic_load(&play.stop)) {
		for (int id = 0; id < 16; id++) {
			char name[SHMLIMIT_RULE_NAME_MAX + 1];
			int error = shmlimit_rule_name(l, id, name);

			busy(error == -ESRCH ||
			     (error == 0 && (strncmp(name, "rule", 4) == 0 || strcmp(name, "hot") == 0 ||
			                     strcmp(name, "raced") == 0)));
			error = shmlimit_rule_get(l, id, &rule);
			busy(error == -ESRCH || (error == 0 && rule.period_ns % 1000 == 0 && rule.refill == 1));
			error = shmlimit_rule_range(l, id, &range);
			busy(error == -ESRCH || (error == 0 && range.refill_ns >= 1000));
		}
		busy(shmlimit_rule_find(l, "hot") == hot);
		busy(shmlimit_info(l, &info) == 0 && info.rules_used >= 2 && info.rules_used <= 7);
	}
	return NULL;
}

/* The keys of the stage: "key" of the rule hot, numbers of the others. */
static int is_a_key(const struct shmlimit_slot *slot, const char *key, int n)
{
	return slot->rule == hot ? n == 3 && memcmp(key, "key", 3) == 0 : n == 8;
}

static void *look_in(void *arg)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	char key[SHMLIMIT_KEY_MAX];

	(void)arg;
	while (!atomic_load(&play.stop)) {
		for (uint64_t i = 0; i < 64; i++) {
			int n;

			busy(shmlimit_slot(l, i, &slot, atomic_load(&play.now_ns)) == 0);
			n = shmlimit_slot_key(l, i, &slot, key, sizeof(key), NULL);
			busy(n == 0 || is_a_key(&slot, key, n));
			atomic_fetch_add(&play.named, n > 0);
		}
		busy(shmlimit_counters(l, hot, &counters) == 0);
		busy(shmlimit_counters(l, SHMLIMIT_ALL_RULES, &counters) == 0);
		busy(shmlimit_peek(at_time(l, START_NS), hot, "key", 3, 1, NULL) >= 0);
	}
	return NULL;
}

static void *verify(void *arg)
{
	(void)arg;
	while (!atomic_load(&play.stop))
		busy(shmlimit_verify(stage_name, NULL, 0) == 0);
	return NULL;
}

/* What does disturb other keys' funnels: only beside takers whose sum is not checked. */
static void *turn_over(void *arg)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.capacity = CAPACITY,
		.refill = 1,
		.period_ns = HOT_PERIOD_NS,
	};

	(void)arg;
	for (uint32_t i = 0; !atomic_load(&play.stop); i++) {
		busy(shmlimit_enable(l, i & 1) == 0);
		busy(shmlimit_reset(l, hot, "key", 3) >= 0);
		busy(shmlimit_reset(l, raced, NULL, 0) >= 0);
		busy(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0) >= 0);
		rule.mode = i % 3;
		busy(shmlimit_rule_set(l, "hot", &rule) == hot);
	}
	return NULL;
}

/* One key that all take from, and keys that come and go, some given back. */
static void *take_and_claim(void *arg)
{
	uint64_t number = (uint64_t) * (int *)arg;
	struct rng rng = { play.seed + number };

	while (!atomic_load(&play.stop)) {
		uint64_t now_ns = atomic_load(&play.now_ns), key = now_ns / FILL_NS;

		if (take(hot, "key", 3, START_NS) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play.won, 1);
		if (take(raced, &key, sizeof(key), now_ns) == SHMLIMIT_ALLOWED && rng_below(&rng, 4) == 0 &&
		    at_once(OP_REFUND, raced, &key, sizeof(key), now_ns) != 0)
			atomic_fetch_add(&play.errors, 1);
		if (rng_below(&rng, 20) == 0)
			atomic_fetch_add(&play.now_ns, FILL_NS / 6);
		atomic_fetch_add(&play.done, 1);
	}
	return NULL;
}

static void beside(const char *title, void *(*const bodies[])(void *), int n, int exact, uint64_t seed)
{
	pthread_t takers[3], others[THREADS];

	reset_play(seed);
	raced = stage_rule(l, "raced", KEY_CAPACITY, 1, FILL_NS / KEY_CAPACITY);
	/* Half empty, it is longer from being full than any other key ever is: it will not be evicted. */
	shmlimit_take(at_time(l, START_NS), hot, "key", 3, CAPACITY / 2, NULL);
	run_threads(take_and_claim, takers, 3);
	for (int i = 0; i < n; i++)
		run_threads(bodies[i], &others[i], 1);
	while (atomic_load(&play.done) < scaled(BUSY) || atomic_load(&play.busy) < scaled(BUSY) ||
	       atomic_load(&play.named) == 0)
		sched_yield();
	atomic_store(&play.stop, 1);
	join_threads(takers, 3);
	join_threads(others, n);
	shmlimit_enable(l, 1);
	is(play.errors, 0, "%s: every call returns what is documented", title);
	if (exact) {
		while (take(hot, "key", 3, START_NS) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play.won, 1);
		is(play.won, CAPACITY / 2, "%s: a key is admitted exactly its capacity", title);
	}
	ok(!has_duplicate(), "%s: no key has two slots", title);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "%s: the segment is sound", title);
	stage_hide();
	shmlimit_close(l);
}

/* ---- The planted race ---- */

static void *write_plainly(void *arg)
{
	struct layout_slot *slot = arg;

	for (int i = 0; i < 1000; i++) {
		slot->tag = 0;
		slot->word = 0;
	}
	return NULL;
}

static void *take_on(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		shmlimit_take(at_time(l, START_NS), hot, "key", 3, 1, NULL);
	return NULL;
}

static int plant_race(void)
{
	pthread_t threads[2];

	reset_play(0);
	stage_hide();
	take_on(NULL);
	for (uint64_t i = 0; i < 64; i++)
		if (l->tables[0].slots[i].tag != 0 &&
		    pthread_create(&threads[0], NULL, write_plainly, &l->tables[0].slots[i]) == 0)
			break;
	run_threads(take_on, &threads[1], 1);
	join_threads(threads, 2);
	shmlimit_close(l);
	return 0;
}

static void planted_race_is_reported(void)
{
#ifdef UNDER_TSAN
	int status;
	pid_t pid = fork_bound();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDERR_FILENO);
		setenv("TSAN_OPTIONS", "exitcode=66", 1);
		execl("/proc/self/exe", "threads", "race", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 66, "a planted race is reported");
#else
	tap_skip("a planted race is reported", "not built with SAN=thread");
#endif
}

int main(int argc, char **argv)
{
	static void *(*const readers[])(void *) = { set_and_remove, read_rules, look_in, verify };
	static void *(*const all[])(void *) = { set_and_remove, read_rules, look_in, verify, turn_over };
	uint64_t seed;

	stage_begin("threads");
	if (argc > 1 && strcmp(argv[1], "race") == 0)
		return plant_race();
	seed = rng_seed();
	planted_race_is_reported();
	hot_key(seed);
	new_keys(seed);
	beside("beside readers and rule setters", readers, 4, 1, seed);
	beside("beside switching and resetting", all, 5, 0, seed);
	return tap_done();
}
