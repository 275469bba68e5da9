/*
 * limiter: the class Limiter. The segments stay open from request to request, and a segment that was replaced under its
 * name is opened again by the next object that names it, within a second.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "php_shmlimit.h"

#include <errno.h>
#include <time.h>

#include "zend_exceptions.h"

#define HINTS 64

struct handle {
	struct shared shared;
	struct shmlimit *limiter;
	time_t looked_s; /* when it was last seen whether the segment is still that of its name */
	int ids[HINTS];  /* where a rule's name was found last, by the name's hash */
};

struct limiter {
	struct handle *handle; /* NULL before the constructor */
	zend_object std;
};

static zend_object_handlers handlers;

static zend_always_inline struct limiter *limiter_of(zend_object *object)
{
	return (struct limiter *)((char *)object - XtOffsetOf(struct limiter, std));
}

/* ---- handles ---- */

static void handle_destroy(struct shared *shared)
{
	struct handle *handle = (struct handle *)shared;

	shmlimit_close(handle->limiter);
	pefree(handle, 1);
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

/* The one that is kept, unless its segment was replaced; with a reference, or NULL. */
static struct handle *handle_kept(const zend_string *name)
{
	struct handle *handle = (struct handle *)shared_find(&SHMLIMIT_G(handles), name);
	time_t now = now_s();

	if (handle == NULL || handle->looked_s == now)
		return handle;
	handle->looked_s = now;
	if (shmlimit_gone(handle->limiter) == 0)
		return handle;
	shared_forget(&SHMLIMIT_G(handles), name);
	shared_release(&handle->shared);
	return NULL;
}

/* Returns NULL after throwing. */
static struct handle *handle_open(const zend_string *segment, uint32_t flags, uint32_t owner)
{
	zend_string *name = strpprintf(0, "%u %u %s", flags, owner, shmlimit_name(segment));
	struct handle *handle = handle_kept(name);
	struct shmlimit *limiter;
	int error = 0;

	if (handle == NULL) {
		struct shmlimit_options options = { .struct_size = sizeof(options), .owner = owner };

		error = shmlimit_open(shmlimit_name(segment), flags | SHMLIMIT_OPEN_TRUSTED, &options, &limiter);
		if (error == 0) {
			handle = pemalloc(sizeof(*handle), 1);
			handle->shared.destroy = handle_destroy;
			handle->limiter = limiter;
			memset(handle->ids, 0, sizeof(handle->ids));
			handle->looked_s = now_s();
			shared_add(&SHMLIMIT_G(handles), name, &handle->shared);
		}
	}
	zend_string_release(name);
	if (error != 0)
		shmlimit_throw(error, segment, NULL);
	return handle;
}

/* ---- objects ---- */

static zend_object *limiter_new(zend_class_entry *ce)
{
	struct limiter *l = zend_object_alloc(sizeof(struct limiter), ce);

	l->handle = NULL;
	zend_object_std_init(&l->std, ce);
	object_properties_init(&l->std, ce);
	l->std.handlers = &handlers;
	return &l->std;
}

static void limiter_free(zend_object *object)
{
	struct limiter *l = limiter_of(object);

	if (l->handle != NULL)
		shared_release(&l->handle->shared);
	zend_object_std_dtor(object);
}

void shmlimit_limiter_class(zend_class_entry *ce)
{
	ce->create_object = limiter_new;
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = XtOffsetOf(struct limiter, std);
	handlers.free_obj = limiter_free;
	handlers.clone_obj = NULL;
}

PHP_METHOD(Shmlimit_Limiter, __construct)
{
	struct limiter *l = limiter_of(Z_OBJ_P(ZEND_THIS));
	bool read_only = false;
	zend_string *segment;
	zend_long owner = 0;

	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(segment)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(read_only)
		Z_PARAM_LONG(owner)
	ZEND_PARSE_PARAMETERS_END();
	if (l->handle != NULL) {
		zend_throw_error(NULL, "Cannot construct a Limiter twice");
		RETURN_THROWS();
	}
	l->handle = handle_open(segment, read_only ? SHMLIMIT_OPEN_READ_ONLY : 0, (uint32_t)owner);
	if (l->handle != NULL)
		ZVAL_STR_COPY(shmlimit_member(&l->std, 0), segment);
}

/* The segment's name, for errors. */
static const zend_string *segment_of(zend_object *object)
{
	return Z_STR_P(OBJ_PROP_NUM(object, 0));
}

/* NULL after throwing: without a constructor there is nothing to ask. */
static zend_always_inline struct shmlimit *opened(zend_object *object)
{
	struct limiter *l = limiter_of(object);

	if (EXPECTED(l->handle != NULL))
		return l->handle->limiter;
	zend_throw_error(NULL, "The Limiter was not constructed");
	return NULL;
}

/*
 * The id of a rule, or an error. A rule that was removed and set again has another one, so what was found last is compared.
 * WHY NOT look it up each time: that is 45 ns more for each rule before it.
 */
static zend_always_inline int rule_id(zend_object *object, zend_string *rule)
{
	struct handle *handle = limiter_of(object)->handle;
	int *hint = &handle->ids[ZSTR_HASH(rule) % HINTS], id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	if (EXPECTED(shmlimit_rule_name(handle->limiter, *hint, name) == 0 && strcmp(name, ZSTR_VAL(rule)) == 0 &&
	             strlen(name) == ZSTR_LEN(rule)))
		return *hint;
	id = shmlimit_rule_find(handle->limiter, shmlimit_name(rule));
	if (id >= 0)
		*hint = id;
	return id;
}

/* Throws if `answer` is an error. */
static zend_always_inline bool is_answer(zend_object *object, const zend_string *rule, int answer)
{
	if (EXPECTED(answer >= 0))
		return true;
	shmlimit_throw(answer, segment_of(object), rule);
	return false;
}

void shmlimit_limiter_look(zend_object *object)
{
	limiter_of(object)->handle->looked_s = 0;
}

struct shmlimit *shmlimit_limiter_opened(zend_object *object)
{
	return opened(object);
}

bool shmlimit_limiter_is_answer(zend_object *object, const zend_string *rule, int answer)
{
	return is_answer(object, rule, answer);
}

/* ---- decisions ---- */

/* Returns false after throwing. */
static bool limit_read(const zend_string *text, struct shmlimit_limit *limit)
{
	struct shmlimit_problem wrong = { .text = "contains a NUL" };
	char *subject;
	int error = -EINVAL;

	*limit = (struct shmlimit_limit){ .struct_size = sizeof(*limit) };
	if (strlen(ZSTR_VAL(text)) == ZSTR_LEN(text))
		error = shmlimit_limit_parse(ZSTR_VAL(text), limit, &wrong);
	if (error == 0)
		return true;
	spprintf(&subject, 0, "limit \"%s\"", ZSTR_VAL(text));
	shmlimit_throw_words(error, subject, wrong.text);
	efree(subject);
	return false;
}

static zend_always_inline bool waits(enum shmlimit_verb verb)
{
	return verb == SHMLIMIT_RESERVE || verb == SHMLIMIT_ACQUIRE;
}

/* A limit as text has no wait: it is the call's, or else the rule's. Returns 0, or an error. */
static int limit_wait(struct shmlimit *limiter, int id, zend_long max_wait_ns, struct shmlimit_limit *limit)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int error = max_wait_ns == ZEND_LONG_MAX ? shmlimit_rule_get(limiter, id, &rule) : 0;

	limit->max_wait_ns = max_wait_ns == ZEND_LONG_MAX ? rule.max_wait_ns : (uint64_t)max_wait_ns;
	return error;
}

/* The rule is looked up each time: one that was removed and set again has another id. */
static zend_always_inline void decide(INTERNAL_FUNCTION_PARAMETERS, enum shmlimit_verb verb)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_long cost = 1, max_wait_ns = ZEND_LONG_MAX;
	zend_string *rule, *key, *text = NULL;
	struct shmlimit_request q = { .limit = NULL };
	struct shmlimit_limit limit;
	struct shmlimit_result r;
	int answer;

	if (verb == SHMLIMIT_TAKE_SOME) {
		ZEND_PARSE_PARAMETERS_START(3, 4)
			Z_PARAM_STR(rule)
			Z_PARAM_STR(key)
			Z_PARAM_LONG(cost)
			Z_PARAM_OPTIONAL
			Z_PARAM_STR_OR_NULL(text)
		ZEND_PARSE_PARAMETERS_END();
	} else if (!waits(verb)) {
		ZEND_PARSE_PARAMETERS_START(2, 4)
			Z_PARAM_STR(rule)
			Z_PARAM_STR(key)
			Z_PARAM_OPTIONAL
			Z_PARAM_LONG(cost)
			Z_PARAM_STR_OR_NULL(text)
		ZEND_PARSE_PARAMETERS_END();
	} else {
		ZEND_PARSE_PARAMETERS_START(2, 5)
			Z_PARAM_STR(rule)
			Z_PARAM_STR(key)
			Z_PARAM_OPTIONAL
			Z_PARAM_LONG(cost)
			Z_PARAM_LONG(max_wait_ns)
			Z_PARAM_STR_OR_NULL(text)
		ZEND_PARSE_PARAMETERS_END();
	}
	if (limiter == NULL || (text != NULL && !limit_read(text, &limit)))
		RETURN_THROWS();
	answer = cost < 0 || max_wait_ns < 0 ? -EINVAL : rule_id(Z_OBJ_P(ZEND_THIS), rule);
	q.rule = answer;
	q.key = ZSTR_VAL(key);
	q.key_len = ZSTR_LEN(key);
	q.cost = (uint64_t)cost;
	if (text != NULL)
		q.limit = &limit;
	if (answer >= 0 && text != NULL && (waits(verb) || verb == SHMLIMIT_CHARGE))
		answer = limit_wait(limiter, q.rule, max_wait_ns, &limit);
	if (answer >= 0 && text == NULL && verb == SHMLIMIT_RESERVE)
		answer = shmlimit_reserve(limiter, q.rule, q.key, q.key_len, q.cost, (uint64_t)max_wait_ns, &r);
	else if (answer >= 0 && text == NULL && verb == SHMLIMIT_ACQUIRE)
		answer = shmlimit_acquire(limiter, q.rule, q.key, q.key_len, q.cost, (uint64_t)max_wait_ns, &r);
	else if (answer >= 0)
		answer = shmlimit_decide(limiter, verb, &q, &r);
	if (!is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		return;
	if (verb == SHMLIMIT_TAKE_SOME)
		RETURN_LONG((zend_long)r.granted);
	shmlimit_return_result(return_value, answer, &r);
}

PHP_METHOD(Shmlimit_Limiter, take)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_TAKE);
}

PHP_METHOD(Shmlimit_Limiter, takeSome)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_TAKE_SOME);
}

PHP_METHOD(Shmlimit_Limiter, peek)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_PEEK);
}

PHP_METHOD(Shmlimit_Limiter, refund)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_REFUND);
}

PHP_METHOD(Shmlimit_Limiter, charge)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_CHARGE);
}

PHP_METHOD(Shmlimit_Limiter, reserve)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_RESERVE);
}

PHP_METHOD(Shmlimit_Limiter, acquire)
{
	decide(INTERNAL_FUNCTION_PARAM_PASSTHRU, SHMLIMIT_ACQUIRE);
}

PHP_METHOD(Shmlimit_Limiter, count)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	zend_long n = 1, ttl_ns = 0, bound = ZEND_LONG_MAX, flags = 0;
	zend_string *rule, *key;
	int answer;

	ZEND_PARSE_PARAMETERS_START(2, 6)
		Z_PARAM_STR(rule)
		Z_PARAM_STR(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(n)
		Z_PARAM_LONG(ttl_ns)
		Z_PARAM_LONG(bound)
		Z_PARAM_LONG(flags)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = ttl_ns < 0 || flags != (uint32_t)flags ? -EINVAL : rule_id(Z_OBJ_P(ZEND_THIS), rule);
	if (answer >= 0)
		answer = shmlimit_count(
			limiter, answer, ZSTR_VAL(key), ZSTR_LEN(key),
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .flags = (uint32_t)flags,
		                                          .n = n,
		                                          .bound = bound,
		                                          .ttl_ns = (uint64_t)ttl_ns },
			&count);
	if (is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		shmlimit_return_count(return_value, answer, &count);
}

/* Returns 0; 1 after throwing; or an error, of `*rule`. */
static int request_of(struct shmlimit *limiter, zval *value, struct shmlimit_request *request,
                      struct shmlimit_limit *own, const zend_string **rule)
{
	zend_object *limit = Z_OBJ_P(value);
	zval *key;

	if (Z_TYPE_P(LIMIT_RULE(limit)) != IS_STRING)
		return -EINVAL;
	*rule = Z_STR_P(LIMIT_RULE(limit));
	key = LIMIT_KEY(limit);
	*request = (struct shmlimit_request){ .rule = shmlimit_rule_find(limiter, shmlimit_name(*rule)) };
	if (Z_TYPE_P(LIMIT_LIMIT(limit)) == IS_STRING) {
		if (!limit_read(Z_STR_P(LIMIT_LIMIT(limit)), own))
			return 1;
		request->limit = own;
	}
	request->key = Z_TYPE_P(key) == IS_STRING ? Z_STRVAL_P(key) : "";
	request->key_len = Z_TYPE_P(key) == IS_STRING ? Z_STRLEN_P(key) : 0;
	request->cost = (uint64_t)Z_LVAL_P(LIMIT_COST(limit));
	return Z_LVAL_P(LIMIT_COST(limit)) < 0 ? -EINVAL : request->rule < 0 ? request->rule : 0;
}

PHP_METHOD(Shmlimit_Limiter, takeAll)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_limit own[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
	const zend_string *rule = NULL;
	size_t n = 0, failed = 0;
	HashTable *limits;
	int answer = 0;
	zval *value;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(limits)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	ZEND_HASH_FOREACH_VAL(limits, value)
	{
		ZVAL_DEREF(value);
		if (Z_TYPE_P(value) != IS_OBJECT || Z_OBJCE_P(value) != shmlimit_limit_ce) {
			zend_argument_type_error(1, "must be an array of Shmlimit\\Limit");
			RETURN_THROWS();
		}
		answer =
			n == SHMLIMIT_REQUESTS_MAX ? -EINVAL : request_of(limiter, value, &requests[n], &own[n], &rule);
		n++;
		if (answer == 1 || !is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
			RETURN_THROWS();
	}
	ZEND_HASH_FOREACH_END();
	answer = shmlimit_take_all(limiter, requests, n, &failed, results);
	if (!is_answer(Z_OBJ_P(ZEND_THIS), NULL, answer))
		RETURN_THROWS();
	n = answer == SHMLIMIT_ALLOWED ? n : failed + 1;
	array_init_size(return_value, n);
	for (size_t i = 0; i < n; i++) {
		zval result;

		shmlimit_return_result(&result, answer == SHMLIMIT_DENIED && i == failed, &results[i]);
		add_next_index_zval(return_value, &result);
	}
}

#define SECOND_NS UINT64_C(1000000000)

PHP_METHOD(Shmlimit_Limiter, throttle)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_long capacity, period_s, quantity = 1;
	uint64_t refill, period_ns;
	zend_string *key;
	int64_t reply[5];
	int answer = -EINVAL;
	zval *count;

	ZEND_PARSE_PARAMETERS_START(4, 5)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(capacity)
		Z_PARAM_NUMBER(count)
		Z_PARAM_LONG(period_s)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(quantity)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	if (capacity >= 0 && !(Z_TYPE_P(count) == IS_LONG && Z_LVAL_P(count) < 0) && period_s >= 0 &&
	    (uint64_t)period_s <= UINT64_MAX / SECOND_NS && quantity >= 0) {
		period_ns = (uint64_t)period_s * SECOND_NS;
		if (!shmlimit_rate(count, &refill, &period_ns))
			RETURN_THROWS();
		if (period_ns % SECOND_NS == 0)
			answer = shmlimit_throttle(limiter, ZSTR_VAL(key), ZSTR_LEN(key), (uint64_t)capacity, refill,
			                           period_ns / SECOND_NS, (uint64_t)quantity, reply);
	}
	if (!is_answer(Z_OBJ_P(ZEND_THIS), NULL, answer))
		RETURN_THROWS();
	array_init_size(return_value, 5);
	for (int i = 0; i < 5; i++)
		add_next_index_long(return_value, (zend_long)reply[i]);
}

PHP_METHOD(Shmlimit_Limiter, pause)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_string *rule, *key;
	zend_long for_ns;
	int answer;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(rule)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(for_ns)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = for_ns < 0 ? -EINVAL : rule_id(Z_OBJ_P(ZEND_THIS), rule);
	if (answer >= 0)
		answer = shmlimit_pause(limiter, answer, ZSTR_VAL(key), ZSTR_LEN(key), (uint64_t)for_ns);
	if (is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		RETURN_BOOL(answer == SHMLIMIT_ALLOWED);
}

PHP_METHOD(Shmlimit_Limiter, paused)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_string *rule, *key;
	uint64_t left_ns = 0;
	int answer;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(rule)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = rule_id(Z_OBJ_P(ZEND_THIS), rule);
	if (answer >= 0)
		answer = shmlimit_paused(limiter, answer, ZSTR_VAL(key), ZSTR_LEN(key), &left_ns);
	if (is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		RETURN_LONG((zend_long)left_ns);
}

/* What PHP keeps of a place is a string of its bytes. */
PHP_METHOD(Shmlimit_Limiter, enter)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	struct shmlimit_place place = { .struct_size = sizeof(place), .flags = SHMLIMIT_PLACE_BIND };
	zend_string *rule, *key;
	int answer;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(rule)
		Z_PARAM_STR(key)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = rule_id(Z_OBJ_P(ZEND_THIS), rule);
	if (answer >= 0)
		answer = shmlimit_enter(limiter, answer, ZSTR_VAL(key), ZSTR_LEN(key), &place, NULL);
	if (is_answer(Z_OBJ_P(ZEND_THIS), rule, answer) && answer == SHMLIMIT_ALLOWED)
		RETURN_STRINGL((const char *)&place, sizeof(place));
}

PHP_METHOD(Shmlimit_Limiter, leave)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_string *rule, *key, *packed;
	struct shmlimit_place place;
	int answer;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(rule)
		Z_PARAM_STR(key)
		Z_PARAM_STR(packed)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = ZSTR_LEN(packed) != sizeof(place) ? -EINVAL : rule_id(Z_OBJ_P(ZEND_THIS), rule);
	if (answer >= 0) {
		memcpy(&place, ZSTR_VAL(packed), sizeof(place));
		place.flags = 0;
		answer = shmlimit_leave(limiter, answer, ZSTR_VAL(key), ZSTR_LEN(key), &place);
	}
	if (answer == -ETIME)
		RETURN_FALSE;
	if (is_answer(Z_OBJ_P(ZEND_THIS), rule, answer))
		RETURN_TRUE;
}

PHP_METHOD(Shmlimit_Limiter, reset)
{
	struct shmlimit *limiter = opened(Z_OBJ_P(ZEND_THIS));
	zend_string *rule = NULL, *key = NULL;
	int answer;

	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR_OR_NULL(rule)
		Z_PARAM_STR_OR_NULL(key)
	ZEND_PARSE_PARAMETERS_END();
	if (limiter == NULL)
		RETURN_THROWS();
	answer = rule == NULL ? SHMLIMIT_ALL_RULES : shmlimit_rule_find(limiter, shmlimit_name(rule));
	answer = shmlimit_reset(limiter, answer, key == NULL ? NULL : ZSTR_VAL(key), key == NULL ? 0 : ZSTR_LEN(key));
	is_answer(Z_OBJ_P(ZEND_THIS), rule, answer);
}
