/*
 * window: WINDOW rules: at most the capacity in any stretch of a period, exactly (I1 for windows), beside a plain queue
 * of times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../rng.h"
#include "unit.h"
#include "unit_cells.h"

#include "hash.h"
#include "ring.h"
#include "table.h"

#define T0 (1000 * SECOND)
#define RING 16

static struct shmlimit *l;
static struct shmlimit_result r;
static uint64_t rules_ns = T0; /* when rules are set */

static int rule_of(const char *name, uint64_t capacity, uint64_t period_ns, uint64_t max_wait_ns, uint32_t flags)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_WINDOW,
		                      .capacity = capacity,
		                      .period_ns = period_ns,
		                      .max_wait_ns = max_wait_ns,
		                      .flags = flags };

	return shmlimit_rule_set(at_time(l, rules_ns), name, &rule);
}

static int rule(const char *name, uint64_t capacity, uint64_t period_ns, uint64_t max_wait_ns, uint32_t flags)
{
	return unit_id(rule_of(name, capacity, period_ns, max_wait_ns, flags));
}

static int take(int id, uint64_t cost, uint64_t at)
{
	return shmlimit_take(at_time(l, at), id, "k", 1, cost, &r);
}

static void by_hand(void)
{
	int id = rule("hand", 3, 10 * SECOND, 0, 0);

	is(take(id, 1, T0), SHMLIMIT_ALLOWED, "the first of three tokens is admitted");
	is(r.limit, 3, "a window's limit is its capacity");
	is(r.remaining, 2, "after one of three tokens two are left");
	is(r.reset_after_ns, 10 * SECOND, "a token is forgotten after a period");
	is(take(id, 1, T0 + 4 * SECOND), SHMLIMIT_ALLOWED, "the second of three tokens is admitted");
	is(take(id, 1, T0 + 6 * SECOND), SHMLIMIT_ALLOWED, "the third of three tokens is admitted");
	is(r.remaining, 0, "after three of three tokens none is left");
	is(take(id, 1, T0 + 9 * SECOND), SHMLIMIT_DENIED, "a fourth token within the period is refused");
	is(r.retry_after_ns, SECOND, "a fourth token fits when the first has left the window");
	is(r.reset_after_ns, 7 * SECOND, "a window is empty when its latest token has left it");
	is(take(id, 2, T0 + 9 * SECOND), SHMLIMIT_DENIED, "two tokens at once are refused while there is no room");
	is(r.retry_after_ns, 5 * SECOND, "two tokens at once fit when two have left the window");
	is(take(id, 4, T0 + 9 * SECOND), SHMLIMIT_DENIED, "more than the capacity is refused");
	ok(r.retry_after_ns == UINT64_MAX, "more than the capacity never fits");
	is(take(id, 1, T0 + 10 * SECOND - 1), SHMLIMIT_DENIED, "a nanosecond too early is too early");
	is(r.retry_after_ns, 1, "a request that is a nanosecond too early is denied with a wait of a nanosecond");
	is(take(id, 1, T0 + 10 * SECOND), SHMLIMIT_ALLOWED, "there is room when a token has left the window");
	is(r.remaining, 0, "when one token has left the window there is room for one");
	is(shmlimit_peek(at_time(l, T0 + 14 * SECOND), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "a peek sees room");
	is(shmlimit_peek(at_time(l, T0 + 14 * SECOND), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a peek takes none of the room that it sees");
	is(r.remaining, 1, "a peek sees room for one token");
	is(take(id, 0, T0 + 11 * SECOND), SHMLIMIT_ALLOWED, "a cost of 0 is always allowed");
	is(take(id, 3, T0 + 20 * SECOND), SHMLIMIT_ALLOWED, "tokens that left long ago do not count");
	is(shmlimit_take(at_time(l, T0 + 20 * SECOND), id, "other", 5, 3, &r), SHMLIMIT_ALLOWED,
	   "another key has a window of its own");
}

static void burst_at_the_edge(void)
{
	int id = rule("edge", 5, SECOND, 0, 0), admitted = 0;

	/* What a counter that begins again each second lets through: twice as many around its edge. */
	for (int i = 0; i < 10; i++)
		admitted += take(id, 1, T0 + SECOND - 1) == SHMLIMIT_ALLOWED;
	for (int i = 0; i < 10; i++)
		admitted += take(id, 1, T0 + SECOND + 1) == SHMLIMIT_ALLOWED;
	is(admitted, 5, "no edge of a period lets twice as many through");
}

static void refused(void)
{
	int id = rule("refused", 2, 10 * SECOND, 0, SHMLIMIT_RULE_COUNT_REFUSED);

	take(id, 1, T0);
	take(id, 1, T0 + SECOND);
	is(take(id, 1, T0 + 9 * SECOND), SHMLIMIT_DENIED, "where what is refused counts, a third token is refused");
	is(r.retry_after_ns, 2 * SECOND, "where what is refused counts, a refused token delays the next");
	is(take(id, 1, T0 + 10 * SECOND), SHMLIMIT_DENIED,
	   "where what is refused counts, a request that is too early is refused");
	is(r.retry_after_ns, 9 * SECOND, "where what is refused counts, a request that is too early waits longer");
	is(shmlimit_peek(at_time(l, T0 + 19 * SECOND - 1), id, "k", 1, 1, NULL), SHMLIMIT_DENIED,
	   "where what is refused counts, a peek does not count");
	is(take(id, 1, T0 + 19 * SECOND), SHMLIMIT_ALLOWED,
	   "where what is refused counts, a key that waits is admitted");
	shmlimit_take(at_time(l, T0), id, "other", 5, 2, NULL);
	shmlimit_take(at_time(l, T0 + SECOND), id, "other", 5, 2, NULL);
	shmlimit_refund(at_time(l, T0 + SECOND), id, "other", 5, 1, &r);
	is(r.remaining, 0, "what a refusal pushed out comes back with a refund");
	shmlimit_refund(at_time(l, T0 + SECOND), id, "other", 5, 2, &r);
	is(r.remaining, 1, "what refusals pushed out comes back token by token");
	is(take(id, 3, T0 + 30 * SECOND), SHMLIMIT_DENIED,
	   "where what is refused counts, more than the capacity is refused");
	is(take(id, 1, T0 + 40 * SECOND - 1), SHMLIMIT_DENIED,
	   "a refused request of more than the capacity counts as the capacity");
}

static void reservations(void)
{
	int id = rule("reserve", 2, 10 * SECOND, 15 * SECOND, 0);

	take(id, 1, T0);
	take(id, 1, T0 + 3 * SECOND);
	is(shmlimit_reserve(at_time(l, T0 + 4 * SECOND), id, "k", 1, 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED,
	   "a place can be reserved in advance");
	is(r.wait_ns, 6 * SECOND, "a reservation waits until the oldest token has left");
	is(shmlimit_reserve(at_time(l, T0 + 4 * SECOND), id, "k", 1, 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED,
	   "a second place can be reserved");
	is(r.wait_ns, 9 * SECOND, "a second reservation waits until two tokens have left");
	is(shmlimit_reserve(at_time(l, T0 + 4 * SECOND), id, "k", 1, 1, UINT64_MAX, &r), SHMLIMIT_DENIED,
	   "a reservation that would wait longer than the rule allows is refused");
	is(r.retry_after_ns, SECOND, "a refused reservation fits when its wait is no longer than the rule allows");
	is(shmlimit_reserve(at_time(l, T0 + 5 * SECOND), id, "k", 1, 1, 5 * SECOND, &r), SHMLIMIT_DENIED,
	   "a reservation that would wait longer than its caller allows is refused");
	is(take(id, 1, T0 + 12 * SECOND), SHMLIMIT_DENIED, "a reserved place cannot be taken");
	is(r.retry_after_ns, 8 * SECOND, "a reserved place counts for a period after its time");
	is(shmlimit_refund(at_time(l, T0 + 12 * SECOND), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a reserved place can be given back");
	is(take(id, 1, T0 + 13 * SECOND), SHMLIMIT_ALLOWED, "there is room after a reserved place was given back");
}

static void refunds(void)
{
	int id = rule("refund", 4, 10 * SECOND, 0, 0);

	shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.remaining, 4, "a refund to an empty window changes nothing");
	take(id, 2, T0);
	take(id, 2, T0 + SECOND);
	shmlimit_refund(at_time(l, T0 + SECOND), id, "k", 1, 1, &r);
	is(r.remaining, 1, "a refund makes room");
	is(take(id, 1, T0 + 2 * SECOND), SHMLIMIT_ALLOWED, "a refund of one token makes room for one");
	is(take(id, 1, T0 + 2 * SECOND), SHMLIMIT_DENIED, "a refund of one token makes room for no more than one");
	is(r.retry_after_ns, 8 * SECOND, "the newest were taken back, the oldest stay");
	shmlimit_refund(at_time(l, T0 + 2 * SECOND), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 4, "a refund of everything empties the window");
	is(r.reset_after_ns, 0, "a window that was emptied by a refund is as one that was never used");
	is(take(id, 4, T0 + 2 * SECOND), SHMLIMIT_ALLOWED, "all of a window that was emptied by a refund can be taken");
	shmlimit_charge(at_time(l, T0 + 5 * SECOND), id, "k", 1, 3, &r);
	is(r.remaining, 0, "a charge is booked though there is no room");
	is(r.retry_after_ns, UINT64_MAX, "a charge for which a window has no room says so");
	is(take(id, 1, T0 + 12 * SECOND), SHMLIMIT_ALLOWED, "a charge without room pushes out older tokens");
	is(take(id, 1, T0 + 12 * SECOND), SHMLIMIT_DENIED, "a charge without room fills the window");
	is(r.retry_after_ns, 3 * SECOND, "a charge without room counts for a period from when it was booked");
}

/* Who gives back what it took before others took may take back one of theirs: what stays counts as the latest. */
static void refund_of_an_earlier_one(void)
{
	int id = rule("earlier", 3, 10 * SECOND, 0, 0);

	for (int i = 0; i < 3; i++)
		is(take(id, 1, T0 + i * SECOND / 4), SHMLIMIT_ALLOWED, "three take one after the other");
	shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.remaining, 1, "one of three tokens is given back");
	is(take(id, 2, T0 + 10 * SECOND), SHMLIMIT_DENIED,
	   "after a refund the older tokens count as long as they would have");
	is(take(id, 3, T0 + 10 * SECOND + SECOND / 2), SHMLIMIT_ALLOWED,
	   "after a refund all tokens have left when the latest that stayed has");
}

static void full_circle(void)
{
	int id = rule("circle", RING, SECOND, 0, 0), wrong = 0;

	/* Many times around the ring, always full. */
	for (uint64_t i = 0; i < 100 * RING; i++) {
		uint64_t at = T0 + i * SECOND / RING;

		wrong += take(id, 1, at) != SHMLIMIT_ALLOWED;
		if (i >= RING - 1) {
			wrong += take(id, 1, at + SECOND / RING - 1) != SHMLIMIT_DENIED;
			wrong += r.retry_after_ns != 1;
		}
	}
	is(wrong, 0, "a ring that is always full lets one in when one leaves");
}

/* A ring that is always full, of which some is given back. */
static void refunds_in_circles(void)
{
	int id = rule("circle_back", RING, SECOND, 0, 0), wrong = 0;
	uint64_t at = T0;

	for (uint64_t i = 0; i < 2 * RING + 3; i++)
		wrong += take(id, 1, at += SECOND / RING) != SHMLIMIT_ALLOWED;
	is(wrong, 0, "a window is full");
	shmlimit_refund(at_time(l, at), id, "k", 1, 5, &r);
	is(r.remaining, 5, "five tokens are given back after the ring has wrapped");
	is(shmlimit_peek(at_time(l, at), id, "k", 1, 5, &r), SHMLIMIT_ALLOWED,
	   "a peek agrees that all of them can be taken");
	is(r.remaining, 5, "a peek agrees that no more than five can be taken");
	is(take(id, 6, at), SHMLIMIT_DENIED, "six tokens do not fit where five do");
	is(r.retry_after_ns, SECOND / RING, "six tokens fit when the oldest one has left");
}

/*
 * Full keys stay full when the rule changes, however long ago their last admission was. The periods are so long that a
 * word tells the times of four of them, and no more.
 */
static void changed_when_empty(void)
{
	const uint64_t unit_ns = (uint64_t)1 << 46;
	int id = rule("raised", 5, 60 * unit_ns, 0, 0), denied = 0;
	uint64_t at = T0;

	for (uint64_t key = 0; key < 400; key++, at += 3 * unit_ns)
		shmlimit_take(at_time(l, at), id, &key, sizeof(key), 5, NULL);
	rules_ns = at += 600 * unit_ns;
	rule("raised", 6, 60 * unit_ns, 0, 0);
	for (uint64_t key = 0; key < 400; key++)
		denied += shmlimit_peek(at_time(l, at + 1000), id, &key, sizeof(key), 6, &r) != SHMLIMIT_ALLOWED;
	is(denied, 0, "no key whose window is empty is denied after the capacity is raised");
	shmlimit_reset(l, id, NULL, 0);
	denied = 0;
	for (uint64_t i = 4; i < 100; i++) {
		rules_ns = at;
		id = rule("shortened", 5, 1800 * unit_ns, 0, 0);
		shmlimit_take(at_time(l, at), id, &i, sizeof(i), 5, NULL);
		rules_ns = at += i * 17 * unit_ns;
		rule("shortened", 5, 60 * unit_ns, 0, 0);
		denied += shmlimit_peek(at_time(l, at), id, &i, sizeof(i), 5, &r) != SHMLIMIT_ALLOWED;
	}
	is(denied, 0, "no key whose window is empty is denied after the period is shortened");
	shmlimit_reset(l, id, NULL, 0);
	denied = 0;
	for (uint64_t i = 0; i < 100; i++) {
		rules_ns = at;
		id = rule("kept", 5, 60 * unit_ns, 0, 0);
		shmlimit_take(at_time(l, at), id, &i, sizeof(i), 5, NULL);
		rules_ns = at + unit_ns;
		rule("kept", 6, 60 * unit_ns, 0, 0);
		at += (62 + 5 * i) * unit_ns;
		denied += shmlimit_peek(at_time(l, at), id, &i, sizeof(i), 5, &r) != SHMLIMIT_ALLOWED;
	}
	is(denied, 0, "no key is denied that was in use when the rule changed, and was left alone since");
	shmlimit_reset(l, id, NULL, 0);
	rules_ns = T0;
}

static void live(void)
{
	int id = rule("live", 2, 10 * SECOND, 0, 0);

	take(id, 2, T0);
	is(rule("live", 4, 10 * SECOND, 0, 0), id, "a window can be made larger while it is in use");
	is(take(id, 2, T0 + SECOND), SHMLIMIT_ALLOWED, "a window that was made larger has room at once");
	is(take(id, 1, T0 + SECOND), SHMLIMIT_DENIED, "a window that was made larger has room for the difference");
	rules_ns = T0 + SECOND;
	rule("live", 3, 10 * SECOND, 0, 0);
	is(take(id, 1, T0 + 10 * SECOND + 32), SHMLIMIT_ALLOWED,
	   "in a window that was made smaller, tokens leave in their turn");
	is(take(id, 1, T0 + 10 * SECOND + 32), SHMLIMIT_DENIED,
	   "in a window that was made smaller, tokens count until they have left");
	ok(SECOND + 16 - r.retry_after_ns <= 48,
	   "in a window that was made smaller, a token leaves within a few ticks of its time");
	rules_ns = T0 + 10 * SECOND + 32;
	rule("live", 3, 5 * SECOND, 0, 0);
	is(take(id, 1, T0 + 10 * SECOND + 64), SHMLIMIT_ALLOWED, "a shorter period forgets sooner");
	rule("live", 3, 3600 * SECOND, 0, 0);
	is(take(id, 1, T0 + 60 * SECOND), SHMLIMIT_DENIED, "a longer one counts again what is remembered");
	ok(r.retry_after_ns - 3541 * SECOND <= 64,
	   "in a window with a longer period, a token counts from its time, but for a few ticks");
	rules_ns = T0;
}

static void stepped_clock(void)
{
	int id = rule("stepped", 2, 10 * SECOND, 0, 0);

	take(id, 2, T0 + 1000000 * SECOND);
	is(take(id, 1, T0), SHMLIMIT_DENIED, "a clock that steps back by days forgives nothing");
	is(r.retry_after_ns, 10 * SECOND, "a clock that steps back locks a key out for a period");
	is(take(id, 1, T0 + 10 * SECOND - 1), SHMLIMIT_DENIED,
	   "a clock that steps back locks a key out until the period's last nanosecond");
	is(take(id, 2, T0 + 10 * SECOND), SHMLIMIT_ALLOWED,
	   "a clock that steps back locks a key out no longer than a period");
	take(id, 1, T0 + 30 * SECOND);
	take(id, 1, T0 + 30 * SECOND);
	is(take(id, 1, T0 + 30 * SECOND - SECOND / 2), SHMLIMIT_DENIED,
	   "an older reading of the clock sees a full window");
	is(r.retry_after_ns, 10 * SECOND + SECOND / 2, "an older reading of the clock waits for the oldest token");
	is(take(id, 2, T0 + 2000000 * SECOND), SHMLIMIT_ALLOWED, "a clock that leaps ahead finds an empty one");
}

static void wrong_rules(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = 2, .period_ns = SECOND
	};
	struct shmlimit_rule got = { .struct_size = sizeof(got) };
	int id;

	is(rule_of("bad", SHMLIMIT_WINDOW_MAX + 1, SECOND, 0, 0), -EFBIG, "a window above the largest is refused");
	is(rule_of("bad", 0, SECOND, 0, 0), -EDOM, "a window of no tokens is refused");
	is(rule_of("bad", 1, 0, 0, 0), -EDOM, "a window of no period is refused");
	is(rule_of("bad", 1, (uint64_t)1 << 59, 0, 0), -ERANGE, "a window of decades is refused");
	is(rule_of("bad", 1, SECOND, UINT64_MAX, 0), -ERANGE, "a window with a wait without end is refused");
	is(rule_of("bad", 1, SECOND, 0, SHMLIMIT_RULE_NEXT_PAYS), -EINVAL, "a window has no next one who pays");
	is(rule_of("bad", 1, SECOND, 1, SHMLIMIT_RULE_COUNT_REFUSED), -EINVAL, "where refusals count, nobody waits");
	is(shmlimit_rule_find(l, "bad"), -ESRCH, "nothing came of all that");
	rule.refill = 3;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a window has no rate of its own");
	rule.refill = 2;
	id = shmlimit_rule_set(l, "good", &rule);
	ok(id >= 0, "a window's count may repeat its capacity");
	is(shmlimit_rule_get(l, id, &got), 0, "a window is read back");
	ok(got.algorithm == SHMLIMIT_WINDOW && got.capacity == 2 && got.refill == 2 && got.period_ns == SECOND,
	   "a window is read back as it was set");
	is(shmlimit_rule_set(l, "good", &got), id, "a window can be set as it was read back");
	rule.algorithm = SHMLIMIT_FUNNEL;
	is(shmlimit_rule_set(l, "good", &rule), -EBUSY, "a window does not become a funnel");
	rule.flags = SHMLIMIT_RULE_COUNT_REFUSED;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a funnel does not count what it refused");
}

/* Where a tick is longer than a nanosecond, what was admitted counts until its tick has left. */
static void coarse(void)
{
	int id = rule("coarse", 2, (uint64_t)1 << 57, 0, 0);
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	uint64_t tick_ns, end;

	shmlimit_rule_range(l, id, &range);
	tick_ns = range.resolution_ps / 1000;
	ok(tick_ns > 1, "a window of years has longer ticks");
	take(id, 1, T0);
	take(id, 1, T0 + 1);
	end = (T0 / tick_ns + 1) * tick_ns - 1 + ((uint64_t)1 << 57);
	is(take(id, 1, end - 1), SHMLIMIT_DENIED, "what was admitted counts to the end of its tick");
	is(r.retry_after_ns, 1, "a window of years says when a token leaves");
	is(take(id, 2, end), SHMLIMIT_ALLOWED, "what was admitted counts no longer than its tick");
	id = rule("coarse_refused", 2, (uint64_t)1 << 57, 0, SHMLIMIT_RULE_COUNT_REFUSED);
	take(id, 2, T0);
	is(take(id, 2, T0 + 1), SHMLIMIT_DENIED, "a refusal that counts does so to the end of its tick");
	is(r.reset_after_ns, r.retry_after_ns, "a refusal that counts has the same reset time and retry time");
	is(take(id, 2, T0 + 1 + r.retry_after_ns), SHMLIMIT_ALLOWED, "a retry exactly when it was told to is admitted");
}

/* Take two, and be killed between the word and its cells; the second is right by chance. */
static uint64_t *take_two_killed(int id)
{
	struct rule_view view;
	struct table_slot found;
	struct table_key wanted;
	uint64_t *cells;

	if (rule_load(l, (uint32_t)id, &view) != 0)
		bail("rule_load");
	wanted = table_key(hash_bytes(l->secret, (uint32_t)id, "k", 1), (uint32_t)id, rule_version(&view));
	take(id, 2, T0 + 5);
	if (!table_find_any(l, l->tables, &wanted, 0, &found))
		bail("no slot");
	cells = unit_cells(l, found.slot);
	cells[0] = T0;
	return cells;
}

/* A cell that agrees with the word by chance: from before a reset, in the same tick. */
static void reset_in_the_tick(void)
{
	int id = rule("reset", 2, 10 * SECOND, 0, 0);
	uint64_t *cells = take_two_killed(id);

	is(take(id, 1, T0 + 10 * SECOND), SHMLIMIT_DENIED, "of several tokens each counts from when they were taken");
	is(r.retry_after_ns, 5, "each of several tokens counts from when it was taken, whatever is in its cell");
	take(id, 1, T0 + 10 * SECOND + 5);
	is(cells[1], T0 + 5, "a cell that is right stays");

	cells = take_two_killed(rule("moved", 3, 10 * SECOND, 0, 0));
	id = shmlimit_rule_find(l, "moved");
	is(take(id, 1, T0 + 6), SHMLIMIT_ALLOWED, "a third token is admitted after two whose process was killed");
	is(cells[0], T0 + 5, "a cell that is missing is written before the window moves on");
}

/* ---- Arithmetic ---- */

static void words(uint64_t seed)
{
	struct rng rng = { seed };
	uint64_t wrong = 0, wild = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		unsigned size = (unsigned)rng_below(&rng, CELLS_SIZE_MAX + 1);
		uint64_t most = cells_tokens(size);
		struct shmlimit_rule rule = { .capacity = 1 + rng_below(&rng, most),
			                      .period_ns =
			                              1 + rng_below(&rng, (uint64_t)1 << (1 + rng_below(&rng, 56))),
			                      .max_wait_ns = rng_below(&rng, (uint64_t)1 << rng_below(&rng, 57)) };
		struct layout_params params = { 0 };
		uint64_t now_ns = ((uint64_t)1 << 60) + rng_below(&rng, (uint64_t)1 << 60);
		struct window w = { .n = rng_below(&rng, 4 * most), .k = 1 + rng_below(&rng, most) }, back;

		if (window_compile(&rule, size, &params) != 0) {
			wrong++;
			continue;
		}
		w.last_ns = now_ns - rng_below(&rng, rule.period_ns) + rng_below(&rng, params.ahead + 1);
		back = window_unpack(&params, window_pack(&params, w), now_ns);
		wrong += back.n != w.n || back.k != w.k || back.last_ns < w.last_ns ||
		         back.last_ns - w.last_ns >= (uint64_t)1 << params_token_bits(&params) ||
		         !window_agrees(&params, window_pack(&params, w), w.last_ns);
		back = window_unpack(&params, rng_draw(&rng), now_ns);
		wild += back.n >= 4 * most || back.k < 1 || back.k > most;
	}
	is(wrong, 0, "a word gives back what was packed, its time never too early and late by less than a tick");
	is(wild, 0, "any word gives a place in the ring");
}

/* Ticks of many nanoseconds, and times within one. */
static void refund_in_the_tick(void)
{
	struct shmlimit_rule of = { .capacity = RING,
		                    .period_ns = (uint64_t)1 << 56,
		                    .max_wait_ns = (uint64_t)2 << 56 };
	uint64_t period_ns = of.period_ns, late_by = 0, wrong = 0, tick_ns, t;
	int id = rule("day", RING, period_ns, 2 * period_ns, 0);
	struct layout_params params = { 0 };

	if (window_compile(&of, 0, &params) != 0)
		bail("compile");
	tick_ns = (uint64_t)1 << params_token_bits(&params);
	t = T0 / tick_ns * tick_ns;
	ok(tick_ns >= 16, "a tick of this rule is many nanoseconds: %d", (int)tick_ns);
	for (uint64_t reserved = 0; reserved < tick_ns; reserved += tick_ns / 16)
		for (uint64_t given_back = reserved | 1; given_back < tick_ns; given_back += tick_ns / 8 - 1) {
			shmlimit_reset(l, id, NULL, 0);
			take(id, 10, t);
			wrong += shmlimit_reserve(at_time(l, t + reserved), id, "k", 1, 10, UINT64_MAX, &r) !=
			         SHMLIMIT_ALLOWED;
			shmlimit_refund(at_time(l, t + given_back), id, "k", 1, 10, &r);
			late_by += r.reset_after_ns > period_ns + tick_ns;
			shmlimit_peek(at_time(l, t + period_ns + tick_ns), id, "k", 1, 1, &r);
			wrong += r.remaining != RING;
		}
	is(late_by, 0, "what is reserved and given back in the tick of a take does not make the take later");
	is(wrong, 0, "a period after the take the window is empty");
}

/* Whatever a word says, what is read of it are cells of its own slot: before and behind them is no memory. */
static void own_cells(uint64_t seed)
{
	const unsigned size = cells_size(8192);
	const uint64_t most = cells_tokens(size), ring_size = CELLS_BYTES * most, slots = 8;
	struct shmlimit small = { 0 };
	struct rng rng = { seed };
	unsigned char *area = mmap(NULL, 2 * slots * ring_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct layout_slot none[8] = { { 0, 0 } };
	struct table t = { .slots = none, .lines = slots / SLOTS_PER_LINE };
	uint64_t *cells = (uint64_t *)(void *)(area + (slots + 1) * ring_size);
	int status = -1;
	pid_t pid;

	small.regions[size] = (uintptr_t)area;
	if (area == MAP_FAILED || mprotect(cells, ring_size, PROT_READ | PROT_WRITE) != 0)
		bail("mmap: %s", strerror(errno));
	for (uint64_t i = 0; i < 2 * most; i++)
		cells[i] = T0 + rng_below(&rng, SECOND);
	pid = fork();
	for (uint64_t i = 0; pid == 0 && i < scaled(200000); i++) {
		struct shmlimit_rule rule = { .capacity = 1 + rng_below(&rng, most), .period_ns = SECOND };
		struct layout_params params = { 0 };
		uint64_t word = rng_draw(&rng), now_ns = T0 + rng_below(&rng, 2 * SECOND);
		struct ring ring;
		struct look k;

		if (window_compile(&rule, size, &params) != 0)
			_exit(1);
		/* Half of them: few cells, or none. */
		if (i % 2 == 0)
			word = word >> params_cell_bits(&params) << params_cell_bits(&params) | rng_below(&rng, 3);
		k = look_make(&small, &t, t.slots + 1, &params, when_given(now_ns));
		ring = ring_read(&k, word);
		if (ring_used(&k, &ring, rng_below(&rng, 3)) > ring.valid)
			_exit(1);
	}
	if (pid == 0)
		_exit(0);
	waitpid(pid, &status, 0);
	is(status, 0, "whatever a word says, a window reads no cell of another slot");
	munmap(area, 2 * slots * ring_size);
}

/* Introspection by a clock that is behind the clock of the takes. */
static void seen_from_before(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	int id = rule("seen", 3, SECOND, 0, 0);
	uint64_t debt_ns = 0;

	is(take(id, 1, T0 + 5000), SHMLIMIT_ALLOWED, "one token is admitted beside an older reservation");
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
		if (slot.rule == id && slot.state == SHMLIMIT_SLOT_LIVE)
			debt_ns += slot.debt_ns;
	is(debt_ns, 5000, "a token's debt is that of the reservation before it");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	uint64_t seed = rng_seed();

	l = unit_create("window", &options);
	by_hand();
	burst_at_the_edge();
	refused();
	reservations();
	refunds();
	refund_of_an_earlier_one();
	full_circle();
	refunds_in_circles();
	changed_when_empty();
	live();
	stepped_clock();
	coarse();
	reset_in_the_tick();
	refund_in_the_tick();
	seen_from_before();
	words(seed);
	own_cells(seed);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	wrong_rules();
	return tap_done();
}
