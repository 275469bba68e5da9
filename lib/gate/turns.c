/*
 * turns: see turns.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "clock.h"
#include "one_limit.h"
#include "refusal.h"
#include "turns.h"

#define SOON_NS UINT64_C(20000000)
/* No more often is a limit asked that denies a turn, such as one without a slot for the key. */
#define AGAIN_NS UINT64_C(1000000)

/* WHY not of several limits: the request would pass later than its turn in one of them. */
static uint64_t soon_ns(const struct gate_request *q)
{
	return q->delayed_count == 1 ? SOON_NS : 0;
}

/* In a long line everyone looks less often: looking takes a look at each place. */
#define LONG_LINE 64

/* A request that may wait, and what the functions of this file pass on. */
struct waiting {
	struct segment_ref *ref;
	struct view *view;
	struct gate_request *q;
	struct shmlimit_gate_answer *out;
	uint64_t now_ns;   /* by the monotonic clock */
	uint64_t again_ns; /* how long until a limit is asked again for its turn */
};

/* What decides how long a request waits for one limit. */
struct terms {
	uint64_t capacity, full_ns; /* the time in which an empty limit is full */
	uint64_t longest_ns;        /* that a request may wait */
	struct line_size line;      /* as many turns as are in that time, and some */
	uint64_t least_ns;          /* that it waits even if the limit is full: its cost is above the capacity */
};

static uint64_t times(uint64_t n, uint64_t ns, uint64_t of)
{
	unsigned __int128 product = (unsigned __int128)n * ns / (of | (of == 0));

	return product > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)product;
}

/* Returns 0, or an error: -ESRCH as well. */
static int terms_of(const struct view *view, const struct gate_request *q, size_t which, struct terms *t)
{
	struct shmlimit_request request = one_limit_request(view, q, which);
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	uint64_t cost = q->costs[which], refill, each_ns;
	int error = shmlimit_rule_get(view->limiter, request.rule, &rule);

	if (error != 0)
		return error;
	t->longest_ns = q->limits[which]->delay_ns;
	if (request.limit == NULL && rule.max_wait_ns < t->longest_ns)
		t->longest_ns = rule.max_wait_ns;
	t->capacity = request.limit != NULL ? request.limit->capacity : rule.capacity;
	refill = request.limit != NULL ? request.limit->refill : rule.refill != 0 ? rule.refill : rule.capacity;
	t->full_ns = times(t->capacity, request.limit != NULL ? request.limit->period_ns : rule.period_ns, refill);
	each_ns = times(cost, t->full_ns, t->capacity);
	t->line = (struct line_size){ t->longest_ns / (each_ns | (each_ns == 0)) + 2, t->longest_ns };
	t->least_ns = cost > t->capacity ? times(cost - t->capacity, t->full_ns, t->capacity) : 0;
	return 0;
}

/*
 * How long until there is room for `ahead` requests like this one and for itself: for what is more
 * than the capacity the limit fills again and again. Returns SHMLIMIT_ALLOWED: there is room now;
 * SHMLIMIT_DENIED; or an error.
 */
static int look_ahead(const struct view *view, const struct gate_request *q, size_t which, const struct terms *t,
                      uint64_t ahead, uint64_t *wait_ns)
{
	struct shmlimit_request request = one_limit_request(view, q, which);
	uint64_t tokens = times(ahead + 1, request.cost, 1), fills;
	struct shmlimit_result r = { .remaining = 0 };
	int answer;

	fills = t->capacity != 0 ? (tokens - 1) / t->capacity : 0;
	request.cost = tokens - fills * t->capacity;
	answer = multi_take_peek(view->limiter, &request, &r);
	*wait_ns = answer == SHMLIMIT_DENIED ? r.retry_after_ns : 0;
	if (*wait_ns != UINT64_MAX)
		*wait_ns += times(fills, t->full_ns, 1);
	return answer < 0 ? answer : *wait_ns != 0 ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED;
}

void turns_leave(const struct view *view, struct gate_request *q)
{
	for (size_t i = 0; i < q->delayed_count; i++)
		line_leave(view->limiter, &q->keys[q->delayed[i].which], &q->delayed[i].line);
}

/*
 * It would wait for too long. The rule denies it, and counts that; or has room for it by now. The
 * request may wait when the line is as short as the limit allows.
 */
static int turn_away(const struct waiting *w, struct delayed *at, const struct terms *t, uint64_t ahead,
                     uint64_t wait_ns)
{
	int answer = ahead != 0 ? one_limit_peek(w->ref, w->view, w->q, at->which, &at->result) : SHMLIMIT_DENIED;

	/* What there is room for belongs to those ahead; the rule does not count this denial. */
	if (ahead != 0 && answer == SHMLIMIT_ALLOWED)
		answer = SHMLIMIT_DENIED;
	else if (answer == SHMLIMIT_DENIED)
		answer = one_limit_reserve(w->ref, w->view, w->q, at->which, 0, &at->result);
	if (answer == SHMLIMIT_ALLOWED) {
		at->taken = 1;
		at->due_ns = clock_read(CLOCK_MONOTONIC);
	}
	if (answer != SHMLIMIT_DENIED)
		return answer;
	at->result.retry_after_ns = wait_ns == UINT64_MAX || t->least_ns > t->longest_ns ? UINT64_MAX
	                            : wait_ns > t->longest_ns                            ? wait_ns - t->longest_ns
	                                                                                 : 1;
	refusal_make(w->ref, w->view, w->q, at->which, &at->result, w->out);
	return answer;
}

/* A rule that is in a dry run itself makes no request wait. */
static int line_up_dry(const struct waiting *w, struct delayed *at)
{
	int answer =
		one_limit_reserve(w->ref, w->view, w->q, at->which, w->q->limits[at->which]->delay_ns, &at->result);

	at->taken = answer == SHMLIMIT_ALLOWED;
	if (answer == SHMLIMIT_ALLOWED && at->result.retry_after_ns > 0)
		refusal_dry(w->q, at->which);
	else if (answer == SHMLIMIT_ALLOWED && at->result.wait_ns > 0)
		refusal_dry_delay(w->q, at->which);
	return answer;
}

/*
 * Others may wait though there is room: they have not looked yet since another left. WHY NOT ask
 * where there is room for another one, too: the one that looks next passes as well, unless it is
 * stopped; and most requests that pass meet such a limit.
 */
static int others_wait(const struct view *view, const struct gate_request *q, size_t which,
                       const struct shmlimit_result *r)
{
	struct terms t;

	if (r->remaining / 2 >= q->costs[which])
		return 0;
	return terms_of(view, q, which, &t) == 0 &&
	       line_length(view->limiter, one_limit_request(view, q, which).rule, &q->keys[which], &t.line) != 0;
}

/* Wait at the end of the line, unless that is for too long. */
static int line_up(const struct waiting *w, struct delayed *at)
{
	int rule = one_limit_request(w->view, w->q, at->which).rule, answer, fits;
	uint64_t wait_ns, ahead = 0;
	struct terms t;

	answer = terms_of(w->view, w->q, at->which, &t);
	if (answer == 0)
		answer = look_ahead(w->view, w->q, at->which, &t, 0, &wait_ns);
	if (answer < 0)
		return answer;
	at->waits = 1;
	fits = wait_ns <= t.longest_ns && t.least_ns <= t.longest_ns;
	if (fits) {
		fits = line_enter(w->view->limiter, rule, &w->q->keys[at->which], &t.line, &at->line);
		/*
		 * WHY NOT line_ahead(): others of the same moment may be ahead only by what it
		 * takes them for.
		 */
		ahead = line_length(w->view->limiter, rule, &w->q->keys[at->which], &t.line);
		ahead -= ahead != 0 && at->line.place.value != 0;
	}
	if (ahead != 0)
		answer = look_ahead(w->view, w->q, at->which, &t, ahead, &wait_ns);
	if (answer == SHMLIMIT_DENIED && (!fits || wait_ns > t.longest_ns))
		return turn_away(w, at, &t, ahead, wait_ns);
	at->by_ns = clock_read(CLOCK_MONOTONIC) + wait_ns;
	if (wait_ns >= w->q->longest_ns && !w->q->dry_denied) {
		w->q->longest_ns = wait_ns;
		w->q->by = w->q->key_index[at->which];
	}
	return answer < 0 ? answer : SHMLIMIT_ALLOWED;
}

int turns_line_up(struct segment_ref *ref, struct view *view, struct gate_request *q, struct shmlimit_gate_answer *out)
{
	const struct waiting w = { .ref = ref, .view = view, .q = q, .out = out };

	q->begun_ns = clock_read(CLOCK_MONOTONIC);
	q->longest_ns = 0;
	for (size_t i = 0; i < q->delayed_count; i++) {
		struct delayed *at = &q->delayed[i];
		struct shmlimit_result r;
		int answer = one_limit_peek(ref, view, q, at->which, &r);

		if (answer == SHMLIMIT_ALLOWED && r.retry_after_ns != 0)
			answer = line_up_dry(&w, at);
		/* Also where the rule has left its dry run since. */
		if (answer == SHMLIMIT_DENIED ||
		    (answer == SHMLIMIT_ALLOWED && !at->taken && others_wait(view, q, at->which, &r)))
			answer = line_up(&w, at);
		if (answer != SHMLIMIT_ALLOWED) {
			turns_leave(view, q);
			return answer;
		}
	}
	return SHMLIMIT_ALLOWED;
}

/*
 * How long until the request looks again: for as long as its turn is not SOON. While others are
 * ahead it looks more often, since they may leave: about as often as the line moves.
 */
static uint64_t look_again_ns(const struct gate_request *q, uint64_t wait_ns, uint64_t ahead)
{
	uint64_t rest_ns = wait_ns > soon_ns(q) / 2 ? wait_ns - soon_ns(q) / 2 : 1, step_ns = rest_ns;

	if (ahead != 0)
		step_ns = wait_ns / (ahead > LONG_LINE ? 2 : ahead < 7 ? ahead + 1 : 8);
	if (step_ns < SOON_NS)
		step_ns = SOON_NS;
	return step_ns < rest_ns ? step_ns : rest_ns;
}

/*
 * Is the request's turn in this limit SOON? Returns SHMLIMIT_ALLOWED; MULTI_TAKE_PENDING, after
 * w->again_ns it is to look again; SHMLIMIT_DENIED: it has waited for twice as long as it may,
 * since something else took the tokens; or an error.
 */
static int is_soon(struct waiting *w, struct delayed *at)
{
	uint64_t ahead, wait_ns;
	struct terms t;
	int answer;

	/* Its turn came while another limit had none for it: it passed unused. */
	if (at->taken && at->due_ns != 0 && w->now_ns > at->due_ns + soon_ns(w->q))
		at->taken = 0;
	if (at->taken || !at->waits)
		return SHMLIMIT_ALLOWED;
	ahead = line_ahead(w->view->limiter, &w->q->keys[at->which], &at->line);
	answer = terms_of(w->view, w->q, at->which, &t);
	if (answer == -ESRCH) {
		segment_ref_find_rules(w->ref, w->view);
		answer = terms_of(w->view, w->q, at->which, &t);
	}
	/*
	 * Those that are ahead when all of them should have passed, and did not take what there is
	 * room for, are stopped, and keep no other waiting. Without room, something else took it.
	 */
	if (answer == 0 && ahead != 0 && w->now_ns > at->by_ns && w->now_ns - at->by_ns > SOON_NS) {
		answer = look_ahead(w->view, w->q, at->which, &t, 0, &wait_ns);
		ahead = wait_ns <= SOON_NS ? 0 : ahead;
		if (answer == SHMLIMIT_DENIED && ahead != 0)
			at->by_ns = w->now_ns + wait_ns;
	}
	if (answer >= 0)
		answer = look_ahead(w->view, w->q, at->which, &t, ahead, &wait_ns);
	if (answer < 0)
		return answer;
	if (wait_ns > 2 * t.longest_ns || w->now_ns - w->q->begun_ns > 2 * t.longest_ns - wait_ns)
		return turn_away(w, at, &t, ahead, wait_ns);
	if (answer == SHMLIMIT_ALLOWED)
		return answer;
	if (w->now_ns + wait_ns < at->by_ns)
		at->by_ns = w->now_ns + wait_ns;
	at->soon_ns = t.least_ns + soon_ns(w->q);
	if (wait_ns <= (at->soon_ns < t.longest_ns ? at->soon_ns : t.longest_ns))
		return SHMLIMIT_ALLOWED;
	w->again_ns = look_again_ns(w->q, wait_ns - t.least_ns, ahead);
	if (ahead != 0 && w->again_ns > at->by_ns + SOON_NS + 1 - w->now_ns)
		w->again_ns = at->by_ns + SOON_NS + 1 - w->now_ns;
	return MULTI_TAKE_PENDING;
}

/*
 * Take the request's turn, which is SOON, or where it need not wait. Others may have been quicker.
 */
static int take_turn(struct waiting *w, struct delayed *at)
{
	int answer = one_limit_reserve(w->ref, w->view, w->q, at->which, at->waits ? at->soon_ns + soon_ns(w->q) : 0,
	                               &at->result);

	if (answer == SHMLIMIT_ALLOWED) {
		at->taken = 1;
		at->due_ns = w->now_ns + at->result.wait_ns;
	}
	if (answer != SHMLIMIT_DENIED)
		return answer;
	if (!at->waits) {
		answer = line_up(w, at);
		if (answer != SHMLIMIT_ALLOWED || at->taken)
			return answer;
	}
	w->again_ns = at->result.retry_after_ns < SOON_NS ? at->result.retry_after_ns : SOON_NS;
	if (w->again_ns < AGAIN_NS)
		w->again_ns = AGAIN_NS;
	return MULTI_TAKE_PENDING;
}

int turns_take(struct segment_ref *ref, struct view *view, struct gate_request *q, struct shmlimit_gate_answer *out)
{
	struct waiting w = { .ref = ref, .view = view, .q = q, .out = out, .now_ns = clock_read(CLOCK_MONOTONIC) };
	int answer = SHMLIMIT_ALLOWED, waits = 0;
	uint64_t due_ns = 0;

	q->take.poll_ns = 0;
	for (size_t i = 0; i < q->delayed_count; i++) {
		answer = is_soon(&w, &q->delayed[i]);
		if (answer != SHMLIMIT_ALLOWED && answer != MULTI_TAKE_PENDING)
			return answer;
		waits |= answer == MULTI_TAKE_PENDING;
		if (answer == MULTI_TAKE_PENDING && w.again_ns > q->take.poll_ns)
			q->take.poll_ns = w.again_ns;
	}
	for (size_t i = 0; !waits && i < q->delayed_count; i++) {
		struct delayed *at = &q->delayed[i];

		if (!at->taken)
			answer = take_turn(&w, at);
		if (answer == MULTI_TAKE_PENDING)
			q->take.poll_ns = w.again_ns;
		if (answer == MULTI_TAKE_PENDING)
			break;
		if (answer != SHMLIMIT_ALLOWED)
			return answer;
		due_ns = at->due_ns > due_ns ? at->due_ns : due_ns;
	}
	waits |= answer == MULTI_TAKE_PENDING;
	if (!waits)
		turns_leave(view, q);
	if (!waits && due_ns > w.now_ns) {
		q->take.poll_ns = due_ns - w.now_ns;
		waits = 1;
	}
	q->waited |= waits;
	return waits ? MULTI_TAKE_PENDING : SHMLIMIT_ALLOWED;
}
