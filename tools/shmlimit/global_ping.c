/*
 * global_ping.c: shmlimit global ping: is there an engine, and what is it?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "global.h"

enum { JSON = GLOBAL_OPTIONS };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

static int show(const struct call *call, const struct shmlimit_global_info *info)
{
	char text[TEXT_LEN];

	if (call->option[JSON] != NULL)
		return print_json(json_pack("{s:o, s:o, s:o, s:o}",
		                            "version", json_text(info->version),
		                            "mode", json_text(info->mode),
		                            "role", json_text(info->role),
		                            "round_trip_ns", json_number(info->round_trip_ns)));
	print_line("version", "%s", info->version);
	print_line("mode", "%s", info->mode);
	print_line("role", "%s", info->role);
	print_line("round trip", "%s", duration_text(text, info->round_trip_ns));
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct shmlimit_global_options o = { 0 };
	struct global_call g;
	int error, status = global_open(&g, call, &o);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_global_ping(g.global, &info);
	status = error < 0 ? global_status(&g, error) : show(call, &info);
	global_close(&g);
	return status;
}

const struct command command_global_ping = {
	.name = "global ping",
	.operands = "NAME URL",
	.purpose = "ask an engine what it is",
	.details = GLOBAL_DETAILS,
	.options = options,
	.run = run,
};
