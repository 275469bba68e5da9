/*
 * global.c: see global.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "global.h"
#include "named_segment.h"
#include "rule_facts.h"
#include "value_parse.h"

#define URL_VARIABLE "SHMLIMIT_BACKEND"
#define US UINT64_C(1000)
#define S (1000000 * US)

static void report(void *arg, const char *text)
{
	struct global_call *g = arg;

	g->told = 1;
	fail("%s", text);
}

static int parse(const struct call *call, struct shmlimit_global_options *o)
{
	int status = STATUS_OK;

	if (call->option[GLOBAL_DEADLINE] != NULL)
		status = duration_range_parse("--deadline", call->option[GLOBAL_DEADLINE], 100 * US, 10 * S,
		                              &o->deadline_ns);
	if (status == STATUS_OK && call->option[GLOBAL_LEASE] != NULL)
		status = duration_range_parse("--lease", call->option[GLOBAL_LEASE], 1000 * US, 10 * S, &o->lease_ns);
	o->prefix = call->option[GLOBAL_PREFIX];
	return status;
}

static int fail_open(const struct global_call *g, int error)
{
	const char *segment = g->call->operand[GLOBAL_NAME];

	if (g->told)
		return STATUS_ERROR;
	if (error == -EINVAL && g->call->option[GLOBAL_PREFIX] != NULL)
		return fail("--prefix %s: must be %d bytes or less, without '{'", g->call->option[GLOBAL_PREFIX],
		            SHMLIMIT_GLOBAL_PREFIX_MAX);
	return error == -ENOMEM ? fail_memory() : fail_segment(segment, error);
}

static int open_backend(struct global_call *g, struct shmlimit_global_options *o)
{
	const char *url = g->call->operand[GLOBAL_URL];
	int error;

	if (!has_many_hosts())
		return fail(MANY_HOSTS_MISSING);
	if (strcmp(url, "-") == 0)
		url = getenv(URL_VARIABLE);
	if (url == NULL)
		return fail("$" URL_VARIABLE " is not set (it holds the backend's URL)");
	o->struct_size = sizeof(*o);
	o->report = report;
	o->arg = g;
	error = shmlimit_global_open(g->limiter, url, o, &g->global);
	return error != 0 ? fail_open(g, error) : STATUS_OK;
}

int global_open(struct global_call *g, const struct call *call, struct shmlimit_global_options *o)
{
	int status = parse(call, o);

	*g = (struct global_call){ .call = call };
	if (status == STATUS_OK)
		status = segment_open(call->operand[GLOBAL_NAME], 0, &g->limiter);
	if (status != STATUS_OK)
		return status;
	if (strstr(call->command->operands, "RULE") != NULL)
		status = rule_find(g->limiter, call->operand[GLOBAL_NAME], call->operand[GLOBAL_RULE], &g->rule);
	if (status == STATUS_OK)
		status = open_backend(g, o);
	if (status != STATUS_OK)
		shmlimit_close(g->limiter);
	return status;
}

void global_close(struct global_call *g)
{
	shmlimit_global_close(g->global);
	shmlimit_close(g->limiter);
}

int global_status(const struct global_call *g, int error)
{
	const char *rule = g->call->operand[GLOBAL_RULE];

	if (error >= 0)
		return STATUS_OK;
	if (g->told)
		return STATUS_ERROR;
	if (rule == NULL)
		return fail_segment(g->call->operand[GLOBAL_NAME], error);
	if (error == -EOPNOTSUPP)
		return fail("rule %s: not a lease (set one with --algorithm lease)", rule);
	return fail_rule(g->call->operand[GLOBAL_NAME], rule, error);
}
