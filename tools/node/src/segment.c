/*
 * segment: the calls for class Limiter in index.js that decide nothing: segments and rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "addon.h"

#define OPTIONS 8       /* numbers that describe a segment */
#define RULE_NUMBERS 12 /* numbers that describe a rule */

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
static double *read_numbers(napi_env env, napi_value value, size_t n)
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
	if (error == 0) {
		struct shmlimit_options options = { .struct_size = sizeof(options), .owner = (uint32_t)owner };

		error = shmlimit_open(name, (uint32_t)flags | SHMLIMIT_OPEN_TRUSTED, &options, &limiter);
	}
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
			.on_full = (uint32_t)n[3],
			.clock = (uint32_t)n[4],
			.flags = n[5] != 0 ? SHMLIMIT_OPTION_GROUP : 0,
			.gid = n[5] != 0 ? (uint32_t)(n[5] - 1) : 0,
			.store_keys = (uint32_t)n[6],
			.slots_max = (uint64_t)n[7],
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
	struct shmlimit *limiter = table_remove(env, &addon->limiters, argv[0]);

	shmlimit_close(limiter);
	return integer(env, limiter == NULL ? -EBADF : 0);
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

/* 0, or an error. */
static int rule_of(const double *n, struct shmlimit_rule *rule)
{
	*rule = (struct shmlimit_rule){
		.struct_size = sizeof(struct shmlimit_rule),
		.algorithm = (uint32_t)n[0],
		.mode = (uint32_t)n[1],
		.flags = (uint32_t)n[2],
		.capacity = (uint64_t)n[3],
		.period_ns = (uint64_t)n[5],
		.max_wait_ns = (uint64_t)n[6],
		.warmup_ns = (uint64_t)n[7],
		.cold_factor_milli = (uint32_t)n[8],
		.credit = (uint32_t)n[9],
		.law = (uint32_t)n[10],
		.least = (uint32_t)n[11],
	};
	return to_rate(n[4], &rule->refill, &rule->period_ns);
}

/* A string, or undefined: none. 0, or an error. */
static int read_zone(napi_env env, napi_value value, struct shmlimit_rule *rule)
{
	napi_valuetype type = napi_undefined;

	(void)napi_typeof(env, value, &type);
	return type == napi_undefined ? 0 : read_name(env, value, rule->zone, sizeof(rule->zone));
}

static napi_value define_rule(napi_env env, napi_callback_info info,
                              int (*define)(struct shmlimit *, const char *, const struct shmlimit_rule *))
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	struct shmlimit *limiter = table_get(env, &addon->limiters, argv[0]);
	const double *n = read_numbers(env, argv[2], RULE_NUMBERS);
	char name[SHMLIMIT_RULE_NAME_MAX + 8];
	int answer = limiter == NULL ? -EBADF : n == NULL ? -EINVAL : read_name(env, argv[1], name, sizeof(name));

	if (answer == 0) {
		struct shmlimit_rule rule;

		answer = rule_of(n, &rule);
		answer = answer != 0 ? answer : read_zone(env, argv[3], &rule);
		answer = answer != 0 ? answer : define(limiter, name, &rule);
	}
	return integer(env, answer);
}

/* ruleSet(limiter, name, numbers, zone) */
static napi_value rule_set(napi_env env, napi_callback_info info)
{
	return define_rule(env, info, shmlimit_rule_set);
}

/* ruleEnsure(limiter, name, numbers, zone) */
static napi_value rule_ensure(napi_env env, napi_callback_info info)
{
	return define_rule(env, info, shmlimit_rule_ensure);
}

static napi_value list_of_one(napi_env env, const char *text)
{
	napi_value list = NULL, element;

	if (napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &element) == napi_ok &&
	    napi_create_array_with_length(env, 1, &list) == napi_ok)
		(void)napi_set_element(env, list, 0, element);
	return list;
}

/*
 * ruleParse(text, numbers): the rule goes to the numbers, of which the algorithm is given. What is wrong with the text; or an
 * array of its time zone, if it has one.
 */
static napi_value rule_parse(napi_env env, napi_callback_info info)
{
	struct shmlimit_problem wrong = { .text = "must be a string of less than 256 bytes, none of them NUL" };
	napi_value argv[2], said = NULL;
	char text[256];
	double *n;
	int error;

	(void)arguments(env, info, argv, 2);
	n = read_numbers(env, argv[1], RULE_NUMBERS);
	error = n == NULL ? -EINVAL : read_name(env, argv[0], text, sizeof(text));
	if (error == 0) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = (uint32_t)n[0] };

		error = shmlimit_rule_parse(text, &rule, &wrong);
		if (error == 0) {
			n[0] = rule.algorithm;
			n[1] = rule.mode;
			n[2] = rule.flags;
			n[3] = (double)rule.capacity;
			n[4] = (double)rule.refill;
			n[5] = (double)rule.period_ns;
			n[10] = rule.law;
			n[11] = rule.least;
			return rule.zone[0] == '\0' ? NULL : list_of_one(env, rule.zone);
		}
	}
	(void)napi_create_string_utf8(env, wrong.text, NAPI_AUTO_LENGTH, &said);
	return said;
}

/* ruleText(numbers, zone): a string, or an error. */
static napi_value rule_text(napi_env env, napi_callback_info info)
{
	napi_value argv[2], said = NULL;
	char text[SHMLIMIT_RULE_TEXT_MAX];
	const double *n;
	int error = -EINVAL;

	(void)arguments(env, info, argv, 2);
	n = read_numbers(env, argv[0], RULE_NUMBERS);
	if (n != NULL) {
		struct shmlimit_rule rule;

		error = rule_of(n, &rule);
		error = error != 0 ? error : read_zone(env, argv[1], &rule);
		error = error != 0 ? error : shmlimit_rule_text(&rule, text);
	}
	if (error != 0)
		return integer(env, error);
	(void)napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &said);
	return said;
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

const struct method segment_methods[] = {
	{ "open", open },
	{ "create", create },
	{ "close", close },
	{ "destroy", destroy },
	{ "gone", gone },
	{ "ruleSet", rule_set },
	{ "ruleEnsure", rule_ensure },
	{ "ruleParse", rule_parse },
	{ "ruleText", rule_text },
	{ "ruleRemove", rule_remove },
	{ NULL, NULL },
};
