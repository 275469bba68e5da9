/*
 * Laws of lib/algorithm/gcra.h: a key's word is one time, at which it is full. What tokens cost is a product and a
 * division of 64 bits, which z3 cannot prove: tests/fuzz/target/arithmetic and tests/unit/gcra try it, beside exact numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gcra.h"
#include "law.h"

#define YEARS_NS ((uint64_t)10 * 366 * 86400 * 1000000000)

/* what is left of a key later is what was left, less the time that went by: in ten years it does not come round */
int law_time_passes(uint64_t left, uint64_t now_ns, uint64_t passed_ns, uint64_t ahead)
{
	struct gcra_state state;
	uint64_t ticks = passed_ns << GCRA_TICK_BITS;

	assume(left <= ahead && ahead <= GCRA_AHEAD && passed_ns <= YEARS_NS);
	state = gcra_read(gcra_pack((struct gcra_state){ left, 0 }, now_ns), now_ns + passed_ns, ahead);
	return !state.stepped && state.left == (left > ticks ? left - ticks : 0);
}

/* ... and not after any time */
int false_time_passes(uint64_t left, uint64_t now_ns, uint64_t passed_ns)
{
	struct gcra_state state;
	uint64_t ticks = passed_ns << GCRA_TICK_BITS;

	assume(left <= GCRA_AHEAD);
	state = gcra_read(gcra_pack((struct gcra_state){ left, 0 }, now_ns), now_ns + passed_ns, GCRA_AHEAD);
	return !state.stepped && state.left == (left > ticks ? left - ticks : 0);
}

/* what a limit within the segment's reach left is believed, also by a clock that was read up to a second earlier */
int law_believed(uint64_t left, uint64_t now_ns, uint64_t earlier_ns, uint64_t reach)
{
	assume(left <= reach && reach <= GCRA_AHEAD - GCRA_SLACK && earlier_ns <= now_ns &&
	       earlier_ns <= GCRA_SLACK >> GCRA_TICK_BITS);
	return !gcra_read(gcra_pack((struct gcra_state){ left, 0 }, now_ns), now_ns - earlier_ns, gcra_ahead(reach))
	                .stepped ||
	       reach > 3 * GCRA_LONGEST_NS << GCRA_TICK_BITS;
}

/* ... and not by one that stepped back by more */
int false_believed(uint64_t left, uint64_t now_ns, uint64_t earlier_ns, uint64_t reach)
{
	assume(left <= reach && reach <= GCRA_AHEAD - GCRA_SLACK && earlier_ns <= now_ns && earlier_ns <= YEARS_NS);
	return !gcra_read(gcra_pack((struct gcra_state){ left, 0 }, now_ns), now_ns - earlier_ns, gcra_ahead(reach))
	                .stepped;
}

/* whatever is in a word, and whatever the clock says, a key is impossible or full within the segment's reach (I8) */
int law_bounded(uint64_t word, uint64_t now_ns, uint64_t reach)
{
	struct gcra_state state = gcra_read(word, now_ns, gcra_ahead(reach));

	return state.stepped ||
	       (state.left <= GCRA_AHEAD && (state.left <= GCRA_SLACK || state.left - GCRA_SLACK <= reach));
}

/* ... and no word is impossible at all times */
int false_bounded(uint64_t word, uint64_t now_ns)
{
	return !gcra_read(word, now_ns, GCRA_AHEAD).stepped;
}
