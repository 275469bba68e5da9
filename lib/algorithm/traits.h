/*
 * traits: what the reader of limits, the gate and the command ask of an algorithm: its name, what
 * its rules are set with, and how its limits are written. They are words and numbers, and depend on
 * nothing else: so programs beside the library can have a copy.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_TRAITS_H
#define SHMLIMIT_LIB_TRAITS_H

#include "shmlimit.h"

/* What a rule is set with, besides its mode. */
enum {
	SETS_CAPACITY = 1 << 0, /* the capacity of others follows from the rest */
	SETS_RATE = 1 << 1,
	SETS_PERIOD = 1 << 2, /* without a rate: nothing comes back, what there is ends after a period */
	SETS_MAX_WAIT = 1 << 3,
	SETS_NEXT_PAYS = 1 << 4,
	SETS_CREDIT = 1 << 5,
	SETS_WARMUP = 1 << 6, /* and the cold factor */
	SETS_COUNT_REFUSED = 1 << 7,
	SETS_CUT_OFF = 1 << 8,
	SETS_LAW = 1 << 9, /* and the least number */
	SETS_ZONE = 1 << 10,
};

struct traits {
	const char *name;  /* the word for it */
	const char *alias; /* another one that is read, or NULL */
	unsigned sets;     /* SETS_CAPACITY ... */
	const char *needs; /* what a new rule must be given, or NULL: a rate */
	const char *range; /* what its rules can say, or NULL: see shmlimit_rule_capacity_max() */

	/* How its limits are written. */
	int is_places;     /* "20 at once": what is taken is held until it is left */
	int is_window;     /* "5/minute window": its limits are strict */
	int strict_halves; /* a strict limit is half of its count as burst, and half as rate */

	int counts_capacity; /* a rule's count is the capacity, or left out */
	int is_shared;       /* its tokens are those of a backend, for all hosts */
	int takes_limits;    /* a request may have a limit of its own; a rule may have none */
	int takes_times;     /* a request may have a time, but no limit, of its own */
	int is_billed;       /* it can be charged afterwards with what a request has cost */
	int in_gate;         /* a limit of the gate can name it */
};

/* How many there are. */
enum {
#define ALGORITHM(number, name) ALGORITHM_OF_##name,
#include "list.h"
	ALGORITHMS
};

#define ALGORITHM(number, name) extern const struct traits traits_##name;
#include "list.h"

/* Those of a number in shmlimit.h. A number of none is taken for FUNNEL. */
const struct traits *traits_of(uint32_t algorithm);

/* Finds an algorithm by its name or alias: fills *algorithm, and returns true if there is one. */
int traits_find(const char *name, uint32_t *algorithm);

/* Is the capacity apart from the rate? Then it is the burst. */
static inline int traits_has_burst(const struct traits *t)
{
	return (t->sets & (SETS_CAPACITY | SETS_RATE)) == (SETS_CAPACITY | SETS_RATE);
}

#endif
