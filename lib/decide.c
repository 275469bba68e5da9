/*
 * decide: decisions that did not go through at the first try: the key has no
 * slot yet, another process was quicker, the clock is in doubt, the rule is
 * off. See decide.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* Five microseconds at the most: waiting longer than the others need helps nobody. */
#define CK_BACKOFF_CEILING ((1 << 14) - 1)
#include <ck_backoff.h>

#include "decide.h"

/*
 * BOUND: a round fails only when another process changed something in between,
 * so somebody gets on. With back-off this many in a row mean that somebody
 * scribbles over the table; the decision is then made without a slot.
 */
#define ROUNDS 4096

/* One decision under way. */
struct decision {
	const struct request *request;
	struct rule_view view;
	struct funnel_time at;
	struct funnel funnel;             /* leaked up to `at`, then changed as decided */
	uint64_t room_ns;                 /* denied for want of a slot: until there may be one; else 0 */
	uint32_t failed;                  /* compare-and-swaps lost */
	ck_backoff_t backoff;
	int answer;
};

enum progress { FINAL, AGAIN };

static void count(const struct shmlimit *l, const struct decision *d, enum counter which)
{
	counter_add(l, d->request->rule, which, d->request->now_ns);
}

static enum progress lost(struct decision *d)
{
	d->failed++;
	ck_backoff_eb(&d->backoff);
	return AGAIN;
}

/* No slot for a key that has none, or none to be had in peace: the key counts as full, the answer is on_full's. */
static enum progress without_slot(const struct shmlimit *l, struct decision *d)
{
	uint64_t capacity = d->view.terms.capacity;

	count(l, d, COUNT_NO_SLOT);
	d->funnel = funnel_full(&d->view.terms, d->at);
	if (d->request->amount <= capacity && l->on_full != SHMLIMIT_FULL_DENY) {
		d->answer = SHMLIMIT_ALLOWED;
		d->funnel.quota -= d->request->amount;
		return FINAL;
	}
	d->answer = SHMLIMIT_DENIED;
	if (d->request->amount <= capacity && d->room_ns == 0)
		d->room_ns = 1;
	return FINAL;
}

/* Commit the decision to a new slot. */
static enum progress claim(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	struct table_claimed claimed;

	switch (table_claim(l, wanted, funnel_pack(d->funnel), d->at.now_ns, &d->view, &claimed)) {
	case CLAIM_DONE:
		count(l, d, COUNT_CLAIMS);
		if (claimed.from == FROM_REFILLED)
			count(l, d, COUNT_RECLAIMS);
		else if (claimed.from == FROM_LIVE)
			count(l, d, COUNT_EVICTIONS);
		return FINAL;
	case CLAIM_FOUND:
		return AGAIN;
	case CLAIM_LOST:
		return lost(d);
	case CLAIM_NO_ROOM:
		d->room_ns = claimed.room_ns;
		return without_slot(l, d);
	}
	return AGAIN;
}

/* One round: d->view and d->at are set. */
static enum progress attempt(const struct shmlimit *l, struct decision *d)
{
	const struct request *q = d->request;
	struct table_key wanted = { q->hash, tag_pack(q->hash, q->rule, rule_version(&d->view)) };
	struct layout_slot *slot = table_find(l, table_window(l, q->hash), wanted.tag);
	struct slot_seen seen = { 0, 0 };
	int changed = 0;

	if (slot == NULL) {
		d->funnel = funnel_full(&d->view.terms, d->at);
	} else {
		seen = slot_read(slot);
		if (seen.tag != wanted.tag)
			return AGAIN;
		d->funnel = funnel_leak(&d->view.terms, seen.word, d->at);
	}
	d->answer = decide_apply(&d->view.terms, q->verb, q->amount, d->at, &d->funnel, &changed);

	/* A denial that found the clock stepped back writes after all: else the key is locked until time catches up. */
	if (!changed && (!d->funnel.stepped || q->verb == VERB_PEEK))
		return slot == NULL || slot_unchanged(slot, seen) ? FINAL : AGAIN;
	if (slot == NULL)
		return claim(l, d, &wanted);
	return slot_cas(slot, seen, seen.tag, funnel_pack(d->funnel)) ? FINAL : lost(d);
}

/* The time of a word is called impossible only after a second look at the clock: ours may merely be old. */
static int doubtful(const struct shmlimit *l, const struct decision *d)
{
	const struct request *q = d->request;
	struct layout_slot *slot = table_find(l, table_window(l, q->hash),
	                                      tag_pack(q->hash, q->rule, rule_version(&d->view)));

	return slot != NULL && q->source == TIME_OWN &&
	       funnel_leak(&d->view.terms, slot_read(slot).word, d->at).stepped;
}

/* The rule or the segment is switched off: allowed, no funnel being touched. */
static int bypass(const struct shmlimit *l, const struct decision *d, struct shmlimit_result *r)
{
	uint64_t capacity = d->view.terms.capacity;

	if (d->request->verb == VERB_TAKE)
		count(l, d, COUNT_ALLOWED);
	if (r != NULL)
		*r = (struct shmlimit_result){ .limit = capacity, .remaining = capacity };
	return SHMLIMIT_ALLOWED;
}

static int finish(const struct shmlimit *l, const struct decision *d, struct shmlimit_result *r)
{
	const struct request *q = d->request;

	for (uint32_t i = 0; i < d->failed; i++)
		count(l, d, COUNT_FAILED_CAS);
	if (r != NULL)
		decide_report(&d->view.terms, d->funnel, d->at, d->answer, q->amount, r);
	if (r != NULL && d->room_ns != 0)
		r->retry_after_ns = d->room_ns;
	return decide_count(l, q->rule, q->verb, d->answer, d->at.ticks);
}

__attribute__((cold, noinline)) int decide_slowly(const struct shmlimit *l, const struct request *request,
                                                  uint32_t failed, struct shmlimit_result *r)
{
	struct decision d = { .request = request, .failed = failed, .backoff = CK_BACKOFF_INITIALIZER };
	uint64_t now_ns = request->now_ns;

	if (failed != 0)
		ck_backoff_eb(&d.backoff);
	for (int round = 0; round < ROUNDS; round++) {
		int error = rule_load(l, request->rule, &d.view, 1);

		if (error != 0)
			return error;
		if (!rule_is_on(l, request->rule))
			return bypass(l, &d, r);
		d.at = funnel_time(&d.view.terms, now_ns);
		if (doubtful(l, &d)) {
			now_ns = clock_read(l->clock_id);
			d.at = funnel_time(&d.view.terms, now_ns);
		}
		if (attempt(l, &d) == FINAL)
			return finish(l, &d, r);
	}
	if (request->verb == VERB_TAKE)
		without_slot(l, &d);
	return finish(l, &d, r);
}
