/*
 * auto_state: what a key has whose limit finds its number (SHMLIMIT_LAW_VEGAS ...): two pairs of
 * cells behind its places, the last two of its size, each changed by one compare-and-swap.
 *
 *	number:  [ 0 : 7 ][ warm : 4 ][ probe : 2 ][ number : 27 ][ 0 ][ epoch : 12 ][ claim : 11 ]
 *	         [ 0 ][ 1 ][ base : 31 ][ begin : 31 ]
 *	window:  [ sum : 40 ][ 0 ][ epoch : 12 ][ claim : 11 ]
 *	         [ 0 ][ 1 ][ 0 : 21 ][ denied : 1 ][ drops : 20 ][ count : 20 ]
 *
 *	claim   as of a place: see hold.h. Bit 23 is 0, so neither pair is a place that is held
 *	0, 1    the highest bits of the owner's word: neither HOLD_NOBODY nor the number of a holder, so
 *	        no place that was left is one of these pairs
 *	number  in force, in 1024ths of a place; see auto_law.h for warm, probe and base
 *	epoch   of the window, which counts modulo 4096
 *	begin   of the window, in units of 2^20 ns
 *	sum     of the times of `count` places that were left in the window, in units of 1024 ns
 *
 *  1. Enter: the bound is the number, or a quarter of it while the base is measured, within the
 *     rule's bounds.
 *  2. Leave, after the place was left: read both pairs, and the first again; swap the window for one with this place's
 *     time. A window of another epoch is replaced by one of this time alone. A swap that is lost is tried again, at
 *     most AUTO_STATE_TRIES times; then the time is not counted.
 *  3. Close: the swap of step 2 made the window one that is due, by time and by count. The same
 *     process swaps exactly the number that it read for the next one, with the next epoch.
 *  4. Denied: swap the window for the same with `denied`, unless it has that.
 *
 * INVARIANT A window is closed once, by times of that window alone: of those that find it due, one
 * wins the swap of its epoch, and what others add to it then is lost with it
 * (tests/model/auto). Killed before the swap, a process leaves a window that is due, and the next
 * place that is left closes it.
 *
 * INVARIANT The number is within the bounds of the rule, whatever the pairs say: it is read through
 * them. Bits that are no pair of this claim mean the number that a key begins with.
 *
 * A time is the period less what is left of it. It is not counted where it says nothing: of a place
 * that was renewed, or whose end was brought forward (HOLD_SHORT); which was entered in the future,
 * as the clock stepped back. It counts as at most AUTO_STATE_TIMES times the base: so one slow
 * request, or a clock that stepped forward, moves the average of one window by little. A window
 * that began in the future, by a clock that was read after it, begins now.
 *
 * WHY NOT the time in places in use at each leave: it would be a look at each. By Little's law the
 * average is the sum of times by the length of the window.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_AUTO_STATE_H
#define SHMLIMIT_LIB_AUTO_STATE_H

#include "auto_law.h"
#include "hold_place.h"
#include "look.h"

#define AUTO_STATE_PAIRS 2u
#define AUTO_STATE_FIRST 20u /* the number that a key begins with, if the bounds allow */
#define AUTO_STATE_TRIES 8
#define AUTO_STATE_TIMES 8u
#define AUTO_STATE_COUNT 30u /* times that a window has at least, and ... */
#define AUTO_STATE_WINDOW_NS ((uint64_t)250000000)
/* How long after its last entry a key keeps its number, though it holds nothing. */
#define AUTO_STATE_KEEP_NS ((uint64_t)600000000000)

#define AUTO_STATE_MARK ((uint64_t)1 << 62)
#define AUTO_STATE_NUMBER_SHIFT 24
#define AUTO_STATE_PROBE_SHIFT 51

/* The bounds of a rule's numbers, and its law. */
struct auto_bounds {
	unsigned law;
	uint64_t least, most;
};

static inline struct auto_bounds auto_state_bounds(const struct layout_params *params)
{
	uint64_t tokens = params_tokens(params) - AUTO_STATE_PAIRS, least = params_least(params), most;

	most = params->capacity < tokens ? params->capacity : tokens;
	return (struct auto_bounds){ params_law(params), least < most ? least : most, most };
}

/* A key's pairs, its slot as it was seen, and its rule. */
struct auto_key {
	uint64_t *pairs; /* NULL: this process does not see them, or there are none */
	const struct layout_slot *slot;
	struct slot_seen seen;
	const struct shmlimit *l; /* whose clock can be read again; NULL: times are given */
	struct auto_bounds bounds;
	uint64_t period_ns;
};

/* The first of the two pairs, among the cells of a slot. */
static inline uint64_t *auto_state_pairs(uint64_t *cells, const struct layout_params *params)
{
	return &cells[2 * (params_tokens(params) - AUTO_STATE_PAIRS)];
}

/* Is it one of the pairs, of that word's claim? */
static inline int auto_state_is_pair(struct hold_pair pair, uint64_t word)
{
	return pair.owner >> 62 == 1 && ((pair.value ^ word) & HOLD_CLAIM) == 0 && (pair.value & HOLD_HELD) == 0;
}

static inline uint64_t auto_state_first(const struct auto_bounds *b)
{
	uint64_t first = AUTO_STATE_FIRST < b->most ? AUTO_STATE_FIRST : b->most;

	return first < b->least ? b->least : first;
}

/* The bound of an entry. The pairs may be NULL. */
static inline uint64_t auto_state_now(const uint64_t *pairs, uint64_t word, const struct auto_bounds *b)
{
	struct hold_pair pair;
	uint64_t number;

	if (pairs == NULL)
		return auto_state_first(b);
	pair = hold_place_read(pairs, 0);
	if (!auto_state_is_pair(pair, word))
		return auto_state_first(b);
	number = pair.value >> AUTO_STATE_NUMBER_SHIFT & (((uint64_t)1 << 27) - 1);
	if (__builtin_expect((pair.value >> AUTO_STATE_PROBE_SHIFT & 3) != 0, 0))
		number /= 4;
	number /= AUTO_LAW_ONE;
	number = number < b->most ? number : b->most;
	return number > b->least ? number : b->least;
}

/* What is known of a key. Returns whether anything is; else *a is what it begins with. */
int auto_state_read(const struct auto_key *k, struct auto_law *a, struct auto_window *w);

/* A place was left, which was entered as `value`; `flags`: SHMLIMIT_PLACE_DROPPED ... */
void auto_state_left(const struct auto_key *k, uint64_t value, uint32_t flags, uint64_t now_ns);

/* A request was denied by the number. */
void auto_state_denied(const struct auto_key *k);

/* The number moves to the pairs of `to`, of a slot with the same claim. */
void auto_state_migrate(const struct auto_key *from, const struct auto_key *to);

#endif
