/*
 * log_files.h: the lines of logs, compressed or not, from the oldest file on. A compressed file
 * that was cut, or that is damaged, is read up to there, with a warning.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LOG_FILES_H
#define LOG_FILES_H

#include <zlib.h>

#include "command.h"
#include "log_line.h"
#include "unpacked.h"

struct log_files {
	struct log_file *file; /* in the order in which they are read */
	size_t count, at;      /* at: that which is read */
	uint64_t size;         /* bytes on disk of all; 0: not known */
	uint64_t behind;       /* of those that were read */
	gzFile gz;
	int fd;    /* the file's, while a program unpacks it; else -1 */
	pid_t pid; /* of that program */
	int fresh; /* nothing was read of it yet */
	int ended; /* all that there is was */
	int peeks; /* what is wrong with a file is said when it is read */
	char *buffer;
	size_t begin, end; /* of what was read and not yet handed over */
	int skip;          /* the rest of a line that did not fit */
	int inside;        /* what is next is of the same line */
};

/*
 * `paths` ends with NULL; none: standard input. Returns a status. Closing is the caller's in any
 * case.
 */
int log_files_open(struct log_files *files, char **paths);
/*
 * The next line, without its newline, or *found = 0: no more. Returns a status: of a file in which
 * no line was understood that is an error at its end. log_files_note(): was that line?
 */
int log_files_line(struct log_files *files, struct span *line, int *found);
void log_files_note(struct log_files *files, const struct span *line, int understood);
uint64_t log_files_done(const struct log_files *files); /* of files->size */
void log_files_close(struct log_files *files);

#endif
