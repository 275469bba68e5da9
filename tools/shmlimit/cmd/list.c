/*
 * list.c: shmlimit list.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "columns.h"
#include "command.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "other_layout.h"
#include "print.h"

enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

/* One of the two is NULL. */
struct output {
	struct table *table;
	json_t **json;
};

static void add_segment(struct output to, const char *name, const struct shmlimit_info *info)
{
	char size[TEXT_LEN], owner[TEXT_LEN];

	if (to.json != NULL) {
		json_append(to.json, segment_json(name, info));
		return;
	}
	segment_owner(info, owner);
	table_cell(to.table, "%s", name);
	table_cell(to.table, "%s", size_text(size, info->size));
	table_cell(to.table, "%" PRIu64, info->slots);
	table_cell(to.table, "%" PRIu32 "/%" PRIu32, info->rules_used, info->rules_max);
	table_cell(to.table, "%s", owner);
	table_cell(to.table, "%04" PRIo32, info->mode);
	table_cell(to.table, "%s", info->enabled ? "enabled" : "disabled");
}

/* One that is there and cannot be opened. */
static void add_closed(struct output to, const char *name, int error)
{
	const char *why = error == -EPERM ? "not trusted: its file has a second link" : shmlimit_strerror(error);

	if (to.json != NULL) {
		json_append(to.json, json_pack("{s:o, s:s, s:o}", "name", json_text(name), "error", why,
		                               "layout_version", json_number(shmlimit_layout())));
		return;
	}
	table_cell(to.table, "%s", name);
	table_words(to.table, "- - - - -");
	table_cell(to.table, "%s", why);
}

/* One that another version of shmlimit made. */
static void add_other(struct output to, const char *name, uint32_t layout)
{
	char text[TEXT_LEN];

	if (to.json != NULL) {
		json_append(to.json, json_pack("{s:o, s:s, s:o}", "name", json_text(name), "error",
		                               other_layout_text(text, layout), "layout_version", json_number(layout)));
		return;
	}
	table_cell(to.table, "%s", name);
	table_words(to.table, "- - - - -");
	table_cell(to.table, "%s", other_layout_text(text, layout));
}

static void read_info(void *info, struct shmlimit *limiter)
{
	shmlimit_info(limiter, info);
}

static void add(struct output to, const char *name)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	int error = segment_visit(name, read_info, &info);

	if (error == -ENOENT || error == -EMEDIUMTYPE) /* it is gone by now, or was never a segment */
		return;
	if (error < 0)
		add_closed(to, name, error);
	else
		add_segment(to, name, &info);
}

static int run(const struct call *call)
{
	char name[SHMLIMIT_NAME_MAX + 1] = "";
	struct table table = { .align = "lrrrlll" };
	json_t *json = NULL;
	struct output to = { .table = &table };
	uint32_t layout = 0;
	int error;

	if (call->option[JSON] != NULL) {
		json = json_array();
		to.json = &json;
	} else {
		table_words(&table, "NAME SIZE SLOTS RULES OWNER MODE STATE");
	}
	while ((error = shmlimit_next_layout(name, &layout)) > 0) {
		if (layout == shmlimit_layout())
			add(to, name);
		else
			add_other(to, name, layout);
	}
	if (error < 0) {
		json_decref(json);
		table_free(&table);
		return fail("/dev/shm: %s", strerror(-error));
	}
	return to.json != NULL ? print_json(json) : table_print(&table);
}

const struct command command_list = {
	.name = "list",
	.operands = "",
	.purpose = "list the segments of this host",
	.options = options,
	.run = run,
};
