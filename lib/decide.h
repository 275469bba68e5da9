/*
 * decide: what all deciding verbs have in common. Clock, hash, find, decide,
 * commit; whatever does not go through at the first try is decide.c's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DECIDE_H
#define SHMLIMIT_LIB_DECIDE_H

#include "clock.h"
#include "counter.h"
#include "funnel.h"
#include "table.h"

enum verb { VERB_TAKE, VERB_PEEK, VERB_REFUND };
enum time_source { TIME_OWN, TIME_GIVEN };

/* What is asked, by whom the time is told. */
struct request {
	uint32_t rule;
	enum verb verb;
	enum time_source source;
	uint64_t hash;                    /* of the key, under the rule */
	uint64_t amount;                  /* tokens asked for, or given back */
	uint64_t now_ns;
};

/* Decide from the start, as often as it takes. `failed` compare-and-swaps were lost before. */
int decide_slowly(const struct shmlimit *l, const struct request *request, uint32_t failed,
                  struct shmlimit_result *r);

/* Count a denial, which under a DRY_RUN rule is an answer of allowed. Returns the answer. */
static inline int decide_denied(const struct shmlimit *l, uint32_t rule, uint64_t entropy)
{
	if (__builtin_expect(rule_mode(l, rule) == SHMLIMIT_DRY_RUN, 0)) {
		counter_add(l, rule, COUNT_SHADOW_DENIED, entropy);
		return SHMLIMIT_ALLOWED;
	}
	counter_add(l, rule, COUNT_DENIED, entropy);
	return SHMLIMIT_DENIED;
}

/*
 * The verb itself, on a funnel that has leaked up to `at`. Returns the answer,
 * sets *changed if the funnel did.
 */
static inline int decide_apply(const struct layout_terms *terms, enum verb verb, uint64_t amount,
                               struct funnel_time at, struct funnel *funnel, int *changed)
{
	if (verb == VERB_REFUND) {
		uint64_t missing = terms->capacity - funnel->quota;

		if (missing == 0 || amount == 0)
			return SHMLIMIT_ALLOWED;
		*changed = 1;
		if (amount < missing)
			funnel->quota += amount;
		else
			*funnel = funnel_full(terms, at); /* the fraction of a token that had leaked in is void */
		return SHMLIMIT_ALLOWED;
	}
	if (amount > funnel->quota)
		return SHMLIMIT_DENIED;
	if (verb == VERB_TAKE) {
		funnel->quota -= amount;
		*changed = 1;
	}
	return SHMLIMIT_ALLOWED;
}

__attribute__((always_inline)) static inline void decide_report(const struct layout_terms *terms, struct funnel funnel, struct funnel_time at,
                                 int answer, uint64_t amount, struct shmlimit_result *r)
{
	r->limit = terms->capacity;
	r->remaining = funnel.quota;
	r->wait_ns = 0;
	r->retry_after_ns = answer == SHMLIMIT_DENIED ? funnel_ns_until(terms, funnel, amount, at) : 0;
	r->reset_after_ns = funnel_ns_until(terms, funnel, terms->capacity, at);
}

/* Count a decision that was made. Returns the answer. */
static inline int decide_count(const struct shmlimit *l, uint32_t rule, enum verb verb, int answer, uint64_t entropy)
{
	if (answer == SHMLIMIT_DENIED && verb == VERB_TAKE)
		return decide_denied(l, rule, entropy);
	if (verb == VERB_TAKE)
		counter_add(l, rule, COUNT_ALLOWED, entropy);
	else if (rule_mode(l, rule) == SHMLIMIT_DRY_RUN)
		return SHMLIMIT_ALLOWED;
	return answer;
}

__attribute__((always_inline)) static inline int decide(const struct shmlimit *l, int rule_id, const void *key,
                                                        size_t key_len, uint64_t amount, enum verb verb,
                                                        enum time_source source, uint64_t now_ns,
                                                        struct shmlimit_result *r)
{
	uint32_t rule = (uint32_t)rule_id, failed;
	uint64_t hash, tag;
	struct layout_slot *slot;
	struct rule_view view;
	struct slot_seen seen;
	struct funnel funnel;
	struct funnel_time at;
	int answer, changed = 0;

	if (__builtin_expect(l == NULL || key == NULL, 0))
		return -EINVAL;
	if (__builtin_expect(key_len - 1 >= SHMLIMIT_KEY_MAX, 0))
		return -EMSGSIZE;
	if (__builtin_expect(verb != VERB_PEEK && l->read_only, 0))
		return -EROFS;

	/* The clock first: reading it waits for all before it, while of what follows only the arithmetic waits for it. */
	if (source == TIME_OWN)
		now_ns = clock_read(l->clock_id);
	hash = hash_bytes(l->secret, rule, key, key_len);
	failed = 0;
	if (__builtin_expect(rule_load(l, rule, &view, r != NULL) != 0 || !rule_is_on(l, rule), 0))
		goto slowly;
	tag = tag_pack(hash, rule, rule_version(&view));
	slot = table_find(l, table_window(l, hash), tag);
	if (__builtin_expect(slot == NULL, 0))
		goto slowly;
	seen = slot_read(slot);
	at = funnel_time(&view.terms, now_ns);
	if (__builtin_expect(seen.tag != tag || !funnel_is_past(&view.terms, seen.word, at), 0))
		goto slowly;
	funnel = funnel_leak(&view.terms, seen.word, at);
	answer = decide_apply(&view.terms, verb, amount, at, &funnel, &changed);
	if (changed)
		failed = !slot_cas(slot, seen, tag, funnel_pack(funnel));
	if (__builtin_expect(changed ? failed : !slot_unchanged(slot, seen), 0))
		goto slowly;
	if (r != NULL)
		decide_report(&view.terms, funnel, at, answer, amount, r);
	return decide_count(l, rule, verb, answer, at.ticks);

slowly:
	return decide_slowly(l, &(struct request){ rule, verb, source, hash, amount, now_ns }, failed, r);
}

#endif
