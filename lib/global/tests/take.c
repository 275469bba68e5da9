/*
 * take: one host and one backend: what is answered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

static struct server server;
static struct shmlimit *l;
static struct reports reports;

static struct shmlimit_global *open_global(struct shmlimit_global_options options)
{
	options.report = reports_take;
	options.arg = &reports;
	/* Tests do not depend on speed. */
	if (options.deadline_ns == 0)
		options.deadline_ns = 2000000000;
	return global_open(l, server.url, options);
}

static void one_funnel(void)
{
	struct shmlimit_global *g = open_global((struct shmlimit_global_options){ 0 });
	int rule = lease_rule(l, "login", 15, 1, 86400000000000);
	struct shmlimit_result r;
	int allowed = 0;

	is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "a key never seen is allowed");
	is(r.limit, 15, "the limit is the rule's");
	is(r.remaining, 14, "what the backend has left is said");
	for (int i = 0; i < 30; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, &r) == SHMLIMIT_ALLOWED;
	is(allowed, 14, "a funnel is given out to the token");
	ok(r.retry_after_ns > UINT64_C(86000000000000) && r.retry_after_ns <= UINT64_C(86403000000000),
	   "a denial says when a token is there, once the leases are over");
	is(shmlimit_global_take(g, rule, "key", 3, 16, &r), SHMLIMIT_DENIED, "more than the capacity is denied");
	is(r.retry_after_ns, UINT64_MAX, "for ever");
	is(shmlimit_global_take(g, rule, "other", 5, 15, &r), SHMLIMIT_ALLOWED,
	   "a cost of the whole capacity is allowed");
	is(reports.n, 0, "nothing is reported: %s", reports.last);
	shmlimit_global_close(g);
}

/* Tokens are leased by the batch, as a key is asked more often. */
static void batches(void)
{
	struct shmlimit_global *g = open_global((struct shmlimit_global_options){ 0 });
	struct shmlimit_lease_counters before = { .struct_size = sizeof(before) }, after = before;
	int rule = lease_rule(l, "busy", 100000, 1, 86400000000000), allowed = 0;

	shmlimit_lease_counters(l, &before);
	for (int i = 0; i < 20000; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, NULL) == SHMLIMIT_ALLOWED;
	shmlimit_lease_counters(l, &after);
	is(allowed, 20000, "a busy key is admitted what there is");
	ok(after.leases - before.leases <= 40, "by few leases, each up to twice the last: %d",
	   (int)(after.leases - before.leases));
	is(after.spent - before.spent, 20000, "each of its tokens is counted as spent");
	shmlimit_global_close(g);
}

/* Several at once, some of one key, some of none of ours. */
static void many(void)
{
	struct shmlimit_global *g = open_global((struct shmlimit_global_options){ 0 });
	int rule = lease_rule(l, "many", 3, 1, 86400000000000), plain = stage_rule(l, "plain", 2, 1, 86400000000000);
	struct shmlimit_request q[SHMLIMIT_GLOBAL_REQUESTS_MAX + 1];
	int answers[SHMLIMIT_GLOBAL_REQUESTS_MAX], allowed = 0;
	struct shmlimit_result r[SHMLIMIT_GLOBAL_REQUESTS_MAX];
	unsigned char key[SHMLIMIT_GLOBAL_REQUESTS_MAX];

	for (int i = 0; i < SHMLIMIT_GLOBAL_REQUESTS_MAX; i++) {
		key[i] = (unsigned char)(i / 4);
		q[i] = (struct shmlimit_request){ .rule = rule, .key = &key[i], .key_len = 1, .cost = 1 };
	}
	is(shmlimit_global_take_many(g, q, SHMLIMIT_GLOBAL_REQUESTS_MAX, answers, r), 0, "many are decided at once");
	for (int i = 0; i < SHMLIMIT_GLOBAL_REQUESTS_MAX; i++)
		allowed += answers[i] == SHMLIMIT_ALLOWED;
	is(allowed, SHMLIMIT_GLOBAL_REQUESTS_MAX / 4 * 3, "each key has its three");
	q[0] = (struct shmlimit_request){ .rule = plain, .key = "k", .key_len = 1, .cost = 1 };
	q[1] = (struct shmlimit_request){ .rule = rule, .key = "new", .key_len = 3, .cost = 1 };
	q[2] = (struct shmlimit_request){ .rule = 60, .key = "k", .key_len = 1, .cost = 1 };
	q[3] = (struct shmlimit_request){ .rule = rule, .key = "k", .key_len = 0, .cost = 1 };
	q[4] = (struct shmlimit_request){ .rule = rule, .key = "new", .key_len = 3, .cost = 4 };
	is(shmlimit_global_take_many(g, q, 5, answers, NULL), 0, "whatever they are");
	is(answers[0], SHMLIMIT_ALLOWED, "a rule of this host is decided here");
	is(answers[1], SHMLIMIT_ALLOWED, "a new key there");
	is(answers[2], -ESRCH, "no such rule");
	is(answers[3], -EMSGSIZE, "no key");
	is(answers[4], SHMLIMIT_DENIED, "too much");
	is(shmlimit_global_take_many(g, NULL, 0, NULL, NULL), 0, "none is well, too");
	is(shmlimit_global_take_many(g, q, SHMLIMIT_GLOBAL_REQUESTS_MAX + 1, answers, r), -EINVAL,
	   "too many are refused");
	q[0].share = 1;
	is(shmlimit_global_take_many(g, q, 1, answers, r), -EOPNOTSUPP, "a batch has no shares");
	shmlimit_global_close(g);
}

/* A rule's modes are what they are anywhere. */
static void modes(void)
{
	struct shmlimit_global *g = open_global((struct shmlimit_global_options){ 0 });
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 1,
		                      .refill = 1,
		                      .period_ns = 86400000000000,
		                      .mode = SHMLIMIT_DRY_RUN };
	int id = shmlimit_rule_set(l, "seen", &rule), allowed = 0;
	struct shmlimit_result r;

	is(shmlimit_global_take(g, id, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "a dry run allows what fits");
	is(shmlimit_global_take(g, id, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "a dry run allows what does not fit");
	ok(r.retry_after_ns > 0, "a dry run says when what does not fit would fit");
	rule.mode = SHMLIMIT_OFF;
	shmlimit_rule_set(l, "seen", &rule);
	for (int i = 0; i < 10; i++)
		allowed += shmlimit_global_take(g, id, "key", 3, 1, &r) == SHMLIMIT_ALLOWED;
	is(allowed, 10, "a rule that is off allows all");
	is(shmlimit_global_take(g, id, "key", 0, 1, &r), -EMSGSIZE, "a bad key is one");
	is(shmlimit_global_take(g, 60, "key", 3, 1, &r), -ESRCH, "no such rule");
	shmlimit_global_close(g);
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.take");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	one_funnel();
	batches();
	many();
	modes();
	return tap_done();
}
