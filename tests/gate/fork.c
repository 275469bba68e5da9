/*
 * fork: a process with several threads asks a gate while the segment comes and goes; children that it forks in the middle of
 * that go on with the gate, whatever the other threads were doing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>
#include <sys/wait.h>

#include "../process/process.h"
#include "gate.h"

#define THREADS 3
#define FORKS 60
#define CREATE "create=yes slots=64 rule=open rate=1G/s"

static struct shmlimit_gate *gate;
static _Atomic int over;
static _Atomic uint64_t asked, wrong;

static void ask_once(void)
{
	struct shmlimit_gate_answer a = { .struct_size = sizeof(a) };
	struct shmlimit_gate_key key = { .limit = 0, .bytes = "k", .length = 1 };

	/* While a segment is replaced a request may fail, closed. */
	if (shmlimit_gate_ask(gate, &key, 1, &a) < 0 ||
	    (a.outcome != SHMLIMIT_GATE_PASSED && a.outcome != SHMLIMIT_GATE_FAILED))
		wrong++;
	asked++;
}

static void *ask_on(void *arg)
{
	for (uint64_t i = 0; !over; i++) {
		ask_once();
		if (i % 64 == 0)
			shmlimit_gate_attach(gate);
	}
	return arg;
}

/* Look at the segment again, which waits for readers, and decide. */
static void child(void)
{
	alarm(WATCHDOG_SECONDS / 2);
	for (int i = 0; i < 3; i++) {
		shmlimit_destroy(unit_name);
		if (shmlimit_gate_attach(gate) != 0)
			_exit(2);
		ask_once();
	}
	_exit(wrong != 0);
}

static void forks(void)
{
	pthread_t threads[THREADS];
	int ill = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask_on, NULL) != 0)
			bail("pthread_create");
	for (int i = 0; i < FORKS; i++) {
		uint64_t before = asked;
		int status;
		pid_t pid;

		while (asked < before + 100)
			sched_yield();
		pid = fork();
		if (pid == 0)
			child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			ill++;
	}
	over = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	is(ill, 0, "%d children that were forked from a process with busy threads decided, and ended well", FORKS);
	is(wrong, 0, "of %" PRIu64 " requests of the threads none was answered wrongly", (uint64_t)asked);
}

/* The first request of a process may come in several threads at once. */
static void *ask_first(void *arg)
{
	gate_pass(arg);
	ask_once();
	return NULL;
}

static void first(void)
{
	static struct gate together = { .n = THREADS };
	pthread_t threads[THREADS];
	char spec[256];

	snprintf(spec, sizeof(spec), "segment=%s fail=open " CREATE, unit_name);
	for (int round = 0; round < 100; round++) {
		if (shmlimit_gate_open(spec, &gate) != 0)
			bail("shmlimit_gate_open");
		shmlimit_gate_report(gate, gate_hear, gate_lines);
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, ask_first, &together) != 0)
				bail("pthread_create");
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		shmlimit_gate_close(gate);
	}
	is(gate_said, 0, "threads that are first at once wait until one of them has opened the segment");
	is(wrong, 0, "all requests of the first threads are decided");
}

int main(void)
{
	alarm(WATCHDOG_SECONDS);
	shmlimit_close(unit_create("gate_fork", NULL));
	shmlimit_destroy(unit_name);
	first();
	gate = gate_new(CREATE);
	forks();
	shmlimit_gate_close(gate);
	return tap_done();
}
