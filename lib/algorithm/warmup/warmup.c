/*
 * warmup: see warmup.h.
 *
 * With c the cold factor and rho = capacity * stable / warm-up, which is
 * 1/2 + 2 / (1 + c), everything follows from the capacity M, in units, and c:
 * the threshold is M / (2 rho), and the stable interval of a unit is rho times
 * the time in which one is stored, warm-up / M. Taking `a` units, the first of
 * them `above` units over the threshold, costs as much as
 *
 *	a + a (2 above - a) (c - 1) / (2 (M - threshold))
 *
 * units at the stable interval: the trapezoid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "warmup.h"
#include "whole.h"

enum rounded { ROUNDED_QUOTA, ROUNDED_COST };

/* A unit of 1/65536 token: a finer one would not help, and the quota needs the bits. */
#define UNIT_BITS_MAX 16
/* The fewest bits of the ticks in which a token is stored. */
#define TOKEN_TICKS 3u
/* A day beyond the time to full. */
#define SHORT_BACK_NS (86400 * (uint64_t)1000000000)
/* Of a unit, in what a request costs: as many as leave room for the products. */
#define FRACTION_BITS 32u
/* ... and in the threshold: beside a cold factor of hundreds what is above it is a few units. */
#define THRESHOLD_BITS 12u

/* rho = rho_num / rho_den, in thousandths of the cold factor */
static uint64_t rho_num(uint64_t cold_milli)
{
	return 5000 + cold_milli;
}

static uint64_t rho_den(uint64_t cold_milli)
{
	return 2 * (1000 + cold_milli);
}

/* In parts of a unit, of which THRESHOLD_BITS tell the number. */
static uint64_t threshold(uint64_t capacity, uint64_t cold_milli)
{
	return (uint64_t)(((u128)capacity << THRESHOLD_BITS) * (1000 + cold_milli) / (5000 + cold_milli));
}

/* floor(a * rho) for a below 2^120 */
static u128 times_rho(u128 a, uint64_t cold_milli)
{
	uint64_t num = rho_num(cold_milli), den = rho_den(cold_milli);

	return a / den * num + a % den * num / den;
}

/* The capacity in units; 0 where that is no token, or does not fit 48 bits. */
static uint64_t capacity_units(const struct shmlimit_rule *rule, uint64_t cold_milli, unsigned unit_bits)
{
	/*
	 * tokens a warm-up at the stable rate, times the period; the period being below 2^60 the
	 * shift fits
	 */
	u128 stable = (u128)rule->warmup_ns * rule->refill, units;

	if (stable / rule->period_ns >> (48 - unit_bits) != 0)
		return 0;
	units = times_rho(stable << unit_bits, cold_milli) / rule->period_ns;
	return units >> unit_bits == 0 || units >> 48 != 0 ? 0 : (uint64_t)units;
}

/* With the smallest units for which a word tells `back_ns` of the past and ticks are fine. */
static int compile_units(const struct shmlimit_rule *rule, uint32_t cold_milli, uint64_t back_ns,
                         struct layout_params *params)
{
	int error = -ERANGE;

	for (int unit_bits = UNIT_BITS_MAX; unit_bits >= 0 && error != 0; unit_bits--) {
		uint64_t units = capacity_units(rule, cold_milli, (unsigned)unit_bits);
		/*
		 * A funnel of units that fills within the warm-up; the dearest request, cold and
		 * whole, costs 3/2 of it.
		 */
		struct shmlimit_rule funnel = {
			.capacity = units,
			.refill = units,
			.period_ns = rule->warmup_ns,
			.max_wait_ns = rule->max_wait_ns + rule->warmup_ns + (rule->warmup_ns + 1) / 2 + 1,
		};

		/*
		 * To one part in a thousand: half a unit of the ramp, which is as dear as the
		 * coldest.
		 */
		if (units == 0 || units < cold_milli / 3 * 4)
			continue;
		if (rule->capacity != 0 && rule->capacity != units >> unit_bits)
			return -EINVAL;
		error = funnel_compile_quota(&funnel, back_ns, params);
		/* A token takes half of 2^TOKEN_TICKS ticks or more: so it never takes none. */
		if (error == 0 &&
		    params_token_bits(params) - params_quota_bits(params) + (unsigned)unit_bits < TOKEN_TICKS)
			error = -ERANGE;
		params_set_extra(params, (unsigned)unit_bits);
	}
	return error;
}

int warmup_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	uint32_t cold_milli = rule->cold_factor_milli != 0 ? rule->cold_factor_milli : WARMUP_COLD_DEFAULT_MILLI;
	int error;

	if (rule->refill == 0 || rule->period_ns == 0 || rule->warmup_ns == 0)
		return -EDOM;
	if (cold_milli < WARMUP_COLD_MIN_MILLI || cold_milli > WARMUP_COLD_MAX_MILLI ||
	    (rule->flags & ~SHMLIMIT_RULE_NEXT_PAYS) != 0)
		return -EINVAL;
	if (rule->period_ns >> 60 != 0 || rule->warmup_ns >> 60 != 0 || rule->max_wait_ns >> 60 != 0)
		return -ERANGE;
	error = compile_units(rule, cold_milli, FUNNEL_BACK_NS, params);
	/* Finer ticks, and a table that is swept more often, for high rates with long warm-ups. */
	if (error == -ERANGE)
		error = compile_units(rule, cold_milli, SHORT_BACK_NS, params);
	if (error != 0)
		return error;
	params->shape |= (uint64_t)SHMLIMIT_WARMUP << 16; /* FUNNEL's number is 0 */
	params->max_wait_ns = rule->max_wait_ns;
	params->flags = (uint64_t)cold_milli << 32 | rule->flags;
	params->count = rule->refill;
	params->period_ns = rule->period_ns;
	params->warmup_ns = rule->warmup_ns;
	return 0;
}

/*
 * A number below 2^bits that is as good as random, and another one for each thing that is rounded,
 * time and state of a key. What is rounded up if its fraction and this are a whole is right in the
 * mean.
 */
static uint64_t dither(struct funnel funnel, struct funnel_time at, enum rounded what, unsigned bits)
{
	uint64_t x = (at.now_ns ^ funnel.stamp ^ funnel.quota << 17) * 0x9e3779b97f4a7c15u + what;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return bits == 0 ? 0 : x >> (64 - bits);
}

/*
 * The stable intervals of units, which are given with `fraction` bits of one, at most
 * params_token_bits(): as a stamp, of which the low bits may be other than zero; saturating.
 */
static uint64_t stable_stamp(const struct layout_params *params, u128 units, unsigned fraction)
{
	unsigned bits = params_token_bits(params) - fraction;
	u128 stamp;

	if (units >> (64 - bits) != 0)
		return UINT64_MAX;
	stamp = times_rho(units << bits, params_cold_factor_milli(params));
	return stamp > UINT64_MAX ? UINT64_MAX : (uint64_t)stamp;
}

/* Down to a tick, after `more` less than one was added; saturating. */
static uint64_t to_tick(const struct layout_params *params, uint64_t stamp, uint64_t more)
{
	uint64_t grain = ((uint64_t)1 << params_quota_bits(params)) - 1;

	return (stamp > UINT64_MAX - more ? UINT64_MAX : stamp + more) & ~grain;
}

/*
 * The trapezoid above the threshold without its part at the stable interval, in units with
 * `fraction` bits, which are FRACTION_BITS at most. taken, above and span are in parts of a unit:
 * below 2^60, and the cold factor below 2^20. So the products fit.
 */
static u128 slope_units(uint64_t taken, uint64_t above, uint64_t span, uint64_t cold_milli, unsigned fraction)
{
	u128 area = (u128)taken * (2 * above - taken);
	u128 whole = (area / span * (cold_milli - 1000)) << (FRACTION_BITS - THRESHOLD_BITS);
	u128 rest = (area % span * (cold_milli - 1000)) << (FRACTION_BITS - THRESHOLD_BITS);

	return (whole + rest / span) / 2000 >> (FRACTION_BITS - fraction);
}

/*
 * What refilled of the next unit is dropped when the timestamp moves on, since the next free time
 * needs it exactly. So the unit is there as often as is right.
 */
static void round_quota(const struct layout_params *params, struct funnel *funnel, struct funnel_time at)
{
	unsigned bits = params_token_bits(params);
	uint64_t refilled = at.stamp - funnel->stamp;

	if (refilled <= params->back && !funnel_is_full(params, *funnel) &&
	    (refilled + dither(*funnel, at, ROUNDED_QUOTA, bits)) >> bits != 0)
		funnel->quota++;
}

struct funnel warmup_refill(const struct layout_params *params, uint64_t word, struct funnel_time at)
{
	struct funnel funnel = funnel_refill(params, word, at);

	if (funnel.stepped)
		funnel.stamp = at.stamp + params->debt;
	return funnel;
}

uint64_t warmup_debt(const struct layout_params *params, struct funnel funnel, struct funnel_time at)
{
	return at.stamp - funnel.stamp > params->back ? funnel.stamp - at.stamp : 0;
}

uint64_t warmup_ns_until_full(const struct layout_params *params, struct funnel funnel, struct funnel_time at)
{
	if (funnel_is_full(params, funnel))
		return funnel_stamp_to_ns(params, at, warmup_debt(params, funnel, at));
	return funnel_ns_until(params, funnel, params->capacity, at);
}

int warmup_take(const struct layout_params *params, struct funnel *funnel, uint64_t tokens, struct funnel_time at)
{
	uint64_t cold_milli = params_cold_factor_milli(params), limit = threshold(params->capacity, cold_milli);
	uint64_t span = (params->capacity << THRESHOLD_BITS) - limit, debt = warmup_debt(params, *funnel, at), stored,
		 above, cost;
	unsigned token_bits = params_token_bits(params),
		 fraction = token_bits < FRACTION_BITS ? token_bits : FRACTION_BITS;
	u128 asked = (u128)tokens << params_unit_bits(params), slope = 0;
	int all;

	round_quota(params, funnel, at);
	stored = asked < funnel->quota ? (uint64_t)asked : funnel->quota;
	above = funnel->quota << THRESHOLD_BITS;
	above = above > limit ? above - limit : 0;
	if (span != 0) {
		uint64_t taken = stored << THRESHOLD_BITS;

		slope = slope_units(above < taken ? above : taken, above, span, cold_milli, fraction);
	}
	cost = stable_stamp(params, (asked << fraction) + slope, fraction);
	cost = to_tick(params, cost, dither(*funnel, at, ROUNDED_COST, params_quota_bits(params)));
	all = cost <= params->debt && debt <= params->debt - cost;
	if (!all)
		cost = debt < params->debt ? params->debt - debt : 0;
	funnel->quota -= stored;
	funnel->stamp = at.stamp + debt + cost;
	return all;
}

void warmup_refund(const struct layout_params *params, struct funnel *funnel, uint64_t tokens, struct funnel_time at)
{
	uint64_t cold_milli = params_cold_factor_milli(params), debt = warmup_debt(params, *funnel, at);
	u128 units = (u128)tokens << params_unit_bits(params), owed;

	/* What the debt is, in units at the stable interval. */
	owed = (u128)debt * rho_den(cold_milli) / rho_num(cold_milli) >> params_token_bits(params);
	if (units <= owed) {
		uint64_t back = to_tick(params, stable_stamp(params, units, 0), 0);

		funnel->stamp -= back < debt ? back : debt;
		return;
	}
	units -= owed;
	if (debt != 0)
		funnel->stamp = at.stamp;
	if (units >= params->capacity - funnel->quota)
		*funnel = funnel_full(params, at);
	else
		funnel->quota += (uint64_t)units;
}

uint64_t warmup_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                        uint64_t now_ns)
{
	struct funnel_time then = funnel_time(from, now_ns), at;
	struct funnel funnel = warmup_refill(from, word, then);
	uint64_t ahead_ns = funnel_stamp_to_ns(from, then, warmup_debt(from, funnel, then));
	uint64_t longest_ns = funnel_stamp_to_ns(to, funnel_time(to, now_ns), to->debt);
	u128 units = to->capacity;

	/* To the nearest unit, so that many changes lose nothing in the mean. */
	if (from->capacity != 0)
		units = ((u128)funnel.quota * to->capacity + from->capacity / 2) / from->capacity;
	at = funnel_time(to, now_ns);
	if (ahead_ns > longest_ns)
		ahead_ns = longest_ns;
	funnel.quota = units < to->capacity ? (uint64_t)units : to->capacity;
	funnel.stamp = ahead_ns == 0 ? at.stamp : funnel_stamp_at(to, now_ns + ahead_ns);
	return funnel_pack(to, funnel);
}

/* ---- The row ---- */

static int warmup_row_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	(void)size;
	return warmup_compile(rule, params);
}

static void warmup_row_rule(const struct layout_params *params, struct shmlimit_rule *out)
{
	out->capacity = warmup_tokens(params, params->capacity);
	out->warmup_ns = params->warmup_ns;
	out->cold_factor_milli = params_cold_factor_milli(params);
}

static void warmup_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->funnel = warmup_refill(k->params, word, k->at);
	b->stepped = b->doubtful = b->funnel.stepped;
	b->was_empty = 0;
}

/*
 * Take, peek, reserve: a request waits for what is owed before it, and leaves what it costs to the
 * next.
 */
static void warmup_ask(const struct layout_params *params, const struct request *q, struct funnel_time at,
                       struct funnel *funnel, struct verdict *v)
{
	uint64_t wait_ns = funnel_stamp_to_ns(params, at, warmup_debt(params, *funnel, at)), limit_ns = 0;

	if (q->amount == 0)
		return;
	if (q->op == OP_RESERVE)
		limit_ns = q->max_wait_ns < params->max_wait_ns ? q->max_wait_ns : params->max_wait_ns;
	if (q->amount > warmup_tokens(params, params->capacity)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
	} else if (wait_ns > limit_ns) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = wait_ns - limit_ns;
	} else if (q->op != OP_PEEK) {
		warmup_take(params, funnel, q->amount, at);
		v->wait_ns = wait_ns;
		v->changed = 1;
	}
}

/*
 * Give back what was taken some time ago: what came out of the store, as far as the store would
 * lack it now, had no other process come since. The debt stays. WHY: no other process takes before
 * it is paid; one that reserves waits until then, and the next one must not come earlier than what
 * that one costs.
 */
static void warmup_give_back(const struct layout_params *params, const struct request *q, struct funnel_time at,
                             struct funnel *funnel)
{
	const struct undo *taken = q->taken;
	u128 asked = (u128)q->amount << params_unit_bits(params);
	uint64_t back = params->capacity - warmup_refill(params, taken->after.word, at).quota, had = params->capacity;

	if (taken->before.tag == taken->after.tag)
		had = warmup_refill(params, taken->before.word, funnel_time(params, q->when.ns)).quota;
	if (back > had)
		back = had;
	if (back > asked)
		back = (uint64_t)asked;
	if (back > params->capacity - funnel->quota)
		back = params->capacity - funnel->quota;
	funnel->quota += back;
}

static void warmup_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                             struct shmlimit_result *r)
{
	const struct layout_params *params = k->params;
	struct funnel *funnel = &b->funnel;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
	case OP_RESERVE:
		warmup_ask(params, q, k->at, funnel, v);
		break;
	case OP_REFUND:
		v->changed = q->amount != 0 && !funnel_is_full(params, *funnel);
		if (v->changed && q->taken != NULL)
			warmup_give_back(params, q, k->at, funnel);
		else if (v->changed)
			warmup_refund(params, funnel, q->amount, k->at);
		break;
	case OP_CHARGE:
		v->changed = q->amount != 0;
		if (v->changed && !warmup_take(params, funnel, q->amount, k->at))
			v->retry_after_ns = FUNNEL_NEVER;
		break;
	default:
		break; /* it has no others */
	}
	v->word = funnel_pack(params, *funnel);
	if (r == NULL)
		return;
	r->limit = warmup_tokens(params, params->capacity);
	r->remaining = warmup_tokens(params, funnel->quota);
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = warmup_ns_until_full(params, *funnel, k->at);
}

/* Whatever is asked for is had at once, if nothing is owed. */
static uint64_t warmup_row_fit(const struct look *k, const struct request *q, const struct balance *b)
{
	(void)q;
	return warmup_debt(k->params, b->funnel, k->at) != 0 ? 0 : warmup_tokens(k->params, k->params->capacity);
}

static uint64_t warmup_row_wait(const struct look *k, const struct balance *b)
{
	return warmup_ns_until_full(k->params, b->funnel, k->at);
}

static uint64_t warmup_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	return warmup_convert(k->params, word, to, k->at.now_ns);
}

static void warmup_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	out->remaining = warmup_tokens(k->params, b->funnel.quota);
	out->debt_ns = funnel_stamp_to_ns(k->params, k->at, warmup_debt(k->params, b->funnel, k->at));
	out->reset_after_ns = warmup_ns_until_full(k->params, b->funnel, k->at);
}

const struct algorithm algorithm_warmup = {
	.traits = &traits_warmup,
	.operations = OPERATIONS_COMMON,
	.compile = warmup_row_compile,
	.range = funnel_range,
	.rule = warmup_row_rule,
	.none = funnel_none,
	.read = warmup_row_read,
	.apply = warmup_row_apply,
	.fit = warmup_row_fit,
	.wait = warmup_row_wait,
	.idle_ns = funnel_idle_ns,
	.convert = warmup_row_convert,
	.fault = funnel_fault,
	.mend = funnel_mend,
	.save = funnel_save,
	.load = rebase_word,
	.show = warmup_row_show,
};
