/*
 * limit: one limit on a request, as a server's configuration has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_LIMIT_H
#define SHMLIMIT_SERVER_LIMIT_H

#include "shmlimit.h"

struct limit {
	size_t rule;                   /* index of its name among the attachment's */
	uint64_t cost;
	int by_net;                    /* the key is an address: what counts is its net */
	unsigned prefix_v4, prefix_v6;
	int dry_run;
	int quiet;                     /* who is allowed is told nothing of it */
	int status;                    /* of the answer to who is denied */
};

/* What an option changes: a cost of 1, a key as it is, enforced, 429. */
#define LIMIT_DEFAULT { .cost = 1, .prefix_v4 = 32, .prefix_v6 = 64, .status = 429 }

/*
 * Read an option: cost=N, prefix=V4,V6, status=400 to 599, fields=always or
 * denied, dry_run. Returns NULL, or, having changed nothing, what would be right.
 */
const char *limit_option(struct limit *limit, const char *option);

/* Can a rule have this name? Returns NULL, or what would be right. */
const char *limit_rule_name(const char *name);

#define LIMIT_DIGEST_BYTES 64

/* A key of this request: `bytes` is elsewhere, or `made`. */
struct limit_key {
	const void *bytes;
	size_t length;
	unsigned char made[LIMIT_DIGEST_BYTES]; /* of a net, or a digest */
};

/*
 * Fill *key from what the server made of the limit's expression; `text` must
 * outlive it. What is longer than a key is replaced by its SHA-512, as in Python and
 * PHP: it is one key in all of them, and differs from others that begin alike. What
 * should be an address and is none is taken as it is. Returns 0 if it is empty, which
 * means that the limit is none on this request, else 1.
 */
int limit_key(const struct limit *limit, const char *text, size_t length, struct limit_key *key);

#endif
