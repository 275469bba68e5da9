/*
 * save: write what a segment holds to a file. See state.h for the bytes.
 *
 * Rules stand still, for the writers' lock is held; decisions go on. A slot is
 * read as one thing, and told as of the moment at which the save began: a time after
 * that is ahead of it. Slots that are equivalent to empty ones are left out.
 *
 * A key may have moved to another slot while the table was walked over, by way of
 * being full in between. Both are written then; the later one was read later, and
 * load keeps that.
 *
 * While keys move from an old table to the present one, both are written, and load makes both.
 * ORDER: the old table is read first, so a key that moves during the save is met in one of them at
 * least. If it is met in both, the one in the present table counts, as it does for decisions
 * (migrate.h), and load drops the other. WHY NOT put all keys into one table: their places come
 * from their whole hashes, of which slots have 47 bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "clock.h"
#include "export.h"
#include "generation.h"
#include "keep_errno.h"
#include "name.h"
#include "ring.h"
#include "rule.h"
#include "save.h"
#include "segment.h"
#include "state.h"
#include "sweep.h"
#include "table.h"

/*
 * After this number of looks it suffices that a busy slot is still the same key's: a window may
 * then seem a bit fuller.
 */
#define CALM_TRIES 16

struct saving {
	struct shmlimit *l;
	struct when when;
	struct state_file file;
	uint64_t then_ns; /* the moment */
	struct generation tables;
	uint32_t rules;         /* of the list */
	struct rule_view *view; /* of each id; published 0: not in use */
	int64_t *times;         /* of one window */
};

static uint64_t now(const struct saving *s)
{
	return when_again(s->l, s->when).ns;
}

static int put_header(struct saving *s)
{
	const struct shmlimit *l = s->l;
	struct state_header h = {
		.version = STATE_VERSION,
		.byte_order = LAYOUT_BYTE_ORDER,
		.slots = s->tables.now.lines * SLOTS_PER_LINE,
		.old_slots = s->tables.old.lines * SLOTS_PER_LINE,
		.slots_max = l->lines_max * SLOTS_PER_LINE,
		.names = l->names_max,
		.rules_max = s->rules,
		.rules_limit = l->rules_max,
		.on_full = l->on_full,
		.clock = l->clock_id == CLOCK_MONOTONIC ? SHMLIMIT_CLOCK_PRECISE : SHMLIMIT_CLOCK_COARSE,
		.switched_off = (load_relaxed(&l->header->state) & STATE_OFF) != 0,
		.mode = l->mode & 0777,
		.uid = l->uid,
		.gid = l->gid,
		.secret = { l->secret[0], l->secret[1] },
		.then_ns = s->then_ns,
	};

	/*
	 * Read after the other, so that what passes in between is not taken for time that has
	 * passed since.
	 */
	h.unix_ns = clock_read(clock_wall(l->clock_id));
	memcpy(h.magic, STATE_MAGIC, sizeof(h.magic));
	for (uint32_t id = 0; id < s->rules; id++)
		h.rules += s->view[id].published != 0;
	return state_put(&s->file, &h, sizeof(h));
}

/*
 * Fill s->view. What slots are judged by must be what a rule compiles to, or the file could not be
 * loaded.
 */
static int look_at_rules(struct saving *s)
{
	struct shmlimit_rule rule;
	struct layout_params params;

	for (uint32_t id = 0; id < s->rules; id++) {
		struct rule_view *view = &s->view[id];

		if (rule_read(s->l, id, view, NULL) != 0) {
			view->published = 0;
			continue;
		}
		rule = (struct shmlimit_rule){ 0 };
		algorithm_rule(&view->params, &rule);
		if (algorithm_compile(&rule, params_cells_size(&view->params), &params) != 0 ||
		    memcmp(&params, &view->params, sizeof(params)) != 0)
			return -EUCLEAN;
	}
	return 0;
}

static int put_rule(struct saving *s, uint32_t id)
{
	const struct layout_params *params = &s->view[id].params;
	struct shmlimit_rule rule = { 0 };
	struct state_rule r = { .id = id,
		                .mode = rule_mode(&s->view[id]),
		                .num = params->num,
		                .den = params->den,
		                .shape = params->shape };
	struct rule_view ignored;

	if (rule_read(s->l, id, &ignored, r.name) != 0 || name_check_any_rule(r.name) != 0)
		return -EUCLEAN;
	algorithm_rule(params, &rule);
	r.set_unix_ns = rule_set_unix_ns(s->l, id, &s->view[id]);
	r.algorithm = rule.algorithm;
	r.flags = rule.flags;
	r.capacity = rule.capacity;
	r.count = rule.refill;
	r.period_ns = rule.period_ns;
	r.max_wait_ns = rule.max_wait_ns;
	r.warmup_ns = rule.warmup_ns;
	r.cold_factor_milli = rule.cold_factor_milli;
	r.credit = rule.credit;
	if (rule.law != 0) {
		r.cold_factor_milli = rule.law;
		r.credit = rule.least;
	}
	memcpy(r.zone, rule.zone, sizeof(r.zone));
	return state_put(&s->file, &r, sizeof(r));
}

/* The times of what was admitted and counts still, latest first. Returns how many. */
static uint64_t list_times(struct saving *s, const struct look *k, uint64_t word)
{
	struct ring ring = ring_read(k, word);
	uint64_t n = 0, last_ns = ring.w.last_ns;

	/* Not only those that the capacity has room for: it may be raised again. */
	for (; n < ring.valid; n++) {
		uint64_t ns = ring_time(k, &ring, n);

		if ((int64_t)(last_ns - ns) < 0)
			ns = last_ns;
		if (window_wait(k->params, ns, k->at.now_ns) == 0)
			break;
		s->times[n] = (int64_t)(ns - s->then_ns);
		last_ns = ns;
	}
	return n;
}

/* What a slot says, as it was seen. Returns false if that is equivalent to an empty slot. */
static int describe_saved(struct saving *s, const struct table_slot *here, struct state_slot *out)
{
	uint64_t now_ns = now(s); /* after the word */
	const struct rule_view *in_force;
	struct slot_seen seen = here->seen;
	struct layout_params params;
	struct rule_view view;
	const struct algorithm *a;
	struct balance b;
	struct look k;

	/* In the old table. */
	seen.tag &= ~TAG_FROZEN;
	/* No key's tag lacks this bit: something else wrote that. */
	if ((seen.tag & TAG_USED) == 0 || rule_load_tag(s->l, seen.tag, &view) != 0)
		return 0;
	in_force = &s->view[tag_rule(seen.tag)];
	params = in_force->params;
	if (in_force->published == 0 || sweep_is_over(s->l, here, when_given(now_ns)))
		return 0;
	a = algorithm_of(&in_force->params);
	/*
	 * A lease is what others gave for a while: they take it back if it is not spent. A place is
	 * a process's.
	 */
	if (!algorithm_is_saved(a))
		return 0;
	/*
	 * From before the rule was changed, by a writer that was killed before it was done: as
	 * table_convert_slot().
	 */
	if ((seen.tag & TAG_VERSION) != (rule_version(in_force) & TAG_VERSION)) {
		if (here->t == &s->tables.old && !table_keeps_something(s->l, here, when_given(now_ns)))
			return 0;
		k = look_make(s->l, here->t, here->slot, &view.params, when_given(now_ns));
		if (algorithm_has_log(a))
			params.shape = view.params.shape; /* its word and its cells as they are */
		else
			seen.word = algorithm_convert(&k, seen.word, &params);
	}
	out->tag = tag_plain(seen.tag, rule_version(&view)) & ~TAG_FLAGS;
	k = look_make(s->l, here->t, here->slot, &params, when_given(now_ns));
	if (algorithm_wait(&k, seen.word) == 0)
		return 0;
	if (algorithm_has_log(a)) {
		out->quota = list_times(s, &k, seen.word);
		out->ticks = 0;
		return out->quota != 0;
	}
	a->read(&k, seen.word, &b);
	a->save(&k, &b, s->then_ns, &out->quota, &out->ticks);
	return 1;
}

static int put_slot(struct saving *s, const struct table *t, uint64_t place, uint64_t index)
{
	struct table_slot here = { .t = t, .slot = &t->slots[place] };
	struct state_slot out = { .index = index };
	int error;

	/* BOUND: a slot that goes to another key at every look is left out. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		here.seen = slot_read(here.slot);
		if ((here.seen.tag & ~TAG_FROZEN) == 0 || !describe_saved(s, &here, &out)) {
			if (slot_unchanged(here.slot, here.seen))
				return 0;
			continue;
		}
		/* ORDER pairs with slot_cas() of the other processes. */
		if (!slot_unchanged(here.slot, here.seen) &&
		    (i < CALM_TRIES || load_again(&here.slot->tag) != here.seen.tag))
			continue;
		error = state_put(&s->file, &out, sizeof(out));
		if (error == 0 && algorithm_has_log(algorithm_of(&s->view[tag_rule(out.tag)].params)))
			error = state_put(&s->file, s->times, out.quota * sizeof(*s->times));
		return error;
	}
	return 0;
}

static int put_table(struct saving *s, const struct table *t, uint64_t first)
{
	int error = 0;

	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE && error == 0; i++)
		error = put_slot(s, t, i, first + i);
	return error;
}

/* The lock is held, so no table comes or goes. */
static int put_all(struct saving *s)
{
	uint64_t end = STATE_END;
	int error = look_at_rules(s);

	if (!generation_read(s->l, &s->tables))
		return -EUCLEAN;
	s->then_ns = now(s);
	if (error == 0)
		error = put_header(s);
	for (uint32_t id = 0; id < s->rules && error == 0; id++)
		if (s->view[id].published != 0)
			error = put_rule(s, id);
	if (error == 0)
		error = put_table(s, &s->tables.old, 0);
	if (error == 0)
		error = put_table(s, &s->tables.now, s->tables.old.lines * SLOTS_PER_LINE);
	if (error == 0)
		error = state_put(&s->file, &end, sizeof(end));
	if (error == 0 && !generation_holds(s->l, &s->tables))
		error = -EUCLEAN;
	return error != 0 ? error : state_end(&s->file);
}

int save(struct shmlimit *l, int fd, struct when when)
{
	KEEP_ERRNO;
	struct saving s = { .l = l, .when = when, .file.fd = fd };
	int error, lock;

	error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error != 0)
		return error;
	s.rules = rule_count(l);
	s.view = calloc(s.rules, sizeof(*s.view));
	s.times = calloc(STATE_TIMES_MAX, sizeof(*s.times));
	error = s.view == NULL || s.times == NULL ? -ENOMEM : put_all(&s);
	free(s.times);
	free(s.view);
	segment_unlock(lock);
	return error;
}

EXPORT int shmlimit_save(struct shmlimit *l, int fd)
{
	return l == NULL ? -EINVAL : save(l, fd, when_clock());
}
