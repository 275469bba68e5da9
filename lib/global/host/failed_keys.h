/*
 * sore: the failed keys: those for which the backend returned an error. This process does not ask for them again for
 * a while. There is room for SORE_MAX keys; one that is dropped early is asked for once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SORE_H
#define GLOBAL_SORE_H

#include <stddef.h>
#include <stdint.h>

#define SORE_MAX 64

struct sore {
	uint64_t secret; /* so that a client cannot choose a key that collides with another */
	uint64_t hash[SORE_MAX], until_ns[SORE_MAX];
};

void sore_add(struct sore *sore, const void *key, size_t key_len, uint64_t until_ns);
int sore_has(const struct sore *sore, const void *key, size_t key_len, uint64_t now_ns);

#endif
