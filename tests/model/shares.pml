/*
 * shares.pml: places that two keys have by shares of a total, searched over all interleavings. `make check` runs it
 * (shares.sh). The protocol stands in lib/api/take_all.c, before struct share.
 *
 * Modelled: N processes that enter the total, then their key by its share, and leave both, ROUNDS times; the last OTHERS
 * of them want the second key. An entry of a place is what hold.pml shows: the word is read, the places are counted, and
 * the word is swapped if it is the same; each entry makes another word, and a leave changes none.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: words count and do not wrap; the cells, the time and what holders that died leave (hold.pml, bind.pml); more
 * than one level of shares (tests/unit/shares, tests/schedule/hold).
 *
 * Laws (-DONLY=n asserts only one): 1 At a moment between the entry before it of the key and its own, a key that enters
 * holds fewer places than SHARE times those that are free in the total, its own one there being free. 2 Never more than
 * CAPACITY places of the total are held. 3 A call that has ended holds both places or none, so that all are free at the end.
 *
 * Variants that must fail, each with the law that it breaks:
 *  EARLY_LOOK 1   what is free is counted before the key's word is read: an entry of the other key in between is missed.
 *  NO_LOOK 1      the total's entry is trusted, though another one came after it.
 *  BLIND_SWAP 1   the key's word is stored, though another process of the key has entered.
 *  BLIND_TOTAL 2  so is the total's.
 *  NO_UNDO 3      a call that the share denies keeps its place in the total.
 *  LOST_UNDO 3    a call that was denied once its key's word was lost keeps it.
 *
 *	spin -a shares.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef N
#define N 3			/* processes */
#endif
#ifndef OTHERS
#define OTHERS 1		/* the last this many want the second key */
#endif
#ifndef CAPACITY
#define CAPACITY 3
#endif
#ifndef SHARE
#define SHARE 1
#endif
#ifndef ROUNDS
#define ROUNDS 2		/* entries of a process */
#endif

byte total, total_word;		/* places held; changes with each entry */
byte held[2], word[2];		/* of the keys */
byte most_free[2] = CAPACITY;		/* ghost: free places of the total, the most since the key's last entry */
byte ended;

#define note_free()	most_free[0] = (CAPACITY - total > most_free[0] -> CAPACITY - total : most_free[0]); \
			most_free[1] = (CAPACITY - total > most_free[1] -> CAPACITY - total : most_free[1])

mtype = { CALL, READ_TOTAL, SWAP_TOTAL, READ_KEY, LOOK, COUNT, DECIDE, SWAP_KEY, UNDO, LEAVE_KEY, LEAVE_TOTAL };

active [N] proctype process()
{
	mtype next = CALL;
	byte rounds, seen, mine, n, free;
	bit key = (_pid >= N - OTHERS);
	bit lost;

	do
	:: next == CALL && rounds == ROUNDS -> atomic { ended++; break }
	:: atomic { next == CALL && rounds < ROUNDS -> rounds++; lost = 0; next = READ_TOTAL }
	:: STEP(READ_TOTAL)
		seen = total_word;
		free = CAPACITY - total;
		if
		:: free == 0 -> EVENT(0, "the total denies"); seen = 0; next = CALL
		:: else -> next = SWAP_TOTAL
		fi }
	:: STEP(SWAP_TOTAL)
		if
#ifdef BLIND_TOTAL
		:: true ->
#else
		:: total_word == seen ->
#endif
			total++;
			total_word++;
			mine = total_word;
			law(2, total <= CAPACITY);
#ifdef EARLY_LOOK
			next = LOOK
#else
			next = READ_KEY
#endif
		:: else -> next = READ_TOTAL
		fi;
		seen = 0 }
	:: STEP(READ_KEY)
		seen = word[key];
		n = held[key];
#ifdef EARLY_LOOK
		next = DECIDE
#else
		next = LOOK
#endif
		}
	/* Free when it entered, if no other has since; or counted. */
	:: STEP(LOOK)
#ifdef NO_LOOK
		next = DECIDE }
#else
		if
		:: total_word == mine -> EVENT(1, "what the total's entry found stands"); next = DECIDE
		:: else -> EVENT(2, "another entry of the total came after it"); next = COUNT
		fi;
#ifdef EARLY_LOOK
		if
		:: next == DECIDE -> next = READ_KEY
		:: else
		fi
#endif
		}
#endif
	:: STEP(COUNT)
		free = CAPACITY - total + 1;
#ifdef EARLY_LOOK
		next = READ_KEY }
#else
		next = DECIDE }
#endif
	:: STEP(DECIDE)
		if
		:: n < SHARE * free -> next = SWAP_KEY
		:: else -> EVENT(3, "the share denies");
#ifdef NO_UNDO
			next = CALL
#else
#ifdef LOST_UNDO
			next = (lost -> CALL : UNDO)
#else
			next = UNDO
#endif
#endif
		fi }
	:: STEP(SWAP_KEY)
		if
#ifdef BLIND_SWAP
		:: true ->
#else
		:: word[key] == seen ->
#endif
			law(1, held[key] < SHARE * (most_free[key] + 1));
			held[key]++;
			word[key]++;
			most_free[key] = CAPACITY - total;
			next = LEAVE_KEY
		:: else -> EVENT(4, "an entry of the key came in between"); lost = 1; next = READ_KEY
		fi;
		seen = 0;
		n = 0 }
	:: STEP(UNDO)
		total--;
		note_free();
		mine = 0; seen = 0; n = 0; free = 0;
		next = CALL }
	:: STEP(LEAVE_KEY)
		held[key]--;
		next = LEAVE_TOTAL }
	:: STEP(LEAVE_TOTAL)
		total--;
		note_free();
		mine = 0; free = 0;
		next = CALL }
	od;
	law(3, ended < N || (total == 0 && held[0] == 0 && held[1] == 0))
}
