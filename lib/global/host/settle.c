/*
 * settle: see settle.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "atomic.h"
#include "fallback.h"
#include "policy.h"
#include "settle.h"

/* The backend gave no answer. The claim ends, so that no later request of this key waits for it. */
void ask_give_up(struct shmlimit_global *g, struct ask *a)
{
	if (a->answer == SHMLIMIT_LEASE_ASK)
		shmlimit_lease_abandon(g->limiter, a->rule, a->key, a->key_len);
	a->answer = fallback(g, a->rule, a->key, a->key_len, a->cost, &a->taken_from, a->r);
}

void ask_give_up_all(struct shmlimit_global *g, struct ask *asks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (asks[i].answer > SHMLIMIT_DENIED)
			ask_give_up(g, &asks[i]);
}

static void report(struct shmlimit_global *g, struct ask *a, const struct backend_error *failure)
{
	handle_report(g, failure, &a->of);
	if (backend_error_is_of_key(failure)) {
		shmlimit_lease_count(g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
		failed_keys_add(&g->failed_keys, a->text, handle_key(g, a->of.name, a->key, a->key_len, a->text),
		                monotonic_now_ns() + g->options.open_ns);
	}
}

int ask_rule(struct shmlimit_global *g, struct ask *a)
{
	int error = handle_rule(g, a->rule, &a->of);

	if ((error == 0 || error == -ERANGE) && (uint32_t)a->rule < g->rules)
		store_relaxed(&g->lease_ns[a->rule], a->of.lease_ns);
	return error;
}

enum ask_state ask_prepare(struct shmlimit_global *g, struct ask *a, struct backend_question *q)
{
	struct backend_error failure = { .kind = ERROR_EXACT };
	int error = ask_rule(g, a);

	if (error != 0 && error != -ERANGE) {
		a->answer = error;
		return ASK_DECIDED;
	}
	*q = (struct backend_question){
		.params = &a->of.params,
		.key = a->text,
		.key_len = handle_key(g, a->of.name, a->key, a->key_len, a->text),
		.need = a->lease.need,
		.want = a->lease.want,
	};
	if (failed_keys_have(&g->failed_keys, q->key, q->key_len, monotonic_now_ns()))
		return ASK_FAILED;
	if (error == 0)
		return ASK_READY;
	report(g, a, &failure);
	return ASK_FAILED;
}

static uint64_t ns_of(uint64_t us)
{
	return us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX;
}

uint64_t ask_lasts_ns(const struct shmlimit_global *g, const struct ask *a)
{
	return a->of.lease_ns > g->clock_ns ? a->of.lease_ns - g->clock_ns : 0;
}

/*
 * A lease begins when the question is sent, since the backend may debit the tokens then. A process that was stopped for
 * longer than the lease has lost the tokens.
 */
static enum ask_state deposit(struct shmlimit_global *g, struct ask *a, const struct backend_question *q,
                              uint64_t sent_ns, uint64_t asked_ns)
{
	uint64_t lasts_ns = ask_lasts_ns(g, a);
	struct backend_error late = { .kind = ERROR_LATE };

	a->answer = shmlimit_lease_deposit_at(g->limiter, a->rule, a->key, a->key_len, q->leased, a->cost, lasts_ns,
	                                      sent_ns, a->r);
	if (a->answer >= 0)
		fallback_charge(g, a->rule, a->key, a->key_len, q->leased);
	if (a->answer == SHMLIMIT_ALLOWED && monotonic_now_ns() - asked_ns >= a->of.lease_ns) {
		report(g, a, &late);
		return ASK_FAILED;
	}
	if (a->answer == SHMLIMIT_ALLOWED && a->r != NULL)
		a->r->remaining += q->left;
	return ASK_DECIDED;
}

enum ask_state ask_settle(struct shmlimit_global *g, struct ask *a, const struct backend_question *q, uint64_t sent_ns,
                          uint64_t asked_ns)
{
	if (q->failure.kind != ERROR_NONE) {
		report(g, a, &q->failure);
		return ASK_FAILED;
	}
	if (q->older)
		handle_report(g, &(struct backend_error){ .kind = ERROR_MIXED }, &a->of);
	if (q->leased != 0 && deposit(g, a, q, sent_ns, asked_ns) == ASK_FAILED)
		return ASK_FAILED;
	if (q->leased == 0)
		a->answer = shmlimit_lease_deny(
			g->limiter, a->rule, a->key, a->key_len, a->cost,
			policy_denied_ns(q->params, q->need, q->want, q->retry_us, handle_rng(g)), a->r);
	if ((a->answer == SHMLIMIT_ALLOWED || a->answer == SHMLIMIT_DENIED) && a->r != NULL)
		a->r->reset_after_ns = ns_of(q->full_us);
	return ASK_DECIDED;
}
