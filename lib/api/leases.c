/*
 * lease_take, _deposit, _deny, _abandon: share a funnel with other hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"
#include "sized.h"

static int lease(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t amount, enum verb verb,
                 const struct lease_request *leased, enum time_source source, uint64_t now_ns,
                 struct shmlimit_result *r)
{
	struct request_key whole = { key, key_len };
	const struct table *t;
	struct request request = { (uint32_t)rule, verb, source, 0, amount, 0, now_ns, &whole, leased, NULL };

	if (l == NULL || key == NULL)
		return -EINVAL;
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	if (l->read_only)
		return -EROFS;
	if (source == TIME_OWN)
		request.now_ns = clock_read(l->clock_id);
	request.hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	t = tables_glance(l, 1);
	return t == NULL ? decide_slowly(l, &request, 0, r) : decide_other(l, t, &request, r);
}

/* *out is the caller's, perhaps of another release, and is written only when there is something to say. */
static int take(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost, uint64_t lease_ns,
                uint64_t claim_ns, struct shmlimit_lease *out, enum time_source source, uint64_t now_ns,
                struct shmlimit_result *r)
{
	struct shmlimit_lease found;
	struct lease_request leased = { 0, lease_ns, claim_ns, &found };
	int answer;

	if (out == NULL || out->struct_size < 2 * sizeof(out->struct_size))
		return -EINVAL;
	answer = lease(l, rule, key, key_len, cost, VERB_LEASE, &leased, source, now_ns, r);
	if (answer > SHMLIMIT_DENIED && sized_out(out, &found, sizeof(found)) != 0)
		return -EINVAL;
	return answer;
}

EXPORT int shmlimit_lease_take(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out,
                               struct shmlimit_result *r)
{
	return take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, TIME_OWN, 0, r);
}

EXPORT int shmlimit_lease_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out, uint64_t now_ns,
                                  struct shmlimit_result *r)
{
	return take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, TIME_GIVEN, now_ns, r);
}

EXPORT int shmlimit_lease_deposit(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                                  uint64_t cost, uint64_t lasts_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .tokens = tokens, .lease_ns = lasts_ns };

	return lease(l, rule, key, key_len, cost, VERB_DEPOSIT, &leased, TIME_OWN, 0, r);
}

EXPORT int shmlimit_lease_deposit_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                                     uint64_t cost, uint64_t lasts_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .tokens = tokens, .lease_ns = lasts_ns };

	return lease(l, rule, key, key_len, cost, VERB_DEPOSIT, &leased, TIME_GIVEN, now_ns, r);
}

EXPORT int shmlimit_lease_deny(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t for_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };

	return lease(l, rule, key, key_len, cost, VERB_DENY, &leased, TIME_OWN, 0, r);
}

EXPORT int shmlimit_lease_deny_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t for_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };

	return lease(l, rule, key, key_len, cost, VERB_DENY, &leased, TIME_GIVEN, now_ns, r);
}

EXPORT int shmlimit_lease_abandon(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	static const struct lease_request leased = { 0 };

	return lease(l, rule, key, key_len, 0, VERB_ABANDON, &leased, TIME_OWN, 0, NULL);
}

EXPORT int shmlimit_lease_abandon_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	static const struct lease_request leased = { 0 };

	return lease(l, rule, key, key_len, 0, VERB_ABANDON, &leased, TIME_GIVEN, now_ns, NULL);
}
