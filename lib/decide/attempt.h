/*
 * attempt: to decide what did not go through at the first try; and what it is made
 * on: what the key has now, wherever that is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ATTEMPT_H
#define SHMLIMIT_LIB_ATTEMPT_H

/* Five microseconds at the most: waiting longer than the others need does not help. */
#define CK_BACKOFF_CEILING ((1 << 14) - 1)
#include <ck_backoff.h>

#include "decide.h"

struct attempt {
	const struct request *request;
	struct shmlimit_result *r; /* or NULL */
	struct rule_view view;
	const struct algorithm *a; /* of view.params */
	struct generation tables;
	struct table_slot here; /* the key's slot; NULL: it has none, and is full */
	/*
	 * it says something, in the old table, and finds no place in the new one; or under an older
	 * version of the rule, and this process cannot convert it
	 */
	int homeless;
	struct funnel_time at;
	struct balance b;   /* what the key has at that time, then as decided */
	uint64_t paused_ns; /* the key is paused for so long; 0: it is not */
	uint64_t room_ns;   /* denied for want of a slot: until there may be one; else 0 */
	int nowhere;        /* what was decided stands in no slot */
	uint32_t failed;    /* compare-and-swaps lost */
	ck_backoff_t backoff;
	struct verdict v;
};

enum progress { FINAL, AGAIN };

/* A compare-and-swap was lost: wait, then start over. */
static inline enum progress attempt_lost(struct attempt *d)
{
	d->failed++;
	ck_backoff_eb(&d->backoff);
	return AGAIN;
}

static inline void attempt_count(const struct shmlimit *l, const struct attempt *d, enum counter which)
{
	counter_add(l, d->request->rule, which, d->request->when.ns);
}

/* Where a slot was taken from another key. Counted at once, whatever becomes of the claim. */
static inline void attempt_count_taken(const struct shmlimit *l, const struct attempt *d,
                                       const struct table_place *place)
{
	if (place->from == FROM_REFILLED)
		attempt_count(l, d, COUNT_RECLAIMS);
	else if (place->from == FROM_LIVE)
		attempt_count(l, d, COUNT_EVICTIONS);
}

/* The time of the call, as far as it has come. */
static inline struct when attempt_when(const struct attempt *d)
{
	return (struct when){ d->at.now_ns, d->request->when.given };
}

static inline struct table_claim attempt_claim(const struct attempt *d, const struct table_key *wanted)
{
	return (struct table_claim){ wanted, &d->tables, &d->view, attempt_when(d) };
}

static inline struct look attempt_where(const struct shmlimit *l, const struct attempt *d)
{
	return (struct look){ l, d->here.t, d->here.slot, &d->view.params, d->at, d->request->when.given };
}

/* A key that has no slot: its funnel is full, its window empty, its lease none. */
void attempt_has_none(const struct shmlimit *l, struct attempt *d);

/*
 * What the key has at d->at: finds d->here, and fills d->b.
 * AGAIN: something changed during the attempt, or had to be changed first.
 */
enum progress attempt_look(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted);

/*
 * Is a key that was found in neither table in none? It may have been carried over after we looked
 * at the new one, before we looked at the other. A claim looks again anyway.
 */
int attempt_is_nowhere(const struct shmlimit *l, const struct attempt *d, const struct table_key *wanted);

#endif
