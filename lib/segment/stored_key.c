/*
 * stored_key: see stored_key.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "atomic.h"
#include "generation.h"
#include "hash.h"
#include "stored_key.h"

#define WORD sizeof(uint64_t)
#define HEAD sizeof(uint16_t)
#define WORDS_MAX ((HEAD + SHMLIMIT_KEY_MAX + WORD - 1) / WORD)

static uint64_t *entry_of(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot)
{
	uint64_t *names = (uint64_t *)(void *)((unsigned char *)t->slots + table_parts(l, t).names);

	return names + (uint64_t)(slot - t->slots) * layout_names_words(l->names_max);
}

/* Bytes that are kept of a key: all, or what leaves the entry's last word to the seal. */
static size_t kept_of(const struct shmlimit *l, size_t key_len)
{
	return key_len <= l->names_max ? key_len : l->names_max - WORD;
}

static size_t words_of(size_t kept)
{
	return (HEAD + kept + WORD - 1) / WORD;
}

/* The tweak is larger than any rule's id, so a seal is no key's hash. */
static uint64_t seal_of(const struct shmlimit *l, uint64_t tag, const uint64_t *words, size_t n)
{
	return hash_bytes(l->secret, tag & ~TAG_FLAGS, words, n * WORD);
}

void stored_key_write(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot, uint64_t tag,
                      struct key_bytes key)
{
	size_t kept = kept_of(l, key.len), n = words_of(kept);
	uint64_t *entry = entry_of(l, t, slot), words[WORDS_MAX];
	uint16_t length = (uint16_t)key.len;

	words[n - 1] = 0;
	memcpy(words, &length, HEAD);
	memcpy((unsigned char *)words + HEAD, key.bytes, kept);
	if (kept < key.len) {
		words[n] = seal_of(l, tag, words, n);
		n++;
	}
	for (size_t i = 0; i < n; i++)
		store_relaxed(&entry[i], words[i]);
}

size_t stored_key_read(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot, uint64_t tag,
                       void *key, size_t *key_len)
{
	uint64_t *entry = entry_of(l, t, slot), words[WORDS_MAX];
	size_t kept, n;
	uint16_t length;

	words[0] = load_relaxed(&entry[0]);
	memcpy(&length, words, HEAD);
	if (length == 0 || length > SHMLIMIT_KEY_MAX)
		return 0;
	kept = kept_of(l, length);
	n = words_of(kept);
	for (size_t i = 1; i < n; i++)
		words[i] = load_relaxed(&entry[i]);
	memcpy(key, (unsigned char *)words + HEAD, kept);
	if (kept < length) {
		if (load_relaxed(&entry[n]) != seal_of(l, tag, words, n))
			return 0;
	} else if (!tag_same_key(tag_pack(hash_bytes(l->secret, tag_rule(tag), key, kept), tag_rule(tag), 0), tag)) {
		return 0;
	}
	*key_len = length;
	return kept;
}
