/*
 * count: add to a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"
#include "rule.h"
#include "sized.h"

/* A time to live that the word cannot tell. Whether the rule is a COUNTER's is looked at again when it is decided. */
static int is_too_long(const struct shmlimit *l, int rule, uint64_t ttl_ns)
{
	struct rule_view view;

	return ttl_ns != 0 && rule_load(l, (uint32_t)rule, &view) == 0 &&
	       params_algorithm(&view.params) == SHMLIMIT_COUNTER && ttl_ns > view.params.debt;
}

static enum operation operation_of(const struct count_request *asked)
{
	if (asked->n > 0)
		return OP_COUNT;
	return asked->n == 0 && (asked->flags & SHMLIMIT_COUNT_RESTART) == 0 ? OP_COUNT_LOOK : OP_COUNT_DOWN;
}

static int count(const struct shmlimit *l, int rule, const void *key, size_t key_len, struct count_request *asked,
                 const uint64_t *given_ns, struct shmlimit_count *out)
{
	struct shmlimit_count found = { 0 };
	struct request q = { .op = operation_of(asked), .count = asked };
	int answer;

	if (l == NULL || asked->bound < 0 || (asked->flags & ~(SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART)) != 0 ||
	    (out != NULL && out->struct_size < 2 * sizeof(out->struct_size)))
		return -EINVAL;
	if (is_too_long(l, rule, asked->ttl_ns))
		return -ERANGE;
	asked->out = &found;
	q.amount = asked->n > 0 ? (uint64_t)asked->n : 0;
	if (given_ns != NULL)
		q.when = when_given(*given_ns);
	answer = decide_call(l, rule, key, key_len, &q, NULL);
	if (answer < 0)
		return answer;
	/* Refused for want of a slot: then it was not added after all. */
	if (answer == SHMLIMIT_DENIED) {
		found.count -= found.applied;
		found.applied = 0;
	}
	if (out != NULL)
		(void)sized_out(out, &found, sizeof(found));
	return answer;
}

EXPORT int shmlimit_count(struct shmlimit *l, int rule, const void *key, size_t key_len, int64_t n, uint64_t ttl_ns,
                          int64_t bound, uint32_t flags, struct shmlimit_count *out)
{
	struct count_request asked = { n, bound, ttl_ns, flags, NULL };

	return count(l, rule, key, key_len, &asked, NULL, out);
}

EXPORT int shmlimit_count_at(struct shmlimit *l, int rule, const void *key, size_t key_len, int64_t n, uint64_t ttl_ns,
                             int64_t bound, uint32_t flags, uint64_t now_ns, struct shmlimit_count *out)
{
	struct count_request asked = { n, bound, ttl_ns, flags, NULL };

	return count(l, rule, key, key_len, &asked, &now_ns, out);
}
