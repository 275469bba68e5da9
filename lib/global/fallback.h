/*
 * fallback: what is answered when the engine says nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_FALLBACK_H
#define GLOBAL_FALLBACK_H

#include "handle.h"

/* A host's share of a rule is a rule of this name and the other's; of a long name its beginning and a hash. */
#define FALLBACK_PREFIX "~local:"

/* An answer as of shmlimit_take(). */
int fallback(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
             struct shmlimit_result *r);

#endif
