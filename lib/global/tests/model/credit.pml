/*
 * credit.pml: a new key is lent its rule's credit before the backend is asked (lib/global/host/via_agent.c: via_agent_lend();
 * lib/global/agent/agent.c: end_debit()). `make check` runs it (credit.sh).
 *
 * Modelled: the slot of one key; N processes that make REQUESTS requests of one token each, and may be killed at any
 * step; an agent that may be killed with a debit in its hands, and is replaced; a backend with TOKENS tokens. Each
 * step is one swap of the slot, or one access to the ring. At any moment a claim, a lease or a denial may end, and once
 * another key may take the slot, when nothing in it is in force.
 * Abstracted: the mailbox (mailbox.pml has that), the size of leases, and tokens that come back. A process that may not
 * lend asks the backend in one step.
 *
 * Law 1: no more is spent than the backend's tokens, and the credit for each time that the key was new.
 * Law 2: what is spent was leased, or is counted as unpaid, or its debit is posted or was lost with a killed agent.
 *
 * Variants that must fail, each with the law that it breaks:
 *  LEND_KNOWN 1     any claim lends.
 *  LEND_WAITING 1   a process that finds another one's claim lends, too.
 *  DEPOSIT_TOO 2    the agent deposits what a debit leased.
 *  LEND_FIRST 2     the credit is deposited before the debit is posted.
 *  COUNT_NOT 2      a debit that the backend denies is not counted as unpaid.
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef REQUESTS
#define REQUESTS 3		/* of each */
#endif
#ifndef TOKENS
#define TOKENS 2		/* of the backend */
#endif
#define CREDIT 2

mtype = { NOTHING, EMPTY, ASKED, LEASED, DENIED };

mtype slot = NOTHING;		/* EMPTY: the key is known, and nothing is in force */
byte held;			/* tokens in the slot, of LEASED or ASKED */
byte backend = TOKENS;
byte posted;			/* debits in the ring */
byte new = 1;			/* ghost: times that the key was new */
byte spent, leased, unpaid, lost;	/* ghost; lost: debits */
byte ended;

#define LAWS \
	law(1, spent <= TOKENS + CREDIT * new); \
	law(2, spent + held <= leased + unpaid + CREDIT * (posted + lost))

/* A deposit, of which one token is spent. */
#define DEPOSIT(tokens) \
	d_step { \
		held = (slot == DENIED -> 0 : held) + tokens - 1; \
		slot = LEASED; \
		spent++; \
		LAWS \
	}

#define POST \
	d_step { posted++; LAWS }

#define KILLED \
	:: true -> EVENT(0, "a process is killed before it posts"); break

inline ask() {
	if
	:: d_step { backend > 0 -> backend--; leased++;
			held = (slot == DENIED -> 0 : held); slot = LEASED; spent++; LAWS }
	:: d_step { backend == 0 -> slot = (held == 0 -> DENIED : LEASED); LAWS }
	fi
}

proctype process() {
	byte n;
	bit lends;

	do
	:: n < REQUESTS ->
		n++;
		if
		:: d_step { (slot == LEASED || slot == ASKED) && held > 0 -> held--; spent++; lends = 0; LAWS }
		:: d_step { slot == DENIED -> lends = 0; EVENT(1, "a denial is known") }
#ifdef LEND_WAITING
		:: d_step { slot == ASKED && held == 0 -> lends = 1 }
#else
		:: d_step { slot == ASKED && held == 0 -> lends = 0; EVENT(2, "a process finds another one's claim") }
#endif
#ifdef LEND_KNOWN
		:: d_step { slot == EMPTY || (slot == LEASED && held == 0) -> slot = ASKED; lends = 1 }
#else
		:: d_step { slot == EMPTY || (slot == LEASED && held == 0) -> slot = ASKED; lends = 0 };
			ask()
#endif
		:: d_step { slot == NOTHING -> slot = ASKED; lends = 1 }
		fi;
		if
		:: lends ->
			if
			KILLED
			:: true
			fi;
#ifdef LEND_FIRST
			DEPOSIT(CREDIT);
			if
			:: d_step { posted++; LAWS }
			:: true -> break
			fi
#else
			POST;
			if
			:: true -> EVENT(3, "a process is killed between debit and credit"); break
			:: true
			fi;
			DEPOSIT(CREDIT)
#endif
		:: !lends
		fi
	:: else -> break
	od;
	ended++
}

proctype agent() {
	do
	:: d_step { posted > 0 -> posted--; lost++ };	/* in the agent's hands: lost if it is killed */
		if
		:: true -> EVENT(4, "an agent is killed with a debit")
		:: d_step { backend >= CREDIT -> backend = backend - CREDIT; leased = leased + CREDIT; lost--;
				EVENT(5, "a debit is paid"); LAWS }
#ifdef DEPOSIT_TOO
			d_step { held = held + CREDIT; slot = LEASED }
#endif
		:: backend < CREDIT ->
			/* What is left of the credit is taken away, then the denial is stored. */
			d_step {
				if
				:: slot == LEASED || slot == ASKED -> held = (held > CREDIT -> held - CREDIT : 0)
				:: else
				fi
			};
			d_step {
				if
				:: held == 0 -> slot = DENIED
				:: else -> slot = LEASED
				fi;
#ifndef COUNT_NOT
				unpaid = unpaid + CREDIT;
#endif
				lost--;
				EVENT(6, "a debit is denied");
				LAWS
			}
		fi
	:: ended == N && posted == 0 -> break
	od
}

proctype time() {
	do
	:: d_step { (slot == ASKED || slot == LEASED || slot == DENIED) && ended < N ->
			held = 0; slot = EMPTY; EVENT(7, "what was in force ends") }
	:: d_step { slot == EMPTY && new == 1 && ended < N -> slot = NOTHING; new++; EVENT(8, "the key is new again") }
	:: ended == N -> break
	od
}

init {
	atomic {
		byte i = 0;

		do
		:: i < N -> run process(); i++
		:: else -> break
		od;
		run agent();
		run time()
	}
}
