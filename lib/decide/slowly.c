/*
 * slowly: decisions that did not go through at the first try: the key has no slot
 * yet, another process was quicker, the clock is in doubt, the rule is off or was
 * changed, the table grows. See decide.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "attempt.h"

#include "migrate.h"
#include "pause.h"
#include "stored_key.h"
#include "sweep.h"

/*
 * BOUND: a round fails only when another process changed something in between,
 * so some process makes progress. With back-off this many in a row mean that a process
 * overwrites the table at random; the decision is then made without a slot (I6).
 */
#define ROUNDS 4096

uint64_t decide_paused(const struct shmlimit *l, const struct pause_key *key, struct when when)
{
	struct shmlimit_count found = { 0 };
	struct count_request look = { .out = &found };
	int rule = rule_find(l, PAUSE_RULE);
	struct request q;

	if (rule < 0)
		return 0;
	q = request_make(OP_COUNT_LOOK, rule, key_bytes(key->bytes, key->len), 0, when);
	q.count = &look;
	q.hash = decide_hash(l, &q);
	/* Looks at a count, which no pause denies: so this does not come here again. */
	return decide_slowly(l, &q, 0, NULL) == SHMLIMIT_ALLOWED && found.count != 0 ? found.ttl_ns : 0;
}

/*
 * The answer while the key is paused: as a look has it, but denied, until the pause is over or
 * longer.
 */
static void apply_paused(const struct shmlimit *l, struct attempt *d)
{
	const struct request *q = d->request;
	struct request looks = request_as(q, OP_PEEK);
	struct look k = attempt_where(l, d);
	struct count_request look = { 0 };

	if (q->op == OP_COUNT) {
		look.out = q->count->out;
		looks.op = OP_COUNT_LOOK;
		looks.count = &look;
	}
	d->a->apply(&k, &looks, &d->b, &d->v, d->r);
	if (d->r != NULL && (d->v.answer != SHMLIMIT_DENIED || d->r->retry_after_ns < d->paused_ns))
		d->r->retry_after_ns = d->paused_ns;
	d->v.answer = SHMLIMIT_DENIED;
	d->v.changed = 0;
	if (d->r == NULL)
		return;
	d->r->wait_ns = 0;
	d->r->granted = rule_mode(&d->view) == SHMLIMIT_DRY_RUN ? q->amount : 0;
}

/* The operation itself, on what the key has. */
static void apply(const struct shmlimit *l, struct attempt *d)
{
	struct look k = attempt_where(l, d);

	if (d->paused_ns != 0)
		apply_paused(l, d);
	else if (d->request->op == OP_TAKE_SOME)
		decide_some(&k, d->request, rule_mode(&d->view), &d->b, &d->v, d->r);
	else
		d->a->apply(&k, d->request, &d->b, &d->v, d->r);
}

/*
 * The key cannot get a slot: its probe window is full, others keep taking it, or there is no memory
 * for its cells. It counts as full, or as what it is in the old table, and the answer is on_full's
 * (I9).
 */
static enum progress without_slot(const struct shmlimit *l, struct attempt *d)
{
	attempt_count(l, d, COUNT_NO_SLOT);
	PROBE(full, d->request->rule, d->request->hash, d->request->amount);
	if (!d->homeless)
		attempt_has_none(l, d);
	apply(l, d);
	d->nowhere = 1;
	if (l->on_full != SHMLIMIT_FULL_DENY || operation_has_happened(d->request->op))
		return FINAL;
	d->v.answer = SHMLIMIT_DENIED;
	if (d->room_ns == 0)
		d->room_ns = 1;
	return FINAL;
}

/* Commit the decision, made on a full funnel, to a new slot. */
static enum progress claim(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted)
{
	int begins = d->a->cells != NULL && d->a->cells->begin != NULL;
	const struct request *q = d->request;
	struct table_place place;
	struct slot_seen mine;
	struct look k;
	struct table_claim c = attempt_claim(d, wanted);
	enum claim ended = table_place(l, &c, &place);

	attempt_count_taken(l, d, &place);
	switch (ended) {
	case CLAIM_DONE:
		break;
	case CLAIM_FOUND:
		return AGAIN;
	case CLAIM_LOST:
		return attempt_lost(d);
	case CLAIM_NO_ROOM:
		d->room_ns = place.room_ns;
		return without_slot(l, d);
	}
	/*
	 * I1. ORDER the clock is read after table_place()'s look at the probe window: see table.c.
	 */
	if (!q->when.given) {
		d->at = funnel_time(&d->view.params, when_again(l, q->when).ns);
		attempt_has_none(l, d);
		apply(l, d);
	}
	k = look_make(l, &d->tables.now, place.slot, &d->view.params, attempt_when(d));
	mine = (struct slot_seen){ wanted->tag, begins ? d->a->cells->begin(&k, place.seen.word) : d->v.word };
	if (!table_commit(&place, mine.tag, mine.word))
		return attempt_lost(d);
	if (l->names_max != 0)
		stored_key_write(l, &d->tables.now, place.slot, wanted->plain, q->key);
	attempt_count(l, d, COUNT_CLAIMS);
	if (begins)
		return AGAIN; /* the key has a slot, in which nothing is held: decide on that */
	decide_note(q->undo, &d->v, place.slot, place.seen, 1, mine);
	algorithm_after_swap(d->a, &k, mine, &d->b);
	return FINAL;
}

/* Commit a decision to the slot that the key has. */
static enum progress move(const struct shmlimit *l, struct attempt *d)
{
	const struct request *q = d->request;
	struct slot_seen mine = { d->here.seen.tag, d->v.word };
	struct look k = attempt_where(l, d);

	if (d->a->cells != NULL && ring_cells(&k) == NULL)
		return without_slot(l, d);
	if (!algorithm_before_swap(d->a, &k, q, d->here.seen, &d->b))
		return attempt_lost(d);
	/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
	if (!slot_cas(d->here.slot, d->here.seen, mine.tag, mine.word)) {
		algorithm_lost(d->a, &k, q, &d->b);
		return attempt_lost(d);
	}
	if (q->op != OP_REFUND && d->v.changed)
		algorithm_after_swap(d->a, &k, mine, &d->b);
	if (q->undo != NULL)
		q->undo->at_ns = d->at.now_ns;
	decide_note(q->undo, &d->v, d->here.slot, d->here.seen, d->b.was_empty, mine);
	return FINAL;
}

/* One round: d->view, d->tables and d->at are set. */
static enum progress try_once(const struct shmlimit *l, struct attempt *d)
{
	const struct request *q = d->request;
	struct table_key wanted = table_key(q->hash, q->rule, rule_version(&d->view));

	/*
	 * What was taken under an earlier version of the rule, or under the rule before it, has no
	 * meaning under this one.
	 */
	if (q->op == OP_REFUND && q->taken != NULL && q->taken->after.tag != wanted.tag)
		return FINAL;
	if (attempt_look(l, d, &wanted) == AGAIN)
		return AGAIN;
	if (d->homeless)
		return without_slot(l, d);
	apply(l, d);

	/*
	 * A denial that found the clock stepped back writes after all: else the key is locked until
	 * time catches up.
	 */
	if (!d->v.changed && (!d->b.stepped || operation_only_looks(q->op) || d->paused_ns != 0)) {
		/* I5. ORDER slot_unchanged() pairs with slot_cas() of the other processes. */
		int stands = d->here.slot == NULL ? attempt_is_nowhere(l, d, &wanted)
		                                  : slot_unchanged(d->here.slot, d->here.seen);

		/* The rule, too, where a place was left: see hold.h. */
		if (request_leaves(q) && !rule_holds(l, q->rule, &d->view))
			stands = 0;
		return stands ? FINAL : AGAIN;
	}
	if (d->here.slot == NULL)
		return claim(l, d, &wanted);
	/*
	 * What the key was in the old table, if that was not buried, must not come back after a
	 * refund.
	 */
	if (q->op == OP_REFUND && d->tables.old.slots != NULL)
		migrate_bury(l, &d->tables.old, &wanted);
	return move(l, d);
}

/*
 * The rule or the segment is switched off, or the rule blocks: the mode answers, and no funnel is
 * touched.
 */
static int bypass(const struct shmlimit *l, const struct attempt *d, struct shmlimit_result *r)
{
	const struct request *q = d->request;
	int counted = operation_is_counted(q->op);
	int blocks = rule_mode(&d->view) == SHMLIMIT_BLOCK && (load_relaxed(&l->header->state) & STATE_OFF) == 0;
	int denied = blocks && (counted || q->op == OP_PEEK);
	struct shmlimit_rule rule = { 0 };

	if (counted)
		attempt_count(l, d, denied ? COUNT_DENIED : COUNT_ALLOWED);
	decide_show(q, denied ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
	algorithm_rule(&d->view.params, &rule);
	if (q->limit != NULL)
		rule.capacity = q->limit->capacity;
	/* WHY never after a charge, too: nothing was charged. A refund had nothing to give back. */
	if (r != NULL && blocks)
		*r = (struct shmlimit_result){ .retry_after_ns = q->op == OP_REFUND ? 0 : FUNNEL_NEVER };
	else if (r != NULL)
		*r = (struct shmlimit_result){ .limit = rule.capacity,
			                       .remaining = rule.capacity,
			                       .granted = q->amount };
	return denied ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED;
}

/*
 * The rule's pauses: is the key in one? Once the last of them is over, the mark in `published` is
 * removed, so that first tries decide again. Then, and if the rule has changed, returns false. A
 * request that has tried a place is not asked again: it is to enter or leave that.
 */
static int look_at_pauses(const struct shmlimit *l, struct attempt *d)
{
	const struct request *q = d->request;
	struct pause_key key;

	if (paused_is_over(published_paused(d->view.published), q->when.ns)) {
		if (l->read_only || operation_only_looks(q->op))
			return 1;
		(void)word_cas(&l->rules[q->rule].published, d->view.published, d->view.published & ~PUBLISHED_PAUSED);
		return 0;
	}
	/* A longer key is a pause's own, and no pause is paused. */
	if (!operation_passes(q->op) || request_leaves(q) || q->key.len > SHMLIMIT_KEY_MAX)
		return 1;
	if (!pause_key_make(l, q->rule, d->view.published, q->key, &key))
		return 0;
	d->paused_ns = decide_paused(l, &key, q->when);
	return 1;
}

static int finish_attempt(const struct shmlimit *l, const struct attempt *d)
{
	const struct request *q = d->request;
	struct look k = attempt_where(l, d);

	for (uint32_t i = 0; i < d->failed; i++)
		attempt_count(l, d, COUNT_FAILED_CAS);
	decide_show(q, d->v.answer);
	if (d->a->count != NULL)
		d->a->count(&k, &d->b);
	if (d->r != NULL && d->room_ns != 0 && d->v.answer == SHMLIMIT_DENIED) {
		if (d->r->retry_after_ns < d->room_ns || d->paused_ns == 0)
			d->r->retry_after_ns = d->room_ns;
		if (q->op == OP_TAKE_SOME && rule_mode(&d->view) != SHMLIMIT_DRY_RUN)
			d->r->granted = 0;
	}
	if (d->r != NULL && d->nowhere && q->op == OP_CHARGE && q->amount != 0)
		d->r->retry_after_ns = FUNNEL_NEVER;
	if (d->v.answer > SHMLIMIT_DENIED)
		return d->v.answer;
	return decide_count(l, q, rule_mode(&d->view), d->v.answer, d->at.ticks);
}

__attribute__((cold, noinline)) int decide_slowly(const struct shmlimit *l, const struct request *request,
                                                  uint32_t failed, struct shmlimit_result *r)
{
	struct attempt d = { .request = request, .r = r, .failed = failed, .backoff = CK_BACKOFF_INITIALIZER };

	if (failed != 0)
		ck_backoff_eb(&d.backoff);
	for (int round = 0; round < ROUNDS; round++) {
		int error = rule_load(l, request->rule, &d.view);

		if (error != 0)
			return error;
		d.a = algorithm_of(&d.view.params);
		if (!algorithm_has(d.a, request))
			return -EOPNOTSUPP;
		if (algorithm_lacks_limit(d.a, &d.view.params, request))
			return -EDOM;
		generation_read(l, &d.tables);
		if (!rule_is_on(l, &d.view) && !operation_is_holders(request->op))
			return bypass(l, &d, r);
		d.paused_ns = 0;
		if (published_paused(d.view.published) != 0 && !look_at_pauses(l, &d))
			continue;
		/* I8. ORDER after the rule was read: see sweep.h. */
		if (sweep_is_due(l, request->when.ns) && !operation_only_looks(request->op))
			sweep(l, request->when);
		d.at = funnel_time(&d.view.params, request->when.ns);
		if (try_once(l, &d) == FINAL)
			return finish_attempt(l, &d);
	}
	d.nowhere = 1;
	if (operation_is_counted(request->op))
		without_slot(l, &d);
	return finish_attempt(l, &d);
}
