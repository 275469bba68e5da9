/*
 * reserve: memory for logs and places is reserved while others claim the same slot, for the same key or for one of another
 * rule, whose keys have cells of another size; while a rule gets larger cells; while the table grows; and while memory ends
 * and comes back (I1, I3, I4, I7). See lib/segment/cells.h.
 *
 * Memory is made up: a page is reserved one at a time, and only while `memory.free` lasts. A read or write of a page that is
 * not reserved is what would be a SIGBUS in a full /dev/shm. A process that reserves can be stopped, or killed, before each
 * page.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define CELLS_SIZES_OF_SCENES 25u /* a key of LARGE tokens has a page of its own */
#include "growing.h"
#include "segment.h"

#define PAGE ((uintptr_t)4096)
#define LARGE 256
#define LARGE_SIZE 24u
#define SECOND_KEY SECOND_KEYS
#define PERIOD_NS 100000000 /* some ticks of a place */
#define PLENTY 1000u

static struct {
	unsigned free; /* pages */
	unsigned reserved;
	int by_kernel;                                 /* 1 and the actor for which the kernel writes to a page */
	unsigned char has[CELLS_SIZES_OF_SCENES][256]; /* by page of a region */
} memory;

static uint64_t refusals; /* of a whole scene */
static int nowhere;       /* an actor that has no addresses left; -1: none */

static void memory_begin(unsigned free)
{
	memset(&memory, 0, sizeof(memory));
	memory.free = free;
	nowhere = -1;
}

/* What says if a page is reserved; NULL: it is none of cells. */
static unsigned char *page_of(const void *where)
{
	for (unsigned i = 0; i < CELLS_SIZES_OF_SCENES; i++) {
		uintptr_t at = (uintptr_t)where - stage.first.regions[i];

		if (at < layout_region_bytes(stage.first.lines_max, i))
			return &memory.has[i][at / PAGE];
	}
	return NULL;
}

int __real_segment_populate(char *from, uint64_t size);
int __wrap_segment_populate(char *from, uint64_t size);
void *__real_segment_map_ahead(void *from, uint64_t ahead, uint64_t size);
void *__wrap_segment_map_ahead(void *from, uint64_t ahead, uint64_t size);
void *__wrap_segment_map_again(const char *name, uint64_t device, uint64_t inode, int read_only, uint64_t offset,
                               uint64_t size);

int __wrap_segment_populate(char *from, uint64_t size)
{
	if (schedule.before == NULL)
		return __real_segment_populate(from, size);
	for (char *page = from; page < from + size; page += PAGE) {
		unsigned char *has = page_of(page);

		if (has == NULL)
			blame("a page is reserved that is none of cells");
		memory.by_kernel = 1 + (int)(schedule.acting - schedule.actor);
		point_reached(POINT_STORE, page);
		memory.by_kernel = 0;
		if (*has)
			continue;
		if (schedule.acting != NULL && memory.free == 0) {
			refusals++;
			if (schedule.telling)
				diag("  %td: there is no memory", schedule.acting - schedule.actor);
			return 0;
		}
		*has = 1;
		memory.reserved++;
		memory.free -= schedule.acting != NULL;
	}
	return 1;
}

void *__wrap_segment_map_ahead(void *from, uint64_t ahead, uint64_t size)
{
	if (schedule.before == NULL)
		return __real_segment_map_ahead(from, ahead, size);
	for (unsigned i = 0; i < CELLS_SIZES_OF_SCENES; i++)
		if (layout_region(stage.first.lines_max, i) == ahead &&
		    (schedule.acting == NULL || schedule.acting - schedule.actor != nowhere))
			return (void *)(uintptr_t)stage.first.regions[i];
	return NULL;
}

void *__wrap_segment_map_again(const char *name, uint64_t device, uint64_t inode, int read_only, uint64_t offset,
                               uint64_t size)
{
	(void)name, (void)device, (void)inode, (void)read_only, (void)offset, (void)size;
	return NULL;
}

/* ---- What holds at each access ---- */

/* The cells of a slot by the version that its tag is of; NULL: it has none. Not by the library, whose loads are points. */
static const unsigned char *cells_of(const struct table *t, const struct layout_slot *slot)
{
	const struct layout_rule *rule = &stage.first.rules[tag_rule(slot->tag)];
	uint64_t version = tag_version(slot->tag, published_version(rule->published));
	const struct layout_params *params = &rule->params[version % RULE_VERSIONS];
	unsigned algorithm = params_algorithm(params);

	if ((slot->tag & ~TAG_FROZEN) == 0 || (slot->tag & TAG_TENTATIVE) != 0 || !published_in_use(rule->published) ||
	    (algorithm != SHMLIMIT_WINDOW && algorithm != SHMLIMIT_HOLD))
		return NULL;
	return (unsigned char *)cells_glance(&stage.first, t, slot, params);
}

/* A slot that a process looks at has its cells, if it is committed. */
static void watch(const void *where)
{
	const unsigned char *has = page_of(where), *cells;
	struct table t = table_at(where);
	size_t slot = (size_t)((const char *)where - (const char *)t.slots) / sizeof(*t.slots);

	if (has != NULL && !*has && memory.by_kernel != 1 + (int)(schedule.acting - schedule.actor))
		blame("a process touches a page that is not reserved");
	cells = t.slots == NULL ? NULL : cells_of(&t, &t.slots[slot]);
	has = cells == NULL ? NULL : page_of(cells);
	if (has != NULL && !*has)
		blame("slot %zu of %" PRIu64 " is committed without its cells", slot, t.lines * SLOTS_PER_LINE);
}

/* ---- The stage ---- */

static const struct shmlimit_rule small = { .algorithm = SHMLIMIT_WINDOW,
	                                    .capacity = CAPACITY,
	                                    .period_ns = PERIOD_NS };
static const struct shmlimit_rule large = { .algorithm = SHMLIMIT_HOLD, .capacity = LARGE, .period_ns = PERIOD_NS };

static struct shmlimit *set(uint32_t on_full, unsigned held, struct shmlimit_rule rule)
{
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = SLOTS,
		                            .slots_max = 2 * SLOTS,
		                            .rules = 3,
		                            .rules_max = 3,
		                            .on_full = on_full };
	struct shmlimit *l = stage_make(&options, held, rule);

	stage.second = set_rule("second", large);
	refusals = 0;
	return l;
}

/* The key's limit holds, to the token, where it had room; a call for a key without room was denied. */
static void judge_exact(void)
{
	memory.free = PLENTY;
	law_total(KEY, CAPACITY);
	law_sound();
}

/* ---- One key, many processes ---- */

static struct shmlimit *set_one(void)
{
	return set(SHMLIMIT_FULL_DENY, 2, small);
}

static void begin_plenty(void)
{
	memory_begin(PLENTY);
}

static void act_one(unsigned who)
{
	take(KEY, 2);
	take(KEY, 1 + who % 2);
	take(KEY, 1);
}

static void judge_one(void)
{
	law_denials(CAPACITY);
	judge_exact();
}

static const struct scene one = {
	.title =
		"processes that reserve memory for one key at a time, some of them killed, give it its limit to the token",
	.actors = 3,
	.mortals = 2,
	.set = set_one,
	.begin = begin_plenty,
	.act = act_one,
	.watch = watch,
	.judge = judge_one,
};

/* Memory comes and goes, as other programs use it. */
static void others_use_memory(void)
{
	for (unsigned i = 0; i < 6; i++) {
		memory.free = i % 2;
		point_reached(POINT_STORE, stage.l->header);
	}
}

static void begin_none(void)
{
	memory_begin(0);
}

static void act_scarce(unsigned who)
{
	if (who == 2)
		others_use_memory();
	else
		act_one(who);
}

static const struct scene scarce = {
	.title = "a key has its limit to the token, or is denied, while memory comes and goes",
	.actors = 3,
	.mortals = 2,
	.set = set_one,
	.begin = begin_none,
	.act = act_scarce,
	.watch = watch,
	.judge = judge_exact,
};

/* ---- Keys of two rules, one slot ---- */

static struct shmlimit *set_one_slot(void)
{
	return set(SHMLIMIT_FULL_DENY, SLOTS - 1, small);
}

static void act_in_turns(unsigned who)
{
	take(who % 2 != 0 ? KEY : SECOND_KEY, 1);
	take(who % 2 != 0 ? SECOND_KEY : KEY, 1);
	take(KEY, 2);
}

static void judge_in_turns(void)
{
	memory.free = PLENTY;
	law_period(KEY, CAPACITY, PERIOD_NS);
	law_period(SECOND_KEY, LARGE, PERIOD_NS);
	law_sound();
}

static const struct scene in_turns_at_it = {
	.title = "keys of two rules, with cells of two sizes, take turns at one slot and keep to their limits",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_one_slot,
	.begin = begin_plenty,
	.act = act_in_turns,
	.watch = watch,
	.judge = judge_in_turns,
};

static void begin_one_page(void)
{
	memory_begin(1);
}

static const struct scene one_page = {
	.title = "of keys of two rules that want one slot, the one that finds no memory leaves it to the other",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_one_slot,
	.begin = begin_one_page,
	.act = act_in_turns,
	.watch = watch,
	.judge = judge_in_turns,
};

/* ---- A full table ---- */

static struct shmlimit *set_full(void)
{
	struct shmlimit *l = set(SHMLIMIT_FULL_EVICT, SLOTS, small);

	stage.peaceful = 1;
	return l;
}

static void act_evicting(unsigned who)
{
	if (who == 2) {
		memory.free += 1;
		point_reached(POINT_STORE, stage.l->header);
	}
	take(SECOND_KEY + who / 2, 1);
	take(SECOND_KEY + who / 2, 1);
}

/* Each victim's slot has a page of the large size. */
static void judge_evicting(void)
{
	unsigned victims = 0;

	for (uint32_t key = 0; key < SLOTS; key++) {
		struct shmlimit_result r = { 0 };

		(void)shmlimit_peek(stage.l, stage.held, &key, sizeof(key), 1, &r);
		victims += r.remaining != 0;
	}
	if (victims > memory.reserved)
		blame("%u keys lost their slots, and there was memory for %u", victims, memory.reserved);
	memory.free = PLENTY;
	law_no_duplicate();
}

static const struct scene evicting = {
	.title = "in a full table a key that finds no memory takes no slot from another",
	.actors = 3,
	.mortals = 2,
	.set = set_full,
	.begin = begin_none,
	.act = act_evicting,
	.watch = watch,
	.judge = judge_evicting,
};

/* ---- A rule gets larger cells ---- */

static void act_larger(unsigned who)
{
	struct shmlimit_rule larger = small;

	if (who == 0) {
		larger.capacity = LARGE;
		change(larger);
		return;
	}
	take(KEY, 2);
	take(KEY, who);
	take(KEY, 2);
}

static struct shmlimit *set_larger(void)
{
	struct shmlimit *l = set(SHMLIMIT_FULL_DENY, 2, small);

	stage.changing = 1;
	stage.peaceful = 1;
	return l;
}

static void judge_larger(void)
{
	memory.free = PLENTY;
	law_between(KEY, CAPACITY, LARGE);
	law_sound();
}

static const struct scene larger = {
	.title =
		"a rule gets larger cells while processes decide, reserve and are killed, and its keys keep what they used",
	.actors = 3,
	.mortals = 2,
	.set = set_larger,
	.begin = begin_plenty,
	.act = act_larger,
	.watch = watch,
	.judge = judge_larger,
};

/* A key whose larger cells find no memory loses its slot: what it used is forgotten. It is denied until there is memory. */
static void judge_larger_scarce(void)
{
	memory.free = PLENTY;
	law_sound();
}

/* There is memory for all keys of the small size, and none else. */
static void begin_for_small(void)
{
	memory_begin(0);
	memory.has[cells_size(CAPACITY)][0] = 1;
}

static void act_larger_scarce(unsigned who)
{
	if (who == 3)
		others_use_memory();
	else
		act_larger(who);
}

static const struct scene larger_scarce = {
	.title = "a rule gets larger cells while memory comes and goes, and no process touches what is not reserved",
	.actors = 4,
	.mortals = 3,
	.set = set_larger,
	.begin = begin_for_small,
	.act = act_larger_scarce,
	.watch = watch,
	.judge = judge_larger_scarce,
};

/* ---- The table grows ---- */

static struct shmlimit *set_growing_keys(void)
{
	struct shmlimit_rule rule = small;
	struct shmlimit *l;

	rule.capacity = LARGE;
	l = set(SHMLIMIT_FULL_DENY, 2, rule);

	stage.growing = 1;
	stage.peaceful = 1;
	take_before(l, KEY, 1);
	return l;
}

/* There is memory for the first table's keys. */
static void begin_growing(void)
{
	memory_begin(0);
	memset(memory.has[LARGE_SIZE] + SLOTS, 1, SLOTS);
	taken_before(KEY, 1);
}

static void act_growing(unsigned who)
{
	if (who == 0) {
		grow(2 * SLOTS);
		take(KEY, 1);
		return;
	}
	if (who == 3) {
		others_use_memory();
		return;
	}
	take(KEY, 1);
	take(KEY, 2);
	take(KEY, 1);
}

static void judge_growing(void)
{
	memory.free = PLENTY;
	law_total(KEY, LARGE);
	law_left();
}

static const struct scene growing = {
	.title = "a key whose table grows while memory comes and goes has its limit to the token, or is denied",
	.actors = 4,
	.mortals = 3,
	.set = set_growing_keys,
	.begin = begin_growing,
	.act = act_growing,
	.watch = watch,
	.judge = judge_growing,
};

/* ---- A process without addresses ---- */

static void begin_nowhere(void)
{
	memory_begin(PLENTY);
	nowhere = 1;
	/* It has not mapped any cells, nor has a process that begins. */
	for (unsigned who = 1; who <= 2; who++)
		memset(stage.view[who].regions, 0, sizeof(stage.view[who].regions));
}

static void act_nowhere(unsigned who)
{
	take(KEY, 1);
	take(KEY, 1 + who % 2);
	if (who == 1)
		refund(KEY, 1);
	take(KEY, 1);
}

static void judge_nowhere(void)
{
	law_between(KEY, 0, CAPACITY);
	law_sound();
}

static const struct scene without_addresses = {
	.title =
		"a process that cannot map cells, beside one that has not yet mapped them, grants no more than is there",
	.actors = 3,
	.mortals = 2,
	.set = set_one,
	.begin = begin_nowhere,
	.act = act_nowhere,
	.watch = watch,
	.judge = judge_nowhere,
};

/* That memory ended, where it is to end. */
static void play_scarce(const struct scene *scene)
{
	const char *only = getenv("SCENE");

	play(scene);
	if (only == NULL)
		ok(refusals != 0, "%" PRIu64 " times there was no memory: %s", refusals, scene->title);
}

int main(void)
{
	play(&one);
	play_scarce(&scarce);
	play(&in_turns_at_it);
	play_scarce(&one_page);
	play_scarce(&evicting);
	play(&larger);
	play_scarce(&larger_scarce);
	play_scarce(&growing);
	play(&without_addresses);
	return tap_done();
}
