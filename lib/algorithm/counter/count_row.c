/*
 * count_row: COUNTER's row: what operations do with a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "calendar.h"
#include "count_row.h"

/* ---- Operations ---- */

/* How long a count lives that begins now. */
static uint64_t period_left_ns(const struct look *k)
{
	return params_calendar(k->params) == 0 ? k->params->back : calendar_left_ns(k, k->params);
}

/*
 * A window that begins with a key's first request, and is as long as the period; or the calendar's.
 */
static void count_row_take(const struct look *k, uint64_t amount, struct count *count, struct verdict *v)
{
	const struct layout_params *params = k->params;

	if (amount > params->capacity - count_used(params, count)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = amount > params->capacity ? FUNNEL_NEVER : count->left_ns;
		return;
	}
	if (amount == 0)
		return;
	if (count->left_ns == 0)
		count_begin(params, count, period_left_ns(k), k->at.now_ns);
	count->n += amount;
	v->changed = 1;
}

/* Is the count's period the one in which the tokens were taken that come back? */
static int counts_still(const struct look *k, const struct request *q, const struct count *count)
{
	return q->taken == NULL ||
	       count_read(k->params, q->taken->after.word, k->at.now_ns).until_ns == count->until_ns;
}

static void count_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                            struct shmlimit_result *r)
{
	const struct layout_params *params = k->params;
	struct count *count = &b->count, looked = *count;
	uint64_t room = params->capacity - count_used(params, count);

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->op) {
	case OP_TAKE:
	case OP_RESERVE: /* nothing is owed, so nothing is waited for */
		count_row_take(k, q->amount, count, v);
		break;
	case OP_PEEK:
		count_row_take(k, q->amount, &looked, v);
		v->changed = 0;
		break;
	case OP_REFUND:
		/*
		 * The largest count of a word may stand for a larger one, so nothing is known to be
		 * left of it.
		 */
		if (count_is_more(params, count))
			break;
		v->changed = q->amount != 0 && count->n != 0 && counts_still(k, q, count);
		if (v->changed)
			count->n -= q->amount < count->n ? q->amount : count->n;
		break;
	case OP_CHARGE:
		if (q->amount > room)
			v->retry_after_ns = FUNNEL_NEVER;
		if (q->amount != 0 && room != 0) {
			struct verdict ignored = { 0 };

			count_row_take(k, q->amount < room ? q->amount : room, count, &ignored);
			v->changed = 1;
		}
		break;
	case OP_COUNT:
	case OP_COUNT_DOWN:
	case OP_COUNT_LOOK:
		count_row_add(params, q->count, period_left_ns(k), k->at.now_ns, count, v);
		break;
	default:
		break; /* there are no others */
	}
	v->word = count_pack(params, *count);
	if (r == NULL)
		return;
	r->limit = params->capacity;
	r->remaining = params->capacity - count_used(params, count);
	r->wait_ns = 0;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = count->left_ns;
}

/* ---- The row ---- */

static int count_row_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	(void)size;
	if (rule->zone[0] != '\0')
		return calendar_compile(rule, params);
	return rule->zone_offsets[0] == 0 && rule->zone_offsets[1] == 0 ? count_compile(rule, params) : -EINVAL;
}

static void count_row_none(const struct look *k, struct balance *b)
{
	(void)k;
	b->count = (struct count){ 0 };
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void count_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->count = count_read(k->params, word, k->at.now_ns);
	b->stepped = b->doubtful = b->count.stepped;
	b->was_empty = 0;
}

static uint64_t count_row_fit(const struct look *k, const struct request *q, const struct balance *b)
{
	(void)q;
	return k->params->capacity - count_used(k->params, &b->count);
}

static uint64_t count_row_wait(const struct look *k, const struct balance *b)
{
	(void)k;
	return b->count.left_ns;
}

static uint64_t count_row_idle_ns(const struct look *k, uint64_t word)
{
	uint64_t until_ns = word >> params_quota_bits(k->params) << params_token_bits(k->params);

	return (k->at.now_ns - until_ns) & count_range_ns(k->params);
}

static uint64_t count_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	uint64_t left_ns;
	struct count count;

	word = count_convert(k->params, word, to, k->at.now_ns);
	if (params_calendar(to) == 0)
		return word;
	/* No count outlives the period of the calendar by which it is counted now. */
	count = count_read(to, word, k->at.now_ns);
	left_ns = calendar_left_ns(k, to);
	if (count.left_ns > left_ns)
		count_begin(to, &count, left_ns, k->at.now_ns);
	return count_pack(to, count);
}

/* As a number of nanoseconds from the moment to the count's end. */
static void count_row_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota,
                           int64_t *ticks)
{
	*quota = b->count.n;
	*ticks = (int64_t)(k->at.now_ns + b->count.left_ns - then_ns);
}

static uint64_t count_row_load(const struct layout_params *params, uint64_t quota, int64_t ticks,
                               const struct rebase *rebase)
{
	int64_t left_ns = (int64_t)(rebase_ns(rebase, ticks) - rebase->now_ns);
	struct count count = { .n = quota < count_largest(params) ? quota : count_largest(params) };

	/* What has ended is over at once: see count_convert(). */
	if (left_ns <= 0)
		count.until_ns = rebase->now_ns & ~(count_tick_ns(params) - 1);
	else
		count_begin(params, &count, (uint64_t)left_ns, rebase->now_ns);
	return count_pack(params, count);
}

static void count_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	out->remaining = k->params->capacity - count_used(k->params, &b->count);
	out->reset_after_ns = b->count.left_ns;
}

const struct algorithm algorithm_counter = {
	.traits = &traits_counter,
	.operations = OPERATIONS_COMMON | OPERATIONS_COUNT,
	.compile = count_row_compile,
	.range = count_range,
	.rule = calendar_rule,
	.none = count_row_none,
	.read = count_row_read,
	.apply = count_row_apply,
	.fit = count_row_fit,
	.wait = count_row_wait,
	.idle_ns = count_row_idle_ns,
	.convert = count_row_convert,
	.save = count_row_save,
	.load = count_row_load,
	.show = count_row_show,
};
