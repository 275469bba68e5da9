/*
 * gcra_row: what a take does by a limit that comes with it, inline: for GCRA's row, and for
 * fast_gcra.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GCRA_ROW_H
#define SHMLIMIT_LIB_GCRA_ROW_H

#include "funnel.h"
#include "gcra.h"
#include "request.h"

/*
 * What the header has of all limits, in ticks.
 *
 * longest[place] is the longest time to full of the limits of that place that left a word: see
 * gcra_place(). A word of that place is full when it is as old. A process whose limit has a longer
 * one raises that number before it writes the word. WHY a number of the segment: a word has no room
 * for its limit, and its slot is to be free as soon as its key is full.
 *
 * owed is the longest debt that a limit allowed, raised before a word that owes. A word that is
 * further ahead of the clock is impossible. WHY: without it a key that a clock used before it
 * stepped back could be denied for two years.
 *
 * INVARIANT I8: no word is further ahead than `owed` and the clock that wrote it. A process that is
 * killed between the two leaves a number that is too high, until the segment is made again:
 * harmless. A higher number of its place makes a key that is not full seem full later, and only to
 * limits that are longer than its own.
 *
 * ORDER they are read after the word (slot_read() acquires), and raised before the word is swapped
 * in (slot_cas() releases). A process that finds one raised by another one has read it before its
 * own swap, so a reader of that word finds it no lower (coherence).
 */
FAST uint64_t gcra_longest(const struct shmlimit *l, unsigned place)
{
	return load_relaxed(&l->header->longest[place]);
}

FAST uint64_t gcra_most_ahead(const struct shmlimit *l)
{
	return gcra_ahead(load_relaxed(&l->header->owed));
}

FAST struct gcra_state gcra_look(const struct shmlimit *l, uint64_t word, uint64_t now_ns)
{
	return gcra_read(word, now_ns, gcra_longest(l, gcra_word_place(word)), gcra_most_ahead(l));
}

/* A limit of this time to full is about to leave a word; or one that owes as much. */
void gcra_will_fill(const struct shmlimit *l, uint64_t tolerance);
void gcra_will_owe(const struct shmlimit *l, uint64_t owed);

/* A take or peek. *v has been set to allowed. */
FAST void gcra_take(const struct gcra *g, uint64_t tokens, int takes, int64_t *room, struct verdict *v)
{
	uint64_t cost;

	if (__builtin_expect(tokens > g->capacity || g->blocks, 0)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
		return;
	}
	cost = gcra_cost_within(g, tokens);
	if ((int64_t)cost > *room) {
		/* What another limit left behind denies no request that takes nothing. */
		if (cost != 0) {
			v->answer = SHMLIMIT_DENIED;
			v->retry_after_ns = gcra_ns(cost - (uint64_t)*room);
		}
	} else if (takes && cost != 0) {
		*room -= (int64_t)cost;
		v->changed = 1;
	}
}

/* What the key says after that. */
FAST void gcra_report(const struct gcra *g, int64_t room, const struct verdict *v, struct shmlimit_result *r)
{
	r->limit = g->capacity;
	r->remaining = g->blocks ? 0 : gcra_remaining(g, room);
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = g->blocks ? 0 : gcra_ns(g->tolerance - (uint64_t)room);
}

#endif
