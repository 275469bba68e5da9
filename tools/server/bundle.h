/*
 * bundle: the limits of one request, of which some are this host's and some are
 * leased from an engine, all or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_BUNDLE_H
#define SHMLIMIT_SERVER_BUNDLE_H

#include "handles.h"

/*
 * As shmlimit_take_all(): those of this host first, at once, then those of LEASE
 * rules one after the other, in their order, each up to a deadline. Where one denies,
 * what was taken before is given back: meanwhile others may be denied for it, nobody
 * gets more. Tokens of an engine go back to this host's lease, or lapse with it.
 *
 * Errors besides: -EDESTADDRREQ a LEASE rule, `handles` being NULL; what
 * handles_borrow() says.
 */
int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results);

/* Is a rule decided by an engine? An id that is none is no such rule. */
int bundle_is_global(struct shmlimit *limiter, int rule);

#endif
