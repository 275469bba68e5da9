/*
 * metrics.c: shmlimit metrics: what there is to watch, for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "atomic_file.h"
#include "fail.h"
#include "metrics.h"
#include "named_segment.h"
#include "rule_facts.h"

/* Of one user other than root. */
#define SEGMENTS_OF_USER 64u

enum { ALL, OUTPUT };

static const struct command_option options[] = {
	[ALL] = { "all", NULL, "print every segment that may be read" },
	[OUTPUT] = { "output", "FILE", "write FILE, in one step, instead of standard output" },
	{ 0 },
};

/*
 * If the name differs after the counters were read, the id went to another rule: they may be of
 * either.
 */
static int read_rule(struct shmlimit *limiter, int id, struct metrics_rule *out)
{
	char again[SHMLIMIT_RULE_NAME_MAX + 1];
	int error = shmlimit_rule_name(limiter, id, out->name);

	out->id = id;
	out->rule = (struct shmlimit_rule){ .struct_size = sizeof(out->rule) };
	out->counters = (struct shmlimit_counters){ .struct_size = sizeof(out->counters) };
	if (error == 0 && rule_is_breaker(out->name))
		return 0;
	if (error == 0)
		error = shmlimit_rule_get(limiter, id, &out->rule);
	if (error == 0)
		error = shmlimit_counters(limiter, id, &out->counters);
	if (error == 0)
		error = shmlimit_rule_name(limiter, id, again);
	return error == 0 && strcmp(out->name, again) == 0;
}

/* Names that were cut may be equal, and a series must not come twice. */
static unsigned is_new_server(const struct metrics_segment *s)
{
	for (unsigned i = 0; i < s->servers; i++)
		if (strcmp(s->server[i].name, s->server[s->servers].name) == 0)
			return 0;
	return 1;
}

/*
 * WHY another handle: the part of a segment that agents use is not for read-only ones. Without
 * leave to write it is left out.
 */
static int read_agent(struct metrics_segment *out)
{
	struct shmlimit *limiter;
	int error;

	if (!has_many_hosts())
		return STATUS_OK;
	error = segment_try(out->name, SHMLIMIT_OPEN_TRUSTED, &limiter);
	if (error != 0)
		return error == -ENOMEM ? fail_memory() : STATUS_OK;
	out->agent.struct_size = sizeof(out->agent);
	out->agent_known = shmlimit_global_status(limiter, &out->agent) == 0;
	for (unsigned place = 0; place < SHMLIMIT_GLOBAL_SERVERS; place++) {
		struct shmlimit_global_server *server = &out->server[out->servers];

		server->struct_size = sizeof(*server);
		if (shmlimit_global_server(limiter, place, server) != 0)
			break;
		out->servers += is_new_server(out);
	}
	for (size_t i = 0; i < out->rules; i++)
		out->rule[i].failures = many_hosts_failures(limiter, out->rule[i].id);
	shmlimit_close(limiter);
	return STATUS_OK;
}

static int read_segment(struct shmlimit *limiter, struct metrics_segment *out)
{
	struct top_keys live = { .rule = -1 };
	int status;

	out->up = 1;
	out->info.struct_size = sizeof(out->info);
	out->counters.struct_size = sizeof(out->counters);
	shmlimit_info(limiter, &out->info);
	rule_counters_all(limiter, &out->counters);
	out->leases.struct_size = sizeof(out->leases);
	shmlimit_lease_counters(limiter, &out->leases);
	out->rule = calloc(out->info.rules, sizeof(*out->rule));
	if (out->rule == NULL)
		return fail_memory();
	for (int id = 0; id < (int)out->info.rules; id++)
		out->rules += (size_t)read_rule(limiter, id, &out->rule[out->rules]);
	status = read_agent(out);
	if (status != STATUS_OK)
		return status;
	live.busiest = calloc(out->info.rules, sizeof(*live.busiest));
	if (live.busiest == NULL)
		return fail_memory();
	status = top_keys_scan(limiter, 0, out->info.slots + out->info.old_slots, &live);
	memcpy(out->states, live.states, sizeof(out->states));
	for (size_t i = 0; i < out->rules; i++)
		if (out->rule[i].rule.law != 0)
			out->rule[i].busiest = live.busiest[out->rule[i].id];
	free(live.busiest);
	free(live.slot);
	return status;
}

static int add_segment(struct metrics *m, const char *name, struct shmlimit *limiter)
{
	struct metrics_segment *more = reallocarray(m->segment, m->segments + 1, sizeof(*more));

	if (more == NULL)
		return fail_memory();
	m->segment = more;
	more += m->segments++;
	*more = (struct metrics_segment){ 0 };
	strcpy(more->name, name);
	return limiter != NULL ? read_segment(limiter, more) : STATUS_OK;
}

static int collect_one(struct metrics *m, const char *name)
{
	struct shmlimit *limiter;
	int status = segment_open(name, SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	status = add_segment(m, name, limiter);
	shmlimit_close(limiter);
	return status;
}

struct reading {
	struct metrics_segment *segment;
	int status;
};

static void read_visited(void *context, struct shmlimit *limiter)
{
	struct reading *reading = context;

	reading->status = read_segment(limiter, reading->segment);
}

/* Has this user, not root, as many segments in the list as may be? */
static int has_enough(const struct metrics *m, const char *name)
{
	char path[SHMLIMIT_PATH_MAX];
	struct stat status;
	size_t count = 0;

	if (shmlimit_path(name, path) != 0 || lstat(path, &status) != 0 || status.st_uid == 0)
		return 0;
	for (size_t i = 0; i < m->segments; i++)
		count += m->segment[i].owner == status.st_uid;
	return count >= SEGMENTS_OF_USER;
}

static void note_owner(struct metrics_segment *segment)
{
	char path[SHMLIMIT_PATH_MAX];
	struct stat status;

	segment->owner = shmlimit_path(segment->name, path) == 0 && lstat(path, &status) == 0 ? status.st_uid : 0;
}

/*
 * Whichever user owns a segment, it is there; its owner cannot end the command. What cannot be read
 * is not up.
 */
static int collect_next(struct metrics *m, const char *name)
{
	struct reading reading = { .status = add_segment(m, name, NULL) };
	int error;

	if (reading.status != STATUS_OK)
		return reading.status;
	reading.segment = &m->segment[m->segments - 1];
	note_owner(reading.segment);
	error = segment_visit(name, read_visited, &reading);
	if (error < 0) {
		reading.segment->up = 0;
		reading.segment->rules = 0;
		reading.segment->servers = 0;
	}
	/*
	 * It is gone by now, or was never a segment; or it has a second link, through which another
	 * user could reach it.
	 */
	m->segments -= error == -ENOENT || error == -EMEDIUMTYPE || error == -EPERM;
	m->left_out += error == -EPERM;
	return reading.status;
}

/* WHY NOT all: any user could make series without end. */
static int collect_all(struct metrics *m)
{
	char name[SHMLIMIT_NAME_MAX + 1] = "";
	int error, status = STATUS_OK;

	m->of_host = 1;
	while (status == STATUS_OK && (error = shmlimit_next(name)) > 0) {
		if (has_enough(m, name))
			m->left_out++;
		else
			status = collect_next(m, name);
	}
	if (status == STATUS_OK && error < 0)
		return fail("/dev/shm: %s", strerror(-error));
	return status;
}

static int write_file(const struct metrics *m, const char *path)
{
	struct atomic_file file;
	int status = atomic_file_open(&file, path);

	if (status != STATUS_OK)
		return status;
	metrics_text(file.to, m);
	return atomic_file_commit(&file);
}

static int run(const struct call *call)
{
	const char *name = call->operand[0], *path = call->option[OUTPUT];
	struct metrics m = { 0 };
	int status;

	if (name != NULL && call->option[ALL] != NULL)
		return fail("metrics: %s and --all: give only one", name);
	if (name == NULL && call->option[ALL] == NULL)
		return fail("metrics: missing NAME or --all");
	m.older_format = path != NULL && strcmp(path, "-") != 0;
	status = name != NULL ? collect_one(&m, name) : collect_all(&m);
	if (status == STATUS_OK && path != NULL)
		status = write_file(&m, path);
	else if (status == STATUS_OK)
		metrics_text(stdout, &m);
	for (size_t i = 0; i < m.segments; i++)
		free(m.segment[i].rule);
	free(m.segment);
	return status;
}

const struct command command_metrics = {
	.name = "metrics",
	.operands = "[NAME]",
	.purpose = "print counters and states as OpenMetrics text, for Prometheus",
	.details = "NAME or --all must be given. FILE is written in Prometheus' older text format, the only one that\n"
		   "node_exporter's textfile collector reads. Changes nothing.\n",
	.options = options,
	.run = run,
};
