/*
 * rule: the records of rules in the segment.
 *
 * A record's parameters stand in a small ring of versions. A writer, alone by
 * the segment's lock, fills the next entry and publishes it, with the mode, by
 * swapping one word; a reader copies an entry and looks at the word again. So
 * a writer that is killed leaves the old rule in force or the new one.
 *
 * Two bits of the version are in each slot's tag: they say under which parameters
 * its word was written. After publishing, the writer walks over the table and
 * converts the slots of older versions; a decision that meets one first converts
 * it itself. The next writer walks first, in case this one was killed. So slots
 * are never more than one version behind, and two bits are enough to tell. A swap that
 * was prepared under a version of long ago must fail, and for that the other bits
 * are in the tag too: see tag_pack().
 *
 * A version may have another algorithm, which can read no word of the version before.
 * Slots of that version are then no key's: they count as free from the publishing on,
 * and the walk frees them. So the rule is never missing, and its keys begin again.
 *
 * The version goes on counting when an id is given to another rule; `born` says
 * where that one began, so that funnels of a rule that is gone are never taken
 * for the new one's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_RULE_H
#define SHMLIMIT_LIB_RULE_H

#include <errno.h>

#include "atomic.h"
#include "when.h"

/*
 * BOUND: a reader starts over only when a writer published during the read; this many in one read
 * is damage.
 */
#define RULE_RETRIES 1000

/*
 * How long the list of rules is. It grows where a rule finds no room: the writer, under the
 * segment's lock, reserves more and then says so in the header. Records and counters stay where
 * they are, so what a process knows of the list is right, if short: it asks again for an id beyond
 * that, once for each time that the list grew, with two system calls (segment_has()). ORDER pairs
 * with publish() in rule_writer.c.
 */
uint32_t rule_count(const struct shmlimit *l);

/* Is it an id of the list? */
static inline int rule_is_listed(const struct shmlimit *l, uint32_t id)
{
	return __builtin_expect(id < load_relaxed(&l->rule_count), 1) || id < rule_count(l);
}

struct rule_view {
	uint64_t published;
	struct layout_params params; /* rule_load() sets its members up to `flags` */
};

static inline uint64_t rule_version(const struct rule_view *view)
{
	return published_version(view->published);
}

static inline uint32_t rule_mode(const struct rule_view *view)
{
	return published_mode(view->published);
}

/*
 * Funnels decide: the whole segment is not switched off, and the rule does not answer by its mode
 * alone.
 */
static inline int rule_is_on(const struct shmlimit *l, const struct rule_view *view)
{
	return published_is_on(view->published) && (load_relaxed(&l->header->state) & STATE_OFF) == 0;
}

/*
 * Copy what a decision needs: all up to `flags` or, where no times will be
 * asked for, without what only these need.
 */
static inline void rule_copy(const struct layout_params *from, struct layout_params *to, int with_times)
{
	/* WHY NOT a loop over words: the members would have to live in memory. */
	to->capacity = load_word(&from->capacity);
	to->scale[0] = load_word(&from->scale[0]);
	to->scale[1] = load_word(&from->scale[1]);
	to->back = load_word(&from->back);
	to->shape = load_word(&from->shape);
	to->ahead = with_times ? load_word(&from->ahead) : 0;
	to->num = with_times ? load_word(&from->num) : 1;
	to->den = with_times ? load_word(&from->den) : 1;
	to->inverse = with_times ? load_word(&from->inverse) : 1;
	to->debt = with_times ? load_word(&from->debt) : 0;
	to->max_wait_ns = with_times ? load_word(&from->max_wait_ns) : 0;
	to->flags = with_times ? load_word(&from->flags) : 0;
}

static inline const struct layout_params *rule_params(const struct layout_rule *record, uint64_t version)
{
	return &record->params[version % RULE_VERSIONS];
}

/*
 * The version in force, perhaps mixed with a later one: the caller asks
 * rule_holds() before it believes it. Returns 0 or -ESRCH.
 */
static inline int rule_glance(const struct shmlimit *l, uint32_t id, struct rule_view *view, int with_times)
{
	const struct layout_rule *record;

	if (!rule_is_listed(l, id))
		return -ESRCH;
	record = &l->rules[id];
	view->published = load_acquire(&record->published);
	if (__builtin_expect(!published_in_use(view->published), 0))
		return -ESRCH;
	rule_copy(rule_params(record, published_version(view->published)), &view->params, with_times);
	return 0;
}

/*
 * The same of a rule that is in use, not off, and without pauses. Returns its record, or NULL.
 */
static inline const struct layout_rule *rule_glance_in_force(const struct shmlimit *l, uint32_t id,
                                                             struct rule_view *view, int with_times)
{
	const struct layout_rule *record;

	if (__builtin_expect(id >= load_relaxed(&l->rule_count), 0))
		return NULL;
	record = &l->rules[id];
	view->published = load_acquire(&record->published);
	if (__builtin_expect(!published_in_force(view->published), 0))
		return NULL;
	rule_copy(rule_params(record, published_version(view->published)), &view->params, with_times);
	return record;
}

/*
 * Is it in force still? To be asked after the parameters were copied, and after a
 * slot was read whose word shall be taken for one of this version: its tag has
 * two bits of it, and may be of four later.
 * ORDER pairs with publish() and word_cas() in rule_writer.c.
 */
static inline int rule_record_holds(const struct layout_rule *record, const struct rule_view *view)
{
	return load_again(&record->published) == view->published;
}

static inline int rule_holds(const struct shmlimit *l, uint32_t id, const struct rule_view *view)
{
	return rule_record_holds(&l->rules[id], view);
}

/* The version in force. Returns 0 or -ESRCH. */
static inline int rule_load(const struct shmlimit *l, uint32_t id, struct rule_view *view)
{
	for (int i = 0; i < RULE_RETRIES; i++) {
		if (rule_glance(l, id, view, 1) != 0)
			return -ESRCH;
		if (rule_holds(l, id, view))
			return 0;
	}
	return -ESRCH;
}

/* The algorithm of the version in force, or -ESRCH. */
static inline int rule_algorithm(const struct shmlimit *l, uint32_t id)
{
	const struct layout_rule *record;
	struct rule_view view;

	if (!rule_is_listed(l, id))
		return -ESRCH;
	record = &l->rules[id];
	for (int i = 0; i < RULE_RETRIES; i++) {
		view.published = load_acquire(&record->published);
		if (!published_in_use(view.published))
			return -ESRCH;
		view.params.shape = load_word(&rule_params(record, rule_version(&view))->shape);
		if (rule_record_holds(record, &view))
			return (int)params_algorithm(&view.params);
	}
	return -ESRCH;
}

/*
 * The same for a committed slot's tag: the parameters under which its word was
 * written, which may be those of an earlier version. -ESRCH too for a tag that
 * no version of the rule in force can have written, or one of another algorithm.
 */
int rule_load_tag(const struct shmlimit *l, uint64_t tag, struct rule_view *view);

/*
 * The plain tag of a slot's, told by its rule's version: two of one key are then the same except
 * for flags. Of a rule that is gone it has no meaning.
 */
uint64_t rule_plain(const struct shmlimit *l, uint64_t tag);

/* shmlimit_rule_find(), with a valid name. */
int rule_find(const struct shmlimit *l, const char *name);

/* When the parameters of a version in force were set. */
uint64_t rule_set_unix_ns(const struct shmlimit *l, uint32_t id, const struct rule_view *view);

/* Copy both lines of the version in force and, where wanted, the name. Returns 0 or -ESRCH. */
int rule_read(const struct shmlimit *l, uint32_t id, struct rule_view *view, char name[SHMLIMIT_RULE_NAME_MAX + 1]);

#endif
