/*
 * guard: a process that removes what a test leaves, also one that crashed or was killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

/*
 * Start it. It waits for the end of a pipe that only this test and its workers hold open, and then calls clean(). It
 * ignores what a terminal sends to all.
 */
static inline void guard_begin(void (*clean)(void))
{
	int ends[2];
	char byte;

	if (pipe(ends) != 0)
		bail("pipe: %s", strerror(errno));
	if (fork() == 0) {
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		close(ends[1]);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		clean();
		_exit(0);
	}
	close(ends[0]);
}

#endif
