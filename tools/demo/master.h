/*
 * master: the process that keeps the workers running.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_DEMO_MASTER_H
#define SHMLIMIT_DEMO_MASTER_H

#include "gate.h"

struct master;

/*
 * Fork `workers` workers, which serve from now on. From here to master_end(),
 * SIGTERM, SIGINT and SIGCHLD wait to be taken by master_run(). Workers don't
 * outlive the master, however it ends. Returns NULL after a message.
 */
struct master *master_start(unsigned workers, int listener, struct gate *gate);

/*
 * Replace each worker that a signal kills, until SIGTERM or SIGINT; returns 0
 * then. Returns -1 after a message when a worker gave up by itself, or its
 * successor can't be forked.
 */
int master_run(struct master *master);

/* End the workers and free the master. */
void master_end(struct master *master);

#endif
