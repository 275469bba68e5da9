/*
 * take_all: several limits at once, all or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

static int take(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when, struct undo *undo,
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
		answer = take(l, &requests[i], when, &undo[i], &r[i]);
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
