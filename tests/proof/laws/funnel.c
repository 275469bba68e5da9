/*
 * Laws of lib/algorithm/funnel/funnel.h, lib/algorithm/funnel/funnel.c: refilling, borrowing, charging, refunding, rescaling. They
 * hold for all inputs that a law does not exclude by assume(). What a law assumes is what funnel_compile() makes
 * (good()), and tests/unit/funnel checks that of the rules it compiles.
 *
 * `credit` is what a funnel is worth: its tokens and the part of the next one that has come back, less what is owed. It
 * is counted in stamps, 2^params_token_bits() a token.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/algorithm/funnel/funnel.c"
#include "../../../lib/algorithm/funnel/funnel_traits.c"
#include "../../../lib/algorithm/rebase.c"
#include "law.h"

/* What every rule's parameters are. The sums are what keeps past and future apart. */
static int good(const struct layout_params *t)
{
	unsigned q = params_quota_bits(t), token = params_token_bits(t);
	uint64_t grain = ((uint64_t)1 << q) - 1;

	/* Without a quota, half of the range is unused. */
	if (q == 0 ? t->back > INT64_MAX || t->ahead > INT64_MAX - t->back
	           : q > 48 || token < q || t->capacity > grain || t->capacity <= grain >> 1 ||
	                     t->ahead >= UINT64_MAX - t->back)
		return 0;
	return t->capacity >= 1 && ((t->back | t->ahead | t->debt) & grain) == 0 && t->debt <= t->ahead &&
	       /* A time to full is past, and the slack is no longer. */
	       (u128)t->capacity << token <= t->back && t->ahead - t->debt <= (u128)t->capacity << token;
}

static struct layout_params params_of(unsigned q, unsigned token, uint64_t capacity, uint64_t back, uint64_t ahead,
                                      uint64_t debt)
{
	struct layout_params t = { .capacity = capacity, .back = back, .ahead = ahead, .debt = debt };

	assume(q <= 48 && token <= 63);
	t.shape = params_shape(q & 63, token & 63, SHMLIMIT_FUNNEL, 0);
	return t;
}

/* A time whose tick is `stamp`, as funnel_time() gives it. */
static struct funnel_time time_at(const struct layout_params *t, uint64_t stamp)
{
	struct funnel_time at = { 0, stamp >> params_quota_bits(t),
		                  stamp & ~(((uint64_t)1 << params_quota_bits(t)) - 1) };

	return at;
}

/* Of a narrow() funnel: there it has no more than 63 bits. */
static int64_t credit(const struct layout_params *t, struct funnel f, struct funnel_time at)
{
	return (int64_t)((f.quota << params_token_bits(t)) + at.stamp - f.stamp);
}

/* What a word says before it comes back. */
static struct funnel unpacked(const struct layout_params *t, uint64_t word)
{
	uint64_t mask = ((uint64_t)1 << params_quota_bits(t)) - 1;
	struct funnel f = { word & mask, word & ~mask, 0 };

	return f;
}

/*
 * Where a law adds up several shifted differences, z3 proves it for narrow
 * funnels: 3 bits of quota, 5 of a token, 512 stamps to either side of NOW. The
 * arithmetic knows nothing of widths but where the ends are, and those have laws
 * without this bound; it knows nothing of stamps but their differences.
 */
#define NOW ((uint64_t)1 << 20)
#define NARROW params_of(each_q, each_token, capacity & 7, back & 511, ahead & 511, debt & 511)

static uint64_t near_now(uint64_t stamp)
{
	return NOW - 512 + (stamp & 1023);
}

static int narrow(const struct layout_params *t)
{
	return params_quota_bits(t) <= 3 && params_token_bits(t) <= 5 && good(t);
}

/* What a refill leaves: see law_refilled. A stamp ahead is a debt, or another process's clock reading. */
static int refilled(const struct layout_params *t, struct funnel f, struct funnel_time at)
{
	if (f.quota > t->capacity || (f.stamp & (((uint64_t)1 << params_quota_bits(t)) - 1)) != 0)
		return 0;
	if (params_quota_bits(t) == 0 && f.quota != 0 && at.stamp - f.stamp > t->back)
		return 0;
	return at.stamp - f.stamp <= t->back
	               ? at.stamp - f.stamp < (funnel_is_full(t, f) ? 1 : (uint64_t)1 << params_token_bits(t))
	               : f.stamp - at.stamp <= t->ahead;
}

#define TERMS unsigned q, unsigned token, uint64_t capacity, uint64_t back, uint64_t ahead, uint64_t debt
#define EACH unsigned each_q, unsigned each_token, uint64_t capacity, uint64_t back, uint64_t ahead, uint64_t debt
#define GIVEN params_of(q, token, capacity, back, ahead, debt)

/* whatever the bits of parameters, word and time, a funnel holds no more than its capacity */
int law_refill_total(uint64_t shape, uint64_t capacity, uint64_t back, uint64_t ahead, uint64_t debt, uint64_t word,
                     uint64_t stamp)
{
	struct layout_params t = { .shape = shape, .capacity = capacity, .back = back, .ahead = ahead, .debt = debt };
	struct funnel_time at = { 0, 0, stamp };

	return funnel_refill(&t, word, at).quota <= capacity;
}

/* ... and so it does without the look at damaged words */
int false_refill_total(uint64_t shape, uint64_t capacity, uint64_t word)
{
	struct layout_params t = { .shape = shape };

	assume(capacity > 0);
	return unpacked(&t, word).quota <= capacity;
}

/* packing and unpacking give back what was packed */
int law_round_trip(TERMS, uint64_t quota, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel f = { quota, time_at(&t, stamp).stamp, 0 }, g;

	assume(good(&t) && q != 0 && quota <= capacity);
	g = unpacked(&t, funnel_pack(&t, f));
	return g.quota == quota && g.stamp == f.stamp;
}

/* ... of a quota above the capacity */
int false_round_trip(TERMS, uint64_t quota, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel f = { quota, time_at(&t, stamp).stamp, 0 };

	assume(good(&t) && q != 0);
	return unpacked(&t, funnel_pack(&t, f)).quota == quota;
}

/* what has come back up to now and is packed is the same funnel now, with a quota in the word or without */
int law_same_moment(EACH, uint64_t quota, uint64_t stamp)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel f = { quota & 7, near_now(stamp), 0 }, g;

	assume(narrow(&t) && refilled(&t, f, at));
	g = funnel_refill(&t, funnel_pack(&t, f), at);
	return g.quota == f.quota && g.stamp == f.stamp && !g.stepped;
}

/* ... of one that is ahead with tokens left, as a word without a quota cannot be */
int false_same_moment(EACH, uint64_t quota, uint64_t stamp)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel f = { quota & 7, near_now(stamp), 0 };

	assume(narrow(&t) && f.quota <= t.capacity && f.stamp - NOW <= t.ahead);
	return funnel_refill(&t, funnel_pack(&t, f), at).quota == f.quota;
}

/* without a quota, taking moves the word on by as many tokens' time: from where it is, or where a full funnel's is */
int law_take_moves(EACH, uint64_t word, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel f;

	assume(narrow(&t) && each_q == 0 && NOW - near_now(word) <= t.back);
	f = funnel_refill(&t, near_now(word), at);
	assume(tokens <= f.quota);
	f.quota -= tokens;
	if (NOW - near_now(word) > t.capacity << each_token)
		return funnel_pack(&t, f) == NOW - (t.capacity << each_token) + (tokens << each_token);
	return funnel_pack(&t, f) == near_now(word) + (tokens << each_token);
}

/* ... also of one that has been full for a while */
int false_take_moves(EACH, uint64_t word, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel f;

	assume(narrow(&t) && each_q == 0 && NOW - near_now(word) <= t.back);
	f = funnel_refill(&t, near_now(word), at);
	assume(tokens <= f.quota);
	f.quota -= tokens;
	return funnel_pack(&t, f) == near_now(word) + (tokens << each_token);
}

/* a stamp up to `back` ago is past, and one up to 2^64 - back - 1 ahead is not, modulo 2^64 */
int law_past(TERMS, uint64_t word, uint64_t distance, unsigned is_ahead)
{
	struct layout_params t = GIVEN;
	struct funnel_time at;

	assume(good(&t) && (is_ahead ? distance >= 1 && distance <= UINT64_MAX - back : distance <= back));
	at.stamp = unpacked(&t, word).stamp + (is_ahead ? -distance : distance);
	return funnel_is_past(&t, word, at) == !is_ahead;
}

/* ... one further ahead is not either */
int false_past(TERMS, uint64_t word, uint64_t distance)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = { .stamp = unpacked(&t, word).stamp - distance };

	assume(good(&t) && distance >= 1);
	return !funnel_is_past(&t, word, at);
}

/* a refill gives what time gave: whole tokens, and the rest stays in the stamp; or the funnel is full, with no more */
int law_refill_conserves(TERMS, uint64_t word, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp);
	struct funnel before = unpacked(&t, word), after;
	uint64_t elapsed = at.stamp - before.stamp, tokens;

	assume(good(&t) && before.quota <= capacity && (elapsed <= back || before.stamp - at.stamp <= ahead));
	after = funnel_refill(&t, word, at);
	tokens = after.quota - before.quota;
	if (elapsed > back)
		return tokens == 0 && after.stamp == before.stamp;
	if (tokens > elapsed >> token)
		return 0;
	return funnel_is_full(&t, after)
	               ? after.stamp == at.stamp
	               : after.stamp - before.stamp == tokens << token && at.stamp - after.stamp < (uint64_t)1 << token;
}

/* ... where a refill sets the time to now, as if there were no fractions */
int false_refill_conserves(TERMS, uint64_t word, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp);
	struct funnel before = unpacked(&t, word), after;

	assume(good(&t) && before.quota <= capacity && funnel_is_past(&t, word, at));
	after = funnel_refill(&t, word, at);
	after.stamp = at.stamp;
	return funnel_is_full(&t, after) || after.stamp - before.stamp == (after.quota - before.quota) << token;
}

/* what has come back up to now is less than a token behind, or ahead no further than is honest, whatever the word */
int law_refilled(EACH, uint64_t word)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);

	assume(narrow(&t));
	return refilled(&t, funnel_refill(&t, near_now(word), at), at);
}

/* ... ahead no further than the longest debt */
int false_refilled(TERMS, uint64_t word, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp);
	struct funnel f;

	assume(good(&t));
	f = funnel_refill(&t, word, at);
	return at.stamp - f.stamp <= back || f.stamp - at.stamp <= debt;
}

/* a funnel that is looked at in between is what it would have been: no rounding adds up, and time takes nothing */
int law_refill_in_two_steps(EACH, uint64_t word, uint64_t stamp, uint64_t later)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, near_now(stamp)),
			   then = { 0, 0, at.stamp + time_at(&t, later & 511).stamp };
	struct funnel before = unpacked(&t, near_now(word)), once, half, twice;

	assume(narrow(&t) && before.quota <= t.capacity && time_at(&t, later & 511).stamp <= t.back);
	/* Past, and past still; or ahead, no further than is honest. */
	assume(at.stamp - before.stamp <= t.back
	               ? then.stamp - before.stamp <= t.back && at.stamp - before.stamp <= then.stamp - before.stamp
	               : before.stamp - at.stamp <= t.ahead);
	once = funnel_refill(&t, near_now(word), then);
	half = funnel_refill(&t, near_now(word), at);
	twice = funnel_refill(&t, funnel_pack(&t, half), then);
	return half.quota >= before.quota && once.quota >= half.quota && once.quota == twice.quota &&
	       once.stamp == twice.stamp;
}

/* ... with a whole token rounded up at the first look */
int false_refill_in_two_steps(TERMS, uint64_t word, uint64_t stamp, uint64_t later)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp), then = time_at(&t, stamp + later);
	struct funnel once, half;

	assume(good(&t) && unpacked(&t, word).quota <= capacity && later <= back);
	assume(funnel_is_past(&t, word, at) && funnel_is_past(&t, word, then));
	once = funnel_refill(&t, word, then);
	half = funnel_refill(&t, word, at);
	half.quota += half.stamp != at.stamp && half.quota < capacity;
	return once.quota == funnel_refill(&t, funnel_pack(&t, half), then).quota;
}

/* a time further ahead than is honest is set to the longest debt, or to now; the quota stays what it was */
int law_impossible(TERMS, uint64_t word, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp);
	struct funnel before = unpacked(&t, word), after;

	assume(good(&t) && before.quota <= capacity && !funnel_is_past(&t, word, at) &&
	       before.stamp - at.stamp > ahead);
	after = funnel_refill(&t, word, at);
	return after.stepped && after.quota == before.quota &&
	       after.stamp - at.stamp == (after.quota == 0 ? debt : 0) && funnel_debt(&t, after, at) <= debt;
}

/* ... forgiving the debt */
int false_impossible(TERMS, uint64_t word, uint64_t stamp)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, stamp);

	assume(good(&t) && !funnel_is_past(&t, word, at));
	return funnel_debt(&t, funnel_refill(&t, word, at), at) == 0;
}

/* what is taken or borrowed is taken exactly, and the debt is no longer than the longest; else nothing changes */
int law_borrow(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;
	uint64_t owed, borrowed;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	if (!funnel_borrow(&t, &after, tokens, at, &owed))
		return after.quota == before.quota && after.stamp == before.stamp &&
		       (int64_t)(owed + t.debt) == (int64_t)(tokens << each_token) - credit(&t, before, at);
	borrowed = tokens - (before.quota - after.quota);
	return borrowed == 0 ? after.stamp == before.stamp && owed == 0 && after.quota <= before.quota
	                     : after.quota == 0 && after.stamp - before.stamp == borrowed << each_token &&
	                               owed <= t.debt && after.stamp - at.stamp == owed;
}

/* ... whatever the bits and the number of tokens: the debt is no longer than the longest, or more than none too long */
int law_borrow_total(TERMS, uint64_t quota, uint64_t stamp, uint64_t now, uint64_t tokens)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, now);
	struct funnel before = { quota, stamp, 0 }, after = before;
	uint64_t owed;

	if (funnel_borrow(&t, &after, tokens, at, &owed))
		return owed <= debt && after.quota <= quota;
	return owed > 0 && after.quota == quota && after.stamp == stamp;
}

/* ... with the sum of product and debt left to wrap */
int false_borrow(TERMS, uint64_t quota, uint64_t stamp, uint64_t now, uint64_t tokens)
{
	struct layout_params t = GIVEN;
	struct funnel_time at = time_at(&t, now);
	struct funnel f = { quota, stamp, 0 };
	uint64_t length;

	assume(good(&t) && refilled(&t, f, at));
	assume(tokens > f.quota);
	length = (tokens - f.quota) << params_token_bits(&t);
	return length >> params_token_bits(&t) == tokens - f.quota || length - (at.stamp - f.stamp) > debt;
}

/* a charge takes all of it, or goes to the longest debt: it never leaves more than was there, also by a late clock */
int law_charge(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	funnel_charge(&t, &after, tokens, at);
	return credit(&t, after, at) <= credit(&t, before, at) &&
	       (credit(&t, before, at) - credit(&t, after, at) == (int64_t)tokens << params_token_bits(&t) ||
	        (after.quota == 0 && after.stamp - at.stamp >= t.debt && after.stamp - at.stamp <= t.ahead));
}

/* ... always all of it */
int false_charge(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	funnel_charge(&t, &after, tokens, at);
	return credit(&t, before, at) - credit(&t, after, at) == (int64_t)tokens << params_token_bits(&t);
}

/* a refund gives back as many tokens, or the funnel is full; it never gives more than those */
int law_refund(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;
	int64_t given;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	/* What another's later clock left there is not owed: from then on it is as if the refund were of then. */
	if (before.quota != 0 && at.stamp - before.stamp > t.back)
		at.stamp = before.stamp;
	funnel_refund(&t, &after, tokens, at);
	given = credit(&t, after, at) - credit(&t, before, at);
	return after.quota <= t.capacity && given <= (int64_t)tokens << params_token_bits(&t) &&
	       (given == (int64_t)tokens << params_token_bits(&t) || funnel_is_full(&t, after));
}

/* ... also where it fills */
int false_refund(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	funnel_refund(&t, &after, tokens, at);
	return credit(&t, after, at) - credit(&t, before, at) == (int64_t)tokens << params_token_bits(&t);
}

/* what is borrowed and given back at once leaves the funnel as it was */
int law_repay(EACH, uint64_t quota, uint64_t stamp, uint64_t tokens)
{
	struct layout_params t = NARROW;
	struct funnel_time at = time_at(&t, NOW);
	struct funnel before = { quota & 7, near_now(stamp), 0 }, after = before;
	uint64_t owed;

	assume(narrow(&t) && refilled(&t, before, at));
	tokens &= 63;
	if (!funnel_borrow(&t, &after, tokens, at, &owed))
		return 1;
	funnel_refund(&t, &after, tokens, at);
	return credit(&t, after, at) == credit(&t, before, at) || funnel_is_full(&t, before);
}

/* a length in other ticks is as many tokens, less than a grain off: never more rounding down, never less rounding up */
int law_rescale(unsigned from_q, unsigned from_token, unsigned to_q, unsigned to_token, uint64_t stamp, unsigned up)
{
	struct layout_params from = params_of(from_q, from_token, 0, 0, 0, 0),
			     to = params_of(to_q, to_token, 0, 0, 0, 0);
	uint64_t scaled = rescale(&from, stamp, &to, up != 0);
	unsigned __int128 exact = (unsigned __int128)stamp << to_token, got = (unsigned __int128)scaled << from_token;

	assume(from_token >= from_q && to_token >= to_q);
	if ((scaled & (((uint64_t)1 << to_q) - 1)) != 0)
		return 0;
	if (scaled == (UINT64_MAX & ~(((uint64_t)1 << to_q) - 1)))
		return got <= exact || up; /* saturated */
	return up ? got >= exact : got <= exact;
}

/* ... rounding to the nearest */
int false_rescale(unsigned to_q, unsigned from_token, unsigned to_token, uint64_t stamp)
{
	struct layout_params from = params_of(1, from_token, 0, 0, 0, 0), to = params_of(to_q, to_token, 0, 0, 0, 0);

	assume(from_token >= 1 && to_token >= to_q && stamp < (uint64_t)1 << 40);
	return rescale(&from, stamp, &to, 0) == rescale(&from, stamp, &to, 1);
}
