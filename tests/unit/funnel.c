/*
 * funnel: the arithmetic of a funnel beside exact rational numbers.
 *
 * I12: a rule is refused or it is exact: its tick, its conversion of time for all 64 bits of it, its bounds.
 * I1, I2: refilling is exact and no error adds up: after any number of steps, peeked at or not, a funnel holds what
 *	an oracle holds that keeps all fractions, and is less than one tick from the real number.
 * I7: for any bits the result is defined, and never more than the capacity.
 * The waits that a decision reports are the least that suffice.
 *
 * The oracle counts the contents of the funnel in ticks, as one number of 128 bits. It knows neither the funnel's split
 * into quota and timestamp, nor that there are state words without a quota.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long (100: 10^8 cases).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "draw.h"
#include "unit.h"

#include "funnel.h"

#define DAY (86400 * SECOND)

typedef unsigned __int128 u128;
typedef __int128 i128;

/* All lengths of up to `bits` bits alike; one in eight is next to a power of two. */
static uint64_t extreme(unsigned bits)
{
	unsigned length = (unsigned)up_to(bits);

	if (length == 0)
		return 0;
	if (up_to(7) == 0)
		return ((uint64_t)1 << (length - 1)) + up_to(2) - 1;
	return draw() >> (64 - length);
}

static unsigned length_of(u128 x)
{
	unsigned bits = 0;

	for (; x != 0; x >>= 1)
		bits++;
	return bits;
}

/* A rule in lowest terms, and what it was compiled to. */
struct rule {
	uint64_t capacity, count, period_ns;
	struct layout_params params;
	unsigned quota_bits, f; /* of the word; 2^f ticks are a token */
	u128 refill_ns;         /* rounded up */
};

static uint64_t common(uint64_t a, uint64_t b)
{
	return b == 0 ? a : common(b, a % b);
}

/* What tests/proof/laws/funnel.c takes for given of every rule: see good() there. */
static uint64_t compiled, unlike_proved;

static int as_proved(const struct layout_params *t)
{
	unsigned q = params_quota_bits(t), token = params_token_bits(t);
	uint64_t grain = ((uint64_t)1 << q) - 1;

	if (q == 0 ? t->back > INT64_MAX || t->ahead > INT64_MAX - t->back
	           : q > 48 || token < q || t->capacity > grain || t->capacity <= grain >> 1 ||
	                     t->ahead >= UINT64_MAX - t->back)
		return 0;
	return t->capacity >= 1 && ((t->back | t->ahead | t->debt) & grain) == 0 && t->debt <= t->ahead &&
	       (u128)t->capacity << token <= t->back && t->ahead - t->debt <= (u128)t->capacity << token;
}

static int compile_with(struct rule *rule, struct shmlimit_rule given)
{
	uint64_t capacity = given.capacity, count = given.refill, period_ns = given.period_ns;
	uint64_t g = common(count, period_ns);
	int error = funnel_compile(&given, &rule->params);

	if (error == 0) {
		compiled++;
		unlike_proved += !as_proved(&rule->params);
	}
	if (g == 0)
		g = 1;
	rule->capacity = capacity;
	rule->count = count / g;
	rule->period_ns = period_ns / g;
	rule->quota_bits = error == 0 ? params_quota_bits(&rule->params) : 0;
	rule->f = error == 0 ? params_token_bits(&rule->params) - params_quota_bits(&rule->params) : 0;
	if (count != 0)
		rule->refill_ns = ((u128)capacity * rule->period_ns + rule->count - 1) / rule->count;
	return error;
}

static int compile(struct rule *rule, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	return compile_with(rule,
	                    (struct shmlimit_rule){ .capacity = capacity, .refill = count, .period_ns = period_ns });
}

static void describe(const char *what, const struct rule *rule)
{
	diag("%s: capacity %" PRIu64 ", %" PRIu64 " / %" PRIu64
	     " ns, %u bits of quota, 2^%u ticks a token, fill %" PRIu64 " ns",
	     what, rule->capacity, rule->count, rule->period_ns, rule->quota_bits, rule->f, (uint64_t)rule->refill_ns);
}

/* What people write, odd relatives of it, and what only a fuzzer would: one that is accepted. */
static void some_rule(struct rule *rule)
{
	static const uint64_t periods[] = { 1000000, SECOND, 60 * SECOND, 3600 * SECOND, DAY, 365 * DAY };
	int error;

	do {
		switch (up_to(4)) {
		case 0:
			error = compile(rule, 1 + extreme(14), 1 + extreme(10), periods[up_to(5)]);
			break;
		case 1:
			error = compile(rule, 1 + extreme(20), 1 + extreme(20), extreme(44) | 1);
			break;
		case 2: /* tokens that are bytes, microseconds or words of a language model */
			error = compile(rule, 1 + extreme(48), 1 + extreme(37), periods[up_to(5)]);
			break;
		case 3:
			error = compile(rule, 1 + extreme(48), 1 + extreme(37), extreme(44) | 1);
			break;
		default:
			error = compile(rule, extreme(49), extreme(40), extreme(64));
		}
	} while (error != 0);
}

static u128 ticks_of(const struct rule *rule, uint64_t ns)
{
	return (u128)ns * rule->params.num / rule->params.den;
}

/* Is the range of this many bits, at 2^f ticks a token, at least this long? */
static int reaches(const struct rule *rule, unsigned bits, unsigned f, u128 range_ns)
{
	return (u128)rule->period_ns << (bits - f) >= range_ns * rule->count;
}

/* Bits of time beside this many of quota. Where there are none, half of the range is left unused. */
static unsigned time_bits(unsigned quota_bits)
{
	return quota_bits == 0 ? 63 : 64 - quota_bits;
}

/* ---- Compiling ---- */

/* Do 61 bits hold the ticks of a nanosecond, at 2^f ticks a token? */
static int is_counted(const struct rule *rule, unsigned f)
{
	unsigned spare = 0;

	while (spare < f && (rule->period_ns >> spare) % 2 == 0)
		spare++;
	return length_of(rule->count) + f - spare <= 61;
}

/* Has a word with this many bits of quota a range so long, in ticks that are counted exactly? */
static int has_room(const struct rule *rule, unsigned quota_bits, u128 range_ns)
{
	unsigned bits = time_bits(quota_bits), f = bits - 1, spare = 0;

	while (f > 0 && !reaches(rule, bits, f, range_ns))
		f--;
	if (!reaches(rule, bits, f, range_ns))
		return 0;
	while (f > 0 && !is_counted(rule, f))
		f--;
	while (spare < f && (rule->period_ns >> spare) % 2 == 0)
		spare++;
	return length_of(rule->period_ns >> spare) <= 54 && length_of(rule->count) + f - spare <= 61;
}

/* How many bits of quota the word is to have; -1 if there is no such word. */
static int best_form(const struct rule *rule)
{
	u128 range_ns = rule->refill_ns + 366 * DAY + 16 * DAY;

	if (rule->capacity > (uint64_t)1 << 48 || rule->refill_ns > (u128)1 << 62)
		return -1;
	if (rule->capacity >> 48 == 0 && has_room(rule, length_of(rule->capacity), range_ns))
		return (int)length_of(rule->capacity);
	return has_room(rule, 0, range_ns) ? 0 : -1;
}

/* The laws that an accepted rule obeys, each a bit of what is returned when it does not. */
enum law { SHAPE = 1, RATE = 2, PAST = 4, FINEST = 8, SLACK = 16, REPORT = 32 };

static unsigned broken(const struct rule *rule)
{
	const struct layout_params *t = &rule->params;
	unsigned bits = time_bits(rule->quota_bits);
	u128 ticks = (u128)1 << (64 - rule->quota_bits), back = t->back >> rule->quota_bits;
	u128 slack = t->ahead >> rule->quota_bits, full = (u128)rule->capacity << rule->f;
	u128 most = rule->refill_ns / 2 < SECOND ? rule->refill_ns / 2 : SECOND, right, known;
	struct shmlimit_range range;
	unsigned wrong = 0;

	funnel_range(t, &range);
	if (t->capacity != rule->capacity || (int)rule->quota_bits != best_form(rule) ||
	    params_algorithm(t) != SHMLIMIT_FUNNEL || rule->quota_bits + rule->f > 63 ||
	    back << rule->quota_bits != t->back || slack << rule->quota_bits != t->ahead)
		wrong |= SHAPE;

	/* num / den = count * 2^f / period */
	right = (u128)t->den * rule->count;
	if (common(t->num, t->den) != 1 || length_of(right) + rule->f > 128 ||
	    (u128)t->num * rule->period_ns != right << rule->f)
		wrong |= RATE;

	/* A funnel that filled is still full 366 days later. What is left is 16 days or more. */
	if (back >= ticks || back < full + ticks_of(rule, 366 * DAY - 1) || ticks - back < ticks_of(rule, 16 * DAY))
		wrong |= PAST;

	/* Half a tick would leave less than that. */
	if (rule->f + 1 < bits && is_counted(rule, rule->f + 1) &&
	    reaches(rule, bits, rule->f + 1, 366 * DAY + rule->refill_ns + 16 * DAY))
		wrong |= FINEST;

	if (slack > ticks_of(rule, (uint64_t)most) || slack + 1 < ticks_of(rule, (uint64_t)most) ||
	    slack >= ticks - back)
		wrong |= SLACK;

	/* Rounded to the safe side, by less than a unit. An empty one is full a time to full after its time. */
	known = back - full;
	if (range.refill_ns != rule->refill_ns || (u128)range.resolution_ps * t->num < (u128)t->den * 1000 ||
	    (u128)(range.resolution_ps - 1) * t->num >= (u128)t->den * 1000 ||
	    (u128)range.back_ns * t->num > known * t->den || ((u128)range.back_ns + 1) * t->num <= known * t->den ||
	    (u128)range.ahead_ns * t->num > (ticks - back - 1) * t->den ||
	    ((u128)range.ahead_ns + 1) * t->num <= (ticks - back - 1) * t->den)
		wrong |= REPORT;
	return wrong;
}

static void compiling(void)
{
	uint64_t wrong[6] = { 0 }, refused = 0, unjustified = 0, ill = 0, accepted = 0, without = 0;
	uint64_t rounds = scaled(100000);
	static const char *const laws[] = {
		"an accepted rule keeps its capacity and fits its word, which has a quota if there is room",
		"ticks a nanosecond are the rate, exactly and in lowest terms",
		"a funnel that filled is known to be full for 366 days more",
		"the tick is the finest that can be counted and whose range is long enough",
		"what may be another's clock read is a second, or half the time to fill, and no part of the past",
		"a rule's range is reported as it is: the resolution rounded up, back and ahead rounded down",
	};

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t capacity = extreme(up_to(3) ? 48 : 64), count = extreme(up_to(3) ? 40 : 64);
		struct rule rule = { 0 };
		unsigned found;
		int error;

		error = compile(&rule, capacity, count, extreme(64));
		if (error != 0) {
			int zero = rule.capacity == 0 || rule.count == 0 || rule.period_ns == 0;

			refused++;
			ill += error != (zero ? -EDOM : -ERANGE);
			if (!zero && best_form(&rule) >= 0 && ++unjustified <= 3)
				describe("refused", &rule);
			continue;
		}
		accepted++;
		without += rule.quota_bits == 0;
		if (i % 2)
			some_rule(&rule);
		found = broken(&rule);
		for (unsigned law = 0; law < 6; law++)
			if (found >> law & 1 && ++wrong[law] <= 3)
				describe(laws[law], &rule);
	}
	diag("%" PRIu64 " rules accepted, %" PRIu64 " of them without a quota, %" PRIu64 " refused", accepted, without,
	     refused);
	ok(accepted > rounds / 20 && without > rounds / 50 && refused > rounds / 20,
	   "there are rules with a quota, without one and refused to look at");
	is(ill, 0, "a rule with a zero is -EDOM, any other refusal -ERANGE");
	is(unjustified, 0, "no rule is refused but for its size, its range or its fraction");
	for (unsigned law = 0; law < 6; law++)
		is(wrong[law], 0, "%s", laws[law]);
}

static int refusal(uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = { .capacity = capacity, .refill = count, .period_ns = period_ns };
	struct layout_params params;

	return funnel_compile(&rule, &params);
}

static void refusals(void)
{
	is(refusal(0, 1, 1), -EDOM, "a capacity of 0 is refused");
	is(refusal(1, 0, 1), -EDOM, "a count of 0 is refused");
	is(refusal(1, 1, 0), -EDOM, "a period of 0 is refused");
	is(refusal(0, 0, 0), -EDOM, "a rule of zeros is refused");
	is(refusal(1000000, 1000000, SECOND), 0, "a million a second, all of it at once, is a rule");
	is(refusal(10, 1, 365 * DAY), 0, "ten at once and one a year is a rule");
	is(refusal(UINT64_MAX, UINT64_MAX, UINT64_MAX), -ERANGE, "a capacity of 64 bits is not");
	is(refusal((uint64_t)1 << 48, (uint64_t)1 << 20, SECOND), 0, "one of 2^48 is");
	is(refusal(((uint64_t)1 << 48) + 1, (uint64_t)1 << 20, SECOND), -ERANGE,
	   "a capacity above the largest is refused");
	is(refusal(1, UINT64_MAX, 1), -ERANGE, "a rate that no tick can follow is refused");
	is(refusal(1000, 1, 366 * DAY), -ERANGE, "a time to fill of a thousand years is refused");
	is(refusal(1, 1, UINT64_MAX), -ERANGE, "a time to fill of 584 years is refused");
}

/* What users limit that is not requests: bytes, tokens of a language model, processor time. */
static void large(void)
{
	static const struct {
		const char *name;
		uint64_t capacity, count, period_ns;
	} rules[] = {
		{ "10 MB at 125 MB/s", 10000000, 125000000, SECOND },
		{ "1 GB a day", 1000000000, 1000000000, DAY },
		{ "150 M tokens a minute", 150000000, 150000000, 60 * SECOND },
		{ "8 CPUs in microseconds", 8000000, 8000000, SECOND },
		{ "100 GB a month", 100000000000, 100000000000, 30 * DAY },
		{ "one token at 10^11 a second", 1, 100000000000, SECOND },
		{ "2^48 tokens at 10^11 a second", (uint64_t)1 << 48, 100000000000, SECOND },
		{ "2^48 tokens at 2^48 in 146 years", (uint64_t)1 << 48, (uint64_t)1 << 48, 146 * 365 * DAY },
	};
	uint64_t refused = 0, short_of = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct rule rule = { 0 };

		is(compile(&rule, rules[i].capacity, rules[i].count, rules[i].period_ns), 0, "%s is a rule",
		   rules[i].name);
		is(broken(&rule), 0, "%s obeys all laws", rules[i].name);
	}
	for (uint64_t i = 0; i < scaled(10000); i++) {
		uint64_t capacity = 1 + up_to(((uint64_t)1 << extreme(48) % 49) - 1),
			 rate = 1 + up_to(100000000000 - 1);
		struct shmlimit_range range;
		struct rule rule = { 0 };

		if ((u128)capacity * SECOND / rate > (u128)1 << 61)
			continue;
		refused += compile(&rule, capacity, rate, SECOND) != 0;
		funnel_range(&rule.params, &range);
		short_of += range.back_ns < 366 * DAY - SECOND;
	}
	is(refused, 0, "a capacity of up to 2^48 is a rule at each rate of up to 10^11 a second");
	is(short_of, 0, "such a rule's time reaches back 366 days from when it is full");
}

/* ---- Time ---- */

static int converts(const struct rule *rule, uint64_t now_ns)
{
	struct funnel_time at = funnel_time(&rule->params, now_ns);

	return at.now_ns == now_ns && at.ticks == (uint64_t)ticks_of(rule, now_ns) &&
	       at.stamp == at.ticks << rule->quota_bits;
}

/* A time to try the j-th: anywhere, next to powers of two, to 0 and to the end of time, where a tick begins. */
static uint64_t some_time(const struct rule *rule, unsigned j)
{
	u128 tick;

	if (j % 4 == 0)
		return draw();
	if (j % 4 == 1)
		return j / 4 < 64 ? (uint64_t)1 << j / 4 : (uint64_t)(j / 4 % 2) - 1;
	tick = ticks_of(rule, j % 8 == 7 ? UINT64_MAX - up_to(3) : draw() >> up_to(63));
	if (j % 4 == 2) /* where a token would begin from 0 on */
		tick = tick >> rule->f << rule->f;
	return (uint64_t)((tick * rule->params.den + rule->params.num - 1) / rule->params.num);
}

static void conversion(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(1000); i++) {
		struct rule rule;

		some_rule(&rule);
		for (unsigned j = 0; j < 300; j++) {
			uint64_t centre = some_time(&rule, j);

			for (uint64_t k = 0; k < 5; k++)
				if (!converts(&rule, centre - 2 + k) && ++wrong <= 3) {
					describe("wrong", &rule);
					diag("at %" PRIu64, centre - 2 + k);
				}
		}
	}
	is(wrong, 0, "nanoseconds become ticks by floor(now * num / den), for all 64 bits of now");
}

/* x with a * x = 1 modulo n; a and n have no common divisor. */
static uint64_t inverse_modulo(uint64_t a, uint64_t n)
{
	i128 x = 0, next_x = 1, rest = n, next_rest = a % n;

	while (next_rest != 0) {
		i128 q = rest / next_rest, t = x - q * next_x;

		x = next_x;
		next_x = t;
		t = rest - q * next_rest;
		rest = next_rest;
		next_rest = t;
	}
	return (uint64_t)(x < 0 ? x + n : x);
}

/*
 * The hardest times for a conversion by a reciprocal: the latest at which a
 * tick begins, and the latest at which it lacks one part of `den`.
 */
static void hardest_times(void)
{
	uint64_t wrong = 0, long_ones = 0;

	for (uint64_t i = 0; i < scaled(20000); i++) {
		struct rule rule;
		uint64_t inverse;

		/* Half of them with the longest periods there are. */
		do {
			if (i % 2)
				some_rule(&rule);
		} while (i % 2 == 0 && compile(&rule, 1 + extreme(10), 1 + extreme(10), extreme(64) | 1) != 0);
		inverse = inverse_modulo(rule.params.num, rule.params.den);
		long_ones += rule.params.den >> 50 != 0;
		for (uint64_t lacking = 0; lacking < 3; lacking++) {
			uint64_t residue = (uint64_t)((u128)inverse * (rule.params.den - lacking % rule.params.den) %
			                              rule.params.den);
			uint64_t now_ns = UINT64_MAX - (UINT64_MAX - residue) % rule.params.den;

			if ((u128)now_ns * rule.params.num % rule.params.den !=
			    (rule.params.den - lacking % rule.params.den) % rule.params.den)
				bail("that is not how to find the hardest times");
			if (!converts(&rule, now_ns) && ++wrong <= 3) {
				describe("wrong", &rule);
				diag("at %" PRIu64, now_ns);
			}
		}
	}
	is(wrong, 0, "nanoseconds become ticks by floor where the least lacks to the next tick, at the end of time");
	ok(long_ones > scaled(100), "fractions as long as they can be were met");
}

/* An interval of n whole tokens, where that is whole nanoseconds, is n tokens from whatever start. */
static void whole_tokens(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(100000); i++) {
		static struct rule rule;
		uint64_t n, start;

		if (i % 50 == 0)
			some_rule(&rule);
		n = up_to(UINT64_MAX / rule.period_ns >> up_to(63));
		start = up_to(UINT64_MAX - n * rule.period_ns);
		wrong += funnel_time(&rule.params, start + n * rule.period_ns).stamp -
		                 funnel_time(&rule.params, start).stamp !=
		         n * rule.count << (rule.quota_bits + rule.f);
	}
	is(wrong, 0, "an interval of whole tokens is never a tick short, nor one long");
}

/* ---- Refilling ---- */

/* What a word holds at a time, in ticks, by the book: quota and the part of a token that has come back since. */
struct content {
	u128 ticks; /* less than zero (as a timestamp in the future says) is kept apart */
	u128 ahead;
	int stepped;
};

static struct content content_of(const struct layout_params *t, uint64_t word, uint64_t now_ticks)
{
	unsigned quota_bits = params_quota_bits(t), f = params_token_bits(t) - quota_bits;
	u128 modulus = (u128)1 << (64 - quota_bits), full = (u128)t->capacity << f;
	u128 quota = word % ((u128)1 << quota_bits), then = word / ((u128)1 << quota_bits);
	u128 elapsed = ((u128)now_ticks % modulus + modulus - then) % modulus;
	struct content c = { (quota < t->capacity ? quota : t->capacity) << f, 0, 0 };

	if (elapsed <= t->back / ((u128)1 << quota_bits))
		c.ticks = full - c.ticks < elapsed ? full : c.ticks + elapsed;
	else if (modulus - elapsed <= t->ahead / ((u128)1 << quota_bits))
		c.ahead = modulus - elapsed;
	else
		c.stepped = 1;
	return c;
}

/* The content of a funnel that was refilled up to `at`. */
static struct content content_after(const struct layout_params *t, struct funnel funnel, struct funnel_time at)
{
	unsigned quota_bits = params_quota_bits(t), f = params_token_bits(t) - quota_bits;
	uint64_t fraction = at.stamp - funnel.stamp;
	struct content c = { (u128)funnel.quota << f, 0, funnel.stepped };

	if (fraction >> (quota_bits + f) == 0)
		c.ticks += fraction >> quota_bits;
	else
		c.ahead = -fraction >> quota_bits;
	return c;
}

static int leaks_right(const struct layout_params *t, uint64_t word, struct funnel_time at)
{
	struct content want = content_of(t, word, at.ticks), got;
	struct funnel funnel = funnel_refill(t, word, at);

	got = content_after(t, funnel, at);
	return got.ticks == want.ticks && got.ahead == want.ahead && got.stepped == want.stepped &&
	       funnel_is_past(t, word, at) == (want.ahead == 0 && !want.stepped) && funnel.quota <= t->capacity &&
	       (funnel.quota < t->capacity || want.ahead || funnel.stamp == at.stamp);
}

/*
 * Funnels of so few tokens a range that all of them can be tried: words and
 * times at each quarter of a token and a tick to both sides, all quotas.
 */
static uint64_t refill_all(const struct layout_params *t)
{
	unsigned quota_bits = params_quota_bits(t), quarter = params_token_bits(t) - 2;
	uint64_t tick = (uint64_t)1 << quota_bits, quarters = (uint64_t)1 << (64 - quarter), wrong = 0;

	for (uint64_t w = 0; w < 3 * quarters; w++)
		for (uint64_t n = 0; n < 3 * quarters; n++) {
			uint64_t then = ((w / 3) << quarter) + (w % 3 - 1) * tick;
			uint64_t now = ((n / 3) << quarter) + (n % 3 - 1) * tick;
			struct funnel_time at = { 0, now >> quota_bits, now };

			for (uint64_t quota = 0; quota < tick; quota++)
				if (!leaks_right(t, then | quota, at) && ++wrong <= 3)
					diag("capacity %" PRIu64 " shape %" PRIx64 " back %" PRIx64 " slack %" PRIx64
					     " word %" PRIx64 " now %" PRIx64,
					     t->capacity, t->shape, t->back, t->ahead, then | quota, now);
		}
	return wrong;
}

static void refilling_small(void)
{
	uint64_t wrong = 0;

	for (unsigned quota_bits = 0; quota_bits <= 3; quota_bits++)
		for (unsigned token_bits = 60; token_bits <= 62; token_bits++)
			for (uint64_t capacity = quota_bits == 0 ? 1 : (uint64_t)1 << (quota_bits - 1);
			     capacity < (uint64_t)1 << (quota_bits == 0 ? 63 - token_bits : quota_bits); capacity++) {
				uint64_t token = (uint64_t)1 << token_bits, tick = (uint64_t)1 << quota_bits;
				struct layout_params t = { .capacity = capacity,
					                   .shape = params_shape(quota_bits, token_bits,
					                                         SHMLIMIT_FUNNEL, 0) };

				t.back = -token - tick; /* the future: one token */
				t.ahead = token / 2;
				wrong += refill_all(&t);
				t.back = -(token / 2 * 3); /* as much again, and next to nothing of it honest */
				t.ahead = tick;
				wrong += refill_all(&t);
			}
	is(wrong, 0, "small funnels refill as the oracle says, from any word to any time");
}

/* Any word, any time, any rule. */
static void refilling_any(void)
{
	uint64_t wrong = 0, stepped = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		static struct rule rule;
		struct funnel_time at;
		uint64_t word;

		if (i % 50 == 0)
			some_rule(&rule);
		at = funnel_time(&rule.params, extreme(64));
		word = draw();
		if (i % 2) /* within two tokens, either way */
			word = at.stamp + (up_to((uint64_t)4 << (rule.quota_bits + rule.f) >> 1) -
			                   ((uint64_t)1 << (rule.quota_bits + rule.f)));
		stepped += (unsigned)content_of(&rule.params, word, at.ticks).stepped;
		if (!leaks_right(&rule.params, word, at) && ++wrong <= 3) {
			describe("wrong", &rule);
			diag("word %" PRIx64 " at %" PRIu64, word, at.now_ns);
		}
	}
	is(wrong, 0, "all funnels refill as the oracle says");
	ok(stepped != 0, "some of these words are of an impossible time");
}

/* ---- Long lives ---- */

/* A funnel and its oracles. */
struct life {
	const struct rule *rule;
	uint64_t word, now_ns;
	u128 ticks;       /* content, in ticks */
	i128 parts;       /* content as a real number, in count * 2^-spare parts of a tick: exact */
	uint64_t seen;    /* ticks and ... */
	uint64_t seen_ns; /* ... nanoseconds of the oracles' last look */
};

/* A tick is `den` parts, a nanosecond `num`. */
static void live_on(struct life *life)
{
	const struct layout_params *t = &life->rule->params;
	u128 full = (u128)t->capacity << life->rule->f;
	uint64_t ticks = (uint64_t)ticks_of(life->rule, life->now_ns);

	life->ticks += ticks - life->seen;
	if (life->ticks > full)
		life->ticks = full;
	life->parts += (i128)((u128)(life->now_ns - life->seen_ns) * t->num);
	if (life->parts > (i128)(full * t->den))
		life->parts = (i128)(full * t->den);
	life->seen = ticks;
	life->seen_ns = life->now_ns;
}

static uint64_t some_step(const struct rule *rule)
{
	uint64_t token = rule->period_ns / rule->count, fill = (uint64_t)rule->refill_ns;

	switch (up_to(9)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return up_to(fill < DAY ? fill : DAY);
	case 3:
	case 4:
		return up_to(token < DAY ? token : DAY);
	default:
		return up_to(token < DAY ? token / 8 : DAY / 8);
	}
}

/* True if the funnel goes the oracles' way for `steps` steps. */
static int live(const struct rule *rule, uint64_t steps)
{
	const struct layout_params *t = &rule->params;
	struct life life = { .rule = rule, .now_ns = extreme(63) };
	struct funnel_time at = funnel_time(t, life.now_ns);

	life.word = funnel_pack(t, funnel_full(t, at));
	life.seen = at.ticks;
	life.seen_ns = life.now_ns;
	life.ticks = (u128)t->capacity << rule->f;
	life.parts = (i128)(life.ticks * t->den);
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t cost = up_to(1) ? 1 : up_to(t->capacity);
		struct funnel funnel;
		struct content got;
		i128 apart;

		life.now_ns += some_step(rule);
		at = funnel_time(t, life.now_ns);
		funnel = funnel_refill(t, life.word, at);
		got = content_after(t, funnel, at);
		live_on(&life);
		apart = (i128)(life.ticks * t->den) - life.parts;
		if (got.ticks != life.ticks || got.ahead != 0 || got.stepped || apart >= (i128)t->den ||
		    -apart >= (i128)t->den) {
			describe("wrong", rule);
			diag("step %" PRIu64 ": quota %" PRIu64 ", oracle's %" PRIu64, i, funnel.quota,
			     (uint64_t)(life.ticks >> rule->f));
			return 0;
		}
		if (cost <= funnel.quota && up_to(3)) {
			funnel.quota -= cost;
			life.ticks -= (u128)cost << rule->f;
			life.parts -= (i128)(((u128)cost << rule->f) * t->den);
			life.word = funnel_pack(t, funnel);
		} else if (up_to(7) == 0 || i % 8 == 0) {
			life.word = funnel_pack(t, funnel);
		}
	}
	return 1;
}

static void living(void)
{
	static const struct {
		uint64_t capacity, count, period_ns;
	} known[] = {
		/* clang-format off */
		{ 5, 5, SECOND }, { 3, 3, SECOND }, { 7, 7, 60 * SECOND }, { 15, 30, 60 * SECOND }, { 100, 100, DAY },
		{ 1000000, 1000000, SECOND }, { 1, 1, 1000 }, { 13, 7, 61 * SECOND + 1 },
		{ 10000000, 125000000, SECOND }, { 100000000000, 100000000000, 30 * DAY },
		/* clang-format on */
	};
	uint64_t wrong = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct rule rule;

		if (compile(&rule, known[i].capacity, known[i].count, known[i].period_ns) != 0)
			bail("rule %zu does not compile", i);
		ok(live(&rule, 100000), "%" PRIu64 " in %" PRIu64 " ns, 100000 steps on, is where exact numbers are",
		   known[i].count, known[i].period_ns);
	}
	for (uint64_t i = 0; i < scaled(400); i++) {
		struct rule rule;

		some_rule(&rule);
		wrong += !live(&rule, 1000);
	}
	is(wrong, 0, "any rule is where exact numbers are, however often it is looked at");
}

/* ---- Debt ---- */

/* The same as some_rule(), with debt: up to a few times the time to full, or years. */
static void some_rule_with_debt(struct rule *rule)
{
	int error;

	do {
		struct shmlimit_rule given = { .flags = up_to(1) ? SHMLIMIT_RULE_NEXT_PAYS : 0 };

		some_rule(rule);
		given.capacity = rule->capacity;
		given.refill = rule->count;
		given.period_ns = rule->period_ns;
		given.max_wait_ns = up_to(3)   ? up_to(rule->refill_ns < DAY ? 3 * (uint64_t)rule->refill_ns : 3 * DAY)
		                    : up_to(3) ? up_to(900 * DAY)
		                               : up_to((uint64_t)1 << 62);
		error = compile_with(rule, given);
	} while (error != 0);
}

/* The content less what is owed, in ticks. */
static i128 net_of(const struct layout_params *t, uint64_t word, struct funnel_time at)
{
	struct content c = content_of(t, word, at.ticks);

	return (i128)c.ticks - (i128)c.ahead;
}

/* What one operation makes of `net`. Returns 0 if it does what it should. */
static int operate(const struct layout_params *t, const struct rule *rule, struct funnel *funnel, struct funnel_time at,
                   i128 *net)
{
	i128 longest = t->debt >> rule->quota_bits, full = (i128)t->capacity << rule->f, after;
	uint64_t n = up_to(2) ? up_to(t->capacity) : up_to(1) ? up_to(4 * t->capacity) : extreme(64), owed;
	int lacks = n > funnel->quota;

	switch (up_to(3)) {
	case 0:
		if (lacks)
			return (i128)n << rule->f > *net;
		funnel->quota -= n;
		*net -= (i128)n << rule->f;
		return 1;
	case 1:
		after = *net - ((i128)n << rule->f);
		if (!funnel_borrow(t, funnel, n, at, &owed))
			return lacks && -after > longest &&
			       (owed == UINT64_MAX || (i128)(owed >> rule->quota_bits) == -after - longest);
		*net = after;
		return (i128)(owed >> rule->quota_bits) == (lacks ? -after : 0) && (!lacks || -after <= longest);
	case 2:
		after = *net - ((i128)n << rule->f);
		funnel_charge(t, funnel, n, at);
		*net = after < -longest ? -longest : after;
		return 1;
	default:
		after = *net + ((i128)n << rule->f);
		funnel_refund(t, funnel, n, at);
		*net = after < full ? after : full;
		return 1;
	}
}

/* True if whatever is taken, borrowed, charged and given back is, to the tick. */
static int owe(const struct rule *rule, uint64_t steps)
{
	const struct layout_params *t = &rule->params;
	u128 full = (u128)t->capacity << rule->f;
	uint64_t now_ns = extreme(63), word;
	struct funnel_time at = funnel_time(t, now_ns);
	i128 net = (i128)full;

	word = funnel_pack(t, funnel_full(t, at));
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t seen = at.ticks;
		struct funnel funnel;
		i128 before;

		now_ns += some_step(rule);
		at = funnel_time(t, now_ns);
		net += (i128)(at.ticks - seen);
		if (net > (i128)full)
			net = (i128)full;
		funnel = funnel_refill(t, word, at);
		before = net;
		if (net_of(t, word, at) != net || !operate(t, rule, &funnel, at, &net)) {
			describe("wrong", rule);
			diag("step %" PRIu64 ": quota %" PRIu64 ", net %" PRId64 ", before %" PRId64, i, funnel.quota,
			     (int64_t)net, (int64_t)before);
			return 0;
		}
		word = funnel_pack(t, funnel);
	}
	return net_of(t, word, at) == net;
}

static void owing(void)
{
	uint64_t wrong = 0, without = 0, short_of = 0;

	for (uint64_t i = 0; i < scaled(2000); i++) {
		struct shmlimit_range range;
		struct rule rule;

		some_rule_with_debt(&rule);
		without += rule.quota_bits == 0;
		funnel_range(&rule.params, &range);
		short_of += range.ahead_ns < rule.params.max_wait_ns;
		wrong += !owe(&rule, 300) && wrong < 3;
	}
	is(wrong, 0,
	   "what is taken, borrowed, charged and given back is so to the tick, in any order, down to the debt");
	ok(without > scaled(400), "words without a quota were met");
	is(short_of, 0, "a rule's time reaches ahead as far as its longest wait");
}

/* ---- Changing ---- */

/* The tokens of `net` ticks in the other rule's ticks, rounded towards what gives less; a word of either form. */
static i128 carried(const struct rule *from, i128 net, const struct rule *to)
{
	i128 full = (i128)to->params.capacity << to->f, longest = to->params.debt >> to->quota_bits, whole, rest;

	if (net < 0) {
		whole = (i128)((((u128)-net << to->f) + ((u128)1 << from->f) - 1) >> from->f);
		return whole < longest ? -whole : -longest;
	}
	whole = net >> from->f;
	rest = net - (whole << from->f);
	rest = (i128)((u128)rest << to->f >> from->f);
	return whole >= to->params.capacity ? full : (whole << to->f) + rest;
}

static void changing(void)
{
	uint64_t wrong = 0, kinds[2][2] = { { 0 } };

	for (uint64_t i = 0; i < scaled(300000); i++) {
		static struct rule from, to;
		struct funnel_time then, at;
		struct funnel funnel = { 0 };
		uint64_t now_ns = extreme(63), word;
		i128 net, want;

		if (i % 30 == 0) {
			some_rule_with_debt(&from);
			some_rule_with_debt(&to);
		}
		then = funnel_time(&from.params, now_ns);
		at = funnel_time(&to.params, now_ns);
		/* A whole funnel, a part of one, or a debt. */
		funnel.stamp = then.stamp;
		funnel.quota = up_to(3) ? up_to(from.params.capacity) : 0;
		if (funnel.quota == 0 && up_to(1))
			funnel.stamp += up_to(from.params.debt >> from.quota_bits) << from.quota_bits;
		else if (funnel.quota != from.params.capacity)
			funnel.stamp -= up_to(((uint64_t)1 << from.f) - 1) << from.quota_bits;
		word = funnel_pack(&from.params, funnel);
		net = net_of(&from.params, word, then);
		want = carried(&from, net, &to);
		word = funnel_convert(&from.params, word, &to.params, now_ns);
		kinds[from.quota_bits == 0][to.quota_bits == 0]++;
		if (net_of(&to.params, word, at) != want && ++wrong <= 3) {
			describe("from", &from);
			describe("to", &to);
			diag("net %" PRId64 ": got %" PRId64 ", want %" PRId64, (int64_t)net,
			     (int64_t)net_of(&to.params, word, at), (int64_t)want);
		}
	}
	is(wrong, 0, "a rule that is changed leaves each key its tokens and its debt");
	ok(kinds[0][0] > scaled(1000) && kinds[0][1] > scaled(1000) && kinds[1][0] > scaled(1000) &&
	           kinds[1][1] > scaled(1000),
	   "a rule that is changed leaves each key its tokens where its word gets a quota, or loses it");
}

/* ---- Clocks that disagree ---- */

/* Processes whose readings are up to `apart` nanoseconds old take, charge and give back. */
static int disagree(const struct rule *rule, uint64_t apart, uint64_t steps)
{
	const struct layout_params *t = &rule->params;
	uint64_t latest_ns = ((uint64_t)1 << 62) + up_to(DAY), word;
	struct funnel_time first = funnel_time(t, latest_ns), at = first;
	u128 taken = 0, most = (u128)t->capacity << rule->f;

	word = funnel_pack(t, funnel_full(t, at));
	for (uint64_t i = 0; i < steps; i++) {
		uint64_t n = up_to(1) ? up_to(t->capacity) : 1 + up_to(3);
		struct funnel funnel;

		latest_ns += some_step(rule);
		at = funnel_time(t, latest_ns - up_to(apart));
		funnel = funnel_refill(t, word, at);
		if (funnel.stepped) /* then a decision reads the clock again */
			funnel = funnel_refill(t, word, at = funnel_time(t, latest_ns));
		if (n > funnel.quota)
			continue;
		funnel.quota -= n;
		taken += (u128)n << rule->f;
		word = funnel_pack(t, funnel);
		if (taken > most + (funnel_time(t, latest_ns).ticks - first.ticks))
			return 0;
	}
	return 1;
}

static void disagreeing(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(2000); i++) {
		struct rule rule;

		some_rule(&rule);
		if (!disagree(&rule, extreme(34), 300) && ++wrong <= 3)
			describe("wrong", &rule);
	}
	is(wrong, 0, "clocks that disagree never give more than the capacity and what refilled");
}

/* ---- Waiting ---- */

static int fits(const struct rule *rule, uint64_t word, uint64_t cost, uint64_t now_ns)
{
	return funnel_refill(&rule->params, word, funnel_time(&rule->params, now_ns)).quota >= cost;
}

/* True if the wait for `cost` tokens is exact, from some word at about that time. */
static int waits_right(const struct rule *rule, uint64_t now_ns)
{
	const struct layout_params *t = &rule->params;
	struct funnel_time at = funnel_time(t, now_ns);
	struct funnel funnel = { up_to(1) ? 0 : up_to(t->capacity - 1), at.stamp, 0 };
	uint64_t fraction = (uint64_t)1 << rule->f, wait, cost;
	i128 missing;

	/* So much of a token has come back, or so much is the timestamp ahead. */
	fraction = up_to(7) ? up_to(fraction - 1) : fraction - 1;
	if (up_to(3))
		funnel.stamp -= fraction << rule->quota_bits;
	else
		funnel.stamp += up_to(t->ahead >> rule->quota_bits) << rule->quota_bits;
	cost = up_to(3) ? funnel.quota + 1 : funnel.quota + 1 + up_to(t->capacity - funnel.quota - 1);
	wait = funnel_ns_until(t, funnel, cost, at);

	/* The tick of that moment begins at ceil(tick * den / num). */
	missing = (i128)(at.stamp - funnel.stamp) >> rule->quota_bits;
	if (missing > (i128)1 << (63 - rule->quota_bits))
		missing -= (i128)1 << (64 - rule->quota_bits);
	missing = (i128)((u128)(cost - funnel.quota) << rule->f) - missing;
	if (now_ns > UINT64_MAX - wait)
		return 1;
	if (wait != (uint64_t)(((ticks_of(rule, now_ns) + (u128)missing) * t->den + t->num - 1) / t->num) - now_ns)
		return 0;
	return funnel_ns_until(t, funnel, funnel.quota, at) == 0 &&
	       funnel_ns_until(t, funnel, t->capacity + 1, at) == FUNNEL_NEVER &&
	       fits(rule, funnel_pack(t, funnel), cost, now_ns + wait) &&
	       !fits(rule, funnel_pack(t, funnel), cost, now_ns + wait - 1);
}

static void waiting(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		static struct rule rule;
		uint64_t now_ns;

		if (i % 100 == 0)
			some_rule(&rule);
		now_ns = up_to(15) ? extreme(64) : UINT64_MAX - up_to((uint64_t)rule.refill_ns);
		if (!waits_right(&rule, now_ns) && ++wrong <= 3) {
			describe("wrong", &rule);
			diag("at %" PRIu64, now_ns);
		}
	}
	is(wrong, 0, "a wait is exact: then it fits, and a nanosecond earlier it does not");
}

/* ---- Garbage ---- */

static void garbage(void)
{
	struct layout_params before = { 0 };
	struct shmlimit_range range;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(200000); i++) {
		union {
			struct layout_params params;
			uint64_t words[sizeof(struct layout_params) / 8];
		} any;
		struct funnel_time at;
		struct funnel funnel;

		for (size_t j = 0; j < sizeof(any.words) / 8; j++)
			any.words[j] = up_to(7) ? extreme(64) : -up_to(1);
		at = funnel_time(&any.params, extreme(64));
		funnel = funnel_refill(&any.params, draw(), at);
		wrong += funnel.quota > any.params.capacity;
		funnel_ns_until(&any.params, funnel, extreme(64), at);
		funnel_ns_until(&any.params, funnel, any.params.capacity, at);
		funnel_ticks_to_ns(&any.params, at, extreme(64));
		funnel_range(&any.params, &range);
		funnel_convert(&before, draw(), &any.params, extreme(64));
		before = any.params;
		if (funnel_is_full(&any.params, funnel) != (funnel.quota == any.params.capacity))
			wrong++;
		funnel_pack(&any.params, funnel);
		funnel_charge(&any.params, &funnel, extreme(64), at);
		funnel_refund(&any.params, &funnel, extreme(64), at);
		wrong += funnel.quota > any.params.capacity;
	}
	is(wrong, 0, "garbage has an answer, and never more than the capacity");
}

int main(void)
{
	draws.state = rng_seed();
	refusals();
	large();
	compiling();
	conversion();
	hardest_times();
	whole_tokens();
	refilling_small();
	refilling_any();
	living();
	owing();
	changing();
	disagreeing();
	waiting();
	garbage();
	ok(compiled > scaled(1000), "rules were compiled");
	is(unlike_proved, 0, "compiled parameters are what the proofs take for given");
	return tap_done();
}
