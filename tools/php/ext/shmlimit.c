/*
 * shmlimit: the module, and the classes whose objects are values.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "php_shmlimit.h"
#include "ext/spl/spl_exceptions.h"
#include "ext/standard/info.h"
#include "zend_exceptions.h"

static void declare_property(zend_class_entry *class, const char *name, size_t length, uint32_t types)
{
	zend_string *string = zend_string_init(name, length, 1);
	zval none;

	ZVAL_UNDEF(&none);
	zend_declare_typed_property(class, string, &none, ZEND_ACC_PUBLIC | ZEND_ACC_READONLY, NULL,
	                            (zend_type)ZEND_TYPE_INIT_MASK(types));
	zend_string_release(string);
}

#include "shmlimit_arginfo.h"

zend_class_entry *shmlimit_limit_ce, *shmlimit_result_ce;
static zend_class_entry *error_ce, *count_ce, *answer_ce;

ZEND_DECLARE_MODULE_GLOBALS(shmlimit)

/* ---- errors ---- */

static void set(zend_object *object, zend_class_entry *scope, const char *name, zend_string *value)
{
	zval string;

	ZVAL_STR(&string, value);
	zend_update_property(scope, object, name, strlen(name), &string);
	zval_ptr_dtor(&string);
}

/* Takes the references of both strings. */
static void fill_error(zend_object *object, zend_string *subject, zend_string *words, zend_long code)
{
	set(object, zend_ce_exception, "message", strpprintf(0, "%s: %s", ZSTR_VAL(subject), ZSTR_VAL(words)));
	zend_update_property_long(zend_ce_exception, object, "code", 4, code);
	set(object, error_ce, "subject", subject);
	if (!EG(exception))
		set(object, error_ce, "words", words);
	else
		zend_string_release(words);
}

PHP_METHOD(Shmlimit_Error, __construct)
{
	zend_string *subject, *words;
	zend_long code;

	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(subject)
		Z_PARAM_STR(words)
		Z_PARAM_LONG(code)
	ZEND_PARSE_PARAMETERS_END();
	fill_error(Z_OBJ_P(ZEND_THIS), zend_string_copy(subject), zend_string_copy(words), code);
}

void shmlimit_throw_words(int error, const char *subject, const char *words)
{
	zval exception;

	object_init_ex(&exception, error_ce);
	fill_error(Z_OBJ(exception), zend_string_init(subject, strlen(subject), 0),
	           zend_string_init(words, strlen(words), 0), -(zend_long)error);
	zend_throw_exception_object(&exception);
}

void shmlimit_throw(int error, const zend_string *segment, const zend_string *rule)
{
	zend_string *about = rule == NULL ? zend_string_copy((zend_string *)segment)
	                                  : strpprintf(0, "%s: rule %s", ZSTR_VAL(segment), ZSTR_VAL(rule));

	shmlimit_throw_words(error, ZSTR_VAL(about), shmlimit_strerror(error));
	zend_string_release(about);
}

/* ---- values ---- */

/* Constructors set each member once: the first says whether it has been. */
static bool is_new(zend_object *object)
{
	if (Z_TYPE_P(OBJ_PROP_NUM(object, 0)) == IS_UNDEF)
		return true;
	zend_throw_error(NULL, "Cannot modify readonly properties of %s", ZSTR_VAL(object->ce->name));
	return false;
}

static void fill_result(zend_object *o, bool allowed, const zend_long numbers[5])
{
	ZVAL_BOOL(shmlimit_member(o, 0), allowed);
	for (uint32_t i = 0; i < 5; i++)
		ZVAL_LONG(shmlimit_member(o, 1 + i), numbers[i]);
}

PHP_METHOD(Shmlimit_Result, __construct)
{
	zend_long n[5];
	bool allowed;

	ZEND_PARSE_PARAMETERS_START(6, 6)
		Z_PARAM_BOOL(allowed)
		Z_PARAM_LONG(n[0])
		Z_PARAM_LONG(n[1])
		Z_PARAM_LONG(n[2])
		Z_PARAM_LONG(n[3])
		Z_PARAM_LONG(n[4])
	ZEND_PARSE_PARAMETERS_END();
	if (is_new(Z_OBJ_P(ZEND_THIS)))
		fill_result(Z_OBJ_P(ZEND_THIS), allowed, n);
}

void shmlimit_return_result(zval *return_value, int answer, const struct shmlimit_result *r)
{
	const zend_long n[5] = { shmlimit_long(r->limit), shmlimit_long(r->remaining), shmlimit_long(r->wait_ns),
		                 shmlimit_long(r->retry_after_ns), shmlimit_long(r->reset_after_ns) };

	object_init_ex(return_value, shmlimit_result_ce);
	fill_result(Z_OBJ_P(return_value), answer == SHMLIMIT_ALLOWED, n);
}

static void fill_count(zend_object *o, bool allowed, zend_long count, zend_long applied, zend_long ttl_ns)
{
	ZVAL_BOOL(shmlimit_member(o, 0), allowed);
	ZVAL_LONG(shmlimit_member(o, 1), count);
	ZVAL_LONG(shmlimit_member(o, 2), applied);
	ZVAL_LONG(shmlimit_member(o, 3), ttl_ns);
}

PHP_METHOD(Shmlimit_Count, __construct)
{
	zend_long count, applied, ttl_ns;
	bool allowed;

	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_BOOL(allowed)
		Z_PARAM_LONG(count)
		Z_PARAM_LONG(applied)
		Z_PARAM_LONG(ttl_ns)
	ZEND_PARSE_PARAMETERS_END();
	if (is_new(Z_OBJ_P(ZEND_THIS)))
		fill_count(Z_OBJ_P(ZEND_THIS), allowed, count, applied, ttl_ns);
}

void shmlimit_return_count(zval *return_value, int answer, const struct shmlimit_count *c)
{
	object_init_ex(return_value, count_ce);
	fill_count(Z_OBJ_P(return_value), answer == SHMLIMIT_ALLOWED, c->count, c->applied, shmlimit_long(c->ttl_ns));
}

static void put_string(zend_object *object, uint32_t i, zend_string *string)
{
	if (string == NULL)
		ZVAL_NULL(shmlimit_member(object, i));
	else
		ZVAL_STR_COPY(shmlimit_member(object, i), string);
}

PHP_METHOD(Shmlimit_Limit, __construct)
{
	zend_string *rule, *key, *rate = NULL, *limit = NULL;
	zend_long cost = 1, estimate = 0;
	bool has_no_estimate = true, has_no_share = true;
	double share = 0;
	zend_object *o = Z_OBJ_P(ZEND_THIS);
	int error;

	ZEND_PARSE_PARAMETERS_START(2, 7)
		Z_PARAM_STR(rule)
		Z_PARAM_STR_OR_NULL(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(cost)
		Z_PARAM_STR_OR_NULL(rate)
		Z_PARAM_STR_OR_NULL(limit)
		Z_PARAM_LONG_OR_NULL(estimate, has_no_estimate)
		Z_PARAM_DOUBLE_OR_NULL(share, has_no_share)
	ZEND_PARSE_PARAMETERS_END();
	if (!is_new(o))
		RETURN_THROWS();
	error = shmlimit_check_names(NULL, shmlimit_name(rule));
	if (error != 0) {
		shmlimit_throw(error, rule, NULL);
		RETURN_THROWS();
	}
	put_string(o, 0, rule);
	put_string(o, 1, key);
	ZVAL_LONG(shmlimit_member(o, 2), cost);
	put_string(o, 3, rate);
	put_string(o, 4, limit);
	if (has_no_estimate)
		ZVAL_NULL(shmlimit_member(o, 5));
	else
		ZVAL_LONG(shmlimit_member(o, 5), estimate);
	if (has_no_share)
		ZVAL_NULL(shmlimit_member(o, 6));
	else
		ZVAL_DOUBLE(shmlimit_member(o, 6), share);
}

/* By SHMLIMIT_GATE_UNLIMITED ... */
static const char *const statuses[] = { "unlimited", "passed",  "rejected",       "rejected-dry-run",
	                                "failed",    "delayed", "delayed-dry-run" };
static zend_string *status_strings[sizeof(statuses) / sizeof(statuses[0])];

/* The members of an Answer. fill_answer() takes the references of status, fields and places. */
struct answer_members {
	zend_string *status;
	zend_long refusal;
	zval *fields;
	zend_long remaining, retry_after_ns;
	zend_string *places; /* or NULL */
};

static void fill_answer(zend_object *o, const struct answer_members *m)
{
	ZVAL_STR(shmlimit_member(o, 0), m->status);
	ZVAL_LONG(shmlimit_member(o, 1), m->refusal);
	ZVAL_COPY_VALUE(shmlimit_member(o, 2), m->fields);
	ZVAL_LONG(shmlimit_member(o, 3), m->remaining);
	ZVAL_LONG(shmlimit_member(o, 4), m->retry_after_ns);
	if (m->places == NULL)
		ZVAL_NULL(shmlimit_member(o, 5));
	else
		ZVAL_STR(shmlimit_member(o, 5), m->places);
}

PHP_METHOD(Shmlimit_Answer, __construct)
{
	zend_long refusal = 0, remaining = ZEND_LONG_MAX, retry_after_ns = 0;
	zval *given = NULL, fields;
	zend_string *status, *places = NULL;

	ZEND_PARSE_PARAMETERS_START(1, 6)
		Z_PARAM_STR(status)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(refusal)
		Z_PARAM_ARRAY(given)
		Z_PARAM_LONG(remaining)
		Z_PARAM_LONG(retry_after_ns)
		Z_PARAM_STR_OR_NULL(places)
	ZEND_PARSE_PARAMETERS_END();
	if (!is_new(Z_OBJ_P(ZEND_THIS)))
		RETURN_THROWS();
	if (given == NULL)
		ZVAL_EMPTY_ARRAY(&fields);
	else
		ZVAL_COPY(&fields, given);
	fill_answer(Z_OBJ_P(ZEND_THIS),
	            &(struct answer_members){ zend_string_copy(status), refusal, &fields, remaining, retry_after_ns,
	                                      places == NULL ? NULL : zend_string_copy(places) });
}

void shmlimit_return_answer(zval *return_value, const struct shmlimit_gate_answer *answer, zval *fields,
                            zend_string *places)
{
	object_init_ex(return_value, answer_ce);
	fill_answer(Z_OBJ_P(return_value), &(struct answer_members){ status_strings[answer->outcome], answer->status,
	                                                             fields, shmlimit_long(answer->remaining),
	                                                             shmlimit_long(answer->retry_after_ns), places });
}

/* ---- header fields ---- */

static const char *const names[] = { "RateLimit-Policy",      "RateLimit",        "Retry-After", "X-RateLimit-Limit",
	                             "X-RateLimit-Remaining", "X-RateLimit-Reset" };
static zend_string *name_strings[sizeof(names) / sizeof(names[0])];

/* With a reference. */
static zend_string *field_name(const struct shmlimit_gate_field *field)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (zend_string_equals_cstr(name_strings[i], field->name, field->name_length))
			return name_strings[i];
	return zend_string_init(field->name, field->name_length, 0);
}

void shmlimit_fields_array(zval *array, const struct shmlimit_gate_field *fields, uint32_t n)
{
	if (n == 0) {
		ZVAL_EMPTY_ARRAY(array);
		return;
	}
	array_init_size(array, n);
	for (uint32_t i = 0; i < n; i++) {
		zend_string *name = field_name(&fields[i]);
		zval *before = zend_hash_find(Z_ARRVAL_P(array), name), value;

		if (before == NULL)
			ZVAL_STRINGL(&value, fields[i].value, fields[i].value_length);
		else
			ZVAL_STR(&value, strpprintf(0, "%s, %s", Z_STRVAL_P(before), fields[i].value));
		zend_hash_update(Z_ARRVAL_P(array), name, &value);
		zend_string_release(name);
	}
}

/* ---- the module ---- */

static void intern(zend_string **strings, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strings[i] = zend_string_init_interned(texts[i], strlen(texts[i]), 1);
}

static PHP_MINIT_FUNCTION(shmlimit)
{
	error_ce = register_class_Shmlimit_Error(spl_ce_RuntimeException);
	shmlimit_result_ce = register_class_Shmlimit_Result();
	count_ce = register_class_Shmlimit_Count();
	shmlimit_limit_ce = register_class_Shmlimit_Limit();
	answer_ce = register_class_Shmlimit_Answer();
	shmlimit_limiter_class(register_class_Shmlimit_Limiter());
	shmlimit_gate_class(register_class_Shmlimit_Gate());
	intern(status_strings, statuses, sizeof(statuses) / sizeof(statuses[0]));
	intern(name_strings, names, sizeof(names) / sizeof(names[0]));
	return SUCCESS;
}

static PHP_GINIT_FUNCTION(shmlimit)
{
#if defined(COMPILE_DL_SHMLIMIT) && defined(ZTS)
	ZEND_TSRMLS_CACHE_UPDATE();
#endif
	shared_table_begin(&shmlimit_globals->handles);
	shared_table_begin(&shmlimit_globals->gates);
	shmlimit_globals->kept = NULL;
}

static PHP_RSHUTDOWN_FUNCTION(shmlimit)
{
	(void)type;
	(void)module_number;
	shmlimit_leave_kept();
	return SUCCESS;
}

static PHP_GSHUTDOWN_FUNCTION(shmlimit)
{
	shared_table_end(&shmlimit_globals->gates);
	shared_table_end(&shmlimit_globals->handles);
}

static PHP_MINFO_FUNCTION(shmlimit)
{
	char open[16];

	snprintf(open, sizeof(open), "%u, %u", zend_hash_num_elements(&SHMLIMIT_G(handles)),
	         zend_hash_num_elements(&SHMLIMIT_G(gates)));
	php_info_print_table_start();
	php_info_print_table_row(2, "shmlimit", SHMLIMIT_VERSION);
	php_info_print_table_row(2, "segments, gates open in this process", open);
	php_info_print_table_end();
}

zend_module_entry shmlimit_module_entry = { STANDARD_MODULE_HEADER,
	                                    "shmlimit",
	                                    NULL,
	                                    PHP_MINIT(shmlimit),
	                                    NULL,
	                                    NULL,
	                                    PHP_RSHUTDOWN(shmlimit),
	                                    PHP_MINFO(shmlimit),
	                                    SHMLIMIT_VERSION,
	                                    PHP_MODULE_GLOBALS(shmlimit),
	                                    PHP_GINIT(shmlimit),
	                                    PHP_GSHUTDOWN(shmlimit),
	                                    NULL,
	                                    STANDARD_MODULE_PROPERTIES_EX };

#ifdef COMPILE_DL_SHMLIMIT
#ifdef ZTS
ZEND_TSRMLS_CACHE_DEFINE()
#endif
ZEND_GET_MODULE(shmlimit)
#endif
