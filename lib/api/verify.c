/*
 * verify: check a segment from outside, one that cannot be opened too; and repair
 * what can be repaired without guessing.
 *
 * A repair makes of a damaged word what decisions make of it already, or frees a
 * slot that they take for free. Where two slots are one key's, which of them they
 * find depends on bits that no slot has: the one that is full later stays, so that
 * no key gets more than before. A decision beside it sees a slot that changed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "attach.h"
#include "clock.h"
#include "export.h"
#include "generation.h"
#include "keep_errno.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "sweep.h"
#include "table.h"

/* What was found so far. */
struct findings {
	struct shmlimit_problem *list;
	size_t room;
	int count;
	int repairing; /* only what was repaired counts, and is reported with what was done */
};

/* `done` NULL: nothing was repaired. */
__attribute__((format(printf, 4, 5))) static void report(struct findings *f, uint64_t offset, const char *done,
                                                         const char *format, ...)
{
	va_list ap;

	if (f->repairing && done == NULL)
		return;
	if ((size_t)f->count < f->room) {
		struct shmlimit_problem *problem = &f->list[f->count];
		size_t used;

		problem->offset = offset;
		va_start(ap, format);
		vsnprintf(problem->text, sizeof(problem->text), format, ap);
		va_end(ap);
		used = strlen(problem->text);
		if (done != NULL)
			snprintf(problem->text + used, sizeof(problem->text) - used, ": %s", done);
	}
	if (f->count < INT_MAX)
		f->count++;
}

static uint64_t offset_of(const struct shmlimit *l, const void *p)
{
	return (uint64_t)((const char *)p - (const char *)l->header);
}

/* Swap a slot, unless another process changed it first: then there is nothing to report. */
static const char *mend_slot(const struct findings *f, struct layout_slot *slot, struct slot_seen seen, uint64_t tag,
                             uint64_t word, const char *done)
{
	return f->repairing && slot_cas(slot, seen, tag, word) ? done : NULL;
}

/*
 * Is it a table that was checked when this was opened, none, or what a grower is about to publish,
 * or was?
 */
static int is_told(const struct shmlimit *l, const struct layout_table *told, uint64_t i)
{
	uint64_t offset = load_relaxed(&told->offset), lines = load_relaxed(&told->lines), generation;
	struct generation tables;

	generation_read(l, &tables);
	generation = state_generation(tables.state);
	if (generation % 2 == i && generation != 0)
		return 1;
	/* Not yet, or not any more since it was repaired. */
	if (offset == 0 && lines == 0)
		return 1;
	if (generation % 2 == i)
		return 0;
	/* A process killed between the two stores leaves the old lines. */
	if (lines > l->lines_max)
		return 0;
	if (generation >= 2)
		return offset % 4096 == 0 && offset >= l->tables_offset && offset < l->size;
	return offset == generation_next(l, &tables.now) && (lines == 0 || lines >= 2 * tables.now.lines);
}

/* All tables in use are known here: the rest belongs to none of them. */
static const char *mend_told(const struct findings *f, struct layout_table *told)
{
	if (!f->repairing)
		return NULL;
	store_relaxed(&told->offset, 0);
	store_relaxed(&told->lines, 0);
	return "set to zero";
}

/* As long as its last rule requires: what was never used is zero. */
static const char *mend_list(const struct shmlimit *l, const struct findings *f)
{
	uint32_t rules = l->rules_max;

	if (!f->repairing)
		return NULL;
	while (rules > l->header->rules && load_acquire(&l->rules[rules - 1].published) == 0)
		rules--;
	publish(&l->header->rules_now, rules);
	return "set to what its rules need";
}

/* The lines that no checksum covers: the switch, the larger tables, the list of rules. */
static void check_header_tail(const struct shmlimit *l, struct findings *f)
{
	struct layout_header *h = l->header;

	if (load_relaxed(&h->rules_now) < h->rules || load_relaxed(&h->rules_now) > l->rules_max)
		report(f, offset_of(l, &h->rules_now), mend_list(l, f),
		       "the list of rules is none that there can be: %llu",
		       (unsigned long long)load_relaxed(&h->rules_now));
	for (uint64_t i = 0; i < 2; i++)
		if (!is_told(l, &h->tables[i], i))
			report(f, offset_of(l, &h->tables[i]), mend_told(f, &h->tables[i]),
			       "table %u is none that there is or could be next", (unsigned)i);
}

/* No decision may go by what is not swept for longer than a rule's words tell. */
static const char *mend_sweep(const struct shmlimit *l, const struct findings *f, uint64_t due_ns)
{
	if (!f->repairing)
		return NULL;
	store_relaxed(&l->header->sweep_after_ns, due_ns);
	return "set to that";
}

/*
 * How long after a sweep the table is due: no later than any rule in force requires. The mark
 * itself needs no repair.
 */
static void check_sweep(const struct shmlimit *l, struct findings *f)
{
	uint64_t due_ns = SWEEP_AFTER_MAX_NS;

	for (uint32_t id = 0, rules = rule_count(l); id < rules; id++) {
		struct rule_view view;

		if (rule_read(l, id, &view, NULL) == 0 && sweep_after(&view.params) < due_ns)
			due_ns = sweep_after(&view.params);
	}
	if (load_relaxed(&l->header->sweep_after_ns) > due_ns)
		report(f, offset_of(l, &l->header->sweep_after_ns), mend_sweep(l, f, due_ns),
		       "the table is swept less often than its rules require: every %" PRIu64 " ns", due_ns);
}

static void check_rule(const struct shmlimit *l, uint32_t id, struct findings *f)
{
	struct layout_rule *record = &l->rules[id];
	uint64_t offset = offset_of(l, record);
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule = { 0 };
	struct layout_params params;
	struct rule_view view;

	if (rule_read(l, id, &view, name) != 0)
		return;
	if (name_check_any_rule(name) != 0)
		report(f, offset + offsetof(struct layout_rule, name), NULL, "rule %u: its name is not a rule's name",
		       id);
	for (uint32_t other = 0; other < id; other++) {
		char duplicate[SHMLIMIT_RULE_NAME_MAX + 1];
		struct rule_view ignored;

		if (rule_read(l, other, &ignored, duplicate) == 0 && strcmp(name, duplicate) == 0)
			report(f, offset, NULL, "rule %u: has the name of rule %u", id, other);
	}
	algorithm_rule(&view.params, &rule);
	if (algorithm_compile(&rule, params_cells_size(&view.params), &params) != 0 ||
	    memcmp(&params, &view.params, sizeof(params)) != 0)
		report(f, offset_of(l, rule_params(record, rule_version(&view))), NULL,
		       "rule %u: its parameters do not follow from its capacity and rate", id);
}

/* A committed slot, for the search for duplicates. */
struct found_slot {
	/* plain tag; that of a frozen slot is another: its key may have moved already */
	uint64_t key;
	uint64_t tag;
	struct layout_slot *slot;
};

static int by_key(const void *a, const void *b)
{
	const struct found_slot *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Which slot it is, as shmlimit_slot() counts them. */
static unsigned long long index_of(const struct generation *tables, const struct layout_slot *slot)
{
	uint64_t slots = tables->now.lines * SLOTS_PER_LINE;

	if (slot >= tables->now.slots && slot < tables->now.slots + slots)
		return (unsigned long long)(slot - tables->now.slots);
	return (unsigned long long)(slot - tables->old.slots) + slots;
}

/*
 * True if the slot holds a funnel of a rule in force; reports what is wrong
 * with it. Free, tentative and stale slots hold nothing that could be wrong.
 */
static int check_slot(const struct shmlimit *l, const struct generation *tables, struct layout_slot *slot,
                      struct found_slot *owner, struct findings *f)
{
	unsigned long long i = index_of(tables, slot);
	struct slot_seen seen = slot_read(slot);
	struct rule_view view;
	const char *fault, *done;
	const struct algorithm *a;
	uint64_t mended;

	for (int n = 0; n < RULE_RETRIES && !slot_unchanged(slot, seen); n++)
		seen = slot_read(slot);
	if ((seen.tag & ~TAG_FROZEN) == 0 && seen.word != 0)
		report(f, offset_of(l, slot), mend_slot(f, slot, seen, seen.tag, 0, "set to zero"),
		       "slot %llu: free, but its word is not zero", i);
	if ((seen.tag & TAG_FROZEN) != 0 && i < tables->now.lines * SLOTS_PER_LINE && generation_holds(l, tables))
		report(f, offset_of(l, slot), mend_slot(f, slot, seen, 0, 0, "freed"),
		       "slot %llu: frozen, but no larger table follows", i);
	if ((seen.tag & ~TAG_FROZEN) == 0)
		return 0;
	if (!rule_is_listed(l, tag_rule(seen.tag)))
		report(f, offset_of(l, slot), mend_slot(f, slot, seen, seen.tag & TAG_FROZEN, 0, "freed"),
		       "slot %llu: of rule %u, but there are only %u", i, tag_rule(seen.tag), rule_count(l));
	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0)
		return 0;
	a = algorithm_of(&view.params);
	fault = a->fault != NULL ? a->fault(&view.params, seen.word) : NULL;
	if (fault != NULL) {
		done = a->mend(&view.params, seen.word, &mended);
		report(f, offset_of(l, slot),
		       done != NULL ? mend_slot(f, slot, seen, seen.tag, mended, done)
		                    : mend_slot(f, slot, seen, seen.tag & TAG_FROZEN, 0, "freed"),
		       "slot %llu: %s", i, fault);
	}
	*owner = (struct found_slot){ (tag_plain(seen.tag, rule_version(&view)) & ~TAG_FLAGS) | (seen.tag & TAG_FROZEN),
		                      seen.tag, slot };
	return 1;
}

static int still(const struct found_slot *owner)
{
	return load_acquire(&owner->slot->tag) == owner->tag;
}

/* How long until a slot is equivalent to an empty one. */
static uint64_t wait_ns(const struct shmlimit *l, const struct generation *tables, struct layout_slot *slot,
                        struct slot_seen seen)
{
	const struct table *t;
	struct rule_view view;
	struct look k;

	(void)generation_slot(tables, index_of(tables, slot), &t);
	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0)
		return 0;
	k = look_make(l, t, slot, &view.params, when_read(l));
	return sweep_wait(&k, seen.word);
}

/* Free the one that is full earlier. */
static const char *mend_duplicate(const struct shmlimit *l, const struct generation *tables, const struct findings *f,
                                  const struct found_slot *a, const struct found_slot *b)
{
	struct layout_slot *first = a->slot, *second = b->slot;
	uint64_t frozen = a->tag & TAG_FROZEN;
	struct slot_seen one = slot_read(first), other = slot_read(second);

	if (!f->repairing || one.tag != a->tag || other.tag != b->tag)
		return NULL;
	if (wait_ns(l, tables, first, one) >= wait_ns(l, tables, second, other)) {
		if (!slot_cas(second, other, frozen, 0))
			return NULL;
		return "freed: the other is full later";
	}
	if (!slot_cas(first, one, frozen, 0))
		return NULL;
	return "that one freed: this is full later";
}

/*
 * No key in two slots. While others decide, a key may move between our looks: so pairs are looked
 * at again.
 */
static void check_duplicates(const struct shmlimit *l, const struct generation *tables, struct found_slot *owners,
                             size_t n, struct findings *f)
{
	if (n > 1)
		qsort(owners, n, sizeof(*owners), by_key);
	for (size_t i = 1; i < n; i++) {
		struct found_slot *a = &owners[i - 1], *b = &owners[i];

		if (a->key != b->key || !still(a) || !still(b) || !still(a))
			continue;
		report(f, offset_of(l, b->slot), mend_duplicate(l, tables, f, a, b),
		       "slot %llu: of the same key as slot %llu", index_of(tables, b->slot), index_of(tables, a->slot));
		/* Of three, the one that stayed is compared with the next. */
		if (f->repairing && !still(b))
			*b = *a;
	}
}

struct owners {
	struct found_slot *list;
	size_t n, room;
};

static int check_table(const struct shmlimit *l, const struct generation *tables, const struct table *t,
                       struct owners *owners, struct findings *f)
{
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		struct found_slot owner;

		if (!check_slot(l, tables, &t->slots[i], &owner, f))
			continue;
		if (owners->n == owners->room) {
			size_t more = owners->room == 0 ? 1024 : owners->room * 2;
			struct found_slot *grown = realloc(owners->list, more * sizeof(*grown));

			if (grown == NULL)
				return -ENOMEM;
			owners->list = grown;
			owners->room = more;
		}
		owners->list[owners->n++] = owner;
	}
	return 0;
}

/* The old table first: a key that migrates during the walk is then met twice, and not missed. */
static int check_tables(const struct shmlimit *l, struct findings *f)
{
	KEEP_ERRNO;
	struct owners owners = { NULL, 0, 0 };
	struct generation tables;
	int error;

	generation_read(l, &tables);
	error = check_table(l, &tables, &tables.old, &owners, f);
	if (error == 0)
		error = check_table(l, &tables, &tables.now, &owners, f);
	if (error == 0)
		check_duplicates(l, &tables, owners.list, owners.n, f);
	free(owners.list);
	return error;
}

/* Check all but the header's front, and repair it if *f says so. Returns 0 or -ENOMEM. */
static int verify_all(const struct shmlimit *l, struct findings *f)
{
	check_header_tail(l, f);
	for (uint32_t id = 0, rules = rule_count(l); id < rules; id++)
		check_rule(l, id, f);
	check_sweep(l, f);
	return check_tables(l, f);
}

EXPORT int shmlimit_verify(const char *name, struct shmlimit_problem *problems, size_t n)
{
	struct findings findings = { problems, problems == NULL ? 0 : n, 0, 0 };
	struct layout_header header = { 0 };
	struct header_host host;
	struct segment segment;
	struct shmlimit *l;
	const char *why;
	int error;

	error = name_check_segment(name);
	if (error == 0)
		error = segment_peek(name, 0, &header, sizeof(header), &segment, NULL);
	if (error != 0)
		return error;
	attach_host(&host);
	error = header_check(&header, segment.size, &host, &why);
	if (error == -EMEDIUMTYPE)
		return error;
	if (error != 0) {
		/* Nothing beyond a bad header can be interpreted. */
		report(&findings, 0, NULL, "%s", why);
		return findings.count;
	}
	error = shmlimit_open(name, SHMLIMIT_OPEN_READ_ONLY, NULL, &l);
	if (error == -EUCLEAN) {
		report(&findings, offsetof(struct layout_header, state), NULL,
		       "the header's state and the tables that it tells of do not agree");
		return findings.count;
	}
	if (error != 0)
		return error;
	error = verify_all(l, &findings);
	shmlimit_close(l);
	return error != 0 ? error : findings.count;
}

EXPORT int shmlimit_repair(const char *name, struct shmlimit_problem *repairs, size_t n)
{
	struct findings findings = { repairs, repairs == NULL ? 0 : n, 0, 1 };
	struct shmlimit *l;
	int error, lock;

	error = shmlimit_open(name, 0, NULL, &l);
	if (error != 0)
		return error;
	error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error == 0) {
		error = verify_all(l, &findings);
		segment_unlock(lock);
	}
	shmlimit_close(l);
	return error != 0 ? error : findings.count;
}
