/*
 * segment: the methods of Limiter that decide nothing: segments, rules, keys, header fields.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "php_shmlimit.h"

#include <errno.h>

PHP_METHOD(Shmlimit_Limiter, create)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	zend_long slots = 0, mode = 0, group = -1;
	zend_string *segment;
	int error = -EINVAL;

	ZEND_PARSE_PARAMETERS_START(1, 4)
		Z_PARAM_STR(segment)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(slots)
		Z_PARAM_LONG(mode)
		Z_PARAM_LONG(group)
	ZEND_PARSE_PARAMETERS_END();
	options.slots = (uint64_t)slots;
	options.mode = (uint32_t)mode;
	options.flags = group < 0 ? 0 : SHMLIMIT_OPTION_GROUP;
	options.gid = group < 0 ? 0 : (uint32_t)group;
	if (slots >= 0 && mode == (uint32_t)mode)
		error = shmlimit_create(shmlimit_name(segment), &options, NULL);
	if (error != 0 && error != -EEXIST) {
		shmlimit_throw(error, segment, NULL);
		RETURN_THROWS();
	}
	RETURN_BOOL(error == 0);
}

/* The number by which the library knows what setRule() was given last; 0: nothing. */
static uint64_t mark_of(struct shmlimit *limiter, const zend_string *name)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int id = shmlimit_rule_find(limiter, shmlimit_name(name));

	return id >= 0 && shmlimit_rule_get(limiter, id, &rule) == 0 ? rule.mark : 0;
}

bool shmlimit_rate(const zval *rate, uint64_t *refill, uint64_t *period_ns)
{
	double given = zval_get_double((zval *)(uintptr_t)rate);
	char subject[64], words[96] = "must be a finite number above 0, of a period above 0";
	int error;

	if (Z_TYPE_P(rate) == IS_LONG) {
		*refill = (uint64_t)Z_LVAL_P(rate);
		return true;
	}
	error = shmlimit_rate_from_double(given, *period_ns, refill, period_ns);
	if (error == 0)
		return true;
	if (error == -ERANGE)
		snprintf(words, sizeof(words), "the nearest that can be is %.17g",
		         given < 1 ? (double)*period_ns * 0x1p-60 : 0x1p64 - 2048);
	snprintf(subject, sizeof(subject), "rate %.17g", given);
	shmlimit_throw_words(error, subject, words);
	return false;
}

PHP_METHOD(Shmlimit_Limiter, setRule)
{
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	zend_long capacity, period_ns, algorithm = SHMLIMIT_FUNNEL, max_wait_ns = 0;
	zend_string *name;
	uint64_t before;
	zval *refill;
	int id;

	ZEND_PARSE_PARAMETERS_START(4, 6)
		Z_PARAM_STR(name)
		Z_PARAM_LONG(capacity)
		Z_PARAM_NUMBER(refill)
		Z_PARAM_LONG(period_ns)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(algorithm)
		Z_PARAM_LONG(max_wait_ns)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	if (capacity < 0 || (Z_TYPE_P(refill) == IS_LONG && Z_LVAL_P(refill) < 0) || period_ns < 0 ||
	    algorithm != (uint32_t)algorithm || max_wait_ns < 0) {
		shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), name, -EINVAL);
		RETURN_THROWS();
	}
	before = mark_of(limiter, name);
	rule.algorithm = (uint32_t)algorithm;
	rule.capacity = (uint64_t)capacity;
	rule.period_ns = (uint64_t)period_ns;
	if (!shmlimit_rate(refill, &rule.refill, &rule.period_ns))
		RETURN_THROWS();
	rule.max_wait_ns = (uint64_t)max_wait_ns;
	id = shmlimit_rule_ensure(limiter, shmlimit_name(name), &rule);
	if (shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), name, id))
		RETURN_BOOL(mark_of(limiter, name) != before);
}

PHP_METHOD(Shmlimit_Limiter, setLimit)
{
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_problem wrong = { .text = "contains a NUL" };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	zend_string *name, *limit;
	zend_long max_wait_ns = 0;
	int answer = -EINVAL;
	uint64_t before;

	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(name)
		Z_PARAM_STR(limit)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(max_wait_ns)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	if (strlen(ZSTR_VAL(limit)) == ZSTR_LEN(limit))
		answer = shmlimit_rule_parse(ZSTR_VAL(limit), &rule, &wrong);
	if (answer != 0) {
		char *subject;

		spprintf(&subject, 0, "limit \"%s\"", ZSTR_VAL(limit));
		shmlimit_throw_words(answer, subject, wrong.text);
		efree(subject);
		RETURN_THROWS();
	}
	before = mark_of(limiter, name);
	rule.max_wait_ns = (uint64_t)max_wait_ns;
	answer = max_wait_ns < 0 ? -EINVAL : shmlimit_rule_ensure(limiter, shmlimit_name(name), &rule);
	if (shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), name, answer))
		RETURN_BOOL(mark_of(limiter, name) != before);
}

PHP_METHOD(Shmlimit_Limiter, limit)
{
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	char text[SHMLIMIT_RULE_TEXT_MAX];
	zend_string *name;
	int answer;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = shmlimit_rule_find(limiter, shmlimit_name(name));
	if (answer >= 0)
		answer = shmlimit_rule_get(limiter, answer, &rule);
	if (answer == 0)
		answer = shmlimit_rule_text(&rule, text);
	if (shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), name, answer))
		RETURN_STRING(text);
}

PHP_METHOD(Shmlimit_Limiter, keyIp)
{
	zend_long prefix_v4 = 32, prefix_v6 = 64, nth = 0;
	char key[SHMLIMIT_KEY_IP_MAX];
	zend_string *address;
	int length = -EINVAL;

	ZEND_PARSE_PARAMETERS_START(1, 4)
		Z_PARAM_STR(address)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(prefix_v4)
		Z_PARAM_LONG(prefix_v6)
		Z_PARAM_LONG(nth)
	ZEND_PARSE_PARAMETERS_END();
	if (prefix_v4 == (unsigned)prefix_v4 && prefix_v6 == (unsigned)prefix_v6 && nth == (int)nth)
		length = shmlimit_key_ip_text(shmlimit_name(address), (int)nth, (unsigned)prefix_v4,
		                              (unsigned)prefix_v6, key, sizeof(key));
	if (length < 0) {
		shmlimit_throw(length, address, NULL);
		RETURN_THROWS();
	}
	RETURN_STRINGL(key, (size_t)length);
}

static uint64_t number(zend_object *result, uint32_t i)
{
	return (uint64_t)Z_LVAL_P(OBJ_PROP_NUM(result, i));
}

PHP_METHOD(Shmlimit_Limiter, fields)
{
	static const char *const names[] = { "RateLimit-Policy", "RateLimit", "Retry-After" };
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_rule params = { .struct_size = sizeof(params) };
	struct shmlimit_fields out = { .struct_size = sizeof(out) };
	struct shmlimit_gate_field fields[3];
	struct shmlimit_result r = { .limit = 0 };
	zend_object *result;
	zend_string *rule;
	zval *object;
	uint32_t n = 0;
	int id, answer;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(rule)
		Z_PARAM_OBJECT_OF_CLASS(object, shmlimit_result_ce)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	result = Z_OBJ_P(object);
	id = shmlimit_rule_find(limiter, shmlimit_name(rule));
	answer = id < 0 ? id : shmlimit_rule_get(limiter, id, &params);
	if (answer == 0 && Z_TYPE_P(OBJ_PROP_NUM(result, 0)) == IS_UNDEF)
		answer = -EINVAL;
	if (answer == 0 && params.mode != SHMLIMIT_ENFORCE) {
		RETURN_EMPTY_ARRAY();
	} else if (answer == 0) {
		r.limit = number(result, 1);
		r.remaining = number(result, 2);
		r.retry_after_ns = number(result, 4) == ZEND_LONG_MAX ? UINT64_MAX : number(result, 4);
		r.reset_after_ns = number(result, 5);
		answer = shmlimit_fields(shmlimit_name(rule), &params, Z_TYPE_P(OBJ_PROP_NUM(result, 0)) == IS_FALSE,
		                         &r, &out);
	}
	if (!shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		RETURN_THROWS();
	for (uint32_t i = 0; i < 3; i++) {
		const char *value = i == 0 ? out.policy : i == 1 ? out.limit : out.retry_after;

		if (value[0] != '\0')
			fields[n++] = (struct shmlimit_gate_field){ names[i], value, (uint32_t)strlen(names[i]),
				                                    (uint32_t)strlen(value) };
	}
	shmlimit_fields_array(return_value, fields, n);
}

PHP_METHOD(Shmlimit_Limiter, gone)
{
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	int answer;

	ZEND_PARSE_PARAMETERS_NONE();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = shmlimit_gone(limiter);
	if (answer == 1)
		shmlimit_limiter_look(Z_OBJ_P(ZEND_THIS));
	if (shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), NULL, answer))
		RETURN_BOOL(answer == 1);
}

PHP_METHOD(Shmlimit_Limiter, owner)
{
	struct shmlimit *limiter = shmlimit_limiter_opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	ZEND_PARSE_PARAMETERS_NONE();
	if (limiter == NULL)
		RETURN_THROWS();
	if (shmlimit_limiter_is_answer(Z_OBJ_P(ZEND_THIS), NULL, shmlimit_info(limiter, &info)))
		RETURN_LONG(info.uid);
}
