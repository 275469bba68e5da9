/*
 * unpacked.h: a log that xz, zstd or bzip2 compressed, through that program. zlib, which reads all
 * other logs, is a library of the command; these would be three more, for what is installed where
 * such logs are made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef UNPACKED_H
#define UNPACKED_H

#include <stddef.h>
#include <sys/types.h>

struct unpacker {
	const char *program, *package; /* of Debian */
	const char *magic;             /* what files of its kind begin with */
	size_t magic_len;
};

/* The program that unpacks a file that begins so, or NULL: none is needed. */
const struct unpacker *unpacker_of(const void *head, size_t len);
/* The same of a file that is open and can be read anywhere. */
const struct unpacker *unpacker_of_file(int fd);
/*
 * Starts it. Returns a descriptor of what it writes, or a negative errno. *pid is to be handed to
 * unpacker_end().
 */
int unpacker_begin(const struct unpacker *unpacker, int fd, pid_t *pid);
/* Waits for its end. Returns whether it has read the file to a sound end. */
int unpacker_end(pid_t pid);

#endif
