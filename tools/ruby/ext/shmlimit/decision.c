/*
 * decision: the methods of Shmlimit::Limiter that decide. Arguments are converted before the limiter is looked at: a
 * conversion may run Ruby code, which may close it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "limiter.h"

/* A new triple of throttle() waits this long for a writer of rules, in steps of 1 ms. */
#define LOCK_TRIES 5000

static VALUE result_class, count_class, limit_class;
static ID id_limit;

/* ---- limits that come with a call ---- */

static const rb_data_type_t limit_type = {
	.wrap_struct_name = "Shmlimit::Limit",
	.function = { NULL, RUBY_DEFAULT_FREE, NULL },
	.flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE limit_allocate(VALUE class)
{
	struct shmlimit_limit *limit;

	return TypedData_Make_Struct(class, struct shmlimit_limit, &limit_type, limit);
}

/* A text that was read. Runs no Ruby code. */
static void limit_parse(VALUE text, struct shmlimit_limit *limit)
{
	struct shmlimit_problem wrong;

	*limit = (struct shmlimit_limit){ .struct_size = sizeof(*limit) };
	if (memchr(RSTRING_PTR(text), '\0', (size_t)RSTRING_LEN(text)) != NULL)
		rb_raise(rb_eArgError, "a limit must not contain a NUL");
	if (shmlimit_limit_parse(StringValueCStr(text), limit, &wrong) != 0)
		rb_raise(rb_eArgError, "limit \"%" PRIsVALUE "\": %s", text, wrong.text);
}

/* Shmlimit::Limit.new(text) */
static VALUE limit_new(VALUE self, VALUE text)
{
	struct shmlimit_limit *limit;

	TypedData_Get_Struct(self, struct shmlimit_limit, &limit_type, limit);
	rb_check_frozen(self);
	Check_Type(text, T_STRING);
	limit_parse(text, limit);
	return rb_obj_freeze(self);
}

/* Returns whether there is one: a String, a Limit, or nil for none. Runs no Ruby code. */
static int limit_of(VALUE value, struct shmlimit_limit *limit)
{
	const struct shmlimit_limit *known;

	if (NIL_P(value))
		return 0;
	if (RB_TYPE_P(value, T_STRING)) {
		limit_parse(value, limit);
		return 1;
	}
	TypedData_Get_Struct(value, struct shmlimit_limit, &limit_type, known);
	*limit = *known;
	return 1;
}

/* A limit as text has no wait: it is the call's, or else the rule's. */
static int rule_wait(struct shmlimit *handle, int rule, uint64_t wait_ns, struct shmlimit_limit *limit)
{
	struct shmlimit_rule found = { .struct_size = sizeof(found) };
	int error = wait_ns == UINT64_MAX ? shmlimit_rule_get(handle, rule, &found) : 0;

	limit->max_wait_ns = wait_ns == UINT64_MAX ? found.max_wait_ns : wait_ns;
	return error;
}

/* ---- decisions ---- */

static VALUE result_of(int answer, const struct shmlimit_result *r)
{
	return rb_struct_new(result_class, answer == SHMLIMIT_ALLOWED ? Qtrue : Qfalse, ULL2NUM(r->limit),
	                     ULL2NUM(r->remaining), native_seconds(r->retry_after_ns),
	                     native_seconds(r->reset_after_ns), native_seconds(r->wait_ns));
}

/* limit: of the call; takes the keywords from the arguments. */
static int read_keywords(int *argc, VALUE *argv, struct shmlimit_limit *limit)
{
	VALUE value = Qundef;

	if (!rb_keyword_given_p())
		return 0;
	rb_get_kwargs(argv[--*argc], &id_limit, 0, 1, &value);
	return value != Qundef && limit_of(value, limit);
}

/* (rule, key, cost = 1, limit: nil) */
static int decide(int argc, VALUE *argv, VALUE self, enum shmlimit_verb verb, struct shmlimit_result *r)
{
	struct shmlimit_limit limit;
	int by_limit = read_keywords(&argc, argv, &limit), answer = 0;
	struct shmlimit_request q = { .limit = by_limit ? &limit : NULL };
	struct limiter *l;
	struct key key;

	rb_check_arity(argc, 2, 3);
	q.cost = argc > 2 ? native_u64(argv[2], "cost") : 1;
	key = native_key(argv[1]);
	q.key = key.bytes;
	q.key_len = key.length;
	l = limiter_of(self);
	q.rule = limiter_rule(self, l, argv[0]);
	if (by_limit && verb == SHMLIMIT_CHARGE)
		answer = rule_wait(l->handle, q.rule, UINT64_MAX, &limit);
	if (answer == 0)
		answer = shmlimit_decide(l->handle, verb, &q, r);
	RB_GC_GUARD(key.owner);
	return native_check(answer, argv[0]);
}

static VALUE decide_result(int argc, VALUE *argv, VALUE self, enum shmlimit_verb verb)
{
	struct shmlimit_result r;
	int answer = decide(argc, argv, self, verb, &r);

	return result_of(answer, &r);
}

static VALUE limiter_take(int argc, VALUE *argv, VALUE self)
{
	return decide_result(argc, argv, self, SHMLIMIT_TAKE);
}

static VALUE limiter_allow(int argc, VALUE *argv, VALUE self)
{
	return decide(argc, argv, self, SHMLIMIT_TAKE, NULL) == SHMLIMIT_ALLOWED ? Qtrue : Qfalse;
}

/* take_some(rule, key, most, limit: nil): how many tokens were taken */
static VALUE limiter_take_some(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_result r;

	rb_check_arity(argc - (rb_keyword_given_p() != 0), 3, 3);
	(void)decide(argc, argv, self, SHMLIMIT_TAKE_SOME, &r);
	return ULL2NUM(r.granted);
}

static VALUE limiter_peek(int argc, VALUE *argv, VALUE self)
{
	return decide_result(argc, argv, self, SHMLIMIT_PEEK);
}

static VALUE limiter_refund(int argc, VALUE *argv, VALUE self)
{
	return decide_result(argc, argv, self, SHMLIMIT_REFUND);
}

static VALUE limiter_charge(int argc, VALUE *argv, VALUE self)
{
	return decide_result(argc, argv, self, SHMLIMIT_CHARGE);
}

/* _reserve(rule, key, cost, max_wait, limit) */
static VALUE limiter_reserve(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_request q = { .limit = NULL };
	struct shmlimit_limit limit;
	struct shmlimit_result r;
	struct limiter *l;
	struct key key;
	uint64_t wait_ns;
	int answer;

	rb_check_arity(argc, 5, 5);
	q.cost = native_u64(argv[2], "cost");
	wait_ns = NIL_P(argv[3]) ? UINT64_MAX : native_ns(argv[3], "max_wait");
	if (limit_of(argv[4], &limit))
		q.limit = &limit;
	key = native_key(argv[1]);
	q.key = key.bytes;
	q.key_len = key.length;
	l = limiter_of(self);
	q.rule = limiter_rule(self, l, argv[0]);
	answer = q.limit != NULL ? rule_wait(l->handle, q.rule, wait_ns, &limit) : 0;
	if (answer == 0 && q.limit != NULL)
		answer = shmlimit_decide(l->handle, SHMLIMIT_RESERVE, &q, &r);
	else if (answer == 0)
		answer = shmlimit_reserve(l->handle, q.rule, q.key, q.key_len, q.cost, wait_ns, &r);
	RB_GC_GUARD(key.owner);
	return result_of(native_check(answer, argv[0]), &r);
}

/* _count(rule, key, by, ttl, bound, saturate, restart) */
static VALUE limiter_count(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	struct limiter *l = limiter_of(self);
	VALUE rule, bound;
	uint32_t how;
	struct key key;
	int answer;

	rb_check_arity(argc, 7, 7);
	rule = argv[0];
	key = native_key(argv[1]);
	bound = argv[4];
	how = (RTEST(argv[5]) ? SHMLIMIT_COUNT_SATURATE : 0) | (RTEST(argv[6]) ? SHMLIMIT_COUNT_RESTART : 0);
	answer = shmlimit_count(l->handle, limiter_rule(self, l, rule), key.bytes, key.length,
	                        &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                          .flags = how,
	                                                          .n = NUM2LL(argv[2]),
	                                                          .bound = NIL_P(bound) ? INT64_MAX : NUM2LL(bound),
	                                                          .ttl_ns = native_ns(argv[3], "ttl") },
	                        &out);
	RB_GC_GUARD(key.owner);
	answer = native_check(answer, rule);
	return rb_struct_new(count_class, answer == SHMLIMIT_ALLOWED ? Qtrue : Qfalse, LL2NUM(out.count),
	                     LL2NUM(out.applied), native_seconds(out.ttl_ns));
}

/*
 * _add(id, key, by, ttl, look): the count after it, as an Integer, for stores. With `look`, once a second: nil, and
 * nothing is done, since it is time to look whether the segment is still that of its name.
 */
static VALUE limiter_add(VALUE self, VALUE rule, VALUE key_value, VALUE by, VALUE ttl, VALUE look)
{
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	uint64_t ttl_ns = native_ns(ttl, "expires_in");
	int64_t n = NUM2LL(by);
	struct key key = native_key(key_value);
	struct limiter *l = limiter_of(self);
	struct timespec now;
	int answer;

	if (RTEST(look)) {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
		if (now.tv_sec - l->checked_s >= LIMITER_LOOK_EVERY_S) {
			l->checked_s = now.tv_sec;
			return Qnil;
		}
	}
	if (ttl_ns == 0 && !NIL_P(ttl))
		ttl_ns = 1;
	answer = shmlimit_count(l->handle, NUM2INT(rule), key.bytes, key.length,
	                        &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                          .flags = SHMLIMIT_COUNT_SATURATE,
	                                                          .n = n,
	                                                          .bound = INT64_MAX,
	                                                          .ttl_ns = ttl_ns },
	                        &out);
	RB_GC_GUARD(key.owner);
	if (answer == -ERANGE)
		rb_raise(rb_eArgError, "expires_in is longer than the store's TTL_MAX");
	native_check(answer, rule);
	/* Beyond what can be counted nothing is within a limit. */
	return LL2NUM(n > 0 && out.applied < n ? INT64_MAX : out.count);
}

/* take_all([rule, key, cost = 1, limit = nil], ...) */
static VALUE limiter_take_all(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_limit limits[SHMLIMIT_REQUESTS_MAX];
	VALUE owners[SHMLIMIT_REQUESTS_MAX], list;
	struct limiter *l;
	size_t n = (size_t)argc, failed = n;
	int answer;

	rb_check_arity(argc, 1, SHMLIMIT_REQUESTS_MAX);
	for (int i = 0; i < argc; i++) {
		VALUE request = argv[i];
		struct key key;
		long length;

		Check_Type(request, T_ARRAY);
		length = RARRAY_LEN(request);
		if (length < 2 || length > 4)
			rb_raise(rb_eArgError,
			         "a request must be [rule, key], [rule, key, cost] or [rule, key, cost, limit]");
		requests[i] = (struct shmlimit_request){ .cost = 1 };
		if (limit_of(rb_ary_entry(request, 3), &limits[i]))
			requests[i].limit = &limits[i];
		if (length > 2 && !NIL_P(rb_ary_entry(request, 2)))
			requests[i].cost = native_u64(rb_ary_entry(request, 2), "cost");
		/* Converting a later request may run Ruby code, which must not change this key. */
		key = native_key(rb_ary_entry(request, 1));
		key.owner = owners[i] = rb_str_new_frozen(key.owner);
		requests[i].key = RSTRING_PTR(key.owner);
		requests[i].key_len = key.length;
	}
	l = limiter_of(self);
	for (int i = 0; i < argc; i++)
		requests[i].rule = limiter_rule(self, l, rb_ary_entry(argv[i], 0));
	answer = shmlimit_take_all(l->handle, requests, n, &failed, results);
	for (int i = 0; i < argc; i++)
		RB_GC_GUARD(owners[i]);
	native_check(answer, failed < n ? rb_ary_entry(argv[failed], 0) : Qnil);
	list = rb_ary_new_capa(argc);
	for (size_t i = 0; i < n && i <= failed; i++)
		rb_ary_push(list, result_of(i == failed ? answer : SHMLIMIT_ALLOWED, &results[i]));
	return list;
}

/* throttle(key, capacity, count, period, quantity = 1) */
static VALUE limiter_throttle(int argc, VALUE *argv, VALUE self)
{
	uint64_t number[4] = { 0, 0, 0, 1 }, period_ns;
	int64_t reply[5];
	VALUE key, list;
	int answer;

	rb_check_arity(argc, 4, 5);
	for (int i = 1; i < argc; i++)
		if (i != 2)
			number[i - 1] = native_u64(argv[i], "a number of throttle");
	if (number[2] > UINT64_MAX / SECOND_NS)
		rb_raise(rb_eRangeError, "a period of throttle must be at most %" PRIu64 " s",
		         (uint64_t)(UINT64_MAX / SECOND_NS));
	period_ns = number[2] * SECOND_NS;
	number[1] = native_rate(argv[2], &period_ns);
	if (period_ns % SECOND_NS != 0)
		rb_raise(rb_eRangeError, "count %" PRIsVALUE ": must be of whole seconds", argv[2]);
	number[2] = period_ns / SECOND_NS;
	key = rb_str_new_frozen(native_key(argv[0]).owner);
	/* BOUND: LOCK_TRIES. */
	for (int tries = 0;; tries++) {
		answer = shmlimit_throttle(limiter_of(self)->handle, RSTRING_PTR(key), (size_t)RSTRING_LEN(key),
		                           number[0], number[1], number[2], number[3], reply);
		if (answer != -EAGAIN || tries >= LOCK_TRIES)
			break;
		rb_thread_wait_for((struct timeval){ .tv_usec = 1000 });
	}
	if (answer < 0)
		native_raise(answer, "throttle");
	list = rb_ary_new_capa(5);
	for (int i = 0; i < 5; i++)
		rb_ary_push(list, LL2NUM(reply[i]));
	RB_GC_GUARD(key);
	return list;
}

/* pause(rule, key, seconds) */
static VALUE limiter_pause(VALUE self, VALUE rule, VALUE key, VALUE seconds)
{
	uint64_t for_ns = native_ns(seconds, "a pause");
	struct key k = native_key(key);
	struct limiter *l = limiter_of(self);
	int answer = shmlimit_pause(l->handle, limiter_rule(self, l, rule), k.bytes, k.length, for_ns);

	RB_GC_GUARD(k.owner);
	return native_check(answer, rule) == SHMLIMIT_ALLOWED ? Qtrue : Qfalse;
}

/* paused(rule, key): for how many seconds still */
static VALUE limiter_paused(VALUE self, VALUE rule, VALUE key)
{
	struct key k = native_key(key);
	struct limiter *l = limiter_of(self);
	uint64_t left_ns = 0;
	int answer = shmlimit_paused(l->handle, limiter_rule(self, l, rule), k.bytes, k.length, &left_ns);

	RB_GC_GUARD(k.owner);
	native_check(answer, rule);
	return native_seconds(left_ns);
}

/* reset(rule = nil, key = nil) */
static VALUE limiter_reset(int argc, VALUE *argv, VALUE self)
{
	struct key key = { 0 };
	struct limiter *l;
	int rule = SHMLIMIT_ALL_RULES, answer;

	rb_check_arity(argc, 0, 2);
	if (argc > 1 && !NIL_P(argv[1]) && NIL_P(argv[0]))
		rb_raise(rb_eArgError, "a key is reset under a rule");
	if (argc > 1 && !NIL_P(argv[1]))
		key = native_key(argv[1]);
	l = limiter_of(self);
	if (argc > 0 && !NIL_P(argv[0])) {
		rule = limiter_rule(self, l, argv[0]);
		if (rule < 0)
			native_check(-ESRCH, argv[0]);
	}
	answer = shmlimit_reset(l->handle, rule, key.bytes, key.length);
	RB_GC_GUARD(key.owner);
	return INT2NUM(native_check(answer, argc > 0 ? argv[0] : Qnil));
}

/* _enter(rule, key, limit): [index, value] of the place, or nil. A value of 0 is a place that need not be left. */
static VALUE limiter_enter(VALUE self, VALUE rule, VALUE key_value, VALUE limit_value)
{
	/* If this process dies, the place is free. One that is not bound ends with its period. */
	struct shmlimit_place place = { .struct_size = sizeof(place), .flags = SHMLIMIT_PLACE_BIND };
	struct shmlimit_limit limit;
	int by_limit = limit_of(limit_value, &limit), answer;
	struct key key = native_key(key_value);
	struct limiter *l = limiter_of(self);
	struct shmlimit_request q = { .rule = limiter_rule(self, l, rule),
		                      .key = key.bytes,
		                      .key_len = key.length,
		                      .cost = 1,
		                      .limit = by_limit ? &limit : NULL,
		                      .place = &place };

	answer = shmlimit_decide(l->handle, SHMLIMIT_TAKE, &q, NULL);
	RB_GC_GUARD(key.owner);
	if (native_check(answer, rule) != SHMLIMIT_ALLOWED)
		return Qnil;
	return rb_assoc_new(UINT2NUM(place.index), ULL2NUM(place.value));
}

/* False if the place has ended; else what it is now. */
static VALUE place_of(int error, const struct shmlimit_place *place, VALUE rule)
{
	if (error == -ETIME)
		return Qfalse;
	native_check(error, rule);
	return ULL2NUM(place->value);
}

/* _renew(rule, key, index, value) */
static VALUE limiter_renew(VALUE self, VALUE rule, VALUE key_value, VALUE index, VALUE value)
{
	struct shmlimit_place place = { .struct_size = sizeof(place),
		                        .index = NUM2UINT(index),
		                        .value = NUM2ULL(value) };
	struct key key = native_key(key_value);
	struct limiter *l = limiter_of(self);
	int error = shmlimit_renew(l->handle, limiter_rule(self, l, rule), key.bytes, key.length, &place);

	RB_GC_GUARD(key.owner);
	return place_of(error, &place, rule);
}

/* _leave(rule, key, index, value, flags) */
static VALUE limiter_leave(VALUE self, VALUE rule, VALUE key_value, VALUE index, VALUE value, VALUE flags)
{
	struct shmlimit_place place = { .struct_size = sizeof(place),
		                        .index = NUM2UINT(index),
		                        .value = NUM2ULL(value),
		                        .flags = NUM2UINT(flags) };
	struct key key = native_key(key_value);
	struct limiter *l = limiter_of(self);
	int error = shmlimit_leave(l->handle, limiter_rule(self, l, rule), key.bytes, key.length, &place);

	RB_GC_GUARD(key.owner);
	return place_of(error, &place, rule);
}

void decision_init(VALUE shmlimit, VALUE limiter)
{
	result_class = rb_struct_define_under(shmlimit, "Result", "allowed", "limit", "remaining", "retry_after",
	                                      "reset_after", "wait", NULL);
	count_class = rb_struct_define_under(shmlimit, "Count", "allowed", "count", "applied", "ttl", NULL);
	rb_gc_register_mark_object(result_class);
	rb_gc_register_mark_object(count_class);

	limit_class = rb_define_class_under(shmlimit, "Limit", rb_cObject);
	rb_gc_register_mark_object(limit_class);
	rb_define_alloc_func(limit_class, limit_allocate);
	rb_define_method(limit_class, "initialize", limit_new, 1);
	id_limit = rb_intern("limit");
	rb_define_private_method(limiter, "_reserve", limiter_reserve, -1);
	rb_define_private_method(limiter, "_count", limiter_count, -1);
	rb_define_method(limiter, "_add", limiter_add, 5);
	rb_define_method(limiter, "take", limiter_take, -1);
	rb_define_method(limiter, "allow?", limiter_allow, -1);
	rb_define_method(limiter, "take_some", limiter_take_some, -1);
	rb_define_method(limiter, "peek", limiter_peek, -1);
	rb_define_method(limiter, "refund", limiter_refund, -1);
	rb_define_method(limiter, "charge", limiter_charge, -1);
	rb_define_method(limiter, "take_all", limiter_take_all, -1);
	rb_define_method(limiter, "throttle", limiter_throttle, -1);
	rb_define_method(limiter, "pause", limiter_pause, 3);
	rb_define_method(limiter, "paused", limiter_paused, 2);
	rb_define_method(limiter, "reset", limiter_reset, -1);
	rb_define_private_method(limiter, "_enter", limiter_enter, 3);
	rb_define_method(limiter, "_renew", limiter_renew, 4);
	rb_define_method(limiter, "_leave", limiter_leave, 5);
}
