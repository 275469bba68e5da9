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

#endif
