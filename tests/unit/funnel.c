/*
 * funnel: the arithmetic of a funnel against exact rational numbers.
 *
 * I12: a rule is refused or it is exact: its tick, its conversion of time for
 *	all 64 bits of it, its bounds.
 * I1, I2: leaking is exact and nothing adds up: after any number of steps, being
 *	looked at or not, a funnel holds what an oracle holds that keeps all
 *	fractions, and is less than one tick from the real number.
 * I7: garbage in, something defined out, and never more than the capacity.
 * The times to wait that a decision reports are the least that suffice.
 *
 * The oracle counts the contents of the funnel in ticks, as one number of 128
 * bits; the funnel's own split into quota and timestamp occurs nowhere in it.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long (100: 10^8 cases).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../dice.h"
#include "unit.h"

#include "funnel.h"

#define DAY (86400 * SECOND)

typedef unsigned __int128 u128;
typedef __int128 i128;

static uint64_t seed;

/* Splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n, evenly. */
static uint64_t up_to(uint64_t n)
{
	return n == UINT64_MAX ? draw() : (uint64_t)((u128)draw() * (n + 1) >> 64);
}

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
	struct layout_terms terms;
	unsigned quota_bits, f;           /* 2^f ticks are a token */
	u128 fill_ns;                     /* rounded up */
};

static uint64_t common(uint64_t a, uint64_t b)
{
	return b == 0 ? a : common(b, a % b);
}

/* What tests/proof/laws/funnel.c takes for given of every rule: see good() there. */
static uint64_t compiled, unlike_proved;

static int as_proved(const struct layout_terms *t)
{
	unsigned q = terms_quota_bits(t), token = terms_token_bits(t);
	uint64_t grain = ((uint64_t)1 << q) - 1;

	return q >= 1 && q <= 48 && token >= q && t->capacity >= 1 && t->capacity <= grain &&
	       t->capacity > grain >> 1 && ((t->back | t->ahead | t->debt) & grain) == 0 && t->debt <= t->ahead &&
	       t->ahead < UINT64_MAX - t->back && (u128)t->capacity << token <= t->back &&
	       t->ahead - t->debt <= (u128)t->capacity << token;
}

static int compile(struct rule *rule, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	uint64_t g = common(count, period_ns);
	struct shmlimit_rule given = { .capacity = capacity, .count = count, .period_ns = period_ns };
	int error = funnel_compile(&given, &rule->terms);

	if (error == 0) {
		compiled++;
		unlike_proved += !as_proved(&rule->terms);
	}
	if (g == 0)
		g = 1;
	rule->capacity = capacity;
	rule->count = count / g;
	rule->period_ns = period_ns / g;
	rule->quota_bits = length_of(capacity);
	rule->f = error == 0 ? terms_token_bits(&rule->terms) - terms_quota_bits(&rule->terms) : 0;
	if (count != 0)
		rule->fill_ns = ((u128)capacity * rule->period_ns + rule->count - 1) / rule->count;
	return error;
}

static void describe(const char *what, const struct rule *rule)
{
	diag("%s: capacity %" PRIu64 ", %" PRIu64 " / %" PRIu64 " ns, 2^%u ticks a token, fill %" PRIu64 " ns",
	     what, rule->capacity, rule->count, rule->period_ns, rule->f, (uint64_t)rule->fill_ns);
}

/* What people write, odd relatives of it, and what only a fuzzer would: one that is accepted. */
static void some_rule(struct rule *rule)
{
	static const uint64_t periods[] = { 1000000, SECOND, 60 * SECOND, 3600 * SECOND, DAY, 365 * DAY };
	int error;

	do {
		switch (up_to(2)) {
		case 0:
			error = compile(rule, 1 + extreme(14), 1 + extreme(10), periods[up_to(5)]);
			break;
		case 1:
			error = compile(rule, 1 + extreme(20), 1 + extreme(20), extreme(44) | 1);
			break;
		default:
			error = compile(rule, extreme(48), extreme(40), extreme(64));
		}
	} while (error != 0);
}

static u128 ticks_of(const struct rule *rule, uint64_t ns)
{
	return (u128)ns * rule->terms.num / rule->terms.den;
}

/* Is the range of 2^f ticks a token at least so long? */
static int reaches(const struct rule *rule, unsigned f, u128 range_ns)
{
	return (u128)rule->period_ns << (64 - rule->quota_bits - f) >= range_ns * rule->count;
}

/* ---- Compiling ---- */

/* Would the rule be refused if the range had to be so long, or 16 days and twice the time to fill at the least? */
static int must_refuse(const struct rule *rule, u128 range_ns)
{
	unsigned f = 63 - rule->quota_bits, spare = 0;

	while (f > 0 && !reaches(rule, f, range_ns))
		f--;
	if (f == 0 && !reaches(rule, f, 16 * DAY + 2 * rule->fill_ns))
		return 1;
	while (spare < f && (rule->period_ns >> spare) % 2 == 0)
		spare++;
	return length_of(rule->period_ns >> spare) > 54 || length_of(rule->count) + f - spare > 61 ||
	       ((u128)rule->count << f) / rule->period_ns >= 512;
}

/* A day more or less that the past reaches beyond the time to fill is the library's choice. */
static int may_refuse(const struct rule *rule)
{
	u128 year = 366 * DAY, fill = rule->fill_ns;

	return rule->quota_bits > 48 || fill > (u128)1 << 62 ||
	       must_refuse(rule, (fill > year ? fill : year) + 16 * DAY) || must_refuse(rule, fill + year + 16 * DAY);
}

/* The laws that an accepted rule obeys, each a bit of what is returned when it does not. */
enum law { SHAPE = 1, RATE = 2, PAST = 4, FINEST = 8, SLACK = 16, REPORT = 32 };

static unsigned broken(const struct rule *rule)
{
	const struct layout_terms *t = &rule->terms;
	u128 ticks = (u128)1 << (64 - rule->quota_bits), back = t->back >> rule->quota_bits;
	u128 slack = t->ahead >> rule->quota_bits, full = (u128)rule->capacity << rule->f;
	u128 most = rule->fill_ns / 2 < SECOND ? rule->fill_ns / 2 : SECOND, right;
	struct shmlimit_range range;
	unsigned wrong = 0;

	funnel_range(t, &range);
	if (t->capacity != rule->capacity || terms_quota_bits(t) != rule->quota_bits ||
	    terms_algorithm(t) != SHMLIMIT_FUNNEL || rule->quota_bits + rule->f > 63 ||
	    t->back << (64 - rule->quota_bits) != 0 || t->ahead << (64 - rule->quota_bits) != 0)
		wrong |= SHAPE;

	/* num / den = count * 2^f / period */
	right = (u128)t->den * rule->count;
	if (common(t->num, t->den) != 1 || length_of(right) + rule->f > 128 ||
	    (u128)t->num * rule->period_ns != right << rule->f)
		wrong |= RATE;

	/* A funnel that filled is still full a day later; a key idle for a year is full unless a tick is a token. */
	if (back >= ticks || back < full + ticks_of(rule, DAY) ||
	    (back < ticks_of(rule, 366 * DAY) && rule->f != 0) ||
	    (back < ticks_of(rule, 366 * DAY) && ticks - back > ticks / 16))
		wrong |= PAST;
	if (reaches(rule, 0, 366 * DAY + rule->fill_ns + 16 * DAY) && back < ticks_of(rule, 366 * DAY))
		wrong |= PAST;
	if (back >= ticks_of(rule, 366 * DAY) && ticks - back < ticks_of(rule, 16 * DAY))
		wrong |= PAST;

	/* Half a tick would leave less than that. */
	if (rule->quota_bits + rule->f < 63 && reaches(rule, rule->f + 1, 366 * DAY + rule->fill_ns + 16 * DAY))
		wrong |= FINEST;

	if (slack > ticks_of(rule, (uint64_t)most) || slack + 1 < ticks_of(rule, (uint64_t)most) ||
	    slack >= ticks - back)
		wrong |= SLACK;

	/* Rounded to the safe side, by less than a unit. */
	if (range.fill_ns != rule->fill_ns || (u128)range.resolution_ps * t->num < (u128)t->den * 1000 ||
	    (u128)(range.resolution_ps - 1) * t->num >= (u128)t->den * 1000 ||
	    (u128)range.back_ns * t->num > back * t->den || ((u128)range.back_ns + 1) * t->num <= back * t->den ||
	    (u128)range.ahead_ns * t->num > (ticks - back - 1) * t->den ||
	    ((u128)range.ahead_ns + 1) * t->num <= (ticks - back - 1) * t->den)
		wrong |= REPORT;
	return wrong;
}

static void compiling(void)
{
	uint64_t wrong[6] = { 0 }, refused = 0, unjustified = 0, ill = 0, accepted = 0, rounds = scaled(100000);
	static const char *const laws[] = {
		"an accepted rule keeps its capacity and fits its word",
		"ticks a nanosecond are the rate, exactly and in lowest terms",
		"a funnel that filled is known to be full for a day more, and for a year unless a tick is a token",
		"the tick is the finest whose range is long enough",
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
			if (!zero && !may_refuse(&rule) && ++unjustified <= 3)
				describe("refused", &rule);
			continue;
		}
		accepted++;
		if (i % 2)
			some_rule(&rule);
		found = broken(&rule);
		for (unsigned law = 0; law < 6; law++)
			if (found >> law & 1 && ++wrong[law] <= 3)
				describe(laws[law], &rule);
	}
	diag("%" PRIu64 " rules accepted, %" PRIu64 " refused", accepted, refused);
	ok(accepted > rounds / 20 && refused > rounds / 20, "there are rules of both kinds to look at");
	is(ill, 0, "a rule with a zero is -EDOM, any other refusal -ERANGE");
	is(unjustified, 0, "no rule is refused but for its size, its range or its fraction");
	for (unsigned law = 0; law < 6; law++)
		is(wrong[law], 0, "%s", laws[law]);
}

static int refusal(uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = { .capacity = capacity, .count = count, .period_ns = period_ns };
	struct layout_terms terms;

	return funnel_compile(&rule, &terms);
}

static void refusals(void)
{
	is(refusal(0, 1, 1), -EDOM, "a capacity of 0 is none");
	is(refusal(1, 0, 1), -EDOM, "nor is a count of 0");
	is(refusal(1, 1, 0), -EDOM, "nor a period of 0");
	is(refusal(0, 0, 0), -EDOM, "nor three of them");
	is(refusal(1000000, 1000000, SECOND), 0, "a million a second, all of it at once, is a rule");
	is(refusal(10, 1, 365 * DAY), 0, "so is one a year");
	is(refusal(UINT64_MAX, UINT64_MAX, UINT64_MAX), -ERANGE, "a capacity of 64 bits is not");
	is(refusal((uint64_t)1 << 48, (uint64_t)1 << 20, SECOND), -ERANGE, "one of 49 bits is not");
	is(refusal(1, UINT64_MAX, 1), -ERANGE, "nor a rate that no tick can follow");
	is(refusal(1000, 1, 366 * DAY), -ERANGE, "nor a time to fill of a thousand years");
	is(refusal(1, 1, UINT64_MAX), -ERANGE, "nor one of 584 years");
}

/* ---- Time ---- */

static int converts(const struct rule *rule, uint64_t now_ns)
{
	struct funnel_time at = funnel_time(&rule->terms, now_ns);

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
	if (j % 4 == 2)                   /* where a token would begin from 0 on */
		tick = tick >> rule->f << rule->f;
	return (uint64_t)((tick * rule->terms.den + rule->terms.num - 1) / rule->terms.num);
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
		inverse = inverse_modulo(rule.terms.num, rule.terms.den);
		long_ones += rule.terms.den >> 50 != 0;
		for (uint64_t lacking = 0; lacking < 3; lacking++) {
			uint64_t residue = (uint64_t)((u128)inverse * (rule.terms.den - lacking % rule.terms.den) %
				rule.terms.den);
			uint64_t now_ns = UINT64_MAX - (UINT64_MAX - residue) % rule.terms.den;

			if ((u128)now_ns * rule.terms.num % rule.terms.den !=
			    (rule.terms.den - lacking % rule.terms.den) % rule.terms.den)
				bail("that is not how to find the hardest times");
			if (!converts(&rule, now_ns) && ++wrong <= 3) {
				describe("wrong", &rule);
				diag("at %" PRIu64, now_ns);
			}
		}
	}
	is(wrong, 0, "also where the least lacks to the next tick, at the end of time");
	ok(long_ones > scaled(100), "and also where the fraction is as long as it can be");
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
		wrong += funnel_time(&rule.terms, start + n * rule.period_ns).stamp -
				 funnel_time(&rule.terms, start).stamp !=
			 n * rule.count << (rule.quota_bits + rule.f);
	}
	is(wrong, 0, "an interval of whole tokens is never a tick short, nor one long");
}

/* ---- Leaking ---- */

/* What a word holds at a time, in ticks, by the book: quota and the part of a token that has leaked in since. */
struct content {
	u128 ticks;                       /* less than zero (as a timestamp in the future says) is kept apart */
	u128 ahead;
	int stepped;
};

static struct content content_of(const struct layout_terms *t, uint64_t word, uint64_t now_ticks)
{
	unsigned quota_bits = terms_quota_bits(t), f = terms_token_bits(t) - quota_bits;
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

/* The content of a funnel that was leaked up to `at`. */
static struct content content_after(const struct layout_terms *t, struct funnel funnel, struct funnel_time at)
{
	unsigned quota_bits = terms_quota_bits(t), f = terms_token_bits(t) - quota_bits;
	uint64_t fraction = at.stamp - funnel.stamp;
	struct content c = { (u128)funnel.quota << f, 0, funnel.stepped };

	if (fraction >> (quota_bits + f) == 0)
		c.ticks += fraction >> quota_bits;
	else
		c.ahead = -fraction >> quota_bits;
	return c;
}

static int leaks_right(const struct layout_terms *t, uint64_t word, struct funnel_time at)
{
	struct content want = content_of(t, word, at.ticks), got;
	struct funnel funnel = funnel_leak(t, word, at);

	got = content_after(t, funnel, at);
	return got.ticks == want.ticks && got.ahead == want.ahead && got.stepped == want.stepped &&
	       funnel_is_past(t, word, at) == (want.ahead == 0 && !want.stepped) &&
	       funnel.quota <= t->capacity && (funnel.quota < t->capacity || want.ahead || funnel.stamp == at.stamp);
}

/*
 * Funnels of so few tokens a range that all of them can be tried: words and
 * times at each quarter of a token and a tick to both sides, all quotas.
 */
static uint64_t leak_all(const struct layout_terms *t)
{
	unsigned quota_bits = terms_quota_bits(t), quarter = terms_token_bits(t) - 2;
	uint64_t tick = (uint64_t)1 << quota_bits, quarters = (uint64_t)1 << (64 - quarter), wrong = 0;

	for (uint64_t w = 0; w < 3 * quarters; w++)
		for (uint64_t n = 0; n < 3 * quarters; n++) {
			uint64_t then = ((w / 3) << quarter) + (w % 3 - 1) * tick;
			uint64_t now = ((n / 3) << quarter) + (n % 3 - 1) * tick;
			struct funnel_time at = { 0, now >> quota_bits, now };

			for (uint64_t quota = 0; quota < tick; quota++)
				if (!leaks_right(t, then | quota, at) && ++wrong <= 3)
					diag("capacity %" PRIu64 " shape %" PRIx64 " back %" PRIx64 " slack %" PRIx64
					     " word %" PRIx64 " now %" PRIx64, t->capacity, t->shape, t->back,
					     t->ahead, then | quota, now);
		}
	return wrong;
}

static void leaking_small(void)
{
	uint64_t wrong = 0;

	for (unsigned quota_bits = 1; quota_bits <= 3; quota_bits++)
		for (unsigned token_bits = 60; token_bits <= 62; token_bits++)
			for (uint64_t capacity = (uint64_t)1 << (quota_bits - 1); capacity >> quota_bits == 0;
			     capacity++) {
				uint64_t token = (uint64_t)1 << token_bits, tick = (uint64_t)1 << quota_bits;
				struct layout_terms t = { .capacity = capacity,
					.shape = terms_shape(quota_bits, token_bits, SHMLIMIT_FUNNEL, 0) };

				t.back = -token - tick;  /* the future: one token */
				t.ahead = token / 2;
				wrong += leak_all(&t);
				t.back = -(token / 2 * 3); /* as much again, and next to nothing of it honest */
				t.ahead = tick;
				wrong += leak_all(&t);
			}
	is(wrong, 0, "small funnels leak by the book, from any word to any time");
}

/* Any word, any time, any rule. */
static void leaking_any(void)
{
	uint64_t wrong = 0, stepped = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		static struct rule rule;
		struct funnel_time at;
		uint64_t word;

		if (i % 50 == 0)
			some_rule(&rule);
		at = funnel_time(&rule.terms, extreme(64));
		word = draw();
		if (i % 2)                /* within two tokens, either way */
			word = at.stamp + (up_to((uint64_t)4 << (rule.quota_bits + rule.f) >> 1) -
			                   ((uint64_t)1 << (rule.quota_bits + rule.f)));
		stepped += (unsigned)content_of(&rule.terms, word, at.ticks).stepped;
		if (!leaks_right(&rule.terms, word, at) && ++wrong <= 3) {
			describe("wrong", &rule);
			diag("word %" PRIx64 " at %" PRIu64, word, at.now_ns);
		}
	}
	is(wrong, 0, "all funnels leak by the book");
	ok(stepped != 0, "some of these words are of an impossible time");
}

/* ---- Long lives ---- */

/* A funnel and its oracles. */
struct life {
	const struct rule *rule;
	uint64_t word, now_ns;
	u128 ticks;                       /* content, in ticks */
	i128 parts;                       /* content as a real number, in count * 2^-spare parts of a tick: exact */
	uint64_t seen;                    /* ticks and ... */
	uint64_t seen_ns;                 /* ... nanoseconds of the oracles' last look */
};

/* A tick is `den` parts, a nanosecond `num`. */
static void live_on(struct life *life)
{
	const struct layout_terms *t = &life->rule->terms;
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
	uint64_t token = rule->period_ns / rule->count, fill = (uint64_t)rule->fill_ns;

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
	const struct layout_terms *t = &rule->terms;
	struct life life = { .rule = rule, .now_ns = extreme(63) };
	struct funnel_time at = funnel_time(t, life.now_ns);

	life.word = funnel_pack(funnel_full(t, at));
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
		funnel = funnel_leak(t, life.word, at);
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
			life.word = funnel_pack(funnel);
		} else if (up_to(7) == 0 || i % 8 == 0) {
			life.word = funnel_pack(funnel);
		}
	}
	return 1;
}

static void living(void)
{
	static const struct {
		uint64_t capacity, count, period_ns;
	} known[] = {
		{ 5, 5, SECOND }, { 3, 3, SECOND }, { 7, 7, 60 * SECOND }, { 15, 30, 60 * SECOND }, { 100, 100, DAY },
		{ 1000000, 1000000, SECOND }, { 1, 1, 1000 }, { 13, 7, 61 * SECOND + 1 },
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
	is(wrong, 0, "and so is any other rule: nothing adds up, however often it is looked at");
}

/* ---- Waiting ---- */

static int fits(const struct rule *rule, uint64_t word, uint64_t cost, uint64_t now_ns)
{
	return funnel_leak(&rule->terms, word, funnel_time(&rule->terms, now_ns)).quota >= cost;
}

/* True if the wait for `cost` tokens is exact, from some word at about that time. */
static int waits_right(const struct rule *rule, uint64_t now_ns)
{
	const struct layout_terms *t = &rule->terms;
	struct funnel_time at = funnel_time(t, now_ns);
	struct funnel funnel = { up_to(1) ? 0 : up_to(t->capacity - 1), at.stamp, 0 };
	uint64_t fraction = (uint64_t)1 << rule->f, wait, cost;
	i128 missing;

	/* So much of a token has leaked in, or so much is the timestamp ahead. */
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
	       fits(rule, funnel_pack(funnel), cost, now_ns + wait) &&
	       !fits(rule, funnel_pack(funnel), cost, now_ns + wait - 1);
}

static void waiting(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		static struct rule rule;
		uint64_t now_ns;

		if (i % 100 == 0)
			some_rule(&rule);
		now_ns = up_to(15) ? extreme(64) : UINT64_MAX - up_to((uint64_t)rule.fill_ns);
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
	struct layout_terms before = { 0 };
	struct shmlimit_range range;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(200000); i++) {
		union {
			struct layout_terms terms;
			uint64_t words[sizeof(struct layout_terms) / 8];
		} any;
		struct funnel_time at;
		struct funnel funnel;

		for (size_t j = 0; j < sizeof(any.words) / 8; j++)
			any.words[j] = up_to(7) ? extreme(64) : -up_to(1);
		at = funnel_time(&any.terms, extreme(64));
		funnel = funnel_leak(&any.terms, draw(), at);
		wrong += funnel.quota > any.terms.capacity;
		funnel_ns_until(&any.terms, funnel, extreme(64), at);
		funnel_ns_until(&any.terms, funnel, any.terms.capacity, at);
		funnel_ticks_to_ns(&any.terms, at, extreme(64));
		funnel_range(&any.terms, &range);
		funnel_convert(&before, draw(), &any.terms, extreme(64), 1);
		before = any.terms;
		if (funnel_is_full(&any.terms, funnel) != (funnel.quota == any.terms.capacity))
			wrong++;
		funnel_charge(&any.terms, &funnel, extreme(64), at);
		funnel_refund(&any.terms, &funnel, extreme(64), at);
		wrong += funnel.quota > any.terms.capacity;
	}
	is(wrong, 0, "garbage has an answer, and never more than the capacity");
}

int main(void)
{
	seed = dice_seed();
	refusals();
	compiling();
	conversion();
	hardest_times();
	whole_tokens();
	leaking_small();
	leaking_any();
	living();
	waiting();
	garbage();
	ok(compiled > scaled(1000), "rules were compiled");
	is(unlike_proved, 0, "and their terms are what the proofs take for given");
	return tap_done();
}
