/*
 * crew: processes that do the same thing at the same time, each pinned to a
 * core, and how many operations a second they do together.
 *
 *	rate = operations of all processes / seconds from when all were ready
 *	       until the last one had seen the end
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_CREW_H
#define BENCH_KIT_CREW_H

#include <stdint.h>
#include <sys/types.h>

#define CREW_MAX 64

struct crew_job {
	void *(*open)(const void *what, int seat); /* in the process, before it is timed; may be NULL */
	uint64_t (*batch)(void *session);          /* do some operations, return how many */
	const void *what;
};

/*
 * Operations a second of this number of processes, measured for `seconds` after a
 * tenth of that to warm up. With more processes than cores they share them.
 */
double crew_rate(int processes, double seconds, const struct crew_job *job);

/* One process that does the job on a core until crew_kill(), which is a SIGKILL. It is at work when this returns. */
pid_t crew_start(int cpu, const struct crew_job *job);
void crew_kill(pid_t child);

#endif
