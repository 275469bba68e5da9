/*
 * inspect.h: what inspect looked at, and its two ways of showing it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef INSPECT_H
#define INSPECT_H

#include "key_option.h"
#include "shmlimit_lease.h"
#include "top_keys.h"

/* What was looked at: one key of a rule, or the slots. */
struct view {
	struct shmlimit *limiter;
	const char *name;
	struct shmlimit_info info;
	int rule;        /* -1: all */
	struct key *key; /* or NULL */
	int answer;
	struct shmlimit_result result;
	uint64_t paused_ns; /* the key is paused for so long */
	struct top_keys keys;
};

int inspect_text(const struct view *view); /* a status */
int inspect_json(const struct view *view); /* a status */

/*
 * inspect_slots.c: the live slots, of which there may be millions: a table; the members of a list.
 * A status.
 */
int inspect_slots_text(const struct view *view);
int inspect_slots_json(const struct view *view);

#endif
