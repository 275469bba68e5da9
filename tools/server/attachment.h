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
	int fail_open;                 /* only words here: what `log` says that happens */
	void (*log)(void *context, int bad, const char *text); /* one line; bad: something failed, else it is over */
	void *context;
};

/* Read fail=open or fail=closed. Returns NULL, or what would be right. */
const char *attachment_option(const char *option, int *fail_open);

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
 * name, and is then a few system calls; no other call makes any. Threads: safe.
 */
void attachment_ask(struct attachment *attachment, const struct limit *limits, const struct limit_key *keys,
                    size_t n, struct verdict *verdict);

#endif
