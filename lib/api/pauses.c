/*
 * pauses: "not now", from outside: nothing of a key passes until a time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "decide.h"
#include "export.h"
#include "pause.h"
#include "rule_writer.h"
#include "segment.h"
#include "shmlimit.h"

/* The rule of pauses, made if it is missing. */
static int pauses_rule(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .algorithm = SHMLIMIT_COUNTER, .flags = SHMLIMIT_RULE_PROTECTED, .capacity = 1 };
	int id = rule_find(l, PAUSE_RULE);

	return id == -ESRCH ? rule_put(l, PAUSE_RULE, &rule, SEGMENT_LOCK_WAIT_NS, when_clock()) : id;
}

static int pause_end(const struct shmlimit *l, const struct pause_key *key)
{
	int rule = rule_find(l, PAUSE_RULE);
	struct table_key wanted;
	struct rule_view view;

	if (rule < 0 || rule_load(l, (uint32_t)rule, &view) != 0)
		return SHMLIMIT_ALLOWED;
	wanted = table_key(hash_bytes(l->secret, (uint32_t)rule, key->bytes, key->len), (uint32_t)rule,
	                   rule_version(&view));
	(void)table_forget(l, &wanted);
	return SHMLIMIT_ALLOWED;
}

/* What is paused: a key under a rule, as that was in force. */
struct paused {
	uint32_t rule;
	struct rule_view view;
	struct pause_key key;
};

/* The answer, or -ESTALE: the rule has changed since. */
static int pause_begin(const struct shmlimit *l, int pauses, const struct paused *of, uint64_t for_ns)
{
	struct shmlimit_count found = { 0 };
	struct count_request asked = { 1, 1, for_ns, SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_LONGER, &found };
	struct request q = request_make(OP_COUNT, pauses, key_bytes(of->key.bytes, of->key.len), 1, when_read(l));
	uint64_t now_ns = q.when.ns;
	struct rule_view own;
	int answer = rule_load(l, (uint32_t)pauses, &own);

	if (answer != 0)
		return answer;
	if (params_algorithm(&own.params) != SHMLIMIT_COUNTER)
		return -EOPNOTSUPP;
	if (for_ns > own.params.debt)
		return -ERANGE;
	if (!pause_mark(l, of->rule, of->view.published, now_ns + for_ns, now_ns))
		return -ESTALE;
	q.count = &asked;
	q.hash = decide_hash(l, &q);
	answer = decide_slowly(l, &q, 0, NULL);
	if (answer != SHMLIMIT_ALLOWED)
		return answer;
	/*
	 * It began at a later reading of the clock. Or the rule has changed since the first mark,
	 * and has none.
	 */
	if (!pause_mark(l, of->rule, of->view.published, when_read(l).ns + for_ns, now_ns))
		return -ESTALE;
	/* By a time before it began: a short one may be over by now. */
	return decide_paused(l, &of->key, when_given(now_ns)) != 0 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
}

static int check(const struct shmlimit *l, int rule, struct key_bytes key)
{
	const struct request q = request_make(OP_PEEK, rule, key, 0, when_clock());

	return decide_check(l, &q);
}

static int look_up(const struct shmlimit *l, int rule, struct key_bytes key, struct paused *of)
{
	/* BOUND: each round but the last means that another process changed the rule. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		int error = rule_load(l, (uint32_t)rule, &of->view);

		if (error != 0)
			return error;
		of->rule = (uint32_t)rule;
		if (pause_key_make(l, of->rule, of->view.published, key, &of->key))
			return 0;
	}
	return -ESRCH;
}

EXPORT int shmlimit_pause(struct shmlimit *l, int rule, const void *bytes, size_t key_len, uint64_t for_ns)
{
	struct key_bytes key = key_bytes(bytes, key_len);
	int answer = check(l, rule, key), pauses;
	struct paused of;

	if (answer == 0 && l->read_only)
		answer = -EROFS;
	if (answer == 0 && for_ns > PAUSE_MAX_NS)
		answer = -ERANGE;
	if (answer == 0)
		answer = look_up(l, rule, key, &of);
	if (answer != 0)
		return answer;
	if (rule_find(l, PAUSE_RULE) == rule)
		return -EOPNOTSUPP;
	if (for_ns == 0)
		return pause_end(l, &of.key);
	pauses = pauses_rule(l);
	if (pauses < 0)
		return pauses;
	/* BOUND: as above. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		answer = pause_begin(l, pauses, &of, for_ns);
		if (answer != -ESTALE)
			return answer;
		answer = look_up(l, rule, key, &of);
		if (answer != 0)
			return answer;
	}
	return -ESRCH;
}

EXPORT int shmlimit_paused(struct shmlimit *l, int rule, const void *bytes, size_t key_len, uint64_t *left_ns)
{
	struct key_bytes key = key_bytes(bytes, key_len);
	int error = check(l, rule, key);
	struct paused of;
	uint64_t left = 0;

	if (error == 0 && !rule_is_listed(l, (uint32_t)rule))
		error = -ESRCH;
	if (error != 0)
		return error;
	of.view.published = load_acquire(&l->rules[rule].published);
	if (!published_in_use(of.view.published))
		return -ESRCH;
	if (published_paused(of.view.published) != 0 && rule_mode(&of.view) == SHMLIMIT_ENFORCE &&
	    rule_is_on(l, &of.view)) {
		error = look_up(l, rule, key, &of);
		if (error != 0)
			return error;
		left = decide_paused(l, &of.key, when_read(l));
	}
	if (left_ns != NULL)
		*left_ns = left;
	return left != 0 ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED;
}
