/*
 * Laws of lib/algorithm/hold/hold.h: a place lasts its period and ends by itself; what is left, or of another claim, is not
 * in force; no value of a cell follows itself, and no word. For all inputs but where a law assumes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/algorithm/hold/hold.h"
#include "law.h"

static struct layout_params good(uint64_t period)
{
	struct layout_params t = { .back = period, .ahead = period + period / 2 + HOLD_TICK_NS };

	assume(period >= 1 && period <= HOLD_PERIOD_MAX_NS);
	return t;
}

/* a place that is entered is in force until its period is over */
int law_lasts(uint64_t period, uint64_t before, uint64_t word, uint64_t now, uint64_t later)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62 && later < period);
	return hold_left_ns(&t, hold_cell(&t, before, word, now), word, now + later) != 0;
}

/* ... and to the nanosecond */
int false_lasts(uint64_t period, uint64_t before, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62);
	return hold_left_ns(&t, hold_cell(&t, before, word, now), word, now) == period;
}

/* when its period and a tick are over, and for a year from then on, it is not in force */
int law_ends(uint64_t period, uint64_t before, uint64_t word, uint64_t now, uint64_t later)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62);
	assume(later >= period + HOLD_TICK_NS && later - period < HOLD_FUTURE_NS);
	return hold_left_ns(&t, hold_cell(&t, before, word, now), word, now + later) == 0;
}

/* ... and for ever */
int false_ends(uint64_t period, uint64_t before, uint64_t word, uint64_t now, uint64_t later)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62 && later >= period + HOLD_TICK_NS);
	return hold_left_ns(&t, hold_cell(&t, before, word, now), word, now + later) == 0;
}

/* whatever a cell holds, it is in force for no longer than the rule can mean */
int law_steps(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);

	return hold_left_ns(&t, cell, word, now) <= t.ahead;
}

/* ... nor than its period */
int false_steps(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);

	return hold_left_ns(&t, cell, word, now) <= period;
}

/* when as long as that is over, it is not in force: where its end was impossible, once it was shortened */
int law_said(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);
	uint64_t then = hold_is_impossible(&t, cell, word, now) ? hold_shortened(&t, cell, now) : cell;

	assume(now < (uint64_t)1 << 62);
	return !hold_is_held(then, word, now + hold_left_ns(&t, cell, word, now));
}

/* ... nor a nanosecond before */
int false_said(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62);
	return !hold_is_held(cell, word, now + hold_left_ns(&t, cell, word, now) - 1);
}

/* a place whose end was impossible ends with a period from then, and is the place that was entered */
int law_shortened(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);
	uint64_t after;

	assume(now < (uint64_t)1 << 62 && hold_is_impossible(&t, cell, word, now));
	after = hold_shortened(&t, cell, now);
	return hold_is_same(after, cell) && !hold_is_same(cell, after) && !hold_is_impossible(&t, after, word, now) &&
	       hold_left_ns(&t, after, word, now) >= period &&
	       hold_left_ns(&t, after, word, now) < period + HOLD_TICK_NS;
}

/* ... and so does every other place */
int false_shortened(uint64_t period, uint64_t cell, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);

	assume(now < (uint64_t)1 << 62 && hold_is_held(cell, word, now));
	return hold_is_same(hold_shortened(&t, cell, now), cell);
}

/* a place that was left is not in force, whatever its bits */
int law_left(uint64_t cell, uint64_t word, uint64_t now)
{
	return !hold_is_held(hold_without(cell), word, now);
}

/* ... nor is one that was not */
int false_left(uint64_t cell, uint64_t word, uint64_t now)
{
	return !hold_is_held(cell, word, now);
}

/* a cell of another claim is not in force */
int law_claim(uint64_t cell, uint64_t word, uint64_t now)
{
	assume((cell & HOLD_CLAIM) != (word & HOLD_CLAIM));
	return !hold_is_held(cell, word, now);
}

/* ... nor is one of the claim */
int false_claim(uint64_t cell, uint64_t word, uint64_t now)
{
	assume((cell & HOLD_CLAIM) == (word & HOLD_CLAIM));
	return !hold_is_held(cell, word, now);
}

/* an entry writes no value that the cell had, held or left */
int law_other(uint64_t period, uint64_t before, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);
	uint64_t cell = hold_cell(&t, before, word, now);

	return cell != before && hold_without(cell) != hold_without(before);
}

/* ... and its nonce is always the larger one */
int false_other(uint64_t period, uint64_t before, uint64_t word, uint64_t now)
{
	struct layout_params t = good(period);
	uint64_t cell = hold_cell(&t, before, word, now);

	return (cell & HOLD_NONCES) > (before & HOLD_NONCES);
}

/* the word after an entry is another one, of the same claim and with the reach that was given */
int law_word(uint64_t word, uint64_t reach, uint64_t now)
{
	uint64_t next;

	assume(reach < 131072);
	next = hold_word_next(word, reach, now);
	return next >> HOLD_STAMP_SHIFT != word >> HOLD_STAMP_SHIFT && (next & HOLD_CLAIM) == (word & HOLD_CLAIM) &&
	       hold_reach(next, UINT64_MAX) == reach;
}

/* ... and has a larger stamp, whatever the time */
int false_word(uint64_t word, uint64_t reach, uint64_t now)
{
	assume(reach < 131072);
	return hold_word_next(word, reach, now) >> HOLD_STAMP_SHIFT > word >> HOLD_STAMP_SHIFT;
}
