/*
 * rates: a rate that is no whole number, as a text and as a double, beside exact fractions of 128 bits. A decimal is exactly what
 * its digits say, or it is refused with the nearest decimal that can be counted; a double is what its shortest decimal says.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "../rng.h"
#include "unit.h"

#define PERIOD_MAX ((uint64_t)1 << 60)
#define PLACES_MAX 18

typedef unsigned __int128 u128;

/* digits / 10^places tokens every period_ns */
struct decimal {
	uint64_t digits, period_ns;
	int places;
	const char *unit;
};

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "7ms", 7000000 },
	{ "s", SECOND },
	{ "3s", 3 * SECOND },
	{ "min", 60 * SECOND },
	{ "1h30m", 5400 * SECOND },
	{ "d", 86400 * SECOND },
	{ "month", 30 * 86400 * SECOND },
	{ "y", 365 * 86400 * SECOND },
};

#define UNITS (sizeof(units) / sizeof(units[0]))

static u128 ten_to(int n)
{
	u128 power = 1;

	while (n-- > 0)
		power *= 10;
	return power;
}

static u128 common(u128 a, u128 b)
{
	return b == 0 ? a : common(b, a % b);
}

/* Does it have a period of 2^60 ns or less, or is it whole? By the definition, and not as the library finds out. */
static int is_exact(uint64_t digits, int places, uint64_t period_ns)
{
	u128 den = ten_to(places), part = common(digits, den), per;

	if (digits == 0 || part == den)
		return 1;
	den = den / part;
	per = period_ns / common(digits / part, period_ns);
	return den * per < PERIOD_MAX || den * period_ns < PERIOD_MAX;
}

static int is_rate(const struct decimal *d, uint64_t refill, uint64_t period_ns)
{
	u128 den = ten_to(d->places), part = common(d->digits, den);

	return (u128)refill * (uint64_t)(den / part) * d->period_ns == (u128)(uint64_t)(d->digits / part) * period_ns;
}

static const char *decimal_text(char *text, const struct decimal *d)
{
	uint64_t scale = (uint64_t)ten_to(d->places);

	if (d->places == 0)
		snprintf(text, 64, "%" PRIu64 "/%s", d->digits, d->unit);
	else
		snprintf(text, 64, "%" PRIu64 ".%0*" PRIu64 "/%s", d->digits / scale, d->places, d->digits % scale,
		         d->unit);
	return text;
}

static struct decimal decimal_draw(struct rng *rng)
{
	size_t unit = rng_below(rng, UNITS);
	struct decimal d = { .digits = rng_draw(rng) >> (1 + rng_below(rng, 62)),
		             .places = (int)rng_below(rng, PLACES_MAX + 1),
		             .period_ns = units[unit].ns,
		             .unit = units[unit].name };

	if (rng_below(rng, 3) == 0) /* one with few digits */
		d.digits %= 1000;
	d.digits += d.digits == 0;
	return d;
}

/* The text that was suggested: of fewer places, rounded from all of them, and of no fewer than are needed. */
static int is_nearest(const struct decimal *d, const struct shmlimit_problem *wrong)
{
	const char *meant = strstr(wrong->text, "did you mean \"");

	for (int places = d->places - 1; places >= 0; places--) {
		struct decimal near = *d;
		u128 unit = ten_to(d->places - places);
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
		char text[80];

		near.digits = (uint64_t)((d->digits + unit / 2) / unit);
		near.places = places;
		if (near.digits == 0)
			break;
		if (!is_exact(near.digits, places, d->period_ns))
			continue;
		if (meant == NULL)
			return 0;
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(meant + 14, "\""), meant + 14);
		return shmlimit_rule_parse(text, &rule, NULL) == 0 && is_rate(&near, rule.refill, rule.period_ns);
	}
	/* A token whose period is longer may still be written so. */
	return meant == NULL || strstr(meant, "\"1/") != NULL || strchr(meant, '.') == NULL ||
	       strchr(meant, '/') != NULL;
}

static void decimals(struct rng *rng, uint64_t rounds)
{
	uint64_t read = 0, refused = 0, wrong_rate = 0, wrong_burst = 0, wrong_refusal = 0, wrong_nearest = 0,
		 wrong_text = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) }, again = rule;
		struct shmlimit_problem wrong;
		struct decimal d = decimal_draw(rng);
		uint64_t scale = (uint64_t)ten_to(d.places), whole = d.digits / scale + (d.digits % scale != 0);
		char text[80], written[SHMLIMIT_RULE_TEXT_MAX];
		int error = shmlimit_rule_parse(decimal_text(text, &d), &rule, &wrong);

		if ((error == 0) != is_exact(d.digits, d.places, d.period_ns)) {
			diag("%s: %d", text, error);
			wrong_refusal++;
			continue;
		}
		if (error != 0) {
			refused++;
			if (!is_nearest(&d, &wrong)) {
				diag("%s: %s", text, wrong.text);
				wrong_nearest++;
			}
			continue;
		}
		read++;
		if (!is_rate(&d, rule.refill, rule.period_ns)) {
			diag("%s: %" PRIu64 " every %" PRIu64, text, rule.refill, rule.period_ns);
			wrong_rate++;
		}
		wrong_burst += rule.capacity != whole;
		if (shmlimit_rule_text(&rule, written) != 0 || shmlimit_rule_parse(written, &again, NULL) != 0 ||
		    again.capacity != rule.capacity || again.refill != rule.refill ||
		    again.period_ns != rule.period_ns) {
			diag("%s: written as %s", text, written);
			wrong_text++;
		}
	}
	ok(read > rounds / 8 && refused > rounds / 8, "%" PRIu64 " decimals are read, and %" PRIu64 " are refused",
	   read, refused);
	is(wrong_refusal, 0, "a decimal is read if and only if its period is 36 years or less");
	is(wrong_rate, 0, "a decimal is exactly the rate that its digits say");
	is(wrong_burst, 0, "the burst of a rate is its number, rounded up");
	is(wrong_text, 0, "a rate that is a fraction is printed as a text that reads the same");
	is(wrong_nearest, 0, "a decimal that cannot be counted is refused with the nearest that can, of fewer digits");
}

static int same_as_text(const char *decimal, double rate, size_t unit)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	uint64_t refill = 7, period_ns = 7;
	char text[80];
	int error = shmlimit_rate_from_double(rate, units[unit].ns, &refill, &period_ns);

	snprintf(text, sizeof(text), "%s/%s", decimal, units[unit].name);
	if (shmlimit_rule_parse(text, &rule, NULL) != 0)
		return 1; /* what it is then is another law's */
	if (error == 0 && refill == rule.refill && period_ns == rule.period_ns)
		return 1;
	diag("%s: %d, %" PRIu64 " every %" PRIu64, text, error, refill, period_ns);
	return 0;
}

/* The digits of a double that was written with 15 of them or fewer are the shortest. */
static void doubles_of_digits(struct rng *rng, uint64_t rounds)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t digits = 1 + rng_draw(rng) % (uint64_t)ten_to(1 + (int)rng_below(rng, 15));
		int places = (int)rng_below(rng, 13);
		uint64_t scale = (uint64_t)ten_to(places);
		char text[64];

		snprintf(text, sizeof(text), "%" PRIu64 "%s%0*" PRIu64, digits / scale, places > 0 ? "." : "",
		         places > 0 ? places : 1, places > 0 ? digits % scale : 0);
		if (places == 0)
			snprintf(text, sizeof(text), "%" PRIu64, digits);
		/* Both are below 2^53 and 10^22, so the quotient is the double that is nearest to the decimal. */
		wrong += !same_as_text(text, (double)digits / (double)scale, rng_below(rng, UNITS));
	}
	is(wrong, 0, "a double is the rate that its shortest decimal is as a text");
}

static void doubles_of_fractions(struct rng *rng, uint64_t rounds)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		/* The digits of others end: those are what they say. */
		uint64_t num = 1 + rng_below(rng, 10000), den = 3 * (1 + rng_below(rng, 3000)),
			 part = (uint64_t)common(num, den);
		uint64_t refill, period_ns, rest = den / part;

		for (; rest % 2 == 0; rest /= 2)
			;
		for (; rest % 5 == 0; rest /= 5)
			;
		if (rest == 1)
			continue;
		if (shmlimit_rate_from_double((double)num / (double)den, SECOND, &refill, &period_ns) != 0 ||
		    refill != num / part || period_ns != den / part * SECOND) {
			diag("%" PRIu64 "/%" PRIu64 ": %" PRIu64 " every %" PRIu64, num, den, refill, period_ns);
			wrong++;
		}
	}
	is(wrong, 0, "a quotient of whole numbers that was computed is that fraction");
}

/* |refill / period * per - rate| <= rate / 2^53, without rounding: of two products of 128 bits. */
static int is_near(double rate, uint64_t per_ns, uint64_t refill, uint64_t period_ns)
{
	int exponent;
	uint64_t mantissa = (uint64_t)ldexp(frexp(rate, &exponent), 53);
	long double is = (long double)refill / (long double)period_ns * (long double)per_ns;
	long double want = ldexpl((long double)mantissa, exponent - 53);

	return fabsl(is - want) <= want * 0x1.01p-53L;
}

static void doubles(struct rng *rng, uint64_t rounds)
{
	uint64_t wrong = 0, far = 0, made = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		size_t unit = rng_below(rng, UNITS);
		double rate =
			ldexp((double)(1 + (rng_draw(rng) >> rng_below(rng, 64))), (int)rng_below(rng, 130) - 120);
		uint64_t refill = 7, period_ns = 7;
		int error = shmlimit_rate_from_double(rate, units[unit].ns, &refill, &period_ns);
		double tokens = rate / (double)units[unit].ns;

		if (error != 0) {
			/* One token in more than 18 years may be refused, and more than all that there are. */
			wrong += error != -ERANGE || refill != 7 || period_ns != 7 ||
			         (tokens > 0x1p-59 && rate < 0x1p63);
			continue;
		}
		made++;
		if (refill == 0 || period_ns == 0 || period_ns > PERIOD_MAX ||
		    !is_near(rate, units[unit].ns, refill, period_ns)) {
			diag("%a every %" PRIu64 ": %" PRIu64 " every %" PRIu64, rate, units[unit].ns, refill,
			     period_ns);
			far++;
		}
	}
	ok(made > rounds / 8, "%" PRIu64 " doubles are rates", made);
	is(wrong, 0, "a double is refused only where its period or its tokens are too many");
	is(far, 0, "a double is at most one part in 2^53 from its rate");
}

static void arguments(void)
{
	static const double refused[] = { 0, -0.0, -1, -0.5, INFINITY, -INFINITY, NAN };
	uint64_t refill = 7, period_ns = 7;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		is(shmlimit_rate_from_double(refused[i], SECOND, &refill, &period_ns), -EINVAL, "%f is no rate",
		   refused[i]);
	is(shmlimit_rate_from_double(0.5, 0, &refill, &period_ns), -EINVAL, "a period of 0 is no period");
	is(shmlimit_rate_from_double(0.5, SECOND, NULL, &period_ns), -EINVAL, "there must be room for the refill");
	is(shmlimit_rate_from_double(0.5, SECOND, &refill, NULL), -EINVAL, "there must be room for the period");
	is(shmlimit_rate_from_double(1e-300, SECOND, &refill, &period_ns), -ERANGE,
	   "the smallest doubles are no rates");
	is(shmlimit_rate_from_double(5e-324, SECOND, &refill, &period_ns), -ERANGE, "a subnormal double is no rate");
	is(shmlimit_rate_from_double(1e300, SECOND, &refill, &period_ns), -ERANGE, "the largest doubles are no rates");
	ok(refill == 7 && period_ns == 7, "what is refused changes nothing");
	ok(shmlimit_rate_from_double(0.1, SECOND, &refill, &period_ns) == 0 && refill == 1 && period_ns == 10 * SECOND,
	   "0.1 a second is 1 in 10 seconds");
	ok(shmlimit_rate_from_double(0.5, SECOND, &refill, &period_ns) == 0 && refill == 1 && period_ns == 2 * SECOND,
	   "0.5 a second is 1 in 2 seconds");
	ok(shmlimit_rate_from_double(1.0 / 3, SECOND, &refill, &period_ns) == 0 && refill == 1 &&
	           period_ns == 3 * SECOND,
	   "a third that was computed is 1 in 3 seconds");
	ok(shmlimit_rate_from_double(0.1 + 0.2, SECOND, &refill, &period_ns) == 0 && refill != 3 &&
	           period_ns != 10 * SECOND,
	   "0.1 + 0.2 is another double than 0.3, and another rate");
	ok(shmlimit_rate_from_double(30, 60 * SECOND, &refill, &period_ns) == 0 && refill == 30 &&
	           period_ns == 60 * SECOND,
	   "a double that is whole keeps its period");
	if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL)
		ok(shmlimit_rate_from_double(0.1, SECOND, &refill, &period_ns) == 0 && refill == 1 &&
		           period_ns == 10 * SECOND,
		   "a locale whose point is a comma reads the same");
	setlocale(LC_ALL, "C");
}

/* The seeds' IsActionAllowed("berryjam", "reply", 15, 0.5). */
static void seeds(void)
{
	struct shmlimit *l = unit_create("rates", NULL);
	struct shmlimit_limit limit = { .struct_size = sizeof(limit), .capacity = 15 };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = SHMLIMIT_GCRA };
	struct shmlimit_result r;
	int calls = shmlimit_rule_set(l, "calls", &rule);

	shmlimit_rate_from_double(0.5, SECOND, &limit.refill, &limit.period_ns);
	ok(by_limit(at_time(l, SECOND), SHMLIMIT_TAKE, calls, "berryjam:reply", 14, 1, &limit, &r) ==
	                   SHMLIMIT_ALLOWED &&
	           r.remaining == 14,
	   "of 15 at half a token a second, 14 are left");
	is(by_limit(at_time(l, SECOND), SHMLIMIT_TAKE, calls, "berryjam:reply", 14, 14, &limit, NULL), SHMLIMIT_ALLOWED,
	   "they are there");
	ok(by_limit(at_time(l, SECOND), SHMLIMIT_TAKE, calls, "berryjam:reply", 14, 1, &limit, &r) == SHMLIMIT_DENIED &&
	           r.retry_after_ns == 2 * SECOND,
	   "the sixteenth at once waits two seconds");
	shmlimit_close(l);
}

int main(void)
{
	struct rng rng = { rng_seed() };

	arguments();
	seeds();
	decimals(&rng, scaled(40000));
	doubles_of_digits(&rng, scaled(40000));
	doubles_of_fractions(&rng, scaled(40000));
	doubles(&rng, scaled(40000));
	return tap_done();
}
