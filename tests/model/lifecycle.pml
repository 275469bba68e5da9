/*
 * lifecycle.pml: segments that are created, opened, written to under the lock and destroyed, under one name, searched
 * over all interleavings. `make check` runs it (lifecycle.sh).
 *
 * Modelled: N processes, each of which has one handle at most; each step is one system call, or one use of the mapping.
 * A file is an inode number with what creating gives it (memory, header, permissions) and a name or none; it is there
 * while it has a name, or a process has it open or mapped, and then its number is free for another. All files share
 * ROOM for memory. Locks are flock's: a property of the open file, so gone with it. Killed: any process between any
 * two steps, as often as it likes; the kernel closes what it had open, and it begins again.
 * Abstracted: what stands in a segment (claim.pml, version.pml); permissions; that header and status are read in two
 * calls, since nothing changes them; foreign files; and the lock that a forked child keeps (lib/decisions.md).
 *
 * Laws (-DONLY=n asserts only one): 1 any process that opens a segment finds it complete (I4). 2 No two write rules of one
 * segment at once. 3 No lock outlives its holder. 4 A killed creator leaves no file: each has the name, or a process
 * has it open. 5 A creator's handle is on what it made. 6 A name stays what it is until it is destroyed. 7 gone() says
 * yes if, and only if, the name is not the handle's any more. 8 No use of memory meets a full file system (SIGBUS).
 *
 * Variants that must fail, each with the law that it breaks:
 *  NAME_FIRST 1      the file is made under its name, then filled.
 *  TEMPORARY_NAME 4  it is made under another name, then renamed if the name is free: the killed leave that.
 *  LINK_EARLY 1      it is given its name before its permissions.
 *  NO_INODE_CHECK 2  a writer locks whatever has the name now: another one holds the lock of what had it before.
 *  CHECK_BY_PATH 2   a writer asks whose the name is, then opens it: it may be another's by then.
 *  HANDLE_LOCK 2     a writer locks the file that came with its handle: one open file for a parent and its children.
 *  LOCK_WORD 3       the lock is a word in the segment that its holder has to clear.
 *  OPEN_AGAIN 5      a creator opens by name what it has made.
 *  RENAME 6          a creator that finds the name taken takes it away.
 *  UNLINK_LINK 6     the same in two steps.
 *  NO_MAPPING 7      a handle remembers the inode's number, and does not keep the file: the number is given again.
 *  TRUNCATE 8        a file is made long without reserving its memory.
 *
 *	spin -a lifecycle.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
 *	spin -a -DNAME_FIRST lifecycle.pml && gcc -O2 -DSAFETY -DBFS -o pan pan.c && ./pan; ./pan -r     (shortest)
 */
#include "model.pml"
#ifndef N
#define N 3			/* processes */
#endif
#ifndef FILES
#define FILES 4			/* inode numbers, from 1; enough is one for each open file and the name's */
#endif
#ifndef ROOM
#define ROOM 2			/* files that there is memory for */
#endif

typedef file_t {
	bit reserved, filled, permitted, touched;
	bit linked;		/* it has a name: the name, or (TEMPORARY_NAME) one of its own */
	byte word;		/* LOCK_WORD: 1 + the process that holds it */
};
file_t file[FILES + 1];
byte name;			/* the file that has it; 0: none */
byte room = ROOM;

typedef process_t {
	byte open;		/* the file that is being made, or looked at */
	byte map;		/* the handle's */
	byte lock;		/* the file opened to be locked */
	bit locked, writing;
	bit named;		/* ghost: the name is that of what is open or mapped */
	byte made;		/* ghost: what was created by the call that goes on */
};
process_t proc[N];

mtype = { IDLE, MAKE, RESERVE, FILL, PERMIT, MAP_MADE, LINK, TAKEN, MADE, AGAIN, OPEN, READ, MAP, DESTROY, UNLINK, WRITE_OPEN,
	WRITE_CHECK, WRITE_LOCK, WRITE, UNLOCK };

#define CHOICE(guard)	d_step { next == IDLE && (guard) ->

byte i, p;	/* used within one step, and then 0 again */

#ifdef NO_MAPPING
#define keeps(who, what)	(proc[who].open == what || proc[who].lock == what)
#else
#define keeps(who, what)	(proc[who].open == what || proc[who].map == what || proc[who].lock == what)
#endif

/* Files that no process keeps are gone, and give their memory back. Law 4: the others have the name, or are in use. */
inline collect() {
	i = 1;
	do
	:: i <= FILES ->
		kept = 0;
		p = 0;
		do
		:: p < N -> kept = (keeps(p, i) -> 1 : kept); p++
		:: else -> break
		od;
		if
		:: !kept && !file[i].linked ->
			room = room + file[i].reserved;
			file[i].reserved = 0;
			file[i].filled = 0;
			file[i].permitted = 0;
			file[i].word = 0
		:: !kept && file[i].linked -> law(4, name == i)
		:: else
		fi;
		i++
	:: else -> break
	od;
	kept = 0;
	i = 0;
	p = 0
}

/* The first number that is free, into my.open. */
inline new_file() {
	my.open = 0;
	i = FILES;
	do
	:: i >= 1 ->
		kept = file[i].linked;
		p = 0;
		do
		:: p < N -> kept = (keeps(p, i) -> 1 : kept); p++
		:: else -> break
		od;
		my.made = (kept -> my.made : i);
		i--
	:: else -> break
	od;
	kept = 0;
	p = 0;
	i = 0;
	my.open = my.made;
	my.made = 0;
	my.named = 0
}

/* The name is `what`'s from now on. */
inline give_name(what) {
	p = 0;
	do
	:: p < N -> proc[p].named = 0; p++
	:: else -> break
	od;
	p = 0;
	if
	:: name != 0 -> file[name].linked = 0
	:: else
	fi;
	name = what;
	if
	:: name != 0 -> file[name].linked = 1
	:: else
	fi
}

/* The memory is used, by a write or through a mapping. */
inline touch(what) {
#ifdef TRUNCATE
	if
	:: !file[what].reserved -> law(8, room > 0); file[what].reserved = (room > 0); room = room - file[what].reserved
	:: else
	fi
#else
	law(8, file[what].reserved)
#endif
}

inline close_all() {
	my.open = 0;
	my.map = 0;
	my.lock = 0;
	my.locked = 0;
	my.writing = 0;
	my.named = 0;
	my.made = 0;
	collect()
}

inline unlock() {
	my.writing = 0;
	my.locked = 0;
#ifdef LOCK_WORD
	file[my.map].word = 0;
#endif
	my.lock = 0;
	collect()
}

#ifdef LOCK_WORD
#define holds_lock(who)	(file[my.map].word == who + 1)
#else
#define holds_lock(who)	(proc[who].locked && proc[who].lock == my.lock)
#endif

/* Another process holds the lock of the file that is to be locked: i. */
inline find_holder() {
	i = 0;
	p = 0;
	do
	:: p < N -> i = (p != _pid && holds_lock(p) -> p + 1 : i); p++
	:: else -> break
	od;
	p = 0
}

active [N] proctype worker()
{
	mtype next = IDLE;
	bit kept;

	do
	/* What to do next: create and open need a process without a handle, the others one with it. */
	:: CHOICE(my.map == 0) next = MAKE }
	:: CHOICE(my.map == 0) next = OPEN }
	:: CHOICE(my.map != 0) next = WRITE_OPEN }
	:: CHOICE(true) next = DESTROY }
	:: CHOICE(my.map != 0)
		if
		:: !my.named -> EVENT(1, "a segment is used that has lost its name")
		:: else
		fi;
		touch(my.map)
	}
	:: CHOICE(my.map != 0)
		law(7, (name != my.map) == !my.named);
		if
		:: name != my.map && name != 0 -> EVENT(2, "a segment is gone, and another has its name")
		:: else
		fi
	}
	:: CHOICE(my.map != 0) close_all() }

	/* create */
	:: STEP(MAKE)
		new_file();
#ifdef NAME_FIRST
		if
		:: name == 0 -> give_name(my.open); my.named = 1
		:: else -> my.open = 0
		fi;
#endif
#ifdef TEMPORARY_NAME
		file[my.open].linked = 1;
#endif
		my.made = my.open;
		next = (my.open == 0 -> IDLE : RESERVE)
	}
	:: STEP(RESERVE)
#ifdef TRUNCATE
		next = FILL
#else
		if
		:: room > 0 -> room--; file[my.open].reserved = 1; next = FILL
		:: else ->
			EVENT(3, "there is no room for another");
#ifdef NAME_FIRST
			give_name(0);
#endif
			file[my.open].linked = 0;
			close_all();
			next = IDLE
		fi
#endif
	}
	:: STEP(FILL) touch(my.open); file[my.open].filled = 1;
#ifdef LINK_EARLY
		next = LINK
#else
		next = PERMIT
#endif
	}
	:: STEP(PERMIT) file[my.open].permitted = 1; next = MAP_MADE }
	:: STEP(MAP_MADE) my.map = my.open;
#if defined(NAME_FIRST) || defined(LINK_EARLY)
		next = MADE
#else
		next = LINK
#endif
	}
	:: STEP(LINK)
		if
		:: name == 0 ->
			file[my.open].linked = 0;
			give_name(my.open);
			my.named = 1;
#ifdef LINK_EARLY
			next = PERMIT
#else
			next = MADE
#endif
		:: else -> EVENT(4, "a creator finds the name taken"); next = TAKEN
		fi
	}
	:: STEP(TAKEN)
#ifdef RENAME
		law(6, name == 0);
		give_name(my.open);
		my.named = 1;
		next = MADE
#elif defined(UNLINK_LINK)
		law(6, name == 0);
		give_name(0);
		next = LINK
#else
		file[my.open].linked = 0;
		close_all();
		next = IDLE
#endif
	}
	:: STEP(MADE)
#ifdef OPEN_AGAIN
		my.open = name;
		my.map = name;
		my.named = (name != 0);
#endif
		law(5, my.map == my.made);
		my.open = 0;
		my.made = 0;
		collect();
		next = IDLE
	}

	/* open */
	:: STEP(OPEN) my.open = name; my.named = (name != 0); next = (name == 0 -> IDLE : READ) }
	:: STEP(READ)
		law(1, file[my.open].reserved && file[my.open].filled && file[my.open].permitted);
		if
		:: !my.named -> EVENT(5, "a segment loses its name while it is opened")
		:: else
		fi;
		next = MAP
	}
	:: STEP(MAP) my.map = my.open; my.open = 0; next = IDLE }

	/* destroy: a look at the file, so as to leave others' alone, and then the name goes, whose it may be by then */
	:: STEP(DESTROY) next = (name == 0 -> IDLE : UNLINK) }
	:: STEP(UNLINK)
		if
		:: name != 0 -> give_name(0); collect()
		:: else -> EVENT(6, "a destroyer finds that the name has gone")
		fi;
		next = IDLE
	}

	/* rule_set, rule_remove */
	:: STEP(WRITE_OPEN)
#ifdef HANDLE_LOCK
		my.lock = my.map;
		next = WRITE_LOCK
#elif defined(CHECK_BY_PATH)
		next = (name == my.map -> WRITE_CHECK : IDLE)
#else
		my.lock = name;
		next = (name == 0 -> IDLE : WRITE_CHECK)
#endif
	}
	:: STEP(WRITE_CHECK)
#if defined(NO_INODE_CHECK)
		next = WRITE_LOCK
#elif defined(CHECK_BY_PATH)
		my.lock = name;
		next = (name == 0 -> IDLE : WRITE_LOCK)
#else
		if
		:: my.lock != my.map -> EVENT(7, "a writer finds that the name is another's"); my.lock = 0; collect(); next = IDLE
		:: else -> next = WRITE_LOCK
		fi
#endif
	}
	/* A process that waits goes on waiting, or is killed. */
	:: STEP(WRITE_LOCK)
		find_holder();
		law(3, i == 0 || proc[i - 1].locked);
		if
#ifndef HANDLE_LOCK
		:: i != 0 ->
			EVENT(8, "a writer waits for another");
			if
			:: !my.named -> EVENT(9, "a segment is destroyed while a writer waits")
			:: else
			fi
#endif
		:: else ->
			my.locked = 1;
#ifdef LOCK_WORD
			file[my.map].word = _pid + 1;
#endif
			next = WRITE
		fi;
		i = 0
	}
	:: STEP(WRITE)
		my.writing = 1;
		p = 0;
		do
		:: p < N -> law(2, p == _pid || !proc[p].writing || proc[p].map != my.map); p++
		:: else -> break
		od;
		p = 0;
		touch(my.map);
		next = UNLOCK
	}
	:: STEP(UNLOCK) unlock(); next = IDLE }

	/* SIGKILL */
	:: d_step { next != IDLE ->
		if
		:: my.made != 0 && !my.named -> EVENT(10, "a creator is killed before the name is his")
		:: my.locked -> EVENT(11, "a writer is killed with the lock")
		:: else
		fi;
		close_all();
		next = IDLE
	}
	od
}
