/*
 * algorithm: the list, and what is the same for all. See algorithm.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "algorithm.h"

const struct algorithm *const algorithms[ALGORITHMS] = {
#define ALGORITHM(number, name) [number] = &algorithm_##name,
#include "list.h"
};

int algorithm_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	/* The table's concern: no algorithm sees it. */
	uint32_t protected = rule->flags & SHMLIMIT_RULE_PROTECTED;
	const struct traits *traits = traits_of(rule->algorithm);
	struct shmlimit_rule own = *rule;
	int error;

	memset(params, 0, sizeof(*params));
	if (rule->algorithm >= ALGORITHMS)
		return -EINVAL;
	if ((rule->flags & ~(SHMLIMIT_RULE_NEXT_PAYS | SHMLIMIT_RULE_COUNT_REFUSED | SHMLIMIT_RULE_PROTECTED |
	                     SHMLIMIT_RULE_CUT_OFF)) != 0)
		return -EINVAL;
	if ((rule->flags & SHMLIMIT_RULE_CUT_OFF) != 0 && !traits->is_places)
		return -EINVAL;
	if ((traits->sets & SETS_WARMUP) == 0 && (rule->warmup_ns != 0 || rule->cold_factor_milli != 0))
		return -EINVAL;
	if ((traits->sets & SETS_CREDIT) == 0 && rule->credit != 0)
		return -EINVAL;
	if (!traits->is_places && (rule->law != 0 || rule->least != 0))
		return -EINVAL;
	if ((traits->sets & SETS_ZONE) == 0 &&
	    (rule->zone[0] != '\0' || rule->zone_offsets[0] != 0 || rule->zone_offsets[1] != 0))
		return -EINVAL;
	own.flags &= ~SHMLIMIT_RULE_PROTECTED;
	error = algorithms[rule->algorithm]->compile(&own, size, params);
	params->flags |= protected;
	return error;
}

int algorithm_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity)
{
	struct shmlimit_rule spec = *rule;
	struct layout_params params;
	uint64_t refused = SHMLIMIT_CAPACITY_MAX + 1;
	int error;

	if (rule->algorithm >= ALGORITHMS || (traits_of(rule->algorithm)->sets & SETS_WARMUP) != 0)
		return -EINVAL;
	if (traits_of(rule->algorithm)->counts_capacity)
		spec.refill = 0; /* or it must be the capacity */
	spec.credit = 0;         /* or it would be above the smallest capacity */
	if (spec.law != 0 && spec.least != 0)
		spec.least = 1;
	*capacity = spec.capacity = 1;
	error = algorithm_compile(&spec, 0, &params);
	if (error != 0)
		return error;
	/* BOUND: it is halved 48 times. What a larger capacity needs is more of the same. */
	while (refused - *capacity > 1) {
		spec.capacity = *capacity + (refused - *capacity) / 2;
		if (algorithm_compile(&spec, 0, &params) == 0)
			*capacity = spec.capacity;
		else
			refused = spec.capacity;
	}
	return 0;
}

void algorithm_rule(const struct layout_params *params, struct shmlimit_rule *out)
{
	const struct algorithm *a = algorithm_of(params);

	out->algorithm = params_algorithm(params);
	out->flags = params_flags(params);
	out->capacity = params->capacity;
	out->refill = params->count;
	out->period_ns = params->period_ns;
	out->max_wait_ns = params->max_wait_ns;
	if (a->rule != NULL)
		a->rule(params, out);
}

uint64_t algorithm_wait(const struct look *k, uint64_t word)
{
	const struct algorithm *a = algorithm_of(k->params);
	struct balance b;

	a->read(k, word, &b);
	if (b.doubtful && !k->given) {
		struct look again = *k;

		again.at = funnel_time(k->params, when_read(k->l).ns);
		a->read(&again, word, &b);
		return a->wait(&again, &b);
	}
	return a->wait(k, &b);
}

uint64_t algorithm_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	return algorithm_of(to)->convert(k, word, to);
}
