/*
 * atomic_file.c: a file that takes another's place in one step, complete:
 * a process that opens the name sees the old file or the new one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atomic_file.h"
#include "fail.h"
#include "print.h"

#define TEMPORARY ".shmlimit-"
#define RANDOM_LEN 6
#define NAMES_MAX 100 /* BOUND: each name that is tried and taken is one of 2^24 */

static int fail_write(struct atomic_file *r, int error)
{
	int status = fail("%s: %s", r->path, strerror(error));

	atomic_file_drop(r);
	return status;
}

/*
 * May it be replaced? Replacing a device, a pipe or a link would take it away from every other
 * program.
 */
static int is_file_or_none(const char *path)
{
	struct stat there;

	return lstat(path, &there) != 0 || S_ISREG(there.st_mode);
}

/* PATH's folder, to be freed; NULL without memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *name_in_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* Is a file, as it is open, one that its writer left behind? A living one holds the lock. */
static int is_abandoned(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Remove what writers of `path` left that were killed. What cannot be looked at stays. */
static void sweep(const char *path, const char *folder)
{
	const char *name = name_in_folder(path);
	size_t len = strlen(name);
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *rest = entry->d_name + len;
		int fd;

		if (strncmp(entry->d_name, name, len) != 0 || strncmp(rest, TEMPORARY, strlen(TEMPORARY)) != 0 ||
		    strlen(rest) != strlen(TEMPORARY) + RANDOM_LEN)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && is_abandoned(fd))
			unlinkat(dirfd(dir), entry->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Put another random name into r->temporary. Returns 0 or errno. */
static int draw_name(struct atomic_file *r)
{
	uint32_t drawn;

	free(r->temporary);
	r->temporary = NULL;
	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return errno;
	if (asprintf(&r->temporary, "%s" TEMPORARY "%06x", r->path, (unsigned)(drawn & 0xffffff)) < 0) {
		r->temporary = NULL;
		return ENOMEM;
	}
	return 0;
}

/* Give a file without a name one in PATH's folder. Returns 0 or errno. */
static int give_name(struct atomic_file *r, int fd)
{
	char own[32];
	int error;

	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	for (int i = 0; i < NAMES_MAX; i++) {
		error = draw_name(r);
		if (error != 0)
			return error;
		if (linkat(AT_FDCWD, own, AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		error = errno;
		free(r->temporary);
		r->temporary = NULL;
		if (error != EEXIST)
			break;
	}
	return error;
}

/* A file that has no name yet, locked; -1: this filesystem, or a system without /proc, has none. */
static int open_nameless(const char *folder, mode_t mode)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	char own[32];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	if (fd >= 0 &&
	    (flock(fd, LOCK_EX | LOCK_NB) != 0 || faccessat(AT_FDCWD, own, F_OK, AT_SYMLINK_NOFOLLOW) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A file with a temporary name, locked where the filesystem has locks; -1 and errno. */
static int open_named(struct atomic_file *r, mode_t mode)
{
	struct stat file;
	int fd = -1, error = EEXIST;

	for (int i = 0; i < NAMES_MAX && error == EEXIST; i++) {
		error = draw_name(r);
		if (error != 0)
			break;
		fd = open(r->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
		error = fd < 0 ? errno : 0;
		/* Another writer may sweep it away before it is locked. */
		if (fd >= 0 && ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
		                (fstat(fd, &file) == 0 && file.st_nlink == 0))) {
			close(fd);
			error = EEXIST;
		}
	}
	if (error == 0)
		return fd;
	free(r->temporary);
	r->temporary = NULL;
	errno = error;
	return -1;
}

static int begin(struct atomic_file *r, const char *path, int is_private)
{
	/* The kernel takes the umask away from it. */
	mode_t mode = is_private ? S_IRUSR | S_IWUSR : 0666;
	char *folder;
	int fd, error;

	*r = (struct atomic_file){ .path = path, .fd = -1, .is_private = is_private };
	if (strcmp(path, "-") == 0) {
		r->to = stdout;
		return STATUS_OK;
	}
	if (!is_file_or_none(path))
		return fail("%s: not a regular file", path);
	folder = folder_of(path);
	if (folder == NULL)
		return fail_memory();
	sweep(path, folder);
	fd = open_nameless(folder, mode);
	if (fd < 0)
		fd = open_named(r, mode);
	error = errno;
	free(folder);
	if (fd < 0)
		return fail_write(r, error);
	r->fd = fd;
	fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || (r->to = fdopen(fd, "w")) == NULL) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return fail_write(r, error);
	}
	return STATUS_OK;
}

int atomic_file_open(struct atomic_file *r, const char *path)
{
	return begin(r, path, 0);
}

int atomic_file_open_private(struct atomic_file *r, const char *path)
{
	return begin(r, path, 1);
}

/* A name is on the disk when its folder is. */
static int sync_folder(const char *path)
{
	char *folder = folder_of(path);
	int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = fd < 0 || fsync(fd) != 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	free(folder);
	return error;
}

int atomic_file_commit(struct atomic_file *r)
{
	FILE *to = r->to;
	int error = 0;

	r->to = NULL;
	if (to == stdout)
		return STATUS_OK; /* main() says what could not be written */
	errno = 0;
	if (fflush(to) != 0 || ferror(to))
		error = errno != 0 ? errno : EIO;
	if (error == 0 && r->is_private && fsync(r->fd) != 0)
		error = errno;
	if (fclose(to) != 0 && error == 0)
		error = errno;
	if (error == 0 && r->temporary == NULL)
		error = give_name(r, r->fd);
	if (error == 0 && rename(r->temporary, r->path) != 0)
		error = errno;
	if (error != 0)
		return fail_write(r, error);
	free(r->temporary);
	r->temporary = NULL;
	atomic_file_drop(r);
	error = r->is_private ? sync_folder(r->path) : 0;
	return error == 0 ? STATUS_OK : fail("%s: %s", r->path, strerror(error));
}

void atomic_file_drop(struct atomic_file *r)
{
	if (r->to != NULL && r->to != stdout)
		fclose(r->to);
	if (r->temporary != NULL)
		unlink(r->temporary);
	free(r->temporary);
	/* Last: until then the lock says that its writer lives. */
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct atomic_file){ .path = r->path, .fd = -1, .is_private = r->is_private };
}
