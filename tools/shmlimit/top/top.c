/*
 * top.c: shmlimit top: what goes on in a segment, as it goes on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "choice.h"
#include "decimal.h"
#include "fail.h"
#include "named_segment.h"
#include "rule_facts.h"
#include "top.h"
#include "value_parse.h"

#define SECOND UINT64_C(1000000000)
#define INTERVAL_MIN UINT64_C(10000000)
#define INTERVAL_MAX (UINT64_C(7) * 86400 * 1000000000) /* what is added to a clock must not go around */
#define KEYS_DEFAULT 10
#define KEYS_MAX 1000000
#define SLOTS_AT_ONCE (UINT64_C(4) << 20) /* a tenth of a second's work, if all are live */

enum { INTERVAL, COUNT, SORT, ORDER, RULE, KEYS, JSON };

static const struct command_option options[] = {
	[INTERVAL] = { "interval", "DURATION", "time between updates (default 1s)" },
	[COUNT] = { "count", "N", "end after N updates (default: 1; on a terminal, until q)" },
	[SORT] = { "sort", "WHICH", "rules by denied (default), allowed or name" },
	[ORDER] = { "order", "WHICH", "keys by denial (default), near or reset" },
	[RULE] = { "rule", "RULE", "keys of this rule only, and in tables no other" },
	[KEYS] = { "keys", "N", "show at most N keys (default: as many as fit, else 10)" },
	[JSON] = { "json", NULL, "print JSON, an object a line, also on a terminal" },
	{ 0 },
};

int top_interval_parse(const char *text, uint64_t *ns)
{
	const char *end = text;
	uint64_t seconds;
	int status = STATUS_OK;

	if (digits_scan(&end, &seconds) == 0 && *end == '\0')
		*ns = seconds <= INTERVAL_MAX / SECOND ? seconds * SECOND : UINT64_MAX;
	else
		status = duration_parse("--interval", text, ns);
	if (status == STATUS_OK && (*ns < INTERVAL_MIN || *ns > INTERVAL_MAX))
		return fail("--interval %s: must be 10ms to 1w", text);
	return status;
}

static int parse(const struct call *call, struct top *top, uint64_t *count)
{
	uint32_t choice;
	int status = STATUS_OK;

	if (call->option[INTERVAL] != NULL)
		status = top_interval_parse(call->option[INTERVAL], &top->interval_ns);
	if (status == STATUS_OK && call->option[COUNT] != NULL)
		status = number_parse("--count", call->option[COUNT], 1, UINT64_MAX, count);
	if (status == STATUS_OK && call->option[KEYS] != NULL)
		status = number_parse("--keys", call->option[KEYS], 0, KEYS_MAX, &top->keys_max);
	if (status == STATUS_OK && call->option[SORT] != NULL) {
		status = choice_parse("--sort", call->option[SORT], choices_top_sort, &choice);
		top->sort = status == STATUS_OK ? (enum top_sort)choice : top->sort;
	}
	if (status == STATUS_OK && call->option[ORDER] != NULL) {
		status = choice_parse("--order", call->option[ORDER], choices_top_order, &choice);
		top->order = status == STATUS_OK ? (enum top_keys_order)choice : top->order;
	}
	return status;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

int top_each(struct top *top, uint64_t count, int (*show)(struct top *top, uint64_t i))
{
	int status = top_look(top);

	for (uint64_t i = 0; (count == 0 || i < count) && status == STATUS_OK && !ferror(stdout); i++) {
		sleep_ns(top->interval_ns);
		status = top_look(top);
		if (status == STATUS_OK && top->limiter == NULL)
			return fail_segment(top->name, -ENOENT);
		if (status == STATUS_OK)
			status = show(top, i);
		fflush(stdout);
		top->news[0] = '\0';
	}
	return status;
}

static int snapshot(struct top *top, uint64_t i)
{
	if (i > 0)
		putchar('\n');
	top_rows_sort(top->row, top->rows, top->sort);
	return top_text(top);
}

static int object(struct top *top, uint64_t i)
{
	(void)i;
	top_rows_sort(top->row, top->rows, top->sort);
	return top_json(top);
}

static int run(const struct call *call)
{
	int json = call->option[JSON] != NULL, terminal = !json && top_terminal_paints(), ignored;
	struct top top = {
		.name = call->operand[0],
		.interval_ns = TOP_INTERVAL_DEFAULT,
		.order = TOP_KEYS_BY_DENIAL,
		.keys_max = terminal ? KEYS_MAX : KEYS_DEFAULT,
		.slots = SLOTS_AT_ONCE,
	};
	uint64_t count = terminal ? 0 : 1;
	int status = parse(call, &top, &count);

	if (status == STATUS_OK)
		status = segment_open(top.name, SHMLIMIT_OPEN_READ_ONLY, &top.limiter);
	if (status == STATUS_OK && call->option[RULE] != NULL)
		status = rule_find(top.limiter, top.name, call->option[RULE], &ignored);
	if (status == STATUS_OK && call->option[RULE] != NULL)
		strcpy(top.rule, call->option[RULE]);
	if (status == STATUS_OK)
		status = terminal ? top_screen(&top, count) : top_each(&top, count, json ? object : snapshot);
	top_close(&top);
	return status;
}

const struct command command_top = {
	.name = "top",
	.operands = "NAME",
	.purpose = "watch a segment: rules by denials, keys by how far they are over the limit",
	.details =
		"On a terminal: q quit, ? help, s sort rules, k order keys, tab, up and down choose a rule or a key,\n"
		"f shows the rule's keys only, / those that match, p pause, + and - change the interval; r resets\n"
		"the key, b bans it for an hour, d tries the rule in a dry run, each after a question. Else tables are printed.\n",
	.options = options,
	.run = run,
	.letters = "ic",
};
