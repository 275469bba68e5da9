/*
 * lease_request: see lease_request.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <time.h>

#include "lease_request.h"
#include "via_agent.h"
#include "fallback.h"
#include "atomic.h"
#include "policy.h"

int lease_request_slot(struct shmlimit_global *g, int rule, struct key_bytes key, uint64_t cost,
                       struct shmlimit_lease *lease, struct shmlimit_result *r)
{
	uint64_t known = rule >= 0 && (uint32_t)rule < g->rules ? load_relaxed(&g->lease_ns[rule]) : 0;
	uint64_t far_ns = handle_far_ns(g), claim_ns = g->breaker.claim_ns;
	int answer;

	if (__builtin_expect(far_ns != 0, 0) && policy_claim_ns(far_ns) > claim_ns)
		claim_ns = policy_claim_ns(far_ns);

	lease->struct_size = sizeof(*lease);
	lease->want = 0;
	answer = shmlimit_lease_take(
		g->limiter, rule, key.bytes, key.len,
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .few_times = known & 1 ? SCRIPT_FEW_TIMES : 0,
	                                          .lease_ns = known != 0 ? known & ~UINT64_C(1) : g->options.lease_ns,
	                                          .claim_ns = claim_ns },
		lease, r);
	if (__builtin_expect(answer == SHMLIMIT_ALLOWED && lease->want != 0, 0))
		via_agent_prefetch(g, rule, key.bytes, key.len, lease->want);
	if (__builtin_expect(answer == SHMLIMIT_LEASE_ASK && lease->unknown, 0))
		answer = via_agent_lend(g, rule, key.bytes, key.len, cost, r);
	if (__builtin_expect(answer == -EOPNOTSUPP, 0))
		answer = shmlimit_take(g->limiter, rule, key.bytes, key.len, cost, r);
	return answer;
}

/*
 * A backend error that is not about one key is set in all questions that have no answer, and counts
 * once. A late call does not count as a failure if waiting for other processes, or connecting, used
 * up part of the deadline. Another node of a cluster has a breaker of its own (cluster.h).
 */
static void count_outcome(struct shmlimit_global *g, const struct backend_question *questions, size_t n, int waited)
{
	unsigned elsewhere = 0;

	for (size_t i = 0; i < n; i++) {
		if (questions[i].failure.kind == ERROR_NONE || backend_error_is_of_key(&questions[i].failure))
			continue;
		if (questions[i].failure.at != ERROR_OF_HOME) {
			shmlimit_lease_count(g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, elsewhere++ == 0);
			continue;
		}
		if ((questions[i].failure.kind == ERROR_LATE && waited) ||
		    questions[i].failure.kind == ERROR_CONNECTED) {
			breaker_not_called(&g->breaker);
			return;
		}
		shmlimit_lease_count(g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
		breaker_failed(&g->breaker, handle_rng(g));
		return;
	}
	if (elsewhere == n) {
		breaker_not_called(&g->breaker);
		return;
	}
	if (elsewhere == 0)
		handle_recovered(g);
	breaker_succeeded(&g->breaker);
}

/*
 * Make the call that the breaker allows. `waited`: this process has first waited for another
 * process's answer.
 */
static void call_backend(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns,
                         int waited)
{
	struct backend_question questions[LEASE_REQUESTS_MAX];
	struct lease_request *of[LEASE_REQUESTS_MAX];
	size_t m = 0;
	uint64_t sent_ns, asked_ns; /* by the limiter's clock; by monotonic_now_ns(): never lags */

	for (size_t i = 0; i < n; i++) {
		enum lease_request_state state = LEASE_REQUEST_DECIDED;

		if (requests[i].answer == SHMLIMIT_LEASE_ASK)
			state = lease_request_prepare(g, &requests[i], &questions[m]);
		if (state == LEASE_REQUEST_READY)
			of[m++] = &requests[i];
		else if (state == LEASE_REQUEST_FAILED)
			lease_request_give_up(g, &requests[i]);
	}
	if (m == 0) {
		breaker_not_called(&g->breaker);
		return;
	}
	sent_ns = shmlimit_now(g->limiter);
	asked_ns = monotonic_now_ns();
	cluster_lease(&g->cluster, questions, m, until_ns);
	if (questions[0].failure.kind == ERROR_NONE)
		g->round_trip_ns = monotonic_now_ns() - asked_ns;
	count_outcome(g, questions, m, waited);
	for (size_t i = 0; i < m; i++)
		if (lease_request_conclude(g, of[i], &questions[i], sent_ns, asked_ns) == LEASE_REQUEST_FAILED)
			lease_request_give_up(g, of[i]);
}

static size_t count_answers(const struct lease_request *requests, size_t n, int answer)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += requests[i].answer == answer;
	return found;
}

static void nap(unsigned n, uint64_t now_ns, uint64_t until_ns)
{
	struct timespec time = { 0, (long)policy_nap_ns(n, until_ns - now_ns) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Ask the backend from this process, if the breaker lets it. Returns 0 if it does not. */
static int call_if_permitted(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns,
                             int waited)
{
	int state = BREAKER_WAIT;

	if (count_answers(requests, n, SHMLIMIT_LEASE_ASK) != 0)
		state = breaker_permits(&g->breaker);
	if (state < 0 || state == BREAKER_OPEN)
		return 0;
	if (state != BREAKER_WAIT)
		call_backend(g, requests, n, until_ns, waited);
	return 1;
}

/* BOUND: until_ns. Keys that other processes ask for are checked again after each nap. */
void lease_request_wait(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns)
{
	uint64_t now_ns;
	struct backend_error waited = { .kind = ERROR_WAITED };

	for (unsigned naps = 0;; naps++) {
		if (via_agent_exists(g)) {
			via_agent(g, requests, n, until_ns);
		} else if (!call_if_permitted(g, requests, n, until_ns, naps > 0)) {
			lease_request_give_up_all(g, requests, n);
			return;
		}
		if (count_answers(requests, n, SHMLIMIT_LEASE_ASK) + count_answers(requests, n, SHMLIMIT_LEASE_WAIT) ==
		    0)
			return;
		now_ns = monotonic_now_ns();
		if (now_ns >= until_ns)
			break;
		nap(naps, now_ns, until_ns);
		for (size_t i = 0; i < n; i++)
			if (requests[i].answer == SHMLIMIT_LEASE_WAIT)
				requests[i].answer = lease_request_slot(
					g, requests[i].rule, key_bytes(requests[i].key, requests[i].key_len),
					requests[i].cost, &requests[i].lease, requests[i].r);
	}
	handle_report(g, &waited, NULL);
	lease_request_give_up_all(g, requests, n);
}
