/*
 * name: see name.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "name.h"
#include "shmlimit.h"

int name_check_segment(const char *name)
{
	size_t length;

	if (name == NULL)
		return -EINVAL;
	length = strnlen(name, SHMLIMIT_NAME_MAX + 1);
	if (length > SHMLIMIT_NAME_MAX)
		return -ENAMETOOLONG;
	if (length == 0 || name[0] == '.')
		return -EILSEQ;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c == '/' || c < 0x20 || c == 0x7f)
			return -EILSEQ;
	}
	return 0;
}

int name_check_any_rule(const char *name)
{
	int error = name_check_rule(name != NULL && name[0] == NAME_INTERNAL ? name + 1 : name);

	return error == 0 && strlen(name) > SHMLIMIT_RULE_NAME_MAX ? -ENAMETOOLONG : error;
}

/* Nothing that a rule file, a shell or a metric's label would have to quote. */
static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-";

int name_check_rule(const char *name)
{
	size_t length;

	if (name == NULL)
		return -EINVAL;
	length = strnlen(name, SHMLIMIT_RULE_NAME_MAX + 1);
	if (length > SHMLIMIT_RULE_NAME_MAX)
		return -ENAMETOOLONG;
	if (length == 0 || strspn(name, allowed) != length)
		return -EILSEQ;
	return 0;
}

void name_clean(char *rule_name)
{
	char *c = rule_name + (rule_name[0] == NAME_INTERNAL);

	/* BOUND: each round goes further into a string of at most SHMLIMIT_RULE_NAME_MAX bytes. */
	for (c += strspn(c, allowed); *c != '\0'; c += strspn(c, allowed))
		*c++ = '?';
}
