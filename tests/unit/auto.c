/*
 * auto: a limit that finds its number: by hand, and random histories beside a plain account of
 * windows. What the laws say is in auto_law.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "../rng.h"
#include "unit_cells.h"

#include "auto_state.h"
#include "generation.h"
#include "limiter.h"

#define T0 (1000 * SECOND)
#define PERIOD (60 * SECOND)
#define MS (SECOND / 1000)
#define CREW 256
#define HISTORIES 400
#define STEPS 600
#define UNIT_NS 1024

static struct shmlimit *l;
static struct shmlimit_result r;

static int set_as(const char *name, uint32_t law, uint32_t least, uint64_t capacity, uint64_t now_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = capacity,
		                      .period_ns = PERIOD,
		                      .law = law,
		                      .least = least };

	return shmlimit_rule_set(at_time(l, now_ns), name, &rule);
}

static int rule(const char *name, uint32_t law, uint32_t least, uint64_t capacity)
{
	return unit_id(set_as(name, law, least, capacity, T0));
}

static uint64_t number(int id, uint64_t now_ns)
{
	if (shmlimit_peek(at_time(l, now_ns), id, "k", 1, 0, &r) != SHMLIMIT_ALLOWED)
		bail("peek");
	return r.limit;
}

/* Requests that are always there: `n` at a time, each of which takes as long. */
static struct crew {
	struct shmlimit_place places[CREW];
	uint64_t end_ns[CREW];
	uint64_t now_ns;
	uint64_t denied;
	uint32_t flags; /* of leaving */
} crew;

static int enter(int id, struct shmlimit_place *place, uint64_t now_ns)
{
	*place = (struct shmlimit_place){ .struct_size = sizeof(*place) };
	return shmlimit_enter(at_time(l, now_ns), id, "k", 1, place, NULL);
}

static void leave(int id, struct shmlimit_place *place, uint32_t flags, uint64_t now_ns)
{
	place->flags = flags;
	if (place->value != 0 && shmlimit_leave(at_time(l, now_ns), id, "k", 1, place) != 0)
		bail("leave");
	place->value = 0;
}

static void work(int id, int n, uint64_t took_ns, uint64_t for_ns)
{
	uint64_t until_ns = crew.now_ns + for_ns;

	for (int i = 0; i < n; i++)
		crew.end_ns[i] = crew.now_ns + took_ns * (uint64_t)i / (uint64_t)n;
	while (crew.now_ns < until_ns) {
		int next = 0;

		for (int i = 1; i < n; i++)
			if (crew.end_ns[i] < crew.end_ns[next])
				next = i;
		crew.now_ns = crew.end_ns[next];
		leave(id, &crew.places[next], crew.flags, crew.now_ns);
		crew.denied += enter(id, &crew.places[next], crew.now_ns) == SHMLIMIT_DENIED;
		crew.end_ns[next] = crew.now_ns + took_ns;
	}
	for (int i = 0; i < n; i++)
		leave(id, &crew.places[i], SHMLIMIT_PLACE_UNTIMED, crew.now_ns);
}

static void begin(void)
{
	memset(&crew, 0, sizeof(crew));
	crew.now_ns = T0;
}

static void beginnings(void)
{
	struct shmlimit_rule text = { .struct_size = sizeof(text) };
	uint64_t most = 0;
	static const struct {
		uint32_t least;
		uint64_t capacity, number;
	} tries[] = { { 4, 200, 20 }, { 1, 10, 10 }, { 50, 200, 50 }, { 7, 7, 7 }, { 1, 65534, 20 } };

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		is(number(rule("begins", SHMLIMIT_LAW_VEGAS, tries[i].least, tries[i].capacity), T0), tries[i].number,
		   "a key begins with 20, or the nearest of %" PRIu32 " to %" PRIu64, tries[i].least,
		   tries[i].capacity);
	is(set_as("wrong", SHMLIMIT_LAW_AIMD + 1, 1, 2, T0), -EINVAL, "a law that there is not is refused");
	is(set_as("wrong", SHMLIMIT_LAW_VEGAS, 0, 2, T0), -EDOM, "a law without a least number is refused");
	is(set_as("wrong", SHMLIMIT_LAW_VEGAS, 3, 2, T0), -EINVAL, "a least number above the capacity is refused");
	is(set_as("wrong", 0, 1, 2, T0), -EINVAL, "a least number without a law is refused");
	is(set_as("wrong", SHMLIMIT_LAW_VEGAS, 1, 65535, T0), -EFBIG, "a number above 65534 is not found");
	is(shmlimit_rule_parse("auto at once", &text, NULL), 0, "a limit that finds its number is read");
	is(shmlimit_rule_capacity_max(&text, &most), 0, "a rule that finds its number has a largest capacity");
	is(most, 65534, "the largest capacity of a rule that finds its number is 65534");
}

static void entries(void)
{
	int id = rule("entries", SHMLIMIT_LAW_VEGAS, 4, 200), answer = 0;
	struct shmlimit_place places[21], bound = { .struct_size = sizeof(bound) };
	struct shmlimit_limit limit = { .struct_size = sizeof(limit), .flags = SHMLIMIT_LIMIT_PLACES, .capacity = 5 };
	struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1, .limit = &limit };

	for (int i = 0; i < 20; i++)
		answer |= enter(id, &places[i], T0) != SHMLIMIT_ALLOWED;
	is(answer, 0, "as many enter as the number says");
	places[20] = (struct shmlimit_place){ .struct_size = sizeof(places[20]) };
	is(shmlimit_enter(at_time(l, T0), id, "k", 1, &places[20], &r), SHMLIMIT_DENIED, "no more do");
	ok(r.limit == 20 && r.remaining == 0 && r.retry_after_ns > 0 && r.retry_after_ns <= PERIOD + HOLD_TICK_NS,
	   "the answer has the number");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 30, &r), SHMLIMIT_DENIED,
	   "a peek for more than the number is denied");
	ok(r.retry_after_ns != UINT64_MAX, "a peek for more than the number is not denied for ever, since it may grow");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 201, &r), SHMLIMIT_DENIED,
	   "a peek for more than the capacity is denied");
	ok(r.retry_after_ns == UINT64_MAX, "a peek for more than the capacity is denied for ever");
	leave(id, &places[0], 0, T0 + SECOND);
	is(number(id, T0 + SECOND), 20, "a place that is left does not change the number");
	is(r.remaining, 1, "a place that is left is free");
	for (int i = 1; i < 20; i++)
		leave(id, &places[i], 0, T0 + SECOND);
	q.place = &bound;
	is(shmlimit_decide(at_time(l, T0 + SECOND), SHMLIMIT_TAKE, &q, &r), SHMLIMIT_ALLOWED,
	   "an entry has a bound of its own");
	is(r.limit, 5, "a bound of an entry counts where it is lower than the number");
	limit.capacity = 50;
	is(shmlimit_decide(at_time(l, T0 + SECOND), SHMLIMIT_TAKE, &q, &r), SHMLIMIT_ALLOWED,
	   "an entry has a bound above the number");
	is(r.limit, 20, "a bound above the number does not count");
}

static void moves(uint32_t law)
{
	int id = rule("moves", law, 4, 200);
	uint64_t grown, before;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 8, 20 * MS, 60 * SECOND);
	is(number(id, crew.now_ns), 20, "law %" PRIu32 ": a number that is not reached does not grow", law);
	is(crew.denied, 0, "law %" PRIu32 ": a number that is not reached denies nobody", law);
	work(id, 100, 20 * MS, 60 * SECOND);
	grown = number(id, crew.now_ns);
	ok(grown >= 50, "law %" PRIu32 ": where work takes no longer the number grows (%" PRIu64 ")", law, grown);
	before = grown;
	work(id, 180, 200 * MS, 7 * SECOND); /* WHY NOT 5: then AIMD measures its base */
	grown = number(id, crew.now_ns);
	ok(grown < before, "law %" PRIu32 ": where work takes ten times as long the number falls (%" PRIu64 ")", law,
	   grown);
	before = grown;
	is(number(id, crew.now_ns + 9 * 60 * SECOND), before, "minutes in which nobody asks change nothing");
	crew.now_ns += 9 * 60 * SECOND;
	work(id, 1, 20 * MS, 2 * SECOND);
	grown = number(id, crew.now_ns);
	ok(grown <= before + 6 * 2 && grown + before / 10 + 1 >= before,
	   "one request at a time then ends the last window, and changes no more (%" PRIu64 ")", grown);
	work(id, 1, 20 * MS, 60 * SECOND);
	is(number(id, crew.now_ns), grown, "law %" PRIu32 ": one request at a time for a minute changes nothing", law);
	ok(number(id, crew.now_ns) <= 200 && number(id, crew.now_ns) >= 4,
	   "law %" PRIu32 ": the number stays within its bounds", law);
	shmlimit_reset(l, id, NULL, 0);
	enter(id, &crew.places[0], crew.now_ns);
	is(number(id, crew.now_ns), 20, "law %" PRIu32 ": a key that was reset begins again, also in the same cells",
	   law);
	leave(id, &crew.places[0], SHMLIMIT_PLACE_UNTIMED, crew.now_ns);
}

static void drops(void)
{
	int id = rule("drops", SHMLIMIT_LAW_AIMD, 4, 200);
	uint64_t before;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 50, 20 * MS, 10 * SECOND);
	before = number(id, crew.now_ns);
	crew.flags = SHMLIMIT_PLACE_UNTIMED;
	work(id, 50, 2000 * MS, 10 * SECOND);
	is(number(id, crew.now_ns), before, "work whose time says nothing changes nothing");
	crew.flags = SHMLIMIT_PLACE_DROPPED;
	work(id, 50, 20 * MS, SECOND);
	ok(number(id, crew.now_ns) <= before * 9 / 10, "work that was dropped lowers the number");
	work(id, 50, 20 * MS, 60 * SECOND);
	is(number(id, crew.now_ns), 4,
	   "work that is dropped for a minute lowers the number to the least, and no further");
}

/*
 * It measures, and denies no request. So nothing drains where the base is measured again, and both
 * phases end before.
 */
static void dry_run(uint32_t law)
{
	struct shmlimit_rule dry = { .struct_size = sizeof(dry),
		                     .algorithm = SHMLIMIT_HOLD,
		                     .mode = SHMLIMIT_DRY_RUN,
		                     .capacity = 100,
		                     .period_ns = PERIOD,
		                     .law = law,
		                     .least = 4 };
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	int id = unit_id(shmlimit_rule_set(at_time(l, T0), "dry", &dry));
	uint64_t grown, fallen;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 60, 20 * MS, 5 * SECOND);
	grown = number(id, crew.now_ns);
	ok(grown >= 30, "law %" PRIu32 ": in a dry run the number grows (%" PRIu64 ")", law, grown);
	work(id, 180, 200 * MS, 2 * SECOND);
	fallen = number(id, crew.now_ns);
	ok(fallen < grown && fallen >= 4, "law %" PRIu32 ": in a dry run the number falls (%" PRIu64 ")", law, fallen);
	is(crew.denied, 0, "law %" PRIu32 ": a dry run denies no request", law);
	is(shmlimit_counters(l, id, &counters), 0, "law %" PRIu32 ": a dry run counts", law);
	ok(counters.shadow_denied > 0 && counters.denied == 0, "law %" PRIu32 ": what it would deny (%" PRIu64 ")", law,
	   counters.shadow_denied);
}

/* How long a place is held where nothing waits, as is believed. */
static uint64_t base(int id)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, crew.now_ns) == 0; i++)
		if (slot.rule == id)
			return slot.base_ns;
	return 0;
}

/* What one event does to a number that is steady: at most a step. */
static void disturbed(const char *what, uint64_t slow_ns, int64_t step_ns, int renews)
{
	int id = rule("disturbed", SHMLIMIT_LAW_VEGAS, 4, 30); /* half of that is in use */
	struct shmlimit_place places[30];
	uint64_t before;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 16, 20 * MS, 3 * SECOND);
	before = number(id, crew.now_ns);
	/* What says nothing may come often. */
	for (int round = 0; round < (renews || step_ns < 0 ? 6 : 1); round++) {
		crew.now_ns += step_ns < 0 ? 200 * MS : 0;
		for (int i = 0; i < 10; i++)
			enter(id, &places[i], crew.now_ns);
		crew.now_ns = crew.now_ns + slow_ns + (uint64_t)step_ns;
		for (int i = 0; i < 10; i++) {
			if (renews && shmlimit_renew(at_time(l, crew.now_ns), id, "k", 1, &places[i]) != 0)
				bail("renew");
			leave(id, &places[i], i > 0 && slow_ns != 0 ? SHMLIMIT_PLACE_UNTIMED : 0, crew.now_ns);
		}
	}
	work(id, 16, 20 * MS, SECOND);
	ok(base(id) >= 15 * MS && base(id) <= 25 * MS, "%s: the measured minimum stays (%" PRIu64 ")", what, base(id));
	ok(number(id, crew.now_ns) + 1 >= before && number(id, crew.now_ns) <= before + 6,
	   "%s: %" PRIu64 " becomes %" PRIu64, what, before, number(id, crew.now_ns));
	work(id, 16, 20 * MS, 3 * SECOND);
	ok(number(id, crew.now_ns) + 1 >= before, "%s: soon it is as it was (%" PRIu64 ")", what, r.limit);
}

/* Bursts that are over at once: hardly a place is in use, on average. */
static void bursts(void)
{
	int id = rule("bursts", SHMLIMIT_LAW_VEGAS, 4, 200);
	struct shmlimit_place places[21];

	for (int denied = 0; denied < 2; denied++) {
		shmlimit_reset(l, id, NULL, 0);
		begin();
		for (int i = 0; i < 40; i++) {
			for (int j = 0; j < 20 + denied; j++)
				enter(id, &places[j], crew.now_ns);
			for (int j = 0; j < 20 + denied; j++)
				leave(id, &places[j], 0, crew.now_ns + MS);
			crew.now_ns += 50 * MS;
		}
		ok((number(id, crew.now_ns) > 20) == denied,
		   "after bursts of which %d is denied each the number is %" PRIu64, denied, r.limit);
	}
}

static void changes(void)
{
	int id = rule("changes", SHMLIMIT_LAW_VEGAS, 4, 200);
	struct shmlimit_place places[40];
	struct shmlimit_rule got = { .struct_size = sizeof(got) };
	uint64_t before;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 60, 20 * MS, 10 * SECOND);
	before = number(id, crew.now_ns);
	ok(before >= 40, "the number has grown (%" PRIu64 ")", before);
	is(shmlimit_rule_get(l, id, &got), 0, "the rule is read");
	ok(got.law == SHMLIMIT_LAW_VEGAS && got.least == 4 && got.capacity == 200,
	   "a rule that is read has its law and bounds");
	set_as("changes", SHMLIMIT_LAW_AIMD, 4, 250, crew.now_ns);
	is(number(id, crew.now_ns), before, "another law goes on from the number");
	set_as("changes", SHMLIMIT_LAW_AIMD, 4, 1000, crew.now_ns);
	is(number(id, crew.now_ns), before, "a rule with room for more places goes on from the number");
	set_as("changes", SHMLIMIT_LAW_AIMD, 4, 30, crew.now_ns);
	is(number(id, crew.now_ns), 30, "bounds that are lower hold at once");
	set_as("changes", SHMLIMIT_LAW_AIMD, 150, 200, crew.now_ns);
	is(number(id, crew.now_ns), 150, "bounds that are higher hold at once");
	set_as("changes", 0, 0, 1014 + 10, crew.now_ns);
	is(number(id, crew.now_ns), 1024, "without a law the capacity is the number");

	id = rule("places", 0, 0, 40);
	shmlimit_reset(l, id, NULL, 0);
	for (int i = 0; i < 40; i++)
		enter(id, &places[i], T0);
	set_as("places", SHMLIMIT_LAW_VEGAS, 4, 38, T0);
	is(number(id, T0), 20, "a rule that gets a law begins with 20");
	is(r.remaining, 0, "places that are held count, though they are more than that");
	for (int i = 0; i < 40; i++)
		leave(id, &places[i], 0, T0 + SECOND);
	is(number(id, T0 + SECOND), 20, "places in the cells of the number are left as others");
	is(r.remaining, 20, "places that were left are free");
	begin();
	crew.now_ns += 2 * SECOND;
	work(id, 60, 20 * MS, 20 * SECOND);
	is(number(id, crew.now_ns), 38, "a number moves once the places in its cells are left");
}

static uint64_t slot_of_key(int id, struct generation *tables)
{
	generation_read(l, tables);
	for (uint64_t i = 0; i < 4 * tables->now.lines; i++)
		if (tag_rule(tables->now.slots[i].tag) == (uint32_t)id && tables->now.slots[i].tag != 0)
			return i;
	bail("no slot");
}

/* Any bits. */
static void damage(struct rng *rng)
{
	int id = rule("damage", SHMLIMIT_LAW_VEGAS, 4, 10), wrong = 0;
	struct generation tables;
	uint64_t slot, *cells;

	shmlimit_reset(l, id, NULL, 0);
	begin();
	work(id, 10, 20 * MS, SECOND);
	slot = slot_of_key(id, &tables);
	cells = unit_cells(l, &tables.now.slots[slot]);
	for (uint64_t i = 0; i < scaled(2000); i++) {
		uint64_t *cell = &cells[20 + rng_below(rng, 4)];

		*cell = rng_below(rng, 2) ? rng_draw(rng) : *cell ^ (uint64_t)1 << rng_below(rng, 64);
		wrong += number(id, crew.now_ns) < 4 || r.limit > 10;
		work(id, 12, 5 * MS, 100 * MS);
		wrong += number(id, crew.now_ns) < 4 || r.limit > 10;
	}
	is(wrong, 0, "whatever bits there are the number is within its bounds");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "with any bits in these cells the segment is sound");
}

/* ---- A plain account of windows ---- */

struct account {
	struct auto_law a;
	uint64_t begin_ns, sum, count;
	int dropped, denied, known;
	unsigned law;
	uint64_t least, most, now;
};

static void account_close(struct account *c, uint64_t now_ns)
{
	uint64_t age = (now_ns >> 20) - (c->begin_ns >> 20);
	struct auto_window w = { .took = c->sum / c->count, .dropped = c->dropped, .denied = c->denied };

	if (age < SECOND / 4 >> 20 || c->count < 30)
		return;
	w.in_use = c->sum / age;
	c->a = auto_law_next(c->law, c->a, &w, c->least, c->most);
	c->begin_ns = now_ns;
	c->sum = c->count = 0;
	c->dropped = c->denied = 0;
}

static void account_left(struct account *c, uint64_t held_ns, int dropped, uint64_t now_ns)
{
	uint64_t held = held_ns / UNIT_NS != 0 ? held_ns / UNIT_NS : 1;

	if (!c->known) {
		c->known = 1;
		c->begin_ns = now_ns;
	}
	if (c->a.base != 0 && held > 8 * c->a.base)
		held = 8 * c->a.base;
	c->sum += held;
	c->count++;
	c->dropped |= dropped;
	account_close(c, now_ns);
}

static uint64_t account_number(const struct account *c)
{
	uint64_t n = c->a.number / (c->a.probe != AUTO_LAW_STEADY ? 4 : 1) / AUTO_LAW_ONE;

	return n > c->least ? n : c->least;
}

/* Times that are whole ticks, so that the account need not round. */
static int history(struct rng *rng, int id, struct account *c, uint64_t *moved)
{
	static struct shmlimit_place places[CREW];
	static uint64_t entered_ns[CREW];
	uint64_t now_ns = T0, held = 0, pace = rng_below(rng, 2) ? 300 : 20;

	memset(places, 0, sizeof(places));
	for (int i = 0; i < STEPS; i++) {
		uint64_t which = rng_below(rng, CREW), ticks = rng_below(rng, pace);
		int was_denied;

		now_ns += ticks * HOLD_TICK_NS / 2 * 2;
		if (places[which].value != 0) {
			int kind = (int)rng_below(rng, 8);
			uint64_t half = HOLD_TICK_NS / 2;

			leave(id, &places[which],
			      kind == 0   ? SHMLIMIT_PLACE_DROPPED
			      : kind == 1 ? SHMLIMIT_PLACE_UNTIMED
			                  : 0,
			      now_ns);
			held--;
			if (kind != 1)
				account_left(c, now_ns - entered_ns[which] + half, kind == 0, now_ns);
		} else {
			was_denied = enter(id, &places[which], now_ns) == SHMLIMIT_DENIED;
			if (was_denied != (held >= account_number(c)))
				return 1;
			entered_ns[which] = now_ns;
			held += !was_denied;
			c->denied |= was_denied && c->known;
		}
		if (number(id, now_ns) != account_number(c))
			return 1;
		*moved += c->a.number != 20 * (uint64_t)AUTO_LAW_ONE;
	}
	return 0;
}

static void histories(struct rng *rng)
{
	uint64_t moved = 0;
	int wrong = 0;

	for (uint64_t i = 0; i < scaled(HISTORIES) && wrong == 0; i++) {
		struct account c = { .law = 1 + (unsigned)rng_below(rng, 3), .most = 20 + rng_below(rng, 100) };
		int id;

		c.least = 1 + rng_below(rng, 20);
		c.a.number = 20 * (uint64_t)AUTO_LAW_ONE;
		/* A whole number of ticks. */
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = SHMLIMIT_HOLD,
			                      .capacity = c.most,
			                      .period_ns = (uint64_t)1000000 * HOLD_TICK_NS,
			                      .law = c.law,
			                      .least = (uint32_t)c.least };

		id = unit_id(shmlimit_rule_set(at_time(l, T0), "history", &rule));
		shmlimit_reset(l, id, NULL, 0);
		wrong = history(rng, id, &c, &moved);
	}
	is(wrong, 0, "random histories are those of a plain account of windows");
	ok(moved > scaled(HISTORIES) * 10, "in them the number moves (%" PRIu64 ")", moved);
}

static void grows(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .slots_max = 4096 };
	struct shmlimit_place held;
	uint64_t before;
	int id;

	shmlimit_close(l);
	l = unit_create("auto", &options);
	id = rule("grows", SHMLIMIT_LAW_VEGAS, 4, 200);
	begin();
	work(id, 60, 20 * MS, 10 * SECOND);
	before = number(id, crew.now_ns);
	is(shmlimit_grow(at_time(l, crew.now_ns), 1024), 0, "the table grows");
	enter(id, &held, crew.now_ns);
	is(shmlimit_grow(at_time(l, crew.now_ns), 0), 0, "no key is in the old table any more");
	is(number(id, crew.now_ns), before, "a key that moves to a larger table keeps its number (%" PRIu64 ")",
	   before);
	leave(id, &held, 0, crew.now_ns);
}

/* On a full table keys that only enter and leave push out no limit that is in force. */
static void crowded(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 256, .slots_max = 256 };
	struct shmlimit_rule login = {
		.struct_size = sizeof(login), .capacity = 5, .refill = 5, .period_ns = 60 * SECOND
	};
	struct shmlimit_place place;
	uint64_t denied = 0;
	int id, logins;

	shmlimit_close(l);
	l = unit_create("auto", &options);
	id = rule("crowded", SHMLIMIT_LAW_VEGAS, 4, 200);
	logins = unit_id(shmlimit_rule_set(at_time(l, T0), "logins", &login));
	begin();
	for (uint32_t key = 0; key < 100; key++)
		(void)shmlimit_take(at_time(l, crew.now_ns), logins, &key, sizeof(key), 5, NULL);
	for (uint32_t key = 0; key < 2000; key++) {
		place = (struct shmlimit_place){ .struct_size = sizeof(place) };
		if (shmlimit_enter(at_time(l, crew.now_ns), id, &key, sizeof(key), &place, NULL) == SHMLIMIT_ALLOWED)
			(void)shmlimit_leave(l, id, &key, sizeof(key), &place);
		crew.now_ns += SECOND / 1000;
	}
	for (uint32_t key = 0; key < 100; key++)
		denied += shmlimit_peek(at_time(l, crew.now_ns), logins, &key, sizeof(key), 1, NULL) == SHMLIMIT_DENIED;
	is(denied, 100, "those who enter and leave push out no limit that is in force");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .slots_max = 64 };
	struct rng rng = { rng_seed() };

	l = unit_create("auto", &options);
	beginnings();
	entries();
	moves(SHMLIMIT_LAW_VEGAS);
	moves(SHMLIMIT_LAW_GRADIENT2);
	moves(SHMLIMIT_LAW_AIMD);
	drops();
	for (uint32_t law = SHMLIMIT_LAW_VEGAS; law <= SHMLIMIT_LAW_AIMD; law++)
		dry_run(law);
	disturbed("one request of 50 s", 50 * SECOND, 0, 0);
	disturbed("a clock that steps forward by half a minute", 0, (int64_t)(30 * SECOND), 0);
	disturbed("a clock that steps back by half a minute", 0, -(int64_t)(30 * SECOND), 0);
	disturbed("a clock that steps back by a tenth of a second", 0, -(int64_t)(100 * MS), 0);
	disturbed("places that are renewed before they are left", 0, (int64_t)SECOND, 1);
	bursts();
	changes();
	damage(&rng);
	histories(&rng);
	grows();
	crowded();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	return tap_done();
}
