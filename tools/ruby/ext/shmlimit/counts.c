/*
 * counts: Shmlimit::GlobalCounts, counts that hosts share through a backend. Its calls may wait for that, without the GVL.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "native.h"
#include "shmlimit_global.h"

#define LIBRARY "libshmlimit-global.so.1"

static struct {
	__typeof__(&shmlimit_global_open) open;
	__typeof__(&shmlimit_global_count) count;
	__typeof__(&shmlimit_global_reset) reset;
	__typeof__(&shmlimit_global_close) close;
} global;

struct counts {
	struct shmlimit *limiter;
	struct shmlimit_global *global;
	struct use use;
};

/* An addition, or with n = 0 a reset. */
struct counts_call {
	struct shmlimit_global *global;
	int rule;
	struct key key;
	struct shmlimit_count_request asked;
	struct shmlimit_count out;
};

/*
 * The library brings the libshmlimit that is installed. A handle goes from the extension's to that one, so both must be of
 * one version. Returns 0, -ELIBACC or -ELIBBAD.
 */
static int load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&shmlimit_layout) layout;

	if (library == NULL)
		return -ELIBACC;
	*(void **)&layout = dlsym(library, "shmlimit_layout");
	if (layout == NULL || layout() != shmlimit_layout())
		return -ELIBBAD;
	/* ISO C does not convert a data pointer to a function pointer; POSIX allows this assignment. */
	*(void **)&global.count = dlsym(library, "shmlimit_global_count");
	*(void **)&global.reset = dlsym(library, "shmlimit_global_reset");
	*(void **)&global.close = dlsym(library, "shmlimit_global_close");
	*(void **)&global.open = dlsym(library, "shmlimit_global_open");
	return global.count != NULL && global.reset != NULL && global.close != NULL && global.open != NULL ? 0
	                                                                                                   : -ELIBBAD;
}

static void end(struct counts *c)
{
	if (c->global != NULL)
		global.close(c->global);
	if (c->limiter != NULL)
		shmlimit_close(c->limiter);
	c->global = NULL;
	c->limiter = NULL;
}

static void counts_free(void *arg)
{
	end(arg);
	xfree(arg);
}

static size_t counts_size(const void *arg)
{
	(void)arg;
	return sizeof(struct counts);
}

static const rb_data_type_t counts_type = {
	.wrap_struct_name = "Shmlimit::GlobalCounts",
	.function = { NULL, counts_free, counts_size },
	.flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE counts_allocate(VALUE class)
{
	struct counts *c;

	return TypedData_Make_Struct(class, struct counts, &counts_type, c);
}

static struct counts *counts_of(VALUE self)
{
	struct counts *c;

	TypedData_Get_Struct(self, struct counts, &counts_type, c);
	if (c->global == NULL)
		native_raise(-EINVAL, "the counts are closed");
	return c;
}

/* Any thread. WHY NOT Shmlimit.report: no other thread may call Ruby. */
static void report(void *arg, const char *text)
{
	(void)arg;
	(void)fprintf(stderr, "shmlimit: %s\n", text);
}

/* _open(segment, owner, url, prefix, deadline_s, on_failure): while the host has no agent, a thread of this process is it. */
static VALUE counts_open(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_options trusted = { .struct_size = sizeof(trusted) };
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .report = report,
		                                   .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD };
	struct counts *c;
	int error;

	rb_check_arity(argc, 6, 6);
	TypedData_Get_Struct(self, struct counts, &counts_type, c);
	if (c->global != NULL)
		native_raise(-EBUSY, "the counts are open");
	trusted.owner = NIL_P(argv[1]) ? 0 : NUM2UINT(argv[1]);
	options.deadline_ns = native_ns(argv[4], "deadline");
	options.on_failure = NUM2UINT(argv[5]);
	options.prefix = NIL_P(argv[3]) ? NULL : StringValueCStr(argv[3]);
	error = load();
	if (error == 0)
		error = shmlimit_open(StringValueCStr(argv[0]), SHMLIMIT_OPEN_TRUSTED, &trusted, &c->limiter);
	if (error == 0)
		error = global.open(c->limiter, StringValueCStr(argv[2]), &options, &c->global);
	if (error == 0)
		return self;
	end(c);
	native_raise(error, StringValueCStr(argv[0]));
}

static VALUE counts_close(VALUE self)
{
	struct counts *c;

	TypedData_Get_Struct(self, struct counts, &counts_type, c);
	native_check_unused(&c->use);
	end(c);
	return Qnil;
}

static int call(void *arg)
{
	struct counts_call *c = arg;

	return c->asked.n != 0 ? global.count(c->global, c->rule, c->key.bytes, c->key.length, &c->asked, &c->out)
	                       : global.reset(c->global, c->rule, c->key.bytes, c->key.length);
}

/* The rule by its name; no key: all of the rule. Raises if it fails. Returns what call() does. */
static int make_call(VALUE self, VALUE rule, VALUE key, struct counts_call *c)
{
	struct counts *counts;
	VALUE copy = NIL_P(key) ? Qnil : rb_str_new_frozen(rb_str_to_str(key)); /* other threads may change a String */
	int answer;

	Check_Type(rule, T_STRING);
	if (!NIL_P(copy))
		c->key = native_key(copy);
	counts = counts_of(self);
	c->global = counts->global;
	c->rule = native_check(shmlimit_rule_find(counts->limiter, StringValueCStr(rule)), rule);
	answer = native_wait(&counts->use, call, c);
	RB_GC_GUARD(copy);
	return native_check(answer, rule);
}

/* add(rule, key, n, ttl, bound): what fits is added. The count, and what was added. */
static VALUE counts_add(VALUE self, VALUE rule, VALUE key, VALUE n, VALUE ttl, VALUE bound)
{
	struct counts_call c = { .asked = { .struct_size = sizeof(c.asked), .flags = SHMLIMIT_COUNT_SATURATE },
		                 .out = { .struct_size = sizeof(c.out) } };

	c.asked.n = NUM2LL(n);
	c.asked.bound = NUM2LL(bound);
	c.asked.ttl_ns = native_ns(ttl, "expires_in");
	if (c.asked.n < 1)
		rb_raise(rb_eArgError, "hosts can only add to a count");
	if (c.asked.ttl_ns == 0 && !NIL_P(ttl))
		c.asked.ttl_ns = 1;
	make_call(self, rule, key, &c);
	return rb_assoc_new(LL2NUM(c.out.count), LL2NUM(c.out.applied));
}

/* reset(rule, key = nil): on all hosts. How many the backend had. */
static VALUE counts_reset(int argc, VALUE *argv, VALUE self)
{
	struct counts_call c = { 0 };

	rb_check_arity(argc, 1, 2);
	return INT2NUM(make_call(self, argv[0], argc > 1 ? argv[1] : Qnil, &c));
}

void counts_init(VALUE shmlimit)
{
	VALUE counts = rb_define_class_under(shmlimit, "GlobalCounts", rb_cObject);

	rb_define_alloc_func(counts, counts_allocate);
	rb_define_private_method(counts, "_open", counts_open, -1);
	rb_define_method(counts, "add", counts_add, 5);
	rb_define_method(counts, "reset", counts_reset, -1);
	rb_define_method(counts, "close", counts_close, 0);
}
