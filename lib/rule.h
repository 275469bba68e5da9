/*
 * rule: the records of rules in the segment.
 *
 * A record's parameters stand in a small ring of versions. A writer, alone by
 * the segment's lock, fills the next entry and publishes its number with one
 * store; a reader copies an entry and looks at the number again. The mode is a
 * word of its own, so that switching it is one store.
 *
 * `published` is version * 2 + 1 while the rule is in use and even when not.
 * The version goes on counting when an id is given to another rule: two bits
 * of it stand in each slot's tag, so that funnels of a rule that is gone are
 * never taken for the new one's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_RULE_H
#define SHMLIMIT_LIB_RULE_H

#include <errno.h>

#include "atomic.h"
#include "limiter.h"

/* BOUND: a reader starts over only when a writer published meanwhile; this many in one read is damage. */
#define RULE_RETRIES 1000

struct rule_view {
	uint64_t published;
	struct layout_terms terms;        /* of which rule_load() fills all up to `inverse` */
};

static inline const struct layout_terms *rule_terms(const struct layout_rule *record, uint64_t published)
{
	return &record->terms[(published >> 1) % RULE_VERSIONS];
}

/*
 * Copy what a decision needs of the version in force: all up to `inverse` or,
 * where no times will be reported, without what only reporting needs. Returns
 * 0 or -ESRCH.
 */
static inline int rule_load(const struct shmlimit *l, uint32_t id, struct rule_view *view, int with_times)
{
	const struct layout_rule *record;

	if (__builtin_expect(id >= l->rule_count, 0))
		return -ESRCH;
	record = &l->rules[id];
	for (int i = 0; i < RULE_RETRIES; i++) {
		uint64_t published = load_acquire(&record->published);
		const struct layout_terms *terms = rule_terms(record, published);

		if (__builtin_expect((published & 1) == 0, 0))
			return -ESRCH;
		/* WHY NOT a loop over words: the members would have to live in memory. */
		view->terms.capacity = load_word(&terms->capacity);
		view->terms.scale[0] = load_word(&terms->scale[0]);
		view->terms.scale[1] = load_word(&terms->scale[1]);
		view->terms.back = load_word(&terms->back);
		view->terms.slack = load_word(&terms->slack);
		view->terms.shape = load_word(&terms->shape);
		view->terms.num = with_times ? load_word(&terms->num) : 1;
		view->terms.den = with_times ? load_word(&terms->den) : 1;
		view->terms.inverse = with_times ? load_word(&terms->inverse) : 1;
		view->published = published;
		if (__builtin_expect(load_again(&record->published) == published, 1))
			return 0;
	}
	return -ESRCH;
}

static inline uint32_t rule_mode(const struct shmlimit *l, uint32_t id)
{
	return load_relaxed32(&l->rules[id].mode);
}

/* Neither the rule nor the whole segment is switched off. */
static inline int rule_is_on(const struct shmlimit *l, uint32_t id)
{
	return rule_mode(l, id) != SHMLIMIT_OFF && load_relaxed32(&l->header->switched_off) == 0;
}

/* Tags of the rule's committed slots end in this. */
static inline uint64_t rule_version(const struct rule_view *view)
{
	return view->published >> 1;
}

/* Copy both lines of the version in force and, where wanted, the name. Returns 0 or -ESRCH. */
int rule_read(const struct shmlimit *l, uint32_t id, struct rule_view *view, char name[SHMLIMIT_RULE_NAME_MAX + 1]);

#endif
