/*
 * decide_lease: the verbs on a lease.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"

/* Tokens that the word did not keep, because their time was over or must not be longer. */
static void let_lapse(struct lease *lease, uint64_t tokens, struct lease_tally *tally)
{
	lease->quota -= tokens;
	tally->lapsed += tokens + lease->lapsed;
	lease->lapsed = 0;
}

/* Become the one who asks. */
static void claim(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                  struct verdict *v, struct lease_tally *tally)
{
	const struct lease_request *asked = q->lease;
	uint64_t lease_ns = asked->lease_ns < LEASE_AHEAD_NS ? asked->lease_ns : LEASE_AHEAD_NS;
	uint64_t claim_ns = asked->claim_ns < LEASE_AHEAD_NS / 2 ? asked->claim_ns : LEASE_AHEAD_NS / 2;
	uint64_t next = lease_next(terms, lease, now_ns, lease_ns);
	uint64_t until_ns;

	/* Rounded up, so that there is a claim however short. */
	until_ns = lease_until(terms, now_ns, claim_ns + lease_tick_ns(terms) - 1);
	/* What is left goes on being spent while he asks, unless its time is over before his is. */
	if (lease->state == LEASE_DENIED)
		lease->quota = 0;
	else
		let_lapse(lease, lease->left_ns < lease_left_ns(until_ns, now_ns) ? lease->quota : 0, tally);
	if (next < q->amount)
		next = q->amount;
	asked->out->want = next - lease->quota;
	asked->out->need = q->amount - lease->quota;
	lease->state = LEASE_ASKED;
	lease->until_ns = until_ns;
	lease->left_ns = lease_left_ns(until_ns, now_ns);
	lease->size = lease_size(terms, next);
	v->answer = SHMLIMIT_LEASE_ASK;
	v->changed = 1;
}

/* Take, peek, and whether to ask. */
static void ask(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                struct verdict *v, struct lease_tally *tally)
{
	uint64_t held = lease_held(lease);

	if (__builtin_expect(q->amount <= held, 1)) {
		if (q->verb == VERB_PEEK || q->amount == 0)
			return;
		lease->quota -= q->amount;
		tally->spent = q->amount;
		v->changed = 1;
		return;
	}
	v->answer = SHMLIMIT_DENIED;
	if (q->amount > terms->capacity) {
		v->retry_after_ns = FUNNEL_NEVER;
	} else if (lease->state == LEASE_DENIED && lease->left_ns != 0 && q->amount >= lease->quota) {
		v->retry_after_ns = lease->left_ns;
		tally->denied = q->verb != VERB_PEEK;
	} else if (q->verb != VERB_LEASE) {
		v->retry_after_ns = lease->state == LEASE_ASKED && lease->left_ns != 0 ? lease->left_ns
		                                                                      : lease_token_ns(terms);
	} else if (lease->state == LEASE_ASKED && lease->left_ns != 0) {
		v->answer = SHMLIMIT_LEASE_WAIT;
	} else if (q->lease->claim_ns == 0) {
		v->answer = SHMLIMIT_LEASE_ASK;
		q->lease->out->want = q->lease->out->need = q->amount - held;
	} else {
		claim(terms, q, now_ns, lease, v, tally);
	}
	if (v->answer > SHMLIMIT_DENIED) {
		q->lease->out->held = lease_held(lease);
		q->lease->out->wait_ns = lease->state == LEASE_ASKED ? lease->left_ns : 0;
	}
}

/*
 * Put tokens that end at until_ns beside those that are there: all end with the
 * first, or what ends first lapses, whichever is less. Returns whether all end at
 * until_ns or earlier, so that they may be counted with the new ones.
 */
static int merge(const struct layout_terms *terms, struct lease *lease, uint64_t tokens, uint64_t until_ns,
                  uint64_t now_ns, struct lease_tally *tally)
{
	uint64_t left_ns = lease_left_ns(until_ns, now_ns), room;
	int kept = tokens != 0 || lease->quota == 0;

	if (lease->quota == 0 || (lease->left_ns < left_ns && lease->quota < tokens)) {
		let_lapse(lease, lease->quota, tally);
		lease->until_ns = until_ns;
	} else if (left_ns < lease->left_ns && tokens < lease->quota) {
		tally->lapsed += tokens;
		tokens = 0;
		kept = 0;
	} else if (left_ns < lease->left_ns) {
		lease->until_ns = until_ns;
	}
	room = terms->capacity - lease->quota;
	if (tokens > room) {
		tally->lapsed += tokens - room;
		tokens = room;
	}
	lease->quota += tokens;
	lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
	if (lease->left_ns == 0)
		let_lapse(lease, lease->quota, tally);
	return kept;
}

/* What the engine gave. Tokens that were here are spent first, so that old ones rarely meet new ones. */
static void deposit(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                    struct verdict *v, struct lease_tally *tally)
{
	uint64_t tokens = q->lease->tokens, held = lease_held(lease);
	int enough = q->amount <= held || q->amount - held <= tokens;
	uint64_t spend = enough ? q->amount : 0;
	int kept;

	tally->leases = tokens != 0;
	tally->leased = tokens;
	tally->spent = spend;
	v->answer = enough ? SHMLIMIT_ALLOWED : SHMLIMIT_LEASE_WAIT;
	v->changed = 1;
	lease->state = LEASE_TOKENS;
	lease->quota = held - (spend < held ? spend : held);
	tokens -= spend < held ? 0 : spend - held;
	kept = merge(terms, lease, tokens, lease_until(terms, now_ns, q->lease->lease_ns), now_ns, tally);
	/* What was spent at once is lent too, as long as the rest is. */
	if (kept && q->lease->tokens > lease->quota)
		lease->size = lease_size(terms, q->lease->tokens);
	else
		lease->size = lease_size(terms, lease->quota);
}

/* The engine said no, or nothing: the claim ends. What it left stays what it was; if that is none, a denial may. */
static void end_claim(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                      struct verdict *v, struct lease_tally *tally)
{
	if (lease->state == LEASE_ASKED && lease->left_ns != 0) {
		lease->state = LEASE_TOKENS;
		/* What was asked for was not lent. Without tokens its time is over, and the size is still known. */
		if (lease->quota != 0)
			lease->size = lease_size(terms, lease->quota);
		else
			lease->until_ns = lease_until(terms, now_ns, 0);
		lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
		v->changed = 1;
	}
	if (q->verb == VERB_ABANDON)
		return;
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = q->lease->lease_ns | (q->lease->lease_ns == 0);
	if (lease_held(lease) != 0)
		return;
	let_lapse(lease, 0, tally);
	lease->state = LEASE_DENIED;
	lease->quota = q->amount < terms->capacity ? q->amount | (q->amount == 0) : terms->capacity;
	lease->until_ns = lease_until(terms, now_ns, q->lease->lease_ns);
	lease->left_ns = lease_left_ns(lease->until_ns, now_ns);
	v->changed = 1;
}

__attribute__((always_inline)) static inline void verb(const struct layout_terms *terms, const struct request *q,
                                                       uint64_t now_ns, struct lease *lease, struct verdict *v,
                                                       struct lease_tally *tally)
{
	uint64_t room;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	*tally = (struct lease_tally){ 0 };
	switch (q->verb) {
	case VERB_TAKE:
	case VERB_PEEK:
	case VERB_RESERVE:
	case VERB_LEASE:
		ask(terms, q, now_ns, lease, v, tally);
		break;
	case VERB_REFUND:
		/* While somebody asks, the size is what is asked for: what is given back then is lost. */
		room = lease->state == LEASE_TOKENS && lease->left_ns != 0 ? lease_size_least(terms, lease->size) : 0;
		room = room > lease->quota ? room - lease->quota : 0;
		v->changed = q->amount != 0 && room != 0;
		if (v->changed)
			lease->quota += q->amount < room ? q->amount : room;
		break;
	case VERB_CHARGE:
		tally->spent = q->amount < lease_held(lease) ? q->amount : lease_held(lease);
		v->changed = tally->spent != 0;
		if (v->changed)
			lease->quota -= tally->spent;
		if (tally->spent < q->amount)
			v->retry_after_ns = FUNNEL_NEVER;
		break;
	case VERB_DEPOSIT:
		deposit(terms, q, now_ns, lease, v, tally);
		break;
	case VERB_DENY:
	case VERB_ABANDON:
		end_claim(terms, q, now_ns, lease, v, tally);
		break;
	}
}

void decide_lease(const struct layout_terms *terms, const struct request *q, uint64_t now_ns, struct lease *lease,
                  struct verdict *v, struct lease_tally *tally)
{
	verb(terms, q, now_ns, lease, v, tally);
}

static void report(const struct layout_terms *terms, const struct lease *lease, uint64_t retry_after_ns,
                   struct shmlimit_result *r)
{
	r->limit = terms->capacity;
	r->remaining = lease_held(lease);
	r->wait_ns = 0;
	r->retry_after_ns = retry_after_ns;
	r->reset_after_ns = lease_wait(lease);
}

static void tell(const struct shmlimit *l, enum lease_counter which, uint64_t n, uint64_t entropy)
{
	if (n != 0)
		counter_add_lease(l, which, n, entropy);
}

void decide_lease_report(const struct shmlimit *l, const struct layout_terms *terms, const struct lease *lease,
                         const struct lease_tally *tally, const struct verdict *v, uint64_t entropy,
                         struct shmlimit_result *r)
{
	if (r != NULL)
		report(terms, lease, v->retry_after_ns, r);
	tell(l, LEASE_LEASES, tally->leases, entropy);
	tell(l, LEASE_LEASED, tally->leased, entropy);
	tell(l, LEASE_SPENT, tally->spent, entropy);
	tell(l, LEASE_LAPSED, tally->lapsed, entropy);
	tell(l, LEASE_KNOWN_DENIALS, tally->denied, entropy);
}

/*
 * What nearly every decision is: tokens are here, and enough. The quota stands in
 * the low bits of the word, so spending is a subtraction from all of it.
 */
static inline int is_enough(const struct layout_terms *terms, const struct request *q, uint64_t word)
{
	unsigned bits = terms_quota_bits(terms);
	uint64_t quota = word & (((uint64_t)1 << bits) - 1), until_ns = (word & ~lease_low(terms)) >> LEASE_TIME_SHIFT;

	return (q->verb == VERB_LEASE || q->verb == VERB_TAKE) && (word >> bits & 1) == 0 && q->amount <= quota &&
	       quota <= terms->capacity && lease_left_ns(until_ns, q->now_ns) != 0;
}

int decide_lease_first(const struct shmlimit *l, const struct table *t, const struct request *q,
                       const struct rule_view *view, uint32_t *failed, struct shmlimit_result *r)
{
	const struct layout_terms *terms = &view->terms;
	uint64_t tag = tag_pack(q->hash, q->rule, rule_version(view));
	struct layout_slot *slot = table_find(t, table_window(t, q->hash), tag);
	struct lease_tally tally;
	struct slot_seen seen;
	struct lease lease;
	struct verdict v;

	if (slot == NULL)
		return DECIDE_AGAIN;
	seen = slot_read(slot);
	if (seen.tag != tag || !rule_holds(l, q->rule, view) || !rule_is_on(l, view))
		return DECIDE_AGAIN;
	if (__builtin_expect(is_enough(terms, q, seen.word), 1)) {
		uint64_t word = seen.word - q->amount;

		*failed = !slot_cas(slot, seen, tag, word);
		if (*failed)
			return DECIDE_AGAIN;
		if (q->undo != NULL)
			*q->undo = (struct undo){ slot, seen, { tag, word } };
		decide_show(q->rule, q->verb, q->hash, q->amount, SHMLIMIT_ALLOWED);
		counter_add_lease(l, LEASE_SPENT, q->amount, q->now_ns);
		if (r != NULL) {
			lease = lease_read(terms, word, q->now_ns);
			report(terms, &lease, 0, r);
		}
		counter_add(l, q->rule, COUNT_ALLOWED, q->now_ns);
		return SHMLIMIT_ALLOWED;
	}
	lease = lease_read(terms, seen.word, q->now_ns);
	verb(terms, q, q->now_ns, &lease, &v, &tally);
	if (v.changed)
		*failed = !slot_cas(slot, seen, tag, lease_pack(terms, lease));
	if (v.changed ? *failed : !slot_unchanged(slot, seen))
		return DECIDE_AGAIN;
	decide_note(q->undo, &v, slot, seen, 0, (struct slot_seen){ tag, lease_pack(terms, lease) });
	decide_show(q->rule, q->verb, q->hash, q->amount, v.answer);
	decide_lease_report(l, terms, &lease, &tally, &v, q->now_ns, r);
	if (v.answer > SHMLIMIT_DENIED)
		return v.answer;
	return decide_count(l, q->rule, rule_mode(view), q->verb, v.answer, q->now_ns);
}

int decide_leased(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t amount, enum verb verb,
                  const struct lease_request *leased, enum time_source source, uint64_t now_ns,
                  struct shmlimit_result *r)
{
	struct request_key whole = { key, key_len };
	const struct table *t;
	struct request request = { (uint32_t)rule, verb, source, 0, amount, 0, now_ns, &whole, leased, NULL };

	if (l == NULL || key == NULL)
		return -EINVAL;
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	if (l->read_only)
		return -EROFS;
	if (source == TIME_OWN)
		request.now_ns = clock_read(l->clock_id);
	request.hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	t = generation_glance(l, 1);
	return t == NULL ? decide_slowly(l, &request, 0, r) : decide_other(l, t, &request, r);
}
