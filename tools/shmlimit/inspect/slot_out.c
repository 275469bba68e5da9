/*
 * slot_out.c: see slot_out.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "escape.h"
#include "fail.h"
#include "key_text.h"
#include "print.h"
#include "slot_out.h"

struct slot_out *slot_out_new(struct shmlimit *limiter)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct slot_out *out = calloc(1, sizeof(*out));

	shmlimit_info(limiter, &info);
	if (out != NULL) {
		out->limiter = limiter;
		out->keeps_keys = info.store_keys != 0;
		out->name = calloc(info.rules, sizeof(*out->name));
		out->known = calloc(info.rules, 1);
	}
	if (out != NULL && out->name != NULL && out->known != NULL)
		return out;
	fail_memory();
	slot_out_free(out);
	return NULL;
}

void slot_out_free(struct slot_out *out)
{
	if (out == NULL)
		return;
	free(out->name);
	free(out->known);
	free(out);
}

void out_bytes(struct slot_out *out, const char *text, size_t len)
{
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

void out_text(struct slot_out *out, const char *text)
{
	out_bytes(out, text, strlen(text));
}

void out_spaces(struct slot_out *out, size_t n)
{
	memset(out->text + out->len, ' ', n);
	out->len += n;
}

void out_flush(struct slot_out *out, size_t above)
{
	if (out->len > above) {
		fwrite(out->text, 1, out->len, stdout);
		out->len = 0;
	}
}

unsigned digits_of(uint64_t number)
{
	unsigned n = 1;

	for (; number >= 10; number /= 10)
		n++;
	return n;
}

void out_number(struct slot_out *out, uint64_t number)
{
	unsigned digits = digits_of(number);

	for (unsigned i = digits; i-- > 0; number /= 10)
		out->text[out->len + i] = (char)('0' + number % 10);
	out->len += digits;
}

static void out_hex(struct slot_out *out, uint64_t number, int digits)
{
	for (int bit = 4 * (digits - 1); bit >= 0; bit -= 4)
		out->text[out->len++] = "0123456789abcdef"[number >> bit & 15];
}

void out_fingerprint(struct slot_out *out, uint64_t fingerprint)
{
	out_hex(out, fingerprint, 12);
}

void out_key(struct slot_out *out, const struct top_key *slot)
{
	char text[KEY_TEXT_LEN];

	if (out->keeps_keys && top_key_show(text, out->limiter, slot) != NULL) {
		out_text(out, text);
		return;
	}
	out_text(out, "#");
	out_fingerprint(out, slot->fingerprint);
}

const char *out_rule_name(struct slot_out *out, int rule)
{
	char *name = out->name[rule];

	if (!out->known[rule] && shmlimit_rule_name(out->limiter, rule, name) < 0)
		strcpy(name, "");
	out->known[rule] = 1;
	return name;
}

static void out_json_number(struct slot_out *out, const char *name, uint64_t number)
{
	out_text(out, name);
	if (number == UINT64_MAX) {
		out_text(out, "null");
		return;
	}
	out_text(out, number > JSON_NUMBER_MAX ? "\"" : "");
	out_number(out, number);
	out_text(out, number > JSON_NUMBER_MAX ? "\"" : "");
}

/* As ASCII, with JSON's escapes; null if it is not UTF-8. */
static void out_json_bytes(struct slot_out *out, const void *from, size_t len)
{
	const char *p = from;
	size_t begin = out->len;
	uint32_t c;

	out_text(out, "\"");
	for (size_t n; len > 0; p += n, len -= n) {
		n = utf8_read(p, len, &c);
		if (n == 0) {
			out->len = begin;
			out_text(out, "null");
			return;
		}
		if (c >= 0x10000) {
			out_text(out, "\\u");
			out_hex(out, 0xd800 + ((c - 0x10000) >> 10), 4);
			c = 0xdc00 + (c & 0x3ff);
		}
		if (c < ' ' || c > '~') {
			out_text(out, "\\u");
			out_hex(out, c, 4);
			continue;
		}
		if (c == '"' || c == '\\')
			out_text(out, "\\");
		out_bytes(out, p, 1);
	}
	out_text(out, "\"");
}

/*
 * What is known of the key: members as json_key() has them, or nulls. WHY NOT that one: it takes 2
 * µs a key.
 */
static void out_json_key(struct slot_out *out, const struct top_key *slot)
{
	unsigned char key[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, kept = 0;
	char ip[KEY_TEXT_LEN];

	if (out->keeps_keys)
		kept = top_key_bytes(key, out->limiter, slot, &key_len);
	if (kept == 0) {
		out_text(out, ", \"key\": null, \"key_hex\": null, \"key_length\": null, \"key_ip\": null");
		return;
	}
	out_text(out, ", \"key\": ");
	out_json_bytes(out, key, kept);
	out_text(out, ", \"key_hex\": \"");
	for (size_t i = 0; i < kept; i++)
		out_hex(out, key[i], 2);
	out_text(out, "\", \"key_length\": ");
	out_number(out, key_len);
	out_text(out, ", \"key_ip\": ");
	if (kept == key_len && key_ip_show(ip, key, kept))
		out_json_bytes(out, ip, strlen(ip));
	else
		out_text(out, "null");
}

void out_slot_json(struct slot_out *out, const struct top_key *slot)
{
	const char *rule = out_rule_name(out, slot->rule), *lease = choice_word(choices_lease, slot->lease);

	out_text(out, "{\"rule\": ");
	if (*rule != '\0')
		out_json_bytes(out, rule, strlen(rule));
	else
		out_text(out, "null");
	out_text(out, ", \"fingerprint\": \"");
	out_fingerprint(out, slot->fingerprint);
	out_text(out, "\"");
	out_json_key(out, slot);
	out_json_number(out, ", \"remaining\": ", slot->remaining);
	out_json_number(out, ", \"debt_ns\": ", slot->debt_ns);
	out_json_number(out, ", \"reset_after_ns\": ", slot->reset_after_ns);
	out_text(out, ", \"lease\": ");
	if (slot->lease != 0)
		out_json_bytes(out, lease, strlen(lease));
	else
		out_text(out, "null");
	if (slot->number != 0) {
		out_json_number(out, ", \"number\": ", slot->number);
		out_json_number(out, ", \"base_ns\": ", slot->base_ns);
		out_json_number(out, ", \"queue_milli\": ", slot->queue_milli);
	}
	out_text(out, "}");
}
