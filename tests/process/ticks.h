/*
 * ticks: a timer that interrupts a worker by SIGUSR1, over and over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PROCESS_TICKS_H
#define TESTS_PROCESS_TICKS_H

#include <time.h>

#include "process.h"

static timer_t ticks_timer;

/* The handler calls it last. WHY NOT a timer that repeats: where 50 us are shorter than the handler takes, nothing else would go on. */
static inline void ticks_next(void)
{
	timer_settime(ticks_timer, 0, &(struct itimerspec){ { 0, 0 }, { 0, 50000 } }, NULL);
}

static inline void ticks_start(void (*handler)(int))
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	worker_check(sigaction(SIGUSR1, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &ticks_timer) == 0,
	             "no timer: %s", strerror(errno));
	ticks_next();
}

/* SIG_BLOCK or SIG_UNBLOCK. */
static inline void ticks_hold(int how)
{
	sigset_t ticks;

	sigemptyset(&ticks);
	sigaddset(&ticks, SIGUSR1);
	sigprocmask(how, &ticks, NULL);
}

#endif
