/*
 * migrate: see migrate.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"
#include "migrate.h"
#include "clock.h"

int migrate_freeze_slot(struct layout_slot *slot, struct slot_seen *seen)
{
	/* BOUND: each round but the last means that another process changed the slot. */
	for (int round = 0; round < RULE_RETRIES; round++) {
		*seen = slot_read(slot);
		if ((seen->tag & TAG_FROZEN) != 0)
			return 1;
		/*
		 * I3. ORDER pairs with slot_cas() of a decision or claim in the old table, which
		 * fails from now on.
		 */
		if (slot_cas(slot, *seen, seen->tag | TAG_FROZEN, seen->word)) {
			seen->tag |= TAG_FROZEN;
			return 1;
		}
	}
	return 0;
}

int migrate_freeze(const struct shmlimit *l, const struct table *old, const struct table_key *key,
                   struct table_place *from)
{
	struct table_window window = table_window(old, key->hash);

	*from = (struct table_place){ NULL, { 0, 0 }, FROM_FREE, 0 };
	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(old, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			struct slot_seen seen;

			if (!migrate_freeze_slot(&line[j], &seen))
				return 0;
			if (table_is_committed(l, seen.tag & ~TAG_FROZEN, key)) {
				from->slot = &line[j];
				from->seen = seen;
			}
		}
	}
	return 1;
}

int migrate_bury_place(const struct table_place *from)
{
	return slot_cas(from->slot, from->seen, TAG_FROZEN, 0);
}

enum claim migrate_key(const struct shmlimit *l, const struct table_claim *c, const struct table_place *from,
                       struct table_place *to)
{
	const struct algorithm *a = algorithm_of(&c->view->params);
	uint64_t word = from->seen.word;
	enum claim ended = table_place(l, c, to);
	struct look k, there;

	if (ended != CLAIM_DONE)
		return ended;
	k = look_make(l, &c->tables->old, from->slot, &c->view->params, when_again(l, c->when));
	if (algorithm_wait(&k, word) == 0) {
		(void)migrate_bury_place(from);
		(void)slot_cas(to->slot, to->seen, 0, 0);
		return CLAIM_FOUND;
	}
	there = k;
	there.t = &c->tables->now;
	there.slot = to->slot;
	if (a->cells != NULL && !a->cells->migrate(&k, word, &there, to->seen, &word))
		return CLAIM_LOST;
	/*
	 * After placing, after reading cells: a reset, a writer or another carrier may have been
	 * here.
	 */
	/* ORDER pairs with slot_cas() of a walk over the old table. */
	if (!slot_unchanged(from->slot, from->seen)) {
		(void)slot_cas(to->slot, to->seen, 0, 0);
		return CLAIM_FOUND;
	}
	/*
	 * I1, I3. If this process is killed before it buries, the word may be carried twice, which
	 * grants nothing.
	 */
	if (!table_commit(to, c->key->tag, word))
		return CLAIM_LOST;
	/* It fails where a rule's writer converted the word in between. */
	if (!migrate_bury_place(from))
		migrate_bury(l, &c->tables->old, c->key);
	return CLAIM_DONE;
}

void migrate_bury(const struct shmlimit *l, const struct table *old, const struct table_key *key)
{
	struct table_slot from;

	/* BOUND: a second round means that a writer converted it in between. */
	for (int round = 0; round < RULE_RETRIES; round++)
		if (!table_find_any(l, old, key, TAG_FROZEN, &from) || slot_cas(from.slot, from.seen, TAG_FROZEN, 0))
			return;
}
