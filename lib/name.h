/*
 * name: which names segments and rules may have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_NAME_H
#define SHMLIMIT_LIB_NAME_H

/* Return 0, -EINVAL for NULL, -EILSEQ for an empty name or a bad character, -ENAMETOOLONG. */
int name_check_segment(const char *name);
int name_check_rule(const char *name);

/* A name that a rule may have, but nobody may give: that of one that goes by its numbers. */
int name_check_any_rule(const char *name);

/* What those begin with. */
#define NAME_UNNAMED '~'

/* What stands in a rule's record, for anybody to read: bytes that no rule's name has become '?'. */
void name_clean(char *rule_name);

#endif
