/*
 * pause.c: shmlimit pause: nothing of a key passes until a time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "about.h"
#include "choice.h"
#include "command.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "value_parse.h"

enum { NAME, RULE, KEY };
enum { FOR, JSON };

static const struct command_option options[] = {
	[FOR] = { "for", "DURATION",
	          "how long, such as 30s; a shorter pause does not replace a longer one; 0 ends it" },
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

static int fail_pause(const struct call *call, int answer)
{
	if (answer == SHMLIMIT_DENIED)
		return fail(
			"rule %s: the key is not paused: the segment is full (see shmlimit grow), or it or the rule ~pause is "
			"off",
			call->operand[RULE]);
	if (answer == -ERANGE)
		return fail("--for %s: must be at most 366d, and the period of the rule ~pause", call->option[FOR]);
	if (answer == -EOPNOTSUPP)
		return fail("rule %s: cannot be paused: it is ~pause, or the rule ~pause is no counter",
		            call->operand[RULE]);
	return fail_rule(call->operand[NAME], call->operand[RULE], answer);
}

#define MS UINT64_C(1000000)

/* The time that is left may be that of an earlier pause. Its end was rounded up. */
static int print_pause(const struct call *call, struct shmlimit *limiter, int rule, const struct key *key,
                       uint64_t for_ns)
{
	char text[KEY_TEXT_LEN], left[TEXT_LEN];
	uint64_t left_ns = 0;
	json_t *json;

	(void)shmlimit_paused(limiter, rule, key->bytes, key->len, &left_ns);
	if (left_ns > for_ns && left_ns - for_ns < MS)
		left_ns = for_ns;
	if (call->option[JSON] == NULL) {
		print_line("key", "%s", key_show(text, key->bytes, key->len, key->len));
		print_line("rule", "%s", call->operand[RULE]);
		print_line("ends in", "%s", duration_about(left, left_ns));
		return STATUS_OK;
	}
	json = json_pack("{s:o, s:o}", "rule", json_text(call->operand[RULE]), "ends_after_ns", json_number(left_ns));
	if (json != NULL && json_object_update_new(json, json_key(key->bytes, key->len, key->len)) != 0) {
		json_decref(json);
		json = NULL;
	}
	return print_json(json);
}

static int pause_key(const struct call *call, struct shmlimit *limiter, const struct key *key, uint64_t for_ns)
{
	struct shmlimit_rule now = { .struct_size = sizeof(now) };
	struct key_forms forms;
	int rule, answer = 0, status = rule_find(limiter, call->operand[NAME], call->operand[RULE], &rule);

	if (status != STATUS_OK)
		return status;
	if (shmlimit_rule_get(limiter, rule, &now) == 0 && now.mode != SHMLIMIT_ENFORCE && for_ns != 0)
		return fail(
			"rule %s: the key is not paused: the rule's mode is %s, and only an enforced rule obeys pauses (shmlimit "
			"rule set %s %s --mode enforce)",
			call->operand[RULE], choice_word(choices_mode, now.mode), call->operand[NAME],
			call->operand[RULE]);
	key_forms(limiter, rule, key, &forms);
	for (size_t i = 0; i < forms.count && answer == 0; i++)
		answer = shmlimit_pause(limiter, rule, forms.key[i].bytes, forms.key[i].len, for_ns);
	if (answer != 0)
		return fail_pause(call, answer);
	for (size_t i = 0; i < forms.count && status == STATUS_OK; i++)
		status = print_pause(call, limiter, rule, &forms.key[i], for_ns);
	return status;
}

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	struct key key;
	uint64_t for_ns;
	int status = key_parse(call, call->operand[KEY], &key);

	if (status == STATUS_OK && call->option[FOR] == NULL)
		return fail(
			"pause: missing --for DURATION, how long the pause lasts, such as --for 30s, or 0 to end it");
	if (status == STATUS_OK)
		status = duration_parse("--for", call->option[FOR], &for_ns);
	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = pause_key(call, limiter, &key, for_ns);
	shmlimit_close(limiter);
	return status;
}

const struct command command_pause = {
	.name = "pause",
	.operands = "NAME RULE KEY",
	.purpose = "let nothing of a key pass until a time",
	.details = "The pause is in force at once, for all processes; acquire, exec and hold --wait wait until\n"
		   "it is over. Prints when the pause ends. shmlimit keys NAME --rule '~pause' lists pauses.\n",
	.options = options,
	.run = run,
};
