/*
 * failed_keys: the failed keys: those for which the backend returned an error. This process does
 * not ask for them again for a while. There is room for FAILED_KEYS_MAX keys; one that is dropped
 * early is asked for once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_FAILED_KEYS_H
#define GLOBAL_FAILED_KEYS_H

#include <stddef.h>
#include <stdint.h>

#define FAILED_KEYS_MAX 64

struct failed_keys {
	uint64_t secret; /* so that a client cannot choose a key that collides with another */
	uint64_t hash[FAILED_KEYS_MAX], until_ns[FAILED_KEYS_MAX];
};

void failed_keys_add(struct failed_keys *failed_keys, const void *key, size_t key_len, uint64_t until_ns);
int failed_keys_have(const struct failed_keys *failed_keys, const void *key, size_t key_len, uint64_t now_ns);

#endif
