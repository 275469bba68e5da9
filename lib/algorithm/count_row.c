/*
 * count_row: COUNTER's row: what operations do with a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"

/* ---- Operations ---- */

/* As INCREX: what would be over the bound, or below 0, is refused, or as much of it is added as fits. */
static void count_row_add(const struct layout_params *params, const struct count_request *asked, uint64_t now_ns,
                struct count *count, struct verdict *v)
{
	int64_t most = asked->bound < (int64_t)params->capacity ? asked->bound : (int64_t)params->capacity;
	int64_t before = (int64_t)count->n, after;

	if (__builtin_add_overflow(before, asked->n, &after))
		after = asked->n > 0 ? INT64_MAX : INT64_MIN;
	if (asked->n != 0 && (after > most || after < 0)) {
		if ((asked->flags & SHMLIMIT_COUNT_SATURATE) == 0) {
			v->answer = SHMLIMIT_DENIED;
			after = before;
		} else {
			after = after < 0 ? 0 : most;
		}
	}
	if (v->answer == SHMLIMIT_ALLOWED && (count->left_ns == 0 ? after != 0 : asked->flags & SHMLIMIT_COUNT_RESTART)) {
		count_begin(params, count, asked->ttl_ns != 0 ? asked->ttl_ns : params->back, now_ns);
		v->changed = 1;
	}
	v->changed |= after != before;
	count->n = (uint64_t)after;
	asked->out->count = after;
	asked->out->applied = after - before;
	asked->out->ttl_ns = count->left_ns;
}

/* A window that begins with a key's first request, and is as long as the period. */
static void count_row_take(const struct layout_params *params, uint64_t amount, uint64_t now_ns, struct count *count,
                 struct verdict *v)
{
	if (amount > params->capacity - count->n) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = amount > params->capacity ? FUNNEL_NEVER : count->left_ns;
		return;
	}
	if (amount == 0)
		return;
	if (count->left_ns == 0)
		count_begin(params, count, params->back, now_ns);
	count->n += amount;
	v->changed = 1;
}

static void count_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                  struct shmlimit_result *r)
{
	const struct layout_params *params = k->params;
	struct count *count = &b->count, looked = *count;
	uint64_t room = params->capacity - count->n, now_ns = k->at.now_ns;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->op) {
	case OP_TAKE:
	case OP_RESERVE: /* nothing is owed, so nothing is waited for */
		count_row_take(params, q->amount, now_ns, count, v);
		break;
	case OP_PEEK:
		count_row_take(params, q->amount, now_ns, &looked, v);
		v->changed = 0;
		break;
	case OP_REFUND:
		v->changed = q->amount != 0 && count->n != 0;
		count->n -= q->amount < count->n ? q->amount : count->n;
		break;
	case OP_CHARGE:
		if (q->amount > room)
			v->retry_after_ns = FUNNEL_NEVER;
		if (q->amount != 0 && room != 0) {
			struct verdict ignored = { 0 };

			count_row_take(params, q->amount < room ? q->amount : room, now_ns, count, &ignored);
			v->changed = 1;
		}
		break;
	case OP_COUNT:
	case OP_COUNT_DOWN:
	case OP_COUNT_LOOK:
		count_row_add(params, q->count, now_ns, count, v);
		break;
	default:
		break; /* there are no others */
	}
	v->word = count_pack(params, *count);
	if (r == NULL)
		return;
	r->limit = params->capacity;
	r->remaining = params->capacity - count->n;
	r->wait_ns = 0;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = count->left_ns;
}

/* ---- The row ---- */

static int count_row_compile(const struct shmlimit_rule *rule, uint32_t window_max, struct layout_params *params)
{
	(void)window_max;
	return count_compile(rule, params);
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
	b->stepped = b->doubtful = b->was_empty = 0;
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
	return count_convert(k->params, word, to, k->at.now_ns);
}

/* As a number of nanoseconds from the moment to the count's end. */
static void count_row_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota, int64_t *ticks)
{
	*quota = b->count.n;
	*ticks = (int64_t)(k->at.now_ns + b->count.left_ns - then_ns);
}

static uint64_t count_row_load(const struct layout_params *params, uint64_t quota, int64_t ticks, const struct rebase *rebase)
{
	int64_t left_ns = (int64_t)(rebase_ns(rebase, ticks) - rebase->now_ns);
	struct count count = { .n = quota < params->capacity ? quota : params->capacity };

	count_begin(params, &count, left_ns > 0 ? (uint64_t)left_ns : 0, rebase->now_ns);
	return count_pack(params, count);
}

static void count_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	out->remaining = k->params->capacity - b->count.n;
	out->reset_after_ns = b->count.left_ns;
}

const struct algorithm algorithm_counter = {
	.operations = OPERATIONS_COMMON | OPERATIONS_COUNT,
	.counts_capacity = 1,
	.compile = count_row_compile,
	.range = count_range,
	.none = count_row_none,
	.read = count_row_read,
	.apply = count_row_apply,
	.wait = count_row_wait,
	.idle_ns = count_row_idle_ns,
	.convert = count_row_convert,
	.fault = funnel_fault,
	.mend = funnel_mend,
	.save = count_row_save,
	.load = count_row_load,
	.show = count_row_show,
};
