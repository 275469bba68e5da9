/*
 * rule_text: a rule as a text, and back. Pure, except for the data of a time zone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "limit_text.h"
#include "sized.h"
#include "traits.h"
#include "zone_file.h"

/* What a text says ends here. */
#define KNOWN_MIN (offsetof(struct shmlimit_rule, period_ns) + sizeof(uint64_t))

#define KNOWN_WITH_LAW (offsetof(struct shmlimit_rule, least) + sizeof(uint32_t))

static int find_zone(const char *text, struct shmlimit_rule *rule, struct shmlimit_problem *wrong)
{
	if (zone_file_fill(rule) == 0)
		return 0;
	if (wrong != NULL) {
		const char *at = strstr(text, rule->zone);

		wrong->offset = at != NULL ? (uint64_t)(at - text) : 0;
		snprintf(wrong->text, sizeof(wrong->text),
		         "%s: no data of this time zone here, or its offset follows no yearly rule", rule->zone);
	}
	return -EINVAL;
}

EXPORT int shmlimit_rule_parse(const char *text, struct shmlimit_rule *rule, struct shmlimit_problem *wrong)
{
	struct shmlimit_rule known;
	int error = sized_in(&known, rule, sizeof(known));

	if (error == 0 && (text == NULL || known.struct_size < KNOWN_MIN || known.algorithm >= ALGORITHMS))
		error = -EINVAL;
	if (error != 0 && wrong != NULL)
		*wrong = (struct shmlimit_problem){ .text = "an argument is missing, unknown, or out of range" };
	if (error == 0)
		error = limit_parse(text, &known, wrong);
	/* WHY NOT without: it would be another limit. */
	if (error == 0 && known.law != 0 && known.struct_size < KNOWN_WITH_LAW)
		error = -EINVAL;
	if (error == 0)
		error = find_zone(text, &known, wrong);
	return error != 0 ? error : sized_out(rule, &known, sizeof(known));
}

EXPORT int shmlimit_rule_text(const struct shmlimit_rule *rule, char text[SHMLIMIT_RULE_TEXT_MAX])
{
	struct shmlimit_rule known;
	int error = sized_in(&known, rule, sizeof(known));

	if (error == 0 && (text == NULL || known.algorithm >= ALGORITHMS || known.mode > SHMLIMIT_BLOCK))
		error = -EINVAL;
	/* Such as one whose calls bring their limits, or how long a count lives. */
	if (error == 0 && (known.period_ns == 0 || (known.capacity == 0 && known.refill == 0)) &&
	    known.mode != SHMLIMIT_BLOCK && known.mode != SHMLIMIT_OFF)
		error = -EINVAL;
	if (error == 0)
		limit_text(&known, text);
	return error;
}
