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

/* Also the name of a rule that a library made for itself. */
int name_check_any_rule(const char *name);

/* What those begin with. */
#define NAME_INTERNAL '~'

/*
 * The name in a rule's record, in a form that any program can print: bytes that no rule's name has
 * become '?'.
 */
void name_clean(char *rule_name);

#endif
