/*
 * limiter: Shmlimit::Limiter, a handle on a segment. The methods with keyword arguments are in lib/shmlimit/limiter.rb;
 * they call the private ones here, whose names begin with an underscore.
 *
 * A forked child goes on with the handle. It is shareable between Ractors when frozen: then nothing closes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "limiter.h"

static void limiter_free(void *arg)
{
	struct limiter *l = arg;

	shmlimit_close(l->handle);
	xfree(l);
}

static size_t limiter_size(const void *arg)
{
	(void)arg;
	return sizeof(struct limiter);
}

static const rb_data_type_t limiter_type = {
	.wrap_struct_name = "Shmlimit::Limiter",
	.function = { NULL, limiter_free, limiter_size },
	.flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE limiter_allocate(VALUE class)
{
	struct limiter *l;

	return TypedData_Make_Struct(class, struct limiter, &limiter_type, l);
}

struct limiter *limiter_of(VALUE self)
{
	struct limiter *l;

	TypedData_Get_Struct(self, struct limiter, &limiter_type, l);
	if (l->handle == NULL)
		native_raise(-EINVAL, "the limiter is closed");
	return l;
}

static int find_rule(const struct limiter *l, VALUE name)
{
	Check_Type(name, T_STRING);
	return native_check(shmlimit_rule_find(l->handle, StringValueCStr(name)), name);
}

static void forget_rules(struct limiter *l)
{
	memset(l->ids, 0, sizeof(l->ids));
}

/* The id of a Symbol, which is looked up once a second. The GVL keeps others out, except from a shared, frozen limiter. */
static int find_symbol(VALUE self, struct limiter *l, VALUE symbol)
{
	size_t at = (symbol >> RUBY_SPECIAL_SHIFT) % LIMITER_SYMBOLS;
	struct timespec now;

	if (!RB_STATIC_SYM_P(symbol) || RB_OBJ_FROZEN(self))
		return find_rule(l, rb_sym2str(symbol));
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec - l->looked_s >= LIMITER_LOOK_EVERY_S) {
		l->looked_s = now.tv_sec;
		forget_rules(l);
	}
	if (l->ids[at].symbol != symbol) {
		l->ids[at].id = find_rule(l, rb_sym2str(symbol));
		l->ids[at].symbol = symbol;
	}
	return l->ids[at].id;
}

int limiter_rule(VALUE self, struct limiter *l, VALUE rule)
{
	if (RB_FIXNUM_P(rule))
		return NUM2INT(rule);
	return RB_SYMBOL_P(rule) ? find_symbol(self, l, rule) : find_rule(l, rule);
}

/* _open(name, read_only, owner) */
static VALUE limiter_open(VALUE self, VALUE name, VALUE read_only, VALUE owner)
{
	uint32_t flags = RTEST(read_only) ? SHMLIMIT_OPEN_READ_ONLY : 0;
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	struct limiter *l;
	int error;

	TypedData_Get_Struct(self, struct limiter, &limiter_type, l);
	rb_check_frozen(self);
	if (l->handle != NULL)
		native_raise(-EBUSY, "the limiter is open");
	options.owner = NIL_P(owner) ? 0 : NUM2UINT(owner);
	error = shmlimit_open(StringValueCStr(name), flags | SHMLIMIT_OPEN_TRUSTED, &options, &l->handle);
	if (error != 0)
		native_raise(error, StringValueCStr(name));
	memcpy(l->name, RSTRING_PTR(name), (size_t)RSTRING_LEN(name) + 1);
	return self;
}

struct wanted_segment {
	const char *name;
	struct shmlimit_options options;
};

static int create(void *arg)
{
	struct wanted_segment *c = arg;

	return shmlimit_create(c->name, &c->options, NULL);
}

/* _create(name, mode, slots, rules, on_full, coarse, gid, store_keys, slots_max) */
static VALUE limiter_create(int argc, VALUE *argv, VALUE class)
{
	struct wanted_segment c = { .options = { .struct_size = sizeof(c.options) } };
	struct use use = { 0 };
	VALUE name;
	int error;

	(void)class;
	rb_check_arity(argc, 9, 9);
	name = rb_str_new_frozen(rb_str_to_str(argv[0]));
	c.name = StringValueCStr(name);
	c.options.mode = NUM2UINT(argv[1]);
	c.options.slots = native_u64(argv[2], "slots");
	c.options.rules = NUM2UINT(argv[3]);
	c.options.on_full = NUM2UINT(argv[4]);
	c.options.clock = RTEST(argv[5]) ? SHMLIMIT_CLOCK_COARSE : SHMLIMIT_CLOCK_PRECISE;
	c.options.flags = NIL_P(argv[6]) ? 0 : SHMLIMIT_OPTION_GROUP;
	c.options.gid = NIL_P(argv[6]) ? 0 : NUM2UINT(argv[6]);
	c.options.store_keys = NUM2UINT(argv[7]);
	c.options.slots_max = native_u64(argv[8], "slots_max");
	error = native_wait(&use, create, &c);
	if (error != 0)
		native_raise(error, c.name);
	RB_GC_GUARD(name);
	return Qnil;
}

static VALUE limiter_close(VALUE self)
{
	struct limiter *l;

	TypedData_Get_Struct(self, struct limiter, &limiter_type, l);
	rb_check_frozen(self);
	native_check_unused(&l->use);
	shmlimit_close(l->handle);
	l->handle = NULL;
	forget_rules(l);
	return Qnil;
}

static VALUE limiter_is_closed(VALUE self)
{
	struct limiter *l;

	TypedData_Get_Struct(self, struct limiter, &limiter_type, l);
	return l->handle == NULL ? Qtrue : Qfalse;
}

static VALUE limiter_is_gone(VALUE self)
{
	struct limiter *l = limiter_of(self);
	int gone = shmlimit_gone(l->handle);

	if (gone < 0)
		native_raise(gone, l->name);
	return gone ? Qtrue : Qfalse;
}

static VALUE limiter_name(VALUE self)
{
	struct limiter *l;

	TypedData_Get_Struct(self, struct limiter, &limiter_type, l);
	return rb_utf8_str_new_cstr(l->name);
}

struct rule_call {
	struct shmlimit *handle;
	const char *name;
	struct shmlimit_rule rule;
};

static int rule_set(void *arg)
{
	struct rule_call *c = arg;

	return shmlimit_rule_set(c->handle, c->name, &c->rule);
}

static int rule_ensure(void *arg)
{
	struct rule_call *c = arg;

	return shmlimit_rule_ensure(c->handle, c->name, &c->rule);
}

static int rule_remove(void *arg)
{
	struct rule_call *c = arg;

	return shmlimit_rule_remove(c->handle, c->name);
}

/* The name's bytes must stay where they are while other threads run: it is a frozen copy, on the stack. */
static int call_on_rule(VALUE self, VALUE name, int (*function)(void *), struct rule_call *c)
{
	struct limiter *l = limiter_of(self);
	VALUE kept = rb_str_new_frozen(RB_SYMBOL_P(name) ? rb_sym2str(name) : rb_str_to_str(name));
	int answer;

	c->handle = l->handle;
	c->name = StringValueCStr(kept);
	answer = native_wait(&l->use, function, c);
	RB_GC_GUARD(kept);
	if (!RB_OBJ_FROZEN(self))
		forget_rules(l);
	return native_check(answer, kept);
}

/*
 * From algorithm, mode, flags, capacity, refill, period, max_wait, warmup, cold_factor, credit, zone, law, least. May run Ruby
 * code.
 */
static struct shmlimit_rule rule_of(int argc, const VALUE *argv)
{
	struct shmlimit_rule rule;
	uint64_t period_ns, refill;
	const char *zone;

	rb_check_arity(argc, 13, 13);
	zone = StringValueCStr(*(VALUE *)&argv[10]);
	if (strlen(zone) >= sizeof(rule.zone))
		rb_raise(rb_eArgError, "zone \"%s\": not a time zone", zone);
	period_ns = native_ns(argv[5], "period");
	refill = native_rate(argv[4], &period_ns);
	rule = (struct shmlimit_rule){
		.struct_size = sizeof(struct shmlimit_rule),
		.algorithm = NUM2UINT(argv[0]),
		.mode = NUM2UINT(argv[1]),
		.flags = NUM2UINT(argv[2]),
		.capacity = native_u64(argv[3], "capacity"),
		.refill = refill,
		.period_ns = period_ns,
		.max_wait_ns = native_ns(argv[6], "max_wait"),
		.warmup_ns = native_ns(argv[7], "warmup"),
		.cold_factor_milli = NIL_P(argv[8]) ? 0 : (uint32_t)(NUM2DBL(argv[8]) * 1000 + 0.5),
		.credit = NUM2UINT(argv[9]),
		.law = NUM2UINT(argv[11]),
		.least = NUM2UINT(argv[12]),
	};
	strcpy(rule.zone, zone);
	return rule;
}

/* _rule_set(name, and what rule_of() has) */
static VALUE limiter_rule_set(int argc, VALUE *argv, VALUE self)
{
	struct rule_call c = { .rule = rule_of(argc - 1, argv + 1) };

	return INT2NUM(call_on_rule(self, argv[0], rule_set, &c));
}

/* _rule_ensure(name, and what rule_of() has) */
static VALUE limiter_rule_ensure(int argc, VALUE *argv, VALUE self)
{
	struct rule_call c = { .rule = rule_of(argc - 1, argv + 1) };

	return INT2NUM(call_on_rule(self, argv[0], rule_ensure, &c));
}

/* Shmlimit._rule_text(what rule_of() has) */
static VALUE rule_text(int argc, VALUE *argv, VALUE self)
{
	struct shmlimit_rule rule = rule_of(argc, argv);
	char text[SHMLIMIT_RULE_TEXT_MAX];
	int error = shmlimit_rule_text(&rule, text);

	(void)self;
	if (error != 0)
		native_raise(error, "the rule has no text");
	return rb_utf8_str_new_cstr(text);
}

/* Shmlimit._rule_parse(text, algorithm): [algorithm, mode, flags, capacity, refill, period, zone, law, least] */
static VALUE rule_parse(VALUE self, VALUE text, VALUE algorithm)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = NUM2UINT(algorithm) };
	struct shmlimit_problem wrong;
	VALUE period;

	(void)self;
	Check_Type(text, T_STRING);
	if (shmlimit_rule_parse(StringValueCStr(text), &rule, &wrong) != 0)
		rb_raise(rb_eArgError, "limit \"%" PRIsVALUE "\": %s", text, wrong.text);
	period = rule.period_ns % 1000000000 == 0 ? ULL2NUM(rule.period_ns / 1000000000)
	                                          : native_seconds(rule.period_ns);
	return rb_ary_new_from_args(9, UINT2NUM(rule.algorithm), UINT2NUM(rule.mode), UINT2NUM(rule.flags),
	                            ULL2NUM(rule.capacity), ULL2NUM(rule.refill), period,
	                            rb_utf8_str_new_cstr(rule.zone), UINT2NUM(rule.law), UINT2NUM(rule.least));
}

static VALUE limiter_rule_remove(VALUE self, VALUE name)
{
	struct rule_call c = { 0 };

	call_on_rule(self, name, rule_remove, &c);
	return Qnil;
}

static VALUE limiter_rule_find(VALUE self, VALUE name)
{
	VALUE text = RB_SYMBOL_P(name) ? rb_sym2str(name) : name;
	int id = shmlimit_rule_find(limiter_of(self)->handle, StringValueCStr(text));

	return id == -ESRCH ? Qnil : INT2NUM(native_check(id, text));
}

void limiter_init(VALUE shmlimit)
{
	VALUE limiter = rb_define_class_under(shmlimit, "Limiter", rb_cObject);

	rb_define_alloc_func(limiter, limiter_allocate);
	rb_define_private_method(rb_singleton_class(limiter), "_create", limiter_create, -1);
	rb_define_private_method(limiter, "_open", limiter_open, 3);
	rb_define_private_method(rb_singleton_class(shmlimit), "_rule_parse", rule_parse, 2);
	rb_define_private_method(rb_singleton_class(shmlimit), "_rule_text", rule_text, -1);
	rb_define_private_method(limiter, "_rule_set", limiter_rule_set, -1);
	rb_define_private_method(limiter, "_rule_ensure", limiter_rule_ensure, -1);
	rb_define_method(limiter, "close", limiter_close, 0);
	rb_define_method(limiter, "closed?", limiter_is_closed, 0);
	rb_define_method(limiter, "gone?", limiter_is_gone, 0);
	rb_define_method(limiter, "name", limiter_name, 0);
	rb_define_method(limiter, "rule_find", limiter_rule_find, 1);
	rb_define_method(limiter, "rule_remove", limiter_rule_remove, 1);
	decision_init(shmlimit, limiter);
}
