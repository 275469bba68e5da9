/*
 * lease_request: decides requests for which this host has not leased enough tokens.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ASK_H
#define GLOBAL_ASK_H

#include "settle.h"

/* Like shmlimit_lease_take() for a LEASE rule, and like shmlimit_take() for any other. */
int ask_slot(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
             struct shmlimit_lease *lease, struct shmlimit_result *r);

/*
 * Decide those of n asks (1 to ASKS_MAX) that ask_slot() did not decide, until until_ns: by the agent, or by the backend if
 * there is none. `g` is a borrowed handle.
 */
void ask_until(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns);

#endif
