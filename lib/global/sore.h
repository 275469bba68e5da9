/*
 * sore: keys of which the engine said that something is wrong with them. They are
 * let alone for a while: by this process, for as many as have room. What is
 * forgotten too early is asked once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SORE_H
#define GLOBAL_SORE_H

#include <stddef.h>
#include <stdint.h>

#define SORE_MAX 64

struct sore {
	uint64_t secret;       /* so that nobody can choose a key that passes for another */
	uint64_t hash[SORE_MAX], until_ns[SORE_MAX];
};

void sore_add(struct sore *sore, const void *key, size_t key_len, uint64_t until_ns);
int sore_has(const struct sore *sore, const void *key, size_t key_len, uint64_t now_ns);

#endif
