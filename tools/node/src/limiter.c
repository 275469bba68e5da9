/*
 * limiter: the calls on a segment, for class Limiter in index.js, which says what they mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "addon.h"

#define OPTIONS 9      /* numbers that describe a segment */
#define RULE_NUMBERS 9 /* numbers that describe a rule */

enum hold_call { ENTER, RENEW, LEAVE };

typedef int (*decision)(struct shmlimit *, int, const void *, size_t, uint64_t, struct shmlimit_result *);

void limiter_free(void *limiter)
{
	shmlimit_close(limiter);
}

static napi_value add_limiter(napi_env env, struct addon *addon, int answer, struct shmlimit *limiter)
{
	if (answer == 0) {
		answer = table_add(&addon->limiters, limiter);
		if (answer < 0)
			shmlimit_close(limiter);
	}
	return integer(env, answer);
}

/* `n` numbers of a Float64Array that index.js has made. */
static const double *read_numbers(napi_env env, napi_value value, size_t n)
{
	napi_typedarray_type type;
	size_t length = 0;
	void *data = NULL;

	return napi_get_typedarray_info(env, value, &type, &length, &data, NULL, NULL) == napi_ok &&
	                       type == napi_float64_array && length == n
	               ? data
	               : NULL;
}

/* open(name, flags, owner) */
static napi_value open(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	char name[SHMLIMIT_NAME_MAX + 8];
	struct shmlimit *limiter = NULL;
	uint64_t flags, owner;
	int error = read_name(env, argv[0], name, sizeof(name));

	if (error == 0 &&
	    (read_whole(env, argv[1], &flags) != 0 || read_whole(env, argv[2], &owner) != 0 || owner > UINT32_MAX))
		error = -EINVAL;
	if (error == 0)
		error = shmlimit_open_owned(name, (uint32_t)flags, (uint32_t)owner, &limiter);
	return add_limiter(env, addon, error, limiter);
}

/* create(name, numbers) */
static napi_value create(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	const double *n = read_numbers(env, argv[1], OPTIONS);
	char name[SHMLIMIT_NAME_MAX + 8];
	struct shmlimit *limiter = NULL;
	int error = n == NULL ? -EINVAL : read_name(env, argv[0], name, sizeof(name));

	if (error == 0) {
		struct shmlimit_options options = {
			.struct_size = sizeof(options),
			.mode = (uint32_t)n[0],
			.slots = (uint64_t)n[1],
			.rules = (uint32_t)n[2],
			.window_max = (uint32_t)n[3],
			.on_full = (uint32_t)n[4],
			.clock = (uint32_t)n[5],
			.group = (uint64_t)n[6],
			.store_keys = (uint32_t)n[7],
			.slots_max = (uint64_t)n[8],
		};
		error = shmlimit_create(name, &options, &limiter);
	}
	return add_limiter(env, addon, error, limiter);
}

/* close(limiter) */
static napi_value close(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	uint32_t at;

	if (table_get(env, &addon->limiters, argv[0]) == NULL)
		return integer(env, -EBADF);
	napi_get_value_uint32(env, argv[0], &at);
	shmlimit_close(addon->limiters.items[at]);
	addon->limiters.items[at] = NULL;
	return integer(env, 0);
}

/* destroy(name) */
static napi_value destroy(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	char name[SHMLIMIT_NAME_MAX + 8];
	int error;

	arguments(env, info, argv, 1);
	error = read_name(env, argv[0], name, sizeof(name));
	return integer(env, error != 0 ? error : shmlimit_destroy(name));
}

/* gone(limiter) */
static napi_value gone(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);

	return integer(env, limiter == NULL ? -EBADF : shmlimit_gone(limiter));
}

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

/* ruleSet(limiter, name, numbers) */
static napi_value rule_set(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	const double *n = read_numbers(env, argv[2], RULE_NUMBERS);
	char name[SHMLIMIT_RULE_NAME_MAX + 8];
	int answer = limiter == NULL ? -EBADF : n == NULL ? -EINVAL : read_name(env, argv[1], name, sizeof(name));

	if (answer == 0) {
		struct shmlimit_rule rule = {
			.struct_size = sizeof(rule),
			.algorithm = (uint32_t)n[0],
			.mode = (uint32_t)n[1],
			.flags = (uint32_t)n[2],
			.capacity = (uint64_t)n[3],
			.count = (uint64_t)n[4],
			.period_ns = (uint64_t)n[5],
			.max_wait_ns = (uint64_t)n[6],
			.warmup_ns = (uint64_t)n[7],
			.cold_factor_milli = (uint32_t)n[8],
		};
		answer = shmlimit_rule_set(limiter, name, &rule);
	}
	return integer(env, answer);
}

/* ruleRemove(limiter, name) */
static napi_value rule_remove(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	char name[SHMLIMIT_RULE_NAME_MAX + 8];
	int answer = limiter == NULL ? -EBADF : read_name(env, argv[1], name, sizeof(name));

	return integer(env, answer != 0 ? answer : shmlimit_rule_remove(limiter, name));
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

/* take(limiter, rule, key, cost), and all that have its arguments. */
static napi_value decide(napi_env env, napi_callback_info info, decision decide_it)
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	struct shmlimit_result r;
	char buffer[KEY_SIZE];
	const void *key;
	uint64_t cost;
	size_t length;
	int rule;

	if (limiter == NULL)
		return integer(env, -EBADF);
	rule = read_rule(env, limiter, argv[1]);
	key = read_bytes(env, argv[2], buffer, sizeof(buffer), &length);
	if (rule < 0 || key == NULL || read_whole(env, argv[3], &cost) != 0)
		return integer(env, rule < 0 ? rule : -EINVAL);
	return answered(env, addon, decide_it(limiter, rule, key, length, cost, &r), &r);
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
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	struct shmlimit_result r;
	char buffer[KEY_SIZE];
	uint64_t cost, max_wait_ns;
	const void *key;
	size_t length;
	int rule;

	if (limiter == NULL)
		return integer(env, -EBADF);
	rule = read_rule(env, limiter, argv[1]);
	key = read_bytes(env, argv[2], buffer, sizeof(buffer), &length);
	if (rule < 0 || key == NULL || read_whole(env, argv[3], &cost) != 0 || read_ms(env, argv[4], &max_wait_ns) != 0)
		return integer(env, rule < 0 ? rule : -EINVAL);
	return answered(env, addon, shmlimit_reserve(limiter, rule, key, length, cost, max_wait_ns, &r), &r);
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
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	char buffer[KEY_SIZE];
	uint64_t ttl_ns, flags;
	int64_t n, bound;
	const void *key;
	size_t length;
	int rule, answer;

	if (limiter == NULL)
		return integer(env, -EBADF);
	rule = read_rule(env, limiter, argv[1]);
	key = read_bytes(env, argv[2], buffer, sizeof(buffer), &length);
	if (rule < 0 || key == NULL || read_signed(env, argv[3], &n) != 0 || read_ms(env, argv[4], &ttl_ns) != 0 ||
	    read_signed(env, argv[5], &bound) != 0 || read_whole(env, argv[6], &flags) != 0)
		return integer(env, rule < 0 ? rule : -EINVAL);
	answer = shmlimit_count(limiter, rule, key, length, n, ttl_ns, bound, (uint32_t)flags, &out);
	if (answer >= 0) {
		addon->numbers[COUNT] = (double)out.count;
		addon->numbers[APPLIED] = (double)out.applied;
		addon->numbers[TTL_MS] = to_ms(out.ttl_ns);
	}
	return integer(env, answer);
}

/* enter(limiter, rule, key, bytes): the place that is held goes to the bytes. Also renew and leave, of the place in them. */
static napi_value hold_call(napi_env env, napi_callback_info info, enum hold_call call)
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	struct shmlimit_hold hold;
	struct shmlimit_result r;
	char buffer[KEY_SIZE];
	void *bytes = NULL;
	const void *key;
	size_t length, size = 0;
	bool is = false;
	int rule, answer;

	if (limiter == NULL)
		return integer(env, -EBADF);
	rule = read_rule(env, limiter, argv[1]);
	key = read_bytes(env, argv[2], buffer, sizeof(buffer), &length);
	if (rule < 0 || key == NULL || napi_is_buffer(env, argv[3], &is) != napi_ok || !is ||
	    napi_get_buffer_info(env, argv[3], &bytes, &size) != napi_ok || size != sizeof(hold))
		return integer(env, rule < 0 ? rule : -EINVAL);
	memcpy(&hold, bytes, sizeof(hold));
	hold.struct_size = sizeof(hold);
	if (call == ENTER)
		answer = shmlimit_enter(limiter, rule, key, length, 1, &hold, &r);
	else if (call == RENEW)
		answer = shmlimit_renew(limiter, rule, key, length, &hold);
	else
		answer = shmlimit_leave(limiter, rule, key, length, &hold);
	if (answer >= 0)
		memcpy(bytes, &hold, sizeof(hold));
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

/* throttle(limiter, key, capacity, count, periodS, quantity) */
static napi_value throttle(napi_env env, napi_callback_info info)
{
	napi_value argv[6];
	struct addon *addon = arguments(env, info, argv, 6);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	char buffer[KEY_SIZE];
	uint64_t numbers[4];
	int64_t reply[5];
	const void *key;
	size_t length;
	int answer;

	if (limiter == NULL)
		return integer(env, -EBADF);
	key = read_bytes(env, argv[1], buffer, sizeof(buffer), &length);
	for (int i = 0; i < 4; i++)
		if (key == NULL || read_whole(env, argv[2 + i], &numbers[i]) != 0)
			return integer(env, -EINVAL);
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
	int rule = -1;

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
		if (key == NULL || rule < 0)
			return integer(env, -EINVAL);
	}
	return integer(env, shmlimit_reset(limiter, rule, key, length));
}

/* clang-format off */
const struct method limiter_methods[] = {
	{ "open", open },
	{ "create", create },
	{ "close", close },
	{ "destroy", destroy },
	{ "gone", gone },
	{ "ruleFind", rule_find },
	{ "ruleSet", rule_set },
	{ "ruleRemove", rule_remove },
	{ "take", take },
	{ "peek", peek },
	{ "refund", refund },
	{ "charge", charge },
	{ "reserve", reserve },
	{ "count", count },
	{ "enter", enter },
	{ "renew", renew },
	{ "leave", leave },
	{ "throttle", throttle },
	{ "reset", reset },
	{ NULL, NULL },
};
/* clang-format on */
