/*
 * take_all: several requests in one call: all or none, or each answered by itself.
 *
 * In a large table a decision waits for one line of memory, and nearly all of its
 * time is that. So take_many hashes a chunk of requests first, asks for all of their
 * lines, and decides when they are there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

static int take_one(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when, struct undo *undo,
                    struct shmlimit_result *r)
{
	enum operation op = asked->cost == 0 ? OP_PEEK : OP_TAKE;
	struct request_key key = { asked->key, asked->key_len };
	int error = decide_check(l, asked->key, asked->key_len, op);
	uint64_t hash;

	undo->slot = NULL;
	undo->place.value = 0;
	if (error != 0)
		return error;
	hash = hash_bytes(l->secret, (uint32_t)asked->rule, asked->key, asked->key_len);
	if (asked->cost == 0)
		return fast_any(l, op, (uint32_t)asked->rule, hash, &key, 0, 0, when, r);
	return fast_take(l, (uint32_t)asked->rule, hash, &key, asked->cost, when, undo, r);
}

/* What was taken: not by a dry run that would have been denied, or from a rule that was off. */
static void give_back(const struct shmlimit *l, const struct shmlimit_request *asked, const struct undo *undo,
                      struct when when)
{
	uint32_t rule = (uint32_t)asked->rule;
	struct request q = { .op = OP_REFUND,
		             .rule = rule,
		             .key = { asked->key, asked->key_len },
		             .amount = asked->cost,
		             .when = when,
		             .taken = undo };
	struct hold_request hold = { .place = undo->place };

	if (undo->slot == NULL)
		return;
	/*
	 * A place is left. Else the swap is undone. ORDER pairs with slot_cas() of the other processes: it fails if one of
	 * them changed the slot since.
	 */
	if (undo->place.value != 0) {
		q.op = OP_LEAVE;
		q.hold = &hold;
	} else if (slot_cas(undo->slot, undo->after, undo->before.tag, undo->before.word)) {
		return;
	}
	q.hash = hash_bytes(l->secret, rule, asked->key, asked->key_len);
	(void)decide_slowly(l, &q, 0, NULL);
}

/* Of the limiter's clock there is one reading for all, which is read again only where it is in doubt. */
static int take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                    struct when when, struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result *r = results != NULL ? results : own;
	struct undo undo[SHMLIMIT_REQUESTS_MAX];
	int answer = SHMLIMIT_ALLOWED;
	size_t i;

	if (l == NULL || requests == NULL || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (requests[i].reserved32 != 0)
			return -EINVAL;
	when = when_again(l, when);
	for (i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++)
		answer = take_one(l, &requests[i], when, &undo[i], &r[i]);
	if (answer == SHMLIMIT_ALLOWED)
		return answer;
	i--;
	if (failed != NULL)
		*failed = i;
	/* In reverse, so that a key that was asked twice passes through the states it came from. */
	while (i-- > 0)
		give_back(l, &requests[i], &undo[i], when);
	return answer;
}

EXPORT int shmlimit_take_all_at(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                                uint64_t now_ns, struct shmlimit_result *results)
{
	return take_all(l, requests, n, failed, when_given(now_ns), results);
}

EXPORT int shmlimit_take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                             struct shmlimit_result *results)
{
	return take_all(l, requests, n, failed, when_clock(), results);
}

/* As many lines as a core can wait for, and more; a chunk's hashes are 256 bytes of stack. */
#define CHUNK 32

/* What the request is, were it asked alone: 0, or the error that it gets without being decided. */
static int refusal(const struct shmlimit *l, const struct shmlimit_request *q)
{
	if (q->key == NULL)
		return -EINVAL;
	if (q->key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	return l->read_only && q->cost != 0 ? -EROFS : 0;
}

static void take_chunk(const struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                       struct when when, struct shmlimit_result *results)
{
	const struct table *t = generation_known(l, load_acquire(&l->state));
	uint64_t hashes[CHUNK];

	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct table_window window;

		answers[i] = refusal(l, q);
		if (answers[i] != 0)
			continue;
		hashes[i] = hash_bytes(l->secret, (uint32_t)q->rule, q->key, q->key_len);
		/* Both homes: at a load of 0.8 three keys in four are in the first, nearly all of the rest in the second. */
		window = table_window(t, hashes[i]);
		__builtin_prefetch(table_line(t, window, 0), 1);
		__builtin_prefetch(table_line(t, window, 1), 1);
	}
	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct shmlimit_result *r = results != NULL ? &results[i] : NULL;
		struct request_key key = { q->key, q->key_len };

		if (answers[i] != 0)
			continue;
		if (q->cost == 0)
			answers[i] = fast_any(l, OP_PEEK, (uint32_t)q->rule, hashes[i], &key, 0, 0, when, r);
		else
			answers[i] = fast_take(l, (uint32_t)q->rule, hashes[i], &key, q->cost, when, NULL, r);
	}
}

static int take_many(const struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                     struct when when, struct shmlimit_result *results)
{
	if (l == NULL || requests == NULL || answers == NULL)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].reserved32 != 0)
			return -EINVAL;
	when = when_again(l, when);
	for (size_t i = 0; i < n; i += CHUNK)
		take_chunk(l, requests + i, n - i < CHUNK ? n - i : CHUNK, answers + i, when,
		           results != NULL ? results + i : NULL);
	return 0;
}

EXPORT int shmlimit_take_many(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                              struct shmlimit_result *results)
{
	return take_many(l, requests, n, answers, when_clock(), results);
}

EXPORT int shmlimit_take_many_at(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                                 uint64_t now_ns, struct shmlimit_result *results)
{
	return take_many(l, requests, n, answers, when_given(now_ns), results);
}
