/*
 * failed_keys: see failed_keys.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "failed_keys.h"

/* FNV-1a, of Fowler, Noll and Vo, with a secret start value. */
static uint64_t hash_of(const struct failed_keys *failed_keys, const void *key, size_t key_len)
{
	const unsigned char *bytes = key;
	uint64_t hash = failed_keys->secret;

	for (size_t i = 0; i < key_len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void failed_keys_add(struct failed_keys *failed_keys, const void *key, size_t key_len, uint64_t until_ns)
{
	uint64_t hash = hash_of(failed_keys, key, key_len);

	failed_keys->hash[hash % FAILED_KEYS_MAX] = hash;
	failed_keys->until_ns[hash % FAILED_KEYS_MAX] = until_ns;
}

int failed_keys_have(const struct failed_keys *failed_keys, const void *key, size_t key_len, uint64_t now_ns)
{
	uint64_t hash = hash_of(failed_keys, key, key_len);

	return failed_keys->hash[hash % FAILED_KEYS_MAX] == hash &&
	       now_ns < failed_keys->until_ns[hash % FAILED_KEYS_MAX];
}
