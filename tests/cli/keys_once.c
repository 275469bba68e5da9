/*
 * keys_once: each live key is listed once while keys move from one table to a larger one, and as it is in that.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "layout.h"
#include "top_keys.h"

#include "../unit/unit.h"

#define SLOTS 64u
#define KEYS 20u
#define CAPACITY 10

static struct shmlimit *l;
static int rule;

static void take(uint64_t key, uint64_t n)
{
	if (shmlimit_take(l, rule, &key, sizeof(key), n, NULL) != SHMLIMIT_ALLOWED)
		bail("take");
}

/* A walk: how many keys it listed, how many of them have just this number of tokens. */
struct walk {
	unsigned listed, with;
	uint64_t tokens;
	int moves; /* a key moves after each that is listed, the last ones first */
};

static int visit(void *context, const struct top_key *slot)
{
	struct walk *walk = context;

	walk->with += slot->remaining == walk->tokens;
	if (walk->moves && walk->listed < KEYS)
		take(KEYS - 1 - walk->listed, 1);
	walk->listed++;
	return STATUS_OK;
}

static struct walk walk(uint64_t tokens, int moves)
{
	struct walk walk = { .tokens = tokens, .moves = moves };
	struct top_keys keys = { .rule = -1, .limit = UINT64_MAX, .visit = visit, .context = &walk };
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(l, &info);
	if (top_keys_scan(l, 0, info.slots + info.old_slots, &keys) != STATUS_OK)
		bail("top_keys_scan");
	if (keys.found != walk.listed || keys.states[SHMLIMIT_SLOT_LIVE] != walk.listed)
		bail("it counts %d live keys, and lists %u", (int)keys.states[SHMLIMIT_SLOT_LIVE], walk.listed);
	return walk;
}

/* The slots of the first table, as they are in the segment. */
static struct layout_slot *first_table(void)
{
	struct layout_header *header;
	struct stat file;
	char path[SHMLIMIT_PATH_MAX];
	int fd;

	(void)shmlimit_path(unit_name, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) != 0)
		bail("open: %s", strerror(errno));
	header = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	close(fd);
	return (struct layout_slot *)(void *)((char *)header + header->slots_offset);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS };
	struct layout_slot kept[SLOTS], *slots;
	struct walk seen;

	l = unit_create("keys_once", &options);
	rule = unit_rule(l, "login", CAPACITY, 1, 100000 * SECOND);
	for (uint64_t key = 0; key < KEYS; key++)
		take(key, 5);
	if (shmlimit_grow(l, 4 * SLOTS) != 0)
		bail("grow");
	is(walk(5, 0).listed, KEYS, "each key of the old table is listed once");
	slots = first_table();
	memcpy(kept, slots, sizeof(kept));
	for (uint64_t key = 0; key < KEYS / 2; key++)
		take(key, 2);
	seen = walk(3, 0);
	is(seen.listed, KEYS, "when half of the keys have moved each is listed once");
	is(seen.with, KEYS / 2, "a key that has moved is listed as it is in the new table");
	/* Processes were killed before they buried what they had copied. */
	for (unsigned i = 0; i < SLOTS; i++)
		if ((slots[i].tag & ~TAG_FROZEN) == 0 && kept[i].tag != 0)
			slots[i] = (struct layout_slot){ kept[i].tag | TAG_FROZEN, kept[i].word };
	seen = walk(3, 0);
	is(seen.listed, KEYS,
	   "a key that is in both tables, since the process that copied it was killed, is listed once");
	is(seen.with, KEYS / 2, "a key that is in both tables is listed as it is in the new one");
	is(walk(5, 1).listed, KEYS, "keys that move while they are listed are listed once");
	is(walk(4, 0).listed, KEYS, "keys that moved while they were listed are listed once afterwards");
	shmlimit_close(l);
	return tap_done();
}
