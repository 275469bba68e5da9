/*
 * mailbox.pml: a cell through which processes ask an agent (lib/global/host/mailbox.h), searched over all interleavings.
 * `make check` runs it (mailbox.sh).
 *
 * Modelled: one cell; N processes that make REQUESTS each, wait or poll, stop or cancel at any moment, are killed between any two steps,
 * or are stopped for any time; two agents, of which one may have been stopped and replaced while it was serving. Each
 * step is one access to shared memory. The text has two parts, written and read one after the other. Each generation and
 * each request has its own number, so the seal is (request, generation), as if no hash collided.
 * Abstracted: the other cells, times (what takes long may happen at any moment), and what the backend says.
 *
 * Laws (-DONLY=n asserts only one): 1 a process believes the answer to its own request only. 2 An agent asks only for
 * what one process wrote as a whole, and for the process that has the cell. 3 When all processes are gone, the agent
 * frees the cell. 4 An agent does not sleep while a process waits for it. 5 The tokens of each answer are spent, given back
 * by a process that cancels, or given back by the agent if the answer is late; only the sweep loses them. 6 No process
 * makes a request again that an agent asked for, unless its text was spoiled since: the next agent repeats it.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NO_GENERATION 1   words of two requests may be equal.
 *  STORE_ANSWER 1    an answer is stored, whatever is in the cell by then.
 *  NO_SEAL 2         a text is believed as it stands.
 *  PLAIN_SEAL 2      the seal is of the text alone.
 *  NO_SWEEP 3        cells of killed processes are left alone.
 *  SLEEP_BLIND 4     the agent does not look once more before it sleeps.
 *  LOOK_FIRST 4      a process looks whether the agent sleeps before it posts.
 *  INHERIT_AGAIN 6   what an agent had taken is given back to the process.
 *  DROP_AGAIN 6      an agent that was replaced, or ends, gives what it had asked for back to the process.
 *  CANCEL_BLIND 5    a process that cancels frees the cell with a store, after it saw that there was no answer.
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef REQUESTS
#define REQUESTS 2		/* of each */
#endif

#define FREE 0
#define WRITING 1
#define POSTED 2
#define TAKEN 3
#define ANSWERED 4
#define AGAIN 5
#define REPEATED 6

/* The word: both change in one step. */
byte state, gen;
byte text[2], seal_of, seal_gen;
byte answer_of;			/* ghost: the request that was asked, with the answer */
byte owner[N * REQUESTS + 1];	/* ghost: whose generation it is */
byte ended;
byte asked, spoiled;		/* ghost: a bit of each generation: an agent asked for it; the text was spoiled */
byte held;			/* ghost: answers whose tokens no process has spent or given back */
bit asleep, blocked;

#define DIES	:: goto dead

proctype poster(byte first) {
	byte id = first, mine;
	bit sleeps;

	do
	:: id < first + REQUESTS ->
		if
		:: d_step { state == FREE ->
#ifndef NO_GENERATION
			gen = gen + 1;
#endif
			state = WRITING; mine = gen; owner[gen] = id }
		:: d_step { state != FREE -> EVENT(0, "a cell is taken") }
			goto next
		fi;
		if
		:: text[0] = id
		DIES
		fi;
		if
		:: text[1] = id
		DIES
		fi;
		if
		:: d_step { seal_of = id; seal_gen = mine }
		DIES
		fi;
#ifdef LOOK_FIRST
		sleeps = asleep;
#endif
		if
		:: d_step { state == WRITING && gen == mine -> state = POSTED }
		:: d_step { state != WRITING || gen != mine -> EVENT(1, "a cell was taken away from a stopped process") }
			goto next
		DIES
		fi;
#ifndef LOOK_FIRST
		sleeps = asleep;
#endif
		if
		:: sleeps -> d_step { asleep = 0; sleeps = 0; EVENT(2, "a process wakes the agent") }
		:: !sleeps
		DIES
		fi;
		if
		:: d_step { gen != mine || state == FREE -> EVENT(3, "a request was given up for its process") }
		:: d_step { gen == mine && state == ANSWERED -> law(1, answer_of == id); state = FREE; held--; EVENT(4, "an answer is fetched") }
		:: d_step { gen == mine && state == AGAIN -> law(6, !(asked & ~spoiled & (1 << mine))); state = FREE; EVENT(5, "a request is to be made again") }
		/* Its time is over, or it cancels. */
#ifdef CANCEL_BLIND
		:: gen == mine && (state == POSTED || state == REPEATED || state == TAKEN) -> state = FREE
#endif
		:: d_step { gen == mine && (state == POSTED || state == REPEATED || state == TAKEN) ->
			law(4, !(blocked && asleep && state == POSTED));
			state = FREE; EVENT(6, "a process stops waiting") }
		DIES
		fi;
next:		id++
	:: else -> break
	od;
	goto out;
dead:	EVENT(7, "a process is killed");
out:	ended++
}

proctype agent(bit sleeper) {
	byte mine, id[2], sealed, sealed_gen;

	do
	:: d_step { (state == POSTED || state == REPEATED) -> state = TAKEN; mine = gen };
		d_step { sealed = seal_of; sealed_gen = seal_gen };
		id[0] = text[0];
		id[1] = text[1];
		if
#ifdef NO_SEAL
		:: true ->
#else
#ifdef PLAIN_SEAL
		:: id[0] == sealed && id[1] == sealed ->
#else
		:: id[0] == sealed && id[1] == sealed && sealed_gen == mine ->
#endif
#endif
			d_step { law(2, id[0] == id[1] && id[0] == owner[mine]); asked = asked | (1 << mine) };
			if
			:: d_step { state == TAKEN && gen == mine ->
#ifdef DROP_AGAIN
				state = AGAIN;
#else
				state = REPEATED;
#endif
				EVENT(11, "an agent ends before it answers") }
			:: d_step {
				if
#ifdef STORE_ANSWER
				:: true -> state = ANSWERED; answer_of = id[0]; held++
#else
				:: state == TAKEN && gen == mine -> state = ANSWERED; answer_of = id[0]; held++
				:: else -> EVENT(8, "an answer comes too late")
#endif
				fi }
			fi
#ifndef NO_SEAL
		:: else -> d_step {
				EVENT(9, "a text was spoiled");
				if
				:: state == TAKEN && gen == mine -> state = AGAIN; spoiled = spoiled | (1 << mine)
				:: else
				fi
			}
#endif
		fi;
		d_step { mine = 0; id[0] = 0; id[1] = 0; sealed = 0; sealed_gen = 0 }
#ifdef INHERIT_AGAIN
	:: d_step { state == TAKEN -> state = AGAIN }
#else
	:: d_step { state == TAKEN -> state = REPEATED; EVENT(10, "an agent inherits a request") }
#endif
#ifndef NO_SWEEP
	:: d_step { state == WRITING || state == ANSWERED || state == AGAIN ->
			if
			:: state == ANSWERED -> held--
			:: else
			fi;
			state = FREE }
#endif
	:: sleeper && ended < N ->
		asleep = 1;
#ifndef SLEEP_BLIND
		if
		:: (state == POSTED || state == REPEATED) -> asleep = 0
		:: (state != POSTED && state != REPEATED) ->
#endif
			blocked = 1;
			(!asleep || ended == N);
			d_step { blocked = 0; asleep = 0 }
#ifndef SLEEP_BLIND
		fi
#endif
	/* All processes are gone, and each state but FREE has a step above. */
	:: d_step { ended == N && (state == FREE
#ifdef NO_SWEEP
			|| state == WRITING || state == ANSWERED || state == AGAIN
#endif
			) -> law(3, state == FREE); law(5, held == 0) } -> break
	od
}

init {
	atomic {
		byte i = 0;

		do
		:: i < N -> run poster(1 + i * REQUESTS); i++
		:: else -> break
		od;
#ifndef ONE_AGENT
		run agent(0);
#endif
		run agent(1)
	}
}
