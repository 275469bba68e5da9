/*
 * room: memory follows use. What a segment's file takes (as du says) when keys have logs or places, beside what it takes
 * without: bytes, in a segment with the default number of slots. And: a /dev/shm of 64 MiB is enough for large limits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "process.h"

#define NOW_NS 1000000000000u
#define MIB ((uint64_t)1 << 20)
#define PAGE 4096u

static struct shmlimit *l;
static int no_room; /* decisions that had no memory, or no slot */

/* Bytes of memory that the segment's file has. */
static uint64_t used(const char *name)
{
	char path[SHMLIMIT_PATH_MAX];
	struct stat status;

	if (shmlimit_path(name, path) != 0 || stat(path, &status) != 0)
		bail("stat");
	return (uint64_t)status.st_blocks * 512;
}

static const char *make(uint64_t slots)
{
	static char name[128];
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = slots, .on_full = SHMLIMIT_FULL_DENY };

	snprintf(name, sizeof(name), "%s.room", stage_name);
	shmlimit_destroy(name);
	if (shmlimit_create(name, &o, &l) != 0)
		bail("create");
	return name;
}

static int rule(const char *name, uint32_t algorithm, uint64_t capacity)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .capacity = capacity,
		                      .refill =
		                              algorithm == SHMLIMIT_FUNNEL || algorithm == SHMLIMIT_GCRA ? capacity : 0,
		                      .period_ns = 86400000000000u };
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bail("rule %s: %s", name, shmlimit_strerror(id));
	return id;
}

/* Use up a key's limit, and ask once more: true if all but the last were allowed. */
static int use_up(int id, uint32_t algorithm, uint64_t capacity, uint64_t key)
{
	struct shmlimit_place place;
	uint64_t allowed = 0;

	for (uint64_t i = 0; i <= capacity; i++) {
		int answer;

		place = (struct shmlimit_place){ .struct_size = sizeof(place) };
		answer = algorithm == SHMLIMIT_HOLD
		                 ? shmlimit_enter(at_time(l, NOW_NS), id, &key, sizeof(key), &place, NULL)
		                 : shmlimit_take(at_time(l, NOW_NS), id, &key, sizeof(key), 1, NULL);

		allowed += answer == SHMLIMIT_ALLOWED;
		no_room += answer < 0;
	}
	return allowed == capacity;
}

/* Rows of a table in shmlimit(7), Size. The other rows depend on which slots keys have. */
static const struct {
	uint64_t capacity, keys, bytes;
} manual[] = { { 1000, 1, 16384 }, { 65536, 1, 1048576 }, { 10000, 10, 1638400 } };

/* One rule, some keys, each used up. */
static void one_rule(uint32_t algorithm, uint64_t capacity, uint64_t keys)
{
	const char *kind = algorithm == SHMLIMIT_HOLD ? "at once" : "in a window";
	const char *name = make(0);
	uint64_t before = used(name), after, exact = 0;
	int id = rule("r", algorithm, capacity);

	for (uint64_t key = 0; key < keys; key++)
		exact += (uint64_t)use_up(id, algorithm, capacity, key);
	after = used(name);
	is(exact, keys, "%llu %s: each of %llu keys has its limit, to the token", (unsigned long long)capacity, kind,
	   (unsigned long long)keys);
	ok(after - before <= MIB + 2 * 16 * capacity * keys,
	   "%llu %s for %llu keys takes %llu bytes more: at most 1 MiB and twice 16 bytes a token",
	   (unsigned long long)capacity, kind, (unsigned long long)keys, (unsigned long long)(after - before));
	for (size_t i = 0; i < sizeof(manual) / sizeof(manual[0]); i++)
		if (manual[i].capacity == capacity && manual[i].keys == keys)
			is(after - before, manual[i].bytes, "%llu %s for %llu keys takes what the manual says",
			   (unsigned long long)capacity, kind, (unsigned long long)keys);
	shmlimit_close(l);
	shmlimit_destroy(name);
}

static void many_rules(void)
{
	const char *name = make(0);
	uint64_t before = used(name), set, after, tokens = 0, exact = 0;

	for (uint64_t r = 0; r < 50; r++) {
		char text[16];

		snprintf(text, sizeof(text), "r%llu", (unsigned long long)r);
		(void)rule(text, r % 2 ? SHMLIMIT_HOLD : SHMLIMIT_WINDOW, 10 + r);
	}
	set = used(name);
	is(set, before, "50 rules of windows and places that nobody uses take no byte");
	for (uint64_t r = 0; r < 50; r++) {
		char text[16];

		snprintf(text, sizeof(text), "r%llu", (unsigned long long)r);
		for (uint64_t key = 0; key < 4; key++) {
			exact += (uint64_t)use_up(shmlimit_rule_find(l, text), r % 2 ? SHMLIMIT_HOLD : SHMLIMIT_WINDOW,
			                          10 + r, key);
			tokens += 10 + r;
		}
	}
	after = used(name);
	is(exact, 200, "each of 200 keys of 50 rules has its limit, to the token");
	ok(after - before <= MIB + 2 * 16 * tokens,
	   "50 rules of windows and places with 4 keys each take %llu bytes more, for %llu tokens: at most 1 MiB and twice 16 "
	   "bytes a token",
	   (unsigned long long)(after - before), (unsigned long long)tokens);
	shmlimit_close(l);
	shmlimit_destroy(name);
}

/* Layout 8 had 160 bytes of each slot for windows of 10. */
static void many_keys(void)
{
	const char *name = make(131072);
	uint64_t before = used(name), after, allowed = 0;
	int id = rule("r", SHMLIMIT_WINDOW, 10);

	for (uint64_t key = 0; key < 100000; key++)
		allowed += shmlimit_take(at_time(l, NOW_NS), id, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED;
	after = used(name);
	is(allowed, 100000, "100,000 keys with windows of 10 are allowed");
	ok(after - before <= (uint64_t)131072 * 160 + PAGE,
	   "100,000 keys with windows of 10 take %llu bytes more: no more than a reserved log in each slot",
	   (unsigned long long)(after - before));
	shmlimit_close(l);
	shmlimit_destroy(name);
}

/* What has no log takes nothing, however many keys there are. */
static void without_logs(void)
{
	static const uint32_t algorithms[] = { SHMLIMIT_FUNNEL, SHMLIMIT_GCRA, SHMLIMIT_COUNTER };
	const char *name = make(0);
	uint64_t before = used(name);
	int ids[3];

	ids[0] = rule("f", SHMLIMIT_FUNNEL, 1000);
	ids[1] = rule("g", SHMLIMIT_GCRA, 1000);
	ids[2] = rule("c", SHMLIMIT_COUNTER, 1000);
	for (uint64_t key = 0; key < 30000; key++)
		for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
			if (algorithms[i] != SHMLIMIT_COUNTER)
				(void)shmlimit_take(at_time(l, NOW_NS), ids[i], &key, sizeof(key), 1, NULL);
	is(used(name), before, "keys of other algorithms take no byte more, however many they are");
	shmlimit_close(l);
	shmlimit_destroy(name);
}

/* "1000 at once" for 100 clients, a default segment, Docker's /dev/shm. */
static void in_64_mib(int *seen)
{
	int id;

	seen[0] = private_shm("size=64m");
	if (seen[0] != 0)
		return;
	(void)make(0);
	id = rule("r", SHMLIMIT_HOLD, 1000);
	for (uint64_t key = 0; key < 100; key++)
		seen[1] += use_up(id, SHMLIMIT_HOLD, 1000, key);
	seen[2] = no_room;
}

/*
 * Where the administrator has turned on huge pages, a key with a log does not take one. The table may, and the rules: they
 * have theirs once a first key was asked for.
 */
static void with_huge_pages(int *seen)
{
	uint64_t before;
	const char *name;
	int id;

	seen[0] = private_shm("size=1g,huge=within_size");
	if (seen[0] != 0)
		return;
	name = make(64);
	id = rule("r", SHMLIMIT_WINDOW, 100);
	seen[1] = use_up(id, SHMLIMIT_WINDOW, 100, 0);
	before = used(name);
	for (uint64_t key = 1; key < 20; key++)
		seen[1] += use_up(id, SHMLIMIT_WINDOW, 100, key);
	seen[2] = used(name) - before <= MIB + (uint64_t)2 * 16 * 100 * 20;
}

/* In a process that has locked its memory a key with a log takes no more. */
static void locked(int *seen)
{
	uint64_t before;
	const char *name;
	int id;

	seen[0] = private_shm("size=64m");
	if (seen[0] != 0)
		return;
	name = make(64);
	id = rule("r", SHMLIMIT_WINDOW, 1000);
	if (mlockall(MCL_CURRENT) != 0) {
		seen[0] = -errno;
		return;
	}
	before = used(name);
	for (uint64_t key = 0; key < 20; key++)
		seen[1] += use_up(id, SHMLIMIT_WINDOW, 1000, key);
	seen[2] = used(name) - before <= MIB + (uint64_t)2 * 16 * 1000 * 20;
}

int main(void)
{
	static const uint64_t capacities[] = { 1, 2, 3, 4, 5, 10, 11, 50, 100, 1000, 1024, 1025, 10000, 65536 };
	int *seen = shared_memory(3 * sizeof(*seen));
	pid_t pid;

	stage_begin("room");
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		one_rule(SHMLIMIT_WINDOW, capacities[i], 1);
		if (capacities[i] <= 10000)
			one_rule(SHMLIMIT_HOLD, capacities[i], 1);
	}
	one_rule(SHMLIMIT_WINDOW, 10000, 10);
	one_rule(SHMLIMIT_WINDOW, 100, 20);
	many_rules();
	many_keys();
	without_logs();
	is(no_room, 0, "no decision lacked memory");
	pid = fork_bound();
	if (pid == 0) {
		in_64_mib(seen);
		_exit(0);
	}
	ok(wait_for(pid), "no process dies in a /dev/shm of 64 MiB");
	if (seen[0] != 0)
		tap_skip("1000 at once in 64 MiB", "no /dev/shm of one's own is permitted");
	else
		is(seen[1], 100, "in a /dev/shm of 64 MiB 100 clients have 1000 at once each");
	is(seen[2], 0, "no decision of theirs lacked memory");
	memset(seen, 0, 3 * sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		locked(seen);
		_exit(0);
	}
	ok(wait_for(pid), "no process dies that has locked its memory");
	if (seen[0] != 0)
		tap_skip("a process that has locked its memory", "it may not, or has no /dev/shm of its own");
	else
		ok(seen[1] == 20 && seen[2],
		   "in a process that has locked its memory 20 keys with logs take no more than in "
		   "another");
	memset(seen, 0, 3 * sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		with_huge_pages(seen);
		_exit(0);
	}
	ok(wait_for(pid), "no process dies in a /dev/shm with huge pages");
	if (seen[0] != 0)
		tap_skip("a /dev/shm with huge pages", "none is permitted here");
	else
		ok(seen[1] == 20 && seen[2],
		   "in a /dev/shm with huge pages 20 keys with logs take no more than in another");
	return tap_done();
}
