/*
 * trace: all instructions of a call, recorded once, so that a later process can
 * be brought to any of them fast: by a breakpoint, then a few single steps.
 *
 * That relies on the call taking the same path again: on symbols being bound,
 * on no restartable sequences (a step aborts them, a breakpoint does not), and
 * on the segment being put back. Where it does not, the process has gone astray:
 * that is seen, and counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_TRACE_H
#define TESTS_CRASH_TRACE_H

#include <sys/auxv.h>

#include "call.h"
#include "operand.h"

#define CLOCK_SIZE 16384u     /* bytes of that, or more */
#define STOPS_AT_BREAKPOINT 4 /* about as long as this many single steps */

/* State k is that before instruction k; so there are n + 1. */
struct trace_step {
	uint64_t rip;         /* instruction k */
	uint32_t times;       /* how often that has been reached, this time included; 0: can't be said */
	uint32_t from;        /* the state from which this is reached fastest, by single steps */
	uint32_t cost;        /* ... stops on the way there */
	unsigned looks : 1;   /* instruction k reads or writes the segment */
	unsigned calls : 1;   /* ... or is a system call */
	unsigned clock : 1;   /* ... or is the kernel's code that reads a clock, whose path differs from call to call */
	unsigned changed : 1; /* the segment is not as it was before instruction k - 1 */
};

struct trace {
	struct trace_step *step;
	size_t n, room;
};

static uint64_t trace_astray; /* processes that did not come where they were wanted */

/* The tracee's code is our own: it was forked. */
static inline void trace_note(struct trace_step *step, const struct user_regs_struct *registers)
{
	const unsigned char *code = (const unsigned char *)registers->rip;
	uint64_t address = operand_address(code, registers);

	step->rip = registers->rip;
	step->calls = code[0] == 0x0f && code[1] == 0x05;
	step->looks = scene.bytes != NULL && address - (uint64_t)scene.bytes < scene.size;
	step->clock = registers->rip - getauxval(AT_SYSINFO_EHDR) < CLOCK_SIZE;
	/* A repeated string instruction stops at each of its rounds, or does not; a clock is read again if it went on. */
	step->times = code[0] != 0xf2 && code[0] != 0xf3 && !step->clock;
}

/* Count repetitions, choose from where each state is reached. */
static inline void trace_index(struct trace *trace)
{
	for (size_t k = 0; k < trace->n; k++) {
		struct trace_step *step = &trace->step[k];

		for (size_t i = k; i-- > 0 && step->times != 0;)
			if (trace->step[i].rip == step->rip) {
				step->times = trace->step[i].times + 1;
				break;
			}
		step->from = (uint32_t)k;
		step->cost = STOPS_AT_BREAKPOINT * step->times;
		if (k == 0)
			step->times = step->cost = 0;
		else if (step->times == 0 || trace->step[k - 1].cost + 1 < step->cost) {
			step->from = trace->step[k - 1].from;
			step->cost = trace->step[k - 1].cost + 1;
		}
	}
}

/* Record a call; the segment is then as it leaves it. Returns its answer. */
static inline int trace_record(struct trace *trace, const struct call *call)
{
	unsigned char *last = scene.bytes == NULL ? NULL : scene_keep(NULL);
	static struct tracee t;
	int inside;

	trace->n = 0;
	tracee_start(&t, call_make, call);
	do {
		struct user_regs_struct registers = tracee_registers(&t);
		struct trace_step *step;

		if (trace->n == trace->room) {
			trace->room = trace->room * 2 + 1024;
			trace->step = realloc(trace->step, trace->room * sizeof(*trace->step));
			if (trace->step == NULL)
				bail("no memory");
		}
		step = &trace->step[trace->n++];
		*step = (struct trace_step){ 0 };
		trace_note(step, &registers);
		if (last != NULL && memcmp(last, scene.bytes, scene.size) != 0) {
			step->changed = 1;
			scene_keep(last);
		}
		inside = tracee_step(&t);
	} while (inside);
	free(last);
	trace_index(trace);
	return tracee_finish(&t);
}

/* Bring a process that has just been started to state k. Returns true if it is there. */
static inline int trace_bring(const struct trace *trace, struct tracee *t, size_t k)
{
	const struct trace_step *step = &trace->step[k], *from = &trace->step[step->from];

	if (from->times != 0)
		tracee_run_to(t, from->rip, from->times);
	for (size_t i = step->from; i < k && t->pid != 0; i++)
		tracee_step(t);
	if (t->pid != 0 && tracee_registers(t).rip == step->rip)
		return 1;
	trace_astray++;
	return 0;
}

#endif
