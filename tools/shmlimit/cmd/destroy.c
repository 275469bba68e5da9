/*
 * destroy.c: shmlimit destroy.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "fail.h"
#include "named_segment.h"
#include "temp_segment.h"

enum { FORCE, IF_EXISTS };

static const struct command_option options[] = {
	[FORCE] = { "force", NULL, "also a file of yours whose beginning was overwritten" },
	[IF_EXISTS] = { "if-exists", NULL, "succeed if there is no such segment" },
	{ 0 },
};

/* In bytes, whatever its options. */
static int smallest_segment(uint64_t *size)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = SHMLIMIT_SLOTS_MIN, .rules = 1 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *limiter;
	int status;

	o.slots_max = o.slots;
	status = temp_segment_open_read_only("destroy --force", &o, &limiter);
	if (status != STATUS_OK)
		return status;
	shmlimit_info(limiter, &info);
	*size = info.size;
	shmlimit_close(limiter);
	return STATUS_OK;
}

/*
 * A file without a segment's first bytes. Nothing shows that it ever was one, so it must at least be one that the
 * caller could have made, and no other program's as far as its name and size show it.
 */
static int remove_overwritten(const char *name)
{
	char path[sizeof("/dev/shm/") + SHMLIMIT_NAME_MAX];
	struct stat status;
	uint64_t least;

	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	if (lstat(path, &status) != 0)
		return fail_segment(name, -errno);
	if (!S_ISREG(status.st_mode))
		return fail("segment %s: not removed: %s is no regular file", name, path);
	if (strncmp(name, "sem.", 4) == 0)
		return fail("segment %s: not removed: %s is a semaphore's, by its name", name, path);
	if (status.st_uid != geteuid() && !segment_trusts(status.st_uid))
		return fail(
			"segment %s: not removed: %s belongs to user %ju (trust its owner: shmlimit --owner USER ...)",
			name, path, (uintmax_t)status.st_uid);
	if (smallest_segment(&least) != STATUS_OK)
		return STATUS_ERROR;
	if ((uint64_t)status.st_size < least)
		return fail("segment %s: not removed: %s has %jd bytes, and the smallest segment %" PRIu64, name, path,
		            (intmax_t)status.st_size, least);
	return unlink(path) == 0 ? STATUS_OK : fail_segment(name, -errno);
}

static int run(const struct call *call)
{
	const char *name = call->operand[0];
	int error = shmlimit_destroy(name);

	if (error == -ENOENT && call->option[IF_EXISTS] != NULL)
		return STATUS_OK;
	if (error == -EACCES || error == -EPERM)
		return fail("segment %s: no permission (only its owner and root can destroy it)", name);
	if (error == -EMEDIUMTYPE && call->option[FORCE] != NULL)
		return remove_overwritten(name);
	if (error == -EMEDIUMTYPE)
		return fail_segment(name, error);
	return error < 0 ? fail_segment(name, error) : STATUS_OK;
}

const struct command command_destroy = {
	.name = "destroy",
	.operands = "NAME",
	.purpose = "destroy a segment, even a damaged one",
	.details = "Processes that have it open can go on using it.\n",
	.options = options,
	.run = run,
};
