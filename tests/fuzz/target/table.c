/*
 * table: decisions of every operation and algorithm, between which the memory is scribbled over (I7), at times that the
 * input gives, in a table of 16 slots.
 *
 *	input  steps: [ what, 1 ] [ its numbers ... ]; see play()
 *
 * Each answer is one that the contract has. Where no rule's record was written to, no answer exceeds what a rule can
 * give. When the scribbling has ended: no slot locks a key out for longer than its rule's time to full, its longest
 * debt and the slack; no key is admitted more than its capacity at once; each denial reports the nanosecond at which it
 * ends; and every decision finds a slot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../unit/unit.h"
#include "fuzz.h"

#include "cells.h"
#include "gcra.h"
#include "hash.h"
#include "limiter.h"
#include "ring.h"
#include "table.h"

#define RULES 6
#define KEYS 6
#define WINDOW_MAX 7u /* the largest capacity that an input sets */
#define CAPACITY 5u
#define MANY 2000000u /* tokens of the rule "many" for one of another; its words have no quota */
#define START_NS (1000000 * SECOND)
#define WAIT_NS (2 * SECOND)
#define HOUR (3600 * SECOND)

static const char *const names[RULES] = { "funnel", "warmup", "window", "slow", "many", "gcra" };
static const struct shmlimit_rule rules[RULES] = {
	{ .algorithm = SHMLIMIT_FUNNEL,
	  .capacity = CAPACITY,
	  .refill = CAPACITY,
	  .period_ns = SECOND,
	  .max_wait_ns = WAIT_NS },
	{ .algorithm = SHMLIMIT_WARMUP,
	  .refill = CAPACITY,
	  .period_ns = SECOND,
	  .warmup_ns = SECOND,
	  .max_wait_ns = WAIT_NS },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = CAPACITY, .period_ns = SECOND, .max_wait_ns = WAIT_NS },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 3, .refill = 1, .period_ns = HOUR },
	{ .algorithm = SHMLIMIT_FUNNEL,
	  .capacity = CAPACITY * MANY,
	  .refill = CAPACITY * MANY,
	  .period_ns = SECOND,
	  .max_wait_ns = WAIT_NS },
	{ .algorithm = SHMLIMIT_GCRA,
	  .capacity = CAPACITY,
	  .refill = CAPACITY,
	  .period_ns = SECOND,
	  .max_wait_ns = WAIT_NS },
};

static uint64_t unit(unsigned rule)
{
	return rule == 4 ? MANY : 1;
}

static struct shmlimit *l;
static struct shmlimit as_opened; /* a handle learns of larger tables, also of those that an input made up */
static unsigned char *pristine;   /* all behind the part of the header that never changes */
static size_t changing, length;

/* What an input has come to. */
static struct play {
	uint64_t now_ns;
	uint64_t capacity[RULES]; /* as it is set now, in units */
	int scribbled_rules;
	int switched;
} play;

static void set_rule(unsigned i, uint64_t capacity, uint64_t now_ns)
{
	struct shmlimit_rule rule = rules[i];
	int id;

	rule.struct_size = sizeof(rule);
	if (rule.algorithm != SHMLIMIT_WARMUP)
		rule.capacity = capacity * unit(i);
	id = shmlimit_rule_set(at_time(l, now_ns), names[i], &rule);
	law(id == (int)i || (play.scribbled_rules && (id >= 0 || id == -EBUSY || id == -EXFULL)), "rule_set: %d", id);
	play.capacity[i] = capacity;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SHMLIMIT_SLOTS_MIN, .rules = RULES, .rules_max = RULES
	};

	(void)argc;
	(void)argv;
	l = unit_create("fuzz.table", &options);
	/* The same places in each run. */
	l->secret[0] = l->secret[1] = 1;
	for (unsigned i = 0; i < RULES; i++)
		set_rule(i, rules[i].capacity / unit(i), START_NS);
	changing = offsetof(struct layout_header, state);
	length = l->size - changing;
	pristine = malloc(length);
	memcpy(pristine, (unsigned char *)l->header + changing, length);
	as_opened = *l;
	return 0;
}

/* The longest that any caller has to wait. A whole store borrowed cold costs half as much again. */
static uint64_t longest_ns(unsigned i)
{
	uint64_t refill_ns = i == 3 ? play.capacity[i] * HOUR : 2 * SECOND;

	/* Its words may owe what a limit that a call can bring owes: one that is not impossible is believed. */
	if (rules[i].algorithm == SHMLIMIT_GCRA)
		return refill_ns + gcra_ns(GCRA_AHEAD);
	return refill_ns + refill_ns / 2 + WAIT_NS + SECOND;
}

/* ---- Noise ---- */

/* The cells of all slots, of one size. */
static uint64_t *cells_of(unsigned size)
{
	struct layout_params params = { 0 };

	params_set_cells_size(&params, size);
	return cells_at(l, l->tables, l->tables->slots, &params);
}

static uint64_t words_of(unsigned size)
{
	return l->tables->lines * SLOTS_PER_LINE * cells_tokens(size) * CELLS_BYTES / sizeof(uint64_t);
}

static uint64_t *pick_word(struct input *in)
{
	uint64_t where = input_number(in, 1), at = input_number(in, 2);
	struct layout_block *blocks = (void *)l->counters;

	switch (where % 8) {
	case 0:
		return cells_of(where / 8 % 4) + at % words_of(where / 8 % 4);
	case 1:
		return (uint64_t *)(void *)blocks + at % ((uint64_t)(l->cpus + l->stripes) * (RULES + 1) * COUNTERS);
	case 2:
		play.scribbled_rules = 1;
		return (uint64_t *)(void *)l->rules + at % (RULES * sizeof(struct layout_rule) / sizeof(uint64_t));
	case 3:
		play.switched = 1;
		return (uint64_t *)(void *)&l->header->state + at % (16 + GCRA_PLACES);
	default:
		return (uint64_t *)(void *)l->tables->slots + at % (l->tables->lines * SLOTS_PER_LINE * 2);
	}
}

static uint64_t hash_of(uint32_t rule, uint32_t key)
{
	return hash_bytes(l->secret, rule, &key, sizeof(key));
}

static void scribble(struct input *in)
{
	uint64_t *word = pick_word(in), kind = input_number(in, 1);

	switch (kind % 5) {
	case 0:
		*word = input_number(in, 8);
		break;
	case 1:
		*word ^= (uint64_t)1 << input_number(in, 1) % 64;
		break;
	case 2:
		*word = *pick_word(in);
		break;
	case 3: {
		/* A tag that might be. */
		uint32_t rule = (uint32_t)(kind / 5) % RULES;

		*word = tag_pack(hash_of(rule, (uint32_t)input_number(in, 1) % KEYS), rule, input_number(in, 1)) |
		        (input_number(in, 1) & (TAG_TENTATIVE | TAG_FROZEN));
		break;
	}
	case 4:
		/* A time that might be. */
		*word = play.now_ns + (uint64_t)(int64_t)(int32_t)input_number(in, 4) * 1000;
		break;
	}
}

/* ---- Decisions ---- */

static uint64_t pick_tokens(struct input *in)
{
	uint64_t n = input_number(in, 1);

	return n < 250 ? n % 9 : n == 250 ? UINT64_MAX : (uint64_t)1 << (12 * (n - 250));
}

static void check(unsigned rule, int answer, const struct shmlimit_result *r)
{
	law(answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_DENIED ||
	            (answer == -ESRCH && (rule >= RULES || play.scribbled_rules)) ||
	            (answer == -EOPNOTSUPP && play.scribbled_rules),
	    "answer %d", answer);
	if (answer < 0 || play.scribbled_rules || play.switched || rule >= RULES)
		return;
	law(r->remaining <= r->limit, "%" PRIu64 " of %" PRIu64 " are left", r->remaining, r->limit);
	law(rules[rule].algorithm == SHMLIMIT_WARMUP || r->limit == play.capacity[rule] * unit(rule),
	    "the limit is %" PRIu64, r->limit);
	law(r->wait_ns <= WAIT_NS, "a wait of %" PRIu64 " ns", r->wait_ns);
	law(r->reset_after_ns <= longest_ns(rule), "full after %" PRIu64 " ns", r->reset_after_ns);
	law(answer == SHMLIMIT_ALLOWED || r->retry_after_ns == UINT64_MAX || r->retry_after_ns <= longest_ns(rule),
	    "a retry after %" PRIu64 " ns", r->retry_after_ns);
}

static void decide(unsigned verb, unsigned rule, uint32_t key, uint64_t tokens)
{
	struct shmlimit_result r = { 0 };
	int id = (int)rule, answer;

	tokens *= unit(rule); /* the largest ones wrap */
	switch (verb) {
	case 0:
		answer = shmlimit_peek(at_time(l, play.now_ns), id, &key, sizeof(key), tokens, &r);
		break;
	case 1:
		answer = shmlimit_reserve(at_time(l, play.now_ns), id, &key, sizeof(key), tokens,
		                          tokens % 2 ? WAIT_NS : UINT64_MAX, &r);
		break;
	case 2:
		answer = shmlimit_charge(at_time(l, play.now_ns), id, &key, sizeof(key), tokens, &r);
		break;
	case 3:
		answer = shmlimit_refund(at_time(l, play.now_ns), id, &key, sizeof(key), tokens, &r);
		break;
	case 15:
		answer = by_limit(at_time(l, play.now_ns), SHMLIMIT_TAKE_SOME, id, &key, sizeof(key), tokens, NULL, &r);
		law(answer < 0 ||
		            (r.granted <= tokens && (r.granted == 0) == (answer == SHMLIMIT_DENIED || tokens == 0)),
		    "%" PRIu64 " of %" PRIu64 " are granted", r.granted, tokens);
		break;
	default:
		answer = shmlimit_take(at_time(l, play.now_ns), id, &key, sizeof(key), tokens, &r);
	}
	check(rule, answer, &r);
}

static void decide_several(struct input *in, int all)
{
	struct shmlimit_request requests[5] = { 0 };
	struct shmlimit_result results[5] = { 0 };
	uint32_t keys[5];
	int answers[5], answer;
	size_t n = 1 + input_number(in, 1) % 5, failed = 0;

	for (size_t i = 0; i < n; i++) {
		keys[i] = (uint32_t)input_number(in, 1) % KEYS;
		requests[i] = (struct shmlimit_request){ .rule = (int)(input_number(in, 1) % (RULES + 1)),
			                                 .key = &keys[i],
			                                 .key_len = sizeof(keys[i]),
			                                 .cost = pick_tokens(in) };
		requests[i].cost *= unit((unsigned)requests[i].rule);
	}
	if (all) {
		answer = shmlimit_take_all(at_time(l, play.now_ns), requests, n, &failed, results);
		law(answer == SHMLIMIT_ALLOWED || failed < n, "take_all: the one that failed is the %zuth", failed);
		check((unsigned)requests[answer == SHMLIMIT_ALLOWED ? 0 : failed].rule, answer,
		      &results[answer == SHMLIMIT_ALLOWED ? 0 : failed]);
		return;
	}
	answer = shmlimit_take_many(at_time(l, play.now_ns), requests, n, answers, results);
	law(answer == 0, "take_many: %d", answer);
	for (size_t i = 0; i < n; i++)
		check((unsigned)requests[i].rule, answers[i], &results[i]);
}

/* ---- Introspection ---- */

static void verify(void)
{
	struct shmlimit_problem problems[2];
	int found = shmlimit_verify(unit_name, problems, 2);

	law(found >= 0, "verify: %d", found);
	for (int i = 0; i < found && i < 2; i++)
		law(problems[i].offset < l->size &&
		            strnlen(problems[i].text, sizeof(problems[i].text)) < sizeof(problems[i].text),
		    "problem %d", i);
}

static void look_in(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	int error;

	for (uint64_t i = 0; i < SHMLIMIT_SLOTS_MIN; i++) {
		law(shmlimit_slot(l, i, &slot, play.now_ns) == 0 && slot.state <= SHMLIMIT_SLOT_STALE, "slot %" PRIu64,
		    i);
		law(slot.rule >= -1 && slot.rule < RULES, "slot %" PRIu64 ": rule %d", i, slot.rule);
	}
	for (int id = -1; id <= RULES; id++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
		struct shmlimit_range range = { .struct_size = sizeof(range) };

		error = shmlimit_counters(l, id, &counters);
		law(error == 0 || error == -ESRCH, "counters: %d", error);
		error = shmlimit_rule_get(l, id, &rule);
		law(error == 0 || error == -ESRCH || (play.scribbled_rules && error == -EUCLEAN), "rule_get: %d",
		    error);
		error = shmlimit_rule_range(l, id, &range);
		law(error == 0 || error == -ESRCH, "rule_range: %d", error);
		error = shmlimit_rule_name(l, id, name);
		law(error == -ESRCH || (error == 0 && strnlen(name, sizeof(name)) < sizeof(name)), "rule_name: %d",
		    error);
	}
}

static void reset(struct input *in)
{
	uint64_t what = input_number(in, 1);
	uint32_t key = (uint32_t)(what / 8) % KEYS;
	int rule = what % 8 == 0 ? SHMLIMIT_ALL_RULES : (int)(what % 8) - 1, error;

	error = shmlimit_reset(l, rule, what & 128 ? NULL : &key, sizeof(key));
	/* A key of all rules is none. */
	if (rule == SHMLIMIT_ALL_RULES && !(what & 128)) {
		law(error == -EINVAL, "reset of a key of all rules: %d", error);
		return;
	}
	law(error >= 0 || (error == -ESRCH && (rule >= RULES || play.scribbled_rules)), "reset: %d", error);
}

/* ---- Afterwards, in quiet ---- */

static uint64_t without_slot(void)
{
	uint64_t sum = 0;

	for (unsigned block = 0; block < l->cpus + l->stripes; block++)
		for (int rule = 0; rule < RULES; rule++)
			sum += ((uint64_t *)(void *)(l->counters + layout_counter_offset(l->counter_stride, block,
			                                                                 rule)))[COUNT_NO_SLOT];
	return sum;
}

static int take(unsigned rule, uint32_t key, uint64_t now_ns, struct shmlimit_result *r)
{
	return shmlimit_take(at_time(l, now_ns), (int)rule, &key, sizeof(key), unit(rule), r);
}

/* Takes of one key at one time, up to its first denial: no more than a burst, and that denial says when. */
static void drain(unsigned rule, uint32_t key, uint64_t now_ns)
{
	struct shmlimit_result r;
	/* What warms up owes something from the first on. */
	uint64_t taken = 0, burst = rules[rule].algorithm == SHMLIMIT_WARMUP ? 1 : play.capacity[rule];

	while (take(rule, key, now_ns, &r) == SHMLIMIT_ALLOWED) {
		taken++;
		law(taken <= burst, "rule %u, key %u: admitted %" PRIu64 " at once", rule, key, taken);
	}
	law(r.retry_after_ns > 0 && r.retry_after_ns <= longest_ns(rule),
	    "rule %u, key %u: a retry after %" PRIu64 " ns", rule, key, r.retry_after_ns);
	law(shmlimit_peek(at_time(l, now_ns + r.retry_after_ns - 1), (int)rule, &key, sizeof(key), unit(rule), NULL) ==
	            SHMLIMIT_DENIED,
	    "rule %u, key %u: fits sooner than said", rule, key);
	law(shmlimit_peek(at_time(l, now_ns + r.retry_after_ns), (int)rule, &key, sizeof(key), unit(rule), NULL) ==
	            SHMLIMIT_ALLOWED,
	    "rule %u, key %u: does not fit when said", rule, key);
}

/* Slots with the key's tag: noise can give it several, and what stands in one of them is seen when the others are
 * gone. */
static uint64_t slots_of(unsigned rule, uint32_t key)
{
	uint64_t tag = tag_pack(hash_of(rule, key), rule, 0), n = 0;

	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		n += tag_same_key(rule_plain(l, l->tables->slots[i].tag), tag);
	return n;
}

static void let_in(unsigned rule, uint32_t key, uint64_t slots)
{
	uint64_t now_ns = play.now_ns;

	for (uint64_t i = 0; i < slots; i++) {
		now_ns += longest_ns(rule);
		if (take(rule, key, now_ns, NULL) == SHMLIMIT_ALLOWED)
			return;
	}
	law(0, "rule %u, key %u: locked out", rule, key);
}

static void settle(void)
{
	uint64_t before = without_slot(), slots[RULES][KEYS];

	for (unsigned rule = 0; rule < RULES; rule++) {
		for (uint32_t key = 0; key < KEYS; key++) {
			drain(rule, key, play.now_ns);
			slots[rule][key] = slots_of(rule, key);
		}
	}
	for (unsigned rule = 0; rule < RULES; rule++)
		for (uint32_t key = 0; key < KEYS; key++)
			let_in(rule, key, slots[rule][key] > 1 ? slots[rule][key] : 1);
	law(without_slot() == before, "%" PRIu64 " decisions found no slot", without_slot() - before);
	law(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0) >= 0, "reset");
}

static void step(struct input *in)
{
	uint64_t what = input_number(in, 1), rule;

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
		rule = input_number(in, 1);
		decide((unsigned)what % 16, (unsigned)(rule % (RULES + 1)), (uint32_t)rule / 8 % KEYS, pick_tokens(in));
		break;
	case 6:
		decide_several(in, 1);
		break;
	case 7:
		decide_several(in, 0);
		break;
	case 8:
		reset(in);
		break;
	case 9:
		rule = input_number(in, 1);
		set_rule((unsigned)rule % RULES, 1 + rule / 4 % 7, play.now_ns);
		break;
	case 10:
		play.now_ns += input_number(in, 5);
		break;
	case 11:
		play.now_ns -= input_number(in, 4);
		break;
	case 12:
		verify();
		look_in();
		break;
	default:
		scribble(in);
	}
}

/* As it was opened; what is mapped stays mapped. */
static void open_again(void)
{
	struct shmlimit now = *l;

	*l = as_opened;
	memcpy(l->regions, now.regions, sizeof(l->regions));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	memcpy((unsigned char *)l->header + changing, pristine, length);
	open_again();
	for (unsigned i = 0; i <= cells_size(WINDOW_MAX); i++)
		memset(cells_of(i), 0, words_of(i) * sizeof(uint64_t));
	play = (struct play){ .now_ns = START_NS };
	for (unsigned i = 0; i < RULES; i++)
		play.capacity[i] = rules[i].capacity / unit(i);
	while (in.left > 0)
		step(&in);
	/* What an operator does: the switch, and rules as they should be. */
	if (play.switched) {
		open_again();
		memcpy((unsigned char *)l->header + changing, pristine, sizeof(*l->header) - changing);
	}
	if (play.scribbled_rules) {
		memcpy((void *)l->rules, pristine + ((unsigned char *)l->rules - (unsigned char *)l->header) - changing,
		       RULES * sizeof(*l->rules));
		for (unsigned i = 0; i < RULES; i++)
			play.capacity[i] = rules[i].capacity / unit(i);
	}
	play.scribbled_rules = play.switched = 0;
	settle();
	return 0;
}
