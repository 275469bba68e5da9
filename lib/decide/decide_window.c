/*
 * decide_window: the verbs on a sliding window.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"

/* A decision under way: what it reads. */
struct look {
	const struct shmlimit *l;
	const struct table *t;
	const struct layout_slot *slot;
	const struct layout_terms *terms;
	const struct ring *ring;
	uint64_t now_ns;
};

/* When an admission counts from that is granted now for `wait_ns` from now. What stands in the ring stays in order. */
static uint64_t latest_ns(const struct look *look, uint64_t wait_ns)
{
	const struct ring *ring = look->ring;
	uint64_t ns = window_end_of_tick(look->terms, look->now_ns + wait_ns);

	return ring->valid != 0 && (int64_t)(ring->w.last_ns - ns) > 0 ? ring->w.last_ns : ns;
}

/*
 * Nanoseconds until `tokens`, 1 to the capacity, fit after `more` others were
 * admitted now: when the token that has capacity - tokens newer ones has left.
 */
static uint64_t wait_for(const struct look *look, uint64_t tokens, uint64_t more)
{
	uint64_t newer = look->terms->capacity - tokens;

	if (newer < more)
		return window_wait(look->terms, latest_ns(look, 0), look->now_ns);
	newer -= more;
	if (newer >= look->ring->valid)
		return 0;
	return window_wait(look->terms, ring_time(look->l, look->t, look->slot, look->terms, look->ring, newer),
	                   look->now_ns);
}

/* Admit so many tokens, `wait_ns` from now. */
static void record(const struct look *look, uint64_t tokens, uint64_t wait_ns, struct window *after)
{
	const struct ring *ring = look->ring;

	after->last_ns = latest_ns(look, wait_ns);
	after->k = tokens;
	after->n = ring->valid == 0 ? tokens : window_advance(ring->w.n, tokens, look->l->window_max);
}

/*
 * Take the newest tokens back; ring_level() makes it right that it is they, where
 * what is given back was taken since the call's time, as take_all does.
 */
static void take_back(const struct look *look, uint64_t tokens, uint64_t since_ns, struct window *after)
{
	const struct ring *ring = look->ring;
	uint64_t ns;

	*after = ring_empty(look->now_ns).w;
	if (ring_used(look->l, look->t, look->slot, look->terms, ring, tokens, look->now_ns) == 0)
		return;
	ns = ring_time(look->l, look->t, look->slot, look->terms, ring, tokens);
	after->n = window_withdraw(ring->w.n, tokens, look->l->window_max);
	after->last_ns = (int64_t)(ns - since_ns) >= 0 ? ring->w.last_ns : ns;
}

/* Take, peek, reserve. Returns how many tokens are to be recorded. */
static uint64_t ask(const struct look *look, const struct request *q, struct verdict *v)
{
	const struct layout_terms *terms = look->terms;
	int count_refused = (terms_flags(terms) & SHMLIMIT_COUNT_REFUSED) != 0 && q->verb != VERB_PEEK;
	uint64_t limit_ns = 0, wait_ns;

	if (q->amount == 0)
		return 0;
	if (q->verb == VERB_RESERVE)
		limit_ns = q->max_wait_ns < terms->max_wait_ns ? q->max_wait_ns : terms->max_wait_ns;
	if (q->amount > terms->capacity) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
		return count_refused ? terms->capacity : 0;
	}
	wait_ns = wait_for(look, q->amount, 0);
	if (wait_ns <= limit_ns) {
		v->wait_ns = wait_ns;
		return q->verb == VERB_PEEK ? 0 : q->amount;
	}
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = wait_ns - limit_ns;
	if (!count_refused)
		return 0;
	v->retry_after_ns = wait_for(look, q->amount, q->amount);
	return q->amount;
}

static void report(const struct look *look, const struct request *q, struct verdict *v,
                   const struct window *after, uint64_t recorded, struct shmlimit_result *r)
{
	uint64_t capacity = look->terms->capacity;
	uint64_t used = ring_used(look->l, look->t, look->slot, look->terms, look->ring,
	                          q->verb == VERB_REFUND ? q->amount : 0, look->now_ns);

	if (q->verb == VERB_CHARGE && q->amount > (used < capacity ? capacity - used : 0))
		v->retry_after_ns = FUNNEL_NEVER;
	used = used + recorded < capacity ? used + recorded : capacity;
	*r = (struct shmlimit_result){
		.limit = capacity,
		.remaining = capacity - used,
		.wait_ns = v->wait_ns,
		.retry_after_ns = v->retry_after_ns,
		.reset_after_ns = used == 0 ? 0 : window_wait(look->terms, after->last_ns, look->now_ns),
	};
}

void decide_window(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                   const struct layout_terms *terms, const struct request *q, const struct ring *before,
                   uint64_t now_ns, struct window *after, struct verdict *v, struct shmlimit_result *r)
{
	struct look look = { l, t, slot, terms, before, now_ns };
	uint64_t tokens = 0;

	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->verb) {
	case VERB_TAKE:
	case VERB_PEEK:
	case VERB_RESERVE:
		tokens = ask(&look, q, v);
		break;
	case VERB_CHARGE:
		tokens = q->amount < terms->capacity ? q->amount : terms->capacity;
		break;
	case VERB_REFUND:
		/* What was taken a period ago and more has left: of what stands nothing is his. */
		v->changed = q->amount != 0 && before->valid != 0 &&
		             window_wait(terms, before->w.last_ns, now_ns) != 0 &&
		             window_wait(terms, q->now_ns, now_ns) != 0;
		if (v->changed)
			take_back(&look, q->amount, q->now_ns, after);
		break;
	default:
		break; /* a lease's verbs are refused before */
	}
	/* A record that was scribbled over may have a capacity beyond all rings. */
	if (tokens > l->window_max)
		tokens = l->window_max;
	if (tokens != 0) {
		record(&look, tokens, v->wait_ns, after);
		v->changed = 1;
	} else if (!v->changed) {
		*after = before->w;
	}
	if (r != NULL)
		report(&look, q, v, after, tokens, r);
}

/* A ring that is as the word says, and a clock that is not in doubt: no need for decide_slowly()'s care. */
__attribute__((flatten)) int decide_window_first(const struct shmlimit *l, const struct table *t,
                                                 const struct request *q, const struct rule_view *view,
                                                 uint32_t *failed, struct shmlimit_result *r)
{
	const struct layout_terms *terms = &view->terms;
	uint64_t tag = tag_pack(q->hash, q->rule, rule_version(view));
	struct layout_slot *slot = table_find(t, table_window(t, q->hash), tag);
	struct slot_seen seen, mine;
	struct window after;
	struct verdict v;
	struct ring ring;

	if (slot == NULL)
		return DECIDE_AGAIN;
	seen = slot_read(slot);
	if (seen.tag != tag || !rule_holds(l, q->rule, view))
		return DECIDE_AGAIN;
	ring = ring_read(l, t, slot, terms, seen.word, q->now_ns);
	if (!ring.complete || ring.stepped)
		return DECIDE_AGAIN;
	decide_window(l, t, slot, terms, q, &ring, q->now_ns, &after, &v, r);
	if (!v.changed) {
		if (!slot_unchanged(slot, seen))
			return DECIDE_AGAIN;
		decide_show(q->rule, q->verb, q->hash, q->amount, v.answer);
		return decide_count(l, q->rule, rule_mode(view), q->verb, v.answer, q->now_ns);
	}
	mine = (struct slot_seen){ tag, window_pack(terms, after) };
	if (q->verb == VERB_REFUND)
		return DECIDE_AGAIN;
	if (ring.valid != 0 && ring.w.k > 1)
		ring_complete(l, t, slot, terms, seen, &ring.w, 0);
	if (!slot_cas(slot, seen, mine.tag, mine.word)) {
		*failed = 1;
		return DECIDE_AGAIN;
	}
	ring_complete(l, t, slot, terms, mine, &after, 1);
	decide_note(q->undo, &v, slot, seen, ring.valid == 0, mine);
	decide_show(q->rule, q->verb, q->hash, q->amount, v.answer);
	return decide_count(l, q->rule, rule_mode(view), q->verb, v.answer, q->now_ns);
}
