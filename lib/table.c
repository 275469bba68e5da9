/*
 * table: claiming a slot for a key that has none.
 *
 * A key's window is the same for everybody, and a slot is changed only by a
 * compare-and-swap of tag and word together. Claiming is in two phases, or two
 * processes would give one key two slots:
 *
 *  1. Look at the whole window. The key committed: decide there. The key
 *     tentative: the lowest such slot is the candidate, whoever placed it, for
 *     it carries nothing. Neither: take a slot and make it tentative, with a
 *     nonce for a word that no other claim ever used. That is the candidate.
 *  2. Look at the whole window again. The key committed, or tentative at a
 *     lower place: free the candidate, start over. Tentative at a higher
 *     place: free that one.
 *  3. Swap the candidate, as it was seen before step 2, for the committed slot
 *     with the first charge in it.
 *
 * Why there is never a twin. Let P commit slot p of key K and Q commit slot q,
 * p < q, both being committed at once. Each was tentative, with one nonce,
 * from before its committer's second look until its commit. Were q tentative
 * when P's second look passed it, P would have freed it or started over, and a
 * freed nonce cannot be committed. So P passed q before q became tentative, or
 * after it was committed: the latter makes P start over. In the former p was
 * tentative before q was, and Q's second look met it, tentative or committed,
 * and Q started over. (Full fences around each swap carry "before"; tests/model
 * searches all interleavings of three processes, killed ones included.)
 *
 * Why a dead claimer costs nothing. What he leaves is a tentative slot; step 1
 * lets the next claimer of the key finish it and everybody else take it.
 *
 * Why reclaiming is exact. A full funnel says the same as none. It is taken by
 * swapping exactly the word that was seen full, and a funnel that was full
 * stays full until somebody takes from it, which changes the word.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "table.h"
#include "counter.h"
#include "funnel.h"

struct layout_slot *table_search(const struct shmlimit *l, struct table_window window, uint64_t tag)
{
	for (unsigned i = 1; i < WINDOW_LINES; i++) {
		struct layout_slot *slot = table_line(l, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++)
			if (load_relaxed(&slot[j].tag) == tag)
				return &slot[j];
	}
	return NULL;
}

/* A slot as it was seen: what a compare-and-swap needs to take it. */
struct place {
	struct layout_slot *slot;         /* NULL: none */
	struct slot_seen seen;
	enum claimed_from from;
};

/* What the first look found. */
struct survey {
	int committed;                    /* the key has a slot */
	struct place candidate;           /* the key's lowest tentative slot */
	struct place free;                /* the best of those that may be taken for nothing */
	struct place abandoned;           /* another key's tentative slot */
	struct place victim;              /* the live slot that will be full again soonest */
	uint64_t victim_ns;               /* ... which is then */
};

/* The rule of the slot last looked at: neighbours are often of one rule. */
struct survey_rule {
	int64_t id;                       /* -1: none */
	int error;
	struct rule_view view;
	struct funnel_time at;
};

/*
 * Nanoseconds until another key's committed slot may be taken for nothing: 0
 * when its funnel is full, or is of a rule that is gone.
 */
static uint64_t survey_wait(const struct shmlimit *l, struct slot_seen seen, uint64_t now_ns,
                            struct survey_rule *rule)
{
	uint32_t id = tag_rule(seen.tag);

	if (rule->id != id) {
		rule->id = id;
		rule->error = rule_load(l, id, &rule->view, 1);
		if (rule->error == 0)
			rule->at = funnel_time(&rule->view.terms, now_ns);
	}
	if (rule->error != 0 || (seen.tag & TAG_FLAGS) != (rule_version(&rule->view) & TAG_VERSION))
		return 0;
	return funnel_ns_until(&rule->view.terms, funnel_leak(&rule->view.terms, seen.word, rule->at),
	                       rule->view.terms.capacity, rule->at);
}

/*
 * Step 1's look. Of the slots that are free for the taking the choice is the
 * first line of the first home while that has two or more, so that most keys
 * are found by one look at one line; else whatever line of the window has
 * most. (Simulated over 2^16 lines: no key in 10^5 without a slot at a load of
 * 0.8, 0.08 % at 0.9; in window order it would be 0.08 % and 0.7 %.)
 */
static void survey(const struct shmlimit *l, struct table_window window, uint64_t wanted, uint64_t now_ns,
                   struct survey *out)
{
	struct survey_rule rule = { .id = -1 };
	unsigned best = 0;

	*out = (struct survey){ .victim_ns = UINT64_MAX };
	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(l, window, i);
		struct place first = { NULL, { 0, 0 }, FROM_FREE };
		unsigned room = 0;

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			struct place here = { &line[j], slot_read(&line[j]), FROM_FREE };

			if (here.seen.tag == wanted) {
				out->committed = 1;
				return;
			}
			if (here.seen.tag == (wanted | TAG_TENTATIVE)) {
				if (out->candidate.slot == NULL || here.slot < out->candidate.slot)
					out->candidate = here;
				continue;
			}
			if (here.seen.tag & TAG_TENTATIVE) {
				out->abandoned = here;
				continue;
			}
			if (here.seen.tag != 0) {
				uint64_t wait_ns = survey_wait(l, here.seen, now_ns, &rule);

				here.from = wait_ns == 0 ? FROM_REFILLED : FROM_LIVE;
				if (wait_ns != 0) {
					if (wait_ns < out->victim_ns) {
						out->victim = here;
						out->victim_ns = wait_ns;
					}
					continue;
				}
			}
			if (room++ == 0)
				first = here;
		}
		/* The first line wins outright with two places, later ones only by having more than any before. */
		if (room > best) {
			out->free = first;
			best = i == 0 && room >= 2 ? SLOTS_PER_LINE : room;
		}
	}
}

static void give_up(const struct place *place)
{
	/* Ignoring failure: then somebody else freed or took it. */
	(void)slot_cas(place->slot, place->seen, 0, 0);
}

/* Step 2's look. True if the candidate may be committed; else it was freed, unless somebody else took it. */
static int uncontested(const struct shmlimit *l, struct table_window window, uint64_t wanted,
                       const struct place *candidate)
{
	for (unsigned i = 0; i < WINDOW_LINES; i++) {
		struct layout_slot *line = table_line(l, window, i);

		for (unsigned j = 0; j < SLOTS_PER_LINE; j++) {
			struct place here = { &line[j], slot_read(&line[j]), FROM_FREE };

			if (here.slot == candidate->slot || !tag_same_key(here.seen.tag, wanted))
				continue;
			if (here.seen.tag == wanted ||
			    (here.seen.tag == (wanted | TAG_TENTATIVE) && here.slot < candidate->slot)) {
				give_up(candidate);
				return 0;
			}
			if (here.seen.tag == (wanted | TAG_TENTATIVE) && !slot_cas(here.slot, here.seen, 0, 0))
				return 0;
		}
	}
	return 1;
}

/* Make some slot tentative for the key. Returns CLAIM_DONE, CLAIM_LOST or CLAIM_NO_ROOM. */
static enum claim place_candidate(const struct shmlimit *l, uint64_t wanted, uint64_t now_ns, struct survey *found)
{
	struct place *place = found->free.slot ? &found->free : &found->abandoned;
	struct slot_seen mine = { wanted | TAG_TENTATIVE, 0 };

	if (place->slot == NULL && l->on_full == SHMLIMIT_FULL_EVICT)
		place = &found->victim;
	if (place->slot == NULL)
		return CLAIM_NO_ROOM;
	mine.word = counter_nonce(l, now_ns);
	if (!slot_cas(place->slot, place->seen, mine.tag, mine.word))
		return CLAIM_LOST;
	found->candidate = *place;
	found->candidate.seen = mine;
	return CLAIM_DONE;
}

enum claim table_claim(const struct shmlimit *l, const struct table_key *wanted, uint64_t word, uint64_t now_ns,
                       const struct rule_view *view, struct table_claimed *claimed)
{
	struct table_window window = table_window(l, wanted->hash);
	struct survey found;

	survey(l, window, wanted->tag, now_ns, &found);
	claimed->from = FROM_FREE;
	claimed->room_ns = found.victim_ns;
	if (found.committed)
		return CLAIM_FOUND;
	if (found.candidate.slot == NULL) {
		enum claim placed = place_candidate(l, wanted->tag, now_ns, &found);

		if (placed != CLAIM_DONE)
			return placed;
		claimed->from = found.candidate.from;
	}
	if (!uncontested(l, window, wanted->tag, &found.candidate))
		return CLAIM_LOST;
	/* A rule that was removed meanwhile gets no more slots: table_clear() has been here, or will free this one. */
	if (load_again(&l->rules[tag_rule(wanted->tag)].published) != view->published) {
		give_up(&found.candidate);
		return CLAIM_FOUND;
	}
	if (!slot_cas(found.candidate.slot, found.candidate.seen, wanted->tag, word))
		return CLAIM_LOST;
	return CLAIM_DONE;
}

void table_clear(const struct shmlimit *l, int64_t rule)
{
	for (uint64_t i = 0; i < l->lines * SLOTS_PER_LINE; i++) {
		struct layout_slot *slot = &l->slots[i];
		struct slot_seen seen = slot_read(slot);

		/* BOUND: each round but the last means that another process changed this slot in between. */
		for (int round = 0; round < RULE_RETRIES; round++) {
			if (seen.tag == 0 || (rule >= 0 && tag_rule(seen.tag) != (uint64_t)rule))
				break;
			if (slot_cas(slot, seen, 0, 0))
				break;
			seen = slot_read(slot);
		}
	}
}

void table_forget(const struct shmlimit *l, struct table_window window, uint64_t tag)
{
	for (int round = 0; round < RULE_RETRIES; round++) {
		struct layout_slot *slot = table_find(l, window, tag);
		struct slot_seen seen;

		if (slot == NULL)
			return;
		seen = slot_read(slot);
		if (seen.tag == tag && slot_cas(slot, seen, 0, 0))
			return;
	}
}
