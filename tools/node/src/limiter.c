/*
 * limiter: the calls for class Limiter in index.js that decide. It says what they mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "addon.h"

enum hold_call { ENTER, RENEW, LEAVE };

typedef int (*decision)(struct shmlimit *, int, const void *, size_t, uint64_t, struct shmlimit_result *);

/* A rule's id: it is given, or looked up by its name, for a name may have another id after it was removed. */
static int read_rule(napi_env env, struct shmlimit *limiter, napi_value value)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 8];
	double id;
	int error;

	if (napi_get_value_double(env, value, &id) == napi_ok)
		return id >= 0 && id < SHMLIMIT_RULES_MAX && id == (int)id ? (int)id : -EINVAL;
	error = read_name(env, value, name, sizeof(name));
	return error != 0 ? error : shmlimit_rule_find(limiter, name);
}

/* ruleFind(limiter, name) */
static napi_value rule_find(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);

	return integer(env, limiter == NULL ? -EBADF : read_rule(env, limiter, argv[1]));
}

/* What a decision is about. */
struct subject {
	struct shmlimit *limiter;
	int rule;
	const void *key;
	size_t length;
	char buffer[KEY_SIZE];
};

/* From the first three arguments. Returns 0, or an error. */
static inline int read_subject(napi_env env, const struct addon *addon, const napi_value *argv, struct subject *s)
{
	s->limiter = table_get(env, &addon->limiters, argv[0]);
	if (s->limiter == NULL)
		return -EBADF;
	s->rule = read_rule(env, s->limiter, argv[1]);
	s->key = read_bytes(env, argv[2], s->buffer, sizeof(s->buffer), &s->length);
	return s->rule < 0 ? s->rule : s->key == NULL ? -EINVAL : 0;
}

static napi_value answered(napi_env env, struct addon *addon, int answer, const struct shmlimit_result *r)
{
	if (answer >= 0) {
		addon->numbers[LIMIT] = (double)r->limit;
		addon->numbers[REMAINING] = (double)r->remaining;
		addon->numbers[WAIT_MS] = to_ms(r->wait_ns);
		addon->numbers[RETRY_AFTER_MS] = to_ms(r->retry_after_ns);
		addon->numbers[RESET_AFTER_MS] = to_ms(r->reset_after_ns);
	}
	return integer(env, answer);
}

/* limitParse(text, bytes): the limit goes to the bytes; or what is wrong with the text. */
static napi_value limit_parse(napi_env env, napi_callback_info info)
{
	struct shmlimit_limit limit = { .struct_size = sizeof(limit) };
	struct shmlimit_problem wrong = { .text = "must be a string of less than 256 bytes, none of them NUL" };
	napi_value argv[2], said = NULL;
	char text[256];
	void *bytes;
	size_t size;
	int error;

	(void)arguments(env, info, argv, 2);
	error = read_name(env, argv[0], text, sizeof(text));
	if (error == 0)
		error = shmlimit_limit_parse(text, &limit, &wrong);
	if (error == 0 && napi_get_buffer_info(env, argv[1], &bytes, &size) == napi_ok && size == sizeof(limit)) {
		memcpy(bytes, &limit, sizeof(limit));
		return NULL;
	}
	(void)napi_create_string_utf8(env, wrong.text, NAPI_AUTO_LENGTH, &said);
	return said;
}

/* takeLimit(limiter, rule, key, cost, limit, maxWaitMs), and all that have its arguments: the last two may be left out. */
static napi_value decide_limit(napi_env env, napi_callback_info info, enum shmlimit_verb verb)
{
	napi_value argv[6];
	struct addon *addon = arguments(env, info, argv, 6);
	napi_valuetype type = napi_undefined;
	struct shmlimit_request q = { .limit = NULL };
	struct shmlimit_limit limit;
	struct shmlimit_result r;
	struct subject s;
	void *bytes;
	size_t size;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0)
		answer = read_whole(env, argv[3], &q.cost);
	napi_typeof(env, argv[4], &type);
	if (answer == 0 && type != napi_undefined) {
		if (napi_get_buffer_info(env, argv[4], &bytes, &size) != napi_ok || size != sizeof(limit))
			return integer(env, -EINVAL);
		memcpy(&limit, bytes, sizeof(limit));
		q.limit = &limit;
	}
	napi_typeof(env, argv[5], &type);
	if (answer == 0 && type != napi_undefined)
		answer = read_ms(env, argv[5], &limit.max_wait_ns);
	if (answer != 0)
		return integer(env, answer);
	q.rule = s.rule;
	q.key = s.key;
	q.key_len = s.length;
	answer = shmlimit_decide(s.limiter, verb, &q, &r);
	if (verb == SHMLIMIT_TAKE_SOME && answer >= 0)
		addon->numbers[GRANTED] = (double)r.granted;
	return answered(env, addon, answer, &r);
}

static napi_value take_limit(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_TAKE);
}

/* takeSome(limiter, rule, key, most, limit) */
static napi_value take_some(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_TAKE_SOME);
}

static napi_value peek_limit(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_PEEK);
}

static napi_value reserve_limit(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_RESERVE);
}

static napi_value charge_limit(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_CHARGE);
}

static napi_value refund_limit(napi_env env, napi_callback_info info)
{
	return decide_limit(env, info, SHMLIMIT_REFUND);
}

/* take(limiter, rule, key, cost), and all that have its arguments. */
static napi_value decide(napi_env env, napi_callback_info info, decision decide_it)
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	struct shmlimit_result r;
	struct subject s;
	uint64_t cost;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0)
		answer = read_whole(env, argv[3], &cost);
	if (answer == 0)
		answer = decide_it(s.limiter, s.rule, s.key, s.length, cost, &r);
	return answered(env, addon, answer, &r);
}

static napi_value take(napi_env env, napi_callback_info info)
{
	return decide(env, info, shmlimit_take);
}

static napi_value peek(napi_env env, napi_callback_info info)
{
	return decide(env, info, shmlimit_peek);
}

static napi_value refund(napi_env env, napi_callback_info info)
{
	return decide(env, info, shmlimit_refund);
}

static napi_value charge(napi_env env, napi_callback_info info)
{
	return decide(env, info, shmlimit_charge);
}

/* reserve(limiter, rule, key, cost, maxWaitMs) */
static napi_value reserve(napi_env env, napi_callback_info info)
{
	napi_value argv[5];
	struct addon *addon = arguments(env, info, argv, 5);
	struct shmlimit_result r;
	struct subject s;
	uint64_t cost, max_wait_ns;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0 && (read_whole(env, argv[3], &cost) != 0 || read_ms(env, argv[4], &max_wait_ns) != 0))
		answer = -EINVAL;
	if (answer == 0)
		answer = shmlimit_reserve(s.limiter, s.rule, s.key, s.length, cost, max_wait_ns, &r);
	return answered(env, addon, answer, &r);
}

/* A whole number, also below 0; Infinity is the largest. Returns 0 or -EINVAL. */
static int read_signed(napi_env env, napi_value value, int64_t *out)
{
	double number;

	if (napi_get_value_double(env, value, &number) != napi_ok || number != floor(number) || number < -WHOLE_MAX)
		return -EINVAL;
	*out = number <= WHOLE_MAX ? (int64_t)number : INT64_MAX;
	return 0;
}

/* count(limiter, rule, key, n, ttlMs, bound, flags) */
static napi_value count(napi_env env, napi_callback_info info)
{
	napi_value argv[7];
	struct addon *addon = arguments(env, info, argv, 7);
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	struct subject s;
	uint64_t ttl_ns, flags;
	int64_t n, bound;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0 && (read_signed(env, argv[3], &n) != 0 || read_ms(env, argv[4], &ttl_ns) != 0 ||
	                    read_signed(env, argv[5], &bound) != 0 || read_whole(env, argv[6], &flags) != 0))
		answer = -EINVAL;
	if (answer == 0)
		answer = shmlimit_count(
			s.limiter, s.rule, s.key, s.length,
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .flags = (uint32_t)flags,
		                                          .n = n,
		                                          .bound = bound,
		                                          .ttl_ns = ttl_ns },
			&out);
	if (answer >= 0) {
		addon->numbers[COUNT] = (double)out.count;
		addon->numbers[APPLIED] = (double)out.applied;
		addon->numbers[TTL_MS] = to_ms(out.ttl_ns);
	}
	return integer(env, answer);
}

/* Enters by the limit of these bytes, or by the rule's where they are undefined. */
static int enter_by(napi_env env, const struct subject *s, napi_value bytes, struct shmlimit_place *place,
                    struct shmlimit_result *r)
{
	struct shmlimit_request q = { .rule = s->rule, .key = s->key, .key_len = s->length, .cost = 1, .place = place };
	napi_valuetype type = napi_undefined;
	struct shmlimit_limit limit;
	void *from = NULL;
	size_t size = 0;

	if (napi_typeof(env, bytes, &type) == napi_ok && type != napi_undefined) {
		if (napi_get_buffer_info(env, bytes, &from, &size) != napi_ok || size != sizeof(limit))
			return -EINVAL;
		memcpy(&limit, from, sizeof(limit));
		q.limit = &limit;
	}
	return shmlimit_decide(s->limiter, SHMLIMIT_TAKE, &q, r);
}

/*
 * enter(limiter, rule, key, bytes, limit): the place that is held goes to the bytes; limit may be left out. Also renew and
 * leave, of the place in them; leave has the place's flags in the limit's stead.
 */
static napi_value hold_call(napi_env env, napi_callback_info info, enum hold_call call)
{
	napi_value argv[5];
	struct addon *addon = arguments(env, info, argv, 5);
	struct shmlimit_place place;
	struct shmlimit_result r;
	struct subject s;
	void *bytes = NULL;
	size_t size = 0;
	bool is = false;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0 && (napi_is_buffer(env, argv[3], &is) != napi_ok || !is ||
	                    napi_get_buffer_info(env, argv[3], &bytes, &size) != napi_ok || size != sizeof(place)))
		answer = -EINVAL;
	if (answer != 0)
		return integer(env, answer);
	memcpy(&place, bytes, sizeof(place));
	place.struct_size = sizeof(place);
	/* If this process dies, the place is free. One that is not bound ends with its period. */
	place.flags = SHMLIMIT_PLACE_BIND;
	if (call == ENTER)
		answer = enter_by(env, &s, argv[4], &place, &r);
	else if (call == RENEW)
		answer = shmlimit_renew(s.limiter, s.rule, s.key, s.length, &place);
	else if (napi_get_value_uint32(env, argv[4], &place.flags) != napi_ok)
		answer = -EINVAL;
	else
		answer = shmlimit_leave(s.limiter, s.rule, s.key, s.length, &place);
	if (answer >= 0)
		memcpy(bytes, &place, sizeof(place));
	return call == ENTER ? answered(env, addon, answer, &r) : integer(env, answer);
}

static napi_value enter(napi_env env, napi_callback_info info)
{
	return hold_call(env, info, ENTER);
}

static napi_value renew(napi_env env, napi_callback_info info)
{
	return hold_call(env, info, RENEW);
}

static napi_value leave(napi_env env, napi_callback_info info)
{
	return hold_call(env, info, LEAVE);
}

#define NS_PER_SECOND UINT64_C(1000000000)

/* throttle(limiter, key, capacity, count, periodS, quantity) */
static napi_value throttle(napi_env env, napi_callback_info info)
{
	napi_value argv[6];
	struct addon *addon = arguments(env, info, argv, 6);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	char buffer[KEY_SIZE];
	uint64_t numbers[4], period_ns;
	int64_t reply[5];
	const void *key;
	size_t length;
	double count;
	int answer;

	if (limiter == NULL)
		return integer(env, -EBADF);
	key = read_bytes(env, argv[1], buffer, sizeof(buffer), &length);
	for (int i = 0; i < 4; i++)
		if (key == NULL || (i != 1 && read_whole(env, argv[2 + i], &numbers[i]) != 0))
			return integer(env, -EINVAL);
	if (napi_get_value_double(env, argv[3], &count) != napi_ok || numbers[2] > UINT64_MAX / NS_PER_SECOND)
		return integer(env, -EINVAL);
	period_ns = numbers[2] * NS_PER_SECOND;
	if (to_rate(count, &numbers[1], &period_ns) != 0 || period_ns % NS_PER_SECOND != 0)
		return integer(env, -EINVAL);
	numbers[2] = period_ns / NS_PER_SECOND;
	answer = shmlimit_throttle(limiter, key, length, numbers[0], numbers[1], numbers[2], numbers[3], reply);
	if (answer >= 0) {
		addon->numbers[LIMIT] = (double)reply[1];
		addon->numbers[REMAINING] = (double)reply[2];
		addon->numbers[WAIT_MS] = 0;
		addon->numbers[RETRY_AFTER_MS] = answer == SHMLIMIT_ALLOWED ? 0
		                                 : reply[3] < 0             ? to_ms(UINT64_MAX)
		                                                            : 1e3 * (double)reply[3];
		addon->numbers[RESET_AFTER_MS] = 1e3 * (double)reply[4];
	}
	return integer(env, answer);
}

/* reset(limiter, rule, key): without a key all keys of the rule, without a rule all keys. */
static napi_value reset(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	napi_valuetype rule_type = napi_undefined, key_type = napi_undefined;
	char buffer[KEY_SIZE];
	const void *key = NULL;
	size_t length = 0;
	int rule = SHMLIMIT_ALL_RULES;

	if (limiter == NULL)
		return integer(env, -EBADF);
	napi_typeof(env, argv[1], &rule_type);
	napi_typeof(env, argv[2], &key_type);
	if (rule_type != napi_undefined) {
		rule = read_rule(env, limiter, argv[1]);
		if (rule < 0)
			return integer(env, rule);
	}
	if (key_type != napi_undefined) {
		key = read_bytes(env, argv[2], buffer, sizeof(buffer), &length);
		if (key == NULL)
			return integer(env, -EINVAL);
	}
	return integer(env, shmlimit_reset(limiter, rule, key, length));
}

/* pause(limiter, rule, key, ms) */
static napi_value pause_key(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	uint64_t for_ns = 0;
	struct subject s;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0)
		answer = read_ms(env, argv[3], &for_ns);
	if (answer == 0)
		answer = shmlimit_pause(s.limiter, s.rule, s.key, s.length, for_ns);
	return integer(env, answer);
}

/* paused(limiter, rule, key): the milliseconds that are left, or an error. */
static napi_value paused(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	uint64_t left_ns = 0;
	napi_value left_ms = NULL;
	struct subject s;
	int answer = read_subject(env, addon, argv, &s);

	if (answer == 0)
		answer = shmlimit_paused(s.limiter, s.rule, s.key, s.length, &left_ns);
	if (answer < 0)
		return integer(env, answer);
	napi_create_double(env, to_ms(left_ns), &left_ms);
	return left_ms;
}

/* clang-format off */
const struct method limiter_methods[] = {
	{ "ruleFind", rule_find },
	{ "take", take },
	{ "peek", peek },
	{ "refund", refund },
	{ "charge", charge },
	{ "reserve", reserve },
	{ "limitParse", limit_parse },
	{ "takeLimit", take_limit },
	{ "takeSome", take_some },
	{ "peekLimit", peek_limit },
	{ "reserveLimit", reserve_limit },
	{ "chargeLimit", charge_limit },
	{ "refundLimit", refund_limit },
	{ "count", count },
	{ "enter", enter },
	{ "renew", renew },
	{ "leave", leave },
	{ "throttle", throttle },
	{ "pause", pause_key },
	{ "paused", paused },
	{ "reset", reset },
	{ NULL, NULL },
};
/* clang-format on */
