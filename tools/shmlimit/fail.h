/*
 * fail.h: what is wrong, in words, on standard error.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef FAIL_H
#define FAIL_H

#include "shmlimit.h"

/* Say what is wrong. All return a status that is not STATUS_OK. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_memory(void);
int fail_segment(const char *segment, int error);
int fail_rule(const char *segment, const char *rule, int error);
int fail_exact(const char *rule_name, const struct shmlimit_rule *rule); /* -ERANGE, of such a rule */
void fail_where(const char *path, int line); /* what messages begin with from now on; NULL: nothing */

#endif
