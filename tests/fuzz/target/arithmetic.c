/*
 * arithmetic: whatever a rule asks for is refused or compiled; under what was
 * compiled, any word at any time says what a rule can, says the same when it is
 * asked again, and keeps its promises to the nanosecond (I7, I12).
 *
 *	input  [ algorithm, 1 ] [ two rules, numbers: see input_any() ] [ word, 8 ] [ time, 8 ] [ tokens, any ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"
#include "fuzz.h"
#include "gcra.h"
#include "hold.h"
#include "warmup.h"
#include "window.h"
#include "zone.h"

static int read_params(struct input *in, uint32_t algorithm, struct layout_params *params)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = algorithm }, again = rule;
	struct layout_params twice;
	int error;

	rule.flags = (uint32_t)input_number(in, 1);
	rule.capacity = input_any(in);
	rule.refill = input_any(in);
	rule.period_ns = input_any(in);
	rule.max_wait_ns = input_any(in);
	rule.warmup_ns = input_any(in);
	rule.cold_factor_milli = (uint32_t)input_number(in, 4);
	error = algorithm_compile(&rule, 0, params);
	law(error == 0 || error == -ERANGE || error == -EDOM || error == -EINVAL || error == -EFBIG, "compile: %d",
	    error);
	if (error != 0)
		return 0;
	/* What verify relies on. */
	algorithm_rule(params, &again);
	law(algorithm_compile(&again, 0, &twice) == 0 && memcmp(&twice, params, sizeof(twice)) == 0,
	    "its own rule compiles to something else");
	return 1;
}

static void check_until(const struct layout_params *params, struct funnel f, uint64_t tokens, uint64_t now_ns)
{
	uint64_t word = funnel_pack(params, f), ns = funnel_ns_until(params, f, tokens, funnel_time(params, now_ns));

	if (tokens > params->capacity) {
		law(ns == UINT64_MAX, "more than there can be, after %" PRIu64 " ns", ns);
		return;
	}
	law(funnel_refill(params, word, funnel_time(params, now_ns + ns)).quota >= tokens,
	    "not there after %" PRIu64 " ns", ns);
	law(ns == 0 || funnel_refill(params, word, funnel_time(params, now_ns + ns - 1)).quota < tokens,
	    "there before %" PRIu64 " ns", ns);
}

static void check_funnel(const struct layout_params *params, const struct layout_params *other, uint64_t word,
                         uint64_t now_ns, uint64_t tokens)
{
	struct funnel_time at = funnel_time(params, now_ns);
	struct funnel f = funnel_refill(params, word, at), again = funnel_refill(params, funnel_pack(params, f), at),
		      after = f;
	uint64_t debt;

	law(f.quota <= params->capacity, "%" PRIu64 " tokens of %" PRIu64, f.quota, params->capacity);
	law(again.quota == f.quota && again.stamp == f.stamp && !again.stepped, "another funnel at the same time");
	check_until(params, f, tokens, now_ns);
	check_until(params, f, params->capacity, now_ns);
	if (funnel_borrow(params, &after, tokens, at, &debt)) {
		law(debt <= params->debt, "a debt of %" PRIu64, debt);
		/* A time ahead by less than the slack, which stands beside a quota, is one when that is gone. */
		law(debt == 0 || funnel_debt(params, after, at) == debt, "not a debt of %" PRIu64, debt);
		law(after.quota <= f.quota, "borrowing gives");
	} else {
		law(after.quota == f.quota && after.stamp == f.stamp, "what was refused has changed it");
		law(debt != 0, "refused for a debt that is not too long");
	}
	after = f;
	funnel_charge(params, &after, tokens, at);
	law(after.quota <= f.quota, "a charge gives");
	after = f;
	funnel_refund(params, &after, tokens, at);
	law(after.quota <= params->capacity && after.quota >= f.quota, "a refund takes, or fills above the brim");
	after = funnel_refill(other, funnel_convert(params, word, other, now_ns), funnel_time(other, now_ns));
	law(after.quota <= f.quota || after.quota == other->capacity, "a change of the rule gives");
}

static void check_warmup(const struct layout_params *params, const struct layout_params *other, uint64_t word,
                         uint64_t now_ns, uint64_t tokens)
{
	struct funnel_time at = funnel_time(params, now_ns);
	struct funnel f = warmup_refill(params, word, at), again = warmup_refill(params, funnel_pack(params, f), at),
		      after = f;
	uint64_t ns;

	law(f.quota <= params->capacity, "%" PRIu64 " units of %" PRIu64, f.quota, params->capacity);
	law(again.quota == f.quota && again.stamp == f.stamp && !again.stepped, "another store at the same time");
	ns = warmup_ns_until_full(params, f, at);
	again = warmup_refill(params, funnel_pack(params, f), funnel_time(params, now_ns + ns));
	law(again.quota == params->capacity && warmup_debt(params, again, funnel_time(params, now_ns + ns)) == 0,
	    "not full after %" PRIu64 " ns", ns);
	warmup_take(params, &after, tokens, at);
	/* A part of a unit that had refilled may be rounded up to one. */
	law(after.quota <= f.quota + 1, "taking gives");
	law(warmup_debt(params, after, at) <= params->ahead, "a debt beyond the longest");
	after = f;
	warmup_refund(params, &after, tokens, at);
	law(after.quota <= params->capacity && after.quota >= f.quota, "a refund takes, or fills above the brim");
	after = warmup_refill(other, warmup_convert(params, word, other, now_ns), funnel_time(other, now_ns));
	law(after.quota <= other->capacity, "a change of the rule fills above the brim");
}

static void check_window(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	struct window w = window_unpack(params, word, now_ns), again;

	law(w.n < 2 * window_cells(params) && w.k >= 1 && w.k <= params_tokens(params),
	    "place %" PRIu64 ", taken %" PRIu64, w.n, w.k);
	again = window_unpack(params, window_pack(params, w), now_ns);
	law(again.n == w.n && again.k == w.k && again.last_ns == w.last_ns, "another window at the same time");
	law(window_wait(params, now_ns, now_ns) == params->back, "what is admitted now leaves after a period");
}

static void check_count(const struct layout_params *params, const struct layout_params *other, uint64_t word,
                        uint64_t now_ns, uint64_t ttl_ns)
{
	struct count c = count_read(params, word, now_ns), again = count_read(params, count_pack(params, c), now_ns);

	law(c.n <= count_largest(params), "%" PRIu64 " counted of %" PRIu64, c.n, count_largest(params));
	law(c.left_ns <= params->ahead, "it lives for %" PRIu64 " ns", c.left_ns);
	law(c.left_ns != 0 || c.n == 0, "a count without time");
	law(again.n == c.n && again.left_ns == c.left_ns, "another count at the same time");
	law(count_read(params, count_pack(params, c), now_ns + c.left_ns).left_ns == 0, "not over after %" PRIu64 " ns",
	    c.left_ns);
	again = count_read(other, count_convert(params, word, other, now_ns), now_ns);
	law(again.n == (c.n < count_largest(other) ? c.n : count_largest(other)) ||
	            (count_is_more(params, &c) && again.n == other->capacity),
	    "a change of the rule makes %" PRIu64 " of it", again.n);
	law(again.left_ns >= (c.left_ns < other->debt ? c.left_ns : other->debt),
	    "a change of the rule ends it earlier");
	if (ttl_ns == 0 || ttl_ns > params->debt)
		return;
	c = (struct count){ .n = params->capacity };
	count_begin(params, &c, ttl_ns, now_ns);
	again = count_read(params, count_pack(params, c), now_ns);
	law(again.n == params->capacity && again.left_ns >= ttl_ns && again.left_ns < ttl_ns + count_tick_ns(params),
	    "lives %" PRIu64 " ns, not %" PRIu64, again.left_ns, ttl_ns);
}

/* Any zone, and any period of its calendar. */
static void check_zone(uint64_t word, uint64_t other, uint64_t now_ns)
{
	const struct zone zone = { { word, other } };
	int64_t now_s = (int64_t)(now_ns / 1000000000), next_s;

	law(zone_offset(&zone, now_s) >= -131072 && zone_offset(&zone, now_s) < 131072, "an offset of days");
	for (int unit = CALENDAR_HOUR; unit <= CALENDAR_MONTH; unit++) {
		next_s = zone_next(&zone, (enum calendar)unit, now_s);
		law(next_s > now_s, "a period %d ends %" PRId64 " s before now", unit, now_s - next_s);
		law(!zone_is_sound(&zone) || (uint64_t)(next_s - now_s) <= zone_longest(&zone, (enum calendar)unit),
		    "a period %d ends after %" PRId64 " s", unit, next_s - now_s);
	}
}

static void check_hold(const struct layout_params *params, uint64_t word, uint64_t now_ns, uint64_t before)
{
	uint64_t left_ns = hold_left_ns(params, before, word, now_ns), cell = hold_cell(params, before, word, now_ns);
	uint64_t next = hold_word_next(word, hold_reach(word, params_tokens(params)), now_ns);

	law(left_ns <= params->ahead, "held for %" PRIu64 " ns", left_ns);
	if (hold_is_impossible(params, before, word, now_ns)) {
		uint64_t shortened = hold_shortened(params, before, now_ns);

		law(hold_is_same(shortened, before), "its holder does not find it");
		law(!hold_is_held(shortened, word, now_ns + params->back + HOLD_TICK_NS), "it does not end");
	} else {
		law(!hold_is_held(before, word, now_ns + left_ns), "not over after %" PRIu64 " ns", left_ns);
	}
	law(cell != before && hold_without(cell) != before, "a place comes again");
	left_ns = hold_left_ns(params, cell, word, now_ns);
	law(left_ns >= params->back && left_ns < params->back + HOLD_TICK_NS, "held for %" PRIu64 " ns", left_ns);
	law(hold_left_ns(params, cell, next, now_ns) == left_ns, "the next word ends it");
	law(!hold_is_held(hold_without(cell), word, now_ns), "what was left is held");
	law(!hold_is_held(cell, word ^ 1, now_ns), "what another claim held is held");
	law(next != word && hold_reach(next, params_tokens(params)) == hold_reach(word, params_tokens(params)),
	    "a word comes again");
}

static void check_gcra(const struct layout_params *params, uint64_t word, uint64_t now_ns, uint64_t tokens)
{
	struct gcra g = gcra_of(params);
	struct gcra_state state = gcra_read(word, now_ns, g.tolerance, GCRA_AHEAD), again;
	int64_t room = gcra_state_room(&g, &state);
	uint64_t cost;

	if (g.capacity == 0)
		return;
	law(room <= (int64_t)g.tolerance && room >= -(int64_t)GCRA_AHEAD, "%" PRId64 " ticks of room", room);
	again = gcra_read(gcra_pack(room, state.place, now_ns), now_ns, g.tolerance, GCRA_AHEAD);
	law(!again.stepped && gcra_state_room(&g, &again) == room && again.place == state.place,
	    "another time at the same time");
	again = gcra_read(word, now_ns + gcra_ns(gcra_until_over(&state)), g.tolerance, GCRA_AHEAD);
	law(state.stepped || gcra_is_over(&again), "not full in time");
	law(gcra_place(g.tolerance) < GCRA_PLACES, "place %u", gcra_place(g.tolerance));
	law(gcra_cost(&g, g.capacity) == g.tolerance, "all of it costs %" PRIu64, gcra_cost(&g, g.capacity));
	tokens %= g.capacity + 1;
	cost = gcra_cost(&g, tokens);
	law(cost == gcra_cost_within(&g, tokens), "within the capacity a cost of %" PRIu64,
	    gcra_cost_within(&g, tokens));
	law(cost <= g.tolerance, "a part costs more than all");
	/* I1: a token takes no less time than the rule gives it. */
	law((unsigned __int128)cost * params->count >= (unsigned __int128)tokens * params->period_ns << GCRA_TICK_BITS,
	    "%" PRIu64 " tokens cost only %" PRIu64, tokens, cost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint32_t algorithm = (uint32_t)input_number(&in, 1) % 7;
	struct layout_params params, other;
	uint64_t word, now_ns, tokens;

	if (!read_params(&in, algorithm, &params) || !read_params(&in, algorithm, &other))
		return 0;
	word = input_number(&in, 8);
	now_ns = input_number(&in, 8) / 4; /* 146 years: no wait of a rule ends beyond 2^64 */
	tokens = input_any(&in);
	switch (algorithm) {
	case SHMLIMIT_FUNNEL:
		check_funnel(&params, &other, word, now_ns, tokens);
		break;
	case SHMLIMIT_WARMUP:
		check_warmup(&params, &other, word, now_ns, tokens);
		break;
	case SHMLIMIT_WINDOW:
		check_window(&params, word, now_ns);
		break;
	case SHMLIMIT_COUNTER:
		check_count(&params, &other, word, now_ns, tokens);
		check_zone(word, tokens, now_ns);
		break;
	case SHMLIMIT_HOLD:
		check_hold(&params, word, now_ns, tokens);
		break;
	case SHMLIMIT_GCRA:
		check_gcra(&params, word, now_ns, tokens);
		break;
	}
	return 0;
}
