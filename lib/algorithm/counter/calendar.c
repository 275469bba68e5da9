/*
 * calendar: see calendar.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "atomic.h"
#include "calendar.h"
#include "count.h"
#include "zone_data.h"

#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)

static enum calendar calendar_of(uint64_t period_ns)
{
	switch (period_ns) {
	case HOUR:
		return CALENDAR_HOUR;
	case 24 * HOUR:
		return CALENDAR_DAY;
	case 7 * 24 * HOUR:
		return CALENDAR_WEEK;
	case 30 * 24 * HOUR:
		return CALENDAR_MONTH;
	default:
		return CALENDAR_NONE;
	}
}

static struct zone zone_of(const struct layout_params *params)
{
	return (struct zone){ { params->num, params->den } };
}

/* When the segment's clock was 0, in nanoseconds since 1970. */
static uint64_t clock_begin(const struct look *k)
{
	const struct shmlimit *l = k->l;
	uint64_t *kept = &l->header->unix_ns, unix_ns = load_relaxed(kept), before, wall, after;

	if (k->given)
		return unix_ns;
	before = clock_read(l->clock_id);
	wall = clock_read(clock_wall(l->clock_id));
	after = clock_read(l->clock_id);
	if (unix_ns - (wall - after - CALENDAR_SLACK_NS) <= after - before + 2 * CALENDAR_SLACK_NS)
		return unix_ns;
	if (l->read_only)
		return wall - before;
	/* Lost: another process has set it right. */
	(void)word_cas(kept, unix_ns, wall - before);
	return load_relaxed(kept);
}

uint64_t calendar_left_ns(const struct look *k, const struct layout_params *params)
{
	struct zone zone = zone_of(params);
	uint64_t unix_ns = clock_begin(k) + k->at.now_ns;

	return (uint64_t)zone_next(&zone, (enum calendar)params_calendar(params), (int64_t)(unix_ns / SECOND)) *
	               SECOND -
	       unix_ns;
}

int calendar_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	struct zone zone = { { rule->zone_offsets[0], rule->zone_offsets[1] } };
	enum calendar unit = calendar_of(rule->period_ns);
	struct shmlimit_rule longest = *rule;
	int error;

	if (unit == CALENDAR_NONE || memchr(rule->zone, '\0', sizeof(rule->zone)) == NULL ||
	    !zone_data_is_name(rule->zone) || !zone_is_sound(&zone))
		return -EINVAL;
	longest.period_ns = zone_longest(&zone, unit) * SECOND;
	error = count_compile(&longest, params);
	params->period_ns = rule->period_ns;
	params->num = zone.words[0];
	params->den = zone.words[1];
	params_set_extra(params, unit);
	memcpy(params->zone, rule->zone, strlen(rule->zone));
	return error;
}

void calendar_rule(const struct layout_params *params, struct shmlimit_rule *out)
{
	if (params_calendar(params) == CALENDAR_NONE)
		return;
	/* INVARIANT I7: it is a string, whatever the bytes. */
	memcpy(out->zone, params->zone, sizeof(out->zone) - 1);
	out->zone_offsets[0] = params->num;
	out->zone_offsets[1] = params->den;
}
