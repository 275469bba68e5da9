/*
 * native: see native.h. Numbers, keys and errors between Ruby and the library.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <math.h>
#include <ruby.h>
#include <ruby/thread.h>

#include "native.h"

static VALUE error_class;
static ID id_errno;

void native_raise(int error, const char *what)
{
	VALUE text = rb_sprintf("%s: %s", what, shmlimit_strerror(error));
	VALUE exception = rb_exc_new_str(error_class, text);

	rb_ivar_set(exception, id_errno, INT2NUM(error < 0 ? -error : error));
	rb_exc_raise(exception);
}

int native_check(int error, VALUE rule)
{
	VALUE what;

	if (error >= 0)
		return error;
	what = rb_sprintf("rule %" PRIsVALUE, rule);
	native_raise(error, StringValueCStr(what));
}

struct key native_key(VALUE key)
{
	if (RB_SYMBOL_P(key))
		key = rb_sym2str(key);
	else if (!RB_TYPE_P(key, T_STRING))
		key = rb_convert_type(key, T_STRING, "String", "to_str");
	return (struct key){ key, RSTRING_PTR(key), (size_t)RSTRING_LEN(key) };
}

/* WHY NOT NUM2ULL alone: it takes -1 for 2^64 - 1. */
uint64_t native_u64(VALUE number, const char *what)
{
	if (RB_FIXNUM_P(number) && FIX2LONG(number) >= 0)
		return (uint64_t)FIX2LONG(number);
	number = rb_Integer(number);
	if (RTEST(rb_funcall(number, '<', 1, INT2FIX(0))))
		rb_raise(rb_eRangeError, "%s must be 0 or more", what);
	return NUM2ULL(number);
}

static uint64_t ns_of_float(double seconds, const char *what)
{
	if (isnan(seconds) || seconds < 0)
		rb_raise(rb_eRangeError, "%s must be 0 or more", what);
	return seconds >= (double)(UINT64_MAX / SECOND_NS) ? UINT64_MAX : (uint64_t)llround(seconds * 1e9);
}

uint64_t native_ns(VALUE seconds, const char *what)
{
	if (NIL_P(seconds))
		return 0;
	if (RB_FIXNUM_P(seconds) && FIX2LONG(seconds) >= 0) {
		uint64_t whole = (uint64_t)FIX2LONG(seconds);

		return whole > UINT64_MAX / SECOND_NS ? UINT64_MAX : whole * SECOND_NS;
	}
	return ns_of_float(RFLOAT_VALUE(rb_Float(seconds)), what);
}

uint64_t native_rate(VALUE refill, uint64_t *period_ns)
{
	uint64_t count;
	double rate;
	int error;

	if (!RB_FLOAT_TYPE_P(refill))
		return native_u64(refill, "refill");
	rate = RFLOAT_VALUE(refill);
	error = shmlimit_rate_from_double(rate, *period_ns, &count, period_ns);
	if (error == -ERANGE)
		rb_raise(rb_eRangeError, "refill %" PRIsVALUE ": the nearest that can be is %" PRIsVALUE, refill,
		         DBL2NUM(rate < 1 ? (double)*period_ns * 0x1p-60 : 0x1p64 - 2048));
	if (error != 0)
		rb_raise(rb_eRangeError, "refill %" PRIsVALUE ": must be a finite number above 0, of a period above 0",
		         refill);
	return count;
}

VALUE native_seconds(uint64_t ns)
{
	return DBL2NUM(ns == UINT64_MAX ? HUGE_VAL : (double)ns / 1e9);
}

struct waiting {
	struct use *use;
	int (*function)(void *arg);
	void *arg;
	int result;
};

static void *call(void *arg)
{
	struct waiting *w = arg;

	w->result = w->function(w->arg);
	return NULL;
}

static VALUE call_without_gvl(VALUE arg)
{
	rb_thread_call_without_gvl(call, (void *)arg, NULL, NULL);
	return Qnil;
}

static VALUE end_use(VALUE arg)
{
	__atomic_fetch_sub(&((struct waiting *)arg)->use->threads, 1, __ATOMIC_RELAXED);
	return Qnil;
}

/* The call without the GVL may raise what another thread sent to this one: the use ends all the same. */
int native_wait(struct use *use, int (*function)(void *arg), void *arg)
{
	struct waiting w = { use, function, arg, 0 };

	__atomic_fetch_add(&use->threads, 1, __ATOMIC_RELAXED);
	rb_ensure(call_without_gvl, (VALUE)&w, end_use, (VALUE)&w);
	return w.result;
}

void native_check_unused(const struct use *use)
{
	if (__atomic_load_n(&use->threads, __ATOMIC_RELAXED) != 0)
		native_raise(-EBUSY, "another thread is inside a call on it");
}

/* shmlimit_key_ip_text() */
static VALUE key_ip(int argc, VALUE *argv, VALUE self)
{
	char key[SHMLIMIT_KEY_IP_MAX];
	VALUE address;
	int length;

	(void)self;
	rb_check_arity(argc, 1, 4);
	address = argv[0];
	length = shmlimit_key_ip_text(StringValueCStr(address), argc > 3 ? NUM2INT(argv[3]) : 0,
	                              argc > 1 ? NUM2UINT(argv[1]) : 32, argc > 2 ? NUM2UINT(argv[2]) : 64, key,
	                              sizeof(key));
	if (length < 0)
		native_raise(length, StringValueCStr(address));
	return rb_str_new(key, length);
}

static VALUE error_text(VALUE self, VALUE number)
{
	(void)self;
	return rb_utf8_str_new_cstr(shmlimit_strerror(NUM2INT(number)));
}

static VALUE destroy(VALUE self, VALUE name)
{
	int error = shmlimit_destroy(StringValueCStr(name));

	(void)self;
	if (error != 0)
		native_raise(error, StringValueCStr(name));
	return Qnil;
}

__attribute__((visibility("default"))) void Init_native(void);

void Init_native(void)
{
	VALUE shmlimit = rb_define_module("Shmlimit");

#ifdef HAVE_RB_EXT_RACTOR_SAFE
	rb_ext_ractor_safe(true);
#endif
	id_errno = rb_intern("@errno");
	error_class = rb_define_class_under(shmlimit, "Error", rb_eStandardError);
	rb_gc_register_mark_object(error_class);
	rb_define_attr(error_class, "errno", 1, 0);
	rb_define_singleton_method(shmlimit, "key_ip", key_ip, -1);
	rb_define_singleton_method(shmlimit, "destroy", destroy, 1);
	rb_define_singleton_method(shmlimit, "strerror", error_text, 1);
	rb_define_const(shmlimit, "LIBRARY_VERSION", rb_obj_freeze(rb_str_new_cstr(SHMLIMIT_VERSION)));
	limiter_init(shmlimit);
	gate_init(shmlimit);
	counts_init(shmlimit);
}
