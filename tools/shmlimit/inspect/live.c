/*
 * live.c: see live.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "live.h"

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

/* Who is denied stands together, before the others or behind them; the largest debt first. */
static int by_denial(const struct live_slot *a, const struct live_slot *b, int denied_first)
{
	int a_denied = a->share == 0, b_denied = b->share == 0;

	if (a_denied != b_denied)
		return a_denied == denied_first ? -1 : 1;
	return a_denied ? larger(a->debt_ns, b->debt_ns) : -larger(a->share, b->share);
}

static int by_order(enum live_order order, const struct live_slot *a, const struct live_slot *b)
{
	switch (order) {
	case LIVE_RESET:
		return 0;
	case LIVE_DEBT:
		return larger(a->debt_ns, b->debt_ns);
	case LIVE_REMAINING:
		return -larger(a->remaining, b->remaining);
	default:
		return by_denial(a, b, order == LIVE_DENIAL);
	}
}

int live_compare(enum live_order order, const struct live_slot *a, const struct live_slot *b)
{
	int first = by_order(order, a, b);

	if (first == 0)
		first = larger(a->reset_after_ns, b->reset_after_ns);
	/* Ties in an order that is the same each time. */
	if (first == 0)
		first = -larger((uint64_t)a->rule, (uint64_t)b->rule);
	if (first == 0)
		first = -larger(a->fingerprint, b->fingerprint);
	return first;
}

static int compare(const void *a, const void *b, void *order)
{
	return live_compare(*(const enum live_order *)order, a, b);
}

/* Sort what there is, and forget what is beyond the limit. */
static void settle(struct live *live)
{
	if (live->count > 1)
		qsort_r(live->slot, live->count, sizeof(*live->slot), compare, &live->order);
	if (live->count > live->limit)
		live->count = (size_t)live->limit;
}

/*
 * Twice the limit is room enough: when that is full, half of it goes. So the
 * memory depends on the limit and not on the table, and a slot costs a sort's
 * logarithm.
 */
static int keep(struct live *live, const struct live_slot *slot)
{
	struct live_slot *bigger;
	size_t room;

	if (live->limit == 0)
		return STATUS_OK;
	if (live->count / 2 >= live->limit)
		settle(live);
	if (live->count == live->room) {
		room = live->room > 0 ? 2 * live->room : 64;
		bigger = reallocarray(live->slot, room, sizeof(*bigger));
		if (bigger == NULL)
			return fail_memory();
		live->slot = bigger;
		live->room = room;
	}
	live->slot[live->count++] = *slot;
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
	if (rule->algorithm == SHMLIMIT_WARMUP)
		return slot->debt_ns == 0 ? UINT32_MAX : 0;
	if (slot->remaining == 0 || slot->remaining >= rule->capacity)
		return slot->remaining == 0 ? 0 : UINT32_MAX;
	return (uint32_t)(((unsigned __int128)slot->remaining << 32) / rule->capacity) | 1;
}

/* WHY NOT a backslash that escapes: it is in keys as they are shown; a bracket does as well. */
static int is_match(struct shmlimit *limiter, const char *pattern, const struct live_slot *slot)
{
	char text[KEY_TEXT_LEN];

	return live_key(text, limiter, slot) != NULL && fnmatch(pattern, text, FNM_NOESCAPE) == 0;
}

static int is_chosen(struct shmlimit *limiter, const struct live *live, const struct live_slot *slot)
{
	return (live->rule < 0 || slot->rule == live->rule) &&
	       (live->fingerprint == 0 || slot->fingerprint == live->fingerprint) &&
	       (!live->denied || slot->share == 0) &&
	       (live->match == NULL || is_match(limiter, live->match, slot));
}

int live_scan(struct shmlimit *limiter, uint64_t first, uint64_t n, struct live *live)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t now_ns = shmlimit_now(limiter);
	struct live_slot seen;
	struct live_rule *known;
	int status = STATUS_OK, breaker = live->rule < 0 ? rule_breaker(limiter) : -1;

	shmlimit_info(limiter, &info);
	known = calloc(info.rules, sizeof(*known));
	if (known == NULL)
		return fail_memory();
	for (uint64_t i = first; i - first < n && status == STATUS_OK; i++) {
		if (live->visit != NULL && live->found >= live->limit)
			break;
		if (shmlimit_slot(limiter, i, now_ns, &slot) < 0 || slot.state > SHMLIMIT_SLOT_STALE)
			continue;
		live->states[slot.state]++;
		if (slot.state != SHMLIMIT_SLOT_LIVE || slot.rule >= (int)info.rules || slot.rule == breaker)
			continue;
		seen = (struct live_slot){ i, slot.fingerprint, slot.remaining, slot.debt_ns, slot.reset_after_ns,
		                           slot.rule, share_of(limiter, known, &slot), slot.lease };
		if (!is_chosen(limiter, live, &seen))
			continue;
		live->found++;
		status = live->visit != NULL ? live->visit(live->context, &seen) : keep(live, &seen);
	}
	free(known);
	settle(live);
	return status;
}

size_t live_key_bytes(unsigned char key[SHMLIMIT_KEY_MAX], struct shmlimit *limiter, const struct live_slot *seen,
                      size_t *key_len)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot), .fingerprint = seen->fingerprint, .rule = seen->rule };
	int kept = shmlimit_slot_key(limiter, seen->index, &slot, key, SHMLIMIT_KEY_MAX, key_len);

	return kept > 0 ? (size_t)kept : 0;
}

const char *live_key(char text[KEY_TEXT_LEN], struct shmlimit *limiter, const struct live_slot *seen)
{
	unsigned char key[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, kept = live_key_bytes(key, limiter, seen, &key_len);

	return kept > 0 ? key_show(text, key, kept, key_len) : NULL;
}
