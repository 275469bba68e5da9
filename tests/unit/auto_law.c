/*
 * auto_law: the laws by which a number is found, beside the tables of their authors' tests (Netflix,
 * concurrency-limits: VegasLimitTest, AIMDLimitTest, ExpAvgMeasurementTest), and by hand.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "../rng.h"
#include "auto_law.h"

#define ONE ((uint64_t)AUTO_LAW_ONE)
#define MS ((uint64_t)1000) /* any unit will do */
#define HISTORIES 20000

static struct auto_window window(uint64_t took, uint64_t in_use)
{
	return (struct auto_window){ .took = took, .in_use = in_use * ONE };
}

static uint64_t vegas(uint64_t number, uint64_t base, uint64_t took, uint64_t in_use)
{
	struct auto_window w = window(took, in_use);

	return auto_law_vegas(number * ONE, base, &w) / ONE;
}

static uint64_t gradient2(uint64_t number, uint64_t base, uint64_t took, uint64_t in_use)
{
	struct auto_window w = window(took, in_use);

	return auto_law_gradient2(number * ONE, base, &w) / ONE;
}

static uint64_t aimd(uint64_t number, uint64_t base, uint64_t took, uint64_t in_use)
{
	struct auto_window w = window(took, in_use);

	return auto_law_aimd(number * ONE, base, &w) / ONE;
}

static void tables(void)
{
	struct auto_window dropped = { .took = 10 * MS, .in_use = ONE, .dropped = 1 };
	uint64_t average = 0;

	is(vegas(10000, 10 * MS, 10 * MS, 6000), 10024, "Vegas: a large number grows by six times its logarithm");
	is(vegas(10, 10 * MS, 10 * MS, 11), 16, "Vegas: without a queue 10 grows to 16");
	is(vegas(10, 10 * MS, 50 * MS, 11), 9, "Vegas: with a queue of 8, 10 falls to 9");
	is(vegas(10, 10 * MS, 14 * MS, 14), 10, "Vegas: with a queue of 3, 10 stays");
	is(auto_law_vegas(10 * ONE, 10 * MS, &dropped) / ONE, 9, "Vegas: a drop lowers the number by one");
	is(aimd(10, 10 * MS, MS, 10), 11, "AIMD: what was reached grows by one");
	is(auto_law_aimd(10 * ONE, 10 * MS, &dropped) / ONE, 9, "AIMD: a drop lowers 10 to 9");
	is(auto_law_aimd(30 * ONE, 10 * MS, &dropped) / ONE, 27, "AIMD: a drop lowers 30 to 27");
	is(auto_law_aimd(5 * ONE, 10 * MS, &dropped) / ONE, 4, "AIMD: a drop lowers a small number by one");
	for (uint32_t i = 0; i < 10; i++) {
		average = auto_law_average(average, i, (i + 10) * 10000);
		is(average, 100000 + 5000 * i, "the first windows' average is plain, after %u", i + 1);
	}
	average = auto_law_average(average, 10, 1000000);
	is(average, (145000 * (uint64_t)599 + 2000000 + 300) / 601, "after the first windows one counts for 2 in 601");
}

static void by_hand(void)
{
	struct auto_window denied = { .took = 10 * MS, .in_use = 0, .denied = 1 };

	is(vegas(10, 10 * MS, 12 * MS, 10), 11, "Vegas: with a queue of 2, 10 grows by one");
	is(vegas(10, 10 * MS, 20 * MS, 10), 10, "Vegas: with a queue of 5, 10 stays");
	is(vegas(10, 10 * MS, 10 * MS, 4), 10, "Vegas: a number that was not reached stays");
	is(auto_law_vegas(10 * ONE, 10 * MS, &denied) / ONE, 16, "Vegas: one that denied was reached");
	is(gradient2(100, 10 * MS, 15 * MS, 100), 100, "Gradient2: a time within its tolerance grows by a fifth of 4");
	is(gradient2(100, 10 * MS, 30 * MS, 100), 90, "Gradient2: twice the tolerance lowers 100 to 90");
	is(gradient2(100, 10 * MS, 300 * MS, 100), 90, "Gradient2: no window lowers it by more than a tenth");
	is(gradient2(100, 10 * MS, 300 * MS, 49), 100, "Gradient2: a number that was not reached stays");
	is(aimd(30, 10 * MS, 31 * MS, 30), 27, "AIMD: work that takes three times as long lowers the number");
	is(aimd(30, 10 * MS, 30 * MS, 14), 30, "AIMD: a number that was not reached stays");
	is(aimd(1, 10 * MS, 31 * MS, 30), 0, "AIMD: the bounds alone keep 1 from 0");
}

/* What a base of 10 ms becomes where work takes 30 ms, by windows from this epoch on. */
static struct auto_law windows(unsigned law, uint32_t epoch, uint64_t in_use, int n)
{
	struct auto_law a = { .number = 20 * ONE, .base = 10 * MS, .epoch = epoch };
	struct auto_window w = window(30 * MS, in_use);

	while (n-- > 0)
		a = auto_law_next(law, a, &w, 4, 200);
	return a;
}

static void bases(void)
{
	struct auto_law a = { .number = 20 * ONE };
	struct auto_window w = window(30 * MS, 20), quick = window(20 * MS, 20);

	a = auto_law_next(SHMLIMIT_LAW_VEGAS, a, &w, 4, 200);
	ok(a.base == 30 * MS && a.number == 20 * ONE && a.epoch == 1, "the first window's time is the base");
	a = auto_law_next(SHMLIMIT_LAW_VEGAS, a, &quick, 4, 200);
	ok(a.base == 20 * MS && a.number == 20 * ONE, "a quicker window's time becomes the base, and the number stays");
	a = auto_law_next(SHMLIMIT_LAW_VEGAS, a, &w, 4, 200);
	ok(a.base == 20 * MS && a.number == 19 * ONE, "a slower window's time does not become the base");
	a = windows(SHMLIMIT_LAW_VEGAS, AUTO_LAW_PROBE + AUTO_LAW_PROBE_FIRST, 20, 1);
	ok(a.probe == AUTO_LAW_DRAINS && a.base == 10 * MS && a.number == 20 * ONE,
	   "every 256 windows what waits is drained");
	a = windows(SHMLIMIT_LAW_AIMD, AUTO_LAW_PROBE + AUTO_LAW_PROBE_FIRST, 20, 3);
	ok(a.probe == AUTO_LAW_STEADY && a.base == 30 * MS && a.number == 20 * ONE,
	   "in the window after that the base is measured");
	a = windows(SHMLIMIT_LAW_VEGAS, AUTO_LAW_PROBE + AUTO_LAW_PROBE_FIRST, 5, 1);
	ok(a.probe == AUTO_LAW_STEADY && a.base == 30 * MS,
	   "where the number was not reached the base is measured at once");
	a = windows(SHMLIMIT_LAW_GRADIENT2, AUTO_LAW_PROBE + AUTO_LAW_PROBE_FIRST, 20, 1);
	ok(a.probe == AUTO_LAW_STEADY, "Gradient2 needs no base without a queue");
}

static int is_sound(struct auto_law a, uint64_t least, uint64_t most)
{
	return a.number >= least * ONE && a.number <= most * ONE && a.base <= AUTO_LAW_BASE_MAX &&
	       a.warm <= AUTO_LAW_WARM && a.probe <= AUTO_LAW_MEASURES;
}

/* Any state, and any window. */
static void any(struct rng *rng)
{
	for (int i = 0; i < (int)scaled(HISTORIES); i++) {
		uint64_t most = 1 + rng_below(rng, 65534), least = 1 + rng_below(rng, most);
		struct auto_law a = { .number = rng_below(rng, 1 << 27),
			              .base = rng_below(rng, AUTO_LAW_BASE_MAX + 1),
			              .epoch = (uint32_t)rng_below(rng, 4096),
			              .warm = (uint32_t)rng_below(rng, AUTO_LAW_WARM + 1),
			              .probe = (enum auto_law_probe)rng_below(rng, 3) };

		for (int j = 0; j < 10; j++) {
			struct auto_window w = { .took = rng_below(rng, 1 + ((uint64_t)1 << rng_below(rng, 41))),
				                 .in_use = rng_below(rng, (uint64_t)1 << rng_below(rng, 41)),
				                 .dropped = rng_below(rng, 4) == 0,
				                 .denied = rng_below(rng, 2) == 0 };

			a = auto_law_next((unsigned)rng_below(rng, 5), a, &w, least, most);
			if (!is_sound(a, least, most)) {
				ok(0, "whatever a key has and a window says, the number is within the bounds");
				return;
			}
		}
	}
	ok(1, "whatever a key has and a window says, the number is within the bounds");
}

/* 8 cores of 20 ms work that is always there: as many are served as the cores bear, and few wait. */
static void settles(unsigned law, uint64_t from, uint64_t least, uint64_t most)
{
	struct auto_law a = { .number = from * ONE };
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t places = a.number / ONE / (a.probe != AUTO_LAW_STEADY ? 4 : 1);
		struct auto_window w = window(places <= 8 ? 20 * MS : 20 * MS * places / 8, places);

		a = auto_law_next(law, a, &w, 4, 200);
		if (i < 400 || a.probe != AUTO_LAW_STEADY)
			continue;
		places = a.number / ONE;
		lowest = places < lowest ? places : lowest;
		highest = places > highest ? places : highest;
	}
	ok(lowest >= least && highest <= most,
	   "law %u: 8 cores that are always busy get between %" PRIu64 " and %" PRIu64 " places from %" PRIu64
	   " (%" PRIu64 " to %" PRIu64 ")",
	   law, least, most, from, lowest, highest);
}

int main(void)
{
	struct rng rng = { rng_seed() };

	tables();
	by_hand();
	bases();
	any(&rng);
	settles(SHMLIMIT_LAW_VEGAS, 4, 8, 15);
	settles(SHMLIMIT_LAW_VEGAS, 200, 8, 15);
	settles(SHMLIMIT_LAW_AIMD, 4, 8, 26);
	settles(SHMLIMIT_LAW_AIMD, 200, 8, 26);
	settles(SHMLIMIT_LAW_GRADIENT2, 4, 8, 200);
	return tap_done();
}
