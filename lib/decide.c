/*
 * decide: decisions that did not go through at the first try: the key has no
 * slot yet, another process was quicker, the clock is in doubt, the rule is
 * off, or not a FUNNEL. See decide.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* Five microseconds at the most: waiting longer than the others need helps nobody. */
#define CK_BACKOFF_CEILING ((1 << 14) - 1)
#include <ck_backoff.h>

#include "algorithm.h"
#include "carry.h"
#include "decide.h"
#include "names.h"
#include "warmup.h"

/*
 * BOUND: a round fails only when another process changed something in between,
 * so somebody gets on. With back-off this many in a row mean that somebody
 * scribbles over the table; the decision is then made without a slot.
 */
#define ROUNDS 4096

/* One decision under way. */
struct decision {
	const struct request *request;
	struct shmlimit_result *r;        /* or NULL */
	struct rule_view view;
	struct tables tables;
	const struct table *in;           /* where the key's slot is: in this table, ... */
	struct layout_slot *slot;         /* ... here; NULL: nowhere, it is full */
	struct slot_seen seen;
	int homeless;                     /* it says something, in the table before, and finds no place in the present one */
	struct funnel_time at;
	struct funnel funnel;             /* leaked up to `at`, then changed as decided */
	struct ring ring;                 /* WINDOW: as it stands, ... */
	struct window after;              /* ... and as decided */
	struct lease lease;               /* LEASE: as it stands, then as decided */
	struct lease_tally tally;
	int stepped;                      /* the word's time was impossible */
	int doubtful;                     /* what it says depends on a clock that was read after it */
	uint64_t room_ns;                 /* denied for want of a slot: until there may be one; else 0 */
	uint32_t failed;                  /* compare-and-swaps lost */
	ck_backoff_t backoff;
	struct verdict v;
};

enum progress { FINAL, AGAIN };

static void count(const struct shmlimit *l, const struct decision *d, enum counter which)
{
	counter_add(l, d->request->rule, which, d->request->now_ns);
}

/* Nanoseconds of debt that a funnel of these terms cannot avoid for so many tokens, full as it may be. */
static uint64_t least_debt_ns(const struct layout_terms *terms, uint64_t amount, struct funnel_time at)
{
	struct funnel full = funnel_full(terms, at);
	uint64_t debt;

	(void)funnel_borrow(terms, &full, amount, at, &debt);
	return funnel_stamp_to_ns(terms, at, debt);
}

void decide_reserve(const struct layout_terms *terms, uint64_t amount, uint64_t max_wait_ns, struct funnel_time at,
                    struct funnel *funnel, struct verdict *v)
{
	uint64_t limit_ns = max_wait_ns < terms->max_wait_ns ? max_wait_ns : terms->max_wait_ns;
	uint64_t before = funnel_debt(terms, *funnel, at), after;
	struct funnel borrowed = *funnel;
	int fits = funnel_borrow(terms, &borrowed, amount, at, &after);
	int next_pays = (terms->flags & SHMLIMIT_NEXT_PAYS) != 0;
	uint64_t wait_ns = funnel_stamp_to_ns(terms, at, next_pays ? before : after);

	if (amount == 0)
		return;
	if (fits && wait_ns <= limit_ns) {
		*funnel = borrowed;
		v->wait_ns = wait_ns;
		v->changed = 1;
		return;
	}
	v->answer = SHMLIMIT_DENIED;
	/* Time takes from a wait just what passes; but no longer than until the funnel is full. */
	if (after == UINT64_MAX || (!next_pays && least_debt_ns(terms, amount, at) > limit_ns) ||
	    (next_pays && least_debt_ns(terms, amount, at) > funnel_stamp_to_ns(terms, at, terms->debt))) {
		v->retry_after_ns = FUNNEL_NEVER;
		return;
	}
	v->retry_after_ns = wait_ns > limit_ns ? wait_ns - limit_ns : 0;
	if (!fits && funnel_stamp_to_ns(terms, at, after - terms->debt) > v->retry_after_ns)
		v->retry_after_ns = funnel_stamp_to_ns(terms, at, after - terms->debt);
}

static enum progress lost(struct decision *d)
{
	d->failed++;
	ck_backoff_eb(&d->backoff);
	return AGAIN;
}

static int is_window(const struct decision *d)
{
	return terms_algorithm(&d->view.terms) == SHMLIMIT_WINDOW;
}

/* The verb itself, on what stands in the key's slot. */
static void apply(const struct shmlimit *l, struct decision *d)
{
	const struct layout_terms *terms = &d->view.terms;
	const struct request *q = d->request;

	switch (terms_algorithm(terms)) {
	case SHMLIMIT_WINDOW:
		decide_window(l, d->in, d->slot, terms, q, &d->ring, d->at.now_ns, &d->after, &d->v, d->r);
		break;
	case SHMLIMIT_WARMUP:
		decide_warmup(terms, q, d->at, &d->funnel, &d->v);
		break;
	case SHMLIMIT_LEASE:
		decide_lease(terms, q, d->at.now_ns, &d->lease, &d->v, &d->tally);
		break;
	default:
		decide_apply(terms, q->verb, q->amount, q->max_wait_ns, d->at, &d->funnel, &d->v);
	}
}

/* A key that has no slot: its funnel is full, its window empty, its lease none. */
static void stand_full(struct decision *d)
{
	d->slot = NULL;
	d->stepped = 0;
	d->funnel = funnel_full(&d->view.terms, d->at);
	d->ring = ring_empty(d->at.now_ns);
	d->lease = lease_none();
}

/* The word that says what was decided. */
static uint64_t decided(const struct decision *d)
{
	switch (terms_algorithm(&d->view.terms)) {
	case SHMLIMIT_WINDOW:
		return window_pack(&d->view.terms, d->after);
	case SHMLIMIT_LEASE:
		return lease_pack(&d->view.terms, d->lease);
	default:
		return funnel_pack(d->funnel);
	}
}

/*
 * No slot for a key that has none, or none to be had in peace: the key counts as
 * full, or as what it is in the table before, and the answer is on_full's.
 */
static enum progress without_slot(const struct shmlimit *l, struct decision *d)
{
	count(l, d, COUNT_NO_SLOT);
	PROBE(full, d->request->rule, d->request->hash, d->request->amount);
	if (!d->homeless)
		stand_full(d);
	apply(l, d);
	if (l->on_full != SHMLIMIT_FULL_DENY || d->request->verb == VERB_CHARGE || d->request->verb >= VERB_DEPOSIT)
		return FINAL;
	d->v.answer = SHMLIMIT_DENIED;
	if (d->room_ns == 0)
		d->room_ns = 1;
	return FINAL;
}

/* Counted when it is done to the other key, whatever becomes of the claim. */
static void count_taken(const struct shmlimit *l, const struct decision *d, const struct table_place *place)
{
	if (place->from == FROM_REFILLED)
		count(l, d, COUNT_RECLAIMS);
	else if (place->from == FROM_LIVE)
		count(l, d, COUNT_EVICTIONS);
}

/* Commit the decision, made on a full funnel, to a new slot. */
static enum progress claim(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	const struct request *q = d->request;
	struct table_place place;
	uint64_t word;
	enum claim ended = table_place(l, &d->tables, wanted, d->at.now_ns, q->source == TIME_GIVEN, &d->view, &place);

	count_taken(l, d, &place);
	switch (ended) {
	case CLAIM_DONE:
		break;
	case CLAIM_FOUND:
		return AGAIN;
	case CLAIM_LOST:
		return lost(d);
	case CLAIM_NO_ROOM:
		d->room_ns = place.room_ns;
		return without_slot(l, d);
	}
	if (q->source != TIME_GIVEN) {
		d->at = funnel_time(&d->view.terms, clock_read(l->clock_id));
		stand_full(d);
		apply(l, d);
	}
	word = decided(d);
	if (!table_commit(&place, wanted->tag, word))
		return lost(d);
	if (l->names_max != 0)
		names_write(l, &d->tables.now, place.slot, wanted->tag, q->key->bytes, q->key->len);
	count(l, d, COUNT_CLAIMS);
	if (is_window(d))
		ring_complete(l, &d->tables.now, place.slot, &d->view.terms, (struct slot_seen){ wanted->tag, word },
		              &d->after, 1);
	return FINAL;
}

/* What a word of the key's slot says at d->at, in d->funnel or d->ring. */
static void stand(const struct shmlimit *l, struct decision *d, uint64_t word)
{
	switch (terms_algorithm(&d->view.terms)) {
	case SHMLIMIT_WINDOW:
		d->ring = ring_read(l, d->in, d->slot, &d->view.terms, word, d->at.now_ns);
		d->stepped = d->ring.stepped;
		d->doubtful = d->stepped || !d->ring.complete;
		break;
	case SHMLIMIT_WARMUP:
		d->funnel = warmup_leak(&d->view.terms, word, d->at);
		d->stepped = d->doubtful = d->funnel.stepped;
		break;
	case SHMLIMIT_LEASE:
		d->lease = lease_read(&d->view.terms, word, d->at.now_ns);
		d->stepped = d->doubtful = 0;
		break;
	default:
		d->funnel = funnel_leak(&d->view.terms, word, d->at);
		d->stepped = d->doubtful = d->funnel.stepped;
	}
}

/* The request's time is when it was taken, by take_all: what it gives back may have left the window since. */
static int gives_back_late(const struct decision *d)
{
	return d->request->verb == VERB_REFUND && d->request->source == TIME_READ;
}

/*
 * Let a word leak up to now. Before its time is called impossible, or is rebuilt
 * from a few bits: is it only that ours is old? The clock is asked again for this very word, after it was
 * seen: another one may have been written meanwhile.
 */
static void leak(const struct shmlimit *l, struct decision *d, uint64_t word)
{
	stand(l, d, word);
	if (!(d->doubtful || gives_back_late(d)) || d->request->source == TIME_GIVEN)
		return;
	d->at = funnel_time(&d->view.terms, clock_read(l->clock_id));
	stand(l, d, word);
}

/*
 * A slot from before the rule was changed: to be converted, by a peek only in
 * passing.
 */
static enum progress look_at_old(const struct shmlimit *l, struct decision *d)
{
	const struct request *q = d->request;
	struct rule_view old;

	if (q->verb != VERB_PEEK) {
		(void)table_convert_slot(l, d->in, d->slot, d->seen, q->source == TIME_GIVEN ? &q->now_ns : NULL);
		return AGAIN;
	}
	if (rule_load_tag(l, d->seen.tag & ~TAG_FROZEN, &old) != 0 || old.published != d->view.published)
		return AGAIN;
	leak(l, d, algorithm_convert(l, d->in, d->slot, &old.terms, d->seen.word, &d->view.terms,
	                             rule_version(&d->view), d->at.now_ns));
	return FINAL;
}

/* A lease is not carried over, for a word may be carried twice, and then its tokens were spent twice: it lapses. */
static int is_left_behind(const struct decision *d)
{
	return (d->seen.tag & TAG_FROZEN) != 0 && terms_algorithm(&d->view.terms) == SHMLIMIT_LEASE;
}

/* What was found in the key's slot, or that there is none. */
static enum progress look_at(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	if (d->slot == NULL || is_left_behind(d))
		stand_full(d);
	else if ((d->seen.tag & ~TAG_FROZEN) != wanted->tag)
		return look_at_old(l, d);
	else
		leak(l, d, d->seen.word);
	return FINAL;
}

/* The key's slot in the table before says something: carry it over. */
static enum progress carry(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	struct table_place from = { d->slot, d->seen, FROM_FREE, 0 }, to;
	enum claim ended = carry_over(l, &d->tables, wanted, d->at.now_ns, d->request->source == TIME_GIVEN, &d->view,
	                              &from, &to);

	count_taken(l, d, &to);
	if (ended == CLAIM_LOST)
		return lost(d);
	if (ended == CLAIM_DONE && l->names_max != 0)
		names_write(l, &d->tables.now, to.slot, wanted->tag, d->request->key->bytes, d->request->key->len);
	if (ended != CLAIM_NO_ROOM)
		return AGAIN;
	d->homeless = 1;
	d->room_ns = l->on_full == SHMLIMIT_FULL_DENY ? to.room_ns : 0;
	return FINAL;
}

/* The same of a key that has no slot in the present table, while there are keys in the one before: see carry.h. */
static enum progress look_before(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	const struct request *q = d->request;
	struct table_place from;

	d->in = &d->tables.old;
	if (q->verb == VERB_PEEK) {
		d->slot = table_find_any(l, d->in, table_window(d->in, wanted->hash), wanted->tag, TAG_FROZEN, &d->seen);
		return look_at(l, d, wanted);
	}
	if (!carry_freeze(l, d->in, wanted, &from))
		return lost(d);
	d->slot = from.slot;
	d->seen = from.seen;
	if (look_at(l, d, wanted) == AGAIN)
		return AGAIN;
	if (d->slot == NULL)
		return FINAL;
	if (algorithm_wait(l, d->in, d->slot, &d->view.terms, d->seen.word, d->at, q->source == TIME_GIVEN) != 0)
		return carry(l, d, wanted);
	stand_full(d);
	return FINAL;
}

/* What the key's funnel or window is now. */
static enum progress look(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	struct table_window window;
	enum progress progress;

	d->homeless = 0;
	d->in = &d->tables.now;
	window = table_window(d->in, wanted->hash);
	d->slot = table_find(d->in, window, wanted->tag);
	if (d->slot != NULL) {
		d->seen = slot_read(d->slot);
		/* Since it was found it was frozen, or became another key's: not to be decided on. */
		if (d->seen.tag != wanted->tag)
			return AGAIN;
	} else {
		d->slot = table_find_any(l, d->in, window, wanted->tag, 0, &d->seen);
	}
	if (d->slot == NULL && d->tables.old.slots != NULL)
		progress = look_before(l, d, wanted);
	else
		progress = look_at(l, d, wanted);
	/* Not in the present table: then it must be that still. */
	if ((d->slot == NULL || d->in != &d->tables.now) && !tables_hold(l, &d->tables))
		return AGAIN;
	/* What was seen, or not seen, means what we think only if the rule is what we think. */
	return rule_holds(l, d->request->rule, &d->view) ? progress : AGAIN;
}

/* Commit a decision to a WINDOW's slot and ring: see ring.h. */
static enum progress move_window(const struct shmlimit *l, struct decision *d)
{
	const struct layout_terms *terms = &d->view.terms;
	struct slot_seen mine = { d->seen.tag, decided(d) };

	if (d->ring.valid != 0 && (!d->ring.complete || d->ring.w.k > 1))
		ring_complete(l, d->in, d->slot, terms, d->seen, &d->ring.w, 0);
	if (d->request->verb == VERB_REFUND)
		ring_level(l, d->in, d->slot, d->seen, &d->ring, d->request->now_ns);
	if (!slot_cas(d->slot, d->seen, mine.tag, mine.word))
		return lost(d);
	if (d->request->verb != VERB_REFUND && d->v.changed)
		ring_complete(l, d->in, d->slot, terms, mine, &d->after, 1);
	return FINAL;
}

/*
 * Is a key that was found in neither table in none? It may have been carried over after we looked at the present one,
 * before we looked at the other. Who claims looks again anyway.
 */
static int is_nowhere(const struct shmlimit *l, const struct decision *d, const struct table_key *wanted)
{
	const struct table *t = &d->tables.now;
	struct slot_seen seen;

	if (d->tables.old.slots == NULL)
		return 1;
	return table_find_any(l, t, table_window(t, wanted->hash), wanted->tag, 0, &seen) == NULL &&
	       tables_hold(l, &d->tables);
}

/* One round: d->view, d->tables and d->at are set. */
static enum progress attempt(const struct shmlimit *l, struct decision *d)
{
	const struct request *q = d->request;
	struct table_key wanted = { q->hash, tag_pack(q->hash, q->rule, rule_version(&d->view)) };

	if (look(l, d, &wanted) == AGAIN)
		return AGAIN;
	if (d->homeless)
		return without_slot(l, d);
	apply(l, d);

	/* A denial that found the clock stepped back writes after all: else the key is locked until time catches up. */
	if (!d->v.changed && (!d->stepped || q->verb == VERB_PEEK)) {
		int stands = d->slot == NULL ? is_nowhere(l, d, &wanted) : slot_unchanged(d->slot, d->seen);

		return stands ? FINAL : AGAIN;
	}
	if (d->slot == NULL)
		return claim(l, d, &wanted);
	/* What the key was in the table before, if that was not buried, must not come back after a refund. */
	if (q->verb == VERB_REFUND && d->tables.old.slots != NULL)
		carry_bury(l, &d->tables.old, &wanted);
	if (is_window(d))
		return move_window(l, d);
	return slot_cas(d->slot, d->seen, d->seen.tag, decided(d)) ? FINAL : lost(d);
}

/* The rule or the segment is switched off: allowed, no funnel being touched. */
static int bypass(const struct shmlimit *l, const struct decision *d, struct shmlimit_result *r)
{
	struct shmlimit_rule rule = { 0 };

	if (decide_counts(d->request->verb))
		count(l, d, COUNT_ALLOWED);
	decide_show(d->request->rule, d->request->verb, d->request->hash, d->request->amount, SHMLIMIT_ALLOWED);
	algorithm_rule(&d->view.terms, &rule);
	if (r != NULL)
		*r = (struct shmlimit_result){ .limit = rule.capacity, .remaining = rule.capacity };
	return SHMLIMIT_ALLOWED;
}

static int finish(const struct shmlimit *l, const struct decision *d)
{
	const struct request *q = d->request;

	for (uint32_t i = 0; i < d->failed; i++)
		count(l, d, COUNT_FAILED_CAS);
	decide_show(q->rule, q->verb, q->hash, q->amount, d->v.answer);
	if (d->r != NULL && terms_algorithm(&d->view.terms) == SHMLIMIT_FUNNEL)
		decide_report(&d->view.terms, d->funnel, d->at, q->verb, &d->v, q->amount, d->r);
	if (d->r != NULL && terms_algorithm(&d->view.terms) == SHMLIMIT_WARMUP)
		decide_warmup_report(&d->view.terms, d->funnel, d->at, &d->v, d->r);
	if (terms_algorithm(&d->view.terms) == SHMLIMIT_LEASE)
		decide_lease_report(l, &d->view.terms, &d->lease, &d->tally, &d->v, d->at.ticks, d->r);
	if (d->r != NULL && d->room_ns != 0 && d->v.answer == SHMLIMIT_DENIED)
		d->r->retry_after_ns = d->room_ns;
	if (d->v.answer > SHMLIMIT_DENIED)
		return d->v.answer;
	return decide_count(l, q->rule, rule_mode(&d->view), q->verb, d->v.answer, d->at.ticks);
}

int decide_other(const struct shmlimit *l, const struct table *t, const struct request *q, struct shmlimit_result *r)
{
	struct rule_view view;
	uint32_t failed = 0;
	int answer = DECIDE_AGAIN;

	/* Once more, with all that a FUNNEL's decision has no need of; whether it holds is asked later. */
	if (rule_glance(l, q->rule, &view, 1) != 0)
		return decide_slowly(l, q, 0, r);
	if (terms_algorithm(&view.terms) == SHMLIMIT_LEASE)
		answer = decide_lease_first(l, t, q, &view, &failed, r);
	else if (terms_algorithm(&view.terms) == SHMLIMIT_WINDOW && q->verb < VERB_LEASE)
		answer = decide_window_first(l, t, q, &view, &failed, r);
	return answer == DECIDE_AGAIN ? decide_slowly(l, q, failed, r) : answer;
}

__attribute__((cold, noinline)) int decide_slowly(const struct shmlimit *l, const struct request *request,
                                                  uint32_t failed, struct shmlimit_result *r)
{
	struct decision d = { .request = request, .r = r, .failed = failed, .backoff = CK_BACKOFF_INITIALIZER };

	if (failed != 0)
		ck_backoff_eb(&d.backoff);
	for (int round = 0; round < ROUNDS; round++) {
		int error = rule_load(l, request->rule, &d.view);

		if (error != 0)
			return error;
		if (request->verb >= VERB_LEASE && terms_algorithm(&d.view.terms) != SHMLIMIT_LEASE)
			return -EOPNOTSUPP;
		tables_read(l, &d.tables);
		if (!rule_is_on(l, &d.view))
			return bypass(l, &d, r);
		d.at = funnel_time(&d.view.terms, request->now_ns);
		if (attempt(l, &d) == FINAL)
			return finish(l, &d);
	}
	if (decide_counts(request->verb))
		without_slot(l, &d);
	return finish(l, &d);
}
