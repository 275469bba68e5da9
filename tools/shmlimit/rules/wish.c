/*
 * wish.c: from what was given to a rule that is set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rules.h"

int wish_begin(struct wish *wish, const char *name)
{
	*wish = (struct wish){ .rule.struct_size = sizeof(wish->rule) };
	if (strlen(name) > SHMLIMIT_RULE_NAME_MAX)
		return fail_rule("", name, -ENAMETOOLONG);
	if (rule_is_internal(name))
		return fail_rule("", name, -EILSEQ);
	strcpy(wish->name, name);
	return STATUS_OK;
}

int wish_parse(struct wish *wish, int field, const char *text)
{
	wish->given |= 1u << field;
	return field_parse(wish->name, field, text, &wish->rule);
}

const char *wish_lacks(const struct wish *wish)
{
	static const int needed[] = { FIELD_CAPACITY, FIELD_RATE, FIELD_PERIOD, FIELD_WARMUP };

	/* Each call can say how long a count lives and how far it goes. */
	if (wish->rule.algorithm == SHMLIMIT_COUNTER)
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (field_applies(needed[i], wish->rule.algorithm) && !(wish->given & 1u << needed[i]))
			return field_names[needed[i]];
	return NULL;
}

/* What an algorithm has not must not be given; its capacity may follow from the rest. */
static int fit(struct wish *wish)
{
	struct shmlimit_rule *rule = &wish->rule;

	for (int field = 0; field < FIELDS; field++)
		if ((wish->given & 1u << field) && !field_applies(field, rule->algorithm))
			return fail("rule %s: %s: a %s has none of its own: leave it out", wish->name,
			            field_names[field], choice_word(choices_algorithm, rule->algorithm));
	if (rule->algorithm == SHMLIMIT_LEASE && rule->credit > rule->capacity)
		return fail("rule %s: credit %" PRIu32 ": must be at most the capacity, %" PRIu64, wish->name,
		            rule->credit, rule->capacity);
	if (rule->algorithm == SHMLIMIT_WARMUP)
		rule->capacity = 0;
	if (rule->algorithm == SHMLIMIT_WINDOW)
		rule->capacity = rule->count;
	if (rule->algorithm == SHMLIMIT_COUNTER || rule->algorithm == SHMLIMIT_HOLD)
		rule->count = 0;
	return STATUS_OK;
}

int wish_complete(struct wish *wish, struct shmlimit *limiter, const char *segment)
{
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	int id = shmlimit_rule_find(limiter, wish->name);
	int error = id < 0 ? id : shmlimit_rule_get(limiter, id, &old);

	/* Of a damaged rule nothing is kept. */
	wish->exists = error == -EUCLEAN;
	if ((error == -ESRCH || error == -EUCLEAN) && wish_lacks(wish) == NULL)
		return fit(wish);
	if (error == -ESRCH && (wish->line != 0 || wish->rule.algorithm != SHMLIMIT_FUNNEL))
		return fail("rule %s: new, its %s is missing: must have %s", wish->name, wish_lacks(wish),
		            wish->rule.algorithm == SHMLIMIT_WARMUP   ? "rate and warmup"
		            : wish->rule.algorithm == SHMLIMIT_WINDOW ? "rate"
		            : wish->rule.algorithm == SHMLIMIT_HOLD   ? "capacity and period"
		                                                      : "capacity and rate");
	if (error < 0)
		return fail_rule(segment, wish->name, error);
	wish->exists = 1;
	wish->old = old;
	if ((wish->given & 1u << FIELD_ALGORITHM) && wish->rule.algorithm != old.algorithm)
		return fail("rule %s: is a %s: an algorithm cannot be changed: remove the rule first (shmlimit rule "
		            "remove %s %s)",
		            wish->name, choice_word(choices_algorithm, old.algorithm), segment, wish->name);
	for (int field = 0; field < FIELDS; field++)
		if (!(wish->given & 1u << field) && field_applies(field, old.algorithm))
			field_copy(field, &old, &wish->rule);
	return fit(wish);
}

static int fail_wish(const struct wish *wish, const char *segment, int error)
{
	if (error == -EFBIG && wish->rule.algorithm == SHMLIMIT_HOLD)
		return fail("rule %s: %" PRIu64
		            " places are more than segment %s was created for: use fewer, or create the "
		            "segment with a larger --window-max (shmlimit inspect %s shows it)",
		            wish->name, wish->rule.capacity, segment, segment);
	return error == -ERANGE ? fail_exact(wish->name, &wish->rule) : fail_rule(segment, wish->name, error);
}

/* A rule that is wrong is said to be so before the handle is said to be read-only. */
int wish_check(const struct wish *wish, struct shmlimit *read_only, const char *segment)
{
	int error = shmlimit_rule_set(read_only, wish->name, &wish->rule);

	return error == -EROFS ? STATUS_OK : fail_wish(wish, segment, error);
}

int wish_set(const struct wish *wish, struct shmlimit *limiter, const char *segment)
{
	int error = shmlimit_rule_set(limiter, wish->name, &wish->rule);

	return error >= 0 ? STATUS_OK : fail_wish(wish, segment, error);
}
