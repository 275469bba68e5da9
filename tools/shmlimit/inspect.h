/*
 * inspect.h: what inspect looked at, and its two ways of showing it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef INSPECT_H
#define INSPECT_H

#include "command.h"

/* What was looked at: one key of a rule, or the slots. */
struct view {
	struct shmlimit *limiter;
	const char *name;
	struct shmlimit_info info;
	int rule;                              /* -1: all */
	const char *key;                       /* or NULL */
	int answer;
	struct shmlimit_result result;
	struct live live;
};

int inspect_text(const struct view *view);         /* a status */
json_t *inspect_json(const struct view *view);

#endif
