/*
 * log_once: see log_once.h.
 *
 * An entry is one 64-bit word, so that one compare-and-swap replaces the oldest. It has 24 bits of
 * the text's hash, of which the highest is 1, above 40 bits of milliseconds. Two texts with the
 * same hash would hide each other for a minute; the probability is 1 in 8 million.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "log_once.h"

#define TIME_BITS 40
#define TIME_MASK (((uint64_t)1 << TIME_BITS) - 1)

/* FNV-1a, of Fowler, Noll and Vo. */
static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h | (uint64_t)1 << 63;
}

static uint64_t age_ms(uint64_t entry, uint64_t now_ms)
{
	return (now_ms - entry) & TIME_MASK;
}

int log_once_has(struct log_once *log_once, const char *text, uint64_t now_ms)
{
	uint64_t h = hash(text) & ~TIME_MASK, entry, oldest;
	unsigned which;

	/* BOUND: the swap fails only if another thread has reported a text in the meantime. */
	do {
		oldest = __atomic_load_n(&log_once->reported[0], __ATOMIC_RELAXED);
		which = 0;
		for (unsigned i = 0; i < LOG_ONCE_KEPT; i++) {
			entry = __atomic_load_n(&log_once->reported[i], __ATOMIC_RELAXED);
			if ((entry & ~TIME_MASK) == h && age_ms(entry, now_ms) < LOG_ONCE_AGAIN_MS)
				return 1;
			if (oldest != 0 && (entry == 0 || age_ms(entry, now_ms) > age_ms(oldest, now_ms))) {
				oldest = entry;
				which = i;
			}
		}
	} while (!__atomic_compare_exchange_n(&log_once->reported[which], &oldest, h | (now_ms & TIME_MASK), 0,
	                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}
