/*
 * ledger: what was admitted when, over all hosts, and whether any stretch of time
 * saw more than its due: as tests/process/interval judges it. An entry is a call
 * that was admitted, from before it to after it. Of all that began at a or later
 * and ended at b or earlier there may be
 *
 *	capacity + count * (b - a) / period
 *
 * less what was refunded in it, where a refund counts that may have happened in it: its times are exchanged.
 *
 * and a capacity more for each time that the backend lost its data.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GLOBAL_LEDGER_H
#define TESTS_GLOBAL_LEDGER_H

#include "process/process.h"

#define LEDGER_MAX 2000000
/* The backend counts in microseconds of another clock, which is read in a system call. */
#define LEDGER_SLACK_NS 10000

struct entry {
	_Atomic uint32_t written; /* last: its worker may be killed before that */
	int32_t cost;             /* negative: a refund */
	uint64_t began_ns, ended_ns;
};

struct ledger {
	_Atomic uint64_t entries, admitted;
	struct entry entry[LEDGER_MAX];
};

/* Returns the entry's place. */
static inline uint64_t ledger_enter(struct ledger *ledger, int32_t cost, uint64_t began_ns, uint64_t ended_ns)
{
	uint64_t at = atomic_fetch_add(&ledger->entries, 1);

	if (at >= LEDGER_MAX)
		return at;
	ledger->entry[at].cost = cost;
	ledger->entry[at].began_ns = began_ns;
	ledger->entry[at].ended_ns = ended_ns;
	atomic_store(&ledger->entry[at].written, 1);
	return at;
}

static inline void ledger_write(struct ledger *ledger, uint32_t cost, uint64_t began_ns, uint64_t ended_ns)
{
	atomic_fetch_add(&ledger->admitted, cost);
	ledger_enter(ledger, (int32_t)cost, began_ns, ended_ns);
}

/* To be called before the refund: a worker that is killed may have given back or not, so the refund has no end yet. */
static inline uint64_t ledger_refund(struct ledger *ledger, uint32_t tokens, uint64_t began_ns)
{
	return ledger_enter(ledger, -(int32_t)tokens, UINT64_MAX, began_ns);
}

static inline void ledger_refunded(struct ledger *ledger, uint64_t at, uint64_t ended_ns)
{
	if (at < LEDGER_MAX)
		ledger->entry[at].began_ns = ended_ns;
}

struct ledger_time {
	uint64_t ns;
	int64_t cost;
};

static inline int ledger_order(const void *a, const void *b)
{
	const struct ledger_time *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* The most tokens that any stretch of time had above what came back in it. */
static inline double ledger_most(const struct ledger *ledger, uint64_t count, uint64_t period_ns)
{
	uint64_t n = atomic_load(&ledger->entries), m = 0, since;
	int64_t before = 0, until = 0;
	struct ledger_time *began = calloc(LEDGER_MAX, sizeof(*began)), *ended = calloc(LEDGER_MAX, sizeof(*ended));
	__int128 best = 0, most = 0;

	if (n > LEDGER_MAX)
		bail("the ledger is full");
	if (began == NULL || ended == NULL)
		bail("no memory");
	for (uint64_t i = 0; i < n; i++) {
		if (!ledger->entry[i].written)
			continue;
		began[m] = (struct ledger_time){ ledger->entry[i].began_ns, ledger->entry[i].cost };
		ended[m++] = (struct ledger_time){ ledger->entry[i].ended_ns, ledger->entry[i].cost };
	}
	qsort(began, m, sizeof(*began), ledger_order);
	qsort(ended, m, sizeof(*ended), ledger_order);
	since = m == 0 ? 0 : began[0].ns < ended[0].ns ? began[0].ns : ended[0].ns;
	/* In units of 1 / period of a token. */
	for (uint64_t i = 0, j = 0; j < m; j++) {
		__int128 over;

		for (; i < m && began[i].ns <= ended[j].ns; i++) {
			__int128 gained = (__int128)(began[i].ns - since) * count - (__int128)before * period_ns;

			best = gained > best ? gained : best;
			before += began[i].cost;
		}
		until += ended[j].cost;
		over = (__int128)until * period_ns - (__int128)(ended[j].ns - since) * count + best -
		       (__int128)LEDGER_SLACK_NS * count;
		most = over > most ? over : most;
	}
	free(began);
	free(ended);
	return (double)most / (double)period_ns;
}

#endif
