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

/* The line that no checksum covers: a switch, and nothing yet. */
static void check_header_tail(const struct shmlimit *l, struct findings *f)
{
	const struct layout_header *h = l->header;

	if (load_relaxed32(&h->switched_off) > 1)
		report(f, offset_of(l, &h->switched_off), "the switch is %u: must be 0 or 1",
		       load_relaxed32(&h->switched_off));
	if (load_relaxed32(&h->reserved32) != 0)
		report(f, offset_of(l, &h->reserved32), "a reserved field of the header is not zero");
	for (size_t i = 0; i < sizeof(h->successor) / sizeof(h->successor[0]); i++)
		if (load_relaxed(&h->successor[i]) != 0)
			report(f, offset_of(l, &h->successor[i]), "a reserved field of the header is not zero");
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
	uint64_t key;                     /* tag */
	uint64_t index;
};

static int by_key(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/*
 * True if the slot holds a funnel of a rule in force; reports what is wrong
 * with it. Free, tentative and stale slots hold nothing that could be wrong.
 */
static int check_slot(const struct shmlimit *l, uint64_t index, uint64_t *tag, struct findings *f)
{
	const struct layout_slot *slot = &l->slots[index];
	struct slot_seen seen = slot_read(slot);
	struct rule_view view;
	const char *fault;

	for (int i = 0; i < RULE_RETRIES && !slot_unchanged(slot, seen); i++)
		seen = slot_read(slot);
	if (seen.tag == 0 && seen.word != 0)
		report(f, offset_of(l, slot), "slot %llu: free, but its word is not zero", (unsigned long long)index);
	if (seen.tag == 0)
		return 0;
	if (seen.tag & TAG_FROZEN)
		report(f, offset_of(l, slot), "slot %llu: frozen, which this version never does",
		       (unsigned long long)index);
	if (tag_rule(seen.tag) >= l->rule_count)
		report(f, offset_of(l, slot), "slot %llu: of rule %u, but there are only %u",
		       (unsigned long long)index, tag_rule(seen.tag), l->rule_count);
	if (rule_load_tag(l, seen.tag, &view) != 0)
		return 0;
	fault = algorithm_fault(&view.terms, seen.word, l->window_max);
	if (fault != NULL)
		report(f, offset_of(l, slot), "slot %llu: %s", (unsigned long long)index, fault);
	*tag = seen.tag;
	return 1;
}

static int still(const struct shmlimit *l, const struct owner *owner)
{
	return load_acquire(&l->slots[owner->index].tag) == owner->key;
}

/* No key in two slots. While others decide, a key may move between our looks: so pairs are looked at again. */
static void check_twins(const struct shmlimit *l, struct owner *owners, size_t n, struct findings *f)
{
	if (n > 1)
		qsort(owners, n, sizeof(*owners), by_key);
	for (size_t i = 1; i < n; i++) {
		const struct owner *a = &owners[i - 1], *b = &owners[i];

		if (a->key == b->key && still(l, a) && still(l, b) && still(l, a))
			report(f, offset_of(l, &l->slots[b->index]), "slot %llu: of the same key as slot %llu",
			       (unsigned long long)b->index, (unsigned long long)a->index);
	}
}

static int check_table(const struct shmlimit *l, struct findings *f)
{
	uint64_t slots = l->lines * SLOTS_PER_LINE;
	struct owner *owners = NULL;
	size_t n = 0, room = 0;

	for (uint64_t index = 0; index < slots; index++) {
		uint64_t tag;

		if (!check_slot(l, index, &tag, f))
			continue;
		if (n == room) {
			size_t more = room == 0 ? 1024 : room * 2;
			struct owner *grown = realloc(owners, more * sizeof(*owners));

			if (grown == NULL) {
				free(owners);
				return -ENOMEM;
			}
			owners = grown;
			room = more;
		}
		owners[n++] = (struct owner){ tag, index };
	}
	check_twins(l, owners, n, f);
	free(owners);
	return 0;
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
	if (error != 0)
		return error;
	check_header_tail(l, &findings);
	for (uint32_t id = 0; id < l->rule_count; id++)
		check_rule(l, id, &findings);
	error = check_table(l, &findings);
	shmlimit_close(l);
	return error != 0 ? error : findings.count;
}
