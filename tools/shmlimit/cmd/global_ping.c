/*
 * global_ping.c: shmlimit global ping: is there a backend, and what is it?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "duration.h"
#include "fail.h"
#include "global.h"
#include "number_text.h"
#include "print.h"

enum { JSON = GLOBAL_OPTIONS };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

/* What would make limits wrong or slow there. Each is said, and makes the status STATUS_NO. */
static int check(const struct shmlimit_global_info *info, uint64_t deadline_ns)
{
	char round_trip[TEXT_LEN], deadline[TEXT_LEN];
	int status = STATUS_OK;

	if (info->role[0] != '\0' && strcmp(info->role, "master") != 0) {
		(void)fail("backend: is a %s: limits need the primary", info->role);
		status = STATUS_NO;
	}
	/* Without a limit of memory nothing is evicted. */
	if (info->memory_max != 0 && info->eviction[0] != '\0' && strcmp(info->eviction, "noeviction") != 0) {
		(void)fail(
			"backend: maxmemory-policy is %s: limits in use may be evicted, and are full then (CONFIG SET "
			"maxmemory-policy noeviction)",
			info->eviction);
		status = STATUS_NO;
	}
	if (info->clients_max != 0 && info->clients >= info->clients_max - info->clients_max / 10) {
		(void)fail("backend: %" PRIu64 " of %" PRIu64
		           " connections are in use, and each process and thread needs one "
		           "(CONFIG SET maxclients N)",
		           info->clients, info->clients_max);
		status = STATUS_NO;
	}
	if (info->round_trip_ns > deadline_ns / 2) {
		(void)fail(
			"backend: a round trip of %s is more than half of the deadline of %s: requests may be answered "
			"without it (--deadline DURATION)",
			duration_text(round_trip, info->round_trip_ns), duration_text(deadline, deadline_ns));
		status = STATUS_NO;
	}
	return status;
}

static int show(const struct call *call, const struct shmlimit_global_info *info)
{
	char text[TEXT_LEN];

	/* clang-format off */
	if (call->option[JSON] != NULL)
		return print_json(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		                            "version", json_text(info->version),
		                            "mode", json_text(info->mode),
		                            "role", json_text(info->role),
		                            "round_trip_ns", json_number(info->round_trip_ns),
		                            "eviction", info->eviction[0] != '\0' ? json_text(info->eviction) : json_null(),
		                            "memory_max", json_number(info->memory_max),
		                            "clients", json_number(info->clients),
		                            "clients_max", json_number(info->clients_max)));
	/* clang-format on */
	print_line("version", "%s", info->version);
	print_line("mode", "%s", info->mode);
	print_line("role", "%s", info->role);
	print_line("round trip", "%s", duration_text(text, info->round_trip_ns));
	print_line("eviction", "%s%s", info->eviction[0] != '\0' ? info->eviction : "not known (needs +info)",
	           info->eviction[0] != '\0' && info->memory_max == 0 ? ", no memory limit" : "");
	if (info->clients_max != 0)
		print_line("clients", "%" PRIu64 "/%" PRIu64, info->clients, info->clients_max);
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
	if (error == 0 && status == STATUS_OK)
		status = check(&info, o.deadline_ns != 0 ? o.deadline_ns : DEADLINE_DEFAULT_NS);
	global_close(&g);
	return status;
}

const struct command command_global_ping = {
	.name = "global ping",
	.operands = "NAME URL",
	.purpose = "check whether a Redis server is fit for limits",
	.details = GLOBAL_DETAILS
	"Exits 1 if it is a replica, may evict keys, has few connections left, or is too far away.\n",
	.options = options,
	.run = run,
};
