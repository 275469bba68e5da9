/*
 * atomic_file.h: a file that takes another's place in one step, complete.
 *
 * While it is written it has no name, where the filesystem has O_TMPFILE: a process that is killed
 * leaves nothing. Elsewhere, and in the moment between its first name and the rename, it is
 * PATH.shmlimit-XXXXXX, locked by flock(2) for as long as its writer lives. The next writer of PATH
 * removes those of its user that are not locked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ATOMIC_FILE_H
#define ATOMIC_FILE_H

#include "command.h"
#include "print.h"

struct atomic_file {
	const char *path;
	char *temporary; /* its name before it is PATH's; NULL: it has none */
	FILE *to;
	int fd; /* the same file, with its lock */
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
