/*
 * rebase: see rebase.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rebase.h"

typedef __int128 i128;

int64_t rebase_ticks(const struct layout_params *params, struct funnel funnel, struct funnel_time at, uint64_t then_ns)
{
	unsigned quota_bits = params_quota_bits(params);
	uint64_t elapsed = at.stamp - funnel.stamp, passed = at.ticks - funnel_time(params, then_ns).ticks;

	/* Once refilled, it is less than a token old, or ahead: neither is half of the range. */
	if (elapsed <= params->back)
		return (int64_t)(passed - (elapsed >> quota_bits));
	return (int64_t)(passed + ((0 - elapsed) >> quota_bits));
}

/*
 * The whole part of ns * num / den, towards minus infinity or (up) plus infinity; |ns| < 2^65, num
 * < 2^61.
 */
static i128 ticks_of(const struct layout_params *params, i128 ns, int up)
{
	i128 product = ns * (i128)params->num, den = (i128)params->den, whole = product / den, rest = product % den;

	return whole + (up ? rest > 0 : -(rest < 0));
}

uint64_t rebase_word(const struct layout_params *params, uint64_t quota, int64_t ticks, const struct rebase *rebase)
{
	i128 later = (i128)rebase->now_ns - (i128)rebase->elapsed_ns - (i128)rebase->then_ns;
	i128 ahead = (i128)ticks + ticks_of(params, (i128)rebase->then_ns, 0) + ticks_of(params, later, 1) -
	             ticks_of(params, (i128)rebase->now_ns, 0);
	unsigned quota_bits = params_quota_bits(params), shift = params_token_bits(params) - quota_bits;
	struct funnel_time at = funnel_time(params, rebase->now_ns);
	struct funnel funnel = { quota < params->capacity ? quota : params->capacity, at.stamp, 0 };
	uint64_t missing = params->capacity - funnel.quota;

	if (ahead > 0) {
		i128 most = (i128)(params->ahead >> quota_bits);

		funnel.stamp += (uint64_t)(ahead < most ? ahead : most) << quota_bits;
	} else if (-ahead >> shift >= (i128)missing) {
		funnel = funnel_full(params, at);
	} else {
		funnel.quota += (uint64_t)(-ahead >> shift);
		funnel.stamp -= (uint64_t)(-ahead & (((i128)1 << shift) - 1)) << quota_bits;
	}
	return funnel_pack(params, funnel);
}
