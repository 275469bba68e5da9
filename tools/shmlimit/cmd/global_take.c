/*
 * global_take.c: shmlimit global take.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "about.h"
#include "choice.h"
#include "decision.h"
#include "fail.h"
#include "global.h"
#include "key_option.h"
#include "number_text.h"
#include "print.h"
#include "value_parse.h"

enum { COST = GLOBAL_OPTIONS, ON_FAILURE, SHARE, JSON, QUIET };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[COST] = { "cost", "N", "tokens to ask for (default 1; 0 takes nothing, and shows what this host has)" },
	[ON_FAILURE] = { "on-failure", "WHAT",
	                 "answer while the backend fails: deny (default), allow, local or error" },
	[SHARE] = { "local-share", "N", "local, which needs it: this host's share in thousandths of the limit" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing; the exit status is the answer" },
	KEY_OPTION_ROWS,
	{ 0 },
};

static const struct choice choices_on_failure[] = {
	{ "deny", SHMLIMIT_GLOBAL_DENY },
	{ "allow", SHMLIMIT_GLOBAL_ALLOW },
	{ "local", SHMLIMIT_GLOBAL_LOCAL },
	{ "error", SHMLIMIT_GLOBAL_ERROR },
	{ 0 },
};

static int parse(const struct call *call, struct shmlimit_global_options *o, struct key *key, uint64_t *cost)
{
	uint64_t share = 0;
	int status = key_parse(call, call->operand[GLOBAL_KEY], key);

	if (call->option[JSON] != NULL && call->option[QUIET] != NULL)
		return fail("--json and --quiet: cannot be combined");
	if (status == STATUS_OK && call->option[COST] != NULL)
		status = number_parse("--cost", call->option[COST], 0, UINT64_MAX, cost);
	if (status == STATUS_OK && call->option[ON_FAILURE] != NULL)
		status = choice_parse("--on-failure", call->option[ON_FAILURE], choices_on_failure, &o->on_failure);
	if (status == STATUS_OK && call->option[SHARE] != NULL)
		status = number_parse("--local-share", call->option[SHARE], 1, 1000, &share);
	o->local_milli = (uint32_t)share;
	if (status == STATUS_OK && (o->on_failure == SHMLIMIT_GLOBAL_LOCAL) != (share != 0))
		return fail("--on-failure local and --local-share: each needs the other");
	return status;
}

static json_t *answer_json(int answer, const struct shmlimit_result *r, uint64_t breaker_ns)
{
	json_t *json = decision_json(answer, r);

	if (json_object_set_new(json, "breaker_ns", json_number(breaker_ns)) == 0)
		return json;
	json_decref(json);
	return NULL;
}

static int answer_print(const struct call *call, int answer, const struct shmlimit_result *r, uint64_t breaker_ns)
{
	if (call->option[JSON] != NULL)
		return print_json(answer_json(answer, r, breaker_ns));
	if (call->option[QUIET] == NULL)
		decision_print(answer, r);
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit_global_options o = { 0 };
	struct key key;
	struct shmlimit_result r;
	struct global_call g;
	uint64_t cost = 1, breaker_ns;
	char text[TEXT_LEN];
	int answer, status = parse(call, &o, &key, &cost);

	if (status == STATUS_OK)
		status = global_open(&g, call, &o);
	if (status != STATUS_OK)
		return status;
	breaker_ns = shmlimit_global_breaker_ns(g.global);
	if (shmlimit_rule_algorithm(g.limiter, g.rule) != SHMLIMIT_LEASE)
		fail("warning: rule %s: not a lease, so its tokens are those of this host alone (set one with "
		     "--algorithm lease)",
		     call->operand[GLOBAL_RULE]);
	answer = shmlimit_global_take(g.global, g.rule, key.bytes, key.len, cost, &r);
	/* Why it failed was said to the process that opened the breaker. */
	if ((answer >= 0 || answer == -EHOSTDOWN) && breaker_ns > 0 && !g.told) {
		fail("backend: not asked for %s: this host's circuit breaker is open after a failure (shmlimit global ping says "
		     "what is wrong)",
		     duration_about(text, breaker_ns));
		g.told = 1;
	}
	if (answer >= 0)
		status = answer_print(call, answer, &r, breaker_ns);
	else
		status = global_status(&g, answer);
	global_close(&g);
	return status == STATUS_OK && answer == SHMLIMIT_DENIED ? STATUS_NO : status;
}

const struct command command_global_take = {
	.name = "global take",
	.operands = "NAME URL RULE KEY",
	.purpose = "take tokens of a funnel that all hosts share",
	.details = GLOBAL_DETAILS "Exits 0 if allowed, 1 if denied.\n",
	.options = options,
	.run = run,
};
