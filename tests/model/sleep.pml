/*
 * sleep.pml: an agent that sleeps until a process posts a request (lib/global/requests.c: requests_sleep(),
 * requests_wake()), beside one that was stopped, replaced, and does not know it yet. `make check` runs it (sleep.sh).
 *
 * Modelled: N processes that make REQUESTS each, and may be killed before they post; the agent; the one
 * that it replaced, which sleeps at any moment up to twice. Each step is one access to shared memory. As
 * the kernel's futex does, falling asleep looks at the word and blocks in one step, and a wake is for all that sleep.
 * Abstracted: what requests are (requests.pml has that), and the time after which a sleeping agent looks anyway.
 *
 * Law 1: the agent does not sleep beside a request whose process has done its part.
 *
 * Variants that must fail, each with the law that it breaks:
 *  ONE_BIT 1        the word says that an agent sleeps, and not which.
 *  WAKE_ON_SWAP 1   a process wakes no agent if its compare-and-swap fails.
 *  CLEAR_AT_END 1   an agent that has slept says that none sleeps.
 *  SLEEP_BLIND 1    an agent does not look once more before it sleeps.
 *  LOOK_FIRST 1     a process looks whether an agent sleeps before it posts.
 */
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

byte asleep;			/* the claim of the agent that sleeps; 0: none */
byte posted;			/* requests that no agent has taken */
byte busy;			/* ghost: processes that have posted, and may still wake the agent */
byte ended;
bit blocked[2];

c_decl { static long event_count[32]; };
#define EVENT(n, name)	c_code { if (event_count[n]++ == 0) printf("event: " name "\n"); }

#ifdef ONLY
#define law(n, expression)	assert(ONLY != n || (expression))
#else
#define law(n, expression)	assert(expression)
#endif
#define LAW	law(1, !(blocked[AGENT] && posted > 0 && busy == 0))

proctype process() {
	byte n, seen;

	do
	:: n < REQUESTS ->
#ifdef LOOK_FIRST
		seen = asleep;
#endif
		if
		:: d_step { posted++; busy++ }
		:: d_step { true -> EVENT(0, "a process is killed") }
			break
		fi;
#ifndef LOOK_FIRST
		seen = asleep;
#endif
		if
		:: seen != 0 ->
			if
			:: d_step { asleep == seen -> asleep = 0 };
				d_step { blocked[AGENT] = 0; blocked[REPLACED] = 0; EVENT(1, "a process wakes the agent") }
			:: d_step { asleep != seen -> EVENT(2, "another process or agent was faster") };
#ifndef WAKE_ON_SWAP
				d_step { blocked[AGENT] = 0; blocked[REPLACED] = 0 }
#endif
			fi
		:: seen == 0
		fi;
		d_step { busy--; seen = 0; LAW };
		n++
	:: else -> break
	od;
	ended++
}

#ifdef SLEEP_BLIND
#define LOOKED true
#else
#define LOOKED posted == 0
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
	:: posted > 0 -> EVENT(4, "an agent that would sleep finds a request") \
	fi

proctype agent() {
	do
	:: d_step { posted > 0 -> posted-- }
	:: ended < N ->
		SLEEP(AGENT);
		!blocked[AGENT] || (ended == N && posted == 0);
		d_step { blocked[AGENT] = 0 };
#ifdef CLEAR_AT_END
		asleep = 0
#endif
	:: ended == N && posted == 0 -> break
	od
}

proctype replaced() {
	byte n;

	do
	:: n < 2 && ended < N ->
		SLEEP(REPLACED);
		!blocked[REPLACED] || ended == N;
		d_step { blocked[REPLACED] = 0; n++ };
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
