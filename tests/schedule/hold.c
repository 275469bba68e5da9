/*
 * hold: several actors enter, renew and leave places, also while their slot goes from
 * key to key and the table grows (I3, I4, I13).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"
#include "decide.h"
#include "hold.h"
#include "holder.h"
#include "ring.h"

#include <sys/wait.h>

#define PLACES 2
#define PERIOD_NS (10 * HOLD_TICK_NS)
#define ENTRIES_MAX 64

static const struct shmlimit_rule rule = { .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = PERIOD_NS };

/* Each entry that was begun in this schedule, in the order of beginnings. */
static struct entry {
	uint32_t key;
	struct shmlimit_place hold;
	unsigned began, left; /* moments: when the entry began, when its leave ended */
	int is_in;            /* entered, and no leave of it has begun */
	int in_call;          /* a call with it began and has not ended */
} entries[ENTRIES_MAX];
static unsigned entered;

static void begin(void)
{
	entered = 0;
}

/* By the holder's own clock. */
static uint64_t end_ns(const struct entry *e)
{
	return e->hold.value >> HOLD_END_SHIFT << HOLD_TICK_BITS;
}

/* Places that are surely held. */
static unsigned held(uint32_t key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < entered; i++)
		n += entries[i].key == key && entries[i].is_in && end_ns(&entries[i]) > schedule.now_ns;
	return n;
}

/* Entries that are held, or may have been since `began`. */
static unsigned perhaps_held(uint32_t key, unsigned began)
{
	unsigned n = 0;

	for (unsigned i = 0; i < entered; i++) {
		const struct entry *e = &entries[i];

		n += e->key == key && (e->in_call || e->is_in || e->left > began);
	}
	return n;
}

static struct entry *enter(uint32_t key)
{
	struct call *c = call_begin(key, 1);
	struct entry *e = &entries[entered++];

	if (entered == ENTRIES_MAX)
		bail("too many entries");
	*e = (struct entry){ .key = key, .hold.struct_size = sizeof(e->hold), .began = c->began, .in_call = 1 };
	actor_calls();
	call_end(c, shmlimit_enter(handle(), stage.rule, &key, sizeof(key), &e->hold, NULL));
	e->in_call = 0;
	e->left = c->ended;
	e->is_in = c->answer == SHMLIMIT_ALLOWED;
	if (e->is_in && held(key) > PLACES)
		blame("key %u: %u places are held", key, held(key));
	if (c->answer == SHMLIMIT_DENIED && stage.peaceful && perhaps_held(key, c->began) <= PLACES)
		blame("key %u: denied while %u could be in", key, perhaps_held(key, c->began) - 1);
	return e;
}

/* A place that has not ended is left, or renewed; one that was left is not. */
static void leave(struct entry *e)
{
	int was_in = e->is_in, error;

	e->is_in = 0;
	e->in_call = was_in;
	actor_calls();
	error = shmlimit_leave(handle(), stage.rule, &e->key, sizeof(e->key), &e->hold);
	if (error != 0 && error != -ETIME)
		blame("leave: %s", shmlimit_strerror(error));
	if (e->hold.value != 0 && !was_in && error == 0)
		blame("a place was left twice");
	if (was_in && error != 0 && end_ns(e) > schedule.now_ns)
		blame("a place was lost");
	e->in_call = 0;
	e->left = ++stage.moments;
}

static void renew(struct entry *e)
{
	struct shmlimit_place hold = e->hold;
	int was_in = e->is_in, error;

	actor_calls();
	error = shmlimit_renew(handle(), stage.rule, &e->key, sizeof(e->key), &hold);
	if (error != 0 && error != -ETIME)
		blame("renew: %s", shmlimit_strerror(error));
	if (hold.value != 0 && !was_in && error == 0)
		blame("a place that was left was renewed");
	if (was_in && error != 0 && end_ns(e) > schedule.now_ns)
		blame("a place was lost");
	e->hold = hold;
	e->is_in = was_in && error == 0;
	if (held(e->key) > PLACES)
		blame("key %u: %u places are held", e->key, held(e->key));
}

/* What is free, and what is held or may be, make the capacity. */
static void law_places(uint32_t key)
{
	uint64_t rest = left(key);
	unsigned killed = 0;

	for (unsigned i = 0; i < entered; i++)
		killed += entries[i].key == key && entries[i].in_call;
	if (rest + held(key) > PLACES)
		blame("key %u: %" PRIu64 " places are free and %u held", key, rest, held(key));
	/* Of a table that grew, a place may be missing that no process holds: see shmlimit.7. */
	if (!stage.growing && rest + held(key) + killed < PLACES)
		blame("key %u: %" PRIu64 " places are free and %u held: one is lost", key, rest, held(key));
}

static struct shmlimit *set_empty(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2, rule);

	stage.peaceful = 1;
	return l;
}

static void act(unsigned who)
{
	struct entry *first = enter(KEY), *second = enter(KEY);

	leave(first);
	leave(first);
	if (who == 1)
		renew(second);
	first = enter(KEY);
	leave(second);
	renew(second);
	(void)first;
}

static void judge(void)
{
	law_places(KEY);
	law_sound();
}

static const struct scene standing = {
	.title = "while time stands no more places are held than there are, each is left once, and none is lost",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.begin = begin,
	.act = act,
	.judge = judge,
};

/* A take has no holder that would remember what it tried: it has to take that back. */
static void act_taking(unsigned who)
{
	(void)who;
	take(KEY, 1);
	take(KEY, 1);
}

static void judge_taking(void)
{
	law_total(KEY, PLACES);
	law_sound();
}

static const struct scene taking = {
	.title = "takes enter as many places as there are, and lose none to each other",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.begin = begin,
	.act = act_taking,
	.judge = judge_taking,
};

static void judge_ending(void)
{
	if (left(KEY) + held(KEY) > PLACES)
		blame("%" PRIu64 " places are free and %u held", left(KEY), held(KEY));
	schedule.now_ns += PERIOD_NS + HOLD_TICK_NS + SECOND;
	if (left(KEY) != PLACES)
		blame("after a period %" PRIu64 " places are free", left(KEY));
	law_sound();
}

static const struct scene ending = {
	.title = "no more than the capacity hold places as places end by themselves; after a period all are free",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - HOLD_TICK_NS, 3 * PERIOD_NS },
	.set = set_empty,
	.begin = begin,
	.act = act,
	.judge = judge_ending,
};

/* Two keys, and one slot for them. */
static struct shmlimit *set_one_place(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 1, rule);
}

static void act_in_turns(unsigned who)
{
	uint32_t key = who == 1 ? OTHER : KEY;
	struct entry *first = enter(key), *second = enter(key);

	leave(first);
	leave(second);
	leave(second);
	first = enter(who == 2 ? OTHER : KEY);
	renew(first);
}

static void judge_in_turns(void)
{
	if (left(KEY) + held(KEY) > PLACES || left(OTHER) + held(OTHER) > PLACES)
		blame("%u and %u are held, %" PRIu64 " and %" PRIu64 " are free", held(KEY), held(OTHER), left(KEY),
		      left(OTHER));
	law_sound();
}

static const struct scene two_keys = {
	.title = "a slot does not go to another key while a place in it is held",
	.actors = 3,
	.mortals = 2,
	.set = set_one_place,
	.begin = begin,
	.act = act_in_turns,
	.judge = judge_in_turns,
};

static const struct scene two_keys_ending = {
	.title = "no more than the capacity hold places when a slot goes from key to key as places end",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_one_place,
	.begin = begin,
	.act = act_in_turns,
	.judge = judge_in_turns,
};

/* The capacity goes down and up, and the period with it. */
static void act_changing(unsigned who)
{
	struct shmlimit_rule changed = rule;

	if (who != 0) {
		act(who);
		return;
	}
	stage.changing = 1;
	for (unsigned n = 1; n <= 5; n++) {
		changed.capacity = n % 2 != 0 ? PLACES - 1 : PLACES;
		changed.period_ns = n % 2 != 0 ? 3 * PERIOD_NS : PERIOD_NS;
		change(changed);
	}
}

static void judge_changing(void)
{
	if (held(KEY) > PLACES)
		blame("%u places are held", held(KEY));
	law_sound();
}

static struct shmlimit *set_changing(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2, rule);
}

static const struct scene changing = {
	.title = "no more than the capacity hold places while the rule is changed five times; no place is lost",
	.actors = 3,
	.mortals = 2,
	.set = set_changing,
	.begin = begin,
	.act = act_changing,
	.judge = judge_changing,
};

/* ---- Bound places ---- */

static uint32_t alive, dead;

static struct shmlimit *set_bound(void)
{
	pid_t pid;

	if (alive == 0) {
		if (holder_of(0, &alive) != 0)
			bail("/proc does not show this process");
		pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		if (pid < 0 || holder_of((uint32_t)pid, &dead) != 0)
			bail("no child");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return set_one_place();
}

static void begin_bound(void)
{
	begin();
	stage.l->header->pid_namespace = holder_namespace();
}

/* shmlimit_bind(), which would not bind to a dead process: as if it had died since. */
static void bind_to(struct entry *e, uint32_t holder)
{
	struct hold_request asked = { .place = { e->hold.index, e->hold.value }, .holder = holder };
	struct request q = request_make(OP_BIND, stage.rule, key_bytes(&e->key, sizeof(e->key)), 0, when_clock());
	int was_in = e->is_in;

	if (holder == dead)
		e->is_in = 0; /* from now on another may have it */
	q.hold = &asked;
	actor_calls();
	(void)decide_call(handle(), &q, NULL);
	if (was_in && holder != dead && !asked.done && end_ns(e) > schedule.now_ns)
		blame("a place that was to be bound was lost");
	e->hold.value = asked.place.value;
}

/* Each is bound to the living, the second then to the dead; the slot goes from key to key. */
static void act_bound(unsigned who)
{
	uint32_t key = who == 1 ? OTHER : KEY;
	struct entry *first = enter(key), *second = enter(key);

	bind_to(first, alive);
	bind_to(second, who == 2 ? dead : alive);
	if (who == 0)
		bind_to(second, dead);
	else
		renew(first);
	leave(first);
	first = enter(key);
	bind_to(first, alive);
	enter(key);
	leave(first);
}

static void judge_bound(void)
{
	if (left(KEY) + held(KEY) > PLACES || left(OTHER) + held(OTHER) > PLACES)
		blame("%u and %u are held, %" PRIu64 " and %" PRIu64 " are free", held(KEY), held(OTHER), left(KEY),
		      left(OTHER));
	law_sound();
}

static const struct scene bound = {
	.title = "no place whose process lives goes to another while places of dead ones do",
	.actors = 3,
	.mortals = 2,
	.set = set_bound,
	.begin = begin_bound,
	.act = act_bound,
	.judge = judge_bound,
};

static const struct scene bound_ending = {
	.title = "no place whose process lives goes to another while places end by themselves",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_bound,
	.begin = begin_bound,
	.act = act_bound,
	.judge = judge_bound,
};

/* One place is bound by two, to the dead and to the living, while another process wants it. */
static struct shmlimit_place shared, promised;

static void begin_shared(void)
{
	struct shmlimit_place other = { .struct_size = sizeof(other) };
	uint32_t key = KEY;

	begin_bound();
	promised = (struct shmlimit_place){ 0 };
	shared = (struct shmlimit_place){ .struct_size = sizeof(shared) };
	if (shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &shared, NULL) != SHMLIMIT_ALLOWED ||
	    shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &other, NULL) != SHMLIMIT_ALLOWED)
		bail("a new key has no places");
}

static void act_shared(unsigned who)
{
	struct hold_request asked = { .place = { shared.index, shared.value }, .holder = who == 1 ? dead : alive };
	uint32_t key = KEY;
	struct request q = request_make(OP_BIND, stage.rule, key_bytes(&key, sizeof(key)), 0, when_clock());

	if (who == 0) {
		enter(KEY);
		enter(KEY);
		return;
	}
	q.hold = &asked;
	actor_calls();
	(void)decide_call(handle(), &q, NULL);
	if (who == 2 && asked.done)
		promised.value = asked.place.value;
}

/* Nothing was left: a place that was bound to the living is as it was, or bound again. */
static void judge_shared(void)
{
	const struct layout_slot *slot = NULL;

	for (uint64_t i = 0; i < stage.l->tables->lines * SLOTS_PER_LINE; i++)
		if (stage.l->tables->slots[i].tag != 0)
			slot = &stage.l->tables->slots[i];
	if (slot != NULL && promised.value != 0 &&
	    cells_at(stage.l, stage.l->tables, slot, rule_params(&stage.l->rules[stage.rule], 1))[shared.index] ==
	            hold_without(promised.value))
		blame("a place that was bound to the living was lost");
	law_sound();
}

static const struct scene bound_twice = {
	.title = "a place that two processes bind at once is that of one of them",
	.actors = 3,
	.mortals = 2,
	.set = set_bound,
	.begin = begin_shared,
	.act = act_shared,
	.judge = judge_shared,
};

/* The table grows, twice. */
static struct shmlimit *set_larger(void)
{
	return set_growing(rule);
}

static void act_growing(unsigned who)
{
	if (who == 0)
		grow_twice();
	else
		act(who);
}

static void judge_growing(void)
{
	law_places(KEY);
	law_left();
}

static const struct scene growing = {
	.title = "no more than the capacity hold places while the table grows; no place is lost",
	.actors = 3,
	.mortals = 2,
	.set = set_larger,
	.begin = begin,
	.act = act_growing,
	.judge = judge_growing,
};

/* Who enters remembers what it tried: a place that moved with the key before it was taken back is not lost. */
static void judge_moving(void)
{
	if (left(KEY) + held(KEY) != PLACES)
		blame("%" PRIu64 " places are free and %u held", left(KEY), held(KEY));
	law_left();
}

static const struct scene moving = {
	.title = "no place is lost while the table grows if no process is killed",
	.actors = 3,
	.set = set_larger,
	.begin = begin,
	.act = act_growing,
	.judge = judge_moving,
};

/*
 * Both places were entered before the clock stepped back, and time does not go on. A denied entry shortens them; what
 * their holders have goes on standing for them. When no other enters, all end within a period.
 */
static void begin_stepped(void)
{
	uint32_t key = KEY;

	begin();
	for (; entered < PLACES; entered++) {
		struct entry *e = &entries[entered];

		*e = (struct entry){ .key = KEY, .hold.struct_size = sizeof(e->hold), .is_in = 1 };
		if (shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &e->hold, NULL) != SHMLIMIT_ALLOWED)
			bail("enter");
	}
	schedule.now_ns -= 100 * PERIOD_NS;
}

static void act_stepped(unsigned who)
{
	struct entry *own;

	if (who == 0) {
		leave(&entries[0]);
		leave(&entries[0]);
		renew(&entries[1]);
		leave(&entries[1]);
	}
	own = enter(KEY);
	renew(own);
	leave(own);
	(void)enter(KEY);
}

static void judge_stepped(void)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	uint32_t key = KEY;

	law_places(KEY);
	while (shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &hold, NULL) == SHMLIMIT_ALLOWED)
		;
	schedule.now_ns += PERIOD_NS + HOLD_TICK_NS;
	if (left(KEY) != PLACES)
		blame("a period after a denial %" PRIu64 " places are free", left(KEY));
	law_sound();
}

static const struct scene stepped = {
	.title =
		"a clock that stepped back takes no place from its holder, gives none to another, and locks out for a period",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.begin = begin_stepped,
	.act = act_stepped,
	.judge = judge_stepped,
};

int main(void)
{
	play(&standing);
	play(&ending);
	play(&stepped);
	play(&two_keys);
	play(&two_keys_ending);
	play(&bound);
	play(&bound_ending);
	play(&bound_twice);
	play(&changing);
	play(&growing);
	play(&moving);
	play(&taking);
	return tap_done();
}
