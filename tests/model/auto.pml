/*
 * auto.pml: a number that is found, while several processes leave places of its key, searched over all interleavings.
 * `make check` runs it (auto.sh). The protocol stands at the top of lib/algorithm/hold/auto_state.h.
 *
 * Modelled: LEAVERS processes that leave TIMES places each; two pairs of words, each read as two, and changed by one
 * compare-and-swap of both. A window is due with DUE times, by time at any moment. A step is one shared access.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: a time is 1, and the next number one more than the last. Epochs do not wrap. Tries are not bounded.
 * The slot is the key's: tests/schedule/auto has that.
 *
 * Laws (-DONLY=n asserts only one): 1 a window that is closed has DUE times at least, all of them added in its epoch.
 * 2 A window is closed once. 3 The number is what the windows that were closed make of it, and the base goes with it.
 * 4 No time that was added to the window in force is lost before it is closed.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NO_EPOCH 1      a time is added to whatever window there is.
 *  BLIND_CLOSE 2   the next number is stored: another process has closed the window.
 *  BLIND_ADD 4     a time is stored: those that were added since it was read are gone.
 *  NO_AGAIN 4      the number is not read again: the window is of a later epoch, and is replaced by an earlier one.
 *  HALF_CLOSE 3    the swap that closes looks at the base alone, and its epoch is another window's.
 *
 *	spin -a auto.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef LEAVERS
#define LEAVERS 3
#endif
#ifndef TIMES
#define TIMES 3
#endif
#define DUE 2
#define EPOCHS 12

byte epoch, number;		/* the first word of the number's pair */
byte base;			/* the second: half of the number */
byte its, sum;			/* the first word of the window's pair */
byte count;			/* the second */
byte closed[EPOCHS];		/* ghost: how often */
byte added;			/* ghost: times that were added to the window in force */
bit mixed;			/* ghost: the window has times of more than one epoch */

mtype = { READ_NUMBER, READ_BASE, READ_SUM, READ_COUNT, AGAIN, ADD, CLOSE };

active [LEAVERS] proctype leaver()
{
	mtype next = READ_NUMBER;
	byte left, e, n, b, o, s, c, my_sum, my_count;
	bit due, mine_mixed;

	do
	:: next == READ_NUMBER && left == TIMES -> break
	:: atomic { next == READ_NUMBER && left < TIMES ->
		e = epoch; n = number;
		next = READ_BASE }
	:: atomic { next == READ_BASE ->
		b = base;
		next = READ_SUM }
	:: atomic { next == READ_SUM ->
		o = its; s = sum;
		next = READ_COUNT }
	:: atomic { next == READ_COUNT ->
		c = count;
#ifdef NO_EPOCH
		my_sum = s + 1; my_count = c + 1;
#else
		my_sum = (o == e -> s : 0) + 1;
		my_count = (o == e -> c : 0) + 1;
#endif
		next = AGAIN }
	:: atomic { next == AGAIN ->
		if
#ifdef NO_AGAIN
		:: true -> next = ADD
#else
		:: epoch == e && number == n -> next = ADD
		:: else -> EVENT(0, "the number changed between"); next = READ_NUMBER
#endif
		fi }
	:: atomic { next == ADD ->
		if
#ifdef BLIND_ADD
		:: true ->
#else
		:: its == o && sum == s && count == c ->
#endif
			mixed = (o != e && my_count > 1) || (o == e && mixed);
			its = e; sum = my_sum; count = my_count;
			if
			:: e == epoch ->
				added++;
				law(4, my_count >= added)
			:: else
			fi;
			mine_mixed = mixed;
			due = my_count >= DUE;
			left++;
			if
			:: due -> next = CLOSE
			:: due -> next = READ_NUMBER	/* not by time */
			:: else -> next = READ_NUMBER
			fi
#ifndef BLIND_ADD
		:: else -> EVENT(1, "a time is added again"); next = READ_NUMBER
#endif
		fi }
	:: atomic { next == CLOSE ->
		if
#ifdef BLIND_CLOSE
		:: true ->
#elif defined(HALF_CLOSE)
		:: base == b ->
#else
		:: epoch == e && number == n && base == b ->
#endif
			law(1, my_count >= DUE && my_sum == my_count && !mine_mixed);
			closed[e]++;
			law(2, closed[e] == 1);
			law(3, n == e && b == n / 2 && e == epoch);
			epoch = e + 1; number = n + 1; base = (n + 1) / 2;
			added = 0;
			EVENT(2, "a window is closed")
#ifndef BLIND_CLOSE
		:: else -> EVENT(3, "another process closed it")
#endif
		fi;
		next = READ_NUMBER }
	od
}
