/*
 * save: what is loaded is what was saved: under any algorithm, to the tick, at any distance of the two clocks (I1, I12
 * over a reboot). A file that is not as it was written is refused, whichever byte of it changed (I7).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../rng.h"
#include "unit.h"
#include "unit_cells.h"

#include "ring.h"
#include "rule.h"
#include "save.h"
#include "segment.h"
#include "state.h"

#define T0 (1000000 * SECOND)
#define RING 40u
#define KEYS 24
#define HISTORIES 200
#define STEPS 300
#define LOOKS 6
/* A whole number of ticks of each rule below: of seconds, sevenths of them, and 2^20 ns. */
#define WHOLE ((420 * SECOND) << 12)
#define RESEALED 6000

static struct shmlimit *l, *copy;
static char copy_name[80];
static struct rng rng;

static struct law {
	const char *name;
	struct shmlimit_rule rule;
	int id;
	uint64_t tick_ns; /* rounded up */
	uint64_t unit;    /* tokens that are asked for in place of one */
} laws[] = {
	/* clang-format off */
	{ "funnel", { .capacity = 10, .refill = 1, .period_ns = SECOND }, .unit = 1 },
	{ "sevenths", { .capacity = 1000, .refill = 3, .period_ns = 7 * SECOND }, .unit = 1 },
	{ "debt", { .capacity = 5, .refill = 2, .period_ns = 3 * SECOND, .max_wait_ns = 60 * SECOND }, .unit = 1 },
	{ "next-pays", { .capacity = 5, .refill = 1, .period_ns = 4 * SECOND, .max_wait_ns = 30 * SECOND,
	  .flags = SHMLIMIT_RULE_NEXT_PAYS }, .unit = 1 },
	/* Of these the words have no quota. */
	{ "decades", { .capacity = 4500000000, .refill = 1, .period_ns = SECOND }, .unit = 1 },
	{ "bytes", { .capacity = 10000000, .refill = 1000000, .period_ns = SECOND, .max_wait_ns = 60 * SECOND },
	  .unit = 1000001 },
	{ "warmup", { .algorithm = SHMLIMIT_WARMUP, .refill = 2, .period_ns = SECOND, .warmup_ns = 20 * SECOND,
	  .max_wait_ns = 60 * SECOND }, .unit = 1 },
	{ "window", { .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = 20 * SECOND }, .unit = 1 },
	{ "ticks", { .algorithm = SHMLIMIT_WINDOW, .capacity = RING, .period_ns = 60 * 86400 * SECOND,
	  .max_wait_ns = SECOND }, .unit = 1 },
	{ "refused", { .algorithm = SHMLIMIT_WINDOW, .capacity = 3, .period_ns = 20 * SECOND,
	  .flags = SHMLIMIT_RULE_COUNT_REFUSED | SHMLIMIT_RULE_PROTECTED }, .unit = 1 },
	/* clang-format on */
};

#define LAWS ((int)(sizeof(laws) / sizeof(laws[0])))

static int new_file(void)
{
	int fd = memfd_create("state", MFD_CLOEXEC);

	if (fd < 0)
		bail("memfd: %s", strerror(errno));
	return fd;
}

static void copy_gone(void)
{
	shmlimit_close(copy);
	copy = NULL;
	if (copy_name[0] != '\0')
		shmlimit_destroy(copy_name);
}

static int is_refusal(int error)
{
	return error == -EUCLEAN || error == -EMEDIUMTYPE || error == -EPROTO;
}

/* Files that only checking them judged otherwise than loading them. */
static unsigned misjudged;

/* Load without checking first. The moment of saving was `elapsed_ns` ago, by a clock that shows now_ns. */
static int load_only(int fd, uint64_t elapsed_ns, uint64_t now_ns)
{
	const struct rebase given = { .now_ns = now_ns, .elapsed_ns = elapsed_ns };

	copy_gone();
	lseek(fd, 0, SEEK_SET);
	return load(copy_name, fd, 0, &given, &copy);
}

static int load_copy(int fd, uint64_t elapsed_ns, uint64_t now_ns)
{
	const struct rebase given = { .now_ns = now_ns, .elapsed_ns = elapsed_ns };
	int checked, loaded;

	lseek(fd, 0, SEEK_SET);
	checked = load(NULL, fd, SHMLIMIT_LOAD_CHECK_ONLY, &given, &copy);
	loaded = load_only(fd, elapsed_ns, now_ns);
	/* Other errors are the host's, as where there is no room. */
	if (loaded == 0 || is_refusal(loaded))
		misjudged += checked != loaded;
	return loaded;
}

/* Is the n-th damaged file of a series refused? One in 16 is checked too. */
static int is_refused(int fd, size_t n)
{
	return is_refusal(n % 16 == 0 ? load_copy(fd, 0, T0) : load_only(fd, 0, T0));
}

/* Ids have a hole in front. */
static void make_rules(void)
{
	unit_rule(l, "hole", 1, 1, SECOND);
	for (int i = 0; i < LAWS; i++) {
		struct shmlimit_range range = { .struct_size = sizeof(range) };

		laws[i].rule.struct_size = sizeof(laws[i].rule);
		laws[i].id = shmlimit_rule_set(at_time(l, T0), laws[i].name, &laws[i].rule);
		if (laws[i].id < 0 || shmlimit_rule_range(l, laws[i].id, &range) != 0)
			bail("rule %s", laws[i].name);
		laws[i].tick_ns = range.resolution_ps / 1000 + 1;
	}
	shmlimit_rule_remove(l, "hole");
}

/* Short and long ones. */
static uint64_t some_time(uint64_t most_ns)
{
	return rng_below(&rng, 1 + (most_ns >> rng_below(&rng, 24)));
}

static void ask(const struct law *law, uint64_t key, uint64_t now_ns)
{
	uint64_t cost = law->unit * (1 + rng_below(&rng, 1 + rng_below(&rng, 4)));
	int id = law->id;

	switch (rng_below(&rng, 8)) {
	case 0:
		(void)shmlimit_reserve(at_time(l, now_ns), id, &key, sizeof(key), cost, UINT64_MAX, NULL);
		break;
	case 1:
		(void)shmlimit_charge(at_time(l, now_ns), id, &key, sizeof(key), cost, NULL);
		break;
	case 2:
		(void)shmlimit_refund(at_time(l, now_ns), id, &key, sizeof(key), law->unit, NULL);
		break;
	default:
		(void)shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), cost, NULL);
	}
}

/* What happened until the returned time. */
static uint64_t history(uint64_t now_ns)
{
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	for (int i = 0; i < STEPS; i++) {
		ask(&laws[rng_below(&rng, LAWS)], rng_below(&rng, KEYS), now_ns);
		now_ns += some_time(4 * SECOND);
	}
	return now_ns;
}

static struct {
	uint64_t looks, partly;        /* at all, at keys that are not full */
	unsigned other, better, worse; /* faults: not the same; has more; has less by more than a tick */
} seen;

/* A key, at the same moment on both clocks. */
static void compare(const struct law *law, uint64_t key, uint64_t old_ns, uint64_t new_ns, int exact)
{
	struct shmlimit_result a = { 0 }, b = { 0 };
	uint64_t cost = law->unit * (1 + rng_below(&rng, 3)), slack = 2 * law->tick_ns;
	int was = shmlimit_peek(at_time(l, old_ns), law->id, &key, sizeof(key), cost, &a);
	int now = shmlimit_peek(at_time(copy, new_ns), law->id, &key, sizeof(key), cost, &b);

	seen.looks++;
	seen.partly += a.reset_after_ns != 0;
	seen.other += exact && (was != now || memcmp(&a, &b, sizeof(a)) != 0);
	seen.better += b.remaining > a.remaining || b.reset_after_ns < a.reset_after_ns || now < was;
	seen.worse += b.remaining + 1 < a.remaining || b.reset_after_ns > a.reset_after_ns + slack;
}

static void round_trips(int exact)
{
	memset(&seen, 0, sizeof(seen));
	for (uint64_t i = 0; i < scaled(HISTORIES); i++) {
		uint64_t then_ns = history(T0 + some_time(1000 * SECOND)), elapsed_ns = some_time(40 * SECOND), now_ns;
		int fd = new_file();

		/* The new clock may be hardly wound up, or far on. */
		now_ns = exact ? then_ns + elapsed_ns + rng_below(&rng, 3) * WHOLE : some_time(2 * T0);
		if (save(l, fd, when_given(then_ns)) != 0 || load_copy(fd, elapsed_ns, now_ns) != 0)
			bail("save or load");
		if (shmlimit_verify(copy_name, NULL, 0) != 0)
			bail("not sound");
		for (int look = 0; look < LOOKS; look++) {
			uint64_t later_ns = look == 0 ? 0 : some_time(60 * SECOND);

			for (int j = 0; j < LAWS; j++)
				for (uint64_t key = 0; key < KEYS; key++)
					compare(&laws[j], key, then_ns + elapsed_ns + later_ns, now_ns + later_ns,
					        exact);
		}
		close(fd);
	}
	ok(seen.partly > seen.looks / 8, "keys were not full: %" PRIu64 " of %" PRIu64, seen.partly, seen.looks);
	if (exact)
		is(seen.other, 0, "at a distance of whole ticks every answer is the same");
	is(seen.better, 0, "no key has more than it had");
	is(seen.worse, 0, "no key has less than it had by more than a tick");
}

static void debts_of_years(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .capacity = 1,
		                      .refill = 1,
		                      .period_ns = 86400 * SECOND,
		                      .max_wait_ns = (uint64_t)3000000000 * SECOND };
	uint64_t then_ns = T0 + 1, fd = (uint64_t)new_file(), now_ns = 7;
	struct shmlimit_result a = { 0 }, b = { 0 };
	int id = shmlimit_rule_set(at_time(l, T0), "years", &rule);

	shmlimit_charge(at_time(l, T0), id, "k", 1, 30000, NULL);
	is(save(l, (int)fd, when_given(then_ns)), 0, "a debt of decades is saved");
	is(load_copy((int)fd, SECOND, now_ns), 0, "a debt of decades is loaded when the clock has hardly begun");
	shmlimit_peek(at_time(l, then_ns + SECOND), id, "k", 1, 1, &a);
	shmlimit_peek(at_time(copy, now_ns), id, "k", 1, 1, &b);
	ok(b.reset_after_ns >= a.reset_after_ns && b.reset_after_ns - a.reset_after_ns < 1000000,
	   "a debt of decades is as long after loading as before");
	is(load_copy((int)fd, UINT64_MAX, now_ns), 0, "a time of centuries may have passed");
	shmlimit_peek(at_time(copy, now_ns), id, "k", 1, 1, &b);
	is(b.remaining, 1, "a debt of decades is paid when centuries have passed");
	close((int)fd);
	shmlimit_rule_remove(l, "years");
}

static void what_it_is(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o),
		                      .slots = 100,
		                      .rules = 3,
		                      .on_full = SHMLIMIT_FULL_DENY,
		                      .clock = SHMLIMIT_CLOCK_COARSE,
		                      .mode = 0640 };
	struct shmlimit_info a = { .struct_size = sizeof(a) }, b = { .struct_size = sizeof(b) };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_WARMUP,
		                      .refill = 1,
		                      .period_ns = SECOND,
		                      .warmup_ns = 9 * SECOND,
		                      .cold_factor_milli = 5000,
		                      .mode = SHMLIMIT_DRY_RUN };
	struct shmlimit_rule was = rule, is_now = rule;
	struct shmlimit *none = (struct shmlimit *)&a;
	struct rule_view view;
	int fd = new_file(), id;

	shmlimit_close(l);
	l = unit_create("save", &o);
	unit_rule(l, "gone", 1, 1, SECOND);
	id = shmlimit_rule_set(l, "cold", &rule);
	shmlimit_rule_remove(l, "gone");
	shmlimit_throttle(l, "k", 1, 15, 30, 60, 15, (int64_t[5]){ 0 });
	shmlimit_enable(l, 0);
	is(shmlimit_save(l, fd), 0, "a segment is saved");
	lseek(fd, 0, SEEK_SET);
	copy_gone();
	is(shmlimit_load(copy_name, fd, 0, &copy), 0, "what was saved is loaded");
	shmlimit_info(l, &a);
	shmlimit_info(copy, &b);
	a.created_unix_ns = b.created_unix_ns;
	is(memcmp(&a, &b, sizeof(a)), 0,
	   "what is loaded has the slots, rules, on_full, clock, mode, owner and switch of what was saved");
	shmlimit_rule_get(l, id, &was);
	is(shmlimit_rule_get(copy, shmlimit_rule_find(copy, "cold"), &is_now), 0, "a rule is loaded");
	is(shmlimit_rule_find(copy, "cold"), id, "a rule that is loaded has its id");
	is(memcmp(&was, &is_now, sizeof(was)), 0, "a rule that is loaded has its parameters and its mode");
	is(shmlimit_rule_find(copy, "gone"), -ESRCH, "a rule that was removed is not loaded");
	shmlimit_enable(copy, 1);
	is(shmlimit_throttle(copy, "k", 1, 15, 30, 60, 15, (int64_t[5]){ 0 }), SHMLIMIT_DENIED,
	   "rules without a name are loaded, with their keys");
	is(unit_counters(copy, SHMLIMIT_ALL_RULES).denied, 1, "counters begin at zero after loading");

	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(copy_name, fd, 0, &none), -EEXIST, "a name that is taken is refused");
	ok(none == (struct shmlimit *)&a, "where loading fails *out is untouched");
	is(shmlimit_load(unit_name, fd, 4, NULL), -EINVAL, "an unknown flag is refused");
	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(NULL, fd, SHMLIMIT_LOAD_CHECK_ONLY, &none), 0, "a file can be checked without a name");
	ok(none == (struct shmlimit *)&a, "checking a file makes no segment");
	is(shmlimit_load("a/b", fd, 0, NULL), -EILSEQ, "a bad name is refused");
	is(shmlimit_save(NULL, fd), -EINVAL, "nothing cannot be saved");
	shmlimit_close(copy);
	shmlimit_open(copy_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &copy);
	is(shmlimit_save(copy, fd), 0, "a read-only handle can save");
	is(shmlimit_save(copy, STDIN_FILENO - 1), -EBADF, "what write(2) says is returned");
	shmlimit_destroy(copy_name);
	is(shmlimit_save(copy, fd), -ENOENT, "a segment that was destroyed cannot be saved");
	if (rule_load(l, (uint32_t)id, &view) != 0)
		bail("no rule");
	l->rules[id].params[rule_version(&view) % RULE_VERSIONS].capacity++;
	is(shmlimit_save(l, fd), -EUCLEAN, "a segment with a damaged rule cannot be saved");
	close(fd);
}

/* A file that takes no more after some bytes: saving fails with that error, at whichever byte. */
static void no_room(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 1024, .rules = 16 };
	uint64_t then_ns = T0, silent = 0;
	struct stat whole;
	int fd = new_file();

	shmlimit_close(l);
	l = unit_create("save", &o);
	make_rules();
	for (int i = 0; i < STEPS; i++)
		ask(&laws[i % LAWS], (uint64_t)i % KEYS, T0);
	if (save(l, fd, when_given(then_ns)) != 0 || fstat(fd, &whole) != 0)
		bail("save");
	close(fd);
	for (off_t room = 0; room < whole.st_size; room += 512) {
		int small = memfd_create("state", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		if (small < 0 || ftruncate(small, room) != 0 || fcntl(small, F_ADD_SEALS, F_SEAL_GROW) != 0)
			bail("seal: %s", strerror(errno));
		silent += save(l, small, when_given(then_ns)) != -EPERM;
		close(small);
	}
	is(silent, 0, "a file without room for all of it is an error");
	is(save(l, -1, when_given(then_ns)), -EBADF, "saving to no file is an error");
}

static struct layout_slot *free_slot(void)
{
	struct layout_slot *slot = l->tables[0].slots;

	while (slot->tag != 0)
		slot++;
	return slot;
}

/* What decisions leave alone is not told as more than it is. */
static void leftovers(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 64, .slots_max = 256, .rules = 4 };
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 10,
		                       .refill = 1,
		                       .period_ns = SECOND,
		                       .credit = 7 },
			     loaded = { .struct_size = sizeof(loaded) };
	struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 4, .period_ns = 100 * SECOND
	};
	uint64_t then_ns = T0;
	int fd = new_file(), id, leased, sliding;
	struct layout_slot *slot, *nobodys;

	shmlimit_close(l);
	l = unit_create("save", &o);
	id = unit_rule(l, "funnel", 10, 1, 3600 * SECOND);
	leased = shmlimit_rule_set(l, "leased", &lease);
	sliding = shmlimit_rule_set(l, "sliding", &window);
	shmlimit_take(at_time(l, T0), id, "a", 1, 4, NULL);
	slot = &l->tables[0].slots[0];
	while (slot->tag == 0)
		slot++;
	shmlimit_lease_deposit(at_time(l, T0), leased, "a", 1, 5, 1, 0, 100 * SECOND, NULL);
	shmlimit_take(at_time(l, T0 - 2 * SECOND), sliding, "a", 1, 2, NULL);
	shmlimit_take(at_time(l, T0 - SECOND), sliding, "a", 1, 1, NULL);
	for (struct layout_slot *s = l->tables[0].slots; s < l->tables[0].slots + 64; s++)
		if (s->tag != 0 && tag_rule(s->tag) == (uint32_t)sliding)
			store_relaxed(unit_cells(l, s), T0 + SECOND);
	/* A writer that was killed before it came to the slot; one whose rule is gone; one that is being claimed. */
	slot->tag = (slot->tag & ~TAG_VERSION) | (1 & TAG_VERSION);
	free_slot()->tag = tag_pack(1, 3, 1);
	free_slot()->tag = slot->tag | TAG_TENTATIVE;
	/* What no key hashes to, by a writer: load would refuse the file for it. */
	nobodys = free_slot();
	nobodys->word = slot->word;
	nobodys->tag = slot->tag & ~TAG_USED;
	is(save(l, fd, when_given(then_ns)), 0, "a segment with calls left half done is saved");
	is(load_copy(fd, 0, T0), 0, "a segment with calls left half done is loaded");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "nothing that was half done is loaded");
	is((int)unit_slots(copy, SHMLIMIT_SLOT_LIVE, T0), 2, "two keys in force are loaded, and no lease");
	shmlimit_rule_get(copy, leased, &loaded);
	is(loaded.credit, 7, "a rule's credit is loaded");

	store_relaxed(&l->header->state, state_pack(GENERATIONS_MAX + 1, 0));
	is(save(l, fd, when_given(then_ns)), -EUCLEAN, "a segment whose tables are not known cannot be saved");
	close(fd);
}

/* While keys are in two tables. */
static void grown(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 256, .slots_max = 4096, .rules = 4 };
	struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 4, .period_ns = 100 * SECOND
	};
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t then_ns = T0 + SECOND, wrong = 0, in_old, moved = 0;
	int fd = new_file(), id, sliding;

	shmlimit_close(l);
	l = unit_create("save", &o);
	id = unit_rule(l, "funnel", 10, 1, 3600 * SECOND);
	sliding = shmlimit_rule_set(l, "sliding", &window);
	for (uint64_t key = 0; key < 80; key++) {
		shmlimit_take(at_time(l, T0), id, &key, sizeof(key), 1 + key % 9, NULL);
		shmlimit_take(at_time(l, T0), sliding, &key, sizeof(key), 1 + key % 3, NULL);
	}
	is(shmlimit_grow(at_time(l, T0), 1024), 0, "a segment grows");
	/* A third of the keys moves. */
	for (uint64_t key = 0; key < 80; key += 3)
		for (int rule = 0; rule < 2; rule++)
			moved += shmlimit_take(at_time(l, T0 + SECOND), rule == 0 ? id : sliding, &key, sizeof(key), 1,
			                       NULL) == 0;
	is(moved, 54, "some keys move to the new table");
	is(save(l, fd, when_given(then_ns)), 0, "a segment is saved while its keys are in two tables");
	is(load_copy(fd, 0, T0 + SECOND), 0, "a segment whose keys are in two tables is loaded");
	for (uint64_t key = 0; key < 80; key++)
		for (int rule = 0; rule < 2; rule++) {
			struct shmlimit_result here, there = { 0 };

			shmlimit_peek(at_time(l, T0 + SECOND), rule == 0 ? id : sliding, &key, sizeof(key), 1, &here);
			shmlimit_peek(at_time(copy, T0 + SECOND), rule == 0 ? id : sliding, &key, sizeof(key), 1,
			              &there);
			wrong += here.remaining != there.remaining || here.reset_after_ns != there.reset_after_ns;
		}
	is(wrong, 0, "each key has what it had, in whichever table it was");
	shmlimit_info(copy, &info);
	is(info.slots, 1024, "the new table is loaded as large as it was");
	is(info.old_slots, 256, "the old table is loaded as large as it was");
	is(info.slots_max, 4096, "the size of the largest table is loaded as it was");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "what was loaded is sound");
	is(shmlimit_grow(at_time(copy, T0 + SECOND), 0), -EALREADY, "keys are left in its old table");
	in_old = T0 + 100 * 3600 * SECOND;
	is(shmlimit_grow(at_time(copy, in_old), 0), 0, "the old table is left when its keys have refilled");
	is(shmlimit_grow(at_time(copy, in_old), 4096), 0, "a segment that was loaded with two tables grows again");
	close(fd);
	copy_gone();
	fd = new_file();
	is(shmlimit_grow(at_time(l, in_old), 0), 0, "when all keys have moved");
	is(save(l, fd, when_given(in_old)), 0, "one table is saved");
	is(load_copy(fd, 0, in_old), 0, "one table is loaded");
	info.old_slots = 1;
	shmlimit_info(copy, &info);
	is(info.slots, 1024, "one table is loaded as large as it was");
	is(info.old_slots, 0, "one table is loaded without an old one");
	close(fd);
	copy_gone();
}

/* A file's segment can grow to 16 times its slots, where that is asked for, and to no less than before. */
static void can_grow(void)
{
	static const struct {
		uint64_t slots_max, grown, want;
	} files[] = { { 64, 0, 1024 }, { 128, 0, 1024 }, { 4096, 0, 4096 }, { 128, 128, 2048 }, { 1024, 128, 2048 } };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 64, .slots_max = files[i].slots_max };
		struct shmlimit_info info = { .struct_size = sizeof(info) };
		const struct rebase given = { .now_ns = T0 };
		int fd = new_file();

		shmlimit_close(l);
		l = unit_create("save", &o);
		if ((files[i].grown != 0 && shmlimit_grow(at_time(l, T0), files[i].grown) != 0) ||
		    save(l, fd, when_given(T0)) != 0)
			bail("grow, save");
		is(load_copy(fd, 0, T0), 0, "a segment that can grow to %" PRIu64 " slots is loaded", o.slots_max);
		shmlimit_info(copy, &info);
		is(info.slots_max, o.slots_max, "it can grow as far as before");
		copy_gone();
		lseek(fd, 0, SEEK_SET);
		is(load(copy_name, fd, SHMLIMIT_LOAD_CAN_GROW, &given, &copy), 0,
		   "a segment that can grow to %" PRIu64 " slots is loaded with CAN_GROW", o.slots_max);
		shmlimit_info(copy, &info);
		is(info.slots_max, files[i].want,
		   "with CAN_GROW it can grow to 16 times its slots, or as far as before");
		is(shmlimit_grow(at_time(copy, T0), files[i].want), 0,
		   "a segment that was loaded with CAN_GROW grows so far");
		close(fd);
		copy_gone();
	}
}

/* By the host's clocks: an hour's funnel, emptied, of which a token comes back 36 s. */
static void clocks(void)
{
	struct shmlimit_result r;
	struct state_header h;
	int fd = new_file(), id;

	shmlimit_close(l);
	l = unit_create("save", NULL);
	id = unit_rule(l, "hour", 100, 100, 3600 * SECOND);
	shmlimit_take(l, id, "k", 1, 100, NULL);
	is(shmlimit_save(l, fd), 0, "a segment is saved by the host's clocks");
	for (int i = 0; i < 4; i++) {
		static const struct {
			const char *title;
			int64_t unix_ns;
			uint32_t flags;
			uint64_t remaining;
		} cases[] = {
			/* clang-format off */
			{ "no time has passed: nothing has refilled", 0, 0, 0 },
			{ "half an hour has: half of it", -1810 * (int64_t)SECOND, 0, 50 },
			{ "a funnel loaded with no time elapsed has nothing more", -1810 * (int64_t)SECOND, SHMLIMIT_LOAD_NO_ELAPSED, 0 },
			{ "a funnel loaded where the clock was set back has nothing more", 1810 * (int64_t)SECOND, 0, 0 },
			/* clang-format on */
		};
		struct state_file file = { .fd = new_file() };
		unsigned char page[STATE_PAGE_ROOM];

		/* The same, saved at another time. */
		copy_gone();
		if (pread(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page))
			bail("pread");
		memcpy(&h, page, sizeof(h));
		h.unix_ns += (uint64_t)cases[i].unix_ns;
		memcpy(page, &h, sizeof(h));
		if (state_put(&file, page, sizeof(page)) != 0 || state_end(&file) != 0)
			bail("state_put");
		lseek(file.fd, 0, SEEK_SET);
		is(shmlimit_load(copy_name, file.fd, cases[i].flags, &copy), 0, "%s", cases[i].title);
		shmlimit_peek(copy, id, "k", 1, 100, &r);
		is(r.remaining, cases[i].remaining, "a key has the tokens of the case: %s", cases[i].title);
		close(file.fd);
	}
	close(fd);
}

/* A file of three pages, the last of them short. */
static int small_file(unsigned char bytes[4 * STATE_PAGE], size_t *len)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 16, .rules = 2 };
	struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 100, .period_ns = 3600 * SECOND
	};
	uint64_t then_ns = T0 + SECOND;
	int fd = new_file(), id;

	shmlimit_close(l);
	l = unit_create("save", &o);
	id = unit_rule(l, "funnel", 10, 1, 3600 * SECOND);
	for (uint64_t key = 0; key < 5; key++)
		shmlimit_take(at_time(l, T0), id, &key, sizeof(key), 3, NULL);
	id = shmlimit_rule_set(at_time(l, T0), "window", &window);
	for (uint64_t key = 0; key < 9; key++)
		shmlimit_take(at_time(l, T0 + key), id, &key, sizeof(key), 100, NULL);
	if (save(l, fd, when_given(then_ns)) != 0)
		bail("save");
	*len = (size_t)lseek(fd, 0, SEEK_END);
	if (*len > 4 * STATE_PAGE || pread(fd, bytes, *len, 0) != (ssize_t)*len)
		bail("a file of %zu bytes", *len);
	return fd;
}

static void put_bytes(int fd, const void *bytes, size_t len)
{
	if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len)
		bail("pwrite: %s", strerror(errno));
}

static void damage(void)
{
	static unsigned char bytes[4 * STATE_PAGE + 1], other[4 * STATE_PAGE + 1];
	unsigned taken = 0, left = 0;
	/* Every byte, or where less is asked for every third one or so. */
	size_t len, step = (size_t)(1000 / scaled(1000)) | 1;
	int fd = small_file(bytes, &len);

	is(len, 3 * STATE_PAGE, "a file of three pages");
	is(load_copy(fd, 0, T0), 0, "a file of three pages is loaded");
	for (size_t i = 0; i < len; i += step) {
		unsigned char bit = (unsigned char)(1u << rng_below(&rng, 8));

		bytes[i] ^= bit;
		if (pwrite(fd, &bytes[i], 1, (off_t)i) != 1)
			bail("pwrite");
		taken += !is_refused(fd, i);
		left += shmlimit_destroy(copy_name) != -ENOENT;
		bytes[i] ^= bit;
		if (pwrite(fd, &bytes[i], 1, (off_t)i) != 1)
			bail("pwrite");
	}
	is(taken, 0, "a file with a bit of any byte flipped is refused");
	for (size_t n = 0; n < len; n += step) {
		put_bytes(fd, bytes, n);
		taken += !is_refused(fd, n);
	}
	is(taken, 0, "the beginning of a file is refused, however long it is");
	put_bytes(fd, bytes, len + 1);
	is(load_copy(fd, 0, T0), -EUCLEAN, "a file with something behind its end is refused");
	memcpy(other, bytes, len);
	memcpy(other + STATE_PAGE, bytes + 2 * STATE_PAGE, STATE_PAGE);
	memcpy(other + 2 * STATE_PAGE, bytes + STATE_PAGE, STATE_PAGE);
	put_bytes(fd, other, len);
	is(load_copy(fd, 0, T0), -EUCLEAN, "a file with its pages in another order is refused");
	memcpy(other, bytes, len);
	other[8] ^= 2;
	put_bytes(fd, other, len);
	is(load_copy(fd, 0, T0), -EPROTO, "a file of another version is refused as that");
	put_bytes(fd, "[login]\ncapacity = 5\n", 20);
	is(load_copy(fd, 0, T0), -EMEDIUMTYPE, "a file of something else is refused as that");
	is(left, 0, "no segment is made of a file that is refused");
	close(fd);
}

/* What a process may write that knows how checks are made. */
/* Write numbers as they are, with the seals of a file that is whole, and load it. */
static int load_resealed(int fd, const unsigned char *content, size_t n, uint64_t elapsed_ns, uint64_t now_ns)
{
	struct state_file file = { .fd = fd };

	if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 || state_put(&file, content, n) != 0 ||
	    state_end(&file) != 0)
		bail("state_put");
	return load_copy(fd, elapsed_ns, now_ns);
}

static void hostile(void)
{
	static unsigned char bytes[4 * STATE_PAGE], content[4 * STATE_PAGE];
	unsigned loaded = 0, refused = 0, unsound = 0, locked = 0;
	const uint64_t none = 0, all = 16;
	size_t len, n = 0;
	int fd = small_file(bytes, &len);

	for (size_t at = 0; at < len; at += STATE_PAGE, n += STATE_PAGE_ROOM)
		memcpy(content + n, bytes + at, STATE_PAGE_ROOM);
	memcpy(content + offsetof(struct state_header, old_slots), &all, 8);
	is(load_resealed(fd, content, n, 0, T0), 0, "two tables of as many slots, as layout 8 had them, become one");
	memcpy(content + offsetof(struct state_header, old_slots), &none, 8);
	for (uint64_t i = 0; i < scaled(RESEALED); i++) {
		size_t at = rng_below(&rng, rng_below(&rng, 2) ? 900 : n - 8);
		uint64_t kept, word = rng_draw(&rng) >> rng_below(&rng, 64);
		int error;

		/* A word, a bit of one, or a number near to it. */
		memcpy(&kept, content + at, 8);
		if (rng_below(&rng, 3) != 0)
			word = rng_below(&rng, 2) ? kept ^ (uint64_t)1 << rng_below(&rng, 64)
			                          : kept + rng_below(&rng, 5) - 2;
		memcpy(content + at, &word, 8);
		error = load_resealed(fd, content, n, some_time(7200 * SECOND), T0 + some_time(T0));
		memcpy(content + at, &kept, 8);
		loaded += error == 0;
		refused += error != 0;
		if (error == 0) {
			struct shmlimit_range range = { .struct_size = sizeof(range) };
			struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
			struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
			struct shmlimit_problem problem;

			/* Room to grow may be more than can be mapped twice: that is an error, and no finding. */
			if (shmlimit_verify(copy_name, &problem, 1) > 0) {
				diag("byte %zu was made %" PRIx64 ": %s", at, word, problem.text);
				unsound++;
			}
			for (uint64_t s = 0; s < 16; s++) {
				if (shmlimit_slot(copy, s, &slot, 2 * T0) != 0 || slot.rule < 0)
					continue;
				shmlimit_rule_range(copy, slot.rule, &range);
				shmlimit_rule_get(copy, slot.rule, &rule);
				locked += slot.reset_after_ns > range.refill_ns + rule.max_wait_ns + SECOND;
			}
		}
	}
	diag("%u loaded, %u refused", loaded, refused);
	ok(loaded > refused / 100 && refused > scaled(RESEALED) / 60,
	   "numbers that nobody saved are loaded or refused");
	is(unsound, 0, "every segment that was loaded is sound");
	is(locked, 0, "no segment that was loaded locks a key out for longer than its rule can");
	close(fd);
}

/* A key that moved while it was saved, by way of being full, is written twice. */
static void duplicates(void)
{
	unsigned char content[STATE_PAGE_ROOM];
	const size_t at = sizeof(struct state_header) + sizeof(struct state_rule);
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct state_file file = { .fd = new_file() }, again = { .fd = file.fd };
	struct state_slot s[3];
	uint64_t then_ns = T0;
	int id;

	shmlimit_close(l);
	l = unit_create("save", NULL);
	id = unit_rule(l, "funnel", 10, 1, 3600 * SECOND);
	for (uint64_t key = 0; key < 3; key++)
		shmlimit_take(at_time(l, T0), id, &key, sizeof(key), key + 1, NULL);
	if (save(l, file.fd, when_given(then_ns)) != 0 ||
	    pread(file.fd, content, sizeof(content), 0) != (ssize_t)sizeof(content))
		bail("save");
	memcpy(s, content + at, sizeof(s));
	s[1].tag = s[0].tag;
	memcpy(content + at, s, sizeof(s));
	lseek(file.fd, 0, SEEK_SET);
	if (state_put(&again, content, sizeof(content)) != 0 || state_end(&again) != 0)
		bail("state_put");
	is(load_copy(file.fd, 0, T0), 0, "a file with a key in two slots is loaded");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "a key that had two slots in the file has one");
	is((int)unit_slots(copy, SHMLIMIT_SLOT_LIVE, T0), 2, "of three slots in the file two are left");
	shmlimit_slot(copy, s[1].index, &slot, T0);
	ok(slot.state == SHMLIMIT_SLOT_LIVE && slot.remaining == s[1].quota,
	   "a key that had two slots in the file has the later one");
	close(file.fd);
}

/* Many rules and keys: records that begin in one page and end in the next. */
static void many_pages(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 4096, .rules = 64 };
	uint64_t then_ns = T0, wrong = 0;
	int fd = new_file(), taken = 0;
	char name[16];
	off_t len;

	shmlimit_close(l);
	l = unit_create("save", &o);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "rule.%d", i);
		unit_rule(l, name, 10, 1, 3600 * SECOND);
	}
	for (uint64_t key = 0; key < 1500; key++)
		shmlimit_take(at_time(l, T0), (int)(key % 40), &key, sizeof(key), 1 + key % 9, NULL);
	is(save(l, fd, when_given(then_ns)), 0, "1,500 keys are saved");
	is(load_copy(fd, 0, T0), 0, "1,500 keys are loaded");
	for (uint64_t key = 0; key < 1500; key++) {
		struct shmlimit_result r = { 0 };

		shmlimit_peek(at_time(copy, T0), (int)(key % 40), &key, sizeof(key), 1, &r);
		wrong += r.remaining != 10 - (1 + key % 9);
	}
	is(wrong, 0, "each of 1,500 keys is loaded with what it had");
	copy_gone();
	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(copy_name, fd, 0, NULL), 0, "a file can be loaded without a handle for it");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "a segment that was loaded without a handle is there, and sound");
	len = lseek(fd, 0, SEEK_END);
	ok(len > 10 * (off_t)STATE_PAGE, "a file of 1,500 keys has more than ten pages");
	for (len -= STATE_PAGE; len > 0; len -= STATE_PAGE) {
		if (ftruncate(fd, len) != 0)
			bail("ftruncate");
		taken += load_copy(fd, 0, T0) != -EUCLEAN;
	}
	is(taken, 0, "a file that ends with a page other than its last one is refused");
	close(fd);
}

/* ---- One number of a file with good checks is none that was saved ---- */

struct page {
	struct state_header header;
	struct state_rule rule[2];
	struct state_slot slot[2];
	unsigned char rest[STATE_PAGE_ROOM - sizeof(struct state_header) - 2 * sizeof(struct state_rule) -
	                   2 * sizeof(struct state_slot)];
};
_Static_assert(sizeof(struct page) == STATE_PAGE_ROOM, "a page has no holes");

/* clang-format off */
static void page_on_full(struct page *p) { p->header.on_full = 7; }
static void page_no_mode(struct page *p) { p->header.mode = 0; }
static void page_no_slots(struct page *p) { p->header.slots = 0; }
static void page_odd_slots(struct page *p) { p->header.slots++; }
static void page_small_slots(struct page *p) { p->header.slots_max = 0; }
static void page_no_rules(struct page *p) { p->header.rules_max = 0; }
static void page_more_rules(struct page *p) { p->header.rules = p->header.rules_max + 1; }
static void page_long_list(struct page *p) { p->header.rules_limit = SHMLIMIT_RULES_MAX + 1; }
static void page_short_list(struct page *p) { p->header.rules_limit = p->header.rules_max - 1; }
static void page_switch(struct page *p) { p->header.switched_off = 2; }
static void page_group(struct page *p) { p->header.gid = UINT32_MAX; }
static void page_old_slots(struct page *p) { p->header.old_slots = 32; p->header.slots = 63; }
static void page_small_growth(struct page *p) { p->header.old_slots = 60; }
static void page_reserved(struct page *p) { p->header.reserved[15] = 1; }
static void page_id_twice(struct page *p) { p->rule[1].id = p->rule[0].id; }
static void page_id_far(struct page *p) { p->rule[1].id = p->header.rules_max; }
static void page_mode(struct page *p) { p->rule[0].mode = 4; }
static void page_credit(struct page *p) { p->rule[0].credit = 1; }
static void page_endless_name(struct page *p) { memset(p->rule[0].name, 'a', sizeof(p->rule[0].name)); }
static void page_no_name(struct page *p) { p->rule[0].name[0] = '\0'; }
static void page_name_twice(struct page *p) { memcpy(p->rule[1].name, p->rule[0].name, sizeof(p->rule[0].name)); }
static void page_no_rule(struct page *p) { p->rule[0].period_ns = 0; }
static void page_flags(struct page *p) { p->slot[0].tag |= TAG_TENTATIVE; }
static void page_fingerprint(struct page *p) { p->slot[0].tag &= TAG_RULE_MASK << TAG_RULE_SHIFT; }
static void page_slot_no_rule(struct page *p) { p->slot[0].tag |= 3 << TAG_RULE_SHIFT; }
static void page_lease(struct page *p) { p->slot[0].tag |= 1 << TAG_RULE_SHIFT; }
static void page_quota(struct page *p) { p->slot[0].quota = 11; }
static void page_index(struct page *p) { p->slot[0].index = p->header.slots; }
static void page_order(struct page *p) { p->slot[1].index = p->slot[0].index; }
/* clang-format on */

static const struct {
	const char *title;
	void (*spoil)(struct page *p);
} spoilt[] = {
	/* clang-format off */
	{ "what a full table does", page_on_full },     { "no mode", page_no_mode },
	{ "no slots", page_no_slots },                  { "slots in no lines", page_odd_slots },
	{ "no most of slots", page_small_slots },       { "no rules", page_no_rules },
	{ "more rules than fit", page_more_rules },     { "half switched off", page_switch },
	{ "a list longer than any", page_long_list },   { "a list shorter than it is", page_short_list },
	{ "an old table of half slots", page_old_slots }, { "an old table almost as large", page_small_growth },
	{ "no group", page_group },                     { "a reserved field", page_reserved },
	{ "an id twice", page_id_twice },               { "an id too far", page_id_far },
	{ "a rule's mode", page_mode },                 { "the credit of a funnel", page_credit },
	{ "a name without end", page_endless_name },    { "no name", page_no_name },
	{ "a name twice", page_name_twice },            { "a rule that cannot be", page_no_rule },
	{ "a slot's flags", page_flags },               { "a slot of no key", page_fingerprint },
	{ "a slot of no rule", page_slot_no_rule },     { "a slot of a lease", page_lease },
	{ "more tokens than there are", page_quota },   { "a slot too far", page_index },
	{ "a slot twice", page_order },
	/* clang-format on */
};

static void spoil_each(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 64, .rules = 4 };
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 10,
		                       .refill = 1,
		                       .period_ns = SECOND };
	struct state_file file = { .fd = new_file() };
	uint64_t then_ns = T0;
	struct page good;

	shmlimit_close(l);
	l = unit_create("save", &o);
	unit_rule(l, "funnel", 10, 1, 3600 * SECOND);
	if (shmlimit_rule_set(l, "lease", &lease) != 1)
		bail("no lease");
	for (uint64_t key = 0; key < 2; key++)
		shmlimit_take(at_time(l, T0), 0, &key, sizeof(key), 3, NULL);
	if (save(l, file.fd, when_given(then_ns)) != 0 ||
	    pread(file.fd, &good, sizeof(good), 0) != (ssize_t)sizeof(good))
		bail("save");
	for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
		struct state_file again = { .fd = file.fd };
		struct page p = good;

		spoilt[i].spoil(&p);
		lseek(file.fd, 0, SEEK_SET);
		if (state_put(&again, &p, sizeof(p)) != 0 || state_end(&again) != 0)
			bail("state_put");
		is(load_copy(file.fd, 0, T0), -EUCLEAN, "%s: the file is refused", spoilt[i].title);
		lseek(file.fd, 0, SEEK_SET);
		is(shmlimit_load(NULL, file.fd, SHMLIMIT_LOAD_CHECK_ONLY | SHMLIMIT_LOAD_CAN_GROW, NULL), -EUCLEAN,
		   "%s: the file is refused with CAN_GROW, too", spoilt[i].title);
	}
	close(file.fd);
}

/* The same keys by a pipe that does not wait, as some programs leave those that they share, and holds but a page. */
static void through_an_impatient_pipe(void)
{
	const struct rebase given = { .now_ns = T0 };
	uint64_t then_ns = T0, wrong = 0;
	int ends[2], status = -1;
	pid_t pid;

	copy_gone();
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0 || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
		bail("pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(load(copy_name, ends[0], 0, &given, NULL) != 0);
	}
	close(ends[0]);
	is(save(l, ends[1], when_given(then_ns)), 0, "saving to a pipe that does not block waits for the pipe");
	close(ends[1]);
	waitpid(pid, &status, 0);
	is(status, 0, "loading from a pipe that does not block waits for the pipe");
	is(shmlimit_open(copy_name, 0, NULL, &copy), 0, "what was loaded from a pipe is there");
	for (uint64_t key = 0; key < 1500; key++) {
		struct shmlimit_result r = { 0 };

		shmlimit_peek(at_time(copy, T0), (int)(key % 40), &key, sizeof(key), 1, &r);
		wrong += r.remaining != 10 - (1 + key % 9);
	}
	is(wrong, 0, "what was loaded from a pipe has what each key had");
	copy_gone();
}

/* Write the file to a socket, of which each read gets one piece: of 1 byte, 2, and so on, but none over the end of a page. */
static int send_in_pieces(int file, int to)
{
	unsigned char piece[STATE_PAGE];
	size_t page = 0;

	for (size_t n = 1;; n = n % STATE_PAGE + 1) {
		size_t most = STATE_PAGE - page;
		ssize_t len = read(file, piece, n < most ? n : most);

		if (len <= 0)
			return len != 0;
		if (write(to, piece, (size_t)len) != len)
			return 1;
		page = (page + (size_t)len) % STATE_PAGE;
	}
}

/* Write one byte, and all the rest when that was read: more than is missing of a page can be read then. */
static int send_rest_at_once(int file, int to)
{
	unsigned char piece[STATE_PAGE];
	int unread = 1;
	ssize_t len;

	if (read(file, piece, 1) != 1 || write(to, piece, 1) != 1)
		return 1;
	while (unread != 0 && ioctl(to, SIOCOUTQ, &unread) == 0)
		sched_yield();
	while ((len = read(file, piece, sizeof(piece))) > 0)
		if (segment_write(to, piece, (size_t)len) != 0)
			return 1;
	return len != 0;
}

/* The same keys by what gives fewer bytes than are asked for, as a slow network does. */
static void in_pieces(int type, int (*send)(int file, int to))
{
	const struct rebase given = { .now_ns = T0 };
	uint64_t then_ns = T0;
	int file = new_file(), ends[2], status = -1;
	struct stat size;
	pid_t pid;

	copy_gone();
	if (save(l, file, when_given(then_ns)) != 0 || fstat(file, &size) != 0 ||
	    socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
		bail("socketpair: %s", strerror(errno));
	ok(size.st_size > 2 * (off_t)STATE_PAGE, "a file of several pages is sent in pieces");
	lseek(file, 0, SEEK_SET);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		_exit(send(file, ends[1]));
	}
	close(ends[1]);
	is(load(copy_name, ends[0], 0, &given, &copy), 0, "a file that comes in pieces of any size is loaded");
	close(ends[0]);
	waitpid(pid, &status, 0);
	is(status, 0, "all of it was read");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "what was loaded in pieces is sound");
	close(file);
	copy_gone();
}

int main(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 1024, .rules = 16 };

	rng.state = rng_seed();
	l = unit_create("save", &o);
	snprintf(copy_name, sizeof(copy_name), "%s.copy", unit_name);
	atexit(copy_gone);
	make_rules();
	round_trips(1);
	round_trips(0);
	debts_of_years();
	what_it_is();
	no_room();
	leftovers();
	grown();
	can_grow();
	clocks();
	damage();
	hostile();
	duplicates();
	many_pages();
	through_an_impatient_pipe();
	in_pieces(SOCK_SEQPACKET, send_in_pieces);
	in_pieces(SOCK_STREAM, send_rest_at_once);
	spoil_each();
	is(misjudged, 0, "of every file, checking it said the same as loading it");
	shmlimit_close(l);
	return tap_done();
}
