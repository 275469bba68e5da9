/*
 * table: claiming a slot for a key that has none.
 *
 * A key's window is the same for every process, and a slot is changed only by a
 * compare-and-swap of tag and word together. Claiming is in two phases, or two
 * processes would give one key two slots:
 *
 *  1. Look at the whole window. The key committed: decide there. The key
 *     tentative: the lowest such slot is the candidate, whichever process placed it, for
 *     it carries nothing. Neither: take a slot and make it tentative, with a
 *     nonce for a word that no other claim ever used. That is the candidate.
 *  2. Look at the whole window again. The key committed, or tentative at a
 *     lower place: free the candidate, start over. Tentative at a higher
 *     place: free that one.
 *  3. Read the clock. Swap the candidate, as it was seen before step 2, for the
 *     committed slot with the first charge in it.
 *
 * Why a key never has two slots. Let P commit slot p of key K and Q commit slot q,
 * p < q, both being committed at once. Each was tentative, with one nonce,
 * from before its committer's second look until its commit. Were q tentative
 * when P's second look passed it, P would have freed it or started over, and a
 * freed nonce cannot be committed. So P passed q before q became tentative, or
 * after it was committed: the latter makes P start over. In the former p was
 * tentative before q was, and Q's second look met it, tentative or committed,
 * and Q started over. (Full fences around each swap carry "before"; tests/model
 * searches all interleavings of three processes, killed ones included.)
 *
 * Why the clock is read after step 2. Until then the key may have been in
 * another slot, have refilled and been reclaimed. A word with a time from before
 * that would refill once more what had refilled already. After step 2 no other slot
 * can become the key's unless the commit fails.
 *
 * Why a dead claimer costs nothing. What it leaves is a tentative slot; step 1
 * lets the next claimer of the key finish it and every other claimer take it.
 *
 * Why reclaiming is exact. A full funnel is equivalent to an empty slot. It is taken by
 * swapping exactly the word that was seen full, and a funnel that was full
 * stays full until a caller takes from it, which changes the state word.
 *
 * What is not promised: two claims of different keys that find nothing but each
 * other's tentative slots may take them to and fro. Back-off ends it, and
 * slowly.c's bound on rounds in any case.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "table.h"
#include "algorithm.h"
#include "cells.h"
#include "clock.h"
#include "counter.h"
#include "probe.h"
#include "sweep.h"

struct layout_slot *table_search(const struct table *t, uint64_t hash, uint64_t tag)
{
	struct table_window window = table_window(t, hash);

	for (unsigned i = 1; i < WINDOW_LINES; i++) {
		struct layout_slot *slot = table_line(t, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++)
			if (load_relaxed(&slot[j].tag) == tag)
				return &slot[j];
	}
	return NULL;
}

/* Is it a tag of the key's, whatever its flags? */
static int is_of(const struct shmlimit *l, uint64_t tag, const struct table_key *key)
{
	return tag_same_key(rule_plain(l, tag), key->plain);
}

int table_is_committed(const struct shmlimit *l, uint64_t tag, const struct table_key *wanted)
{
	struct rule_view ignored;

	return tag == wanted->tag || (is_of(l, tag, wanted) && rule_load_tag(l, tag, &ignored) == 0);
}

/* What the first look found. */
struct survey {
	int look_again;               /* the key has a slot, or may have one in a larger table */
	struct table_place candidate; /* the key's lowest tentative slot */
	struct table_place free;      /* the best of the free slots */
	struct table_place refilled;  /* the refilled slot that has been idle longest */
	uint64_t idle_ns;             /* ... which is that long */
	struct table_place abandoned; /* another key's tentative slot */
	struct survey_live {
		/* that hold more than none; one that the probe window has twice counts twice */
		unsigned slots;
		struct table_place victim; /* of those, the one that will be full again soonest */
		uint64_t victim_ns;        /* ... which is then */
	} live[2];                         /* of ordinary rules, of protected rules */
};

/* The parameters of the slot last looked at: neighbours are often of one rule. */
struct survey_rule {
	uint64_t tag; /* rule and flags; UINT64_MAX: none */
	int error;
	struct rule_view view;
	struct funnel_time at;
};

/*
 * Nanoseconds until another key's committed slot may be taken for nothing: 0
 * when its funnel is full, or is of a rule that is gone. Then *idle_ns is how
 * long ago the key was last granted something.
 */
static uint64_t survey_wait(const struct shmlimit *l, const struct table *t, const struct table_place *here,
                            struct when when, struct survey_rule *rule, uint64_t *idle_ns)
{
	uint64_t params = here->seen.tag & (((uint64_t)1 << TAG_FINGERPRINT_SHIFT) - 1), wait_ns;
	struct look k;

	/*
	 * They must be in force when, or after, the slot was seen: the two bits of a version mean
	 * another one four changes later, and a claimer that was stopped in between would take a
	 * live funnel for a full one.
	 */
	if (rule->tag != params || rule->error != 0 || !rule_holds(l, tag_rule(params), &rule->view)) {
		rule->tag = params;
		rule->error = rule_load_tag(l, params, &rule->view);
		if (rule->error == 0)
			rule->at = funnel_time(&rule->view.params, when.ns);
	}
	*idle_ns = UINT64_MAX;
	if (rule->error != 0)
		return 0;
	k = (struct look){ l, t, here->slot, &rule->view.params, rule->at, when.given };
	wait_ns = algorithm_wait(&k, here->seen.word);
	if (wait_ns == 0)
		*idle_ns = algorithm_of(k.params)->idle_ns(&k, here->seen.word);
	return wait_ns;
}

static void survey_live(struct survey_live *live, const struct table_place *here, uint64_t wait_ns)
{
	live->slots++;
	if (wait_ns < live->victim_ns) {
		live->victim = *here;
		live->victim_ns = wait_ns;
	}
}

/*
 * Step 1's look. Of the free slots the choice is the first line of the first
 * home while that has two or more, so that most keys are found by one look at
 * one line; else the line of the window that has most. (Simulated over 2^16
 * lines: no key in 10^5 without a slot at a load of 0.8, 0.08 % at 0.9; in
 * window order it would be 0.08 % and 0.7 %.)
 *
 * Where no slot is free, the refilled one that has been idle longest is taken.
 * WHY NOT any refilled slot, or the first: keys that are well within their
 * limits are full again soon after each request. They would take each other's
 * slots, and 70 % of their decisions would be claims at a load of 0.8, at four
 * times the cost (bench/keys).
 */
static void survey(const struct shmlimit *l, const struct table_claim *c, struct survey *out)
{
	const struct table *t = &c->tables->now;
	struct table_window window = table_window(t, c->key->hash);
	struct survey_rule rule = { .tag = UINT64_MAX };
	unsigned best = 0;

	*out = (struct survey){ .live = { { .victim_ns = UINT64_MAX }, { .victim_ns = UINT64_MAX } } };
	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(t, window, i);
		struct table_place first = { NULL, { 0, 0 }, FROM_FREE, 0 };
		unsigned room = 0;

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			struct table_place here = { &line[j], slot_read(&line[j]), FROM_FREE, 0 };

			if (table_is_committed(l, here.seen.tag, c->key) ||
			    ((here.seen.tag & TAG_FROZEN) != 0 && !generation_holds(l, c->tables))) {
				out->look_again = 1;
				return;
			}
			if (here.seen.tag == (c->key->tag | TAG_TENTATIVE)) {
				if (out->candidate.slot == NULL || here.slot < out->candidate.slot)
					out->candidate = here;
				continue;
			}
			if (here.seen.tag & TAG_TENTATIVE) {
				out->abandoned = here;
				continue;
			}
			if (here.seen.tag != 0) {
				uint64_t idle_ns, wait_ns = survey_wait(l, t, &here, c->when, &rule, &idle_ns);

				here.from = wait_ns == 0 ? FROM_REFILLED : FROM_LIVE;
				if (wait_ns == 0 && (out->refilled.slot == NULL || idle_ns > out->idle_ns)) {
					out->refilled = here;
					out->idle_ns = idle_ns;
				} else if (wait_ns != 0) {
					survey_live(&out->live[params_is_protected(&rule.view.params)], &here, wait_ns);
				}
				continue;
			}
			if (room++ == 0)
				first = here;
		}
		/*
		 * The first line wins outright with two places, later ones only by having more than
		 * any before.
		 */
		if (room > best) {
			out->free = first;
			best = i == 0 && room >= 2 ? SLOTS_PER_LINE : room;
		}
	}
}

static void give_up(const struct table_place *place)
{
	/* Ignoring failure: then another process freed or took it. */
	(void)slot_cas(place->slot, place->seen, 0, 0);
}

/*
 * Step 2's look. True if the candidate may be committed; else it was freed, unless another process
 * took it.
 */
static int uncontested(const struct shmlimit *l, const struct table_claim *c, const struct table_place *candidate)
{
	const struct table_key *wanted = c->key;
	const struct table *t = &c->tables->now;
	struct table_window window = table_window(t, wanted->hash);

	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(t, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			struct table_place here = { &line[j], slot_read(&line[j]), FROM_FREE, 0 };

			/*
			 * What is frozen is damage, or of a table that is the present one no more:
			 * that is asked in the end.
			 */
			if (here.slot == candidate->slot || !is_of(l, here.seen.tag, wanted) ||
			    (here.seen.tag & TAG_FROZEN) != 0)
				continue;
			if (table_is_committed(l, here.seen.tag, wanted) ||
			    (here.seen.tag == (wanted->tag | TAG_TENTATIVE) && here.slot < candidate->slot)) {
				give_up(candidate);
				return 0;
			}
			/*
			 * At a higher place, or of a version that is not in force any more or was
			 * not when we began.
			 */
			/*
			 * I3. ORDER this look is after the swap that placed the candidate: Dekker's
			 * pattern, see atomic.h.
			 */
			if ((here.seen.tag & TAG_TENTATIVE) && !slot_cas(here.slot, here.seen, 0, 0))
				return 0;
		}
	}
	return 1;
}

/*
 * The live slot that a new key takes where no other may be taken (on_full = evict). Up to
 * PROTECTED_MAX protected slots of a probe window, half of it, are kept from ordinary keys; beyond
 * that they count as ordinary ones. The number is that of this look: no count is kept.
 *
 *  - An ordinary key takes a protected slot only while more than half of its probe window is
 *    protected.
 *  - A protected key takes an ordinary slot only while less than half is: so protected keys evict
 *    ordinary ones from one half at most. (Claims at the same moment do not see each other: each
 *    may take one more.)
 *  - There is always one to take: with nothing free, refilled or tentative all slots are live, and
 *    so at least half of them ordinary, or at least half protected.
 */
static struct table_place *pick_victim(struct survey *found, int is_protected)
{
	struct survey_live *ordinary = &found->live[0], *protected = &found->live[1];

	if (protected->slots + (unsigned)is_protected <= PROTECTED_MAX)
		return &ordinary->victim;
	return is_protected || protected->victim_ns < ordinary->victim_ns ? &protected->victim : &ordinary->victim;
}

/* INVARIANT I7: what is committed has its cells. Returns 0 where there is no memory for them. */
static int reserve_cells(const struct shmlimit *l, const struct table_claim *c, const struct layout_slot *slot)
{
	return algorithm_of(&c->view->params)->cells == NULL ||
	       cells_reserve(l, &c->tables->now, slot, &c->view->params);
}

/* Make some slot tentative for the key. Returns CLAIM_DONE, CLAIM_LOST or CLAIM_NO_ROOM. */
static enum claim place_candidate(const struct shmlimit *l, const struct table_claim *c, struct survey *found)
{
	struct table_place *place = &found->free;
	struct slot_seen mine = { c->key->tag | TAG_TENTATIVE, 0 };

	if (place->slot == NULL)
		place = &found->refilled;
	if (place->slot == NULL)
		place = &found->abandoned;
	if (place->slot == NULL && l->on_full == SHMLIMIT_FULL_EVICT)
		place = pick_victim(found, params_is_protected(&c->view->params));
	/* Before another key loses it. */
	if (place->slot == NULL || !reserve_cells(l, c, place->slot))
		return CLAIM_NO_ROOM;
	mine.word = counter_nonce(l, c->when.ns);
	/*
	 * I3. ORDER a full fence: the second look of this process comes after it, and sees what
	 * others placed before.
	 */
	if (!slot_cas(place->slot, place->seen, mine.tag, mine.word))
		return CLAIM_LOST;
	if (place->from == FROM_LIVE)
		PROBE(evict, tag_rule(place->seen.tag), tag_fingerprint(rule_plain(l, place->seen.tag)),
		      tag_fingerprint(c->key->plain));
	found->candidate = *place;
	found->candidate.seen = mine;
	return CLAIM_DONE;
}

enum claim table_place(const struct shmlimit *l, const struct table_claim *c, struct table_place *place)
{
	struct survey found;

	survey(l, c, &found);
	place->from = FROM_FREE;
	place->room_ns =
		found.live[0].victim_ns < found.live[1].victim_ns ? found.live[0].victim_ns : found.live[1].victim_ns;
	if (found.look_again)
		return CLAIM_FOUND;
	if (found.candidate.slot == NULL) {
		enum claim placed = place_candidate(l, c, &found);

		if (placed != CLAIM_DONE)
			return placed;
	} else if (!reserve_cells(l, c, found.candidate.slot)) {
		return CLAIM_NO_ROOM;
	}
	*place = found.candidate;
	if (!uncontested(l, c, place))
		return CLAIM_LOST;
	/*
	 * A rule that was changed since gets no slot of the old version: the writer's walk may have
	 * passed here. Nor does a key get one in a table that a larger one follows by now.
	 */
	/*
	 * I3. ORDER after the swap that placed the candidate, as the writer's walk after its
	 * publish().
	 */
	if (!rule_holds(l, tag_rule(c->key->tag), c->view) || !generation_holds(l, c->tables)) {
		give_up(place);
		return CLAIM_FOUND;
	}
	return CLAIM_DONE;
}

int table_commit(const struct table_place *place, uint64_t tag, uint64_t word)
{
	/*
	 * The linearization point of a claim (I1, I3, I4). ORDER pairs with slot_cas() of the other
	 * processes.
	 */
	return slot_cas(place->slot, place->seen, tag, word);
}

int table_keeps_something(const struct shmlimit *l, const struct table_slot *here, struct when when)
{
	struct rule_view view;
	struct look k;

	if (rule_load_tag(l, here->seen.tag & ~TAG_FROZEN, &view) != 0 || algorithm_of(&view.params)->stays)
		return 0;
	k = look_make(l, here->t, here->slot, &view.params, when_again(l, when));
	return sweep_wait(&k, here->seen.word) != 0;
}

int table_convert_slot(const struct shmlimit *l, const struct generation *tables, const struct table_slot *here,
                       struct when when)
{
	struct when at = when_again(l, when);
	struct slot_seen seen = here->seen, mine;
	struct rule_view now, then;
	const struct algorithm *a;
	struct look k, to;

	if (rule_load(l, tag_rule(seen.tag), &now) != 0)
		return 1;
	if ((seen.tag & TAG_VERSION) == (rule_version(&now) & TAG_VERSION))
		return 1;
	/* Tentative, or another rule's: nothing to keep. */
	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &then) != 0)
		return slot_cas(here->slot, seen, seen.tag & TAG_FROZEN, 0);
	if (then.published != now.published)
		return 0;
	/*
	 * I3. Under the new parameters it would say something again, while its key may be in the
	 * new table: see migrate.h.
	 */
	if (here->t == &tables->old && !table_keeps_something(l, here, when))
		return slot_cas(here->slot, seen, seen.tag & TAG_FROZEN, 0);
	k = look_make(l, here->t, here->slot, &then.params, when_given(at.ns));
	mine.tag = tag_plain(seen.tag, rule_version(&now)) ^ tag_of_version(rule_version(&now));
	to = look_make(l, here->t, here->slot, &now.params, at);
	a = algorithm_of(&now.params);
	if (algorithm_keeps_cells(a, &then.params, &now.params))
		mine.word = algorithm_convert(&k, seen.word, &now.params);
	else if (ring_cells(&k) == NULL || ring_cells(&to) == NULL)
		return -ENOMEM;
	else if (!cells_reserve(l, here->t, here->slot, &now.params))
		/* No memory: the key has no slot, as if it were new. */
		return slot_cas(here->slot, seen, seen.tag & TAG_FROZEN, 0);
	else if (!a->cells->migrate(&k, seen.word, &to, seen, &mine.word))
		return 0;
	/*
	 * I1. ORDER pairs with slot_cas() of a decision, which fails where the word was converted
	 * before it.
	 */
	if (!slot_cas(here->slot, seen, mine.tag, mine.word))
		return 0;
	algorithm_converted(a, &to, mine);
	return 1;
}

int table_find_any(const struct shmlimit *l, const struct table *t, const struct table_key *key, uint64_t but,
                   struct table_slot *found)
{
	struct table_window window = table_window(t, key->hash);

	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(t, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			*found = (struct table_slot){ t, &line[j], slot_read(&line[j]) };
			if (table_is_committed(l, found->seen.tag & ~but, key))
				return 1;
		}
	}
	found->slot = NULL;
	return 0;
}

static void convert_all(const struct shmlimit *l, const struct generation *tables, const struct table *t, uint32_t rule,
                        struct when when)
{
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		/* BOUND: each round but the last means that another process changed the slot. */
		for (int round = 0; round < RULE_RETRIES; round++) {
			struct table_slot here = { t, &t->slots[i], slot_read(&t->slots[i]) };

			if ((here.seen.tag & ~TAG_FROZEN) == 0 || tag_rule(here.seen.tag) != rule ||
			    table_convert_slot(l, tables, &here, when))
				break;
		}
	}
}

void table_convert(const struct shmlimit *l, uint32_t rule, struct when when)
{
	struct generation tables;

	generation_read(l, &tables);
	convert_all(l, &tables, &tables.old, rule, when);
	convert_all(l, &tables, &tables.now, rule, when);
}
