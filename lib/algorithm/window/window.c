/*
 * window: the rare half of the arithmetic, see window.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "window.h"
#include "cells.h"
#include "whole.h"

#define SECOND ((uint64_t)1000000000)
/*
 * A clock read is at most this old when its decision is made; a decision in doubt reads the clock
 * again.
 */
#define SLACK_NS SECOND
/*
 * Nine years: times are compared as signed numbers of nanoseconds, and word ticks must reach over
 * 16 spans.
 */
#define SPAN_MAX_NS ((uint64_t)1 << 58)
/*
 * The word's timestamp reaches over at least 16 spans of period and wait: the table is swept once
 * in about four to eight, and the slack of a sweep is longer than an entry lasts (sweep.h). WHY NOT
 * more: ticks would be longer.
 */
#define SPANS_SHIFT 4

int window_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params)
{
	unsigned cell_bits, low, span_bits, tick_bits = 0;
	uint64_t slack_ns = rule->period_ns / 2 < SLACK_NS ? rule->period_ns / 2 : SLACK_NS;

	if (rule->capacity == 0 || rule->period_ns == 0)
		return -EDOM;
	if (rule->capacity > SHMLIMIT_WINDOW_MAX)
		return -EFBIG;
	if ((rule->refill != 0 && rule->refill != rule->capacity) || (rule->flags & SHMLIMIT_RULE_NEXT_PAYS) != 0 ||
	    ((rule->flags & SHMLIMIT_RULE_COUNT_REFUSED) != 0 && rule->max_wait_ns != 0))
		return -EINVAL;
	if (rule->period_ns > SPAN_MAX_NS || rule->max_wait_ns > SPAN_MAX_NS ||
	    rule->period_ns + rule->max_wait_ns + slack_ns > SPAN_MAX_NS)
		return -ERANGE;

	size = cells_size_at_least(rule->capacity, size);
	cell_bits = bit_length(4 * cells_tokens(size) - 1);
	low = cell_bits + bit_length(cells_tokens(size) - 1);
	/* The finest tick whose range is long enough. */
	span_bits = bit_length(rule->period_ns + rule->max_wait_ns + slack_ns) + SPANS_SHIFT;
	if (span_bits > 64 - low)
		tick_bits = span_bits - (64 - low);
	params->capacity = rule->capacity;
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = params->den = 1;
	params->back = rule->period_ns;
	params->ahead = rule->max_wait_ns + slack_ns;
	params->shape = params_shape(low, tick_bits, SHMLIMIT_WINDOW, 0);
	params_set_extra(params, cell_bits);
	params_set_cells_size(params, size);
	params->debt = rule->max_wait_ns;
	params->max_wait_ns = rule->max_wait_ns;
	params->flags = rule->flags;
	params->count = rule->capacity;
	params->period_ns = rule->period_ns;
	return 0;
}

void window_range(const struct layout_params *params, struct shmlimit_range *out)
{
	unsigned tick_bits = params_token_bits(params), bits = 64 - params_quota_bits(params) + tick_bits;
	uint64_t reach = bits >= 64 ? UINT64_MAX : (uint64_t)1 << bits;
	uint64_t used = params->ahead + params->back + ((uint64_t)4 << tick_bits);

	out->resolution_ps = (uint64_t)1000 << tick_bits;
	out->refill_ns = params->back;
	/* An entry leaves a period after its time, and a word's may be ahead. */
	out->back_ns = used < reach ? reach - used : 0;
	out->ahead_ns = INT64_MAX;
}
