/*
 * hold: several actors enter, renew and leave places, also while their slot goes from
 * key to key and the table grows (I3, I4, I13).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define SCHEDULES 3000 /* of each of many scenes */
#include "growing.h"
#include "decide.h"
#include "hold_place.h"
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
	unsigned entered;     /* when it had ended */
	unsigned bound;       /* by which it entered */
	int is_in;            /* entered, and no leave of it has begun */
	int lasts;            /* it was bound to a process that lives */
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

static int is_over(const struct entry *e)
{
	return !e->lasts && end_ns(e) <= schedule.now_ns;
}

/* Places that are surely held. */
static unsigned held(uint32_t key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < entered; i++)
		n += entries[i].key == key && entries[i].is_in && !is_over(&entries[i]);
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

/*
 * Places that were held all the time since `began`, beside this one. What entered since may have done so after it, by a
 * higher bound.
 */
static unsigned surely_held(const struct entry *mine, unsigned began)
{
	unsigned n = 0;

	for (unsigned i = 0; i < entered; i++) {
		const struct entry *e = &entries[i];

		n += e != mine && e->key == mine->key && e->is_in && !is_over(e) && e->entered < began;
	}
	return n;
}

/* Those that are surely held and entered by this bound or a lower one: the last of them counted the others. */
static unsigned held_within(uint32_t key, unsigned bound)
{
	unsigned n = 0;

	for (unsigned i = 0; i < entered; i++)
		n += entries[i].key == key && entries[i].is_in && !is_over(&entries[i]) && entries[i].bound <= bound;
	return n;
}

/* By a bound of its own, unless that is 0; with flags of the place. */
static struct entry *enter_with(uint32_t key, unsigned bound, uint32_t flags)
{
	struct shmlimit_limit limit = { .struct_size = sizeof(limit),
		                        .flags = SHMLIMIT_LIMIT_PLACES,
		                        .capacity = bound };
	struct shmlimit_request q = { .rule = stage.rule, .key = &key, .key_len = sizeof(key), .cost = 1 };
	unsigned most = bound != 0 ? bound : PLACES;
	struct call *c = call_begin(key, 1);
	struct entry *e = &entries[entered++];

	if (entered == ENTRIES_MAX)
		bail("too many entries");
	*e = (struct entry){
		.key = key, .hold.struct_size = sizeof(e->hold), .began = c->began, .bound = most, .in_call = 1
	};
	e->hold.flags = flags;
	q.place = &e->hold;
	q.limit = &limit;
	actor_calls();
	call_end(c, bound == 0 ? shmlimit_enter(handle(), stage.rule, &key, sizeof(key), &e->hold, NULL)
	                       : shmlimit_decide(handle(), SHMLIMIT_TAKE, &q, NULL));
	e->in_call = 0;
	e->left = e->entered = c->ended;
	e->is_in = c->answer == SHMLIMIT_ALLOWED;
	e->lasts = e->is_in && flags != 0;
	if (e->is_in && held_within(key, most) > most)
		blame("key %u: %u places are held by a bound of %u", key, held_within(key, most), most);
	if (e->is_in && surely_held(e, c->began) >= most)
		blame("key %u: entered by a bound of %u beside %u places", key, most, surely_held(e, c->began));
	if (c->answer == SHMLIMIT_DENIED && stage.peaceful && perhaps_held(key, c->began) <= most)
		blame("key %u: denied while %u could be in, of %u", key, perhaps_held(key, c->began) - 1, most);
	return e;
}

static struct entry *enter_by(uint32_t key, unsigned bound)
{
	return enter_with(key, bound, 0);
}

static struct entry *enter(uint32_t key)
{
	return enter_with(key, 0, 0);
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
	if (was_in && error != 0 && !is_over(e))
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
	if (was_in && error != 0 && !is_over(e))
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

/* By bounds of one place and of two, and by the capacity: a lower one ends no place. */
static void act_bounded(unsigned who)
{
	struct entry *first = enter_by(KEY, 1 + who % 2), *second = enter_by(KEY, 2 - who % 2);

	if (who == 2)
		leave(second);
	leave(first);
	first = enter_by(KEY, 1);
	second = enter(KEY);
	leave(first);
	enter_by(KEY, 2);
	leave(second);
}

static const struct scene bounded = {
	.title = "an entry by a bound of its own is within it, and denied only beyond it",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.begin = begin,
	.act = act_bounded,
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

static const struct scene bounded_ending = {
	.title = "an entry by a bound of its own is within it as places end by themselves",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - HOLD_TICK_NS, 3 * PERIOD_NS },
	.set = set_empty,
	.begin = begin,
	.act = act_bounded,
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

/* The numbers of this process and of one that has died. */
static uint64_t alive, dead;

static void register_two(struct shmlimit *l)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	if (pid < 0 || registry_process(l, (uint32_t)pid, &dead) != 0)
		bail("no child");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (registry_process(l, (uint32_t)getpid(), &alive) != 0)
		bail("/proc does not show this process");
}

static struct shmlimit *set_bound(void)
{
	struct shmlimit *l = set_one_place();

	register_two(l);
	return l;
}

/* shmlimit_bind(), which would not bind to a dead process: as if it had died since. */
static void bind_to(struct entry *e, uint64_t holder)
{
	struct hold_request asked = { .place = { e->hold.index, e->hold.value }, .holder = holder };
	struct request q = request_make(OP_BIND, stage.rule, key_bytes(&e->key, sizeof(e->key)), 0, when_clock());
	int was_in = e->is_in;

	if (holder == dead)
		e->is_in = e->lasts = 0; /* from now on another may have it */
	q.hold = &asked;
	actor_calls();
	(void)decide_call(handle(), &q, NULL);
	if (was_in && holder != dead && !asked.done && !is_over(e))
		blame("a place that was to be bound was lost");
	e->lasts = asked.done && e->is_in && holder != dead;
	if (held(e->key) > PLACES)
		blame("key %u: %u places are held", e->key, held(e->key));
}

/* Bound to the living in the same step. */
static struct entry *enter_bound(uint32_t key)
{
	return enter_with(key, 0, SHMLIMIT_PLACE_BIND);
}

/* Each is bound to the living, the second then to the dead; the slot goes from key to key. */
static void act_bound(unsigned who)
{
	uint32_t key = who == 1 ? OTHER : KEY;
	struct entry *first = enter_bound(key), *second = enter(key);

	bind_to(first, alive);
	bind_to(second, who == 2 ? dead : alive);
	if (who == 0)
		bind_to(second, dead);
	else
		renew(first);
	leave(first);
	first = enter_bound(key);
	enter(key);
	leave(first);
}

/* Those of this process would keep their slots for ever, also where an actor was killed that had one. */
static void leave_all(void)
{
	struct layout_holder *h = (struct layout_holder *)(void *)((char *)stage.l->header + LAYOUT_HOLDERS_OFFSET) +
	                          registry_entry(alive);

	for (unsigned i = 0; i < entered; i++)
		if (entries[i].hold.value != 0)
			(void)shmlimit_leave(stage.l, stage.rule, &entries[i].key, sizeof(entries[i].key),
			                     &entries[i].hold);
	/* It dies, and its entry is another's. */
	h->number++;
}

static void judge_bound(void)
{
	if (left(KEY) + held(KEY) > PLACES || left(OTHER) + held(OTHER) > PLACES)
		blame("%u and %u are held, %" PRIu64 " and %" PRIu64 " are free", held(KEY), held(OTHER), left(KEY),
		      left(OTHER));
	leave_all();
	law_sound();
}

static const struct scene bound = {
	.title = "no place whose process lives goes to another while places of dead ones do",
	.actors = 3,
	.mortals = 2,
	.set = set_bound,
	.begin = begin,
	.act = act_bound,
	.judge = judge_bound,
};

static const struct scene bound_ending = {
	.title = "no place whose process lives goes to another while places end by themselves",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_bound,
	.begin = begin,
	.act = act_bound,
	.judge = judge_bound,
};

/*
 * A place goes from parent to child, which is the living one, while its key moves to a larger table: also by a copy from
 * before it was bound it can be left, and no other call has it before.
 */
static struct entry handed;

static struct shmlimit *set_handing(void)
{
	struct shmlimit *l = set_growing(rule);

	register_two(l);
	return l;
}

static void begin_handing(void)
{
	struct shmlimit_place other = { .struct_size = sizeof(other) };
	struct hold_request asked = { .holder = dead };
	uint32_t key = KEY;
	struct request q = request_make(OP_BIND, stage.rule, key_bytes(&key, sizeof(key)), 0, when_clock());

	begin();
	handed = (struct entry){ .key = KEY, .hold.struct_size = sizeof(handed.hold), .is_in = 1 };
	if (shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &handed.hold, NULL) != SHMLIMIT_ALLOWED ||
	    shmlimit_enter(stage.l, stage.rule, &key, sizeof(key), &other, NULL) != SHMLIMIT_ALLOWED)
		bail("a new key has no places");
	/* The parent's, which is dead in a moment. */
	asked.place = (struct hold_place){ handed.hold.index, handed.hold.value };
	q.hold = &asked;
	(void)decide_call(stage.l, &q, NULL);
	if (!asked.done)
		bail("it is not bound");
}

static void act_handing(unsigned who)
{
	struct hold_request asked = { .place = { handed.hold.index, handed.hold.value }, .holder = alive };
	uint32_t key = KEY;
	struct request q = request_make(OP_BIND, stage.rule, key_bytes(&key, sizeof(key)), 0, when_clock());
	int error;

	if (who == 0) {
		grow_twice();
		return;
	}
	if (who == 1) {
		enter(KEY);
		return;
	}
	q.hold = &asked;
	actor_calls();
	(void)decide_call(handle(), &q, NULL);
	/* The parent was dead: another entry was quicker. */
	if (!asked.done)
		return;
	handed.lasts = 1;
	schedule.now_ns += 2 * PERIOD_NS;
	if (enter(KEY)->is_in && enter(KEY)->is_in)
		blame("the place of a process that lives was given away");
	actor_calls();
	error = shmlimit_leave(handle(), stage.rule, &key, sizeof(key), &handed.hold);
	if (error != 0)
		blame("a place that was bound again could not be left: %s", shmlimit_strerror(error));
}

static void judge_handing(void)
{
	uint32_t key = KEY;

	leave_all();
	(void)shmlimit_leave(stage.l, stage.rule, &key, sizeof(key), &handed.hold);
	law_sound();
	law_left();
}

static const struct scene handing = {
	.title = "a place that is bound again while its key moves is the new holder's, who can leave it",
	.actors = 3,
	.set = set_handing,
	.begin = begin_handing,
	.act = act_handing,
	.judge = judge_handing,
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

/* A place that is held is in the line, also while its key moves, and no more are ahead than there are. */
static void look_ahead(struct entry *e)
{
	struct shmlimit_request q = {
		.rule = stage.rule, .key = &e->key, .key_len = sizeof(e->key), .cost = 1, .place = &e->hold
	};
	unsigned began = ++stage.moments;
	int was_in = e->is_in, answer;
	struct shmlimit_result r;

	actor_calls();
	answer = shmlimit_decide(handle(), SHMLIMIT_PEEK, &q, &r);
	if (answer != -ETIME && answer != SHMLIMIT_ALLOWED)
		blame("a peek: %s", shmlimit_strerror(answer));
	if (was_in && answer != SHMLIMIT_ALLOWED)
		blame("a place was lost");
	if (!was_in && answer == SHMLIMIT_ALLOWED)
		blame("a place that was left is in the line");
	if (answer == SHMLIMIT_ALLOWED && r.limit - r.remaining > perhaps_held(e->key, began))
		blame("%" PRIu64 " are in the line, and %u can be", r.limit - r.remaining, perhaps_held(e->key, began));
}

static void act_lined_up(unsigned who)
{
	struct entry *e;

	if (who == 0) {
		grow(2 * SLOTS);
		return;
	}
	e = enter(KEY);
	look_ahead(e);
	if (who == 1)
		leave(e);
	else
		enter(KEY); /* denied, where the other has not left */
	look_ahead(e);
}

static const struct scene lined_up = {
	.title = "a place that is held is in the line while the table grows",
	.actors = 3,
	.set = set_larger,
	.begin = begin,
	.act = act_lined_up,
	.judge = judge_moving,
};

/* By bounds of their own: what an entry tried, and others then denied it, is not lost either. */
static void act_bounded_growing(unsigned who)
{
	if (who == 0)
		grow(2 * SLOTS);
	else if (who == 1)
		enter_by(KEY, 1);
	else
		enter_by(KEY, 2);
}

static const struct scene bounded_moving = {
	.title = "no place that was tried by a bound is lost while the table grows if no process is killed",
	.actors = 3,
	.set = set_larger,
	.begin = begin,
	.act = act_bounded_growing,
	.judge = judge_moving,
};

/* The rule gets more cells, so that the key's are copied. */
#define MORE_PLACES 20

static void act_bounded_sized(unsigned who)
{
	struct shmlimit_rule changed = rule;

	changed.capacity = MORE_PLACES;
	if (who == 0)
		change(changed);
	else if (who == 1)
		enter_by(KEY, 1);
	else
		enter_by(KEY, 2);
}

static struct shmlimit *set_sized(void)
{
	struct shmlimit *l = set_changing();

	stage.changing = 1;
	return l;
}

static void judge_sized(void)
{
	if (left(KEY) + held(KEY) != MORE_PLACES)
		blame("%" PRIu64 " places are free and %u held", left(KEY), held(KEY));
	law_sound();
}

static const struct scene bounded_sized = {
	.title = "no place that was tried by a bound is lost while the rule gets more cells if no process is killed",
	.actors = 3,
	.set = set_sized,
	.begin = begin,
	.act = act_bounded_sized,
	.judge = judge_sized,
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

/* ---- Shares ---- */

#define SHARED 4

/*
 * Each enters once, for OTHER and then for KEY, which has a share of 1. If none leaves, the third to have a place of KEY
 * would have found no more than two of four places free: whatever the order, two hold one at most.
 */
static void act_sharing(unsigned who)
{
	uint32_t all = OTHER, key = KEY;
	struct shmlimit_place places[2] = { { .struct_size = sizeof(places[0]) },
		                            { .struct_size = sizeof(places[1]) } };
	struct shmlimit_request q[2] = { { .rule = stage.rule, .key = &all, .key_len = sizeof(all), .cost = 1 },
		                         { .rule = stage.rule, .key = &key, .key_len = sizeof(key), .cost = 1 } };
	struct call *c = call_begin(KEY, 1);

	(void)who;
	q[0].place = &places[0];
	q[1].place = &places[1];
	q[1].share = SHMLIMIT_SHARE_ONE;
	actor_calls();
	call_end(c, shmlimit_take_all(handle(), q, 2, NULL, NULL));
	if (c->answer == SHMLIMIT_ALLOWED)
		entered++;
}

static struct shmlimit *set_sharing(void)
{
	struct shmlimit_rule shared = rule;

	shared.capacity = SHARED;
	return stage_set(SHMLIMIT_FULL_DENY, 2, shared);
}

static void judge_sharing(void)
{
	unsigned inside = 0;

	for (unsigned i = 0; i < stage.n; i++)
		inside += stage.calls[i].answer != SHMLIMIT_ALLOWED && stage.calls[i].answer != SHMLIMIT_DENIED;
	if (entered > 2)
		blame("%u places are held by a share of what is free of %u", entered, SHARED);
	if (inside == 0 && entered < 2)
		blame("%u places are held, of two", entered);
	if (left(KEY) + entered > SHARED || left(OTHER) + entered > SHARED)
		blame("%" PRIu64 " and %" PRIu64 " are free", left(KEY), left(OTHER));
	if (inside == 0 && (left(KEY) + entered < SHARED || left(OTHER) + entered < SHARED))
		blame("a place that was given back is lost");
	law_sound();
}

static const struct scene sharing = {
	.title = "no more places are entered by shares than what is free allows",
	.actors = 3,
	.mortals = 2,
	.set = set_sharing,
	.begin = begin,
	.act = act_sharing,
	.judge = judge_sharing,
};

int main(void)
{
	play(&standing);
	play(&sharing);
	play(&ending);
	play(&stepped);
	play(&two_keys);
	play(&two_keys_ending);
	play(&bound);
	play(&bound_ending);
	play(&handing);
	play(&changing);
	play(&growing);
	play(&moving);
	play(&lined_up);
	play(&bounded);
	play(&bounded_ending);
	play(&bounded_moving);
	play(&bounded_sized);
	play(&taking);
	return tap_done();
}
