/*
 * attempt: what a key has now. See attempt.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "attempt.h"

#include <errno.h>

#include "migrate.h"
#include "stored_key.h"
#include "sweep.h"

void attempt_has_none(const struct shmlimit *l, struct attempt *d)
{
	struct look k;

	d->here.t = &d->tables.now;
	d->here.slot = NULL;
	k = attempt_where(l, d);
	d->a->none(&k, &d->b);
}

/* What a word of the key's slot says at d->at. */
static void read_word(const struct shmlimit *l, struct attempt *d, uint64_t word)
{
	struct look k = attempt_where(l, d);

	d->a->read(&k, word, &d->b);
}

/*
 * What a word says now. Before its time is called impossible, or is rebuilt from a
 * few bits: is it only that ours is old? The clock is asked again for this very word,
 * after it was seen: another one may have been written since. So it is for a refund
 * of what was taken before: that may have refilled since, or left the window.
 */
static void read_now(const struct shmlimit *l, struct attempt *d, uint64_t word)
{
	const struct request *q = d->request;

	read_word(l, d, word);
	if (!(d->b.doubtful || q->taken != NULL) || q->when.given)
		return;
	d->at = funnel_time(&d->view.params, when_again(l, q->when).ns);
	read_word(l, d, word);
}

/*
 * A slot from before the rule was changed: to be converted, by what only looks in
 * passing.
 */
static enum progress look_at_old(const struct shmlimit *l, struct attempt *d)
{
	const struct request *q = d->request;
	struct rule_view old;
	struct look k;

	if (!operation_only_looks(q->op)) {
		if (table_convert_slot(l, &d->tables, &d->here, q->when) != -ENOMEM)
			return AGAIN;
		d->homeless = 1;
	}
	if (rule_load_tag(l, d->here.seen.tag & ~TAG_FROZEN, &old) != 0 || old.published != d->view.published)
		return AGAIN;
	if (d->here.t == &d->tables.old && !table_keeps_something(l, &d->here, q->when)) {
		attempt_has_none(l, d);
		return FINAL;
	}
	/* Its word and its cells as they are, until a decision converts them. */
	if (!algorithm_keeps_cells(d->a, &old.params, &d->view.params)) {
		d->view.params.shape = old.params.shape;
		read_now(l, d, d->here.seen.word);
		return FINAL;
	}
	k = look_make(l, d->here.t, d->here.slot, &old.params, when_given(d->at.now_ns));
	read_now(l, d, algorithm_convert(&k, d->here.seen.word, &d->view.params));
	return FINAL;
}

/* A lease stays, since a word may be carried twice, and its tokens be spent twice: it expires. */
static int is_left_behind(const struct attempt *d)
{
	return d->here.t == &d->tables.old && d->a->stays;
}

/* It was over long ago, which what only looks has not swept. */
static int is_over(const struct shmlimit *l, const struct attempt *d)
{
	return operation_only_looks(d->request->op) && sweep_is_due(l, d->request->when.ns) &&
	       sweep_is_over(l, &d->here, d->request->when);
}

/* What was found in the key's slot, or that there is none. */
static enum progress look_at(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted)
{
	if (d->here.slot == NULL || is_left_behind(d) || is_over(l, d))
		attempt_has_none(l, d);
	else if ((d->here.seen.tag & ~TAG_FROZEN) != wanted->tag)
		return look_at_old(l, d);
	else
		read_now(l, d, d->here.seen.word);
	return FINAL;
}

/* The key's slot in the old table says something: carry it over. */
static enum progress migrate(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted)
{
	struct table_place from = { d->here.slot, d->here.seen, FROM_FREE, 0 }, to;
	struct table_claim c = attempt_claim(d, wanted);
	enum claim ended = migrate_key(l, &c, &from, &to);

	attempt_count_taken(l, d, &to);
	if (ended == CLAIM_LOST)
		return attempt_lost(d);
	if (ended == CLAIM_DONE && l->names_max != 0)
		stored_key_write(l, &d->tables.now, to.slot, wanted->plain, d->request->key);
	if (ended != CLAIM_NO_ROOM)
		return AGAIN;
	d->homeless = 1;
	d->room_ns = l->on_full == SHMLIMIT_FULL_DENY ? to.room_ns : 0;
	return FINAL;
}

/*
 * The same for a key that has no slot in the new table, while there are keys in the old one: see
 * migrate.h.
 */
static enum progress look_before(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted)
{
	const struct request *q = d->request;
	struct table_place from;
	struct look k;

	d->here.t = &d->tables.old;
	if (operation_only_looks(q->op)) {
		(void)table_find_any(l, &d->tables.old, wanted, TAG_FROZEN, &d->here);
		return look_at(l, d, wanted);
	}
	if (!migrate_freeze(l, &d->tables.old, wanted, &from))
		return attempt_lost(d);
	d->here.slot = from.slot;
	d->here.seen = from.seen;
	if (look_at(l, d, wanted) == AGAIN)
		return AGAIN;
	if (d->homeless)
		return FINAL;
	k = attempt_where(l, d);
	if (d->here.slot != NULL && algorithm_wait(&k, d->here.seen.word) != 0)
		return migrate(l, d, wanted);
	/*
	 * I3. Before the key is claimed in the new table: under a changed rule the word could say
	 * something again.
	 */
	if (from.slot != NULL && !migrate_bury_place(&from))
		return attempt_lost(d);
	attempt_has_none(l, d);
	return FINAL;
}

enum progress attempt_look(const struct shmlimit *l, struct attempt *d, const struct table_key *wanted)
{
	enum progress progress;

	d->homeless = 0;
	d->here.t = &d->tables.now;
	d->here.slot = table_find(&d->tables.now, wanted->hash, wanted->tag);
	if (d->here.slot != NULL) {
		d->here.seen = slot_read(d->here.slot);
		/* Since it was found it was frozen, or became another key's: not to be used. */
		if (d->here.seen.tag != wanted->tag)
			return AGAIN;
	} else {
		(void)table_find_any(l, &d->tables.now, wanted, 0, &d->here);
	}
	if (d->here.slot == NULL && d->tables.old.slots != NULL)
		progress = look_before(l, d, wanted);
	else
		progress = look_at(l, d, wanted);
	/* ORDER generation_holds() after the look, put_state() before keys move: see migrate.h. */
	/* Not in the present table: then it must be that still. */
	if ((d->here.slot == NULL || d->here.t != &d->tables.now) && !generation_holds(l, &d->tables))
		return AGAIN;
	/*
	 * ORDER rule_holds() after the look, as publish() of the rule's writer before its walk over
	 * the table.
	 */
	/* What was seen, or not seen, is valid only if the rule is still at this version. */
	return rule_holds(l, d->request->rule, &d->view) ? progress : AGAIN;
}

int attempt_is_nowhere(const struct shmlimit *l, const struct attempt *d, const struct table_key *wanted)
{
	struct table_slot found;

	if (d->tables.old.slots == NULL)
		return 1;
	return !table_find_any(l, &d->tables.now, wanted, 0, &found) && generation_holds(l, &d->tables);
}
