/*
 * funnel: the rare half of the arithmetic, see funnel.h: from a rate to ticks,
 * and from ticks back to nanoseconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "funnel_row.h"
#include "whole.h"

#define SECOND ((uint64_t)1000000000)
#define DAY (86400 * SECOND)

/* What is left for the future after that: recognises a clock that steps back by a fortnight. */
#define AHEAD_NS (16 * DAY)
/*
 * A clock read is at most this old when its decision is made; a decision in doubt reads the clock
 * again.
 */
#define SLACK_NS SECOND
/* A time to full of 146 years. */
#define FILL_MAX_NS ((uint64_t)1 << 62)
#define QUOTA_BITS_MAX 48

/* Does a timestamp of `bits` bits, 2^shift ticks a token, reach over `range_ns`? */
static int reaches(unsigned bits, unsigned shift, uint64_t count, uint64_t period_ns, uint64_t range_ns)
{
	/*
	 * tokens in the range, 2^(bits - shift), times the period a token: no overflow in 127 bits
	 */
	u128 have = (u128)period_ns << (bits - shift);
	u128 need = (u128)range_ns * count;

	return have >= need;
}

/*
 * floor(ticks of `ns`), saturating; for bounds only, decisions use params.scale.
 */
static uint64_t ns_to_ticks(const struct layout_params *params, uint64_t ns)
{
	u128 ticks = (u128)ns * params->num / params->den;

	return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

/*
 * The reciprocal: scale = ceil(2^118 * num / den). For e = scale * den - 2^118 * num
 * we have 0 <= e < den < 2^54, so for every now < 2^64
 *
 *	now * scale / 2^118 = now * num / den + now * e / (den * 2^118)
 *
 * and the last term is less than 1 / den: it cannot lift the floor, since
 * now * num / den is at least 1 / den below the next integer. (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", 1994.)
 * num / den <= 2^9 makes scale less than 2^128.
 */
static void set_scale(struct layout_params *params)
{
	uint64_t num = params->num, den = params->den;
	uint64_t whole = num / den, rest = num % den;
	u128 step = (u128)rest << 59;
	uint64_t high = (uint64_t)(step / den);
	uint64_t low;
	u128 scale;

	step = step % den << 59;
	low = (uint64_t)(step / den);
	scale = ((u128)whole << FUNNEL_SCALE_BITS) + ((u128)high << 59) + low + (step % den != 0);
	params->scale[0] = (uint64_t)scale;
	params->scale[1] = (uint64_t)(scale >> 64);
}

/*
 * inverse = floor(2^shift * den / num), 64 bits long, so that it is right to one part in 2^63.
 * Returns the shift.
 */
static unsigned set_inverse(struct layout_params *params)
{
	unsigned shift = 64 + bit_length(params->num) - bit_length(params->den);
	uint64_t whole, rest = params->den;
	u128 inverse = 0;

	/* Long division, a bit at a time: `shift` of them after the whole part. */
	whole = rest / params->num;
	rest %= params->num;
	inverse = whole;
	for (unsigned i = 0; i < shift; i++) {
		rest <<= 1;
		inverse = inverse << 1 | (rest >= params->num);
		if (rest >= params->num)
			rest -= params->num;
	}
	if (inverse >> 64 != 0) {
		inverse >>= 1;
		shift--;
	}
	params->inverse = (uint64_t)inverse;
	return shift;
}

/* Compile for words with `quota_bits` of quota, 0 for none, and a range of 2^bits ticks. */
static int compile_word(const struct shmlimit_rule *rule, unsigned quota_bits, unsigned bits, uint64_t back_ns,
                        struct layout_params *params)
{
	uint64_t capacity = rule->capacity, count = rule->refill, period_ns = rule->period_ns;
	uint64_t common, ahead_ns, refill_ns, slack_ns, debt_ns;
	unsigned shift, spare;
	u128 fill;

	if (capacity == 0 || count == 0 || period_ns == 0)
		return -EDOM;
	if (capacity > SHMLIMIT_CAPACITY_MAX || quota_bits > QUOTA_BITS_MAX)
		return -ERANGE;
	common = common_divisor(count, period_ns);
	count /= common;
	period_ns /= common;

	fill = ((u128)capacity * period_ns + count - 1) / count;
	if (fill > FILL_MAX_NS || rule->max_wait_ns > FILL_MAX_NS)
		return -ERANGE;
	refill_ns = (uint64_t)fill;
	/* A funnel that is full must be known to be so for a while, and not for an instant. */
	back_ns += refill_ns;
	/*
	 * Half the time to full: a key whose clock stepped back by that much gets its next token
	 * within the time to full (where the capacity is 1, within one and a half times that).
	 */
	slack_ns = refill_ns / 2 < SLACK_NS ? refill_ns / 2 : SLACK_NS;
	/*
	 * With NEXT_PAYS a caller may leave a debt of its own cost on top of the debt that it
	 * waited for.
	 */
	debt_ns = rule->max_wait_ns;
	if (debt_ns != 0 && (rule->flags & SHMLIMIT_RULE_NEXT_PAYS))
		debt_ns += refill_ns;
	ahead_ns = debt_ns + AHEAD_NS; /* which has room for the slack */

	/* The finest tick whose range is long enough. */
	for (shift = bits - 1; shift > 0 && !reaches(bits, shift, count, period_ns, back_ns + ahead_ns); shift--)
		;
	if (!reaches(bits, shift, count, period_ns, back_ns + ahead_ns))
		return -ERANGE;

	/*
	 * ticks a nanosecond = count * 2^shift / period_ns, in lowest terms; no finer than 61 bits
	 * count. WHY NOT refused: a larger capacity of the same rate has longer ticks, and is
	 * accepted.
	 */
	spare = (unsigned)__builtin_ctzll(period_ns);
	while (shift > spare && bit_length(count) + shift - spare > 61)
		shift--;
	if (spare > shift)
		spare = shift;
	params->den = period_ns >> spare;
	if (bit_length(params->den) > 54 || bit_length(count) + shift - spare > 61)
		return -ERANGE;
	/* less than 512 den: a range of 2^63 ticks is 382 days or more */
	params->num = count << (shift - spare);
	set_scale(params);

	params->capacity = capacity;
	params->shape = params_shape(quota_bits, quota_bits + shift, SHMLIMIT_FUNNEL, set_inverse(params));
	params->back = (ns_to_ticks(params, back_ns - 1) + 1) << quota_bits;
	params->debt = ns_to_ticks(params, debt_ns) << quota_bits;
	params->ahead = params->debt + (ns_to_ticks(params, slack_ns) << quota_bits);
	params->max_wait_ns = rule->max_wait_ns;
	params->flags = rule->flags;
	params->count = rule->refill;
	params->period_ns = rule->period_ns;
	return 0;
}

int funnel_compile_quota(const struct shmlimit_rule *rule, uint64_t back_ns, struct layout_params *params)
{
	unsigned quota_bits = bit_length(rule->capacity);

	return compile_word(rule, quota_bits, 64 - quota_bits, back_ns, params);
}

int funnel_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	int error = funnel_compile_quota(rule, FUNNEL_BACK_NS, params);

	/*
	 * Without a quota, of 64 bits half of the range is used: lengths of time then fit a signed
	 * number.
	 */
	return error == -ERANGE ? compile_word(rule, 0, 63, FUNNEL_BACK_NS, params) : error;
}

/*
 * A length of time, less than a few tokens or at most a debt, from one rule's stamps to another's:
 * as many tokens.
 */
static uint64_t rescale(const struct layout_params *from, uint64_t stamp, const struct layout_params *to, int up)
{
	unsigned tokens_from = params_token_bits(from), tokens_to = params_token_bits(to);
	uint64_t grain = (uint64_t)1 << params_quota_bits(to);
	u128 scaled = ((u128)stamp << tokens_to) + (up ? ((u128)1 << tokens_from) - 1 : 0);

	scaled >>= tokens_from;
	if (up)
		scaled += grain - 1;
	return scaled > UINT64_MAX ? UINT64_MAX & ~(grain - 1) : (uint64_t)scaled & ~(grain - 1);
}

uint64_t funnel_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                        uint64_t now_ns)
{
	struct funnel_time then = funnel_time(from, now_ns), at;
	struct funnel funnel = funnel_refill(from, word, then);
	uint64_t ahead = then.stamp - funnel.stamp > from->back ? funnel.stamp - then.stamp : 0;
	uint64_t debt = funnel.quota != 0 ? 0 : ahead < from->debt ? ahead : from->debt;

	/*
	 * What is ahead beyond a debt is a later clock reading by another process. Its time is
	 * kept, as time: to take the word back to ours would refill it twice.
	 */
	at = funnel_time(to, now_ns);
	if (ahead != debt)
		at.stamp = funnel_stamp_at(to, now_ns + funnel_stamp_to_ns(from, then, ahead - debt));
	if (funnel.quota >= to->capacity) {
		funnel = funnel_full(to, at);
	} else if (debt != 0) {
		debt = rescale(from, debt, to, 1);
		funnel.stamp = at.stamp + (debt < to->debt ? debt : to->debt);
	} else if (ahead != 0) {
		funnel.stamp = at.stamp;
	} else {
		funnel.stamp = at.stamp - rescale(from, then.stamp - funnel.stamp, to, 0);
	}
	return funnel_pack(to, funnel);
}

/* Rounded down: what is promised for this time holds for at least this time. Saturating. */
static uint64_t stamp_to_whole_ns(const struct layout_params *params, uint64_t stamp)
{
	u128 ns = (u128)(stamp >> params_quota_bits(params)) * params->den / (params->num | (params->num == 0));

	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

void funnel_range(const struct layout_params *params, struct shmlimit_range *out)
{
	uint64_t num = params->num | (params->num == 0);
	u128 resolution = ((u128)params->den * 1000 + num - 1) / num;
	struct funnel_time zero = { 0, 0, 0 };
	unsigned quota_bits = params_quota_bits(params);
	uint64_t full;

	out->reserved32 = 0;
	out->resolution_ps = resolution > UINT64_MAX ? UINT64_MAX : (uint64_t)resolution;
	out->refill_ns = funnel_ticks_to_ns(params, zero, params->capacity << params_token_bits(params) >> quota_bits);
	/* Full since, at the most, what refills an empty one after its time. */
	full = params->capacity << params_token_bits(params);
	out->back_ns = full < params->back ? stamp_to_whole_ns(params, params->back - full) : 0;
	out->ahead_ns = stamp_to_whole_ns(params, UINT64_MAX - params->back);
}

/* ---- The row ---- */

static int funnel_row_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	(void)size;
	return (rule->flags & ~SHMLIMIT_RULE_NEXT_PAYS) != 0 ? -EINVAL : funnel_compile(rule, params);
}

void funnel_none(const struct look *k, struct balance *b)
{
	b->funnel = funnel_full(k->params, k->at);
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void funnel_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->funnel = funnel_refill(k->params, word, k->at);
	b->stepped = b->doubtful = b->funnel.stepped;
	b->was_empty = 0;
}

/*
 * How long after `at`, as a stamp, the latest writer of a word may have written it. Where there is
 * a debt, that is the end of the last reservation's wait, from which it counts (I1). Where times
 * are given, the writer's may be later than ours: by no more than the slack, as I1 says, and it is
 * before the end of the token that was being refilled then.
 */
static uint64_t later_by(const struct look *k, const struct funnel *funnel)
{
	const struct layout_params *params = k->params;
	uint64_t token = (uint64_t)1 << params_token_bits(params), tick = (uint64_t)1 << params_quota_bits(params);
	uint64_t age = k->at.stamp - funnel->stamp, ahead = age <= params->back ? 0 : 0 - age, most;

	if (!k->given)
		return ahead;
	/* To the end of that token: 0 if it has ended. */
	most = ahead != 0 ? ahead + token - tick : age < token - tick ? token - tick - age : 0;
	if (most > params->ahead - params->debt)
		most = params->ahead - params->debt;
	return most > ahead ? most : ahead;
}

/*
 * Give back what was taken some time ago, less what refilled since: that much may have been in
 * vain, had it not been taken (see struct undo).
 */
static void funnel_give_back(const struct look *k, const struct request *q, struct funnel *funnel, struct verdict *v)
{
	const struct layout_params *params = k->params;
	uint64_t back = q->amount << params_token_bits(params), refilled;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	/* A clock that stepped back does not tell: then the difference is huge. */
	refilled = k->at.stamp + later_by(k, funnel) - funnel_time(params, q->when.ns).stamp;
	if (refilled >= back || funnel_is_full(params, *funnel))
		return;
	/*
	 * In either form of the word its time moves back by what is given. Whole tokens are then
	 * counted.
	 */
	*funnel = funnel_refill(params, funnel_pack(params, *funnel) - (back - refilled), k->at);
	v->changed = 1;
}

static void funnel_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                             struct shmlimit_result *r)
{
	if (q->op == OP_REFUND && q->taken != NULL)
		funnel_give_back(k, q, &b->funnel, v);
	else
		funnel_apply(k->params, q, k->at, &b->funnel, v);
	v->word = funnel_pack(k->params, b->funnel);
	if (r != NULL)
		funnel_report(k->params, q, k->at, b->funnel, v, r);
}

static uint64_t funnel_row_fit(const struct look *k, const struct request *q, const struct balance *b)
{
	(void)k;
	(void)q;
	return b->funnel.quota;
}

static uint64_t funnel_row_wait(const struct look *k, const struct balance *b)
{
	return funnel_ns_until(k->params, b->funnel, k->params->capacity, k->at);
}

uint64_t funnel_idle_ns(const struct look *k, uint64_t word)
{
	uint64_t age = k->at.stamp - (word & ~(((uint64_t)1 << params_quota_bits(k->params)) - 1));

	return age > k->params->back ? 0 : funnel_stamp_to_ns(k->params, k->at, age);
}

static uint64_t funnel_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	return funnel_convert(k->params, word, to, k->at.now_ns);
}

const char *funnel_fault(const struct layout_params *params, uint64_t word)
{
	return (word & (((uint64_t)1 << params_quota_bits(params)) - 1)) > params->capacity
	               ? "more tokens than its rule's capacity"
	               : NULL;
}

void funnel_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota, int64_t *ticks)
{
	*quota = b->funnel.quota;
	*ticks = rebase_ticks(k->params, b->funnel, k->at, then_ns);
}

const char *funnel_mend(const struct layout_params *params, uint64_t word, uint64_t *mended)
{
	*mended = (word & ~(((uint64_t)1 << params_quota_bits(params)) - 1)) | params->capacity;
	return "set to the capacity, as it counted";
}

static void funnel_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	out->remaining = b->funnel.quota;
	out->debt_ns = funnel_stamp_to_ns(k->params, k->at, funnel_debt(k->params, b->funnel, k->at));
	out->reset_after_ns = funnel_ns_until(k->params, b->funnel, k->params->capacity, k->at);
}

const struct algorithm algorithm_funnel = {
	.traits = &traits_funnel,
	.operations = OPERATIONS_COMMON,
	.compile = funnel_row_compile,
	.range = funnel_range,
	.none = funnel_none,
	.read = funnel_row_read,
	.apply = funnel_row_apply,
	.fit = funnel_row_fit,
	.wait = funnel_row_wait,
	.idle_ns = funnel_idle_ns,
	.convert = funnel_row_convert,
	.fault = funnel_fault,
	.mend = funnel_mend,
	.save = funnel_save,
	.load = rebase_word,
	.show = funnel_row_show,
};
