/*
 * inspect_slots.c: the live slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "about.h"
#include "choice.h"
#include "duration.h"
#include "inspect.h"
#include "key_text.h"
#include "number_text.h"
#include "slot_out.h"

static size_t duration_width(uint64_t ns)
{
	char text[TEXT_LEN];

	return strlen(duration_about(text, ns));
}

static void put_duration(struct slot_out *out, uint64_t ns, size_t width)
{
	char text[TEXT_LEN];

	out_spaces(out, width - strlen(duration_about(text, ns)));
	out_text(out, text);
}

/* Columns, each as wide as its widest. */
struct widths {
	size_t rule, remaining, debt, reset;
	size_t lease; /* 0: there are none */
	int numbers;  /* some are found */
};

static void widen(size_t *width, size_t to)
{
	if (*width < to)
		*width = to;
}

static struct widths measure(const struct top_keys *keys, struct slot_out *out)
{
	struct widths w = { strlen("RULE"), strlen("REMAINING"), strlen("DEBT"), strlen("TIME-TO-FULL"), 0, 0 };

	for (size_t i = 0; i < keys->count; i++) {
		const struct top_key *slot = &keys->slot[i];

		widen(&w.rule, strlen(out_rule_name(out, slot->rule)));
		widen(&w.remaining, digits_of(slot->remaining));
		widen(&w.debt, slot->debt_ns > 0 ? duration_width(slot->debt_ns) : 1);
		widen(&w.reset, duration_width(slot->reset_after_ns));
		w.numbers |= slot->number != 0;
		if (slot->lease != 0)
			w.lease = strlen("tokens");
	}
	return w;
}

/* Places there may be now, how long one is held where nothing waits, and how many wait. */
static void put_found(struct slot_out *out, const struct top_key *slot)
{
	char base[TEXT_LEN] = "-", text[TEXT_LEN] = "", cells[3 * TEXT_LEN];

	if (slot->number == 0) {
		out_text(out, "       -         -      -");
		return;
	}
	if (slot->base_ns != 0)
		duration_about(base, slot->base_ns);
	snprintf(text, sizeof(text), "%" PRIu32 ".%" PRIu32, slot->queue_milli / 1000, slot->queue_milli / 100 % 10);
	snprintf(cells, sizeof(cells), "%8" PRIu32 "  %8s  %5s", slot->number, base, text);
	out_text(out, cells);
}

static void put_row(struct slot_out *out, const struct widths *w, const char *rule, const struct top_key *slot)
{
	out_text(out, *rule != '\0' ? rule : "-");
	out_spaces(out, w->rule - strlen(*rule != '\0' ? rule : "-") + 2);
	out_fingerprint(out, slot->fingerprint);
	out_spaces(out, 2 + w->remaining - digits_of(slot->remaining));
	out_number(out, slot->remaining);
	out_spaces(out, 2);
	if (slot->debt_ns > 0) {
		put_duration(out, slot->debt_ns, w->debt);
	} else {
		out_spaces(out, w->debt - 1);
		out_text(out, "-");
	}
	out_spaces(out, 2);
	put_duration(out, slot->reset_after_ns, w->reset);
	if (w->lease != 0) {
		const char *lease = slot->lease != 0 ? choice_word(choices_lease, slot->lease) : "-";

		out_spaces(out, 2 + w->lease - strlen(lease));
		out_text(out, lease);
	}
	if (w->numbers)
		put_found(out, slot);
}

int inspect_slots_text(const struct view *view)
{
	const struct top_keys *keys = &view->keys;
	struct slot_out *out = slot_out_new(view->limiter);
	char key[KEY_TEXT_LEN];
	struct widths w;

	if (out == NULL)
		return STATUS_ERROR;
	w = measure(keys, out);
	printf("%-*s  %-12s  %*s  %*s  %*s%s%s%s\n", (int)w.rule, "RULE", "FINGERPRINT", (int)w.remaining, "REMAINING",
	       (int)w.debt, "DEBT", (int)w.reset, "TIME-TO-FULL", w.lease != 0 ? "   LEASE" : "",
	       w.numbers ? "  NUMBER      BASE  QUEUE" : "", out->keeps_keys ? "  KEY" : "");
	for (size_t i = 0; i < keys->count; i++) {
		put_row(out, &w, out_rule_name(out, keys->slot[i].rule), &keys->slot[i]);
		if (out->keeps_keys) {
			out_spaces(out, 2);
			out_text(out, top_key_show(key, view->limiter, &keys->slot[i]) != NULL ? key : "-");
		}
		out_text(out, "\n");
		out_flush(out, SLOT_OUT_BUFFER);
	}
	out_flush(out, 0);
	slot_out_free(out);
	return STATUS_OK;
}

int inspect_slots_json(const struct view *view)
{
	const struct top_keys *keys = &view->keys;
	struct slot_out *out = slot_out_new(view->limiter);

	if (out == NULL)
		return STATUS_ERROR;
	for (size_t i = 0; i < keys->count; i++) {
		out_text(out, i == 0 ? "\n      " : ",\n      ");
		out_slot_json(out, &keys->slot[i]);
		out_flush(out, SLOT_OUT_BUFFER);
	}
	out_text(out, "\n    ");
	out_flush(out, 0);
	slot_out_free(out);
	return STATUS_OK;
}
