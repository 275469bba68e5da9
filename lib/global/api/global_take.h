/*
 * global_take: what is left to decide after the keys' slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TAKE_H
#define GLOBAL_TAKE_H

#include "conclude.h"

/*
 * Decide those of n requests (1 to LEASE_REQUESTS_MAX) that lease_request_slot() did not decide: by
 * the deadline, or at once with `no_wait`. `g` is a public handle. If none can be borrowed,
 * on_failure decides. A host without an agent gets one, if `g` has to be it.
 */
void global_take_undecided(struct shmlimit_global *g, struct lease_request *undecided, size_t n);

#endif
