/*
 * ticket_set: several limits in one request, all or none, as tickets that wait for the agent. See all.h for the steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ALL_PENDING_H
#define GLOBAL_ALL_PENDING_H

#include "handle.h"

/* Go on with all tickets. Returns as shmlimit_global_poll_all(). */
int all_pending_step(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n, size_t *failed,
                     struct shmlimit_result *results);

/* End all tickets, and give back what was taken for them. */
void all_pending_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n);

/* Is one of them pending, and are all of them valid? */
int all_pending_is(const struct shmlimit_global_ticket *tickets, size_t n);

#endif
