/*
 * history: what was admitted to whom and when, by all processes, and the most
 * that any stretch of time had of it.
 *
 * A call was decided at some moment between its beginning and its end. What was
 * admitted from a to b is no less than what had ended by b, less what began
 * before a: one pass over the sorted times compares that for every a < b. It
 * never accuses falsely, and overlooks but calls that began before a and ended
 * after b. An admission that a killed process did not get to write is no excess.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_TORTURE_HISTORY_H
#define TESTS_TORTURE_HISTORY_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define HISTORY_MAX 200000

struct history {
	_Atomic uint64_t n; /* more than HISTORY_MAX: the rest is missing, and no excess either */
	struct admission {
		uint32_t rule, key;
		uint64_t tokens, began_ns, ended_ns;
		_Atomic uint32_t written; /* last: its process may be killed before that */
	} log[HISTORY_MAX];
};

/* Tokens that began, or ended, at a time. */
struct moment {
	uint64_t ns, tokens;
};

/* One key's part of a history, sorted. */
struct story {
	size_t n;
	struct moment began[HISTORY_MAX], ended[HISTORY_MAX];
};

static inline void history_add(struct history *h, uint32_t rule, uint32_t key, uint64_t tokens, uint64_t began_ns,
                               uint64_t ended_ns)
{
	uint64_t at = atomic_fetch_add(&h->n, 1);

	if (at >= HISTORY_MAX)
		return;
	h->log[at].rule = rule;
	h->log[at].key = key;
	h->log[at].tokens = tokens;
	h->log[at].began_ns = began_ns;
	h->log[at].ended_ns = ended_ns;
	atomic_store(&h->log[at].written, 1);
}

static inline uint64_t history_length(struct history *h)
{
	uint64_t n = atomic_load(&h->n);

	return n < HISTORY_MAX ? n : HISTORY_MAX;
}

/* A tenth of the room is left: more than all workers write before each of them asks again. */
static inline int history_is_nearly_full(struct history *h)
{
	return history_length(h) >= HISTORY_MAX / 10 * 9;
}

static inline void history_clear(struct history *h)
{
	for (uint64_t i = history_length(h); i-- > 0;)
		atomic_store(&h->log[i].written, 0);
	atomic_store(&h->n, 0);
}

static inline int moment_order(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static inline void history_tell(struct history *h, uint32_t rule, uint32_t key, struct story *out)
{
	uint64_t length = history_length(h);

	out->n = 0;
	for (uint64_t i = 0; i < length; i++) {
		const struct admission *a = &h->log[i];

		if (!atomic_load(&a->written) || a->rule != rule || a->key != key)
			continue;
		out->began[out->n] = (struct moment){ a->began_ns, a->tokens };
		out->ended[out->n++] = (struct moment){ a->ended_ns, a->tokens };
	}
	qsort(out->began, out->n, sizeof(out->began[0]), moment_order);
	qsort(out->ended, out->n, sizeof(out->ended[0]), moment_order);
}

/* The most tokens that any stretch shorter than the period had. */
static inline uint64_t story_most(const struct story *s, uint64_t period_ns)
{
	uint64_t most = 0, before = 0, by = 0;
	size_t j = 0;

	for (size_t i = 0; i < s->n; before += s->began[i++].tokens) {
		for (; j < s->n && s->ended[j].ns < s->began[i].ns + period_ns; j++)
			by += s->ended[j].tokens;
		if (by > before && by - before > most)
			most = by - before;
	}
	return most;
}

/*
 * The most tokens, rounded up, that any stretch had above those which `count` a
 * `period_ns` give in it and in `grace_ns` more.
 */
static inline uint64_t story_burst(const struct story *s, uint64_t count, uint64_t period_ns, uint64_t grace_ns)
{
	uint64_t since = s->n == 0 ? 0 : s->began[0].ns, before = 0, by = 0;
	__int128 best = 0, most = 0;
	size_t i = 0;

	/* In units of 1 / period of a token. */
	for (size_t j = 0; j < s->n; j++) {
		__int128 burst;

		for (; i < s->n && s->began[i].ns <= s->ended[j].ns; before += s->began[i++].tokens) {
			__int128 spared = (__int128)(s->began[i].ns - since) * count - (__int128)before * period_ns;

			if (i == 0 || spared > best)
				best = spared;
		}
		by += s->ended[j].tokens;
		burst = (__int128)by * period_ns - (__int128)(s->ended[j].ns - since + grace_ns) * count + best;
		if (burst > most)
			most = burst;
	}
	return (uint64_t)((most + period_ns - 1) / period_ns);
}

#endif
