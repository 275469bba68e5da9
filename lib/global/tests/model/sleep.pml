/*
 * sleep.pml: an agent that sleeps until a process posts a request (lib/global/host/mailbox.c: mailbox_sleep(),
 * mailbox_doze(), mailbox_wake()), beside one that was stopped, replaced, and does not know it yet. `make check` runs
 * it (sleep.sh).
 *
 * Modelled: N processes that make REQUESTS each, and may be killed before they post; the agent; the one
 * that it replaced, which sleeps at any moment up to twice. Each step is one access to shared memory. As
 * the kernel's futex does, falling asleep looks at the word and blocks in one step, and a wake is for all that sleep.
 * Abstracted: what requests are (mailbox.pml has that), and the time after which a sleeping agent looks anyway.
 *
 * With DOZE, agents doze too, for a moment: what may wait does not wake one that dozes; and processes post that, too.
 *
 * Law 1: the agent does not sleep or doze beside a request whose process has done its part.
 * Law 2: the agent does not sleep beside what may wait either.
 *
 * Variants that must fail, each with the law that it breaks:
 *  ONE_BIT 1        the word says that an agent sleeps, and not which.
 *  WAKE_ON_SWAP 1   a process wakes no agent if its compare-and-swap fails.
 *  CLEAR_AT_END 1   an agent that has slept says that none sleeps.
 *  SLEEP_BLIND 1    an agent does not look once more before it sleeps.
 *  LOOK_FIRST 1     a process looks whether an agent sleeps before it posts.
 *  DOZE_DEAF 1      no process wakes an agent that dozes.
 *  DOZE_OVER 2      an agent that dozes hides that another one sleeps.
 *  DOZE_ON 2        the same, if it was the last that went to sleep.
 *  WAIT_LONG 2      what may wait does not wake an agent that sleeps.
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef REQUESTS
#define REQUESTS 2		/* of each */
#endif

#define AGENT 0
#define REPLACED 1
#ifdef ONE_BIT
#define CLAIM(who) 1
#else
#define CLAIM(who) (1 + who)
#endif
#define DOZES 4

byte asleep;			/* the claim of the agent that sleeps, with DOZES if it dozes; 0: none */
byte posted, later;		/* requests that no agent has taken; those that may wait */
byte busy;			/* ghost: processes that have posted, and may still wake the agent */
byte ended;
byte blocked[2];		/* 1: sleeps, 2: dozes */

#define LAW \
	law(1, !(blocked[AGENT] && posted > 0 && busy == 0)); \
	law(2, !(blocked[AGENT] == 1 && later > 0 && busy == 0))

#ifdef DOZE_DEAF
#define WAKES	seen != 0 && seen < DOZES
#elif defined(WAIT_LONG)
#define WAKES	seen != 0 && !may_wait
#else
#define WAKES	seen != 0 && !(may_wait && seen > DOZES)
#endif

proctype process() {
	byte n, seen;
	bit may_wait;

	do
	:: n < REQUESTS ->
#ifdef LOOK_FIRST
		seen = asleep;
#endif
		if
		:: d_step { posted++; busy++ }
#ifdef DOZE
		:: d_step { later++; busy++; may_wait = 1 }
#endif
		:: d_step { true -> EVENT(0, "a process is killed") }
			break
		fi;
#ifndef LOOK_FIRST
		seen = asleep;
#endif
		if
		:: WAKES ->
			if
			:: d_step { asleep == seen -> asleep = 0 };
				d_step { blocked[AGENT] = 0; blocked[REPLACED] = 0; EVENT(1, "a process wakes the agent") }
			:: d_step { asleep != seen -> EVENT(2, "another process or agent was faster") };
#ifndef WAKE_ON_SWAP
				d_step { blocked[AGENT] = 0; blocked[REPLACED] = 0 }
#endif
			fi
		:: !(WAKES)
		fi;
		d_step { busy--; seen = 0; may_wait = 0; LAW };
		n++
	:: else -> break
	od;
	ended++
}

#ifdef SLEEP_BLIND
#define LOOKED true
#else
#define LOOKED posted + later == 0
#endif

/* FUTEX_WAIT blocks only if the word is what the caller stored. */
#define SLEEP(who) \
	asleep = CLAIM(who); \
	if \
	:: LOOKED -> \
		if \
		:: d_step { asleep == CLAIM(who) -> blocked[who] = 1; LAW } \
		:: d_step { asleep != CLAIM(who) -> EVENT(3, "an agent that would sleep is woken before") } \
		fi \
	:: posted + later > 0 -> EVENT(4, "an agent that would sleep finds a request") \
	fi

#ifdef DOZE_OVER
#define MAY_DOZE(who) true
#elif defined(DOZE_ON)
#define MAY_DOZE(who) (seen == 0 || seen == CLAIM(who) || seen == CLAIM(who) + DOZES)
#else
#define MAY_DOZE(who) (seen == 0 || seen == CLAIM(who) + DOZES)
#endif

/* A doze ends by itself at any moment. */
#define DOZE_OFF(who) \
	seen = asleep; \
	if \
	:: d_step { MAY_DOZE(who) && asleep == seen -> asleep = CLAIM(who) + DOZES; seen = 0 }; \
		if \
		:: d_step { LOOKED && asleep == CLAIM(who) + DOZES -> blocked[who] = 2; LAW }; \
			d_step { blocked[who] = 0; EVENT(5, "an agent dozes") } \
		:: !(LOOKED && asleep == CLAIM(who) + DOZES) \
		fi \
	:: d_step { !(MAY_DOZE(who) && asleep == seen) -> seen = 0; EVENT(6, "an agent sleeps since another one does") }; \
		SLEEP(who); \
		WAIT(who) \
	fi

#define WAIT(who) \
	!blocked[who] || ended == N; \
	d_step { blocked[who] = 0 }

proctype agent() {
	byte seen;

	do
	:: d_step { posted > 0 -> posted-- }
#ifdef DOZE
	:: d_step { later > 0 -> later-- }
	:: ended < N -> DOZE_OFF(AGENT)
	:: d_step { asleep == CLAIM(AGENT) + DOZES -> asleep = 0 }	/* it renews its claim */
#endif
	:: ended < N ->
		SLEEP(AGENT);
		WAIT(AGENT);
#ifdef CLEAR_AT_END
		asleep = 0
#endif
	:: ended == N && posted + later == 0 -> break
	od
}

proctype replaced() {
	byte n, seen;

	do
#ifdef DOZE
	:: n < 2 && ended < N -> DOZE_OFF(REPLACED); n++
#endif
	:: n < 2 && ended < N ->
		SLEEP(REPLACED);
		WAIT(REPLACED);
		n++;
#ifdef CLEAR_AT_END
		asleep = 0
#endif
	:: true -> break
	od
}

init {
	atomic {
		byte i = 0;

		do
		:: i < N -> run process(); i++
		:: else -> break
		od;
		run replaced();
		run agent()
	}
}
