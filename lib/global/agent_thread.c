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
	struct shmlimit_global *g;     /* the thread's own handle */
	pthread_t id;
	pid_t pid;                     /* the process that has the thread */
	int turns;
	uint32_t stop;                 /* set by the handle */
	uint32_t ended;                /* set by the thread, as its last step */
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

static int start(struct agent_thread *t)
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

/* WHY the thread's handle is not freed in a child: the parent's thread may have been changing it during the fork. */
static int make(struct shmlimit_global *g)
{
	struct shmlimit_global_options options = g->options;
	struct agent_thread *t = calloc(1, sizeof(*t));
	int error;

	if (t == NULL)
		return -ENOMEM;
	options.agent = 0;
	error = handle_open(g->limiter, &options, &g->cluster.home.url, &t->g);
	if (error != 0) {
		free(t);
		return error;
	}
	g->thread = t;
	return 0;
}

int agent_thread_begin(struct shmlimit_global *g)
{
	struct agent_thread *t = g->thread;
	int error = 0;

	if (g->options.agent == 0)
		return 0;
	if (g->requests == NULL)
		return -EROFS;
	if (requests_are_claimed(g->requests, monotonic_now_ns()))
		return 0;
	if (t == NULL || (t->pid != 0 && t->pid != getpid())) {
		error = make(g);
		t = g->thread;
	} else if (t->pid != 0) {
		if (!__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE))
			return 0;
		pthread_join(t->id, NULL);
	}
	return error == 0 ? start(t) : error;
}

/* BOUND: a thread that did not see `stop` before it went to sleep looks again after AGENT_TURN_NS. */
void agent_thread_end(struct shmlimit_global *g)
{
	struct agent_thread *t = g->thread;

	if (t == NULL || (t->pid != 0 && t->pid != getpid()))
		return;
	if (t->pid != 0) {
		__atomic_store_n(&t->stop, 1, __ATOMIC_RELEASE);
		requests_wake(g->requests);
		pthread_join(t->id, NULL);
	}
	shmlimit_global_close(t->g);
	free(t);
	g->thread = NULL;
}
