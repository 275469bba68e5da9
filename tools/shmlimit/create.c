/*
 * create.c: shmlimit create.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>

#include "command.h"

enum { SLOTS, MODE, GROUP, ON_FULL, RULES, WINDOW_MAX, CLOCK };

static const struct command_option options[] = {
	[SLOTS] = { "slots", "N", "keys that can be live at once, 16 to 64G; 1K is 1024 (default 64K)" },
	[MODE] = { "mode", "MODE", "permissions, octal (default 0600)" },
	[GROUP] = { "group", "G", "the group that owns it, by name or number (default your own)" },
	[ON_FULL] = { "on-full", "WHAT", "for a key that finds no room: evict (default), allow or deny" },
	[RULES] = { "rules", "N", "rules that it can hold, 1 to 4096 (default 64)" },
	[WINDOW_MAX] = { "window-max", "N", "the largest window, up to 65536: 8 bytes each a slot (default 0: none)" },
	[CLOCK] = { "clock", "WHICH", "precise or coarse (default precise)" },
	{ 0 },
};

/* WHY NOT 0: to the library it means the default. */
static int mode_parse(const char *text, uint32_t *mode)
{
	uint32_t bits = 0;

	for (const char *t = text; *t != '\0'; t++) {
		if (*t < '0' || *t > '7' || t - text >= 4)
			return fail("--mode %s: not permissions: must be octal, 0600 or 0660", text);
		bits = bits * 8 + (uint32_t)(*t - '0');
	}
	if (bits == 0 || bits > 0777)
		return fail("--mode %s: must be 0001 to 0777", text);
	*mode = bits;
	return STATUS_OK;
}

/* The library wants 1 + the id, 0 being the default. */
static int group_parse(const char *text, uint64_t *group)
{
	const struct group *named = getgrnam(text);
	const char *t = text;
	uint64_t id;

	if (named != NULL) {
		*group = 1 + (uint64_t)named->gr_gid;
		return STATUS_OK;
	}
	if (digits_scan(&t, &id) != 0 || *t != '\0' || id >= UINT32_MAX)
		return fail("--group %s: no such group: must be a name (getent group lists them) or a number",
		            text);
	*group = 1 + id;
	return STATUS_OK;
}

static int options_parse(const struct call *call, struct shmlimit_options *o)
{
	const char *const *text = call->option;
	uint64_t rules = 0, window_max = 0;
	int status = STATUS_OK;

	if (text[SLOTS] != NULL)
		status = size_parse("--slots", text[SLOTS], SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &o->slots);
	if (status == STATUS_OK && text[MODE] != NULL)
		status = mode_parse(text[MODE], &o->mode);
	if (status == STATUS_OK && text[GROUP] != NULL)
		status = group_parse(text[GROUP], &o->group);
	if (status == STATUS_OK && text[ON_FULL] != NULL)
		status = choice_parse("--on-full", text[ON_FULL], choices_on_full, &o->on_full);
	if (status == STATUS_OK && text[RULES] != NULL)
		status = number_parse("--rules", text[RULES], 1, SHMLIMIT_RULES_MAX, &rules);
	if (status == STATUS_OK && text[WINDOW_MAX] != NULL)
		status = size_parse("--window-max", text[WINDOW_MAX], 0, SHMLIMIT_WINDOW_MAX, &window_max);
	if (status == STATUS_OK && text[CLOCK] != NULL)
		status = choice_parse("--clock", text[CLOCK], choices_clock, &o->clock);
	o->rules = (uint32_t)rules;
	o->window_max = (uint32_t)window_max;
	return status;
}

static int fail_create(const char *name, const struct call *call, int error)
{
	if (error == -EPERM && call->option[GROUP] != NULL)
		return fail("segment %s: --group %s: cannot be given: must be a group that you belong to",
		            name, call->option[GROUP]);
	switch (-error) {
	case EEXIST:
		return fail("segment %s: exists already: must be another name, or be removed first "
		            "(shmlimit destroy %s)", name, name);
	case ENOSPC:
	case ENOMEM:
	case EFBIG:
		return fail("segment %s: no room in /dev/shm: must be fewer --slots, a smaller --window-max, or other segments "
		            "must go (shmlimit list)", name);
	case EACCES:
		return fail("segment %s: no permission to make files in /dev/shm: must be granted by root "
		            "(chmod 1777 /dev/shm)", name);
	default:
		return fail_segment(name, error);
	}
}

static int run(const struct call *call)
{
	struct shmlimit_options o = { .struct_size = sizeof(o) };
	int error, status = options_parse(call, &o);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_create(call->operand[0], &o, NULL);
	return error < 0 ? fail_create(call->operand[0], call, error) : STATUS_OK;
}

const struct command command_create = {
	.name = "create",
	.operands = "NAME",
	.purpose = "make a segment",
	.options = options,
	.run = run,
};
