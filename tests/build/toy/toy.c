/*
 * toy: an algorithm for tests/build/toy.sh, which adds it to a copy of the library: a fixed window
 * that begins with each whole period of the clock.
 *
 *	[ number of the period : 32 ] [ tokens taken in it : 32 ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"

#define PERIOD_MIN_NS ((uint64_t)1000000)
#define PERIOD_MAX_NS (366 * 86400 * (uint64_t)1000000000)

static uint64_t toy_number(const struct layout_params *params, uint64_t now_ns)
{
	return params->back == 0 ? 0 : now_ns / params->back & UINT32_MAX;
}

static uint64_t toy_word(const struct layout_params *params, uint64_t now_ns, uint64_t taken)
{
	return toy_number(params, now_ns) << 32 | (taken < UINT32_MAX ? taken : UINT32_MAX);
}

static int toy_is_now(const struct look *k, uint64_t word)
{
	return word >> 32 == toy_number(k->params, k->at.now_ns);
}

/* What was taken in the present period, as far as the capacity goes. */
static uint64_t toy_taken(const struct look *k, uint64_t word)
{
	uint64_t taken = toy_is_now(k, word) ? word & UINT32_MAX : 0;

	return taken < k->params->capacity ? taken : k->params->capacity;
}

static uint64_t toy_left_ns(const struct look *k)
{
	return k->params->back == 0 ? 0 : k->params->back - k->at.now_ns % k->params->back;
}

static int toy_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	(void)size;
	if (rule->capacity == 0 || rule->period_ns == 0)
		return -EDOM;
	if (rule->flags != 0 || rule->max_wait_ns != 0 || (rule->refill != 0 && rule->refill != rule->capacity))
		return -EINVAL;
	if (rule->capacity > UINT32_MAX || rule->period_ns < PERIOD_MIN_NS || rule->period_ns > PERIOD_MAX_NS)
		return -ERANGE;
	params->capacity = params->count = rule->capacity;
	params->period_ns = params->back = params->ahead = rule->period_ns;
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = params->den = 1;
	params->shape = params_shape(32, 0, ALGORITHM_OF_toy, 0);
	return 0;
}

static void toy_range(const struct layout_params *params, struct shmlimit_range *out)
{
	out->resolution_ps = 1000;
	out->refill_ns = params->back;
	out->back_ns = out->ahead_ns = params->back < UINT64_MAX >> 32 ? params->back << 31 : (uint64_t)INT64_MAX;
}

static void toy_none(const struct look *k, struct balance *b)
{
	b->word = toy_word(k->params, k->at.now_ns, 0);
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void toy_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->word = word;
	/* Of another period than ours: it may be that of a later reading of the clock. */
	b->doubtful = !toy_is_now(k, word);
	b->stepped = b->was_empty = 0;
}

static void toy_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                      struct shmlimit_result *r)
{
	uint64_t taken = toy_taken(k, b->word), room = k->params->capacity - taken, before = taken;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	if (q->op == OP_REFUND) {
		taken -= q->amount < taken ? q->amount : taken;
	} else if (q->amount <= room) {
		taken += q->op == OP_PEEK ? 0 : q->amount;
	} else if (q->op == OP_CHARGE) {
		taken = k->params->capacity;
		v->retry_after_ns = FUNNEL_NEVER;
	} else {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = q->amount > k->params->capacity ? FUNNEL_NEVER : toy_left_ns(k);
	}
	v->changed = taken != before;
	v->word = toy_word(k->params, k->at.now_ns, taken);
	if (r != NULL)
		*r = (struct shmlimit_result){ .limit = k->params->capacity,
			                       .remaining = k->params->capacity - taken,
			                       .retry_after_ns = v->retry_after_ns,
			                       .reset_after_ns = taken == 0 ? 0 : toy_left_ns(k) };
}

static uint64_t toy_wait(const struct look *k, const struct balance *b)
{
	return toy_taken(k, b->word) == 0 ? 0 : toy_left_ns(k);
}

static uint64_t toy_idle_ns(const struct look *k, uint64_t word)
{
	return toy_is_now(k, word) ? 0 : k->params->back;
}

static uint64_t toy_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	return toy_word(to, k->at.now_ns, toy_taken(k, word));
}

/* As nanoseconds from the moment to the end of the period. */
static void toy_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota, int64_t *ticks)
{
	*quota = toy_taken(k, b->word);
	*ticks = (int64_t)(k->at.now_ns + toy_left_ns(k) - then_ns);
}

static uint64_t toy_load(const struct layout_params *params, uint64_t quota, int64_t ticks, const struct rebase *rebase)
{
	int is_over = (int64_t)(rebase_ns(rebase, ticks) - rebase->now_ns) <= 0;

	return toy_word(params, rebase->now_ns, is_over ? 0 : quota);
}

static void toy_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	out->remaining = k->params->capacity - toy_taken(k, b->word);
	out->reset_after_ns = toy_wait(k, b);
}

const struct algorithm algorithm_toy = {
	.traits = &traits_toy,
	.operations = OPERATIONS_COMMON,
	.compile = toy_compile,
	.range = toy_range,
	.none = toy_none,
	.read = toy_read,
	.apply = toy_apply,
	.wait = toy_wait,
	.idle_ns = toy_idle_ns,
	.convert = toy_convert,
	.save = toy_save,
	.load = toy_load,
	.show = toy_show,
};
