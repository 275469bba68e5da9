/*
 * global_status.c: shmlimit global status: is there an agent, and how is it?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "about.h"
#include "command.h"
#include "duration.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "many_hosts.h"

enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

static int show(const struct call *call, const struct shmlimit_global_status *s)
{
	char text[TEXT_LEN];

	/* clang-format off */
	if (call->option[JSON] != NULL)
		return print_json(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		                            "serving", json_boolean(s->serving),
		                            "pid", json_number(s->pid),
		                            "running_ns", json_number(s->running_ns),
		                            "connections", json_number(s->connections),
		                            "round_trip_ns", json_number(s->round_trip_ns),
		                            "breaker_ns", json_number(s->breaker_ns),
		                            "waiting", json_number(s->waiting),
		                            "answered", json_number(s->answered),
		                            "failed", json_number(s->failed),
		                            "late", json_number(s->late),
		                            "spoiled", json_number(s->spoiled),
		                            "full", json_number(s->full),
		                            "misses", json_number(s->misses),
		                            "unpaid", json_number(s->unpaid)));
	/* clang-format on */
	print_line("agent", "%s", s->serving ? "serving" : "none");
	if (s->serving) {
		print_line("pid", "%" PRIu64, s->pid);
		print_line("running", "%s", duration_about(text, s->running_ns));
		print_line("connections", "%" PRIu64, s->connections);
		print_line("round trip", "%s", duration_about(text, s->round_trip_ns));
		print_line("breaker", "%s", s->breaker_ns != 0 ? "open" : "closed");
		print_line("waiting", "%" PRIu64, s->waiting);
	}
	print_line("answered", "%" PRIu64, s->answered);
	print_line("failed", "%" PRIu64, s->failed);
	print_line("late", "%" PRIu64, s->late);
	print_line("spoiled", "%" PRIu64, s->spoiled);
	print_line("full", "%" PRIu64, s->full);
	print_line("misses", "%" PRIu64, s->misses);
	print_line("unpaid", "%" PRIu64, s->unpaid);
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit_global_status out = { .struct_size = sizeof(out) };
	const char *name = call->operand[0];
	struct shmlimit *limiter;
	int error, status = has_many_hosts() ? segment_open(name, 0, &limiter) : fail(MANY_HOSTS_MISSING);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_global_status(limiter, &out);
	status = error != 0 ? fail_segment(name, error) : show(call, &out);
	shmlimit_close(limiter);
	return status != STATUS_OK ? status : out.serving ? STATUS_OK : STATUS_NO;
}

const struct command command_global_status = {
	.name = "global status",
	.operands = "NAME",
	.purpose = "show the agent of a segment",
	.details = "Exits 0 if there is an agent, 1 if there is none.\n",
	.options = options,
	.run = run,
};
