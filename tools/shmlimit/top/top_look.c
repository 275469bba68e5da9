/*
 * top_look.c: one look at a segment, and what follows from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "top.h"

#define NAME_LEAST 12 /* columns of a segment's name that are shown in any case */

/* Those of a table that was replaced by a larger one, too, while there may be keys in it. */
static uint64_t slots_of(const struct top *top)
{
	return top->info.slots + top->info.old_slots;
}

/*
 * What came first in the last look, without which a large table would show one part after the
 * other.
 */
static int look_again(struct top *top, const struct top_key *kept, size_t n, uint64_t end)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < n && status == STATUS_OK; i++)
		if (kept[i].index < top->first || kept[i].index >= end)
			status = top_keys_scan(top->limiter, kept[i].index, 1, &top->keys);
	return status;
}

int top_look_at_keys(struct top *top)
{
	struct top_keys last = top->keys;
	uint64_t slots = slots_of(top);
	int status;

	top->keys = (struct top_keys){
		.limit = top->keys_max,
		.rule = -1,
		.order = top->order,
		.match = top->match[0] != '\0' ? top->match : NULL,
	};
	if (top->limiter == NULL) {
		free(last.slot);
		return STATUS_OK;
	}
	if (top->rule[0] != '\0')
		top->keys.rule = shmlimit_rule_find(top->limiter, top->rule);
	if (top->rule[0] != '\0' && top->keys.rule < 0)
		top->keys.rule = INT32_MAX; /* gone: no slot is of it */
	top->first = top->first + top->looked < slots ? top->first + top->looked : 0;
	top->looked = slots - top->first < top->slots ? slots - top->first : top->slots;
	status = look_again(top, last.slot, last.count, top->first + top->looked);
	memset(top->keys.states, 0, sizeof(top->keys.states));
	if (status == STATUS_OK)
		status = top_keys_scan(top->limiter, top->first, top->looked, &top->keys);
	free(last.slot);
	return status;
}

/* Let go of what is known of a segment. */
static void forget(struct top *top)
{
	shmlimit_close(top->limiter);
	top->limiter = NULL;
	top_sample_free(&top->before);
	top_sample_free(&top->now);
	free(top->row);
	top->row = NULL;
	top->rows = 0;
	top->keys.count = 0;
	top->first = top->looked = 0;
}

/* From the segment that is gone to the one that has its name now, if any. */
static void renew(struct top *top)
{
	int error;

	forget(top);
	error = segment_try(top->name, SHMLIMIT_OPEN_READ_ONLY, &top->limiter);
	if (error == -ENOENT)
		snprintf(top->news, sizeof(top->news), "the segment was destroyed");
	else if (error < 0)
		snprintf(top->news, sizeof(top->news), "the segment: %.40s", shmlimit_strerror(error));
	else
		snprintf(top->news, sizeof(top->news), "the segment was created again");
}

int top_look(struct top *top)
{
	struct top_sample older;
	int status;

	if (top->limiter == NULL || shmlimit_gone(top->limiter) == 1)
		renew(top);
	if (top->limiter == NULL)
		return STATUS_OK;
	older = top->before;
	top->info.struct_size = sizeof(top->info);
	shmlimit_info(top->limiter, &top->info);
	top->before = top->now;
	top->now = older;
	status = top_sample_take(top->name, top->limiter, &top->info, &top->now);
	if (status == STATUS_OK && top->row == NULL) {
		top->row = calloc(top->info.rules, sizeof(*top->row));
		status = top->row != NULL ? STATUS_OK : fail_memory();
	}
	if (status != STATUS_OK)
		return status;
	top->rows = top->now.rules;
	top_rows(&top->before, &top->now, top->row, &top->all);
	return top_look_at_keys(top);
}

void top_close(struct top *top)
{
	forget(top);
	free(top->keys.slot);
}

void top_segment_text(char text[TOP_LINE_LEN], const struct top *top, size_t columns)
{
	const uint64_t *states = top->keys.states;
	size_t name_len = strlen(top->name), room;
	char part[TEXT_LEN] = "", owner[TEXT_LEN] = "", facts[4 * TEXT_LEN];
	int is_cut;

	if (top->limiter == NULL) {
		snprintf(text, TOP_LINE_LEN, "%s", top->name);
		return;
	}
	if (top->looked < slots_of(top))
		snprintf(part, sizeof(part), " of %" PRIu64 " looked at", top->looked);
	if (top->info.uid != 0 && top->info.uid != geteuid())
		segment_owner(&top->info, owner);
	snprintf(facts, sizeof(facts), "%s%s, %s, %" PRIu64 " slots: live %.1f %%, refilled %.1f %%%s",
	         *owner != '\0' ? ", of " : "", owner, top->info.enabled ? "enabled" : "disabled", top->info.slots,
	         100.0 * (double)states[SHMLIMIT_SLOT_LIVE] / (double)top->looked,
	         100.0 * (double)states[SHMLIMIT_SLOT_REFILLED] / (double)top->looked, part);
	/* The facts are to be seen whatever the segment is called. */
	room = columns > strlen(facts) + NAME_LEAST ? columns - strlen(facts) : NAME_LEAST;
	is_cut = name_len > room;
	snprintf(text, TOP_LINE_LEN, "%.*s%s%s", (int)(is_cut ? room - 1 : name_len), top->name, is_cut ? "~" : "",
	         facts);
}

void top_all_text(char text[TOP_LINE_LEN], const struct top *top)
{
	const struct top_row *all = &top->all;
	char a[TEXT_LEN], d[TEXT_LEN], s[TEXT_LEN], f[TEXT_LEN], e[TEXT_LEN], n[TEXT_LEN];

	if (top->limiter == NULL)
		strcpy(text, "-");
	else
		snprintf(text, TOP_LINE_LEN,
		         "allowed %s, denied %s, shadow %s, on_failure %s, evictions %s, no slot %s",
		         top_rate_text(a, all->allowed_s), top_rate_text(d, all->denied_s),
		         top_rate_text(s, all->shadow_s), top_rate_text(f, all->on_failure_s),
		         top_rate_text(e, all->evictions_s), top_rate_text(n, all->no_slot_s));
}

int top_finds_numbers(const struct top *top)
{
	for (size_t i = 0; i < top->keys.count; i++)
		if (top->keys.slot[i].number != 0)
			return 1;
	return 0;
}

const char *top_queue_text(char text[TEXT_LEN], const struct top_key *slot)
{
	uint32_t milli = slot->queue_milli;

	if (slot->number == 0)
		return "-";
	snprintf(text, TEXT_LEN, "%" PRIu32 ".%" PRIu32, milli / 1000, milli / 100 % 10);
	return text;
}

const char *top_key_text(char text[KEY_TEXT_LEN], const struct top *top, const struct top_key *slot)
{
	if (top_key_show(text, top->limiter, slot) == NULL)
		snprintf(text, KEY_TEXT_LEN, "#%012" PRIx64, slot->fingerprint);
	return text;
}
