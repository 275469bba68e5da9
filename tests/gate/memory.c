/*
 * memory: threads whose first request comes when the process can map no more memory. Each is answered, as if the
 * segment could not be opened, and in order again when there is memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../rng.h"
#include "../unit/unit.h"
#include "shmlimit_gate.h"

#define THREADS 40 /* more than liburcu has room for at first */

static struct shmlimit_gate *gate;
static pthread_barrier_t without_memory, asked, with_memory;

static int ask(void)
{
	struct shmlimit_gate_key key = { .bytes = "user:42", .length = 7 };
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer),
		                               .buffer = buffer,
		                               .buffer_size = sizeof(buffer) };

	return shmlimit_gate_ask(gate, &key, 1, &answer);
}

/* Returns 1 if it was refused without memory, and allowed with it. */
static void *ask_twice(void *unused)
{
	int first, second;

	(void)unused;
	pthread_barrier_wait(&without_memory);
	first = ask();
	pthread_barrier_wait(&asked);
	pthread_barrier_wait(&with_memory);
	second = ask();
	return (void *)(uintptr_t)(first == SHMLIMIT_DENIED && second == SHMLIMIT_ALLOWED);
}

/* Exits with the number of threads that were answered as they are to be; an abort ends it by a signal. */
static void host(void)
{
	struct rlimit limit, none;
	pthread_t threads[THREADS];
	char text[160];
	void *good;
	int n = 0;

	snprintf(text, sizeof(text), "segment=%s rule=login", unit_name);
	if (shmlimit_gate_open(text, &gate) != 0 || shmlimit_gate_attach(gate) != 0)
		bail("no gate");
	pthread_barrier_init(&without_memory, NULL, THREADS + 1);
	pthread_barrier_init(&asked, NULL, THREADS + 1);
	pthread_barrier_init(&with_memory, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask_twice, NULL) != 0)
			bail("no thread");
	if (getrlimit(RLIMIT_AS, &limit) != 0)
		bail("getrlimit: %s", strerror(errno));
	none = limit;
	none.rlim_cur = 0;
	if (setrlimit(RLIMIT_AS, &none) != 0)
		bail("setrlimit: %s", strerror(errno));
	pthread_barrier_wait(&without_memory);
	pthread_barrier_wait(&asked);
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		bail("setrlimit: %s", strerror(errno));
	pthread_barrier_wait(&with_memory);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &good);
		n += good != NULL;
	}
	_exit(n);
}

int main(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1000, .refill = 1, .period_ns = SECOND };
	struct shmlimit *l;
	int status;
	pid_t pid;

#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
	return tap_skip_all("a sanitizer needs memory");
#endif
	l = unit_create("gate.memory", NULL);
	unit_id(shmlimit_rule_set(l, "login", &rule));
	shmlimit_close(l);
	pid = fork();
	if (pid == 0)
		host();
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		bail("no child");
	ok(!WIFSIGNALED(status), "requests without memory do not end the process");
	is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, THREADS,
	   "each thread is refused without memory, and allowed when there is memory again");
	return tap_done();
}
