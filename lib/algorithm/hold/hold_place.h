/*
 * hold_place: a place as it is in shared memory: value and owner. See hold.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_HOLD_PLACE_H
#define SHMLIMIT_LIB_HOLD_PLACE_H

#include "atomic.h"
#include "hold.h"
#include "registry.h"

struct hold_pair {
	uint64_t value, owner;
};

/*
 * A place that lasts, and whose time is over, may be free at any time. A denied caller asks again
 * after this, or after a period if that is shorter.
 */
#define HOLD_LASTS_NS ((uint64_t)1000000000)

static inline uint64_t hold_soon_ns(const struct layout_params *params)
{
	return params->back < HOLD_LASTS_NS ? params->back : HOLD_LASTS_NS;
}

/* The halves may be of two moments. A swap proves that they belonged together. */
static inline struct hold_pair hold_place_read(const uint64_t *cells, uint64_t i)
{
	uint64_t value = load_acquire(&cells[2 * i]);

	return (struct hold_pair){ value, load_acquire(&cells[2 * i + 1]) };
}

static inline int hold_place_cas(uint64_t *cells, uint64_t i, struct hold_pair old, struct hold_pair new)
{
	return pair_cas(&cells[2 * i], (uint64_t[2]){ old.value, old.owner }, (uint64_t[2]){ new.value, new.owner });
}

/* Leave it. */
static inline int hold_place_end(uint64_t *cells, uint64_t i, struct hold_pair old)
{
	return hold_place_cas(cells, i, old, (struct hold_pair){ hold_without(old.value), old.owner });
}

/*
 * Is place i held as long as its holder lives? WHY NOT beyond reach: what an eviction or a reset
 * left there, of a claim that is alike, would be missing for as long.
 */
static inline int hold_place_lasts(uint64_t flags, struct hold_pair pair, uint64_t i, uint64_t word)
{
	return registry_is_number(pair.owner) && i < hold_reach(word, UINT64_MAX) &&
	       (flags & SHMLIMIT_RULE_CUT_OFF) == 0;
}

/*
 * Is a place that is not in force what an entry tried that may still make it valid, and lasting?
 * See hold.h, step 9. WHY NOT by its end, too: it was read by a later clock than the request's.
 */
static inline int hold_place_is_tried(struct hold_pair pair, uint64_t i, uint64_t word)
{
	return hold_is_of(pair.value, word) && registry_is_number(pair.owner) && i >= hold_reach(word, UINT64_MAX);
}

/* Is it in force, as far as is known without asking about its holder? */
static inline int hold_place_is_held(const struct layout_params *params, struct hold_pair pair, uint64_t i,
                                     uint64_t word, uint64_t now_ns)
{
	return hold_is_of(pair.value, word) &&
	       (hold_end(pair.value, now_ns) > 0 || hold_place_lasts(params->flags, pair, i, word));
}

/* How long from now, as hold_left_ns(). */
static inline uint64_t hold_place_left_ns(const struct layout_params *params, struct hold_pair pair, uint64_t i,
                                          uint64_t word, uint64_t now_ns)
{
	uint64_t left_ns = hold_left_ns(params, pair.value, word, now_ns);

	if (left_ns != 0 || !hold_place_is_held(params, pair, i, word, now_ns))
		return left_ns;
	return hold_soon_ns(params);
}

#endif
