/*
 * handle: see handle.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "handle.h"
#include "policy.h"

/* The longest tick of a kernel (CONFIG_HZ=100), in ns. */
#define COARSE_NS UINT64_C(10000000)

/* Part of the deadline in which the agent answers by itself. */
#define FAR_PARTS 8

static int begin_handle(struct shmlimit_global *g, const struct url *url)
{
	int error = breaker_begin(&g->breaker, g->limiter, url);

	if (error != 0)
		return error;
	g->backend = mailbox_backend(g->breaker.key, g->prefix);
	g->breaker.claim_ns = policy_claim_ns(g->options.deadline_ns);
	g->breaker.open_ns = g->options.open_ns;
	g->breaker.open_after = g->options.open_after;
	if (getrandom(&g->rng, sizeof(g->rng), GRND_NONBLOCK) != (ssize_t)sizeof(g->rng))
		g->rng = shmlimit_now(g->limiter);
	g->failed_keys.secret = handle_rng(g);
	cluster_begin(&g->cluster, url, g->options.open_after, g->options.open_ns);
	return 0;
}

int handle_open(struct shmlimit *limiter, const struct shmlimit_global_options *o, const struct url *url,
                struct shmlimit_global **out)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_global *g;
	size_t area = 0;
	void *shared;
	int error;

	shmlimit_info(limiter, &info);
	g = calloc(1, sizeof(*g) + info.rules * sizeof(g->own_lease_ns[0]));
	if (g == NULL)
		return -ENOMEM;
	g->limiter = limiter;
	g->rules = info.rules;
	g->lease_ns = g->own_lease_ns;
	g->clock_ns = info.clock == SHMLIMIT_CLOCK_COARSE ? COARSE_NS : 0;
	g->options = *o;
	shared = shmlimit_area(limiter, &area);
	g->mailbox = mailbox_in(shared, area);
	strcpy(g->prefix, o->prefix);
	g->options.prefix = g->prefix;
	error = begin_handle(g, url);
	if (error != 0)
		free(g);
	else
		*out = g;
	return error;
}

void handle_close(struct shmlimit_global *g)
{
	cluster_end(&g->cluster);
	free(g);
}

/* Read a rule of this algorithm. */
static int read_rule(struct shmlimit_global *g, int rule, uint32_t algorithm, struct shmlimit_rule *params,
                     struct handle_rule *out)
{
	int error;

	*params = (struct shmlimit_rule){ .struct_size = sizeof(*params) };
	error = shmlimit_rule_get(g->limiter, rule, params);
	out->id = rule;
	out->set_us = params->set_unix_ns / 1000;
	if (error == 0)
		error = shmlimit_rule_name(g->limiter, rule, out->name);
	return error == 0 && params->algorithm != algorithm ? -EOPNOTSUPP : error;
}

int handle_counter(struct shmlimit_global *g, int rule, struct handle_rule *out)
{
	struct shmlimit_rule params;

	return read_rule(g, rule, SHMLIMIT_COUNTER, &params, out);
}

int handle_rule(struct shmlimit_global *g, int rule, struct handle_rule *out)
{
	struct shmlimit_rule params;
	int error = read_rule(g, rule, SHMLIMIT_LEASE, &params, out);

	if (error != 0)
		return error;
	out->credit = params.credit;
	out->lease_ns = policy_lease_ns(params.capacity, params.refill, params.period_ns, g->options.lease_ns,
	                                policy_answer_ns(g->options.deadline_ns, handle_far_ns(g)));
	error = script_params(&out->params, params.capacity, params.refill, params.period_ns,
	                      (out->lease_ns + 999) / 1000);
	return error;
}

/* A rule's name has no '/', so two different pairs of rule and key never get the same name. */
size_t handle_key(const struct shmlimit_global *g, const char *rule, const void *key, size_t key_len,
                  char text[KEY_TEXT_MAX])
{
	size_t n = (size_t)snprintf(text, KEY_TEXT_MAX, "%s{%s/", g->prefix, rule);

	memcpy(text + n, key, key_len);
	text[n + key_len] = '}';
	return n + key_len + 1;
}

uint64_t handle_wait_ns(const struct shmlimit_global *g)
{
	uint64_t deadline_ns = g->options.deadline_ns;
	int is_far = handle_far_ns(g) > deadline_ns && mailbox_has_agent(g->mailbox, g->backend, monotonic_now_ns());

	return is_far ? deadline_ns / FAR_PARTS : deadline_ns;
}

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014. */
uint64_t handle_rng(struct shmlimit_global *g)
{
	uint64_t z = g->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void report_failure(struct shmlimit_global *g, const struct backend_error *failure,
                           const struct handle_rule *rule)
{
	char text[URL_TEXT_MAX + SHMLIMIT_RULE_NAME_MAX + BACKEND_ERROR_TEXT_MAX + 32], why[BACKEND_ERROR_TEXT_MAX];

	if (g->options.report == NULL)
		return;
	snprintf(text, sizeof(text), "backend %s: %s%s%s%s", g->breaker.key, rule != NULL ? "rule " : "",
	         rule != NULL ? rule->name : "", rule != NULL ? ": " : "", backend_error_text(failure, why));
	g->options.report(g->options.arg, text);
}

void handle_report(struct shmlimit_global *g, const struct backend_error *failure, const struct handle_rule *rule)
{
	if (rule != NULL && backend_error_is_of_key(failure)) {
		uint64_t bit = UINT64_C(1) << (rule->id & 63);

		if (!(g->reported_of[failure->kind] & bit))
			report_failure(g, failure, rule);
		g->reported_of[failure->kind] |= bit;
		return;
	}
	/*
	 * A timeout while another process asked is not reported again while a backend error is
	 * known.
	 */
	if (failure->kind == ERROR_WAITED && g->reported.kind != ERROR_NONE)
		return;
	if (failure->at == ERROR_OF_KNOWN)
		return;
	if (failure->kind != g->reported.kind || failure->error != g->reported.error)
		report_failure(g, failure, NULL);
	g->reported = *failure;
}

void handle_warn(struct shmlimit_global *g, const struct backend_error *failure)
{
	report_failure(g, failure, NULL);
}

void handle_recovered(struct shmlimit_global *g)
{
	g->reported = (struct backend_error){ .kind = ERROR_NONE };
}

int handle_failed(struct shmlimit_global *g, const struct backend_error *failure, const struct handle_rule *rule)
{
	handle_report(g, failure, rule);
	return backend_error_errno(failure);
}
