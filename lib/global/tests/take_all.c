/*
 * take_all: limits of this host and limits that all hosts share in one request, all or none, whatever denies, fails or is
 * killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define PENDING SHMLIMIT_GLOBAL_PENDING
#define N 4
#define WORKERS 4
#define KEYS 3
#define CAPACITY 200u

static struct server server;
static struct proxy proxy;
static struct shmlimit *l;
static struct shmlimit_result results[N];
static struct shmlimit_global_ticket tickets[N];
static size_t failed;

static struct shmlimit_global *open_global(uint64_t deadline_ns, uint32_t on_failure)
{
	return global_open(l, proxy.url,
	                   (struct shmlimit_global_options){ .deadline_ns = deadline_ns,
	                                                     .lease_ns = PATIENT_NS,
	                                                     .on_failure = on_failure,
	                                                     .local_milli = 1000,
	                                                     .open_ns = 1000000 });
}

static int local_rule(const char *name, uint32_t algorithm, uint64_t capacity)
{
	return stage_rule_of(l, name,
	                     (struct shmlimit_rule){ .algorithm = algorithm,
	                                             .capacity = capacity,
	                                             .refill = algorithm == SHMLIMIT_FUNNEL,
	                                             .period_ns = DAY });
}

/* Fill in requests of one token each, of the rules up to -1. Returns how many. */
static size_t fill(struct shmlimit_request *requests, const char *key, const int *rules)
{
	size_t n = 0;

	for (; rules[n] >= 0; n++) {
		requests[n] =
			(struct shmlimit_request){ .rule = rules[n], .key = key, .key_len = strlen(key), .cost = 1 };
		tickets[n] = (struct shmlimit_global_ticket){ .struct_size = sizeof(tickets[n]) };
	}
	memset(results, 0x77, sizeof(results));
	failed = 77;
	return n;
}

static int take(struct shmlimit_global *g, const char *key, const int *rules)
{
	struct shmlimit_request requests[N];
	size_t n = fill(requests, key, rules);

	return shmlimit_global_take_all(g, requests, n, &failed, results);
}

static int begin(struct shmlimit_global *g, const char *key, const int *rules)
{
	struct shmlimit_request requests[N];
	size_t n = fill(requests, key, rules);

	return shmlimit_global_begin_all(g, requests, n, tickets, &failed, results);
}

static int finish(struct shmlimit_global *g, size_t n, int answer)
{
	for (; answer == PENDING; answer = shmlimit_global_poll_all(g, tickets, n, &failed, results)) {
		struct timespec time = { 0, (long)tickets[0].poll_ns };

		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	}
	return answer;
}

#define RULES(...) \
	(const int[]) \
	{ \
		__VA_ARGS__, -1 \
	}

static uint64_t here(int rule, const char *key)
{
	struct shmlimit_result r;

	shmlimit_peek(l, rule, key, strlen(key), 1, &r);
	return r.remaining;
}

/* What the server has left, and what this host holds of it. */
static uint64_t left(struct shmlimit_global *g, int rule, const char *key)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

	if (shmlimit_global_peek(g, rule, key, strlen(key), &funnel) != 0)
		bail("peek");
	return funnel.remaining + here(rule, key);
}

/* ---- Answers ---- */

/* `steps`: as an event loop asks. */
static void all_or_none(struct shmlimit_global *g, int steps, const char *how)
{
	char key[32];
	int a = lease_rule(l, "a", 5, 1, DAY), b = lease_rule(l, "b", 2, 1, DAY),
	    funnel = local_rule("funnel", SHMLIMIT_FUNNEL, 3);
	uint64_t asked, leased;

#define ASK(...) \
	(steps ? finish(g, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), begin(g, key, RULES(__VA_ARGS__))) \
	       : take(g, key, RULES(__VA_ARGS__)))
	snprintf(key, sizeof(key), "user:%s", how);
	is(ASK(a, funnel, b), SHMLIMIT_ALLOWED, "%s: limits of this host and of all hosts allow together", how);
	ok(results[0].limit == 5 && results[1].limit == 3 && results[2].limit == 2, "%s: each limit has its result",
	   how);
	ok(results[0].remaining == 4 && results[1].remaining == 2 && results[2].remaining == 1,
	   "%s: each result counts what is left", how);
	ok(left(g, a, key) == 4 && here(funnel, key) == 2 && left(g, b, key) == 1, "%s: each limit gave one token",
	   how);
	ASK(a, funnel, b);
	is(ASK(a, funnel, b), SHMLIMIT_DENIED, "%s: one limit that denies is enough", how);
	is(failed, 2, "%s: the limit that denies is named by its place", how);
	ok(results[2].limit == 2 && results[2].remaining == 0 && results[2].retry_after_ns > 0,
	   "%s: the limit that denies has its result", how);
	ok(left(g, a, key) == 3 && here(funnel, key) == 1, "%s: the other limits keep their tokens", how);
	is(ASK(a), SHMLIMIT_ALLOWED, "%s: a token that was given back can be taken", how);
	is(left(g, a, key), 2, "%s: a token that was given back is taken once", how);
	ASK(funnel);
	leased = left(g, a, key);
	asked = server_scripts(&server);
	is(ASK(a, b, funnel), SHMLIMIT_DENIED, "%s: a limit of this host that denies is enough", how);
	is(failed, 2, "%s: a limit of this host is named by its place", how);
	ok(server_scripts(&server) == asked && left(g, a, key) == leased,
	   "%s: the server is not asked if a limit of this host denies", how);
	is(ASK(a, b, 4000), -ESRCH, "%s: a rule that does not exist is an error", how);
	ok(failed == 2 && left(g, a, key) == leased, "%s: an error takes nothing", how);
	is(ASK(a, a), SHMLIMIT_ALLOWED, "%s: one key may be asked twice", how);
	is(left(g, a, key), 0, "%s: a key that is asked twice gives two tokens", how);
	is(ASK(funnel, funnel), SHMLIMIT_DENIED, "%s: limits of this host need no server", how);
#undef ASK
}

/* What is known to be denied costs no lease of the others. */
static void known(struct shmlimit_global *g)
{
	int a = lease_rule(l, "known", 100, 1, DAY), b = lease_rule(l, "empty", 1, 1, DAY);
	uint64_t asked;

	take(g, "k", RULES(b));
	is(take(g, "k", RULES(b)), SHMLIMIT_DENIED, "a limit has no token left");
	asked = server_scripts(&server);
	for (int i = 0; i < 10; i++)
		take(g, "k", RULES(a, b));
	is(server_scripts(&server), asked, "while one limit is known to deny, the server is not asked for the others");
	is(left(g, a, "k"), 100, "while one limit is known to deny, the others lend nothing");
	is(take(g, "k", RULES(a)), SHMLIMIT_ALLOWED, "a claim that was made for such a request does not block the key");
}

/* A refund would be late for each of these: the server has been asked in between. */
static void untouched(struct shmlimit_global *g)
{
	int window = local_rule("window", SHMLIMIT_WINDOW, 5), counter = local_rule("counter", SHMLIMIT_COUNTER, 5),
	    places = local_rule("places", SHMLIMIT_HOLD, 5), lease = lease_rule(l, "one", 1, 1, DAY);

	is(take(g, "k", RULES(window, counter, places, lease)), SHMLIMIT_ALLOWED, "limits of all kinds allow together");
	shmlimit_reset(l, lease, "k", 1);
	is(take(g, "k", RULES(window, counter, places, lease)), SHMLIMIT_DENIED, "the server denies");
	ok(here(window, "k") == 4 && here(counter, "k") == 4 && here(places, "k") == 4,
	   "a window, a count and places are as they were when the server denies");
}

static void dry_runs(struct shmlimit_global *g)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .mode = SHMLIMIT_DRY_RUN,
		                      .capacity = 1,
		                      .refill = 1,
		                      .period_ns = DAY };
	int dry = shmlimit_rule_set(l, "dry", &rule), b = lease_rule(l, "enforced", 1, 1, DAY);

	is(take(g, "d", RULES(dry)), SHMLIMIT_ALLOWED, "a rule in a dry run gives its token");
	is(take(g, "d", RULES(dry, b)), SHMLIMIT_ALLOWED, "a rule in a dry run without tokens denies nothing");
	ok(results[0].retry_after_ns > 0, "a rule in a dry run says that it would have denied");
	is(take(g, "d", RULES(dry, b)), SHMLIMIT_DENIED, "the other rule denies");
	is(left(g, dry, "d"), 0, "what a dry run did not take is not given back");
}

static void arguments(struct shmlimit_global *g)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX + 1] = { 0 };
	int a = lease_rule(l, "arguments", 5, 1, DAY);

	for (size_t i = 0; i <= SHMLIMIT_REQUESTS_MAX; i++)
		requests[i] = (struct shmlimit_request){ .rule = a, .key = "k", .key_len = 1, .cost = 0 };
	is(shmlimit_global_take_all(g, requests, SHMLIMIT_REQUESTS_MAX, NULL, NULL), SHMLIMIT_ALLOWED,
	   "16 requests are decided without a place for results");
	is(shmlimit_global_take_all(g, requests, SHMLIMIT_REQUESTS_MAX + 1, NULL, NULL), -EINVAL,
	   "17 requests are too many");
	is(shmlimit_global_take_all(g, requests, 0, NULL, NULL), -EINVAL, "no request is too few");
	is(shmlimit_global_take_all(NULL, requests, 1, NULL, NULL), -EINVAL, "a handle is needed");
	is(shmlimit_global_take_all(g, NULL, 1, NULL, NULL), -EINVAL, "requests are needed");
	is(shmlimit_global_begin_all(g, requests, 1, NULL, NULL, NULL), -EINVAL, "tickets are needed");
	is(shmlimit_global_poll_all(g, NULL, 1, NULL, NULL), -EINVAL, "tickets are needed to poll");
	shmlimit_global_cancel_all(g, NULL, 1);
	requests[0].share = SHMLIMIT_SHARE_ONE;
	is(shmlimit_global_take_all(g, requests, 1, NULL, NULL), -EOPNOTSUPP, "many hosts have no shares");
	requests[0].share = 0;
	tickets[0] = (struct shmlimit_global_ticket){ .struct_size = 8 };
	is(shmlimit_global_begin_all(g, requests, 1, tickets, NULL, NULL), -EINVAL,
	   "a ticket of a wrong size is refused");
	is(shmlimit_global_poll_all(g, tickets, 1, NULL, NULL), -EINVAL, "a ticket of a wrong size cannot be polled");
	ok(strcmp(shmlimit_global_strerror(-EDOM), shmlimit_strerror(-EDOM)) != 0,
	   "an error of a backend has its own text");
	is_str(shmlimit_global_strerror(-ESRCH), shmlimit_strerror(ESRCH), "an error of a take has the text of a take");
	is_str(shmlimit_global_strerror(ETIMEDOUT), "no answer by the deadline", "an error may be positive");
	ok(shmlimit_global_strerror(INT_MIN) != NULL && shmlimit_global_strerror(99999) != NULL,
	   "every number has a text");
}

/* ---- In steps ---- */

static void steps(struct shmlimit_global *g)
{
	int a = lease_rule(l, "steps.a", 5, 1, DAY), b = lease_rule(l, "steps.b", 5, 1, DAY),
	    funnel = local_rule("steps", SHMLIMIT_FUNNEL, 3);
	uint64_t asked = server_scripts(&server);
	char key[] = "user:42", moved[] = "user:42";

	atomic_store(&proxy.at->hold, 1);
	is(begin(g, key, RULES(a, funnel, b)), PENDING, "limits that need the server are pending");
	await(server_scripts(&server) == asked + 2);
	is(here(funnel, key), 3, "the limit of this host gives nothing before the server has answered");
	is(shmlimit_global_poll_all(g, tickets, 3, &failed, results), PENDING,
	   "all questions are asked before the first answer");
	for (int i = 0; i < 3; i++)
		tickets[i].request.key = moved;
	memset(key, 'x', sizeof(key) - 1);
	atomic_store(&proxy.at->hold, 0);
	is(finish(g, 3, PENDING), SHMLIMIT_ALLOWED, "the answers decide the request, and its keys may have moved");
	ok(left(g, a, moved) == 4 && here(funnel, moved) == 2 && left(g, b, moved) == 4,
	   "each of three limits gave one token");
	is(shmlimit_global_poll_all(g, tickets, 3, NULL, NULL), -EINVAL, "a decided request cannot be polled again");
	shmlimit_global_cancel_all(g, tickets, 3);
	ok(left(g, a, moved) == 4 && here(funnel, moved) == 2, "a decided request cannot be cancelled");

	/* The first has tokens here, and the second has to be asked for. */
	take(g, "c", RULES(a));
	shmlimit_lease_deposit(l, a, "c", 1, 2, 0, 0, PATIENT_NS, NULL);
	atomic_store(&proxy.at->hold, 1);
	is(begin(g, "c", RULES(a, b, funnel)), PENDING, "a request is pending for its second limit");
	is(here(a, "c"), 1, "its first limit has given a token");
	shmlimit_global_cancel_all(g, tickets, 3);
	is(here(a, "c"), 2, "a request that is cancelled has given its token back");
	is(shmlimit_global_poll_all(g, tickets, 3, NULL, NULL), -EINVAL, "a cancelled request cannot be polled");
	atomic_store(&proxy.at->hold, 0);
	is(finish(g, 3, begin(g, "c", RULES(a, b, funnel))), SHMLIMIT_ALLOWED,
	   "the next request of the key is decided");
}

/* ---- Without a server ---- */

static void gone(void)
{
	struct shmlimit_global *deny = open_global(1000000, SHMLIMIT_GLOBAL_DENY),
			       *allow = open_global(1000000, SHMLIMIT_GLOBAL_ALLOW),
			       *share = open_global(1000000, SHMLIMIT_GLOBAL_LOCAL),
			       *error = open_global(1000000, SHMLIMIT_GLOBAL_ERROR);
	int a = lease_rule(l, "gone.a", 5, 1, DAY), b = lease_rule(l, "gone.b", 5, 1, DAY),
	    funnel = local_rule("gone", SHMLIMIT_FUNNEL, 3), shared;
	struct shmlimit_request requests[N];

	server_kill(&server);
	shmlimit_lease_deny(l, b, "k", 1, 1, DAY, NULL);
	is(take(deny, "k", RULES(a, funnel)), SHMLIMIT_DENIED, "without a server DENY denies");
	is(here(funnel, "k"), 3, "without a server a limit of this host keeps its tokens");
	is(take(error, "k", RULES(a, funnel)), -EHOSTDOWN, "without a server ERROR returns an error");
	is(failed, 0, "the limit that has no server is named");
	is(here(funnel, "k"), 3, "a limit of this host keeps its tokens where ERROR returns an error");
	is(take(error, "k", RULES(funnel, b)), SHMLIMIT_DENIED, "with ERROR a denial that is known is a denial");
	is(take(allow, "k", RULES(a, funnel)), SHMLIMIT_ALLOWED, "without a server ALLOW allows");
	is(here(funnel, "k"), 2, "the limit of this host counts where ALLOW allows");
	shmlimit_lease_deposit(l, a, "k", 1, 2, 0, 0, DAY, NULL);
	for (int i = 0; i < 3; i++)
		is(take(allow, "k", RULES(a, b)), SHMLIMIT_DENIED, "a denial that is known holds without a server");
	is(here(a, "k"), 2, "a lease is as it was after denials without a server");
	take(allow, "k", RULES(a));
	take(deny, "k", RULES(funnel));
	fill(requests, "k", RULES(a, funnel, funnel));
	requests[0].cost = 2;
	is(shmlimit_global_take_all(allow, requests, 3, &failed, results), SHMLIMIT_DENIED,
	   "two tokens of a limit that has one are denied");
	ok(failed == 2 && here(funnel, "k") == 1,
	   "the second request for a limit's last token is named, and takes nothing");
	is(here(a, "k"), 1, "what ALLOW let pass took no token, and none is given back");
	is(take(share, "s", RULES(a)), SHMLIMIT_ALLOWED, "without a server LOCAL has this host's share");
	shared = shmlimit_rule_find(l, "~local:gone.a");
	is(here(shared, "s"), 4, "LOCAL takes from the share");
	for (int i = 0; i < 2; i++)
		take(share, "s", RULES(funnel));
	is(take(share, "s", RULES(a, funnel, funnel)), SHMLIMIT_DENIED, "a limit of this host denies beside a share");
	is(here(shared, "s"), 4, "a share is as it was after a denial");
	take(share, "s", RULES(funnel));
	is(take(share, "s", RULES(a, funnel)), SHMLIMIT_DENIED, "without a server a limit of this host denies");
	server_start(&server);
	shmlimit_global_close(error);
	shmlimit_global_close(deny);
	shmlimit_global_close(allow);
	shmlimit_global_close(share);
}

/* ---- Workers that are killed ---- */

enum { FUNNEL, WINDOW, LEASE_A, LEASE_B };

struct play {
	int rule[N];
	uint64_t deadline_ns;
	_Atomic uint64_t admitted[N][KEYS], taken, denied;
	_Atomic int ended;
};

static struct play *play;

static void work(struct crew *crew, int index)
{
	struct shmlimit_global *g = open_global(play->deadline_ns, SHMLIMIT_GLOBAL_DENY);
	struct rng rng = { .state = (uint64_t)getpid() * 1000003 + (uint64_t)index };

	(void)crew;
	while (!atomic_load(&play->ended)) {
		char key[2] = { (char)('a' + rng_below(&rng, KEYS)), '\0' };
		uint64_t among = 1 + rng_below(&rng, (1 << N) - 1);
		int rules[N + 1], limits[N], answer;
		size_t n = 0;

		for (int i = 0; i < N; i++)
			if (among >> i & 1) {
				limits[n] = i;
				rules[n++] = play->rule[i];
			}
		rules[n] = -1;
		answer = rng_below(&rng, 2) ? take(g, key, rules) : finish(g, n, begin(g, key, rules));
		worker_check(answer >= 0, "take_all: %s", shmlimit_global_strerror(answer));
		for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < n; i++)
			atomic_fetch_add(&play->admitted[limits[i]][key[0] - 'a'], 1);
		atomic_fetch_add(answer == SHMLIMIT_ALLOWED ? &play->taken : &play->denied, 1);
		if (answer != SHMLIMIT_ALLOWED)
			sched_yield();
	}
	shmlimit_global_close(g);
}

/* The limits of this host are smaller for the first key, and those of all hosts for the others: each denies in turn. */
static void crowd(const char *name, int kills, int with_agent)
{
	static const uint32_t algorithm[] = { SHMLIMIT_FUNNEL, SHMLIMIT_WINDOW };
	struct shmlimit_global *g = open_global(PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	struct agent_process agent = { .pid = 0 };
	struct crew crew;
	struct rng rng = { .state = rng_seed() };
	uint64_t over = 0, lost = 0, want;

	if (SWAPS_ARE_PRIVATE) {
		tap_skip("processes that take together", "between processes ThreadSanitizer's swaps are not atomic");
		shmlimit_global_close(g);
		return;
	}
	if (with_agent) {
		agent = agent_start(l, proxy.url, PATIENT_NS);
		agent_await(l);
	}
	play = shared_memory(sizeof(*play));
	/* The claim of a killed worker blocks its key for a deadline. */
	play->deadline_ns = kills != 0 ? 50000000 : PATIENT_NS;
	for (int i = 0; i < N; i++) {
		char rule[64];

		snprintf(rule, sizeof(rule), "%s.%d", name, i);
		play->rule[i] =
			i < LEASE_A ? local_rule(rule, algorithm[i], CAPACITY) : lease_rule(l, rule, CAPACITY, 1, DAY);
	}
	crew_start(&crew, WORKERS, work, NULL);
	for (int i = 0; i < kills; i++) {
		int victim = (int)rng_below(&rng, WORKERS);

		want = atomic_load(&play->taken) + atomic_load(&play->denied) + 1 + rng_below(&rng, 20);
		while (atomic_load(&play->taken) + atomic_load(&play->denied) <= want)
			crew_await_long();
		crew_kill(&crew, victim);
		crew_spawn(&crew, victim, 0);
	}
	want = atomic_load(&play->denied) + 200;
	while (atomic_load(&play->denied) <= want)
		crew_await_long();
	atomic_store(&play->ended, 1);
	is(crew_wait(&crew), 0, "%s: no worker waits for ever", name);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < KEYS; k++) {
			char key[2] = { (char)('a' + k), '\0' };
			uint64_t admitted = atomic_load(&play->admitted[i][k]);
			uint64_t gone_tokens =
				CAPACITY - (i < LEASE_A ? here(play->rule[i], key) : left(g, play->rule[i], key));

			if (admitted > CAPACITY || admitted > gone_tokens) {
				over++;
				diag("%s: limit %d, key %s: %d admitted, %d are gone", name, i, key, (int)admitted,
				     (int)gone_tokens);
			}
			lost += i < LEASE_A && admitted <= gone_tokens ? gone_tokens - admitted : 0;
		}
	is(over, 0, "%s: no limit admits more than it gave", name);
	ok(lost <= 2 * (uint64_t)kills,
	   "%s: this host's limits lose no token but those of killed requests: %d, %d kills", name, (int)lost, kills);
	if (with_agent)
		ok(agent_stop(&agent), "%s: the agent ends well", name);
	shmlimit_global_close(g);
}

int main(void)
{
	static const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	struct agent_process agent;
	struct shmlimit_global *g;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.take_all");
	server_begin(&server, NULL);
	proxy_begin(&proxy, &server);
	if (shmlimit_create(stage_name, &options, &l) != 0)
		bail("create");
	g = open_global(PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	all_or_none(g, 0, "without an agent");
	known(g);
	untouched(g);
	dry_runs(g);
	arguments(g);
	crowd("crowd", 0, 0);
	crowd("kills", 20, 0);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	all_or_none(g, 0, "with an agent");
	all_or_none(g, 1, "in steps");
	steps(g);
	agent_stop(&agent);
	crowd("agent", 0, 1);
	crowd("agent.kills", 20, 1);
	gone();
	shmlimit_global_close(g);
	shmlimit_close(l);
	proxy_end(&proxy);
	return tap_done();
}
