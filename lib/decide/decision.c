/*
 * decision: what a key is now. See decision.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decision.h"

#include "algorithm.h"
#include "carry.h"
#include "stored_key.h"
#include "warmup.h"

void decision_stand_full(struct decision *d)
{
	d->slot = NULL;
	d->stepped = 0;
	d->funnel = funnel_full(&d->view.terms, d->at);
	d->ring = ring_empty(d->at.now_ns);
	d->lease = lease_none();
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
	                             d->at.now_ns));
	return FINAL;
}

/* A lease does not move, since a word may be carried twice, and its tokens be spent twice: it expires. */
static int is_left_behind(const struct decision *d)
{
	return d->in == &d->tables.old && terms_algorithm(&d->view.terms) == SHMLIMIT_LEASE;
}

/* What was found in the key's slot, or that there is none. */
static enum progress look_at(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	if (d->slot == NULL || is_left_behind(d))
		decision_stand_full(d);
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

	decision_count_taken(l, d, &to);
	if (ended == CLAIM_LOST)
		return decision_lost(d);
	if (ended == CLAIM_DONE && l->names_max != 0)
		stored_key_write(l, &d->tables.now, to.slot, wanted->plain, d->request->key->bytes, d->request->key->len);
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
		d->slot = table_find_any(l, d->in, wanted, TAG_FROZEN, &d->seen);
		return look_at(l, d, wanted);
	}
	if (!carry_freeze(l, d->in, wanted, &from))
		return decision_lost(d);
	d->slot = from.slot;
	d->seen = from.seen;
	if (look_at(l, d, wanted) == AGAIN)
		return AGAIN;
	if (d->slot == NULL)
		return FINAL;
	if (algorithm_wait(l, d->in, d->slot, &d->view.terms, d->seen.word, d->at, q->source == TIME_GIVEN) != 0)
		return carry(l, d, wanted);
	decision_stand_full(d);
	return FINAL;
}

enum progress decision_look(const struct shmlimit *l, struct decision *d, const struct table_key *wanted)
{
	enum progress progress;

	d->homeless = 0;
	d->in = &d->tables.now;
	d->slot = table_find(d->in, table_window(d->in, wanted->hash), wanted->tag);
	if (d->slot != NULL) {
		d->seen = slot_read(d->slot);
		/* Since it was found it was frozen, or became another key's: not to be decided on. */
		if (d->seen.tag != wanted->tag)
			return AGAIN;
	} else {
		d->slot = table_find_any(l, d->in, wanted, 0, &d->seen);
	}
	if (d->slot == NULL && d->tables.old.slots != NULL)
		progress = look_before(l, d, wanted);
	else
		progress = look_at(l, d, wanted);
	/* Not in the present table: then it must be that still. */
	if ((d->slot == NULL || d->in != &d->tables.now) && !generation_holds(l, &d->tables))
		return AGAIN;
	/* What was seen, or not seen, means what we think only if the rule is what we think. */
	return rule_holds(l, d->request->rule, &d->view) ? progress : AGAIN;
}

int decision_is_nowhere(const struct shmlimit *l, const struct decision *d, const struct table_key *wanted)
{
	struct slot_seen seen;

	if (d->tables.old.slots == NULL)
		return 1;
	return table_find_any(l, &d->tables.now, wanted, 0, &seen) == NULL && generation_holds(l, &d->tables);
}
