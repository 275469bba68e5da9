/*
 * hold.pml: the places of one slot under a HOLD rule, searched over all interleavings. `make check` runs it (hold.sh).
 * The protocol stands in lib/algorithm/hold/hold.h.
 *
 * Modelled: N processes that enter, renew or not, leave, and leave once more, ROUNDS times; the last OTHERS of them want
 * a second key. Both keys have the one slot, of CAPACITY cells: it is claimed when it is free, and reclaimed when no
 * place in it is in force. Each step is one shared access: the tag and word, one cell, or one compare-and-swap. A place
 * ends TTL ticks after the reading of the clock with which it was entered; TICKS pass. A process reads the clock when
 * a call begins, so it may be late by any time.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: a claim is one swap (claim.pml has its two phases); nonces, stamps and claims count and do not wrap. Windows
 * in the same slot, changes of the rule and larger tables are left out: tests/schedule has them.
 *
 * An entry with the capacity takes the first cell that is not in force; one with a bound below it counts those in force.
 *
 * Laws (-DONLY=n asserts only one): 1 never more than CAPACITY places of a key are held, no slot is taken in which one
 * is, and an entry by a bound is within it (I13). A holder is one from the end of its entry until its leave begins or its
 * place ends. 2 A place that has not ended can be renewed and left. 3 What leaves, renews or takes back a cell finds it as
 * it wrote it itself.
 *
 * With -DLASTS each place is bound to a process that lives, and does not end: by its bits, once it is within the word's
 * reach, and before that as long as its time is not over. An entry that is to take such a cell beyond reach displaces it
 * first.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NO_STAMP 1     an entry looks at the word and does not change it: a reclaimer that had read both takes the slot.
 *  WORD_FIRST 1   the word is swapped before the cell: the same, in between.
 *  CELLS_FIRST 1  a reclaimer reads the cells before the word: an entry in between is not seen.
 *  NO_UNDO 2      an entry that lost the swap of the word holds its cell all the same.
 *  RENEW_CELL 1   a renewal swaps its cell alone: a reclaimer that saw it end takes the slot.
 *  BLIND_LEAVE 3  a leave after the end stores into the cell, and ends the place of the next holder.
 *  NO_NONCE 3     two entries of a cell in one tick have one value: the second leave of the first ends the second.
 *  BLIND_UNDO 3   an entry that lost the swap of the word, late, stores into the cell.
 *  TRIED_IS_FREE 2 a place that lasts once it is valid is taken from an entry that is late.
 *  BLIND_BOUND 1  an entry with a bound looks at as many cells as that alone: a place beyond them is not counted.
 *  LATE_WORD 1    an entry with a bound reads the word after the cells: one that entered in between is not counted.
 *
 *	spin -a hold.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef OTHERS
#define OTHERS 1		/* the last this many want the second key */
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef ROUNDS
#define ROUNDS 2		/* entries of a process */
#endif
#ifndef BOUND
#define BOUND CAPACITY		/* with which the first process enters: the others enter with the capacity */
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef TICKS
#define TICKS 3			/* that pass */
#endif
#ifndef CLAIMS
#define CLAIMS 6		/* of the slot: two keys that do not enter could take it from each other for ever */
#endif
#ifndef STAMPS
#define STAMPS 15		/* of the slot: two late entries that last could displace each other for ever */
#endif
#define START 1

#ifdef LASTS
#define REACH(word)		((word) >> 10 & 3)
#define with_reach(word, n)	(REACH(word) < (n) -> ((word) & 1023) | (n) << 10 : (word))
#define lasts(i, word)		((i) < REACH(word))
#define END_OF(value)		255
#else
#define with_reach(word, n)	(word)
#define lasts(i, word)		0
#define END_OF(value)		((value) >> 9)
#endif

/* A cell: when it ends, whether it is held, how often it was entered, of which claim. */
#define CELL(end, nonce, claim)	((end) << 9 | 256 | (nonce) << 4 | (claim))
#define without(value)		((value) & ~256)
#define NONCE(value)		((value) >> 4 & 15)
#define MY_BOUND		(_pid == 0 -> BOUND : CAPACITY)
#define is_of(value, of)	(((value) & 256) != 0 && ((value) & 15) == (of))
#define in_force(i, value, word, at)	(is_of(value, CLAIM(word)) && ((value) >> 9 > (at) || lasts(i, word)))
#ifdef LASTS
#ifndef TRIED_IS_FREE
#define is_tried(i, value, word)	(is_of(value, CLAIM(word)) && !lasts(i, word))
#endif
#endif
#ifndef is_tried
#define is_tried(i, value, word)	0
#endif
#ifdef NO_NONCE
#define nonce_after(value)	0
#else
#define nonce_after(value)	(NONCE(value) + 1)
#endif

/* The slot: 0 or a key, the claim, the stamp, in one word. */
#define WORD(key, claim, stamp)	((key) << 8 | (claim) << 4 | (stamp))
#define KEY(word)		((word) >> 8 & 3)
#define CLAIM(word)		((word) >> 4 & 15)
#define STAMP(word)		((word) & 15)

short slot;
short cell[CAPACITY];
byte now = START;
byte claims;

typedef process_t {
	byte key, clock;
	short word;		/* as it was read */
	short before, mine;	/* what the cell held, and what is entered */
	byte counted;		/* places in force, by an entry with a bound */
	byte at;		/* which cell */
	bit holds;		/* ghost: from the end of the entry until the leave begins */
	byte end;		/* ghost: of the place that is held */
};
process_t proc[N];

byte j, held;	/* used within one step, and then 0 again */

inline count_held(which) {
	do
	:: j < N ->
		held = (proc[j].holds && proc[j].key == which && proc[j].end > now -> held + 1 : held);
		j++
	:: else -> break
	od;
	j = 0
}

/* The place is held from now on. */
inline begin_to_hold() {
	my.holds = 1;
	my.end = END_OF(my.mine);
	count_held(my.key);
	law(1, held <= (renews -> CAPACITY : MY_BOUND));
	held = 0
}

/* What was to be entered was not: a holder has what it had. */
inline give_up() {
	my.mine = (renews -> my.before : 0);
	next = (renews -> HOLD : READ)
}

mtype = { CALL, READ, SCAN, COUNT, CHECK, DISPLACE, OUST, PLACE, COMMIT, UNDO, LOOK, READ_LATE, TAKE, HOLD, RENEW, LEAVE, AGAIN, REST };

active [N] proctype process()
{
	mtype next = CALL;
	byte i, rounds;
	bit renews;

	do
	:: STEP(CALL)
		my.key = (_pid >= N - OTHERS -> 2 : 1);
		if
		:: rounds == ROUNDS -> next = REST
		:: else -> my.clock = now; rounds++; next = READ
		fi }
	:: STEP(READ)
		my.word = slot;
		i = 0;
		renews = 0;
		if
		:: claims == CLAIMS || STAMP(my.word) > STAMPS -> next = REST
		:: claims < CLAIMS && STAMP(my.word) <= STAMPS && KEY(my.word) == 0 -> next = TAKE
		:: claims < CLAIMS && STAMP(my.word) <= STAMPS && KEY(my.word) == my.key -> next = SCAN
		:: else -> next = LOOK
		fi }

	/* Another key's slot: is no place in it in force? */
	:: STEP(LOOK)
		if
		:: in_force(i, cell[i], my.word, my.clock) -> EVENT(0, "the slot is in use by another key"); my.word = 0; next = CALL
		:: else ->
			i++;
			if
#ifdef CELLS_FIRST
			:: i == CAPACITY -> next = READ_LATE
#else
			:: i == CAPACITY -> next = TAKE
#endif
			:: else -> skip
			fi
		fi }
	:: STEP(READ_LATE)
		if
		:: KEY(slot) == KEY(my.word) && CLAIM(slot) == CLAIM(my.word) -> my.word = slot; next = TAKE
		:: else -> next = READ
		fi }
	:: STEP(TAKE)
		if
		:: slot == my.word ->
			if
			:: KEY(slot) != 0 -> EVENT(1, "a slot is reclaimed")
			:: else -> skip
			fi;
			count_held(KEY(my.word));
			law(1, held == 0);
			held = 0;
			claims++;
			slot = WORD(my.key, claims, 0)
		:: else -> EVENT(2, "a slot is not reclaimed, since it was entered")
		fi;
		next = READ }

	/* The key's slot: a cell that is not in force. */
	:: STEP(SCAN)
		if
		:: MY_BOUND < CAPACITY -> next = COUNT
		:: else -> my.before = cell[i]
		fi;
		if
		:: next == COUNT -> skip
		:: else ->
		if
		:: !in_force(i, my.before, my.word, my.clock) ->
			my.at = i;
			my.mine = CELL(my.clock + TTL, nonce_after(my.before), CLAIM(my.word));
			if
			:: (my.before & 256) != 0 && (my.before & 15) == CLAIM(my.word) -> EVENT(3, "a place that ended is entered")
			:: else -> skip
			fi;
			next = CHECK
		:: else ->
			i++;
			if
			:: i == CAPACITY -> EVENT(4, "an entry is denied"); next = CALL
			:: else -> skip
			fi
		fi
		fi }
	/* Each cell, for an entry with a bound; the last that is not in force is to be entered. */
	:: STEP(COUNT)
		if
		:: in_force(i, cell[i], my.word, my.clock) -> my.counted++
		:: else ->
			my.at = i;
			my.before = cell[i]
		fi;
		i++;
		if
#ifdef BLIND_BOUND
		:: i < BOUND -> skip
#else
		:: i < CAPACITY -> skip
#endif
		:: else ->
#ifdef LATE_WORD
			my.word = (KEY(slot) == KEY(my.word) && CLAIM(slot) == CLAIM(my.word) -> slot : my.word);
#endif
			if
			:: my.counted < BOUND ->
				my.mine = CELL(my.clock + TTL, nonce_after(my.before), CLAIM(my.word));
				next = CHECK
			:: else -> EVENT(10, "an entry is denied by its bound"); my.before = 0; my.at = 0; next = CALL
			fi;
			my.counted = 0
		fi }
	:: STEP(CHECK)
		if
#ifdef WORD_FIRST
		:: slot == my.word -> next = COMMIT
#else
		:: slot == my.word && !renews && is_tried(my.at, my.before, my.word) -> next = DISPLACE
		:: slot == my.word && (renews || !is_tried(my.at, my.before, my.word)) -> next = PLACE
#endif
		:: else -> give_up()
		fi }
	/* One that another has tried, late: that cannot become valid from now on. */
	:: STEP(DISPLACE)
		if
		:: slot == my.word -> slot = slot + 1; my.word = slot; EVENT(11, "a place that was tried is displaced"); next = OUST
		:: else -> give_up()
		fi }
	:: STEP(OUST)
		cell[my.at] = (cell[my.at] == my.before -> without(my.before) : cell[my.at]);
		give_up() }
	:: STEP(PLACE)
		if
		:: cell[my.at] == my.before -> cell[my.at] = my.mine; next = COMMIT
		:: else -> EVENT(5, "another is quicker to enter a cell"); give_up()
		fi;
#ifdef WORD_FIRST
		if
		:: next == COMMIT -> begin_to_hold(); next = HOLD
		:: else -> skip
		fi;
#endif
		skip }
	:: STEP(COMMIT)
		if
#ifdef WORD_FIRST
		:: slot == my.word -> slot = slot + 1; next = PLACE
		:: else -> give_up()
#else
#ifdef NO_STAMP
		:: slot == my.word ->
#else
		:: slot == my.word ->
			slot = with_reach(slot + 1, my.at + 1);
#endif
			begin_to_hold();
			next = HOLD
#ifdef NO_UNDO
		:: else -> begin_to_hold(); next = HOLD
#else
		:: else -> EVENT(6, "an entry loses the swap of the word"); next = UNDO
#endif
#endif
		fi }
	:: STEP(UNDO)
#ifdef BLIND_UNDO
		law(3, cell[my.at] == my.mine);
#endif
		if
		:: cell[my.at] == my.mine -> cell[my.at] = (renews -> my.before : without(my.mine))
		:: else -> EVENT(7, "what an entry takes back was entered by another")
		fi;
		give_up() }

	/* A holder renews its place, or leaves. */
	:: d_step { next == HOLD && now < my.end && !renews ->
		my.clock = now;
		my.word = slot;
		renews = 1;
		law(2, KEY(slot) == my.key && cell[my.at] == my.mine);
		my.before = my.mine;
		next = RENEW }
	:: STEP(RENEW)
		if
		:: slot != my.word || cell[my.at] != my.before || !in_force(my.at, my.before, my.word, my.clock) -> next = HOLD
		:: else ->
			EVENT(8, "a place is renewed");
			my.mine = CELL(my.clock + TTL, nonce_after(my.before), CLAIM(my.word));
#ifdef RENEW_CELL
			cell[my.at] = my.mine;
			my.end = END_OF(my.mine);
			next = HOLD
#else
			next = CHECK
#endif
		fi }
	:: STEP(HOLD)
		my.clock = now;
		my.word = slot;
		my.holds = 0;
		law(2, my.end <= now || (KEY(slot) == my.key && cell[my.at] == my.mine));
		next = LEAVE }
	:: STEP(LEAVE)
#ifdef BLIND_LEAVE
		law(3, KEY(my.word) != my.key || cell[my.at] == my.mine || (cell[my.at] & 256) == 0);
#endif
		if
		:: cell[my.at] == my.mine && in_force(my.at, my.mine, my.word, my.clock) -> cell[my.at] = without(my.mine)
		:: else -> EVENT(9, "a leave is too late")
		fi;
		next = AGAIN }
	/* A process that enters the cell after that is not left. */
	:: STEP(AGAIN)
		j = 0;
		do
		:: j < N ->
			law(3, !(proc[j].holds && proc[j].end > now && j != _pid && proc[j].at == my.at && cell[my.at] == my.mine &&
				 in_force(my.at, my.mine, slot, now)));
			j++
		:: else -> break
		od;
		j = 0;
		my.word = 0;
		my.before = 0;
		my.mine = 0;
		my.at = 0;
		my.end = 0;
		i = 0;
		renews = 0;
		next = CALL }
	:: next == REST -> break
	od
}

active proctype clock()
{
	do
	:: now < START + TICKS -> now++
	:: else -> break
	od
}
