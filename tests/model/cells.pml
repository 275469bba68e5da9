/*
 * cells.pml: memory of the logs and places behind a slot, which is reserved when a key needs it, searched over all
 * interleavings. `make check` runs it (cells.sh).
 *
 * Modelled: one slot, whose cells have one page in the region of each of two sizes; N processes that call take, each for
 * ever CALLS times; each step is one shared access or system call. Key 1 is of a rule whose keys have the smaller size. Key
 * 2's rule is set to the larger size at some time. A process reads the slot; decides in it, which reads cells, swaps the word
 * and writes cells; converts it; or, after a look at the other key's cells, reserves its own, makes the slot tentative
 * and commits it. Any process may finish a tentative slot of its key. Pages that are free come and go, as other
 * programs use them; a slot is reset.
 * Killed: a process that never moves again, which the search contains for each process at each step.
 * Abstracted: a claim has no second scan (claim.pml has it), what is in the cells (ring.pml, hold.pml), time, and which
 * process remembers what it has reserved: what is reserved stays so.
 *
 * Laws (-DONLY=n asserts only one): 1 no access to a page that is not reserved: it would be a SIGBUS where memory has
 * ended. 2 What is committed has its cells. 3 A key that finds no memory has taken no slot from another.
 *
 * Variants that must fail, each with the law that it breaks:
 *  COMMIT_FIRST 1, 2    the slot is committed before its cells are reserved.
 *  GO_ON 1, 2           a process goes on although there was no memory.
 *  CONVERT_BLIND 1, 2   a slot is converted to the larger size without reserving it.
 *  RULE_SIZE 1          a decision takes the cells of the size that is in force, whatever version its slot is of.
 *  GIVE_BACK 1          cells of a size that the slot does not have are given back: a process was stopped before it read them.
 *  EVICT_FIRST 3        the slot is taken before memory is asked for.
 *  OLD_VIEW 2           a claim commits by the rule that it has in view, having reserved by the one in force.
 *
 *	spin -a -DRESETS=1 cells.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#include "model.pml"
#ifndef N
#define N 2			/* processes */
#endif
#ifndef CALLS
#define CALLS 2			/* of each */
#endif
#ifndef RESETS
#define RESETS 0		/* times that the slot is freed */
#endif
#ifndef FREE
#define FREE 1			/* free pages in the beginning */
#endif
#ifndef TURNS
#define TURNS 2			/* times that other programs take or give back a page */
#endif
#ifndef ONE_KEY
#define ONE_KEY 0		/* do all want key 2? */
#endif
#define SMALL	1
#define LARGE	2

typedef slot_t { byte key; byte size; byte word };	/* key 0: free; size 0: tentative */
slot_t slot;
bit reserved[3];		/* of each size */
byte free = FREE;
byte turns;
byte resets;
bit raised;			/* rule 2 has the larger size */
byte writes;			/* of the slot: words do not come again */

typedef process_t { byte key, size, other; byte seen_key, seen_size, seen_word; bit took };
process_t proc[N];

#define size_now(key)	((key) == 2 && raised -> LARGE : SMALL)
#define HOLDS		(slot.key == my.seen_key && slot.size == my.seen_size && slot.word == my.seen_word)
#define access(which)	law(1, reserved[which])
#define committed()	law(2, slot.size == 0 || reserved[slot.size])
#define put(k, s)	writes++; slot.key = k; slot.size = s; slot.word = writes; \
			my.seen_key = k; my.seen_size = s; my.seen_word = writes; committed()
#define done()		my.size = 0; my.other = 0; my.seen_key = 0; my.seen_size = 0; my.seen_word = 0; my.took = 0; next = CALL
#define start_over()	my.took = 0; next = READ

#ifdef COMMIT_FIRST
#define claim()		next = PLACE
#define commit_next()	next = RESERVE
#else
#ifdef EVICT_FIRST
#define claim()		next = PLACE
#else
#define claim()		next = RESERVE
#endif
#define commit_next()	next = WRITE
#endif
#ifdef CONVERT_BLIND
#define convert()	next = CONVERT
#else
#define convert()	next = RESERVE
#endif
#ifdef RULE_SIZE
#define cells_size	size_now(my.key)
#else
#define cells_size	my.size
#endif
#ifdef OLD_VIEW
#define reserve_size	size_now(my.key)
#define holds_rule	true
#else
#define reserve_size	my.size
#define holds_rule	(my.size == size_now(my.key))
#endif

mtype = { CALL, READ, LOOK, DECIDE, WRITE, SURVEY, RESERVE, PLACE, COMMIT, MIGRATE, CONVERT };

active [N] proctype process()
{
	mtype next = CALL;
	byte calls;

	my.key = (ONE_KEY -> 2 : 1 + _pid % 2);
	do
	:: next == CALL && calls == CALLS -> break
	:: d_step { next == CALL && calls < CALLS && RUNS ->
		calls++;
		my.size = size_now(my.key);
		next = READ
	}
	:: STEP(READ)
		my.seen_key = slot.key;
		my.seen_size = slot.size;
		my.seen_word = slot.word;
		my.size = size_now(my.key);
		my.other = 0;
		if
		:: slot.key == my.key && slot.size == my.size -> next = LOOK
		:: slot.key == my.key && slot.size != 0 && slot.size != my.size -> EVENT(0, "a slot is of the smaller size"); convert()
		:: slot.key == my.key && slot.size == 0 -> EVENT(1, "a tentative slot is finished by another process"); claim()
		:: slot.key == 0 -> claim()
		:: slot.key != 0 && slot.key != my.key && slot.size == 0 -> claim()
		:: slot.key != 0 && slot.key != my.key && slot.size != 0 -> my.other = slot.size; next = SURVEY
		fi
	}

	/* A decision in a slot that the key has. */
	:: STEP(LOOK)
		access(cells_size);
		next = DECIDE
	}
	:: STEP(DECIDE)
		if
		:: HOLDS -> put(my.key, my.size); next = WRITE
		:: else -> start_over()
		fi
	}
	:: STEP(WRITE)
		if
		:: !HOLDS -> EVENT(2, "cells are written late, the slot being another's")
		:: else
		fi;
		access(cells_size);
		done()
	}

	/* Is what the other key has in the slot over? Whatever the cells say, it may be evicted. */
	:: STEP(SURVEY)
		if
		:: slot.key != my.seen_key || slot.size != my.seen_size -> EVENT(3, "the cells of a key are read that has left")
		:: else
		fi;
		access(my.other);
		my.other = 0;
		claim()
	}

	/* The kernel is asked for the pages of my.size. */
	:: STEP(RESERVE)
		if
		:: reserved[reserve_size] || free > 0 ->
			free = (reserved[reserve_size] -> free : free - 1);
			reserved[reserve_size] = 1;
#ifdef COMMIT_FIRST
			next = (my.took -> WRITE : MIGRATE)
#else
#ifdef EVICT_FIRST
			next = (my.took -> COMMIT : MIGRATE)
#else
			next = (my.seen_key == my.key && my.seen_size != 0 -> MIGRATE :
				(my.seen_key == my.key && my.seen_size == 0 -> COMMIT : PLACE))
#endif
#endif
		:: else ->
			EVENT(4, "a key has no memory for its cells");
			law(3, !my.took);
#ifdef GO_ON
			next = (my.seen_key == my.key && my.seen_size != 0 -> CONVERT : PLACE)
#else
			if
			:: my.seen_key == my.key && my.seen_size != 0 && HOLDS ->
				EVENT(5, "a key whose rule has a larger size, and no memory, loses its slot");
				put(0, 0)
			:: else
			fi;
			done()
#endif
		fi
	}
	:: STEP(PLACE)
		if
		:: HOLDS ->
			my.took = (my.seen_key != 0 && my.seen_key != my.key);
			if
			:: my.took -> EVENT(6, "a slot is taken from another key")
			:: else
			fi;
			put(my.key, 0);
#ifdef EVICT_FIRST
			my.took = 1;
			next = RESERVE
#else
			next = COMMIT
#endif
		:: else -> EVENT(7, "the slot to claim was taken first"); start_over()
		fi
	}
	:: STEP(COMMIT)
		if
		:: HOLDS && !holds_rule -> EVENT(8, "a claim finds its rule changed"); put(0, 0); start_over()
		:: HOLDS && holds_rule ->
			put(my.key, my.size);
			my.took = 1;
			commit_next()
		:: else -> EVENT(9, "a claim finds its slot changed"); start_over()
		fi
	}

	/* The entries are copied from the smaller cells to the larger ones, then the slot is swapped. */
	:: STEP(MIGRATE)
		if
		:: !HOLDS -> EVENT(10, "entries are copied from a slot that is another's")
		:: else
		fi;
		access(my.seen_size);
		access(my.size);
		next = CONVERT
	}
	:: STEP(CONVERT)
		if
		:: HOLDS -> EVENT(11, "a slot gets cells of the larger size"); put(my.key, my.size); next = WRITE
		:: else -> start_over()
		fi
	}
	od
}

/* The rule's writer, other programs, and resets. */
active proctype world()
{
end:	do
	:: d_step { !raised -> raised = 1 }
	:: d_step { turns < TURNS && free > 0 -> turns++; free-- }
	:: d_step { turns < TURNS && free < 2 -> turns++; free++ }
	:: d_step { resets < RESETS && slot.size != 0 -> resets++; writes++; slot.key = 0; slot.size = 0; slot.word = writes }
#ifdef GIVE_BACK
	:: d_step { reserved[SMALL] && slot.size != SMALL && slot.size != 0 -> reserved[SMALL] = 0; free++ }
	:: d_step { reserved[LARGE] && slot.size != LARGE && slot.size != 0 -> reserved[LARGE] = 0; free++ }
#endif
	od
}
