/*
 * bind.pml: a place that is bound to a process, searched over all interleavings. `make check` runs it (bind.sh). The
 * protocol stands in lib/algorithm/hold/hold.h, steps 3, 7 and 8, and what it says of larger tables.
 *
 * Modelled: N processes that make up to CALLS calls each. One without a place enters, or gets a copy of a place that
 * another has, and with -DLATE the first binds the place that it enters at once; one with a place binds it to one of two holders, renews it, leaves it, or forgets it. An entry that finds
 * the only place held reads its owner, asks whether that is dead, and then takes the place away. A carrier moves the
 * key to a larger table beside them. Each step is one shared access: a value, its owner, the kernel's answer, the slot, or
 * one compare-and-swap of value and owner. A holder can die at any time.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: an entry and a renewal are one swap, of a slot that is not being moved; with that an entry swaps the cell of
 * one that is, and then tries again: hold.pml has the state word and the end of places. Nonces do not wrap. A holder's number is of one process for ever.
 *
 * Laws (-DONLY=n asserts only one): 1 a place is taken away only if the process that it was bound to last is dead. 2 An
 * entry is not denied by a place whose process was dead when the entry began, unless another process changes the place.
 * 3 A place that was left is not held. 4 A carrier writes a place that is held with an owner that it had.
 *
 * Variants that must fail, each with the law that it breaks:
 *  BY_VALUE 1     a dead holder's place is taken away by its value alone: it was bound to another process in between.
 *  NO_LOOK 1      a bind does not swap the word after the owner: the key had moved.
 *  NO_LOOK_BACK 3 nor does a leave.
 *  BLIND_OWNER 1  the owner is stored: one that is late writes to the next holder's place.
 *  BLIND_BURY 1   a dead holder's place is taken away by a store: it is the next holder's by then.
 *  KEEP_OWNER 1   an entry swaps the value alone: its place is the former holder's.
 *  TORN 4         a carrier does not read the value again: a late entry has written another place in between.
 *  LEFT_BEHIND 2  a carrier takes the value alone: a dead holder's place is not taken away.
 *
 *	spin -a bind.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef CALLS
#define CALLS 3			/* of a process */
#endif
#define HOLDERS 2

/* Of the old table and the new one. A value: how often it was changed, and whether it is held. */
byte cell[2], owner[2];
#define HELD		1
#define entered(value)	(((value) | HELD) + 2)

bit frozen, moved;		/* the old slot, the new one */
byte copied;			/* ghost: what the carrier has read: 1 the value, 2 the owner too */
byte bound_to;			/* ghost: the holder that the place was bound to last; 0: none */
bit dead[HOLDERS + 1];
byte copy;			/* of a place that was entered last */
byte left[2];			/* ghost: values that were left last */
byte late;			/* what a late entry wrote to the old table; 0: there was none */

/* The table that counts. */
#define NOW		(moved -> 1 : 0)
/* A swap there of a table that does not count is found, and done again, where it does. */
#define counts(table)	((table) == 1 || copied < 2)

mtype = { CALL, FIND, ENTER, ASK, KERNEL, LOOK, BURY, BIND, READ, SWAP, AFTER, RENEW, LEAVE, AFTER_LEAVE };

active [N] proctype process()
{
	mtype next = CALL, then = CALL;
	byte place, seen, was, holder, calls, t;
	bit overdue;		/* ghost: the place was a dead process's when the entry began */

	do
	:: atomic { next == CALL && calls < CALLS ->
		seen = 0;
		was = 0;
		holder = 0;
		overdue = 0;
		calls++;
		next = FIND;
		if
		:: place == 0 -> then = ENTER
		:: place == 0 && copy != 0 -> place = copy; next = CALL
		:: place != 0 -> holder = 1; then = BIND
		:: place != 0 -> holder = 2; then = BIND
		:: place != 0 -> then = RENEW
		:: place != 0 -> then = LEAVE
		:: place != 0 -> place = 0; next = CALL
		fi }

	/* A key that is being moved is moved first. */
	:: atomic { next == FIND && (!frozen || moved) -> t = NOW; next = then }

	:: atomic { next == ENTER ->
		seen = cell[t];
		overdue = t == NOW && !frozen == !moved && (seen & HELD) != 0 && bound_to != 0 && dead[bound_to];
		if
#ifdef LATE
		/* It is late, and swaps a cell that moves. */
		:: t == 0 && frozen && (seen & HELD) == 0 && late == 0 -> late = entered(seen); cell[t] = late; owner[t] = 1; next = FIND
#endif
		:: t != NOW || (t == 0 && frozen) -> next = FIND
		:: else ->
			if
			:: (seen & HELD) == 0 ->
				cell[t] = entered(seen);
#ifndef KEEP_OWNER
				#ifdef LATE
				holder = (_pid == 0 -> 1 : 0);
#endif
				owner[t] = holder;
#endif
				bound_to = holder;
				place = cell[t];
				copy = place;
				next = CALL
			:: else -> next = ASK
			fi
		fi }
	:: STEP(ASK)
		was = owner[t];
		if
		:: was != 0 -> next = KERNEL
		:: else -> law(2, !overdue || cell[t] != seen || owner[t] != was || bound_to == 0); next = CALL
		fi }
	:: STEP(KERNEL)
		if
		:: dead[was] -> next = LOOK
		:: else ->
			EVENT(0, "an entry is denied by a living process's place");
			law(2, !overdue || cell[t] != seen || t != NOW || bound_to != was || !dead[bound_to]);
			next = CALL
		fi }
	:: STEP(LOOK)
		next = (t == 0 && frozen -> FIND : BURY) }
	:: STEP(BURY)
		if
#ifdef BLIND_BURY
		:: true ->
#else
#ifdef BY_VALUE
		:: cell[t] == seen ->
#else
		:: cell[t] == seen && owner[t] == was ->
#endif
#endif
			EVENT(1, "a dead process's place is taken away");
			law(1, !counts(t) || (cell[t] & HELD) == 0 || (bound_to != 0 && dead[bound_to]));
			cell[t] = cell[t] & ~HELD
		:: else -> EVENT(2, "a dead process's place was changed in time")
		fi;
		next = FIND }

	:: STEP(BIND)
		seen = cell[t];
		if
		:: (seen & HELD) != 0 && seen == place -> next = READ
		:: else -> EVENT(3, "a place to be bound is held no more"); next = AFTER; seen = 0
		fi }
	:: STEP(READ)
		was = owner[t];
		next = (was == holder -> AFTER : SWAP) }
	:: STEP(SWAP)
		if
#ifdef BLIND_OWNER
		:: true ->
#else
		:: cell[t] == seen && owner[t] == was ->
#endif
			owner[t] = holder;
			bound_to = (counts(t) && cell[t] == place -> holder : bound_to);
			next = AFTER
		:: else -> EVENT(4, "another process is quicker to bind or to leave"); next = BIND
		fi }
	/* The word is swapped. What the call returns, it promises. */
	:: STEP(AFTER)
#ifdef NO_LOOK
		bound_to = (seen != 0 && cell[NOW] == place -> holder : bound_to);
		next = CALL
#else
		if
		:: t == 0 && frozen -> EVENT(5, "a key moves while its place is bound"); next = FIND
		:: else -> next = CALL
		fi
#endif
		}

	:: atomic { next == RENEW ->
		if
		:: t == 0 && frozen -> next = FIND
		:: else ->
			if
			:: (cell[t] & HELD) != 0 && cell[t] == place -> cell[t] = entered(place); place = cell[t]
			:: else -> skip
			fi;
			next = CALL
		fi }
	:: STEP(LEAVE)
		if
		:: (cell[t] & HELD) != 0 && cell[t] == place ->
			cell[t] = cell[t] & ~HELD;
			seen = 1
		:: else -> EVENT(6, "a leave is too late")
		fi;
		next = AFTER_LEAVE }
	:: STEP(AFTER_LEAVE)
#ifndef NO_LOOK_BACK
		if
		:: t == 0 && frozen -> EVENT(7, "a key moves while its place is left"); next = FIND
		:: else ->
#else
		if
		:: true ->
#endif
			law(3, cell[NOW] != place || (frozen && !moved));
			left[_pid] = place;
			place = 0;
			next = CALL
		fi }
	:: next == CALL && calls == CALLS -> break
	od
}

/* The carrier. What was left was left: also after it has written. */
active proctype carrier()
{
	byte value, holder, first, step;
	bit together;		/* ghost: the owner is one that the value had */

	do
	:: d_step { step == 0 -> frozen = 1; step = 1 }
	:: d_step { step == 1 -> value = cell[0]; first = owner[0]; copied = 1; step = 2 }
	:: d_step { step == 2 ->
		copied = 2;
		holder = owner[0];
		together = cell[0] == value || holder == first;
		step = 3 }
	:: d_step { step == 3 ->
		if
#ifndef TORN
		:: cell[0] != value -> EVENT(9, "a carrier reads a place again"); copied = 0; step = 1
#endif
		:: else ->
			law(4, (value & HELD) == 0 || together);
#ifdef LEFT_BEHIND
			holder = 0;
#endif
			/* Of an entry that was not committed, or a place that was left: as the value was read. */
			cell[1] = ((value & HELD) != 0 -> value : entered(value + 16) & ~HELD);
			owner[1] = holder;
			bound_to = (late != 0 && value == late -> holder : bound_to);
			value = 0;
			holder = 0;
			first = 0;
			together = 0;
			step = 4
		fi }
	:: d_step { step == 4 ->
		moved = 1;
		EVENT(8, "a key moves");
		law(3, (cell[1] & HELD) == 0 || cell[1] != left[0] || cell[1] != left[1]);
		step = 5 }
	:: step == 5 -> break
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
