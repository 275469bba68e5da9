/*
 * counts: add to a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_count.h"
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

/* What the first try leaves: also what is wrong with the time to live. */
__attribute__((noinline)) static int count_slowly(const struct shmlimit *l, enum operation op, int rule, uint64_t hash,
                                                  const struct request_key *key, const struct count_request *asked,
                                                  struct when when, uint32_t failed)
{
	struct shmlimit_count *found = asked->out;
	int answer;

	if (is_too_long(l, rule, asked->ttl_ns))
		return -ERANGE;
	answer = decide_rest(l,
	                     &(struct request){ .op = op,
	                                        .rule = (uint32_t)rule,
	                                        .hash = hash,
	                                        .key = *key,
	                                        .amount = asked->n > 0 ? (uint64_t)asked->n : 0,
	                                        .when = when,
	                                        .count = asked },
	                     failed, NULL);
	/* Refused for want of a slot: then it was not added after all. */
	if (answer == SHMLIMIT_DENIED) {
		found->count -= found->applied;
		found->applied = 0;
	}
	return answer;
}

/* when_clock(): the clock is read after the key is hashed. */
__attribute__((always_inline)) static inline int count(const struct shmlimit *l, int rule, const void *key,
                                                       size_t key_len, struct count_request *asked, struct when when,
                                                       struct shmlimit_count *out)
{
	struct shmlimit_count found = { 0 };
	struct request_key whole = { key, key_len };
	enum operation op = operation_of(asked);
	uint32_t failed = 0;
	uint64_t hash;
	int answer;

	if (l == NULL || asked->bound < 0 ||
	    (asked->flags & ~(SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART)) != 0 ||
	    (out != NULL && out->struct_size < 2 * sizeof(out->struct_size)))
		return -EINVAL;
	answer = decide_check(l, key, key_len, op);
	if (answer != 0)
		return answer;
	asked->out = &found;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	if (!when.given)
		when = when_read(l);
	answer = fast_count(l, op, (uint32_t)rule, hash, asked, when, &failed);
	if (__builtin_expect(answer == FIRST_NOT, 0))
		answer = count_slowly(l, op, rule, hash, &whole, asked, when, failed);
	if (answer < 0)
		return answer;
	if (out == NULL)
		return answer;
	/* WHY NOT sized_out() alone: it costs 50 instructions of 560. */
	if (__builtin_expect(out->struct_size != sizeof(*out), 0)) {
		(void)sized_out(out, &found, sizeof(found));
		return answer;
	}
	found.struct_size = sizeof(*out);
	*out = found;
	return answer;
}

EXPORT int shmlimit_count(struct shmlimit *l, int rule, const void *key, size_t key_len, int64_t n, uint64_t ttl_ns,
                          int64_t bound, uint32_t flags, struct shmlimit_count *out)
{
	struct count_request asked = { n, bound, ttl_ns, flags, NULL };

	return count(l, rule, key, key_len, &asked, when_clock(), out);
}

EXPORT int shmlimit_count_at(struct shmlimit *l, int rule, const void *key, size_t key_len, int64_t n, uint64_t ttl_ns,
                             int64_t bound, uint32_t flags, uint64_t now_ns, struct shmlimit_count *out)
{
	struct count_request asked = { n, bound, ttl_ns, flags, NULL };

	return count(l, rule, key, key_len, &asked, when_given(now_ns), out);
}
