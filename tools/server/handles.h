/*
 * handles: those of one process on the engine that global rules are leased from.
 * A handle is one thread's at a time, so there are as many as threads were ever
 * inside a global decision at once; who needs one borrows it, and makes it if all
 * are lent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_HANDLES_H
#define SHMLIMIT_SERVER_HANDLES_H

#include "shmlimit_global.h"

struct handles;

/*
 * Make the first one, which shows whether the URL is good; the limiter, the URL and
 * what the options point to must outlive them all. options->report is called by
 * any thread. Returns 0, or what shmlimit_global_open() says.
 */
int handles_new(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                struct handles **out);

/* None may be lent. NULL is allowed. */
void handles_free(struct handles *handles);

/* NULL: *error says why it could not be made. */
struct shmlimit_global *handles_borrow(struct handles *handles, int *error);
void handles_return(struct handles *handles, struct shmlimit_global *global);

/* What was asked for. */
const struct shmlimit_global_options *handles_options(const struct handles *handles);

#endif
