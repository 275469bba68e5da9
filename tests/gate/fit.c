/*
 * fit: create=yes in a /dev/shm that is too small for the slots makes a smaller table, and says so, before and after.
 * No process dies of SIGBUS, however little room there is, and no limit is left out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <signal.h>
#include <sys/resource.h>

#include "../process/process.h"
#include "gate.h"

#define ASKED 65536u
#define PAGE 4096u

/* What a process with a /dev/shm of its own saw. */
struct seen {
	int not_permitted; /* -errno of that */
	int fewer;         /* shmlimit_fit() */
	uint64_t fitting;
	int compared, attached, said, bad;
	size_t compared_at; /* which byte of the configuration is complained of */
	char compared_text[300], said_text[300];
	struct shmlimit_info info, grown;
	int allowed, denied; /* requests of each key: one each */
	int grow;
	/* over all sizes of /dev/shm: */
	int sizes, smaller, whole, none, wrong;
};

static struct seen *seen;

static void hear(void *arg, size_t offset, const char *text)
{
	(void)arg;
	seen->compared_at = offset;
	snprintf(seen->compared_text, sizeof(seen->compared_text), "%s", text);
}

static struct shmlimit_options asked(void)
{
	return (struct shmlimit_options){ .struct_size = sizeof(struct shmlimit_options),
		                          .slots = ASKED,
		                          .flags = SHMLIMIT_OPTION_FIT };
}

static int compare(const char *rest)
{
	char spec[300];

	snprintf(spec, sizeof(spec), "segment=%s %s", unit_name, rest);
	seen->compared_text[0] = '\0';
	seen->compared_at = SIZE_MAX;
	return shmlimit_gate_compare(spec, hear, NULL);
}

static void look(struct shmlimit_info *info)
{
	struct shmlimit *l;

	info->struct_size = sizeof(*info);
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &l) == 0) {
		shmlimit_info(l, info);
		shmlimit_close(l);
	}
}

static void resize(uint64_t bytes)
{
	char options[32];

	snprintf(options, sizeof(options), "size=%llu", (unsigned long long)bytes);
	if (mount("shm", "/dev/shm", "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, options) != 0)
		bail("mount: %s", strerror(errno));
}

/* Many keys, so that each page of the table is written to: each is allowed once. */
static void use(struct shmlimit_gate *g)
{
	char key[16];

	for (int i = 0; i < 4000; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		seen->allowed += ASK(g, key, 0) == SHMLIMIT_ALLOWED;
	}
	seen->denied += ASK(g, "k3999", 0) == SHMLIMIT_DENIED;
}

static void perform(uint64_t bytes)
{
	struct shmlimit_options all = asked();
	struct shmlimit_gate *g;
	struct shmlimit *l;
	char options[32];

	snprintf(options, sizeof(options), "size=%llu", (unsigned long long)bytes);
	seen->not_permitted = private_shm(options);
	if (seen->not_permitted != 0)
		return;
	seen->fewer = shmlimit_fit(&all, &seen->fitting);
	seen->compared = compare("create=yes rule=r rate=1/d");
	g = gate_new("create=yes rule=r rate=1/d");
	seen->attached = shmlimit_gate_attach(g);
	seen->said = gate_said;
	seen->bad = gate_bad;
	memcpy(seen->said_text, gate_lines[0], sizeof(seen->said_text));
	look(&seen->info);
	use(g);
	resize(bytes + (8u << 20));
	if (shmlimit_open(unit_name, 0, NULL, &l) == 0)
		seen->grow = shmlimit_grow(l, ASKED);
	look(&seen->grown);
	shmlimit_gate_close(g);
}

/* One size of /dev/shm: what shmlimit_fit() says, what is made, and whether it can be used. */
static void one_size(uint64_t bytes)
{
	struct shmlimit_options all = asked();
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = 86400 * SECOND
	};
	uint64_t fitting = 0;
	struct shmlimit *l;
	int fewer, made, id;

	resize(bytes);
	fewer = shmlimit_fit(&all, &fitting);
	made = shmlimit_create(unit_name, &all, &l);
	seen->sizes++;
	if (made != 0) {
		seen->none++;
		seen->wrong += made != -ENOSPC || fewer != -ENOSPC || shm_files() != 0;
		return;
	}
	shmlimit_info(l, &info);
	seen->smaller += fewer == 1;
	seen->whole += fewer == 0;
	seen->wrong += fewer < 0 || info.slots != fitting || info.slots_asked != (fewer ? ASKED : 0) ||
	               info.slots_max != 16 * ASKED || info.size > bytes;
	id = shmlimit_rule_set(l, "r", &rule);
	for (int key = 0; key < 2 * (int)info.slots && key < 100000; key++)
		seen->wrong += shmlimit_take(l, id, &key, sizeof(key), 1, NULL) < 0;
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

static void over_sizes(uint64_t least, uint64_t most)
{
	seen->not_permitted = private_shm("size=1m");
	if (seen->not_permitted != 0)
		return;
	for (uint64_t bytes = least - 4 * PAGE; bytes < least + 4 * PAGE; bytes += PAGE)
		one_size(bytes);
	for (uint64_t bytes = least + 4 * PAGE; bytes < most - 4 * PAGE; bytes += 13 * PAGE)
		one_size(bytes);
	for (uint64_t bytes = most - 4 * PAGE; bytes < most + 4 * PAGE; bytes += PAGE)
		one_size(bytes);
}

/* The slots of a segment where files may be so long; 0: there is none. */
static uint64_t slots_with(uint64_t bytes)
{
	struct shmlimit_options all = asked();
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct rlimit limit = { bytes, RLIM_INFINITY };
	struct shmlimit *l;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (shmlimit_create(unit_name, &all, &l) != 0)
		return 0;
	shmlimit_info(l, &info);
	seen->wrong += info.slots_asked != (info.slots == ASKED ? 0 : ASKED) || info.size > bytes;
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	return info.slots;
}

/* The shortest files that have all slots: what is shorter has half of them. */
static void short_files(void)
{
	uint64_t low = 0, high = (uint64_t)1 << 32;

	signal(SIGXFSZ, SIG_IGN);
	while (high - low > PAGE) {
		uint64_t middle = low + (high - low) / 2;

		if (slots_with(middle) == ASKED)
			high = middle;
		else
			low = middle;
	}
	seen->whole = slots_with(high) == ASKED;
	seen->smaller = (int)slots_with(low);
	seen->none = slots_with(PAGE) == 0;
}

static int in_child(void (*what)(uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		what(a, b);
		_exit(0);
	}
	return wait_for(pid);
}

static void performs(uint64_t a, uint64_t b)
{
	(void)b;
	perform(a);
}

static void shortens(uint64_t a, uint64_t b)
{
	(void)a;
	(void)b;
	short_files();
}

static uint64_t bytes_with(uint64_t slots)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = slots, .slots_max = 16 * ASKED };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l = unit_create("fit", &o);

	shmlimit_info(l, &info);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	return (info.size + PAGE - 1) / PAGE * PAGE;
}

static void report(uint64_t room, uint64_t least)
{
	char text[100];

	ok(in_child(performs, room, 0), "no process dies in a /dev/shm with too little room");
	if (seen->not_permitted != 0) {
		tap_skip("a small /dev/shm", "no /dev/shm of one's own is permitted");
		return;
	}
	is(seen->fewer, 1, "there is room for fewer slots than were asked for");
	snprintf(text, sizeof(text), "it would have %u slots, since /dev/shm has no room for more",
	         (unsigned)seen->fitting);
	ok(seen->compared == 1 && seen->compared_at == 0 && strstr(seen->compared_text, text) != NULL,
	   "a check of the configuration says how many slots the segment would have: %s", seen->compared_text);
	is(seen->attached, 0, "with create=yes the segment is made");
	snprintf(text, sizeof(text), "it has %u slots, since /dev/shm had no room for 65536", (unsigned)seen->fitting);
	ok(seen->said == 1 && seen->bad == 1 && strstr(seen->said_text, text) != NULL, "a gate that starts says so: %s",
	   seen->said_text);
	ok(seen->info.slots == seen->fitting && seen->info.slots_asked == ASKED && seen->info.slots >= ASKED / 16,
	   "the segment has as many slots as were promised, and says how many were asked for");
	ok(2 * seen->info.slots * 16 <= room - least, "the slots take half of the room at most");
	ok(seen->allowed == 4000 && seen->denied == 1, "the limit is in force for 4,000 keys");
	is(seen->grow, 0, "the segment grows to what was asked for when there is room");
	ok(seen->grown.slots == ASKED && seen->grown.slots_asked == 0, "nothing is lacking then");
}

static void report_none(uint64_t room)
{
	ok(in_child(performs, room, 0), "no process dies in a /dev/shm without room");
	if (seen->not_permitted != 0)
		return;
	is(seen->fewer, -ENOSPC, "there is no room for a segment of any size");
	ok(seen->compared == 1 && seen->compared_at == 0 && strstr(seen->compared_text, "it cannot be made: ") != NULL,
	   "a check of the configuration says that there is no room: %s", seen->compared_text);
	is(seen->attached, -ENOSPC, "a gate says so, too");
}

int main(void)
{
	uint64_t least, most;
	struct shmlimit_options o = asked();
	uint64_t slots = 7;

	seen = shared_memory(sizeof(*seen));
	least = bytes_with(SHMLIMIT_SLOTS_MIN);
	most = bytes_with(ASKED);
	is(shmlimit_fit(&o, &slots), 0, "there is room for all slots here");
	is(slots, ASKED, "shmlimit_fit() says how many they are");
	is(shmlimit_fit(&o, NULL), -EINVAL, "shmlimit_fit() needs somewhere to put the number");
	o.slots = 1;
	is(shmlimit_fit(&o, &slots), -EINVAL, "shmlimit_fit() refuses options that no segment can have");
	o.slots = ASKED;
	o.reserved[0] = 1;
	is(shmlimit_fit(&o, &slots), -E2BIG, "shmlimit_fit() refuses options that it does not know");
	is(slots, ASKED, "shmlimit_fit() leaves the number alone then");
	report(least + 6 * (most - least) / 10, least);
	report_none(least - PAGE);
	ok(in_child(over_sizes, least, most), "no process dies over all sizes of /dev/shm");
	if (seen->not_permitted == 0) {
		is(seen->wrong, 0, "in each of %d sizes what fits is made, is usable, and is what shmlimit_fit() said",
		   seen->sizes);
		ok(seen->none > 0 && seen->smaller > 0 && seen->whole > 0,
		   "among them are sizes for no segment (%d), a smaller one (%d) and a whole one (%d)", seen->none,
		   seen->smaller, seen->whole);
	}
	ok(in_child(shortens, 0, 0), "no process dies where files may not be so long");
	is(seen->wrong, 0,
	   "a segment says that it has fewer slots than were asked for, where files may not be so long");
	ok(seen->whole && seen->none,
	   "it has all slots in a file that is long enough, and there is none in one of a page");
	is(seen->smaller, ASKED / 2, "it has half of them in a file that is a little shorter");
	return tap_done();
}
