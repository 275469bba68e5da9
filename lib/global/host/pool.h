/*
 * pool: lets several threads use one handle. What needs a connection, or remembers errors, is done
 * with a handle that is lent to one thread at a time: the public handle itself, or a spare one,
 * which is opened if all are lent. So there are as many as threads were in such a call at once. No
 * thread waits for another one.
 *
 * What threads share without borrowing: the limiter, the options, the cells of mailbox.h, and the
 * durations of leases.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_POOL_H
#define GLOBAL_POOL_H

#include "handle.h"

/* `g` is the public handle, of which nothing is lent yet. */
void pool_begin(struct shmlimit_global *g, const struct url *url);

/* Release the public handle and the spare ones. None may be lent. */
void pool_end(struct shmlimit_global *g);

/*
 * Returns NULL, with *error set, if another handle is needed and cannot be opened. `g` is the
 * public handle.
 */
struct shmlimit_global *pool_borrow(struct shmlimit_global *g, int *error);
void pool_return(struct shmlimit_global *lent);

#endif
