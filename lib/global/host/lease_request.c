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

int ask_slot(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
             struct shmlimit_lease *lease, struct shmlimit_result *r)
{
	uint64_t lease_ns = rule >= 0 && (uint32_t)rule < g->rules ? load_relaxed(&g->lease_ns[rule]) : 0;
	int answer;

	lease->struct_size = sizeof(*lease);
	lease->want = 0;
	answer = shmlimit_lease_take(g->limiter, rule, key, key_len, cost,
	                             lease_ns != 0 ? lease_ns : g->options.lease_ns, g->breaker.claim_ns, lease, r);
	if (__builtin_expect(answer == SHMLIMIT_ALLOWED && lease->want != 0, 0))
		ask_agent_ahead(g, rule, key, key_len, lease->want);
	if (__builtin_expect(answer == SHMLIMIT_LEASE_ASK && lease->unknown, 0))
		answer = ask_agent_lend(g, rule, key, key_len, cost, r);
	if (__builtin_expect(answer == -EOPNOTSUPP, 0))
		answer = shmlimit_take(g->limiter, rule, key, key_len, cost, r);
	return answer;
}

/*
 * A backend error that is not about one key is set in all questions that have no answer, and counts once. A late call
 * does not count as a failure if waiting for other processes, or connecting, used up part of the deadline.
 */
static void judge(struct shmlimit_global *g, const struct backend_question *questions, size_t n, int waited)
{
	for (size_t i = 0; i < n; i++) {
		if (questions[i].failure.kind == ERROR_NONE || backend_error_is_of_key(&questions[i].failure))
			continue;
		if ((questions[i].failure.kind == ERROR_LATE && waited) ||
		    questions[i].failure.kind == ERROR_CONNECTED) {
			breaker_unused(&g->breaker);
			return;
		}
		shmlimit_lease_count(g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
		breaker_bad(&g->breaker, handle_rng(g));
		return;
	}
	handle_recovered(g);
	breaker_good(&g->breaker);
}

/* Make the call that the breaker allows. `waited`: this process has first waited for another process's answer. */
static void call(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns, int waited)
{
	struct backend_question questions[ASKS_MAX];
	struct ask *of[ASKS_MAX];
	size_t m = 0;
	uint64_t sent_ns, asked_ns; /* by the limiter's clock, and by monotonic_now_ns(), which never lags */

	for (size_t i = 0; i < n; i++) {
		enum ask_state state = ASK_DECIDED;

		if (asks[i].answer == SHMLIMIT_LEASE_ASK)
			state = ask_prepare(g, &asks[i], &questions[m]);
		if (state == ASK_READY)
			of[m++] = &asks[i];
		else if (state == ASK_FAILED)
			ask_give_up(g, &asks[i]);
	}
	if (m == 0) {
		breaker_unused(&g->breaker);
		return;
	}
	sent_ns = shmlimit_now(g->limiter);
	asked_ns = monotonic_now_ns();
	cluster_lease(&g->cluster, questions, m, until_ns);
	judge(g, questions, m, waited);
	for (size_t i = 0; i < m; i++)
		if (ask_settle(g, of[i], &questions[i], sent_ns, asked_ns) == ASK_FAILED)
			ask_give_up(g, of[i]);
}

static size_t count(const struct ask *asks, size_t n, int answer)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += asks[i].answer == answer;
	return found;
}

static void nap(unsigned n, uint64_t now_ns, uint64_t until_ns)
{
	struct timespec time = { 0, (long)policy_nap_ns(n, until_ns - now_ns) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Ask the backend from this process, if the breaker lets it. Returns 0 if it does not. */
static int ask_directly(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns, int waited)
{
	int state = BREAKER_WAIT;

	if (count(asks, n, SHMLIMIT_LEASE_ASK) != 0)
		state = breaker_ask(&g->breaker);
	if (state < 0 || state == BREAKER_OPEN)
		return 0;
	if (state != BREAKER_WAIT)
		call(g, asks, n, until_ns, waited);
	return 1;
}

/* BOUND: until_ns. Keys that other processes ask for are checked again after each nap. */
void ask_until(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns)
{
	uint64_t now_ns;
	struct backend_error waited = { .kind = ERROR_WAITED };

	for (unsigned naps = 0;; naps++) {
		if (ask_agent_lives(g)) {
			ask_agent(g, asks, n, until_ns);
		} else if (!ask_directly(g, asks, n, until_ns, naps > 0)) {
			ask_give_up_all(g, asks, n);
			return;
		}
		if (count(asks, n, SHMLIMIT_LEASE_ASK) + count(asks, n, SHMLIMIT_LEASE_WAIT) == 0)
			return;
		now_ns = monotonic_now_ns();
		if (now_ns >= until_ns)
			break;
		nap(naps, now_ns, until_ns);
		for (size_t i = 0; i < n; i++)
			if (asks[i].answer == SHMLIMIT_LEASE_WAIT)
				asks[i].answer = ask_slot(g, asks[i].rule, asks[i].key, asks[i].key_len, asks[i].cost,
				                          &asks[i].lease, asks[i].r);
	}
	handle_report(g, &waited, NULL);
	ask_give_up_all(g, asks, n);
}
