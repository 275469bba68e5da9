/*
 * auto_law: see auto_law.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "auto_law.h"

#include "shmlimit.h"

#define TIMES_BASE 3u /* AIMD: work that takes as long is late */

/* Was the number reached? What was not does not grow. */
static int is_reached(uint64_t number, const struct auto_window *w)
{
	return w->denied || 2 * w->in_use >= number;
}

static uint64_t log10_of(uint64_t number)
{
	uint64_t places = number / AUTO_LAW_ONE, log = 0;

	while (places >= 10) {
		places /= 10;
		log++;
	}
	return log == 0 ? 1 : log;
}

static uint64_t less(uint64_t number, uint64_t by)
{
	return number > by ? number - by : 0;
}

uint64_t auto_law_vegas(uint64_t number, uint64_t base, const struct auto_window *w)
{
	uint64_t log = log10_of(number), step = log * AUTO_LAW_ONE;
	uint64_t queue = w->took > base
	                         ? (number * (w->took - base) + w->took * AUTO_LAW_ONE - 1) / (w->took * AUTO_LAW_ONE)
	                         : 0;

	if (w->dropped)
		return less(number, step);
	if (!is_reached(number, w))
		return number;
	if (queue <= log)
		return number + 6 * step;
	if (queue < 3 * log)
		return number + step;
	return queue > 6 * log ? less(number, step) : number;
}

uint64_t auto_law_average(uint64_t base, uint32_t warm, uint64_t took)
{
	if (warm < AUTO_LAW_WARM)
		return (base * warm + took + (warm + 1) / 2) / (warm + 1);
	/* 2 / (600 + 1) of it is the last window's */
	return (base * 599 + 2 * took + 300) / 601;
}

uint64_t auto_law_gradient2(uint64_t number, uint64_t base, const struct auto_window *w)
{
	uint64_t gradient = base * 3 / 2 * AUTO_LAW_ONE / w->took, next;

	if (!is_reached(number, w))
		return number;
	if (gradient > AUTO_LAW_ONE)
		gradient = AUTO_LAW_ONE;
	else if (gradient < AUTO_LAW_ONE / 2)
		gradient = AUTO_LAW_ONE / 2;
	next = number * gradient / AUTO_LAW_ONE + (uint64_t)4 * AUTO_LAW_ONE;
	return (4 * number + next) / 5;
}

uint64_t auto_law_aimd(uint64_t number, uint64_t base, const struct auto_window *w)
{
	uint64_t places = number / AUTO_LAW_ONE;

	if (w->dropped || w->took > TIMES_BASE * base)
		return less(places, places < 10 ? 1 : (places + 9) / 10) * AUTO_LAW_ONE;
	return is_reached(number, w) ? (places + 1) * AUTO_LAW_ONE : number;
}

static uint64_t between(uint64_t number, uint64_t least, uint64_t most)
{
	if (number > most * AUTO_LAW_ONE)
		number = most * AUTO_LAW_ONE;
	return number < least * AUTO_LAW_ONE ? least * AUTO_LAW_ONE : number;
}

/*
 * The base is the least that was measured. WHY NOT for ever: work may take longer than it did.
 * Where it takes twice as long, either much waits or it does.
 */
static void by_least(unsigned law, struct auto_law *a, const struct auto_window *w)
{
	uint32_t period = w->took > 2 * a->base ? AUTO_LAW_PROBE_SOON : AUTO_LAW_PROBE;
	int again = a->epoch % period == AUTO_LAW_PROBE_FIRST;

	if (a->probe == AUTO_LAW_DRAINS) {
		a->probe = AUTO_LAW_MEASURES;
		return;
	}
	if (a->probe == AUTO_LAW_MEASURES) {
		/* Much quicker: some of it waited still, so it is measured again soon. */
		if (4 * w->took < 3 * a->base)
			a->epoch = 0;
		a->probe = AUTO_LAW_STEADY;
		a->base = w->took;
		return;
	}
	/* Where the number was not reached, little waits. */
	if (a->base == 0 || w->took < a->base || (again && !is_reached(a->number, w))) {
		a->base = w->took;
		return;
	}
	if (again)
		a->probe = AUTO_LAW_DRAINS;
	else if (law == SHMLIMIT_LAW_AIMD)
		a->number = auto_law_aimd(a->number, a->base, w);
	else
		a->number = auto_law_vegas(a->number, a->base, w);
}

static void by_average(struct auto_law *a, const struct auto_window *w)
{
	a->base = auto_law_average(a->base, a->warm, w->took);
	a->warm += a->warm < AUTO_LAW_WARM;
	a->number = auto_law_gradient2(a->number, a->base, w);
	/* It was measured under a load that is gone. */
	if (a->base > 2 * w->took)
		a->base -= a->base / 20;
}

struct auto_law auto_law_next(unsigned law, struct auto_law a, const struct auto_window *w, uint64_t least,
                              uint64_t most)
{
	struct auto_window known = *w;

	if (known.took == 0)
		known.took = 1;
	if (known.took > AUTO_LAW_BASE_MAX)
		known.took = AUTO_LAW_BASE_MAX;
	a.number = between(a.number, least, most);
	if (law == SHMLIMIT_LAW_GRADIENT2) {
		a.probe = AUTO_LAW_STEADY;
		by_average(&a, &known);
	} else {
		by_least(law, &a, &known);
	}
	a.number = between(a.number, least, most);
	a.epoch++;
	return a;
}
