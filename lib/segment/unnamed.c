/*
 * unnamed: see unnamed.h.
 *
 * Entries are never removed before the handle is closed, and the table is never
 * resized, so no process ever waits for a grace period, and a forked child goes on with
 * its copy. WHY NOT a read-side critical section around each look: there is nothing
 * that it would keep from being reclaimed; and a thread's first one registers it,
 * under a lock of liburcu's that a forked child may inherit locked, without a thread that releases it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <urcu/urcu-bp.h>
#include <urcu/rculfhash.h>

#include "keep_errno.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "unnamed.h"

/* liburcu's macros cast qualifiers away. */
#pragma GCC diagnostic ignored "-Wcast-qual"

#define LOCK_TRIES 32

struct unnamed_key {
	uint64_t capacity, count, period_s;
};

struct unnamed_entry {
	struct unnamed_key key;
	uint64_t place; /* of its rule: id | born << 12; changes when that was removed and set again */
	struct cds_lfht_node node;
};

/* The rule's id, or -ESRCH if it is there no more. */
static int still(const struct shmlimit *l, const struct unnamed_entry *entry)
{
	uint64_t place = CMM_LOAD_SHARED(entry->place);
	int id = (int)(place & TAG_RULE_MASK);

	return load_acquire(&l->rules[id].born) == place >> 12 &&
	                       published_in_use(load_acquire(&l->rules[id].published))
	               ? id
	               : -ESRCH;
}

static unsigned long hash_of(struct unnamed_key key)
{
	/* Not keyed: these numbers stand in programs, strangers don't choose them. */
	uint64_t hash = key.capacity * 0x9e3779b97f4a7c15u;

	hash = (hash ^ hash >> 32 ^ key.count) * 0xbf58476d1ce4e5b9u;
	hash = (hash ^ hash >> 29 ^ key.period_s) * 0x94d049bb133111ebu;
	return (unsigned long)(hash ^ hash >> 32);
}

static int match(struct cds_lfht_node *node, const void *wanted)
{
	const struct unnamed_key *a = &caa_container_of(node, struct unnamed_entry, node)->key, *b = wanted;

	return a->capacity == b->capacity && a->count == b->count && a->period_s == b->period_s;
}

/* The table, made by the first caller: of fixed size, since the segment bounds what it can hold. */
static struct cds_lfht *table(struct shmlimit *l)
{
	struct cds_lfht *mine, *there = rcu_dereference(l->unnamed);
	unsigned long buckets = 1;

	if (there != NULL)
		return there;
	while (buckets < l->rule_count)
		buckets *= 2;
	mine = cds_lfht_new_flavor(buckets, buckets, buckets, 0, &urcu_bp_flavor, NULL);
	if (mine == NULL)
		return NULL;
	there = uatomic_cmpxchg(&l->unnamed, NULL, mine);
	if (there == NULL)
		return mine;
	cds_lfht_destroy(mine, NULL);
	return there;
}

/*
 * The rule's id in the segment, where another process may define it at this moment.
 * This is a request, so it does not wait for a writer. BOUND: after this number of tries
 * the lock is not one of a process that is just adding a rule.
 */
static int find_or_put(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule)
{
	int id = -EAGAIN;

	for (int i = 0; i < LOCK_TRIES && id == -EAGAIN; i++) {
		if (i > 0)
			segment_yield();
		id = rule_find(l, name);
		if (id == -ESRCH)
			id = rule_put(l, name, rule, 0, when_clock());
	}
	return id;
}

/* Define the rule in the segment, where another process may have done so, and remember it. */
static int define(struct shmlimit *l, struct cds_lfht *known, struct unnamed_key key)
{
	struct shmlimit_rule rule = { .capacity = key.capacity,
		                      .count = key.count,
		                      .period_ns = key.period_s * 1000000000u };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct cds_lfht_node *there;
	struct unnamed_entry *entry;
	int id;

	if (key.period_s > UINT64_MAX / 1000000000u)
		return -ERANGE;
	snprintf(name, sizeof(name), "%c%" PRIu64 ":%" PRIu64 ":%" PRIu64, NAME_INTERNAL, key.capacity, key.count,
	         key.period_s);
	/* First: a rule that this process could not remember is not left behind. */
	entry = malloc(sizeof(*entry));
	if (entry == NULL)
		return -ENOMEM;
	id = find_or_put(l, name, &rule);
	if (id < 0) {
		free(entry);
		return id;
	}
	entry->key = key;
	entry->place = (uint64_t)id | load_acquire(&l->rules[id].born) << 12;
	cds_lfht_node_init(&entry->node);
	there = cds_lfht_add_unique(known, hash_of(key), match, &key, &entry->node);
	if (there != &entry->node) {
		/* Known, by another thread or from before the rule was removed: then it moves. */
		CMM_STORE_SHARED(caa_container_of(there, struct unnamed_entry, node)->place, entry->place);
		free(entry);
	}
	return id;
}

static int look_up(struct shmlimit *l, struct unnamed_key key)
{
	KEEP_ERRNO;
	struct unnamed_entry *entry;
	struct cds_lfht_iter found;
	struct cds_lfht *known;
	int id;

	known = table(l);
	if (known == NULL)
		return -ENOMEM;
	cds_lfht_lookup(known, hash_of(key), match, &key, &found);
	if (found.node == NULL)
		return define(l, known, key);
	entry = caa_container_of(found.node, struct unnamed_entry, node);
	id = still(l, entry);
	if (id < 0)
		return define(l, known, key);
	rcu_assign_pointer(l->last_unnamed, entry);
	return id;
}

int unnamed_rule(struct shmlimit *l, uint64_t capacity, uint64_t count, uint64_t period_s)
{
	/* Most programs ask for one triple again and again. */
	const struct unnamed_entry *last = CMM_LOAD_SHARED(l->last_unnamed);

	if (last != NULL && last->key.capacity == capacity && last->key.count == count &&
	    last->key.period_s == period_s) {
		int id = still(l, last);

		if (id >= 0)
			return id;
	}
	return look_up(l, (struct unnamed_key){ capacity, count, period_s });
}

void unnamed_forget(struct shmlimit *l)
{
	struct cds_lfht_iter at;
	struct cds_lfht_node *node;

	if (l->unnamed == NULL)
		return;
	cds_lfht_first(l->unnamed, &at);
	while ((node = cds_lfht_iter_get_node(&at)) != NULL) {
		cds_lfht_next(l->unnamed, &at);
		cds_lfht_del(l->unnamed, node);
		free(caa_container_of(node, struct unnamed_entry, node));
	}
	cds_lfht_destroy(l->unnamed, NULL);
}
