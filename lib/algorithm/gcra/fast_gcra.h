/*
 * fast_gcra: a take or peek by a limit that came with it, at the first try. The slot is the key's,
 * under a rule in force, and its time is possible. In everything else the general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_GCRA_H
#define SHMLIMIT_LIB_FAST_GCRA_H

#include "first.h"
#include "gcra_row.h"

/*
 * Is the bucket's time not so simple that the limit's time to full is all that there is to it? The
 * limit is longer than those that the key was asked with; or the key is full by all of them, and
 * they were longer, so that its place is to be this limit's again.
 */
FAST int fast_gcra_is_rare(const struct shmlimit *l, const struct gcra *g, uint64_t word, int64_t age)
{
	uint64_t longest = gcra_longest(l, gcra_word_place(word));

	return __builtin_expect(g->tolerance != longest, 0) && g->interval != 0 &&
	       (g->tolerance > longest ||
	        (age >= (int64_t)longest && gcra_place(g->tolerance) != gcra_word_place(word)));
}

/* Is a time that is ahead impossible? Nothing was allowed by it. */
FAST int fast_gcra_is_impossible(const struct shmlimit *l, int64_t age)
{
	return __builtin_expect(age < 0, 0) && 0 - (uint64_t)age > gcra_most_ahead(l);
}

/* The answer, as decide() gives it; or FIRST_NOT. *failed: it lost its swap. */
FAST int fast_gcra(const struct shmlimit *l, const struct request *q, const struct gcra *g, uint32_t *failed,
                   struct shmlimit_result *r)
{
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	uint64_t word, now_ns = q->when.ns;
	struct first f;
	int64_t age, room;

	if (__builtin_expect(!first_find(l, q, SHMLIMIT_GCRA, 0, &f), 0))
		return FIRST_NOT;
	age = gcra_word_age(f.seen.word, now_ns);
	if (fast_gcra_is_rare(l, g, f.seen.word, age))
		return FIRST_NOT;
	room = gcra_room(g, age);
	gcra_take(g, q->amount, q->op == OP_TAKE, &room, &v);
	/*
	 * Is it only that our time is older than the word's? To other algorithms a token is a
	 * number, here it is a time: what another process took a moment after our reading looks
	 * dearer by that moment.
	 */
	if (v.answer == SHMLIMIT_DENIED) {
		if (!q->when.given) {
			now_ns = when_read(l).ns;
			if (q->undo != NULL)
				q->undo->at_ns = now_ns;
			age = gcra_word_age(f.seen.word, now_ns);
			room = gcra_room(g, age);
			v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
			gcra_take(g, q->amount, q->op == OP_TAKE, &room, &v);
		}
		if (fast_gcra_is_impossible(l, age))
			return FIRST_NOT;
	}
	word = gcra_word_with(f.seen.word, age, room);
	/* The linearization point (I1, I4). ORDER both pair with slot_cas() elsewhere. */
	if (v.changed)
		*failed = !slot_cas(f.slot, f.seen, f.seen.tag, word);
	if (__builtin_expect(v.changed ? *failed : !slot_unchanged(f.slot, f.seen), 0))
		return FIRST_NOT;
	decide_note(q->undo, &v, f.slot, f.seen, 0, (struct slot_seen){ f.seen.tag, word });
	decide_show(q, v.answer);
	if (r != NULL)
		gcra_report(g, room, &v, r);
	return decide_count(l, q, rule_mode(&f.view), v.answer, now_ns);
}

#endif
