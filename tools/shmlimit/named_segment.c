/*
 * named_segment.c: open a segment, and say whose and what it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <unistd.h>

#include "choice.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"

static uint32_t trusted; /* besides root and the effective user; 0: no other user */

int segment_trust(const char *user)
{
	const struct passwd *named = getpwnam(user);
	const char *rest = user;
	uint64_t number;

	if (named == NULL && (digits_scan(&rest, &number) != 0 || *rest != '\0' || number >= UINT32_MAX))
		return fail("--owner %s: no such user (a name or a number)", user);
	trusted = named != NULL ? named->pw_uid : (uint32_t)number;
	return STATUS_OK;
}

int segment_trusts(uint32_t user_id)
{
	return trusted != 0 && user_id == trusted;
}

int segment_try(const char *name, uint32_t flags, struct shmlimit **out)
{
	/* WHY NOT for all users: they name a segment of another service, and lose no more than this command. */
	if (geteuid() == 0 || (flags & SHMLIMIT_OPEN_TRUSTED)) {
		struct shmlimit_options options = { .struct_size = sizeof(options), .owner = trusted };

		return shmlimit_open(name, flags | SHMLIMIT_OPEN_TRUSTED, &options, out);
	}
	return shmlimit_open(name, flags, NULL, out);
}

int segment_open(const char *name, uint32_t flags, struct shmlimit **out)
{
	int error = segment_try(name, flags, out);

	return error < 0 ? fail_segment(name, error) : STATUS_OK;
}

void segment_owner(const struct shmlimit_info *info, char owner[TEXT_LEN])
{
	const struct passwd *user = getpwuid(info->uid);
	const struct group *group = getgrgid(info->gid);
	int len;

	if (user != NULL)
		len = snprintf(owner, TEXT_LEN, "%.30s:", user->pw_name);
	else
		len = snprintf(owner, TEXT_LEN, "%" PRIu32 ":", info->uid);
	if (group != NULL)
		snprintf(owner + len, (size_t)(TEXT_LEN - len), "%.30s", group->gr_name);
	else
		snprintf(owner + len, (size_t)(TEXT_LEN - len), "%" PRIu32, info->gid);
}

json_t *segment_json(const char *name, const struct shmlimit_info *info)
{
	char owner[TEXT_LEN], mode[TEXT_LEN];

	segment_owner(info, owner);
	snprintf(mode, sizeof(mode), "%04" PRIo32, info->mode);
	/* clang-format off */
	return json_pack("{s:o, s:n, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}",
	                 "name", json_text(name), "error",
	                 "enabled", info->enabled != 0,
	                 "size", json_number(info->size),
	                 "slots", json_number(info->slots),
	                 "old_slots", json_number(info->old_slots),
	                 "slots_max", json_number(info->slots_max),
	                 "rules_used", json_number(info->rules_used),
	                 "rules", json_number(info->rules),
	                 "rules_max", json_number(info->rules_max),
	                 "window_max", json_number(info->window_max),
	                 "window_limit", json_number(info->window_limit),
	                 "store_keys", json_number(info->store_keys),
	                 "on_full", choice_word(choices_on_full, info->on_full),
	                 "clock", choice_word(choices_clock, info->clock),
	                 "mode", mode,
	                 "owner", json_text(owner),
	                 "uid", json_number(info->uid),
	                 "gid", json_number(info->gid),
	                 "layout_version", json_number(info->layout_version),
	                 "created_unix_ns", json_number(info->created_unix_ns));
	/* clang-format on */
}
