/*
 * gate_request: see gate_request.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <time.h>

#include "clock.h"
#include "header_fields.h"
#include "global_library.h"
#include "one_limit.h"
#include "refusal.h"
#include "turns.h"

_Static_assert(SHMLIMIT_GATE_BUFFER >= SHMLIMIT_REQUESTS_MAX * SHMLIMIT_GATE_BUFFER_EACH + HEADER_FIELDS_REST,
               "all fields fit");

/*
 * BOUND: a missing rule may have been set again under another id: search once. A rule may get
 * another algorithm between the question which one it has and the operation, which that algorithm
 * then lacks.
 */
static int is_asked_again(int answer, int tries)
{
	return answer == -ESRCH ? tries < 2 : answer == -EOPNOTSUPP && tries < 4;
}

/* Where the limit before it has no room in the segment, a limit is bounded by its own rule. */
static uint32_t share_of(const struct gate_request *q, size_t which)
{
	return q->left_out != 0 && which > 0 && (q->left_out & UINT32_C(1) << (which - 1)) ? 0 : q->shares[which];
}

/* Take from all limits of the list, whose requests this fills in, or from none; or continue. */
static int take(struct segment_ref *ref, struct view *view, struct gate_request *q, const size_t *list,
                struct multi_request m)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	size_t keys[SHMLIMIT_REQUESTS_MAX];
	int answer = -ESRCH;

	m.limiter = view->limiter;
	m.global = view->global;
	m.requests = requests;
	for (int tries = 0; tries == 0 || is_asked_again(answer, tries); tries++) {
		if (tries > 0 && answer == -ESRCH)
			segment_ref_find_rules(ref, view);
		for (size_t i = 0; i < m.n; i++) {
			keys[i] = q->key_index[list[i]];
			requests[i] = one_limit_request(view, q, list[i]);
			requests[i].share = share_of(q, list[i]);
		}
		if (q->held != NULL)
			answer = held_take(&q->take, q->pending, &m, keys, q->held);
		else if (q->pending)
			answer = multi_take_continue(&q->take, &m);
		else
			answer = multi_take_begin(&q->take, &m, 0);
		q->pending = answer == MULTI_TAKE_PENDING;
	}
	if (answer < 0 && q->shares[list[*m.failed]] != 0)
		one_limit_report_share(ref, q, list[*m.failed], answer);
	else if (answer == -EDOM || answer == -EOPNOTSUPP)
		one_limit_report(ref, q, list[*m.failed], answer);
	return answer;
}

/* Peek at one limit before anything is taken. A limit that allows adds no fields. */
static int glance(struct shmlimit_gate *gate, struct view *view, struct gate_request *q, size_t which,
                  struct shmlimit_gate_answer *out)
{
	struct shmlimit_result r;
	int answer = one_limit_peek(&gate->segment_ref, view, q, which, &r);

	if (answer == SHMLIMIT_DENIED)
		refusal_make(&gate->segment_ref, view, q, which, &r, out);
	else if (answer == SHMLIMIT_ALLOWED && r.retry_after_ns > 0)
		refusal_dry(q, which);
	return answer;
}

/*
 * The limit that denied last is asked first. If it denies again, the others are not asked: no token
 * of theirs is missing to other requests until it is given back. WHY NOT peek at all limits first:
 * allowed requests would pay for it.
 */
static void denier_first(const struct shmlimit_gate *gate, struct gate_request *q)
{
	const struct spec_limit *denier = __atomic_load_n(&gate->denier, __ATOMIC_RELAXED);
	size_t at = 1, which;

	while (at < q->enforced_count && q->limits[q->enforced[at]] != denier)
		at++;
	if (at >= q->enforced_count)
		return;
	which = q->enforced[at];
	q->enforced[at] = q->enforced[0];
	q->enforced[0] = which;
	q->moved = at;
}

/* The fields are in the order of the keys. */
static void in_order(struct gate_request *q)
{
	struct shmlimit_result r = q->results[0];
	size_t which = q->enforced[0], at = q->moved;

	q->enforced[0] = q->enforced[at];
	q->results[0] = q->results[at];
	q->enforced[at] = which;
	q->results[at] = r;
	q->moved = 0;
}

/*
 * If one denies, the tokens that the other limits took were given back, so those limits add no
 * fields.
 */
static int enforce(struct shmlimit_gate *gate, struct view *view, struct gate_request *q,
                   struct shmlimit_gate_answer *out)
{
	size_t failed = 0;
	struct multi_request m = { .n = q->enforced_count, .failed = &failed, .results = q->results };
	int answer;

	/* A share is one of the limit before it. */
	if (!q->pending && !q->has_shares)
		denier_first(gate, q);
	answer = take(&gate->segment_ref, view, q, q->enforced, m);
	if (answer == MULTI_TAKE_PENDING)
		return answer;
	if (answer == SHMLIMIT_DENIED) {
		refusal_make(&gate->segment_ref, view, q, q->enforced[failed], &q->results[failed], out);
		/* WHY NOT a plain store: other threads read it with each request. */
		if (failed != 0)
			__atomic_store_n(&gate->denier, q->limits[q->enforced[failed]], __ATOMIC_RELAXED);
	}
	if (q->moved != 0)
		in_order(q);
	return answer;
}

/*
 * Does a limit in a dry run need the agent, and the host has none? It is asked when all else is
 * decided, which is too late to have the caller begin again. An agent that ends in between is a
 * failure of the dry run.
 */
RARE static int lacks_agent(const struct view *view, const struct gate_request *q)
{
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };

	for (size_t i = 0; view->global != NULL && i < q->n; i++)
		if (q->limits[i]->dry_run && !q->limits[i]->peek &&
		    multi_take_is_global(view->limiter,
		                         __atomic_load_n(&view->ids[q->limits[i]->rule], __ATOMIC_RELAXED)))
			return global_library_load()->status(view->limiter, &status) == 0 && !status.serving;
	return 0;
}

/* What the request has paid of an estimate, unless a rule in a dry run would have denied it. */
RARE static void bill(const struct gate_request *q, size_t which, const struct shmlimit_result *r)
{
	struct shmlimit_gate_held *held = q->held;

	if (held != NULL && r->retry_after_ns == 0)
		held->bills[held->bill_count++] = (struct shmlimit_gate_bill){
			.key = (uint32_t)q->key_index[which],
			.paid = q->costs[which],
		};
}

/*
 * Places that the limit had free before this request, which has entered it; UINT64_MAX: it holds
 * none there. BOUND: each time for an earlier limit.
 */
RARE static uint64_t free_before(struct segment_ref *ref, struct view *view, const struct gate_request *q, size_t which)
{
	uint64_t most, held, free;
	struct shmlimit_result r;
	uint32_t i = 0;

	while (i < q->held->count && q->held->places[i].key != q->key_index[which])
		i++;
	if (i == q->held->count)
		return which == 0 ? UINT64_MAX : free_before(ref, view, q, which - 1);
	if (one_limit_peek(ref, view, q, which, &r) < 0)
		return UINT64_MAX;
	most = r.limit;
	held = r.limit - r.remaining;
	free = q->shares[which] == 0 || which == 0 ? UINT64_MAX : free_before(ref, view, q, which - 1);
	if (free < UINT64_MAX && free * q->shares[which] / SHMLIMIT_SHARE_ONE < most)
		most = free * q->shares[which] / SHMLIMIT_SHARE_ONE;
	return held <= most ? most - held + 1 : 0;
}

/*
 * A share in a dry run: the request's own limit becomes what the share allows now. WHY NOT in one
 * step with the limit before it: that one decides, and this one must not have it denied. Returns 0:
 * the share would deny.
 */
RARE static int rehearse_share(struct segment_ref *ref, struct view *view, struct gate_request *q, size_t which)
{
	uint64_t free = which == 0 ? UINT64_MAX : free_before(ref, view, q, which - 1);
	uint64_t most = free * q->shares[which] / SHMLIMIT_SHARE_ONE;

	q->shares[which] = 0;
	if (free == UINT64_MAX)
		return 1;
	if (!q->has_limit[which] || q->own_limits[which].capacity > most)
		q->own_limits[which] = (struct shmlimit_limit){ .struct_size = sizeof(q->own_limits[which]),
			                                        .flags = SHMLIMIT_LIMIT_PLACES,
			                                        .capacity = most };
	q->has_limit[which] = 1;
	return most > 0;
}

static void rehearse(struct shmlimit_gate *gate, struct view *view, struct gate_request *q, size_t which)
{
	struct shmlimit_result r = { .remaining = 0 };
	size_t failed = 0;
	struct multi_request m = { .n = 1, .failed = &failed, .results = &r };
	int peeks = q->limits[which]->peek;
	int answer = q->shares[which] != 0 && !rehearse_share(&gate->segment_ref, view, q, which) ? SHMLIMIT_DENIED
	             : peeks ? one_limit_peek(&gate->segment_ref, view, q, which, &r)
	             : q->limits[which]->delay_ns > 0
	                     ? one_limit_reserve(&gate->segment_ref, view, q, which, q->limits[which]->delay_ns, &r)
	                     : take(&gate->segment_ref, view, q, &which, m);

	if (answer < 0)
		q->dry_error = answer;
	else if (!peeks && answer != MULTI_TAKE_PENDING)
		refusal_note_remaining(q, &r);
	if (answer == SHMLIMIT_DENIED || (answer == SHMLIMIT_ALLOWED && r.retry_after_ns > 0))
		refusal_dry(q, which);
	else if (answer == SHMLIMIT_ALLOWED && q->limits[which]->estimated)
		bill(q, which, &r);
	if (answer == SHMLIMIT_ALLOWED && q->limits[which]->delay_ns > 0 && r.retry_after_ns == 0 && r.wait_ns > 0)
		refusal_dry_delay(q, which);
}

static inline void pass(struct view *view, struct gate_request *q, size_t which, const struct shmlimit_result *r,
                        struct shmlimit_gate_answer *out)
{
	refusal_note_remaining(q, r);
	if (q->limits[which]->estimated)
		bill(q, which, r);
	header_fields_add(view, q, which, SHMLIMIT_ALLOWED, r, out);
}

/* Of a request that goes after the limits without a delay have allowed it. */
RARE static void give_back_enforced(const struct view *view, const struct gate_request *q)
{
	for (size_t i = 0; i < q->enforced_count; i++)
		one_limit_give_back(view, q, q->enforced[i], &q->results[i]);
}

/*
 * Wait, if it is too early for the request; the fields of limits with and without delay= are in the
 * order of the keys.
 */
RARE static int finish_delayed(struct segment_ref *ref, struct view *view, struct gate_request *q,
                               struct shmlimit_gate_answer *out)
{
	size_t i = 0;
	int answer;

	q->step = STEP_DELAY;
	if (q->take.cancelled) {
		held_untimed(q->held);
		return -ECANCELED;
	}
	answer = turns_take(ref, view, q, out);
	if (answer == MULTI_TAKE_PENDING)
		return answer;
	if (answer != SHMLIMIT_ALLOWED || q->waited)
		held_untimed(q->held);
	if (answer != SHMLIMIT_ALLOWED) {
		give_back_enforced(view, q);
		turns_leave(view, q);
		return answer;
	}
	for (size_t delayed = 0; delayed < q->delayed_count; delayed++) {
		const struct delayed *at = &q->delayed[delayed];

		for (; i < q->enforced_count && q->enforced[i] < at->which; i++)
			pass(view, q, q->enforced[i], &q->results[i], out);
		pass(view, q, at->which, &at->result, out);
	}
	for (; i < q->enforced_count; i++)
		pass(view, q, q->enforced[i], &q->results[i], out);
	return SHMLIMIT_ALLOWED;
}

/* The limits that are asked before those that only take. */
RARE static int ask_others(struct shmlimit_gate *gate, struct view *view, struct gate_request *q,
                           struct shmlimit_gate_answer *out)
{
	int answer = SHMLIMIT_ALLOWED;

	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < q->n; i++)
		if (q->limits[i]->peek && !q->limits[i]->dry_run)
			answer = glance(gate, view, q, i, out);
	return answer == SHMLIMIT_ALLOWED ? turns_line_up(&gate->segment_ref, view, q, out) : answer;
}

/* Go on where the last call stopped. */
static int go_on(struct shmlimit_gate *gate, struct view *view, struct gate_request *q,
                 struct shmlimit_gate_answer *out)
{
	int answer = SHMLIMIT_ALLOWED;

	if (q->step == STEP_PEEK) {
		if (q->dry_count > 0 && q->take.steps && lacks_agent(view, q))
			return -EAGAIN;
		if (q->others > 0)
			answer = ask_others(gate, view, q, out);
		q->step = STEP_ENFORCE;
	}
	if (q->step == STEP_ENFORCE) {
		if (answer == SHMLIMIT_ALLOWED && q->enforced_count > 0)
			answer = enforce(gate, view, q, out);
		if (answer != SHMLIMIT_ALLOWED) {
			if (q->others > 0 && answer != MULTI_TAKE_PENDING)
				turns_leave(view, q);
			return answer;
		}
		q->step = STEP_REHEARSE;
	}
	for (; q->dry_count > 0 && q->at < q->n; q->at++) {
		if (q->limits[q->at]->dry_run && !segment_ref_no_room(&gate->segment_ref, view, q->limits[q->at]->rule))
			rehearse(gate, view, q, q->at);
		if (q->pending || q->take.cancelled)
			return q->pending ? MULTI_TAKE_PENDING : -ECANCELED;
	}
	if (q->others > 0)
		return finish_delayed(&gate->segment_ref, view, q, out);
	for (size_t i = 0; i < q->enforced_count; i++)
		pass(view, q, q->enforced[i], &q->results[i], out);
	return answer;
}

/* A limit that is peeked at, or has a delay=. */
RARE static void add_other(struct gate_request *q, size_t which)
{
	if (q->others++ == 0) {
		q->delayed_count = 0;
		q->waited = 0;
	}
	if (!q->limits[which]->peek)
		q->delayed[q->delayed_count++] = (struct delayed){ .which = which };
}

/*
 * The limits that decide: those that are neither in a dry run, nor peeked at, nor without room in
 * the segment.
 */
static void choose_enforced(const struct segment_ref *ref, const struct view *view, struct gate_request *q)
{
	int lacked = __atomic_load_n(&ref->lacked_room, __ATOMIC_RELAXED);
	size_t enforced = 0;

	q->others = 0;
	q->no_room = 0;
	q->left_out = 0;
	for (size_t i = 0; i < q->n; i++) {
		int no_room = lacked && !q->limits[i]->peek ? segment_ref_no_room(ref, view, q->limits[i]->rule) : 0;

		if (no_room != 0) {
			q->no_room = no_room;
			q->left_out |= UINT32_C(1) << i;
		} else if (q->limits[i]->plain) {
			q->enforced[enforced++] = i;
		} else if (!q->limits[i]->dry_run) {
			add_other(q, i);
		}
	}
	q->enforced_count = enforced;
}

/* What was taken or is pending in another segment is lost with that segment. */
static void begin_in(const struct segment_ref *ref, struct gate_request *q, const struct view *view)
{
	q->segment = view->number;
	q->step = STEP_PEEK;
	q->at = 0;
	q->pending = 0;
	q->dry_denied = q->dry_delayed = q->dry_error = 0;
	q->least = UINT64_MAX;
	q->moved = 0;
	choose_enforced(ref, view, q);
	if (q->held != NULL) {
		q->held->segment = view->number;
		q->held->count = q->held->bill_count = 0;
	}
}

/* Returns the answer, or an error of an enforced limit; q->dry_error is one of the others. */
static int decide_in_segment(struct shmlimit_gate *gate, struct gate_request *q, struct shmlimit_gate_answer *out)
{
	int error, answer = SHMLIMIT_ALLOWED;
	struct view *view = segment_ref_enter(&gate->segment_ref, &error);

	if (view == NULL && q->dry_count < q->n) {
		answer = error;
	} else if (view == NULL) {
		q->dry_error = error;
	} else {
		if (view->number != q->segment)
			begin_in(&gate->segment_ref, q, view);
		answer = go_on(gate, view, q, out);
	}
	segment_ref_leave();
	return answer;
}

/* Read the caller's keys. Returns 0, or the error in the arguments. */
static int read_keys(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, struct gate_request *q)
{
	const struct spec *spec = &gate->spec;

	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_gate_key *key = &keys[i];

		if (key->limit >= spec->limit_count || (key->bytes == NULL && key->length > 0) ||
		    (key->rate == NULL && key->rate_length > 0))
			return -EINVAL;
		if (key->length == 0)
			continue;
		q->limits[q->n] = &spec->limits[key->limit];
		q->shares[q->n] = q->limits[q->n]->share;
		if (key->share != 0 && q->limits[q->n]->share == 0)
			return -EINVAL;
		if (key->share != 0)
			q->shares[q->n] = key->share;
		if (q->shares[q->n] != 0 && q->held == NULL)
			return -EINVAL;
		q->has_shares |= q->shares[q->n] != 0;
		if (q->limits[q->n]->dry_run)
			q->dry_count++;
		q->costs[q->n] = key->cost != 0 ? key->cost : q->limits[q->n]->cost;
		q->key_index[q->n] = i;
		q->has_limit[q->n] =
			rate_find(&gate->rates, &gate->segment_ref, q->limits[q->n], key, &q->own_limits[q->n]);
		if (q->has_limit[q->n] < 0)
			return q->has_limit[q->n];
		key_make(q->limits[q->n], key->bytes, key->length, &q->keys[q->n]);
		q->n++;
	}
	return 0;
}

/* Apply the failure policy. A dry run refuses nothing. */
static int fail(struct shmlimit_gate *gate, int error, int refuse, struct shmlimit_gate_answer *out)
{
	segment_ref_count_failed(&gate->segment_ref, !refuse);
	out->outcome = SHMLIMIT_GATE_FAILED;
	out->error = error;
	out->status = refuse ? 503 : 0;
	return refuse ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED;
}

/* A limit was left out, and the others allow the request. */
static int pass_no_room(struct shmlimit_gate *gate, int error, struct shmlimit_gate_answer *out)
{
	segment_ref_count_no_room(&gate->segment_ref);
	out->outcome = SHMLIMIT_GATE_FAILED;
	out->error = error;
	return SHMLIMIT_ALLOWED;
}

static int has_room(const struct shmlimit_gate_answer *out, size_t n)
{
	return out->buffer == NULL || out->buffer_size >= n * SHMLIMIT_GATE_BUFFER_EACH + HEADER_FIELDS_REST;
}

/* A signal ends it early. */
RARE static void pause_for(uint64_t ns)
{
	const struct timespec time = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	(void)nanosleep(&time, NULL);
}

/* A wait that was says more than one that a dry run would have added, but not than a denial. */
static void say_passed(const struct gate_request *q, struct shmlimit_gate_answer *out)
{
	int delayed = q->others > 0 && q->waited;

	out->outcome = q->dry_denied    ? SHMLIMIT_GATE_REJECTED_DRY_RUN
	               : delayed        ? SHMLIMIT_GATE_DELAYED
	               : q->dry_delayed ? SHMLIMIT_GATE_DELAYED_DRY_RUN
	                                : SHMLIMIT_GATE_PASSED;
	if (out->outcome != SHMLIMIT_GATE_PASSED)
		out->denied_by = (uint32_t)q->by;
}

/* Decide, or go on with it, and write the answer. */
static int answer_request(struct shmlimit_gate *gate, struct gate_request *q, struct shmlimit_gate_answer *out)
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
	while ((answer = decide_in_segment(gate, q, out)) == MULTI_TAKE_PENDING && !q->take.steps)
		pause_for(q->take.poll_ns);
	if (answer == MULTI_TAKE_PENDING) {
		out->retry_after_ns = q->take.poll_ns;
		return SHMLIMIT_GATE_PENDING;
	}
	if (answer == -EAGAIN && q->take.steps)
		return answer;
	if (answer < 0)
		return fail(gate, answer, !gate->spec.fail_open, out);
	out->remaining = q->least;
	if (gate->spec.x_fields)
		header_fields_add_x(q, out);
	if (answer == SHMLIMIT_DENIED)
		out->outcome = SHMLIMIT_GATE_REJECTED;
	else if (q->dry_error != 0)
		return fail(gate, q->dry_error, 0, out);
	else if (q->no_room != 0)
		return pass_no_room(gate, q->no_room, out);
	else
		say_passed(q, out);
	return answer;
}

int gate_request_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                       struct shmlimit_gate_answer *out, struct gate_request *q)
{
	int error;

	if (gate == NULL || (keys == NULL && n > 0) || n > SHMLIMIT_REQUESTS_MAX || out == NULL ||
	    out->struct_size < ANSWER_SIZE_1_0)
		return -EINVAL;
	if (!has_room(out, n))
		return -ENOBUFS;
	q->n = q->enforced_count = q->dry_count = 0;
	q->key_count = n;
	q->spec = &gate->spec;
	q->take.cancelled = 0;
	q->segment = 0;
	q->moved = 0;
	q->has_shares = 0;
	q->least = UINT64_MAX;
	q->dry_denied = q->dry_delayed = q->dry_error = q->no_room = 0;
	error = read_keys(gate, keys, n, q);
	return error != 0 ? error : answer_request(gate, q, out);
}

int gate_request_continue(struct shmlimit_gate *gate, struct gate_request *q, struct shmlimit_gate_answer *out)
{
	return has_room(out, q->key_count) ? answer_request(gate, q, out) : -ENOBUFS;
}

void gate_request_cancel(struct shmlimit_gate *gate, struct gate_request *q)
{
	struct shmlimit_gate_answer none = { .struct_size = sizeof(none) };
	int error;
	struct view *view = segment_ref_enter(&gate->segment_ref, &error);

	q->take.cancelled = 1;
	if (view != NULL && view->number == q->segment) {
		(void)go_on(gate, view, q, &none);
		if (q->step == STEP_DELAY)
			give_back_enforced(view, q);
		if (q->others > 0)
			turns_leave(view, q);
	}
	segment_ref_leave();
}
