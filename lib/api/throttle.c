/*
 * throttle: redis-cell's CL.THROTTLE, for code that carries its limits along: a take with a limit,
 * under a rule that the first call makes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "fast_gcra.h"
#include "limit_make.h"
#include "rule_writer.h"
#include "segment.h"

#define SECOND UINT64_C(1000000000)
#define RULE_NAME "~throttle"

/* BOUND: after this number of tries the lock is not one of a process that is just adding a rule. */
#define LOCK_TRIES 32

/*
 * Of a rule: its id, and the version that it began with, which never returns. No such version is 0.
 */
#define PLACE_IDS (TAG_RULE_MASK + 1)

/*
 * The rule, which another process may define at this moment. This is a request, so it does not wait
 * for a writer.
 */
static int find_or_put(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .algorithm = SHMLIMIT_GCRA };
	int id = -EAGAIN;

	for (int i = 0; i < LOCK_TRIES && id == -EAGAIN; i++) {
		if (i > 0)
			segment_yield();
		id = rule_find(l, RULE_NAME);
		if (id == -ESRCH)
			id = rule_put(l, RULE_NAME, &rule, 0, when_clock());
	}
	return id;
}

/* Find or define it, and remember it, unless it was removed in the meantime. */
__attribute__((noinline)) static int find_rule(struct shmlimit *l)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	int id = find_or_put(l);
	struct rule_view view;
	uint64_t born;

	if (id < 0)
		return id;
	/*
	 * ORDER `born` before the name: a rule that replaced it since has another name or is
	 * younger.
	 */
	born = load_acquire(&l->rules[id].born);
	if (rule_read(l, (uint32_t)id, &view, name) == 0 && strcmp(name, RULE_NAME) == 0 &&
	    load_acquire(&l->rules[id].born) == born)
		store_relaxed(&l->throttle, born * PLACE_IDS | (uint64_t)id);
	return id;
}

/* As far as this handle knows it: two words of the segment are read. */
static inline int throttle_rule(struct shmlimit *l)
{
	uint64_t place = load_relaxed(&l->throttle);
	const struct layout_rule *record = &l->rules[place & TAG_RULE_MASK];

	if (__builtin_expect(place != 0 && load_acquire(&record->born) == place / PLACE_IDS &&
	                             published_in_use(load_acquire(&record->published)),
	                     1))
		return (int)(place & TAG_RULE_MASK);
	return find_rule(l);
}

/* Whole seconds, rounded up: a client that waits as long as this has waited long enough. */
static int64_t seconds(uint64_t ns)
{
	return (int64_t)(ns / SECOND + (ns % SECOND != 0));
}

EXPORT int shmlimit_throttle(struct shmlimit *l, const void *key, size_t key_len, uint64_t capacity, uint64_t refill,
                             uint64_t period_s, uint64_t quantity, int64_t reply[5])
{
	struct request q =
		request_make(quantity == 0 ? OP_PEEK : OP_TAKE, 0, key_bytes(key, key_len), quantity, when_clock());
	struct shmlimit_result r;
	struct gcra g;
	int answer, rule;

	/* As a take has them, and before a rule is made. */
	answer = decide_check(l, &q);
	if (answer == 0 && l->read_only)
		answer = -EROFS;
	if (answer == 0)
		answer = period_s > UINT64_MAX / SECOND ? -ERANGE
		                                        : gcra_make(capacity, refill, period_s * SECOND, 0, &g);
	if (answer != 0)
		return answer;
	rule = throttle_rule(l);
	if (rule < 0)
		return rule;
	q.rule = (uint32_t)rule;
	q.limit = &g;
	answer = limit_decide(l, &q, &r);
	if (answer < 0 || reply == NULL)
		return answer;
	reply[0] = answer;
	reply[1] = (int64_t)r.limit;
	reply[2] = (int64_t)r.remaining;
	reply[3] = answer == SHMLIMIT_ALLOWED || r.retry_after_ns == UINT64_MAX ? -1 : seconds(r.retry_after_ns);
	reply[4] = seconds(r.reset_after_ns);
	return answer;
}
