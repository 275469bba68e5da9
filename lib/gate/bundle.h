/*
 * bundle: the limits of one request, all or none. Some are limits of this host, and some are leased from a Redis
 * server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_BUNDLE_H
#define SHMLIMIT_GATE_BUNDLE_H

#include "handles.h"

/*
 * Like shmlimit_take_all(). The limits of this host are asked first, all at once. Then those of LEASE rules are asked
 * one after the other, in their order, each up to a deadline. If one denies, the tokens taken so far are given back.
 * Other requests may be denied in the meantime, but the limit is never exceeded. Leased tokens go back to this host's
 * lease, or expire with it.
 *
 * More errors: -EDESTADDRREQ a LEASE rule while `handles` is NULL; and those of handles_borrow().
 */
int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results);

/* Is it a LEASE rule? Returns 0 also for an id without a rule. */
int bundle_is_global(struct shmlimit *limiter, int rule);

#endif
