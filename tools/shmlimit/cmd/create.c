/*
 * create.c: shmlimit create.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "command.h"
#include "named_segment.h"
#include "number_text.h"
#include "segment_options.h"

enum { IF_MISSING = SEGMENT_OPTIONS };

/* clang-format off */
static const struct command_option options[] = {
	[OPTION_SLOTS] = { "slots", "N", "keys that can be live at once, 16 to 64Gi (default 64Ki)" },
	[OPTION_SLOTS_MAX] = { "slots-max", "N", "the segment can grow to this many (default 16 times --slots)" },
	[OPTION_MODE] = { "mode", "MODE", "permissions, octal (default 0600)" },
	[OPTION_GROUP] = { "group", "G", "the group that owns it, by name or number (default your own)" },
	[OPTION_ON_FULL] = { "on-full", "WHAT", "for a key that finds no free slot: evict (default), allow or deny" },
	[OPTION_RULES] = { "rules", "N", "rules that it has room for at first, 1 to 4096 (default 64)" },
	[OPTION_RULES_MAX] = { "rules-max", "N", "rules can become this many (default 4096)" },
	[OPTION_NAMES] = { "store-keys", "BYTES", "store this much of each key, for display; up to 1024 (default 0: none)" },
	[OPTION_CLOCK] = { "clock", "WHICH", "precise or coarse (default precise)" },
	[IF_MISSING] = { "if-missing", NULL, "succeed if the segment exists, and leave it as it is" },
	{ 0 },
};
/* clang-format on */

/* Whatever it was made with: what was asked for otherwise is warned of. */
static int keep(const struct call *call, const struct shmlimit_options *o)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *limiter;
	int status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	shmlimit_info(limiter, &info);
	for (int field = 0; field < SEGMENT_OPTIONS; field++)
		if (call->option[field] != NULL)
			segment_options_warn(call->operand[0], &info, field, o);
	shmlimit_close(limiter);
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit_options o = { .struct_size = sizeof(o) };
	int status = STATUS_OK, error;

	for (int field = 0; field < SEGMENT_OPTIONS && status == STATUS_OK; field++) {
		char what[TEXT_LEN];

		snprintf(what, sizeof(what), "--%s", options[field].name);
		if (call->option[field] != NULL)
			status = segment_options_parse(what, field, call->option[field], &o);
	}
	if (status != STATUS_OK)
		return status;
	/* WHY NOT look first: another process may create it in between. */
	error = shmlimit_create(call->operand[0], &o, NULL);
	if (error == -EEXIST && call->option[IF_MISSING] != NULL)
		return keep(call, &o);
	return error < 0 ? segment_options_fail_as(call->operand[0], &o, error) : STATUS_OK;
}

const struct command command_create = {
	.name = "create",
	.operands = "NAME",
	.purpose = "create a segment",
	.options = options,
	.run = run,
};
