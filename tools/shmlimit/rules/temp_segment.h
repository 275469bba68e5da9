/*
 * temp_segment.h: a segment of this process alone, to try rules on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TEMP_SEGMENT_H
#define TEMP_SEGMENT_H

#include "command.h"

/*
 * `called` names the rules in errors; their ids will be 0, 1 and so on.
 * Returns a status. Close it, and it is gone; so it is when the process is
 * killed, unless that happens within the call, and by a signal that cannot be
 * held back.
 */
int temp_segment_open(const struct shmlimit_options *options, const struct shmlimit_rule *rule,
                      const char *const *called, size_t rules, struct shmlimit **out);

/* The same without rules, and read-only. `called` names the segment in errors. */
int temp_segment_open_read_only(const char *called, const struct shmlimit_options *options, struct shmlimit **out);

#endif
