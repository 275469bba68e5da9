/*
 * Laws of lib/algorithm/gcra/gcra.h and gcra_row.h: a key's word is one time, at which its bucket was empty, and a place.
 * What tokens cost is a product and a division of 64 bits, which z3 cannot prove: tests/fuzz/target/arithmetic and
 * tests/unit/gcra try it, beside exact numbers. So here a token costs one tick.
 *
 * That limits that alternate on a key are each admitted no more than alone follows from three laws: what a limit is
 * allowed its room lacks afterwards (law_take_costs), what another one is allowed gives it none (law_take_of_another),
 * and time gives it no more than it lasts, also where the key is over by all limits (law_room_grows). That together they
 * spend no more than there was follows from law_take_moves, since the time at which a bucket was empty is never later
 * than now.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gcra_row.h"
#include "law.h"

#define YEAR_NS ((uint64_t)366 * 86400 * 1000000000)

/* A limit whose tokens cost a tick each. */
static struct gcra limit_of(uint64_t tolerance)
{
	assume(tolerance >= 1 && tolerance <= GCRA_LONGEST);
	return (struct gcra){ .capacity = tolerance, .interval = 1, .tokens = 1, .tolerance = tolerance };
}

/* What is left of a bucket by a limit, at a time, where a word of this place is over after `longest` ticks. */
static int64_t room_of(const struct gcra *g, uint64_t word, uint64_t now_ns, uint64_t longest)
{
	struct gcra_state state = gcra_read(word, now_ns, longest, GCRA_AHEAD);

	return gcra_state_room(g, &state);
}

/* A bucket's age is a tick older with each tick: in a year and a time to full it does not come round. */
int law_time_passes(uint64_t back, uint64_t now_ns, uint64_t passed_ns, uint64_t longest, unsigned place)
{
	struct gcra_state state;
	int64_t room;

	assume(back <= GCRA_AHEAD + GCRA_LONGEST && passed_ns <= YEAR_NS && place < GCRA_PLACES);
	room = (int64_t)(back - GCRA_AHEAD);
	state = gcra_read(gcra_pack(room, place, now_ns), now_ns + passed_ns, longest, GCRA_AHEAD);
	return !state.stepped && state.age == room + (int64_t)(passed_ns << GCRA_TICK_BITS) && state.place == place;
}

/* ... and not after any time */
int false_time_passes(uint64_t now_ns, uint64_t passed_ns)
{
	assume(passed_ns <= 10 * YEAR_NS);
	return gcra_word_age(gcra_pack(0, 0, now_ns), now_ns + passed_ns) == (int64_t)(passed_ns << GCRA_TICK_BITS);
}

/* a debt within the segment's longest is believed, also by a clock that was read up to a second earlier */
int law_believed(uint64_t debt, uint64_t now_ns, uint64_t earlier_ns, uint64_t owed)
{
	assume(debt <= owed && owed <= GCRA_AHEAD - GCRA_SLACK && earlier_ns <= now_ns &&
	       earlier_ns <= GCRA_SLACK >> GCRA_TICK_BITS);
	return !gcra_read(gcra_pack(0 - (int64_t)debt, 0, now_ns), now_ns - earlier_ns, 0, gcra_ahead(owed)).stepped;
}

/* ... and not by one that stepped back by more */
int false_believed(uint64_t debt, uint64_t now_ns, uint64_t earlier_ns, uint64_t owed)
{
	assume(debt <= owed && owed <= GCRA_AHEAD - GCRA_SLACK && earlier_ns <= now_ns && earlier_ns <= YEAR_NS);
	return !gcra_read(gcra_pack(0 - (int64_t)debt, 0, now_ns), now_ns - earlier_ns, 0, gcra_ahead(owed)).stepped;
}

/*
 * whatever is in a word, and whatever the clock says, a key owes no more than one time to full of the limit that it is
 * asked with, and the longest debt of the segment (I8)
 */
int law_owes(uint64_t word, uint64_t now_ns, uint64_t longest, uint64_t owed, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct gcra_state state = gcra_read(word, now_ns, longest, gcra_ahead(owed));
	int64_t room = gcra_state_room(&g, &state);

	assume(owed <= GCRA_AHEAD - GCRA_SLACK);
	return room <= (int64_t)tolerance && room >= -(int64_t)(owed + GCRA_SLACK);
}

/* ... nor does it without the look at times that are impossible */
int false_owes(uint64_t word, uint64_t now_ns, uint64_t owed, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	int64_t room = gcra_room(&g, gcra_word_age(word, now_ns));

	assume(owed <= GCRA_AHEAD - GCRA_SLACK);
	return room <= (int64_t)tolerance && room >= -(int64_t)(owed + GCRA_SLACK);
}

/* what a limit is allowed its room lacks afterwards, to the tick, and a denial is for no longer than a time to full */
int law_take_costs(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age), before = room;
	uint64_t after;

	assume(tokens >= 1 && tokens <= tolerance && age >= 0);
	gcra_take(&g, tokens, 1, &room, &v);
	after = gcra_word_with(word, age, room);
	if (v.answer != SHMLIMIT_ALLOWED)
		return !v.changed && room == before && v.retry_after_ns <= gcra_ns(tolerance);
	return v.changed && gcra_word_age(after, now_ns) == before - (int64_t)tokens && before >= (int64_t)tokens &&
	       gcra_word_place(after) == gcra_word_place(word);
}

/* ... and it is not half of that */
int false_take_costs(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age), before = room;

	assume(tokens >= 1 && tokens <= tolerance && age >= 0);
	gcra_take(&g, tokens, 1, &room, &v);
	return v.answer != SHMLIMIT_ALLOWED ||
	       gcra_word_age(gcra_word_with(word, age, room), now_ns) == before - (int64_t)(tokens >> 1);
}

/* what is allowed moves the time at which the bucket was empty by its cost at least, and not beyond now */
int law_take_moves(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age);

	assume(tokens <= tolerance);
	gcra_take(&g, tokens, 1, &room, &v);
	return !v.changed || (room <= age - (int64_t)tokens && room >= 0);
}

/* ... and where the limit is full by more than that */
int false_take_moves(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age);

	assume(tokens <= tolerance);
	gcra_take(&g, tokens, 1, &room, &v);
	return !v.changed || room == age - (int64_t)tokens;
}

/* what is allowed by one limit gives another one no room */
int law_take_of_another(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance, uint64_t others)
{
	struct gcra g = limit_of(tolerance), other = limit_of(others);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age);

	assume(tokens <= tolerance);
	gcra_take(&g, tokens, 1, &room, &v);
	return !v.changed ||
	       gcra_room(&other, gcra_word_age(gcra_word_with(word, age, room), now_ns)) <= gcra_room(&other, age);
}

/* ... and may leave it some: it takes not all */
int false_take_of_another(uint64_t word, uint64_t now_ns, uint64_t tokens, uint64_t tolerance, uint64_t others)
{
	struct gcra g = limit_of(tolerance), other = limit_of(others);
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	int64_t age = gcra_word_age(word, now_ns), room = gcra_room(&g, age);

	assume(tokens <= tolerance);
	gcra_take(&g, tokens, 1, &room, &v);
	return !v.changed || gcra_room(&other, gcra_word_age(gcra_word_with(word, age, room), now_ns)) <= 0;
}

/*
 * time gives a limit no more room than it lasts, also where the key is over by all limits: a word is over when it is as
 * old as the longest limit of its place, of which this is one
 */
int law_room_grows(uint64_t word, uint64_t now_ns, uint64_t passed_ns, uint64_t longest, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct gcra_state state = gcra_read(word, now_ns, longest, GCRA_AHEAD);

	assume(tolerance <= longest && longest <= GCRA_LONGEST && passed_ns <= YEAR_NS);
	assume(!state.stepped && state.age <= (int64_t)GCRA_LONGEST);
	return room_of(&g, word, now_ns + passed_ns, longest) <=
	       gcra_state_room(&g, &state) + (int64_t)(passed_ns << GCRA_TICK_BITS);
}

/* ... but not where a limit that is longer than all that were asked before finds the key full */
int false_room_grows(uint64_t word, uint64_t now_ns, uint64_t passed_ns, uint64_t longest, uint64_t tolerance)
{
	struct gcra g = limit_of(tolerance);
	struct gcra_state state = gcra_read(word, now_ns, longest, GCRA_AHEAD);

	assume(longest <= GCRA_LONGEST && passed_ns <= YEAR_NS);
	assume(!state.stepped && state.age <= (int64_t)GCRA_LONGEST);
	return room_of(&g, word, now_ns + passed_ns, longest) <=
	       gcra_state_room(&g, &state) + (int64_t)(passed_ns << GCRA_TICK_BITS);
}

/* a place is of times to full of half its longest at least, or of the shortest */
int law_places(uint64_t a, uint64_t b)
{
	assume(a <= GCRA_LONGEST && b <= a && b >= (uint64_t)1 << 26);
	return gcra_place(a) < GCRA_PLACES && gcra_place(b) <= gcra_place(a) &&
	       (gcra_place(a) != gcra_place(b) || a - b <= b);
}

/* ... and two times to full may have one place */
int false_places(uint64_t a, uint64_t b)
{
	assume(a <= GCRA_LONGEST && b < a && b >= (uint64_t)1 << 26);
	return gcra_place(b) < gcra_place(a);
}
