/*
 * fixed_fields: what the header fields of a limit say as long as its rule does not change. It is
 * made once for each version of the rule, and not for each request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_FIXED_FIELDS_H
#define SHMLIMIT_GATE_FIXED_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "shmlimit.h"

/* Longer texts, of long names, are not kept. */
#define FIXED_TEXT_WORDS 12u
#define FIXED_WORDS (3 + FIXED_TEXT_WORDS)

/* A limit's: see fixed_fields.c and kept.h. All zero: none is kept. */
struct fixed_fields {
	uint64_t sequence, words[FIXED_WORDS];
};

/* What is known of a limit's fields. */
struct fixed_shape {
	uint32_t length;      /* of RateLimit-Policy; 0: the limit has no fields */
	uint32_t name_length; /* of the name that both fields begin with, with its quotes */
	int has_time;         /* RateLimit has a t, and a denial Retry-After */
};

/*
 * What the text was made of: the rule that had the limit's name, its version, and the quota of the
 * answer.
 */
struct fixed_key {
	int id;
	uint64_t version, quota;
};

/*
 * Find what fixed_fields_keep() kept of an equal key. Returns 1: *shape is filled in, to->policy is
 * the field, and to->limit begins with the name; or 0. Threads: safe.
 */
int fixed_fields_find(const struct fixed_fields *kept, const struct fixed_key *key, struct fixed_shape *shape,
                      struct shmlimit_fields *to);

/* Keep it, unless the text is too long. Threads: safe. */
void fixed_fields_keep(struct fixed_fields *kept, const struct fixed_key *key, const struct fixed_shape *shape,
                       const char *text);

#endif
