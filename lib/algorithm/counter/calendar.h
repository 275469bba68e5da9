/*
 * calendar: when the calendar period ends in which a count begins.
 *
 * Words tell the segment's clock, which never steps. Where that is on the calendar is one number
 * for all processes, `unix_ns` in the header: the real-time clock less the segment's, read when the
 * segment was made. So the periods of all keys and processes end at the same nanosecond. A decision
 * that begins a count, and finds the two clocks further apart from that than CALENDAR_SLACK_NS,
 * sets the number right: the real-time clock was set, or the host was suspended. Counts that live
 * then end when they would have. WHY NOT by the two clocks each time: they are never read at once,
 * so a period could end some microseconds before midnight, and a whole one begin for these.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_CALENDAR_H
#define SHMLIMIT_LIB_CALENDAR_H

#include "look.h"

#define CALENDAR_SLACK_NS UINT64_C(1000000000)

/* Nanoseconds until it ends, under the parameters of a rule that has such a period: 1 or more. */
uint64_t calendar_left_ns(const struct look *k, const struct layout_params *params);

/*
 * count_compile() of a rule with a zone. Returns also -EINVAL: its period is none of the four, or
 * its zone is not sound.
 */
int calendar_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/* What of a rule count_compile() does not say. */
void calendar_rule(const struct layout_params *params, struct shmlimit_rule *out);

#endif
