/*
 * registry: the processes that hold places of a segment, so that a place names its holder by one
 * number, and whether a holder is dead.
 *
 *	number:   [ 32768 + entry : 16 ][ start : 24 ][ generation : 24 ]
 *	process:  [ pid : 22 ][ boot : 10 ][ pid namespace : 32 ]
 *	seen:     [ generation : 24 ][ alive : 1 ][ time : 39 ]
 *	space     the number again, once the holder keeps a lock for its pid namespace
 *
 *	entry       which one of the segment's LAYOUT_HOLDERS entries
 *	start       the low bits of the tick at which the process started, by /proc
 *	generation  how often the entry was given; never 0
 *	boot        a hash of the boot's id, so that pids of an earlier boot are of no process
 *	time        when it was asked about, in units of 2^20 ns
 *
 *  1. Register: swap number and process together, from an entry that was never given, or whose
 *     process is dead, to the next generation. So an entry names one process at any time, and an
 *     earlier number of it a dead one. A process that is killed before or after that swap leaves
 *     nothing to repair.
 *  2. Ask: read number and process; ask the kernel, and note in `seen` what it says of a living
 *     one. Within REGISTRY_FRESH_NS no process asks again.
 *
 * An entry is a process's, never a thread's; exec changes neither pid nor start, and a stopped
 * process is alive. A forked child is another process: see registry_self().
 *
 * A wrong "unknown" costs a place until its period is over. A wrong "dead" would give a living
 * holder's place away, so it needs proof:
 *
 *  - a process of this pid namespace: the kernel says that it is gone, a zombie, or started at
 *    another time;
 *  - of another boot: none lives;
 *  - of another pid namespace: no process keeps the lock for it. A process that binds a place to itself
 *    takes that lock, of a byte of the segment's file, and keeps a mapping of the file: the kernel drops
 *    the lock with the last of them. WHY NOT a descriptor: programs close those that they do not
 *    know. A holder that was registered by another process may execute another program, which
 *    has no mapping: it is not said to be in `space`, and is unknown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_REGISTRY_H
#define SHMLIMIT_LIB_REGISTRY_H

#include "atomic.h"
#include "limiter.h"

#define REGISTRY_FRESH_NS ((uint64_t)10 << 20)
#define REGISTRY_ENTRY_SHIFT 48
#define REGISTRY_GENERATION (((uint64_t)1 << 24) - 1)

enum registry_answer { HOLDER_UNKNOWN, HOLDER_ALIVE, HOLDER_DEAD };

/* No time of a clock is as large. */
#define REGISTRY_FIRST ((uint64_t)1 << 63)

static inline uint64_t registry_entry(uint64_t number)
{
	return (number - REGISTRY_FIRST) >> REGISTRY_ENTRY_SHIFT;
}

/* Can a word of a place be a holder's number? 0, all bits, and a window's times cannot. */
static inline int registry_is_number(uint64_t number)
{
	return registry_entry(number) < LAYOUT_HOLDERS && (number & REGISTRY_GENERATION) != 0;
}

/*
 * *number of this process, which registers at its first call. Returns 0; -EXFULL all entries are
 * those of living processes; -ENODEV /proc does not say what it must. Threads: safe; fork: a
 * child gets a number of its own.
 */
int registry_self(const struct shmlimit *l, uint64_t *number);

/*
 * The same of a process of this pid namespace; a thread's id means its process. -ECHILD there is
 * none, or it is a zombie.
 */
int registry_process(const struct shmlimit *l, uint32_t pid, uint64_t *number);

/* Count a place that was not bound since all entries are in use. Returns the error. */
int registry_counted(const struct shmlimit *l, int error);

/* What is known of a holder. Cost: two cache lines; a system call or some, once in 10 ms. */
enum registry_answer registry_ask(const struct shmlimit *l, uint64_t number, uint64_t now_ns);

/* The time that registry_ask() wants. */
uint64_t registry_now_ns(void);

/* The handle's end. */
void registry_close(struct shmlimit *l);

#endif
