/*
 * pause.pml: a key that is paused while others decide, searched over all interleavings. `make check` runs it (pause.sh).
 * The protocol stands at the top of lib/table/pause.h; lib/decide/slowly.c has the decision.
 *
 * Modelled: PAUSERS processes that pause the one key PAUSES times, for one tick or two; DECIDERS that decide for ever; a
 * writer that publishes another version of the rule up to CHANGES times, or removes the rule and sets it again: then it looks
 * for pauses before it publishes. A step is one shared access. `published`
 * is three values, which one compare-and-swap changes. Time passes at any moment, a tick at a time. A clock is read when a call begins.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: a count is when it ends. Times do not wrap, and are not rounded. What the key has, and its slot, are left
 * out: tests/schedule/pause has them.
 *
 * Laws (-DONLY=n asserts only one): 1 no process that begins while the key is paused passes before the end of that pause.
 * 2 Of two pauses the longer stays. 3 A decision that begins when every pause is over ends with `published` saying that there is none,
 * or having met another process. 4 A count that begins, and is not over, is one that `published` says, or it says another version:
 * so it is in force also if its pauser is killed then.
 *
 * Variants that must fail, each with the law that it breaks:
 *  COUNT_FIRST 4   the count begins before `published` says so.
 *  BLIND_CLEAR 1   what is over is taken away by a store: another pause has begun since.
 *  BLIND_CHANGE 1  a new version is stored: the pause that began since it was read is gone.
 *  SHORTER 1       a shorter pause says its own end, and takes that of the longer one away.
 *  REPLACE 2       so does its count.
 *  NO_CLEAR 3      what is over is left.
 *  ONE_MARK 1      `published` is not read again after the count has begun: the rule that was set since is without it.
 *  NO_SURVEY 1     a rule that is set again is without the pauses that there are.
 *
 *	spin -a pause.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef PAUSERS
#define PAUSERS 2
#endif
#ifndef DECIDERS
#define DECIDERS 1
#endif
#ifndef CHANGES
#define CHANGES 1
#endif
#ifndef PAUSES
#define PAUSES 1		/* of a pauser */
#endif
#define LAST 3			/* the last tick */

byte now;
byte version, paused;		/* `published` */
bit in_use = 1;
byte count;			/* when the key's pause ends; 0: there is none */
byte ends;			/* ghost: the latest end of a pause whose call has returned */
byte begun;			/* ghost: the latest end of a pause whose call has begun */

active proctype time()
{
	do
	:: now < LAST -> now++
	:: now == LAST -> break
	od
}

#define published_is(v, p)	(in_use && version == (v) && paused == (p))

mtype = { CALL, MARK, SWAP, COUNT, READ, OVER, LOOK, AGAIN, SURVEY, PUBLISH };

active [PAUSERS] proctype pauser()
{
	mtype next = CALL;
	byte calls, end, v, p, mine;	/* mine: the version that it has looked up */
	bit counted;

	do
	:: next == CALL && (calls == PAUSES || now == LAST) -> break
	:: atomic { next == CALL && calls < PAUSES && now < LAST ->
		calls++;
		if
		:: end = now + 1
		:: end = now + 2
		fi;
		begun = (end > begun -> end : begun);
		mine = version;
		counted = 0;
#ifdef COUNT_FIRST
		next = COUNT
#else
		next = MARK
#endif
		}
	:: STEP(MARK)
		v = version;
		p = paused;
		if
		:: !in_use -> EVENT(8, "a pause finds no rule"); next = CALL
		:: in_use && v != mine -> EVENT(9, "the rule has changed since it was looked up"); mine = v; counted = 0
#ifdef SHORTER
		:: in_use && v == mine && p == end ->
#else
		:: in_use && v == mine && p >= end ->
#endif
			EVENT(0, "a pause finds that published says as much already");
			next = COUNT;
			if
			:: counted -> ends = (end > ends -> end : ends); next = CALL
			:: else
			fi
		:: else -> next = SWAP
		fi }
	:: STEP(SWAP)
		if
		:: published_is(v, p) ->
			paused = end;
			next = COUNT;
			if
			:: counted -> ends = (end > ends -> end : ends); next = CALL
			:: else
			fi
		:: else -> EVENT(1, "a pause is late, and says so again"); next = MARK
		fi }
	:: STEP(COUNT)
		if
#ifndef REPLACE
		:: count >= end -> EVENT(2, "a longer pause stays")
#endif
		:: else -> count = end
		fi;
		law(2, count >= end && count >= ends);
		law(4, end <= now || paused >= end || version != mine || !in_use);
		counted = 1;
#ifdef ONE_MARK
		ends = (end > ends -> end : ends);
		next = CALL
#else
		next = MARK
#endif
		}
	od
}

/* What is of no use any more makes no other state. */
#define forget()	at = 0; v = 0; p = 0; least = 0; quiet = 0

active [DECIDERS] proctype decider()
{
	mtype next = CALL;
	byte at, v, p, least;	/* least: ghost, the end of a pause when this began */
	bit quiet;		/* ghost: all pauses that began were over then */

	do
	:: STEP(CALL)
		at = now;
		least = ends;
		quiet = begun <= now;
		next = READ }
	:: STEP(READ)
		v = version;
		p = paused;
		if
		:: !in_use -> forget(); next = CALL
		:: in_use && p == 0 -> next = AGAIN
		:: in_use && p != 0 && p <= at -> next = OVER
		:: in_use && p > at -> next = LOOK
		fi }
	:: STEP(OVER)
#ifdef NO_CLEAR
		next = AGAIN }
#else
		if
#ifdef BLIND_CLEAR
		:: true ->
#else
		:: published_is(v, p) ->
#endif
			EVENT(3, "pauses that are over are taken away");
			paused = 0
		:: else -> EVENT(4, "another pause has begun since")
		fi;
		next = READ }
#endif
	:: STEP(LOOK)
		if
		:: count > at -> EVENT(5, "a decision is denied by a pause"); forget(); next = CALL
		:: else -> next = AGAIN
		fi }
	/* It passes. */
	:: STEP(AGAIN)
		if
		:: published_is(v, p) ->
			law(1, least <= now);
			law(3, !quiet || begun > at || paused == 0);
			forget();
			next = CALL
		:: else -> EVENT(6, "the rule has changed"); next = READ
		fi }
	od
}

active proctype writer()
{
	mtype next = READ;
	byte changes, v, p;

	do
	:: next == READ && changes == CHANGES -> break
	:: atomic { next == READ && changes < CHANGES -> v = version; p = paused; next = SWAP }
	/* Remove the rule, and set it again. */
	:: atomic { next == READ && changes < CHANGES -> v = version; in_use = 0; next = SURVEY }
	:: STEP(SURVEY)
#ifdef NO_SURVEY
		p = 0;
#else
		p = (count > now -> count : 0);
#endif
		next = PUBLISH }
	:: STEP(PUBLISH)
		version = v + 1;
		paused = p;
		in_use = 1;
		changes++;
		next = READ }
	:: STEP(SWAP)
		if
#ifdef BLIND_CHANGE
		:: true ->
#else
		:: published_is(v, p) ->
#endif
			version = v + 1;
			paused = p;
			changes++
		:: else -> EVENT(7, "a pause began while the rule was changed")
		fi;
		next = READ }
	od
}
