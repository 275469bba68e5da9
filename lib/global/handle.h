/*
 * handle: what a struct shmlimit_global is, and what its verbs share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_HANDLE_H
#define GLOBAL_HANDLE_H

#include "breaker.h"
#include "fleet.h"
#include "shmlimit_global.h"
#include "sore.h"

#define KEY_TEXT_MAX (SHMLIMIT_GLOBAL_PREFIX_MAX + SHMLIMIT_RULE_NAME_MAX + SHMLIMIT_KEY_MAX + 4)

struct shmlimit_global {
	struct shmlimit *limiter;
	struct shmlimit_global_options options;        /* complete; `prefix` points to the next */
	char prefix[SHMLIMIT_GLOBAL_PREFIX_MAX + 1];
	struct fleet fleet;
	uint64_t clock_ns;                             /* what the limiter's clock may lag behind */
	struct breaker breaker;
	struct sore sore;
	uint64_t dice;
	struct trouble said;                           /* of the engine, since it last was well */
	uint64_t said_of[TROUBLE_KINDS];               /* of keys: a bit a rule, modulo 64 */
	uint32_t rules;
	uint64_t lease_ns[];                           /* how long each rule's leases last; 0: nobody asked yet */
};

/* A rule, as the engine is asked about it. */
struct handle_rule {
	int id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct script_terms terms;
	uint64_t lease_ns;
};

/* Returns 0 or -errno: no such rule, no LEASE rule; -ERANGE the engine could not count it, `name` being filled. */
int handle_rule(struct shmlimit_global *g, int rule, struct handle_rule *out);

/* What the key is called in the engine: prefix{rule/key}. Returns its length. */
size_t handle_key(const struct shmlimit_global *g, const char *rule, const void *key, size_t key_len,
                  char text[KEY_TEXT_MAX]);

uint64_t handle_dice(struct shmlimit_global *g);

/* Report an engine's trouble, or a key's, if it is news; and that the engine is well, so that trouble is news again. */
void handle_say(struct shmlimit_global *g, const struct trouble *trouble, const struct handle_rule *rule);
void handle_well(struct shmlimit_global *g);

/* Say it, and return it as -errno. */
int handle_fail(struct shmlimit_global *g, const struct trouble *trouble, const struct handle_rule *rule);

#endif
