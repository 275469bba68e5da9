/*
 * version.pml: rules that change while others decide (lib/segment/rule.c, and what lib/table/table.c and lib/decide/decide.c do about
 * it), searched over all interleavings. `make check` runs it (version.sh).
 *
 * Modelled: N processes that call take for ever, for one key, and a writer that changes the rule's parameters, to
 * another algorithm too (-DALGORITHMS), or removes and redefines it (-DREMOVES), until version CHANGES is out: versions pass the four entries of the ring, and the
 * two bits of a tag, more than once. A step is one shared access: copying parameters is two, changing a slot is one CAS.
 * Decide, convert on meeting, claim in two phases, walk, clear, reclaim of what is full. Which of the places that are
 * free a claim takes is left open. -DTERMS: parameters are copied and filled in two steps; without it, at once with the
 * version (law 1 is what permits that). -DLOOKS: a look that found no slot is checked, as that of a peek or refund is.
 * Killed: a decider that never moves again, which the search contains for each at each step. The writer forgets
 * everything at any step and as often as it likes: the next writer has the lock.
 * -DSOLO: at any moment all but one process are killed; that one ends its call, starting over ALONE times at most.
 * -DTICKS=1: once a tick fills every funnel; a process reads the clock when its call begins, so it may be late.
 * Abstracted: a word holds the tick of its last charge and what is left; capacities are 1 or 2, all costs 1; a
 * nonce is a number that no process remembers. A tag tells its version in two bits, and differs from that of every other:
 * see TWO_BITS. Other keys, evict and modes are left out, and weak ordering. claim.pml has the rest.
 *
 * Laws (-DONLY=n asserts only one): 1 parameters that passed the check are of one version, the one asked for. 2 The key
 * never has two committed slots that count (I3). 3 Tokens neither appear nor vanish (I1): each admission finds a token
 * in the key's account, which a change clamps to the new capacity and only a tick, reset, reclaim or another algorithm
 * fills; each denial finds none; an older version of the same algorithm admits nothing after a newer one has. 4 No word is read under other parameters than it was
 * written under; none that counts is more than a version behind. 5 Nothing of a rule that was removed, or of another
 * algorithm, counts for its successor. 6 Alone, a call ends (I4, I6). 7 A look that found no slot met a moment at which the key had none.
 * Deadlock is looked for, too.
 *
 * Variants that must fail, each with the law that it breaks:
 *  IN_PLACE 1              there is one entry and no ring: the writer fills what others read.
 *  NO_CHECK 1              parameters are copied while four changes are made, and `published` is not looked at again.
 *  PUBLISH_EARLY 1         the version is published before its parameters are there.
 *  IGNORE_OLD 2, 3         a lookup blind to slots of older versions: a duplicate, or a debt forgotten.
 *  NO_WALK_FIRST 4         the writer doesn't finish what its killed predecessor left: slots fall behind.
 *  NO_CHECK_COMMIT 4       a claim begun before the change commits after the walk has passed its slot.
 *  LEAVE_TENTATIVE 4       the walk leaves an older tentative slot alone, whose claimer was past that check.
 *  CHECK_BEFORE_SCAN 4     the claim looks at `published` before its slot is placed: the walk may pass in between.
 *  CONVERT_TWO_CAS 4       tag and word change one after the other: the word meets the next parameters unconverted.
 *  TWO_BITS 4              a slot with no more than these of its version looks unchanged after four changes.
 *  LATE_CONVERT 3          a converter with a late clock puts its own time in the word, which then refills once more
 *                          what had refilled already.
 *  BLIND_TO_ALGORITHM 5    a slot that was written under another algorithm counts for the one that follows.
 *  NO_CLEAR 5              a remover was killed and its successor doesn't clear the table: a process that still has
 *                          the old rule in view charges its slots.
 *  NO_OLD_TENTATIVE 6      a claim starts over when it meets a tentative slot of another version, for ever.
 *  NO_CHECK_NONE 7         tags are judged by versions published later than they were read: too old, so it seems.
 *  BLIND_TO_CONVERTED 7    the look for older versions passes over the slot that was converted since the first look.
 * And two that must not, each a second belt: NO_BORN doesn't ask whether a slot is older than the rule; TRUST_VIEW
 * doesn't look at `published` again after the slot was read, the parameters having been looked at before.
 *
 *	spin -a -DCHANGES=4 version.pml && gcc -O2 -DSAFETY -DNOREDUCE -DVECTORSZ=2048 -o pan pan.c && ./pan -m1000000
 *	spin -a -DTWO_BITS -DN=1 version.pml && gcc -O2 -DSAFETY -DBFS -o pan pan.c && ./pan; ./pan -r     (shortest)
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes that call take for ever */
#endif
#define WRITER N		/* the writer's _pid */
#ifndef SLOTS
#define SLOTS 2			/* the key's window, and the whole table */
#endif
#ifndef CHANGES
#define CHANGES 6		/* the last version */
#endif
#ifndef CAPACITIES
#define CAPACITIES 90		/* bit v: version v has 2 tokens, else 1. 90: 2 1 2 2 1 2 1 ... */
#endif
#ifndef TICKS
#define TICKS 0			/* times that all funnels refill */
#endif
#ifndef RESETS
#define RESETS 0		/* slots freed by reset */
#endif
#ifndef ALONE
#define ALONE 3			/* times that a call starts over after all others were killed */
#endif
#ifndef VERSIONS
#define VERSIONS 4		/* that a tag tells apart, and entries of the ring; 3 wrap sooner, and are enough */
#endif
#ifdef IN_PLACE
#define RING 1
#else
#define RING VERSIONS
#endif
#define CAPACITY(v)	(1 + (CAPACITIES >> (v) & 1))
#ifndef ALGORITHMS
#define ALGORITHMS 0		/* bit v: the algorithm of version v, of two */
#endif
#define ALGORITHM(v)	(ALGORITHMS >> (v) & 1)

/*
 * tag: 0 = never used, else COMMITTED or TENTATIVE and the version. A reader sees the last two bits of the version: the
 * other bits of a tag can only be compared.
 */
#define COMMITTED	16
#define TENTATIVE	32
#define is_tentative(t)	((t) >= TENTATIVE)
#define is_committed(t)	((t) >= COMMITTED && (t) < TENTATIVE)
#ifdef TWO_BITS
#define BITS(v)		((v) % VERSIONS)
#else
#define BITS(v)		(v)
#endif
#define VERSION_BITS(t)	((t) & 15)
#define AGE_AT(v, t)	(((v) + 16 * VERSIONS - VERSION_BITS(t)) % VERSIONS)
/* With the bits as they would be of the version so told: is it the key's? A version of the future is the next one. */
#define is_keys(t)	(VERSION_BITS(t) == BITS(version - AGE(t)) || VERSION_BITS(t) == BITS(version + 1))

/* word of a committed slot: (version written under, tick of the last charge, quota left); of a tentative one: a nonce. */
#define WORD(v, stamp, quota)	((v) << 3 | (stamp) << 2 | (quota))
#define WRITTEN(word)		((word) >> 3)
#define STAMP(word)		((word) >> 2 & 1)
#define QUOTA(word)		((word) & 3)
#define NONCE			128

/* The funnel: what is left in it at a reading of the clock; a tick fills it. */
#define left(word, v, clk)	(STAMP(word) < (clk) -> CAPACITY(v) : QUOTA(word))
#define stamp_at(word, clk)	(STAMP(word) < (clk) -> (clk) : STAMP(word))

/* Which slot a claim takes: the higher rank first. */
#define TAKE_OVER	4	/* the key's own tentative slot */
#define FREE		3	/* or of a rule that is gone */
#define STEAL		2	/* tentative, of another version */
#define NOWHERE		0

typedef slot_t { byte tag; byte word };
slot_t slot[SLOTS];
typedef entry_t { byte first = 1; byte second = 1 };
entry_t ring[RING];	/* each half holds the version that filled it: so a mix shows */
byte version = 1;		/* this and in_use are one word, published by one swap */
bit in_use = 1;
byte born = 1;			/* the version that the rule began with */
byte began = 1;			/* ghost: the version that its algorithm began with */
byte now;
byte resets;
byte stopped;			/* 1 + the only process that still runs */
byte stumbled;			/* times it has started over since */

/* What each process remembers: global, so that a nonce can be new to all. */
typedef process_t {
	byte version;		/* the view */
	byte first, second;	/* the parameters copied */
	bit clock;
	byte at, tag, word;	/* the candidate: place and exact pair */
	byte seen_tag, seen;	/* the pair read last */
	bit lacked_slot;	/* ghost: at a moment of this call the key had none */
};
process_t proc[N + 1];

#define FULL	7
byte tokens = FULL;		/* ghost: the key's true tokens, FULL under whatever parameters, */
byte account_version;		/* ... of this version */
bit account_tick;		/* ... and tick */

byte j, r, fresh;	/* used within one step, and then 0 again */

#define AGE(t)		AGE_AT(version, t)
#ifdef NO_BORN
#define old_enough(t)	(version >= AGE(t))
#else
#define old_enough(t)	(version >= AGE(t) + born)
#endif
#ifdef BLIND_TO_ALGORITHM
#define readable(t)	true
#else
#define readable(t)	(ALGORITHM(version) == ALGORITHM(version - AGE(t)))
#endif
/* A committed slot of the key, by its tag and what is published: rule_load_tag(). */
#define counts(t)	(in_use && is_committed(t) && is_keys(t) && AGE(t) != VERSIONS - 1 && old_enough(t) && readable(t))
#ifdef IGNORE_OLD
#define found_old(t)	false
#else
#define found_old(t)	counts(t)
#endif

inline count_slots() {
	r = 0;
	for (j : 0 .. SLOTS - 1) {
		if
		:: counts(slot[j].tag) -> r++
		:: else
		fi
	}
	j = 0
}

/* After each change of what is committed or published. */
inline look_over() {
	count_slots();
	law(2, r <= 1);						/* I3: no duplicate */
	r = 0;
	for (j : 0 .. SLOTS - 1) {
		if
		:: counts(slot[j].tag) ->
			law(5, WRITTEN(slot[j].word) >= began);
			law(4, WRITTEN(slot[j].word) >= born -> version - WRITTEN(slot[j].word) <= 1 : true)
		:: is_committed(slot[j].tag) && in_use && WRITTEN(slot[j].word) >= born ->
			law(4, version - WRITTEN(slot[j].word) <= 1)
		:: else
		fi
	}
	j = 0
}

#ifdef LOOKS
inline key_lacks_slot() {
	for (j : 0 .. N - 1) { proc[j].lacked_slot = 1 }
	j = 0
}
#else
#define key_lacks_slot()
#endif

/* The account, converted to this process's version at a reading of the clock. A key without a slot stays FULL. */
inline convert_account() {
	if
	:: tokens != FULL && j > account_tick -> tokens = CAPACITY(account_version); account_tick = j
	:: else
	fi;
	if
	:: tokens != FULL && tokens > CAPACITY(my.version) -> tokens = CAPACITY(my.version)
	:: else
	fi;
	account_version = my.version
}

inline clear_account() {
	tokens = FULL;
	account_version = 0;
	account_tick = 0
}

/* This process has admitted one, in slot `where`. */
inline charged(where) {
	law(5, !in_use || my.version >= born);
	if
	:: my.version < began -> EVENT(32, "a charge under the algorithm that was in force when the call began")
	:: else ->
		j = STAMP(slot[where].word);
		law(3, tokens == FULL || (my.version == account_version && j >= account_tick));
		convert_account();
		tokens = (tokens == FULL -> CAPACITY(my.version) : tokens);
		law(3, tokens > 0);				/* I1 */
		tokens = (tokens > 0 -> tokens - 1 : 0);
		account_tick = j;
		j = 0;
		look_over()
	fi
}

/* A number that no slot holds and no process remembers is as good as one never used. */
inline new_nonce() {
	fresh = NONCE;
	j = 0;
	do
	:: j <= N && (proc[j].word == fresh || proc[j].seen == fresh) -> fresh++; j = 0
	:: j <= N && proc[j].word != fresh && proc[j].seen != fresh -> j++
	:: j > N && j <= N + SLOTS && slot[j - N - 1].word == fresh -> fresh++; j = 0
	:: j > N && j <= N + SLOTS && slot[j - N - 1].word != fresh -> j++
	:: j == N + SLOTS + 1 -> break
	od;
	j = 0
}

/* Of a committed slot's word the version is a ghost: nothing in it tells. */
#define SAME(a, b)	((a) == (b) || ((a) < NONCE && (b) < NONCE && ((a) & 7) == ((b) & 7)))
#define HOLDS(where, t, w)	(slot[where].tag == (t) && SAME(slot[where].word, w))
#define PUBLISHED_STILL		(in_use && version == my.version)
#define see()			my.seen_tag = slot[i].tag; my.seen = slot[i].word
#define forget_seen()		my.seen_tag = 0; my.seen = 0
#define forget_params()		my.first = 0; my.second = 0
#define forget_candidate()	my.at = 0; my.tag = 0; my.word = 0
#define forget()		forget_candidate(); forget_params(); forget_seen(); my.version = 0; i = 0; best = 0
#define free(where)		if \
				:: is_committed(slot[where].tag) -> key_lacks_slot() \
				:: else \
				fi; \
				slot[where].tag = 0; slot[where].word = 0

#ifdef SOLO
#define stumble()	if :: stopped == _pid + 1 -> stumbled++ :: else fi; law(6, stumbled <= ALONE)
#else
#define stumble()	skip
#endif
#define start_over()	forget(); next = LOAD; stumble()
#define done()		forget(); my.clock = 0; my.lacked_slot = 0; next = CALL
#define give_up()	forget_seen(); i = 0; next = GIVE_UP

#define scan(state)	forget_seen(); i = 0; next = state
#define scan_on(state, after)	forget_seen(); i++; \
			if \
			:: i < SLOTS -> next = state \
			:: else -> i = 0; next = after \
			fi

#ifdef LOOKS
#define look_ends()	law(7, my.lacked_slot)
#define LOOK_END	CHECK_NONE
#else
#define look_ends()
#define LOOK_END	SURVEY
#endif
#ifdef TRUST_VIEW
#define slot_found()	next = (left(my.seen, my.version, my.clock) == 0 -> DENY : CHARGE)
#else
#define slot_found()	next = CHECK_FOUND
#endif
#ifdef NO_CHECK
#define params_copied()	params_checked()
#else
#define params_copied()	next = CHECK
#endif
#define params_checked()	law(1, my.first == my.version && my.second == my.version); forget_params(); i = 0; next = FIND

#if TICKS > 0
#define COMMIT_BEGIN	CLOCK
#else
#define COMMIT_BEGIN	COMMIT
#endif
#if defined(NO_CHECK_COMMIT) || defined(CHECK_BEFORE_SCAN)
#define SCAN_2_END	COMMIT_BEGIN
#else
#define SCAN_2_END	CHECK_COMMIT
#endif
#ifdef CHECK_BEFORE_SCAN
#define PLACE_BEGIN	CHECK_PLACE
#else
#define PLACE_BEGIN	PLACE
#endif

/* The second scan leaves out the candidate. */
#define scan_2_begin()	forget_seen(); my.tag = 0; best = 0; i = (my.at == 0 -> 1 : 0); next = SCAN_2
#define scan_2_on()	forget_seen(); i = (i + 1 == my.at -> i + 2 : i + 1); \
			if \
			:: i < SLOTS -> next = SCAN_2 \
			:: else -> i = 0; next = SCAN_2_END \
			fi

/* How a conversion ended, for a decider and for the writer's walk. */
#define converted()	if \
			:: _pid != WRITER -> start_over() \
			:: else -> walk_on() \
			fi
#define not_converted()	forget_params(); forget_seen(); my.version = 0; \
			if \
			:: _pid != WRITER -> start_over() \
			:: else -> next = WALK; stumble() \
			fi
#define walk_on()	forget_params(); forget_seen(); my.version = 0; i++; \
			if \
			:: i < SLOTS -> next = WALK \
			:: else -> i = 0; next = after \
			fi
#define clear_on()	forget_seen(); i++; \
			if \
			:: i < SLOTS -> next = CLEAR \
			:: else -> i = 0; next = after \
			fi
#define OLD		(my.version - AGE_AT(my.version, my.seen_tag))
#ifdef LATE_CONVERT
#define converted_stamp	my.clock
#else
#define converted_stamp	stamp_at(my.seen, my.clock)
#endif

#ifdef PUBLISH_EARLY
#define NEXT	version
#define FILL_BEGIN	PUBLISH
#else
#define NEXT	(version + 1)
#ifdef TERMS
#define FILL_BEGIN	FILL_1
#else
#define FILL_BEGIN	PUBLISH
#endif
#endif

#ifdef TERMS
#define DEFINE_BEGIN	FILL_1
#else
#define DEFINE_BEGIN	BORN
#endif

mtype = { CALL, LOAD, COPY_1, COPY_2, CHECK, FIND, CHECK_FOUND, CHARGE, DENY, FIND_OLD, FIND_OLD_JUDGE, CHECK_NONE,
	SURVEY, SURVEY_JUDGE, CHECK_PLACE, PLACE, SCAN_2, SCAN_2_JUDGE, KILL, GIVE_UP, CHECK_COMMIT, CLOCK, COMMIT,
	CONVERT, CONVERT_JUDGE, OLD_1, OLD_2, CHECK_OLD, CONVERT_CAS, CONVERT_WORD, CONVERT_FREE,
	LOCK, WALK, FILL_1, FILL_2, BORN, PUBLISH, REMOVE, CLEAR, CLEAR_CAS };

active [N + 1] proctype process()
{
	mtype next = (_pid == WRITER -> LOCK : CALL);
	mtype after = LOCK;	/* the writer's: what follows the walk */
	byte i;			/* the scan's place */
	byte best;		/* rank of the candidate so far */

	do
	:: STEP(CALL)
		my.clock = now;
#ifdef LOOKS
		count_slots();
		my.lacked_slot = (r == 0);
		r = 0;
#endif
		next = LOAD
	}

	/* rule_load() */
	:: STEP(LOAD)
		if
		:: !in_use -> done()
#ifdef TERMS
		:: else -> my.version = version; next = COPY_1
#else
		:: else -> my.version = version; next = FIND
#endif
		fi
	}
	:: STEP(COPY_1) my.first = ring[my.version % RING].first; next = COPY_2 }
	:: STEP(COPY_2) my.second = ring[my.version % RING].second; params_copied() }
	:: STEP(CHECK)
		if
		:: PUBLISHED_STILL -> params_checked()
		:: else -> EVENT(0, "params change while they are read"); start_over()
		fi
	}

	/* table_find() */
	:: STEP(FIND)
		see();
		if
		:: my.seen_tag == COMMITTED + BITS(my.version) -> slot_found()
		:: else -> scan_on(FIND, FIND_OLD)
		fi
	}
	/*
	 * Here the one look serves for parameters and slot: in the code, what was copied may be a mix until it is taken. See
	 * NO_CHECK, and TRUST_VIEW.
	 */
	:: STEP(CHECK_FOUND)
		if
		:: PUBLISHED_STILL -> next = (left(my.seen, my.version, my.clock) == 0 -> DENY : CHARGE)
		:: else -> EVENT(30, "the rule changes while its slot is found"); start_over()
		fi
	}

	:: STEP(CHARGE)
		if
		:: HOLDS(i, my.seen_tag, my.seen) ->
			law(4, WRITTEN(slot[i].word) == my.version);
			slot[i].word = WORD(my.version, stamp_at(my.seen, my.clock), left(my.seen, my.version, my.clock) - 1);
			EVENT(2, "charge in a committed slot");
			if
			:: version != my.version -> EVENT(3, "charge in a slot that is still of the version before")
			:: else
			fi;
			charged(i);
			done()
		:: else -> EVENT(4, "a charge finds its slot changed"); start_over()
		fi
	}

	:: STEP(DENY)
		if
		:: HOLDS(i, my.seen_tag, my.seen) ->
			EVENT(5, "denial");
			law(4, WRITTEN(slot[i].word) == my.version);
			law(3, my.version < began || (my.version == account_version && account_tick >= my.clock && tokens == 0));
			done()
		:: else -> start_over()
		fi
	}

	/* table_find_old(): a slot of the version in force is one that was converted since table_find() passed. */
	:: STEP(FIND_OLD)
		see();
		if
		:: my.seen_tag == COMMITTED + BITS(my.version) ->
#ifdef BLIND_TO_CONVERTED
			scan_on(FIND_OLD, LOOK_END)
#else
			EVENT(6, "a slot is converted between two looks"); start_over()
#endif
		:: is_committed(my.seen_tag) && my.seen_tag != COMMITTED + BITS(my.version) -> next = FIND_OLD_JUDGE
		:: else ->
			scan_on(FIND_OLD, LOOK_END)
		fi
	}
	:: STEP(FIND_OLD_JUDGE)
		if
		:: found_old(my.seen_tag) -> EVENT(7, "a decision meets a slot of an older version"); my.version = 0; next = CONVERT
		:: else ->
			scan_on(FIND_OLD, LOOK_END)
		fi
	}

	/* A peek, or a refund to what it takes for a full funnel, ends here. */
	:: STEP(CHECK_NONE)
		if
#ifdef NO_CHECK_NONE
		:: true -> look_ends(); next = SURVEY
#endif
		:: PUBLISHED_STILL -> look_ends(); next = SURVEY
		:: else -> EVENT(8, "the rule changes while no slot is found"); start_over()
		fi
	}

	/* The first scan of a claim. */
	:: BRANCHING_STEP(SURVEY)
		see();
		if
		:: my.seen_tag == COMMITTED + BITS(my.version) -> d_step { EVENT(31, "the first scan meets the key"); start_over() }
		:: is_committed(my.seen_tag) && my.seen_tag != COMMITTED + BITS(my.version) -> next = SURVEY_JUDGE
		:: !is_committed(my.seen_tag) ->
			r = (my.seen_tag == 0 -> FREE : (my.seen_tag == TENTATIVE + BITS(my.version) -> TAKE_OVER : STEAL));
			if
			:: r >= best && !(r == best && r == TAKE_OVER) -> best = r; my.at = i; my.tag = my.seen_tag; my.word = my.seen
			:: r <= best	/* of equals, any */
			fi;
			d_step {
				r = 0;
				scan_on(SURVEY, PLACE_BEGIN);
				if
				:: next == PLACE_BEGIN && best == TAKE_OVER -> scan_2_begin()
				:: else
				fi
			}
		fi
	}
	:: BRANCHING_STEP(SURVEY_JUDGE)
		if
		:: found_old(my.seen_tag) -> d_step { EVENT(9, "the first scan meets the key in another version"); start_over() }
		:: !found_old(my.seen_tag) ->
			if
			:: FREE >= best -> best = FREE; my.at = i; my.tag = my.seen_tag; my.word = my.seen
			:: FREE <= best
			fi;
			d_step {
				scan_on(SURVEY, PLACE_BEGIN);
				if
				:: next == PLACE_BEGIN && best == TAKE_OVER -> scan_2_begin()
				:: next == PLACE_BEGIN && best == NOWHERE -> start_over()
				:: else
				fi
			}
		fi
	}

#ifdef CHECK_BEFORE_SCAN
	:: STEP(CHECK_PLACE)
		if
		:: PUBLISHED_STILL -> next = PLACE
		:: else -> start_over()
		fi
	}
#endif
	:: STEP(PLACE)
		if
		:: HOLDS(my.at, my.tag, my.word) ->
			if
			:: best == STEAL -> EVENT(10, "a tentative slot of another version taken")
			:: else
			fi;
			new_nonce();
			free(my.at);
			slot[my.at].tag = TENTATIVE + BITS(my.version);
			slot[my.at].word = fresh;
			my.word = fresh;
			fresh = 0;
			scan_2_begin()
		:: else -> EVENT(11, "the slot to claim was taken first"); start_over()
		fi
	}

	/* The second scan. */
	:: STEP(SCAN_2)
		see();
		if
		:: my.seen_tag == COMMITTED + BITS(my.version) -> EVENT(12, "a committed twin met"); give_up()
		:: is_committed(my.seen_tag) && my.seen_tag != COMMITTED + BITS(my.version) -> next = SCAN_2_JUDGE
		:: my.seen_tag == TENTATIVE + BITS(my.version) && i < my.at -> EVENT(13, "a lower tentative twin met"); give_up()
		:: my.seen_tag == TENTATIVE + BITS(my.version) && i > my.at -> EVENT(14, "a higher tentative twin met"); next = KILL
		:: is_tentative(my.seen_tag) && my.seen_tag != TENTATIVE + BITS(my.version) -> next = SCAN_2_JUDGE
		:: else -> scan_2_on()
		fi
	}
	:: STEP(SCAN_2_JUDGE)
		if
		:: found_old(my.seen_tag) -> EVENT(16, "a committed twin of another version met"); give_up()
		:: is_tentative(my.seen_tag) && is_keys(my.seen_tag) ->
			EVENT(15, "a tentative twin of another version met");
#ifdef NO_OLD_TENTATIVE
			give_up()
#else
			next = KILL
#endif
		:: else -> scan_2_on()
		fi
	}

	:: STEP(KILL)
		if
		:: HOLDS(i, my.seen_tag, my.seen) -> slot[i].tag = 0; slot[i].word = 0; scan_2_on()
		:: else -> EVENT(17, "a twin changed before it was freed"); start_over()
		fi
	}

	:: STEP(GIVE_UP)
		if
		:: HOLDS(my.at, TENTATIVE + BITS(my.version), my.word) -> slot[my.at].tag = 0; slot[my.at].word = 0
		:: else
		fi;
		start_over()
	}

	:: STEP(CHECK_COMMIT)
		if
		:: PUBLISHED_STILL -> next = COMMIT_BEGIN
		:: else -> EVENT(18, "the rule changes during a claim"); give_up()
		fi
	}

	:: STEP(CLOCK) my.clock = now; next = COMMIT }

	:: STEP(COMMIT)
		if
		:: HOLDS(my.at, TENTATIVE + BITS(my.version), my.word) ->
			slot[my.at].tag = COMMITTED + BITS(my.version);
			slot[my.at].word = WORD(my.version, my.clock, CAPACITY(my.version) - 1);
			EVENT(19, "commit");
			if
			:: version != my.version -> EVENT(20, "commit in the version before")
			:: else
			fi;
			charged(my.at);
			done()
		:: else -> EVENT(21, "a commit finds its slot changed"); start_over()
		fi
	}

	/* table_convert_slot(): the slot seen, by a decider or by the walk. */
	:: STEP(CONVERT)
		if
		:: !in_use || AGE(my.seen_tag) == 0 -> converted()
#ifdef LEAVE_TENTATIVE
		:: in_use && AGE(my.seen_tag) != 0 && is_tentative(my.seen_tag) -> converted()
#endif
		:: else -> my.version = version; next = CONVERT_JUDGE
		fi
	}
	:: STEP(CONVERT_JUDGE)
		if
		:: !counts(my.seen_tag) -> next = CONVERT_FREE
		:: counts(my.seen_tag) && !PUBLISHED_STILL -> not_converted()
#ifdef TERMS
		:: else -> next = OLD_1
#else
		:: else -> next = CONVERT_CAS
#endif
		fi
	}
	:: STEP(OLD_1) my.first = ring[OLD % RING].first; next = OLD_2 }
	:: STEP(OLD_2) my.second = ring[OLD % RING].second; next = CHECK_OLD }
	:: STEP(CHECK_OLD)
		if
		:: PUBLISHED_STILL ->
			law(1, my.first == OLD && my.second == OLD);
			forget_params();
			next = CONVERT_CAS
		:: else -> EVENT(22, "the rule changes during a conversion"); not_converted()
		fi
	}
	:: STEP(CONVERT_FREE)
		if
		:: HOLDS(i, my.seen_tag, my.seen) ->
			if
			:: is_tentative(my.seen_tag) -> EVENT(23, "the walk frees a tentative slot")
			:: else
			fi;
			free(i);
			converted()
		:: else -> not_converted()
		fi
	}
	:: STEP(CONVERT_CAS)
		if
#ifdef CONVERT_TWO_CAS
		:: slot[i].tag == my.seen_tag && slot[i].word == my.seen ->
			slot[i].tag = COMMITTED + BITS(my.version);
			next = CONVERT_WORD
#else
		:: HOLDS(i, my.seen_tag, my.seen) ->
			law(4, WRITTEN(slot[i].word) == OLD);
			r = left(my.seen, OLD, my.clock);
			slot[i].tag = COMMITTED + BITS(my.version);
			slot[i].word = WORD(my.version, converted_stamp, (r < CAPACITY(my.version) -> r : CAPACITY(my.version)));
			if
			:: r > CAPACITY(my.version) -> EVENT(24, "a conversion takes what the new capacity does not hold")
			:: else
			fi;
			if
			:: _pid == WRITER && after == FILL_BEGIN -> EVENT(25, "the next writer finishes a killed one's walk")
			:: _pid == WRITER && after != FILL_BEGIN -> EVENT(26, "the walk converts a slot")
			:: else -> EVENT(27, "a decision converts a slot")
			fi;
			law(3, account_version == OLD);
			j = my.clock;
			convert_account();
			j = 0;
			r = 0;
			look_over();
			converted()
#endif
		:: else -> not_converted()
		fi
	}
#ifdef CONVERT_TWO_CAS
	:: STEP(CONVERT_WORD)
		if
		:: slot[i].tag == COMMITTED + BITS(my.version) && slot[i].word == my.seen ->
			slot[i].word = WORD(my.version, STAMP(my.seen), QUOTA(my.seen));
			converted()
		:: else -> not_converted()
		fi
	}
#endif

	/* The writer, which holds the lock, if it is not killed. */
	:: atomic { next == LOCK && version < CHANGES && RUNS ->
		my.clock = now;
		if
		:: in_use ->
#ifdef NO_WALK_FIRST
			next = FILL_BEGIN
#else
			after = FILL_BEGIN; next = WALK
#endif
#ifdef REMOVES
		:: in_use -> next = REMOVE
		:: !in_use ->
#ifdef NO_CLEAR
			next = DEFINE_BEGIN
#else
			after = DEFINE_BEGIN; next = CLEAR
#endif
#endif
		fi
	}
#ifdef SOLO
	:: next == LOCK && version == CHANGES -> skip	/* at rest */
#endif
	:: atomic { _pid == WRITER && next != LOCK && stopped == 0 ->
		d_step { EVENT(28, "a writer is killed"); forget(); my.clock = 0; after = LOCK; next = LOCK }
	}

	:: STEP(WALK)
		see();
		if
		:: my.seen_tag == 0 -> walk_on()
		:: else -> next = CONVERT
		fi
	}
	:: STEP(FILL_1) ring[NEXT % RING].first = NEXT; next = FILL_2 }
	:: STEP(FILL_2)
		ring[NEXT % RING].second = NEXT;
#ifdef PUBLISH_EARLY
		after = LOCK; next = WALK
#else
		next = (in_use -> PUBLISH : BORN)
#endif
	}
	:: STEP(BORN) born = version + 1; next = PUBLISH }
	:: STEP(PUBLISH)
		version++;
		if
		:: in_use && ALGORITHM(version) == ALGORITHM(version - 1) -> after = LOCK; next = WALK
		:: in_use && ALGORITHM(version) != ALGORITHM(version - 1) ->
			EVENT(33, "the algorithm changes");
			began = version;
			clear_account();
			key_lacks_slot();
			after = LOCK;
			next = WALK
		:: else ->
			began = version;
			EVENT(29, "a removed rule's id is given to another");
			in_use = 1;
			clear_account();
			my.clock = 0;
			after = LOCK;
			next = LOCK
		fi;
#ifdef PUBLISH_EARLY
		next = FILL_1;
#endif
		look_over()
	}
	:: STEP(REMOVE)
		in_use = 0;
		key_lacks_slot();
		after = LOCK;
		next = CLEAR
	}
	:: STEP(CLEAR)
		see();
		if
		:: my.seen_tag == 0 -> clear_on()
		:: else -> next = CLEAR_CAS
		fi
	}
	:: STEP(CLEAR_CAS)
		if
		:: HOLDS(i, my.seen_tag, my.seen) -> free(i); clear_on()
		:: else -> forget_seen(); next = CLEAR; stumble()
		fi
	}
	od
}

/* Time, resets, and the death of all processes but one. */
#define RESET(p)	d_step { resets < RESETS && counts(slot[p].tag) -> resets++; \
	clear_account(); key_lacks_slot(); slot[p].tag = 0; slot[p].word = 0 }
#define is_full(p)	(left(slot[p].word, WRITTEN(slot[p].word), now) == CAPACITY(WRITTEN(slot[p].word)))
#define RECLAIM(p)	d_step { counts(slot[p].tag) && is_full(p) -> \
	EVENT(1, "a full slot is taken for another key"); \
	clear_account(); key_lacks_slot(); slot[p].tag = 0; slot[p].word = 0 }

active proctype world()
{
	do
	:: now < TICKS -> now++
	:: RESET(0)
	:: RESET(1)
	:: RECLAIM(0)
	:: RECLAIM(1)
#if SLOTS > 2
	:: RESET(2)
	:: RECLAIM(2)
#endif
#ifdef SOLO
	:: stopped == 0 -> stopped = 1
	:: stopped == 0 -> stopped = 2
	:: stopped == 0 -> stopped = N + 1
#endif
	od
}
