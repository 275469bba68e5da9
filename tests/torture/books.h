/*
 * books: a ledger of what the leases' backend gave, to which process and when, what was spent of it, and which process
 * was asked to lease more, over all processes.
 *
 * An answer of the backend is recorded before it is deposited in the segment; a spending and a request to lease are
 * recorded once the call has returned. So a killed process leaves too much given and too little spent, which accuses no
 * process falsely. A gift can be spent from the beginning of its call until LEASE_NS after the end of that call. A
 * spending was at some moment between its call's beginning and its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_TORTURE_BOOKS_H
#define TESTS_TORTURE_BOOKS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define BOOKS_MAX 200000
#define LEASE_NS 10000000u
#define CLAIM_NS 2000000u
#define CLAIM_SURE_NS (CLAIM_NS / 2) /* each change of its rule takes up to 16 ticks off a claim */

struct entry {
	enum { ANSWERED, SPENT, ASKED } what; /* ANSWERED: with this many tokens, perhaps none */
	uint32_t key;
	uint64_t tokens, began_ns;
	_Atomic uint64_t ended_ns; /* UINT64_MAX: killed in it */
	_Atomic uint32_t written;
};

/* More than BOOKS_MAX: the rest is missing, and what was spent of it, too. */
struct books {
	_Atomic uint64_t n;
	struct entry log[BOOKS_MAX];
};

/* One key's part, by kind. Lines of ANSWERED are in the order in which they expire, of SPENT in that of their ends. */
struct ledger {
	size_t n[3];
	struct line {
		uint64_t tokens, began_ns, ended_ns;
	} of[3][BOOKS_MAX];
};

static inline struct entry *books_add(struct books *b, int what, uint32_t key, uint64_t tokens, uint64_t began_ns,
                                      uint64_t ended_ns)
{
	static struct entry lost;
	uint64_t at = atomic_fetch_add(&b->n, 1);

	if (at >= BOOKS_MAX)
		return &lost;
	b->log[at].what = what;
	b->log[at].key = key;
	b->log[at].tokens = tokens;
	b->log[at].began_ns = began_ns;
	b->log[at].ended_ns = ended_ns;
	atomic_store(&b->log[at].written, 1);
	return &b->log[at];
}

static inline uint64_t books_length(struct books *b)
{
	uint64_t n = atomic_load(&b->n);

	return n < BOOKS_MAX ? n : BOOKS_MAX;
}

/* A tenth of the room is left: more than all workers, and the end of a round, write before the next clearing. */
static inline int books_are_nearly_full(struct books *b)
{
	return books_length(b) >= BOOKS_MAX / 10 * 9;
}

static inline void books_clear(struct books *b)
{
	for (uint64_t i = books_length(b); i-- > 0;)
		atomic_store(&b->log[i].written, 0);
	atomic_store(&b->n, 0);
}

static inline int line_order(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->ended_ns < y->ended_ns ? -1 : x->ended_ns > y->ended_ns;
}

static inline void books_tell(struct books *b, uint32_t key, struct ledger *out)
{
	uint64_t length = books_length(b);

	for (int what = 0; what < 3; what++)
		out->n[what] = 0;
	for (uint64_t i = 0; i < length; i++) {
		struct entry *e = &b->log[i];

		if (atomic_load(&e->written) && e->key == key)
			out->of[e->what][out->n[e->what]++] = (struct line){ e->tokens, e->began_ns, e->ended_ns };
	}
	for (int what = 0; what < 3; what++)
		qsort(out->of[what], out->n[what], sizeof(out->of[what][0]), line_order);
}

/*
 * Tokens that were spent and come from no gift, after each other one was assigned to a gift that it can come from.
 * The spending that ends first is served first, by the gift that expires first of those that had begun and not expired.
 * Any other choice serves no more, since a spending that ends later can use any gift that had begun by then.
 */
static inline uint64_t ledger_unbacked(struct ledger *of)
{
	struct line *gift = of->of[ANSWERED];
	size_t gifts = of->n[ANSWERED], gone = 0;
	uint64_t unbacked = 0;

	for (size_t i = 0; i < of->n[SPENT]; i++) {
		struct line *spent = &of->of[SPENT][i];

		while (gone < gifts && gift[gone].tokens == 0)
			gone++;
		for (size_t j = gone; j < gifts && spent->tokens > 0; j++) {
			uint64_t some = gift[j].tokens < spent->tokens ? gift[j].tokens : spent->tokens;

			if (gift[j].began_ns > spent->ended_ns ||
			    (gift[j].ended_ns != UINT64_MAX && gift[j].ended_ns + LEASE_NS <= spent->began_ns))
				continue;
			gift[j].tokens -= some;
			spent->tokens -= some;
		}
		unbacked += spent->tokens;
	}
	return unbacked;
}

/* How often a process was to ask while another certainly was: its claim had not expired, and had no answer. */
static inline uint64_t ledger_crowds(const struct ledger *of)
{
	const struct line *claim = of->of[ASKED], *answer = of->of[ANSWERED];
	uint64_t crowds = 0;

	for (size_t i = 0; i < of->n[ASKED]; i++) {
		uint64_t until_ns = claim[i].began_ns + CLAIM_SURE_NS;

		for (size_t j = 0; j < of->n[ANSWERED]; j++)
			if (answer[j].ended_ns >= claim[i].began_ns && answer[j].began_ns < until_ns)
				until_ns = answer[j].began_ns;
		for (size_t j = 0; j < of->n[ASKED]; j++)
			crowds += j != i && claim[j].began_ns >= claim[i].ended_ns && claim[j].ended_ns <= until_ns;
	}
	return crowds;
}

#endif
