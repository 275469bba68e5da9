/*
 * conclude: see conclude.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "atomic.h"
#include "fallback.h"
#include "policy.h"
#include "conclude.h"

/* The backend gave no answer. The claim ends, so that no later request of this key waits for it. */
void lease_request_give_up(struct shmlimit_global *g, struct lease_request *lr)
{
	if (lr->answer == SHMLIMIT_LEASE_ASK)
		shmlimit_lease_abandon(g->limiter, lr->rule, lr->key, lr->key_len);
	lr->answer = fallback(g, lr->rule, key_bytes(lr->key, lr->key_len), lr->cost, &lr->taken_from, lr->r);
}

void lease_request_give_up_all(struct shmlimit_global *g, struct lease_request *requests, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (requests[i].answer > SHMLIMIT_DENIED)
			lease_request_give_up(g, &requests[i]);
}

void lease_request_failed(struct shmlimit_global *g, struct lease_request *lr, const struct backend_error *failure)
{
	handle_report(g, failure, &lr->of);
	if (backend_error_is_of_key(failure)) {
		shmlimit_lease_count(g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
		failed_keys_add(&g->failed_keys, lr->text, handle_key(g, lr->of.name, lr->key, lr->key_len, lr->text),
		                monotonic_now_ns() + g->options.open_ns);
	}
}

int lease_request_rule(struct shmlimit_global *g, struct lease_request *lr)
{
	int error = handle_rule(g, lr->rule, &lr->of);

	if ((error == 0 || error == -ERANGE) && (uint32_t)lr->rule < g->rules)
		store_relaxed(&g->lease_ns[lr->rule],
		              (lr->of.lease_ns & ~UINT64_C(1)) |
		                      (script_lease_us(&lr->of.params, 1) > lr->of.params.lease_us));
	return error;
}

enum lease_request_state lease_request_prepare(struct shmlimit_global *g, struct lease_request *lr,
                                               struct backend_question *q)
{
	struct backend_error failure = { .kind = ERROR_EXACT };
	int error = lease_request_rule(g, lr);

	if (error != 0 && error != -ERANGE) {
		lr->answer = error;
		return LEASE_REQUEST_DECIDED;
	}
	*q = (struct backend_question){
		.params = &lr->of.params,
		.key = lr->text,
		.key_len = handle_key(g, lr->of.name, lr->key, lr->key_len, lr->text),
		.need = lr->lease.need,
		.want = policy_want(&lr->of.params, lr->lease.want, g->round_trip_ns),
		.most = (1 + (uint64_t)lr->lease.steady) * lr->lease.need,
	};
	if (failed_keys_have(&g->failed_keys, q->key, q->key_len, monotonic_now_ns()))
		return LEASE_REQUEST_FAILED;
	if (error == 0)
		return LEASE_REQUEST_READY;
	lease_request_failed(g, lr, &failure);
	return LEASE_REQUEST_FAILED;
}

static uint64_t ns_of(uint64_t us)
{
	return us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX;
}

uint64_t lease_request_lease_ns(const struct lease_request *lr, const struct backend_question *q)
{
	if (q == NULL)
		return lr->of.lease_ns;
	return 1000 * (q->lasts_us != 0 ? q->lasts_us : script_lease_us(&lr->of.params, q->leased));
}

uint64_t lease_request_lasts_ns(const struct shmlimit_global *g, const struct lease_request *lr,
                                const struct backend_question *q)
{
	uint64_t lease_ns = lease_request_lease_ns(lr, q);

	return lease_ns > g->clock_ns ? lease_ns - g->clock_ns : 0;
}

/*
 * A lease begins when the question is sent, since the backend may debit the tokens then. A process
 * that was stopped for longer than the lease has lost the tokens.
 */
static enum lease_request_state deposit(struct shmlimit_global *g, struct lease_request *lr,
                                        const struct backend_question *q, uint64_t sent_ns, uint64_t asked_ns)
{
	uint64_t lasts_ns = lease_request_lasts_ns(g, lr, q);
	struct backend_error late = { .kind = ERROR_LATE };

	lr->answer = shmlimit_lease_deposit(g->limiter, lr->rule, lr->key, lr->key_len, q->leased, lr->cost, sent_ns,
	                                    lasts_ns, lr->r);
	if (lr->answer >= 0)
		fallback_charge(g, lr->rule, lr->key, lr->key_len, q->leased);
	if (lr->answer == SHMLIMIT_ALLOWED && monotonic_now_ns() - asked_ns >= lease_request_lease_ns(lr, q)) {
		lease_request_failed(g, lr, &late);
		return LEASE_REQUEST_FAILED;
	}
	if (lr->answer == SHMLIMIT_ALLOWED && lr->r != NULL)
		lr->r->remaining += q->left;
	return LEASE_REQUEST_DECIDED;
}

enum lease_request_state lease_request_conclude(struct shmlimit_global *g, struct lease_request *lr,
                                                const struct backend_question *q, uint64_t sent_ns, uint64_t asked_ns)
{
	if (q->failure.kind != ERROR_NONE) {
		lease_request_failed(g, lr, &q->failure);
		return LEASE_REQUEST_FAILED;
	}
	if (q->leased != 0 && deposit(g, lr, q, sent_ns, asked_ns) == LEASE_REQUEST_FAILED)
		return LEASE_REQUEST_FAILED;
	if (q->leased == 0)
		lr->answer = shmlimit_lease_deny(g->limiter, lr->rule, lr->key, lr->key_len, lr->cost,
		                                 policy_denied_ns(q->params, q->need, q->want, q->retry_us,
		                                                  monotonic_now_ns() - asked_ns, handle_rng(g)),
		                                 lr->r);
	if ((lr->answer == SHMLIMIT_ALLOWED || lr->answer == SHMLIMIT_DENIED) && lr->r != NULL)
		lr->r->reset_after_ns = ns_of(q->full_us);
	return LEASE_REQUEST_DECIDED;
}
