/*
 * atomic_file.h: a file that takes another's place in one step, complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ATOMIC_FILE_H
#define ATOMIC_FILE_H

#include "command.h"
#include "print.h"

struct atomic_file {
	const char *path;
	char *temporary; /* in the same folder: PATH.XXXXXX */
	FILE *to;
	int is_private;
};

/*
 * A private one is its owner's to read, and is on the disk before it takes the other's place.
 * All return a status; on an error nothing is left behind, and what stands at `path` is as it was.
 */
int atomic_file_open(struct atomic_file *r, const char *path);
int atomic_file_open_private(struct atomic_file *r, const char *path);
int atomic_file_commit(struct atomic_file *r);
void atomic_file_drop(struct atomic_file *r); /* instead of committing it, or after it failed */

#endif
