/*
 * line: see line.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "line.h"

/*
 * Lines of few places and of many have rules of their own: a key's memory is that of all its
 * places. Each has eight times the places of the next smaller one.
 */
#define PLACES_MIN 16u
#define PLACES_MAX 8192u
#define STEP_SHIFT 3

/* Of a place that could not be bound: longer than anything waits. */
#define PERIOD_NS UINT64_C(7200000000000)

/* BOUND: after this number of tries the lock is not one of a process that is just adding a rule. */
#define LOCK_TRIES 32

#define NAME_SIZE 16

/* The name of the rule, and how many places it has. */
static uint64_t name_line(uint64_t longest, char name[NAME_SIZE])
{
	unsigned places = PLACES_MIN;

	while (places < longest && places < PLACES_MAX)
		places <<= STEP_SHIFT;
	snprintf(name, NAME_SIZE, "~line%u", places);
	return places;
}

static int find_or_make(struct shmlimit *l, uint64_t longest)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .period_ns = PERIOD_NS,
		                      .flags = SHMLIMIT_RULE_NO_WAIT };
	char name[NAME_SIZE];
	int id = -EAGAIN;

	rule.capacity = name_line(longest, name);
	for (int i = 0; i < LOCK_TRIES && id == -EAGAIN; i++) {
		if (i > 0)
			(void)sched_yield();
		id = shmlimit_rule_find(l, name);
		if (id == -ESRCH)
			id = shmlimit_rule_set(l, name, &rule);
	}
	return id;
}

/* The key under which those wait that ask the rule `of` for `key`. Returns its length. */
static size_t line_key(int of, const struct key *key, char made[SHMLIMIT_KEY_MAX])
{
	const void *bytes = key->bytes;
	size_t length = key->length;
	unsigned char digest[KEY_DIGEST_BYTES];
	int at = snprintf(made, SHMLIMIT_KEY_MAX, "%d:", of);

	if (length > SHMLIMIT_KEY_MAX - (size_t)at) {
		key_digest(bytes, length, digest);
		bytes = digest;
		length = sizeof(digest);
	}
	memcpy(made + at, bytes, length);
	return (size_t)at + length;
}

int line_enter(struct shmlimit *l, int of, const struct key *key, uint64_t longest, struct line *line)
{
	char made[SHMLIMIT_KEY_MAX];
	size_t length = line_key(of, key, made);
	int answer;

	line->place = (struct shmlimit_place){ .struct_size = sizeof(line->place), .flags = SHMLIMIT_PLACE_BIND };
	line->of = of;
	line->rule = find_or_make(l, longest);
	if (line->rule < 0)
		return 1;
	answer = shmlimit_enter(l, line->rule, made, length, &line->place, NULL);
	/* A place that outlives its holder would hold up the others for hours. */
	if (line->place.bind_error != 0)
		line_leave(l, key, line);
	return answer != SHMLIMIT_DENIED;
}

uint64_t line_length(struct shmlimit *l, int of, const struct key *key, uint64_t longest)
{
	char made[SHMLIMIT_KEY_MAX], name[NAME_SIZE];
	struct shmlimit_result r;
	int rule;

	(void)name_line(longest, name);
	rule = shmlimit_rule_find(l, name);
	return rule < 0 || shmlimit_peek(l, rule, made, line_key(of, key, made), 1, &r) < 0 ? 0 : r.limit - r.remaining;
}

uint64_t line_ahead(struct shmlimit *l, const struct key *key, struct line *line)
{
	char made[SHMLIMIT_KEY_MAX];
	struct shmlimit_request asked = { .rule = line->rule, .key = made, .cost = 1, .place = &line->place };
	struct shmlimit_result r;

	if (line->place.value == 0)
		return 0;
	asked.key_len = line_key(line->of, key, made);
	if (shmlimit_decide(l, SHMLIMIT_PEEK, &asked, &r) >= 0)
		return r.limit - 1 - r.remaining;
	line_leave(l, key, line);
	return 0;
}

void line_leave(struct shmlimit *l, const struct key *key, struct line *line)
{
	char made[SHMLIMIT_KEY_MAX];

	if (line->place.value == 0)
		return;
	(void)shmlimit_leave(l, line->rule, made, line_key(line->of, key, made), &line->place);
	line->place.value = 0;
}
