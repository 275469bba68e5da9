/*
 * grow_history: random histories of requests, changes of the rule, growth, saving and loading, and killed carriers,
 * beside exact balances: each key has what it should, is listed once, and never keeps an old table that it is not in
 * (I1, I2, I3). Time goes in steps in which whole tokens come back, so that there are no fractions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "../rng.h"
#include "atomic.h"
#include "generation.h"
#include "limiter.h"
#include "save.h"
#include "unit.h"

#define KEYS 15u       /* of each rule; all are fewer than a probe window has slots, so that none loses its slot */
#define ALL (2 * KEYS) /* of a funnel, then of a window */
#define SLOTS 64u
#define SLOTS_MAX 1024u
#define WINDOW_LIMIT 64u
#define STEP (10 * SECOND)
#define PERIOD (11 * STEP / 2) /* of the window: nothing leaves it when a step ends */
#define HISTORIES 400
#define STEPS 400

/* What a key should have. */
struct balance {
	int has_slot;    /* else it is full */
	int in_old;      /* that slot is in the old table, and was not moved */
	uint64_t lacks;  /* tokens, of a funnel */
	uint64_t n;      /* of a window: admissions that count, ... */
	uint64_t at[64]; /* ... and their times */
};

static struct shmlimit *l;
static struct rng rng;
static int rule[2];
static uint64_t now_ns, capacity[2], per_step;
static struct balance key[ALL];
static unsigned growths, moves, changes, loads, duplicates, wrong;

static int is_window(unsigned i)
{
	return i >= KEYS;
}

static int is_full(unsigned i)
{
	return is_window(i) ? key[i].n == 0 : key[i].lacks == 0;
}

static uint64_t left(unsigned i)
{
	uint64_t gone = is_window(i) ? key[i].n : key[i].lacks, most = capacity[is_window(i)];

	return gone < most ? most - gone : 0;
}

static void forget(unsigned i)
{
	key[i] = (struct balance){ 0 };
}

static void take_tokens(unsigned i, uint64_t n)
{
	key[i].has_slot = 1;
	key[i].lacks += n;
	while (is_window(i) && n-- > 0)
		key[i].at[key[i].n++] = now_ns;
}

static void give_back(unsigned i, uint64_t n)
{
	key[i].lacks -= n < key[i].lacks ? n : key[i].lacks;
	key[i].n -= n < key[i].n ? n : key[i].n;
}

__attribute__((format(printf, 1, 2))) static void blame(const char *format, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (wrong++ < 10)
		diag("%s", text);
}

static void pass(uint64_t steps)
{
	now_ns += steps * STEP;
	for (unsigned i = 0; i < ALL; i++) {
		struct balance *k = &key[i];
		uint64_t back = steps * per_step, n = 0;

		k->lacks -= back < k->lacks ? back : k->lacks;
		for (uint64_t j = 0; j < k->n; j++)
			if (now_ns - k->at[j] < PERIOD)
				k->at[n++] = k->at[j];
		k->n = n;
	}
}

static struct generation tables(void)
{
	struct generation found;

	if (!generation_read(l, &found))
		bail("the tables are damaged");
	return found;
}

/* ---- The rules ---- */

static void set_rules_to(uint64_t tokens)
{
	struct shmlimit_rule funnel = { .struct_size = sizeof(funnel),
		                        .capacity = capacity[0],
		                        .refill = per_step,
		                        .period_ns = STEP },
			     window = { .struct_size = sizeof(window),
		                        .algorithm = SHMLIMIT_WINDOW,
		                        .capacity = tokens,
		                        .period_ns = PERIOD };

	rule[0] = shmlimit_rule_set(at_time(l, now_ns), "funnel", &funnel);
	rule[1] = shmlimit_rule_set(at_time(l, now_ns), "window", &window);
	if (rule[0] < 0 || rule[1] < 0)
		bail("rule_set: %d, %d", rule[0], rule[1]);
}

/*
 * A key of a funnel that is full stays so if it has no slot, or one in the old table; in the new one it has what it
 * had. A window keeps what was admitted, whatever size its logs have.
 */
static void change(void)
{
	uint64_t other = 1 + rng_below(&rng, 100), other_max = 1 + rng_below(&rng, WINDOW_LIMIT),
		 other_rate = 1 + rng_below(&rng, 3);
	int changed = other != capacity[0] || other_rate != per_step;

	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t tokens = left(i);

		if (changed && is_full(i) && key[i].in_old)
			forget(i);
		else if (key[i].has_slot)
			key[i].lacks = tokens < other ? other - tokens : 0;
	}
	capacity[0] = other;
	per_step = other_rate;
	for (unsigned i = KEYS; i < ALL; i++)
		if (other_max != capacity[1] && is_full(i) && key[i].in_old)
			forget(i);
	capacity[1] = other_max;
	set_rules_to(other_max);
	changes++;
}

/* ---- Growth ---- */

static void grow(uint64_t slots)
{
	int error = shmlimit_grow(at_time(l, now_ns), slots), want = 0;

	for (unsigned i = 0; i < ALL; i++) {
		if (key[i].in_old && is_full(i))
			forget(i);
		if (key[i].in_old)
			want = -EALREADY;
	}
	if (error != want)
		blame("grow to %d: %d, not %d", (int)slots, error, want);
	if (error != 0 || slots == 0)
		return;
	for (unsigned i = 0; i < ALL; i++)
		key[i].in_old = key[i].has_slot;
	growths++;
}

static void grow_if_it_can(void)
{
	uint64_t slots = 2 * tables().now.lines * SLOTS_PER_LINE;

	if (slots <= SLOTS_MAX)
		grow(slots);
}

/* ---- Requests ---- */

/* Before a request that may change something: a key in the old table moves, or is full. */
static void settle(unsigned i)
{
	if (key[i].in_old && is_full(i))
		forget(i);
	moves += (unsigned)key[i].in_old;
	key[i].in_old = 0;
}

static void check(const char *what, unsigned i, uint64_t n, int answer, int want, const struct shmlimit_result *r)
{
	if (answer != want || r->remaining != left(i))
		blame("%s %d of key %u: %d, not %d; remaining %d, not %d of %d", what, (int)n, i, answer, want,
		      (int)r->remaining, (int)left(i), (int)capacity[is_window(i)]);
}

/* What a take buried in the old table comes back, as if its process had been killed before. */
static void take(void)
{
	unsigned i = (unsigned)rng_below(&rng, ALL);
	uint64_t n = 1 + rng_below(&rng, 30);
	const struct table old = tables().old;
	static struct layout_slot kept[SLOTS_MAX];
	struct shmlimit_result r = { 0 };
	int want, answer, moved, is_killed = rng_below(&rng, 3) == 0;

	if (old.slots != NULL)
		memcpy(kept, old.slots, old.lines * sizeof(*kept) * SLOTS_PER_LINE);
	answer = shmlimit_take(at_time(l, now_ns), rule[is_window(i)], &i, sizeof(i), n, &r);
	moved = key[i].in_old && !is_full(i);
	settle(i);
	want = n <= left(i) ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
	if (want == SHMLIMIT_ALLOWED)
		take_tokens(i, n);
	check("take", i, n, answer, want, &r);
	for (uint64_t s = 0; moved && is_killed && s < old.lines * SLOTS_PER_LINE; s++)
		if ((old.slots[s].tag & ~TAG_FROZEN) == 0 && (kept[s].tag & ~TAG_FROZEN) != 0) {
			old.slots[s] = (struct layout_slot){ kept[s].tag | TAG_FROZEN, kept[s].word };
			duplicates++;
		}
}

static void refund(void)
{
	unsigned i = (unsigned)rng_below(&rng, ALL);
	uint64_t n = 1 + rng_below(&rng, 16);
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_refund(at_time(l, now_ns), rule[is_window(i)], &i, sizeof(i), n, &r);

	settle(i);
	give_back(i, n);
	check("refund", i, n, answer, SHMLIMIT_ALLOWED, &r);
}

static void peek(void)
{
	unsigned i = (unsigned)rng_below(&rng, ALL);
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_peek(at_time(l, now_ns), rule[is_window(i)], &i, sizeof(i), 1, &r);

	check("peek", i, 1, answer, left(i) >= 1 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED, &r);
}

static void reset(void)
{
	unsigned i = (unsigned)rng_below(&rng, ALL);

	if (shmlimit_reset(l, rule[is_window(i)], &i, sizeof(i)) != key[i].has_slot)
		blame("a reset of a key does not say whether it had a slot");
	forget(i);
}

/* ---- What is seen from outside ---- */

static void look(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t old[SLOTS_MAX], slots = tables().now.lines * SLOTS_PER_LINE, lacking = 0, listed = 0;

	for (uint64_t i = slots; shmlimit_slot(l, i, &slot, now_ns) == 0; i++)
		if (slot.state == SHMLIMIT_SLOT_LIVE)
			old[listed++] = slot.fingerprint;
	for (uint64_t i = 0, olds = listed; i < slots; i++) {
		if (shmlimit_slot(l, i, &slot, now_ns) != 0 || slot.rule < 0)
			continue;
		for (uint64_t j = 0; j < olds; j++)
			if (old[j] == slot.fingerprint) {
				old[j] = 0;
				listed--;
			}
		listed += slot.state == SHMLIMIT_SLOT_LIVE;
	}
	for (unsigned i = 0; i < ALL; i++)
		lacking += !is_full(i);
	if (listed != lacking)
		blame("%d keys are listed, %d lack tokens", (int)listed, (int)lacking);
}

static void reload(void)
{
	struct rebase later = { .elapsed_ns = rng_below(&rng, 3) * STEP };
	int fd = memfd_create("state", MFD_CLOEXEC);
	struct shmlimit_problem problem;

	if (fd < 0 || save(l, fd, when_given(now_ns)) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		bail("save");
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	/* What is full is not saved. */
	for (unsigned i = 0; i < ALL; i++)
		if (is_full(i))
			forget(i);
	pass(later.elapsed_ns / STEP);
	later.now_ns = now_ns;
	if (load(unit_name, fd, 0, &later, &l) != 0)
		bail("load");
	close(fd);
	for (unsigned i = 0; i < ALL; i++)
		if (is_full(i))
			forget(i);
	if (shmlimit_verify(unit_name, &problem, 1) != 0)
		blame("what is loaded is unsound: %s", problem.text);
	loads++;
}

/* No process asks for two to ten years. The first decision after that frees what is over. */
static void years(void)
{
	pass((2 + rng_below(&rng, 9)) * 365 * 86400 * SECOND / STEP);
	for (unsigned i = 0; i < ALL; i++)
		forget(i);
	take();
}

static void step(void)
{
	switch (rng_below(&rng, 40)) {
	case 0:
	case 1:
	case 2:
		change();
		break;
	case 3:
	case 4:
		grow_if_it_can();
		break;
	case 5:
		grow(0);
		break;
	case 6:
		reload();
		break;
	case 7:
		reset();
		break;
	case 8:
		look();
		break;
	case 9:
		if (rng_below(&rng, 4) == 0)
			years();
		else
			pass(30);
		break;
	case 10:
	case 11:
		pass(rng_below(&rng, 3));
		break;
	case 14:
	case 15:
	case 16:
	case 17:
		refund();
		break;
	case 18:
	case 19:
	case 20:
	case 21:
		peek();
		break;
	default:
		take();
	}
}

static void history(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .slots_max = SLOTS_MAX, .rules = 3
	};
	struct shmlimit_problem problem;

	l = unit_create("unit.grow_history", &options);
	now_ns = 1000 * STEP;
	capacity[0] = capacity[1] = 8;
	per_step = 1;
	/* What is swept for a rule with larger logs, and fewer bits for time, is swept now. */
	if (shmlimit_rule_set(at_time(l, now_ns), "largest",
	                      &(struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
	                                               .algorithm = SHMLIMIT_WINDOW,
	                                               .capacity = WINDOW_LIMIT,
	                                               .period_ns = PERIOD }) < 0)
		bail("rule_set");
	set_rules_to(8);
	for (unsigned i = 0; i < ALL; i++)
		forget(i);
	for (unsigned i = 0; i < STEPS && wrong == 0; i++)
		step();
	look();
	if (shmlimit_verify(unit_name, &problem, 1) != 0)
		blame("unsound: %s", problem.text);
	/* When the last key has moved nothing keeps the old table. */
	for (unsigned i = 0; i < ALL; i++) {
		struct shmlimit_result r = { 0 };

		if (shmlimit_take(at_time(l, now_ns), rule[is_window(i)], &i, sizeof(i), capacity[is_window(i)] + 1,
		                  &r) != SHMLIMIT_DENIED)
			blame("more than the capacity is taken");
		settle(i);
		check("denial", i, capacity[is_window(i)] + 1, SHMLIMIT_DENIED, SHMLIMIT_DENIED, &r);
	}
	grow(0);
	shmlimit_close(l);
}

int main(void)
{
	rng = (struct rng){ rng_seed() };
	for (uint64_t i = 0; i < scaled(HISTORIES) && wrong == 0; i++)
		history();
	diag("%u growths; %u keys moved, %u of their carriers killed, %u changes of the rule, %u loads", growths, moves,
	     duplicates, changes, loads);
	is(wrong, 0,
	   "in random histories each key has its exact balance, is listed once, and keeps no table it is not in");
	ok(growths > loads / 10 && moves > loads / 5 && duplicates > loads / 20 && changes > loads,
	   "all of this happened often");
	return tap_done();
}
