/*
 * decision.c: what take, peek and refund share: all but one call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"

enum { TOKENS, JSON, QUIET };

const struct command_option decision_options[] = {
	[TOKENS] = { "cost", "N", "tokens to ask for (default 1; 0 only looks)" },
	[JSON] = { "json", NULL, "print the facts as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing: the exit status tells" },
	{ 0 },
};

const struct command_option refund_options[] = {
	[TOKENS] = { "tokens", "N", "tokens to give back (default 1)" },
	[JSON] = { "json", NULL, "print the facts as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing" },
	{ 0 },
};

int decision_key(const char *key)
{
	size_t len = strlen(key);

	if (len < 1 || len > SHMLIMIT_KEY_MAX)
		return fail("key of %zu bytes: must be 1 to %d", len, SHMLIMIT_KEY_MAX);
	return STATUS_OK;
}

/* Allowed by a rule that only watches: enforced, it would have denied. */
static int is_shadow_denial(int answer, const struct shmlimit_result *r)
{
	return answer == SHMLIMIT_ALLOWED && r->retry_after_ns > 0;
}

void decision_print(int answer, const struct shmlimit_result *r)
{
	char text[TEXT_LEN];

	print_line("decision", "%s%s", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied",
	           is_shadow_denial(answer, r) ? " (dry run: would be denied)" : "");
	print_line("limit", "%" PRIu64, r->limit);
	print_line("remaining", "%" PRIu64, r->remaining);
	print_line("retry after", "%s", seconds_text(text, r->retry_after_ns));
	print_line("reset after", "%s", seconds_text(text, r->reset_after_ns));
}

json_t *decision_json(int answer, const struct shmlimit_result *r)
{
	return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o}",
	                 "allowed", answer == SHMLIMIT_ALLOWED,
	                 "shadow_denied", is_shadow_denial(answer, r),
	                 "limit", json_number(r->limit),
	                 "remaining", json_number(r->remaining),
	                 "retry_after_ns", json_duration(r->retry_after_ns),
	                 "reset_after_ns", json_duration(r->reset_after_ns));
}

static int decide(const struct call *call, struct shmlimit *limiter, decision_verb *verb, uint64_t tokens)
{
	const char *segment = call->operand[0], *rule = call->operand[1], *key = call->operand[2];
	struct shmlimit_result r;
	int id, answer, status = rule_find(limiter, segment, rule, &id);

	if (status != STATUS_OK)
		return status;
	answer = verb(limiter, id, key, strlen(key), tokens, &r);
	if (answer < 0)
		return fail_rule(segment, rule, answer);
	if (call->option[JSON] != NULL)
		status = print_json(decision_json(answer, &r));
	else if (call->option[QUIET] == NULL)
		decision_print(answer, &r);
	if (status != STATUS_OK)
		return status;
	return answer == SHMLIMIT_ALLOWED ? STATUS_OK : STATUS_NO;
}

int decision_run(const struct call *call, uint32_t flags, decision_verb *verb)
{
	struct shmlimit *limiter;
	uint64_t tokens = 1;
	int status;

	if (call->option[JSON] != NULL && call->option[QUIET] != NULL)
		return fail("--json and --quiet: contradict each other: must be one of them");
	status = decision_key(call->operand[2]);
	if (status == STATUS_OK && call->option[TOKENS] != NULL)
		status = number_parse(verb == shmlimit_refund ? "--tokens" : "--cost", call->option[TOKENS],
		                      0, UINT64_MAX, &tokens);
	if (status == STATUS_OK)
		status = segment_open(call->operand[0], flags, &limiter);
	if (status != STATUS_OK)
		return status;
	status = decide(call, limiter, verb, tokens);
	shmlimit_close(limiter);
	return status;
}
