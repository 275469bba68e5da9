/*
 * decide: what all deciding verbs have in common. Clock, hash, find, decide,
 * commit; whatever does not go through at the first try, or is not a FUNNEL's, is
 * decide.c's, decide_window.c's, decide_lease.c's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DECIDE_H
#define SHMLIMIT_LIB_DECIDE_H

#include "clock.h"
#include "counter.h"
#include "funnel.h"
#include "lease.h"
#include "probe.h"
#include "ring.h"
#include "table.h"

enum verb {
	VERB_TAKE,
	VERB_PEEK,
	VERB_REFUND,
	VERB_RESERVE,
	VERB_CHARGE,
	/* From here on of LEASE rules only. */
	VERB_LEASE,
	VERB_DEPOSIT,
	VERB_DENY,
	VERB_ABANDON,
};
/* The limiter's clock, to be read or already read; or the caller's, of which there is but one reading. */
enum time_source { TIME_OWN, TIME_READ, TIME_GIVEN };

/* 1 to SHMLIMIT_KEY_MAX bytes. */
struct request_key {
	const void *bytes;
	size_t len;
};

/* What only the verbs of leases have. */
struct lease_request {
	uint64_t tokens;                  /* DEPOSIT */
	uint64_t lease_ns;                /* how long the lease shall last; DENY: the denial */
	uint64_t claim_ns;                /* LEASE */
	struct shmlimit_lease *out;       /* LEASE */
};

/*
 * The swap that took tokens, for a caller that may want to take it back: while the
 * slot stands as `after`, swapping `before` in undoes it. That leaves no trace in any
 * algorithm, whereas a refund is a decision of its own at a later time: it cannot tell
 * how cold a warm-up was. slot NULL: nothing was written.
 *
 * The word comes back, and a swap that another process prepared before the take may
 * go through after it. It is right: it follows from the word that is there again.
 */
struct undo {
	struct layout_slot *slot;
	struct slot_seen before, after;
};

/* What is asked, by whom the time is told. */
struct request {
	uint32_t rule;
	enum verb verb;
	enum time_source source;
	uint64_t hash;                    /* of the key, under the rule */
	uint64_t amount;                  /* tokens asked for, or given back */
	uint64_t max_wait_ns;             /* RESERVE only */
	uint64_t now_ns;
	const struct request_key *key;    /* for the name of a slot that is claimed */
	const struct lease_request *lease;
	struct undo *undo;                /* TAKE only: to be filled in, or NULL */
};

/* What became of it. */
struct verdict {
	int answer;
	int changed;                      /* the funnel did */
	uint64_t wait_ns;                 /* RESERVE, allowed */
	uint64_t retry_after_ns;          /* RESERVE, denied; CHARGE: FUNNEL_NEVER if not all was charged */
};

/* What is to be counted of a lease once it is done. */
struct lease_tally {
	uint64_t leases, leased, spent, lapsed, denied;
};

/*
 * The verbs on what is not a FUNNEL's: decide_warmup.c, decide_window.c,
 * decide_lease.c. They set all of *v, and *r unless it is NULL. A window's ring is
 * read as it stands; *after is what the word shall say if v->changed.
 */
void decide_warmup(const struct layout_terms *terms, const struct request *q, struct funnel_time at,
                   struct funnel *funnel, struct verdict *v);
void decide_warmup_report(const struct layout_terms *terms, struct funnel funnel, struct funnel_time at,
                          const struct verdict *v, struct shmlimit_result *r);
void decide_window(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                   const struct layout_terms *terms, const struct request *q, const struct ring *before,
                   uint64_t now_ns, struct window *after, struct verdict *v, struct shmlimit_result *r);

void decide_lease(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                  struct verdict *v, struct lease_tally *tally);
/* Report what was decided and done, to `r` unless it is NULL, and count what only leases have. */
void decide_lease_report(const struct shmlimit *l, const struct layout_terms *terms, const struct lease *lease,
                         const struct lease_tally *tally, const struct verdict *v, uint64_t entropy,
                         struct shmlimit_result *r);

/*
 * The first try of an algorithm that has one of its own: a key that has its slot,
 * of the version in force. Returns an answer, or DECIDE_AGAIN.
 */
#define DECIDE_AGAIN (-1)
int decide_window_first(const struct shmlimit *l, const struct table *t, const struct request *q,
                        const struct rule_view *view, uint32_t *failed, struct shmlimit_result *r);
int decide_lease_first(const struct shmlimit *l, const struct table *t, const struct request *q,
                       const struct rule_view *view, uint32_t *failed, struct shmlimit_result *r);

/* What is not a FUNNEL's: at the first try if it can be, else slowly. */
int decide_other(const struct shmlimit *l, const struct table *t, const struct request *request,
                 struct shmlimit_result *r);

/* What only leases have, from the arguments of the public function on. */
int decide_leased(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t amount, enum verb verb,
                  const struct lease_request *leased, enum time_source source, uint64_t now_ns,
                  struct shmlimit_result *r);

/* Decide from the start, as often as it takes. `failed` compare-and-swaps were lost before. */
int decide_slowly(const struct shmlimit *l, const struct request *request, uint32_t failed,
                  struct shmlimit_result *r);

/* The reservation, in decide.c: only those of verbs that may borrow. */
void decide_reserve(const struct layout_terms *terms, uint64_t amount, uint64_t max_wait_ns, struct funnel_time at,
                    struct funnel *funnel, struct verdict *v);

/* The verb itself, on a funnel that has leaked up to `at`. */
static inline void decide_apply(const struct layout_terms *terms, enum verb verb, uint64_t amount,
                                uint64_t max_wait_ns, struct funnel_time at, struct funnel *funnel,
                                struct verdict *v)
{
	v->answer = SHMLIMIT_ALLOWED;
	v->changed = 0;
	v->wait_ns = 0;
	v->retry_after_ns = 0;
	switch (verb) {
	case VERB_TAKE:
	case VERB_PEEK:
		if (amount > funnel->quota) {
			v->answer = SHMLIMIT_DENIED;
		} else if (verb == VERB_TAKE) {
			funnel->quota -= amount;
			v->changed = 1;
		}
		break;
	case VERB_REFUND:
		if (amount == 0 || funnel_is_full(terms, *funnel))
			break;
		funnel_refund(terms, funnel, amount, at);
		v->changed = 1;
		break;
	case VERB_RESERVE:
		decide_reserve(terms, amount, max_wait_ns, at, funnel, v);
		break;
	case VERB_CHARGE:
		if (amount == 0)
			break;
		if (!funnel_charge(terms, funnel, amount, at))
			v->retry_after_ns = FUNNEL_NEVER;
		v->changed = 1;
		break;
	default:
		break; /* a lease's verbs are refused before */
	}
}

__attribute__((always_inline)) static inline void decide_report(const struct layout_terms *terms,
                                                                struct funnel funnel, struct funnel_time at,
                                                                enum verb verb, const struct verdict *v,
                                                                uint64_t amount, struct shmlimit_result *r)
{
	r->limit = terms->capacity;
	r->remaining = funnel.quota;
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	if (v->answer == SHMLIMIT_DENIED && verb != VERB_RESERVE)
		r->retry_after_ns = funnel_ns_until(terms, funnel, amount, at);
	r->reset_after_ns = funnel_ns_until(terms, funnel, terms->capacity, at);
}

/* What was swapped, where the caller wants to know and tokens were taken. `empty`: before, it said no more than none. */
static inline void decide_note(struct undo *undo, const struct verdict *v, struct layout_slot *slot,
                               struct slot_seen before, int empty, struct slot_seen after)
{
	if (undo != NULL && v->changed && v->answer == SHMLIMIT_ALLOWED)
		*undo = (struct undo){ slot, empty ? (struct slot_seen){ 0, 0 } : before, after };
}

/* Is an answer to this counted? */
static inline int decide_counts(enum verb verb)
{
	return verb == VERB_TAKE || verb == VERB_RESERVE || verb == VERB_LEASE || verb == VERB_DEPOSIT ||
	       verb == VERB_DENY;
}

/* Let a tracer see a decision. To be called while what it takes is in registers still: before it is reported. */
static inline void decide_show(uint32_t rule, enum verb verb, uint64_t hash, uint64_t amount, int answer)
{
	if (!decide_counts(verb))
		return;
	if (answer == SHMLIMIT_ALLOWED)
		PROBE(allow, rule, hash, amount);
	else if (answer == SHMLIMIT_DENIED)
		PROBE(deny, rule, hash, amount);
}

/* Count a decision that was made under a rule of this mode. Returns the answer: of a dry run always "allowed". */
static inline int decide_count(const struct shmlimit *l, uint32_t rule, uint32_t mode, enum verb verb, int answer,
                               uint64_t entropy)
{
	int counts = decide_counts(verb);

	if (answer == SHMLIMIT_ALLOWED) {
		if (counts)
			counter_add(l, rule, COUNT_ALLOWED, entropy);
		return SHMLIMIT_ALLOWED;
	}
	if (__builtin_expect(mode == SHMLIMIT_DRY_RUN, 0)) {
		if (counts)
			counter_add(l, rule, COUNT_SHADOW_DENIED, entropy);
		return SHMLIMIT_ALLOWED;
	}
	if (counts)
		counter_add(l, rule, COUNT_DENIED, entropy);
	return answer;
}

/* From the hash of the key under the rule on. */
__attribute__((always_inline)) static inline int decide_hashed(const struct shmlimit *l, uint32_t rule, uint64_t hash,
                                                               const struct request_key *key,
                                                               uint64_t amount, uint64_t max_wait_ns,
                                                               enum verb verb, enum time_source source,
                                                               uint64_t now_ns, struct undo *undo,
                                                               struct shmlimit_result *r)
{
	uint32_t failed = 0;
	uint64_t tag;
	const struct table *t = generation_glance(l, verb != VERB_REFUND);
	struct layout_slot *slot;
	struct rule_view view;
	struct slot_seen seen;
	struct funnel funnel;
	struct funnel_time at;
	struct verdict v;

	if (__builtin_expect(t == NULL || rule_glance(l, rule, &view, r != NULL || verb >= VERB_REFUND) != 0 ||
	                     rule_mode(&view) == SHMLIMIT_OFF, 0))
		goto slowly;
	if (__builtin_expect(terms_algorithm(&view.terms) != SHMLIMIT_FUNNEL, 0))
		return decide_other(
			l, t, &(struct request){ rule, verb, source, hash, amount, max_wait_ns, now_ns, key, NULL, undo }, r);
	tag = tag_pack(hash, rule, rule_version(&view));
	slot = table_find(t, table_window(t, hash), tag);
	if (__builtin_expect(slot == NULL, 0))
		goto slowly;
	seen = slot_read(slot);
	at = funnel_time(&view.terms, now_ns);
	if (__builtin_expect(seen.tag != tag || !rule_holds(l, rule, &view) ||
	                     !funnel_is_past(&view.terms, seen.word, at), 0))
		goto slowly;
	funnel = funnel_leak(&view.terms, seen.word, at);
	decide_apply(&view.terms, verb, amount, max_wait_ns, at, &funnel, &v);
	if (v.changed)
		failed = !slot_cas(slot, seen, tag, funnel_pack(&view.terms, funnel));
	if (__builtin_expect(v.changed ? failed : !slot_unchanged(slot, seen), 0))
		goto slowly;
	decide_note(undo, &v, slot, seen, 0, (struct slot_seen){ tag, funnel_pack(&view.terms, funnel) });
	decide_show(rule, verb, hash, amount, v.answer);
	if (r != NULL)
		decide_report(&view.terms, funnel, at, verb, &v, amount, r);
	return decide_count(l, rule, rule_mode(&view), verb, v.answer, at.ticks);

slowly:
	return decide_slowly(
		l, &(struct request){ rule, verb, source, hash, amount, max_wait_ns, now_ns, key, NULL, undo }, failed, r);
}

__attribute__((always_inline)) static inline int decide_noted(const struct shmlimit *l, int rule, const void *key,
                                                              size_t key_len, uint64_t amount,
                                                              uint64_t max_wait_ns, enum verb verb,
                                                              enum time_source source, uint64_t now_ns,
                                                              struct undo *undo, struct shmlimit_result *r)
{
	struct request_key slow;
	uint64_t hash;

	if (__builtin_expect(l == NULL || key == NULL, 0))
		return -EINVAL;
	if (__builtin_expect(key_len - 1 >= SHMLIMIT_KEY_MAX, 0))
		return -EMSGSIZE;
	if (__builtin_expect(verb != VERB_PEEK && l->read_only, 0))
		return -EROFS;

	/* The clock first: reading it waits for all before it, while of what follows only the arithmetic waits for it. */
	if (source == TIME_OWN)
		now_ns = clock_read(l->clock_id);
	/* To where the slow path finds it: kept in registers, it would cost the fast one up to 2 ns. */
	slow = (struct request_key){ key, key_len };
	__asm__("" : "+m"(slow));
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	return decide_hashed(l, (uint32_t)rule, hash, &slow, amount, max_wait_ns, verb, source, now_ns, undo, r);
}

__attribute__((always_inline)) static inline int decide(const struct shmlimit *l, int rule, const void *key,
                                                        size_t key_len, uint64_t amount, uint64_t max_wait_ns,
                                                        enum verb verb, enum time_source source,
                                                        uint64_t now_ns, struct shmlimit_result *r)
{
	return decide_noted(l, rule, key, key_len, amount, max_wait_ns, verb, source, now_ns, NULL, r);
}

#endif
