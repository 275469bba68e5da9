/*
 * decision: one that is under way, after it did not go through at the first try;
 * and what it is made on: what the key is now, wherever that stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DECISION_H
#define SHMLIMIT_LIB_DECISION_H

/* Five microseconds at the most: waiting longer than the others need helps nobody. */
#define CK_BACKOFF_CEILING ((1 << 14) - 1)
#include <ck_backoff.h>

#include "decide.h"

struct decision {
	const struct request *request;
	struct shmlimit_result *r;        /* or NULL */
	struct rule_view view;
	struct generation tables;
	const struct table *in;           /* where the key's slot is: in this table, ... */
	struct layout_slot *slot;         /* ... here; NULL: nowhere, it is full */
	struct slot_seen seen;
	int homeless;                     /* it says something, in the table before, and finds no place in the present one */
	struct funnel_time at;
	struct funnel funnel;             /* leaked up to `at`, then changed as decided */
	struct ring ring;                 /* WINDOW: as it stands, ... */
	struct window after;              /* ... and as decided */
	struct lease lease;               /* LEASE: as it stands, then as decided */
	struct lease_tally tally;
	int stepped;                      /* the word's time was impossible */
	int doubtful;                     /* what it says depends on a clock that was read after it */
	uint64_t room_ns;                 /* denied for want of a slot: until there may be one; else 0 */
	int nowhere;                      /* what was decided stands in no slot */
	uint32_t failed;                  /* compare-and-swaps lost */
	ck_backoff_t backoff;
	struct verdict v;
};

enum progress { FINAL, AGAIN };

/* A compare-and-swap was lost: wait, then start over. */
static inline enum progress decision_lost(struct decision *d)
{
	d->failed++;
	ck_backoff_eb(&d->backoff);
	return AGAIN;
}

static inline void decision_count(const struct shmlimit *l, const struct decision *d, enum counter which)
{
	counter_add(l, d->request->rule, which, d->request->now_ns);
}

/* Where a place was taken from another key. Counted when it is done, whatever becomes of the claim. */
static inline void decision_count_taken(const struct shmlimit *l, const struct decision *d,
                                        const struct table_place *place)
{
	if (place->from == FROM_REFILLED)
		decision_count(l, d, COUNT_RECLAIMS);
	else if (place->from == FROM_LIVE)
		decision_count(l, d, COUNT_EVICTIONS);
}

/* A key that has no slot: its funnel is full, its window empty, its lease none. */
void decision_stand_full(struct decision *d);

/*
 * What the key is at d->at: finds d->in, d->slot and d->seen, and fills d->funnel,
 * d->ring or d->lease. AGAIN: something changed meanwhile, or had to be changed first.
 */
enum progress decision_look(const struct shmlimit *l, struct decision *d, const struct table_key *wanted);

/*
 * Is a key that was found in neither table in none? It may have been carried over after we looked at the present one,
 * before we looked at the other. Who claims looks again anyway.
 */
int decision_is_nowhere(const struct shmlimit *l, const struct decision *d, const struct table_key *wanted);

#endif
