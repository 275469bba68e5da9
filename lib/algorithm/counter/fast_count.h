/*
 * fast_count: an addition to a count at the first try. The slot is the key's, under a
 * rule in force; a count that has ended is one that begins. In everything else the
 * general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_COUNT_H
#define SHMLIMIT_LIB_FAST_COUNT_H

#include "count_row.h"
#include "first.h"

/*
 * The answer, as decide() gives it, with *q->count->out filled; or FIRST_NOT. *failed: it lost its
 * swap.
 */
FAST int fast_count(const struct shmlimit *l, const struct request *q, uint32_t *failed)
{
	const struct count_request *asked = q->count;
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	struct count count;
	struct first f;

	if (__builtin_expect(!first_find(l, q, SHMLIMIT_COUNTER, 1, &f) || asked->ttl_ns > f.view.params.debt, 0))
		return FIRST_NOT;
	count = count_read(&f.view.params, f.seen.word, q->when.ns);
	if (__builtin_expect(count.stepped, 0))
		return FIRST_NOT;
	/* The calendar is asked where a count begins. */
	if (__builtin_expect(params_calendar(&f.view.params) != 0 && (count.left_ns == 0 || asked->flags != 0), 0))
		return FIRST_NOT;
	count_row_add(&f.view.params, asked, f.view.params.back, q->when.ns, &count, &v);
	/* The linearization point (I1, I4). ORDER both pair with slot_cas() elsewhere. */
	if (v.changed)
		*failed = !slot_cas(f.slot, f.seen, f.seen.tag, count_pack(&f.view.params, count));
	if (__builtin_expect(v.changed ? *failed : !slot_unchanged(f.slot, f.seen), 0))
		return FIRST_NOT;
	decide_show(q, v.answer);
	return decide_count(l, q, rule_mode(&f.view), v.answer, q->when.ns);
}

#endif
