/*
 * rate: the limit that a request brings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_RATE_H
#define SHMLIMIT_GATE_RATE_H

#include "segment_ref.h"

#define RATE_ENTRIES 256u /* texts that are kept */
#define RATE_WORDS 10u

/* A text and what it says: see rate.c and kept.h. */
struct rate_entry {
	uint64_t sequence, words[RATE_WORDS];
};

/*
 * The texts that requests brought, of which each is read once, as long as no other one takes its
 * place. All zero: none was read.
 */
struct rates {
	struct rate_entry entries[RATE_ENTRIES];
};

/*
 * Find the limit of a request: that of its key, or of rate_error= if the text cannot be read, which
 * is reported once a minute for each rule. Returns 1: *out is the limit; 0: the rule's own;
 * -EINVAL, -E2BIG: key->parsed is none. Threads: safe. Fork: a text that another thread was writing
 * is read again for each request. Cost: 20 ns, or a microsecond for a text that is new or longer
 * than 48 bytes.
 */
int rate_find(struct rates *rates, struct segment_ref *ref, const struct spec_limit *limit,
              const struct shmlimit_gate_key *key, struct shmlimit_limit *out);

/*
 * Report, as seldom: -EDOM a request brought no limit, and its rule has none; -EOPNOTSUPP it
 * brought `own`, and its rule is of another algorithm, which of a rate is reported when the rule is
 * found if the spec has algorithm=gcra.
 */
void rate_report_share(struct segment_ref *ref, const struct spec_limit *limit, int error);
void rate_report(struct segment_ref *ref, const struct spec_limit *limit, const struct shmlimit_limit *own, int error);

#endif
