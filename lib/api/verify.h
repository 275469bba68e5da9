/*
 * verify: what shmlimit_verify() and shmlimit_repair() share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_VERIFY_H
#define SHMLIMIT_LIB_VERIFY_H

#include "limiter.h"

/* What was found so far. */
struct findings {
	struct shmlimit_problem *list;
	size_t room;
	int count;
	int repairing; /* only what was repaired counts, and is reported with what was done */
};

/* Check all but the header's front, and repair it if *f says so. Returns 0 or -ENOMEM. */
int verify_all(const struct shmlimit *l, struct findings *f);

#endif
