/*
 * fallback: see fallback.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fallback.h"
#include "outage.h"
#include "policy.h"

/* The host's share of a rule, as a rule; and in the rule's own mode. */
static int share(struct shmlimit_global *g, int rule, struct shmlimit_rule *out)
{
	int error;

	*out = (struct shmlimit_rule){ .struct_size = sizeof(*out) };
	error = shmlimit_rule_get(g->limiter, rule, out);
	out->algorithm = SHMLIMIT_FUNNEL;
	out->credit = 0;
	if (error == 0)
		policy_share(g->options.local_milli, &out->capacity, &out->refill, &out->period_ns);
	return error;
}

static int same(const struct shmlimit_rule *a, const struct shmlimit_rule *b)
{
	return a->capacity == b->capacity && a->refill == b->refill && a->period_ns == b->period_ns &&
	       a->mode == b->mode && ((a->flags ^ b->flags) & SHMLIMIT_RULE_PROTECTED) == 0;
}

static void local_name(char name[SHMLIMIT_RULE_NAME_MAX + 1], const char *of)
{
	int room = SHMLIMIT_RULE_NAME_MAX - (int)strlen(FALLBACK_PREFIX), hash_digits = 16;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if ((int)strlen(of) <= room) {
		snprintf(name, SHMLIMIT_RULE_NAME_MAX + 1, FALLBACK_PREFIX "%.*s", room, of);
		return;
	}
	/* FNV-1a, of Fowler, Noll and Vo. */
	for (const char *c = of; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	snprintf(name, SHMLIMIT_RULE_NAME_MAX + 1, FALLBACK_PREFIX "%.*s:%016" PRIx64, room - hash_digits - 1, of,
	         hash);
}

/*
 * Returns the id of the rule's local share, which is created, or changed if the rule has changed.
 */
static int local_rule(struct shmlimit_global *g, int rule)
{
	char of[SHMLIMIT_RULE_NAME_MAX + 1], name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule want, have = { .struct_size = sizeof(have) };
	int error = shmlimit_rule_name(g->limiter, rule, of), id;

	if (error == 0)
		error = share(g, rule, &want);
	if (error != 0)
		return error;
	/*
	 * WHY NO_WAIT: this runs inside a request, which must not wait for another writer of rules.
	 */
	want.flags |= SHMLIMIT_RULE_NO_WAIT;
	local_name(name, of);
	id = shmlimit_rule_find(g->limiter, name);
	if (id >= 0 && shmlimit_rule_get(g->limiter, id, &have) == 0 && same(&have, &want))
		return id;
	return shmlimit_rule_set(g->limiter, name, &want);
}

/*
 * Returns the id of the rule's local share, or a negative error. Other handles' shares count if
 * they exist.
 */
static int share_of(struct shmlimit_global *g, int rule)
{
	char of[SHMLIMIT_RULE_NAME_MAX + 1], name[SHMLIMIT_RULE_NAME_MAX + 1];
	int error;

	if (g->options.on_failure == SHMLIMIT_GLOBAL_LOCAL)
		return local_rule(g, rule);
	error = shmlimit_rule_name(g->limiter, rule, of);
	if (error != 0)
		return error;
	local_name(name, of);
	return shmlimit_rule_find(g->limiter, name);
}

void fallback_prepare(struct shmlimit_global *g, int rule)
{
	if (g->options.on_failure == SHMLIMIT_GLOBAL_LOCAL)
		(void)local_rule(g, rule);
}

void fallback_charge(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t tokens)
{
	int local = share_of(g, rule);

	if (local >= 0)
		(void)shmlimit_charge(g->limiter, local, key, key_len, tokens, NULL);
}

static int allow(struct shmlimit_global *g, int rule, struct shmlimit_result *r)
{
	struct shmlimit_rule params = { .struct_size = sizeof(params) };
	int error = shmlimit_rule_get(g->limiter, rule, &params);

	if (error == 0 && r != NULL)
		*r = (struct shmlimit_result){ .limit = params.capacity };
	return error;
}

/*
 * DENY is a take from the slot alone, also used if LOCAL has no rule. It denies, unless another
 * process has deposited tokens. ERROR is the same, with another word for a denial.
 */
int fallback(struct shmlimit_global *g, int rule, struct key_bytes key, uint64_t cost, int *taken_from,
             struct shmlimit_result *r)
{
	int local = g->options.on_failure == SHMLIMIT_GLOBAL_LOCAL ? local_rule(g, rule) : -1, answer;

	*taken_from = -1;
	if (g->mailbox != NULL)
		mailbox_count_failure(g->mailbox, rule);
	outage_note(g);
	if (g->options.on_failure == SHMLIMIT_GLOBAL_ALLOW)
		return allow(g, rule, r);
	*taken_from = local >= 0 ? local : rule;
	answer = shmlimit_take(g->limiter, *taken_from, key.bytes, key.len, cost, r);
	return answer == SHMLIMIT_DENIED && g->options.on_failure == SHMLIMIT_GLOBAL_ERROR ? -EHOSTDOWN : answer;
}
