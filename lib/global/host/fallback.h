/*
 * fallback: the answer while the backend does not respond.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_FALLBACK_H
#define GLOBAL_FALLBACK_H

#include "handle.h"
#include "key_bytes.h"

/*
 * A rule's local share is a rule named with this prefix and the rule's name. A long name is cut and
 * gets a hash.
 */
#define FALLBACK_PREFIX "~local:"

/*
 * Answers as on_failure says; returns what shmlimit_take() returns, or -EHOSTDOWN. *taken_from is
 * the rule whose slot was asked, which is the host's share of the rule with LOCAL; -1: none was.
 */
int fallback(struct shmlimit_global *g, int rule, struct key_bytes key, uint64_t cost, int *taken_from,
             struct shmlimit_result *r);

/*
 * Charge what this host has leased to its share, if a process of the host has one: else a backend
 * that comes and goes would give the host the lease and the share. No error matters: the share is
 * then larger, as if nothing was leased.
 */
void fallback_charge(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t tokens);

/* With LOCAL: make the share's rule before the agent leases, for it charges a share that exists. */
void fallback_prepare(struct shmlimit_global *g, int rule);

#endif
