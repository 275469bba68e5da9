/*
 * rule_spec.c: from what was given to a rule that is set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "choice.h"
#include "fail.h"
#include "field.h"
#include "rule_facts.h"
#include "rules.h"

int rule_spec_begin(struct rule_spec *spec, const char *name)
{
	*spec = (struct rule_spec){ .rule.struct_size = sizeof(spec->rule) };
	if (strlen(name) > SHMLIMIT_RULE_NAME_MAX)
		return fail_rule("", name, -ENAMETOOLONG);
	if (rule_is_internal(name))
		return fail_rule("", name, -EILSEQ);
	strcpy(spec->name, name);
	return STATUS_OK;
}

int rule_spec_parse(struct rule_spec *spec, int field, const char *text)
{
	spec->given |= 1u << field;
	return field_parse(spec->name, field, text, &spec->rule);
}

const char *rule_spec_lacks(const struct rule_spec *spec)
{
	static const int needed[] = { FIELD_CAPACITY, FIELD_RATE, FIELD_PERIOD, FIELD_WARMUP };

	/* Each call can say how long a count lives and how far it goes. */
	if (spec->rule.algorithm == SHMLIMIT_COUNTER)
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (field_applies(needed[i], spec->rule.algorithm) && !(spec->given & 1u << needed[i]))
			return field_names[needed[i]];
	return NULL;
}

/* What an algorithm has not must not be given; its capacity may follow from the rest. */
static int fit(struct rule_spec *spec)
{
	struct shmlimit_rule *rule = &spec->rule;

	for (int field = 0; field < FIELDS; field++)
		if ((spec->given & 1u << field) && !field_applies(field, rule->algorithm))
			return fail("rule %s: %s: a %s has none of its own: leave it out", spec->name,
			            field_names[field], choice_word(choices_algorithm, rule->algorithm));
	if (rule->algorithm == SHMLIMIT_LEASE && rule->credit > rule->capacity)
		return fail("rule %s: credit %" PRIu32 ": must be at most the capacity, %" PRIu64, spec->name,
		            rule->credit, rule->capacity);
	if (rule->algorithm == SHMLIMIT_WARMUP)
		rule->capacity = 0;
	if (rule->algorithm == SHMLIMIT_WINDOW)
		rule->capacity = rule->refill;
	if (rule->algorithm == SHMLIMIT_COUNTER || rule->algorithm == SHMLIMIT_HOLD)
		rule->refill = 0;
	return STATUS_OK;
}

int rule_spec_complete(struct rule_spec *spec, struct shmlimit *limiter, const char *segment)
{
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	int id = shmlimit_rule_find(limiter, spec->name);
	int error = id < 0 ? id : shmlimit_rule_get(limiter, id, &old);

	/* Of a damaged rule nothing is kept. */
	spec->exists = error == -EUCLEAN;
	if ((error == -ESRCH || error == -EUCLEAN) && rule_spec_lacks(spec) == NULL)
		return fit(spec);
	if (error == -ESRCH && (spec->line != 0 || spec->rule.algorithm != SHMLIMIT_FUNNEL))
		return fail("rule %s: new, its %s is missing: must have %s", spec->name, rule_spec_lacks(spec),
		            spec->rule.algorithm == SHMLIMIT_WARMUP   ? "rate and warmup"
		            : spec->rule.algorithm == SHMLIMIT_WINDOW ? "rate"
		            : spec->rule.algorithm == SHMLIMIT_HOLD   ? "capacity and period"
		                                                      : "capacity and rate");
	if (error < 0)
		return fail_rule(segment, spec->name, error);
	spec->exists = 1;
	spec->old = old;
	if ((spec->given & 1u << FIELD_ALGORITHM) && spec->rule.algorithm != old.algorithm)
		return fail("rule %s: is a %s: an algorithm cannot be changed: remove the rule first (shmlimit rule "
		            "remove %s %s)",
		            spec->name, choice_word(choices_algorithm, old.algorithm), segment, spec->name);
	for (int field = 0; field < FIELDS; field++)
		if (!(spec->given & 1u << field) && field_applies(field, old.algorithm))
			field_copy(field, &old, &spec->rule);
	return fit(spec);
}

static int fail_spec(const struct rule_spec *spec, const char *segment, int error)
{
	if (error == -EFBIG && spec->rule.algorithm == SHMLIMIT_HOLD)
		return fail("rule %s: %" PRIu64
		            " places are more than segment %s was created for: use fewer, or create the "
		            "segment with a larger --window-max (shmlimit inspect %s shows it)",
		            spec->name, spec->rule.capacity, segment, segment);
	return error == -ERANGE ? fail_exact(spec->name, &spec->rule) : fail_rule(segment, spec->name, error);
}

/* A rule that is wrong is said to be so before the handle is said to be read-only. */
int rule_spec_check(const struct rule_spec *spec, struct shmlimit *read_only, const char *segment)
{
	int error = shmlimit_rule_set(read_only, spec->name, &spec->rule);

	return error == -EROFS ? STATUS_OK : fail_spec(spec, segment, error);
}

int rule_spec_set(const struct rule_spec *spec, struct shmlimit *limiter, const char *segment)
{
	int error = shmlimit_rule_set(limiter, spec->name, &spec->rule);

	return error >= 0 ? STATUS_OK : fail_spec(spec, segment, error);
}
