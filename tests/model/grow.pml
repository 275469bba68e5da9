/*
 * grow.pml: a key's way from one table into the next, lib/table/migrate.h, searched over all interleavings (grow.sh).
 *
 * Modelled: N processes that take from one key for ever, over its window of OLD slots in the first table and of NEW in
 * the next; a grower that publishes the next one, freezes what is left of the first and, when nothing is in it, publishes
 * that; each step is one shared access, a slot being one (tag, word) pair. Old views, freezing, carrying, burying,
 * claims in two phases, help, refill, reclaim by strangers (STRANGERS), evict (EVICTS) and one reset (-DRESET).
 * Killed: a process, or the grower, that never moves again, which the search contains for each of them at each step.
 * -DCHANGE: a writer raises the capacity of the key's rule. A word that has refilled then lacks the rest of the new
 * capacity: converted, it is one of the tick at which it was. A writer or grower that is killed gives the lock back.
 * -DDIES: each carrier is killed before it buries, and another process begins in its place.
 * -DSOLO: at any moment all but one process are killed, the grower too; that one starts over three times at most.
 * Abstracted as in claim.pml: a tick refills, capacity 1, nonces, one window; freezing a slot is read and swap in one,
 * since a process that loses the swap tries again. So is converting. How versions differ is version.pml's, rings
 * are ring.pml's.
 *
 * Laws (-DONLY=n asserts only one): 1 There are never two committed slots of the key that are not frozen, and never
 * two that are (I3). 2 By the clock readings of the calls no more than the capacity is admitted between two refills;
 * reset and evict begin again (I1). 3 No decision changes what is frozen. 4 What was taken before a reset is nowhere
 * when the reset has ended. 5 Alone, a call ends (I4, I6). 6 The key is in both tables only while a process that
 * carried it has not buried it yet, or was killed before. 7 What has refilled in the first table, while that is not the
 * present one, holds nothing any more, whatever the rule becomes. Deadlock is looked for, too.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NO_FREEZE 1          the key is carried, and charged where it was.
 *  FREEZE_FOUND 1       only the key's own slot is frozen: an old view claims another one.
 *  LEAVE_TENTATIVE 1    what is tentative is not frozen: an old view commits it.
 *  THAW 3               an old view takes frozen slots for free ones.
 *  NO_CARRY 2           the key begins again in the next table.
 *  CHARGE_FROZEN 2      a decision is made on a frozen slot, while another carries what it was.
 *  BURY_FIRST 2         buried before it is committed, the key is nowhere in between.
 *  NO_RECHECK 4         a word is committed that a reset has passed.
 *  RESET_NEW_FIRST 4    a reset clears the present table before the old one.
 *  LEAVE_LIVE 2         the first table is left while the key is in it.
 *  LEAVE_UNFROZEN 1     the first table is left without being frozen: an old view decides on in it.
 *  CARRY_REFILLED 2     what refilled on the way is carried: to a process with an older clock it refills once more.
 *  NO_STATE 2           an old view's second look passed slots that were frozen behind it.
 *  KEEP_REFILLED 6      the key is claimed in the next table, and what it was stays in the first.
 *  LOSE_BURY 6          what a writer converted before it could be buried stays.
 *  CONVERT_REFILLED 7   a writer converts what has refilled in the first table.
 */
#include "model.pml"
#ifndef N
#define N 2
#endif
#ifndef OLD
#define OLD 2
#endif
#ifndef NEW
#define NEW 2
#endif
#ifndef TICKS
#define TICKS 1
#endif
#ifndef STRANGERS
#define STRANGERS 0
#endif
#ifndef EVICTS
#define EVICTS 0
#endif
#define SLOTS (OLD + NEW)

/* tag: 0 = free, KEY, or a stranger; with flags. */
#define KEY		1	/* the rule's version is beside it: `ver` */
#define STRANGER	2
#define TENTATIVE	4
#define FROZEN		8
#define is_frozen(t)	((t) >= FROZEN)

/* word of a committed slot: the tick of its last charge, which a later one refills; of a tentative one: a nonce. */
#define WORD(tick)	(1 + (tick))
#define TICK(word)	((word) - 1)
#define NONCE		64
#define NOWHERE		SLOTS

/* The header's state: which table is the present one, and is the other looked at? */
#define FIRST		0
#define MOVING		1
#define LEFT		2
#define begin(view)	((view) == FIRST -> 0 : OLD)
#define end(view)	((view) == FIRST -> OLD : SLOTS)

/* Which slot a claim takes: the higher rank first. */
#define TAKE_OVER	3
#define FREE		2
#define REFILLED	1

typedef slot_t { byte tag; byte word; bit ver; bit aged /* ghost: charged before the reset began */ };
slot_t slot[SLOTS];
byte state;
byte now;
byte strangers, evicts;
bit version;			/* of the rule that is in force */
bit locked;			/* by the writer or the grower */
byte resetting;			/* 1: under way, 2: ended */
byte stopped;			/* 1 + the only process that still runs */
byte stumbles;			/* how often it has started over since */

typedef process_t {
	byte view, clock;
	byte at, tag, word;	/* the candidate */
	byte from, carried;	/* in the first table, frozen: place and word */
	byte seen;
	bit ver;		/* of the rule that the call knows */
	bit burying;		/* ghost: carried, and not buried yet */
	bit aged;		/* ghost: of `carried` */
};
process_t proc[N];
byte spent[TICKS + 1];

#ifdef SOLO
#define OTHERS_RUN	(stopped == 0)
#else
#define OTHERS_RUN	true
#endif
#define HOLDS(where, t, w)	(slot[where].tag == (t) && slot[where].word == (w))
#define IS_OF_KEY(t)	((t) == KEY || (t) == KEY + FROZEN)
/* The rule's version is in the key's tags. */
#define HOLDS_KEY(where, t, w)	(HOLDS(where, t, w) && slot[where].ver == my.ver)

byte j, r, fresh;	/* used within one step, and then 0 again */

inline count_slots() {
	r = 0;
	fresh = 0;
	for (j : 0 .. SLOTS - 1) {
		if
		:: slot[j].tag == KEY -> r++
		:: slot[j].tag == KEY + FROZEN -> fresh++
		:: else
		fi;
	}
	law(1, r <= 1 && fresh <= 1);
	if
#ifndef DIES
	:: fresh == 1 && r == 1 ->
		r = 0;
		for (j : OLD .. SLOTS - 1) {
			r = (slot[j].tag == KEY -> 1 : r)
		}
		for (j : 0 .. N - 1) {
			r = (proc[j].burying -> 0 : r)
		}
		law(6, r == 0)
#endif
	:: else
	fi;
	fresh = 0;
	r = 0;
	j = 0
}

/* What is free has no version. */
inline free(p) {
	slot[p].tag = (is_frozen(slot[p].tag) -> FROZEN : 0); slot[p].word = 0; slot[p].ver = 0; slot[p].aged = 0
}

#ifdef CONVERT_REFILLED
#define is_over(p)	false
#else
#define is_over(p)	((p) < OLD && state != FIRST && TICK(slot[p].word) < now)
#endif

/* To the version in force: table_convert_slot(). */
inline convert(p) {
	if
	:: slot[p].ver != version && IS_OF_KEY(slot[p].tag) && is_over(p) -> EVENT(21, "what has refilled in the first table is freed by a change"); free(p)
	:: slot[p].ver != version && IS_OF_KEY(slot[p].tag) && !is_over(p) ->
		law(7, p >= OLD || state == FIRST || TICK(slot[p].word) >= now);
		slot[p].word = (TICK(slot[p].word) < now -> WORD(now) : slot[p].word);
		slot[p].ver = version
	:: slot[p].ver != version && (slot[p].tag == KEY + TENTATIVE || slot[p].tag == KEY + TENTATIVE + FROZEN) -> free(p)
	:: else
	fi
}

inline nothing_aged() {
	for (j : 0 .. SLOTS - 1) {
		law(4, resetting != 2 || !slot[j].aged || (slot[j].tag != KEY && slot[j].tag != KEY + FROZEN));
	}
	j = 0
}

inline charged(where) {
	slot[where].aged = 0;
	spent[TICK(slot[where].word)]++;
	law(2, spent[TICK(slot[where].word)] <= 1);
	count_slots()
}

inline new_nonce() {
	fresh = NONCE;
	j = 0;
	do
	:: j < N && proc[j].word == fresh -> fresh++; j = 0
	:: j < N && proc[j].word != fresh -> j++
	:: j >= N && j < N + SLOTS && slot[j - N].word == fresh -> fresh++; j = 0
	:: j >= N && j < N + SLOTS && slot[j - N].word != fresh -> j++
	:: j == N + SLOTS -> break
	od;
	j = 0
}

#define forget()	my.burying = 0; my.ver = 0; my.at = 0; my.tag = 0; my.word = 0; my.from = NOWHERE; my.carried = 0; my.seen = 0; my.aged = 0; \
			i = 0; best = 0; froze = 0
#ifdef SOLO
#define start_over()	forget(); next = VIEW; stumbles = (stopped -> stumbles + 1 : 0); law(5, stumbles <= 3)
#define done()		forget(); my.clock = 0; my.view = 0; next = CALL; stumbles = 0
#else
#define start_over()	forget(); next = VIEW
#define done()		forget(); my.clock = 0; my.view = 0; next = CALL
#endif
#define give_up()	i = 0; next = GIVE_UP

#define RANK(t, w)	((t) == KEY + TENTATIVE -> (slot[i].ver == my.ver -> TAKE_OVER : 0) : ((t) == 0 -> FREE : \
			((t) == STRANGER && TICK(w) < my.clock -> REFILLED : 0)))

#define scan_2_on()	i = (i + 1 == my.at -> i + 2 : i + 1); next = (i < end(my.view) -> SCAN_2 : STATE)
#define scan_2_begin()	best = 0; my.tag = 0; i = (my.at == begin(my.view) -> my.at + 1 : begin(my.view)); \
			next = (i < end(my.view) -> SCAN_2 : STATE)

#ifdef NO_FREEZE
#define frozen(t)	(t)
#elif defined(FREEZE_FOUND)
#define frozen(t)	((t) == KEY -> (t) + FROZEN : (t))
#elif defined(LEAVE_TENTATIVE)
#define frozen(t)	(is_frozen(t) || (t) >= TENTATIVE -> (t) : (t) + FROZEN)
#else
#define frozen(t)	(is_frozen(t) -> (t) : (t) + FROZEN)
#endif
#ifdef NO_FREEZE
#define CARRIED_TAG	KEY
#else
#define CARRIED_TAG	(KEY + FROZEN)
#endif

mtype = { CALL, VIEW, SCAN, CHARGE, DENY, FREEZE, CONVERT, BURY_REFILLED, PLACE, SCAN_2, KILL, GIVE_UP, STATE, RECHECK, BURY_EARLY, CLOCK, COMMIT, BURY };

active [N] proctype process()
{
	mtype next = CALL;
	byte i, best;
	bit froze;

	do
	:: STEP(CALL)
		my.from = NOWHERE;
		my.clock = now;
		next = VIEW
	}
	:: STEP(VIEW)
		my.view = state;
		my.ver = version;
		i = begin(my.view);
		next = SCAN
	}

	/* Twice where there is a table before: to find the key, and, that being frozen, to find it a place. */
	:: BRANCHING_STEP(SCAN)
		if
		:: slot[i].tag == KEY && froze -> EVENT(0, "the key was carried meanwhile"); d_step { start_over() }
		:: slot[i].tag == KEY && !froze && slot[i].ver != my.ver -> next = CONVERT
		:: slot[i].tag == KEY && !froze && slot[i].ver == my.ver -> d_step {
				my.seen = slot[i].word;
				best = 0; my.at = 0; my.tag = 0; my.word = 0;
				next = (TICK(my.seen) < my.clock -> CHARGE : DENY)
			}
#ifdef THAW
		:: slot[i].tag != KEY ->
			r = (is_frozen(slot[i].tag) -> FREE : RANK(slot[i].tag, slot[i].word));
#else
		:: is_frozen(slot[i].tag) -> EVENT(1, "an old view meets what is frozen"); d_step { start_over() }
		:: slot[i].tag != KEY && !is_frozen(slot[i].tag) ->
			r = RANK(slot[i].tag, slot[i].word);
#endif
			if
			:: r > best || (r == best && r != 0 && r != TAKE_OVER) ->
				best = r; my.at = i; my.tag = slot[i].tag; my.word = slot[i].word
			:: r <= best
			fi;
			d_step {
				r = 0;
				i++;
				if
				:: i < end(my.view)
				:: i == end(my.view) && my.view == MOVING && !froze ->
					my.at = 0; my.tag = 0; my.word = 0; best = 0;
					i = 0; next = FREEZE
				:: i == end(my.view) && (my.view != MOVING || froze) && best == TAKE_OVER ->
					EVENT(2, "a tentative slot is taken over"); scan_2_begin()
				:: i == end(my.view) && (my.view != MOVING || froze) && best == 0 ->
					EVENT(3, "the window is full"); done()
				:: else -> i = 0; next = PLACE
				fi
			}
		fi
	}

	/* What is decided on in the old view, before it is frozen or after: only one of both goes through. */
	:: STEP(CHARGE)
		if
		:: HOLDS_KEY(i, KEY, my.seen) ->
			if
			:: i < OLD && state != FIRST -> EVENT(4, "an old view charges what is not frozen yet")
			:: else -> EVENT(5, "charge")
			fi;
			slot[i].word = WORD(my.clock);
			charged(i);
			done()
		:: else ->
			if
			:: i < OLD && is_frozen(slot[i].tag) -> EVENT(6, "a charge finds its slot frozen")
			:: else -> EVENT(7, "a charge finds its slot changed")
			fi;
			start_over()
		fi
	}
	:: STEP(DENY)
		if
		:: HOLDS_KEY(i, KEY, my.seen) -> EVENT(8, "denial"); done()
		:: else -> start_over()
		fi
	}

	:: STEP(FREEZE)
		if
		:: slot[i].tag == TENTATIVE + KEY -> EVENT(9, "what is tentative is frozen")
		:: else
		fi;
		slot[i].tag = frozen(slot[i].tag);
		if
		:: slot[i].tag == CARRIED_TAG -> my.from = i; my.carried = slot[i].word; my.aged = slot[i].aged
		:: else
		fi;
		count_slots();
		i++;
		if
		:: i < OLD
		:: i == OLD ->
			froze = 1;
			next = SCAN;
			if
			:: my.from != NOWHERE && slot[my.from].ver != my.ver -> next = CONVERT; i = my.from
			:: my.from != NOWHERE && slot[my.from].ver == my.ver && TICK(my.carried) < my.clock ->
				EVENT(10, "what is frozen has refilled");
#ifdef KEEP_REFILLED
				my.from = NOWHERE; my.carried = 0; my.aged = 0
#else
				next = BURY_REFILLED
#endif
			:: else
			fi;
#ifdef NO_CARRY
			next = SCAN; my.from = NOWHERE; my.carried = 0; my.aged = 0;
#endif
#ifdef CHARGE_FROZEN
			if
			:: my.from != NOWHERE && now > TICK(my.carried) ->
				slot[my.from].word = WORD(now); charged(my.from); done()
			:: else
			fi
#endif
		fi
	}

	/* A slot of another version than the call's: it is older, or the call's view is. */
	:: STEP(CONVERT)
		EVENT(22, "a decision converts a slot");
		convert(i);
		count_slots();
		start_over()
	}
	:: STEP(BURY_REFILLED)
		if
		:: HOLDS_KEY(my.from, CARRIED_TAG, my.carried) ->
			free(my.from);
			my.from = NOWHERE; my.carried = 0; my.aged = 0;
			next = SCAN
		:: else -> EVENT(23, "what has refilled was buried or converted first"); start_over()
		fi
	}

	:: STEP(PLACE)
		if
		:: HOLDS(my.at, my.tag, my.word) ->
			law(3, !is_frozen(my.tag));
			new_nonce();
			slot[my.at].tag = KEY + TENTATIVE;
			slot[my.at].word = fresh;
			slot[my.at].ver = my.ver;
			my.word = fresh;
			fresh = 0;
			scan_2_begin()
		:: else -> EVENT(11, "the slot to claim was taken or frozen first"); start_over()
		fi
	}
	:: STEP(SCAN_2)
		my.seen = slot[i].word;
		if
		:: slot[i].tag == KEY || slot[i].tag == KEY + TENTATIVE && slot[i].ver == my.ver && i < my.at -> my.seen = 0; give_up()
		:: slot[i].tag == KEY + TENTATIVE && (slot[i].ver != my.ver || i > my.at) -> next = KILL
		:: else -> my.seen = 0; scan_2_on()
		fi
	}
	:: STEP(KILL)
		if
		:: HOLDS(i, KEY + TENTATIVE, my.seen) -> free(i); my.seen = 0; scan_2_on()
		:: else -> start_over()
		fi
	}
	:: STEP(GIVE_UP)
		if
		:: HOLDS(my.at, KEY + TENTATIVE, my.word) -> free(my.at)
		:: else
		fi;
		start_over()
	}
	:: STEP(STATE)
		i = 0;
#ifndef NO_STATE
		if
		:: state != my.view -> EVENT(12, "the state changed beside a claim"); give_up()
		:: state == my.view && version != my.ver -> EVENT(24, "the rule changed beside a claim"); give_up()
		:: else ->
#endif
#ifdef BURY_FIRST
			next = (my.from == NOWHERE -> CLOCK : BURY_EARLY)
#elif defined(NO_RECHECK)
			next = (my.from == NOWHERE -> CLOCK : COMMIT)
#else
			next = (my.from == NOWHERE -> CLOCK : RECHECK)
#endif
#ifndef NO_STATE
		fi
#endif
	}
#ifdef BURY_FIRST
	:: STEP(BURY_EARLY)
		if
		:: HOLDS(my.from, CARRIED_TAG, my.carried) ->
			free(my.from); next = COMMIT
		:: else -> give_up()
		fi
	}
#endif
	:: STEP(RECHECK)
		if
#ifndef CARRY_REFILLED
		:: HOLDS_KEY(my.from, CARRIED_TAG, my.carried) && TICK(my.carried) < now ->
			EVENT(15, "what is carried refills on the way");
			free(my.from);
			give_up()
		:: HOLDS_KEY(my.from, CARRIED_TAG, my.carried) && TICK(my.carried) >= now -> next = COMMIT
#else
		:: HOLDS_KEY(my.from, CARRIED_TAG, my.carried) -> next = COMMIT
#endif
		:: else -> EVENT(13, "what is to be carried was buried or reset"); give_up()
		fi
	}
	:: STEP(CLOCK)
		my.clock = now;
		next = COMMIT
	}
	:: STEP(COMMIT)
		if
		:: HOLDS(my.at, KEY + TENTATIVE, my.word) && my.from == NOWHERE ->
			slot[my.at].tag = KEY;
			slot[my.at].word = WORD(my.clock);
			EVENT(14, "commit");
			charged(my.at);
			done()
		:: HOLDS(my.at, KEY + TENTATIVE, my.word) && my.from != NOWHERE ->
			slot[my.at].tag = KEY;
			slot[my.at].word = my.carried;
			slot[my.at].aged = my.aged;
			my.burying = 1;
			EVENT(16, "carry");
			count_slots();
			nothing_aged();
#if defined(BURY_FIRST) || defined(DIES)
			start_over()
#else
			next = BURY
#endif
		:: else ->
			if
			:: is_frozen(slot[my.at].tag) -> EVENT(17, "a commit finds its slot frozen")
			:: else -> EVENT(18, "a commit finds its slot changed")
			fi;
			start_over()
		fi
	}
	:: STEP(BURY)
		if
		:: HOLDS_KEY(my.from, KEY + FROZEN, my.carried) -> free(my.from); start_over()
#ifndef LOSE_BURY
		:: !HOLDS_KEY(my.from, KEY + FROZEN, my.carried) && slot[my.from].tag == KEY + FROZEN ->
			EVENT(25, "what was carried is converted before it is buried");
			my.carried = slot[my.from].word; my.ver = slot[my.from].ver
#endif
		:: else -> EVENT(19, "what was carried was carried by another too"); start_over()
		fi;
		count_slots()
	}
	od
}

#ifdef CHANGE
#define LOCK()		d_step { OTHERS_RUN && !locked -> locked = 1 }
#define UNLOCK()	locked = 0
#else
#define LOCK()		skip
#define UNLOCK()	skip
#endif

/* Is the key in the next table? */
#define IS_CARRIED	(slot[OLD].tag == KEY || slot[SLOTS - 1].tag == KEY)

/*
 * Grow, then leave the first table when nothing is in it but what is in the next one too; from the beginning, as
 * often as it takes.
 */
active proctype grower()
{
	byte i;
	bit found;

	LOCK();
	d_step { OTHERS_RUN -> state = MOVING; UNLOCK() };
again:
	i = 0;
	LOCK();
	do
	:: d_step { OTHERS_RUN && i < OLD && !found ->
#ifndef LEAVE_UNFROZEN
		slot[i].tag = frozen(slot[i].tag);
		count_slots();
#endif
#ifdef LEAVE_LIVE
		i++
#else
		if
		:: IS_OF_KEY(slot[i].tag) && TICK(slot[i].word) >= now && IS_CARRIED -> found = 1
		:: IS_OF_KEY(slot[i].tag) && TICK(slot[i].word) >= now && !IS_CARRIED -> i = SLOTS
		:: IS_OF_KEY(slot[i].tag) && TICK(slot[i].word) < now -> free(i); i++
		:: else -> i++
		fi
#endif
	   }
	:: d_step { OTHERS_RUN && found ->
		EVENT(26, "a killed carrier's key is buried by the grower");
		if
		:: slot[i].tag == KEY + FROZEN -> free(i)
		:: else
		fi;
		found = 0;
		i++
	   }
	:: d_step { i == SLOTS -> UNLOCK() }; goto again
#ifdef CHANGE
	:: d_step { i < OLD -> found = 0; UNLOCK() }; goto again
#endif
	:: d_step { OTHERS_RUN && i == OLD -> state = LEFT; UNLOCK(); EVENT(20, "the first table is left") }; break
	od
}

#ifdef CHANGE
active proctype writer()
{
	byte i;

	LOCK();
	d_step { OTHERS_RUN -> version = 1 };
	do
	:: d_step { OTHERS_RUN && i < SLOTS -> convert(i); count_slots(); i++ }
	:: d_step { OTHERS_RUN -> i = 0; UNLOCK() }; break
	od
}
#endif

#define ANEW(p)		spent[TICK(slot[p].word)] = 0
#define TAKE(p)		d_step { OTHERS_RUN && strangers < STRANGERS && (slot[p].tag == 0 || slot[p].tag < TENTATIVE && TICK(slot[p].word) < now) -> \
	strangers++; slot[p].tag = STRANGER; slot[p].word = WORD(now); slot[p].ver = 0; slot[p].aged = 0 }
#define EVICT(p)	d_step { OTHERS_RUN && evicts < EVICTS && slot[p].tag == KEY -> \
	evicts++; ANEW(p); free(p) }

active proctype world()
{
	do
	:: d_step { OTHERS_RUN && now < TICKS -> now++ }
	:: TAKE(0)
	:: TAKE(OLD)
	:: TAKE(OLD + 1)
	:: EVICT(OLD)
	:: EVICT(OLD + 1)
#ifdef SOLO
	:: stopped == 0 -> stopped = 1
	:: stopped == 0 -> stopped = 2
#endif
	od
}

#ifdef RESET
inline clear(p) {
	if
	:: IS_OF_KEY(slot[p].tag) -> ANEW(p); free(p)
	:: slot[p].tag == KEY + TENTATIVE -> free(p)
	:: else
	fi
}

#ifdef RESET_NEW_FIRST
#define ORDER(i)	((i) < NEW -> OLD + (i) : (i) - NEW)
#else
#define ORDER(i)	(i)
#endif

active proctype reset()
{
	byte i, seen;

	d_step {
		resetting = 1;
		for (j : 0 .. SLOTS - 1) {
			slot[j].aged = (slot[j].tag == KEY || slot[j].tag == KEY + FROZEN)
		}
		for (j : 0 .. N - 1) {
			proc[j].aged = (proc[j].carried != 0)
		}
		j = 0
	}
	do
	:: i == 0 -> seen = state; i = 1
	:: d_step { i > 0 && i <= SLOTS -> clear(ORDER(i - 1)); i++ }
	:: d_step { i > SLOTS && seen != state -> i = 0 }
	:: d_step { i > SLOTS && seen == state -> resetting = 2; nothing_aged(); EVENT(27, "a reset ends") }; break
	od
}
#endif
