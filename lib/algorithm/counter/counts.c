/*
 * counts: add to a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_count.h"
#include "rule.h"
#include "shmlimit.h"
#include "sized.h"

/* Bytes in release 1.0, which has all that is used here. */
#define REQUEST_SIZE_1_0 32u

/*
 * A time to live that the word cannot tell. Whether the rule is a COUNTER's is looked at again when
 * it is decided.
 */
static int is_ttl_too_long(const struct shmlimit *l, uint32_t rule, uint64_t ttl_ns)
{
	struct rule_view view;

	return ttl_ns != 0 && rule_load(l, rule, &view) == 0 && params_algorithm(&view.params) == SHMLIMIT_COUNTER &&
	       ttl_ns > view.params.debt;
}

static enum operation operation_of(const struct count_request *asked)
{
	if (asked->n > 0)
		return OP_COUNT;
	return asked->n == 0 && (asked->flags & (SHMLIMIT_COUNT_RESTART | SHMLIMIT_COUNT_LONGER)) == 0 ? OP_COUNT_LOOK
	                                                                                               : OP_COUNT_DOWN;
}

/* What the first try leaves: also what is wrong with the time to live. */
__attribute__((noinline)) static int count_slowly(const struct shmlimit *l, const struct request *q, uint32_t failed)
{
	struct shmlimit_count *found = q->count->out;
	int answer;

	if (is_ttl_too_long(l, q->rule, q->count->ttl_ns))
		return -ERANGE;
	answer = decide_rest(l, q, failed, NULL);
	/* Refused for want of a slot: then it was not added after all. */
	if (answer == SHMLIMIT_DENIED) {
		found->count -= found->applied;
		found->applied = 0;
	}
	return answer;
}

FAST int count_key(const struct shmlimit *l, struct request *request, struct count_request *asked,
                   struct shmlimit_count *out)
{
	struct shmlimit_count found = { 0 };
	uint32_t failed = 0;
	struct request q;
	int answer;

	request->op = operation_of(asked);
	request->count = asked;
	if (l == NULL || asked->bound < 0 ||
	    (asked->flags & ~(SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART | SHMLIMIT_COUNT_LONGER)) != 0 ||
	    (out != NULL && out->struct_size < 2 * sizeof(out->struct_size)))
		return -EINVAL;
	answer = decide_check(l, request);
	if (answer != 0)
		return answer;
	asked->out = &found;
	q = decide_complete(l, request);
	answer = fast_count(l, &q, &failed);
	if (__builtin_expect(answer == FIRST_NOT, 0)) {
		struct request copy = request_copy(&q);

		answer = count_slowly(l, &copy, failed);
	}
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

/* Returns 0, -EINVAL or -E2BIG. */
static inline int read_request(const struct shmlimit_count_request *from, struct count_request *asked)
{
	struct shmlimit_count_request known;

	if (from == NULL || from->struct_size < REQUEST_SIZE_1_0)
		return -EINVAL;
	if (__builtin_expect(from->struct_size != sizeof(known), 0)) {
		int error = sized_in(&known, from, sizeof(known));

		if (error != 0)
			return error;
		from = &known;
	}
	*asked = (struct count_request){ from->n, from->bound, from->ttl_ns, from->flags, NULL };
	return 0;
}

EXPORT int shmlimit_count(struct shmlimit *l, int rule, const void *key, size_t key_len,
                          const struct shmlimit_count_request *request, struct shmlimit_count *out)
{
	struct count_request asked;
	struct request q;
	int error = read_request(request, &asked);

	if (error != 0)
		return error;
	q = request_make(OP_COUNT, rule, key_bytes(key, key_len), asked.n > 0 ? (uint64_t)asked.n : 0, when_clock());
	return count_key(l, &q, &asked, out);
}
