/*
 * top_text.c: what top looked at, as tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "columns.h"
#include "key_text.h"
#include "number_text.h"
#include "print.h"
#include "top.h"

static int print_rules(const struct top *top)
{
	struct table table = { .align = "lrrrrrr" };
	char text[TEXT_LEN];

	table_words(&table, "RULE ALLOWED/S DENIED/S SHADOW/S EVICTIONS/S ALLOWED DENIED");
	for (size_t i = 0; i < top->rows; i++) {
		const struct top_row *row = &top->row[i];

		if (top->rule[0] != '\0' && strcmp(row->name, top->rule) != 0)
			continue;
		table_cell(&table, "%s", row->name);
		table_cell(&table, "%s", top_rate_text(text, row->allowed_s));
		table_cell(&table, "%s", top_rate_text(text, row->denied_s));
		table_cell(&table, "%s", top_rate_text(text, row->shadow_s));
		table_cell(&table, "%s", top_rate_text(text, row->evictions_s));
		table_cell(&table, "%" PRIu64, row->allowed);
		table_cell(&table, "%" PRIu64, row->denied);
	}
	return table_print(&table);
}

static int print_keys(const struct top *top)
{
	int numbers = top_finds_numbers(top);
	struct table table = { .align = numbers ? "lrrrrrl" : "lrrrl" };
	char name[SHMLIMIT_RULE_NAME_MAX + 1], text[TEXT_LEN], key[KEY_TEXT_LEN];

	table_words(&table, numbers ? "RULE REMAINING DEBT TIME-TO-FULL NUMBER QUEUE KEY"
	                            : "RULE REMAINING DEBT TIME-TO-FULL KEY");
	for (size_t i = 0; i < top->keys.count; i++) {
		const struct top_key *slot = &top->keys.slot[i];

		table_cell(&table, "%s", shmlimit_rule_name(top->limiter, slot->rule, name) < 0 ? "-" : name);
		table_cell(&table, "%" PRIu64, slot->remaining);
		table_cell(&table, "%s", slot->debt_ns > 0 ? top_span_text(text, slot->debt_ns) : "-");
		table_cell(&table, "%s", top_span_text(text, slot->reset_after_ns));
		if (numbers) {
			table_cell(&table, slot->number != 0 ? "%" PRIu32 : "-", slot->number);
			table_cell(&table, "%s", top_queue_text(text, slot));
		}
		table_cell(&table, "%s", top_key_text(key, top, slot));
	}
	return table_print(&table);
}

int top_text(const struct top *top)
{
	char line[TOP_LINE_LEN];
	int status;

	if (top->news[0] != '\0')
		print_line("news", "%s", top->news);
	top_segment_text(line, top, SIZE_MAX);
	print_line("segment", "%s", line);
	top_all_text(line, top);
	print_line("per second", "%s", line);
	putchar('\n');
	status = print_rules(top);
	if (status == STATUS_OK && top->keys.count > 0) {
		putchar('\n');
		status = print_keys(top);
	}
	return status;
}
