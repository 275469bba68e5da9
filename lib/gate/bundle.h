/*
 * bundle: the limits of one request, all or none, of which some are this host's and some are leased from a Redis
 * server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_BUNDLE_H
#define SHMLIMIT_GATE_BUNDLE_H

#include "handles.h"

/*
 * Like shmlimit_take_all(): the limits of this host first, all at once, then those of LEASE rules one after the
 * other, in their order, each up to a deadline. Where one denies, what was taken before is given back: others may be
 * denied for it in the meantime, but nobody gets more than the limit. Leased tokens go back to this host's lease, or
 * expire with it.
 *
 * More errors: -EDESTADDRREQ a LEASE rule where `handles` is NULL; what handles_borrow() returns.
 */
int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results);

/* Is it a LEASE rule? 0 also for an id that no rule has. */
int bundle_is_global(struct shmlimit *limiter, int rule);

#endif
