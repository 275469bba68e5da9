/*
 * kept: words that are made once and read by many threads. A reader never waits: it looks at the
 * sequence before and after, and makes the words itself if a writer came in between. One thread at
 * a time writes, which makes the sequence odd; another one that wants to does not, then.
 *
 * Fork: what another thread was writing stays odd in the child, and is made for each request there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_KEPT_H
#define SHMLIMIT_GATE_KEPT_H

#include <stddef.h>
#include <stdint.h>

/* ORDER each word is acquired, so kept_holds() reads the sequence after them all. */
static inline uint64_t kept_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* The sequence before the words are read. */
static inline uint64_t kept_begin(const uint64_t *sequence)
{
	return __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
}

/* Were all words that were read since of one writer? */
static inline int kept_holds(const uint64_t *sequence, uint64_t begun)
{
	return begun % 2 == 0 && begun == __atomic_load_n(sequence, __ATOMIC_RELAXED);
}

/* ORDER each word is released, so that a thread that sees it sees the odd sequence, too. */
static inline void kept_write(uint64_t *sequence, uint64_t *to, const uint64_t *words, size_t n)
{
	uint64_t found = __atomic_load_n(sequence, __ATOMIC_RELAXED);

	if (found % 2 != 0 ||
	    !__atomic_compare_exchange_n(sequence, &found, found + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	for (size_t i = 0; i < n; i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELEASE);
	__atomic_store_n(sequence, found + 2, __ATOMIC_RELEASE);
}

#endif
