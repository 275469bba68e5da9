/*
 * count_row: what the operations of counts do, inline: for COUNTER's row, and for fast_count.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_COUNT_ROW_H
#define SHMLIMIT_LIB_COUNT_ROW_H

#include "count.h"
#include "request.h"

/* Does the time of a count that lives begin again? */
static inline int count_restarts(const struct count *count, const struct count_request *asked, uint64_t ttl_ns)
{
	if (asked->flags & SHMLIMIT_COUNT_LONGER)
		return count->left_ns < ttl_ns;
	return (asked->flags & SHMLIMIT_COUNT_RESTART) != 0;
}

/*
 * As INCREX: what would be over the bound, or below 0, is refused, or as much of it is added as
 * fits. A capacity that was lowered below the count is such a bound. A count that begins lives for
 * period_ns, if the call brings no time of its own.
 */
static inline void count_row_add(const struct layout_params *params, const struct count_request *asked,
                                 uint64_t period_ns, uint64_t now_ns, struct count *count, struct verdict *v)
{
	uint64_t ttl_ns = asked->ttl_ns != 0 ? asked->ttl_ns : period_ns;

	/*
	 * Compared without a sign: a capacity that was scribbled over may be above INT64_MAX. The
	 * bound is 0 or more.
	 */
	int64_t most = (uint64_t)asked->bound < params->capacity ? asked->bound : (int64_t)params->capacity;
	int64_t before = (int64_t)count->n, after;

	if (__builtin_add_overflow(before, asked->n, &after))
		after = asked->n > 0 ? INT64_MAX : INT64_MIN;
	if (asked->n != 0 && (after > most || after < 0)) {
		if ((asked->flags & SHMLIMIT_COUNT_SATURATE) == 0) {
			v->answer = SHMLIMIT_DENIED;
			after = before;
		} else {
			after = after < 0 ? 0 : most;
		}
	}
	if (v->answer == SHMLIMIT_ALLOWED &&
	    (count->left_ns == 0 ? after != 0 : count_restarts(count, asked, ttl_ns))) {
		count_begin(params, count, ttl_ns, now_ns);
		v->changed = 1;
	}
	v->changed |= after != before;
	count->n = (uint64_t)after;
	asked->out->count = after;
	asked->out->applied = after - before;
	asked->out->ttl_ns = count->left_ns;
}

#endif
