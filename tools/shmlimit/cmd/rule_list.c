/*
 * rule_list.c: shmlimit rule list.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "columns.h"
#include "command.h"
#include "field.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"

enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

static void add_row(struct table *table, const struct rule_facts *facts)
{
	char text[TEXT_LEN];

	table_cell(table, "%s", facts->name);
	table_cell(table, "%d", facts->id);
	for (int field = 0; field < FIELDS; field++)
		/*
		 * The rate tells the period and the zone; that places are cut off, or found, is
		 * seldom.
		 */
		if (field != FIELD_PERIOD && field != FIELD_CUT_OFF && field != FIELD_LAW && field != FIELD_LEAST &&
		    field != FIELD_ZONE)
			table_cell(table, "%s", field_cell(text, field, &facts->rule));
}

static int print_table(struct shmlimit *limiter, uint32_t rules)
{
	struct table table = { .align = "lrlrrrrlrlrll" };
	struct rule_facts facts;

	table_words(&table,
	            "RULE ID ALGORITHM CAPACITY RATE WARMUP COLD-FACTOR COUNT-REFUSED MAX-WAIT NEXT-PAYS CREDIT "
	            "PROTECTED MODE");
	for (uint32_t id = 0; id < rules; id++)
		if (rule_read(limiter, (int)id, &facts) == 0)
			add_row(&table, &facts);
	return table_print(&table);
}

static json_t *list_json(struct shmlimit *limiter, uint32_t rules)
{
	json_t *list = json_array();
	struct rule_facts facts;

	for (uint32_t id = 0; id < rules; id++)
		if (rule_read(limiter, (int)id, &facts) == 0)
			json_append(&list, rule_json(&facts));
	return list;
}

static int run(const struct call *call)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *limiter;
	int status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	shmlimit_info(limiter, &info);
	if (call->option[JSON] != NULL)
		status = print_json(list_json(limiter, info.rules));
	else
		status = print_table(limiter, info.rules);
	shmlimit_close(limiter);
	return status;
}

const struct command command_rule_list = {
	.name = "rule list",
	.operands = "NAME",
	.purpose = "list the rules of a segment",
	.options = options,
	.run = run,
};
