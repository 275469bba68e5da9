/*
 * take_all: several limits at once, all or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

static int take(struct shmlimit *l, const struct shmlimit_request *q, enum time_source source, uint64_t now_ns,
                struct undo *undo, struct shmlimit_result *r)
{
	undo->slot = NULL;
	if (q->cost == 0)
		return shmlimit_peek_at(l, q->rule, q->key, q->key_len, 0, now_ns, r);
	return decide_noted(l, q->rule, q->key, q->key_len, q->cost, 0, VERB_TAKE, source, now_ns, undo, r);
}

/* What was taken: not by a dry run that would have been denied, or from a rule that was off. */
static void give_back(struct shmlimit *l, const struct shmlimit_request *q, const struct undo *undo,
                      enum time_source source, uint64_t now_ns)
{
	if (undo->slot == NULL || slot_cas(undo->slot, undo->after, undo->before.tag, undo->before.word))
		return;
	/* Another process changed the slot, or the rule, or the table grew. */
	(void)decide(l, q->rule, q->key, q->key_len, q->cost, 0, VERB_REFUND, source, now_ns, NULL);
}

/* Of the limiter's clock there is one reading for all, but who doubts it reads it again (TIME_READ). */
static int take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                    enum time_source source, uint64_t now_ns, struct shmlimit_result *results)
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
	if (source == TIME_READ)
		now_ns = clock_read(l->clock_id);
	for (i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++)
		answer = take(l, &requests[i], source, now_ns, &undo[i], &r[i]);
	if (answer == SHMLIMIT_ALLOWED)
		return answer;
	i--;
	if (failed != NULL)
		*failed = i;
	/* In reverse, so that a key that was asked twice passes through the states it came from. */
	while (i-- > 0)
		give_back(l, &requests[i], &undo[i], source, now_ns);
	return answer;
}

EXPORT int shmlimit_take_all_at(struct shmlimit *l, const struct shmlimit_request *requests, size_t n,
                                size_t *failed, uint64_t now_ns, struct shmlimit_result *results)
{
	return take_all(l, requests, n, failed, TIME_GIVEN, now_ns, results);
}

EXPORT int shmlimit_take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                             struct shmlimit_result *results)
{
	return take_all(l, requests, n, failed, TIME_READ, 0, results);
}
