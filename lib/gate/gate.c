/*
 * gate: the public functions. The steps of a request are here in their order: keys, decisions, failure policy,
 * fields.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attachment.h"
#include "export.h"
#include "key.h"
#include "places.h"
#include "sized.h"

#define NS_PER_S UINT64_C(1000000000)
#define BUFFER_REST 128                /* bytes for the values of fields that an answer has once, and for alignment */
#define NUMBER_MAX 21                  /* bytes of a number, the NUL included */

_Static_assert(SHMLIMIT_GATE_BUFFER_EACH >= sizeof(struct shmlimit_fields), "a limit's fields fit");
_Static_assert(SHMLIMIT_GATE_BUFFER >= SHMLIMIT_REQUESTS_MAX * SHMLIMIT_GATE_BUFFER_EACH + BUFFER_REST, "all fields fit");
_Static_assert(BUFFER_REST >= 3 * NUMBER_MAX + _Alignof(struct shmlimit_fields), "the numbers fit");
_Static_assert(SHMLIMIT_GATE_FIELDS_MAX == 2 * SHMLIMIT_REQUESTS_MAX + 4, "Retry-After, and three of X-RateLimit");

/* The structure's size in the first release: a caller's must be at least this large. */
#define ANSWER_MIN sizeof(struct shmlimit_gate_answer)

struct shmlimit_gate {
	struct spec spec;
	struct attachment attachment;
};

/* The steps of a decision, in their order. */
enum step { STEP_PEEK, STEP_ENFORCE, STEP_REHEARSE };

/* One request that is being decided. */
struct asked {
	size_t n, asked;                      /* keys, and those of the caller, which include empty ones */
	const struct spec_limit *limits[SHMLIMIT_REQUESTS_MAX];
	uint64_t costs[SHMLIMIT_REQUESTS_MAX];
	size_t places[SHMLIMIT_REQUESTS_MAX]; /* in the caller's keys */
	struct key keys[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_gate_held *held;      /* NULL: no places are held */
	int dry_denied, dry_error;
	enum step step;
	size_t at;                            /* in STEP_REHEARSE: the limit that is next */
	int pending;                          /* the step waits for an agent */
	uint64_t segment;                     /* the number of the view in which it does */
	struct bundle bundle;
	size_t enforced[SHMLIMIT_REQUESTS_MAX], enforced_count, dry_count;
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX]; /* of those that are enforced */
	uint64_t least;                       /* tokens left in the limit that has the fewest */
	char *to;                             /* the rest of the caller's buffer */
	uint64_t limit, remaining, reset_ns;  /* of the limit that X-RateLimit describes */
};

/* A request that waits for an agent, with a copy of its keys' bytes. */
struct shmlimit_gate_pending {
	struct asked q;
	char bytes[];
};

EXPORT int shmlimit_gate_check(const char *text, struct shmlimit_gate_wrong *out)
{
	struct shmlimit_gate_wrong wrong = { .length = 0 };
	struct spec spec;
	int error;

	if (text == NULL)
		return -EINVAL;
	error = spec_read(text, &spec, &wrong);
	if (error == 0)
		spec_free(&spec);
	else if (error == -EINVAL && out != NULL)
		return sized_out(out, &wrong, sizeof(wrong)) == 0 ? error : -EINVAL;
	return error;
}

EXPORT int shmlimit_gate_open(const char *text, struct shmlimit_gate **out)
{
	struct shmlimit_gate_wrong wrong;
	struct shmlimit_gate *gate;
	int error;

	if (text == NULL || out == NULL)
		return -EINVAL;
	gate = calloc(1, sizeof(*gate));
	if (gate == NULL)
		return -ENOMEM;
	error = spec_read(text, &gate->spec, &wrong);
	if (error == 0) {
		error = attachment_begin(&gate->attachment, &gate->spec);
		if (error == 0) {
			*out = gate;
			return 0;
		}
		spec_free(&gate->spec);
	}
	free(gate);
	return error;
}

EXPORT void shmlimit_gate_close(struct shmlimit_gate *gate)
{
	if (gate == NULL)
		return;
	attachment_end(&gate->attachment);
	spec_free(&gate->spec);
	free(gate);
}

EXPORT size_t shmlimit_gate_limits(const struct shmlimit_gate *gate)
{
	return gate->spec.limit_count;
}

EXPORT void shmlimit_gate_report(struct shmlimit_gate *gate, void (*report)(void *arg, int bad, const char *text), void *arg)
{
	gate->attachment.report = report;
	gate->attachment.arg = arg;
}

EXPORT int shmlimit_gate_attach(struct shmlimit_gate *gate)
{
	return gate == NULL ? -EINVAL : attachment_look(&gate->attachment);
}

/* ---- decisions ---- */

/* Take from all limits of the list, or from none; or go on with that. */
static int take(struct attachment *a, struct view *view, struct asked *q, const size_t *list, size_t n, size_t *failed,
                struct shmlimit_result *results)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	size_t keys[SHMLIMIT_REQUESTS_MAX];
	int answer = -ESRCH;

	/* BOUND: a missing rule may have been set again under another id: search once. */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			attachment_find_rules(a, view);
		for (size_t i = 0; i < n; i++) {
			keys[i] = q->places[list[i]];
			requests[i] = (struct shmlimit_request){
				.rule = __atomic_load_n(&view->ids[q->limits[list[i]]->rule], __ATOMIC_RELAXED),
				.key = q->keys[list[i]].bytes,
				.key_len = q->keys[list[i]].length,
				.cost = q->costs[list[i]],
			};
		}
		if (q->held != NULL)
			answer = places_take(&q->bundle, q->pending, view->limiter, view->handles, requests, keys, n, q->held,
			                     failed, results);
		else if (q->pending)
			answer = bundle_go_on(&q->bundle, view->handles, requests, failed, results);
		else
			answer = bundle_begin(&q->bundle, view->limiter, view->handles, requests, n, 0, failed, results);
		q->pending = answer == BUNDLE_PENDING;
	}
	return answer;
}

/* Like take() of one limit, but takes nothing. A missing rule allows: the first ban creates it. */
static int peek(struct attachment *a, struct view *view, const struct asked *q, size_t which, struct shmlimit_result *r)
{
	size_t rule = q->limits[which]->rule;
	int id, answer = -ESRCH;

	*r = (struct shmlimit_result){ .remaining = UINT64_MAX };
	/* BOUND: as in take(). Only this rule is searched for, since each request may get here. */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			__atomic_store_n(&view->ids[rule], shmlimit_rule_find(view->limiter, a->spec->rules[rule].name),
			                 __ATOMIC_RELAXED);
		id = __atomic_load_n(&view->ids[rule], __ATOMIC_RELAXED);
		if (bundle_is_global(view->limiter, id))
			return -EOPNOTSUPP;
		answer = shmlimit_peek(view->limiter, id, q->keys[which].bytes, q->keys[which].length, q->costs[which], r);
	}
	return answer == -ESRCH ? SHMLIMIT_ALLOWED : answer;
}

/* ---- fields ---- */

static void add_field(struct shmlimit_gate_answer *out, const char *name, size_t name_length, const char *value)
{
	out->fields[out->field_count++] = (struct shmlimit_gate_field){ name, value, (uint32_t)name_length,
		                                                        (uint32_t)strlen(value) };
}

#define ADD_FIELD(out, name, value) add_field(out, name, sizeof(name) - 1, value)

static void add_number(struct shmlimit_gate_answer *out, struct asked *q, const char *name, size_t name_length, uint64_t value)
{
	char *at = q->to + NUMBER_MAX - 1;

	q->to += NUMBER_MAX;
	*at = '\0';
	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	add_field(out, name, name_length, at);
}

/* Add the fields of one limit's answer. They are written in place in the caller's buffer, without a copy. */
static void add_fields(const struct spec *spec, struct view *view, struct asked *q, size_t i, int answer,
                       const struct shmlimit_result *r, struct shmlimit_gate_answer *out)
{
	const struct spec_limit *limit = q->limits[i];
	struct shmlimit_fields *fields = (void *)q->to;
	struct shmlimit_rule rule;

	/* A rule in a dry run that denies has reached its limit. Clients get no fields of a dry run. */
	if (answer == SHMLIMIT_ALLOWED && r->retry_after_ns > 0)
		q->dry_denied = 1;
	if (out->buffer == NULL || (answer == SHMLIMIT_ALLOWED && limit->denied_only))
		return;
	rule.struct_size = sizeof(rule);
	if (shmlimit_rule_get(view->limiter, __atomic_load_n(&view->ids[limit->rule], __ATOMIC_RELAXED), &rule) != 0 ||
	    rule.mode != SHMLIMIT_ENFORCE)
		return;
	fields->struct_size = sizeof(*fields);
	if (shmlimit_fields(spec->rules[limit->rule].name, &rule, answer, r, fields) != 0)
		return;
	q->to += sizeof(*fields);
	ADD_FIELD(out, "RateLimit-Policy", fields->policy);
	ADD_FIELD(out, "RateLimit", fields->limit);
	if (fields->retry_after[0] != '\0')
		ADD_FIELD(out, "Retry-After", fields->retry_after);
	if (r->remaining < q->remaining) {
		q->limit = r->limit;
		q->remaining = r->remaining;
		q->reset_ns = out->retry_after_ns != 0 && out->retry_after_ns != UINT64_MAX ? out->retry_after_ns : r->reset_after_ns;
	}
}

/*
 * Add the older X-RateLimit fields, which have no policy: those of the limit that denies, or that has the fewest
 * tokens left.
 */
static void add_x_fields(struct asked *q, struct shmlimit_gate_answer *out)
{
	struct timespec now;
	uint64_t reset_s;

	if (out->field_count == 0)
		return;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	reset_s = (uint64_t)now.tv_sec + (q->reset_ns + (uint64_t)now.tv_nsec + NS_PER_S - 1) / NS_PER_S;
#define ADD_NUMBER(name, value) add_number(out, q, name, sizeof(name) - 1, value)
	ADD_NUMBER("X-RateLimit-Limit", q->limit);
	ADD_NUMBER("X-RateLimit-Remaining", q->remaining);
	ADD_NUMBER("X-RateLimit-Reset", reset_s);
#undef ADD_NUMBER
}

/* ---- a request ---- */

static void note_remaining(struct asked *q, const struct shmlimit_result *r)
{
	if (r->remaining < q->least)
		q->least = r->remaining;
}

static void refuse(struct shmlimit_gate *gate, struct view *view, struct asked *q, size_t which,
                   const struct shmlimit_result *r, struct shmlimit_gate_answer *out)
{
	out->denied_by = (uint32_t)q->places[which];
	out->status = q->limits[which]->status;
	out->retry_after_ns = r->retry_after_ns;
	note_remaining(q, r);
	add_fields(&gate->spec, view, q, which, SHMLIMIT_DENIED, r, out);
}

/* Peek at one limit before anything is taken. A limit that allows adds no fields. */
static int glance(struct shmlimit_gate *gate, struct view *view, struct asked *q, size_t which,
                  struct shmlimit_gate_answer *out)
{
	struct shmlimit_result r;
	int answer = peek(&gate->attachment, view, q, which, &r);

	if (answer == SHMLIMIT_DENIED)
		refuse(gate, view, q, which, &r, out);
	else if (answer == SHMLIMIT_ALLOWED && r.retry_after_ns > 0)
		q->dry_denied = 1;
	return answer;
}

/* If one denies, the tokens that the other limits took were given back, so those limits add no fields. */
static int enforce(struct shmlimit_gate *gate, struct view *view, struct asked *q, struct shmlimit_gate_answer *out)
{
	size_t failed = 0;
	int answer = take(&gate->attachment, view, q, q->enforced, q->enforced_count, &failed, q->results);

	if (answer == SHMLIMIT_DENIED)
		refuse(gate, view, q, q->enforced[failed], &q->results[failed], out);
	return answer;
}

static void rehearse(struct shmlimit_gate *gate, struct view *view, struct asked *q, size_t which)
{
	struct shmlimit_result r;
	size_t failed;
	int peeks = q->limits[which]->peek;
	int answer = peeks ? peek(&gate->attachment, view, q, which, &r) :
	                     take(&gate->attachment, view, q, &which, 1, &failed, &r);

	/* A dry run comes when all else is decided. So it waits rather than have the caller begin again. */
	if (answer == -EAGAIN && q->bundle.steps && !peeks) {
		q->bundle.steps = 0;
		answer = take(&gate->attachment, view, q, &which, 1, &failed, &r);
		q->bundle.steps = 1;
	}
	if (answer < 0)
		q->dry_error = answer;
	else if (!peeks && answer != BUNDLE_PENDING)
		note_remaining(q, &r);
	if (answer == SHMLIMIT_DENIED || (answer == SHMLIMIT_ALLOWED && r.retry_after_ns > 0))
		q->dry_denied = 1;
}

/* Go on where the last call stopped. */
static int go_on(struct shmlimit_gate *gate, struct view *view, struct asked *q, struct shmlimit_gate_answer *out)
{
	int answer = SHMLIMIT_ALLOWED;

	if (q->step == STEP_PEEK) {
		for (size_t i = 0; answer == SHMLIMIT_ALLOWED && q->enforced_count + q->dry_count < q->n && i < q->n; i++)
			if (q->limits[i]->peek && !q->limits[i]->dry_run)
				answer = glance(gate, view, q, i, out);
		q->step = STEP_ENFORCE;
	}
	if (q->step == STEP_ENFORCE) {
		if (answer == SHMLIMIT_ALLOWED && q->enforced_count > 0)
			answer = enforce(gate, view, q, out);
		if (answer != SHMLIMIT_ALLOWED)
			return answer;
		q->step = STEP_REHEARSE;
	}
	for (; q->dry_count > 0 && q->at < q->n; q->at++) {
		if (q->limits[q->at]->dry_run)
			rehearse(gate, view, q, q->at);
		if (q->pending || q->bundle.cancelled)
			return q->pending ? BUNDLE_PENDING : -ECANCELED;
	}
	for (size_t i = 0; i < q->enforced_count; i++) {
		note_remaining(q, &q->results[i]);
		add_fields(&gate->spec, view, q, q->enforced[i], answer, &q->results[i], out);
	}
	return answer;
}

/* What was taken or is pending in another segment is lost with that segment. */
static void begin_in(struct asked *q, const struct view *view)
{
	q->segment = view->number;
	q->step = STEP_PEEK;
	q->at = 0;
	q->pending = 0;
	q->dry_denied = q->dry_error = 0;
	q->least = UINT64_MAX;
	if (q->held != NULL) {
		q->held->segment = view->number;
		q->held->count = 0;
	}
}

/* Returns the answer, or an error of the limits that are enforced; q->dry_error is one of the others. */
static int decide_asked(struct shmlimit_gate *gate, struct asked *q, struct shmlimit_gate_answer *out)
{
	int error, answer = SHMLIMIT_ALLOWED;
	struct view *view = attachment_enter(&gate->attachment, &error);

	if (view == NULL && q->dry_count < q->n) {
		answer = error;
	} else if (view == NULL) {
		q->dry_error = error;
	} else {
		if (view->number != q->segment)
			begin_in(q, view);
		answer = go_on(gate, view, q, out);
	}
	attachment_leave();
	return answer;
}

/* Read the caller's keys. Returns 0, or the error in the arguments. */
static int read_keys(const struct spec *spec, const struct shmlimit_gate_key *keys, size_t n, struct asked *q)
{
	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_gate_key *key = &keys[i];

		if (key->limit >= spec->limit_count || (key->bytes == NULL && key->length > 0))
			return -EINVAL;
		if (key->length == 0)
			continue;
		q->limits[q->n] = &spec->limits[key->limit];
		if (q->limits[q->n]->dry_run)
			q->dry_count++;
		else if (!q->limits[q->n]->peek)
			q->enforced[q->enforced_count++] = q->n;
		q->costs[q->n] = key->cost != 0 ? key->cost : q->limits[q->n]->cost;
		q->places[q->n] = i;
		key_make(q->limits[q->n], key->bytes, key->length, &q->keys[q->n]);
		q->n++;
	}
	return 0;
}

/* Apply the failure policy. A dry run refuses nothing. */
static int fail(struct shmlimit_gate *gate, int error, int refuse, struct shmlimit_gate_answer *out)
{
	attachment_count_failed(&gate->attachment, !refuse);
	out->outcome = SHMLIMIT_GATE_FAILED;
	out->error = error;
	out->status = refuse ? 503 : 0;
	return refuse ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED;
}

static int has_room(const struct shmlimit_gate_answer *out, size_t n)
{
	return out->buffer == NULL || out->buffer_size >= n * SHMLIMIT_GATE_BUFFER_EACH + BUFFER_REST;
}

/* Decide, or go on with it, and write the answer. */
static int answer_asked(struct shmlimit_gate *gate, struct asked *q, struct shmlimit_gate_answer *out)
{
	int answer;

	out->outcome = SHMLIMIT_GATE_UNLIMITED;
	out->status = out->denied_by = out->field_count = out->reserved32 = 0;
	out->error = 0;
	out->remaining = UINT64_MAX;
	out->retry_after_ns = 0;
	if (q->n == 0)
		return SHMLIMIT_ALLOWED;
	q->to = out->buffer + -(uintptr_t)out->buffer % _Alignof(struct shmlimit_fields);
	q->remaining = UINT64_MAX;
	answer = decide_asked(gate, q, out);
	if (answer == BUNDLE_PENDING) {
		out->retry_after_ns = q->bundle.poll_ns;
		return SHMLIMIT_GATE_PENDING;
	}
	if (answer == -EAGAIN && q->bundle.steps)
		return answer;
	if (answer < 0)
		return fail(gate, answer, !gate->spec.fail_open, out);
	out->remaining = q->least;
	if (gate->spec.x_fields)
		add_x_fields(q, out);
	if (answer == SHMLIMIT_DENIED)
		out->outcome = SHMLIMIT_GATE_REJECTED;
	else if (q->dry_error != 0)
		return fail(gate, q->dry_error, 0, out);
	else
		out->outcome = q->dry_denied ? SHMLIMIT_GATE_REJECTED_DRY_RUN : SHMLIMIT_GATE_PASSED;
	return answer;
}

static int ask(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
               struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held, int steps, struct asked *q)
{
	int error;

	if (gate == NULL || (keys == NULL && n > 0) || n > SHMLIMIT_REQUESTS_MAX || out == NULL ||
	    out->struct_size < ANSWER_MIN)
		return -EINVAL;
	if (!has_room(out, n))
		return -ENOBUFS;
	q->n = q->enforced_count = q->dry_count = 0;
	q->asked = n;
	q->held = held;
	q->bundle.steps = steps;
	q->bundle.cancelled = 0;
	q->segment = 0;
	q->least = UINT64_MAX;
	q->dry_denied = q->dry_error = 0;
	error = read_keys(&gate->spec, keys, n, q);
	return error != 0 ? error : answer_asked(gate, q, out);
}

EXPORT int shmlimit_gate_ask(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                             struct shmlimit_gate_answer *out)
{
	struct asked q;

	return ask(gate, keys, n, out, NULL, 0, &q);
}

EXPORT int shmlimit_gate_enter(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held)
{
	struct asked q;

	if (held == NULL || held->struct_size < sizeof(*held))
		return -EINVAL;
	held->count = 0;
	return ask(gate, keys, n, out, held, 0, &q);
}

static int is_made(const struct key *key)
{
	return key->bytes == (const void *)key->made;
}

/* Copy what is being decided, with the bytes of its keys. */
static struct shmlimit_gate_pending *keep(const struct asked *q)
{
	struct shmlimit_gate_pending *p;
	size_t size = 0;

	for (size_t i = 0; i < q->n; i++)
		size += is_made(&q->keys[i]) ? 0 : q->keys[i].length;
	p = malloc(sizeof(*p) + size);
	if (p == NULL)
		return NULL;
	p->q = *q;
	size = 0;
	for (size_t i = 0; i < q->n; i++) {
		struct key *key = &p->q.keys[i];

		if (is_made(&q->keys[i])) {
			key->bytes = key->made;
		} else {
			key->bytes = memcpy(p->bytes + size, q->keys[i].bytes, key->length);
			size += key->length;
		}
	}
	return p;
}

/* Give back what was taken in the step that is pending. */
static void cancel(struct shmlimit_gate *gate, struct asked *q)
{
	struct shmlimit_gate_answer none = { .struct_size = sizeof(none) };
	int error;
	struct view *view = attachment_enter(&gate->attachment, &error);

	q->bundle.cancelled = 1;
	if (view != NULL && view->number == q->segment)
		(void)go_on(gate, view, q, &none);
	attachment_leave();
}

EXPORT int shmlimit_gate_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held,
                               struct shmlimit_gate_pending **pending)
{
	struct asked q;
	int answer;

	if (pending == NULL || (held != NULL && held->struct_size < sizeof(*held)))
		return -EINVAL;
	if (held != NULL)
		held->count = 0;
	answer = ask(gate, keys, n, out, held, 1, &q);
	if (answer != SHMLIMIT_GATE_PENDING)
		return answer;
	*pending = keep(&q);
	if (*pending != NULL)
		return answer;
	cancel(gate, &q);
	return -ENOMEM;
}

EXPORT int shmlimit_gate_poll(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                              struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held)
{
	int answer;

	if (gate == NULL || pending == NULL || out == NULL || out->struct_size < ANSWER_MIN ||
	    (held == NULL) != (pending->q.held == NULL))
		return -EINVAL;
	pending->q.held = held;
	if (!has_room(out, pending->q.asked))
		return -ENOBUFS;
	answer = answer_asked(gate, &pending->q, out);
	if (answer != SHMLIMIT_GATE_PENDING)
		free(pending);
	return answer;
}

EXPORT void shmlimit_gate_cancel(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                                 struct shmlimit_gate_held *held)
{
	if (gate == NULL || pending == NULL)
		return;
	pending->q.held = held;
	cancel(gate, &pending->q);
	free(pending);
}

static void leave(const struct spec *spec, const struct view *view, const struct shmlimit_gate_key *keys,
                  const struct shmlimit_gate_place *place)
{
	const struct shmlimit_gate_key *from = &keys[place->key];
	struct key key;

	key_make(&spec->limits[from->limit], from->bytes, from->length, &key);
	(void)shmlimit_leave(view->limiter, place->rule, key.bytes, key.length, &place->hold);
}

EXPORT int shmlimit_gate_leave(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_held *held)
{
	const struct view *view;
	int error;

	if (gate == NULL || (keys == NULL && n > 0) || held == NULL || held->struct_size < sizeof(*held) ||
	    held->count > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < held->count; i++)
		if (held->places[i].key >= n || keys[held->places[i].key].limit >= gate->spec.limit_count ||
		    keys[held->places[i].key].length == 0 || keys[held->places[i].key].bytes == NULL)
			return -EINVAL;
	if (held->count == 0)
		return 0;
	view = attachment_enter(&gate->attachment, &error);
	for (uint32_t i = 0; view != NULL && view->number == held->segment && i < held->count; i++)
		leave(&gate->spec, view, keys, &held->places[i]);
	attachment_leave();
	held->count = 0;
	return 0;
}
