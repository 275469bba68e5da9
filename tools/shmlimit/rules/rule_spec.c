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
#include "traits.h"

/* The least number that a law finds, where none is given. */
#define LEAST 4u

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

/* A rate is read again when the rule's algorithm is known: see rule_spec_complete(). */
int rule_spec_parse(struct rule_spec *spec, int field, const char *text)
{
	struct shmlimit_rule rate = { .struct_size = sizeof(rate) };

	spec->given |= 1u << field;
	if (field != FIELD_RATE)
		return field_parse(spec->name, field, text, &spec->rule);
	if (strlen(text) >= sizeof(spec->rate))
		return fail("rule %s: rate: too long: must be less than %zu bytes", spec->name, sizeof(spec->rate));
	strcpy(spec->rate, text);
	return field_parse(spec->name, field, text, &rate);
}

static int is_given(const struct rule_spec *spec, int field)
{
	return ((spec->given | spec->said) & 1u << field) != 0;
}

const char *rule_spec_lacks(const struct rule_spec *spec)
{
	static const int needed[] = { FIELD_CAPACITY, FIELD_RATE, FIELD_PERIOD, FIELD_WARMUP };

	const struct traits *traits = traits_of(spec->rule.algorithm);

	/* Each call can say how long a count lives and how far it goes. */
	if (traits->takes_times)
		return NULL;
	/* Each call can bring its limit. */
	if (traits->takes_limits && !is_given(spec, FIELD_CAPACITY) && !is_given(spec, FIELD_RATE))
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (field_applies(needed[i], spec->rule.algorithm) && !is_given(spec, needed[i]))
			return field_names[needed[i]];
	return NULL;
}

/*
 * Has the rule none, or does it answer by its mode, with the numbers that "block" or "unlimited"
 * gives it?
 */
static int has_no_rate(const struct shmlimit_rule *rule)
{
	struct shmlimit_rule same = { .struct_size = sizeof(same), .algorithm = rule->algorithm };

	if (rule->mode != SHMLIMIT_BLOCK && rule->mode != SHMLIMIT_OFF)
		return field_is_empty(FIELD_RATE, rule);
	return shmlimit_rule_parse(rule->mode == SHMLIMIT_BLOCK ? "block" : "unlimited", &same, NULL) == 0 &&
	       same.period_ns == rule->period_ns && (same.capacity == rule->capacity || same.capacity == 0);
}

/*
 * Does the rate say the capacity too: as its count, since the two are one, or in a word of its own?
 */
static int says_capacity(const struct rule_spec *spec, const struct shmlimit_rule *rate)
{
	return rate->mode != SHMLIMIT_ENFORCE || !field_applies(FIELD_CAPACITY, rate->algorithm) ||
	       !field_applies(FIELD_RATE, rate->algorithm) || strcasestr(spec->rate, "burst") != NULL ||
	       strcasestr(spec->rate, "strict") != NULL;
}

/* Two ways to say one thing, that say different things. */
static int fail_twice(const struct rule_spec *spec, const struct shmlimit_rule *rate)
{
	if (rate->mode != SHMLIMIT_ENFORCE)
		return fail("rule %s: rate %s: goes without capacity and mode: leave them out", spec->name, spec->rate);
	return fail("rule %s: capacity %" PRIu64 ": the rate %s says %" PRIu64, spec->name, spec->rule.capacity,
	            spec->rate, rate->capacity);
}

/*
 * The rule's rate, read for its algorithm, which for a new rule is the rate's if none is named. A
 * plain rate is also the burst of a new rule, and of one that had no rate since it was blocked or
 * unlimited, which ends then.
 */
static int set_rate(struct rule_spec *spec)
{
	struct shmlimit_rule *rule = &spec->rule, rate = { .struct_size = sizeof(rate), .algorithm = rule->algorithm };
	int begins = !spec->exists || has_no_rate(&spec->old), status;

	if ((spec->given & 1u << FIELD_RATE) == 0)
		return STATUS_OK;
	if (spec->exists && (spec->given & 1u << FIELD_ALGORITHM) == 0)
		rate.algorithm = spec->old.algorithm;
	status = field_parse(spec->name, FIELD_RATE, spec->rate, &rate);
	if (status != STATUS_OK)
		return status;
	if (says_capacity(spec, &rate) && (spec->given & 1u << FIELD_CAPACITY) &&
	    field_applies(FIELD_CAPACITY, rate.algorithm) && rule->capacity != rate.capacity)
		return fail_twice(spec, &rate);
	if (rate.mode != SHMLIMIT_ENFORCE && (spec->given & 1u << FIELD_MODE) && rule->mode != rate.mode)
		return fail_twice(spec, &rate);
	if (begins || says_capacity(spec, &rate))
		spec->said |= 1u << FIELD_CAPACITY | 1u << FIELD_PERIOD |
		              (field_applies(FIELD_CUT_OFF, rate.algorithm)
		                       ? 1u << FIELD_CUT_OFF | 1u << FIELD_LAW | 1u << FIELD_LEAST
		                       : 0) |
		              (field_applies(FIELD_ZONE, rate.algorithm) ? 1u << FIELD_ZONE : 0);
	if (begins || rate.mode != SHMLIMIT_ENFORCE)
		spec->said |= 1u << FIELD_MODE;
	rule->algorithm = rate.algorithm;
	rule->refill = rate.refill;
	rule->period_ns = rate.period_ns;
	if (spec->said & ~spec->given & 1u << FIELD_CAPACITY)
		rule->capacity = rate.capacity;
	if (spec->said & ~spec->given & 1u << FIELD_MODE)
		rule->mode = rate.mode;
	for (int field = FIELD_CUT_OFF; field <= FIELD_ZONE; field++)
		if (spec->said & ~spec->given & 1u << field)
			field_copy(field, &rate, rule);
	return STATUS_OK;
}

/* A law has a least number, and nothing else has one. */
static int fit_law(const struct rule_spec *spec, struct shmlimit_rule *rule)
{
	if (rule->law == 0 && (spec->given & 1u << FIELD_LEAST) && rule->least != 0)
		return fail("rule %s: least %" PRIu32 ": needs a law, such as --law vegas", spec->name, rule->least);
	if (rule->law == 0)
		rule->least = 0;
	else if (rule->least == 0)
		rule->least = rule->capacity < LEAST ? (uint32_t)rule->capacity : LEAST;
	if (rule->least > rule->capacity)
		return fail("rule %s: least %" PRIu32 ": must be at most the capacity, %" PRIu64, spec->name,
		            rule->least, rule->capacity);
	return STATUS_OK;
}

/* What an algorithm has not must not be given; its capacity may follow from the rest. */
static int fit(struct rule_spec *spec)
{
	struct shmlimit_rule *rule = &spec->rule;
	const struct traits *traits = traits_of(rule->algorithm);

	/* Of the rate, what the algorithm has is looked at as it is read. */
	for (int field = 0; field < FIELDS; field++)
		if (field != FIELD_RATE && (spec->given & 1u << field) && !field_applies(field, rule->algorithm))
			return fail("rule %s: %s: a %s has none of its own: leave it out", spec->name,
			            field_names[field], choice_word(choices_algorithm(), rule->algorithm));
	if ((traits->sets & SETS_CREDIT) && rule->credit > rule->capacity)
		return fail("rule %s: credit %" PRIu32 ": must be at most the capacity, %" PRIu64, spec->name,
		            rule->credit, rule->capacity);
	if ((traits->sets & SETS_LAW) && fit_law(spec, rule) != STATUS_OK)
		return STATUS_ERROR;
	if (traits->sets & SETS_WARMUP)
		rule->capacity = 0;
	if ((traits->sets & SETS_RATE) == 0) {
		rule->refill = 0;
	} else if (traits->counts_capacity) {
		if (rule->refill != 0)
			rule->capacity = rule->refill;
		rule->refill = rule->capacity;
	}
	return STATUS_OK;
}

int rule_spec_complete(struct rule_spec *spec, struct shmlimit *limiter, const char *segment)
{
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	int id = shmlimit_rule_find(limiter, spec->name);
	int error = id < 0 ? id : shmlimit_rule_get(limiter, id, &old), status;
	const char *needs;

	spec->exists = error == 0;
	spec->old = old;
	status = set_rate(spec);
	/* Of a damaged rule nothing is kept. */
	spec->exists = error == 0 || error == -EUCLEAN;
	if (error != 0)
		spec->old = (struct shmlimit_rule){ 0 };
	if (status != STATUS_OK)
		return status;
	if ((error == -ESRCH || error == -EUCLEAN) && rule_spec_lacks(spec) == NULL)
		return fit(spec);
	needs = traits_of(spec->rule.algorithm)->needs;
	if (error == -ESRCH && spec->line == 0 && (spec->given & 1u << FIELD_CAPACITY) && needs == NULL)
		return fail(
			"rule %s: not in segment %s yet, and a new rule needs a %s too, such as --rate 5/m (shmlimit "
			"rule list %s lists its rules)",
			spec->name, segment, rule_spec_lacks(spec), segment);
	if (error == -ESRCH && (spec->line != 0 || spec->rule.algorithm != SHMLIMIT_FUNNEL))
		return fail("rule %s: new, its %s is missing: must have %s", spec->name, rule_spec_lacks(spec),
		            needs != NULL ? needs : "rate");
	if (error < 0)
		return fail_rule(segment, spec->name, error);
	if (spec->rule.algorithm != old.algorithm && (spec->given & (1u << FIELD_ALGORITHM | 1u << FIELD_RATE)))
		return fail("rule %s: is a %s: an algorithm cannot be changed: remove the rule first (shmlimit rule "
		            "remove %s %s)",
		            spec->name, choice_word(choices_algorithm(), old.algorithm), segment, spec->name);
	for (int field = 0; field < FIELDS; field++)
		if (!is_given(spec, field) && field_applies(field, old.algorithm))
			field_copy(field, &old, &spec->rule);
	return fit(spec);
}

static int fail_spec(const struct rule_spec *spec, const char *segment, int error)
{
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
