/*
 * save.c: shmlimit save: a segment, to a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "atomic_file.h"
#include "fail.h"
#include "named_segment.h"

static int save_to(struct shmlimit *limiter, const char *segment, const char *path, int fd)
{
	int error = shmlimit_save(limiter, fd);

	if (error == 0)
		return STATUS_OK;
	if (error == -ENOENT || error == -EUCLEAN || error == -EAGAIN || error == -ENOSYS)
		return fail_segment(segment, error);
	return fail("%s: %s", path, strerror(-error));
}

/*
 * What load would refuse must not take the place of what it would not: the segment may be damaged
 * while it is read.
 */
static int check(const char *segment, const char *path, int fd)
{
	int error = lseek(fd, 0, SEEK_SET) != 0 ? -errno : shmlimit_load(NULL, fd, SHMLIMIT_LOAD_CHECK_ONLY, NULL);

	if (error == 0)
		return STATUS_OK;
	if (error == -EUCLEAN)
		return fail(
			"segment %s: damaged: what was saved of it cannot be loaded, and %s stays as it was (shmlimit "
			"verify %s says what is wrong)",
			segment, path, segment);
	if (error == -ENOSYS)
		return fail_segment(segment, error);
	return fail("%s: cannot check what was saved: %s", path, strerror(-error));
}

static int save(struct shmlimit *limiter, const char *segment, const char *path)
{
	struct atomic_file file;
	int status;

	if (strcmp(path, "-") == 0)
		return save_to(limiter, segment, "standard output", STDOUT_FILENO);
	status = atomic_file_open_private(&file, path);
	if (status != STATUS_OK)
		return status;
	status = save_to(limiter, segment, path, fileno(file.to));
	if (status == STATUS_OK)
		status = check(segment, path, fileno(file.to));
	if (status == STATUS_OK)
		return atomic_file_commit(&file);
	atomic_file_drop(&file);
	return status;
}

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	int status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	status = save(limiter, call->operand[0], call->operand[1]);
	shmlimit_close(limiter);
	return status;
}

const struct command command_save = {
	.name = "save",
	.operands = "NAME FILE",
	.purpose = "write a segment to a file, for load",
	.details =
		"Saves the rules and what each key has left, while decisions go on. Replaces FILE in one step, when\n"
		"the new file is on disk and was read back; a file that load would refuse replaces nothing. The file\n"
		"contains the secret of the segment's hash, so only you can read it. FILE - is standard output.\n"
		"Counters, stored keys and leases are not saved.\n",
	.run = run,
};
