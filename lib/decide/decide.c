/*
 * decide: decisions that did not go through at the first try: the key has no
 * slot yet, another process was quicker, the clock is in doubt, the rule is
 * off, or not a FUNNEL. See decide.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decision.h"

#include "algorithm.h"
#include "carry.h"
#include "stored_key.h"

/*
 * BOUND: a round fails only when another process changed something in between,
 * so somebody gets on. With back-off this many in a row mean that somebody
 * scribbles over the table; the decision is then made without a slot.
 */
#define ROUNDS 4096

/*
 * Would even a full funnel owe more than the rule's longest debt, or than limit_ns? Compared in ticks, which are exact:
 * the nanoseconds of a debt depend on where in a tick the caller asks.
 */
static int never_fits(const struct layout_terms *terms, uint64_t amount, uint64_t limit_ns, struct funnel_time at)
{
	struct funnel full = funnel_full(terms, at);
	uint64_t debt;

	return !funnel_borrow(terms, &full, amount, at, &debt) ||
	       (!(terms->flags & SHMLIMIT_NEXT_PAYS) && debt > funnel_time(terms, limit_ns).stamp);
}

void decide_reserve(const struct layout_terms *terms, uint64_t amount, uint64_t max_wait_ns, struct funnel_time at,
                    struct funnel *funnel, struct verdict *v)
{
	uint64_t limit_ns = max_wait_ns < terms->max_wait_ns ? max_wait_ns : terms->max_wait_ns;
	uint64_t before = funnel_debt(terms, *funnel, at), debt, over = 0, over_ns, wait_ns;
	struct funnel borrowed = *funnel;

	if (amount == 0)
		return;
	if (amount > terms->capacity && never_fits(terms, amount, limit_ns, at)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
		return;
	}
	if (!funnel_borrow(terms, &borrowed, amount, at, &debt)) {
		over = debt; /* and beyond that it is the longest */
		debt = terms->debt;
	}
	over_ns = funnel_stamp_to_ns(terms, at, over);
	if (terms->flags & SHMLIMIT_NEXT_PAYS)
		wait_ns = funnel_stamp_to_ns(terms, at, before);
	else
		wait_ns = funnel_stamps_to_ns(terms, at, debt, over);
	if (over == 0 && wait_ns <= limit_ns) {
		*funnel = borrowed;
		v->wait_ns = wait_ns;
		v->changed = 1;
		return;
	}
	/* Debt and wait get shorter by just the time that passes, until the funnel is full; and then it has enough. */
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = wait_ns > limit_ns ? wait_ns - limit_ns : 0;
	if (over_ns > v->retry_after_ns)
		v->retry_after_ns = over_ns;
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

/* The word that says what was decided. */
static uint64_t decided(const struct decision *d)
{
	switch (terms_algorithm(&d->view.terms)) {
	case SHMLIMIT_WINDOW:
		return window_pack(&d->view.terms, d->after);
	case SHMLIMIT_LEASE:
		return lease_pack(&d->view.terms, d->lease);
	default:
		return funnel_pack(&d->view.terms, d->funnel);
	}
}

/*
 * No slot for a key that has none, or none to be had in peace: the key counts as
 * full, or as what it is in the table before, and the answer is on_full's.
 */
static enum progress without_slot(const struct shmlimit *l, struct decision *d)
{
	decision_count(l, d, COUNT_NO_SLOT);
	PROBE(full, d->request->rule, d->request->hash, d->request->amount);
	if (!d->homeless)
		decision_stand_full(d);
	apply(l, d);
	d->nowhere = 1;
	if (l->on_full != SHMLIMIT_FULL_DENY || d->request->verb == VERB_CHARGE || d->request->verb >= VERB_DEPOSIT)
		return FINAL;
	d->v.answer = SHMLIMIT_DENIED;
	if (d->room_ns == 0)
		d->room_ns = 1;
	return FINAL;
}

/* Commit the decision, made on a full funnel, to a new slot. */
static enum progress claim(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	const struct request *q = d->request;
	struct table_place place;
	uint64_t word;
	enum claim ended = table_place(l, &d->tables, wanted, d->at.now_ns, q->source == TIME_GIVEN, &d->view, &place);

	decision_count_taken(l, d, &place);
	switch (ended) {
	case CLAIM_DONE:
		break;
	case CLAIM_FOUND:
		return AGAIN;
	case CLAIM_LOST:
		return decision_lost(d);
	case CLAIM_NO_ROOM:
		d->room_ns = place.room_ns;
		return without_slot(l, d);
	}
	if (q->source != TIME_GIVEN) {
		d->at = funnel_time(&d->view.terms, clock_read(l->clock_id));
		decision_stand_full(d);
		apply(l, d);
	}
	word = decided(d);
	if (!table_commit(&place, wanted->tag, word))
		return decision_lost(d);
	if (l->names_max != 0)
		stored_key_write(l, &d->tables.now, place.slot, wanted->plain, q->key->bytes, q->key->len);
	decision_count(l, d, COUNT_CLAIMS);
	decide_note(q->undo, &d->v, place.slot, place.seen, 1, (struct slot_seen){ wanted->tag, word });
	if (is_window(d))
		ring_complete(l, &d->tables.now, place.slot, &d->view.terms, (struct slot_seen){ wanted->tag, word },
		              &d->after, 1);
	return FINAL;
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
		return decision_lost(d);
	if (d->request->verb != VERB_REFUND && d->v.changed)
		ring_complete(l, d->in, d->slot, terms, mine, &d->after, 1);
	decide_note(d->request->undo, &d->v, d->slot, d->seen, d->ring.valid == 0, mine);
	return FINAL;
}

/* One round: d->view, d->tables and d->at are set. */
static enum progress attempt(const struct shmlimit *l, struct decision *d)
{
	const struct request *q = d->request;
	struct table_key wanted = table_key(q->hash, q->rule, rule_version(&d->view));
	struct slot_seen mine;

	if (decision_look(l, d, &wanted) == AGAIN)
		return AGAIN;
	if (d->homeless)
		return without_slot(l, d);
	apply(l, d);

	/* A denial that found the clock stepped back writes after all: else the key is locked until time catches up. */
	if (!d->v.changed && (!d->stepped || q->verb == VERB_PEEK)) {
		int stands = d->slot == NULL ? decision_is_nowhere(l, d, &wanted) : slot_unchanged(d->slot, d->seen);

		return stands ? FINAL : AGAIN;
	}
	if (d->slot == NULL)
		return claim(l, d, &wanted);
	/* What the key was in the table before, if that was not buried, must not come back after a refund. */
	if (q->verb == VERB_REFUND && d->tables.old.slots != NULL)
		carry_bury(l, &d->tables.old, &wanted);
	if (is_window(d))
		return move_window(l, d);
	mine = (struct slot_seen){ d->seen.tag, decided(d) };
	if (!slot_cas(d->slot, d->seen, mine.tag, mine.word))
		return decision_lost(d);
	decide_note(q->undo, &d->v, d->slot, d->seen, 0, mine);
	return FINAL;
}

/* The rule or the segment is switched off: allowed, no funnel being touched. */
static int bypass(const struct shmlimit *l, const struct decision *d, struct shmlimit_result *r)
{
	struct shmlimit_rule rule = { 0 };

	if (decide_counts(d->request->verb))
		decision_count(l, d, COUNT_ALLOWED);
	decide_show(d->request->rule, d->request->verb, d->request->hash, d->request->amount, SHMLIMIT_ALLOWED);
	algorithm_rule(&d->view.terms, &rule);
	if (r != NULL)
		*r = (struct shmlimit_result){ .limit = rule.capacity, .remaining = rule.capacity };
	return SHMLIMIT_ALLOWED;
}

/*
 * Fill the caller's result, if there is one. An algorithm that does not exist, in a record that was written over, is
 * reported as what apply() decided it as: otherwise the caller would read what was on its stack before.
 */
static void report(const struct shmlimit *l, const struct decision *d)
{
	const struct layout_terms *terms = &d->view.terms;

	switch (terms_algorithm(terms)) {
	case SHMLIMIT_WINDOW:
		break; /* apply() has done it, while it had the ring */
	case SHMLIMIT_WARMUP:
		if (d->r != NULL)
			decide_warmup_report(terms, d->funnel, d->at, &d->v, d->r);
		break;
	case SHMLIMIT_LEASE:
		decide_lease_report(l, terms, &d->lease, &d->tally, &d->v, d->at.ticks, d->r);
		break;
	default:
		if (d->r != NULL)
			decide_report(terms, d->funnel, d->at, d->request->verb, &d->v, d->request->amount, d->r);
	}
}

static int finish(const struct shmlimit *l, const struct decision *d)
{
	const struct request *q = d->request;

	for (uint32_t i = 0; i < d->failed; i++)
		decision_count(l, d, COUNT_FAILED_CAS);
	decide_show(q->rule, q->verb, q->hash, q->amount, d->v.answer);
	report(l, d);
	if (d->r != NULL && d->room_ns != 0 && d->v.answer == SHMLIMIT_DENIED)
		d->r->retry_after_ns = d->room_ns;
	if (d->r != NULL && d->nowhere && q->verb == VERB_CHARGE && q->amount != 0)
		d->r->retry_after_ns = FUNNEL_NEVER;
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
		generation_read(l, &d.tables);
		if (!rule_is_on(l, &d.view))
			return bypass(l, &d, r);
		d.at = funnel_time(&d.view.terms, request->now_ns);
		if (attempt(l, &d) == FINAL)
			return finish(l, &d);
	}
	d.nowhere = 1;
	if (decide_counts(request->verb))
		without_slot(l, &d);
	return finish(l, &d);
}
