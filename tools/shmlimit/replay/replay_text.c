/*
 * replay_text.c: what replay found, for people.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "columns.h"
#include "log_time.h"
#include "number_text.h"
#include "print.h"
#include "limit_text.h"
#include "replay.h"

const char *utc_text(char text[TEXT_LEN], int64_t unix_ns)
{
	time_t t = (time_t)(unix_ns / LOG_SECOND);
	struct tm tm;

	strftime(text, TEXT_LEN, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return text;
}

static void add_times(struct table *table, int64_t first_ns, int64_t last_ns)
{
	char text[TEXT_LEN];

	table_cell(table, "%s", utc_text(text, first_ns));
	table_cell(table, "%s", utc_text(text, last_ns));
}

/* DENIED SHARE */
static void add_denied(struct table *table, uint64_t denied, uint64_t requests)
{
	table_cell(table, "%" PRIu64, denied);
	table_cell(table, "%.2f%%", requests > 0 ? 100.0 * (double)denied / (double)requests : 0.0);
}

static void print_log(const struct replay *r)
{
	char first[TEXT_LEN], last[TEXT_LEN];

	print_line("lines", "%" PRIu64, r->lines);
	if (r->not_understood > 0)
		print_line("not understood", "%" PRIu64, r->not_understood);
	if (r->clients.forwarded > 0)
		print_line("forwarded", "%" PRIu64, r->clients.forwarded);
	if (r->filtered > 0)
		print_line("filtered", "%" PRIu64, r->filtered);
	if (r->outside > 0)
		print_line("outside the time", "%" PRIu64, r->outside);
	if (r->too_late > 0)
		print_line("too late", "%" PRIu64, r->too_late);
	if (r->without_key > 0)
		print_line("without a key", "%" PRIu64, r->without_key);
	if (r->no_address > 0)
		print_line("no address", "%" PRIu64, r->no_address);
	if (r->without_plan > 0)
		print_line("without a limit", "%" PRIu64, r->without_plan);
	print_line("keys", "%u", HASH_COUNT(r->keys));
	if (r->first_ns >= 0)
		print_line("time", "%s to %s", utc_text(first, r->first_ns), utc_text(last, r->last_ns));
}

static int print_rules(const struct replay *r)
{
	struct table table = { .align = "lrrrrlllr" };
	char text[TEXT_LEN];

	putchar('\n');
	table_words(&table, "RULE ALLOWED DENIED SHARE KEYS FIRST LAST WORST DENIED-THEN");
	for (size_t i = 0; i < r->rules; i++) {
		const struct replay_rule *rule = &r->rule[i];
		size_t worst = step_worst(&r->steps, i);

		table_cell(&table, "%s", rule->text);
		table_cell(&table, "%" PRIu64, rule->allowed);
		add_denied(&table, rule->denied, rule->allowed + rule->denied);
		table_cell(&table, "%" PRIu64, rule->keys_denied);
		if (rule->denied == 0) {
			table_words(&table, "- - - -");
			continue;
		}
		add_times(&table, rule->first_ns, rule->last_ns);
		table_cell(&table, "%s",
		           utc_text(text, (r->steps.from_s + (int64_t)(worst * r->steps.step_s)) * LOG_SECOND));
		table_cell(&table, "%s", rate_text(text, r->steps.denied[i][worst], r->steps.step_s * LOG_SECOND));
	}
	return table_print(&table);
}

static int print_worst(struct replay *r, size_t rule)
{
	struct table table = { .align = "llrrrll" };
	struct replay_key **list;
	size_t count;
	int status = replay_worst(r, rule, &list, &count);

	if (status != STATUS_OK || count == 0) {
		free(list);
		return status;
	}
	putchar('\n');
	table_words(&table, "RULE KEY REQUESTS DENIED SHARE FIRST LAST");
	for (size_t i = 0; i < count; i++) {
		char *text = key_text(&r->spec, list[i]->key, list[i]->len);

		table_cell(&table, "%s", r->rule[rule].text);
		table_cell(&table, "%s", text != NULL ? text : "?");
		free(text);
		table_cell(&table, "%" PRIu64, list[i]->requests);
		add_denied(&table, list[i]->of_rule[rule].denied, list[i]->requests);
		add_times(&table, list[i]->of_rule[rule].first_ns, list[i]->of_rule[rule].last_ns);
	}
	free(list);
	status = table_print(&table);
	if (r->rule[rule].keys_denied > count)
		printf("keys left out: %" PRIu64 " (--top)\n", r->rule[rule].keys_denied - count);
	return status;
}

static int print_plans(const struct replay *r)
{
	struct table table = { .align = "llrrr" };
	struct replay_plan **list;
	size_t count;
	int status = plans_worst(r, &list, &count);

	if (status != STATUS_OK || count == 0) {
		free(list);
		return status;
	}
	putchar('\n');
	table_words(&table, "PLAN LIMIT ALLOWED DENIED SHARE");
	for (size_t i = 0; i < count; i++) {
		table_cell(&table, "%s", list[i]->name);
		table_cell(&table, "%s", list[i]->limit_text);
		table_cell(&table, "%" PRIu64, list[i]->allowed);
		add_denied(&table, list[i]->denied, list[i]->allowed + list[i]->denied);
	}
	free(list);
	return table_print(&table);
}

int replay_text(struct replay *r)
{
	int status;

	print_log(r);
	status = print_rules(r);
	if (status == STATUS_OK && r->plans != NULL)
		status = print_plans(r);
	for (size_t i = 0; i < r->rules && r->top > 0 && status == STATUS_OK; i++)
		status = print_worst(r, i);
	for (size_t i = 0; i < r->rules; i++)
		if (r->rule[i].no_room > 0)
			printf("\nrule %s: requests that found no slot: %" PRIu64 " (give more --slots)\n",
			       r->rule[i].text, r->rule[i].no_room);
	return status;
}
