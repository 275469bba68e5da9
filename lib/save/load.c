/*
 * load: make a segment from what save wrote. See state.h for the bytes.
 *
 * It has no name until all of it is there, so that no process sees a part, and a loader
 * that is killed leaves nothing. Slots go where they were, since keys can't be hashed again:
 * their hashes are not known, but secret and geometry are the old segment's.
 *
 * Pages are checked before anything in them is used; that their numbers make sense
 * is looked at all the same, for nothing here may hang or go astray, whatever
 * a process wrote into a file that has the right checks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "attach.h"
#include "clock.h"
#include "export.h"
#include "generation.h"
#include "keep_errno.h"
#include "make.h"
#include "name.h"
#include "pause.h"
#include "ring.h"
#include "rule_writer.h"
#include "table_grow.h"
#include "save.h"
#include "state.h"
#include "sweep.h"

/* A slot that was filled, for the search for keys that moved while they were saved. */
struct loaded_slot {
	uint64_t tag;
	struct slot_seen filled; /* with this */
	struct layout_slot *slot;
	int in_old;
};

struct loading {
	struct shmlimit *l;
	int only_checks; /* then it has few slots: all of the file's go into the first */
	struct state_file file;
	struct state_header header;
	struct rebase rebase;
	struct generation tables;
	/*
	 * Layout 8 grew for the sake of logs, too: two tables of as many slots. Their keys go into
	 * one: each into its line, where a key of the new table comes first.
	 */
	int merges;
	uint64_t *times; /* of one window, latest first */
	struct loaded_slot *owner;
	size_t owners, room;
};

static int is_zero(const uint64_t *p, size_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

/* Read the header, and make the segment that it describes; *fd is what it will be linked by. */
static int make_saved(struct loading *f, const char *name, uint32_t flags, int *fd)
{
	const struct state_header *h = &f->header;
	struct shmlimit_options o = { .struct_size = sizeof(o) };
	struct layout_header header;
	struct segment segment;
	int error = state_get(&f->file, &f->header, sizeof(f->header));

	if (error != 0)
		return error;
	f->merges = h->old_slots == h->slots;
	o.mode = h->mode | 0600; /* as chmod(1) may have left it; its owner is to be able to manage it */
	o.slots = h->old_slots != 0 ? h->old_slots : h->slots;
	o.slots_max = h->slots_max;
	o.store_keys = h->names;
	o.rules = h->rules_max;
	o.rules_max = (uint32_t)h->rules_limit;
	o.on_full = h->on_full;
	o.clock = h->clock;
	o.flags = SHMLIMIT_OPTION_GROUP;
	o.gid = h->gid;
	if (h->mode == 0 || h->slots == 0 || h->slots % SLOTS_PER_LINE != 0 || h->slots > h->slots_max ||
	    h->old_slots % SLOTS_PER_LINE != 0 || (h->slots / 2 < h->old_slots && !f->merges) || h->slots_max == 0 ||
	    h->rules_max == 0 || h->rules > h->rules_max || h->rules_limit > SHMLIMIT_RULES_MAX ||
	    h->switched_off > 1 || h->gid == UINT32_MAX ||
	    !is_zero(h->reserved, sizeof(h->reserved) / sizeof(h->reserved[0])))
		return -EUCLEAN;
	if ((flags & SHMLIMIT_LOAD_CAN_GROW) && o.slots_max < make_slots_max(h->slots))
		o.slots_max = make_slots_max(h->slots);
	error = f->only_checks ? make_private(&o, h->secret, &header, &segment, fd)
	                       : make_segment(&o, h->secret, &header, &segment, fd);
	if (error != 0)
		return error == -EINVAL ? -EUCLEAN : error;
	if (!f->only_checks)
		segment_give(*fd, h->uid, &segment);
	error = attach(name, &header, &segment, *fd, 1, &f->l);
	if (error == 0)
		f->l->unlinked = *fd + 1;
	if (error == 0 && h->old_slots != 0 && !f->only_checks && !f->merges)
		error = table_grow_unlinked(f->l, *fd, h->slots / SLOTS_PER_LINE);
	if (error == 0 && !generation_read(f->l, &f->tables))
		error = -EUCLEAN;
	if (error != 0) {
		attach_end(f->l);
		segment_close(*fd);
	}
	return error == -EINVAL || error == -EFBIG ? -EUCLEAN : error;
}

/* When that was, and when this is. */
static void find_moment(struct loading *f, uint32_t flags, const struct rebase *given)
{
	uint64_t unix_ns = clock_read(clock_wall(f->l->clock_id));

	if (given != NULL) {
		f->rebase = *given;
	} else {
		f->rebase.now_ns = clock_read(f->l->clock_id);
		/* The real-time clock can be set: a time that it showed before is of no use. */
		f->rebase.elapsed_ns = unix_ns > f->header.unix_ns ? unix_ns - f->header.unix_ns : 0;
	}
	f->rebase.then_ns = f->header.then_ns;
	if (flags & SHMLIMIT_LOAD_NO_ELAPSED)
		f->rebase.elapsed_ns = 0;
}

static int compile_saved(const struct state_rule *r, struct layout_params *params)
{
	const struct layout_params saved = { .shape = r->shape };
	int is_places = traits_of(r->algorithm)->is_places;
	struct shmlimit_rule rule = {
		.algorithm = r->algorithm,
		.flags = r->flags,
		.capacity = r->capacity,
		.refill = r->count,
		.period_ns = r->period_ns,
		.max_wait_ns = r->max_wait_ns,
		.warmup_ns = r->warmup_ns,
		.cold_factor_milli = is_places ? 0 : r->cold_factor_milli,
		.credit = is_places ? 0 : r->credit,
		.law = is_places ? r->cold_factor_milli : 0,
		.least = is_places ? r->credit : 0,
	};

	if (r->zone[0] != '\0') {
		memcpy(rule.zone, r->zone, sizeof(rule.zone));
		rule.zone_offsets[0] = r->num;
		rule.zone_offsets[1] = r->den;
	}
	/* Of layout 8 it is zero. */
	if (params_cells_size(&saved) > CELLS_SIZE_MAX)
		return -EINVAL;
	return algorithm_compile(&rule, params_cells_size(&saved), params);
}

/* Ids ascend: *last is the previous one. */
static int get_rule(struct loading *f, int64_t *last)
{
	struct layout_params params;
	struct state_rule r = { 0 };
	size_t len = f->header.version < STATE_VERSION ? offsetof(struct state_rule, zone) : sizeof(r);
	int error = state_get(&f->file, &r, len);

	if (error != 0)
		return error;
	if ((int64_t)r.id <= *last || r.id >= f->header.rules_max || r.mode > SHMLIMIT_BLOCK ||
	    memchr(r.name, '\0', sizeof(r.name)) == NULL || name_check_any_rule(r.name) != 0 ||
	    rule_find(f->l, r.name) >= 0 || compile_saved(&r, &params) != 0)
		return -EUCLEAN;
	/*
	 * A library that counts a rule's time otherwise would take its funnels for others. A log's
	 * times are nanoseconds, and places are not saved. Ticks of version 2 are converted.
	 */
	if (algorithm_of(&params)->saved_2 != NULL && f->header.version == STATE_VERSION_2)
		r.den = params.den;
	if (params.num != r.num || params.den != r.den ||
	    (params.shape != r.shape && algorithm_of(&params)->cells == NULL))
		return -EPROTO;
	sweep_lower(f->l, &params);
	rule_define(f->l, r.id, &(struct rule_definition){ r.name, r.mode, &params, r.set_unix_ns, 0, 0 });
	*last = r.id;
	return 0;
}

/*
 * Read a window's times; the cells of those that count still are filled, as far as there are any.
 * *word is what the slot shall say.
 */
static int get_times(struct loading *f, const struct table *t, const struct layout_slot *slot,
                     const struct layout_params *params, uint64_t n, uint64_t *word)
{
	uint64_t now_ns = f->rebase.now_ns, kept = 0, latest_ns = now_ns + params->ahead, *cells;
	int64_t before = INT64_MAX;

	for (uint64_t i = 0; i < n; i++) {
		int64_t told;
		int error = state_get(&f->file, &told, sizeof(told));

		if (error != 0)
			return error;
		if (told > before)
			return -EUCLEAN;
		before = told;
		if (kept == window_cells(params))
			continue;
		f->times[kept] = rebase_ns(&f->rebase, told);
		if ((int64_t)(f->times[kept] - latest_ns) > 0)
			f->times[kept] = latest_ns;
		kept += window_wait(params, f->times[kept], now_ns) != 0;
	}
	*word = 0;
	if (kept == 0)
		return 0;
	if (!cells_reserve(f->l, t, slot, params))
		return -ENOSPC;
	cells = cells_at(f->l, t, slot, params);
	*word = window_pack(params, (struct window){ kept, 1, f->times[0] });
	for (uint64_t i = 0; i < kept; i++)
		store_relaxed(&cells[i], f->times[kept - 1 - i]);
	return 0;
}

static int remember(struct loading *f, uint64_t tag, struct layout_slot *slot, int in_old)
{
	if (f->owners == f->room) {
		size_t more = f->room == 0 ? 1024 : 2 * f->room;
		struct loaded_slot *grown = realloc(f->owner, more * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		f->owner = grown;
		f->room = more;
	}
	f->owner[f->owners++] = (struct loaded_slot){ tag, slot_read(slot), slot, in_old };
	return 0;
}

static struct layout_slot *slot_at(const struct loading *f, const struct table *t, uint64_t place)
{
	struct layout_slot *line = &t->slots[place - place % SLOTS_PER_LINE];

	if (f->only_checks)
		return t->slots;
	for (uint64_t i = 0; i < SLOTS_PER_LINE && f->merges; i++)
		if (load_relaxed(&line[(place + i) % SLOTS_PER_LINE].tag) == 0)
			return &line[(place + i) % SLOTS_PER_LINE];
	return &t->slots[place];
}

/* What stands behind an index. */
static int get_slot(struct loading *f, uint64_t index)
{
	int in_old = index < f->header.old_slots;
	const struct table *t = in_old && !f->only_checks && !f->merges ? &f->tables.old : &f->tables.now;
	uint64_t place = in_old ? index : index - f->header.old_slots;
	struct layout_slot *slot = slot_at(f, t, place);
	struct state_slot s;
	struct rule_view view;
	struct look k;
	uint64_t word;
	const struct algorithm *a;
	int error = state_get(&f->file, &s.tag, sizeof(s) - offsetof(struct state_slot, tag));

	if (error != 0)
		return error;
	if ((s.tag & TAG_FLAGS) != 0 || (s.tag & TAG_USED) == 0 || rule_load(f->l, tag_rule(s.tag), &view) != 0)
		return -EUCLEAN;
	a = algorithm_of(&view.params);
	if (!algorithm_is_saved(a))
		return -EUCLEAN;
	if (algorithm_has_log(a)) {
		if (s.quota == 0 || s.quota > STATE_TIMES_MAX)
			return -EUCLEAN;
		error = get_times(f, t, slot, &view.params, s.quota, &word);
	} else {
		if (a->fault != NULL && s.quota > view.params.capacity)
			return -EUCLEAN;
		if (a->saved_2 != NULL && f->header.version == STATE_VERSION_2)
			a->saved_2(&view.params, &s.quota, &s.ticks);
		word = a->load(&view.params, s.quota, s.ticks, &f->rebase);
		if (a->loaded != NULL)
			a->loaded(f->l, word, s.quota, f->rebase.now_ns);
	}
	if (error != 0)
		return error;
	k = look_make(f->l, t, slot, &view.params, when_given(f->rebase.now_ns));
	if (algorithm_wait(&k, word) != 0) {
		store_relaxed(&slot->word, word);
		store_relaxed(&slot->tag, s.tag ^ tag_of_version(rule_version(&view)));
	}
	/*
	 * Also what has refilled since: what was read of the key before, in another slot, is no
	 * longer right.
	 */
	return f->only_checks ? 0 : remember(f, s.tag, slot, in_old);
}

static int by_tag(const void *a, const void *b)
{
	const struct loaded_slot *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	if (x->in_old != y->in_old)
		return y->in_old - x->in_old;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/*
 * No key in two slots. The one that was read later is right: a key moved while it was saved, to
 * another slot of its table or from the old table to the new one.
 */
static void forget_duplicates(struct loading *f)
{
	if (f->owners > 1)
		qsort(f->owner, f->owners, sizeof(*f->owner), by_tag);
	for (size_t i = 1; i < f->owners; i++) {
		const struct loaded_slot *owner = &f->owner[i - 1];

		/* Where two tables became one, another key may have the slot by now. */
		if (owner->tag == f->owner[i].tag)
			(void)slot_cas(owner->slot, owner->filled, 0, 0);
	}
}

/* All behind the header. */
static int load_all(struct loading *f)
{
	uint64_t index, next = 0;
	int64_t last = -1;
	int error = 0;

	for (uint32_t i = 0; i < f->header.rules && error == 0; i++)
		error = get_rule(f, &last);
	sweep_begin(f->l, when_given(f->rebase.now_ns));
	while (error == 0) {
		error = state_get(&f->file, &index, sizeof(index));
		if (error != 0 || index == STATE_END)
			break;
		if (index < next || index >= f->header.old_slots + f->header.slots)
			return -EUCLEAN;
		next = index + 1;
		error = get_slot(f, index);
	}
	if (error == 0)
		error = state_get_end(&f->file);
	forget_duplicates(f);
	pause_resume(f->l, f->rebase.now_ns);
	store_relaxed(&f->l->header->state, f->tables.state | (f->header.switched_off ? STATE_OFF : 0));
	return error;
}

int load(const char *name, int fd, uint32_t flags, const struct rebase *given, struct shmlimit **out)
{
	KEEP_ERRNO;
	struct loading f = { .file.fd = fd, .only_checks = (flags & SHMLIMIT_LOAD_CHECK_ONLY) != 0 };
	int made, error = f.only_checks ? 0 : name_check_segment(name);

	if (error == 0)
		error = make_saved(&f, f.only_checks ? "" : name, flags, &made);
	if (error != 0)
		return error;
	find_moment(&f, flags, given);
	f.times = calloc(STATE_TIMES_MAX + 1, sizeof(*f.times));
	error = f.times == NULL ? -ENOMEM : load_all(&f);
	if (error == 0 && !f.only_checks)
		error = segment_link(made, name);
	f.l->unlinked = 0;
	segment_close(made);
	free(f.owner);
	free(f.times);
	if (error != 0 || out == NULL || f.only_checks)
		attach_end(f.l);
	else
		*out = f.l;
	return error;
}

EXPORT int shmlimit_load(const char *name, int fd, uint32_t flags, struct shmlimit **out)
{
	if ((flags & ~(SHMLIMIT_LOAD_NO_ELAPSED | SHMLIMIT_LOAD_CHECK_ONLY | SHMLIMIT_LOAD_CAN_GROW)) != 0)
		return -EINVAL;
	return load(name, fd, flags, NULL, out);
}
