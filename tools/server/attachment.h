/*
 * attachment: a server process's hold on a segment that may come and go while
 * the server runs. It opens the segment when there is one, lets go of it when
 * it was destroyed, opens it again when it was created anew, and says once, and
 * not once a request, what is wrong and when that is over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_ATTACHMENT_H
#define SHMLIMIT_SERVER_ATTACHMENT_H

#include "limit.h"

struct attachment;

struct attachment_options {
	const char *segment;
	const char *const *rules;      /* names; both must outlive the attachment */
	size_t rule_count;
	int fail_open;                 /* what `log` says that happens; and what does when the engine is gone */
	uint32_t owner;                /* a user whose segment is trusted besides root's and this process's user's; or 0 */
	const char *engine;            /* the URL of what LEASE rules are leased from, which is kept; or NULL */
	unsigned deadline_ms;          /* the longest that a call of it takes; 0 = the default */
	unsigned share_milli;          /* when it is gone: this host's share, thousandths; 0 = as fail_open says */
	void (*log)(void *context, int bad, const char *text); /* one line; bad: something failed, else it is over;
	                                  by any thread */
	void *context;
};

/* Can a segment have this name? Returns NULL, or what would be right. */
const char *attachment_name(const char *name);

/*
 * Read an option: fail=open or fail=closed, owner=USER, engine=URL, deadline=Nms, share=N. engine=- is what SHMLIMIT_ENGINE
 * is in the environment. Returns NULL, or, having changed nothing, what would be right. The option is kept.
 */
const char *attachment_option(struct attachment_options *options, const char *option);

/*
 * Attach this process: after the last fork(). That the segment cannot be opened
 * is no error, it is logged and tried again. NULL: out of memory.
 */
struct attachment *attachment_new(const struct attachment_options *options);

/* No thread may be inside attachment_ask(). NULL is allowed. */
void attachment_free(struct attachment *attachment);

/* What became of a request. */
struct verdict {
	int answer;                    /* SHMLIMIT_ALLOWED, SHMLIMIT_DENIED, or -errno: the limiter is out of order */
	int dry_denied;                /* allowed, but not if a dry run were none */
	int dry_failed;                /* allowed, but a dry run met this error */
	uint64_t remaining;            /* tokens left, of the limit that has the fewest; of the one that denied;
	                                  UINT64_MAX if none was decided */
	size_t denied_by;              /* which one that was */
	size_t told_count;             /* what the client is to be told: nothing of dry runs, and of what is off */
	struct shmlimit_fields told[SHMLIMIT_REQUESTS_MAX];
};

/*
 * Ask `n` limits with their keys, 1 to SHMLIMIT_REQUESTS_MAX, all or none.
 * Those in a dry run are asked when the others have allowed, each for itself.
 * At most once a second a call looks whether the segment is still that of its
 * name, and is then a few system calls; no other call makes any but of a LEASE rule,
 * which may ask the engine, and then waits up to its deadline. Threads: safe.
 */
void attachment_ask(struct attachment *attachment, const struct limit *limits, const struct limit_key *keys,
                    size_t n, struct verdict *verdict);

#endif
