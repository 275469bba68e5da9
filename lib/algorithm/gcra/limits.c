/*
 * limits: limits that come with the call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "fast_limit.h"
#include "limit_make.h"
#include "limit_text.h"
#include "shmlimit.h"
#include "sized.h"

/* Bytes in release 1.0, which has all that is used here. */
#define LIMIT_SIZE_1_0 40u

static int make_places(const struct shmlimit_limit *limit, struct gcra *g)
{
	if (limit->refill != 0 || limit->period_ns != 0 || limit->max_wait_ns != 0)
		return -EINVAL;
	if (limit->capacity == 0)
		return -EDOM;
	*g = gcra_places(limit->capacity);
	return limit->capacity <= SHMLIMIT_WINDOW_MAX ? 0 : -ERANGE;
}

int limit_make(const struct shmlimit_limit *limit, struct gcra *g)
{
	struct shmlimit_limit known;

	if (limit == NULL || limit->struct_size < LIMIT_SIZE_1_0)
		return -EINVAL;
	if (__builtin_expect(limit->struct_size != sizeof(known), 0)) {
		int error = sized_in(&known, limit, sizeof(known));

		if (error != 0)
			return error;
		limit = &known;
	}
	if (__builtin_expect(limit->flags == 0, 1))
		return gcra_make(limit->capacity, limit->refill, limit->period_ns, limit->max_wait_ns, g);
	if (limit->flags == SHMLIMIT_LIMIT_PLACES)
		return make_places(limit, g);
	if (limit->flags != SHMLIMIT_LIMIT_BLOCK && limit->flags != SHMLIMIT_LIMIT_UNLIMITED)
		return -EINVAL;
	*g = limit->flags == SHMLIMIT_LIMIT_BLOCK ? gcra_block() : gcra_unlimited();
	return 0;
}

int limit_decide(const struct shmlimit *l, const struct request *asked, struct shmlimit_result *r)
{
	struct request q = decide_complete(l, asked);
	uint32_t failed = 0;
	int answer = asked->limit->is_places ? FIRST_NOT : fast_gcra(l, &q, asked->limit, &failed, r);

	return __builtin_expect(answer != FIRST_NOT, 1) ? answer : first_rest(l, &q, failed, r);
}

/* How long a place is held is the rule's: is "at once" the end of the text? */
static int is_places_alone(const char *text)
{
	size_t end = strlen(text);

	while (end > 0 && strchr(" \t", text[end - 1]) != NULL)
		end--;
	return end >= 4 && strncasecmp(text + end - 4, "once", 4) == 0;
}

/*
 * The limit that a rate or a number of places is, or *wrong (unless NULL) says why it is none.
 * Returns 0, -EINVAL or -ERANGE.
 */
static int from_rule(const char *text, const struct shmlimit_rule *rule, struct shmlimit_limit *out,
                     struct shmlimit_problem *wrong)
{
	struct shmlimit_limit limit = { .struct_size = sizeof(limit),
		                        .flags = rule->mode == SHMLIMIT_BLOCK ? SHMLIMIT_LIMIT_BLOCK
		                                 : rule->mode == SHMLIMIT_OFF ? SHMLIMIT_LIMIT_UNLIMITED
		                                                              : 0,
		                        .capacity = rule->capacity,
		                        .refill = rule->refill,
		                        .period_ns = rule->period_ns };
	const char *why = "a limit that comes with a call is a rate, such as 5/minute, or places, such as 20 at once";
	int error = rule->algorithm == SHMLIMIT_FUNNEL || rule->algorithm == SHMLIMIT_HOLD ? 0 : -EINVAL;
	struct gcra g;

	if (rule->algorithm == SHMLIMIT_HOLD) {
		limit.flags = SHMLIMIT_LIMIT_PLACES;
		limit.refill = limit.period_ns = 0;
		why = "how long a place is held is the rule's: must end with \"at once\"";
		error = is_places_alone(text) ? 0 : -EINVAL;
	}
	if (rule->law != 0) {
		why = "a number that is found is a rule's: must be such as 20 at once";
		error = -EINVAL;
	}
	if (error == 0) {
		why = rule->algorithm == SHMLIMIT_HOLD
		              ? "out of range: at most 65536 places"
		              : "out of range: at most a burst of 2^48, all of which comes back within 366 days";
		error = limit_make(&limit, &g);
	}
	if (error != 0 && wrong != NULL)
		snprintf(wrong->text, sizeof(wrong->text), "%s", why);
	if (error == 0)
		*out = limit;
	return error;
}

EXPORT int shmlimit_limit_parse(const char *text, struct shmlimit_limit *limit, struct shmlimit_problem *wrong)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_limit known, read;
	int error = sized_in(&known, limit, sizeof(known));

	if (error == 0 && (text == NULL || known.struct_size < LIMIT_SIZE_1_0))
		error = -EINVAL;
	if (error != 0 && wrong != NULL)
		*wrong = (struct shmlimit_problem){ .text = "an argument is missing, unknown, or out of range" };
	if (error == 0)
		error = limit_parse(text, &rule, wrong);
	if (error == 0)
		error = from_rule(text, &rule, &read, wrong);
	if (error != 0)
		return error;
	read.max_wait_ns = known.max_wait_ns;
	return sized_out(limit, &read, sizeof(read));
}
