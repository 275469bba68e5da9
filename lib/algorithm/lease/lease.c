/*
 * lease: the rare half of the arithmetic, see lease.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "counter.h"
#include "lease.h"
#include "whole.h"

/*
 * A size is a float without a sign: n for n < 4, else (4 + n mod 4) * 2^(n / 4 - 1).
 * Steps are an eighth to a quarter, and 64 of them reach over 17 bits; where the
 * capacity has more, sizes leave its low bits out.
 */
#define SIZE_STEPS 4u
#define SIZE_REACH_BITS 17u

/* Leases of few tokens may last longer than others: those of this size or less. */
#define FEW 28u

/* Of a lease: a request that comes so soon after a lone one is the second of a busy key. */
#define ALONE_PARTS 5u

/*
 * A key wants at most what it had times this number. Where it had what the backend lends at most,
 * that says less of what it could spend.
 */
#define GROWTH 2u
#define HELD_BACK_GROWTH 8u

/* The smallest lease that is followed by one ahead: 32 units. */
#define AHEAD_SIZE 16u

/*
 * A limit is small below this capacity, where fewer tokens than these come back in a quarter of a
 * lease.
 */
#define SMALL_CAPACITY 8192u
#define SMALL_SPARE 8u

/*
 * The longest lease of a funnel that is nearly full, as in global/redis/script.c: a part of the
 * time to full, unless that is less than some leases, or many tokens come back in a lease.
 */
#define LONG_NS UINT64_C(20000000000)
#define LONG_PARTS 4u
#define LONG_LEASES 8u
#define LONG_RATE 32u
#define SLOW_PARTS 16u /* of such a lease: requests as far apart as this come slowly */
#define STEADY_MAX 8u

/*
 * The backend's script counts in doubles, which are whole numbers below 2^53: parts of a token, of
 * which count * 1000 / common come back in a microsecond and period_ns / common make a token. The
 * same check is in global/redis/script.c.
 */
#define BACKEND_EXACT ((uint64_t)1 << 53)

static int backend_can_count(const struct shmlimit_rule *rule)
{
	uint64_t common;

	if (rule->refill >= BACKEND_EXACT / 1000)
		return 0;
	common = common_divisor(rule->refill * 1000, rule->period_ns);
	return (u128)rule->capacity * (rule->period_ns / common) + rule->refill * 1000 / common < BACKEND_EXACT;
}

int lease_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	unsigned bits = bit_length(rule->capacity);

	if (rule->capacity == 0 || rule->refill == 0 || rule->period_ns == 0)
		return -EDOM;
	if (bits > LEASE_QUOTA_BITS_MAX || !backend_can_count(rule))
		return -ERANGE;
	if (rule->flags != 0 || rule->max_wait_ns != 0 || rule->credit > rule->capacity)
		return -EINVAL;
	params->capacity = rule->capacity;
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = rule->refill;
	params->den = rule->period_ns;
	params->back = ((uint64_t)1 << LEASE_TIME_BITS) - LEASE_AHEAD_NS;
	params->ahead = LEASE_AHEAD_NS;
	params->shape = params_shape(bits, 0, SHMLIMIT_LEASE, 0);
	params->flags = (uint64_t)rule->credit << 32;
	params->count = rule->refill;
	params->period_ns = rule->period_ns;
	return 0;
}

void lease_range(const struct layout_params *params, struct shmlimit_range *out)
{
	uint64_t count = params->num | (params->num == 0);
	u128 refill_ns = ((u128)params->capacity * params->den + count - 1) / count;

	out->resolution_ps = 1000 * lease_tick_ns(params);
	out->refill_ns = refill_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)refill_ns;
	out->back_ns = params->back - lease_tick_ns(params);
	out->ahead_ns = params->ahead;
}

/* Bits that sizes of these parameters leave out. */
static unsigned size_shift(const struct layout_params *params)
{
	unsigned bits = params_quota_bits(params);

	return bits > SIZE_REACH_BITS ? bits - SIZE_REACH_BITS : 0;
}

unsigned lease_size(const struct layout_params *params, uint64_t tokens)
{
	unsigned shift = size_shift(params), exponent, size;
	uint64_t units;

	if (tokens > params->capacity)
		tokens = params->capacity;
	units = tokens >> shift;
	if (units == 0)
		return tokens != 0;
	if (units < SIZE_STEPS)
		return (unsigned)units;
	exponent = bit_length(units) - 3;
	/* to the nearest; from the last of an octave to the first of the next */
	units += (uint64_t)1 << exponent >> 1;
	size = SIZE_STEPS * exponent + (unsigned)(units >> exponent);
	return size < (1u << LEASE_SIZE_BITS) ? size : (1u << LEASE_SIZE_BITS) - 1;
}

uint64_t lease_size_tokens(const struct layout_params *params, unsigned size)
{
	uint64_t units = size < SIZE_STEPS ? size : (SIZE_STEPS + size % SIZE_STEPS) << (size / SIZE_STEPS - 1);

	return units << size_shift(params);
}

/* lease_size() rounds to the nearest: below the first size of an octave steps are half as wide. */
uint64_t lease_size_least(const struct layout_params *params, unsigned size)
{
	unsigned octave = size / SIZE_STEPS, shift = size_shift(params);
	uint64_t half = octave < 2 ? 0 : ((uint64_t)1 << (octave - 1)) / (size % SIZE_STEPS == 0 ? 4 : 2);

	if (size <= 1)
		return size;
	return ((lease_size_tokens(params, size) >> shift) - half) << shift;
}

/* How long a lease of that size was to last. */
static uint64_t lasts_ns_of(const struct layout_params *params, const struct lease *lease,
                            const struct lease_pace *pace)
{
	return pace->few_times > 1 && lease_size_tokens(params, lease->size) <= FEW ? pace->few_times * pace->lease_ns
	                                                                            : pace->lease_ns;
}

uint64_t lease_next(const struct layout_params *params, const struct lease *lease, uint64_t now_ns,
                    const struct lease_pace *pace, uint64_t times)
{
	uint64_t size = lease_size_tokens(params, lease->size), used = size, lasts_ns = pace->lease_ns, since_ns, next;
	uint64_t few = pace->few_times > 1 ? FEW : 0;
	u128 scaled, part;
	int is_short;

	if (lease->state == LEASE_TOKENS)
		lasts_ns = lasts_ns_of(params, lease, pace);
	/*
	 * How long ago the lease began, if it was to last as long as the next one will. Of a longer
	 * one that is not known.
	 */
	if (lease->left_ns != 0)
		since_ns = lease->left_ns < lasts_ns ? lasts_ns - lease->left_ns : lasts_ns;
	else
		since_ns = lasts_ns + ((now_ns - lease->until_ns) & (UINT64_MAX >> LEASE_TIME_SHIFT));
	if (lease->state == LEASE_TOKENS) {
		uint64_t left = lease->quota + lease->expired;

		used = left < size ? size - left : 0;
	} else if (lease->left_ns != 0) {
		since_ns = pace->lease_ns; /* nothing was learned */
	}
	since_ns |= since_ns == 0;
	/*
	 * To the nearest: else a lease of one token, which took long to come, would be followed by
	 * one of one for ever. If the tokens did not last for the lease's time, to the nearest that
	 * sizes tell apart. WHY NOT up: hosts that ask for a token each 60 ms would lease two, and
	 * not spend them.
	 */
	is_short = lease->state == LEASE_TOKENS && used == size && lease->left_ns != 0;
	part = (u128)since_ns << (is_short ? size_shift(params) : 0);
	scaled = ((u128)used * pace->lease_ns + part / 2) / part;
	if (lease->state == LEASE_TOKENS && scaled * (part / since_ns) > few) {
		scaled = ((u128)used * (pace->lease_ns / 4 * 3) + part / 2) / part;
		scaled = scaled > few ? scaled : few;
	}
	scaled *= part / since_ns;
	/*
	 * Two requests that meet by chance are not a busy key. WHY NOT a second token for each such
	 * pair: of 100 hosts that share 1000 a second 6 % of the tokens expired.
	 */
	if (few != 0 && size == 1 && scaled > 1 && since_ns > pace->lease_ns / ALONE_PARTS)
		scaled = 1;
	next = scaled < times * size ? (uint64_t)scaled : times * size;
	return next < params->capacity ? next : params->capacity;
}

uint64_t lease_spare(const struct layout_params *params, uint64_t lease_ns)
{
	uint64_t den = params->den | (params->den == 0);
	u128 spare = (u128)params->num * (lease_ns / 4) / den;

	return spare < SMALL_SPARE && params->capacity < SMALL_CAPACITY ? (uint64_t)spare : UINT64_MAX;
}

/* How long a lease of a funnel that is nearly full lasts; 0: no longer than others. */
static uint64_t long_ns_of(const struct layout_params *params, uint64_t lease_ns)
{
	uint64_t num = params->num | (params->num == 0), den = params->den | (params->den == 0);
	u128 long_ns = (u128)params->capacity * den / num / LONG_PARTS;

	long_ns = long_ns < LONG_NS ? long_ns : LONG_NS;
	return long_ns < (u128)LONG_LEASES * lease_ns || (u128)lease_ns * num >= (u128)LONG_RATE * den
	               ? 0
	               : (uint64_t)long_ns;
}

unsigned lease_steady(const struct layout_params *params, const struct lease *lease, uint64_t now_ns,
                      const struct lease_pace *pace)
{
	uint64_t long_ns = long_ns_of(params, pace->lease_ns), lasts_ns = lasts_ns_of(params, lease, pace), gap_ns = 0;
	uint64_t expected;

	if (lease->size == 0 || lease->state != LEASE_TOKENS || long_ns == 0)
		return 0;
	if (lease->left_ns > lasts_ns && lease->left_ns < long_ns)
		gap_ns = (long_ns - lease->left_ns) / lease_size_tokens(params, lease->size);
	else if (lease->left_ns != 0 && lease->left_ns <= lasts_ns - pace->lease_ns)
		gap_ns = (lasts_ns - lease->left_ns) / lease_size_tokens(params, lease->size);
	else if (lease->left_ns == 0)
		gap_ns = lasts_ns + ((now_ns - lease->until_ns) & (UINT64_MAX >> LEASE_TIME_SHIFT));
	if (gap_ns < pace->lease_ns || gap_ns < long_ns / SLOW_PARTS || gap_ns > long_ns)
		return 0;
	expected = long_ns / gap_ns;
	return expected < STEADY_MAX ? (unsigned)expected : STEADY_MAX;
}

uint64_t lease_ahead(const struct layout_params *params, const struct lease *lease, uint64_t spent, uint64_t now_ns,
                     const struct lease_pace *pace)
{
	uint64_t quarter = lease_size_tokens(params, lease->size) / 4;
	struct lease whole = *lease;

	if (lease->size < AHEAD_SIZE || lease->state != LEASE_TOKENS || lease->left_ns == 0 ||
	    lease->quota >= quarter || lease->quota + spent < quarter)
		return 0;
	/*
	 * This lease was asked for when a quarter of the last one was left: since then as many were
	 * spent as it began with.
	 */
	whole.quota = 0;
	return lease_next(params, &whole, now_ns, pace, GROWTH);
}

uint64_t lease_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to)
{
	unsigned bits = params_quota_bits(from);
	struct lease lease = {
		.until_ns = ((word & ~lease_low(from)) >> LEASE_TIME_SHIFT),
		.quota = lease_quota(from, word),
		.state = word >> bits & 3,
	};
	unsigned size = word >> ((bits + LEASE_STATE_BITS) & 63) & ((1u << LEASE_SIZE_BITS) - 1);

	/* The denial was of the old rule: ask again. */
	if (lease.state == LEASE_DENIED) {
		lease.state = LEASE_TOKENS;
		lease.quota = 0;
	}
	if (lease.quota > to->capacity)
		lease.quota = to->capacity;
	/* WHY NOT lease_size_tokens(): other steps could round it up, to more than was lent. */
	lease.size = lease_size(to, lease_size_least(from, size));
	return lease_pack(to, lease);
}

uint64_t lease_token_ns(const struct layout_params *params)
{
	uint64_t count = params->num | (params->num == 0);

	return params->den / count + (params->den % count != 0);
}

/* ---- Operations ---- */

/* Tokens that the word did not keep, because their time was over or must not be longer. */
static void let_expire(struct lease *lease, uint64_t tokens, struct lease_tally *tally)
{
	lease->quota -= tokens;
	tally->expired += tokens + lease->expired;
	lease->expired = 0;
}

/* Claim the key: this caller asks. */
static void lease_claim(const struct layout_params *params, const struct request *q, uint64_t now_ns,
                        struct lease *lease, struct verdict *v, struct lease_tally *tally)
{
	const struct lease_request *asked = q->lease;
	struct lease_pace pace = asked->pace;
	uint64_t claim_ns = asked->claim_ns < LEASE_AHEAD_NS / 2 ? asked->claim_ns : LEASE_AHEAD_NS / 2;
	uint64_t next, until_ns;
	unsigned steady;
	int is_held_back;

	pace.lease_ns = pace.lease_ns < LEASE_AHEAD_NS ? pace.lease_ns : LEASE_AHEAD_NS;
	is_held_back = lease_size_tokens(params, lease->size) > lease_spare(params, pace.lease_ns);
	next = lease_next(params, lease, now_ns, &pace, is_held_back ? HELD_BACK_GROWTH : GROWTH);
	steady = lease_steady(params, lease, now_ns, &pace);

	/* Rounded up, so that there is a claim however short. */
	until_ns = lease_until(params, now_ns, claim_ns + lease_tick_ns(params) - 1);
	/*
	 * What is left can be spent while the caller asks, unless its time is over before the
	 * claim's.
	 */
	if (lease->state == LEASE_DENIED)
		lease->quota = 0;
	else
		let_expire(lease, lease->left_ns < lease_left_ns(until_ns, now_ns) ? lease->quota : 0, tally);
	if (next < q->amount)
		next = q->amount;
	asked->out->want = next - lease->quota;
	asked->out->need = q->amount - lease->quota;
	/* each word that says anything of a key has a size */
	asked->out->unknown = lease->size == 0;
	asked->out->steady = steady;
	lease->state = LEASE_ASKED;
	lease->until_ns = until_ns;
	lease->left_ns = lease_left_ns(until_ns, now_ns);
	lease->size = lease_size(params, next);
	v->answer = SHMLIMIT_LEASE_ASK;
	v->changed = 1;
}

/* Take, peek, and whether to ask. */
static void lease_ask(const struct layout_params *params, const struct request *q, uint64_t now_ns, struct lease *lease,
                      struct verdict *v, struct lease_tally *tally)
{
	uint64_t held = lease_held(lease);

	if (__builtin_expect(q->amount <= held, 1)) {
		if (q->op == OP_PEEK || q->amount == 0)
			return;
		lease->quota -= q->amount;
		tally->spent = q->amount;
		v->changed = 1;
		if (q->op == OP_LEASE)
			q->lease->out->want = lease_ahead(params, lease, q->amount, now_ns, &q->lease->pace);
		return;
	}
	v->answer = SHMLIMIT_DENIED;
	if (q->amount > params->capacity) {
		v->retry_after_ns = FUNNEL_NEVER;
	} else if (lease->state == LEASE_DENIED && lease->left_ns != 0 && q->amount >= lease->quota) {
		v->retry_after_ns = lease->left_ns;
		tally->denied = q->op != OP_PEEK;
	} else if (q->op != OP_LEASE) {
		v->retry_after_ns =
			lease->state == LEASE_ASKED && lease->left_ns != 0 ? lease->left_ns : lease_token_ns(params);
	} else if (lease->state == LEASE_ASKED && lease->left_ns != 0) {
		v->answer = SHMLIMIT_LEASE_WAIT;
	} else if (q->lease->claim_ns == 0) {
		v->answer = SHMLIMIT_LEASE_ASK;
		q->lease->out->want = q->lease->out->need = q->amount - held;
	} else {
		lease_claim(params, q, now_ns, lease, v, tally);
	}
	if (v->answer > SHMLIMIT_DENIED) {
		q->lease->out->held = lease_held(lease);
		q->lease->out->wait_ns = lease->state == LEASE_ASKED ? lease->left_ns : 0;
	}
}

/*
 * Put tokens that end at until_ns beside those that are there: all end with the
 * first, or what ends first expires at once, whichever loses less. Returns whether all end at
 * until_ns or earlier, so that they may be counted with the new ones.
 */
static int merge(const struct layout_params *params, struct lease *lease, uint64_t tokens, uint64_t until_ns,
                 uint64_t now_ns, struct lease_tally *tally)
{
	uint64_t left_ns = lease_left_ns(until_ns, now_ns), room;
	int kept = tokens != 0 || lease->quota == 0;

	if (lease->quota == 0 || (lease->left_ns < left_ns && lease->quota < tokens)) {
		let_expire(lease, lease->quota, tally);
		lease->until_ns = until_ns;
	} else if (left_ns < lease->left_ns && tokens < lease->quota) {
		tally->expired += tokens;
		tokens = 0;
		kept = 0;
	} else if (left_ns < lease->left_ns) {
		lease->until_ns = until_ns;
	}
	room = params->capacity - lease->quota;
	if (tokens > room) {
		tally->expired += tokens - room;
		tokens = room;
	}
	lease->quota += tokens;
	lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
	if (lease->left_ns == 0)
		let_expire(lease, lease->quota, tally);
	return kept;
}

/*
 * What the backend gave. Tokens that were here are spent first, so that old ones rarely meet new
 * ones.
 */
static void deposit(const struct layout_params *params, const struct request *q, uint64_t now_ns, struct lease *lease,
                    struct verdict *v, struct lease_tally *tally)
{
	uint64_t tokens = q->lease->tokens, held = lease_held(lease);
	int enough = q->amount <= held || q->amount - held <= tokens;
	uint64_t spend = enough ? q->amount : 0;
	int kept;

	tally->leases = tokens != 0;
	tally->leased = tokens;
	tally->spent = spend;
	v->answer = enough ? SHMLIMIT_ALLOWED : SHMLIMIT_LEASE_WAIT;
	v->changed = 1;
	lease->state = LEASE_TOKENS;
	lease->quota = held - (spend < held ? spend : held);
	tokens -= spend < held ? 0 : spend - held;
	kept = merge(params, lease, tokens, lease_until(params, now_ns, q->lease->lease_ns), now_ns, tally);
	/* What was spent at once is lent too, as long as the rest is. */
	if (kept && q->lease->tokens > lease->quota)
		lease->size = lease_size(params, q->lease->tokens);
	else
		lease->size = lease_size(params, lease->quota);
}

/*
 * The backend denied or did not answer: the claim ends. Tokens that are left stay; if there are
 * none, a denial may.
 */
static void end_claim(const struct layout_params *params, const struct request *q, uint64_t now_ns, struct lease *lease,
                      struct verdict *v, struct lease_tally *tally)
{
	if (lease->state == LEASE_ASKED && lease->left_ns != 0) {
		lease->state = LEASE_TOKENS;
		/*
		 * What was asked for was not lent. Without tokens its time is over, and the size is
		 * still known.
		 */
		if (lease->quota != 0)
			lease->size = lease_size(params, lease->quota);
		else
			lease->until_ns = lease_until(params, now_ns, 0);
		lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
		v->changed = 1;
	}
	if (q->op == OP_ABANDON)
		return;
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = q->lease->lease_ns | (q->lease->lease_ns == 0);
	if (lease_held(lease) != 0)
		return;
	let_expire(lease, 0, tally);
	lease->state = LEASE_DENIED;
	lease->quota = q->amount < params->capacity ? q->amount | (q->amount == 0) : params->capacity;
	lease->until_ns = lease_until(params, now_ns, q->lease->lease_ns);
	lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
	v->changed = 1;
}

/* ---- The row ---- */

static int lease_row_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	(void)size;
	return lease_compile(rule, params);
}

static void lease_row_rule(const struct layout_params *params, struct shmlimit_rule *out)
{
	out->credit = params_credit(params);
}

static void lease_row_none(const struct look *k, struct balance *b)
{
	(void)k;
	b->lease = lease_none();
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void lease_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	b->lease = lease_read(k->params, word, k->at.now_ns);
	b->stepped = b->doubtful = b->was_empty = 0;
}

/* Is it the lease from which the tokens were taken that come back? */
static int lasts_still(const struct look *k, const struct request *q, const struct lease *lease)
{
	return q->taken == NULL ||
	       lease_read(k->params, q->taken->after.word, k->at.now_ns).until_ns == lease->until_ns;
}

static void lease_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                            struct shmlimit_result *r)
{
	const struct layout_params *params = k->params;
	struct lease_tally *tally = &b->tally;
	struct lease *lease = &b->lease;
	uint64_t room;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	*tally = (struct lease_tally){ 0 };
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
	case OP_RESERVE:
	case OP_LEASE:
		lease_ask(params, q, k->at.now_ns, lease, v, tally);
		break;
	case OP_REFUND:
		/*
		 * While a process asks, the size is what it asks for: tokens that are refunded in
		 * that time are lost.
		 */
		room = lease->state == LEASE_TOKENS && lease->left_ns != 0 ? lease_size_least(params, lease->size) : 0;
		room = room > lease->quota && lasts_still(k, q, lease) ? room - lease->quota : 0;
		v->changed = q->amount != 0 && room != 0;
		if (v->changed)
			lease->quota += q->amount < room ? q->amount : room;
		break;
	case OP_CHARGE:
		tally->spent = q->amount < lease_held(lease) ? q->amount : lease_held(lease);
		v->changed = tally->spent != 0;
		if (v->changed)
			lease->quota -= tally->spent;
		if (tally->spent < q->amount)
			v->retry_after_ns = FUNNEL_NEVER;
		break;
	case OP_DEPOSIT:
		deposit(params, q, k->at.now_ns, lease, v, tally);
		break;
	case OP_DENY:
	case OP_ABANDON:
		end_claim(params, q, k->at.now_ns, lease, v, tally);
		break;
	default:
		break; /* there are no others */
	}
	v->word = lease_pack(params, *lease);
	if (r == NULL)
		return;
	r->limit = params->capacity;
	r->remaining = lease_held(lease);
	r->wait_ns = 0;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = lease_wait(lease);
}

static void lease_add(const struct look *k, enum lease_counter which, uint64_t n)
{
	if (n != 0)
		counter_add_lease(k->l, which, n, k->at.ticks);
}

static void lease_row_count(const struct look *k, const struct balance *b)
{
	const struct lease_tally *tally = &b->tally;

	lease_add(k, LEASE_SPENT, tally->spent);
	if (__builtin_expect((tally->leases | tally->leased | tally->expired | tally->denied) == 0, 1))
		return;
	lease_add(k, LEASE_LEASES, tally->leases);
	lease_add(k, LEASE_LEASED, tally->leased);
	lease_add(k, LEASE_EXPIRED, tally->expired);
	lease_add(k, LEASE_KNOWN_DENIALS, tally->denied);
}

static uint64_t lease_row_wait(const struct look *k, const struct balance *b)
{
	(void)k;
	return lease_wait(&b->lease);
}

static uint64_t lease_row_idle_ns(const struct look *k, uint64_t word)
{
	return (k->at.now_ns - lease_read(k->params, word, k->at.now_ns).until_ns) & UINT64_MAX >> LEASE_TIME_SHIFT;
}

static uint64_t lease_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	return lease_convert(k->params, word, to);
}

static const char *lease_row_fault(const struct layout_params *params, uint64_t word)
{
	if ((word >> params_quota_bits(params) & 3) > LEASE_ASKED)
		return "a state that no lease has";
	return funnel_fault(params, word);
}

static const char *lease_row_mend(const struct layout_params *params, uint64_t word, uint64_t *mended)
{
	(void)params;
	(void)word;
	*mended = 0;
	return NULL;
}

static void lease_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	static const uint32_t states[] = { SHMLIMIT_SLOT_TOKENS, SHMLIMIT_SLOT_DENIED, SHMLIMIT_SLOT_ASKED };

	(void)k;
	out->remaining = lease_held(&b->lease);
	out->reset_after_ns = lease_wait(&b->lease);
	if (out->reset_after_ns != 0)
		out->lease = states[b->lease.state];
}

const struct algorithm algorithm_lease = {
	.traits = &traits_lease,
	.operations = OPERATIONS_COMMON | OPERATIONS_LEASE,
	.stays = 1,
	.compile = lease_row_compile,
	.rule = lease_row_rule,
	.range = lease_range,
	.none = lease_row_none,
	.read = lease_row_read,
	.apply = lease_row_apply,
	.count = lease_row_count,
	.wait = lease_row_wait,
	.idle_ns = lease_row_idle_ns,
	.convert = lease_row_convert,
	.fault = lease_row_fault,
	.mend = lease_row_mend,
	.show = lease_row_show,
};
