/*
 * worker: one process that serves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_DEMO_WORKER_H
#define SHMLIMIT_DEMO_WORKER_H

#include "gate.h"

/*
 * Accept on `listener` and answer, for ever and in one thread, as the worker
 * of a prefork server does. Returns the process's exit status, after a
 * message, when that can't go on.
 */
int worker_run(int listener, struct gate *gate);

#endif
