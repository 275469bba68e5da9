/*
 * sore: see sore.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "failed_keys.h"

/* FNV-1a, of Fowler, Noll and Vo, with a secret start value. */
static uint64_t hash_of(const struct sore *sore, const void *key, size_t key_len)
{
	const unsigned char *bytes = key;
	uint64_t hash = sore->secret;

	for (size_t i = 0; i < key_len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void sore_add(struct sore *sore, const void *key, size_t key_len, uint64_t until_ns)
{
	uint64_t hash = hash_of(sore, key, key_len);

	sore->hash[hash % SORE_MAX] = hash;
	sore->until_ns[hash % SORE_MAX] = until_ns;
}

int sore_has(const struct sore *sore, const void *key, size_t key_len, uint64_t now_ns)
{
	uint64_t hash = hash_of(sore, key, key_len);

	return sore->hash[hash % SORE_MAX] == hash && now_ns < sore->until_ns[hash % SORE_MAX];
}
