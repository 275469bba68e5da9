/*
 * load.c: shmlimit load: a segment, from a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "fail.h"
#include "segment_options.h"

enum { NO_ELAPSED, CAN_GROW };

static const struct command_option options[] = {
	[NO_ELAPSED] = { "no-elapsed", NULL, "ignore the time since it was saved: keys have what they had then" },
	[CAN_GROW] = { "can-grow", NULL, "let it grow to 16 times its slots, if the saved segment could not" },
	{ 0 },
};

static int fail_load(const char *segment, const char *path, int error)
{
	switch (-error) {
	case EMEDIUMTYPE:
		return fail("%s: not a saved segment (shmlimit save writes one)", path);
	case EPROTO:
		return fail("%s: saved by another version: load it with the shmlimit that saved it", path);
	case EUCLEAN:
		return fail("%s: damaged or incomplete: save the segment again", path);
	case EPERM:
		return fail(
			"segment %s: the group that it was saved with cannot be set (only root, or a user who belongs to "
			"it, can)",
			segment);
	case EISDIR:
		return fail("%s: %s", path, strerror(-error));
	default:
		return segment_options_fail(segment, error);
	}
}

static int load(const char *segment, const char *path, uint32_t flags)
{
	int fd = STDIN_FILENO, error;

	if (strcmp(path, "-") != 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return fail("%s: %s", path, strerror(errno));
	}
	error = shmlimit_load(segment, fd, flags, NULL);
	if (fd != STDIN_FILENO)
		close(fd);
	return error == 0 ? STATUS_OK : fail_load(segment, fd == STDIN_FILENO ? "standard input" : path, error);
}

static int run(const struct call *call)
{
	uint32_t flags = call->option[NO_ELAPSED] != NULL ? SHMLIMIT_LOAD_NO_ELAPSED : 0;

	if (call->option[CAN_GROW] != NULL)
		flags |= SHMLIMIT_LOAD_CAN_GROW;
	return load(call->operand[0], call->operand[1], flags);
}

const struct command command_load = {
	.name = "load",
	.operands = "NAME FILE",
	.purpose = "create a segment from a saved file",
	.details = "Keys have the tokens saved, plus those refilled since, even over a reboot, by the real-time\n"
		   "clock. The segment must not exist. It appears in one step, complete, or not at all if anything is\n"
		   "wrong with FILE; - is standard input. Counters start at 0.\n",
	.options = options,
	.run = run,
};
