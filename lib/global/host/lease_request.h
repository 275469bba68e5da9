/*
 * lease_request: decides requests for which this host has not leased enough tokens.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_LEASE_REQUEST_H
#define GLOBAL_LEASE_REQUEST_H

#include "key_bytes.h"
#include "conclude.h"

/* Like shmlimit_lease_take() for a LEASE rule, and like shmlimit_take() for any other. */
int lease_request_slot(struct shmlimit_global *g, int rule, struct key_bytes key, uint64_t cost,
                       struct shmlimit_lease *lease, struct shmlimit_result *r);

/*
 * Decide those of n requests (1 to LEASE_REQUESTS_MAX) that lease_request_slot() did not decide,
 * until until_ns: by the agent, or by the backend if there is none. `g` is a borrowed handle.
 */
void lease_request_wait(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns);

#endif
