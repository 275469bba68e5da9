/*
 * count.pml: a count that hosts share (lib/global/api/global_count.c, lib/global/agent/count_run.c, and the first part of the
 * script). `make check` runs it (count.sh).
 *
 * Modelled: a backend that counts up to BOUND, and whose count ends WINDOWS - 1 times; HOSTS hosts with a process each,
 * that makes REQUESTS requests, and may be killed or stop waiting for an answer; an agent for each host, which may be
 * killed with a request or an answer in its hands, and is replaced; the key's slot of each host, which may be lost (an
 * eviction) at any moment. Each step is one swap of the slot, one script, or one access to the mailbox.
 * Abstracted: the mailbox (mailbox.pml has that), and costs above 1.
 *
 * Law 1: of each of the backend's windows no more is allowed than BOUND.
 * Law 2: a host denies by itself only what the backend would deny.
 * Law 3: a request counts once in a window, however many agents ask for it.
 *
 * The second one is of a clock: the slot ends before the backend's count does, and an answer that is as old as the count
 * is not written. An agent that is stopped between the two may break it, by as long as it is stopped; never the first.
 *
 * Variants that must fail, each with the law that it breaks:
 *  ADD_IN_TWO 1    the backend reads, then adds.
 *  ALLOW_HERE 1    a process allows what its slot leaves room for.
 *  ASK_AGAIN 1     what was answered to one request allows a second one.
 *  FORGET 3        the backend does not keep which request it counted last for a host.
 *  OUTLIVES 2      the slot may end after the backend's count.
 *  LATE_WRITE 2    an answer is written to the slot however old it is.
 *  ADD_HERE 2      an answer is added to what the slot has.
 */
#include "model.pml"
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef REQUESTS
#define REQUESTS 2		/* of each host */
#endif
#ifndef BOUND
#define BOUND 2
#endif
#define WINDOWS 2

mtype = { NONE, POSTED, TAKEN, ALLOWED, DENIED };

byte value, window;		/* the backend's count, and ghost: which one it is */
byte slot[HOSTS], slot_window[HOSTS];	/* 0: there is none; ghost: of which window it is */
mtype cell[HOSTS] = NONE;
byte number[HOSTS];		/* of the request in the cell */
byte kept[HOSTS];		/* beside the backend's count: the request of the host that it counted last */
byte counted[HOSTS];		/* ghost: a bit of each request that is in the count */
byte cell_window[HOSTS];	/* ghost: in which window it was allowed */
byte allowed[WINDOWS];		/* ghost */
byte ended;

#define COUNTED(w) \
	allowed[w]++; \
	law(1, allowed[w] <= BOUND)

proctype process(byte h) {
	byte n;

	do
	:: n < REQUESTS ->
		n++;
		if
		:: d_step { slot[h] >= BOUND -> law(2, slot_window[h] == window && value >= BOUND);
				EVENT(0, "a denial is known") }
#ifdef ALLOW_HERE
		:: d_step { slot[h] > 0 && slot[h] < BOUND -> slot[h]++; COUNTED(slot_window[h]) }
#endif
		:: d_step { slot[h] < BOUND -> cell[h] = POSTED; number[h] = n };
			if
			:: d_step { cell[h] == ALLOWED -> COUNTED(cell_window[h]) }
#ifdef ASK_AGAIN
				if
				:: n < REQUESTS -> n++; d_step { COUNTED(cell_window[h]) }
				:: else
				fi
#endif
			:: cell[h] == DENIED -> EVENT(1, "the backend denies")
			:: true -> EVENT(2, "a process stops waiting")
			:: true -> EVENT(3, "a process is killed while it waits"); cell[h] = NONE; break
			fi;
			cell[h] = NONE
		fi
	:: else -> break
	od;
	ended++
}

proctype agent(byte h) {
	byte got, got_window, taken;
	bit added;

	do
	:: d_step { (cell[h] == POSTED || cell[h] == TAKEN) ->
			if
			:: cell[h] == TAKEN -> EVENT(10, "the next agent takes what a killed one had taken")
			:: else
			fi;
			cell[h] = TAKEN; taken = number[h] };
		if
		:: true -> EVENT(4, "an agent is killed with a request")
#ifdef ADD_IN_TWO
		:: d_step { true -> got = value; got_window = window };
			d_step {
				added = window == got_window && got < BOUND;
				value = (added -> got + 1 : value);
				got = value;
				got_window = window
			};
#else
		:: d_step { true ->
			if
#ifndef FORGET
			:: kept[h] == taken -> added = 1; EVENT(11, "the backend has counted a request before")
#endif
			:: else ->
				added = value < BOUND;
				value = value + added;
				if
				:: added ->
					law(3, !(counted[h] >> taken & 1));
					counted[h] = counted[h] | (1 << taken);
					kept[h] = taken
				:: else
				fi
			fi;
			got = value; got_window = window };
#endif
			if
			:: true -> EVENT(5, "an agent is killed with an answer")
			:: true ->
				d_step {
					if
#ifndef LATE_WRITE
					:: got_window != window -> EVENT(6, "an answer is older than the count")
#endif
					:: else ->
#ifdef ADD_HERE
						slot[h] = slot[h] + got;
						slot_window[h] = got_window
#else
						slot[h] = got;
						slot_window[h] = got_window
#endif
					fi
				};
				d_step {
					if
					:: cell[h] == TAKEN ->
						cell[h] = (added -> ALLOWED : DENIED);
						cell_window[h] = got_window
					:: else -> EVENT(7, "an answer is late")
					fi
				}
			fi
		fi;
		d_step { got = 0; got_window = 0; added = 0; taken = 0 }
	:: ended == HOSTS && cell[h] != POSTED -> break
	od
}

/* A slot ends before the count that it is of, or is evicted. */
#ifdef OUTLIVES
#define SLOTS_ENDED	true
#else
#define SLOTS_ENDED	(slot[0] == 0 && slot[HOSTS - 1] == 0)
#endif

proctype time() {
	do
	:: ended == HOSTS -> break
	:: d_step { slot[0] > 0 && ended < HOSTS -> slot[0] = 0; slot_window[0] = 0; EVENT(8, "a slot ends") }
	:: d_step { slot[HOSTS - 1] > 0 && ended < HOSTS -> slot[HOSTS - 1] = 0; slot_window[HOSTS - 1] = 0 }
	:: d_step { window < WINDOWS - 1 && value > 0 && ended < HOSTS && SLOTS_ENDED -> window++; value = 0;
			kept[0] = 0; kept[HOSTS - 1] = 0; counted[0] = 0; counted[HOSTS - 1] = 0;
			EVENT(9, "the backend's count ends") }
	od
}

init {
	atomic {
		byte i = 0;

		do
		:: i < HOSTS -> run process(i); run agent(i); i++
		:: else -> break
		od;
		run time()
	}
}
