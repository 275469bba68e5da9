/*
 * holder: a process that a place is bound to, in 32 bits, and whether it is dead.
 *
 *	[ pid : 22 ][ start : 10 ]
 *
 *	start  the low bits of the tick at which it started, by /proc
 *
 * A wrong "alive" costs a place until its period is over. A wrong "dead" would give a living
 * holder's place away, so everything that is not known counts as alive: a pid that was given to
 * another process with the same start bits, a process that /proc does not show, a sandbox.
 *
 * A pid means something in its namespace alone: the caller compares holder_namespace().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_HOLDER_H
#define SHMLIMIT_LIB_HOLDER_H

#include <stdint.h>

/*
 * The inode number of this process's pid namespace, 0 where it is not known. WHY NOT remember it: a
 * forked child may be in another one, also with the same pid.
 */
uint64_t holder_namespace(void);

/*
 * Of a process of this namespace, 0 = this one: *pid, also where a thread's id was given, and the
 * tick at which it started. Returns 0, -ECHILD or -ENODEV as holder_of().
 */
int holder_find(uint32_t *pid, uint64_t *start);

/*
 * Is such a process surely dead, or a zombie, or did it start at another time, by the bits of
 * `mask`?
 */
int holder_is_over(uint32_t pid, uint64_t start, uint64_t mask);

/*
 * Fill *holder for a process of this namespace, 0 = this one. Returns 0; -ECHILD there is none, or
 * it is a zombie; -ENODEV /proc is missing, is another namespace's or does not show it.
 */
int holder_of(uint32_t pid, uint32_t *holder);

/* How long a process that /proc showed alive needs no second look there. */
#define HOLDER_FRESH_NS ((uint64_t)10 << 20)

/*
 * Is it surely dead, or a zombie? now_ns is CLOCK_MONOTONIC's. kill(2), 1 us, finds at once that a
 * process is gone. What only /proc shows, a zombie and a pid that went to another process, is read
 * again after HOLDER_FRESH_NS: 10 us.
 */
int holder_is_dead(uint32_t holder, uint64_t now_ns);

#endif
