/*
 * unpacked.c: see unpacked.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unpacked.h"

#define MAGIC(text) text, sizeof(text) - 1
static const struct unpacker unpackers[] = {
	{ "xz", "xz-utils",
	  MAGIC("\xfd"
	        "7zXZ") },
	{ "zstd", "zstd", MAGIC("\x28\xb5\x2f\xfd") },
	{ "bzip2", "bzip2", MAGIC("BZh") },
};

const struct unpacker *unpacker_of(const void *head, size_t len)
{
	for (size_t i = 0; i < sizeof(unpackers) / sizeof(unpackers[0]); i++)
		if (len >= unpackers[i].magic_len && memcmp(head, unpackers[i].magic, unpackers[i].magic_len) == 0)
			return &unpackers[i];
	return NULL;
}

const struct unpacker *unpacker_of_file(int fd)
{
	char head[8];
	ssize_t len = pread(fd, head, sizeof(head), 0);

	return len > 0 ? unpacker_of(head, (size_t)len) : NULL;
}

int unpacker_begin(const struct unpacker *unpacker, int fd, pid_t *pid)
{
	char program[8], option[] = "-dc";
	char *argv[] = { program, option, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], error;

	strcpy(program, unpacker->program);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	error = posix_spawn_file_actions_init(&actions);
	if (error == 0) {
		error = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
		if (error == 0)
			error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		if (error == 0)
			error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
		if (error == 0)
			error = posix_spawnp(pid, program, &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (error == 0)
		return ends[0];
	close(ends[0]);
	return -error;
}

int unpacker_end(pid_t pid)
{
	int end;

	while (waitpid(pid, &end, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(end) && WEXITSTATUS(end) == 0;
}
