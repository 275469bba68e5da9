/*
 * top_keys.c: see top_keys.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "key_text.h"
#include "rule_facts.h"
#include "top_keys.h"
#include "traits.h"

/* What a rule's slots are measured by; capacity 0: not asked yet. */
struct live_rule {
	uint32_t algorithm;
	uint64_t capacity;
};

/* -1, 0 or 1: the larger first. */
static int larger(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

/* What decides first and second, the smaller the earlier; and the slot's place. */
struct rank {
	uint64_t first, second;
	size_t at;
};

#define BEHIND ((uint64_t)1 << 63)

/*
 * Those that are denied stand together, before the others or behind them; the largest debt first.
 * Debts are below 2^63.
 */
static uint64_t rank_of_denial(const struct top_key *slot, int denied_first)
{
	int denied = slot->share == 0;
	uint64_t debt_ns = slot->debt_ns < BEHIND ? slot->debt_ns : BEHIND - 1;

	return (denied == denied_first ? 0 : BEHIND) | (denied ? BEHIND - 1 - debt_ns : slot->share);
}

static struct rank rank_of(enum top_keys_order order, const struct top_key *slot, size_t at)
{
	struct rank rank = { 0, ~slot->reset_after_ns, at };

	if (order == TOP_KEYS_BY_DEBT)
		rank.first = ~slot->debt_ns;
	else if (order == TOP_KEYS_BY_REMAINING)
		rank.first = slot->remaining;
	else if (order != TOP_KEYS_BY_RESET)
		rank.first = rank_of_denial(slot, order == TOP_KEYS_BY_DENIAL);
	return rank;
}

/* Ties in an order that is the same each time. */
static int compare_ranks(const struct rank *a, const struct rank *b, const struct top_key *slots)
{
	int first = -larger(a->first, b->first);

	if (first == 0)
		first = -larger(a->second, b->second);
	if (first == 0)
		first = -larger((uint64_t)slots[a->at].rule, (uint64_t)slots[b->at].rule);
	return first != 0 ? first : -larger(slots[a->at].fingerprint, slots[b->at].fingerprint);
}

int top_key_compare(enum top_keys_order order, const struct top_key *a, const struct top_key *b)
{
	const struct top_key both[] = { *a, *b };
	struct rank of_a = rank_of(order, a, 0), of_b = rank_of(order, b, 1);

	return compare_ranks(&of_a, &of_b, both);
}

static int compare(const void *a, const void *b, void *slots)
{
	return compare_ranks(a, b, slots);
}

/*
 * Sort what there is, and forget what is beyond the limit. WHY ranks: a million slots of 56 bytes
 * are sorted in half the time if what is compared and moved is 24 bytes that stand side by side. A
 * status.
 */
static int settle(struct top_keys *keys)
{
	struct rank *rank = calloc(keys->count, sizeof(*rank));
	struct top_key *sorted = reallocarray(NULL, keys->room, sizeof(*sorted));

	if (rank == NULL || sorted == NULL) {
		free(rank);
		free(sorted);
		return fail_memory();
	}
	for (size_t i = 0; i < keys->count; i++)
		rank[i] = rank_of(keys->order, &keys->slot[i], i);
	qsort_r(rank, keys->count, sizeof(*rank), compare, keys->slot);
	if (keys->count > keys->limit)
		keys->count = (size_t)keys->limit;
	for (size_t i = 0; i < keys->count; i++)
		sorted[i] = keys->slot[rank[i].at];
	free(rank);
	free(keys->slot);
	keys->slot = sorted;
	return STATUS_OK;
}

/*
 * Twice the limit is room enough: when that is full, half of it goes. So the
 * memory depends on the limit and not on the table, and a slot costs a sort's
 * logarithm.
 */
static int keep(struct top_keys *keys, const struct top_key *slot)
{
	struct top_key *bigger;
	size_t room;

	if (keys->limit == 0)
		return STATUS_OK;
	if (keys->count / 2 >= keys->limit && settle(keys) != STATUS_OK)
		return STATUS_ERROR;
	if (keys->count == keys->room) {
		room = keys->room > 0 ? 2 * keys->room : 64;
		bigger = reallocarray(keys->slot, room, sizeof(*bigger));
		if (bigger == NULL)
			return fail_memory();
		keys->slot = bigger;
		keys->room = room;
	}
	keys->slot[keys->count++] = *slot;
	return STATUS_OK;
}

/* A WARMUP denies not when nothing is stored, but while something is owed. */
static uint32_t share_of(struct shmlimit *limiter, struct live_rule *known, const struct shmlimit_slot *slot)
{
	struct live_rule *rule = &known[slot->rule];
	struct shmlimit_rule set = { .struct_size = sizeof(set) };

	if (rule->capacity == 0) {
		*rule = (struct live_rule){ 0, 1 };
		if (shmlimit_rule_get(limiter, slot->rule, &set) == 0 && set.capacity > 0)
			*rule = (struct live_rule){ set.algorithm, set.capacity };
	}
	if (traits_of(rule->algorithm)->sets & SETS_WARMUP)
		return slot->debt_ns == 0 ? UINT32_MAX : 0;
	if (slot->remaining == 0 || slot->remaining >= rule->capacity)
		return slot->remaining == 0 ? 0 : UINT32_MAX;
	return (uint32_t)(((unsigned __int128)slot->remaining << 32) / rule->capacity) | 1;
}

/* WHY NOT a backslash that escapes: it is in keys as they are shown; a bracket does as well. */
static int is_match(struct shmlimit *limiter, const char *pattern, const struct top_key *slot)
{
	char text[KEY_TEXT_LEN];

	return top_key_show(text, limiter, slot) != NULL && fnmatch(pattern, text, FNM_NOESCAPE) == 0;
}

static int is_chosen(struct shmlimit *limiter, const struct top_keys *keys, const struct top_key *slot)
{
	return (keys->rule < 0 || slot->rule == keys->rule) &&
	       (keys->fingerprint == 0 || slot->fingerprint == keys->fingerprint) &&
	       (!keys->denied || slot->share == 0) && (keys->match == NULL || is_match(limiter, keys->match, slot));
}

/* A walk over slots. */
struct scan {
	struct shmlimit *limiter;
	struct top_keys *keys;
	struct shmlimit_info info;
	uint64_t now_ns;
	int breaker; /* the rule whose slots are not shown; -1: there is none */
	struct live_rule *known;
	struct top_key *old; /* live keys of the old table, by rule and fingerprint ... */
	size_t olds, room;
	unsigned char *moved; /* ... and which of them are in the new one too */
};

static uint64_t places_held(const struct top_key *slot)
{
	return slot->number > slot->remaining ? slot->number - slot->remaining : 0;
}

/*
 * WHY the base, too: where nothing is held, a key whose number was found says more than a new one.
 */
static int is_busier(const struct top_key *a, const struct top_key *b)
{
	uint64_t held = places_held(a), other = places_held(b);

	return b->number == 0 || held > other || (held == other && a->base_ns > b->base_ns);
}

/* What the old table says of a key may be over: any number of the new one stands before those. */
static void note_number(struct scan *s, const struct top_key *seen)
{
	struct top_key *busiest;

	if (s->keys->busiest == NULL || seen->number == 0)
		return;
	busiest = &s->keys->busiest[seen->rule];
	if (is_busier(seen, busiest) || (seen->index < s->info.slots && busiest->index >= s->info.slots))
		*busiest = *seen;
}

/* Returns the state of a slot and, if it has a rule, fills *seen; -1: there is no such slot. */
static int look(struct scan *s, uint64_t index, struct top_key *seen)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

	if (shmlimit_slot(s->limiter, index, &slot, s->now_ns) < 0 || slot.state > SHMLIMIT_SLOT_STALE ||
	    slot.rule >= (int)s->info.rules)
		return -1;
	*seen = (struct top_key){ .index = index,
		                  .fingerprint = slot.fingerprint,
		                  .remaining = slot.remaining,
		                  .debt_ns = slot.debt_ns,
		                  .reset_after_ns = slot.reset_after_ns,
		                  .rule = slot.rule,
		                  .lease = slot.lease,
		                  .number = (uint32_t)slot.number,
		                  .queue_milli = (uint32_t)slot.queue_milli,
		                  .base_ns = slot.base_ns };
	note_number(s, seen);
	if (slot.state == SHMLIMIT_SLOT_LIVE)
		seen->share = share_of(s->limiter, s->known, &slot);
	return (int)slot.state;
}

static int compare_keys(const void *a, const void *b)
{
	const struct top_key *x = a, *y = b;
	int rule = -larger((uint64_t)x->rule, (uint64_t)y->rule);

	return rule != 0 ? rule : -larger(x->fingerprint, y->fingerprint);
}

/* Keep what is live in slots of the old table. A status. */
static int scan_old(struct scan *s, uint64_t first, uint64_t end)
{
	struct top_key seen;

	for (uint64_t i = first; i < end; i++) {
		int state = look(s, i, &seen);

		if (state >= 0 && state != SHMLIMIT_SLOT_LIVE)
			s->keys->states[state]++;
		if (state != SHMLIMIT_SLOT_LIVE)
			continue;
		if (s->olds == s->room) {
			size_t room = s->room > 0 ? 2 * s->room : 64;
			struct top_key *bigger = reallocarray(s->old, room, sizeof(*bigger));

			if (bigger == NULL)
				return fail_memory();
			s->old = bigger;
			s->room = room;
		}
		s->old[s->olds++] = seen;
	}
	s->moved = calloc(s->olds + 1, 1);
	if (s->moved == NULL)
		return fail_memory();
	if (s->olds > 1)
		qsort(s->old, s->olds, sizeof(*s->old), compare_keys);
	return STATUS_OK;
}

/* The key of a slot of the new table has no other: what the old table has of it was before. */
static void forget_old(struct scan *s, const struct top_key *seen)
{
	const struct top_key *old = s->olds == 0 ? NULL : bsearch(seen, s->old, s->olds, sizeof(*s->old), compare_keys);

	if (old != NULL)
		s->moved[old - s->old] = 1;
}

/* A live slot: visit or keep it, if it is one of those that are chosen. A status. */
static int meet(struct scan *s, const struct top_key *seen)
{
	struct top_keys *keys = s->keys;

	keys->states[SHMLIMIT_SLOT_LIVE]++;
	if (seen->rule == s->breaker || !is_chosen(s->limiter, keys, seen))
		return STATUS_OK;
	keys->found++;
	return keys->visit != NULL ? keys->visit(keys->context, seen) : keep(keys, seen);
}

static int is_enough(const struct top_keys *keys)
{
	return keys->visit != NULL && keys->found >= keys->limit;
}

/*
 * The old table's slots have the higher indexes, and are read first: a key that moves during the
 * walk is not missed.
 */
static int scan(struct scan *s, uint64_t first, uint64_t end)
{
	uint64_t slots = s->info.slots;
	struct top_key seen;
	int status = scan_old(s, first > slots ? first : slots, end);

	for (uint64_t i = first; i < end && i < slots && status == STATUS_OK && !is_enough(s->keys); i++) {
		int state = look(s, i, &seen);

		if (state < 0)
			continue;
		if (seen.rule >= 0)
			forget_old(s, &seen);
		if (state == SHMLIMIT_SLOT_LIVE)
			status = meet(s, &seen);
		else
			s->keys->states[state]++;
	}
	for (size_t i = 0; i < s->olds && status == STATUS_OK && !is_enough(s->keys); i++)
		if (!s->moved[i])
			status = meet(s, &s->old[i]);
	return status;
}

int top_keys_scan(struct shmlimit *limiter, uint64_t first, uint64_t n, struct top_keys *keys)
{
	struct scan s = { .limiter = limiter,
		          .keys = keys,
		          .info.struct_size = sizeof(s.info),
		          .now_ns = shmlimit_now(limiter),
		          .breaker = keys->rule < 0 ? rule_breaker(limiter) : -1 };
	int status;

	shmlimit_info(limiter, &s.info);
	s.known = calloc(s.info.rules, sizeof(*s.known));
	status = s.known == NULL ? fail_memory() : scan(&s, first, first + n);
	free(s.known);
	free(s.old);
	free(s.moved);
	return status == STATUS_OK && keys->count > 1 ? settle(keys) : status;
}

size_t top_key_bytes(unsigned char key[SHMLIMIT_KEY_MAX], struct shmlimit *limiter, const struct top_key *seen,
                     size_t *key_len)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot),
		                      .fingerprint = seen->fingerprint,
		                      .rule = seen->rule };
	int kept = shmlimit_slot_key(limiter, seen->index, &slot, key, SHMLIMIT_KEY_MAX, key_len);

	return kept > 0 ? (size_t)kept : 0;
}

/* The key of a pause is a rule's name, a blank, and a key of that rule. */
static const char *show_pause(char text[KEY_TEXT_LEN], const unsigned char *key, size_t kept, size_t key_len)
{
	const unsigned char *blank = memchr(key, ' ', kept);
	size_t name = blank != NULL ? (size_t)(blank - key) + 1 : 0;

	if (name <= 1 || name > SHMLIMIT_RULE_NAME_MAX + 1 || kept == name)
		return key_show(text, key, kept, key_len);
	/* There is room: each byte of the key is four at most. */
	key_show(text, key + name, kept - name, key_len - name);
	memmove(text + name, text, strlen(text) + 1);
	return memcpy(text, key, name);
}

const char *top_key_show(char text[KEY_TEXT_LEN], struct shmlimit *limiter, const struct top_key *seen)
{
	unsigned char key[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, kept = top_key_bytes(key, limiter, seen, &key_len);

	if (kept == 0)
		return NULL;
	return rule_is_pause(limiter, seen->rule) ? show_pause(text, key, kept, key_len)
	                                          : key_show(text, key, kept, key_len);
}
