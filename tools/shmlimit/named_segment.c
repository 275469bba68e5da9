/*
 * named_segment.c: open a segment, and say whose and what it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
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

/* ---- An owner who truncates the file ---- */

static char opened[SHMLIMIT_NAME_MAX + 1]; /* the segment of another user that was opened last; "": none */
static sigjmp_buf *volatile visiting;

/*
 * Nothing but a page of a segment that is no more raises this signal: the command's own files are
 * not mapped.
 */
static void lost(int number)
{
	static const char before[] = "shmlimit: segment ", after[] = ": its owner truncated it while it was in use\n";

	(void)number;
	if (visiting != NULL)
		siglongjmp(*visiting, 1);
	(void)!write(STDERR_FILENO, before, sizeof(before) - 1);
	(void)!write(STDERR_FILENO, opened, strlen(opened));
	(void)!write(STDERR_FILENO, after, sizeof(after) - 1);
	_exit(STATUS_ERROR);
}

static void await_loss(void)
{
	struct sigaction action = { .sa_handler = lost };

	sigaction(SIGBUS, &action, NULL);
}

/* ---- Owners ---- */

/* Another user than root and those that are trusted; 0: none. */
static uint32_t stranger_of(const char *name)
{
	char path[SHMLIMIT_PATH_MAX];
	struct stat status;

	if (shmlimit_path(name, path) != 0 || lstat(path, &status) != 0 || status.st_uid == geteuid() ||
	    segment_trusts(status.st_uid))
		return 0;
	return status.st_uid;
}

/* Once for a segment that is opened again and again: top opens it every second. */
static void tell_owner(const char *name, uint32_t owner)
{
	const struct passwd *user = getpwuid(owner);
	char number[TEXT_LEN];

	if (strcmp(opened, name) == 0)
		return;
	snprintf(number, sizeof(number), "%" PRIu32, owner);
	fail("segment %s: belongs to %s, who can change all that it holds (without this message: shmlimit --owner %s ...)",
	     name, user != NULL ? user->pw_name : number, user != NULL ? user->pw_name : number);
	snprintf(opened, sizeof(opened), "%s", name);
}

/*
 * The file that is opened is that owner's, has one name, and has its memory: the library looks at
 * it before it is mapped.
 */
static int open_of(const char *name, uint32_t flags, uint32_t owner, struct shmlimit **out)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .owner = owner };

	return shmlimit_open(name, flags | SHMLIMIT_OPEN_TRUSTED, &options, out);
}

int segment_try(const char *name, uint32_t flags, struct shmlimit **out)
{
	uint32_t stranger = geteuid() == 0 && (flags & SHMLIMIT_OPEN_TRUSTED) == 0 ? stranger_of(name) : 0;
	int error;

	/*
	 * WHY NOT for all users: they name a segment of another service, and lose no more than this
	 * command.
	 */
	if (geteuid() != 0 && (flags & SHMLIMIT_OPEN_TRUSTED) == 0)
		return shmlimit_open(name, flags, NULL, out);
	if (stranger == 0)
		return open_of(name, flags, trusted, out);
	await_loss();
	error = open_of(name, flags, stranger, out);
	if (error == 0)
		tell_owner(name, stranger);
	return error;
}

int segment_visit(const char *name, void (*visit)(void *context, struct shmlimit *limiter), void *context)
{
	uint32_t stranger = stranger_of(name);
	struct shmlimit *opened_now, *volatile limiter = NULL; /* kept over the jump */
	sigjmp_buf back;
	int error;

	await_loss();
	if (sigsetjmp(back, 1) != 0) {
		visiting = NULL;
		shmlimit_close(limiter);
		return -EUCLEAN;
	}
	visiting = &back;
	error = open_of(name, SHMLIMIT_OPEN_READ_ONLY, stranger != 0 ? stranger : trusted, &opened_now);
	if (error == 0) {
		limiter = opened_now;
		visit(context, opened_now);
		shmlimit_close(opened_now);
	}
	visiting = NULL;
	return error;
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
	return json_pack("{s:o, s:n, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}",
	                 "name", json_text(name), "error",
	                 "enabled", info->enabled != 0,
	                 "size", json_number(info->size),
	                 "slots", json_number(info->slots),
	                 "old_slots", json_number(info->old_slots),
	                 "slots_max", json_number(info->slots_max),
	                 "rules_used", json_number(info->rules_used),
	                 "rules", json_number(info->rules),
	                 "rules_max", json_number(info->rules_max),
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
