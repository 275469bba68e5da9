/*
 * fixed_fields: see fixed_fields.h. The words are the rule's version, which is not 0, the quota,
 * the rule's id with the shape, and the text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "fixed_fields.h"
#include "kept.h"

#define TEXT_MAX (FIXED_TEXT_WORDS * sizeof(uint64_t))

/* The shape: two lengths, and what is known. The id is above. */
#define LENGTH_MASK 0xffu
#define NAME_AT 8
#define HAS_TIME UINT64_C(0x10000)
#define ID_AT 32

_Static_assert(TEXT_MAX <= LENGTH_MASK, "a length has room");
_Static_assert(TEXT_MAX <= SHMLIMIT_FIELD_MAX, "whole words have room in a field");

int fixed_fields_find(const struct fixed_fields *kept, const struct fixed_key *key, struct fixed_shape *shape,
                      struct shmlimit_fields *to)
{
	uint64_t begun = kept_begin(&kept->sequence), word, known;

	if (kept_word(&kept->words[0]) != key->version || kept_word(&kept->words[1]) != key->quota)
		return 0;
	known = kept_word(&kept->words[2]);
	if (known >> ID_AT != (uint32_t)key->id)
		return 0;
	*shape = (struct fixed_shape){ .length = known & LENGTH_MASK,
		                       .name_length = known >> NAME_AT & LENGTH_MASK,
		                       .has_time = (known & HAS_TIME) != 0 };
	/* The NUL is in the last word. */
	for (size_t at = 0; at <= shape->length; at += sizeof(word)) {
		word = kept_word(&kept->words[3 + at / sizeof(word)]);
		memcpy(to->policy + at, &word, sizeof(word));
		memcpy(to->limit + at, &word, sizeof(word));
	}
	return kept_holds(&kept->sequence, begun);
}

void fixed_fields_keep(struct fixed_fields *kept, const struct fixed_key *key, const struct fixed_shape *shape,
                       const char *text)
{
	uint64_t words[FIXED_WORDS] = { key->version, key->quota, (uint64_t)(uint32_t)key->id << ID_AT };

	if (shape->length >= TEXT_MAX)
		return;
	words[2] |= shape->length | (uint64_t)shape->name_length << NAME_AT | (shape->has_time ? HAS_TIME : 0);
	memcpy(&words[3], text, shape->length);
	kept_write(&kept->sequence, kept->words, words, FIXED_WORDS);
}
