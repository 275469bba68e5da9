/*
 * global_count: add to a count that all hosts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent_thread.h"
#include "export.h"
#include "outage.h"
#include "policy.h"
#include "pool.h"
#include "sized.h"
#include "via_agent.h"

/* Time between two looks whether an agent is there, of a process that waits for its answer. */
#define LOOK_NS UINT64_C(10000000)

/* One call: what is asked, and what this host knows of the count. */
struct counting {
	struct shmlimit_global *g; /* the public handle */
	int rule;
	struct key_bytes key;
	struct shmlimit_count_request asked; /* `bound` is at most the rule's capacity */
	struct shmlimit_count here;
};

/* Ask the slot of this host for something. Returns as shmlimit_count(). */
static int count_here(const struct counting *c, int64_t n, int64_t bound, struct shmlimit_count *out)
{
	struct shmlimit_count_request asked = c->asked;

	asked.n = n;
	asked.bound = bound;
	return shmlimit_count(c->g->limiter, c->rule, c->key.bytes, c->key.len, &asked, out);
}

/* A disabled segment shows no count, so it is asked only where there is none. */
static int is_disabled(const struct counting *c)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	return c->here.count == 0 && shmlimit_info(c->g->limiter, &info) == 0 && !info.enabled;
}

/*
 * Returns SHMLIMIT_DENIED, and counts it, if the count here leaves no room; SHMLIMIT_ALLOWED if the
 * backend has to decide; or an error. A count that ends since it was read is none.
 */
static int deny_here(struct counting *c)
{
	int saturates = (c->asked.flags & SHMLIMIT_COUNT_SATURATE) != 0, answer;
	int64_t room = c->asked.bound - c->here.count, applied;

	if (saturates ? room > 0 : c->asked.n <= room)
		return SHMLIMIT_ALLOWED;
	answer = count_here(c, c->asked.n, c->asked.bound, &c->here);
	applied = c->here.applied;
	if (answer != SHMLIMIT_ALLOWED || applied == 0)
		return answer < 0 ? answer : SHMLIMIT_DENIED;
	answer = count_here(c, -applied, INT64_MAX, &c->here);
	return answer < 0 ? answer : SHMLIMIT_ALLOWED;
}

/*
 * Post the request, and wait for its answer. Returns as mailbox_wait(). A process that waits for an
 * agent that was killed becomes the next one, or starts its thread, if its options say so.
 */
static enum request_state post_and_wait(struct shmlimit_global *g, const struct request_text *text, uint64_t until_ns,
                                        struct request_answer *answer)
{
	enum request_state state = REQUEST_POSTED;
	struct receipt receipt;

	if (mailbox_post(g->mailbox, text, &receipt) != 0)
		return REQUEST_FREE;
	/* ORDER posting is a full barrier; the partner is in mailbox_resign(). */
	while (request_is_open(state) && (state != REQUEST_POSTED || via_agent_exists(g))) {
		uint64_t now_ns = monotonic_now_ns();

		if (now_ns >= until_ns)
			break;
		state = mailbox_await(g->mailbox, &receipt, until_ns - now_ns < LOOK_NS ? until_ns : now_ns + LOOK_NS,
		                      answer);
		if (request_is_open(state))
			(void)agent_thread_begin(g->home);
	}
	return request_is_open(state) ? mailbox_wait(g->mailbox, &receipt, 0, answer) : state;
}

/*
 * The same until there is an answer. Returns REQUEST_ALLOWED or _DENIED, or REQUEST_FAILED:
 * on_failure decides. BOUND: until_ns. While the host has no agent, one of its processes becomes
 * it, if its options say so.
 */
static enum request_state ask_count(struct shmlimit_global *g, const struct request_text *text, uint64_t until_ns,
                                    struct request_answer *answer)
{
	struct backend_error waited = { .kind = ERROR_WAITED }, none = { .kind = ERROR_AGENT };
	int may_wait = (g->options.flags & SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD) != 0;
	uint64_t now_ns = monotonic_now_ns();

	for (unsigned naps = 0; now_ns < until_ns && (may_wait || via_agent_exists(g)); naps++) {
		enum request_state state = REQUEST_FREE;
		struct timespec nap;

		(void)agent_thread_begin(g->home);
		if (via_agent_exists(g))
			state = post_and_wait(g, text, until_ns, answer);
		if (state == REQUEST_ALLOWED || state == REQUEST_DENIED || state == REQUEST_FAILED)
			return state;
		now_ns = monotonic_now_ns();
		if (now_ns >= until_ns)
			break;
		nap = (struct timespec){ 0, (long)policy_nap_ns(naps, until_ns - now_ns) };
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		now_ns = monotonic_now_ns();
	}
	handle_report(g, via_agent_exists(g) ? &waited : &none, NULL);
	return REQUEST_FAILED;
}

static enum request_state ask_backend(const struct counting *c, const struct shmlimit_rule *rule,
                                      struct request_answer *answer)
{
	struct shmlimit_global *mine = NULL;
	enum request_state state;
	struct request_text text;
	int error;

	if (c->g->mailbox != NULL)
		mine = pool_borrow(c->g, &error);
	if (mine == NULL)
		return REQUEST_FAILED;
	text.backend = mine->backend;
	text.rule = (uint32_t)c->rule;
	text.key_len = (uint16_t)c->key.len;
	text.kind = c->asked.flags & SHMLIMIT_COUNT_SATURATE ? REQUEST_COUNT_FITS : REQUEST_COUNT;
	text.set_us = rule->set_unix_ns / 1000;
	text.cost = (uint64_t)c->asked.n;
	text.need = (uint64_t)c->asked.bound;
	text.want = c->asked.ttl_ns != 0 ? c->asked.ttl_ns : rule->period_ns;
	memcpy(text.key, c->key.bytes, c->key.len);
	memset(text.key + c->key.len, 0, (8 - c->key.len % 8) % 8);
	state = ask_count(mine, &text, monotonic_now_ns() + mine->options.deadline_ns, answer);
	if (state != REQUEST_FAILED) {
		handle_recovered(mine);
		outage_over(mine);
	}
	pool_return(mine);
	return state;
}

/* The answer as on_failure says. */
static int count_on_failure(const struct counting *c, struct shmlimit_count *out)
{
	const struct shmlimit_global_options *o = &c->g->options;
	int64_t share = (int64_t)((unsigned __int128)(uint64_t)c->asked.bound * o->local_milli / 1000);

	if (c->g->mailbox != NULL)
		mailbox_count_failure(c->g->mailbox, c->rule);
	outage_note(c->g);
	if (o->on_failure == SHMLIMIT_GLOBAL_LOCAL)
		return count_here(c, c->asked.n, share | (share == 0 && c->asked.bound != 0), out);
	if (o->on_failure == SHMLIMIT_GLOBAL_ERROR)
		return -EHOSTDOWN;
	*out = c->here;
	out->applied = o->on_failure == SHMLIMIT_GLOBAL_ALLOW ? c->asked.n : 0;
	return o->on_failure == SHMLIMIT_GLOBAL_ALLOW ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
}

/* Returns as shmlimit_global_count(). */
static int decide(struct counting *c, struct shmlimit_count *out)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct request_answer answer = { 0 };
	enum request_state state;
	int error = shmlimit_rule_get(c->g->limiter, c->rule, &rule);

	if (error == 0 && rule.algorithm != SHMLIMIT_COUNTER)
		error = -EOPNOTSUPP;
	if (error == 0 && c->asked.ttl_ns > rule.period_ns)
		error = -ERANGE;
	if (error == 0)
		error = count_here(c, 0, INT64_MAX, &c->here);
	if (error < 0)
		return error;
	if (rule.mode != SHMLIMIT_ENFORCE || c->asked.n == 0 || is_disabled(c))
		return count_here(c, c->asked.n, c->asked.bound, out);
	if (c->asked.bound > (int64_t)rule.capacity)
		c->asked.bound = (int64_t)rule.capacity;
	error = deny_here(c);
	if (error != SHMLIMIT_ALLOWED) {
		*out = c->here;
		return error;
	}
	state = ask_backend(c, &rule, &answer);
	if (state == REQUEST_FAILED)
		return count_on_failure(c, out);
	out->count = (int64_t)answer.limit;
	out->applied = (int64_t)answer.remaining;
	out->ttl_ns = answer.reset_after_ns;
	return state == REQUEST_ALLOWED ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
}

EXPORT int shmlimit_global_count(struct shmlimit_global *g, int rule, const void *key, size_t key_len,
                                 const struct shmlimit_count_request *request, struct shmlimit_count *out)
{
	struct counting c = {
		.g = g, .rule = rule, .key = key_bytes(key, key_len), .here = { .struct_size = sizeof(c.here) }
	};
	struct shmlimit_count found = { .struct_size = sizeof(found) };
	int answer;

	if (g == NULL || request == NULL || (out != NULL && out->struct_size < 2 * sizeof(out->struct_size)))
		return -EINVAL;
	answer = sized_in(&c.asked, request, sizeof(c.asked));
	if (answer != 0)
		return answer;
	c.asked.struct_size = sizeof(c.asked);
	if (c.asked.bound < 0)
		return -EINVAL;
	if ((c.asked.flags & ~(uint32_t)SHMLIMIT_COUNT_SATURATE) != 0 || c.asked.n < 0)
		return c.asked.flags & ~(uint32_t)(SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART |
		                                   SHMLIMIT_COUNT_LONGER)
		               ? -EINVAL
		               : -EOPNOTSUPP;
	if (g->options.flags & SHMLIMIT_GLOBAL_OPTION_NO_WAIT)
		return -EOPNOTSUPP;
	answer = decide(&c, &found);
	if (answer >= 0 && out != NULL)
		(void)sized_out(out, &found, sizeof(found));
	return answer;
}
