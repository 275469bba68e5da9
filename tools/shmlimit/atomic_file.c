/*
 * atomic_file.c: a file that takes another's place in one step, complete:
 * a process that opens the name sees the old file or the new one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atomic_file.h"
#include "fail.h"
#include "print.h"

/* The permissions of a file that a shell's redirection creates: mkstemp(3) grants them to the owner only. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int fail_write(struct atomic_file *r, int error)
{
	int status = fail("%s: %s", r->path, strerror(error));

	atomic_file_drop(r);
	return status;
}

/* May it be replaced? Replacing a device, a pipe or a link would take it away from every other program. */
static int is_file_or_none(const char *path)
{
	struct stat there;

	return lstat(path, &there) != 0 || S_ISREG(there.st_mode);
}

static int begin(struct atomic_file *r, const char *path, int is_private)
{
	int fd;

	*r = (struct atomic_file){ .path = path, .is_private = is_private };
	if (strcmp(path, "-") == 0) {
		r->to = stdout;
		return STATUS_OK;
	}
	if (!is_file_or_none(path))
		return fail("%s: not a regular file", path);
	if (asprintf(&r->temporary, "%s.XXXXXX", path) < 0) {
		r->temporary = NULL;
		return fail_memory();
	}
	fd = mkstemp(r->temporary);
	if (fd < 0) {
		int error = errno;

		free(r->temporary);
		r->temporary = NULL;
		return fail_write(r, error);
	}
	if ((!is_private && fchmod(fd, usual_mode()) != 0) || (r->to = fdopen(fd, "w")) == NULL) {
		int error = errno;

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
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
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
	if (error == 0 && r->is_private && fsync(fileno(to)) != 0)
		error = errno;
	if (fclose(to) != 0 && error == 0)
		error = errno;
	if (error == 0 && rename(r->temporary, r->path) != 0)
		error = errno;
	if (error != 0)
		return fail_write(r, error);
	free(r->temporary);
	r->temporary = NULL;
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
	*r = (struct atomic_file){ .path = r->path };
}
