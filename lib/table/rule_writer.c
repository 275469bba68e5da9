/*
 * rule_writer: see rule_writer.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "algorithm.h"
#include "cells.h"
#include "counter.h"
#include "pause.h"
#include "rule_writer.h"
#include "segment.h"
#include "sweep.h"
#include "table.h"

/*
 * Make the list of rules twice as long. Killed inside, the process leaves reserved what the next
 * one reserves again.
 */
static int lengthen_list(const struct shmlimit *l, uint32_t rules)
{
	uint32_t blocks = l->cpus + l->stripes, longer = rules < l->rules_max / 2 ? 2 * rules : l->rules_max;
	uint64_t records = (uint64_t)((const char *)l->rules - (const char *)l->header);
	uint64_t counters = (uint64_t)(l->counters - (const unsigned char *)l->header);
	struct layout_range range = layout_records(records, longer);
	int error;

	if (longer == rules)
		return -EXFULL;
	error = segment_reserve(l->name, l->device, l->inode, &range);
	range = layout_counters(counters, blocks, l->rules_max, longer);
	if (error == 0)
		error = segment_reserve(l->name, l->device, l->inode, &range);
	/* ORDER what is reserved was before; pairs with load_acquire() in rule_count(). */
	if (error == 0)
		publish(&l->header->rules_now, longer);
	return error != 0 ? error : (int)rules;
}

/*
 * An id that is not in use; one never used before one whose old funnels have to be cleared away
 * first, and that before a longer list.
 */
static int find_unused(const struct shmlimit *l)
{
	uint32_t rules = rule_count(l);
	int used_before = -EXFULL;

	for (uint32_t id = 0; id < rules; id++) {
		uint64_t published = load_acquire(&l->rules[id].published);

		if (published == 0)
			return (int)id;
		if (!published_in_use(published) && used_before < 0)
			used_before = (int)id;
	}
	return used_before >= 0 ? used_before : lengthen_list(l, rules);
}

static void store_words(void *to, const void *from, size_t len)
{
	uint64_t *p = to;
	uint64_t word;

	for (size_t i = 0; i < len / sizeof(word); i++) {
		memcpy(&word, (const char *)from + i * sizeof(word), sizeof(word));
		store_relaxed(&p[i], word);
	}
}

void rule_define(const struct shmlimit *l, uint32_t id, const struct rule_definition *rule)
{
	struct layout_rule *record = &l->rules[id];
	uint64_t version = published_version(load_acquire(&record->published)) + 1;
	char name[SHMLIMIT_RULE_NAME_MAX + 1] = "";
	uint64_t counted[COUNTERS] = { 0 };

	strcpy(name, rule->name);
	counter_sum(l, id, counted);
	/* A remover may have been killed before it was done with the table. */
	if (version > 1)
		table_clear(l, id);
	store_words(record->name, name, sizeof(name));
	store_words(record->counted_before, counted, sizeof(counted));
	store_words(&record->params[version % RULE_VERSIONS], rule->params, sizeof(*rule->params));
	store_relaxed(&record->set_unix_ns[version % RULE_VERSIONS], rule->set_unix_ns);
	store_relaxed(&record->born, version);
	store_relaxed(&record->mark, rule->mark);
	store_relaxed(&record->refused_unix_ns, 0);
	/*
	 * I4. ORDER what a reader copies was stored before; pairs with load_acquire() in
	 * rule_glance().
	 */
	publish(&record->published, published_pack(version, rule->mode, 1) | rule->paused);
}

/*
 * Another version or mode of a rule in use, whose pauses stay. A pause begins, or the last one is
 * found to be over, without the lock.
 */
static void publish_next(uint64_t *published, uint64_t version, uint32_t mode)
{
	uint64_t before;

	/* BOUND: each round but the last means that another process swapped. */
	do
		before = load_acquire(published);
	while (!word_cas(published, before, published_pack(version, mode, 1) | published_paused(before)));
}

/*
 * Other parameters, or only another mode, for a rule in use. Where the algorithm is another one,
 * what its keys have ends with the publishing: see rule_load_tag(). The walks then free their
 * slots.
 */
static void change(const struct shmlimit *l, uint32_t id, const struct rule_view *old, uint32_t mode,
                   const struct layout_params *params, struct when when)
{
	struct layout_rule *record = &l->rules[id];
	uint64_t version = rule_version(old);

	if (memcmp(&old->params, params, sizeof(*params)) == 0) {
		publish_next(&record->published, version, mode);
		return;
	}
	/* The last writer may have been killed before it was done with the table. */
	table_convert(l, id, when);
	version++;
	store_words(&record->params[version % RULE_VERSIONS], params, sizeof(*params));
	store_relaxed(&record->set_unix_ns[version % RULE_VERSIONS], segment_unix_ns());
	/*
	 * I4. ORDER as in rule_define(); and before the walk: a claim that ends after it asks
	 * rule_holds() (I3).
	 */
	publish_next(&record->published, version, mode);
	table_convert(l, id, when);
}

static int check_set(const struct shmlimit_rule *rule, struct layout_params *params)
{
	if (rule->mode > SHMLIMIT_BLOCK)
		return -EINVAL;
	return algorithm_compile(rule, 0, params);
}

/* Is there no rule, and was there none? */
static int is_unused(const struct shmlimit *l)
{
	for (uint32_t id = 0, rules = rule_count(l); id < rules; id++)
		if (load_acquire(&l->rules[id].published) != 0)
			return 0;
	return 1;
}

/*
 * Before parameters are published, and words are converted to them. WHY NOT where the time is one
 * before: no entry is over.
 */
static void sweep_first(const struct shmlimit *l, const struct layout_params *params, struct when when)
{
	sweep_lower(l, params);
	when = when_again(l, when);
	if (is_unused(l))
		sweep_begin(l, when);
	else if ((int64_t)(when.ns - load_relaxed(&l->header->swept.ns)) > 0)
		sweep(l, when);
}

/* Has this process the region of this size, mapped now if it was not? */
static int has_region(const struct shmlimit *l, unsigned size)
{
	return cells_mapped(l, size) != NULL || cells_map(l, size) != NULL;
}

/*
 * Map the cells that change() copies: those of each version whose size differs from the new one's,
 * and the new one's. Returns 0, or -ENOMEM if this process has no addresses for them.
 */
static int map_cells(const struct shmlimit *l, uint32_t id, const struct layout_params *params)
{
	if (algorithm_of(params)->cells == NULL)
		return 0;
	for (unsigned i = 0; i < RULE_VERSIONS; i++) {
		struct layout_params other = { .shape = load_word(&l->rules[id].params[i].shape) };

		if (params_algorithm(&other) == params_algorithm(params) &&
		    params_cells_size(&other) != params_cells_size(params) &&
		    !(has_region(l, params_cells_size(&other)) && has_region(l, params_cells_size(params))))
			return -ENOMEM;
	}
	return 0;
}

/*
 * End a rule's use and its keys, as shmlimit_rule_remove() does.
 * ORDER before the slots are freed: a claim that ends after that asks rule_holds().
 */
static void end_use(const struct shmlimit *l, int id)
{
	uint64_t *published = &l->rules[id].published;

	publish(published, load_acquire(published) & ~(uint64_t)1);
	table_clear(l, id);
}

void rule_note_refused(const struct shmlimit *l, int id, uint64_t unix_ns)
{
	uint64_t *refused = &l->rules[id].refused_unix_ns;

	if (load_relaxed(refused) != unix_ns)
		store_relaxed(refused, unix_ns);
}

/* The lock is held. `replaces`: a rule of another algorithm is replaced, and keeps its id. */
static int set_locked(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *rule,
                      struct layout_params *params, int replaces, struct when when)
{
	struct rule_definition new = { rule_name, rule->mode, params, segment_unix_ns(), rule->mark, 0 };
	struct rule_view old;
	int id = rule_find(l, rule_name);

	if (id >= 0 && rule_read(l, (uint32_t)id, &old, NULL) == 0) {
		if (params_algorithm(&old.params) != params_algorithm(params) && !replaces)
			return -EBUSY;
		if (params_algorithm(&old.params) == params_algorithm(params))
			(void)algorithm_compile(rule, params_cells_size(&old.params), params);
		if (map_cells(l, (uint32_t)id, params) != 0)
			return -ENOMEM;
		sweep_first(l, params, when);
		change(l, (uint32_t)id, &old, rule->mode, params, when);
		/* Last: if killed before, the caller is to find that this was not done. */
		if (rule->mark != 0)
			store_relaxed(&l->rules[id].mark, rule->mark);
		rule_note_refused(l, id, 0);
		return id;
	}
	id = find_unused(l);
	if (id < 0)
		return id;
	sweep_first(l, params, when);
	/* Of a rule that had this name. */
	new.paused = pause_last(l, when_again(l, when).ns);
	rule_define(l, (uint32_t)id, &new);
	return id;
}

static int put(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns, int replaces,
               struct when when)
{
	struct layout_params params;
	int error, lock, id;

	error = check_set(rule, &params);
	if (error == 0 && l->read_only)
		error = -EROFS;
	if (error == 0)
		error = segment_lock(l->name, l->device, l->inode, wait_ns, &lock);
	if (error != 0)
		return error;
	id = set_locked(l, name, rule, &params, replaces, when);
	segment_unlock(lock);
	return id;
}

int rule_put(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns, struct when when)
{
	return put(l, name, rule, wait_ns, 0, when);
}

int rule_replace(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
                 struct when when)
{
	return put(l, name, rule, wait_ns, 1, when);
}

void rule_refuse(struct shmlimit *l, const char *name)
{
	int lock, id;

	if (l->read_only || segment_lock(l->name, l->device, l->inode, 0, &lock) != 0)
		return;
	id = rule_find(l, name);
	if (id >= 0)
		rule_note_refused(l, id, segment_unix_ns());
	segment_unlock(lock);
}

int rule_remove(struct shmlimit *l, const char *name)
{
	int lock, id;
	int error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);

	if (error != 0)
		return error;
	id = rule_find(l, name);
	if (id >= 0)
		end_use(l, id);
	segment_unlock(lock);
	return id < 0 ? id : 0;
}
