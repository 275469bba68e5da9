/*
 * bans.c: shmlimit bans: the keys that are banned now, one a line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "about.h"
#include "ban.h"
#include "duration.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "slot_out.h"

enum { RULE, JSON };

static const struct command_option options[] = {
	[RULE] = { "rule", "RULE", "the rule that servers peek at (default ban)" },
	[JSON] = { "json", NULL, "print JSON, an object a line, as keys does" },
	{ 0 },
};

static void put_line(struct slot_out *out, const struct top_key *slot)
{
	char text[TEXT_LEN];

	out_key(out, slot);
	out_text(out, "\t");
	out_fingerprint(out, slot->fingerprint);
	out_text(out, "\t");
	out_text(out, duration_about(text, slot->reset_after_ns));
}

static int print_bans(struct shmlimit *limiter, int rule, int json)
{
	struct top_keys keys = { .rule = rule, .limit = UINT64_MAX, .denied = 1, .order = TOP_KEYS_BY_RESET };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct slot_out *out = slot_out_new(limiter);
	int status = out != NULL ? STATUS_OK : STATUS_ERROR;

	shmlimit_info(limiter, &info);
	if (status == STATUS_OK)
		status = top_keys_scan(limiter, 0, info.slots + info.old_slots, &keys);
	if (status == STATUS_OK && !json && isatty(STDOUT_FILENO))
		puts("KEY\tFINGERPRINT\tENDS-IN");
	for (size_t i = 0; status == STATUS_OK && i < keys.count; i++) {
		if (json)
			out_slot_json(out, &keys.slot[i]);
		else
			put_line(out, &keys.slot[i]);
		out_text(out, "\n");
		out_flush(out, SLOT_OUT_BUFFER);
	}
	if (out != NULL)
		out_flush(out, 0);
	slot_out_free(out);
	free(keys.slot);
	return status;
}

/* While there is no rule no key is banned. */
static int run(const struct call *call)
{
	const char *rule = call->option[RULE] != NULL ? call->option[RULE] : BAN_RULE;
	struct shmlimit_rule is = { .struct_size = sizeof(is) };
	struct shmlimit *limiter;
	int id, error, status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	id = shmlimit_rule_find(limiter, rule);
	error = id < 0 ? id : shmlimit_rule_get(limiter, id, &is);
	if (error == -ESRCH && call->option[RULE] == NULL)
		status = STATUS_OK;
	else if (error < 0)
		status = fail_rule(call->operand[0], rule, error);
	else if (is.algorithm != SHMLIMIT_COUNTER)
		status = fail("rule %s: %s", rule, ban_error(-EOPNOTSUPP));
	else
		status = print_bans(limiter, id, call->option[JSON] != NULL);
	shmlimit_close(limiter);
	return status;
}

const struct command command_bans = {
	.name = "bans",
	.operands = "NAME",
	.purpose = "print the keys that are banned, one per line",
	.details = "Fields are separated by tabs: the key, or # and its fingerprint if it is not stored; the\n"
		   "fingerprint; the time until the ban ends. The longest comes first.\n",
	.options = options,
	.run = run,
};
