/*
 * prefetch: see prefetch.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "answer.h"
#include "prefetch.h"
#include "fallback.h"
#include "policy.h"

/*
 * Most prefetched leases at a time: asked for, or kept. The others of ON_THE_WAY are for requests
 * that processes wait for.
 */
#define PREFETCH_MAX 128u

/*
 * A prefetched lease is deposited when the key has less than this part of it left: what is left
 * expires.
 */
#define PREFETCH_PARTS 64u

/*
 * The same when what the key has ends so soon and is less: of two leases the smaller one expires,
 * or both end with the first.
 */
#define PREFETCH_END_NS UINT64_C(1000000)

/* The shortest and the longest time between two looks at such a key. */
#define PREFETCH_LOOK_MIN_NS UINT64_C(250000)
#define PREFETCH_LOOK_MAX_NS UINT64_C(10000000)

/*
 * A key that is not used is asked for again for this long, so that one that is used once a second
 * is served, if what expires of it is at most one token of 16 that come back.
 */
#define WATCH_IDLE_NS UINT64_C(1500000000)
#define WATCH_IDLE_PARTS 16

static struct request_run **prefetch_of(struct agent *a, const struct request_text *text)
{
	struct request_run **at = &a->prefetched;

	while (*at != NULL && ((*at)->text.rule != text->rule || (*at)->text.key_len != text->key_len ||
	                       (*at)->text.set_us != text->set_us || (*at)->text.backend != text->backend ||
	                       memcmp((*at)->text.key, text->key, text->key_len) != 0))
		at = &(*at)->next;
	return at;
}

static void prefetch_add(struct agent *a, struct request_run *p)
{
	p->kept = p->watched = 0;
	p->next = a->prefetched;
	a->prefetched = p;
	a->prefetches++;
}

static struct request_run *prefetch_remove(struct agent *a, struct request_run **at)
{
	struct request_run *p = *at;

	*at = p->next;
	a->prefetches--;
	return p;
}

void prefetch_forget(struct agent *a, struct request_run *p)
{
	struct request_run **at = &a->prefetched;

	while (*at != NULL && *at != p)
		at = &(*at)->next;
	if (*at == p)
		prefetch_remove(a, at);
}

void prefetch_keep(struct request_run *p)
{
	p->kept = 1;
	p->look_ns = p->looked_ns = monotonic_now_ns();
	p->held = 0;
}

/*
 * Deposit what is kept, unless its time is over, and spend `cost` of it. Returns as
 * shmlimit_lease_deposit(); LEASE_WAIT: the rule has changed.
 */
static int prefetch_deposit(struct agent *a, struct request_run *p, uint64_t cost, struct shmlimit_result *r)
{
	uint64_t lease_ns;
	int answer = SHMLIMIT_LEASE_WAIT;

	if (lease_request_rule(a->g, &p->request) == 0 && p->request.of.set_us == p->text.set_us) {
		lease_ns = lease_request_lasts_ns(a->g, &p->request, &p->on_way.question);
		if (monotonic_now_ns() - p->on_way.asked_ns < lease_ns)
			answer = shmlimit_lease_deposit(a->g->limiter, p->request.rule, p->request.key,
			                                p->request.key_len, p->on_way.question.leased, cost, p->sent_ns,
			                                lease_ns, r);
		if (answer >= 0 && answer != SHMLIMIT_LEASE_WAIT)
			fallback_charge(a->g, p->request.rule, p->request.key, p->request.key_len,
			                p->on_way.question.leased);
	}
	return answer;
}

void prefetch_watch(struct agent *a, struct request_run *p)
{
	if (mailbox_far_ns(a->g->mailbox) == 0 || p->on_way.question.leased == 0 || a->prefetches >= PREFETCH_MAX ||
	    *prefetch_of(a, &p->text) != NULL) {
		answer_release(a, p);
		return;
	}
	prefetch_add(a, p);
	p->watched = 1;
	p->since_ns = p->look_ns = monotonic_now_ns();
	if (p->receipt.word != 0)
		p->used_ns = p->since_ns;
	p->held = p->on_way.question.leased;
	p->spent = 0;
}

/* It is to be asked for again, as a prefetched lease. */
static void prefetch_again(struct agent *a, struct request_run *p, uint64_t want)
{
	p->text.kind = REQUEST_UNAWAITED;
	p->text.cost = 0;
	p->text.need = 1;
	p->text.want = want;
	p->was = REQUEST_POSTED;
	p->receipt = (struct receipt){ 0 }; /* no process's: generations begin at 1 */
	p->next = a->again;
	a->again = p;
}

/*
 * Returns the time until the next look; 0: it is off the list, since it was asked for again, or its
 * key is no longer used.
 */
static uint64_t prefetch_look(struct agent *a, struct request_run **at, uint64_t now_ns)
{
	struct request_run *p = *at;
	uint64_t trip_ns = policy_claim_ns(mailbox_far_ns(a->g->mailbox)), age_ns = now_ns - p->since_ns, left_ns;
	uint64_t lease_ns = lease_request_lease_ns(&p->request, NULL), want;
	struct shmlimit_result r = { 0 };
	int runs_out;

	shmlimit_peek(a->g->limiter, p->request.rule, p->request.key, p->request.key_len, 0, &r);
	if (r.remaining < p->held) {
		p->spent += p->held - r.remaining;
		p->used_ns = now_ns;
	}
	p->held = r.remaining;
	left_ns = r.reset_after_ns;
	/* Two requests that meet by chance say nothing. */
	runs_out = p->spent != 0 && (age_ns > trip_ns / 2 || r.remaining == 0) &&
	           age_ns / p->spent * r.remaining < left_ns / 4 * 3;
	if (runs_out)
		left_ns = age_ns / p->spent * r.remaining;
	if (left_ns > trip_ns)
		return left_ns - trip_ns < PREFETCH_LOOK_MAX_NS ? left_ns - trip_ns : PREFETCH_LOOK_MAX_NS;
	prefetch_remove(a, at);
	/* Of what runs out early it is not known how much more would have been spent. */
	want = 2 * p->on_way.question.leased;
	if (!runs_out && p->spent != 0 && 1 + lease_ns / 4 * 3 / (age_ns / p->spent + 1) < want)
		want = 1 + lease_ns / 4 * 3 / (age_ns / p->spent + 1);
	if (p->spent != 0)
		prefetch_again(a, p, want);
	else if (now_ns - p->used_ns < WATCH_IDLE_NS &&
	         (double)lease_ns >= WATCH_IDLE_PARTS * 1000 * p->request.of.params.token)
		prefetch_again(a, p, now_ns - p->used_ns < lease_ns ? p->on_way.question.leased : 1);
	else
		answer_release(a, p);
	return 0;
}

/*
 * When to look next: before the key gets there at the rate that its lease is for, which is to last
 * three quarters of its time, or at the rate since the last look if that is higher. WHY NOT the
 * latter alone: requests come in bursts, and nothing is spent between two of them.
 */
static uint64_t prefetch_look_ns(const struct request_run *p, const struct shmlimit_result *r, uint64_t low,
                                 uint64_t now_ns)
{
	uint64_t spent = p->held > r->remaining ? p->held - r->remaining : 0;
	uint64_t end_ns = r->reset_after_ns > PREFETCH_END_NS ? r->reset_after_ns - PREFETCH_END_NS : r->reset_after_ns;
	uint64_t token_ns = lease_request_lease_ns(&p->request, &p->on_way.question) / p->on_way.question.leased / 2,
		 ns;

	if (spent != 0 && (now_ns - p->looked_ns) / spent / 4 * 3 < token_ns)
		token_ns = (now_ns - p->looked_ns) / spent / 4 * 3;
	ns = token_ns < PREFETCH_LOOK_MAX_NS ? token_ns * (r->remaining - low) : PREFETCH_LOOK_MAX_NS;
	ns = ns < end_ns ? ns : end_ns;
	return ns < PREFETCH_LOOK_MIN_NS ? PREFETCH_LOOK_MIN_NS : ns > PREFETCH_LOOK_MAX_NS ? PREFETCH_LOOK_MAX_NS : ns;
}

/* A denial that is kept says nothing of a request that comes later than a lease lasts. */
static int prefetch_is_over(const struct request_run *p, uint64_t now_ns)
{
	return now_ns - p->on_way.asked_ns >= lease_request_lease_ns(&p->request, &p->on_way.question);
}

uint64_t prefetch_step(struct agent *a)
{
	uint64_t now_ns = monotonic_now_ns(), idle_ns = AGENT_TURN_NS;
	struct request_run **at = &a->prefetched;

	while (*at != NULL) {
		struct request_run *p = *at;
		uint64_t low = p->on_way.question.leased / PREFETCH_PARTS;
		struct shmlimit_result r = { 0 };

		if (p->watched && now_ns >= p->look_ns) {
			uint64_t look_ns = prefetch_look(a, at, now_ns);

			if (look_ns == 0)
				continue;
			p->look_ns = now_ns + (look_ns > PREFETCH_LOOK_MIN_NS ? look_ns : PREFETCH_LOOK_MIN_NS);
		}
		if (p->kept && p->on_way.question.leased == 0) {
			if (prefetch_is_over(p, now_ns))
				answer_release(a, prefetch_remove(a, at));
			else
				at = &p->next;
			continue;
		}
		if (p->kept && now_ns >= p->look_ns) {
			shmlimit_peek(a->g->limiter, p->request.rule, p->request.key, p->request.key_len, 0, &r);
			if (r.remaining <= low ||
			    (r.reset_after_ns <= PREFETCH_END_NS && r.remaining < p->on_way.question.leased) ||
			    prefetch_is_over(p, now_ns)) {
				prefetch_remove(a, at);
				prefetch_deposit(a, p, 0, NULL);
				prefetch_watch(a, p);
				continue;
			}
			p->look_ns = now_ns + prefetch_look_ns(p, &r, low, now_ns);
			p->looked_ns = now_ns;
			p->held = r.remaining;
		}
		if ((p->kept || p->watched) && p->look_ns - now_ns < idle_ns)
			idle_ns = p->look_ns - now_ns;
		at = &p->next;
	}
	return idle_ns;
}

/*
 * The backend denied what was asked for ahead. The denial begins now, as its tokens would have been
 * spent from now on.
 */
static int prefetch_denies(struct agent *a, struct request_run *there, struct request_run *p)
{
	uint64_t now_ns = monotonic_now_ns();
	int is_over = prefetch_is_over(there, now_ns);

	if (!is_over) {
		lease_request_conclude(a->g, &p->request, &there->on_way.question, shmlimit_now(a->g->limiter), now_ns);
		answer_end(a, p, REQUEST_DENIED);
	}
	answer_release(a, there);
	return !is_over;
}

int prefetch_answers(struct agent *a, struct request_run *p)
{
	struct request_run **at = prefetch_of(a, &p->text), *there = *at;

	if (there != NULL && there->watched) {
		answer_release(a, prefetch_remove(a, at));
		there = NULL;
	}
	if (p->text.cost == 0) {
		if (there == NULL && a->prefetches < PREFETCH_MAX) {
			prefetch_add(a, p);
			return 0;
		}
		answer_end(a, p, REQUEST_FREE);
		return 1;
	}
	if (there == NULL)
		return 0;
	prefetch_remove(a, at);
	if (there->kept && there->on_way.question.leased == 0)
		return prefetch_denies(a, there, p);
	if (there->kept) {
		p->request.answer = prefetch_deposit(a, there, p->request.cost, &p->result);
		p->result.remaining += there->on_way.question.left;
		prefetch_watch(a, there);
		if (p->request.answer != SHMLIMIT_ALLOWED)
			return 0;
		answer_end(a, p, REQUEST_ALLOWED);
		return 1;
	}
	/*
	 * The cell of the question changes hands: the process that asked for more ahead does not
	 * wait.
	 */
	mailbox_answer(a->g->mailbox, &there->receipt, REQUEST_FREE, NULL);
	there->receipt = p->receipt;
	there->text.cost = p->text.cost;
	there->text.kind = p->text.kind;
	there->request.cost = p->request.cost;
	answer_release(a, p);
	return 1;
}

void prefetch_drop(struct agent *a)
{
	for (struct request_run **at = &a->prefetched; *at != NULL;) {
		struct request_run *p = prefetch_remove(a, at);

		if (p->kept && p->on_way.question.leased != 0)
			prefetch_deposit(a, p, 0, NULL);
		if (p->kept || p->watched)
			answer_release(a, p);
	}
}
