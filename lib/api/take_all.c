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
#include "limit_make.h"
#include "places.h"
#include "shmlimit.h"

/* One of the requests, without its hash. */
static struct request request_of(const struct shmlimit_request *asked, struct when when)
{
	return request_make(asked->cost == 0 ? OP_PEEK : OP_TAKE, asked->rule, key_bytes(asked->key, asked->key_len),
	                    asked->cost, when);
}

/* ---- Shares ---- */

/*
 * The share of a request, of the places that the request with a place before it left free. It is
 * looked at by each try of the entry, after the key's word was read, so that an entry is one step:
 * at that moment the key has the places that its word swap proves, and the limit above those that
 * are counted. Entries of other keys that begin later come after it.
 *
 * The source: Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet
 * switches, IEEE/ACM Transactions on Networking 6 (1998): a queue is at most alpha times as long as
 * the memory that is free.
 */
struct share {
	struct hold_share bound; /* first, so that it can be found by it */
	const struct shmlimit *l;
	const struct shmlimit_request *requests;
	const struct undo *undo;
	const struct shmlimit_result *results;
	struct when when;
	size_t i; /* the request that is to enter */
};

/* The request that i's share is of: the last one before it that has a place; i: there is none. */
static size_t above(const struct shmlimit_request *requests, size_t i)
{
	for (size_t j = i; j-- > 0;)
		if (requests[j].place != NULL)
			return j;
	return i;
}

/* Is what result i says still so, places that were left apart? */
static int result_stands(const struct share *s, size_t i)
{
	/* BOUND: each time for an earlier request. ORDER pairs with slot_cas() of the others. */
	return slot_unchanged(s->undo[i].slot, s->undo[i].after) &&
	       (s->requests[i].share == 0 || result_stands(s, above(s->requests, i)));
}

static uint64_t share_of(const struct share *s, size_t i, int sure);

/* Places that request i found free. UINT64_MAX: it holds none, and bounds nothing. */
static uint64_t free_before(const struct share *s, size_t i, int sure)
{
	const struct shmlimit_request *asked = &s->requests[i];
	struct request q = request_make(OP_PEEK, asked->rule, key_bytes(asked->key, asked->key_len), 1, s->when);
	struct shmlimit_result r;
	uint64_t most, held;

	if (asked->place->value == 0)
		return UINT64_MAX;
	if (!sure && result_stands(s, i))
		return s->results[i].remaining + 1;
	most = asked->share == 0 ? UINT64_MAX : share_of(s, i, sure);
	if (asked->limit != NULL && asked->limit->capacity < most)
		most = asked->limit->capacity;
	q.hash = decide_hash(s->l, &q);
	if (decide_slowly(s->l, &q, 0, &r) < 0)
		return 0;
	if (r.limit < most)
		most = r.limit;
	held = r.limit - r.remaining;
	/* Its own place is one of those that are held. */
	return held <= most ? most - held + 1 : 0;
}

static uint64_t share_of(const struct share *s, size_t i, int sure)
{
	uint64_t n = free_before(s, above(s->requests, i), sure);

	return n == UINT64_MAX ? n : n * s->requests[i].share / SHMLIMIT_SHARE_ONE;
}

static uint64_t share_most(const struct hold_share *bound, int sure)
{
	const struct share *s = (const struct share *)(const void *)bound;

	return share_of(s, s->i, sure);
}

/* A place that the caller wants is entered, and left if a later limit denies. */
__attribute__((noinline)) static int enter_one(const struct shmlimit *l, const struct shmlimit_request *requests,
                                               size_t i, struct when when, struct undo *undo, struct shmlimit_result *r)
{
	struct share share = { { share_most }, l, requests, undo, r, when, i };
	struct shmlimit_place *place = requests[i].place;
	int answer;

	undo[i].slot = NULL;
	undo[i].place.value = 0;
	undo[i].at_ns = when.ns;
	answer = places_enter_within(l, &requests[i], when, requests[i].share != 0 ? &share.bound : NULL, &undo[i],
	                             &r[i]);
	if (answer == SHMLIMIT_ALLOWED)
		undo[i].place = (struct hold_place){ place->index, place->value };
	return answer;
}

static int take_one(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when, struct undo *undo,
                    struct shmlimit_result *r)
{
	struct request q = request_of(asked, when);
	int error = decide_check(l, &q);
	struct gcra g;

	undo->slot = NULL;
	undo->place.value = 0;
	undo->at_ns = when.ns;
	if (error == 0 && asked->limit != NULL)
		error = limit_make(asked->limit, &g);
	if (error != 0)
		return error;
	q.undo = undo;
	if (asked->limit != NULL) {
		q.limit = &g;
		return limit_decide(l, &q, r);
	}
	q.hash = decide_hash(l, &q);
	return asked->cost == 0 ? fast_any(l, &q, r) : fast_take(l, &q, r);
}

/*
 * Was what the slot held before the take over by now? WHY NOT by the mark of the sweep, as what is
 * in the table: this word is not there, and a mark that was set since the take says nothing of it.
 * At the time of the take it was known; from then on time is counted. So it may have been for years
 * (tests/model/sweep, UNDO_BY_MARK).
 */
static int was_over(const struct shmlimit *l, const struct undo *undo, struct when when)
{
	struct generation tables;
	const struct table *t;
	struct rule_view view;
	struct look k;

	generation_read(l, &tables);
	t = generation_table(&tables, undo->slot);
	if (t == NULL || rule_load_tag(l, undo->before.tag, &view) != 0)
		return 1;
	k = look_make(l, t, undo->slot, &view.params, when_given(undo->at_ns));
	return algorithm_wait(&k, undo->before.word) <= when_again(l, when).ns - undo->at_ns;
}

/*
 * Undo the swap. What is over by now is not put back: the key is then as if it had no slot.
 * INVARIANT I8: a sweep that ended in between has set its mark to a time before which nothing in
 * the table was over, and an older word would be in force again once its time has come round. ORDER
 * pairs with slot_cas() of the other processes: it fails if one of them changed the slot since.
 */
static int swap_back(const struct shmlimit *l, const struct undo *undo, struct when when)
{
	struct slot_seen to = undo->before;

	if (to.tag != 0 && was_over(l, undo, when))
		to = (struct slot_seen){ 0, 0 };
	return slot_cas(undo->slot, undo->after, to.tag, to.word);
}

/* What was taken: not by a dry run that would have been denied, or from a rule that was off. */
static void give_back(const struct shmlimit *l, const struct shmlimit_request *asked, const struct undo *undo,
                      struct when when)
{
	struct request q = request_of(asked, when);
	struct hold_request hold = { .place = undo->place };
	struct gcra g;

	if (undo->slot == NULL && undo->place.value == 0)
		return;
	if (asked->place != NULL) {
		asked->place->value = 0;
		asked->place->bind_error = 0;
	}
	if (asked->limit != NULL && limit_make(asked->limit, &g) == 0)
		q.limit = &g;
	q.op = OP_REFUND;
	q.taken = undo;
	if (undo->place.value != 0) {
		q.op = OP_LEAVE;
		q.hold = &hold;
	} else if (swap_back(l, undo, when)) {
		return;
	}
	q.hash = decide_hash(l, &q);
	(void)decide_slowly(l, &q, 0, NULL);
}

__attribute__((noinline)) static int check_place(const struct shmlimit_request *requests, size_t i)
{
	int error = places_check(requests[i].place);

	if (error == 0 && requests[i].share != 0 && above(requests, i) == i)
		error = -EINVAL;
	if (error == 0) {
		requests[i].place->value = 0;
		requests[i].place->bind_error = 0;
	}
	return error;
}

/* What most requests do not have. A place is none until it is entered. */
static inline int check_rest(const struct shmlimit_request *requests, size_t i)
{
	if (__builtin_expect(((uintptr_t)requests[i].place | requests[i].share) == 0, 1))
		return 0;
	return check_place(requests, i);
}

/* All have one reading of the limiter's clock, which is read again only where it is in doubt. */
EXPORT int shmlimit_take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                             struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result *r = results != NULL ? results : own;
	struct undo undo[SHMLIMIT_REQUESTS_MAX];
	int answer = SHMLIMIT_ALLOWED;
	struct when when;
	size_t i;

	if (l == NULL || requests == NULL || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		int error = check_rest(requests, i);

		if (error != 0)
			return error;
	}
	when = when_read(l);
	for (i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++)
		answer = requests[i].place == NULL ? take_one(l, &requests[i], when, &undo[i], &r[i])
		                                   : enter_one(l, requests, i, when, undo, r);
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

/* As many lines as a core can wait for, and more; a chunk's hashes are 256 bytes of stack. */
#define CHUNK 32

static int take_by_limit(const struct shmlimit *l, struct request q, const struct shmlimit_limit *limit,
                         struct shmlimit_result *r)
{
	struct gcra g;
	int error = limit_make(limit, &g);

	q.limit = &g;
	return error != 0 ? error : limit_decide(l, &q, r);
}

static void take_chunk(const struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                       struct when when, struct shmlimit_result *results)
{
	const struct table *t = generation_known(l, load_acquire(&l->state));
	uint64_t hashes[CHUNK];

	for (size_t i = 0; i < n; i++) {
		struct request q = request_of(&requests[i], when);
		struct table_window window;

		answers[i] = decide_check(l, &q);
		if (answers[i] != 0)
			continue;
		hashes[i] = decide_hash(l, &q);
		/*
		 * Both homes: at a load of 0.8 three keys in four are in the first, nearly all of
		 * the rest in the second.
		 */
		window = table_window(t, hashes[i]);
		__builtin_prefetch(table_line(t, window, 0), 1);
		__builtin_prefetch(table_line(t, window, 1), 1);
	}
	for (size_t i = 0; i < n; i++) {
		struct shmlimit_result *r = results != NULL ? &results[i] : NULL;
		struct request q = request_of(&requests[i], when);

		if (answers[i] != 0)
			continue;
		if (requests[i].place != NULL) {
			answers[i] = places_enter(l, &requests[i], when, r);
			continue;
		}
		if (requests[i].limit != NULL) {
			answers[i] = take_by_limit(l, q, requests[i].limit, r);
			continue;
		}
		q.hash = hashes[i];
		answers[i] = q.op == OP_TAKE ? fast_take(l, &q, r) : fast_any(l, &q, r);
	}
}

EXPORT int shmlimit_take_many(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                              struct shmlimit_result *results)
{
	struct when when;

	if (l == NULL || requests == NULL || answers == NULL)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].share != 0)
			return -EINVAL;
	when = when_read(l);
	for (size_t i = 0; i < n; i += CHUNK)
		take_chunk(l, requests + i, n - i < CHUNK ? n - i : CHUNK, answers + i, when,
		           results != NULL ? results + i : NULL);
	return 0;
}
