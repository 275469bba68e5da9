/*
 * replacement.h: a file that takes another's place in one step, complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef REPLACEMENT_H
#define REPLACEMENT_H

#include "command.h"

struct replacement {
	const char *path;
	char *temporary; /* in the same folder: PATH.XXXXXX */
	FILE *to;
	int is_private;
};

/*
 * A private one is its owner's to read, and is on the disk before it takes the other's place.
 * All return a status; on an error nothing is left behind, and what stands at `path` is as it was.
 */
int replacement_open(struct replacement *r, const char *path);
int replacement_open_private(struct replacement *r, const char *path);
int replacement_commit(struct replacement *r);
void replacement_drop(struct replacement *r); /* instead of committing it, or after it failed */

#endif
