/*
 * ticket_set: several limits in one request, all or none, as tickets that wait for the agent. See
 * all_or_none.h for the steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TICKET_SET_H
#define GLOBAL_TICKET_SET_H

#include "handle.h"

/* Go on with all tickets. Returns as shmlimit_global_poll_all(). */
int ticket_set_step(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n, size_t *failed,
                    struct shmlimit_result *results);

/* End all tickets, and give back what was taken for them. */
void ticket_set_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n);

/* Is one of them pending, and are all of them valid? */
int ticket_set_is_pending(const struct shmlimit_global_ticket *tickets, size_t n);

#endif
