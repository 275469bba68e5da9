/*
 * Laws of lib/algorithm/count.h: a count lives as long as its time, rounded up to a tick, and is then gone; no change
 * of the rule ends one earlier. They hold for all inputs that a law does not exclude by assume(); good() is what
 * count_compile() makes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/algorithm/count.c"
#include "law.h"

/* 2^31 - 1 in ticks of half a millisecond: what a rule gets by default. */
#define QUOTA_BITS 31u
#define TICK_BITS 19u

static struct layout_params good(uint64_t capacity)
{
	struct layout_params t = { .capacity = capacity };

	assume(capacity >= 1 && capacity < (uint64_t)1 << QUOTA_BITS);
	t.debt = longest_for(TICK_BITS, QUOTA_BITS);
	t.ahead = t.debt + SLACK_NS + ((uint64_t)1 << TICK_BITS);
	t.shape = params_shape(QUOTA_BITS, TICK_BITS, SHMLIMIT_COUNTER, 0);
	return t;
}

/* no word counts more than the capacity, or anything once its time is over, whatever its bits */
int law_read_total(uint64_t capacity, uint64_t word, uint64_t now)
{
	struct layout_params t = good(capacity);
	struct count c = count_read(&t, word, now);

	return c.n <= capacity && (c.left_ns != 0 || c.n == 0) && c.left_ns <= t.ahead;
}

/* ... and none counts 0 */
int false_read_total(uint64_t capacity, uint64_t word, uint64_t now)
{
	struct layout_params t = good(capacity);

	return count_read(&t, word, now).n != 0;
}

/* a count that begins lives for the time that was asked for, less than a tick longer, whenever it is read by then */
int law_lives(uint64_t capacity, uint64_t n, uint64_t ttl, uint64_t now, uint64_t later)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = n };

	assume(n <= capacity && ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62 && later < ttl);
	count_begin(&t, &c, ttl, now);
	c = count_read(&t, count_pack(&t, c), now + later);
	return c.n == n && c.left_ns >= ttl - later && c.left_ns - (ttl - later) < count_tick_ns(&t);
}

/* ... and to the nanosecond */
int false_lives(uint64_t capacity, uint64_t ttl, uint64_t now)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = 1 };

	assume(ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	count_begin(&t, &c, ttl, now);
	return count_read(&t, count_pack(&t, c), now).left_ns == ttl;
}

/* when its time is over, and for as long again and once more, it is none */
int law_ends(uint64_t capacity, uint64_t n, uint64_t ttl, uint64_t now, uint64_t later)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = n };

	assume(n <= capacity && ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	count_begin(&t, &c, ttl, now);
	assume(later >= c.left_ns && later - c.left_ns <= 2 * t.debt);
	c = count_read(&t, count_pack(&t, c), now + later);
	return c.n == 0 && c.left_ns == 0;
}

/* ... and for ever */
int false_ends(uint64_t capacity, uint64_t n, uint64_t ttl, uint64_t now, uint64_t later)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = n };

	assume(n >= 1 && n <= capacity && ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	count_begin(&t, &c, ttl, now);
	assume(later >= c.left_ns);
	return count_read(&t, count_pack(&t, c), now + later).n == 0;
}
