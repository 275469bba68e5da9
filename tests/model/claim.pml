/*
 * claim.pml: the slot table of lib/table/table.c, searched over all interleavings. `make check` runs it (claim.sh).
 *
 * Modelled: N processes that call take for ever, over one window of SLOTS slots; a slot is one (tag, word) pair,
 * changed by one CAS; each step is one shared access (-DSPLIT: tag and word are read in two steps). Scan, claim in
 * two phases, help, reclaim, evict (-DEVICT), charge, denial, reset, refill. Which of equally good slots a claim
 * takes is left open. Nothing bounds the calls or the starting over: the search ends because the states are finite.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * -DSOLO: at any moment all but one process are killed; that one may start over once more, and no second time.
 * -DPROGRESS (pan -DNP, -l): no endless run in which no call ends. It holds for one key (-DOTHERS=0); two keys
 * in a window without room can take each other's tentative slots for ever: lock-freedom is not claimed there.
 * Abstracted: a nonce is a number that no process remembers; a tick refills every funnel, and a word holds the tick of
 * its last charge; a process reads the clock when its call begins, so it may be late; all costs are 1; a third
 * key (STRANGERS) claims in one step; a full window ends the call; weak ordering, rules and versions are left out.
 *
 * Laws (-DONLY=n asserts only one): 1 no charge lands in another key's slot (I3). 2 One key never has two committed
 * slots, not even full ones (I3). 3 By the clock readings of the calls, no more than CAPACITY is admitted between two
 * refills; reset and evict begin again (I1). 4 Each denial meets, during its call, a funnel that lacked tokens.
 * 5 Alone, a call ends (I4, I6). Deadlock is looked for, too.
 *
 * Variants that must fail, each with the law that it breaks:
 *  TWO_CAS 1            tag and word change one after the other: a charge meets the tag of another key.
 *  NO_SECOND_SCAN 2     two claims that saw no one commit in two slots.
 *  NO_NONCE 2, 3        a tentative slot freed and placed again looks unchanged to a claim that scanned before that.
 *  IGNORE_TENTATIVE 2   two claims pass each other in the second scan: neither is committed yet.
 *  LEAVE_HIGHER 2       a higher claim that scanned before mine was placed commits after I passed it.
 *  LEAVE_LOWER 2        the same, seen from the higher claim.
 *  COMMIT_EARLY 2       the duplicate is in the slot not yet read.
 *  HELP_WITHOUT_SCAN 2  a helper's first scan began before the slot was placed: it proves nothing (3 slots).
 *  STALE_CLOCK 3        the commit stamps the time at which the call began. Since then the key's slot has refilled and
 *                       been reclaimed: one refill is admitted twice, and the new slot is full again too soon.
 *  CLOCK_EARLY 3        the same, with the clock read between the two scans.
 *  TORN 4               a denial pairs a tag with a word read later, and doesn't look again.
 *  NO_HELP 5            a killed claimer's slot stands in the way of its key for ever.
 *  BOTH_YIELD           (PROGRESS) two claims free themselves again and again.
 * And one that must not: KEEP_MINE doesn't free its tentative slot when it gives up; that is thrift, not safety.
 *
 *	spin -a -DEVICT claim.pml && gcc -O2 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c && ./pan -m1000000
 *	spin -a -DSTALE_CLOCK -DN=2 claim.pml && gcc -O2 -DSAFETY -DBFS -o pan pan.c && ./pan; ./pan -r    (shortest)
 */
#include "model.pml"
#ifndef N
#define N 3			/* processes that call take for ever */
#endif
#ifndef SLOTS
#define SLOTS 2			/* the window, shared by all keys */
#endif
#define KEYS 2			/* -DOTHERS=n: the last n processes always want the second key */
#ifndef CAPACITY
#define CAPACITY 1		/* tokens; every call costs one */
#endif
#ifndef TICKS
#define TICKS 1			/* times that all funnels refill */
#endif
#ifndef RESETS
#define RESETS 0		/* slots freed by reset */
#endif
#ifndef STRANGERS
#define STRANGERS 0		/* slots taken by a third key, in one step */
#endif
#ifdef TORN
#define SPLIT
#endif

/* tag: 0 = never used, else a key, TENTATIVE added. */
#define TENTATIVE	4
#define is_tentative(t)	((t) > TENTATIVE)
#define is_committed(t)	((t) != 0 && (t) < TENTATIVE)

/* word of a committed slot: (tick of the last charge, quota left); of a tentative one: a nonce. */
#define WORD(stamp, quota)	(1 + (stamp) * CAPACITY + (quota))
#define STAMP(word)		(((word) - 1) / CAPACITY)
#define QUOTA(word)		(((word) - 1) % CAPACITY)
#define NONCE			64

/* The funnel: what is left in it at a reading of the clock; a tick fills it. */
#define left(word, clk)		(STAMP(word) < (clk) -> CAPACITY : QUOTA(word))
#define stamp_at(word, clk)	(STAMP(word) < (clk) -> (clk) : STAMP(word))

/* Which slot a claim takes: the higher rank first. */
#define TAKE_OVER	5	/* the key's own tentative slot */
#define FREE		4
#define REFILLED	3
#define STEAL		2	/* another key's tentative slot */
#define LACKING		1	/* evict */
#define NOWHERE		0

typedef slot_t { byte tag; byte word };
slot_t slot[SLOTS];
byte now;
byte resets;
byte strangers;
byte stopped;			/* 1 + the only process that still runs */
bit stumbled;			/* it has started over since */

/* What each process remembers of the table: global, so that a nonce can be new to all. */
typedef process_t {
	byte key, clock;
	byte at, tag, word;	/* the candidate: place and exact pair */
	byte seen_tag, seen;	/* the pair read last */
	bit lacked;		/* ghost: at a moment of this call the key lacked tokens */
};
process_t proc[N];
byte spent[(KEYS + 2) * (TICKS + 1)];	/* ghost: tokens admitted, by key and tick */
#define SPENT(key, tick)	spent[(key) * (TICKS + 1) + (tick)]

byte j, r, fresh;	/* used within one step, and then 0 again */

inline mark_lacking(p) {
	for (j : 0 .. SLOTS - 1) {
		if
		:: slot[j].tag == proc[p].key && left(slot[j].word, proc[p].clock) == 0 -> proc[p].lacked = 1
		:: else
		fi
	}
	j = 0
}

/* This process has charged slot `where`. */
inline charged(where) {
	law(1, slot[where].tag == my.key);			/* I3: no wrong key */
	r = 0;
	for (j : 0 .. SLOTS - 1) {
		if
		:: slot[j].tag == my.key -> r++
		:: else
		fi
	}
	law(2, r == 1);						/* I3: no duplicate */
	r = STAMP(slot[where].word);
	SPENT(my.key, r)++;
	law(3, SPENT(my.key, r) <= CAPACITY);			/* I1 */
	r = 0;
	for (j : 0 .. N - 1) {
		if
		:: proc[j].key == my.key && left(slot[where].word, proc[j].clock) == 0 -> proc[j].lacked = 1
		:: else
		fi
	}
	j = 0
}

/* A number that no slot holds and no process remembers is as good as one never used. */
inline new_nonce() {
	fresh = NONCE;
#ifndef NO_NONCE
	j = 0;
	do
	:: j < N && (proc[j].word == fresh || proc[j].seen == fresh) -> fresh++; j = 0
	:: j < N && proc[j].word != fresh && proc[j].seen != fresh -> j++
	:: j >= N && j < N + SLOTS && slot[j - N].word == fresh -> fresh++; j = 0
	:: j >= N && j < N + SLOTS && slot[j - N].word != fresh -> j++
	:: j == N + SLOTS -> break
	od;
	j = 0
#endif
}

#ifdef EVICT
#define EVICTABLE	LACKING
#else
#define EVICTABLE	NOWHERE
#endif
#ifdef NO_HELP
#define OWN_TENTATIVE	NOWHERE
#else
#define OWN_TENTATIVE	TAKE_OVER
#endif
#define RANK(t, w)	((t) == my.key + TENTATIVE -> OWN_TENTATIVE : ((t) == 0 -> FREE : \
			(is_tentative(t) -> STEAL : (STAMP(w) < my.clock -> REFILLED : EVICTABLE))))

#if N > 2
#define helped(w)	(proc[(_pid + 1) % N].word == (w) || proc[(_pid + 2) % N].word == (w))
#else
#define helped(w)	(proc[1 - _pid].word == (w))
#endif
#define HOLDS(where, t, w)	(slot[where].tag == (t) && slot[where].word == (w))
#define remember_seen()	my.at = i; my.tag = my.seen_tag; my.word = my.seen
#define forget_seen()	my.seen_tag = 0; my.seen = 0
#define forget()	my.at = 0; my.tag = 0; my.word = 0; i = 0; best = 0; forget_seen()

#ifdef SOLO
#define start_over()	forget(); next = SCAN_1; law(5, !stopped || !stumbled); stumbled = (stopped != 0)
#else
#define start_over()	forget(); next = SCAN_1
#endif
#define done()		forget(); my.key = 0; my.clock = 0; my.lacked = 0; next = CALL

#ifdef KEEP_MINE
#define give_up()	start_over()
#else
#define give_up()	forget_seen(); i = 0; next = GIVE_UP
#endif

#ifdef COMMIT_EARLY
#define SCAN_2_END	(SLOTS - 1)
#else
#define SCAN_2_END	SLOTS
#endif

/* What the second scan does about another tentative slot of the key. */
#if defined(LEAVE_LOWER) || defined(IGNORE_TENTATIVE)
#define lower_found()	scan_2_on()
#else
#define lower_found()	give_up()
#endif
#if defined(LEAVE_HIGHER) || defined(IGNORE_TENTATIVE)
#define higher_found()	scan_2_on()
#elif defined(BOTH_YIELD)
#define higher_found()	give_up()
#else
#define higher_found()	next = KILL
#endif

#define scan_2_on()	forget_seen(); i = (i + 1 == my.at -> i + 2 : i + 1); next = (i < SCAN_2_END -> SCAN_2 : CLOCK)
#ifdef CLOCK_EARLY
#define clock_early()	my.clock = now;
#else
#define clock_early()
#endif
#ifdef NO_SECOND_SCAN
#define scan_2_begin()	scan_2_omit()
#else
#define scan_2_begin()	clock_early() forget_seen(); my.tag = 0; best = 0; i = (my.at == 0 -> 1 : 0); \
			next = (i < SCAN_2_END -> SCAN_2 : CLOCK)
#endif
#define scan_2_omit()	forget_seen(); my.tag = 0; best = 0; i = 0; next = CLOCK
#ifdef HELP_WITHOUT_SCAN
#define help_begin()	scan_2_omit()
#else
#define help_begin()	scan_2_begin()
#endif

mtype = { CALL, SCAN_1, SCAN_1_WORD, CHARGE, DENY, PLACE, PLACE_WORD, SCAN_2, SCAN_2_WORD, KILL, GIVE_UP, CLOCK, COMMIT };

active [N] proctype process()
{
	mtype next = CALL;
	byte i;			/* the scan's place */
	byte best;		/* rank of the candidate so far */

	do
#ifdef PROGRESS
	:: next == CALL ->
progress:	atomic {
#else
	:: atomic { next == CALL && RUNS ->
#endif
#ifdef OTHERS
		my.key = (_pid < N - OTHERS -> 1 : 2);
#else
		if
		:: my.key = 1
		:: my.key = 2
		fi;
#endif
		d_step {
			my.clock = now;
			mark_lacking(_pid);
			next = SCAN_1
		}
	}

	/* The first scan. */
	:: BRANCHING_STEP(SCAN_1)
		my.seen_tag = slot[i].tag;
#ifdef SPLIT
		next = SCAN_1_WORD
	}
	:: BRANCHING_STEP(SCAN_1_WORD)
#endif
		my.seen = slot[i].word;
		r = RANK(my.seen_tag, my.seen);
		if
		:: my.seen_tag == my.key -> d_step {
				my.at = 0; my.tag = 0; my.word = 0; best = 0; r = 0;
				next = (left(my.seen, my.clock) == 0 -> DENY : CHARGE)
			}
		:: my.seen_tag != my.key ->
			if
			:: r >= best && r != NOWHERE && !(r == best && r == TAKE_OVER) -> best = r; remember_seen()
			:: r <= best	/* of equals, any: homes differ by key */
			fi;
			d_step {
				r = 0;
				forget_seen();
				i++;
				if
				:: i < SLOTS -> next = SCAN_1
				:: i == SLOTS && best == TAKE_OVER -> help_begin()
				:: i == SLOTS && best == NOWHERE -> EVENT(0, "the window is full"); done()
				:: else -> i = 0; next = PLACE
				fi
			}
		fi
	}

	:: STEP(CHARGE)
		if
#ifdef TWO_CAS
		:: slot[i].word == my.seen ->
#else
		:: HOLDS(i, my.seen_tag, my.seen) ->
#endif
			slot[i].word = WORD(stamp_at(my.seen, my.clock), left(my.seen, my.clock) - 1);
			EVENT(1, "charge in a committed slot");
			charged(i);
			done()
		:: else -> EVENT(2, "a charge finds its slot changed"); start_over()
		fi
	}

	/* A denial writes nothing, and looks once more. */
	:: STEP(DENY)
#ifndef TORN
		if
		:: HOLDS(i, my.seen_tag, my.seen) ->
#endif
			EVENT(3, "denial");
			law(4, my.lacked);
			done()
#ifndef TORN
		:: else -> EVENT(4, "a denial finds its slot changed"); start_over()
		fi
#endif
	}

	:: STEP(PLACE)
		if
#ifdef TWO_CAS
		:: slot[my.at].tag == my.tag ->
			slot[my.at].tag = my.key + TENTATIVE;
			next = PLACE_WORD
#else
		:: HOLDS(my.at, my.tag, my.word) ->
			if
			:: best == REFILLED -> EVENT(5, "reclaim of a refilled slot");
			:: best == STEAL -> EVENT(6, "another key's tentative slot taken");
			:: best == LACKING -> EVENT(7, "evict"); SPENT(my.tag, STAMP(my.word)) = 0
			:: best == FREE
			fi;
			new_nonce();
			slot[my.at].tag = my.key + TENTATIVE;
			slot[my.at].word = fresh;
			my.word = fresh;
			fresh = 0;
			scan_2_begin()
#endif
		:: else -> EVENT(8, "the slot to claim was taken first"); start_over()
		fi
	}
#ifdef TWO_CAS
	:: STEP(PLACE_WORD)
		if
		:: slot[my.at].word == my.word ->
			new_nonce();
			slot[my.at].word = fresh;
			my.word = fresh;
			fresh = 0;
			scan_2_begin()
		:: else -> start_over()
		fi
	}
#endif

	/* The second scan. */
	:: STEP(SCAN_2)
		my.seen_tag = slot[i].tag;
#ifdef SPLIT
		next = SCAN_2_WORD
	}
	:: STEP(SCAN_2_WORD)
#endif
		my.seen = slot[i].word;
		if
		:: my.seen_tag == my.key -> EVENT(9, "a committed twin met"); give_up()
		:: my.seen_tag == my.key + TENTATIVE && i < my.at -> EVENT(10, "a lower tentative twin met"); lower_found()
		:: my.seen_tag == my.key + TENTATIVE && i > my.at -> EVENT(11, "a higher tentative twin met"); higher_found()
		:: else -> scan_2_on()
		fi
	}

	:: STEP(KILL)
		if
		:: HOLDS(i, my.seen_tag, my.seen) -> slot[i].tag = 0; slot[i].word = 0; scan_2_on()
		:: else -> EVENT(12, "a twin changed before it was freed"); start_over()
		fi
	}

	:: STEP(GIVE_UP)
		if
		:: HOLDS(my.at, my.key + TENTATIVE, my.word) -> slot[my.at].tag = 0; slot[my.at].word = 0
		:: else
		fi;
		start_over()
	}

	/*
	 * WHY NOT the clock read before: until the second scan has passed, the key may be committed elsewhere,
	 * refill, and be reclaimed. An older reading would then charge a funnel that has been used already.
	 */
	:: STEP(CLOCK)
#if !defined(STALE_CLOCK) && !defined(CLOCK_EARLY)
		my.clock = now;
#endif
		i = 0;
		next = COMMIT
	}

	:: STEP(COMMIT)
		if
		:: HOLDS(my.at, my.key + TENTATIVE, my.word) ->
			slot[my.at].tag = my.key;
			slot[my.at].word = WORD(my.clock, CAPACITY - 1);
			EVENT(13, "commit");
			if
			:: stopped && helped(my.word) -> EVENT(16, "a claim whose claimer was killed is finished");
			:: !stopped && helped(my.word) -> EVENT(14, "commit of a slot that another claims too");
			:: else
			fi;
			charged(my.at);
			done()
		:: else -> EVENT(15, "a commit finds its slot changed"); start_over()
		fi
	}
	od
}

/* Time, resets, and the death of all processes but one. */
#define STRANGER(p)	d_step { strangers < STRANGERS && (slot[p].tag == 0 || is_committed(slot[p].tag) && STAMP(slot[p].word) < now) -> \
	strangers++; slot[p].tag = 3; slot[p].word = WORD(now, 0) }
#define RESET(p)	d_step { resets < RESETS && is_committed(slot[p].tag) -> resets++; \
	SPENT(slot[p].tag, STAMP(slot[p].word)) = 0; slot[p].tag = 0; slot[p].word = 0 }

active proctype world()
{
	do
	:: now < TICKS -> now++
	:: RESET(0)
	:: RESET(1)
	:: STRANGER(0)
	:: STRANGER(1)
#if SLOTS > 2
	:: RESET(2)
	:: STRANGER(2)
#endif
#ifdef SOLO
	:: stopped == 0 -> stopped = 1
	:: stopped == 0 -> stopped = 2
#if N > 2
	:: stopped == 0 -> stopped = 3
#endif
#endif
	od
}
