/*
 * inspect_slots.c: the live slots. A million of them is printed in less than a
 * second; printf() alone, six fields a slot, would take longer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

#define BUFFER 65536
#define LINE_MAX (8 * KEY_TEXT_LEN)     /* a key, each byte of it as \\u0000 and in hexadecimal, and all else */

/* What is printed next. */
struct out {
	size_t len;
	char text[BUFFER + LINE_MAX];
};

static void put(struct out *out, const char *text, size_t len)
{
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

static void put_spaces(struct out *out, size_t n)
{
	memset(out->text + out->len, ' ', n);
	out->len += n;
}

/* At the end of each line. */
static void flush(struct out *out, size_t above)
{
	if (out->len > above) {
		fwrite(out->text, 1, out->len, stdout);
		out->len = 0;
	}
}

static unsigned digits_of(uint64_t number)
{
	unsigned n = 1;

	for (; number >= 10; number /= 10)
		n++;
	return n;
}

static void put_number(struct out *out, uint64_t number)
{
	unsigned digits = digits_of(number);

	for (unsigned i = digits; i-- > 0; number /= 10)
		out->text[out->len + i] = (char)('0' + number % 10);
	out->len += digits;
}

static void put_fingerprint(struct out *out, uint64_t fingerprint)
{
	for (int bit = 44; bit >= 0; bit -= 4)
		out->text[out->len++] = "0123456789abcdef"[fingerprint >> bit & 15];
}

static size_t duration_width(uint64_t ns)
{
	char text[TEXT_LEN];

	return strlen(duration_text(text, ns));
}

static void put_duration(struct out *out, uint64_t ns, size_t width)
{
	char text[TEXT_LEN];

	put_spaces(out, width - strlen(duration_text(text, ns)));
	put_text(out, text);
}

/* The names of rules, asked for once each; "": of none. */
struct names {
	const struct view *view;
	char (*name)[SHMLIMIT_RULE_NAME_MAX + 1];
	char *known;
};

static int names_begin(struct names *names, const struct view *view)
{
	names->view = view;
	names->name = calloc(view->info.rules, sizeof(*names->name));
	names->known = calloc(view->info.rules, 1);
	return names->name != NULL && names->known != NULL ? STATUS_OK : fail_memory();
}

static void names_end(struct names *names)
{
	free(names->name);
	free(names->known);
}

static const char *name_of(struct names *names, int rule)
{
	char *name = names->name[rule];

	if (!names->known[rule] && shmlimit_rule_name(names->view->limiter, rule, name) < 0)
		strcpy(name, "");
	names->known[rule] = 1;
	return name;
}

/* Columns, each as wide as its widest. */
struct widths {
	size_t rule, remaining, debt, reset;
	size_t lease;                   /* 0: there are none */
};

static void widen(size_t *width, size_t to)
{
	if (*width < to)
		*width = to;
}

static struct widths measure(const struct live *live, struct names *names)
{
	struct widths w = { strlen("RULE"), strlen("REMAINING"), strlen("DEBT"), strlen("TIME-TO-FULL"), 0 };

	for (size_t i = 0; i < live->count; i++) {
		const struct live_slot *slot = &live->slot[i];

		widen(&w.rule, strlen(name_of(names, slot->rule)));
		widen(&w.remaining, digits_of(slot->remaining));
		widen(&w.debt, slot->debt_ns > 0 ? duration_width(slot->debt_ns) : 1);
		widen(&w.reset, duration_width(slot->reset_after_ns));
		if (slot->lease != 0)
			w.lease = strlen("tokens");
	}
	return w;
}

static void put_row(struct out *out, const struct widths *w, const char *rule, const struct live_slot *slot)
{
	put_text(out, *rule != '\0' ? rule : "-");
	put_spaces(out, w->rule - strlen(*rule != '\0' ? rule : "-") + 2);
	put_fingerprint(out, slot->fingerprint);
	put_spaces(out, 2 + w->remaining - digits_of(slot->remaining));
	put_number(out, slot->remaining);
	put_spaces(out, 2);
	if (slot->debt_ns > 0) {
		put_duration(out, slot->debt_ns, w->debt);
	} else {
		put_spaces(out, w->debt - 1);
		put_text(out, "-");
	}
	put_spaces(out, 2);
	put_duration(out, slot->reset_after_ns, w->reset);
	if (w->lease != 0) {
		const char *lease = slot->lease != 0 ? choice_word(choices_lease, slot->lease) : "-";

		put_spaces(out, 2 + w->lease - strlen(lease));
		put_text(out, lease);
	}
}

int inspect_slots_text(const struct view *view)
{
	const struct live *live = &view->live;
	struct out *out = calloc(1, sizeof(*out));
	struct names names = { 0 };
	char key[KEY_TEXT_LEN];
	struct widths w;
	int status = out != NULL ? names_begin(&names, view) : fail_memory();

	if (status == STATUS_OK) {
		w = measure(live, &names);
		printf("%-*s  %-12s  %*s  %*s  %*s%s%s\n", (int)w.rule, "RULE", "FINGERPRINT", (int)w.remaining,
		       "REMAINING", (int)w.debt, "DEBT", (int)w.reset, "TIME-TO-FULL", w.lease != 0 ? "   LEASE" : "",
		       view->info.names != 0 ? "  KEY" : "");
		for (size_t i = 0; i < live->count; i++) {
			put_row(out, &w, name_of(&names, live->slot[i].rule), &live->slot[i]);
			if (view->info.names != 0) {
				put_spaces(out, 2);
				put_text(out, live_key(key, view->limiter, &live->slot[i]) != NULL ? key : "-");
			}
			put_text(out, "\n");
			flush(out, BUFFER);
		}
		flush(out, 0);
	}
	names_end(&names);
	free(out);
	return status;
}

static void put_json_number(struct out *out, const char *name, uint64_t number)
{
	put_text(out, name);
	if (number == UINT64_MAX)
		put_text(out, "null");
	else
		put_number(out, number);
}

/* A rule's name: printable, and UTF-8. */
static void put_json_text(struct out *out, const char *text)
{
	put_text(out, "\"");
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			put_text(out, "\\");
		put(out, text, 1);
	}
	put_text(out, "\"");
}

/* What is known of the key: members as json_key() has them, or nulls. Returns a status. */
static int put_json_key(struct out *out, const struct view *view, const struct live_slot *slot)
{
	unsigned char key[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, kept = 0;
	json_t *json;
	char *text;

	if (view->info.names != 0)
		kept = live_key_bytes(key, view->limiter, slot, &key_len);
	if (kept == 0) {
		put_text(out, ", \"key\": null, \"key_hex\": null, \"key_length\": null, \"key_ip\": null");
		return STATUS_OK;
	}
	json = json_key(key, kept, key_len);
	text = json_write_line(json);
	json_decref(json);
	if (text == NULL)
		return fail_memory();
	put_text(out, ", ");
	put(out, text + 1, strlen(text) - 2);
	free(text);
	return STATUS_OK;
}

static int put_object(struct out *out, const struct view *view, const char *rule, const struct live_slot *slot)
{
	int status;

	put_text(out, "{\"rule\": ");
	if (*rule != '\0')
		put_json_text(out, rule);
	else
		put_text(out, "null");
	put_text(out, ", \"fingerprint\": \"");
	put_fingerprint(out, slot->fingerprint);
	put_text(out, "\"");
	status = put_json_key(out, view, slot);
	put_json_number(out, ", \"remaining\": ", slot->remaining);
	put_json_number(out, ", \"debt_ns\": ", slot->debt_ns);
	put_json_number(out, ", \"reset_after_ns\": ", slot->reset_after_ns);
	put_text(out, ", \"lease\": ");
	if (slot->lease != 0)
		put_json_text(out, choice_word(choices_lease, slot->lease));
	else
		put_text(out, "null");
	put_text(out, "}");
	return status;
}

int inspect_slots_json(const struct view *view)
{
	const struct live *live = &view->live;
	struct out *out = calloc(1, sizeof(*out));
	struct names names = { 0 };
	int status = out != NULL ? names_begin(&names, view) : fail_memory();

	for (size_t i = 0; i < live->count && status == STATUS_OK; i++) {
		put_text(out, i == 0 ? "\n      " : ",\n      ");
		status = put_object(out, view, name_of(&names, live->slot[i].rule), &live->slot[i]);
		flush(out, BUFFER);
	}
	if (status == STATUS_OK) {
		put_text(out, "\n    ");
		flush(out, 0);
	}
	names_end(&names);
	free(out);
	return status;
}
