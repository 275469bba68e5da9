/*
 * global_inspect.c: shmlimit global inspect: what a backend has of one key, and
 * what this host has leased of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "about.h"
#include "duration.h"
#include "global.h"
#include "key_option.h"
#include "number_text.h"
#include "print.h"

enum { JSON = GLOBAL_OPTIONS };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	{ 0 },
};

static int show(const struct global_call *g, const struct shmlimit_global_funnel *there,
                const struct shmlimit_result *here)
{
	char text[TEXT_LEN];

	/* clang-format off */
	if (g->call->option[JSON] != NULL)
		return print_json(json_pack("{s:o, s:o, s:o, s:o, s:o}",
		                            "limit", json_number(here->limit),
		                            "remaining", json_number(there->remaining),
		                            "reset_after_ns", json_duration(there->reset_after_ns),
		                            "lease_ns", json_number(there->lease_ns),
		                            "held", json_number(here->remaining)));
	/* clang-format on */
	print_line("limit", "%" PRIu64, here->limit);
	print_line("remaining", "%" PRIu64, there->remaining);
	print_line("reset after", "%s", duration_about(text, there->reset_after_ns));
	print_line("lease", "%s", duration_about(text, there->lease_ns));
	print_line("held here", "%" PRIu64, here->remaining);
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit_global_funnel there = { .struct_size = sizeof(there) };
	struct shmlimit_global_options o = { 0 };
	struct key key;
	struct shmlimit_result here = { 0 };
	struct global_call g;
	int error, status = key_parse(call, call->operand[GLOBAL_KEY], &key);

	if (status == STATUS_OK)
		status = global_open(&g, call, &o);
	if (status != STATUS_OK)
		return status;
	error = shmlimit_global_peek(g.global, g.rule, key.bytes, key.len, &there);
	if (error == 0)
		error = shmlimit_peek(g.limiter, g.rule, key.bytes, key.len, 1, &here);
	status = error < 0 ? global_status(&g, error) : show(&g, &there, &here);
	global_close(&g);
	return status;
}

const struct command command_global_inspect = {
	.name = "global inspect",
	.operands = "NAME URL RULE KEY",
	.purpose = "show a funnel that all hosts share",
	.details = GLOBAL_DETAILS "Takes nothing, there or here.\n",
	.options = options,
	.run = run,
};
