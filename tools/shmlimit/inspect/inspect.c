/*
 * inspect.c: shmlimit inspect: all there is to see in a segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "fail.h"
#include "key_form.h"
#include "inspect.h"
#include "key_option.h"
#include "named_segment.h"
#include "rule_facts.h"
#include "value_parse.h"

#define LIMIT_DEFAULT 20

enum { RULE, KEY, LIMIT, TOP, JSON };

static const struct command_option options[] = {
	[RULE] = { "rule", "RULE", "show this rule only" },
	[KEY] = { "key", "KEY", "show what this key of --rule would be answered, instead of slots" },
	[LIMIT] = { "limit", "N", "show at most N live slots, those furthest from full (default 20)" },
	[TOP] = { "top", "N", "show at most N live slots, those furthest over the limit or nearest to it" },
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	KEY_FINGERPRINT_ROW,
	{ 0 },
};

static int look(struct view *view, const char *rule)
{
	int status = STATUS_OK;

	shmlimit_info(view->limiter, &view->info);
	if (rule != NULL)
		status = rule_find(view->limiter, view->name, rule, &view->rule);
	if (status != STATUS_OK)
		return status;
	if (view->key == NULL) {
		view->keys.rule = view->rule;
		return top_keys_scan(view->limiter, 0, view->info.slots + view->info.old_slots, &view->keys);
	}
	key_choose(view->limiter, view->rule, view->key);
	view->answer = shmlimit_peek(view->limiter, view->rule, view->key->bytes, view->key->len, 1, &view->result);
	(void)shmlimit_paused(view->limiter, view->rule, view->key->bytes, view->key->len, &view->paused_ns);
	return view->answer < 0 ? fail_rule(view->name, rule, view->answer) : STATUS_OK;
}

/* A fingerprint chooses slots, a key is peeked at instead. */
static int check_key(const struct call *call, struct view *view, struct key *key)
{
	int status;

	if (call->option[KEY] == NULL && !key_is_option(call))
		return STATUS_OK;
	if (call->option[RULE] == NULL)
		return fail("--key needs --rule RULE");
	status = key_parse(call, call->option[KEY], key);
	if (key->len > 0)
		view->key = key;
	view->keys.fingerprint = key->fingerprint;
	return status;
}

static int check_call(const struct call *call, struct view *view, struct key *key)
{
	int status = check_key(call, view, key);

	if (call->option[LIMIT] != NULL && call->option[TOP] != NULL)
		return fail("--limit and --top: cannot be combined");
	if (status == STATUS_OK && call->option[TOP] != NULL) {
		view->keys.order = TOP_KEYS_BY_DENIAL;
		return number_parse("--top", call->option[TOP], 0, UINT64_MAX, &view->keys.limit);
	}
	if (status == STATUS_OK && call->option[LIMIT] != NULL)
		status = number_parse("--limit", call->option[LIMIT], 0, UINT64_MAX, &view->keys.limit);
	return status;
}

static int run(const struct call *call)
{
	struct view view = {
		.name = call->operand[0],
		.info.struct_size = sizeof(view.info),
		.rule = -1,
		.keys.limit = LIMIT_DEFAULT,
	};
	struct key key;
	int status = check_call(call, &view, &key);

	if (status == STATUS_OK)
		status = segment_open(view.name, SHMLIMIT_OPEN_READ_ONLY, &view.limiter);
	if (status != STATUS_OK)
		return status;
	status = look(&view, call->option[RULE]);
	if (status == STATUS_OK)
		status = call->option[JSON] != NULL ? inspect_json(&view) : inspect_text(&view);
	free(view.keys.slot);
	shmlimit_close(view.limiter);
	return status;
}

const struct command command_inspect = {
	.name = "inspect",
	.operands = "NAME",
	.purpose = "show a segment: geometry, rules, counters, live slots",
	.details = "Keys are shown if the segment stores them (create --store-keys). Changes nothing.\n",
	.options = options,
	.run = run,
};
