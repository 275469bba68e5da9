/*
 * fail.c: messages. Each names the thing, says what was wrong with it and what
 * would be right.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <string.h>

#include "escape.h"
#include "command.h"
#include "duration.h"
#include "fail.h"
#include "number_text.h"
#include "other_layout.h"
#include "print.h"
#include "refused.h"
#include "limit_text.h"
#include "traits.h"

#define FAIL_CUT 1024

static struct {
	const char *path; /* NULL: messages are about what was typed */
	int line;
} where;

void fail_where(const char *path, int line)
{
	where.path = path;
	where.line = line;
}

int fail(const char *format, ...)
{
	char *text = NULL, cut[FAIL_CUT];
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	/* Without memory the message is as long as there is room here. */
	va_start(ap, format);
	vsnprintf(cut, sizeof(cut), format, ap);
	va_end(ap);
	fputs("shmlimit: ", stderr);
	if (where.path != NULL) {
		print_clean(stderr, where.path);
		fprintf(stderr, ":%d: ", where.line);
	}
	print_clean(stderr, text != NULL ? text : cut);
	putc('\n', stderr);
	free(text);
	return STATUS_ERROR;
}

int fail_memory(void)
{
	return fail("out of memory");
}

/* An empty name must be seen, too. */
static const char *shown(const char *name)
{
	return *name != '\0' ? name : "\"\"";
}

/*
 * Why the segment's file is not trusted, which is asked of the file again: it may be another one by
 * now.
 */
static int fail_owner(const char *segment)
{
	const struct passwd *user;
	struct stat status = { 0 };
	char path[SHMLIMIT_PATH_MAX], owner[TEXT_LEN];
	int found = shmlimit_path(segment, path) == 0 && lstat(path, &status) == 0;

	if (found && status.st_nlink > 1)
		return fail("segment %s: not trusted: its file has %ju hard links (find /dev/shm -inum %ju lists "
		            "them; remove all but one)",
		            segment, (uintmax_t)status.st_nlink, (uintmax_t)status.st_ino);
	user = getpwuid(status.st_uid);
	if (user != NULL)
		snprintf(owner, sizeof(owner), "%.40s", user->pw_name);
	else
		snprintf(owner, sizeof(owner), "user %ju", (uintmax_t)status.st_uid);
	return fail(
		"segment %s: not trusted: it belongs to %s, who can truncate it while it is in use (to trust its owner: "
		"shmlimit --owner USER ...)",
		segment, owner);
}

/*
 * The processes that hold the lock of a file, of those that this one may see: at most a few.
 *
 *	1: FLOCK  ADVISORY  WRITE 1234 00:16:5678 0 EOF
 */
static void holders(const char *segment, char text[TEXT_LEN])
{
	char path[SHMLIMIT_PATH_MAX], line[256];
	unsigned major_id, minor_id;
	uintmax_t inode;
	struct stat status;
	FILE *locks;
	size_t at = 0;
	long pid;

	*text = '\0';
	if (shmlimit_path(segment, path) != 0)
		return;
	locks = lstat(path, &status) == 0 ? fopen("/proc/locks", "re") : NULL;
	while (locks != NULL && at + 24 < TEXT_LEN && fgets(line, sizeof(line), locks) != NULL)
		if (sscanf(line, "%*[0-9]: FLOCK %*s %*s %ld %x:%x:%ju", &pid, &major_id, &minor_id, &inode) == 4 &&
		    pid > 0 && inode == status.st_ino && makedev(major_id, minor_id) == status.st_dev)
			at += (size_t)snprintf(text + at, TEXT_LEN - at, "%s%ld", at == 0 ? "process " : ", ", pid);
	if (locks != NULL)
		fclose(locks);
}

static int fail_locked(const char *segment)
{
	char text[TEXT_LEN], path[SHMLIMIT_PATH_MAX] = "its file";

	holders(segment, text);
	(void)shmlimit_path(segment, path);
	return fail("segment %s: locked by %s: not changed (any process that can read %s can hold its lock; "
	            "try again, or end that process)",
	            segment, *text != '\0' ? text : "another process", path);
}

/* Another version of shmlimit may have made it. */
static int fail_missing(const char *segment)
{
	uint32_t layout = other_layout(segment);
	char text[TEXT_LEN];

	if (layout != 0)
		fail("segment %s: %s (to keep its tokens: save it with the shmlimit that made it, and load that with "
		     "this one; without them: shmlimit create %s; shmlimit destroy %s --layout %" PRIu32
		     " removes the old one, once no process uses it)",
		     segment, other_layout_text(text, layout), segment, segment, layout);
	else
		fail("segment %s: no such segment (shmlimit create %s makes one; shmlimit list lists "
		     "all)",
		     segment, segment);
	return STATUS_MISSING;
}

int fail_segment(const char *segment, int error)
{
	char calls[REFUSED_LEN], path[SHMLIMIT_PATH_MAX] = "its file";

	segment = shown(segment);
	(void)shmlimit_path(segment, path);
	switch (-error) {
	case ENOENT:
		return fail_missing(segment);
	case EILSEQ:
		return fail("segment %s: bad name: must be 1 to %d bytes without '/' and control characters, "
		            "the first not '.'",
		            segment, SHMLIMIT_NAME_MAX);
	case ENAMETOOLONG:
		return fail("segment %s: name too long: must be 1 to %d bytes", segment, SHMLIMIT_NAME_MAX);
	case EMEDIUMTYPE:
		return fail("segment %s: not a shmlimit segment: another program created %s, or something overwrote "
		            "it (use another name; or, if no process uses it: shmlimit destroy %s --force)",
		            segment, path, segment);
	case EPROTO:
		return fail("segment %s: its header has another layout than its file name: create it again (shmlimit "
		            "destroy %s)",
		            segment, segment);
	case EUCLEAN:
		return fail("segment %s: damaged: create it again (shmlimit verify %s says what is wrong; "
		            "shmlimit destroy %s removes it)",
		            segment, segment, segment);
	case ESTALE:
		return fail("segment %s: created before the last boot: create it again (shmlimit destroy %s)", segment,
		            segment);
	case EXDEV:
		return fail("segment %s: created in another time namespace, where clocks differ: use it there, or use "
		            "another name here",
		            segment);
	case EPERM:
		return fail_owner(segment);
	case EAGAIN:
		return fail_locked(segment);
	case EACCES:
		return fail("segment %s: no permission (its owner can grant it: chmod and chgrp of "
		            "%s, or shmlimit create --mode 0660 --group G)",
		            segment, path);
	case ENOSYS:
		return fail(
			"segment %s: a sandbox refuses %s: permit it (seccomp, AppArmor, or SystemCallFilter= of systemd)",
			segment, refused_calls(calls));
	case ENOMEM:
		return fail("segment %s: out of memory, or of addresses (ulimit -v; a smaller slots-max takes "
		            "fewer)",
		            segment);
	case EROFS:
		return fail("segment %s: /dev/shm is read-only: remount it (mount -o remount,rw "
		            "/dev/shm)",
		            segment);
	default:
		return fail("segment %s: %s (%s); fix this on the host first", segment, shmlimit_strerror(error),
		            strerror(-error));
	}
}

int fail_rule(const char *segment, const char *rule, int error)
{
	rule = shown(rule);
	switch (-error) {
	case ESRCH:
		fail("rule %s: no such rule in segment %s (shmlimit rule set %s %s --capacity N --rate N/s "
		     "makes it; shmlimit rule list %s lists them)",
		     rule, segment, segment, rule, segment);
		return STATUS_MISSING;
	case EILSEQ:
		return fail("rule %s: bad name: must be 1 to %d letters, digits and . _ : @ + -", rule,
		            SHMLIMIT_RULE_NAME_MAX);
	case ENAMETOOLONG:
		return fail("rule %s: name too long: must be 1 to %d characters", rule, SHMLIMIT_RULE_NAME_MAX);
	case EFBIG:
		return fail("rule %s: window too large, or too many places: must be %d or less", rule,
		            SHMLIMIT_WINDOW_MAX);
	case ENOSPC:
		return fail("rule %s: no room in /dev/shm: use a smaller limit, or give it more room (mount -o "
		            "remount,size=SIZE /dev/shm; shmlimit list shows what uses it)",
		            rule);
	case EXFULL:
		return fail("rule %s: no room for another rule in segment %s: remove one first (shmlimit rule "
		            "remove), or create the segment with a larger --rules-max",
		            rule, segment);
	case EDOM:
		return fail("rule %s: has no limit of its own: set one (shmlimit rule set %s %s --rate 5/minute)", rule,
		            segment, rule);
	case EOPNOTSUPP:
		return fail("rule %s: its algorithm does not have this operation (shmlimit rule show %s %s)", rule,
		            segment, rule);
	case EUCLEAN:
		return fail("rule %s: damaged: set it again with its rate (shmlimit rule set %s %s), or remove it "
		            "(shmlimit rule remove %s %s)",
		            rule, segment, rule, segment, rule);
	case EAGAIN:
	case ENOENT:
	case ENOSYS:
		return fail_segment(segment, error);
	default:
		return fail("rule %s: %s (%s); fix segment %s first", rule, shmlimit_strerror(error), strerror(-error),
		            segment);
	}
}

static int fail_capacity(const char *rule_name, struct shmlimit_rule rule)
{
	int waits = rule.max_wait_ns > 0, leases = traits_of(rule.algorithm)->is_shared;
	char text[TEXT_LEN];
	uint64_t most;

	rule.struct_size = sizeof(rule);
	if (shmlimit_rule_capacity_max(&rule, &most) == 0 && rule.capacity > most)
		return fail("rule %s: capacity %" PRIu64 " is out of range (1 to %" PRIu64 " at this rate%s)",
		            rule_name, rule.capacity, most,
		            waits    ? " and max-wait"
		            : leases ? " for a lease"
		                     : "");
	(void)duration_text(text, rule.max_wait_ns);
	rule.max_wait_ns = 0;
	if (waits && shmlimit_rule_capacity_max(&rule, &most) == 0)
		return fail("rule %s: max-wait %s is out of range at this rate", rule_name, text);
	return fail("rule %s: rate %s is out of range (one token in 146 years to 10^11 a second, in numbers that are "
	            "round enough to be counted exactly)",
	            rule_name, rate_text(text, rule.refill, rule.period_ns));
}

int fail_exact(const char *rule_name, const struct shmlimit_rule *rule)
{
	const struct traits *traits = traits_of(rule->algorithm);
	int waits = rule->max_wait_ns > 0, warms_up = (traits->sets & SETS_WARMUP) != 0;
	char rate[TEXT_LEN], wait[TEXT_LEN], other[TEXT_LEN];

	if (traits->range == NULL)
		return fail_capacity(rule_name, *rule);
	if (traits->is_places)
		return fail("rule %s: period %s is out of range (%s)", rule_name, duration_text(other, rule->period_ns),
		            traits->range);
	if ((traits->sets & SETS_RATE) == 0)
		return fail("rule %s: capacity %" PRIu64 " with period %s: out of range (%s)", rule_name,
		            rule->capacity, duration_text(other, rule->period_ns), traits->range);
	rate_text(rate, rule->refill != 0 ? rule->refill : rule->capacity, rule->period_ns);
	return fail("rule %s: rate %s with %s %s%s%s: cannot be represented: must be %s", rule_name, rate,
	            warms_up ? "warmup" : "period", duration_text(other, warms_up ? rule->warmup_ns : rule->period_ns),
	            waits ? " and max-wait " : "", waits ? duration_text(wait, rule->max_wait_ns) : "", traits->range);
}
