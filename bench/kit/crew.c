/*
 * crew: see crew.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "crew.h"

struct seat {
	uint64_t operations, ended_ns;
} __attribute__((aligned(64)));

/* What the processes share. */
struct crew {
	int ready __attribute__((aligned(64)));
	int go __attribute__((aligned(64))); /* 1 begin, 2 end */
	struct seat seats[CREW_MAX];
};

static struct crew *share(void)
{
	void *p = mmap(NULL, sizeof(struct crew), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_fail("mmap", "no memory");
	return p;
}

static void be_child(pid_t parent)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void work(struct crew *crew, int seat, double seconds, const struct crew_job *job)
{
	void *session = job->open != NULL ? job->open(job->what, seat) : (void *)(uintptr_t)job->what;
	uint64_t start = bench_ns(), operations = 0;

	while ((double)(bench_ns() - start) < seconds * 1e8)
		job->batch(session);
	__atomic_fetch_add(&crew->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&crew->go, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	while (__atomic_load_n(&crew->go, __ATOMIC_RELAXED) == 1)
		operations += job->batch(session);
	crew->seats[seat].ended_ns = bench_ns();
	crew->seats[seat].operations = operations;
}

static pid_t spawn(struct crew *crew, int seat, double seconds, const struct crew_job *job)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		bench_fail("fork", "failed");
	if (child > 0)
		return child;
	be_child(parent);
	bench_pin(seat);
	work(crew, seat, seconds, job);
	_exit(0);
}

static void snooze(double seconds)
{
	struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&pause, NULL);
}

double crew_rate(int processes, double seconds, const struct crew_job *job)
{
	struct crew *crew = share();
	uint64_t start, end = 0, operations = 0;
	pid_t children[CREW_MAX];

	(void)bench_cpus();
	for (int i = 0; i < processes; i++)
		children[i] = spawn(crew, i, seconds, job);
	while (__atomic_load_n(&crew->ready, __ATOMIC_ACQUIRE) < processes) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			bench_fail("crew", "a process ended early");
		snooze(0.0002);
	}
	start = bench_ns();
	__atomic_store_n(&crew->go, 1, __ATOMIC_RELEASE);
	snooze(seconds);
	__atomic_store_n(&crew->go, 2, __ATOMIC_RELEASE);
	for (int i = 0; i < processes; i++) {
		int status;

		if (waitpid(children[i], &status, 0) < 0 || status != 0)
			bench_fail("crew", "a process failed");
		operations += crew->seats[i].operations;
		if (crew->seats[i].ended_ns > end)
			end = crew->seats[i].ended_ns;
	}
	munmap(crew, sizeof(*crew));
	return (double)operations / (double)(end - start) * 1e9;
}

pid_t crew_start(int cpu, const struct crew_job *job)
{
	struct crew *crew = share();
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		bench_fail("fork", "failed");
	if (child == 0) {
		void *session;

		be_child(parent);
		bench_pin(cpu);
		session = job->open != NULL ? job->open(job->what, cpu) : (void *)(uintptr_t)job->what;
		job->batch(session);
		__atomic_store_n(&crew->ready, 1, __ATOMIC_RELEASE);
		for (;;)
			job->batch(session);
	}
	while (__atomic_load_n(&crew->ready, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	munmap(crew, sizeof(*crew));
	return child;
}

void crew_kill(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
