/*
 * handle: struct shmlimit_global, and what its operations share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_HANDLE_H
#define GLOBAL_HANDLE_H

#include <sys/types.h>

#include "breaker.h"
#include "cluster.h"
#include "mailbox.h"
#include "shmlimit_global.h"
#include "failed_keys.h"
#include "shmlimit_lease.h"
#include "url.h"

#define KEY_TEXT_MAX (SHMLIMIT_GLOBAL_PREFIX_MAX + SHMLIMIT_RULE_NAME_MAX + SHMLIMIT_KEY_MAX + 4)

/*
 * Apache's default ThreadLimit. If more handles are lent at once, the others are closed after one
 * call.
 */
#define POOL_KEPT 64

/*
 * A public handle, which any thread may use, or a spare one (pool.h). The members from `cluster` on
 * belong to the thread that has borrowed the handle.
 */
struct shmlimit_global {
	struct shmlimit *limiter;
	struct shmlimit_global_options options; /* complete; `prefix` points to the next member */
	char prefix[SHMLIMIT_GLOBAL_PREFIX_MAX + 1];
	uint64_t clock_ns;       /* the most that the limiter's clock may lag */
	struct mailbox *mailbox; /* requests to the agent of this host */
	uint64_t backend;        /* the agent's number for this backend */
	uint32_t rules;
	/*
	 * Duration of each rule's leases; 0: not known yet. The lowest bit is not part of it: it is
	 * 1 if leases of few tokens last longer.
	 */
	uint64_t *lease_ns;
	struct shmlimit_global *home; /* the public handle; of that alone: */
	struct url url;
	struct shmlimit_global *idle[POOL_KEPT]; /* those that are not lent, itself included */
	struct agent_thread *thread;             /* this process's agent thread, or NULL */
	pid_t starting;                          /* the process that starts the thread now */

	struct cluster cluster;
	struct breaker breaker; /* `key`, `rule` and `claim_ns` do not change, and are read by all */
	struct failed_keys failed_keys;
	uint64_t round_trip_ns; /* time that the backend's last answer took; 0: none yet */
	uint64_t rng;
	struct backend_error reported;     /* the last backend error that was reported; NONE: it works */
	uint64_t reported_of[ERROR_KINDS]; /* the same for keys: one bit for each rule, modulo 64 */
	uint64_t own_lease_ns[];
};

/* A rule as the backend needs it. */
struct handle_rule {
	int id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct script_params params;
	uint64_t set_us; /* when it was set; valid even if `params` are not exact */
	uint64_t lease_ns;
	uint64_t credit;
};

/* Make a handle. The options are complete. Returns as shmlimit_global_open(). */
int handle_open(struct shmlimit *limiter, const struct shmlimit_global_options *options, const struct url *url,
                struct shmlimit_global **out);

/* Release it, except what only a public handle has: its thread and its idle handles. */
void handle_close(struct shmlimit_global *g);

/*
 * Returns 0, or -errno: there is no such rule, or it is not a LEASE rule. -ERANGE: the backend
 * cannot count it exactly; `name` is filled.
 */
int handle_rule(struct shmlimit_global *g, int rule, struct handle_rule *out);

/*
 * Like handle_rule(), for a COUNTER rule: only id, name and set_us are filled. Returns 0 or -errno:
 * there is no such rule, or it is not a COUNTER rule.
 */
int handle_counter(struct shmlimit_global *g, int rule, struct handle_rule *out);

/* Fill `text` with the key's name on the backend, prefix{rule/key}. Returns its length. */
size_t handle_key(const struct shmlimit_global *g, const char *rule, const void *key, size_t key_len,
                  char text[KEY_TEXT_MAX]);

uint64_t handle_rng(struct shmlimit_global *g);

/* As mailbox_far_ns(). */
static inline uint64_t handle_far_ns(const struct shmlimit_global *g)
{
	return g->mailbox != NULL ? mailbox_far_ns(g->mailbox) : 0;
}

/*
 * Returns how long a call waits: the deadline; or a part of it if an agent serves, and the backend
 * is too far away to answer by the deadline. That part suffices for what the agent has leased
 * ahead.
 */
uint64_t handle_wait_ns(const struct shmlimit_global *g);

/*
 * Report an error of the backend or of a key, unless it was reported before. handle_recovered()
 * notes that the backend works, so that its next error is reported.
 */
void handle_report(struct shmlimit_global *g, const struct backend_error *failure, const struct handle_rule *rule);
void handle_recovered(struct shmlimit_global *g);

/* Report a warning, whatever was reported before. */
void handle_warn(struct shmlimit_global *g, const struct backend_error *failure);

/* Like handle_report(). Returns the error as -errno. */
int handle_failed(struct shmlimit_global *g, const struct backend_error *failure, const struct handle_rule *rule);

#endif
