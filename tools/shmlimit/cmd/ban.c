/*
 * ban.c: shmlimit ban and shmlimit unban. A ban is a key of a COUNTER rule whose count is at its bound, for as long as
 * the count lives. Servers have a limit on that rule that peeks: it denies such a key, and never counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "ban.h"
#include "command.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "reset.h"
#include "rule_facts.h"
#include "shmlimit_at.h"
#include "value_parse.h"

enum { NAME, KEY };
enum { RULE, FOR, JSON };

static const struct command_option ban_options[] = {
	[RULE] = { "rule", "RULE", "the rule that servers peek at, made if it is missing (default ban)" },
	[FOR] = { "for", "DURATION", "how long: 10m, 1h30m, 7d" },
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

/* A rule that is missing is made. Returns its id, or -errno. */
static int find_or_make(struct shmlimit *limiter, const char *rule)
{
	struct shmlimit_rule counter = { .struct_size = sizeof(counter),
		                         .algorithm = SHMLIMIT_COUNTER,
		                         .flags = SHMLIMIT_RULE_PROTECTED,
		                         .capacity = 1 };
	int id = shmlimit_rule_find(limiter, rule);

	return id == -ESRCH ? shmlimit_rule_set(limiter, rule, &counter) : id;
}

/*
 * Was it in force? Not without a slot for its key, nor while the rule or the segment is off. The moment is before it was
 * begun: a short ban may be over by now.
 */
static int check_banned(struct shmlimit *limiter, int id, const struct key *key, uint64_t at_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_result r;
	int answer = shmlimit_peek_at(limiter, id, key->bytes, key->len, 1, &r, at_ns);

	if (answer < 0 || answer == SHMLIMIT_DENIED || r.retry_after_ns > 0)
		return answer < 0 ? answer : 0;
	answer = shmlimit_rule_get(limiter, id, &rule);
	shmlimit_info(limiter, &info);
	if (answer < 0)
		return answer;
	return rule.mode == SHMLIMIT_OFF || !info.enabled ? -ESHUTDOWN : -ENOSPC;
}

int ban_begin(struct shmlimit *limiter, const char *rule, const struct key *key, uint64_t for_ns)
{
	int id = find_or_make(limiter, rule), answer;
	uint64_t begun_ns = shmlimit_now(limiter);

	if (id < 0)
		return id;
	answer = shmlimit_count(
		limiter, id, key->bytes, key->len,
		&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                          .flags = SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART,
	                                          .n = SHMLIMIT_CAPACITY_MAX,
	                                          .bound = INT64_MAX,
	                                          .ttl_ns = for_ns },
		NULL);
	if (answer == SHMLIMIT_DENIED)
		return -ENOSPC;
	return answer < 0 ? answer : check_banned(limiter, id, key, begun_ns);
}

const char *ban_error(int error)
{
	switch (error) {
	case -EOPNOTSUPP:
		return "not a counter (use another rule, or set one with --algorithm counter)";
	case -ESHUTDOWN:
		return "the rule or the segment is off: nobody is banned";
	case -ENOSPC:
		return "the segment is full: the key is not banned (see shmlimit grow)";
	default:
		return NULL;
	}
}

static const char *rule_of(const struct call *call)
{
	const char *rule = call_option(call, "rule");

	return rule != NULL ? rule : BAN_RULE;
}

/* A rule that this command makes is protected. One that was there before may not be. */
static void warn_unprotected(struct shmlimit *limiter, const char *segment, const char *name)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(limiter, &info);
	if (info.on_full == SHMLIMIT_FULL_EVICT &&
	    shmlimit_rule_get(limiter, shmlimit_rule_find(limiter, name), &rule) == 0 &&
	    (rule.flags & SHMLIMIT_RULE_PROTECTED) == 0)
		fail("rule %s: not protected: other keys may evict the ban when the table is full (shmlimit rule set %s %s "
		     "--protected yes)",
		     name, segment, name);
}

static int print_ban(const struct call *call, const struct key *key, uint64_t for_ns)
{
	char text[KEY_TEXT_LEN], left[TEXT_LEN];
	json_t *json;

	if (call->option[JSON] == NULL) {
		print_line("key", "%s", key_show(text, key->bytes, key->len, key->len));
		print_line("rule", "%s", rule_of(call));
		print_line("ends in", "%s", duration_text(left, for_ns));
		return STATUS_OK;
	}
	json = json_pack("{s:o, s:o}", "rule", json_text(rule_of(call)), "ends_after_ns", json_number(for_ns));
	if (json != NULL && json_object_update_new(json, json_key(key->bytes, key->len, key->len)) != 0) {
		json_decref(json);
		json = NULL;
	}
	return print_json(json);
}

/* Each form that an address may have: where the segment shows none, servers have one of both. Returns 0 or -errno. */
static int ban_forms(const struct call *call, struct shmlimit *limiter, const struct key_forms *forms, uint64_t for_ns)
{
	int error = 0;

	for (size_t i = 0; i < forms->count && error >= 0; i++)
		error = ban_begin(limiter, rule_of(call), &forms->key[i], for_ns);
	return error;
}

static int print_forms(const struct call *call, const struct key_forms *forms, uint64_t for_ns)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < forms->count && status == STATUS_OK; i++)
		status = print_ban(call, &forms->key[i], for_ns);
	return status;
}

/* A count lives for its rule's period at most. */
static int fail_for(const struct call *call, uint64_t most_ns)
{
	char text[TEXT_LEN];

	return fail(
		"--for %s: rule %s counts for %s at most (for longer bans set a rule of its own: shmlimit rule set %s "
		"RULE --algorithm counter --period %s; then ban --rule RULE)",
		call->option[FOR], rule_of(call), duration_text(text, most_ns), call->operand[NAME], call->option[FOR]);
}

static int ban_run(const struct call *call)
{
	struct shmlimit *limiter;
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct key_forms forms;
	struct key key;
	uint64_t for_ns = 0, most_ns = 0;
	int error, status = key_parse(call, call->operand[KEY], &key);

	if (status == STATUS_OK && call->option[FOR] == NULL)
		return fail("ban: missing --for DURATION, how long the ban lasts, such as --for 1h");
	if (status == STATUS_OK)
		status = duration_parse("--for", call->option[FOR], &for_ns);
	if (status == STATUS_OK && for_ns == 0)
		return fail("--for %s: must be more than 0", call->option[FOR]);
	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	key_forms(limiter, shmlimit_rule_find(limiter, rule_of(call)), &key, &forms);
	error = ban_forms(call, limiter, &forms, for_ns);
	if (shmlimit_rule_range(limiter, shmlimit_rule_find(limiter, rule_of(call)), &range) == 0)
		most_ns = range.refill_ns;
	if (error >= 0)
		warn_unprotected(limiter, call->operand[NAME], rule_of(call));
	shmlimit_close(limiter);
	if (error >= 0)
		return print_forms(call, &forms, for_ns);
	if (error == -ERANGE)
		return fail_for(call, most_ns);
	if (ban_error(error) != NULL)
		return fail("rule %s: %s", rule_of(call), ban_error(error));
	return fail_rule(call->operand[NAME], rule_of(call), error);
}

const struct command command_ban = {
	.name = "ban",
	.operands = "NAME KEY",
	.purpose = "ban a key for a time",
	.details =
		"The ban holds from the next request, where servers have a limit that peeks at the rule:\n"
		"rule=ban peek. For a key that is banned already, the new time replaces the old. See unban and bans.\n"
		"An address is banned as the segment's users store it; where that is not known, as text and as\n"
		"with --key-ip.\n",
	.options = ban_options,
	.run = ban_run,
};

enum { UNBAN_RULE, UNBAN_JSON };

static const struct command_option unban_options[] = {
	[UNBAN_RULE] = { "rule", "RULE", "the rule that servers peek at (default ban)" },
	[UNBAN_JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	KEY_FINGERPRINT_ROW,
	{ 0 },
};

static int unban(const struct call *call, struct shmlimit *limiter, const struct key *key)
{
	char text[KEY_TEXT_LEN];
	int id, found, status = rule_find(limiter, call->operand[NAME], rule_of(call), &id);

	if (status != STATUS_OK)
		return status;
	found = reset_key(limiter, id, key);
	if (found < 0)
		return fail_rule(call->operand[NAME], rule_of(call), found);
	if (call->option[UNBAN_JSON] != NULL)
		return reset_print_json(found, 1);
	if (found == 0 && key->len > 0)
		fail("key %s: not banned by rule %s", key_show(text, key->bytes, key->len, key->len), rule_of(call));
	else if (found == 0)
		fail("fingerprint %s: not banned by rule %s", call_option(call, "fingerprint"), rule_of(call));
	return found > 0 ? STATUS_OK : STATUS_NO;
}

static int unban_run(const struct call *call)
{
	struct shmlimit *limiter;
	struct key key;
	int status = key_parse(call, call->operand[KEY], &key);

	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = unban(call, limiter, &key);
	shmlimit_close(limiter);
	return status;
}

const struct command command_unban = {
	.name = "unban",
	.operands = "NAME KEY",
	.purpose = "end the ban of a key",
	.details = "Exit 1 if the key is not banned.\n",
	.options = unban_options,
	.run = unban_run,
};
