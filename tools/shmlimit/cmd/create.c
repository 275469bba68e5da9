/*
 * create.c: shmlimit create.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static const struct command_option options[] = {
	[CREATION_SLOTS] = { "slots", "N", "keys that can be live at once, 16 to 64Gi (default 64Ki)" },
	[CREATION_SLOTS_MAX] = { "slots-max", "N", "to how many it can be grown (default 16 times as many)" },
	[CREATION_MODE] = { "mode", "MODE", "permissions, octal (default 0600)" },
	[CREATION_GROUP] = { "group", "G", "the group that owns it, by name or number (default your own)" },
	[CREATION_ON_FULL] = { "on-full", "WHAT", "for a key that finds no room: evict (default), allow or deny" },
	[CREATION_RULES] = { "rules", "N", "rules that it can hold, 1 to 4096 (default 64)" },
	[CREATION_WINDOW_MAX] = { "window-max", "N", "the largest window, up to 65536: 16 bytes each a slot (default 0: none)" },
	[CREATION_NAMES] = { "names", "BYTES", "keep so much of each key, to show it, up to 1024 (default 0: none)" },
	[CREATION_CLOCK] = { "clock", "WHICH", "precise or coarse (default precise)" },
	{ 0 },
};

static int run(const struct call *call)
{
	struct shmlimit_options o = { .struct_size = sizeof(o) };
	int status = STATUS_OK;

	for (int field = 0; field < CREATION_FIELDS && status == STATUS_OK; field++) {
		char what[TEXT_LEN];

		snprintf(what, sizeof(what), "--%s", options[field].name);
		if (call->option[field] != NULL)
			status = creation_parse(what, field, call->option[field], &o);
	}
	return status == STATUS_OK ? creation_carry_out(call->operand[0], &o, NULL) : status;
}

const struct command command_create = {
	.name = "create",
	.operands = "NAME",
	.purpose = "make a segment",
	.options = options,
	.run = run,
};
