/*
 * decision.c: what take, peek, reserve, acquire, charge and refund share: all
 * but one call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "about.h"
#include "choice.h"
#include "command.h"
#include "decision.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "traits.h"
#include "value_parse.h"

enum { TOKENS, JSON, QUIET };

const struct command_option decision_options[] = {
	[TOKENS] = { "cost", "N", "tokens to ask for (default 1; 0 takes nothing)" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing; the exit status is the answer" },
	LIMIT_ROW,
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

const struct command_option take_options[] = {
	[TOKENS] = { "cost", "N", "tokens to ask for, of each limit (default 1; 0 takes nothing)" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing; the exit status is the answer" },
	{ "at-most", "N", "of N tokens as many as fit; says how many were granted" },
	{ "all", NULL, "take from all limits RULE KEY, or from none" },
	{ "keys-from", "FILE", "instead of KEY: each line of FILE, - for standard input" },
	LIMIT_ROW,
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

const struct command_option reservation_options[] = {
	[TOKENS] = { "cost", "N", "tokens to ask for (default 1; 0 takes nothing)" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing; the exit status is the answer" },
	{ "max-wait", "DURATION", "the longest wait: 2s, 500ms, 0 (default: what the rule allows)" },
	LIMIT_ROW,
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

const struct command_option charge_options[] = {
	[TOKENS] = { "tokens", "N", "tokens that were used (default 1)" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing" },
	LIMIT_ROW,
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

const struct command_option refund_options[] = {
	[TOKENS] = { "tokens", "N", "tokens to give back (default 1)" },
	[JSON] = { "json", NULL, "print the answer as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing" },
	LIMIT_ROW,
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

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
	if (r->limit == UINT64_MAX) {
		print_line("limit", "unlimited");
	} else {
		print_line("limit", "%" PRIu64, r->limit);
		print_line("remaining", "%" PRIu64, r->remaining);
	}
	print_line("retry after", "%s", duration_about(text, r->retry_after_ns));
	print_line("reset after", "%s", duration_about(text, r->reset_after_ns));
}

json_t *decision_json(int answer, const struct shmlimit_result *r)
{
	/* clang-format off */
	return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o}",
	                 "allowed", answer == SHMLIMIT_ALLOWED,
	                 "shadow_denied", is_shadow_denial(answer, r),
	                 "limit", json_number(r->limit),
	                 "remaining", json_number(r->remaining),
	                 "retry_after_ns", json_duration(r->retry_after_ns),
	                 "reset_after_ns", json_duration(r->reset_after_ns));
	/* clang-format on */
}

struct question {
	enum shmlimit_verb verb;
	int charged_all; /* of a charge that was made */
	uint64_t tokens;
	uint64_t max_wait_ns; /* UINT64_MAX: the rule's */
	struct shmlimit_limit limit;
	struct key key;
};

static int waits(const struct question *q)
{
	return q->verb == SHMLIMIT_RESERVE || q->verb == SHMLIMIT_ACQUIRE;
}

static json_t *answer_json(const struct question *q, int answer, const struct shmlimit_result *r)
{
	json_t *json = decision_json(answer, r);

	if (q->verb == SHMLIMIT_CHARGE && json_object_set_new(json, "charged_all", json_boolean(q->charged_all)) != 0) {
		json_decref(json);
		return NULL;
	}
	if (waits(q) && json_object_set_new(json, "wait_ns", json_number(r->wait_ns)) != 0) {
		json_decref(json);
		return NULL;
	}
	if (q->verb != SHMLIMIT_TAKE_SOME || json_object_set_new(json, "granted", json_number(r->granted)) == 0)
		return json;
	json_decref(json);
	return NULL;
}

static void answer_print(const struct question *q, int answer, const struct shmlimit_result *r)
{
	char text[TEXT_LEN];

	decision_print(answer, r);
	if (waits(q))
		print_line("wait", "%s", duration_about(text, r->wait_ns));
	if (q->verb == SHMLIMIT_TAKE_SOME)
		print_line("granted", "%" PRIu64, r->granted);
	if (q->verb == SHMLIMIT_CHARGE)
		print_line("charged", "%s",
		           q->charged_all ? "all" : "not all: the rule's max-wait allows no more debt");
}

/*
 * What no wait helps against; and, of a reservation, advice for a rule that allows no wait at all,
 * the default: its author may have forgotten to allow one.
 */
static void hint_denied(struct shmlimit *limiter, int id, const struct question *q, const char *segment,
                        const char *name)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	uint64_t tokens = q->tokens;

	if (shmlimit_rule_get(limiter, id, &rule) != 0)
		return;
	if (q->limit.struct_size != 0) {
		rule.capacity = q->limit.capacity;
		rule.max_wait_ns = q->limit.max_wait_ns;
	}
	if (tokens > rule.capacity && q->verb != SHMLIMIT_TAKE_SOME && rule.mode == SHMLIMIT_ENFORCE)
		fail("rule %s: %" PRIu64 " tokens never fit: its capacity is %" PRIu64, name, tokens, rule.capacity);
	else if (!waits(q) || rule.max_wait_ns != 0)
		return;
	else if ((traits_of(rule.algorithm)->sets & SETS_MAX_WAIT) == 0)
		fail("rule %s: the tokens of a %s cannot be waited for", name,
		     choice_word(choices_algorithm(), rule.algorithm));
	else
		fail("rule %s: its max-wait is 0, so no wait is allowed (shmlimit rule set %s %s --max-wait 10s)", name,
		     segment, name);
}

int limit_option_read(const struct call *call, struct shmlimit_limit *limit)
{
	const char *text = call_option(call, "limit");

	*limit = (struct shmlimit_limit){ 0 };
	if (text == NULL)
		return STATUS_OK;
	limit->struct_size = sizeof(*limit);
	return call_limit_parse("--limit", text, limit);
}

static int limit_option_is_places(const struct call *call)
{
	struct shmlimit_limit limit;

	return limit_option_read(call, &limit) == STATUS_OK && limit.flags == SHMLIMIT_LIMIT_PLACES;
}

int fail_decision(const struct call *call, const char *rule, int error)
{
	const char *segment = call->operand[0], *limit = call_option(call, "limit");

	if (limit == NULL && error == -EOPNOTSUPP && call_option(call, "at-most") != NULL)
		return fail("rule %s: --at-most: a rule of its algorithm grants all or nothing", rule);
	if (error == -EDOM)
		return fail("rule %s: has no limit of its own: give one with --limit, or set it (shmlimit rule set %s "
		            "%s --rate 5/minute)",
		            rule, segment, rule);
	if (limit != NULL && error == -EOPNOTSUPP && limit_option_is_places(call))
		return fail("rule %s: has no places, which --limit '%s' needs (shmlimit rule set %s jobs --limit '%s' "
		            "makes one that has)",
		            rule, limit, segment, limit);
	if (limit != NULL && error == -EOPNOTSUPP)
		return fail("rule %s: not a gcra rule, which --limit needs (shmlimit rule set %s plans --algorithm "
		            "gcra makes one)",
		            rule, segment);
	if (limit != NULL && error == -ERANGE)
		return fail("--limit %s: --max-wait is out of range: must be at most 366 days", limit);
	return fail_rule(segment, rule, error);
}

int limit_wait_set(struct shmlimit *limiter, int id, uint64_t max_wait_ns, struct shmlimit_limit *limit)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int error = shmlimit_rule_get(limiter, id, &rule);

	if (error == 0 && limit->flags == 0)
		limit->max_wait_ns = max_wait_ns != UINT64_MAX ? max_wait_ns : rule.max_wait_ns;
	return error;
}

int places_refuse(struct shmlimit *limiter, int id, const char *segment, const char *rule)
{
	if (!traits_of((uint32_t)shmlimit_rule_algorithm(limiter, id))->is_places)
		return STATUS_OK;
	return fail(
		"rule %s: has places, which are held while a command runs: use shmlimit hold %s %s KEY --wait 10s -- COMMAND",
		rule, segment, rule);
}

static int ask_library(struct shmlimit *limiter, int id, struct question *q, struct shmlimit_result *r)
{
	struct shmlimit_request asked = { .rule = id, .key = q->key.bytes, .key_len = q->key.len, .cost = q->tokens };
	int error;

	if (q->limit.struct_size != 0) {
		error = limit_wait_set(limiter, id, q->max_wait_ns, &q->limit);
		if (error != 0)
			return error;
		asked.limit = &q->limit;
	} else if (q->verb == SHMLIMIT_RESERVE) {
		return shmlimit_reserve(limiter, id, asked.key, asked.key_len, asked.cost, q->max_wait_ns, r);
	} else if (q->verb == SHMLIMIT_ACQUIRE) {
		return shmlimit_acquire(limiter, id, asked.key, asked.key_len, asked.cost, q->max_wait_ns, r);
	}
	return shmlimit_decide(limiter, q->verb, &asked, r);
}

static int decide(const struct call *call, struct shmlimit *limiter, struct question *q)
{
	const char *segment = call->operand[0], *rule = call->operand[1];
	struct shmlimit_result r;
	int id, answer, status = rule_find(limiter, segment, rule, &id);

	if (status != STATUS_OK)
		return status;
	if (waits(q))
		status = places_refuse(limiter, id, segment, rule);
	if (status != STATUS_OK)
		return status;
	key_choose(limiter, id, &q->key);
	answer = ask_library(limiter, id, q, &r);
	if (answer < 0)
		return fail_decision(call, rule, answer);
	if (answer == SHMLIMIT_DENIED && (!waits(q) || q->max_wait_ns != 0) && call->option[QUIET] == NULL)
		hint_denied(limiter, id, q, segment, rule);
	/* It is always allowed, and so has no time to try again at. */
	q->charged_all = r.retry_after_ns == 0;
	if (q->verb == SHMLIMIT_CHARGE)
		r.retry_after_ns = 0;
	if (call->option[JSON] != NULL)
		status = print_json(answer_json(q, answer, &r));
	else if (call->option[QUIET] == NULL)
		answer_print(q, answer, &r);
	if (status != STATUS_OK)
		return status;
	return answer == SHMLIMIT_ALLOWED && (q->verb != SHMLIMIT_CHARGE || q->charged_all) ? STATUS_OK : STATUS_NO;
}

static int options_parse(const struct call *call, struct question *q)
{
	const char *max_wait = call_option(call, "max-wait"), *most = call_option(call, "at-most");
	char what[TEXT_LEN];
	int status;

	if (call->option[JSON] != NULL && call->option[QUIET] != NULL)
		return fail("--json and --quiet: cannot be combined");
	status = key_parse(call, call->operand[2], &q->key);
	snprintf(what, sizeof(what), "--%s", call->command->options[TOKENS].name);
	if (status == STATUS_OK && call->option[TOKENS] != NULL)
		status = number_parse(what, call->option[TOKENS], 0, UINT64_MAX, &q->tokens);
	if (status == STATUS_OK && max_wait != NULL)
		status = duration_parse("--max-wait", max_wait, &q->max_wait_ns);
	if (status == STATUS_OK && most != NULL && call->option[TOKENS] != NULL)
		return fail("--at-most and --cost: cannot be combined");
	if (status == STATUS_OK && most != NULL) {
		q->verb = SHMLIMIT_TAKE_SOME;
		status = number_parse("--at-most", most, 0, UINT64_MAX, &q->tokens);
	}
	if (status == STATUS_OK)
		status = limit_option_read(call, &q->limit);
	if (status == STATUS_OK && q->limit.flags == SHMLIMIT_LIMIT_PLACES &&
	    (q->verb == SHMLIMIT_CHARGE || q->verb == SHMLIMIT_REFUND || q->verb == SHMLIMIT_TAKE_SOME))
		return fail("--limit '%s': a number of places is for take and hold", call_option(call, "limit"));
	return status;
}

int decision_run(const struct call *call, uint32_t flags, enum shmlimit_verb verb)
{
	struct question q = { .verb = verb, .tokens = 1, .max_wait_ns = UINT64_MAX };
	struct shmlimit *limiter;
	int status = options_parse(call, &q);

	if (status == STATUS_OK)
		status = segment_open(call->operand[0], flags, &limiter);
	if (status != STATUS_OK)
		return status;
	status = decide(call, limiter, &q);
	shmlimit_close(limiter);
	return status;
}
