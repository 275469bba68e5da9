/*
 * segment_options.c: what a segment is made with, in words: on the command line or in
 * a file. What is not given stays 0, the library's word for its default.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <string.h>

#include "choice.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "number_text.h"
#include "segment_options.h"
#include "value_parse.h"

/* clang-format off */
const char *const segment_options_names[SEGMENT_OPTIONS] = {
	[OPTION_SLOTS] = "slots",
	[OPTION_SLOTS_MAX] = "slots-max",
	[OPTION_MODE] = "mode",
	[OPTION_GROUP] = "group",
	[OPTION_ON_FULL] = "on-full",
	[OPTION_RULES] = "rules",
	[OPTION_RULES_MAX] = "rules-max",
	[OPTION_NAMES] = "store-keys",
	[OPTION_CLOCK] = "clock",
};
/* clang-format on */

static int mode_parse(const char *what, const char *text, uint32_t *mode)
{
	uint32_t bits = 0;

	for (const char *t = text; *t != '\0'; t++) {
		if (*t < '0' || *t > '7' || t - text >= 4)
			return fail("%s %s: not permissions (in octal, for example 0600 or 0660)", what, text);
		bits = bits * 8 + (uint32_t)(*t - '0');
	}
	if (bits > 0777 || (bits & 0600) != 0600)
		return fail("%s %s: must be 0600 to 0777 with the owner's read and write bits (0600)", what, text);
	*mode = bits;
	return STATUS_OK;
}

static int group_parse(const char *what, const char *text, struct shmlimit_options *o)
{
	const struct group *named = getgrnam(text);
	const char *t = text;
	uint64_t id;

	if (named != NULL) {
		o->flags = SHMLIMIT_OPTION_GROUP;
		o->gid = named->gr_gid;
		return STATUS_OK;
	}
	if (digits_scan(&t, &id) != 0 || *t != '\0' || id >= UINT32_MAX)
		return fail("%s %s: no such group (a name, which getent group lists, or a number)", what, text);
	o->flags = SHMLIMIT_OPTION_GROUP;
	o->gid = (uint32_t)id;
	return STATUS_OK;
}

/* As the library rounds it, so that what is wanted can be compared with what there is. */
static uint64_t names_kept(uint64_t names)
{
	uint64_t rounded = names <= 14 ? 14 : (names + 2 + 7) / 8 * 8 - 2;

	if (names == 0)
		return 0;
	return rounded < SHMLIMIT_KEY_MAX ? rounded : SHMLIMIT_KEY_MAX;
}

int segment_options_parse(const char *what, int field, const char *text, struct shmlimit_options *o)
{
	uint64_t number = 0;
	int status = STATUS_OK;

	switch (field) {
	case OPTION_SLOTS:
		return number_parse(what, text, SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &o->slots);
	case OPTION_SLOTS_MAX:
		return number_parse(what, text, SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &o->slots_max);
	case OPTION_MODE:
		return mode_parse(what, text, &o->mode);
	case OPTION_GROUP:
		return group_parse(what, text, o);
	case OPTION_ON_FULL:
		return choice_parse(what, text, choices_on_full, &o->on_full);
	case OPTION_RULES:
		status = number_parse(what, text, 1, SHMLIMIT_RULES_MAX, &number);
		o->rules = (uint32_t)number;
		return status;
	case OPTION_RULES_MAX:
		status = number_parse(what, text, 1, SHMLIMIT_RULES_MAX, &number);
		o->rules_max = (uint32_t)number;
		return status;
	case OPTION_NAMES:
		status = number_parse(what, text, 0, SHMLIMIT_KEY_MAX, &number);
		o->store_keys = (uint32_t)names_kept(number);
		return status;
	default:
		return choice_parse(what, text, choices_clock, &o->clock);
	}
}

static const char *group_text(char text[TEXT_LEN], uint64_t id)
{
	const struct group *named = getgrgid((gid_t)id);

	if (named != NULL)
		snprintf(text, TEXT_LEN, "%s", named->gr_name);
	else
		snprintf(text, TEXT_LEN, "%" PRIu64, id);
	return text;
}

const char *segment_options_text(char text[TEXT_LEN], int field, const struct shmlimit_options *o)
{
	switch (field) {
	case OPTION_SLOTS:
		return number_text(text, o->slots);
	case OPTION_SLOTS_MAX:
		return number_text(text, o->slots_max);
	case OPTION_MODE:
		snprintf(text, TEXT_LEN, "%04" PRIo32, o->mode);
		return text;
	case OPTION_GROUP:
		return group_text(text, o->gid);
	case OPTION_ON_FULL:
		return choice_word(choices_on_full, o->on_full);
	case OPTION_RULES:
		snprintf(text, TEXT_LEN, "%" PRIu32, o->rules);
		return text;
	case OPTION_RULES_MAX:
		snprintf(text, TEXT_LEN, "%" PRIu32, o->rules_max);
		return text;
	case OPTION_NAMES:
		snprintf(text, TEXT_LEN, "%" PRIu32, o->store_keys);
		return text;
	default:
		return choice_word(choices_clock, o->clock);
	}
}

void segment_options_of(const struct shmlimit_info *info, struct shmlimit_options *o)
{
	*o = (struct shmlimit_options){
		.struct_size = sizeof(*o),
		.slots = info->slots,
		.slots_max = info->slots_max,
		.mode = info->mode,
		.flags = SHMLIMIT_OPTION_GROUP,
		.gid = info->gid,
		.on_full = info->on_full,
		.rules = info->rules,
		.rules_max = info->rules_max,
		.store_keys = info->store_keys,
		.clock = info->clock,
	};
}

/* Has it as much as is wanted, or more, of what grows? */
static int has_grown(int field, const struct shmlimit_options *made, const struct shmlimit_options *wanted)
{
	return (field == OPTION_RULES && made->rules >= wanted->rules) ||
	       (field == OPTION_SLOTS && made->slots >= wanted->slots && made->slots_max > made->slots);
}

#define WAY_LEN (SHMLIMIT_PATH_MAX + 64)

/* How the option is changed. WHY NOT destroy: the segment is in use. */
static const char *way_to(char way[WAY_LEN], const char *name, int field, const struct shmlimit_options *made,
                          const struct shmlimit_options *wanted)
{
	char path[SHMLIMIT_PATH_MAX] = "its file", text[TEXT_LEN];
	const char *value = segment_options_text(text, field, wanted);

	(void)shmlimit_path(name, path);
	if (field == OPTION_SLOTS && wanted->slots >= 2 * made->slots && wanted->slots <= made->slots_max)
		snprintf(way, WAY_LEN, "shmlimit grow %s --%s %s", name, segment_options_names[field], value);
	else if (field == OPTION_MODE || field == OPTION_GROUP)
		snprintf(way, WAY_LEN, "%s %s %s", field == OPTION_MODE ? "chmod" : "chgrp", value, path);
	else
		snprintf(way, WAY_LEN, "make a new segment, of another name or when no process uses this one");
	return way;
}

/* No failure: the rules are none the worse for it. */
void segment_options_warn(const char *name, const struct shmlimit_info *info, int field,
                          const struct shmlimit_options *wanted)
{
	struct shmlimit_options made;
	char old[TEXT_LEN], new[TEXT_LEN], way[WAY_LEN];

	segment_options_of(info, &made);
	if (!has_grown(field, &made, wanted) &&
	    strcmp(segment_options_text(old, field, &made), segment_options_text(new, field, wanted)) != 0)
		(void)fail("warning: %s %s: segment %s has %s, and keeps it (to change it: %s)",
		           segment_options_names[field], segment_options_text(new, field, wanted), name,
		           segment_options_text(old, field, &made), way_to(way, name, field, &made, wanted));
}

/* A file of that name that is no segment: it cannot be removed by shmlimit destroy. */
static int is_foreign(const char *name)
{
	struct shmlimit *limiter;
	int error = shmlimit_open(name, SHMLIMIT_OPEN_READ_ONLY, NULL, &limiter);

	if (error == 0)
		shmlimit_close(limiter);
	return error == -EMEDIUMTYPE;
}

int segment_options_fail(const char *name, int error)
{
	switch (-error) {
	case EEXIST:
		if (is_foreign(name))
			return fail_segment(name, -EMEDIUMTYPE);
		return fail("segment %s: exists already (use another name, or remove it when no process uses it: "
		            "shmlimit destroy %s)",
		            name, name);
	case ENOSPC:
	case ENOMEM:
		return fail("segment %s: no room in /dev/shm: use fewer slots or a smaller store-keys, or destroy "
		            "segments that no process uses (shmlimit list)",
		            name);
	case EDQUOT:
		return fail("segment %s: larger than a file may be here: use fewer slots, a smaller rules-max or "
		            "store-keys, or a higher limit (ulimit -f)",
		            name);
	case ENODEV:
		return fail("segment %s: /dev/shm is no tmpfs, or /proc is missing: mount both (mount -t tmpfs -o "
		            "mode=1777 tmpfs /dev/shm)",
		            name);
	case EACCES:
		return fail("segment %s: no permission to create files in /dev/shm (root can grant it: chmod 1777 "
		            "/dev/shm)",
		            name);
	default:
		return fail_segment(name, error);
	}
}

int segment_options_fail_as(const char *name, const struct shmlimit_options *o, int error)
{
	char group[TEXT_LEN];

	if (error == -EEXIST && !is_foreign(name))
		return fail("segment %s: exists already (shmlimit inspect %s shows it; create --if-missing keeps it)",
		            name, name);
	if (error == -EPERM && (o->flags & SHMLIMIT_OPTION_GROUP))
		return fail("segment %s: group %s: cannot be set (only root, or a user who belongs to it, can)", name,
		            group_text(group, o->gid));
	if (error == -EINVAL && o->slots_max != 0 && o->slots > o->slots_max)
		return fail("segment %s: slots-max %" PRIu64 ": must be as many as slots or more", name, o->slots_max);
	if (error == -EINVAL && o->rules_max != 0 && o->rules > o->rules_max)
		return fail("segment %s: rules-max %" PRIu32 ": must be as many as rules or more", name, o->rules_max);
	return segment_options_fail(name, error);
}

int segment_options_create(const char *name, const struct shmlimit_options *o, struct shmlimit **out)
{
	int error = shmlimit_create(name, o, out);

	return error < 0 ? segment_options_fail_as(name, o, error) : STATUS_OK;
}
