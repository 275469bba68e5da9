/*
 * replay.c: shmlimit replay: what limits would have done to the requests of a
 * log. They are decided by the library itself, at the log's times, in segments
 * that nobody else sees.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log_files.h"
#include "replay.h"
#include "scratch.h"

#define TOP_DEFAULT 10
#define SLOTS_DEFAULT (UINT64_C(1) << 20)
#define WINDOWS_SIZE (UINT64_C(1) << 28)       /* bytes that windows may take unless --slots says more */
#define PROGRESS_LINES (1u << 15)              /* often enough for the eye */

enum { RULE, KEY, TOP, SLOTS, JSON, PLOT };

static const struct command_option options[] = {
	[RULE] = { "rule", "LIMIT...", "'10/s burst 20', or '100/m window'; up to 16 times, each by itself" },
	[KEY] = { "key", "FIELDS", "addr, addr/24 or addr/24,64, user, path, or several: addr+path (default addr)" },
	[TOP] = { "top", "N", "show the N keys that a rule denies most (default 10)" },
	[SLOTS] = { "slots", "N", "keys that can be live at once (default 1Mi, for windows less)" },
	[JSON] = { "json", NULL, "print JSON" },
	[PLOT] = { "plot", "FILE.svg", "draw requests and denials over time, by gnuplot; -: to standard output, alone" },
	{ 0 },
};

static int fail_limit(const char *text)
{
	return fail("--rule %s: not a limit: must be 'COUNT/PERIOD burst N' or 'COUNT/PERIOD window'", text);
}

static int rule_parse(const char *text, struct shmlimit_rule *rule)
{
	char rate[TEXT_LEN];
	const char *kind = strchr(text, ' ');
	int status;

	*rule = (struct shmlimit_rule){ .struct_size = sizeof(*rule) };
	if (kind == NULL || (size_t)(kind - text) >= sizeof(rate))
		return fail_limit(text);
	snprintf(rate, sizeof(rate), "%.*s", (int)(kind - text), text);
	status = rate_parse("--rule", rate, &rule->count, &rule->period_ns);
	if (status != STATUS_OK)
		return status;
	if (strncmp(kind, " burst ", 7) == 0)
		return number_parse("--rule: burst", kind + 7, 1, UINT64_MAX, &rule->capacity);
	if (strcmp(kind, " window") != 0)
		return fail_limit(text);
	rule->algorithm = SHMLIMIT_WINDOW;
	rule->capacity = rule->count;
	return STATUS_OK;
}

static int open_rule(struct replay_rule *rule, uint64_t slots)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = slots, .rules = 1 };

	if (rule->rule.algorithm == SHMLIMIT_WINDOW) {
		uint64_t most = WINDOWS_SIZE / (16 + 16 * rule->rule.capacity);

		if (rule->rule.capacity > SHMLIMIT_WINDOW_MAX)
			return fail("--rule %s: too large a window: must be %d or less", rule->text,
			            SHMLIMIT_WINDOW_MAX);
		o.window_max = (uint32_t)rule->rule.capacity;
		if (slots == 0)
			o.slots = most < SLOTS_DEFAULT ? most : SLOTS_DEFAULT;
	}
	if (o.slots == 0)
		o.slots = SLOTS_DEFAULT;
	return scratch_open(&o, &rule->rule, &rule->text, 1, &rule->limiter);
}

static int parse(const struct call *call, struct replay *r)
{
	const char *key = call->option[KEY] != NULL ? call->option[KEY] : "addr";
	int status = STATUS_OK;

	if (call->repeated_count == 0)
		return fail("replay: --rule is missing: must be --rule 'COUNT/PERIOD burst N' or 'COUNT/PERIOD window'");
	for (size_t i = 0; i < call->repeated_count && status == STATUS_OK; i++) {
		r->rule[i].text = call->repeated[i];
		status = rule_parse(call->repeated[i], &r->rule[i].rule);
	}
	if (status == STATUS_OK)
		status = key_spec_parse(key, &r->spec);
	if (status == STATUS_OK && call->option[TOP] != NULL)
		status = number_parse("--top", call->option[TOP], 0, UINT64_MAX, &r->top);
	if (status == STATUS_OK && call->option[SLOTS] != NULL)
		status = number_parse("--slots", call->option[SLOTS], SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &r->slots);
	if (status == STATUS_OK && call->option[PLOT] != NULL)
		status = plot_check();
	return status;
}

static int read_lines(struct replay *r, struct log_files *files)
{
	struct span line;
	int found = 1, understood, status = STATUS_OK;

	while (status == STATUS_OK && found) {
		status = log_files_line(files, &line, &found);
		if (status != STATUS_OK || !found)
			break;
		status = replay_line(r, &line, &understood);
		log_files_note(files, &line, understood);
		if (r->lines % PROGRESS_LINES == 0)
			progress_show(log_files_done(files), files->size, r->lines);
	}
	progress_clear();
	return status;
}

static int replay(const struct call *call, struct replay *r)
{
	struct log_files files;
	int status = STATUS_OK;

	for (size_t i = 0; i < call->repeated_count && status == STATUS_OK; i++) {
		status = open_rule(&r->rule[i], r->slots);
		r->rules += status == STATUS_OK;
	}
	if (status != STATUS_OK)
		return status;
	status = log_files_open(&files, call->operand);
	if (status == STATUS_OK)
		status = read_lines(r, &files);
	log_files_close(&files);
	if (status != STATUS_OK)
		return status;
	status = replay_finish(r);
	if (status == STATUS_OK && call->option[PLOT] != NULL)
		status = replay_plot(r, call->option[PLOT]);
	/* A picture on standard output is all that is printed. */
	if (status != STATUS_OK || (call->option[PLOT] != NULL && strcmp(call->option[PLOT], "-") == 0))
		return status;
	return call->option[JSON] != NULL ? print_json(replay_json(r)) : replay_text(r);
}

static int run(const struct call *call)
{
	struct replay *r = calloc(1, sizeof(*r));
	int status;

	if (r == NULL)
		return fail_memory();
	r->top = TOP_DEFAULT;
	r->first_s = -1;
	status = parse(call, r);
	if (status == STATUS_OK)
		status = replay_begin(r);
	if (status == STATUS_OK)
		status = replay(call, r);
	replay_free(r);
	free(r);
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.operands = "[FILE...]",
	.purpose = "what limits would have denied, to whom and when, by a web server's log",
	.details = "Each FILE is a log in the common, combined or vhost_combined format, compressed by gzip or not;\n"
	           "they are read from the oldest on. None, or -, is standard input. No segment is needed, and none is touched.\n",
	.options = options,
	.run = run,
};
