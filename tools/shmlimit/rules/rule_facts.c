/*
 * rule_facts.c: find a rule, and say what it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "choice.h"
#include "command.h"
#include "field.h"
#include "fail.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"

int rule_find(struct shmlimit *limiter, const char *segment, const char *name, int *id)
{
	int found = shmlimit_rule_find(limiter, name);

	if (found < 0)
		return fail_rule(segment, name, found);
	*id = found;
	return STATUS_OK;
}

int rule_is_internal(const char *name)
{
	return name[0] == '~';
}

/* libshmlimit-global's: its keys are backends, and its decisions are about calls to them. */
#define BREAKER "~backend"

/* The core's. Those of lines are the gate's. */
#define PAUSE "~pause"

int rule_is_breaker(const char *name)
{
	return strcmp(name, BREAKER) == 0;
}

int rule_breaker(struct shmlimit *limiter)
{
	return shmlimit_rule_find(limiter, BREAKER);
}

int rule_is_pause(struct shmlimit *limiter, int id)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	return shmlimit_rule_name(limiter, id, name) == 0 && strcmp(name, PAUSE) == 0;
}

/*
 * Its decisions are steps of others: calls to a backend, pauses, and requests that wait in a line.
 */
static int is_bookkeeping(const char *name)
{
	return rule_is_breaker(name) || strcmp(name, PAUSE) == 0 || strncmp(name, "~line", 5) == 0;
}

/* Of such rules. */
static void add_bookkeeping(struct shmlimit *limiter, struct shmlimit_counters *sum)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	(void)shmlimit_info(limiter, &info);
	for (int id = 0; id < (int)info.rules; id++) {
		struct shmlimit_counters own = { .struct_size = sizeof(own) };

		if (shmlimit_rule_name(limiter, id, name) != 0 || !is_bookkeeping(name) ||
		    shmlimit_counters(limiter, id, &own) != 0)
			continue;
		sum->allowed += own.allowed;
		sum->denied += own.denied;
		sum->shadow_denied += own.shadow_denied;
		sum->claims += own.claims;
		sum->reclaims += own.reclaims;
		sum->evictions += own.evictions;
		sum->no_slot += own.no_slot;
		sum->failed_cas += own.failed_cas;
	}
}

void rule_counters_all(struct shmlimit *limiter, struct shmlimit_counters *out)
{
	struct shmlimit_counters own = { .struct_size = sizeof(own) };

	/* Before the others: they only grow. */
	add_bookkeeping(limiter, &own);
	out->struct_size = sizeof(*out);
	shmlimit_counters(limiter, SHMLIMIT_ALL_RULES, out);
	out->allowed -= own.allowed;
	out->denied -= own.denied;
	out->shadow_denied -= own.shadow_denied;
	out->claims -= own.claims;
	out->reclaims -= own.reclaims;
	out->evictions -= own.evictions;
	out->no_slot -= own.no_slot;
	out->failed_cas -= own.failed_cas;
}

int rule_read(struct shmlimit *limiter, int id, struct rule_facts *out)
{
	int error;

	out->id = id;
	out->rule = (struct shmlimit_rule){ .struct_size = sizeof(out->rule) };
	out->range = (struct shmlimit_range){ .struct_size = sizeof(out->range) };
	error = shmlimit_rule_name(limiter, id, out->name);
	if (error == 0)
		error = shmlimit_rule_get(limiter, id, &out->rule);
	if (error == 0)
		error = shmlimit_rule_range(limiter, id, &out->range);
	return error;
}

json_t *rule_json(const struct rule_facts *facts)
{
	char rate[TEXT_LEN];

	(void)field_text(rate, FIELD_RATE, &facts->rule);
	/* clang-format off */
	return json_pack("{s:o, s:i, s:s, s:o, s:s?, s:o, s:o, s:o, s:b, s:o, s:o, s:b, s:o, s:b, s:s?, s:o, s:s?, s:b, s:s, s:o, s:o, s:o, s:o, s:o}",
	                 "name", json_text(facts->name),
	                 "id", facts->id,
	                 "algorithm", choice_word(choices_algorithm(), facts->rule.algorithm),
	                 "capacity", json_number(facts->rule.capacity),
	                 "rate", field_is_empty(FIELD_RATE, &facts->rule) ? NULL : rate,
	                 "refill", json_number(facts->rule.refill),
	                 "period_ns", json_number(facts->rule.period_ns),
	                 "max_wait_ns", json_number(facts->rule.max_wait_ns),
	                 "next_pays", (facts->rule.flags & SHMLIMIT_RULE_NEXT_PAYS) != 0,
	                 "warmup_ns", json_number(facts->rule.warmup_ns),
	                 "cold_factor_milli", json_number(facts->rule.cold_factor_milli),
	                 "count_refused", (facts->rule.flags & SHMLIMIT_RULE_COUNT_REFUSED) != 0,
	                 "credit", json_number(facts->rule.credit),
	                 "cut_off", (facts->rule.flags & SHMLIMIT_RULE_CUT_OFF) != 0,
	                 "law", facts->rule.law != 0 ? choice_word(choices_law, facts->rule.law) : NULL,
	                 "least", json_number(facts->rule.least),
	                 "zone", facts->rule.zone[0] != '\0' ? facts->rule.zone : NULL,
	                 "protected", (facts->rule.flags & SHMLIMIT_RULE_PROTECTED) != 0,
	                 "mode", choice_word(choices_mode, facts->rule.mode),
	                 "refused_unix_ns", json_number(facts->rule.refused_unix_ns),
	                 "resolution_ps", json_number(facts->range.resolution_ps),
	                 "refill_ns", json_number(facts->range.refill_ns),
	                 "back_ns", json_number(facts->range.back_ns),
	                 "ahead_ns", json_number(facts->range.ahead_ns));
	/* clang-format on */
}
