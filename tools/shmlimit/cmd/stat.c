/*
 * stat.c: shmlimit stat: a line of rates each second, as vmstat(8) prints them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "top.h"
#include "value_parse.h"

#define LINES_DEFAULT 24

enum { INTERVAL, COUNT, RULE, JSON };

static const struct command_option options[] = {
	[INTERVAL] = { "interval", "DURATION", "time between lines (default 1s); a number alone is seconds" },
	[COUNT] = { "count", "N", "end after N lines (default: never)" },
	[RULE] = { "rule", "RULE", "count this rule only" },
	[JSON] = { "json", NULL, "print JSON, an object a line" },
	{ 0 },
};

/* What is shown of the counters. */
static const struct column {
	const char *heading, *member;
	size_t at;
} columns[] = {
	{ "ALLOWED/S", "allowed", offsetof(struct top_count, counters.allowed) },
	{ "DENIED/S", "denied", offsetof(struct top_count, counters.denied) },
	{ "SHADOW/S", "shadow_denied", offsetof(struct top_count, counters.shadow_denied) },
	{ "ON-FAILURE/S", "on_failure", offsetof(struct top_count, on_failure) },
	{ "CLAIMS/S", "claims", offsetof(struct top_count, counters.claims) },
	{ "RECLAIMS/S", "reclaims", offsetof(struct top_count, counters.reclaims) },
	{ "EVICTIONS/S", "evictions", offsetof(struct top_count, counters.evictions) },
	{ "NO-SLOT/S", "no_slot", offsetof(struct top_count, counters.no_slot) },
	{ "FAILED-CAS/S", "failed_cas", offsetof(struct top_count, counters.failed_cas) },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct top_count *find(const struct top_sample *sample, const char *rule)
{
	for (size_t i = 0; i < sample->rules; i++)
		if (strcmp(sample->rule[i].name, rule) == 0)
			return &sample->rule[i];
	return NULL;
}

/*
 * What was counted since the look before; UINT64_MAX: not known. Returns 0 if nothing is known: of
 * a new segment, or without the rule.
 */
static int count(const struct top *top, uint64_t counted[COLUMNS])
{
	static const struct top_count none;
	const struct top_count *was = &none, *is = NULL, *before = &top->before.all, *now = &top->now.all;

	if (top->rule[0] != '\0') {
		is = find(&top->now, top->rule);
		was = find(&top->before, top->rule);
		if (is == NULL)
			return 0;
		now = is;
		/* A rule that was removed and set again begins at 0. */
		before = was != NULL && was->id == is->id ? was : &none;
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		uint64_t a, b;

		memcpy(&a, (const char *)before + columns[i].at, sizeof(a));
		memcpy(&b, (const char *)now + columns[i].at, sizeof(b));
		counted[i] = a == UINT64_MAX ? a : b >= a ? b - a : b;
	}
	return top->before.at_ns != 0;
}

static void utc(char text[TEXT_LEN], uint64_t *unix_ns)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	*unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	strftime(text, TEXT_LEN, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &tm));
}

static int show_json(struct top *top, uint64_t i)
{
	uint64_t counted[COLUMNS], unix_ns;
	int known = count(top, counted);
	char text[TEXT_LEN], *line;
	json_t *root;

	(void)i;
	utc(text, &unix_ns);
	root = json_pack("{s:o, s:o, s:o}", "time_unix_ns", json_number(unix_ns), "interval_ns",
	                 top->before.at_ns != 0 ? json_number(top->now.at_ns - top->before.at_ns) : json_null(), "rule",
	                 top->rule[0] != '\0' ? json_text(top->rule) : json_null());
	for (size_t c = 0; c < COLUMNS; c++)
		json_object_set_new(root, columns[c].member,
		                    known && counted[c] != UINT64_MAX ? json_number(counted[c]) : json_null());
	line = json_write_line(root);
	json_decref(root);
	if (line == NULL)
		return fail_memory();
	puts(line);
	free(line);
	return STATUS_OK;
}

static void print_headings(void)
{
	printf("%-20s", "TIME");
	for (size_t i = 0; i < COLUMNS; i++)
		printf(" %*s", (int)strlen(columns[i].heading), columns[i].heading);
	putchar('\n');
}

/* The lines of a terminal that are left under the headings; 0: it is no terminal. */
static uint64_t screenful(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row - 1u : LINES_DEFAULT - 1;
}

static int show_text(struct top *top, uint64_t i)
{
	double seconds = (double)(top->now.at_ns - top->before.at_ns) / 1e9;
	uint64_t counted[COLUMNS], unix_ns, lines = screenful();
	int known = count(top, counted);
	char text[TEXT_LEN];

	if (lines != 0 && i % lines == 0)
		print_headings();
	utc(text, &unix_ns);
	printf("%s", text);
	for (size_t c = 0; c < COLUMNS; c++)
		printf(" %*s", (int)strlen(columns[c].heading),
		       top_rate_text(text, known && seconds > 0 && counted[c] != UINT64_MAX
		                                   ? (double)counted[c] / seconds
		                                   : -1));
	putchar('\n');
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct top top = { .name = call->operand[0], .interval_ns = TOP_INTERVAL_DEFAULT }; /* without any slots */
	uint64_t lines = 0;
	int status = STATUS_OK, id;

	if (call->option[INTERVAL] != NULL)
		status = top_interval_parse(call->option[INTERVAL], &top.interval_ns);
	if (status == STATUS_OK && call->option[COUNT] != NULL)
		status = number_parse("--count", call->option[COUNT], 1, UINT64_MAX, &lines);
	if (status == STATUS_OK)
		status = segment_open(top.name, SHMLIMIT_OPEN_READ_ONLY, &top.limiter);
	if (status == STATUS_OK && call->option[RULE] != NULL)
		status = rule_find(top.limiter, top.name, call->option[RULE], &id);
	if (status == STATUS_OK && call->option[RULE] != NULL)
		strcpy(top.rule, call->option[RULE]);
	if (status == STATUS_OK)
		status = top_each(&top, lines, call->option[JSON] != NULL ? show_json : show_text);
	top_close(&top);
	return status;
}

const struct command command_stat = {
	.name = "stat",
	.operands = "NAME",
	.purpose = "print rates of a segment, one line per second",
	.details =
		"A line is the time (UTC), then, per second: decisions allowed, denied, and denied by dry runs only;\n"
		"requests that on_failure decided as the backend did not answer; slots claimed, reclaimed, evicted;\n"
		"decisions without a slot; failed compare-and-swaps. A terminal gets headings each screenful.\n"
		"Only counters are read: it costs the same for any number of keys.\n",
	.options = options,
	.run = run,
	.letters = "ic",
};
