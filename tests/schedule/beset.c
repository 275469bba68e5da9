/*
 * beset: another process always comes first. Each time that a call is about to swap a value or to look at one, that
 * value changes. Processes that only make calls do not do that, but damage may, and so may one that scribbles (I7).
 * Each call ends after a bounded number of its own steps (I6), with an answer that the contract has.
 *
 * Then one call interrupts another: at its first access to shared memory, at its second, and so on to the last. The
 * result is as if one of the two had been made first.
 *
 * There are no actors here, unlike in the other scenes: the interrupting call is made at the yield point, all at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "../unit/unit.h"
#include "atomic.h"
#include "generation.h"
#include "hash.h"
#include "ring.h"
#include "rule.h"
#include "table.h"

#define DAY (86400 * SECOND)
#define CAPACITY 100
#define START_NS 1000000000000000u
#define STEPS_MAX 20000000u /* two bounds of a thousand within one another, some steps each */

static struct shmlimit *l;
static int funnel, window, file;
static struct layout_slot *target; /* what is scribbled on */

static struct {
	void (*come)(enum point what, const void *where);
	uint64_t steps, came;
} others;

void point_reached(enum point what, const void *where)
{
	void (*come)(enum point what, const void *where) = others.come;

	if (come == NULL)
		return;
	if (++others.steps > STEPS_MAX)
		bail("a call does not end in %u steps", STEPS_MAX);
	/* No call comes in between them. */
	others.come = NULL;
	come(what, where);
	others.come = come;
}

uint64_t point_clock(int clock_id)
{
	(void)clock_id;
	return START_NS;
}

int __wrap_segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock);
void __wrap_segment_unlock(int lock);

int __wrap_segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock)
{
	(void)name, (void)device, (void)inode, (void)wait_ns, (void)lock;
	return 0;
}

void __wrap_segment_unlock(int lock)
{
	(void)lock;
}

/* ---- The segment ---- */

static struct layout_slot *slot_in(const struct table *t, int rule)
{
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++)
		if ((t->slots[i].tag & ~TAG_FROZEN) != 0 && tag_rule(t->slots[i].tag) == (uint32_t)rule)
			return &t->slots[i];
	bail("no slot");
}

/* "key" has 60 tokens of the funnel, which is the target, and 3 of the window's 6. */
static void fresh(uint32_t on_full)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 64, .rules = 3, .on_full = on_full
	};
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = 6, .period_ns = DAY
	};

	shmlimit_close(l);
	l = unit_create("beset", &options);
	funnel = unit_rule(l, "funnel", CAPACITY, 1, DAY);
	window = shmlimit_rule_set(l, "window", &rule);
	if (shmlimit_take(l, funnel, "key", 3, 40, NULL) != 0)
		bail("a fresh key is denied");
	/* By a clock that goes before ours. */
	for (uint64_t i = 1; i <= 3; i++)
		if (shmlimit_take(at_time(l, START_NS + i * 1000000), window, "key", 3, 1, NULL) != 0)
			bail("a fresh window is full");
	at_clock(l);
	target = slot_in(l->tables, funnel);
}

/* clang-format off */
static void fresh_evict(void) { fresh(SHMLIMIT_FULL_EVICT); }
static void fresh_deny(void) { fresh(SHMLIMIT_FULL_DENY); }
/* clang-format on */

static void fresh_window(void)
{
	fresh_evict();
	target = slot_in(l->tables, window);
}

static void grow(void)
{
	if (shmlimit_grow(l, 32) != 0)
		bail("grow");
}

/* Growing, and both keys are in the old table still. */
static void fresh_growing(void)
{
	fresh_evict();
	grow();
}

static void fresh_growing_window(void)
{
	fresh_window();
	grow();
}

/* Growing, and the funnel's key is in the larger one; what it was was not buried. */
static void fresh_carried(void)
{
	struct layout_slot before;

	fresh_evict();
	before = *target;
	grow();
	if (shmlimit_take(l, funnel, "key", 3, 1, NULL) != 0)
		bail("not carried");
	*target = (struct layout_slot){ before.tag | TAG_FROZEN, before.word };
}

/* ---- Who comes in between ---- */

/* Another number of tokens, before each swap of the target, ... */
static void scribble_swapped(enum point what, const void *where)
{
	if (what != POINT_SWAP_SLOT || where != target)
		return;
	target->word ^= 1;
	others.came++;
}

/* ... or before anything. */
static void scribble_word(enum point what, const void *where)
{
	(void)what, (void)where;
	target->word = (target->word & ~(uint64_t)127) | ++others.came % 61;
}

/* The target goes to another key. */
static void scribble_tag(enum point what, const void *where)
{
	(void)what, (void)where;
	target->tag = (target->tag << 16 >> 16) | (1 + ++others.came % 61) << 48;
}

/* The rule is published again, dry and enforced in turn. */
static void scribble_published(enum point what, const void *where)
{
	uint64_t *published = &l->rules[funnel].published;

	if (what != POINT_LOAD || where != published)
		return;
	*published = published_pack(published_version(*published), published_mode(*published) ^ SHMLIMIT_DRY_RUN, 1);
	others.came++;
}

/* The table seems to have grown, to none that is described. */
static void scribble_state(enum point what, const void *where)
{
	if (what != POINT_LOAD || where != &l->header->state)
		return;
	l->header->state = state_pack(1 + ++others.came % 5, 1);
}

static void scribble_switch(enum point what, const void *where)
{
	if (what != POINT_SWAP || where != &l->header->state)
		return;
	l->header->state ^= STATE_OFF;
	others.came++;
}

/* Each cell of a ring that is about to be swapped is a nanosecond older. */
static void scribble_cell(enum point what, const void *where)
{
	uint64_t *cell = (uint64_t *)(uintptr_t)where;
	unsigned size = cells_size(6);

	if (what != POINT_SWAP || (uintptr_t)cell - l->regions[size] >= layout_region_bytes(l->lines_max, size))
		return;
	--*cell;
	others.came++;
}

/* ---- What they come in between of ---- */

/* clang-format off */
static int take(void) { return shmlimit_take(l, funnel, "key", 3, 1, NULL); }
static int refund(void) { return shmlimit_refund(l, funnel, "key", 3, 1, NULL); }
static int take_window(void) { return shmlimit_take(l, window, "key", 3, 1, NULL); }
static int refund_window(void) { return shmlimit_refund(l, window, "key", 3, 1, NULL); }
static int reset_key(void) { return shmlimit_reset(l, funnel, "key", 3) < 0; }
static int reset_rule(void) { return shmlimit_reset(l, funnel, NULL, 0) < 0; }
static int grow_more(void) { return shmlimit_grow(l, 32); }
static int leave(void) { return shmlimit_grow(l, 0); }
static int verify(void) { return shmlimit_verify(unit_name, NULL, 0); }
/* clang-format on */

static int take_denied(void)
{
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_take(l, funnel, "key", 3, 1, &r);

	return r.retry_after_ns == 0 ? -EDOM : answer;
}

static int rule_get(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	return shmlimit_rule_get(l, funnel, &rule);
}

static int rule_change(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 2 * CAPACITY, .refill = 1, .period_ns = DAY
	};
	int id = shmlimit_rule_set(l, "funnel", &rule);

	return id < 0 ? id : 0;
}

static int slot(void)
{
	struct shmlimit_slot out = { .struct_size = sizeof(out) };
	int error = shmlimit_slot(l, (uint64_t)(target - l->tables[0].slots), &out, START_NS);

	return error != 0 ? error : (int)out.state;
}

/* Save. Returns how many keys there were, or -errno. */
static int save(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *loaded;
	char name[80];
	uint64_t n = 0;
	int error;

	if (lseek(file, 0, SEEK_SET) != 0 || ftruncate(file, 0) != 0)
		bail("no file");
	error = shmlimit_save(l, file);
	others.come = NULL;
	if (error != 0)
		return error;
	snprintf(name, sizeof(name), "%s.saved", unit_name);
	if (lseek(file, 0, SEEK_SET) != 0)
		bail("no file");
	error = shmlimit_load(name, file, 0, &loaded);
	if (error != 0)
		return error;
	shmlimit_destroy(name);
	shmlimit_info(loaded, &info);
	for (uint64_t i = 0; i < info.slots; i++)
		n += loaded->tables[0].slots[i].tag != 0;
	shmlimit_close(loaded);
	return (int)n;
}

/* ---- A process that is beset ends ---- */

static const struct {
	const char *title;
	void (*set)(void);
	void (*come)(enum point what, const void *where);
	int (*call)(void);
	int answer;
} besieged[] = {
	/* clang-format off */
	{ "a take whose swaps are all lost is allowed as without a slot", fresh_evict, scribble_swapped, take, 0 },
	{ "a take whose swaps are all lost is denied, for a while, if that is what a full table does", fresh_deny, scribble_swapped, take_denied, 1 },
	{ "a refund whose swaps are all lost gives nothing back", fresh_evict, scribble_swapped, refund, 0 },
	{ "a reset of a key whose swaps are all lost ends", fresh_evict, scribble_swapped, reset_key, 0 },
	{ "a reset of a rule whose swaps are all lost ends", fresh_evict, scribble_swapped, reset_rule, 0 },
	{ "a rule is changed though a slot cannot be converted", fresh_evict, scribble_swapped, rule_change, 0 },
	{ "a take whose key cannot be frozen, to be carried, ends", fresh_growing, scribble_swapped, take, 0 },
	{ "a table is not left while a slot of it cannot be frozen", fresh_growing, scribble_swapped, leave, -EALREADY },
	{ "a refund ends though what the key was cannot be buried", fresh_carried, scribble_swapped, refund, 0 },
	{ "a window's take ends though its cells cannot be written", fresh_window, scribble_cell, take_window, 0 },
	{ "a window's refund ends though its cells cannot be levelled", fresh_window, scribble_cell, refund_window, 0 },
	{ "a window is carried though its cells cannot be", fresh_growing_window, scribble_cell, take_window, 0 },
	{ "a rule that changes at every look is no rule for a decision", fresh_evict, scribble_published, take, -ESRCH },
	{ "a rule that changes at every look is no rule for rule_get", fresh_evict, scribble_published, rule_get, -ESRCH },
	{ "the slots of a rule that changes at every look are stale", fresh_evict, scribble_published, slot, SHMLIMIT_SLOT_STALE },
	{ "a take ends while the table grows all the time", fresh_evict, scribble_state, take, 0 },
	{ "a reset of a key ends while the table grows all the time", fresh_evict, scribble_state, reset_key, 0 },
	{ "a reset of a rule ends while the table grows all the time", fresh_evict, scribble_state, reset_rule, 0 },
	{ "a table does not grow while it is switched at every look", fresh_evict, scribble_switch, grow_more, -EUCLEAN },
	{ "a slot that changes at every look is shown as it was once", fresh_evict, scribble_word, slot, SHMLIMIT_SLOT_LIVE },
	{ "a slot that changes at every look is verified all the same", fresh_evict, scribble_word, verify, 0 },
	{ "a slot that changes at every look is saved all the same", fresh_evict, scribble_word, save, 2 },
	{ "a slot that goes to another key at every look is not saved", fresh_evict, scribble_tag, save, 1 },
	/* clang-format on */
};

static void end_though_beset(void)
{
	for (size_t i = 0; i < sizeof(besieged) / sizeof(besieged[0]); i++) {
		int answer;

		besieged[i].set();
		others.steps = others.came = 0;
		others.come = besieged[i].come;
		answer = besieged[i].call();
		others.come = NULL;
		is(answer, besieged[i].answer, "%s", besieged[i].title);
		diag("%" PRIu64 " steps, between which others came %" PRIu64 " times", others.steps, others.came);
		ok(others.came > 60, "others came between the steps of a call");
	}
}

/* ---- Another call comes in between, once ---- */

static uint64_t moment; /* before which access */
static int (*other)(void);
static int answer; /* of the call that it came in between of */

static void come_once(enum point what, const void *where)
{
	(void)what, (void)where;
	if (others.steps != moment)
		return;
	others.came++;
	(void)other();
}

/* clang-format off */
static int take_ten(void) { return shmlimit_take(l, funnel, "key", 3, 10, NULL); }
static int grow_first(void) { return shmlimit_grow(l, 32); }
/* clang-format on */

static int grow_and_leave(void)
{
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	grow_first();
	return shmlimit_grow(l, 0);
}

/* clang-format off */
static int repair(void) { return shmlimit_repair(unit_name, NULL, 0); }
/* clang-format on */

/* What is not the funnel's to give: more tokens than its capacity, of which a decision makes it full. */
static void fresh_mended(void)
{
	fresh_evict();
	target->word |= 127;
}

/* The key has a second slot, with fewer tokens. */
static void duplicate(uint64_t quota)
{
	struct layout_slot *free = l->tables->slots;

	fresh_evict();
	for (free = l->tables->slots; free->tag != 0;)
		free++;
	*free = (struct layout_slot){ target->tag, (target->word & ~(uint64_t)127) | quota };
}

/* clang-format off */
static void fresh_duplicate_less(void) { duplicate(10); }
static void fresh_duplicate_more(void) { duplicate(90); }
/* clang-format on */

/* A key that another process is about to claim, in a slot of a table that is full except for it. */
static void fresh_claimed(void)
{
	uint64_t hash;

	fresh_evict();
	hash = hash_bytes(l->secret, (uint32_t)funnel, "new", 3);
	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		if (l->tables->slots[i].tag == 0)
			l->tables->slots[i] =
				(struct layout_slot){ tag_pack(hash, (uint32_t)funnel, 1) | TAG_TENTATIVE, 77 };
}

/* clang-format off */
static int take_new(void) { return shmlimit_take(l, funnel, "new", 3, 10, NULL); }
/* clang-format on */

static uint64_t left(const char *key)
{
	struct shmlimit_result r = { 0 };

	if (shmlimit_peek(l, funnel, key, strlen(key), 0, &r) != SHMLIMIT_ALLOWED)
		bail("no peek");
	return r.remaining;
}

/* Nothing is left of what was damaged, and no key has more than before. */
static const char *judge_repaired(void)
{
	(void)repair();
	if (shmlimit_verify(unit_name, NULL, 0) != 0)
		return "there is something left to repair";
	return left("key") > CAPACITY ? "a key has too much" : NULL;
}

static const char *judge_key(void)
{
	(void)repair();
	return left("key") > 60 ? "the key has more than before" : judge_repaired();
}

static const char *judge_new(void)
{
	uint64_t mine = 0;

	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		mine += tag_same_key(rule_plain(l, l->tables->slots[i].tag),
		                     tag_pack(hash_bytes(l->secret, (uint32_t)funnel, "new", 3), (uint32_t)funnel, 1));
	return mine != 1 ? "the key has not one slot" : left("new") > 90 ? "nothing was taken" : NULL;
}

static const char *judge_sound(void)
{
	return shmlimit_verify(unit_name, NULL, 0) != 0 ? "the segment is not sound" : NULL;
}

static const char *judge_verified(void)
{
	return answer != 0 ? "verify found something" : judge_sound();
}

static const char *judge_saved(void)
{
	/* Here it grows without the lock, which only happens where a process writes over the header. */
	return answer < 0 && answer != -EUCLEAN ? "it cannot be saved, or not be loaded" : judge_sound();
}

static const struct {
	const char *title;
	void (*set)(void);
	int (*call)(void);
	int (*other)(void);
	const char *(*judge)(void); /* what is wrong, or NULL */
} between[] = {
	{ "a take comes in between a repair of its slot", fresh_mended, repair, take_ten, judge_repaired },
	{ "a reset comes in between a repair of its slot", fresh_mended, repair, reset_key, judge_repaired },
	{ "a take comes in between a repair of duplicates", fresh_duplicate_less, repair, take_ten, judge_key },
	{ "a take comes in between a repair of other duplicates", fresh_duplicate_more, repair, take_ten,
	  judge_repaired },
	{ "a reset comes in between a repair of duplicates", fresh_duplicate_less, repair, reset_key, judge_repaired },
	{ "a reset comes in between a repair of other duplicates", fresh_duplicate_more, repair, reset_key,
	  judge_repaired },
	{ "a rule changes while duplicates are repaired", fresh_duplicate_less, repair, rule_change, judge_repaired },
	{ "the table grows while it is verified", fresh_evict, verify, grow_first, judge_verified },
	{ "the table grows while it is saved", fresh_evict, save, grow_first, judge_saved },
	{ "the table grows, and is left, while it is saved", fresh_evict, save, grow_and_leave, judge_saved },
	{ "a key is reset while it is saved", fresh_evict, save, reset_key, judge_saved },
	{ "a rule changes while a key takes", fresh_evict, take, rule_change, judge_sound },
	{ "a key is claimed while another call claims it", fresh_claimed, take_new, take_new, judge_new },
	{ "a key is claimed while another call resets it", fresh_claimed, take_new, reset_rule, judge_sound },
};

static void come_in_between(void)
{
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		const char *wrong = NULL;

		moment = 0;
		do {
			moment++;
			between[i].set();
			other = between[i].other;
			others.steps = others.came = 0;
			others.come = come_once;
			answer = between[i].call();
			others.come = NULL;
			wrong = between[i].judge();
		} while (others.came != 0 && wrong == NULL);
		if (wrong != NULL)
			diag("before access %" PRIu64 ": %s", moment, wrong);
		diag("%" PRIu64 " places", moment - 1);
		ok(wrong == NULL && moment > 10, "%s", between[i].title);
	}
}

int main(void)
{
	file = memfd_create("saved", MFD_CLOEXEC);
	end_though_beset();
	come_in_between();
	shmlimit_close(l);
	return tap_done();
}
