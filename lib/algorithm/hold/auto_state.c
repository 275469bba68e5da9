/*
 * auto_state: see auto_state.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "auto_state.h"

#define EPOCH_SHIFT 11
#define EPOCH_MASK 4095u
#define WARM_SHIFT 53
#define BASE_SHIFT 31
#define BEGIN_MASK (((uint64_t)1 << 31) - 1)
#define BEGIN_UNIT_SHIFT 20
#define SUM_SHIFT 24
#define SUM_MAX (((uint64_t)1 << 40) - 1)
#define COUNT_MAX (((uint64_t)1 << 20) - 1)
#define DROPS_SHIFT 20
#define DENIED ((uint64_t)1 << 40)
#define WINDOW_UNITS (AUTO_STATE_WINDOW_NS >> BEGIN_UNIT_SHIFT)

struct number {
	struct auto_law law;
	uint64_t begin;
};

struct sums {
	uint64_t sum, count, drops;
	int denied;
};

/* ---- The pairs ---- */

static struct hold_pair number_pack(const struct number *n, uint64_t word)
{
	return (struct hold_pair){
		(word & HOLD_CLAIM) | (uint64_t)(n->law.epoch & EPOCH_MASK) << EPOCH_SHIFT |
			n->law.number << AUTO_STATE_NUMBER_SHIFT | (uint64_t)n->law.probe << AUTO_STATE_PROBE_SHIFT |
			(uint64_t)n->law.warm << WARM_SHIFT,
		AUTO_STATE_MARK | n->law.base << BASE_SHIFT | (n->begin & BEGIN_MASK),
	};
}

static struct number number_unpack(struct hold_pair pair)
{
	uint64_t probe = pair.value >> AUTO_STATE_PROBE_SHIFT & 3;

	return (struct number){
		.law = {
			.number = pair.value >> AUTO_STATE_NUMBER_SHIFT & (((uint64_t)1 << 27) - 1),
			.base = pair.owner >> BASE_SHIFT & AUTO_LAW_BASE_MAX,
			.epoch = pair.value >> EPOCH_SHIFT & EPOCH_MASK,
			.warm = pair.value >> WARM_SHIFT & 15,
			.probe = probe <= AUTO_LAW_MEASURES ? (enum auto_law_probe)probe : AUTO_LAW_STEADY,
		},
		.begin = pair.owner & BEGIN_MASK,
	};
}

static struct number number_first(const struct auto_bounds *b, uint64_t now_ns)
{
	return (struct number){
		.law = { .number = auto_state_first(b) * AUTO_LAW_ONE },
		.begin = now_ns >> BEGIN_UNIT_SHIFT,
	};
}

static struct hold_pair sums_pack(const struct sums *s, uint32_t epoch, uint64_t word)
{
	return (struct hold_pair){
		(word & HOLD_CLAIM) | (uint64_t)(epoch & EPOCH_MASK) << EPOCH_SHIFT | s->sum << SUM_SHIFT,
		AUTO_STATE_MARK | s->count | s->drops << DROPS_SHIFT | (s->denied ? DENIED : 0),
	};
}

/* Those of this epoch; of another one there are none. */
static struct sums sums_unpack(struct hold_pair pair, uint32_t epoch, uint64_t word)
{
	if (!auto_state_is_pair(pair, word) || (pair.value >> EPOCH_SHIFT & EPOCH_MASK) != epoch)
		return (struct sums){ 0 };
	return (struct sums){
		.sum = pair.value >> SUM_SHIFT,
		.count = pair.owner & COUNT_MAX,
		.drops = pair.owner >> DROPS_SHIFT & COUNT_MAX,
		.denied = (pair.owner & DENIED) != 0,
	};
}

/*
 * INVARIANT I3: what was read before was the key's: its slot is, in this claim, still. WHY NOT its
 * word: each entry changes that.
 */
static int is_still(const struct auto_key *k)
{
	struct slot_seen now;

	fence_load();
	now = slot_read(k->slot);
	return now.tag == k->seen.tag && ((now.word ^ k->seen.word) & HOLD_CLAIM) == 0;
}

/* A place that was entered there under an earlier version of the rule is held still. */
static int is_place(struct hold_pair pair, uint64_t word)
{
	return hold_is_of(pair.value, word);
}

static int pair_put(const struct auto_key *k, uint64_t i, struct hold_pair before, struct hold_pair after)
{
	return !is_place(before, k->seen.word) && is_still(k) && hold_place_cas(k->pairs, i, before, after);
}

/* ---- What is measured ---- */

/* Units of 1024 ns for which a place was held; 0: it does not say. */
static uint64_t time_held(const struct auto_key *k, uint64_t value, uint64_t now_ns)
{
	/* Its end is rounded up, by half a tick on average. */
	int64_t left_ns = (hold_end(value, now_ns) >> HOLD_RANGE_SHIFT) - (int64_t)(HOLD_TICK_NS / 2);
	int64_t held_ns = (int64_t)k->period_ns - left_ns;

	if ((value & HOLD_SHORT) != 0 || held_ns <= -(int64_t)HOLD_TICK_NS)
		return 0;
	return held_ns < 1 << AUTO_LAW_UNIT_SHIFT ? 1 : (uint64_t)held_ns >> AUTO_LAW_UNIT_SHIFT;
}

static void add(struct sums *s, uint64_t held, const struct number *n, uint32_t flags)
{
	uint64_t most = n->law.base != 0 ? n->law.base * AUTO_STATE_TIMES : SUM_MAX / AUTO_STATE_COUNT;

	held = held < most ? held : most;
	s->sum = s->sum + held < SUM_MAX ? s->sum + held : SUM_MAX;
	s->count += s->count < COUNT_MAX;
	s->drops += (flags & SHMLIMIT_PLACE_DROPPED) != 0 && s->drops < COUNT_MAX;
}

/* Units of 2^20 ns since the window began, as a signed number of 31 bits. */
static int64_t age_of(const struct number *n, uint64_t now_ns)
{
	uint64_t age = ((now_ns >> BEGIN_UNIT_SHIFT) - n->begin) & BEGIN_MASK;

	return age > BEGIN_MASK / 2 ? (int64_t)age - (int64_t)BEGIN_MASK - 1 : (int64_t)age;
}

static struct auto_window window_of(const struct sums *s, int64_t age)
{
	return (struct auto_window){
		.took = s->count != 0 ? s->sum / s->count : 0,
		.in_use = s->sum / (uint64_t)(age > 0 ? age : 1),
		.dropped = s->drops != 0,
		.denied = s->denied,
	};
}

static int is_due(const struct sums *s, int64_t age)
{
	return age >= (int64_t)WINDOW_UNITS && s->count >= AUTO_STATE_COUNT;
}

void auto_state_left(const struct auto_key *k, uint64_t value, uint32_t flags, uint64_t now_ns)
{
	uint64_t held = time_held(k, value, now_ns);

	if (k->pairs == NULL || held == 0 || (flags & SHMLIMIT_PLACE_UNTIMED) != 0)
		return;
	/* BOUND: a swap is lost to another process that counts a time, or closes the window. */
	for (int i = 0; i < AUTO_STATE_TRIES; i++) {
		struct hold_pair first = hold_place_read(k->pairs, 0), second = hold_place_read(k->pairs, 1), after;
		struct number n = number_unpack(first);
		struct auto_window window;
		struct sums sums;
		int64_t age;

		if (!auto_state_is_pair(first, k->seen.word))
			n = number_first(&k->bounds, now_ns);
		age = age_of(&n, now_ns);
		/* It may have begun since. */
		if (age < 0 && k->l != NULL) {
			now_ns = when_read(k->l).ns;
			age = age_of(&n, now_ns);
		}
		if (age < 0) {
			n.begin = now_ns >> BEGIN_UNIT_SHIFT;
			n.law.epoch++;
		}
		if (!auto_state_is_pair(first, k->seen.word) || age < 0) {
			(void)pair_put(k, 0, first, number_pack(&n, k->seen.word));
			continue;
		}
		/*
		 * ORDER pairs with pair_put(): the window that was read is of that epoch or of an
		 * earlier one, not of a later one that this time would replace.
		 */
		if (load_again(&k->pairs[0]) != first.value)
			continue;
		sums = sums_unpack(second, n.law.epoch, k->seen.word);
		add(&sums, held, &n, flags);
		after = sums_pack(&sums, n.law.epoch, k->seen.word);
		if (!pair_put(k, 1, second, after))
			continue;
		if (__builtin_expect(!is_due(&sums, age), 1))
			return;
		window = window_of(&sums, age);
		n.law = auto_law_next(k->bounds.law, n.law, &window, k->bounds.least, k->bounds.most);
		n.begin = now_ns >> BEGIN_UNIT_SHIFT;
		(void)pair_put(k, 0, first, number_pack(&n, k->seen.word));
		return;
	}
}

void auto_state_denied(const struct auto_key *k)
{
	struct hold_pair first, second;
	struct number n;
	struct sums sums;

	if (k->pairs == NULL)
		return;
	first = hold_place_read(k->pairs, 0);
	second = hold_place_read(k->pairs, 1);
	n = number_unpack(first);
	if (!auto_state_is_pair(first, k->seen.word))
		return;
	sums = sums_unpack(second, n.law.epoch, k->seen.word);
	if (load_again(&k->pairs[0]) != first.value)
		return;
	if (sums.denied)
		return;
	sums.denied = 1;
	(void)pair_put(k, 1, second, sums_pack(&sums, n.law.epoch, k->seen.word));
}

int auto_state_read(const struct auto_key *k, struct auto_law *a, struct auto_window *w)
{
	struct hold_pair first, second;
	struct number n = number_first(&k->bounds, 0);
	struct sums sums = { 0 };
	int known = 0;

	if (k->pairs != NULL) {
		first = hold_place_read(k->pairs, 0);
		second = hold_place_read(k->pairs, 1);
		known = auto_state_is_pair(first, k->seen.word);
		if (known) {
			n = number_unpack(first);
			sums = sums_unpack(second, n.law.epoch, k->seen.word);
		}
	}
	*a = n.law;
	*w = window_of(&sums, 1);
	return known;
}

void auto_state_migrate(const struct auto_key *from, const struct auto_key *to)
{
	struct hold_pair first;

	if (from->pairs == NULL || to->pairs == NULL)
		return;
	first = hold_place_read(from->pairs, 0);
	if (auto_state_is_pair(first, from->seen.word))
		(void)pair_put(to, 0, hold_place_read(to->pairs, 0), first);
}
