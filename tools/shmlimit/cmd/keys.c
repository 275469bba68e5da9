/*
 * keys.c: shmlimit keys: the live keys, one a line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <unistd.h>

#include "about.h"
#include "choice.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "rule_facts.h"
#include "slot_out.h"
#include "value_parse.h"

enum { RULE, DENIED, MATCH, SORT, LIMIT, JSON };

static const struct command_option options[] = {
	[RULE] = { "rule", "RULE", "keys of this rule only" },
	[DENIED] = { "denied", NULL, "only keys that have no token left" },
	[MATCH] = { "match", "GLOB", "only keys that match, as printed: '203.0.113.*', 'user:*'" },
	[SORT] = { "sort", "WHICH", "denied, debt, remaining or reset first (default: unsorted, as found)" },
	[LIMIT] = { "limit", "N", "print at most N keys" },
	[JSON] = { "json", NULL, "print JSON, an object a line" },
	{ 0 },
};

static const struct choice choices_sort[] = {
	{ "denied", TOP_KEYS_BY_DENIAL },
	{ "debt", TOP_KEYS_BY_DEBT },
	{ "remaining", TOP_KEYS_BY_REMAINING },
	{ "reset", TOP_KEYS_BY_RESET },
	{ 0 },
};

/* What is printed, and how. */
struct list {
	struct slot_out *out;
	int json;
};

static void put_line(struct slot_out *out, const struct top_key *slot)
{
	const char *rule = out_rule_name(out, slot->rule);
	char text[TEXT_LEN];

	out_key(out, slot);
	out_text(out, "\t");
	out_text(out, *rule != '\0' ? rule : "-");
	out_text(out, "\t");
	out_fingerprint(out, slot->fingerprint);
	out_text(out, "\t");
	out_number(out, slot->remaining);
	out_text(out, "\t");
	out_text(out, duration_about(text, slot->debt_ns));
	out_text(out, "\t");
	out_text(out, duration_about(text, slot->reset_after_ns));
}

/* Ends when the reader has closed the pipe, as head(1) does; main() has the message. */
static int print_slot(void *context, const struct top_key *slot)
{
	struct list *list = context;

	if (list->json)
		out_slot_json(list->out, slot);
	else
		put_line(list->out, slot);
	out_text(list->out, "\n");
	out_flush(list->out, SLOT_OUT_BUFFER);
	return ferror(stdout) ? STATUS_ERROR : STATUS_OK;
}

static int print_sorted(struct list *list, const struct top_keys *keys)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < keys->count && status == STATUS_OK; i++)
		status = print_slot(list, &keys->slot[i]);
	return status;
}

static int parse(const struct call *call, struct top_keys *keys)
{
	uint32_t order;
	int status = STATUS_OK;

	keys->denied = call->option[DENIED] != NULL;
	keys->match = call->option[MATCH];
	if (call->option[LIMIT] != NULL)
		status = number_parse("--limit", call->option[LIMIT], 0, UINT64_MAX, &keys->limit);
	if (status != STATUS_OK || call->option[SORT] == NULL)
		return status;
	status = choice_parse("--sort", call->option[SORT], choices_sort, &order);
	keys->order = status == STATUS_OK ? (enum top_keys_order)order : keys->order;
	keys->visit = NULL;
	return status;
}

static int print_keys(struct shmlimit *limiter, struct top_keys *keys, int json)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct list list = { slot_out_new(limiter), json };
	int status;

	if (list.out == NULL)
		return STATUS_ERROR;
	shmlimit_info(limiter, &info);
	keys->context = &list;
	if (!json && isatty(STDOUT_FILENO))
		puts("KEY\tRULE\tFINGERPRINT\tREMAINING\tDEBT\tTIME-TO-FULL");
	status = top_keys_scan(limiter, 0, info.slots + info.old_slots, keys);
	if (status == STATUS_OK)
		status = print_sorted(&list, keys);
	out_flush(list.out, 0);
	slot_out_free(list.out);
	return status;
}

static int check_match(struct shmlimit *limiter, const char *name, const char *match)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(limiter, &info);
	if (match == NULL || info.store_keys != 0)
		return STATUS_OK;
	return fail("--match %s: segment %s stores no keys (create it with: shmlimit create %s --store-keys BYTES)",
	            match, name, name);
}

static int run(const struct call *call)
{
	struct top_keys keys = { .rule = -1, .limit = UINT64_MAX, .visit = print_slot };
	struct shmlimit *limiter = NULL;
	const char *name = call->operand[0];
	int status = parse(call, &keys);

	if (status == STATUS_OK)
		status = segment_open(name, SHMLIMIT_OPEN_READ_ONLY, &limiter);
	if (status == STATUS_OK && call->option[RULE] != NULL)
		status = rule_find(limiter, name, call->option[RULE], &keys.rule);
	if (status == STATUS_OK)
		status = check_match(limiter, name, call->option[MATCH]);
	if (status == STATUS_OK)
		status = print_keys(limiter, &keys, call->option[JSON] != NULL);
	free(keys.slot);
	shmlimit_close(limiter);
	return status;
}

const struct command command_keys = {
	.name = "keys",
	.operands = "NAME",
	.purpose = "print the live keys, one per line, for pipes",
	.details =
		"Fields are separated by tabs: the key, or # and its fingerprint if it is not stored; the rule; the\n"
		"fingerprint; the whole tokens left; the time until a debt is paid; the time to full. A terminal\n"
		"gets a line of headings. Changes nothing, and delays no decision.\n",
	.options = options,
	.run = run,
};
