/*
 * fast_hold: to enter, to bind and to leave a place where that takes few looks at cells. The slot
 * is the key's, and one of the cells is free: as hold.h says, that cell is swapped, then the
 * word. In everything else the general path decides, and so it denies.
 *
 * An entry need not count the places that are held. Where none is beyond the capacity, or beyond
 * the bound that came with the call, a cell below it that is not in force is one too few. WHY NOT
 * where there are more than 64 cells: the search could take that many looks, and the reach would
 * not go down again, which the general path sees to. An entry with a result looks at all cells
 * within reach, to say how many places are left.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_HOLD_H
#define SHMLIMIT_LIB_FAST_HOLD_H

#include "auto_state.h"
#include "first.h"
#include "hold_place.h"
#include "ring.h"

#define FAST_HOLD_CELLS 64u

/*
 * Where this process left a place of a key last: a cell that is likely to be free. It may be
 * another key's.
 */
static inline uint64_t *fast_hold_hint(const struct shmlimit *l, uint64_t hash)
{
	return &l->self->left[hash % LIMITER_HINTS];
}

/*
 * Does a place last whose time is over, and which was not left? Apart, so that a first try does not
 * read the rule's flags where times tell.
 */
__attribute__((cold, noinline)) static int fast_hold_lasts(const struct layout_params *rule, struct hold_pair place,
                                                           uint64_t i, uint64_t word)
{
	return hold_place_lasts(load_word(&rule->flags), place, i, word);
}

/* Is place i in force? */
FAST int fast_hold_is_held(const struct first *f, struct hold_pair place, uint64_t i, uint64_t now_ns)
{
	if (!hold_is_of(place.value, f->seen.word))
		return 0;
	return hold_end(place.value, now_ns) > 0 ||
	       fast_hold_lasts(rule_params(f->record, rule_version(&f->view)), place, i, f->seen.word);
}

/*
 * Fill *r for one place more, which begins now. The cells are read after the word: so a place that
 * was entered since lets the swap of the word fail, and no place in force is missed. One whose end
 * is impossible lasts as long as the new one: see hold_left_ns(). Returns 0 where the general path
 * is to ask about a holder. BOUND: once over the cells within reach.
 */
static inline int fast_hold_report(const struct first *f, const uint64_t *cells, uint64_t most, uint64_t reach,
                                   uint64_t now_ns, struct shmlimit_result *r)
{
	uint64_t held = 1, longest_ns = hold_end_ns(hold_end_of_period(&f->view.params, now_ns), now_ns);

	for (uint64_t i = 0; i < reach; i++) {
		uint64_t value = load_acquire(&cells[2 * i]), left_ns = hold_end_ns(value, now_ns);

		if (!hold_is_held(value, f->seen.word, now_ns)) {
			if (__builtin_expect(hold_is_of(value, f->seen.word), 0) &&
			    fast_hold_lasts(rule_params(f->record, rule_version(&f->view)), hold_place_read(cells, i),
			                    i, f->seen.word))
				return 0;
			continue;
		}
		held++;
		if (__builtin_expect(left_ns > longest_ns, 0) && left_ns <= f->view.params.ahead)
			longest_ns = left_ns;
	}
	hold_report(most, held, longest_ns, 0, r);
	return 1;
}

/*
 * Of a rule whose number is found: see auto_state.h. Apart, so that the others take no instruction
 * more than to ask. INVARIANT I7: the cells are as many as the shape said by which they were
 * found, whatever the rule says now; the rest of the rule is read here, and only bounds numbers.
 */
static inline struct auto_bounds fast_hold_bounds(const struct layout_params *in_force, uint64_t capacity,
                                                  uint64_t shape, struct layout_params *params)
{
	params->capacity = capacity;
	params->shape = shape;
	params->flags = load_word(&in_force->flags);
	return auto_state_bounds(params);
}

__attribute__((noinline)) static uint64_t fast_hold_number(const struct layout_params *in_force, uint64_t capacity,
                                                           uint64_t shape, uint64_t *cells, uint64_t word)
{
	struct layout_params params;
	struct auto_bounds bounds = fast_hold_bounds(in_force, capacity, shape, &params);

	return auto_state_now(auto_state_pairs(cells, &params), word, &bounds);
}

/* A place was left. Of the key are filled in: its slot, and whose clock there is. */
__attribute__((noinline)) static void fast_hold_time(struct auto_key *key, const struct layout_params *in_force,
                                                     uint64_t capacity, uint64_t shape,
                                                     const struct hold_request *asked, uint64_t now_ns)
{
	struct layout_params params;

	key->bounds = fast_hold_bounds(in_force, capacity, shape, &params);
	key->period_ns = load_word(&in_force->back);
	auto_state_left(key, asked->place.value, asked->flags, now_ns);
}

/*
 * By the limit, of places, and by the share, unless they are NULL. The answer, as decide() gives
 * it, or FIRST_NOT. *failed: an entry lost the swap of the word; what it tried stands in *q->hold,
 * and its cell is taken back.
 */
FAST int fast_enter(const struct shmlimit *l, const struct request *q, const struct gcra *limit,
                    const struct hold_share *share, uint32_t *failed, struct shmlimit_result *r)
{
	struct hold_request *asked = q->hold;
	uint64_t i, n, most, reach, next, *cells;
	struct hold_pair before, entered;
	struct hold_place place;
	struct first f;

	if (__builtin_expect(!first_find(l, q, SHMLIMIT_HOLD, 1, &f), 0))
		return FIRST_NOT;
	most = f.view.params.capacity;
	cells = cells_glance(l, f.t, f.slot, &f.view.params);
	if (__builtin_expect(cells == NULL, 0))
		return FIRST_NOT;
	if (__builtin_expect(params_law(&f.view.params) != 0, 0)) {
		uint64_t number = fast_hold_number(rule_params(f.record, rule_version(&f.view)), most,
		                                   f.view.params.shape, cells, f.seen.word);

		most = number < most ? number : most;
	}
	if (limit != NULL && limit->capacity < most)
		most = limit->capacity;
	if (share != NULL) {
		/* WHY after the word was read: see most_of(). */
		uint64_t shared = share->most(share, 0);

		most = shared < most ? shared : most;
		if (most == 0)
			return FIRST_NOT;
	}
	reach = hold_reach(f.seen.word, UINT64_MAX);
	n = reach < most ? reach + 1 : most;
	if (__builtin_expect(reach > most || n > FAST_HOLD_CELLS || most > params_tokens(&f.view.params), 0))
		return FIRST_NOT;

	i = load_relaxed(fast_hold_hint(l, q->hash));
	i = i < n ? i : 0;
	/* BOUND: once over the cells. */
	for (uint64_t looks = 1;; looks++) {
		before = hold_place_read(cells, i);
		if (!fast_hold_is_held(&f, before, i, q->when.ns))
			break;
		if (looks >= n)
			return FIRST_NOT;
		i = i + 1 < n ? i + 1 : 0;
	}
	if (__builtin_expect(hold_place_is_tried(before, i, f.seen.word), 0))
		return FIRST_NOT;
	if (r != NULL && !fast_hold_report(&f, cells, most, reach, q->when.ns, r))
		return FIRST_NOT;
	place = (struct hold_place){ (uint32_t)i, hold_cell(&f.view.params, before.value, f.seen.word, q->when.ns) };
	entered = (struct hold_pair){ place.value, asked->holder };
	/* INVARIANT I3: the place was read while the slot was the key's: it is no window's. */
	if (__builtin_expect(!slot_unchanged(f.slot, f.seen) || !hold_place_cas(cells, i, before, entered), 0))
		return FIRST_NOT;
	/* ORDER: full; before the slot's swap. Pairs with places_read() of a reclaimer. */
	asked->tried = place;
	/* The linearization point (I4, I13). ORDER pairs with slot_cas() of the other processes. */
	next = hold_word_next(f.seen.word, reach > i ? reach : i + 1, q->when.ns);
	if (__builtin_expect(!slot_cas(f.slot, f.seen, f.seen.tag, next), 0)) {
		(void)hold_place_end(cells, i, entered);
		*failed = 1;
		return FIRST_NOT;
	}
	asked->place = place;
	if (q->undo != NULL) {
		q->undo->slot = f.slot;
		q->undo->after = (struct slot_seen){ f.seen.tag, next };
	}
	decide_show(q, SHMLIMIT_ALLOWED);
	return decide_count(l, q, rule_mode(&f.view), SHMLIMIT_ALLOWED, q->when.ns);
}

/*
 * The same of a place that is bound, and has not ended. *failed: the owner was swapped, and the
 * swap of the word lost.
 */
FAST int fast_bind(const struct shmlimit *l, const struct request *q, uint32_t *failed)
{
	struct hold_request *asked = q->hold;
	struct hold_pair place;
	uint64_t *cells, reach;
	struct first f;

	if (__builtin_expect(
		    !first_find(l, q, SHMLIMIT_HOLD, 0, &f) || asked->place.cell >= params_tokens(&f.view.params), 0))
		return FIRST_NOT;
	cells = cells_glance(l, f.t, f.slot, &f.view.params);
	if (__builtin_expect(cells == NULL, 0))
		return FIRST_NOT;
	place = hold_place_read(cells, asked->place.cell);
	/* INVARIANT I3: the place was read while the slot was the key's: it is no window's. */
	if (__builtin_expect(place.value != asked->place.value || !hold_is_held(place.value, f.seen.word, q->when.ns) ||
	                             !slot_unchanged(f.slot, f.seen) ||
	                             !hold_place_cas(cells, asked->place.cell, place,
	                                             (struct hold_pair){ place.value, asked->holder }),
	                     0))
		return FIRST_NOT;
	reach = hold_reach(f.seen.word, UINT64_MAX);
	if (__builtin_expect(
		    !slot_cas(f.slot, f.seen, f.seen.tag,
	                      hold_word_next(f.seen.word, reach > asked->place.cell ? reach : asked->place.cell + 1,
	                                     q->when.ns)),
		    0)) {
		*failed = 1;
		return FIRST_NOT;
	}
	asked->done = 1;
	return SHMLIMIT_ALLOWED;
}

/*
 * The same of a place that is left. q->hold->done: it was, but the slot changed during the call,
 * and is to be looked at again.
 */
FAST int fast_leave(const struct shmlimit *l, const struct request *q)
{
	struct hold_request *asked = q->hold;
	uint64_t *cells, *hint = fast_hold_hint(l, q->hash);
	struct hold_pair place;
	struct first f;

	if (__builtin_expect(
		    !first_find(l, q, SHMLIMIT_HOLD, 0, &f) || asked->place.cell >= params_tokens(&f.view.params), 0))
		return FIRST_NOT;
	cells = cells_glance(l, f.t, f.slot, &f.view.params);
	if (__builtin_expect(cells == NULL, 0))
		return FIRST_NOT;
	place = hold_place_read(cells, asked->place.cell);
	if (__builtin_expect(place.value != asked->place.value ||
	                             !fast_hold_is_held(&f, place, asked->place.cell, q->when.ns) ||
	                             !hold_place_end(cells, asked->place.cell, place),
	                     0))
		return FIRST_NOT;
	asked->done = 1;
	if (__builtin_expect(params_law(&f.view.params) != 0, 0) && rule_record_holds(f.record, &f.view)) {
		struct auto_key key = { .pairs = auto_state_pairs(cells, &f.view.params),
			                .slot = f.slot,
			                .seen = f.seen,
			                .l = q->when.given ? NULL : l };

		fast_hold_time(&key, rule_params(f.record, rule_version(&f.view)), f.view.params.capacity,
		               f.view.params.shape, asked, q->when.ns);
	}
	/* Threads share the hint: it is written where it differs. */
	if (load_relaxed(hint) != asked->place.cell)
		store_relaxed(hint, asked->place.cell);
	/*
	 * ORDER both after the swap, which pairs with migration's reading of the cell: see hold.h.
	 */
	return __builtin_expect(slot_unchanged(f.slot, f.seen) && rule_record_holds(f.record, &f.view), 1)
	               ? SHMLIMIT_ALLOWED
	               : FIRST_NOT;
}

#endif
