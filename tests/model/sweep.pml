/*
 * sweep.pml: freeing what is over before its time comes round (lib/table/sweep.h), while others decide. `make check` runs it
 * (sweep.sh).
 *
 * Modelled: N processes that make DECISIONS each, on one of two keys, a slot and a chunk for each; a clock that goes on at any
 * moment, up to END. A process may be stopped anywhere, and never go on: it was killed. Each step is one access to
 * shared memory, or a pair that one compare-and-swap validates. A word ends LIFE after it was written; for BACK after
 * its end it is seen to be over; then it seems to be in force again, for ever.
 * Abstracted: claims of one key by several processes (claim.pml has that), tables that grow, and clocks that step back.
 * -DUNDO: what a decision took it may give back, as take_all does: it swaps the earlier word in, while the slot stands as it left
 * it, or frees the slot where that word is over by now. A process that is stopped between the two for longer than SLACK is killed.
 *
 * Law 1: no decision takes for in force what is over.
 * Law 2: nothing is freed that is in force.
 * Law 3: no word of the table was over before the mark.
 *
 * Variants that must fail, each with the law that it breaks:
 *  NEVER 1          no decision sweeps.
 *  ONE_CHUNK 1      a decision that finds the mark too old sweeps one chunk, then decides.
 *  READ_BY_NOW 3    a word that was left alone for too long is read by the present time.
 *  MARK_THE_END 3   the mark becomes the time at which the round ends.
 *  CURSOR_FIRST 3   the cursor is moved on before the chunk is swept.
 *  KEEP_TENTATIVE 3 a sweep leaves tentative slots.
 *  NO_RETRY 3       a slot that was changed since it was read is not looked at again.
 *  FREE_ANY 2       a slot is freed whatever it holds by then.
 *  UNDO_ALL 3       an earlier word is swapped in, though it is over.
 *  UNDO_BY_START 3  whether it is over is judged by the time of the decision.
 *  UNDO_BY_MARK 3   it is judged as what is in the table, by a mark that may have been set since it was not there any more.
 */
#include "model.pml"
#ifndef N
#define N 2
#endif
#ifndef DECISIONS
#define DECISIONS 1
#endif
#ifndef END
#define END 6
#endif
#define LIFE 1
#define BACK 4
#define DUE 2			/* sweep_after_ns: half of BACK */
#define SLACK 1

#define FREE 0
#define TENTATIVE 1
#define LIVE 2

typedef slot { byte state, end, nonce };

slot table[2];
byte now = 1;
byte mark = 1, mark_round;
byte next, cursor, round;	/* of the round that is under way */
byte nonces;

#define LAW3(i)	law(3, table[i].state != LIVE || table[i].end >= mark)

/* What a word with this end seems to be at some time. */
#define IN_FORCE(end, at)	((at) < (end) || (at) >= (end) + BACK)
#define WAIT(end, at)		((at) < (end) -> (end) - (at) : ((at) >= (end) + BACK -> LIFE : 0))
#ifdef READ_BY_NOW
#define KNOWN(mark, at)		true
#else
#define KNOWN(mark, at)		((at) < (mark) || (at) < (mark) + BACK)
#endif
#define IS_OVER(end, mark, at) \
	(KNOWN(mark, at) -> !IN_FORCE(end, at) : WAIT(end, (mark) + BACK - 1) <= (at) - ((mark) + BACK - 1))

#define IS_DUE(at, mark)	((at) < (mark) || (at) - (mark) > DUE)
#define IS_LATE(at, mark)	((at) < (mark) || (at) - (mark) >= 2 * DUE)

#define LOAD(i)		d_step { state = table[i].state; end = table[i].end; nonce = table[i].nonce }
#define SAME(i)		(table[i].state == state && table[i].end == end && table[i].nonce == nonce)

inline sweep_slot(i) {
	do
	:: true ->
	LOAD(i);
	m = mark;
	if
	:: state == FREE -> break
#ifdef KEEP_TENTATIVE
	:: state == TENTATIVE -> break
#else
	:: d_step { state == TENTATIVE ->
		if
		:: SAME(i) -> table[i].state = FREE; state = FREE; EVENT(0, "a tentative slot is freed")
		:: else
		fi }
#endif
	:: state == LIVE && !IS_OVER(end, m, at) -> break
	:: state == LIVE && IS_OVER(end, m, at) ->
		at = now;
		m = mark;
		if
		:: d_step { IS_OVER(end, m, at) ->
			if
#ifdef FREE_ANY
			:: table[i].state == LIVE ->
#else
			:: SAME(i) ->
#endif
				law(2, table[i].end <= now);
				table[i].state = FREE;
				table[i].end = 0;
				state = FREE;
				EVENT(1, "what is over is freed")
			:: else -> EVENT(2, "what is over was freed or written before")
			fi }
		:: !IS_OVER(end, m, at) -> break
		fi
	fi;
	if
	:: state == FREE -> break
#ifdef NO_RETRY
	:: else -> break
#else
	:: else		/* it was changed since it was read: look again */
#endif
	fi
	od
}

/* `at` is when the step began: what is kept was in force then. */
inline step() {
	d_step { n = next; c = cursor; r = round };
	if
	:: r != old_round && at >= n && at - n <= DUE + SLACK ->
#ifdef CURSOR_FIRST
		if
		:: d_step { c == 0 && next == n && cursor == c && round == r -> cursor = 1 }
		:: !(c == 0 && next == n && cursor == c && round == r)
		fi;
#endif
		sweep_slot(c);
		if
		:: d_step { c == 1 ->
			if
			:: mark == old && mark_round == old_round ->
#ifdef MARK_THE_END
				mark = now;
#else
				mark = n;
#endif
				mark_round = r;
				EVENT(3, "a round is done");
				LAW3(0);
				LAW3(1)
			:: else -> EVENT(4, "a process that is late sets no mark")
			fi }
#ifdef CURSOR_FIRST
		:: c == 0
#else
		:: d_step { c == 0 ->
			if
			:: next == n && cursor == c && round == r -> cursor = 1
			:: else -> EVENT(5, "two processes sweep one chunk")
			fi }
#endif
		fi
	:: else ->
		d_step {
			if
			:: next == n && cursor == c && round == r ->
				next = at - SLACK;
				cursor = 0;
				round = r + 1
			:: else
			fi
		}
	fi
}

inline sweep() {
	do
	:: d_step { old = mark; old_round = mark_round };
		at = now;
		if
		:: !IS_DUE(at, old) -> break
		:: IS_DUE(at, old)
		fi;
		late = IS_LATE(at, old);
		step();
		if
#ifdef ONE_CHUNK
		:: true -> break
#else
		:: !late -> EVENT(6, "a chunk is swept on the way"); break
		:: late -> EVENT(7, "all is swept before a decision")
#endif
		fi
	od
}

#ifdef UNDO
#define MORE 5	/* a decision on a word that is in force lengthens it by this */
#ifdef UNDO_BY_START
#define WAS_OVER	(end <= start)
#else
#ifdef UNDO_BY_MARK
#define WAS_OVER	IS_OVER(end, m, at)
#else
#define WAS_OVER	(end <= at)	/* when it was taken from, the word was known */
#endif
#endif

#define TOOK(word)	took = true; mine = word

inline undo() {
	d_step { at = now; m = mark };
	if
#ifdef UNDO_ALL
	:: d_step { state == FREE -> before = FREE }
	:: d_step { state == LIVE -> before = LIVE }
#else
	:: d_step { state == FREE || WAS_OVER -> before = FREE }
	:: d_step { state == LIVE && !WAS_OVER -> before = LIVE }
#endif
	fi;
	d_step {
		if
		:: now - at <= SLACK && table[key].state == LIVE && table[key].end == mine && table[key].nonce == nonce ->
			table[key].state = before;
			table[key].end = (before == LIVE -> end : 0);
			LAW3(key);
			if
			:: before == LIVE -> EVENT(12, "an earlier word is swapped in")
			:: else -> EVENT(13, "what was over is not given back")
			fi
		:: else
		fi
	}
}
#else
#define TOOK(word)	skip
#endif

proctype process() {
	byte done, at, start, old, old_round, n, c, r, m, state, end, nonce;
	bit late, key;
#ifdef UNDO
	byte mine, before;
	bit took;
#endif

	do
	:: done < DECISIONS ->
		start = now;
#ifndef NEVER
		m = mark;
		if
		:: IS_DUE(start, m) -> sweep()
		:: !IS_DUE(start, m)
		fi;
#endif
		/* The time of a decision is the one by which it looked at the mark, unless it claims. */
		if
		:: key = 0
		:: key = 1
		fi;
		LOAD(key);
		if
		:: d_step { state == LIVE && IN_FORCE(end, start) ->
			law(1, end > start);
			EVENT(8, "a decision is denied") }
#ifdef UNDO
		:: state == LIVE && IN_FORCE(end, start) ->
			d_step {
				if
				:: SAME(key) ->
					table[key].end = end + MORE;
					TOOK(end + MORE);
					LAW3(key)
				:: else
				fi
			}
#endif
		:: state == LIVE && !IN_FORCE(end, start) ->
			d_step {
				if
				:: SAME(key) ->
					table[key].end = start + LIFE;
					TOOK(start + LIFE);
					LAW3(key)
				:: else -> EVENT(9, "a decision loses its word")
				fi
			}
		:: d_step { state == TENTATIVE -> EVENT(10, "a decision finds a claim of another process") }
		:: state == FREE ->
			d_step {
				if
				:: SAME(key) ->
					nonces++;
					table[key].state = TENTATIVE;
					table[key].nonce = nonces;
					nonce = nonces;
					state = TENTATIVE
				:: else
				fi
			};
			if
			:: state == TENTATIVE ->
				start = now;
				d_step {
					if
					:: SAME(key) ->
						table[key].state = LIVE;
						table[key].end = start + LIFE;
						TOOK(start + LIFE);
						state = FREE;
						LAW3(key)
					:: else -> EVENT(11, "a claim finds its slot freed")
					fi
				}
			:: else
			fi
		fi;
#ifdef UNDO
		if
		:: took -> undo()
		:: true
		fi;
		d_step { took = false; mine = 0; before = 0 };
#endif
		d_step { done++; at = 0; start = 0; old = 0; old_round = 0; n = 0; c = 0; r = 0; m = 0; state = 0; end = 0; nonce = 0;
			late = 0; key = 0 }
	:: else -> break
	od
}

proctype clock() {
	do
	:: now < END -> now++
	:: true -> break
	od
}

init {
	atomic {
		byte i = 0;

		/* Both keys were asked before, one of them for longer; or one was. */
		table[0].state = LIVE;
		table[0].end = 1 + LIFE;
#ifndef FRESH
		table[1].state = LIVE;
		table[1].end = 5;
#endif
		do
		:: i < N -> run process(); i++
		:: else -> break
		od;
		run clock()
	}
}
