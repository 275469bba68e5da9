/*
 * algorithm: each algorithm as one row of functions. All that differs between them stands in their
 * own files; everything else asks the row or, where nothing is decided, the traits.
 *
 * A row's functions are total: whatever the bits of parameters and word, they return
 * something. Those of WINDOW and HOLD read cells too, in shared memory; the others get
 * numbers and return numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ALGORITHM_H
#define SHMLIMIT_LIB_ALGORITHM_H

#include "count.h"
#include "funnel.h"
#include "gcra.h"
#include "lease.h"
#include "look.h"
#include "rebase.h"
#include "request.h"
#include "ring.h"
#include "traits.h"

/* What a key has at some time; once decided on, what it has then. */
struct balance {
	union {
		struct funnel funnel; /* FUNNEL, WARMUP: refilled up to that time */
		struct window_balance {
			struct ring ring; /* as it was read */
			struct window after;
		} window;
		struct {
			struct lease lease;
			struct lease_tally tally;
		};
		struct count count;
		struct gcra_state gcra;
		uint64_t word; /* as it was read: of what needs no more than that */
		struct hold_balance {
			uint64_t word;           /* as it was read */
			uint64_t before;         /* the value that is to be swapped, ... */
			uint64_t owner;          /* ... its owner, ... */
			struct hold_place place; /* ... and where it is, and what for */
			uint64_t holder;         /* the owner then */
		} hold;
	};
	int stepped;   /* the word's time was impossible */
	int doubtful;  /* it depends on a clock that must have been read after the word */
	int was_empty; /* WINDOW: nothing that was admitted counts any more */
};

/* What slots with cells have besides: see cells.h. */
struct algorithm_cells {
	int is_log; /* a saved slot is a list of times */

	/*
	 * The word with which a claimed slot begins, if the claim itself grants nothing; or NULL.
	 * The nonce is the claim's.
	 */
	uint64_t (*begin)(const struct look *k, uint64_t nonce);
	/* Before a word is swapped: false if the cells are not as they were seen. */
	int (*before_swap)(const struct look *k, const struct request *q, struct slot_seen seen,
	                   const struct balance *b);
	/*
	 * After a word was swapped, where the swap was lost, or after a word was converted; or
	 * NULL.
	 */
	void (*after_swap)(const struct look *k, struct slot_seen mine, const struct balance *b);
	void (*lost)(const struct look *k, const struct request *q, const struct balance *b);
	void (*converted)(const struct look *k, struct slot_seen mine);
	/*
	 * As ring_migrate(): what `word` says to `k` into the cells of `to`, whose slot was seen,
	 * and *carried, by the parameters of `to`.
	 */
	int (*migrate)(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen,
	               uint64_t *carried);
	/*
	 * Cells of a slot that is not over whose own time is over, before it seems to be of the
	 * future; or NULL.
	 */
	void (*sweep)(const struct look *k, struct slot_seen seen);
};

struct algorithm {
	const struct traits *traits;
	const struct algorithm_cells *cells; /* or NULL: its slots are their words alone */
	unsigned operations;                 /* a bit for each that it has */
	int stays;                           /* what a key has expires where it is: it is not moved */
	int one_at_a_time;                   /* no more than one token can be taken at once */

	/* Rules. */
	int (*compile)(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params);
	void (*range)(const struct layout_params *params, struct shmlimit_range *out);
	void (*rule)(const struct layout_params *params,
	             struct shmlimit_rule *out); /* what is not parameters' own; or NULL */

	/* Decisions. */
	void (*none)(const struct look *k, struct balance *b);
	void (*read)(const struct look *k, uint64_t word, struct balance *b);
	/* Fills *v and, unless it is NULL, *r. The operation is one that it has. */
	void (*apply)(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
	              struct shmlimit_result *r);
	/*
	 * The most tokens of which a take would be allowed; for TAKE_SOME, which it has not where
	 * this is NULL.
	 */
	uint64_t (*fit)(const struct look *k, const struct request *q, const struct balance *b);
	void (*count)(const struct look *k, const struct balance *b); /* after that; or NULL */
	/* Nanoseconds until it is equivalent to an empty slot. */
	uint64_t (*wait)(const struct look *k, const struct balance *b);

	/*
	 * Words, where nothing is decided. Nanoseconds since the time in a word that is equivalent
	 * to an empty slot: how long ago, about, its key was last granted something; 0 where that
	 * is in the future.
	 */
	uint64_t (*idle_ns)(const struct look *k, uint64_t word);
	/* See algorithm_convert(). The look's parameters are the old ones. */
	uint64_t (*convert)(const struct look *k, uint64_t word, const struct layout_params *to);
	/* What is wrong with a word, in a few words, or NULL. NULL: any bits are a word. */
	const char *(*fault)(const struct layout_params *params, uint64_t word);
	/*
	 * What decisions make of a word that has a fault, as a word without: *mended. Returns what
	 * that is, in a few words, or NULL where no word says it: such a slot holds nothing.
	 */
	const char *(*mend)(const struct layout_params *params, uint64_t word, uint64_t *mended);
	/*
	 * Saved state, if there is no log, or NULL, it is not saved: two numbers, told from the
	 * moment then_ns, and the word that says it elsewhere.
	 */
	void (*save)(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota, int64_t *ticks);
	uint64_t (*load)(const struct layout_params *params, uint64_t quota, int64_t ticks,
	                 const struct rebase *rebase);
	/* A word was made of this saved quota, at this time; or NULL. */
	void (*loaded)(const struct shmlimit *l, uint64_t word, uint64_t quota, uint64_t now_ns);
	/* What version 2 of save's format had, as it is now; or NULL: it is the same. */
	void (*saved_2)(const struct layout_params *params, uint64_t *quota, int64_t *ticks);
	/* For shmlimit_slot(). */
	void (*show)(const struct look *k, const struct balance *b, struct shmlimit_slot *out);
};

/* Of FUNNEL's row, for rows whose word is a funnel too. */
void funnel_none(const struct look *k, struct balance *b);
uint64_t funnel_idle_ns(const struct look *k, uint64_t word);
void funnel_save(const struct look *k, const struct balance *b, uint64_t then_ns, uint64_t *quota, int64_t *ticks);
const char *funnel_fault(const struct layout_params *params, uint64_t word);
const char *funnel_mend(const struct layout_params *params, uint64_t word, uint64_t *mended);

#define ALGORITHM(number, name) extern const struct algorithm algorithm_##name;
#include "list.h"

/* By the numbers in shmlimit.h. */
extern const struct algorithm *const algorithms[ALGORITHMS];

/* The row of a rule's params. Damaged parameters of no algorithm are taken for a FUNNEL's. */
static inline const struct algorithm *algorithm_of(const struct layout_params *params)
{
	unsigned number = params_algorithm(params);

	return algorithms[number < ALGORITHMS ? number : SHMLIMIT_FUNNEL];
}

/* Can a call bring it this limit? */
static inline int algorithm_takes_limit(const struct algorithm *a, const struct gcra *limit)
{
	if (gcra_is_fixed(limit))
		return a->traits->takes_limits || a->traits->is_places;
	return limit->is_places ? a->traits->is_places : a->traits->takes_limits;
}

/* Has it this operation, with this amount? */
static inline int algorithm_has(const struct algorithm *a, const struct request *q)
{
	int has = q->op == OP_TAKE_SOME ? a->fit != NULL : (a->operations & 1u << q->op) != 0;

	return has && !(a->one_at_a_time && q->amount > 1 && q->op != OP_PEEK) &&
	       (q->limit == NULL || algorithm_takes_limit(a, q->limit));
}

/* Does neither the request have a limit nor the rule? */
static inline int algorithm_lacks_limit(const struct algorithm *a, const struct layout_params *params,
                                        const struct request *q)
{
	return params->capacity == 0 && q->limit == NULL && a->traits->takes_limits;
}

static inline int algorithm_has_log(const struct algorithm *a)
{
	return a->cells != NULL && a->cells->is_log;
}

/* Is what its keys have written to a file? */
static inline int algorithm_is_saved(const struct algorithm *a)
{
	return algorithm_has_log(a) || a->save != NULL;
}

/* Have its keys the same cells under both? */
static inline int algorithm_keeps_cells(const struct algorithm *a, const struct layout_params *params,
                                        const struct layout_params *other)
{
	return a->cells == NULL || params_cells_size(params) == params_cells_size(other);
}

/* What is done to the cells, if there are any: see struct algorithm_cells. */
static inline int algorithm_before_swap(const struct algorithm *a, const struct look *k, const struct request *q,
                                        struct slot_seen seen, const struct balance *b)
{
	return a->cells == NULL || a->cells->before_swap(k, q, seen, b);
}

static inline void algorithm_after_swap(const struct algorithm *a, const struct look *k, struct slot_seen mine,
                                        const struct balance *b)
{
	if (a->cells != NULL && a->cells->after_swap != NULL)
		a->cells->after_swap(k, mine, b);
}

static inline void algorithm_lost(const struct algorithm *a, const struct look *k, const struct request *q,
                                  const struct balance *b)
{
	if (a->cells != NULL && a->cells->lost != NULL)
		a->cells->lost(k, q, b);
}

static inline void algorithm_converted(const struct algorithm *a, const struct look *k, struct slot_seen mine)
{
	if (a->cells != NULL && a->cells->converted != NULL)
		a->cells->converted(k, mine);
}

/*
 * Fill *params from a rule, whose keys have cells of this size at least. A rule that is changed
 * keeps the size that it had: so what was admitted, and what is held, is known still. Returns 0, or
 * -EINVAL the algorithm is unknown or a field is set that it has not, or what the algorithm's own
 * compile says.
 */
int algorithm_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params);

/*
 * The largest capacity with which algorithm_compile() accepts the rest of *rule, or its error with
 * a capacity of 1.
 */
int algorithm_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity);

/* The rule as it was set, mode and struct_size apart. */
void algorithm_rule(const struct layout_params *params, struct shmlimit_rule *out);

/*
 * Nanoseconds until what was seen in a slot is equivalent to an empty slot: 0 if it is.
 * Where no time is given the clock may be read again.
 */
uint64_t algorithm_wait(const struct look *k, uint64_t word);

/* The word that says under `to` what `word` says to the look; both of one algorithm. */
uint64_t algorithm_convert(const struct look *k, uint64_t word, const struct layout_params *to);

#endif
