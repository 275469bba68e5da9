/*
 * verify: check a segment from outside, one that cannot be opened too.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "attach.h"
#include "export.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "table.h"
#include "tables.h"

/* What was found so far. */
struct findings {
	struct shmlimit_problem *list;
	size_t room;
	int count;
};

__attribute__((format(printf, 3, 4))) static void report(struct findings *f, uint64_t offset, const char *format, ...)
{
	va_list ap;

	if ((size_t)f->count < f->room) {
		struct shmlimit_problem *problem = &f->list[f->count];

		problem->offset = offset;
		va_start(ap, format);
		vsnprintf(problem->text, sizeof(problem->text), format, ap);
		va_end(ap);
	}
	if (f->count < INT_MAX)
		f->count++;
}

static uint64_t offset_of(const struct shmlimit *l, const void *p)
{
	return (uint64_t)((const char *)p - (const char *)l->header);
}

/* Is it a table that was checked when this was opened, none, or what a grower is about to publish, or was? */
static int is_told(const struct shmlimit *l, const struct layout_table *told, uint64_t i)
{
	uint64_t offset = load_relaxed(&told->offset), lines = load_relaxed(&told->lines), generation;
	struct tables tables;

	tables_read(l, &tables);
	generation = state_generation(tables.state);
	if (generation % 2 == i && generation != 0)
		return 1;
	if (generation % 2 == i)
		return offset == 0 && lines == 0;
	/* Killed between the two stores he leaves a length of before. */
	if (generation >= 2)
		return offset % 4096 == 0 && offset >= l->tables_offset && offset < l->size && lines <= l->lines_max;
	return (offset == 0 && lines == 0) ||
	       (offset == layout_next_page(tables_end(l, &tables.now)) &&
	        (lines == 0 || (lines >= 2 * tables.now.lines && lines <= l->lines_max)));
}

/* The line that no checksum covers: the switch, and the larger tables. */
static void check_header_tail(const struct shmlimit *l, struct findings *f)
{
	const struct layout_header *h = l->header;

	for (size_t i = 0; i < sizeof(h->reserved_tail) / sizeof(h->reserved_tail[0]); i++)
		if (load_relaxed(&h->reserved_tail[i]) != 0)
			report(f, offset_of(l, &h->reserved_tail[i]), "a reserved field of the header is not zero");
	for (uint64_t i = 0; i < 2; i++)
		if (!is_told(l, &h->tables[i], i))
			report(f, offset_of(l, &h->tables[i]), "table %u is none that there is or could be next", (unsigned)i);
}

static void check_rule(const struct shmlimit *l, uint32_t id, struct findings *f)
{
	const struct layout_rule *record = &l->rules[id];
	uint64_t offset = offset_of(l, record);
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule = { 0 };
	struct layout_terms terms;
	struct rule_view view;

	for (size_t i = 0; i < sizeof(record->reserved) / sizeof(record->reserved[0]); i++)
		if (load_relaxed(&record->reserved[i]) != 0)
			report(f, offset, "rule %u: a reserved field is not zero", id);
	if (rule_read(l, id, &view, name) != 0)
		return;
	if (name_check_any_rule(name) != 0)
		report(f, offset + offsetof(struct layout_rule, name), "rule %u: its name is not a rule's name", id);
	for (uint32_t other = 0; other < id; other++) {
		char twin[SHMLIMIT_RULE_NAME_MAX + 1];
		struct rule_view ignored;

		if (rule_read(l, other, &ignored, twin) == 0 && strcmp(name, twin) == 0)
			report(f, offset, "rule %u: has the name of rule %u", id, other);
	}
	if (rule_mode(&view) > SHMLIMIT_OFF)
		report(f, offset, "rule %u: mode %u is unknown", id, rule_mode(&view));
	algorithm_rule(&view.terms, &rule);
	if (algorithm_compile(&rule, l->window_max, &terms) != 0 || memcmp(&terms, &view.terms, sizeof(terms)) != 0)
		report(f, offset_of(l, rule_terms(record, rule_version(&view))),
		       "rule %u: its terms do not follow from its capacity and rate", id);
}

/* A committed slot, for the search for twins. */
struct owner {
	uint64_t key;                     /* tag; that of a frozen slot is another: its key may have moved already */
	const struct layout_slot *slot;
};

static int by_key(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Which slot it is, as shmlimit_slot() counts them. */
static unsigned long long index_of(const struct tables *tables, const struct layout_slot *slot)
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
static int check_slot(const struct shmlimit *l, const struct tables *tables, const struct layout_slot *slot,
                      uint64_t *tag, struct findings *f)
{
	unsigned long long index = index_of(tables, slot);
	struct slot_seen seen = slot_read(slot);
	struct rule_view view;
	const char *fault;

	for (int i = 0; i < RULE_RETRIES && !slot_unchanged(slot, seen); i++)
		seen = slot_read(slot);
	if ((seen.tag & ~TAG_FROZEN) == 0 && seen.word != 0)
		report(f, offset_of(l, slot), "slot %llu: free, but its word is not zero", index);
	if ((seen.tag & TAG_FROZEN) != 0 && index < tables->now.lines * SLOTS_PER_LINE && tables_hold(l, tables))
		report(f, offset_of(l, slot), "slot %llu: frozen, but no larger table follows", index);
	if ((seen.tag & ~TAG_FROZEN) == 0)
		return 0;
	if (tag_rule(seen.tag) >= l->rule_count)
		report(f, offset_of(l, slot), "slot %llu: of rule %u, but there are only %u", index,
		       tag_rule(seen.tag), l->rule_count);
	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0)
		return 0;
	fault = algorithm_fault(&view.terms, seen.word, l->window_max);
	if (fault != NULL)
		report(f, offset_of(l, slot), "slot %llu: %s", index, fault);
	*tag = seen.tag;
	return 1;
}

static int still(const struct owner *owner)
{
	return load_acquire(&owner->slot->tag) == owner->key;
}

/* No key in two slots. While others decide, a key may move between our looks: so pairs are looked at again. */
static void check_twins(const struct shmlimit *l, const struct tables *tables, struct owner *owners, size_t n,
                        struct findings *f)
{
	if (n > 1)
		qsort(owners, n, sizeof(*owners), by_key);
	for (size_t i = 1; i < n; i++) {
		const struct owner *a = &owners[i - 1], *b = &owners[i];

		if (a->key == b->key && still(a) && still(b) && still(a))
			report(f, offset_of(l, b->slot), "slot %llu: of the same key as slot %llu",
			       index_of(tables, b->slot), index_of(tables, a->slot));
	}
}

struct owners {
	struct owner *list;
	size_t n, room;
};

static int check_table(const struct shmlimit *l, const struct tables *tables, const struct table *t,
                       struct owners *owners, struct findings *f)
{
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		uint64_t tag;

		if (!check_slot(l, tables, &t->slots[i], &tag, f))
			continue;
		if (owners->n == owners->room) {
			size_t more = owners->room == 0 ? 1024 : owners->room * 2;
			struct owner *grown = realloc(owners->list, more * sizeof(*grown));

			if (grown == NULL)
				return -ENOMEM;
			owners->list = grown;
			owners->room = more;
		}
		owners->list[owners->n++] = (struct owner){ tag, &t->slots[i] };
	}
	return 0;
}

/* The table before first: a key that moves meanwhile is then met twice, and not missed. */
static int check_tables(const struct shmlimit *l, struct findings *f)
{
	struct owners owners = { NULL, 0, 0 };
	struct tables tables;
	int error;

	tables_read(l, &tables);
	error = check_table(l, &tables, &tables.old, &owners, f);
	if (error == 0)
		error = check_table(l, &tables, &tables.now, &owners, f);
	if (error == 0)
		check_twins(l, &tables, owners.list, owners.n, f);
	free(owners.list);
	return error;
}

EXPORT int shmlimit_verify(const char *name, struct shmlimit_problem *problems, size_t n)
{
	struct findings findings = { problems, problems == NULL ? 0 : n, 0 };
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
		report(&findings, 0, "%s", why);
		return findings.count;
	}
	error = shmlimit_open(name, SHMLIMIT_READ_ONLY, &l);
	if (error == -EUCLEAN) {
		report(&findings, offsetof(struct layout_header, state),
		       "the header's state and the tables that it tells of do not agree");
		return findings.count;
	}
	if (error != 0)
		return error;
	check_header_tail(l, &findings);
	for (uint32_t id = 0; id < l->rule_count; id++)
		check_rule(l, id, &findings);
	error = check_tables(l, &findings);
	shmlimit_close(l);
	return error != 0 ? error : findings.count;
}
