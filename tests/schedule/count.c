/*
 * count: several actors add to a count that expires, each of them by an addition that
 * knows its bound (I1, I2, I3, I5).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4
#define PERIOD_NS 10000

static const struct shmlimit_rule rule = { .algorithm = SHMLIMIT_COUNTER,
	                                   .capacity = CAPACITY,
	                                   .period_ns = PERIOD_NS };

/* What each call of this schedule found, by its place in stage.calls. */
static int64_t counted[CALLS_MAX];

static struct shmlimit *set_empty(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2, rule);
}

static void add(uint32_t key, int64_t n)
{
	struct call *c = call_begin(key, n);
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct layout_slot before[SLOTS];
	unsigned turns = schedule.turns;

	actor_calls();
	memcpy(before, stage.l->tables->slots, sizeof(before));
	call_end(c, shmlimit_count(
			    handle(), stage.rule, &key, sizeof(key),
			    &(struct shmlimit_count_request){
				    .struct_size = sizeof(struct shmlimit_count_request), .n = n, .bound = INT64_MAX },
			    &count));
	counted[c - stage.calls] = count.count;
	if (c->answer == SHMLIMIT_DENIED && turns == schedule.turns && !stage.changing &&
	    memcmp(before, stage.l->tables->slots, sizeof(before)) != 0)
		blame("a denied addition wrote to the table");
	if (c->answer == SHMLIMIT_ALLOWED && (count.applied != n || count.count < n || count.count > CAPACITY))
		blame("%" PRId64 " was added, of %" PRId64 ", which makes %" PRId64, count.applied, n, count.count);
	if (c->answer == SHMLIMIT_DENIED && (count.applied != 0 || count.count + n <= CAPACITY))
		blame("%" PRId64 " more was denied at %" PRId64, n, count.count);
}

static void act(unsigned who)
{
	add(KEY, 1 + who % 2);
	add(KEY, 1);
	add(KEY, 2);
}

/* While a count lives no two additions find the same. */
static void law_counts(void)
{
	for (unsigned i = 0; i < stage.n; i++)
		for (unsigned j = 0; j < i; j++)
			if (was_taken(&stage.calls[i]) && was_taken(&stage.calls[j]) && counted[i] == counted[j])
				blame("two additions made %" PRId64, counted[i]);
}

static void judge_standing(void)
{
	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_counts();
	law_sound();
}

static const struct scene standing = {
	.title = "while time stands what is added is counted once, and is denied beyond the bound",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.act = act,
	.judge = judge_standing,
};

/* A period has the end of one count and the beginning of the next. */
static void judge_ending(void)
{
	law_period(KEY, 2 * CAPACITY, PERIOD_NS);
	schedule.now_ns += PERIOD_NS + SECOND;
	if (left(KEY) != CAPACITY)
		blame("after its time the count is %" PRIu64, CAPACITY - left(KEY));
	law_sound();
}

static const struct scene ending = {
	.title = "a period counts no more than twice the bound, and a count ends with its time",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_empty,
	.act = act,
	.judge = judge_ending,
};

/* Two keys, and one slot for them. */
static struct shmlimit *set_one_place(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 1, rule);
}

/* KEY counts by twos, and OTHER has 3 or none. */
static void add_of(uint32_t key)
{
	int64_t n = key == KEY ? 2 : 3;
	struct call *c = call_begin(key, n);
	struct shmlimit_count count = { .struct_size = sizeof(count) };

	actor_calls();
	call_end(c, shmlimit_count(
			    handle(), stage.rule, &key, sizeof(key),
			    &(struct shmlimit_count_request){
				    .struct_size = sizeof(struct shmlimit_count_request), .n = n, .bound = INT64_MAX },
			    &count));
	if (count.count % n != 0 || count.count < 0 || count.count > CAPACITY)
		blame("key %u: %" PRId64 " is counted, and each addition is of %" PRId64, key, count.count, n);
}

static void act_in_turns(unsigned who)
{
	add_of(who == 1 ? OTHER : KEY);
	add_of(who == 1 ? KEY : OTHER);
	add_of(KEY);
	add_of(OTHER);
}

static void judge_in_turns(void)
{
	law_period(KEY, 2 * CAPACITY, PERIOD_NS);
	law_period(OTHER, 2 * CAPACITY, PERIOD_NS);
	law_sound();
}

static const struct scene two_keys = {
	.title = "a key does not count what is the other's when one slot goes from key to key",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_one_place,
	.act = act_in_turns,
	.judge = judge_in_turns,
};

/* The rule is changed, to another word and back. */
static void act_changing(unsigned who)
{
	struct shmlimit_rule changed = rule;

	if (who != 0) {
		act(who);
		return;
	}
	stage.changing = 1;
	for (unsigned n = 1; n <= 6; n++) {
		changed.period_ns = n % 2 != 0 ? (uint64_t)1 << 60 : PERIOD_NS;
		change(changed);
	}
}

static void judge_changing(void)
{
	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_counts();
	/* Not law_sound(): what was counted under the long period lives for years. */
	stage.lost += unit_counters(stage.l, stage.rule).failed_cas;
	law_no_duplicate();
}

static const struct scene changing = {
	.title = "what was counted is counted while the rule is changed six times",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.act = act_changing,
	.judge = judge_changing,
};

/* The clock was set by 40 days since the segment was made, and no process has found that yet. */
#define STEP_NS (40 * DAY_NS)

static struct shmlimit *set_calendar(void)
{
	struct shmlimit *l = stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.algorithm = SHMLIMIT_COUNTER, .capacity = CAPACITY, .period_ns = DAY_NS, .zone = "UTC" });

	l->header->unix_ns -= STEP_NS;
	return l;
}

static void judge_calendar(void)
{
	uint64_t now_ns = schedule.now_ns + stage.l->header->unix_ns, end_ns = DAY_NS - now_ns % DAY_NS;
	unsigned counted_once = 0;

	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_counts();
	for (unsigned i = 0; i < stage.n; i++)
		counted_once += was_taken(&stage.calls[i]) != 0;
	if (counted_once > 0 && stage.l->header->unix_ns + SECOND > 2 * SECOND)
		blame("the calendar is %" PRIu64 " ns wrong", stage.l->header->unix_ns);
	schedule.now_ns += end_ns + SECOND;
	if (left(KEY) != CAPACITY)
		blame("after midnight the count is %" PRIu64, CAPACITY - left(KEY));
	law_sound();
}

static const struct scene calendar = {
	.title = "counts that begin when the clock was set are counted once, and all end at the same midnight",
	.actors = 3,
	.mortals = 2,
	.set = set_calendar,
	.act = act,
	.judge = judge_calendar,
};

int main(void)
{
	play(&standing);
	play(&ending);
	play(&two_keys);
	play(&changing);
	play(&calendar);
	return tap_done();
}
