/*
 * pause: a key of which nothing passes until a time, by a pause from outside.
 *
 * A pause stands beside the key's state, as a count of a protected COUNTER rule, PAUSE_RULE, that
 * lives until the pause ends: its key is the rule's name and the key. So it grows, migrates, is
 * saved and is swept as any count. WHY NOT in the key's own word: it has no bit for it, and a time
 * that is further ahead than its rule can mean is a clock that stepped back.
 *
 * A rule with paused keys has a mark in `published`, which each decision reads: the end of the last
 * pause, in units of 2^30 ns, modulo 2^28, rounded up. While the mark is set no first try decides,
 * and decide_slowly() looks for the key's pause. The first that finds all pauses over removes it.
 * A word that is not 0 and was read before is of one end only, so a swap that comes late fails if
 * a later pause has begun: that ends later.
 *
 * 1. pause_mark(): the mark is at least the end of this pause.
 * 2. The count begins: the linearization point. Killed before, nothing is paused.
 * 3. pause_mark() again: if the rule has changed since 1, both begin again for its new version.
 *
 * Any process that reads `published` after 2 finds the count. One that read it before 1, and asked
 * rule_holds() before 1, may pass once: it was on its way when the pause began.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_PAUSE_H
#define SHMLIMIT_LIB_PAUSE_H

#include "key_bytes.h"
#include "rule.h"

#define PAUSE_RULE "~pause"

/* The longest: how long a count lives at most, where its rule does not say. */
#define PAUSE_MAX_NS (366 * UINT64_C(86400000000000))

#define PAUSED_UNIT_BITS 30
#define PAUSED_SHIFT 3

/* What `published` says of pauses that end at end_ns or before: not 0. */
static inline uint64_t paused_until(uint64_t end_ns)
{
	/* One unit more than to round up: a count's end is rounded up, too. */
	uint64_t paused = ((end_ns >> PAUSED_UNIT_BITS) + 2) << PAUSED_SHIFT & PUBLISHED_PAUSED;

	return paused != 0 ? paused : (uint64_t)1 << PAUSED_SHIFT;
}

/* How far ahead of now that is; 0: over, or none. Half of the range is the past. */
static inline uint64_t paused_ahead(uint64_t paused, uint64_t now_ns)
{
	uint64_t ahead = (paused - (now_ns >> PAUSED_UNIT_BITS << PAUSED_SHIFT)) & PUBLISHED_PAUSED;

	return paused != 0 && ahead <= PUBLISHED_PAUSED / 2 ? ahead : 0;
}

static inline int paused_is_over(uint64_t paused, uint64_t now_ns)
{
	return paused_ahead(paused, now_ns) == 0;
}

/* The key of a key's pause. */
struct pause_key {
	size_t len;
	char bytes[SHMLIMIT_RULE_NAME_MAX + 1 + SHMLIMIT_KEY_MAX];
};

/* Returns false where `published` is no longer what the rule's record says. */
int pause_key_make(const struct shmlimit *l, uint32_t rule, uint64_t published, struct key_bytes key,
                   struct pause_key *out);

/*
 * Mark the rule, whose `published` was this when its name was read, as one with a pause until
 * end_ns. Returns false where it is another version.
 */
int pause_mark(const struct shmlimit *l, uint32_t rule, uint64_t published, uint64_t end_ns, uint64_t now_ns);

/* What `published` is to say, so that all pauses that there are, of whatever rule, are in force. */
uint64_t pause_last(const struct shmlimit *l, uint64_t now_ns);

/* Say so of each rule, in a segment that has no other process yet. */
void pause_resume(const struct shmlimit *l, uint64_t now_ns);

#endif
