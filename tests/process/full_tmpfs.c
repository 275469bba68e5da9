/*
 * full_tmpfs: a /dev/shm without room. A segment either gets all of its memory
 * when it is made, or is not made: -ENOSPC then, nothing left behind, and never
 * a SIGBUS in a decision later (I9's ground, I12).
 *
 * Each case runs in a process with a small /dev/shm of its own. It uses what
 * was made, all rules and every page of the table.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/statvfs.h>

#include "process.h"

#define NOW_NS 1000000000000u

/* What a case's process saw. */
struct seen {
	int not_permitted;    /* -errno of a /dev/shm of its own */
	int small, big, huge; /* results of create */
	int files_after_big, files_after_huge;
	uint64_t used_after_big, used_after_huge; /* blocks, against before */
	int used;                                 /* what using the small one came to: 0 */
	int made, made_again;                     /* small ones that fitted, in two goes */
	int last, last_again;                     /* why not more */
	int files_full, files_end;
	uint64_t used_end;
	int steps_made, steps_refused, steps_other, steps_left, steps_unusable;
};

static struct seen *seen;

static uint64_t least; /* bytes of the smallest segment */

static uint64_t blocks_free(void)
{
	struct statvfs status;

	return statvfs("/dev/shm", &status) == 0 ? status.f_bfree : 0;
}

static int create(const char *suffix, uint64_t slots, uint32_t rules, struct shmlimit **l)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options),
		.slots = slots,
		.rules = rules,
		.on_full = SHMLIMIT_FULL_DENY,
	};
	char name[128];

	snprintf(name, sizeof(name), "%s.%s", stage_name, suffix);
	return shmlimit_create(name, &options, l);
}

static void destroy(const char *suffix)
{
	char name[128];

	snprintf(name, sizeof(name), "%s.%s", stage_name, suffix);
	shmlimit_destroy(name);
}

#define SLOTS_A_PAGE 256

/* Set every rule, take for so large a number of keys that every page of the table has some, and close. Returns 0. */
static int use_up(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 2, .refill = 1, .period_ns = 1000000000 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t live = 0;
	int id = -1, ids = 0, bare = 0;

	shmlimit_info(l, &info);
	for (uint32_t i = 0; i < info.rules; i++) {
		char name[16];

		snprintf(name, sizeof(name), "r%u", i);
		id = shmlimit_rule_set(l, name, &rule);
		ids += id >= 0;
	}
	if (ids != (int)info.rules)
		return -1;
	for (uint64_t key = 0; key < 2 * info.slots; key++)
		if (shmlimit_take(at_time(l, NOW_NS), (int)(key % (unsigned)ids), &key, sizeof(key), 1, NULL) < 0)
			return -2;
	for (uint64_t i = 0; i < info.slots; i++) {
		live += shmlimit_slot(l, i, &slot, NOW_NS) == 0 && slot.state == SHMLIMIT_SLOT_LIVE;
		if (i % SLOTS_A_PAGE == SLOTS_A_PAGE - 1 || i == info.slots - 1) {
			bare += live == 0;
			live = 0;
		}
	}
	shmlimit_close(l);
	return bare == 0 ? 0 : -3;
}

/* Small segments until there is no room. Returns how many, *why the error of the next. */
static int fill_up(int *why)
{
	struct shmlimit *l;
	char suffix[16];
	int n = 0;

	for (;;) {
		snprintf(suffix, sizeof(suffix), "%d", n);
		*why = create(suffix, 16, 1, &l);
		if (*why != 0)
			return n;
		seen->used |= use_up(l);
		n++;
	}
}

static void empty(int n)
{
	char suffix[16];

	for (int i = 0; i < n; i++) {
		snprintf(suffix, sizeof(suffix), "%d", i);
		destroy(suffix);
	}
}

/* Sizes around what fits, a little less than a page apart: each is made and works, or is not there. */
static void step_up(uint64_t bytes)
{
	struct shmlimit *l;

	uint64_t most = bytes / sizeof(uint64_t[2]);

	for (uint64_t slots = 16 + (bytes - least) / sizeof(uint64_t[2]) / 8 * 7; slots < most + 4 * SLOTS_A_PAGE;
	     slots += most / 128 + SLOTS_A_PAGE - 16) {
		int error = create("step", slots, 1, &l);

		if (error == 0) {
			seen->steps_made++;
			seen->steps_unusable += use_up(l) != 0;
			destroy("step");
		} else if (error == -ENOSPC) {
			seen->steps_refused++;
		} else {
			seen->steps_other++;
		}
		seen->steps_left += shm_files() != 0;
	}
}

static void perform(uint64_t bytes)
{
	struct shmlimit *l;
	char options[32];
	uint64_t before;

	snprintf(options, sizeof(options), "size=%llu", (unsigned long long)bytes);
	seen->not_permitted = private_shm(options);
	if (seen->not_permitted != 0)
		return;
	before = blocks_free();
	seen->big = create("big", bytes / 16, 1, &l);
	seen->files_after_big = shm_files();
	seen->used_after_big = before - blocks_free();
	seen->huge = create("huge", (uint64_t)1 << 36, 1, NULL);
	seen->files_after_huge = shm_files();
	seen->used_after_huge = before - blocks_free();

	seen->small = create("small", 16, 1, &l);
	if (seen->small == 0)
		seen->used = use_up(l);
	destroy("small");

	seen->made = fill_up(&seen->last);
	seen->files_full = shm_files();
	empty(seen->made);
	seen->made_again = fill_up(&seen->last_again);
	empty(seen->made_again);
	seen->files_end = shm_files();
	seen->used_end = before - blocks_free();
	step_up(bytes);
}

static void report(uint64_t bytes, const char *title)
{
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		perform(bytes);
		_exit(0);
	}
	ok(wait_for(pid), "%s: nobody dies of SIGBUS", title);
	if (seen->not_permitted != 0) {
		tap_skip(title, "no /dev/shm of one's own is permitted");
		return;
	}
	is(seen->big, -ENOSPC, "%s: a segment larger than the room is not made", title);
	is(seen->files_after_big, 0, "%s: a segment larger than the room leaves no file", title);
	is(seen->used_after_big, 0, "%s: a segment larger than the room takes no room", title);
	is(seen->huge, -ENOSPC, "%s: a segment of a tebibyte is not made", title);
	is(seen->files_after_huge, 0, "%s: a segment of a tebibyte leaves no file", title);
	is(seen->used_after_huge, 0, "%s: a segment of a tebibyte takes no room", title);
	is(seen->small, 0, "%s: one that fits is made", title);
	ok(seen->made >= 1, "%s: as many as fit are made", title);
	is(seen->last, -ENOSPC, "%s: one more is not", title);
	is(seen->files_full, seen->made, "%s: a segment for which there is no room leaves no file", title);
	is(seen->used, 0, "%s: every page of those that are made can be used", title);
	is(seen->made_again, seen->made, "%s: after destroying them as many fit again", title);
	is(seen->last_again, -ENOSPC, "%s: no more fit than before", title);
	is(seen->files_end, 0, "%s: destroying them leaves no file", title);
	is(seen->used_end, 0, "%s: destroying them frees all memory", title);
	ok(seen->steps_made > 0 && seen->steps_refused > 0 && seen->steps_other == 0,
	   "%s: of sizes in small steps each is made or answered with ENOSPC", title);
	is(seen->steps_unusable, 0, "%s: every page of those that are made can be used", title);
	is(seen->steps_left, 0, "%s: nothing is left of the others", title);
}

static void without_inodes(void)
{
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		struct shmlimit *l;

		seen->not_permitted = private_shm("size=1m,nr_inodes=2");
		if (seen->not_permitted == 0) {
			seen->small = create("one", 16, 1, &l);
			seen->big = create("two", 16, 1, &l);
			seen->files_end = shm_files();
		}
		_exit(0);
	}
	ok(wait_for(pid), "without inodes: nobody dies");
	if (seen->not_permitted != 0) {
		tap_skip("without inodes", "no /dev/shm of one's own is permitted");
		return;
	}
	is(seen->small, 0, "without inodes: the file that may be is made");
	is(seen->big, -ENOSPC, "without inodes: the next is answered with ENOSPC");
	is(seen->files_end, 1, "without inodes: and not there");
}

/* The room that the smallest segment takes here, where counters grow with the CPUs; rounded up to 64 KiB. */
static uint64_t smallest(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l;
	int error = create("measure", 16, 1, &l);

	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	destroy("measure");
	shmlimit_info(l, &info);
	shmlimit_close(l);
	least = info.size;
	return (info.size + 0xffff) & ~(uint64_t)0xffff;
}

int main(void)
{
#ifdef UNDER_TSAN
	return tap_skip_all("there are no threads here, and it takes long");
#endif
	stage_begin("full_tmpfs");
	seen = shared_memory(sizeof(*seen));
	report(smallest(), "64 KiB");
	report((uint64_t)1 << 20, "1 MiB");
	without_inodes();
	return tap_done();
}
