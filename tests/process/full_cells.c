/*
 * full_cells: keys with logs and places when memory ends: /dev/shm is full, or a process may have no more addresses, or no
 * longer file. The key that needs room gets what on_full says, and is counted. All other keys go on, exactly. No process dies
 * of SIGBUS, also when others are killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "process.h"
#include "table.h"

#define NOW_NS 1000000000000u
#define PAGE 4096u
#define SLOTS 4096u
#define CAPACITY 600u
#define KEYS 600u
#define OLD 50u /* keys of a funnel, before memory ends */

enum { SHM, ADDRESSES, LENGTH, WAYS };
static const char *const ways[WAYS] = { "a full /dev/shm", "no addresses left", "no longer file" };

struct seen {
	int not_permitted;
	uint64_t housed, homeless, wrong_answers, not_exact, funnels_wrong, counted, after_wrong;
	int verified, grown, refused;
	/* under kills: */
	uint64_t kills, over, full, had_room;
};

static struct seen *seen;
static struct shmlimit *l;
static int window, places, funnel;

static int set_rule(const char *name, uint32_t algorithm, uint64_t capacity)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .capacity = capacity,
		                      .refill = algorithm == SHMLIMIT_FUNNEL ? capacity : 0,
		                      .period_ns = 86400000000000u };

	return shmlimit_rule_set(l, name, &rule);
}

static void make(uint32_t on_full)
{
	struct shmlimit_options o = {
		.struct_size = sizeof(o), .slots = SLOTS, .slots_max = SLOTS, .rules = 8, .on_full = on_full
	};

	if (shmlimit_create(stage_name, &o, &l) != 0)
		bail("create");
	window = set_rule("window", SHMLIMIT_WINDOW, CAPACITY);
	places = set_rule("places", SHMLIMIT_HOLD, CAPACITY);
	funnel = set_rule("funnel", SHMLIMIT_FUNNEL, 5);
}

static int take(int rule, uint64_t key, struct shmlimit_result *r)
{
	return shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), 1, r);
}

static int enter(uint64_t key)
{
	struct shmlimit_place place = { .struct_size = sizeof(place) };

	return shmlimit_enter(at_time(l, NOW_NS), places, &key, sizeof(key), &place, NULL);
}

static uint64_t remaining(int rule, uint64_t key)
{
	struct shmlimit_result r = { 0 };

	shmlimit_peek(at_time(l, NOW_NS), rule, &key, sizeof(key), 1, &r);
	return r.remaining;
}

/* How many of the next ones are allowed: more are asked than there can be. */
static uint64_t allowed(int rule, uint64_t key)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CAPACITY + 100; i++)
		n += (rule == places ? enter(key) : take(rule, key, NULL)) == SHMLIMIT_ALLOWED;
	return n;
}

static uint64_t no_slot(void)
{
	struct shmlimit_counters a = { .struct_size = sizeof(a) }, b = { .struct_size = sizeof(b) };

	shmlimit_counters(l, window, &a);
	shmlimit_counters(l, places, &b);
	return a.no_slot + b.no_slot;
}

static uint64_t room(void)
{
	struct statvfs status;

	return statvfs("/dev/shm", &status) == 0 ? status.f_bfree * status.f_frsize : 0;
}

/* Take all but this much of /dev/shm. */
static void fill(uint64_t but)
{
	int fd = open("/dev/shm/filler", O_CREAT | O_RDWR, 0600);
	uint64_t bytes;

	/* BOUND: each round but the last means that another process was faster. */
	do
		bytes = room();
	while (bytes > but && posix_fallocate(fd, 0, (off_t)(bytes - but)) == ENOSPC);
	close(fd);
}

static void empty(void)
{
	unlink("/dev/shm/filler");
}

/* Memory ends for this process. */
static void end_memory(int way)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = 0;
	if (way == SHM)
		fill(40 * (uint64_t)PAGE);
	if (way == ADDRESSES)
		setrlimit(RLIMIT_AS, &limit);
}

/* New keys of windows and places, until some have found no memory. Each is asked once. */
static void ask_new_keys(uint32_t on_full)
{
	uint64_t before = no_slot();

	for (uint64_t key = 0; key < KEYS; key++) {
		int rule = key % 2 ? places : window;
		int answer = rule == places ? enter(key) : take(rule, key, NULL);

		if (remaining(rule, key) == CAPACITY - 1) {
			seen->housed++;
			seen->wrong_answers += answer != SHMLIMIT_ALLOWED;
			continue;
		}
		seen->homeless++;
		seen->wrong_answers += answer != (on_full == SHMLIMIT_FULL_DENY ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
	}
	seen->counted = no_slot() - before;
}

static void go_on(void)
{
	/* Those that have their cells have their limit. */
	for (uint64_t key = 0; key < KEYS; key++) {
		int rule = key % 2 ? places : window;
		uint64_t left = remaining(rule, key);

		if (left == CAPACITY - 1)
			seen->not_exact += allowed(rule, key) != CAPACITY - 1;
		/* And the older half of a log, which a charge fills. */
		if (left == CAPACITY - 1 && rule == window)
			seen->wrong_answers +=
				shmlimit_charge(at_time(l, NOW_NS), rule, &key, sizeof(key), CAPACITY, NULL) < 0;
	}
	/* Others need no memory, known and new ones. */
	for (uint64_t key = 0; key < 2 * (uint64_t)OLD; key++)
		seen->funnels_wrong += allowed(funnel, key) != (key < OLD ? 4 : 5);
}

static void scene(int way, uint32_t on_full)
{
	struct rlimit limit;
	struct stat status;
	char path[SHMLIMIT_PATH_MAX];

	seen->not_permitted = private_shm("size=8m");
	if (seen->not_permitted != 0)
		return;
	if (way == LENGTH) {
		make(on_full);
		if (shmlimit_path(stage_name, path) != 0 || stat(path, &status) != 0)
			bail("stat");
		limit.rlim_cur = limit.rlim_max = seen->full;
		shmlimit_close(l);
		shmlimit_destroy(stage_name);
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	make(on_full);
	for (uint64_t key = 0; key < OLD; key++)
		(void)take(funnel, key, NULL);
	end_memory(way);
	ask_new_keys(on_full);
	if (way == SHM)
		fill(0);
	go_on();
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
	seen->verified = shmlimit_verify(stage_name, NULL, 0);
	if (way != SHM)
		return;
	/* A larger limit needs larger logs: without memory its keys get what on_full says. */
	seen->grown = set_rule("window", SHMLIMIT_WINDOW, 8 * CAPACITY);
	for (uint64_t key = 0; key < KEYS; key += 2)
		seen->wrong_answers +=
			take(window, key, NULL) != (on_full == SHMLIMIT_FULL_DENY ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
	seen->grown -= set_rule("window", SHMLIMIT_WINDOW, CAPACITY);
	empty();
	for (uint64_t key = KEYS; key < KEYS + 20; key++)
		seen->after_wrong += allowed(key % 2 ? places : window, key) != CAPACITY;
	for (uint64_t key = 0; key < KEYS && on_full == SHMLIMIT_FULL_DENY; key++)
		seen->after_wrong += allowed(key % 2 ? places : window, key) > CAPACITY;
}

/* ---- A larger size where a process has no addresses ---- */

static int ask(int rule, uint64_t key)
{
	return rule == places ? enter(key) : take(rule, key, NULL);
}

static void limit_addresses(int on)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = on ? 0 : limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
}

static void enlarge(int way, uint32_t on_full)
{
	(void)way;
	(void)on_full;
	seen->grown = set_rule("window", SHMLIMIT_WINDOW, 8 * CAPACITY) < 0 ||
	              set_rule("places", SHMLIMIT_HOLD, 8 * CAPACITY) < 0;
}

static int in_child(void (*what)(int, uint32_t), int way, uint32_t on_full);

/*
 * A process without addresses sets a larger limit. Then another process sets it, and is killed
 * before its walk, of which this test undoes what it did to the two keys. The first one is asked.
 */
static void small_process(int way, uint32_t on_full)
{
	struct layout_slot *slot[2], before[2];
	int rules[2];

	(void)way;
	make(on_full);
	rules[0] = window;
	rules[1] = places;
	for (int i = 0; i < 2; i++) {
		int rule = rules[i];
		uint64_t key = 7, hash = hash_bytes(l->secret, (uint32_t)rule, &key, sizeof(key));

		for (int n = 0; n < 3; n++)
			seen->wrong_answers += ask(rule, key) != SHMLIMIT_ALLOWED;
		slot[i] = table_find(l->tables, hash, tag_pack(hash, (uint32_t)rule, 1));
		if (slot[i] == NULL)
			bail("a key without a slot");
		before[i] = *slot[i];
	}
	limit_addresses(1);
	seen->refused = set_rule("window", SHMLIMIT_WINDOW, 8 * CAPACITY) == -ENOMEM &&
	                set_rule("places", SHMLIMIT_HOLD, 8 * CAPACITY) == -ENOMEM &&
	                set_rule("window", SHMLIMIT_WINDOW, CAPACITY / 2) == window &&
	                set_rule("window", SHMLIMIT_WINDOW, CAPACITY) == window;
	seen->after_wrong += remaining(window, 7) != CAPACITY - 3 || remaining(places, 7) != CAPACITY - 3;
	limit_addresses(0);
	before[0] = *slot[0];
	seen->verified = !in_child(enlarge, 0, 0);
	for (int i = 0; i < 2; i++)
		*slot[i] = before[i];
	limit_addresses(1);
	for (int i = 0; i < 2; i++) {
		uint64_t counted = no_slot();

		seen->wrong_answers +=
			ask(rules[i], 7) != (on_full == SHMLIMIT_FULL_DENY ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
		seen->counted += no_slot() - counted;
		seen->not_exact += memcmp(slot[i], &before[i], sizeof(before[i])) != 0;
	}
	limit_addresses(0);
	for (int i = 0; i < 2; i++) {
		seen->after_wrong += ask(rules[i], 7) != SHMLIMIT_ALLOWED;
		seen->after_wrong += remaining(rules[i], 7) != 8 * (uint64_t)CAPACITY - 4;
	}
	seen->verified |= shmlimit_verify(stage_name, NULL, 0);
	shmlimit_close(l);
	shmlimit_destroy(stage_name);
}

/* ---- Under kills ---- */

#define WORKERS 4
#define LOAD_KEYS 300u
#define KILLS 150

static _Atomic uint64_t *granted; /* of each key */
static _Atomic uint64_t *calls;
static uint64_t drawn; /* the seed */

static void load(struct crew *crew, int index)
{
	struct rng rng = { (uint64_t)getpid() * WORKERS + (uint64_t)index };

	(void)crew;
	for (;;) {
		uint64_t key = rng_below(&rng, LOAD_KEYS);
		int rule = key % 2 ? places : window;
		int answer = rule == places ? enter(key) : take(rule, key, NULL);

		worker_check(answer >= 0, "a decision failed: %s", shmlimit_strerror(answer));
		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&granted[key], 1);
		atomic_fetch_add(calls, 1);
		if (rng_below(&rng, 64) == 0) {
			struct shmlimit *again;

			/* A process that begins maps and reserves again. */
			if (shmlimit_open(stage_name, 0, NULL, &again) == 0)
				shmlimit_close(again);
		}
	}
}

static void killed(void)
{
	struct rng rng = { drawn };
	struct crew crew;

	seen->not_permitted = private_shm("size=3m");
	if (seen->not_permitted != 0)
		return;
	make(SHMLIMIT_FULL_DENY);
	crew_start(&crew, WORKERS, load, NULL);
	for (int i = 0; i < KILLS; i++) {
		uint64_t until = atomic_load(calls) + rng_below(&rng, 200), before = room();
		int index = (int)rng_below(&rng, WORKERS);

		/* Now it is full, now there is room for some. */
		empty();
		fill(rng_below(&rng, 8) * PAGE);
		seen->full += room() == 0;
		seen->had_room += before != 0;
		while (atomic_load(calls) < until && rng_below(&rng, 10000) != 0)
			sched_yield();
		seen->over += !crew_kill(&crew, index);
		seen->kills++;
		crew_spawn(&crew, index, 0);
	}
	for (int i = 0; i < WORKERS; i++)
		seen->over += !crew_kill(&crew, i);
	empty();
	for (uint64_t key = 0; key < LOAD_KEYS; key++) {
		uint64_t n = atomic_load(&granted[key]), more = allowed(key % 2 ? places : window, key);

		seen->not_exact += n + more > CAPACITY;
		seen->housed += n > 0;
	}
	seen->verified = shmlimit_verify(stage_name, NULL, 0);
}

static int in_child(void (*what)(int, uint32_t), int way, uint32_t on_full)
{
	pid_t pid = fork_bound();

	if (pid == 0) {
		what(way, on_full);
		_exit(0);
	}
	return wait_for(pid);
}

static void kills(int way, uint32_t on_full)
{
	(void)way;
	(void)on_full;
	killed();
}

/* ---- Many pages ---- */

#define PAGE_TOKENS 256u /* a key's log is a page */
#define NOTED 3000u      /* more than a process remembers that it has reserved */

/* What a process has reserved does not let it take another page for reserved. */
static void many_pages(int way, uint32_t on_full)
{
	(void)way;
	seen->not_permitted = private_shm("size=24m");
	if (seen->not_permitted != 0)
		return;
	make(on_full);
	window = set_rule("pages", SHMLIMIT_WINDOW, PAGE_TOKENS);
	for (uint64_t key = 0; key < NOTED; key++)
		seen->housed += take(window, key, NULL) == SHMLIMIT_ALLOWED;
	fill(0);
	for (uint64_t key = NOTED; key < NOTED + KEYS; key++)
		seen->homeless += take(window, key, NULL) == SHMLIMIT_DENIED;
	for (uint64_t key = 0; key < NOTED; key++)
		seen->not_exact += remaining(window, key) != PAGE_TOKENS - 1;
}

/* The file's length without what is holes for cells. */
static uint64_t length_without_cells(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	make(SHMLIMIT_FULL_DENY);
	shmlimit_info(l, &info);
	shmlimit_close(l);
	shmlimit_destroy(stage_name);
	return info.size + ((uint64_t)8 << 20); /* and holes for rules */
}

int main(void)
{
	static const char *const words[] = { "evict", "allow", "deny" };
	uint64_t length;

	drawn = rng_seed();
	stage_begin("full_cells");
	seen = shared_memory(sizeof(*seen));
	granted = shared_memory(LOAD_KEYS * sizeof(*granted));
	calls = shared_memory(sizeof(*calls));
	length = length_without_cells();
	for (int way = 0; way < WAYS; way++) {
		for (uint32_t on_full = SHMLIMIT_FULL_EVICT; on_full <= SHMLIMIT_FULL_DENY; on_full++) {
			char title[64];

			snprintf(title, sizeof(title), "%s, %s", ways[way], words[on_full]);
			memset(seen, 0, sizeof(*seen));
			seen->full = length;
			ok(in_child(scene, way, on_full), "%s: no process dies", title);
			if (seen->not_permitted != 0) {
				tap_skip(title, "no /dev/shm of one's own is permitted");
				continue;
			}
			ok(seen->homeless > 0 && (way != SHM || seen->housed > 0),
			   "%s: %llu keys have room for their log or places, and %llu have none", title,
			   (unsigned long long)seen->housed, (unsigned long long)seen->homeless);
			is(seen->wrong_answers, 0, "%s: a key without room gets the answer of on_full", title);
			ok(seen->counted >= seen->homeless, "%s: it is counted as one without a slot", title);
			is(seen->not_exact, 0, "%s: a key that has room has its limit, to the token", title);
			is(seen->funnels_wrong, 0, "%s: keys of other algorithms go on, new ones too", title);
			is(seen->grown, 0, "%s: a rule gets a larger limit nevertheless", title);
			is(seen->verified, 0, "%s: the segment is sound", title);
			is(seen->after_wrong, 0, "%s: when there is memory again new keys have their limit", title);
		}
	}
	for (uint32_t on_full = SHMLIMIT_FULL_EVICT; on_full <= SHMLIMIT_FULL_DENY; on_full++) {
		const char *word = words[on_full];

		memset(seen, 0, sizeof(*seen));
		ok(in_child(small_process, 0, on_full), "a larger size without addresses, %s: no process dies", word);
		ok(seen->refused, "%s: a process without addresses cannot set a limit that needs larger logs", word);
		is(seen->wrong_answers, 0, "%s: a key that this process cannot convert gets what on_full says", word);
		is(seen->counted, 2, "%s: it is counted as one without a slot", word);
		is(seen->not_exact, 0, "%s: its slot stays as it was", word);
		is(seen->after_wrong, 0, "%s: with addresses it has what it had, and the larger limit", word);
		is(seen->grown, 0, "%s: another process sets the larger limit", word);
		is(seen->verified, 0, "%s: the segment is sound when a process has no addresses", word);
	}
	memset(seen, 0, sizeof(*seen));
	ok(in_child(many_pages, SHM, SHMLIMIT_FULL_DENY), "many pages: no process dies");
	if (seen->not_permitted == 0) {
		is(seen->housed, NOTED, "%u keys have a page each", NOTED);
		is(seen->homeless, KEYS, "a key that needs another page is denied when there is none");
		is(seen->not_exact, 0, "keys that have their pages keep what they used");
	}
	memset(seen, 0, sizeof(*seen));
	ok(in_child(kills, 0, 0), "kills in a full /dev/shm: no process dies of a signal but theirs");
	if (seen->not_permitted == 0) {
		is(seen->over, 0, "%d kills while memory comes and goes: no process dies of another signal", KILLS);
		ok(seen->full > 0 && seen->housed > 0, "/dev/shm was full %llu times, and %llu keys got room",
		   (unsigned long long)seen->full, (unsigned long long)seen->housed);
		is(seen->not_exact, 0, "no key is admitted more than its limit");
		is(seen->verified, 0, "the segment is sound after that");
	}
	return tap_done();
}
