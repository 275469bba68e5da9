/*
 * master: the process that keeps the workers running.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "master.h"
#include "worker.h"

struct master {
	unsigned workers;
	int listener;
	struct gate *gate;
	sigset_t watched; /* signals that only sigwaitinfo() takes, so that none is lost or comes too early */
	sigset_t mask;    /* the mask before that, which workers get back */
	pid_t pid[];      /* of each worker; 0 = none */
};

/* Fork the worker `i`. Returns 0, or -1 after a message. */
static int start_worker(struct master *master, unsigned i)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0) {
		warn("worker: fork");
		return -1;
	}
	if (pid > 0) {
		master->pid[i] = pid;
		return 0;
	}
	/* The master may have died before it could be tied to us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		err(EXIT_FAILURE, "worker: prctl");
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	/* A terminal sends SIGINT to the whole group; ending the workers is the master's business. */
	signal(SIGINT, SIG_IGN);
	sigprocmask(SIG_SETMASK, &master->mask, NULL);
	_exit(worker_run(master->listener, master->gate));
}

/* Take note of every child that has ended, and replace it. Returns 0, or -1 after a message. */
static int replace_workers(struct master *master)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		unsigned i = 0;

		while (i < master->workers && master->pid[i] != pid)
			i++;
		if (i == master->workers)
			continue;
		master->pid[i] = 0;
		/* It has said why, and its successor would fare no better. */
		if (WIFEXITED(status))
			return -1;
		if (start_worker(master, i) < 0)
			return -1;
		warnx("worker %d: killed by signal %d (%s), replaced by %d", (int)pid, WTERMSIG(status),
		      strsignal(WTERMSIG(status)), (int)master->pid[i]);
	}
	return 0;
}

struct master *master_start(unsigned workers, int listener, struct gate *gate)
{
	struct master *master = calloc(1, sizeof(*master) + workers * sizeof(master->pid[0]));

	if (master == NULL) {
		warn("master");
		return NULL;
	}
	master->workers = workers;
	master->listener = listener;
	master->gate = gate;
	/* The process that started this one may have ignored SIGCHLD: then children would vanish unseen. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&master->watched);
	sigaddset(&master->watched, SIGCHLD);
	sigaddset(&master->watched, SIGINT);
	sigaddset(&master->watched, SIGTERM);
	sigprocmask(SIG_BLOCK, &master->watched, &master->mask);

	for (unsigned i = 0; i < workers; i++) {
		if (start_worker(master, i) < 0) {
			master_end(master);
			return NULL;
		}
		warnx("worker %d: started", (int)master->pid[i]);
	}
	return master;
}

int master_run(struct master *master)
{
	for (;;) {
		int sig = sigwaitinfo(&master->watched, NULL);

		if (sig == SIGINT || sig == SIGTERM)
			return 0;
		if (sig == SIGCHLD && replace_workers(master) < 0)
			return -1;
	}
}

/* SIGKILL, because it works on a stopped worker too, and because a worker leaves nothing that needs tidying. */
void master_end(struct master *master)
{
	for (unsigned i = 0; i < master->workers; i++)
		if (master->pid[i] != 0)
			kill(master->pid[i], SIGKILL);
	for (unsigned i = 0; i < master->workers; i++)
		if (master->pid[i] != 0)
			waitpid(master->pid[i], NULL, 0);
	sigprocmask(SIG_SETMASK, &master->mask, NULL);
	free(master);
}
