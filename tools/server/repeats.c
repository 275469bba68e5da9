/*
 * repeats: see repeats.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "repeats.h"

#define AGAIN_MS 60000u

void repeats_begin(struct repeats *repeats)
{
	*repeats = (struct repeats){ .next = 0 };
	pthread_mutex_init(&repeats->lock, NULL);
}

void repeats_end(struct repeats *repeats)
{
	pthread_mutex_destroy(&repeats->lock);
}

/* FNV-1a, of Fowler, Noll and Vo; never 0, which is of nothing. */
static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h | (h == 0);
}

int repeats_has(struct repeats *repeats, const char *text, uint64_t now_ms)
{
	uint64_t h = hash(text);
	int has = 0;

	pthread_mutex_lock(&repeats->lock);
	for (unsigned i = 0; i < REPEATS_KEPT; i++)
		if (repeats->hash[i] == h && now_ms - repeats->said_ms[i] < AGAIN_MS)
			has = 1;
	if (!has) {
		repeats->hash[repeats->next] = h;
		repeats->said_ms[repeats->next] = now_ms;
		repeats->next = (repeats->next + 1) % REPEATS_KEPT;
	}
	pthread_mutex_unlock(&repeats->lock);
	return has;
}
