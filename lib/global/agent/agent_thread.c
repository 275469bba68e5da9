/*
 * agent_thread: see agent_thread.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_thread.h"
#include "connection.h"

struct agent_thread {
	struct shmlimit_global *g;
	pthread_t id;
	pid_t pid; /* the process that has the thread */
	int turns;
	uint32_t stop;  /* set by the handle */
	uint32_t ended; /* set by the thread, as its last step */
};

/* A thread that is not the agent after its first turn has lost the contest, or its claim. */
static int proceeds(void *arg, int serving)
{
	struct agent_thread *t = arg;

	return !__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE) && (serving || t->turns++ == 0);
}

static void *run(void *arg)
{
	struct agent_thread *t = arg;

	pthread_setname_np(pthread_self(), "shmlimit-agent");
	shmlimit_global_serve(t->g, proceeds, t);
	__atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int start_thread(struct agent_thread *t)
{
	sigset_t all, before;
	int error;

	t->stop = t->ended = 0;
	t->turns = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&t->id, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->pid = error == 0 ? getpid() : 0;
	return -error;
}

/* A child has no thread of its own: `pid` is its parent. */
static int begin_thread(struct shmlimit_global *g)
{
	struct agent_thread *t = g->thread;

	if (t == NULL)
		t = g->thread = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	if (t->pid == getpid()) {
		if (!__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE))
			return 0;
		pthread_join(t->id, NULL);
	}
	t->g = g;
	return start_thread(t);
}

/*
 * One thread at a time starts it. If a process forks in that moment, the child must not wait for
 * its parent's thread.
 */
int agent_thread_begin(struct shmlimit_global *g)
{
	pid_t me, starting;
	int error;

	if ((g->options.flags & SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD) == 0)
		return 0;
	if (g->mailbox == NULL)
		return -EROFS;
	if (mailbox_is_claimed(g->mailbox, monotonic_now_ns()))
		return 0;
	me = getpid();
	starting = __atomic_load_n(&g->starting, __ATOMIC_RELAXED);
	if (starting == me ||
	    !__atomic_compare_exchange_n(&g->starting, &starting, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	error = begin_thread(g);
	__atomic_store_n(&g->starting, 0, __ATOMIC_RELEASE);
	return error;
}

/*
 * BOUND: a thread that did not see `stop` before it went to sleep looks again after AGENT_TURN_NS.
 */
void agent_thread_end(struct shmlimit_global *g)
{
	struct agent_thread *t = g->thread;

	if (t == NULL)
		return;
	if (t->pid == getpid()) {
		__atomic_store_n(&t->stop, 1, __ATOMIC_RELEASE);
		mailbox_wake(g->mailbox);
		pthread_join(t->id, NULL);
	}
	free(t);
}
