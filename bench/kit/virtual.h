/*
 * virtual: tasks on a clock that is made up. A task runs in no time until it waits;
 * then the one that is due next does. So code that sleeps and asks for the time runs as
 * it is, as fast as it can, and the same each time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_VIRTUAL_H
#define BENCH_KIT_VIRTUAL_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds; what is to see it as the time has to be linked so. */
extern uint64_t virtual_now_ns;

/* Room for that many tasks. */
void virtual_begin(size_t tasks);

/* A task that begins now, on a stack of its own of VIRTUAL_STACK bytes; it must not return. */
#define VIRTUAL_STACK 65536
void virtual_task(void (*run)(void *), void *of);

/* Called by a task: it goes on then. */
void virtual_wait(uint64_t until_ns);

/* Call it then, on any stack. It must not wait. */
void virtual_call(uint64_t at_ns, void (*call)(void *), void *of);

/* Up to then; and forget all tasks, wherever they are, and all calls. */
void virtual_run(uint64_t until_ns);
void virtual_end(void);

#endif
