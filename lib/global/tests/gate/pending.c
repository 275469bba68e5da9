/*
 * pending: requests of event loops, which a gate decides in steps while an agent is asked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../agent.h"
#include "gate/gate.h"

#define DAY (86400 * SECOND)
#define PENDING SHMLIMIT_GATE_PENDING

enum { LEASE, SITE, PLACES, DRY, DRY_PEEK, LIMITS };

static struct server server;
static struct proxy proxy;
static struct shmlimit *l;
static struct shmlimit_gate *gate;
static struct shmlimit_gate_held held;
static struct shmlimit_gate_pending *pending;
static struct shmlimit_gate_key keys[LIMITS];

static void set(const char *name, uint32_t algorithm, uint64_t capacity)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .capacity = capacity,
		                      .refill = algorithm != SHMLIMIT_HOLD,
		                      .period_ns = 3600 * SECOND };

	unit_id(shmlimit_rule_set(l, name, &rule));
}

static void prepare(void)
{
	static const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };

	l = unit_create("gate.pending", &options);
	lease_rule(l, "lease", 2, 1, DAY);
	lease_rule(l, "dry", 1, 1, DAY);
	set("site", SHMLIMIT_FUNNEL, 10);
	set("places", SHMLIMIT_HOLD, 5);
}

/* Begin a request of one key that asks these limits. The key's bytes are gone afterwards. */
static int begin(const char *text, const char *limits)
{
	char bytes[100];
	size_t n = 0;
	int answered;

	snprintf(bytes, sizeof(bytes), "%s", text);
	for (; limits[n] != '\0'; n++)
		keys[n] = (struct shmlimit_gate_key){ .limit = (uint32_t)(limits[n] - '0'),
			                              .bytes = bytes,
			                              .length = (uint32_t)strlen(text) };
	new_out();
	held.struct_size = sizeof(held);
	answered = shmlimit_gate_begin(gate, keys, n, &answer, &held, &pending);
	for (size_t i = 0; i < n; i++)
		keys[i].bytes = text;
	memset(bytes, 'x', sizeof(bytes));
	return answered;
}

static int finish(int answered)
{
	while (answered == PENDING) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)answer.retry_after_ns }, NULL);
		new_out();
		answered = shmlimit_gate_poll(gate, pending, &answer, &held);
	}
	return answered;
}

static uint64_t left(const char *rule, const char *key)
{
	struct shmlimit_result r = { .remaining = UINT64_MAX };

	shmlimit_peek(l, shmlimit_rule_find(l, rule), key, strlen(key), 1, &r);
	return r.remaining;
}

static void hold_replies(int hold)
{
	atomic_store(&proxy.at->hold, hold);
}

static void decided(void)
{
	hold_replies(1);
	is(begin("user:42", "012"), PENDING, "a request that needs the agent is pending");
	is(left("places", "user:42"), 4, "a pending request holds its place");
	is(left("site", "user:42"), 10, "a pending request holds no token of this host's other limits");
	new_out();
	is(shmlimit_gate_poll(gate, pending, &answer, &held), PENDING,
	   "it stays pending while the server does not answer");
	is(ASK(gate, "user:43", SITE), SHMLIMIT_ALLOWED, "another request is decided meanwhile");
	hold_replies(0);
	is(finish(PENDING), SHMLIMIT_ALLOWED, "the agent's answer decides it");
	is(answer.outcome, SHMLIMIT_GATE_PASSED, "it has passed");
	is(answer.remaining, 1, "the answer has the fewest tokens that are left");
	is(answer.field_count, 6, "each limit has its fields");
	is(held.count, 1, "the request holds its place");
	is(shmlimit_gate_leave(gate, keys, 3, &held), 0, "it leaves the place");
	is(left("places", "user:42"), 5, "the place is free");
	is(finish(begin("user:42", "01")), SHMLIMIT_ALLOWED, "a second request passes");
	is(finish(begin("user:42", "120")), SHMLIMIT_DENIED, "the third one is denied");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED && answer.denied_by == 2 && answer.status == 429,
	   "the answer names the limit that denies");
	ok(answer.retry_after_ns > 0 && gate_field("Retry-After")[0] != '\0',
	   "the answer of a denied request says when a token is there");
	is(left("site", "user:42"), 8, "a denied request has given back the token of the other limit");
	is(held.count + 5 - left("places", "user:42"), 0, "a denied request has left its place");
	is(begin("user:42", ""), SHMLIMIT_ALLOWED, "a request without a limit is decided at once");
}

static void dry_run(void)
{
	hold_replies(1);
	is(begin("user:44", "13"), PENDING, "a limit in a dry run is waited for");
	hold_replies(0);
	is(finish(PENDING), SHMLIMIT_ALLOWED, "a dry run denies nothing");
	is(answer.field_count, 2, "the other limit's fields are there after the wait");
	is(answer.remaining, 0, "the dry run's tokens count among those that are left");
	is(finish(begin("user:44", "13")), SHMLIMIT_ALLOWED, "a dry run without tokens denies nothing");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "its outcome is said");
}

static void cancelled(void)
{
	hold_replies(1);
	is(begin("user:45", "012"), PENDING, "a request is pending");
	shmlimit_gate_cancel(gate, pending, &held);
	is(left("site", "user:45"), 10, "a cancelled request has given back the token of the other limit");
	is(held.count + 5 - left("places", "user:45"), 0, "a cancelled request has left its place");
	is(begin("user:46", "32"), PENDING, "a request is pending of which all but a dry run is decided");
	shmlimit_gate_cancel(gate, pending, &held);
	is(held.count, 1, "a request that is cancelled during its dry run still holds its place");
	is(shmlimit_gate_leave(gate, keys, 2, &held), 0, "the place of such a request is left as usual");
	hold_replies(0);
	is(finish(begin("user:45", "0")) + finish(begin("user:45", "0")), SHMLIMIT_ALLOWED,
	   "a cancelled request lost no tokens of the lease");
	is(finish(begin("user:45", "0")), SHMLIMIT_DENIED, "a cancelled request made no tokens");
	hold_replies(1);
	is(begin("user:53", "0"), PENDING, "a request of one limit is pending");
	shmlimit_gate_cancel(gate, pending, &held);
	hold_replies(0);
	is(finish(begin("user:53", "0")) + finish(begin("user:53", "0")), SHMLIMIT_ALLOWED,
	   "a cancelled request of one limit lost no tokens of the lease");
	is(finish(begin("user:53", "0")), SHMLIMIT_DENIED, "a cancelled request of one limit made no tokens");
	shmlimit_gate_cancel(NULL, NULL, NULL);
	shmlimit_gate_cancel(gate, NULL, NULL);
}

static void arguments(void)
{
	is(shmlimit_gate_begin(gate, keys, 1, &answer, NULL, NULL), -EINVAL,
	   "a request needs a place for what is pending");
	held.struct_size = 4;
	is(shmlimit_gate_begin(gate, keys, 1, &answer, &held, &pending), -EINVAL, "the size of `held` is checked");
	is(shmlimit_gate_poll(gate, NULL, &answer, &held), -EINVAL, "what is not pending cannot be polled");
	hold_replies(1);
	is(begin("user:47", "0"), PENDING, "a request is pending without places");
	is(shmlimit_gate_poll(gate, pending, &answer, NULL), -EINVAL, "the places must be passed again");
	new_out();
	answer.buffer_size = 100;
	is(shmlimit_gate_poll(gate, pending, &answer, &held), -ENOBUFS, "a small buffer is refused");
	shmlimit_gate_cancel(gate, pending, &held);
	hold_replies(0);
}

/* A request that holds no places may say so. */
static void without_held(void)
{
	static const struct shmlimit_gate_key key = { .limit = LEASE, .bytes = "user:54", .length = 7 };
	int answered;

	hold_replies(1);
	new_out();
	is(shmlimit_gate_begin(gate, &key, 1, &answer, NULL, &pending), PENDING, "a request is pending without `held`");
	is(shmlimit_gate_poll(gate, pending, &answer, &held), -EINVAL, "it goes on without, too");
	shmlimit_gate_cancel(gate, pending, NULL);
	hold_replies(0);
	for (int i = 0; i < 3; i++) {
		new_out();
		answered = shmlimit_gate_begin(gate, &key, 1, &answer, NULL, &pending);
		while (answered == PENDING) {
			new_out();
			answered = shmlimit_gate_poll(gate, pending, &answer, NULL);
		}
		is(answered, i < 2 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED, "request %d without `held` is decided", i);
	}
}

static void without_agent(struct agent_process *agent)
{
	hold_replies(1);
	is(begin("user:50", "012"), PENDING, "a request is pending when the agent ends");
	agent_stop(agent);
	new_out();
	is(shmlimit_gate_poll(gate, pending, &answer, &held), -EAGAIN, "a pending request says that there is no agent");
	is(begin("user:50", "012"), -EAGAIN, "a new request says so at once");
	is(left("site", "user:50") * 10 + left("places", "user:50"), 105, "requests without an agent take nothing");
	hold_replies(0);
	is(begin("user:50", "12"), SHMLIMIT_ALLOWED, "a request that needs no agent is decided");
	is(shmlimit_gate_leave(gate, keys, 2, &held), 0, "it leaves its place");
	new_out();
	is(shmlimit_gate_ask(gate, keys, 2, &answer), SHMLIMIT_ALLOWED,
	   "a request that waits is decided without an agent");
	is(begin("user:55", "14"), SHMLIMIT_ALLOWED, "a limit that is only peeked at, in a dry run, needs no agent");
	is(begin("user:51", "123"), -EAGAIN, "a limit in a dry run is not waited for");
	is(left("site", "user:51") * 10 + left("places", "user:51"), 105,
	   "a request with such a limit has taken nothing");
	new_out();
	is(shmlimit_gate_ask(gate, keys, 3, &answer), SHMLIMIT_ALLOWED,
	   "a request that waits asks the limit in a dry run");
	is(answer.outcome, SHMLIMIT_GATE_PASSED, "it passed");
	*agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	hold_replies(1);
	is(begin("user:52", "13"), PENDING, "a request waits for its dry run when the agent ends");
	agent_stop(agent);
	new_out();
	is(shmlimit_gate_poll(gate, pending, &answer, &held), SHMLIMIT_ALLOWED, "it goes on, and does not wait");
	is(answer.outcome, SHMLIMIT_GATE_FAILED, "its dry run has failed");
	is(answer.field_count, 2, "the fields of its other limit are there");
	hold_replies(0);
	*agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
}

/* The segment is replaced, or gone, while a request is pending. */
static void replaced(struct agent_process *agent)
{
	char name[sizeof(unit_name)];

	hold_replies(1);
	is(begin("user:48", "012"), PENDING, "a request is pending in a segment that will be replaced");
	agent_stop(agent);
	shmlimit_close(l);
	snprintf(name, sizeof(name), "%s", unit_name);
	shmlimit_destroy(name);
	prepare();
	shmlimit_gate_attach(gate);
	hold_replies(0);
	*agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	is(finish(PENDING), SHMLIMIT_ALLOWED, "a request whose segment was replaced is decided in the new one");
	is(left("site", "user:48") * 10 + left("places", "user:48"), 94,
	   "a request takes its token and its place in the new segment");
	is(shmlimit_gate_leave(gate, keys, 3, &held), 0, "the place in the new segment can be left");
	is(left("places", "user:48"), 5, "the place in the new segment is free again");
	hold_replies(1);
	is(begin("user:49", "012"), PENDING, "a request is pending in a segment that will be gone");
	shmlimit_destroy(name);
	shmlimit_gate_attach(gate);
	hold_replies(0);
	is(finish(PENDING), SHMLIMIT_DENIED, "the failure policy decides it");
	is(answer.outcome, SHMLIMIT_GATE_FAILED, "a request whose segment is gone has failed");
	is(shmlimit_gate_leave(gate, keys, 3, &held), 0, "its place went with the segment");
}

/* A gate with agent=thread has the host's agent in a thread. */
static void with_thread(void)
{
	char rest[400];

	shmlimit_close(l);
	prepare();
	snprintf(rest, sizeof(rest), "backend=%s deadline=10000ms agent=thread rule=lease", proxy.url);
	gate = gate_new(rest);
	agent_await(l);
	is(agent_status(l).pid, (uint64_t)getpid(), "the agent is a thread of the gate's process");
	hold_replies(1);
	is(begin("user:60", "0"), PENDING, "a request that needs the thread is pending");
	hold_replies(0);
	is(finish(PENDING), SHMLIMIT_ALLOWED, "the thread's answer decides it");
	shmlimit_gate_close(gate);
	is(agent_status(l).serving, 0, "a gate that is closed has ended its agent");
}

int main(void)
{
	struct agent_process agent;
	char rest[400];

	if (server_missing())
		return tap_skip_all("no redis-server");
	server_begin(&server, NULL);
	prepare();
	proxy_begin(&proxy, &server);
	snprintf(
		rest, sizeof(rest),
		"backend=%s deadline=10000ms agent=no rule=lease rule=site rule=places rule=dry dry_run rule=dry peek dry_run",
		proxy.url);
	gate = gate_new(rest);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	decided();
	dry_run();
	cancelled();
	arguments();
	without_held();
	without_agent(&agent);
	replaced(&agent);
	agent_stop(&agent);
	shmlimit_gate_close(gate);
	with_thread();
	shmlimit_close(l);
	proxy_end(&proxy);
	return tap_done();
}
