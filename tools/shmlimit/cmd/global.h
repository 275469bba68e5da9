/*
 * global.h: what the commands share that ask a backend for a funnel of all hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef COMMAND_GLOBAL_H
#define COMMAND_GLOBAL_H

#include "command.h"
#include "many_hosts.h"

/* Operands of all of them. */
enum { GLOBAL_NAME, GLOBAL_URL, GLOBAL_RULE, GLOBAL_KEY };

/* The first options of all of them: a row of this in their tables. */
enum { GLOBAL_DEADLINE, GLOBAL_LEASE, GLOBAL_PREFIX, GLOBAL_OPTIONS };

#define GLOBAL_OPTION_ROWS \
	[GLOBAL_DEADLINE] = { "deadline", "DURATION", "longest wait for the backend (default 50ms)" }, \
	[GLOBAL_LEASE] = { "lease", "DURATION", "duration of a lease (default 100ms)" }, \
	[GLOBAL_PREFIX] = { "prefix", "TEXT", "prefix of the backend's keys (default shmlimit:)" }

#define GLOBAL_DETAILS \
	"URL is redis://[[user]:password@]host[:port][,host[:port]...][/db],\n" \
	"redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/primary[/db] or\n" \
	"unix://[[user]:password@]/path[?db=N]; rediss:// uses TLS; '-' is the value of $SHMLIMIT_BACKEND, which hides a password\n" \
	"from other users.\n"

struct global_call {
	const struct call *call;
	struct shmlimit *limiter;
	struct shmlimit_global *global;
	int rule; /* the id of operand GLOBAL_RULE, if there is one */
	int told; /* something was wrong, and was said */
};

/*
 * Read the common options, open the segment and the backend, and find the rule. `o` has what
 * was given to the command itself. Returns a status; *g is to be closed if that is
 * STATUS_OK.
 */
int global_open(struct global_call *g, const struct call *call, struct shmlimit_global_options *o);
void global_close(struct global_call *g);

/* The exit status for what the library returned; prints a message if there was none yet. */
int global_status(const struct global_call *g, int error);

#endif
