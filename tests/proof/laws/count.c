/*
 * Laws of lib/algorithm/counter/count.h: a count lives as long as its time, rounded up to a tick, and is then gone; no change
 * of the rule ends one earlier. They hold for all inputs that a law does not exclude by assume(); good() is what
 * count_compile() makes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/algorithm/counter/count.c"
#include "law.h"

/* A capacity below 2^26 for up to a year, in ticks of half a millisecond: what most rules get. */
#define QUOTA_BITS 26u
#define TICK_BITS 19u
#define RANGE_NS ((uint64_t)1 << (64 - QUOTA_BITS + TICK_BITS))

static struct layout_params good(uint64_t capacity)
{
	struct layout_params t = { .capacity = capacity };

	assume(capacity >= 1 && capacity < (uint64_t)1 << QUOTA_BITS);
	t.debt = DEFAULT_PERIOD_NS;
	t.ahead = t.debt + SLACK_NS + ((uint64_t)1 << TICK_BITS);
	t.shape = params_shape(QUOTA_BITS, TICK_BITS, SHMLIMIT_COUNTER, 0);
	return t;
}

/* no word counts anything once its time is over, or lives for longer than its rule can mean, whatever its bits */
int law_read_total(uint64_t capacity, uint64_t word, uint64_t now)
{
	struct layout_params t = good(capacity);
	struct count c = count_read(&t, word, now);

	return c.n < (uint64_t)1 << QUOTA_BITS && (c.left_ns != 0 || c.n == 0) && c.left_ns <= t.ahead;
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

/* when its time is over, and for half of what a word can tell, it is none */
int law_ends(uint64_t capacity, uint64_t n, uint64_t ttl, uint64_t now, uint64_t later)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = n };

	assume(n <= capacity && ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	count_begin(&t, &c, ttl, now);
	assume(later >= c.left_ns && later - c.left_ns < RANGE_NS / 2);
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

/* a clock that steps back does not make a count live for longer than the longest time from then, and forgets nothing */
int law_steps(uint64_t capacity, uint64_t n, uint64_t ttl, uint64_t now, uint64_t step)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = n };

	assume(n <= capacity && ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	assume(step <= RANGE_NS / 2 - t.ahead && step <= now);
	count_begin(&t, &c, ttl, now);
	c = count_read(&t, count_pack(&t, c), now - step);
	return c.n == n && c.left_ns != 0 && c.left_ns <= t.ahead &&
	       (!c.stepped || c.left_ns <= t.debt + count_tick_ns(&t));
}

/* ... nor does it notice */
int false_steps(uint64_t capacity, uint64_t ttl, uint64_t now, uint64_t step)
{
	struct layout_params t = good(capacity);
	struct count c = { .n = 1 };

	assume(ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	assume(step <= RANGE_NS / 2 - t.ahead && step <= now);
	count_begin(&t, &c, ttl, now);
	return !count_read(&t, count_pack(&t, c), now - step).stepped;
}

/* what has ended stays ended when the capacity changes, and half a range later too */
int law_converts(uint64_t capacity, uint64_t other, uint64_t word, uint64_t now, uint64_t later)
{
	struct layout_params t = good(capacity), to = good(other);
	struct count c;

	assume(now < (uint64_t)1 << 62 && later < RANGE_NS / 2 - count_tick_ns(&to));
	assume(count_read(&t, word, now).left_ns == 0);
	c = count_read(&to, count_convert(&t, word, &to, now), now + later);
	return c.n == 0 && c.left_ns == 0;
}

/* ... and so does what has not */
int false_converts(uint64_t capacity, uint64_t other, uint64_t word, uint64_t now)
{
	struct layout_params t = good(capacity), to = good(other);

	assume(now < (uint64_t)1 << 62);
	return count_read(&to, count_convert(&t, word, &to, now), now).left_ns == 0;
}

/* a capacity that changes below 2^26 changes neither count nor end */
int law_keeps(uint64_t capacity, uint64_t other, uint64_t n, uint64_t ttl, uint64_t now)
{
	struct layout_params t = good(capacity), to = good(other);
	struct count c = { .n = n };

	assume(n < (uint64_t)1 << QUOTA_BITS && n != count_largest(&t));
	assume(ttl >= 1 && ttl <= t.debt && now < (uint64_t)1 << 62);
	count_begin(&t, &c, ttl, now);
	return count_convert(&t, count_pack(&t, c), &to, now) == count_pack(&t, c);
}

/* ... nor any word */
int false_keeps(uint64_t capacity, uint64_t other, uint64_t word, uint64_t now)
{
	struct layout_params t = good(capacity), to = good(other);

	return count_convert(&t, word, &to, now) == word;
}
