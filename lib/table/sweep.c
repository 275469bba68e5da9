/*
 * sweep: see sweep.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sweep.h"

/*
 * Slots that a decision sweeps on its way: some microseconds. Tables of tests/schedule have more
 * than one chunk, too.
 */
#ifdef SHMLIMIT_POINTS
#define CHUNK_SLOTS 8u
#else
#define CHUNK_SLOTS 64u
#endif
/* No rule is due as often: a shorter time is damage. */
#define AFTER_MIN_NS ((uint64_t)1000000)

/*
 * The cursor: [ round : 24 ][ generation : 6 ][ in the old table : 1 ][ chunk : 33 ]. The old table
 * comes first, as for all walks: see table.h.
 */
#define CURSOR_CHUNK (((uint64_t)1 << 33) - 1)
#define CURSOR_OLD ((uint64_t)1 << 33)
#define CURSOR_GENERATION_SHIFT 34
#define CURSOR_ROUND_SHIFT 40
#define CURSOR_ROUNDS ((uint64_t)1 << 24)

static uint64_t cursor_begin(const struct generation *tables, uint64_t round)
{
	return round << CURSOR_ROUND_SHIFT | (state_generation(tables->state) & 63) << CURSOR_GENERATION_SHIFT |
	       (tables->old.slots != NULL ? CURSOR_OLD : 0);
}

static uint64_t cursor_round(uint64_t cursor)
{
	return cursor >> CURSOR_ROUND_SHIFT;
}

static uint64_t chunks(const struct table *t)
{
	return (t->lines * SLOTS_PER_LINE + CHUNK_SLOTS - 1) / CHUNK_SLOTS;
}

static uint64_t after_ns(const struct shmlimit *l)
{
	uint64_t ns = load_relaxed(&l->header->sweep_after_ns);

	return ns < AFTER_MIN_NS ? AFTER_MIN_NS : ns < SWEEP_AFTER_MAX_NS ? ns : SWEEP_AFTER_MAX_NS;
}

/* ---- What is over ---- */

static uint64_t back_ns(const struct layout_params *params)
{
	struct shmlimit_range range = { 0 };

	algorithm_of(params)->range(params, &range);
	return range.back_ns;
}

uint64_t sweep_wait(const struct look *k, uint64_t word)
{
	/* ORDER after the word. */
	uint64_t swept_ns = load_again(&k->l->header->swept.ns), age_ns = k->at.now_ns - swept_ns, known_ns, wait_ns;
	struct look then;

	if ((int64_t)age_ns < 0 || age_ns < 2 * after_ns(k->l))
		return algorithm_wait(k, word);
	known_ns = back_ns(k->params);
	if (age_ns < known_ns || known_ns == 0)
		return algorithm_wait(k, word);
	then = look_make(k->l, k->t, k->slot, k->params, when_given(swept_ns + known_ns - 1));
	wait_ns = algorithm_wait(&then, word);
	return wait_ns > age_ns - (known_ns - 1) ? wait_ns - (age_ns - (known_ns - 1)) : 0;
}

int sweep_is_over(const struct shmlimit *l, const struct table_slot *here, struct when when)
{
	struct rule_view view;
	struct look k;

	if (rule_load_tag(l, here->seen.tag & ~TAG_FROZEN, &view) != 0)
		return 1;
	k = look_make(l, here->t, here->slot, &view.params, when);
	if (sweep_wait(&k, here->seen.word) != 0)
		return 0;
	if (when.given)
		return 1;
	/* It was written after the clock was read, perhaps. */
	k = look_make(l, here->t, here->slot, &view.params, when_again(l, when));
	return sweep_wait(&k, here->seen.word) == 0;
}

/* ---- Sweeping ---- */

/*
 * What is not over: its cells that are, and, where the clock stepped back and the word's time is
 * further ahead than the rule can mean, what the word means.
 */
static int settle(const struct shmlimit *l, const struct table_slot *here, struct when when)
{
	const struct algorithm *a;
	struct rule_view view;
	struct slot_seen seen = here->seen, mine;
	struct balance b;
	struct look k;

	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0)
		return 1;
	a = algorithm_of(&view.params);
	k = look_make(l, here->t, here->slot, &view.params, when_again(l, when));
	if (a->cells != NULL && a->cells->sweep != NULL)
		a->cells->sweep(&k, seen);
	a->read(&k, seen.word, &b);
	if (!b.stepped)
		return 1;
	mine = (struct slot_seen){ seen.tag, a->convert(&k, seen.word, &view.params) };
	/* ORDER pairs with slot_cas() of a decision, which fails where this was before it. */
	if (!slot_cas(here->slot, seen, mine.tag, mine.word))
		return 0;
	algorithm_converted(a, &k, mine);
	return 1;
}

static void sweep_slot(const struct shmlimit *l, const struct table *t, struct layout_slot *slot, struct when when)
{
	struct table_slot here = { t, slot, { 0, 0 } };

	/*
	 * BOUND: each round but the last means that another process changed the slot. It is looked
	 * at again: a decision that was stopped before its swap may have left what is over
	 * (tests/model/sweep, NO_RETRY).
	 */
	for (int round = 0; round < RULE_RETRIES; round++) {
		here.seen = slot_read(slot);
		if ((here.seen.tag & ~TAG_FROZEN) == 0)
			return;
		if (!sweep_is_over(l, &here, when)) {
			if (settle(l, &here, when))
				return;
			/*
			 * ORDER pairs with slot_cas() of the other processes, which find their
			 * claim or their word gone.
			 */
		} else if (slot_cas(slot, here.seen, here.seen.tag & TAG_FROZEN, 0)) {
			return;
		}
	}
}

static void sweep_chunk(const struct shmlimit *l, const struct table *t, uint64_t chunk, struct when when)
{
	uint64_t slots = t->lines * SLOTS_PER_LINE, end = (chunk + 1) * CHUNK_SLOTS;

	for (uint64_t i = chunk * CHUNK_SLOTS; i < end && i < slots; i++)
		sweep_slot(l, t, &t->slots[i], when);
}

/* Is there a round to go on with: of these tables, and whose mark would not be due at once? */
static int is_under_way(const struct layout_sweep *at, const struct layout_swept *swept,
                        const struct generation *tables, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t round = cursor_round(at->cursor);

	return round != swept->round % CURSOR_ROUNDS &&
	       ((at->cursor ^ cursor_begin(tables, round)) & ~(CURSOR_CHUNK | CURSOR_OLD)) == 0 &&
	       ((at->cursor & CURSOR_OLD) != 0 || (at->cursor & CURSOR_CHUNK) < chunks(&tables->now)) &&
	       now_ns - at->ns <= due_ns + due_ns / 2;
}

static void begin_round(const struct shmlimit *l, const struct layout_sweep *at, const struct layout_swept *swept,
                        const struct generation *tables, uint64_t ns)
{
	uint64_t round = (cursor_round(at->cursor) + 1) % CURSOR_ROUNDS;

	if (round == swept->round % CURSOR_ROUNDS)
		round = (round + 1) % CURSOR_ROUNDS;
	/* ORDER before the slots are read; pairs with step()'s. */
	(void)pair_cas(&l->header->sweep, (uint64_t[2]){ at->ns, at->cursor },
	               (uint64_t[2]){ ns, cursor_begin(tables, round) });
}

/* Begin a round, or sweep a chunk of the one that is under way. */
static void step(const struct shmlimit *l, const struct layout_swept *swept, const struct generation *tables,
                 struct when when, uint64_t due_ns)
{
	struct layout_header *header = l->header;
	struct layout_sweep at = { load_acquire(&header->sweep.ns), load_acquire(&header->sweep.cursor) };
	uint64_t next = at.cursor + 1;

	/* Both of one round. */
	if (load_again(&header->sweep.ns) != at.ns)
		return;
	if (!is_under_way(&at, swept, tables, when.ns, due_ns)) {
		begin_round(l, &at, swept, tables, when.ns - due_ns / 2);
		return;
	}
	if ((at.cursor & CURSOR_OLD) != 0) {
		sweep_chunk(l, &tables->old, at.cursor & CURSOR_CHUNK, when);
		if ((next & CURSOR_CHUNK) >= chunks(&tables->old))
			next = at.cursor & ~(CURSOR_OLD | CURSOR_CHUNK);
	} else {
		sweep_chunk(l, &tables->now, at.cursor & CURSOR_CHUNK, when);
		if ((next & CURSOR_CHUNK) >= chunks(&tables->now)) {
			/* ORDER after the round swept all slots; pairs with sweep_wait(). */
			(void)pair_cas(&header->swept, (uint64_t[2]){ swept->ns, swept->round },
			               (uint64_t[2]){ at.ns, cursor_round(at.cursor) });
			return;
		}
	}
	/* ORDER after the chunk was swept. */
	(void)pair_cas(&header->sweep, (uint64_t[2]){ at.ns, at.cursor }, (uint64_t[2]){ at.ns, next });
}

__attribute__((cold, noinline)) void sweep(const struct shmlimit *l, struct when when)
{
	const struct layout_header *header = l->header;
	struct generation tables;

	/*
	 * BOUND: a step that sweeps nothing means that another process began a round, or ended one,
	 * or that the table grew.
	 */
	for (uint64_t i = 0, most = RULE_RETRIES; i < most; i++) {
		struct layout_swept swept = { load_acquire(&header->swept.ns), load_acquire(&header->swept.round) };
		uint64_t due_ns = after_ns(l), age_ns;

		when = when_again(l, when);
		age_ns = when.ns - swept.ns;
		if (age_ns <= due_ns)
			return;
		generation_read(l, &tables);
		if (i == 0)
			most += 4 * (chunks(&tables.old) + chunks(&tables.now));
		step(l, &swept, &tables, when, due_ns);
		if (age_ns < 2 * due_ns)
			return;
	}
}

/* ---- Rules ---- */

uint64_t sweep_after(const struct layout_params *params)
{
	uint64_t ns = back_ns(params) / 2;

	return ns < SWEEP_AFTER_MAX_NS ? ns : SWEEP_AFTER_MAX_NS;
}

void sweep_lower(const struct shmlimit *l, const struct layout_params *params)
{
	uint64_t ns = sweep_after(params);

	if (ns < load_relaxed(&l->header->sweep_after_ns))
		store_relaxed(&l->header->sweep_after_ns, ns);
}

void sweep_begin(const struct shmlimit *l, struct when when)
{
	struct layout_header *header = l->header;
	uint64_t swept[2] = { load_relaxed(&header->swept.ns), load_relaxed(&header->swept.round) };

	(void)pair_cas(&header->swept, swept, (uint64_t[2]){ when_again(l, when).ns - after_ns(l) / 2, swept[1] });
}
