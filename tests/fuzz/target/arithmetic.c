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
#include "warmup.h"
#include "window.h"

#define RING 64

static int read_terms(struct input *in, uint32_t algorithm, struct layout_terms *terms)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = algorithm }, again = rule;
	struct layout_terms twice;
	int error;

	rule.flags = (uint32_t)input_number(in, 1);
	rule.capacity = input_any(in);
	rule.count = input_any(in);
	rule.period_ns = input_any(in);
	rule.max_wait_ns = input_any(in);
	rule.warmup_ns = input_any(in);
	rule.cold_factor_milli = (uint32_t)input_number(in, 4);
	error = algorithm_compile(&rule, RING, terms);
	law(error == 0 || error == -ERANGE || error == -EDOM || error == -EINVAL || error == -EFBIG, "compile: %d",
	    error);
	if (error != 0)
		return 0;
	/* What verify relies on. */
	algorithm_rule(terms, &again);
	law(algorithm_compile(&again, RING, &twice) == 0 && memcmp(&twice, terms, sizeof(twice)) == 0,
	    "its own rule compiles to something else");
	return 1;
}

static void check_until(const struct layout_terms *terms, struct funnel f, uint64_t tokens, uint64_t now_ns)
{
	uint64_t word = funnel_pack(terms, f), ns = funnel_ns_until(terms, f, tokens, funnel_time(terms, now_ns));

	if (tokens > terms->capacity) {
		law(ns == UINT64_MAX, "more than there can be, after %" PRIu64 " ns", ns);
		return;
	}
	law(funnel_leak(terms, word, funnel_time(terms, now_ns + ns)).quota >= tokens,
	    "not there after %" PRIu64 " ns", ns);
	law(ns == 0 || funnel_leak(terms, word, funnel_time(terms, now_ns + ns - 1)).quota < tokens,
	    "there before %" PRIu64 " ns", ns);
}

static void check_funnel(const struct layout_terms *terms, const struct layout_terms *other, uint64_t word,
			 uint64_t now_ns, uint64_t tokens)
{
	struct funnel_time at = funnel_time(terms, now_ns);
	struct funnel f = funnel_leak(terms, word, at), again = funnel_leak(terms, funnel_pack(terms, f), at), after = f;
	uint64_t debt;

	law(f.quota <= terms->capacity, "%" PRIu64 " tokens of %" PRIu64, f.quota, terms->capacity);
	law(again.quota == f.quota && again.stamp == f.stamp && !again.stepped, "another funnel at the same time");
	check_until(terms, f, tokens, now_ns);
	check_until(terms, f, terms->capacity, now_ns);
	if (funnel_borrow(terms, &after, tokens, at, &debt)) {
		law(debt <= terms->debt, "a debt of %" PRIu64, debt);
		/* A time ahead by less than the slack, which stands beside a quota, is one when that is gone. */
		law(debt == 0 || funnel_debt(terms, after, at) == debt, "not a debt of %" PRIu64, debt);
		law(after.quota <= f.quota, "borrowing gives");
	} else {
		law(after.quota == f.quota && after.stamp == f.stamp, "what was refused has changed it");
		law(debt != 0, "refused for a debt that is not too long");
	}
	after = f;
	funnel_charge(terms, &after, tokens, at);
	law(after.quota <= f.quota, "a charge gives");
	after = f;
	funnel_refund(terms, &after, tokens, at);
	law(after.quota <= terms->capacity && after.quota >= f.quota, "a refund takes, or fills above the brim");
	after = funnel_leak(other, funnel_convert(terms, word, other, now_ns), funnel_time(other, now_ns));
	law(after.quota <= f.quota || after.quota == other->capacity, "a change of the rule gives");
}

static void check_warmup(const struct layout_terms *terms, const struct layout_terms *other, uint64_t word,
			 uint64_t now_ns, uint64_t tokens)
{
	struct funnel_time at = funnel_time(terms, now_ns);
	struct funnel f = warmup_leak(terms, word, at), again = warmup_leak(terms, funnel_pack(terms, f), at), after = f;
	uint64_t ns;

	law(f.quota <= terms->capacity, "%" PRIu64 " units of %" PRIu64, f.quota, terms->capacity);
	law(again.quota == f.quota && again.stamp == f.stamp && !again.stepped, "another store at the same time");
	ns = warmup_ns_until_full(terms, f, at);
	again = warmup_leak(terms, funnel_pack(terms, f), funnel_time(terms, now_ns + ns));
	law(again.quota == terms->capacity && warmup_debt(terms, again, funnel_time(terms, now_ns + ns)) == 0,
	    "not full after %" PRIu64 " ns", ns);
	warmup_take(terms, &after, tokens, at);
	law(after.quota <= f.quota, "taking gives");
	law(warmup_debt(terms, after, at) <= terms->ahead, "a debt beyond the longest");
	after = f;
	warmup_refund(terms, &after, tokens, at);
	law(after.quota <= terms->capacity && after.quota >= f.quota, "a refund takes, or fills above the brim");
	after = warmup_leak(other, warmup_convert(terms, word, other, now_ns), funnel_time(other, now_ns));
	law(after.quota <= other->capacity, "a change of the rule fills above the brim");
}

static void check_window(const struct layout_terms *terms, uint64_t word, uint64_t now_ns)
{
	struct window w = window_unpack(terms, word, RING, now_ns), again;

	law(w.n < 2 * layout_cells(RING) && w.k >= 1 && w.k <= RING, "place %" PRIu64 ", taken %" PRIu64, w.n, w.k);
	again = window_unpack(terms, window_pack(terms, w), RING, now_ns);
	law(again.n == w.n && again.k == w.k && again.last_ns == w.last_ns, "another window at the same time");
	law(window_wait(terms, now_ns, now_ns) == terms->back, "what is admitted now leaves after a period");
}

static void check_count(const struct layout_terms *terms, const struct layout_terms *other, uint64_t word,
			uint64_t now_ns, uint64_t ttl_ns)
{
	struct count c = count_read(terms, word, now_ns), again = count_read(terms, count_pack(terms, c), now_ns);

	law(c.n <= terms->capacity, "%" PRIu64 " counted of %" PRIu64, c.n, terms->capacity);
	law(c.left_ns != 0 || c.n == 0, "a count without time");
	law(again.n == c.n && again.left_ns == c.left_ns, "another count at the same time");
	law(count_read(terms, word, now_ns + c.left_ns).left_ns == 0, "not over after %" PRIu64 " ns", c.left_ns);
	again = count_read(other, count_convert(terms, word, other, now_ns), now_ns);
	law(again.n == (c.n < other->capacity ? c.n : other->capacity), "a change of the rule makes %" PRIu64 " of it", again.n);
	law(again.left_ns >= (c.left_ns < other->debt ? c.left_ns : other->debt), "a change of the rule ends it earlier");
	if (ttl_ns == 0 || ttl_ns > terms->debt)
		return;
	c = (struct count){ .n = terms->capacity };
	count_begin(terms, &c, ttl_ns, now_ns);
	again = count_read(terms, count_pack(terms, c), now_ns);
	law(again.n == terms->capacity && again.left_ns >= ttl_ns && again.left_ns < ttl_ns + count_tick_ns(terms),
	    "lives %" PRIu64 " ns, not %" PRIu64, again.left_ns, ttl_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint32_t algorithm = (uint32_t)input_number(&in, 1) % 5;
	struct layout_terms terms, other;
	uint64_t word, now_ns, tokens;

	if (!read_terms(&in, algorithm, &terms) || !read_terms(&in, algorithm, &other))
		return 0;
	word = input_number(&in, 8);
	now_ns = input_number(&in, 8) / 4; /* 146 years: no wait of a rule ends beyond 2^64 */
	tokens = input_any(&in);
	switch (algorithm) {
	case SHMLIMIT_FUNNEL:
		check_funnel(&terms, &other, word, now_ns, tokens);
		break;
	case SHMLIMIT_WARMUP:
		check_warmup(&terms, &other, word, now_ns, tokens);
		break;
	case SHMLIMIT_WINDOW:
		check_window(&terms, word, now_ns);
		break;
	case SHMLIMIT_COUNTER:
		check_count(&terms, &other, word, now_ns, tokens);
		break;
	}
	return 0;
}
