/*
 * table_clear: freeing the slots of a rule, a fingerprint or a key while other processes use them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "table.h"

/* Is a slot of this rule (of any, rule < 0), and of this fingerprint (of any: 0)? */
static int is_meant(const struct shmlimit *l, uint64_t tag, int64_t rule, uint64_t fingerprint)
{
	return rule < 0 ||
	       (tag_rule(tag) == rule && (fingerprint == 0 || tag_fingerprint(rule_plain(l, tag)) == fingerprint));
}

/* Free those slots. Returns how many of them were committed. */
static uint64_t clear_all(const struct shmlimit *l, const struct table *t, int64_t rule, uint64_t fingerprint)
{
	uint64_t keys = 0;

	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		struct layout_slot *slot = &t->slots[i];
		struct slot_seen seen = slot_read(slot);

		/* BOUND: each round but the last means that another process changed the slot. */
		for (int round = 0; round < RULE_RETRIES; round++) {
			if ((seen.tag & ~TAG_FROZEN) == 0 || !is_meant(l, seen.tag, rule, fingerprint))
				break;
			if (slot_cas(slot, seen, seen.tag & TAG_FROZEN, 0)) {
				keys += (seen.tag & TAG_TENTATIVE) == 0;
				break;
			}
			seen = slot_read(slot);
		}
	}
	return keys;
}

/* In both tables. */
static uint64_t clear(const struct shmlimit *l, int64_t rule, uint64_t fingerprint)
{
	struct generation tables;
	uint64_t keys = 0;

	/*
	 * BOUND: a second round means that the table grew or was left in between: a reset may do so
	 * without the lock.
	 */
	for (int round = 0; round < RULE_RETRIES; round++) {
		generation_read(l, &tables);
		keys += clear_all(l, &tables.old, rule, fingerprint);
		keys += clear_all(l, &tables.now, rule, fingerprint);
		if (generation_holds(l, &tables))
			break;
	}
	return keys;
}

uint64_t table_clear(const struct shmlimit *l, int64_t rule)
{
	return clear(l, rule, 0);
}

uint64_t table_forget_fingerprint(const struct shmlimit *l, uint32_t rule, uint64_t fingerprint)
{
	return clear(l, rule, fingerprint);
}

/*
 * Free what is the key's in a table, `tentative` too: a word that is being carried. Returns how
 * many were committed.
 */
static uint64_t forget_in(const struct shmlimit *l, const struct table *t, const struct table_key *key, int tentative)
{
	struct table_window window = table_window(t, key->hash);
	uint64_t keys = 0;

	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(t, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			/*
			 * BOUND: each round but the last means that another process changed the
			 * slot.
			 */
			for (int round = 0; round < RULE_RETRIES; round++) {
				struct slot_seen seen = slot_read(&line[j]);
				uint64_t frozen = seen.tag & TAG_FROZEN;

				if (!table_is_committed(l, seen.tag & ~TAG_FROZEN, key) &&
				    !(tentative && seen.tag == (key->tag | TAG_TENTATIVE)))
					break;
				if (slot_cas(&line[j], seen, frozen, 0)) {
					keys += (seen.tag & TAG_TENTATIVE) == 0;
					break;
				}
			}
		}
	}
	return keys;
}

uint64_t table_forget(const struct shmlimit *l, const struct table_key *key)
{
	struct generation tables;
	uint64_t keys = 0;

	/* BOUND: a second round means that the table grew or was left in between. */
	for (int round = 0; round < RULE_RETRIES; round++) {
		generation_read(l, &tables);
		if (tables.old.slots != NULL)
			keys += forget_in(l, &tables.old, key, 0);
		keys += forget_in(l, &tables.now, key, tables.old.slots != NULL);
		if (generation_holds(l, &tables))
			break;
	}
	return keys;
}
