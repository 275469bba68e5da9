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
#include "value_parse.h"

enum { FORCE, IF_EXISTS, LAYOUT };

static const struct command_option options[] = {
	[FORCE] = { "force", NULL, "also a file of yours whose beginning was overwritten" },
	[IF_EXISTS] = { "if-exists", NULL, "succeed if there is no such segment" },
	[LAYOUT] = { "layout", "N", "the segment of this layout version, which another version of shmlimit made" },
	{ 0 },
};

/* In bytes, whatever its options. */
static int smallest_segment(uint64_t *size)
{
	struct shmlimit_options o = {
		.struct_size = sizeof(o), .slots = SHMLIMIT_SLOTS_MIN, .rules = 1, .rules_max = 1
	};
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
 * A file without a segment's first bytes. Nothing shows that it ever was one, so it must at least
 * be one that the caller could have made, and no other program's as far as its name and size show
 * it.
 */
static int remove_overwritten(const char *name)
{
	char path[SHMLIMIT_PATH_MAX];
	struct stat status;
	uint64_t least;

	(void)shmlimit_path(name, path);
	if (lstat(path, &status) != 0)
		return fail_segment(name, -errno);
	if (!S_ISREG(status.st_mode))
		return fail("segment %s: not removed: %s is no regular file", name, path);
	if (status.st_uid != geteuid() && !segment_trusts(status.st_uid))
		return fail(
			"segment %s: not removed: %s belongs to user %ju (trust its owner: shmlimit --owner USER ...)",
			name, path, (uintmax_t)status.st_uid);
	if (smallest_segment(&least) != STATUS_OK)
		return STATUS_ERROR;
	if ((uint64_t)status.st_size < least)
		return fail("segment %s: not removed: %s has %jd bytes, and the smallest segment %" PRIu64
		            " (if no other program needs it, remove it with rm)",
		            name, path, (intmax_t)status.st_size, least);
	return unlink(path) == 0 ? STATUS_OK : fail_segment(name, -errno);
}

static int run(const struct call *call)
{
	const char *name = call->operand[0];
	uint64_t layout = shmlimit_layout();
	int status = STATUS_OK, error;

	if (call->option[LAYOUT] != NULL)
		status = number_parse("--layout", call->option[LAYOUT], 1, SHMLIMIT_LAYOUT_MAX, &layout);
	if (status == STATUS_OK && call->option[FORCE] != NULL && layout != shmlimit_layout())
		status = fail("--force: not with --layout of another version");
	if (status != STATUS_OK)
		return status;
	error = shmlimit_destroy_layout(name, (uint32_t)layout);
	if (error == -ENOENT && layout != shmlimit_layout() && call->option[IF_EXISTS] == NULL) {
		fail("segment %s: none of layout version %" PRIu64 " (shmlimit list lists all)", name, layout);
		return STATUS_MISSING;
	}
	if (error == -ENOENT && call->option[IF_EXISTS] != NULL)
		return STATUS_OK;
	if (error == -EMEDIUMTYPE && layout != shmlimit_layout())
		return fail("segment %s: layout version %" PRIu64 ": not a shmlimit segment", name, layout);
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
	.details = "Processes that have it open can go on using it.\n"
		   "A segment of another layout version is left alone unless --layout names it.\n",
	.options = options,
	.run = run,
};
