/*
 * bind.pml: a place that is bound to a process, searched over all interleavings. `make check` runs it (bind.sh). The
 * protocol stands in lib/algorithm/hold/hold.h, steps 7 and 8.
 *
 * Modelled: N processes that make up to CALLS calls each. One without a place enters, or gets a copy of a place that
 * another has; one with a place binds it to one of two holders, renews it, leaves it, or forgets it. An entry that finds
 * the only place held reads its owner, asks whether that is dead, and then takes it away. Each step is one shared access:
 * the cell, its owner, the kernel's answer, or one compare-and-swap. A holder can die at any time.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: an entry, and a bound place that is to get another nonce, are one swap of the cell: hold.pml has the
 * state word and the end of places. Nonces do not wrap.
 *
 * Laws (-DONLY=n asserts only one): 1 a place is taken away only if the process that it was bound to last is dead. 2 An
 * entry is not denied by a place whose process was dead when the entry began, unless another process changes the place.
 *
 * Variants that must fail, each with the law that it breaks:
 *  CELL_FIRST 2   the cell is swapped before its owner: a process that is killed in between leaves a place without one.
 *  SWAP_BOUND 1   the owner of a bound cell is swapped: an entry that had read the last one takes the place away.
 *  SHARED 1       two processes write an owner for one value of the cell: the same.
 *  BLIND_OWNER 1  the owner is stored: one that is late writes to a place that is bound.
 *  BLIND_BURY 1   a dead holder's place is taken away by a store: it is the next holder's by then.
 *  STAY_BOUND 2   a renewed place stays bound, and its owner is none of its own.
 *
 *	spin -a bind.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef N
#define N 3			/* processes */
#endif
#ifndef CALLS
#define CALLS 2			/* of a process */
#endif
#define HOLDERS 2

/* The cell: how often it was changed, whether it is held, whether it is bound. Its owner: a holder, and of which nonce. */
#define HELD		2
#define BOUND		1
#define NONCE(value)	((value) >> 2)
#define OWNER(holder, value)	((holder) << 6 | NONCE(value))
#define entered(value)	((NONCE(value) + 1) << 2 | HELD)
#ifdef STAY_BOUND
#define renewed(value)	(entered(value) | ((value) & BOUND))
#else
#define renewed(value)	entered(value)
#endif
/* Which holder the owner names for the cell; 0: none. */
#define names(owner, value)	((owner) == OWNER((owner) >> 6, value) -> (owner) >> 6 : 0)
#define is_same(a, b)	(((a) | BOUND) == ((b) | BOUND))

byte cell, owner;
byte bound_to;			/* ghost: the holder that the cell was bound to last */
bit dead[HOLDERS + 1];
byte copy;			/* of a place that was entered last */

mtype = { CALL, ENTER, ASK, KERNEL, BURY, BIND, READ, WRITE, SWAP, RENEW, LEAVE };

active [N] proctype process()
{
	mtype next = CALL;
	byte place, seen, was, holder, calls;
	bit overdue;		/* ghost: the place was a dead process's when the entry began */

	do
	:: atomic { next == CALL && calls < CALLS ->
		seen = 0;
		was = 0;
		holder = 0;
		overdue = 0;
		calls++;
		if
		:: place == 0 -> next = ENTER
		:: place == 0 && copy != 0 -> place = copy
		:: place != 0 -> holder = 1; next = BIND
		:: place != 0 -> holder = 2; next = BIND
		:: place != 0 -> next = RENEW
		:: place != 0 -> next = LEAVE
		:: place != 0 -> place = 0
		fi }

	:: STEP(ENTER)
		seen = cell;
		overdue = (seen & (HELD | BOUND)) == (HELD | BOUND) && dead[bound_to];
		if
		:: (seen & HELD) == 0 -> cell = entered(seen); place = cell; copy = cell; next = CALL
		:: (seen & HELD) != 0 && (seen & BOUND) != 0 -> next = ASK
		:: else -> next = CALL
		fi }
	:: STEP(ASK)
		holder = names(owner, seen);
		if
		:: holder != 0 -> next = KERNEL
		:: else -> law(2, !overdue || cell != seen); next = CALL
		fi }
	:: STEP(KERNEL)
		if
		:: dead[holder] -> next = BURY
		:: else -> EVENT(0, "an entry is denied by a living process's place"); law(2, !overdue || cell != seen); next = CALL
		fi }
	:: STEP(BURY)
		if
#ifdef BLIND_BURY
		:: true ->
#else
		:: cell == seen ->
#endif
			EVENT(1, "a dead process's place is taken away");
			law(1, (cell & HELD) == 0 || ((cell & BOUND) != 0 && dead[bound_to]));
			cell = cell & ~HELD
		:: else -> EVENT(2, "a dead process's place was changed in time")
		fi;
		next = ENTER }

	:: STEP(BIND)
		seen = cell;
		if
		:: (seen & HELD) != 0 && is_same(seen, place) -> next = READ
		:: else -> EVENT(3, "a place to be bound is held no more"); next = CALL
		fi }
	:: STEP(READ)
		was = owner;
		if
		:: (seen & BOUND) != 0 && names(was, seen) == holder ->
			/* What it returns, it promises. */
			bound_to = (cell == seen -> holder : bound_to);
			place = seen;
			next = CALL
#ifdef SWAP_BOUND
		:: (seen & BOUND) == 0 || names(was, seen) != holder -> next = WRITE
#else
#ifdef SHARED
		:: (seen & BOUND) != 0 && names(was, seen) != holder ->
#else
		:: names(was, seen) != holder && ((seen & BOUND) != 0 || names(was, seen) != 0) ->
#endif
			if
			:: cell == seen ->
				if
				:: (seen & BOUND) == 0 -> EVENT(4, "a place to be bound has an owner already")
				:: else -> EVENT(5, "a bound place is bound to another process")
				fi;
				cell = entered(seen);
				place = cell
			:: else -> skip
			fi;
			next = BIND
		:: else ->
#ifdef CELL_FIRST
			next = SWAP
#else
			next = WRITE
#endif
#endif
		fi }
	:: STEP(WRITE)
		if
#ifdef BLIND_OWNER
		:: true ->
#else
		:: owner == was ->
#endif
			owner = OWNER(holder, seen);
#ifdef CELL_FIRST
			next = CALL
#else
			next = SWAP
#endif
		:: else -> EVENT(6, "another process is quicker to write an owner"); next = BIND
		fi }
	:: STEP(SWAP)
		if
#ifdef SWAP_BOUND
		:: cell == seen ->
#else
		:: cell == seen && (seen & BOUND) == 0 ->
#endif
			cell = seen | BOUND;
			bound_to = holder;
			place = cell;
#ifdef CELL_FIRST
			next = WRITE
#else
			next = CALL
#endif
		:: else -> EVENT(7, "a cell changes between its owner's swap and its own"); next = BIND
		fi }

	:: STEP(RENEW)
		seen = cell;
		was = owner;
		if
		:: (seen & HELD) != 0 && is_same(seen, place) ->
			holder = ((seen & BOUND) != 0 -> names(was, seen) : 0);
			cell = renewed(seen);
			place = cell;
			next = (holder != 0 -> BIND : CALL)
		:: else -> next = CALL
		fi }
	:: STEP(LEAVE)
		if
		:: (cell & HELD) != 0 && is_same(cell, place) -> cell = cell & ~HELD
		:: else -> EVENT(8, "a leave is too late")
		fi;
		place = 0;
		next = CALL }
	:: next == CALL && calls == CALLS -> break
	od
}

active proctype death()
{
	byte i;

	do
	:: i < HOLDERS -> i++;
		if
		:: dead[i] = 1
		:: skip
		fi
	:: else -> break
	od
}
