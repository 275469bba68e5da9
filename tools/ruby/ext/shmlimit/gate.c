/*
 * gate: Shmlimit::Gate, the limits of a request in one call (shmlimit_gate.h).
 *
 * The GVL is released for the first call of a process, which may wait to create what is missing, and, where the spec
 * names a backend, for each call. A report can come while the library holds its lock, and Ruby code may give the GVL to
 * a thread that waits for that lock. So reports are queued, and passed on when the call has returned.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "native.h"

struct report {
	struct report *next; /* the report before this one */
	int bad;
	char text[];
};

struct gate {
	struct shmlimit_gate *handle;
	struct use use;
	struct report *reports; /* any thread adds one, the thread that passes them on takes all */
	size_t limits;
	unsigned long attached_in; /* the process that has looked at the segment; 0: none */
	int may_wait;              /* the spec has backend= or delay= */
};

struct asking {
	struct gate *gate;
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	VALUE owners[SHMLIMIT_REQUESTS_MAX], rates[SHMLIMIT_REQUESTS_MAX]; /* a rate may be nil */
	int places[SHMLIMIT_REQUESTS_MAX];                                 /* in the list of arguments */
	size_t n;
	int enters; /* hold places until they are left */
	struct shmlimit_gate_answer answer;
	struct shmlimit_gate_held held;
};

/* What leaving and settling need: the places that a request holds, what it has paid, and the bytes of its keys and limits. */
struct places {
	struct shmlimit_gate_held held;
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n;
	char bytes[];
};

/* What an answer says, by SHMLIMIT_GATE_UNLIMITED ... */
static const char *const outcome_names[] = { "unlimited", "passed",  "rejected",       "rejected_dry_run",
	                                     "failed",    "delayed", "delayed_dry_run" };
#define OUTCOMES (sizeof(outcome_names) / sizeof(outcome_names[0]))

/* In small letters, as Rack 3 wants them, and HTTP/2 has them. */
static const char *const field_names[] = { "ratelimit-policy",      "ratelimit",
	                                   "retry-after",           "x-ratelimit-limit",
	                                   "x-ratelimit-remaining", "x-ratelimit-reset" };
#define FIELD_NAMES (sizeof(field_names) / sizeof(field_names[0]))

static VALUE module, answer_class, places_class, outcomes[OUTCOMES], names[FIELD_NAMES];
static ID id_report;
static unsigned long process = 1; /* 1 + how many forks lie between this process and the one that loaded this */

static void after_fork_child(void)
{
	process++;
}

static void gate_free(void *arg)
{
	struct gate *g = arg;

	shmlimit_gate_close(g->handle);
	while (g->reports != NULL) {
		struct report *r = g->reports;

		g->reports = r->next;
		free(r);
	}
	xfree(g);
}

static size_t gate_size(const void *arg)
{
	(void)arg;
	return sizeof(struct gate);
}

static const rb_data_type_t gate_type = {
	.wrap_struct_name = "Shmlimit::Gate",
	.function = { NULL, gate_free, gate_size },
	.flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE gate_allocate(VALUE class)
{
	struct gate *g;

	return TypedData_Make_Struct(class, struct gate, &gate_type, g);
}

static struct gate *gate_of(VALUE self)
{
	struct gate *g;

	TypedData_Get_Struct(self, struct gate, &gate_type, g);
	if (g->handle == NULL)
		native_raise(-EINVAL, "the gate is closed");
	return g;
}

/* ORDER releases the report to pass_reports(). Without memory there is no report. */
static void queue_report(void *arg, int bad, const char *text)
{
	struct gate *g = arg;
	size_t size = strlen(text) + 1;
	struct report *r = malloc(sizeof(*r) + size);

	if (r == NULL)
		return;
	r->bad = bad;
	memcpy(r->text, text, size);
	r->next = __atomic_load_n(&g->reports, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&g->reports, &r->next, r, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static VALUE pass_report(VALUE arg)
{
	const struct report *r = (const struct report *)arg;

	return rb_funcall(module, id_report, 2, r->bad ? Qtrue : Qfalse, rb_utf8_str_new_cstr(r->text));
}

/* In their order. An error in a logger is no reason to fail a request. */
static void pass_reports(struct gate *g)
{
	struct report *newest, *oldest = NULL;

	if (__atomic_load_n(&g->reports, __ATOMIC_RELAXED) == NULL)
		return;
	/* ORDER acquires the reports from queue_report(). */
	newest = __atomic_exchange_n(&g->reports, NULL, __ATOMIC_ACQUIRE);
	while (newest != NULL) {
		struct report *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest != NULL) {
		struct report *r = oldest;
		int state;

		oldest = r->next;
		rb_protect(pass_report, (VALUE)r, &state);
		if (state != 0)
			rb_set_errinfo(Qnil);
		free(r);
	}
}

/* backend= or delay= outside of a comment; one in a quoted value costs a little time, and nothing else. */
static int can_wait(const char *spec)
{
	return strstr(spec, "backend=") != NULL || strstr(spec, "delay=") != NULL;
}

static VALUE gate_initialize(VALUE self, VALUE spec)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	const char *text = StringValueCStr(spec);
	struct gate *g;
	int error;

	TypedData_Get_Struct(self, struct gate, &gate_type, g);
	rb_check_frozen(self);
	if (g->handle != NULL)
		native_raise(-EBUSY, "the gate is open");
	if (shmlimit_gate_check(text, &wrong) == -EINVAL) {
		if (wrong.length == 0)
			rb_raise(rb_eArgError, "%s", wrong.text);
		rb_raise(rb_eArgError, "%.*s: %s", (int)wrong.length, text + wrong.offset, wrong.text);
	}
	error = shmlimit_gate_open(text, &g->handle);
	if (error != 0)
		native_raise(error, "gate");
	shmlimit_gate_report(g->handle, queue_report, g);
	g->limits = shmlimit_gate_limits(g->handle);
	g->may_wait = can_wait(text);
	return self;
}

static VALUE gate_close(VALUE self)
{
	struct gate *g;

	TypedData_Get_Struct(self, struct gate, &gate_type, g);
	rb_check_frozen(self);
	native_check_unused(&g->use);
	shmlimit_gate_close(g->handle);
	g->handle = NULL;
	return Qnil;
}

static VALUE gate_limits(VALUE self)
{
	return SIZET2NUM(gate_of(self)->limits);
}

static int attach(void *arg)
{
	return shmlimit_gate_attach(((struct gate *)arg)->handle);
}

static int attach_waiting(struct gate *g)
{
	int error = native_wait(&g->use, attach, g);

	__atomic_store_n(&g->attached_in, process, __ATOMIC_RELAXED);
	pass_reports(g);
	return error;
}

static VALUE gate_attach(VALUE self)
{
	int error = attach_waiting(gate_of(self));

	if (error != 0)
		native_raise(error, "gate");
	return self;
}

/* A key, [key, cost], [key, cost, limit], or nil for a limit that the request does not have. */
static void add_key(struct asking *a, int place, VALUE value)
{
	struct key key;
	VALUE rate = Qnil;
	uint64_t cost = 0;

	if (NIL_P(value))
		return;
	if (a->n == SHMLIMIT_REQUESTS_MAX)
		rb_raise(rb_eArgError, "a request has %d limits at most", SHMLIMIT_REQUESTS_MAX);
	if (RB_TYPE_P(value, T_ARRAY)) {
		if (RARRAY_LEN(value) < 2 || RARRAY_LEN(value) > 3)
			rb_raise(rb_eArgError, "a key with its cost must be [key, cost] or [key, cost, limit]");
		rate = rb_ary_entry(value, 2);
		if (!NIL_P(rate))
			Check_Type(rate, T_STRING);
		cost = NIL_P(rb_ary_entry(value, 1)) ? 0 : native_u64(rb_ary_entry(value, 1), "cost");
		value = rb_ary_entry(value, 0);
		if (NIL_P(value))
			return;
	}
	key = native_key(value);
	a->owners[a->n] = key.owner;
	a->rates[a->n] = rate;
	a->places[a->n] = place;
	a->keys[a->n] = (struct shmlimit_gate_key){ .limit = (uint32_t)place, .cost = cost };
	a->n++;
}

/*
 * The keys' bytes, if no Ruby code can run until the answer is there; or, if other threads can run in that time,
 * those of frozen copies. An empty key counts: all requests that have one share it.
 */
static void set_bytes(struct asking *a, int copy)
{
	for (size_t i = 0; i < a->n; i++) {
		VALUE *owner = &a->owners[i];

		if (copy)
			*owner = rb_str_new_frozen(*owner);
		if (RSTRING_LEN(*owner) > UINT32_MAX)
			native_raise(-EMSGSIZE, "key");
		a->keys[i].bytes = RSTRING_LEN(*owner) > 0 ? RSTRING_PTR(*owner) : "\0";
		a->keys[i].length = RSTRING_LEN(*owner) > 0 ? (uint32_t)RSTRING_LEN(*owner) : 1;
		if (NIL_P(a->rates[i]))
			continue;
		if (copy)
			a->rates[i] = rb_str_new_frozen(a->rates[i]);
		a->keys[i].rate = RSTRING_PTR(a->rates[i]);
		a->keys[i].rate_length =
			RSTRING_LEN(a->rates[i]) < UINT32_MAX ? (uint32_t)RSTRING_LEN(a->rates[i]) : UINT32_MAX;
	}
}

/* ---- places ---- */

static size_t places_size(const void *arg)
{
	const struct places *p = arg;
	size_t size = sizeof(*p);

	for (size_t i = 0; i < p->n; i++)
		size += (size_t)p->keys[i].length + p->keys[i].rate_length;
	return size;
}

static const rb_data_type_t places_type = {
	.wrap_struct_name = "Shmlimit::Places",
	.function = { NULL, RUBY_DEFAULT_FREE, places_size },
	.flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

/* What a request holds, or nil. */
static VALUE places_of(const struct asking *a)
{
	struct places *p;
	size_t size = 0;
	char *at;

	if (a->held.count == 0 && a->held.bill_count == 0)
		return Qnil;
	for (size_t i = 0; i < a->n; i++)
		size += (size_t)a->keys[i].length + a->keys[i].rate_length;
	p = xmalloc(sizeof(*p) + size);
	p->held = a->held;
	p->n = a->n;
	at = p->bytes;
	for (size_t i = 0; i < a->n; i++) {
		p->keys[i] = a->keys[i];
		p->keys[i].bytes = memcpy(at, a->keys[i].bytes, a->keys[i].length);
		at += a->keys[i].length;
		if (a->keys[i].rate == NULL)
			continue;
		p->keys[i].rate = memcpy(at, a->keys[i].rate, a->keys[i].rate_length);
		at += a->keys[i].rate_length;
	}
	return TypedData_Wrap_Struct(places_class, &places_type, p);
}

/* ---- asking ---- */

static int ask(void *arg)
{
	struct asking *a = arg;

	return a->enters ? shmlimit_gate_enter(a->gate->handle, a->keys, a->n, &a->answer, &a->held)
	                 : shmlimit_gate_ask(a->gate->handle, a->keys, a->n, &a->answer);
}

static VALUE wait_for_answer(VALUE arg)
{
	struct asking *a = (struct asking *)arg;

	return INT2NUM(native_wait(&a->gate->use, ask, a));
}

/* What another thread sent to this one, such as a timeout, may be raised after the answer: no other code would leave the places. */
static int ask_waiting(struct asking *a)
{
	int state;
	VALUE answer = rb_protect(wait_for_answer, (VALUE)a, &state);

	if (state == 0)
		return NUM2INT(answer);
	(void)shmlimit_gate_leave(a->gate->handle, a->keys, a->n, &a->held);
	rb_jump_tag(state);
}

/* Returns the places that the request holds. */
static VALUE ask_gate(struct asking *a, int argc, VALUE *argv, VALUE self)
{
	struct gate *g = gate_of(self);
	VALUE places;
	int answer;

	/* A limit that got no key would not be enforced. */
	if ((size_t)argc != g->limits)
		rb_raise(rb_eArgError, "%d keys, but the gate has %d limits; nil where one does not apply", argc,
		         (int)g->limits);
	if (__atomic_load_n(&g->attached_in, __ATOMIC_RELAXED) != process)
		(void)attach_waiting(g);
	a->n = 0;
	for (int i = 0; i < argc; i++)
		add_key(a, i, argv[i]);
	a->gate = g = gate_of(self);
	a->held.struct_size = sizeof(a->held);
	a->held.count = a->held.bill_count = 0;
	set_bytes(a, g->may_wait);
	answer = g->may_wait ? ask_waiting(a) : ask(a);
	places = places_of(a);
	for (size_t i = 0; i < a->n; i++) {
		RB_GC_GUARD(a->owners[i]);
		RB_GC_GUARD(a->rates[i]);
	}
	if (answer < 0)
		native_raise(answer, "gate");
	pass_reports(g);
	return places;
}

/* leave(places); nil is allowed. */
static VALUE gate_leave(VALUE self, VALUE value)
{
	struct gate *g = gate_of(self);
	struct places *p;
	int error;

	if (NIL_P(value))
		return Qnil;
	TypedData_Get_Struct(value, struct places, &places_type, p);
	error = shmlimit_gate_leave(g->handle, p->keys, p->n, &p->held);
	if (error != 0)
		native_raise(error, "gate");
	pass_reports(g);
	return Qnil;
}

/* settle(places, used): an Integer of the only limit, or an Array of one for each; nil where it is not known. */
static VALUE gate_settle(VALUE self, VALUE value, VALUE used)
{
	uint64_t tokens[SHMLIMIT_REQUESTS_MAX];
	struct gate *g = gate_of(self);
	struct places *p;
	int error;

	if (NIL_P(value) || NIL_P(used))
		return Qnil;
	TypedData_Get_Struct(value, struct places, &places_type, p);
	if (!RB_TYPE_P(used, T_ARRAY) && g->limits != 1)
		rb_raise(rb_eArgError, "what was used must be an Array with one for each of the gate's %d limits",
		         (int)g->limits);
	for (size_t i = 0; i < p->n; i++) {
		VALUE one = RB_TYPE_P(used, T_ARRAY) ? rb_ary_entry(used, p->keys[i].limit) : used;

		tokens[i] = NIL_P(one) ? SHMLIMIT_GATE_NOT_KNOWN : native_u64(one, "use");
	}
	error = shmlimit_gate_settle(g->handle, p->keys, p->n, tokens, &p->held);
	RB_GC_GUARD(value);
	if (error != 0)
		native_raise(error, "gate");
	pass_reports(g);
	return Qnil;
}

/* ---- answers ---- */

/* Returns the name as a frozen String, or nil. */
static VALUE field_name(const struct shmlimit_gate_field *field)
{
	for (size_t i = 0; i < FIELD_NAMES; i++)
		if (RSTRING_LEN(names[i]) == (long)field->name_length && strcasecmp(field_names[i], field->name) == 0)
			return names[i];
	return Qnil;
}

/* A name comes once for each limit: that is one field, and its value is the list of theirs. */
static VALUE fields_of(const struct shmlimit_gate_answer *out)
{
	VALUE fields = rb_hash_new();

	for (uint32_t i = 0; i < out->field_count; i++) {
		const struct shmlimit_gate_field *field = &out->fields[i];
		VALUE name = field_name(field), before = i < 2 ? Qnil : rb_hash_lookup(fields, name);

		if (NIL_P(before)) {
			rb_hash_aset(fields, name, rb_str_new(field->value, field->value_length));
		} else {
			rb_str_cat(before, ", ", 2);
			rb_str_cat(before, field->value, field->value_length);
		}
	}
	return fields;
}

static VALUE answer_of(int argc, VALUE *argv, VALUE self, int enters)
{
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct asking a;
	const struct shmlimit_gate_answer *out = &a.answer;
	VALUE places;

	a.enters = enters;
	a.answer.struct_size = sizeof(a.answer);
	a.answer.buffer_size = sizeof(buffer);
	a.answer.buffer = buffer;
	places = ask_gate(&a, argc, argv, self);
	return rb_struct_new(answer_class, out->outcome < OUTCOMES ? outcomes[out->outcome] : Qnil,
	                     out->status == 0 ? Qnil : UINT2NUM(out->status),
	                     out->outcome == SHMLIMIT_GATE_REJECTED ? INT2NUM(a.places[out->denied_by]) : Qnil,
	                     out->remaining == UINT64_MAX ? Qnil : ULL2NUM(out->remaining),
	                     out->outcome == SHMLIMIT_GATE_REJECTED ? native_seconds(out->retry_after_ns) : Qnil,
	                     out->error == 0 ? Qnil : INT2NUM(out->error < 0 ? -out->error : out->error),
	                     fields_of(out), places);
}

/* ask(key, ...) */
static VALUE gate_ask(int argc, VALUE *argv, VALUE self)
{
	return answer_of(argc, argv, self, 0);
}

/* enter(key, ...) */
static VALUE gate_enter(int argc, VALUE *argv, VALUE self)
{
	return answer_of(argc, argv, self, 1);
}

/* allow?(key, ...) */
static VALUE gate_allow(int argc, VALUE *argv, VALUE self)
{
	struct asking a;

	a.enters = 0;
	a.answer.struct_size = sizeof(a.answer);
	a.answer.buffer_size = 0;
	a.answer.buffer = NULL;
	ask_gate(&a, argc, argv, self);
	return a.answer.status == 0 ? Qtrue : Qfalse;
}

/* forwarded(peer, field, advice): was it reported now that the peer, which is the key, is a proxy? forwarded(peer): could it be? */
static VALUE gate_forwarded(int argc, VALUE *argv, VALUE self)
{
	struct gate *g = gate_of(self);
	VALUE texts[3];
	const char *given[3] = { NULL, NULL, NULL };

	rb_check_arity(argc, 1, 3);
	for (int i = 0; i < argc; i++) {
		texts[i] = argv[i];
		given[i] = StringValueCStr(texts[i]);
	}

	size_t length = strlen(given[0]);
	struct shmlimit_gate_key key = { .bytes = given[0], .length = (uint32_t)length };
	int answer = shmlimit_gate_forwarded(g->handle, &key, 1, given[0], length, given[1], given[2]);

	for (int i = 0; i < argc; i++)
		RB_GC_GUARD(texts[i]);
	pass_reports(g);
	return answer == 1 ? Qtrue : Qfalse;
}

void gate_init(VALUE shmlimit)
{
	VALUE gate = rb_define_class_under(shmlimit, "Gate", rb_cObject);

	module = shmlimit;
	id_report = rb_intern("report");
	for (size_t i = 0; i < OUTCOMES; i++)
		outcomes[i] = ID2SYM(rb_intern(outcome_names[i]));
	for (size_t i = 0; i < FIELD_NAMES; i++)
		rb_gc_register_mark_object(names[i] = rb_interned_str_cstr(field_names[i]));
	answer_class = rb_struct_define_under(shmlimit, "Answer", "outcome", "status", "denied_by", "remaining",
	                                      "retry_after", "error", "fields", "places", NULL);
	rb_gc_register_mark_object(answer_class);
	places_class = rb_define_class_under(shmlimit, "Places", rb_cObject);
	rb_undef_alloc_func(places_class);
	pthread_atfork(NULL, NULL, after_fork_child);

	rb_define_alloc_func(gate, gate_allocate);
	rb_define_method(gate, "initialize", gate_initialize, 1);
	rb_define_method(gate, "attach", gate_attach, 0);
	rb_define_method(gate, "close", gate_close, 0);
	rb_define_method(gate, "limits", gate_limits, 0);
	rb_define_method(gate, "forwarded", gate_forwarded, -1);
	rb_define_method(gate, "ask", gate_ask, -1);
	rb_define_method(gate, "allow?", gate_allow, -1);
	rb_define_method(gate, "enter", gate_enter, -1);
	rb_define_method(gate, "leave", gate_leave, 1);
	rb_define_method(gate, "settle", gate_settle, 2);
}
