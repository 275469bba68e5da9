/*
 * hold: places that are held (HOLD): how many at once. Here is the arithmetic of a
 * place, and the protocol; hold.c has the row.
 *
 * A slot's cells (see cells.h) are its places, two for each:
 *
 *	value: [ end : 40 ][ held : 1 ][ nonce : 11 ][ short : 1 ][ claim : 11 ]
 *	owner: the number of its holder, see registry.h; HOLD_NOBODY: none
 *	word:  [ stamp : 35 ]                 [ reach : 17 ][ 0 ][ claim : 11 ]
 *
 *	end    when the place ends by itself, in ticks of 2^16 ns, rounded up
 *	held   it was not left
 *	nonce  how often the place was entered, so that no value of it comes again
 *	short  its end was brought forward since it was entered: step 4
 *	claim  a number of the key's claim of the slot. A place of another claim holds nothing
 *	stamp  grows with each entry, so that no word comes again
 *	reach  the number of places, from the first on, that may be in force
 *
 * A place is in force if it is held, is of the word's claim, and has not ended or lasts. It lasts
 * if it is within reach and has a holder, unless the rule says SHMLIMIT_RULE_CUT_OFF. Value and
 * owner are read one after the other, and change together, by one compare-and-swap.
 *
 *  1. Enter: read the word, then the places. Fewer than `capacity` in force, or than the bound that
 *     the call brings: look at the slot again and swap a place that is not in force for a new
 *     value, and its owner for the holder, if the call names one. Then swap the word for a later
 *     stamp, whose reach covers the place. That admits. If it fails, swap the place back and start
 *     over.
 *  2. Renew: the same, from exactly the value that was entered. The owner stays.
 *  3. Leave: swap exactly the value that was entered for one that is not held.
 *  4. Step back: a denied entry swaps each place that ends later than the rule can mean for one
 *     that ends a period from now, with the same nonce, and is `short`. So a clock that stepped
 *     back locks a key out for a period at most, and the holder finds its place still
 *     (hold_is_same()).
 *  5. Sweep (sweep.c): swap each place that has ended for one that is not held, as leaving does;
 *     one that lasts, if its holder is not known to live. Else its time would come round beside a
 *     place of the key that is renewed for years.
 *  6. Reclaim (table.c): read the word, then the places. None is in force: swap exactly that word.
 *  7. Bind: swap the owner, then the word, as renewing does. The value stays, so that any process
 *     that has a copy of it can leave the place. Without the word's swap an entry that saw the
 *     place end, before it was bound, would leave it out of reach after.
 *  8. Bury: a denied entry asks for the holder of each place that has one. If it is dead, or is not
 *     known to live and the place has ended: swap exactly that place for one that is not held, as
 *     leaving does.
 *  9. Displace: a place beyond reach whose time is over, and which has a holder, was tried by an
 *     entry that is late, and would last from the swap of the word on. An entry or a sweep that is
 *     to have it swaps the word for a later stamp first, so that the late entry fails
 *     (tests/model/hold, TRIED_IS_FREE). Without a holder the place is over, also once it is valid.
 *
 * INVARIANT I13. Never more than `capacity` places of a key are in force. All entries are in cells
 * below the capacity, and a cell has one value. Where the capacity was lowered, places beyond it
 * are counted too, and the count is that of the word which the entry swaps. So it is where a call
 * brings a bound: all places count, by whatever bound they were entered, and the entry may be in
 * any cell below the capacity.
 *
 * Why a slot with a place in force is not reclaimed. An entry swaps its cell before
 * the word. A reclaimer that read the word after that swap sees the cell; one that read
 * it before loses its own swap, for words do not come again.
 *
 * Why nothing is left in a slot of another key. An entry that is late finds another tag, or
 * another claim, and takes its cell back; killed before it does, it leaves a
 * value of another claim, which holds nothing. Of 2048 claims two are alike: then one place
 * is missing until it ends. A late entry does not write to a window's log: it looks
 * at the slot after it read the cell, and a log's times do not come again.
 *
 * A key that moves to a larger table, or whose rule gets a larger size, takes its places with it,
 * also what an entry is trying just then, which cannot become valid in the old ones. The entry
 * finds it in the new ones, and goes on with it there, or leaves it if its bound denies it by then.
 * Leaving changes no word: so it looks at the slot and the rule again, after its swap. A place that
 * was left after it was copied is then found, and left, in the new table. One that was bound after
 * it was copied is bound there, since the word's swap fails (tests/model/bind, NO_LOOK).
 *
 * Killed between the two swaps, an entry leaves a place that ends by itself, or is a dead holder's.
 *
 * A late entry may swap value and owner of the old table while a carrier reads them. So a carrier
 * reads the value, the owner, and the value again: values do not come again, so both were there
 * together. Else a place whose leaver was killed would be the late one's (tests/model/bind, TORN).
 *
 * INVARIANT A place whose holder lives is not buried. Burying swaps value and owner together, and
 * the owner is the one that is dead. An owner is one process for ever: its number never comes again
 * (tests/model/bind, BY_VALUE). Whatever burying does, leaving could do: I13 needs no more than a
 * dead holder.
 *
 * A process that is stopped before it writes a window's time to a cell may write it to an owner, if
 * what it saw there comes again. So a place without a holder has HOLD_NOBODY, which no window
 * has, and what is no number has no holder.
 *
 * WHY NOT the holder in the value: a place that was bound again would have another value, and
 * a copy of the former one, of a parent or a thread, could not leave it.
 *
 * WHY NOT a count in the word: a killed holder's share of it would be lost. WHY NOT the
 * swap of the cell alone: a reclaimer that had looked at the cells before it would free
 * the slot, and the key would get a second set of places (tests/model/hold, NO_STAMP).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_HOLD_H
#define SHMLIMIT_LIB_HOLD_H

#include "layout.h"

#define HOLD_TICK_BITS 16u
#define HOLD_TICK_NS ((uint64_t)1 << HOLD_TICK_BITS)
#define HOLD_END_SHIFT 24
#define HOLD_HELD ((uint64_t)1 << 23)
#define HOLD_SHORT ((uint64_t)1 << 11)
#define HOLD_NONCE_SHIFT 12
#define HOLD_NONCE ((uint64_t)1 << HOLD_NONCE_SHIFT)
#define HOLD_NONCES (HOLD_HELD - HOLD_NONCE)
#define HOLD_CLAIM (HOLD_SHORT - 1)
#define HOLD_NOBODY UINT64_MAX
#define HOLD_REACH_SHIFT 12
#define HOLD_STAMP_SHIFT 29
#define HOLD_STAMP_BITS 35
/*
 * A stamp is a time in ticks of 256 ns, or one more than the last, where that is as late: five
 * minutes ahead at most.
 */
#define HOLD_STAMP_TICK_BITS 8
#define HOLD_STAMP_AHEAD ((uint64_t)1 << 30)
/*
 * Cells tell times modulo 2^56 ns: two years. Half of that is the future, and a quarter the longest
 * period.
 */
#define HOLD_RANGE_SHIFT (HOLD_END_SHIFT - HOLD_TICK_BITS)
#define HOLD_FUTURE_NS ((uint64_t)1 << 55)
#define HOLD_PERIOD_MAX_NS ((uint64_t)1 << 54)

/*
 * Fill *params from a HOLD rule, whose keys have cells of this size at least.
 * Returns 0, or -EDOM capacity or period is 0; -EFBIG the capacity is above SHMLIMIT_WINDOW_MAX;
 * -EINVAL a flag, max_wait_ns or a count other than the capacity is set; -ERANGE the
 * period is above 2^54 ns. On error *params is undefined.
 */
int hold_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params);

/*
 * From now to a cell's end, in 256ths of a nanosecond, so that it is signed: below 0 where the end
 * was in the past.
 */
static inline int64_t hold_end(uint64_t cell, uint64_t now_ns)
{
	return (int64_t)((cell >> HOLD_END_SHIFT << HOLD_END_SHIFT) - (now_ns << HOLD_RANGE_SHIFT));
}

/* The same in nanoseconds, where it is above 0. */
static inline uint64_t hold_end_ns(uint64_t cell, uint64_t now_ns)
{
	return (uint64_t)hold_end(cell, now_ns) >> HOLD_RANGE_SHIFT;
}

/* Is a cell held, whenever it ends? */
static inline int hold_is_of(uint64_t cell, uint64_t word)
{
	return ((cell ^ ((word & HOLD_CLAIM) | HOLD_HELD)) & (HOLD_CLAIM | HOLD_HELD)) == 0;
}

/* Is it in force, by the clock alone? */
static inline int hold_is_held(uint64_t cell, uint64_t word, uint64_t now_ns)
{
	return hold_is_of(cell, word) && hold_end(cell, now_ns) > 0;
}

/*
 * Is it, and further ahead than the rule can mean? The clock stepped back, or the period is shorter
 * than it was.
 */
static inline int hold_is_impossible(const struct layout_params *params, uint64_t cell, uint64_t word, uint64_t now_ns)
{
	return hold_is_held(cell, word, now_ns) && hold_end_ns(cell, now_ns) > params->ahead;
}

/* The end of a period that begins now, where a cell has it. */
static inline uint64_t hold_end_of_period(const struct layout_params *params, uint64_t now_ns)
{
	return (now_ns + params->back + HOLD_TICK_NS - 1) >> HOLD_TICK_BITS << HOLD_END_SHIFT;
}

/* The value of a place that begins now in a cell that held `before`. */
static inline uint64_t hold_cell(const struct layout_params *params, uint64_t before, uint64_t word, uint64_t now_ns)
{
	return hold_end_of_period(params, now_ns) | HOLD_HELD | ((before + HOLD_NONCE) & HOLD_NONCES) |
	       (word & HOLD_CLAIM);
}

/* The same place, which ends one period from now. */
static inline uint64_t hold_shortened(const struct layout_params *params, uint64_t cell, uint64_t now_ns)
{
	return hold_end_of_period(params, now_ns) | (cell & (((uint64_t)1 << HOLD_END_SHIFT) - 1)) | HOLD_SHORT;
}

/*
 * How long a cell is in force from now; 0: it is not. One whose end is impossible is in force for a
 * period from the next denial, to the end of a tick: as long as from a denial now.
 */
static inline uint64_t hold_left_ns(const struct layout_params *params, uint64_t cell, uint64_t word, uint64_t now_ns)
{
	if (!hold_is_held(cell, word, now_ns))
		return 0;
	return hold_end_ns(hold_is_impossible(params, cell, word, now_ns) ? hold_shortened(params, cell, now_ns) : cell,
	                   now_ns);
}

/* Is that place, which was entered as `value`, in the cell: as it was, or shortened? */
static inline int hold_is_same(uint64_t cell, uint64_t value)
{
	uint64_t differ = (cell ^ value) & ~HOLD_SHORT;

	if (cell == value)
		return 1;
	return (cell & HOLD_SHORT) != 0 && differ << (64 - HOLD_END_SHIFT) == 0 && (int64_t)(cell - value) < 0;
}

/* The same place, left. */
static inline uint64_t hold_without(uint64_t cell)
{
	return cell & ~HOLD_HELD;
}

static inline uint64_t hold_reach(uint64_t word, uint64_t most)
{
	uint64_t reach = word >> HOLD_REACH_SHIFT & 131071u;

	return reach < most ? reach : most;
}

static inline uint64_t hold_stamp(uint64_t ns)
{
	return ns >> HOLD_STAMP_TICK_BITS & (((uint64_t)1 << HOLD_STAMP_BITS) - 1);
}

/*
 * The answer where `held` places of `most` are in force, the last of them until longest_ns from
 * now.
 */
static inline void hold_report(uint64_t most, uint64_t held, uint64_t longest_ns, uint64_t retry_after_ns,
                               struct shmlimit_result *r)
{
	r->limit = most;
	r->remaining = held < most ? most - held : 0;
	r->wait_ns = 0;
	r->retry_after_ns = retry_after_ns;
	r->reset_after_ns = longest_ns;
}

/* A word that never was before, of the same claim. */
static inline uint64_t hold_word_next(uint64_t word, uint64_t reach, uint64_t now_ns)
{
	uint64_t last = word >> HOLD_STAMP_SHIFT, stamp = hold_stamp(now_ns);

	if (hold_stamp((last - stamp) << HOLD_STAMP_TICK_BITS) < HOLD_STAMP_AHEAD)
		stamp = last + 1;
	return stamp << HOLD_STAMP_SHIFT | reach << HOLD_REACH_SHIFT | (word & HOLD_CLAIM);
}

#endif
