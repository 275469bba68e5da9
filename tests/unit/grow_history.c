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

#define KEYS 24u /* fewer than a probe window has slots, so that none loses its slot to another */
#define SLOTS 64u
#define SLOTS_MAX 4096u
#define STEP (10 * SECOND)
#define HISTORIES 400
#define STEPS 400

/* What a key should have. */
struct balance {
	int has_slot; /* else it is full */
	int in_old;   /* that slot is in the old table, and was not moved */
	uint64_t tokens;
};

static struct shmlimit *l;
static struct rng rng;
static int rule;
static uint64_t now_ns, capacity, per_step;
static struct balance key[KEYS];
static unsigned growths, moves, changes, loads, twins, wrong;

static int is_full(const struct balance *k)
{
	return k->tokens == capacity;
}

static void forget(struct balance *k)
{
	*k = (struct balance){ .tokens = capacity };
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
	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t lacks = capacity - key[i].tokens, back = steps * per_step;

		key[i].tokens += back < lacks ? back : lacks;
	}
}

/* ---- The rule ---- */

static void set_rule(void)
{
	struct shmlimit_rule set = {
		.struct_size = sizeof(set), .capacity = capacity, .count = per_step, .period_ns = STEP
	};

	rule = shmlimit_rule_set_at(l, "login", &set, now_ns);
	if (rule < 0)
		bail("rule_set: %s", shmlimit_strerror(rule));
}

/* A key that is full stays so if it has no slot, or one in the old table; in the new one it has what it had. */
static void change(void)
{
	uint64_t other = 1 + rng_below(&rng, 100);

	for (unsigned i = 0; i < KEYS; i++) {
		struct balance *k = &key[i];

		if (is_full(k) && (k->in_old || !k->has_slot))
			*k = (struct balance){ .tokens = other };
		else if (k->tokens > other)
			k->tokens = other;
	}
	capacity = other;
	per_step = 1 + rng_below(&rng, 3);
	set_rule();
	changes++;
}

/* ---- Growth ---- */

static struct generation tables(void)
{
	struct generation found;

	if (!generation_read(l, &found))
		bail("the tables are damaged");
	return found;
}

static void grow(uint64_t slots)
{
	int error = shmlimit_grow_at(l, slots, now_ns), want = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		if (key[i].in_old && is_full(&key[i]))
			forget(&key[i]);
		if (key[i].in_old)
			want = -EALREADY;
	}
	if (error != want)
		blame("grow to %d: %d, not %d", (int)slots, error, want);
	if (error != 0 || slots == 0)
		return;
	for (unsigned i = 0; i < KEYS; i++)
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
static void settle(struct balance *k)
{
	if (k->in_old && is_full(k))
		forget(k);
	moves += (unsigned)k->in_old;
	k->in_old = 0;
}

static void check(const char *what, unsigned i, uint64_t n, int answer, int want, const struct shmlimit_result *r)
{
	if (answer != want || r->remaining != key[i].tokens)
		blame("%s %d of key %u: %d, not %d; remaining %d, not %d of %d", what, (int)n, i, answer, want,
		      (int)r->remaining, (int)key[i].tokens, (int)capacity);
}

/* What a take buried in the old table comes back, as if its process had been killed before. */
static void take(void)
{
	unsigned i = (unsigned)rng_below(&rng, KEYS);
	uint64_t n = 1 + rng_below(&rng, 30);
	const struct table old = tables().old;
	static struct layout_slot kept[SLOTS_MAX];
	struct shmlimit_result r = { 0 };
	int want, answer, moved, is_killed = rng_below(&rng, 3) == 0;

	if (old.slots != NULL)
		memcpy(kept, old.slots, old.lines * sizeof(*kept) * SLOTS_PER_LINE);
	answer = shmlimit_take_at(l, rule, &i, sizeof(i), n, now_ns, &r);
	moved = key[i].in_old && !is_full(&key[i]);
	settle(&key[i]);
	want = n <= key[i].tokens ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
	if (want == SHMLIMIT_ALLOWED) {
		key[i].tokens -= n;
		key[i].has_slot = 1;
	}
	check("take", i, n, answer, want, &r);
	for (uint64_t s = 0; moved && is_killed && s < old.lines * SLOTS_PER_LINE; s++)
		if ((old.slots[s].tag & ~TAG_FROZEN) == 0 && (kept[s].tag & ~TAG_FROZEN) != 0) {
			old.slots[s] = (struct layout_slot){ kept[s].tag | TAG_FROZEN, kept[s].word };
			twins++;
		}
}

static void refund(void)
{
	unsigned i = (unsigned)rng_below(&rng, KEYS);
	uint64_t n = 1 + rng_below(&rng, 16), lacks;
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_refund_at(l, rule, &i, sizeof(i), n, now_ns, &r);

	settle(&key[i]);
	lacks = capacity - key[i].tokens;
	key[i].tokens += n < lacks ? n : lacks;
	check("refund", i, n, answer, SHMLIMIT_ALLOWED, &r);
}

static void peek(void)
{
	unsigned i = (unsigned)rng_below(&rng, KEYS);
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_peek_at(l, rule, &i, sizeof(i), 1, now_ns, &r);

	check("peek", i, 1, answer, key[i].tokens >= 1 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED, &r);
}

static void reset(void)
{
	unsigned i = (unsigned)rng_below(&rng, KEYS);

	if (shmlimit_reset(l, rule, &i, sizeof(i)) < 0)
		bail("reset");
	forget(&key[i]);
}

/* ---- What is seen from outside ---- */

static void look(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t old[SLOTS_MAX], slots = tables().now.lines * SLOTS_PER_LINE, lacking = 0, listed = 0;

	for (uint64_t i = slots; shmlimit_slot(l, i, now_ns, &slot) == 0; i++)
		if (slot.state == SHMLIMIT_SLOT_LIVE)
			old[listed++] = slot.fingerprint;
	for (uint64_t i = 0, olds = listed; i < slots; i++) {
		if (shmlimit_slot(l, i, now_ns, &slot) != 0 || slot.rule < 0)
			continue;
		for (uint64_t j = 0; j < olds; j++)
			if (old[j] == slot.fingerprint) {
				old[j] = 0;
				listed--;
			}
		listed += slot.state == SHMLIMIT_SLOT_LIVE;
	}
	for (unsigned i = 0; i < KEYS; i++)
		lacking += !is_full(&key[i]);
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
	for (unsigned i = 0; i < KEYS; i++)
		if (is_full(&key[i]))
			forget(&key[i]);
	pass(later.elapsed_ns / STEP);
	later.now_ns = now_ns;
	if (load(unit_name, fd, 0, &later, &l) != 0)
		bail("load");
	close(fd);
	for (unsigned i = 0; i < KEYS; i++)
		if (is_full(&key[i]))
			forget(&key[i]);
	if (shmlimit_verify(unit_name, &problem, 1) != 0)
		blame("what is loaded is unsound: %s", problem.text);
	loads++;
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
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS, .slots_max = SLOTS_MAX };
	struct shmlimit_problem problem;

	l = unit_create("unit.grow_history", &options);
	now_ns = 1000 * STEP;
	capacity = 10;
	per_step = 1;
	set_rule();
	for (unsigned i = 0; i < KEYS; i++)
		forget(&key[i]);
	for (unsigned i = 0; i < STEPS && wrong == 0; i++)
		step();
	look();
	if (shmlimit_verify(unit_name, &problem, 1) != 0)
		blame("unsound: %s", problem.text);
	/* When the last key has moved nothing keeps the old table. */
	for (unsigned i = 0; i < KEYS; i++) {
		struct shmlimit_result r = { 0 };

		if (shmlimit_take_at(l, rule, &i, sizeof(i), capacity + 1, now_ns, &r) != SHMLIMIT_DENIED)
			blame("more than the capacity is taken");
		settle(&key[i]);
		check("denial", i, capacity + 1, SHMLIMIT_DENIED, SHMLIMIT_DENIED, &r);
	}
	grow(0);
	shmlimit_close(l);
}

int main(void)
{
	rng = (struct rng){ rng_seed() };
	for (uint64_t i = 0; i < scaled(HISTORIES) && wrong == 0; i++)
		history();
	diag("%u growths, %u keys moved, %u of their carriers killed, %u changes of the rule, %u loads", growths, moves,
	     twins, changes, loads);
	ok(growths > loads / 10 && moves > loads / 5 && twins > loads / 20 && changes > loads,
	   "all of this happened often");
	is(wrong, 0,
	   "in random histories each key has its exact balance, is listed once, and keeps no table it is not in");
	return tap_done();
}
