/*
 * gcra: the rare half of the arithmetic, see gcra.h, and its row.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "gcra_row.h"
#include "whole.h"

#define SLACK_NS ((uint64_t)1000000000)

int gcra_make(uint64_t capacity, uint64_t refill, uint64_t period_ns, uint64_t max_wait_ns, struct gcra *g)
{
	u128 tolerance;

	if (capacity == 0 || refill == 0 || period_ns == 0)
		return -EDOM;
	if (gcra_make_whole(capacity, refill, period_ns, max_wait_ns, g))
		return 0;
	if (capacity > SHMLIMIT_CAPACITY_MAX || period_ns > UINT64_MAX >> GCRA_TICK_BITS ||
	    max_wait_ns > GCRA_LONGEST_NS || (period_ns << GCRA_TICK_BITS) / refill >= GCRA_INTERVAL_MIN)
		return -ERANGE;
	tolerance = ((u128)capacity * (period_ns << GCRA_TICK_BITS) + refill - 1) / refill;
	if (tolerance > GCRA_LONGEST)
		return -ERANGE;
	*g = (struct gcra){
		.capacity = capacity,
		.interval = (uint64_t)tolerance,
		.tokens = capacity,
		.tolerance = (uint64_t)tolerance,
		.max_wait_ns = max_wait_ns,
	};
	return 0;
}

static void raise(uint64_t *most, uint64_t ticks)
{
	uint64_t now;

	/* BOUND: each lost swap is another raise, and each is to a higher number. */
	do
		now = load_relaxed(most);
	while (ticks > now && !word_cas(most, now, ticks));
}

void gcra_will_fill(const struct shmlimit *l, uint64_t tolerance)
{
	raise(&l->header->longest[gcra_place(tolerance)], tolerance);
}

void gcra_will_owe(const struct shmlimit *l, uint64_t owed)
{
	raise(&l->header->owed, owed);
}

/* ---- Operations ---- */

static struct gcra limit_of(const struct look *k, const struct request *q)
{
	return q->limit != NULL ? *q->limit : gcra_of(k->params);
}

/* The longest debt in ticks, as FUNNEL has it. */
static uint64_t longest_debt(const struct look *k, const struct gcra *g)
{
	uint64_t debt = g->max_wait_ns << GCRA_TICK_BITS;

	return debt != 0 && (params_flags(k->params) & SHMLIMIT_RULE_NEXT_PAYS) ? debt + g->tolerance : debt;
}

static uint64_t beyond(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void reserve_time(const struct look *k, const struct request *q, const struct gcra *g, int64_t *room,
                         struct verdict *v)
{
	uint64_t cost = gcra_cost(g, q->amount), debt = longest_debt(k, g), left = g->tolerance - (uint64_t)*room;
	uint64_t limit_ns = q->max_wait_ns < g->max_wait_ns ? q->max_wait_ns : g->max_wait_ns;
	uint64_t over = beyond(left + cost, g->tolerance), before = beyond(left, g->tolerance);
	int next_pays = (params_flags(k->params) & SHMLIMIT_RULE_NEXT_PAYS) != 0;
	uint64_t wait_ns = gcra_ns(next_pays ? before : over), over_ns = gcra_ns(beyond(over, debt));

	if (q->amount == 0 || (cost == 0 && !g->blocks))
		return;
	if (!g->blocks && over <= debt && wait_ns <= limit_ns) {
		v->wait_ns = wait_ns;
		v->changed = 1;
		*room -= (int64_t)cost;
		return;
	}
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = beyond(wait_ns, limit_ns);
	if (over_ns > v->retry_after_ns)
		v->retry_after_ns = over_ns;
	/* Would even a full bucket owe more? */
	over = beyond(cost, g->tolerance);
	if (g->blocks || over > debt || (!next_pays && gcra_ns(over) > limit_ns))
		v->retry_after_ns = FUNNEL_NEVER;
}

/* Always applied, down to the longest debt and no further. */
static void charge(const struct look *k, const struct request *q, const struct gcra *g, int64_t *room,
                   struct verdict *v)
{
	int64_t least = -(int64_t)longest_debt(k, g), before = *room;

	if (q->amount == 0 || g->blocks)
		return;
	*room -= (int64_t)gcra_cost(g, q->amount);
	if (*room < least) {
		*room = before < least ? before : least;
		v->retry_after_ns = FUNNEL_NEVER;
	}
	v->changed = *room != before;
}

/* What was taken some time ago comes back less what refilled since: see struct undo. */
static void refund(const struct look *k, const struct request *q, const struct gcra *g, int64_t *room,
                   struct verdict *v)
{
	uint64_t back = gcra_cost(g, q->amount), left = g->tolerance - (uint64_t)*room;

	if (q->taken != NULL) {
		uint64_t slack_ns = g->tolerance >> GCRA_TICK_BITS >> 1, since_ns = k->at.now_ns - q->when.ns;

		/* Where times are given, a later time than ours may have been given in between. */
		if (k->given)
			since_ns += slack_ns < SLACK_NS ? slack_ns : SLACK_NS;
		/* A clock that stepped back does not tell: then the difference is huge. */
		back = since_ns > back >> GCRA_TICK_BITS ? 0 : beyond(back, since_ns << GCRA_TICK_BITS);
	}
	v->changed = back != 0 && left != 0;
	*room += (int64_t)(back < left ? back : left);
}

/*
 * By a limit that is longer than all that the key was asked with since it was full last: it is full
 * at the latest when they are.
 */
static void no_later_than(uint64_t over_ns, struct verdict *v, struct shmlimit_result *r)
{
	if (v->answer == SHMLIMIT_DENIED && v->retry_after_ns != FUNNEL_NEVER && v->retry_after_ns > over_ns)
		v->retry_after_ns = over_ns;
	if (r != NULL && r->retry_after_ns != FUNNEL_NEVER && r->retry_after_ns > over_ns)
		r->retry_after_ns = over_ns;
	if (r != NULL && r->reset_after_ns > over_ns)
		r->reset_after_ns = over_ns;
}

static void gcra_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                           struct shmlimit_result *r)
{
	struct gcra g = limit_of(k, q);
	const struct gcra_state *state = &b->gcra;
	int64_t room = gcra_state_room(&g, state);
	int is_longer = g.tolerance > state->span;
	unsigned place = state->place;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
		gcra_take(&g, q->amount, q->op == OP_TAKE, &room, v);
		break;
	case OP_RESERVE:
		reserve_time(k, q, &g, &room, v);
		break;
	case OP_CHARGE:
		charge(k, q, &g, &room, v);
		break;
	case OP_REFUND:
		refund(k, q, &g, &room, v);
		break;
	default:
		break; /* it has no others */
	}
	if (v->changed && (is_longer || gcra_is_over(state))) {
		place = gcra_place(g.tolerance);
		gcra_will_fill(k->l, g.tolerance);
	}
	if (v->changed && room < 0)
		gcra_will_owe(k->l, longest_debt(k, &g));
	b->doubtful = b->stepped || (v->answer == SHMLIMIT_DENIED && !k->given);
	v->word = gcra_pack(room, place, k->at.now_ns);
	if (r != NULL)
		gcra_report(&g, room, v, r);
	if (is_longer && !v->changed && !gcra_is_over(state))
		no_later_than(gcra_ns(gcra_until_over(state)), v, r);
}

/* ---- The row ---- */

/*
 * Capacity, refill and period 0: a rule without a limit of its own. Its max_wait_ns is for bindings
 * and the command, whose limits as text have none.
 */
static int gcra_row_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	struct gcra g = { .tokens = 1 };
	int error = 0;

	(void)size;
	if ((rule->flags & ~SHMLIMIT_RULE_NEXT_PAYS) != 0)
		return -EINVAL;
	if (rule->capacity != 0 || rule->refill != 0 || rule->period_ns != 0)
		error = gcra_make(rule->capacity, rule->refill, rule->period_ns, rule->max_wait_ns, &g);
	else if (rule->max_wait_ns > GCRA_LONGEST_NS)
		error = -ERANGE;
	params->capacity = g.capacity;
	params->inverse = g.interval;
	params->back = params->ahead = g.tolerance;
	params->max_wait_ns = rule->max_wait_ns;
	params->count = rule->refill;
	params->period_ns = rule->period_ns;
	params->flags = rule->flags;
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = 1;
	params->den = g.tokens;
	params->shape = params_shape(0, 0, SHMLIMIT_GCRA, 0);
	return error;
}

static void gcra_row_range(const struct layout_params *params, struct shmlimit_range *out)
{
	out->resolution_ps = 1000 / (1 << GCRA_TICK_BITS);
	out->refill_ns = gcra_ns(params->back);
	out->back_ns = ((uint64_t)GCRA_OLDEST - GCRA_LONGEST) >> GCRA_TICK_BITS;
	out->ahead_ns = ((uint64_t)GCRA_OLDEST - GCRA_AHEAD) >> GCRA_TICK_BITS;
}

static void gcra_row_none(const struct look *k, struct balance *b)
{
	(void)k;
	b->gcra = (struct gcra_state){ .age = GCRA_OLDEST };
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void gcra_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->gcra = gcra_look(k->l, word, k->at.now_ns);
	b->stepped = b->gcra.stepped;
	/* It may have been written at a time after ours: see fast_gcra.h. */
	b->doubtful = !gcra_is_over(&b->gcra);
	b->was_empty = 0;
}

static uint64_t gcra_row_fit(const struct look *k, const struct request *q, const struct balance *b)
{
	struct gcra g = limit_of(k, q);

	return g.blocks ? 0 : gcra_remaining(&g, gcra_state_room(&g, &b->gcra));
}

static uint64_t gcra_row_wait(const struct look *k, const struct balance *b)
{
	(void)k;
	return gcra_ns(gcra_until_over(&b->gcra));
}

static uint64_t gcra_row_idle_ns(const struct look *k, uint64_t word)
{
	struct gcra_state state = gcra_look(k->l, word, k->at.now_ns);

	return gcra_is_over(&state) ? ((uint64_t)state.age - state.span) >> GCRA_TICK_BITS : 0;
}

/*
 * A key keeps its time under another rule, as it does where it is asked with another limit: the
 * rule does not know by which limit it was spent. What is impossible is an empty bucket.
 */
static uint64_t gcra_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	struct gcra_state state = gcra_look(k->l, word, k->at.now_ns);

	(void)to;
	return state.stepped ? gcra_pack(0, state.place, k->at.now_ns) : word;
}

/* As the span, and a number of ticks from the moment to the time at which the bucket was empty. */
static void gcra_row_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota,
                          int64_t *ticks)
{
	*quota = b->gcra.span;
	*ticks =
		(int64_t)(((k->at.now_ns - then_ns) << GCRA_TICK_BITS) - (uint64_t)(b->gcra.stepped ? 0 : b->gcra.age));
}

static uint64_t gcra_row_load(const struct layout_params *params, uint64_t quota, int64_t ticks,
                              const struct rebase *rebase)
{
	__int128 age = ((__int128)rebase->elapsed_ns << GCRA_TICK_BITS) - ticks;

	(void)params;
	if (age < -(__int128)GCRA_AHEAD)
		age = -(__int128)GCRA_AHEAD;
	return gcra_pack((int64_t)(age < GCRA_OLDEST ? age : GCRA_OLDEST), gcra_place(quota), rebase->now_ns);
}

static void gcra_row_loaded(const struct shmlimit *l, uint64_t word, uint64_t quota, uint64_t now_ns)
{
	int64_t age = gcra_word_age(word, now_ns);

	gcra_will_fill(l, quota < GCRA_LONGEST ? quota : GCRA_LONGEST);
	if (age < 0)
		gcra_will_owe(l, 0 - (uint64_t)age);
}

#define TICKS_OF_2 4 /* 16 a nanosecond */

/*
 * In version 2 of save's format *ticks was the time at which the key is full, in 1/16 ns from the
 * moment. It was spent by the rule's own limit, if that has room for it. Otherwise it is not known
 * by which: the bucket is empty at the moment, and full at that time.
 */
static void gcra_row_saved_2(const struct layout_params *params, uint64_t *quota, int64_t *ticks)
{
	const struct gcra g = gcra_of(params);
	int64_t left = *ticks / (1 << (TICKS_OF_2 - GCRA_TICK_BITS)) + (*ticks > 0), debt;

	*quota = g.tolerance;
	*ticks = left - (int64_t)g.tolerance;
	debt = (int64_t)(g.max_wait_ns << GCRA_TICK_BITS);
	if (debt != 0 && (params_flags(params) & SHMLIMIT_RULE_NEXT_PAYS))
		debt += (int64_t)g.tolerance;
	if (g.capacity != 0 && *ticks <= debt)
		return;
	*quota = left > 0 ? (uint64_t)left : 0;
	*ticks = 0;
}

static void gcra_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	struct gcra g = gcra_of(k->params);
	int64_t room = gcra_state_room(&g, &b->gcra);
	uint64_t until_over = gcra_until_over(&b->gcra), left = g.tolerance - (uint64_t)room;

	out->remaining = g.capacity != 0 ? gcra_remaining(&g, room) : 0;
	out->reset_after_ns = gcra_ns(g.capacity != 0 && left < until_over ? left : until_over);
	out->debt_ns = g.capacity != 0 && room < 0 ? gcra_ns(0 - (uint64_t)room) : 0;
}

const struct algorithm algorithm_gcra = {
	.traits = &traits_gcra,
	.operations = OPERATIONS_COMMON,
	.compile = gcra_row_compile,
	.range = gcra_row_range,
	.none = gcra_row_none,
	.read = gcra_row_read,
	.apply = gcra_row_apply,
	.fit = gcra_row_fit,
	.wait = gcra_row_wait,
	.idle_ns = gcra_row_idle_ns,
	.convert = gcra_row_convert,
	.save = gcra_row_save,
	.load = gcra_row_load,
	.loaded = gcra_row_loaded,
	.saved_2 = gcra_row_saved_2,
	.show = gcra_row_show,
};
