/*
 * atomic_file: a writer that is killed leaves no file for ever, with or without O_TMPFILE, and removes none that
 * a living one writes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "atomic_file.h"
#include "../unit/unit.h"

static char folder[] = "/tmp/test.atomic_file.XXXXXX";
static char path[64];

/* In place of libc's: a filesystem without O_TMPFILE, and a process that is killed before it renames. */
static int is_plain, is_killed;

int open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (is_plain && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int rename(const char *from, const char *to)
{
	if (is_killed)
		raise(SIGKILL);
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* How many files the folder has; *mode: the permissions of the last temporary one. */
static int files(mode_t *mode)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat file;
	int n = 0;

	*mode = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (strstr(entry->d_name, ".shmlimit-") != NULL && fstatat(dirfd(dir), entry->d_name, &file, 0) == 0)
			*mode = file.st_mode & 07777;
		n++;
	}
	if (dir == NULL || closedir(dir) != 0)
		bail("opendir");
	return n;
}

static int write_file(const char *text, int is_private)
{
	struct atomic_file file;
	int status = is_private ? atomic_file_open_private(&file, path) : atomic_file_open(&file, path);

	if (status != STATUS_OK)
		return status;
	fputs(text, file.to);
	return atomic_file_commit(&file);
}

static const char *content(void)
{
	static char text[64];
	FILE *from = fopen(path, "r");

	text[0] = '\0';
	if (from != NULL && fgets(text, sizeof(text), from) == NULL)
		text[0] = '\0';
	if (from != NULL)
		fclose(from);
	return text;
}

/* A process that is killed while it writes, or before it renames what it wrote. */
static void killed(void)
{
	struct atomic_file file;
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (atomic_file_open_private(&file, path) == STATUS_OK) {
			fputs("a secret", file.to);
			fflush(file.to);
			if (is_killed)
				atomic_file_commit(&file);
			raise(SIGKILL);
		}
		_exit(1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
		bail("the writer is not killed");
}

static int has_nameless_files(void)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void writers_are_killed(void)
{
	mode_t mode;

	is(write_file("first", 1), STATUS_OK, "a file is written");
	if (has_nameless_files()) {
		killed();
		is(files(&mode), 1, "a writer that is killed leaves no file where there is O_TMPFILE");
	}
	is_plain = 1;
	killed();
	killed();
	is(files(&mode), 2, "without O_TMPFILE the next writer removes the file of one that was killed");
	is(mode, 0600, "the file of a writer that was killed was its owner's alone");
	ok(strcmp(content(), "first") == 0, "what was there before is as it was");
	is(write_file("second", 1), STATUS_OK, "a file is replaced without O_TMPFILE");
	is(files(&mode), 1, "after that the file is alone");
	is_plain = 0;
	is_killed = 1;
	killed();
	is_killed = 0;
	is(files(&mode), 2, "a writer that is killed before it renames its file leaves it");
	is(mode, 0600, "a file that was not renamed is its owner's alone");
	is(write_file("third", 0), STATUS_OK, "a file is replaced after a writer was killed");
	is(files(&mode), 1, "the next writer removes what was not renamed");
	ok(strcmp(content(), "third") == 0, "it has what was written last");
}

/* A folder gets the name while the file is written: that is an error, and nothing is left. */
static void name_is_taken(void)
{
	struct atomic_file file;
	mode_t mode;

	for (int is_private = 0; is_private < 2; is_private++) {
		int status;

		unlink(path);
		status = is_private ? atomic_file_open_private(&file, path) : atomic_file_open(&file, path);
		if (status != STATUS_OK || mkdir(path, 0700) != 0)
			bail("open or mkdir");
		fputs("a file", file.to);
		ok(atomic_file_commit(&file) != STATUS_OK, "a file does not take the name of a folder");
		is(files(&mode), 1, "nothing of it is left");
		if (rmdir(path) != 0)
			bail("rmdir");
	}
	is(write_file("third", 0), STATUS_OK, "it takes the name when the folder is gone");
}

/* Beside one that lives; and beside files whose names only look alike. */
static void others_stay(void)
{
	static const char *const others[] = { ".backup", ".shmlimit-", ".shmlimit-12345", ".shmlimit-1234567" };
	struct atomic_file file;
	char name[96];
	mode_t mode;
	int pipe_fd[2], status;
	pid_t child;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, others[i]);
		close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	is_plain = 1;
	if (atomic_file_open_private(&file, path) != STATUS_OK || pipe(pipe_fd) != 0)
		bail("open");
	fputs("of the slow one", file.to);
	is(files(&mode), 6, "a writer has a file beside what it replaces");
	child = fork();
	/* A process of its own: a lock is of the open file, and the child's copy of that would be one too. */
	if (child == 0)
		_exit(write_file("of the quick one", 1));
	is(child > 0 && waitpid(child, &status, 0) == child && status == 0, 1, "another one may be quicker");
	ok(strcmp(content(), "of the quick one") == 0, "it has what the quick one wrote");
	is(files(&mode), 6, "the quick one does not remove the file of the slow one, nor any other's");
	is(atomic_file_commit(&file), STATUS_OK, "the slow one ends");
	ok(strcmp(content(), "of the slow one") == 0, "it has what the slow one wrote");
	is_plain = 0;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, others[i]);
		is(unlink(name), 0, "a file that is called %s is left alone", others[i]);
	}
}

static void permissions(void)
{
	struct stat file;

	for (is_plain = 0; is_plain < 2; is_plain++) {
		umask(027);
		is(write_file("for all", 0), STATUS_OK, "a file for others is written");
		is(stat(path, &file) == 0 ? file.st_mode & 07777 : 0, 0640, "it has the permissions of the umask");
		umask(0);
		is(write_file("private", 1), STATUS_OK, "a private file is written");
		is(stat(path, &file) == 0 ? file.st_mode & 07777 : 0, 0600,
		   "a private file is its owner's, whatever the umask");
	}
}

int main(void)
{
	mode_t mode;

	if (mkdtemp(folder) == NULL)
		bail("mkdtemp");
	snprintf(path, sizeof(path), "%s/state", folder);
	writers_are_killed();
	name_is_taken();
	others_stay();
	permissions();
	is(files(&mode), 1, "in the end there is one file");
	unlink(path);
	is(rmdir(folder), 0, "the folder is removed");
	return tap_done();
}
