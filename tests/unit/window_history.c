/*
 * window_history: random histories of WINDOW rules against a plain queue of times:
 * takes, charges, reservations, refunds, denied take_alls, counted refusals and changes
 * of the rule. Every fact of every answer must be the queue's (I1, I2 for windows).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#include "limiter.h"
#include "rule.h"
#include "window.h"

#define T0 (1000 * SECOND)
#define MOST 16
#define HISTORIES 250000
#define ASKS 24
#define KEYS_AT_ONCE 32
#define SHORTEST_NS ((uint64_t)1 << 8) /* less is less than a tick of the longest period */

static struct shmlimit *l;

/*
 * All that was admitted, oldest first. `highest` is how many there were at most: the library promises to be exact while
 * no more than MOST of them were given back.
 */
struct queue {
	uint64_t time_ns[ASKS * MOST + 1];
	uint64_t n, highest, latest; /* this many of the newest are of one admission */
};

/* A rule, and what a word makes of its times. */
struct window_rule {
	int id;
	struct shmlimit_rule rule;
	struct layout_params params;
};

struct expected {
	int answer;
	uint64_t remaining, wait_ns, retry_after_ns, reset_after_ns;
};

static uint64_t wait_of(const struct window_rule *w, uint64_t then_ns, uint64_t now_ns)
{
	return window_wait(&w->params, window_end_of_tick(&w->params, then_ns), now_ns);
}

static uint64_t newest(const struct queue *q)
{
	return q->time_ns[q->n - 1];
}

static uint64_t used(const struct queue *q, const struct window_rule *w, uint64_t now_ns)
{
	uint64_t n = 0;

	while (n < q->n && n < w->rule.capacity && wait_of(w, q->time_ns[q->n - 1 - n], now_ns) != 0)
		n++;
	return n;
}

/* Nanoseconds until no more than `room` of them count. */
static uint64_t wait_for_room(const struct queue *q, const struct window_rule *w, uint64_t room, uint64_t now_ns)
{
	return room >= q->n ? 0 : wait_of(w, q->time_ns[q->n - 1 - room], now_ns);
}

/* A window that was empty when the tick began may be forgotten, and is by the next admission. */
static void forget_empty(struct queue *q, const struct window_rule *w, uint64_t now_ns)
{
	if (q->n != 0 && window_was_over(&w->params, window_end_of_tick(&w->params, newest(q)), now_ns))
		q->n = q->highest = 0;
}

static void push(struct queue *q, const struct window_rule *w, uint64_t tokens, uint64_t now_ns, uint64_t wait_ns)
{
	uint64_t at_ns = window_end_of_tick(&w->params, now_ns + wait_ns);

	forget_empty(q, w, now_ns);
	if (q->n != 0 && window_end_of_tick(&w->params, newest(q)) > at_ns)
		at_ns = window_end_of_tick(&w->params, newest(q));
	q->latest = tokens;
	while (tokens-- > 0)
		q->time_ns[q->n++] = at_ns;
	if (q->n > q->highest)
		q->highest = q->n;
}

/*
 * The newest are given back. What may have been admitted since, not counting the rest of the tick in which it is now,
 * counts as late as the latest.
 */
static void pop(struct queue *q, const struct window_rule *w, uint64_t tokens, uint64_t now_ns)
{
	if (q->n == 0 || wait_of(w, newest(q), now_ns) == 0)
		return;
	for (uint64_t i = 0; i < q->n; i++)
		if (q->time_ns[i] >= (now_ns == window_tick_begin(&w->params, now_ns)
		                              ? now_ns
		                              : window_end_of_tick(&w->params, now_ns) + 1))
			q->time_ns[i] = newest(q);
	q->n -= tokens < q->n ? tokens : q->n;
	q->latest = 1;
	if (used(q, w, now_ns) == 0)
		q->n = q->highest = 0;
}

/* All is as it was, but that this many were given back; what no longer counts is not put back. */
static void take_and_give_back(struct queue *q, const struct window_rule *w, uint64_t tokens, uint64_t now_ns)
{
	forget_empty(q, w, now_ns);
	if (used(q, w, now_ns) == 0)
		q->n = q->highest = 0;
	else if (q->n + tokens > q->highest)
		q->highest = q->n + tokens;
}

/* How many may be given back for the library to be exact. */
static uint64_t refundable(const struct queue *q)
{
	return MOST - (q->highest - q->n) < q->n ? MOST - (q->highest - q->n) : q->n;
}

static struct expected ask(struct queue *q, const struct window_rule *w, uint64_t cost, uint64_t now_ns, int peek,
                           uint64_t limit_ns)
{
	uint64_t capacity = w->rule.capacity;
	int counts = (w->rule.flags & SHMLIMIT_RULE_COUNT_REFUSED) != 0 && !peek;
	struct expected e = { .answer = SHMLIMIT_ALLOWED };
	uint64_t wait_ns = cost > capacity ? UINT64_MAX : wait_for_room(q, w, capacity - cost, now_ns);

	if (wait_ns > limit_ns) {
		e.answer = SHMLIMIT_DENIED;
		e.retry_after_ns = wait_ns == UINT64_MAX ? UINT64_MAX : wait_ns - limit_ns;
		if (counts) {
			push(q, w, cost < capacity ? cost : capacity, now_ns, 0);
			if (wait_ns != UINT64_MAX)
				e.retry_after_ns = wait_for_room(q, w, capacity - cost, now_ns);
		}
	} else if (!peek) {
		e.wait_ns = wait_ns;
		push(q, w, cost, now_ns, wait_ns);
	}
	return e;
}

static void look(struct expected *e, const struct queue *q, const struct window_rule *w, uint64_t now_ns)
{
	uint64_t count = used(q, w, now_ns);

	e->remaining = w->rule.capacity - count;
	e->reset_after_ns = count == 0 ? 0 : wait_of(w, newest(q), now_ns);
}

static int differs(const struct expected *e, int answer, const struct shmlimit_result *r)
{
	return answer != e->answer || r->remaining != e->remaining || r->wait_ns != e->wait_ns ||
	       r->retry_after_ns != e->retry_after_ns || r->reset_after_ns != e->reset_after_ns;
}

static int peek_differs(struct queue *q, const struct window_rule *w, uint64_t key, uint64_t cost, uint64_t now_ns)
{
	struct expected e = ask(q, w, cost, now_ns, 1, 0);
	struct shmlimit_result r;
	int answer = shmlimit_peek(at_time(l, now_ns), w->id, &key, sizeof(key), cost, &r);

	look(&e, q, w, now_ns);
	return differs(&e, answer, &r);
}

static void set(struct window_rule *w, const char *name, uint64_t now_ns)
{
	struct rule_view view = { 0 }; /* rule_load() leaves some of it alone */

	w->rule.struct_size = sizeof(w->rule);
	w->rule.algorithm = SHMLIMIT_WINDOW;
	w->id = unit_id(shmlimit_rule_set(at_time(l, now_ns), name, &w->rule));
	if (rule_load(l, (uint32_t)w->id, &view) != 0)
		bail("rule_load");
	w->params = view.params;
}

/*
 * Has the library forgotten what no longer counted under the rule before? It may have: a sweep that was due, say. What it
 * has not, counts again under a longer period.
 */
static int was_forgotten(const struct window_rule *w, uint64_t key, uint64_t now_ns)
{
	struct shmlimit_result r;

	return shmlimit_peek(at_time(l, now_ns), w->id, &key, sizeof(key), 0, &r) == SHMLIMIT_ALLOWED &&
	       r.remaining == w->rule.capacity;
}

/* The rule gets another capacity and period. What the latest admission counted as, it counts as still, or as later. */
static void change(struct window_rule *w, struct queue *q, uint64_t key, uint64_t now_ns, struct rng *rng)
{
	struct layout_params before = w->params;
	int was_over = q->n != 0 && wait_of(w, newest(q), now_ns) == 0;
	uint64_t last_ns;

	w->rule.capacity = 1 + rng_below(rng, MOST);
	if (w->rule.period_ns < SHORTEST_NS || rng_below(rng, 2) == 0)
		w->rule.period_ns = SHORTEST_NS + rng_below(rng, (uint64_t)1 << (4 + rng_below(rng, 20)));
	set(w, "history", now_ns);
	if (q->n == 0 || memcmp(&before, &w->params, sizeof(before)) == 0)
		return;
	last_ns = window_end_of_tick(&before, newest(q));
	if (window_wait(&w->params, last_ns, now_ns) == 0 || (was_over && was_forgotten(w, key, now_ns))) {
		q->n = q->highest = 0;
		return;
	}
	if (window_end_of_tick(&w->params, newest(q)) == window_end_of_tick(&w->params, last_ns))
		return;
	for (uint64_t i = 0; i < q->latest; i++)
		q->time_ns[q->n - 1 - i] = window_end_of_tick(&w->params, last_ns);
}

/* One history of a new key. Returns how many answers were wrong. */
static unsigned history(struct rng *rng, struct window_rule *w, int empty, uint64_t key, uint64_t happened[])
{
	uint64_t now_ns = T0 + rng_below(rng, 1000000);
	struct queue q = { .n = 0 };
	unsigned wrong = 0;
	int changes = rng_below(rng, 8) == 0;

	for (int i = 0; i < ASKS && wrong == 0; i++) {
		uint64_t cost = rng_below(rng, 4) != 0 ? 1 : 1 + rng_below(rng, w->rule.capacity + 1);
		unsigned what = (unsigned)rng_below(rng, 10);
		struct expected e = { .answer = SHMLIMIT_ALLOWED };
		struct shmlimit_result r;
		int answer = SHMLIMIT_ALLOWED;

		/* Now and then within a tick, which is longest beside the longest periods. */
		if (rng_below(rng, 3) != 0)
			now_ns += rng_below(rng,
			                    rng_below(rng, 3) == 0 ? 32 : 1 + w->rule.period_ns * 2 / w->rule.capacity);
		if (what < 5) {
			answer = shmlimit_take(at_time(l, now_ns), w->id, &key, sizeof(key), cost, &r);
			e = ask(&q, w, cost, now_ns, 0, 0);
			happened[answer == SHMLIMIT_ALLOWED]++;
		} else if (what == 5 && w->rule.max_wait_ns != 0) {
			answer = shmlimit_reserve(at_time(l, now_ns), w->id, &key, sizeof(key), cost, UINT64_MAX, &r);
			e = ask(&q, w, cost, now_ns, 0, w->rule.max_wait_ns);
			happened[2] += r.wait_ns != 0;
		} else if (what == 6) {
			cost = cost < w->rule.capacity ? cost : w->rule.capacity;
			answer = shmlimit_charge(at_time(l, now_ns), w->id, &key, sizeof(key), cost, &r);
			/* It pushes out what counts still. */
			if (cost > w->rule.capacity - used(&q, w, now_ns))
				e.retry_after_ns = UINT64_MAX;
			push(&q, w, cost, now_ns, 0);
		} else if (what == 7 && refundable(&q) != 0) {
			cost = 1 + rng_below(rng, refundable(&q));
			happened[3] += q.n > MOST;
			answer = shmlimit_refund(at_time(l, now_ns), w->id, &key, sizeof(key), cost, &r);
			pop(&q, w, cost, now_ns);
		} else if (what == 8) {
			const struct shmlimit_request both[] = {
				{ .rule = w->id, .key = &key, .key_len = sizeof(key), .cost = cost },
				{ .rule = empty, .key = "k", .key_len = 1, .cost = 1 },
			};
			struct shmlimit_result results[2];

			/* Where the window itself denies, its refusal may count; else all is as it was. */
			answer = shmlimit_take_all(at_time(l, now_ns), both, 2, NULL, results);
			wrong += answer != SHMLIMIT_DENIED;
			if (ask(&q, w, cost, now_ns, 1, 0).answer == SHMLIMIT_DENIED)
				(void)ask(&q, w, cost, now_ns, 0, 0);
			else
				take_and_give_back(&q, w, cost, now_ns);
			happened[4] += q.n > MOST;
			wrong += peek_differs(&q, w, key, 1 + rng_below(rng, w->rule.capacity), now_ns) != 0;
			continue;
		} else if (changes) {
			change(w, &q, key, now_ns, rng);
			happened[5]++;
			wrong += peek_differs(&q, w, key, 1 + rng_below(rng, w->rule.capacity), now_ns) != 0;
			continue;
		} else {
			continue;
		}
		look(&e, &q, w, now_ns);
		wrong += differs(&e, answer, &r) != 0;
		wrong += peek_differs(&q, w, key, 1 + rng_below(rng, w->rule.capacity), now_ns) != 0;
	}
	return wrong;
}

int main(void)
{
	static const struct shmlimit_rule rules[] = {
		{ .capacity = 1, .period_ns = 1000 },
		{ .capacity = 2, .period_ns = 100, .max_wait_ns = 50 },
		{ .capacity = 5, .period_ns = 7 },
		{ .capacity = MOST, .period_ns = 1000000 },
		{ .capacity = MOST, .period_ns = 100, .max_wait_ns = 250 },
		{ .capacity = 3, .period_ns = SECOND, .flags = SHMLIMIT_RULE_COUNT_REFUSED },
		{ .capacity = MOST, .period_ns = 1000, .flags = SHMLIMIT_RULE_COUNT_REFUSED },
		{ .capacity = 4, .period_ns = (uint64_t)1 << 56 },
		{ .capacity = MOST, .period_ns = (uint64_t)1 << 55, .max_wait_ns = (uint64_t)1 << 55 },
		{ .capacity = 4, .period_ns = (uint64_t)1 << 56, .flags = SHMLIMIT_RULE_COUNT_REFUSED },
	};
	static const struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                                    .algorithm = SHMLIMIT_LEASE,
		                                    .capacity = 1,
		                                    .refill = 1,
		                                    .period_ns = SECOND };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct rng rng = { rng_seed() };
	uint64_t n = scaled(HISTORIES), wrong = 0, happened[6] = { 0 };
	int empty;

	l = unit_create("window_history", &options);
	/* A lease of nothing denies at any time. */
	empty = shmlimit_rule_set(l, "empty", &lease);
	/* A rule keeps the size of its logs: all histories have room for as many as may be given back. */
	set(&(struct window_rule){ .rule = { .capacity = MOST, .period_ns = SECOND } }, "history", T0);
	for (uint64_t i = 0; i < n && wrong == 0; i++) {
		struct window_rule w = { .rule = rules[rng_below(&rng, sizeof(rules) / sizeof(rules[0]))] };

		/* Slots for the next ones; their cells keep what stands in them. */
		if (i % KEYS_AT_ONCE == 0)
			shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		set(&w, "history", T0);
		wrong += history(&rng, &w, empty, i, happened);
		if (wrong != 0)
			diag("history %" PRIu64, i);
	}
	is(wrong, 0, "%" PRIu64 " random histories are decided as by a plain queue of times, every fact of them", n);
	ok(happened[0] > n / 8 && happened[1] > n / 8, "takes are admitted and refused");
	ok(happened[2] > n / 64, "reservations wait");
	ok(happened[3] > n / 64, "tokens are given back after the ring has wrapped");
	ok(happened[4] > n / 64, "tokens are given back in calls that took from several limits");
	ok(happened[5] > n / 64, "rules are changed");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	return tap_done();
}
