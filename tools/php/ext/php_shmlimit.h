/*
 * php_shmlimit: what the files of the extension share. The classes are declared in shmlimit.stub.php.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef PHP_SHMLIMIT_H
#define PHP_SHMLIMIT_H

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "php.h"

#include <shmlimit.h>
#include <shmlimit_gate.h>

extern zend_module_entry shmlimit_module_entry;
#define phpext_shmlimit_ptr &shmlimit_module_entry

/* What a process (with ZTS: a thread) keeps open from request to request, by name. */
ZEND_BEGIN_MODULE_GLOBALS(shmlimit)
HashTable handles; /* struct handle: limiter.c */
HashTable gates;   /* struct gate: gate.c */
struct kept *kept; /* the places that end with the request: places.c */
ZEND_END_MODULE_GLOBALS(shmlimit)

ZEND_EXTERN_MODULE_GLOBALS(shmlimit)
#define SHMLIMIT_G(v) ZEND_MODULE_GLOBALS_ACCESSOR(shmlimit, v)
#if defined(ZTS) && defined(COMPILE_DL_SHMLIMIT)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

/* ---- shared.c ---- */

/* The first member of what is kept. It is destroyed when nothing refers to it and it is no longer kept. */
struct shared {
	uint32_t refs; /* objects of the running requests that use it */
	bool kept;
	void (*destroy)(struct shared *);
};

#define SHARED_MAX 64 /* kept in one process; more are open as long as an object uses them */

void shared_table_begin(HashTable *table);
void shared_table_end(HashTable *table);

/* With one more reference, or NULL. */
struct shared *shared_find(HashTable *table, const zend_string *name);

/* Keep it, if there is room; with one reference. */
void shared_add(HashTable *table, const zend_string *name, struct shared *item);
void shared_forget(HashTable *table, const zend_string *name);
void shared_release(struct shared *item);

/* ---- shmlimit.c: objects that are values, and errors ---- */

extern zend_class_entry *shmlimit_limit_ce, *shmlimit_result_ce;

/* The members of a Limit, in the order of its declaration. */
#define LIMIT_RULE(object) OBJ_PROP_NUM(object, 0)
#define LIMIT_KEY(object) OBJ_PROP_NUM(object, 1)
#define LIMIT_COST(object) OBJ_PROP_NUM(object, 2)
#define LIMIT_RATE(object) OBJ_PROP_NUM(object, 3)
#define LIMIT_LIMIT(object) OBJ_PROP_NUM(object, 4)
#define LIMIT_ESTIMATE(object) OBJ_PROP_NUM(object, 5)
#define LIMIT_SHARE(object) OBJ_PROP_NUM(object, 6)

/* What C counts in 64 bits, of which an int has 63. */
static zend_always_inline zend_long shmlimit_long(uint64_t n)
{
	return n > ZEND_LONG_MAX ? ZEND_LONG_MAX : (zend_long)n;
}

/* Give the object its next value; readonly members are set once. */
static zend_always_inline zval *shmlimit_member(zend_object *object, uint32_t i)
{
	zval *member = OBJ_PROP_NUM(object, i);

	Z_PROP_FLAG_P(member) = 0;
	return member;
}

void shmlimit_return_result(zval *return_value, int answer, const struct shmlimit_result *r);
void shmlimit_return_count(zval *return_value, int answer, const struct shmlimit_count *count);

/* `fields` becomes the answer's, and so does the reference of `places`, which is NULL if there are none. */
void shmlimit_return_answer(zval *return_value, const struct shmlimit_gate_answer *answer, zval *fields,
                            zend_string *places);

/* Throw Error: the segment, or a rule of it, and what the library says; or these words. */
void shmlimit_throw(int error, const zend_string *segment, const zend_string *rule);
void shmlimit_throw_words(int error, const char *subject, const char *words);

/* The response's fields as an array, by name; a name that comes twice has both values. */
void shmlimit_fields_array(zval *array, const struct shmlimit_gate_field *fields, uint32_t n);

/* A string for C, which would end it at a NUL: no segment or rule has an empty name. */
static zend_always_inline const char *shmlimit_name(const zend_string *name)
{
	return strlen(ZSTR_VAL(name)) == ZSTR_LEN(name) ? ZSTR_VAL(name) : "";
}

/* ---- limiter.c, whose other methods are in segment.c ---- */

/* A Limiter's handle, or NULL after throwing. */
struct shmlimit *shmlimit_limiter_opened(zend_object *object);

/* The next object with this segment looks whether it was replaced. */
void shmlimit_limiter_look(zend_object *object);

/* Throws, about the segment or a rule of it, if `answer` is an error. */
bool shmlimit_limiter_is_answer(zend_object *object, const zend_string *rule, int answer);

/*
 * Tokens that come back every *period_ns: an int of 0 or more, or a float, which is what its shortest decimal says, and
 * then *period_ns is changed. False: it has thrown.
 */
bool shmlimit_rate(const zval *rate, uint64_t *refill, uint64_t *period_ns);

void shmlimit_limiter_class(zend_class_entry *ce);

/* ---- gate_class.c, places.c ---- */

void shmlimit_gate_class(zend_class_entry *ce);

/* The request ends: leave the places that enforce() has entered. */
void shmlimit_leave_kept(void);

#endif
