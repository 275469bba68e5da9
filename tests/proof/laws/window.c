/*
 * Laws of lib/algorithm/window/window.h: what a word says, where cells stand, when an admission
 * has left. For all inputs but where a law assumes; good() is what
 * window_compile() makes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/algorithm/window/window.c"
#include "law.h"

#define layout_cells(most) (2 * (uint64_t)(most))

#define TERMS unsigned low, unsigned cell_bits, unsigned tick_bits, unsigned size, uint64_t back, uint64_t ahead

/* Bits for twice a ring's cells, and for 0 to most - 1; a timestamp that reaches over four times `back` and `ahead`. */
static struct layout_params good(TERMS)
{
	struct layout_params t = { .back = back, .ahead = ahead };

	uint64_t most = cells_tokens(size & (CELLS_SIZES - 1));

	assume(size <= CELLS_SIZE_MAX && cell_bits >= 1 && low >= cell_bits && low <= 51 && tick_bits <= 58);
	assume(2 * layout_cells(most) - 1 < (uint64_t)1 << (cell_bits & 63));
	assume(most - 1 < (uint64_t)1 << ((low - cell_bits) & 63));
	assume(back >= 1 && back <= SPAN_MAX_NS && ahead <= SPAN_MAX_NS && back + ahead <= SPAN_MAX_NS);
	assume(64 - low + tick_bits >= 64 || 4 * (back + ahead) <= (uint64_t)1 << ((64 - low + tick_bits) & 63));
	t.shape = params_shape(low & 63, tick_bits & 63, SHMLIMIT_WINDOW, 0) | (uint64_t)(cell_bits & 63) << 32 |
	          (uint64_t)(size & (CELLS_SIZES - 1)) << 40;
	return t;
}

#define GIVEN good(low, cell_bits, tick_bits, size, back, ahead)

/* a word says no more tokens than a window admits, and no place beyond its ring, whatever its bits and the parameters' */
int law_unpack_total(uint64_t shape, uint64_t ahead, uint64_t word, uint64_t now)
{
	struct layout_params t = { .shape = shape, .ahead = ahead };
	struct window w = window_unpack(&t, word, now);

	return w.n < 2 * window_cells(&t) && w.k >= 1 && w.k <= params_tokens(&t);
}

/* ... and none of its numbers is 0 */
int false_unpack_total(uint64_t shape, uint64_t ahead, uint64_t word, uint64_t now)
{
	struct layout_params t = { .shape = shape, .ahead = ahead };

	return window_unpack(&t, word, now).n != 0;
}

/*
 * unpacking gives back what was packed, for windows of up to 5, and a time that is that tick's last nanosecond: never earlier
 * than it was
 */
int law_round_trip(unsigned each_tick, uint64_t back, uint64_t ahead, uint64_t n, uint64_t k, uint64_t now,
                   uint64_t distance, unsigned is_ahead)
{
	struct layout_params t = good(8, 5, each_tick, 1, back, ahead);
	struct window w = { n, k, is_ahead ? now + distance : now - distance }, got;

	assume(n < 20 && k >= 1 && k <= 5 && (is_ahead ? distance <= ahead : distance <= 2 * (back + ahead)));
	assume(now >= (uint64_t)1 << 62 && now < (uint64_t)3 << 62);
	got = window_unpack(&t, window_pack(&t, w), now);
	return got.n == n && got.k == k && got.last_ns == window_end_of_tick(&t, w.last_ns) && got.last_ns >= w.last_ns;
}

/* ... of a time further ahead than a reservation and the slack */
int false_round_trip(TERMS, uint64_t n, uint64_t k, uint64_t now, uint64_t distance)
{
	struct layout_params t = GIVEN;
	struct window w = { n, k, now + distance };
	uint64_t most = params_tokens(&t);

	assume(n < 2 * layout_cells(most) && k >= 1 && k <= most && distance <= 8 * (back + ahead));
	return window_unpack(&t, window_pack(&t, w), now).last_ns == window_end_of_tick(&t, w.last_ns);
}

/* what happened is waited for until it is a whole period ago, to the nanosecond, and not longer */
int law_wait(uint64_t back, uint64_t then, uint64_t age)
{
	struct layout_params t = { .back = back };

	assume(back >= 1 && back <= SPAN_MAX_NS && age <= (uint64_t)1 << 62);
	return window_wait(&t, then, then + age) == (age >= back ? 0 : back - age) &&
	       (window_wait(&t, then, then - age) == back + age || age == 0);
}

/* ... a nanosecond less */
int false_wait(uint64_t back, uint64_t then, uint64_t age)
{
	struct layout_params t = { .back = back };

	assume(back >= 1 && back <= SPAN_MAX_NS && age <= (uint64_t)1 << 62);
	return window_wait(&t, then, then + age) == (age + 1 >= back ? 0 : back - age);
}

/* every cell stands in its ring, no two in one place, and those of an admission follow one another, in rings up to 256 */
int law_cells(uint64_t n, uint64_t k, uint64_t newer, uint64_t other, uint64_t most)
{
	uint64_t after;

	assume(most >= 1 && most <= 128 && n < 2 * layout_cells(most) && k >= 1 && k <= most);
	after = window_advance(n, k, layout_cells(most));
	assume(newer < window_valid(after, layout_cells(most)) && other < window_valid(after, layout_cells(most)) &&
	       newer != other);
	return after < 2 * layout_cells(most) && after >= 1 &&
	       window_cell(after, newer, layout_cells(most)) < layout_cells(most) &&
	       window_cell(after, newer, layout_cells(most)) != window_cell(after, other, layout_cells(most)) &&
	       /* What was the newest stands behind k others now. */
	       (n == 0 || window_cell(after, k, layout_cells(most)) == window_cell(n, 0, layout_cells(most)));
}

/* ... beyond what is valid, too */
int false_cells(uint64_t n, uint64_t newer, uint64_t most)
{
	assume(most >= 1 && most <= SHMLIMIT_WINDOW_MAX && n >= 1 && n < 2 * layout_cells(most) &&
	       newer < 2 * layout_cells(most));
	return window_cell(n, newer, layout_cells(most)) < layout_cells(most);
}

/* what was admitted and is given back leaves the ring's end where it was, and no fewer cells that hold something */
int law_withdraw(uint64_t n, uint64_t k, uint64_t most)
{
	uint64_t after, end;

	assume(most >= 1 && most <= SHMLIMIT_WINDOW_MAX && n < 2 * layout_cells(most) && k >= 1 && k <= most);
	after = window_advance(n, k, layout_cells(most));
	assume(k < window_valid(after, layout_cells(most)));
	end = window_withdraw(after, k, layout_cells(most));
	return end < 2 * layout_cells(most) && (end == n || end == n + layout_cells(most)) &&
	       window_valid(end, layout_cells(most)) >= window_valid(n, layout_cells(most));
}

/* ... and no more of them, either */
int false_withdraw(uint64_t n, uint64_t k, uint64_t most)
{
	uint64_t after;

	assume(most >= 1 && most <= SHMLIMIT_WINDOW_MAX && n < 2 * layout_cells(most) && k >= 1 && k <= most);
	after = window_advance(n, k, layout_cells(most));
	assume(k < window_valid(after, layout_cells(most)));
	return window_valid(window_withdraw(after, k, layout_cells(most)), layout_cells(most)) ==
	       window_valid(n, layout_cells(most));
}
