/*
 * handles: a process's handles on the Redis server of its LEASE rules. Only one thread at a time may use a handle. A
 * thread borrows one, and opens another if all are lent. So there are as many as threads were in such a decision at
 * once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_HANDLES_H
#define SHMLIMIT_GATE_HANDLES_H

#include "global_library.h"

struct handles;

/*
 * Open the first handle, which checks the URL. The limiter, the URL and everything that the options point to must
 * outlive all handles. Any thread may call options->report. Returns 0, -ELIBACC if libshmlimit-global is not
 * installed, or what shmlimit_global_open() returns.
 */
int handles_new(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                struct handles **out);

/* No handle may be lent. NULL is allowed. */
void handles_free(struct handles *handles);

/* Returns NULL, with *error set, if another handle is needed and cannot be opened. */
struct shmlimit_global *handles_borrow(struct handles *handles, int *error);
void handles_return(struct handles *handles, struct shmlimit_global *global);

/* shmlimit_global_take_all(). */
int handles_take(struct handles *handles, struct shmlimit_global *global, const struct shmlimit_request *requests,
                 size_t n, size_t *failed, struct shmlimit_result *results);

/* shmlimit_global_begin_all() for the agent only, _poll_all() and _cancel_all(). Any handle may poll and cancel. */
int handles_begin(struct handles *handles, struct shmlimit_global *global, const struct shmlimit_request *requests,
                  size_t n, struct shmlimit_global_ticket *tickets, size_t *failed, struct shmlimit_result *results);
int handles_poll(struct handles *handles, struct shmlimit_global *global, struct shmlimit_global_ticket *tickets,
                 size_t n, size_t *failed, struct shmlimit_result *results);
void handles_cancel(struct handles *handles, struct shmlimit_global *global, struct shmlimit_global_ticket *tickets,
                    size_t n);

#endif
