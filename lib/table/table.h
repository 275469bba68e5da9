/*
 * table: the open-addressed table of funnels: where a key's slot can be, how it
 * is found, claimed, reclaimed. See table.c for the protocol and its proof.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_TABLE_H
#define SHMLIMIT_LIB_TABLE_H

#include "atomic.h"
#include "generation.h"
#include "hash.h"
#include "limiter.h"
#include "rule.h"

/*
 * A key's window: runs of WINDOW_RUN lines from two homes, looked at in turn
 * (first home, second home, first + 1, second + 1, ...). Keys never move, so
 * the window decides how full the table can get: see survey() in table.c.
 */
#define WINDOW_RUN 4u
#define WINDOW_LINES (2 * WINDOW_RUN)

/*
 * Slots of a probe window that protected rules keep from others, half of it: see pick_victim() in
 * table.c.
 */
#define PROTECTED_MAX (WINDOW_LINES * SLOTS_PER_LINE / 2)

/* What a caller wants found or claimed. */
struct table_key {
	uint64_t hash;
	uint64_t tag;   /* committed, of the rule's version that the caller knows */
	uint64_t plain; /* the same of version 0: see tag_plain() */
};

static inline struct table_key table_key(uint64_t hash, uint32_t rule, uint64_t version)
{
	return (struct table_key){ hash, tag_pack(hash, rule, version), tag_pack(hash, rule, 0) };
}

/* Where in the segment a key's slot may be. */
struct table_window {
	uint64_t home[2]; /* line numbers */
};

/*
 * The fingerprint is the low 48 bits, the lowest set; the homes depend on all 64, each in
 * another way: the first through the high bits of the hash, the second through
 * the high bits of a product that the top 16 bits of the hash reach last. Two
 * keys with one fingerprint are taken for one only where their windows meet.
 */
static inline struct table_window table_window(const struct table *t, uint64_t hash)
{
	struct table_window window;

	window.home[0] = (uint64_t)((unsigned __int128)hash * t->lines >> 64);
	window.home[1] = (uint64_t)((unsigned __int128)(hash * 0x9e3779b97f4a7c15u) * t->lines >> 64);
	return window;
}

/* The i-th line of a window, 0 <= i < WINDOW_LINES. */
static inline struct layout_slot *table_line(const struct table *t, struct table_window window, unsigned i)
{
	uint64_t line = window.home[i % 2] + i / 2;

	if (i >= 2 && line >= t->lines) /* the homes themselves are in range */
		line -= t->lines;
	return t->slots + line * SLOTS_PER_LINE;
}

/* The rare rest of table_find(): every line but the first. */
struct layout_slot *table_search(const struct table *t, uint64_t hash, uint64_t tag);

/*
 * The committed slot of a key, or NULL. WHY NOT of a probe window: its second home, which is seldom
 * looked at, would be worked out for each decision.
 */
static inline struct layout_slot *table_find(const struct table *t, uint64_t hash, uint64_t tag)
{
	struct layout_slot *slot = table_line(t, table_window(t, hash), 0);

	for (unsigned i = 0; i < SLOTS_PER_LINE; i++)
		if (load_relaxed(&slot[i].tag) == tag)
			return &slot[i];
	return table_search(t, hash, tag);
}

/* How an attempt to claim a slot ended. */
enum claim {
	CLAIM_DONE,    /* the slot is the key's */
	CLAIM_FOUND,   /* another process committed the key, or changed the rule: look again */
	CLAIM_LOST,    /* a compare-and-swap failed: wait a moment, look again */
	CLAIM_NO_ROOM, /* no slot may be taken */
};

/* What claiming took the slot from. */
enum claimed_from { FROM_FREE, FROM_REFILLED, FROM_LIVE };

/* A slot as it was seen: what a compare-and-swap needs to take it. */
struct table_place {
	struct layout_slot *slot; /* NULL: none */
	struct slot_seen seen;
	enum claimed_from from;
	uint64_t room_ns; /* CLAIM_NO_ROOM: until there will be some, UINT64_MAX if unknown */
};

/* Which key a slot is claimed for, and what the claim relies on. */
struct table_claim {
	const struct table_key *key;
	const struct generation *tables;
	const struct rule_view *view;
	struct when when;
};

/*
 * Claiming in the present table, up to the last step: make or find the key's tentative slot, and be
 * sure that it may be committed. Leaves no trace but perhaps a tentative slot.
 */
enum claim table_place(const struct shmlimit *l, const struct table_claim *c, struct table_place *place);

/*
 * The last step: commit the key with this word. The word's time must have been
 * read after table_place() returned: see table.c. True if the slot is the key's.
 */
int table_commit(const struct table_place *place, uint64_t tag, uint64_t word);

/* Is this the tag of the key's committed slot, perhaps from before its rule was changed? */
int table_is_committed(const struct shmlimit *l, uint64_t tag, const struct table_key *wanted);

/*
 * Finds the committed slot of a key in a table, also from before its rule was changed. Returns
 * false, with found->slot NULL, if there is none. `but`: 0, or TAG_FROZEN, which then makes no
 * difference.
 */
int table_find_any(const struct shmlimit *l, const struct table *t, const struct table_key *key, uint64_t but,
                   struct table_slot *found);

/*
 * Does a slot of the old table, as it was seen, hold more than an empty one, by
 * the version of the rule that its tag has? A lease does not: it expires there.
 */
int table_keeps_something(const struct shmlimit *l, const struct table_slot *here, struct when when);

/*
 * Convert a slot of one of *tables, as it was seen, to the version in force. In the old table what
 * is equivalent to an empty slot becomes one. Returns 1 if nothing is left to do; 0 if the slot has
 * changed; -ENOMEM if this process has no addresses for its cells, so that another process has to
 * convert it. Where no time is given the clock is read: after the word, whose time is then not in
 * the future of it.
 */
int table_convert_slot(const struct shmlimit *l, const struct generation *tables, const struct table_slot *here,
                       struct when when);

/*
 * Walks are over the old table too, and over that first: what migrates during the walk
 * is met once at least. A carrier that read a slot there before the walk came by has
 * placed its tentative slot in the new table before the walk gets there, or
 * sees, having placed it, that the rule or the frozen slot was changed.
 *
 * Convert every slot of one rule that is from before it was changed; free what is
 * tentative of then. What is frozen stays frozen.
 */
void table_convert(const struct shmlimit *l, uint32_t rule, struct when when);

/*
 * Free every slot of one rule (or of all, rule < 0), and what is tentative there. Returns how many
 * held a funnel.
 */
uint64_t table_clear(const struct shmlimit *l, int64_t rule);

/* The same for the slots of one fingerprint under one rule. */
uint64_t table_forget_fingerprint(const struct shmlimit *l, uint32_t rule, uint64_t fingerprint);

/* Free the slots of this key, if it has any. Returns how many held a funnel. */
uint64_t table_forget(const struct shmlimit *l, const struct table_key *key);

#endif
