/*
 * ring.pml: the ring of times behind a slot of algorithm WINDOW, which admits at most CAPACITY tokens in any PERIOD,
 * searched over all interleavings. `make check` runs it (ring.sh).
 *
 * Modelled: N processes that call take for ever, in one slot with its ring of CELLS times; each step is one shared
 * access (-DSPLIT: tag and word are read in two steps). One CAS of tag and word admits: the word tells how many cells
 * are valid, and of the latest admission its tokens and its time in ticks of 2^S nanoseconds. Its cells are written
 * after that, by the first process that comes: the one that was admitted, or the next to be. Expiry, denial, new lap, claim in
 * two phases, reset; and a clock that steps back (-DSTEPS=1). A process reads the clock when its call begins, so it may
 * be late by any time. A second key (-DOTHERS=n: of the last n processes) has a longer period.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * -DSOLO: at any moment all but one process are killed; that one may stumble ALONE times more.
 * -DPROGRESS (pan -DNP, -l): no endless run in which no call ends. It holds for one key, as in claim.pml.
 * Reset stands for evict too: a slot in use that is free from one moment to the next. A call that read the slot before
 * and admits after it, since the word came again in the same tick, is not counted: it is one more that reset gives away.
 * A step of the clock: what was admitted at times that are now to come counts as admitted now, and what had left the
 * window has left it. A call that decided by the clock from before admits nothing. No nanosecond after the step is one
 * that was read before it: see SAME_NANOSECOND.
 * -DUNDOS=n: this many admissions are undone, as take_all does: the earlier word is swapped back in, while the slot stands
 * as the admission left it. The ring has twice as many cells as the window has tokens then, and the newest KEPT are laid to
 * the laws. After a reset a word may come again in its tick; then the tokens of the process that wrote it are taken back.
 * Abstracted: a claim has no second scan, and a nonce is a number that is not remembered (claim.pml has both); a word's
 * time does not wrap; weak ordering, rules and versions are left out.
 *
 * Laws (-DONLY=n asserts only one): 1 no window holds more than CAPACITY, by times that lie between the reading of the
 * clock and the admission (I1). 2 Each denial met, during its call, a window without room for it, to the tick (I2).
 * 3 Each valid cell but the latest admission's holds the tick of what was admitted, no stranger's (I3). 4 Alone, a
 * call ends (I4, I6). Deadlock is looked for, too.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NO_HELP 1, 3       the word is advanced over cells that no process wrote: they hold times long gone.
 *  WAIT 4, PROGRESS   a process that finds a cell unwritten starts over, and waits for a killed one.
 *  PLAIN_STORE 3      the admitted process comes late and stores over a cell that is valid again.
 *  NO_CHECK 3         a completer that doesn't look at the slot takes a valid cell for one to be written.
 *  CHECK_FIRST 3      the same, if it looks at the slot before it reads the cell, and not in between.
 *  TRUST_LAST 1       of two cells the last one tells that both are written. After a reset it is so by chance, by what
 *                     was admitted before in the same tick. So each cell has to be looked at; then order is free.
 *  DESCENDING 1       the same without a reset, if the last cell is written first (with TRUST_LAST).
 *  ROUND_DOWN 1       a word's tick stands for its first nanosecond: a completer makes the admission older.
 *  EXACT 1            a cell is taken at its word, not as the end of its tick: after a reset it may be of an earlier
 *                     admission in the same tick, or by a completer of that. (Without resets it holds.)
 *  TIME_NOW 1         an admission at an older reading than the last goes back in time.
 *  EARLY_CLOCK 1, 3   a claim at the time at which the call began: the ring may hold later times, as if valid.
 *  KEEP_LAP 2         a claim that keeps the count of valid cells keeps another key's, whose period is shorter.
 *  NO_LOOK 2          a denial pairs the word with a cell that was written later.
 *  NARROW 2           with as many cells as tokens, what is undone stands where the oldest entries were.
 *  UNDO_BLIND 1       an admission is undone whatever stands in the slot.
 *  UNDO_LAP 3         an admission that began a lap is undone to the word before, whose cells it overwrote.
 *  LAP_IN_TICK 1      a lap begins in the tick of the last admission: when that is undone, its word can come again in the
 *                     same tick, of a ring that holds other times, and an admission that was decided on the first goes through.
 *  UNSIGNED 1         a cell later than now, since the clock stepped back, is taken for one very old.
 *  STEP_ONE 3         the step back forgets that of several cells of the latest admission none may be written.
 *  NO_DOUBT 1         a late reading is taken for a clock that stepped back.
 *  SAME_NANOSECOND 1  a completer is stopped while the clock steps back and until it shows, to the nanosecond, what it
 *                     found in the cell: that is valid now, and it overwrites it. Not cured.
 *
 *	spin -a -DCOST=2 ring.pml && gcc -O1 -DSAFETY -DNOREDUCE -DVECTORSZ=2048 -o pan pan.c && ./pan -m100000
 *	spin -a -DNO_HELP ring.pml && gcc -O1 -DSAFETY -DBFS -o pan pan.c && ./pan; ./pan -r     (shortest)
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes that call take for ever */
#endif
#ifndef OTHERS
#define OTHERS 0		/* the last this many want the second key */
#endif
#ifndef CAPACITY
#define CAPACITY 2		/* tokens in a window, CELLS at most */
#endif
#ifndef UNDOS
#define UNDOS 0			/* admissions that are undone */
#endif
#ifndef CELLS
#if UNDOS > 0 && !defined(NARROW)
#define CELLS (2 * CAPACITY)	/* of the slot's ring, 4 at most */
#else
#define CELLS 2
#endif
#endif
#ifndef KEPT
#define KEPT (UNDOS > 0 -> CAPACITY : CELLS)	/* this many of the newest are looked at */
#endif
#ifndef COST
#define COST 1			/* a call takes 1 .. COST tokens, 2 at most */
#endif
#ifndef PERIOD
#define PERIOD 2		/* the window's length */
#endif
#ifndef S
#define S 0			/* a word's tick is 2^S nanoseconds, 2 at most */
#endif
#ifndef TICKS
#define TICKS 4			/* nanoseconds that pass */
#endif
#ifndef RESETS
#define RESETS 0		/* times that the slot is freed */
#endif
#ifndef STEPS
#define STEPS 0			/* times that the clock steps back */
#endif
#ifndef SLACK
#define SLACK (STEPS > 0 -> 0 : 16)	/* nanoseconds that the latest may honestly be ahead of a reading */
#endif
#ifndef ALONE
#define ALONE 2			/* times that a call stumbles after all others were killed */
#endif
#define START 4			/* cells of zeros are old */
#define period(key)	(PERIOD - 1 + (key))
#if STEPS > 0 && !defined(SAME_NANOSECOND)
#define PASS 2			/* readings are even before the step, and odd after it */
#else
#define PASS 1
#endif

/* tag: 0 = free, else a key, TENTATIVE added; the word is then a nonce. */
#define TENTATIVE	4
#define is_key(tag)	((tag) != 0 && (tag) < TENTATIVE)

/* word: (tick of the latest admission, its tokens, valid cells: up to CELLS in the first lap, then CELLS and more). */
#define WORD(tick, took, n)	((tick) << 4 | (took) - 1 << 3 | (n))
#define TICK(word)		((word) >> 4)
#define TOOK(word)		(1 + ((word) >> 3 & 1))
#define VALID(word)		((word) & 7)
#define VALID_AND(word, cost)	(VALID(word) + (cost) < 2 * CELLS -> VALID(word) + (cost) : VALID(word) + (cost) - CELLS)
#define FIRST_VALID(word)	(VALID(word) < KEPT -> 0 : VALID(word) - KEPT)
#define LATEST(word)		(VALID(word) - TOOK(word))
#define CELL(index)		cell[(index) % CELLS]
#define TRUTH(index)		truth[(index) % CELLS]

/* A time of which the tick is known is the tick's last nanosecond: never too early. */
#define REST			((1 << S) - 1)
#ifdef ROUND_DOWN
#define latest_time(word)	(TICK(word) << S)
#else
#define latest_time(word)	((TICK(word) << S) + REST)
#endif
#define is_written(word, time)	((time) >> S == TICK(word))

typedef slot_t { byte tag; byte word };
slot_t slot;
byte cell[CELLS];
byte now = START;
byte resets;
byte steps;
byte undos;
byte stopped;			/* 1 + the only process that still runs */
byte stumbled;			/* times it has started over since, or found a cell changed */

/* What each process remembers: global, so that the laws can look at it. */
typedef process_t {
	byte key, cost, clock;
	byte tag, word;		/* the pair read, or written */
	byte last;		/* time of the latest admission */
	byte time;		/* what goes into the cells */
	byte seen;		/* the cell read last */
	byte before;		/* the word that an admission replaced; 0 = none, or one that says no more than none */
	byte resets, steps;	/* ghost: those before the slot, and the clock, were read */
	bit lacked;		/* ghost: at a moment of this call the window lacked room for it */
};
process_t proc[N];
byte truth[CELLS];		/* ghost: what the valid cells ought to hold */
#define TIMES	(TICKS + 1 + S)
byte spent[2 * (RESETS + 1) * TIMES];	/* ghost: tokens admitted, by resets, key and time */
#define SPENT(era, key, at)	spent[(2 * (era) + (key) - 1) * TIMES + (at) - START]

#ifdef SOLO
#define stumble()	stumbled = (stopped == _pid + 1 -> stumbled + 1 : 0); law(4, stumbled <= ALONE)
#else
#define stumble()	skip
#endif

byte j, r, m;	/* used within one step, and then 0 again */

inline mark_lacking(p) {
	if
	:: slot.tag == proc[p].key ->
		j = FIRST_VALID(slot.word);
		do
		:: j < VALID(slot.word) ->
			r = (TRUTH(j) + REST + period(slot.tag) > proc[p].clock -> r + 1 : r);
			j++
		:: else -> break
		od;
		proc[p].lacked = (proc[p].lacked || r + proc[p].cost > CAPACITY);
		j = 0;
		r = 0
	:: else
	fi
}

/* After each change of slot or ring. */
inline look_over() {
	if
	:: is_key(slot.tag) ->
		j = FIRST_VALID(slot.word);
		do
		:: j < LATEST(slot.word) ->
			law(3, CELL(j) >> S == TRUTH(j) >> S || (steps > 0 && CELL(j) > TRUTH(j)));
			j++
		:: else -> break
		od;
		j = 0
	:: else
	fi
}

/* This process has admitted my.cost tokens, as of my.time. */
inline admitted() {
	law(1, my.clock <= my.time && (my.time <= now + REST || steps > 0));
	j = LATEST(slot.word);
	do
	:: j < VALID(slot.word) -> TRUTH(j) = my.time; j++
	:: else -> break
	od;
	if
	:: my.resets == resets -> SPENT(resets, my.key, my.time) = SPENT(resets, my.key, my.time) + my.cost
	:: else
	fi;
	for (j : my.time + 1 - period(my.key) .. my.time) {	/* all windows with this time in them */
		m = (j < START -> START : j);
		do
		:: m < j + period(my.key) && m < START + TIMES -> r = r + SPENT(resets, my.key, m); m++
		:: else -> break
		od;
		law(1, r <= CAPACITY);
		r = 0;
		m = 0
	}
	j = 0;
	look_over();
	mark_lacking(0);
	mark_lacking(1);
#if N > 2
	mark_lacking(2)
#endif
}

inline stepped_back() {
	if
	:: steps > 0 ->
		for (j : 0 .. CELLS - 1) {
			truth[j] = (truth[j] > my.clock -> my.clock : truth[j])
		}
		for (j : START .. START + TIMES - 1) {
			r = SPENT(resets, my.key, j);
			if
			:: j + period(my.key) <= my.last -> SPENT(resets, my.key, j) = 0
			:: j + period(my.key) > my.last && j > my.clock ->
				SPENT(resets, my.key, j) = 0;
				SPENT(resets, my.key, my.clock) = SPENT(resets, my.key, my.clock) + r
			:: else
			fi
		}
		j = 0;
		r = 0
	:: else
	fi
}

/* Tokens that are out of the window for every reading that a call may have are forgotten: fewer states. */
inline forget_spent() {
	if
	:: steps == STEPS ->
		m = now;
		for (j : 0 .. N - 1) {
			m = (proc[j].clock != 0 && proc[j].clock < m -> proc[j].clock : m)
		}
		j = 0;
		do
		:: j < TIMES && START + j + period(2) <= m ->
			for (r : 0 .. 2 * (RESETS + 1) - 1) { spent[r * TIMES + j] = 0 }
			j++
		:: else -> break
		od;
		j = 0;
		r = 0;
		m = 0
	:: else
	fi
}

/* A number that no process remembers is as good as one never used. */
inline new_nonce() {
	m = 1;
	do
	:: j < N && proc[j].tag >= TENTATIVE && proc[j].word == m -> m++; j = 0
	:: j < N && !(proc[j].tag >= TENTATIVE && proc[j].word == m) -> j++
	:: j == N -> break
	od;
	j = 0
}

inline clear_truth() {
	for (j : 0 .. CELLS - 1) { truth[j] = 0 }
	j = 0
}

#define HOLDS		(slot.tag == my.tag && slot.word == my.word)
#define forget_slot()	my.tag = 0; my.word = 0; my.last = 0; my.time = 0; my.resets = 0; i = 0; lap = 0; helping = 0
#define start_over()	forget_slot(); next = READ; stumble()
#define done()		forget_slot(); my.before = 0; my.key = 0; my.cost = 0; my.clock = 0; my.steps = 0; my.lacked = 0; next = CALL; \
			forget_spent()

#ifdef UNSIGNED
#define is_over(time, key)	((time) > my.clock || (time) + period(key) <= my.clock)
#else
#define is_over(time, key)	((time) + period(key) <= my.clock)
#endif
/* At the beginning of this tick. */
#ifdef LAP_IN_TICK
#define was_over(time, key)	true
#else
#define was_over(time, key)	((time) + period(key) <= ((my.clock >> S) << S) || (time) > my.clock)
#endif
#ifdef EXACT
#define cell_time	my.seen
#define word_read()	next = LAST
#else
#define cell_time	(my.seen | REST)
#define word_read()	judge()
#endif
#ifdef TIME_NOW
#define stamp		my.clock
#else
#define stamp		(my.last > my.clock -> my.last : my.clock)
#endif
#ifdef STEP_ONE
#define STEP_TOOK	1
#else
#define STEP_TOOK	TOOK(my.word)
#endif

#define advance()	my.time = stamp; i = 0; helping = 0; next = ADVANCE
#define begin_lap()	lap = 1; my.time = my.clock; next = ADVANCE
#ifdef KEEP_LAP
#define claim()		my.time = my.clock; next = ADVANCE
#else
#define claim()		lap = 1; next = PLACE
#endif
#if defined(NO_HELP)
#define allowed()	advance()
#elif defined(TRUST_LAST)
#define allowed()	next = LAST
#else
#define allowed()	help()
#endif
#ifdef WAIT
#define help_write()	start_over()
#else
#define help_write()	next = FOUND
#endif

/* complete(): my.time into the cells of my.word's admission, as long as the slot is as it was. */
#define help()		helping = 1; my.time = my.last; complete()
#define complete()	i = LATEST(my.word); next = COMPLETE
#define complete_on()	i++; \
			if \
			:: i < VALID(my.word) -> next = COMPLETE \
			:: i == VALID(my.word) && helping -> advance() \
			:: i == VALID(my.word) && !helping && undos < UNDOS -> next = UNDO \
			:: else -> done() \
			fi
#if defined(CHECK_FIRST)
#define COMPLETE	CHECK
#define FOUND		WRITE
#define CHECKED		LOAD
#elif defined(NO_CHECK)
#define COMPLETE	LOAD
#define FOUND		WRITE
#define CHECKED		WRITE
#else
#define COMPLETE	LOAD
#define FOUND		CHECK
#define CHECKED		WRITE
#endif
#ifdef DESCENDING
#define at		(VALID(my.word) - 1 - (i - LATEST(my.word)))
#else
#define at		i
#endif
#ifdef PLAIN_STORE
#define found_still	(!helping || CELL(at) == my.seen)
#else
#define found_still	(CELL(at) == my.seen)
#endif

/* The entry that has to have left the window. */
#define ENTRY		(VALID(my.word) + my.cost - 1 - CAPACITY)

inline judge() {
	if
	:: my.tag == my.key && my.last > my.clock + SLACK -> next = DOUBT
	:: my.tag == my.key && my.last <= my.clock + SLACK ->
		if
		:: is_over(my.last, my.key) && was_over(my.last, my.key) ->
			EVENT(0, "all that was admitted has left the window");
			begin_lap()
		:: is_over(my.last, my.key) && !was_over(my.last, my.key) -> allowed()
		:: !is_over(my.last, my.key) && VALID(my.word) + my.cost <= CAPACITY -> allowed()
#ifndef EXACT
		:: !is_over(my.last, my.key) && VALID(my.word) + my.cost > CAPACITY && ENTRY >= LATEST(my.word) -> next = DENY
#endif
		:: else -> next = OLDEST
		fi
	:: my.tag != my.key && is_over(my.last, my.tag) -> EVENT(1, "a slot is reclaimed"); claim()
	:: else -> EVENT(2, "the slot is in use by another key"); done()
	fi
}

mtype = { UNDO, CALL, READ, READ_WORD, LAST, OLDEST, DENY, PLACE, CLOCK, ADVANCE, LOAD, CHECK, WRITE, DOUBT, STEP_BACK };

active [N] proctype process()
{
	mtype next = CALL;
	byte i;			/* the cell to complete */
	bit helping;		/* it is another's */
	bit lap;		/* the ring begins again */

	do
#ifdef PROGRESS
	:: next == CALL ->
progress:	atomic {
#else
	:: atomic { next == CALL && RUNS ->
#endif
		if
		:: my.cost = 1
#if COST > 1
		:: my.cost = 2
#endif
		fi;
		d_step {
			my.key = (_pid < N - OTHERS -> 1 : 2);
			my.clock = now;
			my.steps = steps;
			mark_lacking(_pid);
			next = READ
		}
	}

	:: STEP(READ)
		my.tag = slot.tag;
		my.resets = resets;
#ifdef SPLIT
		next = READ_WORD
	}
	:: STEP(READ_WORD)
#endif
		my.word = slot.word;
		if
		:: my.tag == my.key + TENTATIVE -> EVENT(20, "a claim is taken over"); lap = 1; next = CLOCK
		:: !is_key(my.tag) && my.tag != my.key + TENTATIVE -> claim()
		:: is_key(my.tag) && VALID(my.word) == 0 -> start_over()	/* no pair at all: read in two steps */
		:: else -> my.last = latest_time(my.word); word_read()
		fi
	}

#if defined(EXACT)
	:: STEP(LAST)
		my.seen = CELL(VALID(my.word) - 1);
		my.last = (is_written(my.word, my.seen) -> my.seen : my.last);
		my.seen = 0;
		judge()
	}
#elif defined(TRUST_LAST)
	:: STEP(LAST)
		my.seen = CELL(VALID(my.word) - 1);
		if
		:: is_written(my.word, my.seen) -> advance()
		:: else -> help()
		fi;
		my.seen = 0
	}
#endif

	:: STEP(OLDEST)
		my.seen = CELL(ENTRY);
#ifdef EXACT
		my.seen = (ENTRY >= LATEST(my.word) && !is_written(my.word, my.seen) -> latest_time(my.word) : my.seen);
#endif
		if
		:: is_over(cell_time, my.key) -> allowed()
		:: else -> next = DENY
		fi;
		my.seen = 0
	}

	/* A denial writes nothing, and looks once more. */
	:: STEP(DENY)
		if
#ifdef NO_LOOK
		:: true ->
#else
		:: HOLDS ->
#endif
			EVENT(3, "denial");
			law(2, my.lacked || steps > 0);
			done()
#ifndef NO_LOOK
		:: else -> EVENT(4, "a denial finds its slot changed"); start_over()
#endif
		fi
	}

	:: STEP(PLACE)
		if
		:: HOLDS ->
			new_nonce();
			my.tag = my.key + TENTATIVE;
			my.word = m;
			my.last = 0;
			m = 0;
			slot.tag = my.tag;
			slot.word = my.word;
			clear_truth();
			my.resets = resets;
			next = CLOCK
		:: else -> EVENT(5, "the slot to claim was taken first"); start_over()
		fi
	}
	/* WHY NOT the clock read before: the slot may have been in use since, and times in the ring be later. */
	:: STEP(CLOCK)
#ifndef EARLY_CLOCK
		my.clock = now;
		my.steps = steps;
#endif
		my.time = my.clock;
		next = ADVANCE
	}

	:: STEP(ADVANCE)
		if
		:: my.steps != steps -> done()
		:: my.steps == steps && HOLDS ->
			if
			:: my.tag == my.key && lap -> EVENT(6, "a new lap of the same key"); clear_truth()
			:: my.tag == my.key && !lap && VALID(my.word) + my.cost >= 2 * CELLS -> EVENT(7, "a lap ends")
			:: my.tag != my.key -> EVENT(8, "a claim"); clear_truth()
			:: else
			fi;
			if
			:: my.time > my.clock -> EVENT(9, "an admission at an older reading than the last")
			:: else
			fi;
#ifdef UNDO_LAP
			my.before = (my.tag == my.key -> my.word : 0);
#else
			my.before = (my.tag == my.key && !lap -> my.word : 0);
#endif
			my.word = WORD(my.time >> S, my.cost, (lap -> my.cost : VALID_AND(my.word, my.cost)));
			my.tag = my.key;
			slot.tag = my.tag;
			slot.word = my.word;
			lap = 0;
			admitted();
			complete()
		:: else -> EVENT(10, "an admission finds its slot changed"); start_over()
		fi
	}

	/* What was admitted just now is taken back, if the slot is as it was left. */
	:: STEP(UNDO)
		if
#ifdef UNDO_BLIND
		:: slot.tag == my.key && undos < UNDOS && my.steps == steps ->
#else
		:: HOLDS && undos < UNDOS && my.steps == steps ->
#endif
			EVENT(21, "an admission is undone");
			undos++;
			j = LATEST(my.word);
			do
			:: j < VALID(my.word) ->
				m = TRUTH(j);
				if
				:: m >= START && SPENT(resets, my.key, m) > 0 ->
					SPENT(resets, my.key, m) = SPENT(resets, my.key, m) - 1
				:: else
				fi;
				TRUTH(j) = 0;	/* what stood there had left */
				j++
			:: else -> break
			od;
			j = 0;
			m = 0;
			slot.word = my.before;
			slot.tag = (my.before == 0 -> 0 : my.key);
			if
			:: my.before == 0 ->
				/* What had left the window has left it, whatever the clock says later. */
				for (j : START .. START + TIMES - 1) {
					SPENT(resets, my.key, j) = (j + period(my.key) <= my.clock -> 0 : SPENT(resets, my.key, j))
				}
				j = 0;
				clear_truth()
			:: else
			fi;
			look_over();
			done()
		:: else -> EVENT(22, "an admission that is to be undone finds its slot changed"); done()
		fi
	}

	/* complete() */
	:: STEP(LOAD)
		my.seen = CELL(at);
		if
		:: is_written(my.word, my.seen) -> my.seen = 0; complete_on()
		:: !is_written(my.word, my.seen) && helping -> help_write()
		:: else -> next = FOUND
		fi
	}
	:: STEP(CHECK)
		if
		:: HOLDS -> next = CHECKED
		:: !HOLDS && helping -> EVENT(11, "a helper finds the slot changed"); my.seen = 0; start_over()
		:: else -> EVENT(12, "others completed an admission, and went on"); my.seen = 0; done()
		fi
	}
	:: STEP(WRITE)
		if
		:: found_still ->
			if
			:: !HOLDS -> EVENT(13, "a late completer writes a cell that is not valid")
			:: HOLDS && helping && !stopped -> EVENT(14, "a helper writes a cell")
			:: HOLDS && helping && stopped -> EVENT(15, "a cell is written for one who was killed")
			:: else
			fi;
			CELL(at) = my.time;
			my.seen = 0;
			look_over();
			complete_on()
		:: else ->
			if
			:: !HOLDS -> EVENT(16, "a late completer finds the cell changed")
			:: else -> EVENT(17, "two write one cell")
			fi;
			my.seen = 0;
			next = COMPLETE;
			stumble()
		fi
	}

	/* The latest admission is too far ahead: the clock is asked again, for this word. */
	:: STEP(DOUBT)
#ifndef NO_DOUBT
		my.clock = now;
		my.steps = steps;
#endif
		my.lacked = 0;
		mark_lacking(_pid);
		if
		:: my.last > my.clock + SLACK -> next = STEP_BACK
		:: else -> EVENT(18, "the reading was late"); forget_slot(); next = READ
		fi
	}
	:: STEP(STEP_BACK)
		if
		:: my.steps == steps && HOLDS ->
			EVENT(19, "the clock stepped back");
			slot.word = WORD(my.clock >> S, STEP_TOOK, VALID(my.word));
			stepped_back();
			look_over();
			forget_slot();
			next = READ
		:: else -> start_over()
		fi
	}
	od
}

/* Time, resets, steps of the clock, and the death of all processes but one. */
active proctype world()
{
	do
	:: d_step { now + PASS <= START + TICKS -> now = now + PASS; forget_spent() }
	:: d_step { resets < RESETS && is_key(slot.tag) -> resets++; slot.tag = 0; slot.word = 0; clear_truth() }
	:: atomic { steps < STEPS && now > START ->
		steps++;
		now--;
		do
		:: now >= START + PASS -> now = now - PASS
		:: break
		od
	}
#ifdef SOLO
	:: stopped == 0 -> stopped = 1
	:: stopped == 0 -> stopped = 2
#if N > 2
	:: stopped == 0 -> stopped = 3
#endif
#endif
	od
}
