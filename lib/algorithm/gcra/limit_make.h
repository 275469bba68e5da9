/*
 * limit_make: a limit that comes with a call, for requests that have one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LIMIT_MAKE_H
#define SHMLIMIT_LIB_LIMIT_MAKE_H

#include "request.h"

/* Fill *g. Returns 0, or -EINVAL, -E2BIG, -EDOM, -ERANGE as shmlimit_decide(). */
int limit_make(const struct shmlimit_limit *limit, struct gcra *g);

/* Decide on a checked request that has a limit, and perhaps no hash and no time. */
int limit_decide(const struct shmlimit *l, const struct request *asked, struct shmlimit_result *r);

#endif
