/*
 * replay_keys: a log whose paths were chosen to collide costs no more than
 * another. What is counted is how many keys share a place in the table of keys.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "replay.h"
#include "../unit/unit.h"

#define KEYS 3000u
#define KEY_LEN 11
#define BITS 10 /* of uthash's own hash that all of them share */
/* uthash doubles its table where 10 keys share a place; with a good hash 60 never do. */
#define CROWD 60u

/* The next number of a sequence without a repetition within reach. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* A path whose hash by Jenkins's function, which has no key, ends in zeros. */
static void colliding_path(uint64_t *state, char path[KEY_LEN + 1])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
	unsigned hash;

	do {
		uint64_t x = next(state);

		path[0] = '/';
		for (int i = 1; i < KEY_LEN; i++, x >>= 6)
			path[i] = alphabet[x & 63];
		path[KEY_LEN] = '\0';
		HASH_JEN(path, KEY_LEN, hash);
	} while (hash % (1u << BITS) != 0);
}

static void read_log(struct replay *r)
{
	uint64_t state = UINT64_C(88172645463325252);
	char path[KEY_LEN + 1], text[128];
	int understood;

	if (key_spec_parse("path", &r->spec) != STATUS_OK || replay_begin(r) != STATUS_OK)
		bail("replay_begin");
	r->first_ns = -1;
	r->until_s = INT64_MAX;
	for (unsigned i = 0; i < KEYS; i++) {
		struct span line = { text, 0 };

		colliding_path(&state, path);
		line.len =
			(size_t)snprintf(text, sizeof(text),
		                         "10.0.0.1 - - [21/Nov/2026:09:00:00 +0000] \"GET %s HTTP/1.1\" 200 5", path);
		if (replay_line(r, &line, &understood) != STATUS_OK || !understood)
			bail("replay_line");
	}
}

static unsigned largest_crowd(const struct replay *r)
{
	unsigned largest = 0;

	for (unsigned i = 0; i < r->keys->hh.tbl->num_buckets; i++)
		if (r->keys->hh.tbl->buckets[i].count > largest)
			largest = r->keys->hh.tbl->buckets[i].count;
	return largest;
}

int main(void)
{
	static struct replay first, second;

	read_log(&first);
	read_log(&second);
	is(HASH_COUNT(first.keys), KEYS, "each path of a log is a key of its own");
	ok(largest_crowd(&first) < CROWD, "paths that were chosen to collide do not share a place: %u do",
	   largest_crowd(&first));
	ok(memcmp(first.secret, second.secret, sizeof(first.secret)) != 0, "each run hashes under a secret of its own");
	replay_free(&first);
	replay_free(&second);
	return tap_done();
}
