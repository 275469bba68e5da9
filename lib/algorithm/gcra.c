/*
 * gcra: the rare half of the arithmetic, see gcra.h, and its row.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "gcra_row.h"
#include "whole.h"

typedef unsigned __int128 u128;

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
	if (tolerance > GCRA_LONGEST_NS << GCRA_TICK_BITS)
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

__attribute__((cold, noinline)) void gcra_raise(const struct shmlimit *l, uint64_t reach)
{
	uint64_t now;

	/* BOUND: each lost swap is another raise, and each is to a longer limit. */
	do
		now = load_relaxed(&l->header->reach);
	while (reach > now && !word_cas(&l->header->reach, now, reach));
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

static void reserve(const struct look *k, const struct request *q, const struct gcra *g, struct gcra_state *state,
                    struct verdict *v)
{
	uint64_t cost = gcra_cost(g, q->amount), debt = longest_debt(k, g);
	uint64_t limit_ns = q->max_wait_ns < g->max_wait_ns ? q->max_wait_ns : g->max_wait_ns;
	uint64_t over = beyond(state->left + cost, g->tolerance), before = beyond(state->left, g->tolerance);
	int next_pays = (params_flags(k->params) & SHMLIMIT_RULE_NEXT_PAYS) != 0;
	uint64_t wait_ns = gcra_ns(next_pays ? before : over), over_ns = gcra_ns(beyond(over, debt));

	if (q->amount == 0)
		return;
	if (!g->blocks && over <= debt && wait_ns <= limit_ns) {
		v->wait_ns = wait_ns;
		v->changed = cost != 0;
		state->left += cost;
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
static void charge(const struct look *k, const struct request *q, const struct gcra *g, struct gcra_state *state,
                   struct verdict *v)
{
	uint64_t cost = gcra_cost(g, q->amount), most = g->tolerance + longest_debt(k, g), before = state->left;

	if (q->amount == 0 || g->blocks)
		return;
	state->left += cost;
	if (state->left > most) {
		state->left = before > most ? before : most;
		v->retry_after_ns = FUNNEL_NEVER;
	}
	v->changed = state->left != before;
}

/* What was taken some time ago comes back less what refilled since: see struct undo. */
static void refund(const struct look *k, const struct request *q, const struct gcra *g, struct gcra_state *state,
                   struct verdict *v)
{
	uint64_t back = gcra_cost(g, q->amount);

	if (q->taken != NULL) {
		uint64_t slack_ns = g->tolerance >> GCRA_TICK_BITS >> 1, since_ns = k->at.now_ns - q->when.ns;

		/* Where times are given, a later time than ours may have been given in between. */
		if (k->given)
			since_ns += slack_ns < SLACK_NS ? slack_ns : SLACK_NS;
		/* A clock that stepped back does not tell: then the difference is huge. */
		back = since_ns > back >> GCRA_TICK_BITS ? 0 : beyond(back, since_ns << GCRA_TICK_BITS);
	}
	v->changed = back != 0 && state->left != 0;
	state->left = beyond(state->left, back);
}

static void gcra_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                           struct shmlimit_result *r)
{
	struct gcra g = limit_of(k, q);
	struct gcra_state *state = &b->gcra;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	if (state->stepped)
		state->left = g.tolerance;
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
		gcra_take(&g, q->amount, q->op == OP_TAKE, state, v);
		break;
	case OP_RESERVE:
		reserve(k, q, &g, state, v);
		break;
	case OP_CHARGE:
		charge(k, q, &g, state, v);
		break;
	case OP_REFUND:
		refund(k, q, &g, state, v);
		break;
	default:
		break; /* it has no others */
	}
	if (v->changed && g.interval != 0)
		gcra_will_leave(k->l, g.tolerance + longest_debt(k, &g));
	b->doubtful = b->stepped || (v->answer == SHMLIMIT_DENIED && !k->given);
	v->word = gcra_pack(*state, k->at.now_ns);
	if (r != NULL)
		gcra_report(&g, *state, v, r);
}

/* ---- The row ---- */

/*
 * Capacity, refill and period 0: a rule without a limit of its own. Its max_wait_ns is for bindings
 * and the command, whose limits as text have none.
 */
static int gcra_row_compile(const struct shmlimit_rule *rule, uint32_t window_max, struct layout_params *params)
{
	struct gcra g = { .tokens = 1 };
	int error = 0;

	(void)window_max;
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
	out->resolution_ps = 1000 / (1 << GCRA_TICK_BITS) + 1;
	out->refill_ns = gcra_ns(params->back);
	out->back_ns = (uint64_t)1 << (63 - GCRA_TICK_BITS);
	out->ahead_ns = out->back_ns - (GCRA_AHEAD >> GCRA_TICK_BITS);
}

static void gcra_row_none(const struct look *k, struct balance *b)
{
	(void)k;
	b->gcra = (struct gcra_state){ 0 };
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void gcra_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->gcra = gcra_read(word, k->at.now_ns, gcra_reach(k->l));
	b->stepped = b->gcra.stepped;
	/* It may have been written at a time after ours: see fast_gcra.h. */
	b->doubtful = b->stepped || b->gcra.left != 0;
	b->was_empty = 0;
}

/* Of what is impossible, what the rule's own limit makes of it. */
static uint64_t left_of(const struct look *k, struct gcra_state state)
{
	if (!state.stepped)
		return state.left;
	return k->params->capacity != 0 ? k->params->back : gcra_reach(k->l);
}

static uint64_t gcra_row_wait(const struct look *k, const struct balance *b)
{
	return gcra_ns(left_of(k, b->gcra));
}

static uint64_t gcra_row_idle_ns(const struct look *k, uint64_t word)
{
	int64_t age = (int64_t)((k->at.now_ns << GCRA_TICK_BITS) - word);

	return age > 0 ? (uint64_t)age >> GCRA_TICK_BITS : 0;
}

/*
 * A key keeps its time under another rule, as it does where it is asked with another limit: the rule
 * does not know by which limit it was spent. What is impossible stays so, for the limit that is asked
 * next, unless the rule has one.
 */
static uint64_t gcra_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	struct look under = *k;
	struct gcra_state state = gcra_read(word, k->at.now_ns, gcra_reach(k->l));

	if (!state.stepped || to->capacity == 0)
		return word;
	under.params = to;
	return gcra_pack((struct gcra_state){ left_of(&under, state), 0 }, k->at.now_ns);
}

/* As a number of ticks from the moment to the time at which the key is full. */
static void gcra_row_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota,
                          int64_t *ticks)
{
	*quota = 0;
	*ticks = (int64_t)(((k->at.now_ns - then_ns) << GCRA_TICK_BITS) + left_of(k, b->gcra));
}

static uint64_t gcra_row_load(const struct layout_params *params, uint64_t quota, int64_t ticks,
                              const struct rebase *rebase)
{
	__int128 left = (__int128)ticks - ((__int128)rebase->elapsed_ns << GCRA_TICK_BITS);
	struct gcra_state state = { 0 };

	(void)params;
	(void)quota;
	if (left > 0)
		state.left = left < (__int128)GCRA_AHEAD ? (uint64_t)left : GCRA_AHEAD;
	return gcra_pack(state, rebase->now_ns);
}

static void gcra_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	struct gcra g = gcra_of(k->params);
	struct gcra_state state = { left_of(k, b->gcra), 0 };

	out->remaining = g.capacity != 0 ? gcra_remaining(&g, state) : 0;
	out->reset_after_ns = gcra_ns(state.left);
	out->debt_ns = g.capacity != 0 ? gcra_ns(beyond(state.left, g.tolerance)) : 0;
}

const struct algorithm algorithm_gcra = {
	.operations = OPERATIONS_COMMON,
	.takes_limits = 1,
	.compile = gcra_row_compile,
	.range = gcra_row_range,
	.none = gcra_row_none,
	.read = gcra_row_read,
	.apply = gcra_row_apply,
	.wait = gcra_row_wait,
	.idle_ns = gcra_row_idle_ns,
	.convert = gcra_row_convert,
	.save = gcra_row_save,
	.load = gcra_row_load,
	.show = gcra_row_show,
};
