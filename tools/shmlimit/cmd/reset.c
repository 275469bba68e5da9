/*
 * reset.c: shmlimit reset.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "command.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "print.h"
#include "reset.h"
#include "rule_facts.h"

enum { ALL, RULE, KEY, JSON };

static const struct command_option options[] = {
	[ALL] = { "all", NULL, "every key of every rule" },
	[RULE] = { "rule", "RULE", "every key of this rule" },
	[KEY] = { "key", "KEY", "with --rule: this key only" },
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	KEY_FINGERPRINT_ROW,
	{ 0 },
};

static int check_call(const struct call *call, int one, struct key *key)
{
	if ((call->option[ALL] != NULL) == (call->option[RULE] != NULL) || (call->option[ALL] != NULL && one))
		return fail("reset: give exactly one of --all, --rule RULE, or --rule RULE "
		            "--key KEY");
	return one ? key_parse(call, call->option[KEY], key) : STATUS_OK;
}

/* Text that reads as an address is not the key that servers make of it. */
static int is_address(const char *text)
{
	unsigned char bytes[SHMLIMIT_KEY_IP_MAX];

	return text != NULL && shmlimit_key_ip_text(text, 0, 0, 0, bytes, sizeof(bytes)) > 0;
}

int reset_report(int found, const struct key *key, const char *rule)
{
	char text[KEY_TEXT_LEN];

	if (found > 0 || key == NULL) {
		print_line("keys reset", "%d", found);
		return STATUS_OK;
	}
	if (key->len > 0)
		key_show(text, key->bytes, key->len, key->len);
	else
		sprintf(text, "#%012" PRIx64, key->fingerprint);
	fail("key %s: rule %s has no such key now: nothing was reset, all its tokens are there%s%s%s", text, rule,
	     is_address(key->text) ? " (if servers limit this address: --key-ip " : "",
	     is_address(key->text) ? key->text : "", is_address(key->text) ? ")" : "");
	return STATUS_NO;
}

int reset_print_json(int found, int one_key)
{
	int status = print_json(json_pack("{s:o}", "keys_reset", json_number((uint64_t)found)));

	return status == STATUS_OK && found == 0 && one_key ? STATUS_NO : status;
}

int reset_key(struct shmlimit *limiter, int rule, const struct key *key)
{
	struct key_forms forms;
	int found = 0;

	if (key->len == 0)
		return shmlimit_reset_fingerprint(limiter, rule, key->fingerprint);
	key_forms(limiter, rule, key, &forms);
	for (size_t i = 0; i < forms.count; i++) {
		int one = shmlimit_reset(limiter, rule, forms.key[i].bytes, forms.key[i].len);

		if (one < 0)
			return one;
		found += one;
	}
	return found;
}

static int reset(const struct call *call, struct shmlimit *limiter, const struct key *key)
{
	const char *segment = call->operand[0], *rule = call->option[RULE];
	int id = SHMLIMIT_ALL_RULES, found, status = STATUS_OK;

	if (rule != NULL)
		status = rule_find(limiter, segment, rule, &id);
	if (status != STATUS_OK)
		return status;
	found = key != NULL ? reset_key(limiter, id, key) : shmlimit_reset(limiter, id, NULL, 0);
	if (found >= 0 && call->option[JSON] != NULL)
		return reset_print_json(found, key != NULL);
	if (found >= 0)
		return reset_report(found, key, rule);
	return rule != NULL ? fail_rule(segment, rule, found) : fail_segment(segment, found);
}

static int run(const struct call *call)
{
	int one = call->option[KEY] != NULL || key_is_option(call);
	struct shmlimit *limiter;
	struct key key;
	int status = check_call(call, one, &key);

	if (status == STATUS_OK)
		status = segment_open(call->operand[0], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = reset(call, limiter, one ? &key : NULL);
	shmlimit_close(limiter);
	return status;
}

const struct command command_reset = {
	.name = "reset",
	.operands = "NAME",
	.purpose = "restore all tokens of one key, one rule, or the whole segment",
	.details = "Prints how many keys had taken tokens. Exit 1 if a given key already had all its tokens.\n",
	.options = options,
	.run = run,
	.extra = "--rule RULE --key",
};
