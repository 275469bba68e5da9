/*
 * handles: a process's handles on the Redis server that LEASE rules are leased from. One thread at a time uses a
 * handle, so there are as many as threads were ever inside such a decision at once: a thread borrows one, and opens
 * another if all are lent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_HANDLES_H
#define SHMLIMIT_GATE_HANDLES_H

#include "engine.h"

struct handles;

/*
 * Open the first handle, which shows whether the URL is right; the limiter, the URL and what the options point to
 * must outlive them all. Any thread may call options->report. Returns 0, -ELIBACC if libshmlimit-global is not
 * installed, or what shmlimit_global_open() returns.
 */
int handles_new(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                struct handles **out);

/* No handle may be lent. NULL is allowed. */
void handles_free(struct handles *handles);

/* Returns NULL if another handle is needed and cannot be opened: *error says why. */
struct shmlimit_global *handles_borrow(struct handles *handles, int *error);
void handles_return(struct handles *handles, struct shmlimit_global *global);

/* shmlimit_global_take(). */
int handles_take(struct handles *handles, struct shmlimit_global *global, const struct shmlimit_request *q,
                 struct shmlimit_result *r);

/* The options that handles_new() was given. */
const struct shmlimit_global_options *handles_options(const struct handles *handles);

#endif
