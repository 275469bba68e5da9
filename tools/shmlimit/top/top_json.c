/*
 * top_json.c: what top looked at, as a JSON object on a line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail.h"
#include "print.h"
#include "slot_out.h"
#include "top.h"

static json_t *rate_json(double per_second)
{
	return per_second < 0 ? json_null() : json_real(per_second);
}

static json_t *row_json(const struct top_row *row, json_t *rule)
{
	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "rule", rule,
	                 "allowed", json_number(row->allowed),
	                 "denied", json_number(row->denied),
	                 "allowed_per_s", rate_json(row->allowed_s),
	                 "denied_per_s", rate_json(row->denied_s),
	                 "shadow_denied_per_s", rate_json(row->shadow_s),
	                 "on_failure_per_s", rate_json(row->on_failure_s),
	                 "evictions_per_s", rate_json(row->evictions_s),
	                 "no_slot_per_s", rate_json(row->no_slot_s));
	/* clang-format on */
}

static json_t *rows_json(const struct top *top)
{
	json_t *list = json_array();

	for (size_t i = 0; i < top->rows; i++)
		if (top->rule[0] == '\0' || strcmp(top->row[i].name, top->rule) == 0)
			json_append(&list, row_json(&top->row[i], json_text(top->row[i].name)));
	return list;
}

static json_t *whole_json(const struct top *top)
{
	uint64_t looked = 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i <= SHMLIMIT_SLOT_STALE; i++)
		looked += top->keys.states[i];
	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "segment", json_text(top->name),
	                 "time_unix_ns", json_number((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec),
	                 "interval_ns", top->before.at_ns != 0 ? json_number(top->now.at_ns - top->before.at_ns) : json_null(),
	                 "slots", json_number(top->info.slots),
	                 "looked_at", json_number(looked),
	                 "live", json_number(top->keys.states[SHMLIMIT_SLOT_LIVE]),
	                 "all", row_json(&top->all, json_null()),
	                 "rules", rows_json(top),
	                 "keys", json_array());        /* left empty: slots are written in its place */
}

int top_json(const struct top *top)
{
	json_t *root = whole_json(top);
	/* clang-format on */
	char *text = json_write_line(root);
	struct slot_out *out = text != NULL ? slot_out_new(top->limiter) : NULL;

	json_decref(root);
	if (text == NULL)
		return fail_memory();
	if (out == NULL) {
		free(text);
		return STATUS_ERROR;
	}
	/* It ends with the empty list. */
	fwrite(text, 1, strlen(text) - strlen("]}"), stdout);
	for (size_t i = 0; i < top->keys.count; i++) {
		out_text(out, i > 0 ? ", " : "");
		out_slot_json(out, &top->keys.slot[i]);
		out_flush(out, SLOT_OUT_BUFFER);
	}
	out_text(out, "]}\n");
	out_flush(out, 0);
	slot_out_free(out);
	free(text);
	return STATUS_OK;
}
