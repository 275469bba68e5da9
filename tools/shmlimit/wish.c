/*
 * wish.c: from what was given to a rule that is set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "rules.h"

#define NEEDED (1u << FIELD_CAPACITY | 1u << FIELD_RATE)       /* by a rule that does not exist */

int wish_begin(struct wish *wish, const char *name)
{
	*wish = (struct wish){ .rule.struct_size = sizeof(wish->rule) };
	if (strlen(name) > SHMLIMIT_RULE_NAME_MAX)
		return fail_rule("", name, -ENAMETOOLONG);
	strcpy(wish->name, name);
	return STATUS_OK;
}

int wish_parse(struct wish *wish, int field, const char *text)
{
	wish->given |= 1u << field;
	return field_parse(wish->name, field, text, &wish->rule);
}

int wish_complete(struct wish *wish, struct shmlimit *limiter)
{
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	int id = shmlimit_rule_find(limiter, wish->name);
	int error = id < 0 ? id : shmlimit_rule_get(limiter, id, &old);

	if (error == -ESRCH && (wish->given & NEEDED) == NEEDED)
		return 0;
	if (error < 0)
		return error;
	wish->exists = 1;
	wish->old = old;
	for (int field = 0; field < FIELDS; field++)
		if (!(wish->given & 1u << field))
			field_copy(field, &old, &wish->rule);
	return 0;
}

static int fail_wish(const struct wish *wish, const char *segment, int error)
{
	return error == -ERANGE ? fail_exact(wish->name, &wish->rule) : fail_rule(segment, wish->name, error);
}

/* A rule that is wrong is said to be so before the handle is said to be read-only. */
int wish_check(const struct wish *wish, struct shmlimit *read_only, const char *segment)
{
	int error = shmlimit_rule_set(read_only, wish->name, &wish->rule);

	return error == -EROFS ? STATUS_OK : fail_wish(wish, segment, error);
}

int wish_set(const struct wish *wish, struct shmlimit *limiter, const char *segment)
{
	int error = shmlimit_rule_set(limiter, wish->name, &wish->rule);

	return error >= 0 ? STATUS_OK : fail_wish(wish, segment, error);
}
