/*
 * rate: see rate.h.
 *
 * After its first word an entry has six of the text and three numbers of the limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kept.h"
#include "rate.h"
#include "sized.h"

#define TEXT_WORDS 6u
#define TEXT_MAX (TEXT_WORDS * sizeof(uint64_t))
/* Bytes of a limit in release 1.0, as for ANSWER_SIZE_1_0. */
#define LIMIT_SIZE_1_0 40u

#define LONGEST 256u /* of a text that is read at all: a limit is shorter */

/* An entry's first word: a text's length, what is known of it, and the limit's flags. */
#define LENGTH UINT64_C(0xff)
#define UNREADABLE UINT64_C(0x100)
#define KEPT UINT64_C(0x200)
#define FLAGS_AT 32

_Static_assert(TEXT_MAX <= LENGTH, "a length has room");
_Static_assert(1 + TEXT_WORDS + 3 == RATE_WORDS, "a text and three numbers");

/* WHY no keyed hash: texts that share an entry cost a reading each, and decide as before. */
static size_t place_of(const uint64_t *text, size_t length)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ length;

	for (size_t i = 0; i * sizeof(*text) < length; i++)
		h = (h ^ text[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 32;
	return h % RATE_ENTRIES;
}

static int entry_read(const struct rate_entry *entry, uint64_t words[RATE_WORDS])
{
	uint64_t begun = kept_begin(&entry->sequence);

	for (size_t i = 0; i < RATE_WORDS; i++)
		words[i] = kept_word(&entry->words[i]);
	return kept_holds(&entry->sequence, begun);
}

/* Bytes that are not a string's. Returns 0 or -EINVAL. */
static int parse(const char *bytes, size_t length, struct shmlimit_limit *out, struct shmlimit_problem *wrong)
{
	char text[LONGEST];

	*out = (struct shmlimit_limit){ .struct_size = sizeof(*out) };
	if (length >= sizeof(text) || memchr(bytes, '\0', length) != NULL) {
		snprintf(wrong->text, sizeof(wrong->text), "too long, or with a NUL");
		return -EINVAL;
	}
	memcpy(text, bytes, length);
	text[length] = '\0';
	return shmlimit_limit_parse(text, out, wrong);
}

/* Returns 1 with *out, or 0: the text is no limit. */
static int text_limit(struct rates *rates, const char *bytes, size_t length, struct shmlimit_limit *out)
{
	uint64_t words[RATE_WORDS] = { KEPT | length }, found[RATE_WORDS];
	struct shmlimit_problem wrong;
	struct rate_entry *entry;

	if (length > TEXT_MAX)
		return parse(bytes, length, out, &wrong) == 0;
	memcpy(&words[1], bytes, length);
	entry = &rates->entries[place_of(&words[1], length)];
	if (entry_read(entry, found) && (found[0] & (KEPT | LENGTH)) == words[0] &&
	    memcmp(&found[1], &words[1], TEXT_MAX) == 0) {
		*out = (struct shmlimit_limit){ .struct_size = sizeof(*out),
			                        .flags = (uint32_t)(found[0] >> FLAGS_AT),
			                        .capacity = found[RATE_WORDS - 3],
			                        .refill = found[RATE_WORDS - 2],
			                        .period_ns = found[RATE_WORDS - 1] };
		return (found[0] & UNREADABLE) == 0;
	}
	if (parse(bytes, length, out, &wrong) != 0)
		words[0] |= UNREADABLE;
	words[0] |= (uint64_t)out->flags << FLAGS_AT;
	words[RATE_WORDS - 3] = out->capacity;
	words[RATE_WORDS - 2] = out->refill;
	words[RATE_WORDS - 1] = out->period_ns;
	kept_write(&entry->sequence, entry->words, words, RATE_WORDS);
	return (words[0] & UNREADABLE) == 0;
}

__attribute__((format(printf, 3, 4))) static void say_rate(struct segment_ref *ref, const struct spec_limit *limit,
                                                           const char *format, ...)
{
	char text[sizeof(((struct shmlimit_problem *)0)->text) + SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];
	va_list values;
	int at;

	at = snprintf(text, sizeof(text), "segment %.*s: rule %.*s: ", SHMLIMIT_NAME_MAX, ref->spec->segment,
	              SHMLIMIT_RULE_NAME_MAX, ref->spec->rules[limit->rule].name);
	va_start(values, format);
	vsnprintf(text + at, sizeof(text) - (size_t)at, format, values);
	va_end(values);
	segment_ref_report_rate(ref, text);
}

static const char *without_limit(const struct segment_ref *ref)
{
	return ref->spec->fail_open ? "pass without a limit" : "are refused";
}

void rate_report(struct segment_ref *ref, const struct spec_limit *limit, const struct shmlimit_limit *own, int error)
{
	const char *why = "a request brings no limit, and the rule has none of its own";
	int is_places = error == -EOPNOTSUPP && own->flags == SHMLIMIT_LIMIT_PLACES;

	if (error == -EOPNOTSUPP && !is_places && ref->spec->rules[limit->rule].gcra)
		return;
	if (is_places)
		why = "a request brings a number of places, and the rule has none (rate=\"20 at once\")";
	else if (error == -EOPNOTSUPP)
		why = "a request brings a limit, and the rule is not a gcra rule (algorithm=gcra)";
	if (segment_ref_may_report(ref, limit->rule))
		say_rate(ref, limit, "%s: requests that need it %s", why, without_limit(ref));
}

void rate_report_share(struct segment_ref *ref, const struct spec_limit *limit, int error)
{
	if (segment_ref_may_report(ref, limit->rule))
		say_rate(ref, limit, "share= needs %s: requests that need it %s",
		         error == -EINVAL ? "a limit of places before it in the same request"
		                          : "a rule of places (rate=\"20 at once\")",
		         without_limit(ref));
}

/* The text is read again, for what is wrong with it: so only where that is reported. */
static void report_unreadable(struct segment_ref *ref, const struct spec_limit *limit,
                              const struct shmlimit_gate_key *key)
{
	int shown = key->rate_length < 60 ? (int)key->rate_length : 60;
	struct shmlimit_problem wrong = { .text = "" };
	struct shmlimit_limit out;
	char rate[61];

	if (!segment_ref_may_report(ref, limit->rule))
		return;
	for (int i = 0; i < shown; i++)
		rate[i] = key->rate[i] >= ' ' && key->rate[i] <= '~' ? key->rate[i] : '?';
	rate[shown] = '\0';
	(void)parse(key->rate, key->rate_length, &out, &wrong);
	if (limit->has_rate_error)
		say_rate(ref, limit, "the rate \"%s\" of a request: %s: rate_error= decides", rate, wrong.text);
	else
		say_rate(ref, limit,
		         "the rate \"%s\" of a request: %s: the rule's own limit decides; if it has none, requests %s",
		         rate, wrong.text, without_limit(ref));
}

int rate_find(struct rates *rates, struct segment_ref *ref, const struct spec_limit *limit,
              const struct shmlimit_gate_key *key, struct shmlimit_limit *out)
{
	if (key->parsed != NULL) {
		int error =
			key->parsed->struct_size < LIMIT_SIZE_1_0 ? -EINVAL : sized_in(out, key->parsed, sizeof(*out));

		out->struct_size = sizeof(*out);
		return error == 0 ? 1 : error;
	}
	if (key->rate_length > 0) {
		if (text_limit(rates, key->rate, key->rate_length, out))
			return 1;
		report_unreadable(ref, limit, key);
	}
	*out = limit->rate_error;
	return limit->has_rate_error;
}
