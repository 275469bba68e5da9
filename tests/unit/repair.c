/*
 * repair: each kind of damage that a segment can have and still open is found and named. It is repaired where that
 * needs no guess: decisions then answer as before, or more strictly (I1, I3, I7). Beside decisions repair loses and
 * gives no token.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "../rng.h"
#include "algorithm.h"
#include "atomic.h"
#include "funnel.h"
#include "limiter.h"
#include "rule.h"
#include "unit.h"
#include "window.h"

#define DAY (86400 * SECOND)
#define KEYS 4

static struct shmlimit *l;
static int funnel, window, lease;

/* The funnel's key 0 has 60 tokens of 100, the window's 3 tokens of 6, the lease's 5 of 9. */
static void fresh(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .slots_max = 128, .rules = 4 };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = 6, .period_ns = DAY
	};
	struct shmlimit_rule leased = {
		.struct_size = sizeof(leased), .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = DAY
	};

	if (l != NULL)
		shmlimit_close(l);
	l = unit_create("repair", &options);
	funnel = unit_rule(l, "funnel", 100, 1, DAY);
	window = shmlimit_rule_set(l, "window", &rule);
	if (shmlimit_take(l, funnel, "0", 1, 40, NULL) != 0 || shmlimit_take(l, window, "0", 1, 3, NULL) != 0)
		bail("a fresh key is denied");
	lease = shmlimit_rule_set(l, "lease", &leased);
	if (shmlimit_lease_deposit(l, lease, "0", 1, 5, 0, 0, DAY, NULL) != 0)
		bail("no lease");
}

static void grow(uint64_t slots)
{
	int error = shmlimit_grow(l, slots);

	if (error != 0)
		bail("grow: %s", shmlimit_strerror(error));
}

/* The table grew twice: the present one is generation 2, and table 1 in the header is the one that was left. */
static void fresh_grown(void)
{
	fresh();
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	grow(32);
	grow(0);
	grow(64);
	grow(0);
	if (shmlimit_take(l, funnel, "0", 1, 40, NULL) != 0 || shmlimit_take(l, window, "0", 1, 3, NULL) != 0)
		bail("a fresh key is denied");
}

static struct layout_slot *slot_of(int rule)
{
	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		if (l->tables->slots[i].tag != 0 && tag_rule(l->tables->slots[i].tag) == (uint32_t)rule)
			return &l->tables->slots[i];
	bail("no slot of rule %d", rule);
}

static struct layout_slot *free_slot(void)
{
	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		if (l->tables->slots[i].tag == 0)
			return &l->tables->slots[i];
	bail("no free slot");
}

static uint64_t left(int rule)
{
	struct shmlimit_result r = { 0 };

	shmlimit_peek(l, rule, "0", 1, 0, &r);
	return r.remaining;
}

/* ---- Damage ---- */

/* clang-format off */
static void header_table(void) { l->header->tables[1].offset = 4095; }
/* clang-format on */
static void header_table_far(void)
{
	l->header->tables[1].offset = l->tables_offset;
	l->header->tables[1].lines = l->lines_max + 1;
}

static void header_table_small(void)
{
	l->header->tables[1].offset = l->tables_offset;
	l->header->tables[1].lines = l->tables[0].lines;
}

/* clang-format off */
static void header_table_nowhere(void) { l->header->tables[1].lines = 8; }
static void header_table_first(void) { l->header->tables[0].lines = 8; }
static void told_askew(void) { l->header->tables[1].offset++; }
static void told_before(void) { l->header->tables[1].offset = 4096; }
static void told_behind(void) { l->header->tables[1].offset = l->size; }
static void told_larger(void) { l->header->tables[1].lines = l->lines_max + 1; }
static void rule_name(void) { l->rules[0].name[0] = '\n'; }
static void rule_duplicate(void) { memcpy(l->rules[1].name, l->rules[0].name, sizeof(l->rules[0].name)); }
static void params_of_funnel(void) { l->rules[0].params[1].back ^= 64; }
static void params_of_none(void) { l->rules[0].params[1].count = 0; }
static void slot_free_word(void) { free_slot()->word = 7; }
static void slot_rule(void) { free_slot()->tag = tag_pack(1, 4000, 0); }
/* clang-format on */

static void slot_frozen(void)
{
	struct layout_slot *slot = free_slot();

	*slot = *slot_of(funnel);
	slot->tag |= TAG_FROZEN;
}

/* clang-format off */
static void slot_quota(void) { slot_of(funnel)->word |= 127; }
/* clang-format on */

static unsigned cell_bits(void)
{
	return params_cell_bits(&l->rules[window].params[1]);
}

static void window_place(void)
{
	struct layout_slot *slot = slot_of(window);

	slot->word |= ((uint64_t)1 << cell_bits()) - 1;
	slot->word &= ~((uint64_t)7 << cell_bits());
}

/* clang-format off */
static void window_tokens(void) { slot_of(window)->word |= (uint64_t)7 << cell_bits(); }
/* clang-format on */

/* Nothing was taken by it, it says, and many tokens at once. */
static void window_tokens_none(void)
{
	window_tokens();
	slot_of(window)->word &= ~(((uint64_t)1 << cell_bits()) - 1);
}

/* The ring is full, and the latest took more than it holds. */
static void window_tokens_round(void)
{
	struct layout_slot *slot = slot_of(window);

	window_tokens_none();
	slot->word |= 6;
}

static void lease_state(void)
{
	slot_of(lease)->word |= (uint64_t)3 << params_quota_bits(&l->rules[lease].params[1]);
}

/* Two slots of one key, of which the one at the lower or the higher address has taken all: it is the one that stays. */
static void make_duplicates(int lower_is_empty)
{
	struct layout_slot *slot = slot_of(funnel), *duplicate = free_slot();

	*duplicate = *slot;
	((slot < duplicate) == lower_is_empty ? slot : duplicate)->word &= ~(uint64_t)127;
}

/* clang-format off */
static void slot_duplicate(void) { make_duplicates(1); }
static void slot_duplicate_behind(void) { make_duplicates(0); }
/* clang-format on */

static void slot_triplet(void)
{
	slot_duplicate();
	free_slot()->tag = slot_of(funnel)->tag; /* a time long ago: full */
}

static const struct damage {
	const char *name;
	void (*make)(void);
	const char *found; /* by verify, as part of a text */
	const char *done;  /* by repair; NULL: it cannot be repaired */
	int problems;      /* one for each pair of neighbours */
	void (*set)(void); /* NULL: fresh */
} damages[] = {
	/* clang-format off */
	{ "a larger table that cannot be", header_table, "table 1 is none that there is", "set to zero", 1, NULL },
	{ "a larger table than there can be", header_table_far, "table 1 is none that there is", "set to zero", 1, NULL },
	{ "a larger table that is none", header_table_small, "table 1 is none that there is", "set to zero", 1, NULL },
	{ "a larger table at the beginning", header_table_nowhere, "table 1 is none that there is", "set to zero", 1, NULL },
	{ "a place for the first table", header_table_first, "table 0 is none that there is", "set to zero", 1, NULL },
	{ "a table that was left, askew", told_askew, "table 1 is none that there is", "set to zero", 1, fresh_grown },
	{ "a table that was left, too early", told_before, "table 1 is none that there is", "set to zero", 1, fresh_grown },
	{ "a table that was left, too late", told_behind, "table 1 is none that there is", "set to zero", 1, fresh_grown },
	{ "a table that was left, too large", told_larger, "table 1 is none that there is", "set to zero", 1, fresh_grown },
	{ "a rule's name", rule_name, "its name is not a rule's name", NULL, 1, NULL },
	{ "two rules of one name", rule_duplicate, "rule 1: has the name of rule 0", NULL, 1, NULL },
	{ "a rule's params", params_of_funnel, "rule 0: its parameters do not follow", NULL, 1, NULL },
	{ "params that no rule has", params_of_none, "rule 0: its parameters do not follow", NULL, 1, NULL },
	{ "a word in a free slot", slot_free_word, "free, but its word is not zero", "set to zero", 1, NULL },
	{ "a slot of a rule that cannot be", slot_rule, "of rule 4000, but there are only 4", "freed", 1, NULL },
	{ "a frozen slot", slot_frozen, "frozen", "freed", 1, NULL },
	{ "more tokens than the capacity", slot_quota, "more tokens than its rule's capacity", "set to the capacity", 1, NULL },
	{ "a place beyond its ring", window_place, "a place beyond its ring", "set to what its ring holds", 1, NULL },
	{ "more cells than are valid", window_tokens, "more tokens taken last", "set to what its ring holds", 1, NULL },
	{ "cells of no place", window_tokens_none, "more tokens taken last", "set to what its ring holds", 1, NULL },
	{ "more cells than there are", window_tokens_round, "more tokens taken last", "set to what its ring holds", 1, NULL },
	{ "a lease's state", lease_state, "a state that no lease has", "freed", 1, NULL },
	{ "two slots of one key", slot_duplicate, "of the same key as slot", "freed", 1, NULL },
	{ "two slots of one key, the later one empty", slot_duplicate_behind, "of the same key as slot", "freed", 1, NULL },
	{ "three slots of one key", slot_triplet, "of the same key as slot", "freed", 2, NULL },
	/* clang-format on */
};

static void each_kind(const struct damage *d)
{
	struct shmlimit_problem found[4] = { 0 }, done[4] = { 0 };
	uint64_t funnel_left, window_left, before;
	int n;

	if (d->set != NULL)
		d->set();
	else
		fresh();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "sound before");
	d->make();
	before = left(funnel);
	window_left = left(window);
	is(shmlimit_verify(unit_name, found, 4), d->problems, "%s: found", d->name);
	ok(strstr(found[0].text, d->found) != NULL, "%s: named", d->name);
	n = shmlimit_repair(unit_name, done, 4);
	is(n, d->done != NULL ? d->problems : 0, "%s: repaired, or left alone", d->name);
	if (n > 0)
		ok(strstr(done[0].text, d->found) != NULL && strstr(done[0].text, d->done) != NULL &&
		           done[0].offset == found[0].offset,
		   "%s: a repair says where and how", d->name);
	is(shmlimit_verify(unit_name, found, 4), d->done != NULL ? 0 : d->problems, "%s: verify says what is left",
	   d->name);
	is(shmlimit_repair(unit_name, NULL, 0), 0, "%s: there is nothing to repair again", d->name);
	funnel_left = left(funnel);
	if (d->make == slot_duplicate || d->make == slot_duplicate_behind || d->make == slot_triplet)
		is(funnel_left, 0, "%s: the stricter stayed", d->name);
	else
		ok(funnel_left == before && left(window) == window_left, "%s: keys have what they had", d->name);
}

/* ---- What only looks like damage, and what is more ---- */

/* A grower was killed between the two words that tell of its table. */
static void half_told(void)
{
	fresh();
	l->header->tables[1].offset = l->tables_offset;
	is(shmlimit_verify(unit_name, NULL, 0), 0, "a table that is half told is no damage");
	is(shmlimit_repair(unit_name, NULL, 0), 0, "a table that is half described is not repaired");
	is(shmlimit_grow(l, 32), 0, "a table that is half described is described again when the table grows");
}

/* The state says that a table is in use which is not told right. */
static void ill_told(void)
{
	struct shmlimit_problem found = { 0 };

	fresh();
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	grow(32);
	grow(0);
	grow(64);
	l->header->tables[1].lines = 1;
	is(shmlimit_verify(unit_name, &found, 1), 1, "a table in use that cannot be is found");
	ok(strstr(found.text, "do not agree") != NULL, "a table that cannot be is named");
	is(shmlimit_repair(unit_name, &found, 1), -EUCLEAN, "a table that cannot be is not repaired");
}

/* A rule's parameters are of another algorithm, which needs rings that there are none of. */
static void no_rings(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 4 };
	struct shmlimit_problem found[4] = { 0 };
	struct shmlimit_result r = { 0 };

	fresh();
	shmlimit_close(l);
	l = unit_create("repair", &options);
	funnel = unit_rule(l, "funnel", 100, 1, DAY);
	if (shmlimit_take(l, funnel, "0", 1, 40, NULL) != 0)
		bail("a fresh key is denied");
	l->rules[0].params[1].shape = params_shape(7, 8, SHMLIMIT_WINDOW, 0);
	is(params_algorithm(&l->rules[0].params[1]), SHMLIMIT_WINDOW, "a window without a ring");
	is(shmlimit_verify(unit_name, found, 4), 2, "is found, and its slot");
	ok(strstr(found[1].text, "its ring holds") != NULL,
	   "verify says that the slot's word tells of more than its ring holds");
	ok(shmlimit_peek(l, funnel, "0", 1, 1, &r) >= 0, "it is asked all the same");
	is(shmlimit_repair(unit_name, found, 4), 1, "the slot is freed, the parameters are left as they are");
}

/* Duplicate slots are found among many keys. */
static void many(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 4096, .rules = 4 };
	struct layout_slot *duplicate;
	uint32_t key;

	shmlimit_close(l);
	l = unit_create("repair", &options);
	funnel = unit_rule(l, "funnel", 100, 1, DAY);
	for (key = 0; key < 1500; key++)
		if (shmlimit_take(l, funnel, &key, sizeof(key), 40, NULL) != 0)
			bail("a fresh key is denied");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "1,500 keys are sound");
	duplicate = &l->tables->slots[l->tables->lines * SLOTS_PER_LINE - 1];
	if (duplicate->tag == slot_of(funnel)->tag)
		bail("the first and the last are one");
	*duplicate = *slot_of(funnel);
	is(shmlimit_verify(unit_name, NULL, 0), 1, "a key in the first slot and in the last is found");
	is(shmlimit_repair(unit_name, NULL, 0), 1, "a key in the first slot and in the last is repaired");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after a key in two slots was repaired");
}

/* ---- Beside decisions ---- */

/* WHY NOT a process: clang's ThreadSanitizer swaps 16 bytes under a lock that lives in one. */
static void *drain(void *allowed)
{
	char key[] = "0";

	for (int i = 0; i < 40000; i++) {
		key[0] = (char)('a' + i % KEYS);
		*(int *)allowed += shmlimit_take(l, funnel, key, 1, 1, NULL) == SHMLIMIT_ALLOWED;
	}
	return NULL;
}

static void beside(void)
{
	pthread_t worker[2];
	int allowed[2] = { 0, 0 }, repaired = 0;

	fresh();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&worker[i], NULL, drain, &allowed[i]) != 0)
			bail("pthread_create");
	for (int i = 0; i < 300; i++) {
		struct layout_slot *slot = &l->tables->slots[i % (l->tables->lines * SLOTS_PER_LINE)];
		struct slot_seen none = { 0, 0 };

		(void)slot_cas(slot, none, i % 2 ? tag_pack((uint64_t)i, 4000, 0) : TAG_FROZEN | tag_pack(9, 0, 1), 1);
		repaired += shmlimit_repair(unit_name, NULL, 0);
	}
	for (int i = 0; i < 2; i++)
		if (pthread_join(worker[i], NULL) != 0)
			bail("a worker is gone");
	is(allowed[0] + allowed[1], KEYS * 100, "beside repairs every key gets what its funnel held, and no more");
	ok(repaired > 30, "repairs were made while keys were asked for");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after repairs beside requests");
	is(left(funnel), 60, "a key that nobody asked for has what it had before the repairs");
}

/* Of each algorithm but COUNTER, all of whose words are sound: more tokens than the capacity are a fault, and a word with a fault is mended to one without. */
static void any_word(void)
{
	static const struct shmlimit_rule rules[] = {
		{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 100, .refill = 1, .period_ns = DAY },
		{ .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = SECOND, .warmup_ns = 2 * SECOND },
		{ .algorithm = SHMLIMIT_WINDOW, .capacity = 5, .period_ns = DAY },
		{ .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = DAY },
		{ .algorithm = SHMLIMIT_HOLD, .capacity = 5, .period_ns = DAY },
	};
	struct rng rng = { rng_seed() };

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct shmlimit_rule rule = rules[i];
		const struct algorithm *a = algorithms[rule.algorithm];
		struct layout_params params = { 0 };
		uint64_t faults = 0, wrong = 0, mask;
		int has_quota = rule.algorithm != SHMLIMIT_WINDOW && rule.algorithm != SHMLIMIT_HOLD;

		rule.struct_size = sizeof(rule);
		if (algorithm_compile(&rule, 0, &params) != 0)
			bail("compile %u", rule.algorithm);
		mask = ((uint64_t)1 << params_quota_bits(&params)) - 1;
		for (uint64_t n = 0; n < scaled(100000); n++) {
			uint64_t word = rng_draw(&rng), mended = word;
			const char *fault = a->fault(&params, word), *done = a->mend(&params, word, &mended);

			faults += fault != NULL;
			wrong += has_quota && (word & mask) > params.capacity && fault == NULL;
			wrong += fault != NULL && done != NULL && a->fault(&params, mended) != NULL;
		}
		ok(wrong == 0 && faults != 0,
		   "algorithm %u: each word with too many tokens has a fault, and is mended: %d of %d", rule.algorithm,
		   (int)faults, (int)scaled(100000));
	}
}

int main(void)
{
	struct shmlimit_problem problem;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		each_kind(&damages[i]);
	half_told();
	ill_told();
	no_rings();
	many();
	beside();
	is(shmlimit_repair("test.repair.none", NULL, 0), -ENOENT, "what is not there is not repaired");
	is(shmlimit_repair("a/b", &problem, 1), -EILSEQ, "a segment of a bad name is not repaired");
	((unsigned char *)l->header)[40] ^= 1;
	is(shmlimit_repair(unit_name, &problem, 1), -EUCLEAN, "a damaged header is not repaired");
	shmlimit_close(l);
	any_word();
	return tap_done();
}
