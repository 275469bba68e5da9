/*
 * places: enter a place of a key, hold it for another period, give it back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_hold.h"
#include "limit_make.h"
#include "places.h"
#include "registry.h"
#include "shmlimit.h"

/* This process, or HOLD_NOBODY where it cannot be registered: the error says why. */
static inline int holder_self(const struct shmlimit *l, uint64_t *number)
{
	int error = registry_self(l, number);

	if (__builtin_expect(error != 0, 0))
		*number = HOLD_NOBODY;
	return error;
}

/* `limit` is a constant NULL or not, so that an entry by its rule's capacity asks for no other. */
FAST int enter_by(const struct shmlimit *l, const struct request *request, const struct gcra *limit,
                  const struct hold_share *share, struct shmlimit_place *place, struct shmlimit_result *r)
{
	struct hold_request asked = { .holder = HOLD_NOBODY, .share = share };
	int answer = decide_check(l, request), error = 0;
	uint32_t failed = 0;
	struct request q;

	if (answer == 0)
		answer = places_check(place);
	if (answer != 0)
		return answer;
	if ((place->flags & SHMLIMIT_PLACE_BIND) != 0)
		error = holder_self(l, &asked.holder);
	q = decide_complete(l, request);
	q.hold = &asked;
	answer = limit == NULL || limit->is_places ? fast_enter(l, &q, limit, share, &failed, r) : FIRST_NOT;
	if (answer == FIRST_NOT)
		answer = first_rest(l, &q, failed, r);
	if (answer < 0)
		return answer;
	place->index = asked.place.cell;
	place->value = answer == SHMLIMIT_ALLOWED ? asked.place.value : 0;
	place->bind_error = place->value != 0 && error != 0 ? registry_counted(l, error) : 0;
	return answer;
}

/* `undo` is a constant NULL or not, as `limit` of enter_by(). */
FAST int enter_asked(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                     const struct hold_share *share, struct undo *undo, struct shmlimit_result *r)
{
	struct request q = request_make(OP_ENTER, asked->rule, key_bytes(asked->key, asked->key_len), 1, when);
	struct gcra limit;
	int error = asked->cost == 1 ? 0 : -EOPNOTSUPP;

	q.undo = undo;
	if (error == 0 && asked->limit != NULL) {
		error = limit_make(asked->limit, &limit);
		q.limit = &limit;
	}
	return error != 0 ? error : enter_by(l, &q, q.limit, share, asked->place, r);
}

int places_enter(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                 struct shmlimit_result *r)
{
	return enter_asked(l, asked, when, NULL, NULL, r);
}

int places_enter_within(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                        const struct hold_share *share, struct undo *undo, struct shmlimit_result *r)
{
	return enter_asked(l, asked, when, share, undo, r);
}

int places_peek(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                struct shmlimit_result *r)
{
	struct request q = request_make(OP_AHEAD, asked->rule, key_bytes(asked->key, asked->key_len), 0, when);
	struct hold_request hold = { 0 };
	int answer;

	if (l == NULL || asked->place->struct_size < PLACE_SIZE_1_0 || asked->limit != NULL)
		return -EINVAL;
	if (asked->cost != 1)
		return -EOPNOTSUPP;
	hold.place = (struct hold_place){ asked->place->index, asked->place->value };
	q.hold = &hold;
	answer = decide_call(l, &q, r);
	return answer < 0 || (hold.done && asked->place->value != 0) ? answer : -ETIME;
}

EXPORT int shmlimit_enter(struct shmlimit *l, int rule, const void *key, size_t key_len, struct shmlimit_place *place,
                          struct shmlimit_result *r)
{
	struct request request = request_make(OP_ENTER, rule, key_bytes(key, key_len), 1, when_clock());

	return enter_by(l, &request, NULL, NULL, place, r);
}

EXPORT int shmlimit_renew(struct shmlimit *l, int rule, const void *key, size_t key_len, struct shmlimit_place *place)
{
	struct request q = request_make(OP_RENEW, rule, key_bytes(key, key_len), 0, when_clock());
	struct hold_request asked = { 0 };
	int answer;

	if (l == NULL || place == NULL || place->struct_size < PLACE_SIZE_1_0)
		return -EINVAL;
	asked.place = (struct hold_place){ place->index, place->value };
	q.hold = &asked;
	answer = decide_call(l, &q, NULL);
	if (answer < 0)
		return answer;
	place->value = asked.place.value;
	return asked.done || place->value == 0 ? 0 : -ETIME;
}

EXPORT int shmlimit_bind(struct shmlimit *l, int rule, const void *key, size_t key_len, struct shmlimit_place *place,
                         uint32_t pid)
{
	struct request request = request_make(OP_BIND, rule, key_bytes(key, key_len), 0, when_clock()), q;
	struct hold_request asked = { 0 };
	uint32_t failed = 0;
	int answer;

	if (l == NULL || place == NULL || place->struct_size < PLACE_SIZE_1_0)
		return -EINVAL;
	answer = decide_check(l, &request);
	if (answer == 0)
		answer = registry_counted(l, pid == 0 ? registry_self(l, &asked.holder)
		                                      : registry_process(l, pid, &asked.holder));
	if (answer != 0)
		return answer;
	asked.place = (struct hold_place){ place->index, place->value };
	request.hold = &asked;
	q = decide_complete(l, &request);
	answer = fast_bind(l, &q, &failed);
	if (answer == FIRST_NOT)
		answer = first_rest(l, &q, failed, NULL);
	if (answer < 0)
		return answer;
	return asked.done || place->value == 0 ? 0 : -ETIME;
}

EXPORT int shmlimit_leave(struct shmlimit *l, int rule, const void *key, size_t key_len,
                          const struct shmlimit_place *place)
{
	struct request request = request_make(OP_LEAVE, rule, key_bytes(key, key_len), 0, when_clock()), q;
	struct hold_request asked = { 0 };
	int answer;

	if (l == NULL || place == NULL || place->struct_size < PLACE_SIZE_1_0)
		return -EINVAL;
	asked.place = (struct hold_place){ place->index, place->value };
	asked.flags = place->flags;
	answer = decide_check(l, &request);
	if (answer != 0)
		return answer;
	request.hold = &asked;
	q = decide_complete(l, &request);
	answer = fast_leave(l, &q);
	if (answer == FIRST_NOT)
		answer = first_rest(l, &q, 0, NULL);
	if (answer < 0)
		return answer;
	return asked.done || place->value == 0 ? 0 : -ETIME;
}
