/*
 * states: which states of the segment have been seen: none is audited twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_STATES_H
#define TESTS_CRASH_STATES_H

#include "scene.h"

#define STATES_MAX 65536

struct states {
	uint64_t hash[2 * STATES_MAX]; /* open addressing; 0: free */
	unsigned n;
};

static inline void states_forget(struct states *states)
{
	memset(states, 0, sizeof(*states));
}

/* Where a hash stands, or would. */
static inline uint64_t *states_find(struct states *states, uint64_t hash)
{
	size_t i = hash % (2 * STATES_MAX);

	/* BOUND: half of the places are free. */
	while (states->hash[i] != 0 && states->hash[i] != hash)
		i = (i + 1) % (2 * STATES_MAX);
	return &states->hash[i];
}

/* Has the segment been as it is now? */
static inline int states_have(struct states *states)
{
	return *states_find(states, scene_hash()) != 0;
}

/* Remember how the segment is. Returns true if it has never been so. */
static inline int states_add(struct states *states)
{
	uint64_t hash = scene_hash(), *place = states_find(states, hash);

	if (*place != 0)
		return 0;
	if (++states->n == STATES_MAX)
		bail("more than %d states", STATES_MAX);
	*place = hash;
	return 1;
}

#endif
