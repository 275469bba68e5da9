/*
 * hold: HOLD's row: places that are held. See hold.h for the protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "auto_state.h"
#include "hold_place.h"

/* ---- Arithmetic ---- */

/* Six tables are apart by this. */
#define CARRIED_NONCES 340
/* A reading of the clock may be older than another process's by so much. */
#define SLACK_NS ((uint64_t)1000000000)

int hold_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	if (rule->capacity == 0 || rule->period_ns == 0)
		return -EDOM;
	if (rule->capacity > SHMLIMIT_WINDOW_MAX)
		return -EFBIG;
	if ((rule->flags & ~(uint32_t)SHMLIMIT_RULE_CUT_OFF) != 0 || rule->max_wait_ns != 0 ||
	    (rule->refill != 0 && rule->refill != rule->capacity))
		return -EINVAL;
	if (rule->period_ns > HOLD_PERIOD_MAX_NS)
		return -ERANGE;
	if (rule->law > SHMLIMIT_LAW_AIMD || rule->least > rule->capacity || (rule->law == 0 && rule->least != 0))
		return -EINVAL;
	if (rule->law != 0 && rule->least == 0)
		return -EDOM;
	if (rule->law != 0 && rule->capacity > SHMLIMIT_WINDOW_MAX - AUTO_STATE_PAIRS)
		return -EFBIG;
	params->capacity = params->count = rule->capacity;
	params->period_ns = params->back = rule->period_ns;
	params->ahead =
		rule->period_ns + (rule->period_ns / 2 < SLACK_NS ? rule->period_ns / 2 : SLACK_NS) + HOLD_TICK_NS;
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = params->den = 1;
	params->flags = rule->flags | (uint64_t)rule->least << 32;
	params->shape = params_shape(HOLD_STAMP_SHIFT, HOLD_TICK_BITS, SHMLIMIT_HOLD, 0);
	params_set_extra(params, rule->law);
	params_set_cells_size(params,
	                      cells_size_at_least(rule->capacity + (rule->law != 0 ? AUTO_STATE_PAIRS : 0), size));
	return 0;
}

/* ---- Reading cells ---- */

/* What the cells of a slot say. */
struct places {
	uint64_t held; /* in force */
	uint64_t top;  /* the first `top` cells contain all of them */
	/* a place that may be entered, and what it has; NONE: there is none */
	uint64_t free;
	struct hold_pair before;
	uint64_t soonest_ns, longest_ns; /* until the first, the last of them ends */
	int stepped;                     /* some end later than they can */
	int bound;                       /* some have a holder */
	uint64_t own;                    /* how many there may be, by the request's limit and the number now */
};

#define NONE UINT64_MAX

/* A record that was scribbled over may have a capacity beyond all cells. */
static uint64_t cells_of(const struct look *k)
{
	return k->params->capacity < params_tokens(k->params) ? k->params->capacity : params_tokens(k->params);
}

/* How many places there may be by the request: its own bound, or the rule's capacity. */
static uint64_t bound_of(const struct look *k, const struct request *q)
{
	uint64_t most = cells_of(k);

	return q->limit != NULL && q->limit->capacity < most ? q->limit->capacity : most;
}

/* What a rule has whose number is found; of others no pairs. */
static struct auto_key auto_of(const struct look *k, uint64_t word)
{
	struct auto_key key = {
		.slot = k->slot, .seen.word = word, .l = k->given ? NULL : k->l, .period_ns = k->params->back
	};

	if (params_law(k->params) == 0)
		return key;
	key.bounds = auto_state_bounds(k->params);
	if (k->slot != NULL && ring_cells(k) != NULL) {
		key.pairs = auto_state_pairs(ring_cells(k), k->params);
		key.seen.tag = load_acquire(&k->slot->tag);
	}
	return key;
}

/* The same now: no more than the number that was found. */
__attribute__((noinline)) static uint64_t number_now(const struct look *k, uint64_t word)
{
	struct auto_key key = auto_of(k, word);

	return auto_state_now(key.pairs, word, &key.bounds);
}

static inline uint64_t bound_now(const struct look *k, const struct request *q, uint64_t word)
{
	uint64_t own = bound_of(k, q), number = params_law(k->params) == 0 ? own : number_now(k, word);

	return number < own ? number : own;
}

/* A request was denied by the number. */
__attribute__((noinline)) static void number_denied(const struct look *k, uint64_t word)
{
	struct auto_key key = auto_of(k, word);

	auto_state_denied(&key);
}

/*
 * How many cells a denied entry has looked at: those within reach, and all below the capacity. One
 * beyond reach is in force where an entry is at work, or where it had ended and the clock stepped
 * back since.
 */
static uint64_t looked_at(const struct look *k, uint64_t word)
{
	uint64_t most = cells_of(k), reach = hold_reach(word, params_tokens(k->params));

	return reach > most ? reach : most;
}

/*
 * Does a cell end later than it can? Not by *now_ns, which is read again after the cell: the place
 * may have been entered since.
 */
static int is_impossible(const struct look *k, uint64_t cell, uint64_t word, uint64_t *now_ns)
{
	if (!hold_is_impossible(k->params, cell, word, *now_ns))
		return 0;
	if (!k->given)
		*now_ns = when_read(k->l).ns;
	return hold_is_impossible(k->params, cell, word, *now_ns);
}

static struct hold_pair place_at(const struct look *k, uint64_t i)
{
	return hold_place_read(ring_cells(k), i);
}

/*
 * Is a place held by its bits, and not by its holder: dead, or not known to live and its time is
 * over?
 */
static int is_orphan(const struct look *k, struct hold_pair place, uint64_t i, uint64_t word, uint64_t asked_ns)
{
	enum registry_answer answer;

	if (!registry_is_number(place.owner) || !hold_place_is_held(k->params, place, i, word, k->at.now_ns))
		return 0;
	answer = registry_ask(k->l, place.owner, asked_ns);
	return answer == HOLDER_DEAD || (answer == HOLDER_UNKNOWN && hold_end(place.value, k->at.now_ns) <= 0);
}

/*
 * BOUND: once over the places: those within reach, and beyond them until one is free. `asks`: about
 * holders, too.
 */
static struct places places_read(const struct look *k, uint64_t word, int asks)
{
	struct places p = { .free = NONE, .soonest_ns = UINT64_MAX };
	uint64_t most = cells_of(k), reach = hold_reach(word, params_tokens(k->params)), now_ns = k->at.now_ns;
	uint64_t asked_ns = registry_now_ns();
	const uint64_t *cells;

	if (k->slot == NULL)
		return p;
	cells = ring_cells(k);
	/* This process does not see them: all may be held. */
	if (cells == NULL) {
		p.held = p.top = reach;
		p.soonest_ns = p.longest_ns = reach != 0 ? k->params->back : 0;
		return p;
	}
	for (uint64_t i = 0; i < reach || (p.free == NONE && i < most); i++) {
		struct hold_pair place = hold_place_read(cells, i);
		uint64_t left_ns;

		p.stepped |= is_impossible(k, place.value, word, &now_ns);
		left_ns = hold_place_left_ns(k->params, place, i, word, now_ns);
		/*
		 * What has ended by the clock is asked about in any case, or it would be counted
		 * for ever.
		 */
		if (left_ns != 0 && (asks || hold_end(place.value, now_ns) <= 0) &&
		    is_orphan(k, place, i, word, asked_ns))
			left_ns = 0;
		if (left_ns == 0) {
			if (p.free == NONE && i < most) {
				p.free = i;
				p.before = place;
			}
			continue;
		}
		p.held++;
		p.bound |= registry_is_number(place.owner);
		p.top = i + 1;
		p.soonest_ns = left_ns < p.soonest_ns ? left_ns : p.soonest_ns;
		p.longest_ns = left_ns > p.longest_ns ? left_ns : p.longest_ns;
	}
	return p;
}

/*
 * Nanoseconds until `ended` of the places in force have ended, 1 to all of them. BOUND: once over
 * the cells for each bit of the time between the first end and the last. WHY NOT a sorted list: a
 * decision allocates nothing, and only a lowered capacity and a peek for several places ask for
 * others than the first and the last.
 */
static uint64_t wait_for_place(const struct look *k, uint64_t word, const struct places *p, uint64_t ended)
{
	uint64_t low = p->soonest_ns, high = p->longest_ns;

	if (ended == 1 || ended == p->held || ring_cells(k) == NULL)
		return ended == 1 ? low : high;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2, n = 0;

		for (uint64_t i = 0; i < p->top; i++)
			n += hold_place_left_ns(k->params, place_at(k, i), i, word, k->at.now_ns) - 1 < middle;
		if (n >= ended)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The place that a caller names, if it is in force; else value 0. */
static struct hold_pair held_as(const struct look *k, const struct hold_place *place, uint64_t word)
{
	struct hold_pair there = { 0, 0 };

	if (k->slot == NULL || ring_cells(k) == NULL || place->cell >= params_tokens(k->params))
		return there;
	there = place_at(k, place->cell);
	if (!hold_is_same(there.value, place->value) ||
	    !hold_place_is_held(k->params, there, place->cell, word, k->at.now_ns))
		there.value = 0;
	return there;
}

/* ---- Holders ---- */

/* The same of places one after the other: *alive is a holder that is known to live. */
static int is_next_orphan(const struct look *k, struct hold_pair place, uint64_t i, uint64_t word, uint64_t asked_ns,
                          uint64_t *alive)
{
	/* Server processes have several places each. */
	if (place.owner == *alive)
		return 0;
	if (is_orphan(k, place, i, word, asked_ns))
		return 1;
	if (registry_is_number(place.owner) && registry_ask(k->l, place.owner, asked_ns) == HOLDER_ALIVE)
		*alive = place.owner;
	return 0;
}

static int has_orphans(const struct look *k, uint64_t word)
{
	uint64_t n = looked_at(k, word), asked_ns = registry_now_ns(), alive = 0;
	const uint64_t *cells = ring_cells(k);

	for (uint64_t i = 0; i < n; i++) {
		struct hold_pair place = hold_place_read(cells, i);

		if (hold_is_of(place.value, word) && is_next_orphan(k, place, i, word, asked_ns, &alive))
			return 1;
	}
	return 0;
}

/* Returns whether there were any: then what was decided is out of date. */
static int bury(const struct look *k, struct slot_seen seen)
{
	uint64_t n = looked_at(k, seen.word), asked_ns = registry_now_ns();
	int buried = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct hold_pair place = place_at(k, i);

		if (!is_orphan(k, place, i, seen.word, asked_ns))
			continue;
		/* INVARIANT I3: as in hold_row_before_swap(). */
		if (!slot_unchanged(k->slot, seen))
			return 1;
		buried |= hold_place_end(ring_cells(k), i, place);
	}
	return buried;
}

/* ---- Operations ---- */

/* One place, or none where a peek asks. Returns whether it is to be entered. */
static int hold_ask(const struct look *k, const struct request *q, uint64_t word, const struct places *p, uint64_t most,
                    struct verdict *v)
{
	uint64_t own = p->own;

	/*
	 * Fewer than `most` in force: then one of as many cells is not, and one below the capacity
	 * was found.
	 */
	if (q->amount <= most && p->held <= most - q->amount)
		return q->amount != 0 && q->op != OP_PEEK;
	v->answer = SHMLIMIT_DENIED;
	if (q->amount == 0)
		v->answer = SHMLIMIT_ALLOWED;
	else if (q->amount > bound_of(k, q))
		v->retry_after_ns = FUNNEL_NEVER;
	else if (q->amount > own)
		v->retry_after_ns = hold_soon_ns(k->params); /* the number may grow */
	else if (p->held <= own - q->amount)
		v->retry_after_ns = hold_soon_ns(k->params); /* any place of the limit above may be left */
	else
		v->retry_after_ns = wait_for_place(k, word, p, p->held - (own - q->amount));
	return 0;
}

/*
 * How many places of the key there may be: p->own, or the request's share if that is less. The
 * limit above is counted after the word was read, so the swap of the word fails if the key got a
 * place since. Before a denial dead holders are left out there.
 */
static uint64_t most_of(const struct request *q, const struct places *p)
{
	const struct hold_share *share = q->op == OP_ENTER ? q->hold->share : NULL;
	uint64_t own = p->own, held = p->held, most;

	if (share == NULL)
		return own;
	most = share->most(share, 0);
	if (most <= held && held < own)
		most = share->most(share, 1);
	return most < own ? most : own;
}

static void hold_enter(const struct look *k, const struct request *q, const struct places *p, struct hold_balance *b,
                       struct verdict *v)
{
	uint64_t reach = p->free != NONE && p->free >= p->top ? p->free + 1 : p->top;

	b->place =
		(struct hold_place){ (uint32_t)p->free, hold_cell(k->params, p->before.value, b->word, k->at.now_ns) };
	b->before = p->before.value;
	b->owner = p->before.owner;
	b->holder = q->op == OP_ENTER ? q->hold->holder : HOLD_NOBODY;
	v->word = hold_word_next(b->word, reach, k->at.now_ns);
	v->changed = 1;
}

/*
 * A place that is held begins again, at its old value or at what this call tried before. For a key
 * that moves to a larger table takes with it what was tried, before the call takes that back.
 */
static int hold_renew(const struct look *k, struct hold_request *asked, struct hold_balance *b, struct verdict *v)
{
	uint64_t reach = hold_reach(b->word, params_tokens(k->params));
	struct hold_pair place;

	if (asked->tried.value != 0 && held_as(k, &asked->tried, b->word).value != 0)
		asked->place = asked->tried;
	place = held_as(k, &asked->place, b->word);
	b->before = place.value;
	b->owner = b->holder = place.owner;
	asked->done = b->before != 0;
	if (!asked->done)
		return 0;
	/* Its end does not say when it was entered any more. */
	b->place = (struct hold_place){ asked->place.cell,
		                        hold_cell(k->params, b->before, b->word, k->at.now_ns) | HOLD_SHORT };
	v->word = hold_word_next(b->word, reach > b->place.cell ? reach : b->place.cell + 1, k->at.now_ns);
	v->changed = 1;
	return 1;
}

/*
 * The place is swapped here, for nothing else changes: the slot is looked at again after it.
 * Done and then decided again, since another process changed the slot, it is done still; but
 * if the key has moved to a larger table since, the place may be there too.
 *
 * BOUND: a swap is lost to a call that binds this very place, or brings its end forward.
 */
#define PLACE_TRIES 64

static void hold_leave(const struct look *k, struct hold_request *asked, const struct hold_balance *b)
{
	for (int i = 0; i < PLACE_TRIES; i++) {
		struct hold_pair place = held_as(k, &asked->place, b->word);

		if (place.value == 0)
			return;
		if (hold_place_end(ring_cells(k), asked->place.cell, place)) {
			asked->done = 1;
			asked->place.value = place.value;
			return;
		}
	}
}

/*
 * The same, and its time counts where the rule's number is found. An entry that is undone has none.
 */
static void hold_leave_timed(const struct look *k, const struct request *q, const struct hold_balance *b)
{
	int was_done = q->hold->done;
	struct auto_key key;

	hold_leave(k, q->hold, b);
	if (params_law(k->params) == 0 || was_done || !q->hold->done || q->taken != NULL)
		return;
	key = auto_of(k, b->word);
	if (key.pairs != NULL)
		auto_state_left(&key, q->hold->place.value, q->hold->flags, k->at.now_ns);
}

/*
 * What a denied entry tried before, and the key took with it, is left, as a place that was entered:
 * by a bound below the capacity others may be as many without it. Returns whether there was any.
 */
static int hold_forget(const struct look *k, const struct hold_request *asked, const struct hold_balance *b)
{
	struct hold_request tried = { .place = asked->tried };

	hold_leave(k, &tried, b);
	return tried.done;
}

/* The owner changes, and the word, also where the place has that owner: see hold.h. */
static void hold_bind(const struct look *k, struct hold_request *asked, struct hold_balance *b, struct verdict *v)
{
	uint64_t reach = hold_reach(b->word, params_tokens(k->params));
	struct hold_pair place = held_as(k, &asked->place, b->word);

	asked->done = place.value != 0;
	if (!asked->done)
		return;
	b->before = place.value;
	b->owner = place.owner;
	b->place = (struct hold_place){ asked->place.cell, place.value };
	b->holder = asked->holder;
	v->word = hold_word_next(b->word, reach > b->place.cell ? reach : b->place.cell + 1, k->at.now_ns);
	v->changed = 1;
}

/* By a limit that says neither a rate nor places: nothing is entered, and no holder asked about. */
static void hold_fixed(const struct gcra *limit, struct verdict *v, struct shmlimit_result *r)
{
	if (limit->blocks) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
	}
	if (r != NULL)
		hold_report(limit->capacity, 0, 0, v->retry_after_ns, r);
}

/* Does cell a end before b? `is_first` decides where both end in the same tick. */
static int ends_before(uint64_t a, uint64_t b, int is_first)
{
	int64_t later = (int64_t)((a >> HOLD_END_SHIFT << HOLD_END_SHIFT) - (b >> HOLD_END_SHIFT << HOLD_END_SHIFT));

	return later < 0 || (later == 0 && is_first);
}

/*
 * What the answer of an entry would have been without the places that were left since: it counts
 * those in force that were entered before the one that is named, which end before it, since all
 * last as long. Those of a dead holder do not count, though no caller has freed them yet.
 */
static void hold_ahead(const struct look *k, struct hold_request *asked, uint64_t word, struct shmlimit_result *r)
{
	struct hold_pair mine = held_as(k, &asked->place, word);
	uint64_t alive = 0, asked_ns = registry_now_ns(), ahead = 0;

	asked->done = mine.value != 0;
	for (uint64_t i = 0; asked->done && i < hold_reach(word, params_tokens(k->params)); i++) {
		struct hold_pair place = place_at(k, i);

		if (!ends_before(place.value, mine.value, i < asked->place.cell) ||
		    !hold_place_is_held(k->params, place, i, word, k->at.now_ns))
			continue;
		ahead += !is_next_orphan(k, place, i, word, asked_ns, &alive);
	}
	if (r != NULL && asked->done)
		hold_report(k->params->capacity, ahead + 1,
		            hold_place_left_ns(k->params, mine, asked->place.cell, word, k->at.now_ns), 0, r);
}

static void hold_row_apply(const struct look *k, const struct request *q, struct balance *b, struct verdict *v,
                           struct shmlimit_result *r)
{
	struct places p;
	uint64_t most;
	int enters;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED, .word = b->hold.word };
	if (q->op == OP_AHEAD) {
		hold_ahead(k, q->hold, b->hold.word, r);
		return;
	}
	if (q->op == OP_RENEW)
		(void)hold_renew(k, q->hold, &b->hold, v);
	else if (q->op == OP_LEAVE)
		hold_leave_timed(k, q, &b->hold);
	else if (q->op == OP_BIND)
		hold_bind(k, q->hold, &b->hold, v);
	if (operation_is_holders(q->op))
		return;
	if (q->limit != NULL && gcra_is_fixed(q->limit)) {
		hold_fixed(q->limit, v, r);
		return;
	}
	p = places_read(k, b->hold.word, q->op == OP_PEEK);
	p.own = bound_now(k, q, b->hold.word);
	most = most_of(q, &p);
	if (q->op == OP_ENTER && q->hold->tried.value != 0 && p.held <= most && hold_renew(k, q->hold, &b->hold, v)) {
		enters = 0; /* it is counted */
	} else {
		enters = hold_ask(k, q, b->hold.word, &p, most, v);
		if (enters)
			hold_enter(k, q, &p, &b->hold, v);
		else if (request_leaves(q))
			p.held -= hold_forget(k, q->hold, &b->hold);
		/* A denial writes then. At the first try it is not to: see decide.c. */
		b->stepped = b->doubtful = v->answer == SHMLIMIT_DENIED && q->op != OP_PEEK &&
		                           (p.stepped || (p.bound && has_orphans(k, b->hold.word)));
	}
	if (params_law(k->params) != 0 && v->answer == SHMLIMIT_DENIED && q->op != OP_PEEK && p.held >= p.own)
		number_denied(k, b->hold.word);
	if (r == NULL)
		return;
	if (v->changed) {
		uint64_t left_ns = hold_end_ns(b->hold.place.value, k->at.now_ns);

		p.longest_ns = left_ns > p.longest_ns ? left_ns : p.longest_ns;
	}
	if (q->limit == NULL && most == cells_of(k))
		most = k->params->capacity;
	hold_report(most, p.held + (enters != 0), p.longest_ns, v->retry_after_ns, r);
}

/* A denied entry found places that end later than they can: they end one period from now. */
static int hold_step_back(const struct look *k, struct slot_seen seen)
{
	uint64_t n = looked_at(k, seen.word), now_ns = k->at.now_ns;

	for (uint64_t i = 0; i < n; i++) {
		struct hold_pair place = place_at(k, i), then = place;

		if (!is_impossible(k, place.value, seen.word, &now_ns))
			continue;
		/*
		 * INVARIANT I3: as in hold_row_before_swap(). A cell that has another value by then
		 * is left as it is.
		 */
		if (!slot_unchanged(k->slot, seen))
			return 0;
		then.value = hold_shortened(k->params, place.value, now_ns);
		(void)hold_place_cas(ring_cells(k), i, place, then);
	}
	return 1;
}

/*
 * The entry that tried a place loses its swap of the word from now on, and the place is not held.
 * Returns whether *seen is the slot still, as it is then.
 */
static int displace(const struct look *k, struct slot_seen *seen, uint64_t i, struct hold_pair place)
{
	uint64_t word = hold_word_next(seen->word, hold_reach(seen->word, UINT64_MAX), k->at.now_ns);

	/* ORDER full; before the cell. INVARIANT I3: the slot was the key's. */
	if (!slot_cas(&k->t->slots[k->slot - k->t->slots], *seen, seen->tag, word))
		return 0;
	seen->word = word;
	(void)hold_place_end(ring_cells(k), i, place);
	return 1;
}

/*
 * Places whose time is over, and whose holder is not known to live, are not held from now on: in
 * this slot a place in force keeps them from being freed.
 */
static void hold_row_sweep(const struct look *k, struct slot_seen seen)
{
	uint64_t asked_ns = registry_now_ns();

	for (uint64_t i = 0; i < params_tokens(k->params) && ring_cells(k) != NULL; i++) {
		struct hold_pair place = place_at(k, i);

		if (!hold_is_of(place.value, seen.word) || hold_end(place.value, k->at.now_ns) > 0)
			continue;
		if (hold_place_lasts(k->params->flags, place, i, seen.word) &&
		    !is_orphan(k, place, i, seen.word, asked_ns))
			continue;
		if (hold_place_is_tried(place, i, seen.word)) {
			if (!displace(k, &seen, i, place))
				return;
			continue;
		}
		/* INVARIANT I3: as in hold_row_before_swap(). */
		if (!slot_unchanged(k->slot, seen))
			return;
		(void)hold_place_end(ring_cells(k), i, place);
	}
}

/* Is a place to be entered what another call tried: see hold.h, step 9. */
static int is_anothers_try(const struct request *q, const struct hold_balance *h, uint64_t word)
{
	const struct hold_place *own = q->op == OP_ENTER ? &q->hold->tried : NULL;

	if (!operation_is_counted(q->op) ||
	    !hold_place_is_tried((struct hold_pair){ h->before, h->owner }, h->place.cell, word))
		return 0;
	return own == NULL || own->value == 0 || own->cell != h->place.cell || !hold_is_same(h->before, own->value);
}

/* The cell's swap, before the word's. Returns 0 where another process was quicker. */
static int hold_row_before_swap(const struct look *k, const struct request *q, struct slot_seen seen,
                                const struct balance *b)
{
	const struct hold_balance *h = &b->hold;
	struct hold_pair before = { h->before, h->owner }, after = { h->place.value, h->holder };

	/* Without addresses for them: decide_slowly() answers by on_full. */
	if (ring_cells(k) == NULL)
		return 0;
	if (b->stepped)
		return !bury(k, seen) && hold_step_back(k, seen);
	if (is_anothers_try(q, h, seen.word)) {
		(void)displace(k, &seen, h->place.cell, before);
		return 0; /* decide again */
	}
	/* INVARIANT I3: the place was read while the slot was the key's: it is no window's. */
	if (!slot_unchanged(k->slot, seen) || !hold_place_cas(ring_cells(k), h->place.cell, before, after))
		return 0;
	/* ORDER: full; before the slot's swap. Pairs with places_read() of a reclaimer. */
	if (q->op == OP_ENTER || q->op == OP_RENEW)
		q->hold->place = q->hold->tried = h->place;
	else if (q->undo != NULL)
		q->undo->place = h->place;
	return 1;
}

/* The word's swap failed: the cell is what it was. */
static void hold_row_lost(const struct look *k, const struct request *q, const struct balance *b)
{
	const struct hold_balance *h = &b->hold;
	uint64_t was = q->op == OP_RENEW ? h->before : hold_without(h->place.value);

	if (q->op == OP_BIND)
		return; /* the place is bound */
	(void)hold_place_cas(ring_cells(k), h->place.cell, (struct hold_pair){ h->place.value, h->holder },
	                     (struct hold_pair){ was, h->holder });
	if (q->op == OP_RENEW)
		q->hold->place.value = h->before;
	else if (q->op == OP_ENTER)
		q->hold->place.value = 0;
	else if (q->undo != NULL)
		q->undo->place.value = 0;
}

/* ---- The row ---- */

static void hold_row_rule(const struct layout_params *params, struct shmlimit_rule *out)
{
	out->law = params_law(params);
	out->least = params_least(params);
}

static void hold_row_range(const struct layout_params *params, struct shmlimit_range *out)
{
	out->resolution_ps = 1000 * HOLD_TICK_NS;
	out->refill_ns = params->back;
	out->ahead_ns = out->back_ns = HOLD_FUTURE_NS - HOLD_TICK_NS;
}

static void hold_row_read(const struct look *k, uint64_t word, struct balance *b)
{
	(void)k;
	b->hold = (struct hold_balance){ .word = word };
	b->stepped = b->doubtful = b->was_empty = 0;
}

static void hold_row_none(const struct look *k, struct balance *b)
{
	hold_row_read(k, 0, b);
}

static uint64_t hold_row_idle_ns(const struct look *k, uint64_t word)
{
	uint64_t ticks = hold_stamp(k->at.now_ns - (word >> HOLD_STAMP_SHIFT << HOLD_STAMP_TICK_BITS));

	return ticks > ((uint64_t)1 << HOLD_STAMP_BITS) - HOLD_STAMP_AHEAD ? 0 : ticks << HOLD_STAMP_TICK_BITS;
}

/*
 * A number that was found is kept for a time. WHY NOT as a wait of that time: on a full table those
 * who enter and leave would push out limits that are in force. So it is the first to go.
 */
static uint64_t hold_row_wait(const struct look *k, const struct balance *b)
{
	uint64_t wait_ns = places_read(k, b->hold.word, 1).longest_ns;

	if (params_law(k->params) == 0 || k->slot == NULL || wait_ns != 0)
		return wait_ns;
	return hold_row_idle_ns(k, b->hold.word) < AUTO_STATE_KEEP_NS;
}

/* Places end when they were to: they are as they were. */
static uint64_t hold_row_convert(const struct look *k, uint64_t word, const struct layout_params *to)
{
	(void)k;
	(void)to;
	return word;
}

static const char *hold_row_fault(const struct layout_params *params, uint64_t word)
{
	return hold_reach(word, UINT64_MAX) > params_tokens(params) ? "more places than there are cells" : NULL;
}

static const char *hold_row_mend(const struct layout_params *params, uint64_t word, uint64_t *mended)
{
	*mended = word - ((hold_reach(word, UINT64_MAX) - hold_reach(word, params_tokens(params))) << HOLD_REACH_SHIFT);
	return "set to what there are";
}

static void hold_row_show(const struct look *k, const struct balance *b, struct shmlimit_slot *out)
{
	struct places p = places_read(k, b->hold.word, 1);
	uint64_t most = params_law(k->params) == 0 ? k->params->capacity : number_now(k, b->hold.word);

	if (params_law(k->params) != 0) {
		struct auto_key key = auto_of(k, b->hold.word);
		struct auto_window w;
		struct auto_law a;

		(void)auto_state_read(&key, &a, &w);
		out->number = most;
		out->base_ns = a.base << AUTO_LAW_UNIT_SHIFT;
		out->queue_milli = auto_law_queue(a.number, a.base, w.took) * 1000 / AUTO_LAW_ONE;
	}
	out->remaining = p.held < most ? most - p.held : 0;
	out->reset_after_ns = p.longest_ns;
}

static uint64_t hold_row_begin(const struct look *k, uint64_t nonce)
{
	return hold_word_next((nonce * 0x9e3779b97f4a7c15u) >> 53, 0, k->at.now_ns);
}

/*
 * What a cell is elsewhere: in a larger table, or of a larger size. One that may be entered is as
 * if entered often before: what a late entry into the old one tried is then no value of the new
 * one.
 */
static struct hold_pair migrated(const struct look *k, struct hold_pair place, uint64_t i, uint64_t word)
{
	if (hold_place_is_held(k->params, place, i, word, k->at.now_ns))
		return place;
	return (struct hold_pair){ ((place.value + CARRIED_NONCES * HOLD_NONCE) & HOLD_NONCES) | (word & HOLD_CLAIM),
		                   HOLD_NOBODY };
}

/* A place, its halves being of one moment. False: another process changed it just now. */
static int place_copy(const struct look *k, uint64_t i, struct hold_pair *place)
{
	*place = place_at(k, i);
	/* ORDER pairs with hold_place_cas(): see hold.h. */
	return load_again(&ring_cells(k)[2 * i]) == place->value;
}

static void hold_migrate_number(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen)
{
	struct auto_key from = auto_of(k, word), there = auto_of(to, seen.word);

	there.seen = seen;
	auto_state_migrate(&from, &there);
}

static int hold_row_migrate(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen,
                            uint64_t *carried)
{
	uint64_t reach = hold_reach(word, params_tokens(k->params)), most = cells_of(to),
		 places = params_tokens(k->params);

	/* There may be more places: they are as if never entered. */
	for (uint64_t i = 0; i < reach || i < most; i++) {
		struct hold_pair here = { 0, 0 }, before = place_at(to, i), place;

		if (i < places && !place_copy(k, i, &here))
			return 0;
		place = migrated(k, here, i, word);
		/*
		 * INVARIANT I13: a carrier that is late finds the slot committed, or the place
		 * written.
		 */
		if (!slot_unchanged(to->slot, seen))
			return 0;
		if ((before.value != place.value || before.owner != place.owner) &&
		    !hold_place_cas(ring_cells(to), i, before, place))
			return 0;
	}
	hold_migrate_number(k, word, to, seen);
	*carried = word;
	return 1;
}

static const struct algorithm_cells hold_cells_row = {
	.begin = hold_row_begin,
	.before_swap = hold_row_before_swap,
	.lost = hold_row_lost,
	.migrate = hold_row_migrate,
	.sweep = hold_row_sweep,
};

const struct algorithm algorithm_hold = {
	.traits = &traits_hold,
	.cells = &hold_cells_row,
	.operations = OPERATIONS_HOLD,
	.one_at_a_time = 1,
	.compile = hold_compile,
	.range = hold_row_range,
	.rule = hold_row_rule,
	.none = hold_row_none,
	.read = hold_row_read,
	.apply = hold_row_apply,
	.wait = hold_row_wait,
	.idle_ns = hold_row_idle_ns,
	.convert = hold_row_convert,
	.fault = hold_row_fault,
	.mend = hold_row_mend,
	.show = hold_row_show,
};
