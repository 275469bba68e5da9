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

/*
 * How long a place is kept: for longer than anything waits for such a limit. So the places of a
 * process that is stopped end while it lives. Rules have the times 2^n of the shortest.
 */
#define PERIOD_MIN_NS UINT64_C(4000000000)
#define PERIOD_REST_NS UINT64_C(1000000000)

/* BOUND: after this number of tries the lock is not one of a process that is just adding a rule. */
#define LOCK_TRIES 32

#define NAME_SIZE 40

/* The rule of such lines, and its name. */
static struct shmlimit_rule rule_of(const struct line_size *size, char name[NAME_SIZE])
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = PLACES_MIN,
		                      .period_ns = PERIOD_MIN_NS,
		                      .flags = SHMLIMIT_RULE_CUT_OFF | SHMLIMIT_RULE_NO_WAIT };

	while (rule.capacity < size->places && rule.capacity < PLACES_MAX)
		rule.capacity <<= STEP_SHIFT;
	/* BOUND: no limit has a longer delay= than an hour. */
	while (rule.period_ns < 2 * size->longest_ns + PERIOD_REST_NS)
		rule.period_ns <<= 1;
	snprintf(name, NAME_SIZE, "~line%u-%us", (unsigned)rule.capacity, (unsigned)(rule.period_ns / 1000000000));
	return rule;
}

static int find_or_make(struct shmlimit *l, const struct line_size *size)
{
	char name[NAME_SIZE];
	struct shmlimit_rule rule = rule_of(size, name);
	int id = shmlimit_rule_find(l, name);

	for (int i = 0; i < LOCK_TRIES && (i == 0 ? id == -ESRCH : id == -EAGAIN); i++) {
		if (i > 0)
			(void)sched_yield();
		id = shmlimit_rule_ensure(l, name, &rule);
	}
	return id;
}

/* The key under which those wait that ask the rule `of` for `key`. Returns its length. */
static size_t line_key(int of, const struct key *key, char made[SHMLIMIT_KEY_MAX])
{
	const void *bytes = key->bytes;
	size_t length = key->length;
	unsigned char digest[KEY_DIGEST_BYTES];
	size_t at = 0;
	unsigned rest = (unsigned)of, scale = 1;

	while (rest / scale > 9)
		scale *= 10;
	for (; scale > 0; rest %= scale, scale /= 10)
		made[at++] = (char)('0' + rest / scale);
	made[at++] = ':';
	if (length > SHMLIMIT_KEY_MAX - at) {
		key_digest(bytes, length, digest);
		bytes = digest;
		length = sizeof(digest);
	}
	memcpy(made + at, bytes, length);
	return at + length;
}

int line_enter(struct shmlimit *l, int of, const struct key *key, const struct line_size *size, struct line *line)
{
	char made[SHMLIMIT_KEY_MAX];
	size_t length = line_key(of, key, made);
	int answer;

	line->place = (struct shmlimit_place){ .struct_size = sizeof(line->place), .flags = SHMLIMIT_PLACE_BIND };
	line->of = of;
	line->rule = find_or_make(l, size);
	if (line->rule < 0)
		return 1;
	answer = shmlimit_enter(l, line->rule, made, length, &line->place, NULL);
	/* A place that outlives its holder would hold up the others. */
	if (line->place.bind_error != 0)
		line_leave(l, key, line);
	return answer != SHMLIMIT_DENIED;
}

uint64_t line_length(struct shmlimit *l, int of, const struct key *key, const struct line_size *size)
{
	char made[SHMLIMIT_KEY_MAX], name[NAME_SIZE];
	struct shmlimit_result r;
	int rule;

	(void)rule_of(size, name);
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
