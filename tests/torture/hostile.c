/*
 * hostile: eight processes decide while a ninth writes over what they share, as any process with write permission can
 * (I7). First over slots, sliding-window logs, stored keys and counters, then over the records of rules, too, then over
 * all, header and switch included. It takes 6 seconds in all, or the environment's SECONDS.
 *
 * No process crashes or hangs. When the noise stops, keys are locked out for no longer than their rule's time to full
 * and its longest debt. After a reset (and, where rules were hit, after setting them again) each key has exactly its
 * capacity.
 *
 * Most of what is written is nearly right, so that it passes the first checks: a state word under an unchanged tag, one
 * bit, a copy of another word, a tag with an existing rule and version.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../process/process.h"

#include "atomic.h"
#include "generation.h"
#include "limiter.h"

#define WORKERS 8
#define NOISE WORKERS /* the ninth */
#define KEYS 12       /* of each rule */
#define RULES 64
#define NAMED 3
#define RING 32
#define CAPACITY 5
#define SECOND ((uint64_t)1000000000)
#define WAIT_NS (2 * SECOND) /* longest debt */

static const struct shmlimit_rule rules[NAMED] = {
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
};
static const char *const names[NAMED] = { "funnel", "warmup", "window" };
/* A whole store borrowed cold costs half as much again as it takes to fill, and stands beside the longest wait. */
#define LOCKED_NS (WAIT_NS + SECOND + SECOND / 2 + SECOND)

/* What is written over: the first of these and all behind it. */
enum scope { TABLE, RECORDS, HEADER };

struct play {
	struct shmlimit *l;
	int id[NAMED];
	enum scope scope;
	uint64_t seed;
	_Atomic int stop;
	_Atomic uint64_t keys; /* shown by their names */
	_Atomic uint64_t calls[WORKERS + 1];
};

static struct play *play;

/* ---- The ninth ---- */

static uint64_t nearly_right(struct rng *rng, const uint64_t *words, uint64_t n, uint64_t at)
{
	switch (rng_below(rng, 4)) {
	case 0:
		return load_relaxed(&words[at]) ^ (uint64_t)1 << rng_below(rng, 64);
	case 1:
		return load_relaxed(&words[rng_below(rng, n)]);
	case 2:
		return tag_pack(rng_draw(rng), (uint32_t)rng_below(rng, NAMED), rng_draw(rng)) |
		       (rng_below(rng, 2) == 0 ? TAG_TENTATIVE : 0);
	default:
		return rng_draw(rng) >> rng_below(rng, 64);
	}
}

/* A table that the segment could grow to, but did not: the header names a place where there is no memory. */
static void invent_table(struct rng *rng)
{
	struct layout_header *header = play->l->header;

	store_relaxed(&header->tables[1].offset, play->l->tables_offset);
	store_relaxed(&header->tables[1].lines, play->l->lines_max);
	store_relaxed(&header->state, state_pack(1, (int)rng_below(rng, 2)));
}

static void make_noise(struct rng *rng)
{
	uint64_t *words = (uint64_t *)(void *)play->l->header;
	uint64_t records = (uint64_t)((uint64_t *)(void *)play->l->rules - words),
		 counters = (uint64_t)((uint64_t *)(void *)play->l->counters - words);
	uint64_t slots = (uint64_t)((uint64_t *)(void *)play->l->tables[0].slots - words);
	uint64_t first = play->scope == TABLE ? counters : records,
		 n = generation_end(play->l, &play->l->tables[0]) / sizeof(*words);

	while (!atomic_load(&play->stop)) {
		uint64_t at = first + rng_below(rng, n - first);

		/* Every other time the word of a slot. */
		if (rng_below(rng, 2) == 0)
			at = slots + 2 * rng_below(rng, play->l->tables[0].lines * SLOTS_PER_LINE) + 1;
		else if (play->scope == HEADER && rng_below(rng, 8) == 0)
			at = rng_below(rng, sizeof(struct layout_header) / sizeof(*words));
		if (play->scope == HEADER && rng_below(rng, 256) == 0)
			invent_table(rng);
		else
			store_relaxed(&words[at], nearly_right(rng, words, n, at));
		atomic_fetch_add(&play->calls[NOISE], 1);
		if (rng_below(rng, 64) == 0)
			sched_yield();
	}
}

/* ---- The eight ---- */

static void look_in(struct rng *rng)
{
	struct shmlimit_problem problem;
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_rule rule = rules[rng_below(rng, NAMED)];
	int rule_id = (int)rng_below(rng, RULES), error;
	struct shmlimit *other;

	rule.struct_size = sizeof(rule);
	switch (rng_below(rng, 7)) {
	case 0:
		error = shmlimit_verify(stage_name, &problem, 1);
		worker_check(error >= 0 || play->scope == HEADER, "verify fails: %d", error);
		break;
	case 1:
		error = shmlimit_counters(play->l, rule_id, &counters);
		worker_check(error == 0 || error == -ESRCH, "counters: %d", error);
		break;
	case 2:
		for (uint64_t i = 0; shmlimit_slot(play->l, i, &slot, shmlimit_now(play->l)) == 0; i++) {
			unsigned char key[SHMLIMIT_KEY_MAX];
			uint32_t number = 0;
			int n = shmlimit_slot_key(play->l, i, &slot, key, sizeof(key), NULL);

			/* What hashes to what stands in the slot is a key; noise would do it once in 2^48 times. */
			memcpy(&number, key, sizeof(number));
			worker_check(n == 0 || (n == sizeof(number) && number < KEYS),
			             "a key of %d bytes that nobody has", n);
			atomic_fetch_add(&play->keys, n > 0);
		}
		break;
	case 3:
		error = shmlimit_rule_get(play->l, rule_id, &rule);
		worker_check(error == 0 || error == -ESRCH || (play->scope != TABLE && error == -EUCLEAN),
		             "rule_get: %d", error);
		break;
	case 4:
		rule.refill += rule.algorithm == SHMLIMIT_FUNNEL ? rng_below(rng, 2) : 0;
		error = shmlimit_rule_set(play->l, names[rule.algorithm], &rule);
		if (error == -EAGAIN)
			break; /* the others had the lock for five seconds */
		/* A window or a place looks at the tables, which a damaged header does not say. */
		worker_check(play->scope == TABLE
		                     ? error == play->id[rule.algorithm]
		                     : error >= 0 || error == -EBUSY || error == -EXFULL ||
		                               (play->scope == HEADER &&
		                                (error == -EUCLEAN || error == -EFBIG || error == -EALREADY)),
		             "rule_set: %d", error);
		break;
	case 5:
		error = shmlimit_reset(play->l, play->id[rng_below(rng, NAMED)], NULL, 0);
		worker_check(error >= 0 || (play->scope != TABLE && error == -ESRCH), "reset: %d", error);
		break;
	case 6:
		error = shmlimit_open(stage_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &other);
		if (error == 0)
			shmlimit_close(other);
		worker_check(error == 0 || (play->scope == HEADER &&
		                            (error == -EMEDIUMTYPE || error == -EPROTO || error == -EUCLEAN)),
		             "open: %d", error);
		break;
	}
}

static int ask(struct rng *rng, int rule, uint32_t key, struct shmlimit_result *r)
{
	uint64_t tokens =
		rng_below(rng, 16) == 0 ? rng_draw(rng) >> rng_below(rng, 64) : 1 + rng_below(rng, CAPACITY + 1);

	switch (rng_below(rng, 6)) {
	case 0:
		return shmlimit_peek(play->l, rule, &key, sizeof(key), tokens, r);
	case 1:
		return shmlimit_reserve(play->l, rule, &key, sizeof(key), tokens, WAIT_NS, r);
	case 2:
		return shmlimit_charge(play->l, rule, &key, sizeof(key), tokens, r);
	case 3:
		return shmlimit_refund(play->l, rule, &key, sizeof(key), tokens, r);
	default:
		return shmlimit_take(play->l, rule, &key, sizeof(key), tokens, r);
	}
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };

	(void)crew;
	if (index == NOISE) {
		make_noise(&rng);
		return;
	}
	while (!atomic_load(&play->stop)) {
		struct shmlimit_result r = { 0 };
		int answer;

		if (rng_below(&rng, 256) == 0)
			look_in(&rng);
		answer = ask(&rng, play->id[rng_below(&rng, NAMED)], (uint32_t)rng_below(&rng, KEYS), &r);
		worker_check(answer >= 0 || (play->scope != TABLE && (answer == -ESRCH || answer == -EOPNOTSUPP)),
		             "a call failed: %s", shmlimit_strerror(answer));
		worker_check(play->scope != TABLE || r.remaining <= CAPACITY, "%" PRIu64 " are left of %d", r.remaining,
		             CAPACITY);
		atomic_fetch_add(&play->calls[index], 1);
	}
}

/* ---- Afterwards ---- */

static int take(int rule, uint32_t key, uint64_t now_ns)
{
	int answer = shmlimit_take(at_time(play->l, now_ns), rule, &key, sizeof(key), 1, NULL);

	at_clock(play->l);
	return answer;
}

/* How many of all keys are denied a token. */
static unsigned denied(uint64_t now_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NAMED; i++)
		for (uint32_t key = 0; key < KEYS; key++)
			n += take(play->id[i], key, now_ns) != SHMLIMIT_ALLOWED;
	return n;
}

/* How many keys are not admitted just what a new one is. */
static unsigned not_as_new(uint64_t now_ns)
{
	unsigned off = 0;

	for (unsigned i = 0; i < NAMED; i++) {
		unsigned want = rules[i].algorithm == SHMLIMIT_WARMUP ? 1 : CAPACITY;

		for (uint32_t key = 0; key < KEYS; key++) {
			unsigned got = 0;

			while (got <= CAPACITY && take(play->id[i], key, now_ns) == SHMLIMIT_ALLOWED)
				got++;
			off += got != want;
		}
	}
	return off;
}

static int set_rules(void)
{
	int bad = 0;

	for (unsigned i = 0; i < NAMED; i++) {
		struct shmlimit_rule rule = rules[i];

		rule.struct_size = sizeof(rule);
		play->id[i] = shmlimit_rule_set(play->l, names[i], &rule);
		bad += play->id[i] < 0;
	}
	return bad;
}

/* What an operator can do without a new segment: remove what has a name, and set what should be. */
static void remove_rules(void)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	for (int id = 0; id < RULES; id++)
		if (shmlimit_rule_name(play->l, id, name) == 0)
			(void)shmlimit_rule_remove(play->l, name);
}

/* Until this many of them made calls while there was noise, and saw a key. */
static void listen(struct crew *crew, time_t seconds)
{
	time_t until = time(NULL) + seconds;
	int idle;

	do {
		crew_await();
		idle = atomic_load(&play->keys) == 0;
		for (int i = 0; i < crew->n; i++)
			idle += atomic_load(&play->calls[i]) < 100;
	} while (idle > 0 || time(NULL) < until);
}

static void perform(const char *title, enum scope scope, time_t seconds)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 64, .rules = RULES, .rules_max = RULES, .store_keys = 14
	};
	uint64_t calls = 0, now_ns;
	struct crew crew;
	int error, found;

	memset(play->calls, 0, sizeof(play->calls));
	play->scope = scope;
	play->keys = 0;
	play->seed++;
	atomic_store(&play->stop, 0);
	error = shmlimit_create(stage_name, &options, &play->l);
	if (error != 0 || set_rules() != 0)
		bail("create: %s", shmlimit_strerror(error));

	crew_start(&crew, WORKERS + 1, work, NULL);
	listen(&crew, seconds);
	atomic_store(&play->stop, 1);
	is(crew_wait(&crew), 0, "%s: no process crashes, hangs, or gets an answer that the contract does not have",
	   title);
	for (int i = 0; i < WORKERS; i++)
		calls += atomic_load(&play->calls[i]);
	diag("%s: %" PRIu64 " calls, %" PRIu64 " words written", title, calls, atomic_load(&play->calls[NOISE]));

	now_ns = shmlimit_now(play->l) + SECOND;
	if (scope == TABLE) {
		ok(denied(now_ns) > 0, "%s: when it stops some keys are locked out", title);
		now_ns += LOCKED_NS;
		is(denied(now_ns), 0, "%s: no key is locked out for longer than its time to fill and its longest debt",
		   title);
	} else {
		remove_rules();
	}
	is(shmlimit_enable(play->l, 1), 0, "%s: the switch can be thrown", title);
	is(set_rules(), 0, "%s: rules can be set anew", title);
	ok(shmlimit_reset(play->l, SHMLIMIT_ALL_RULES, NULL, 0) >= 0, "%s: all keys can be reset", title);
	is(not_as_new(now_ns), 0, "%s: each key is then as if new", title);
	found = shmlimit_verify(stage_name, NULL, 0);
	ok(found >= 0 || (scope == HEADER && found == -EMEDIUMTYPE), "%s: verify has its say", title);
	shmlimit_close(play->l);
	(void)stage_sweep();
}

int main(void)
{
	const char *given = getenv("SECONDS");
	time_t seconds = (time_t)(given != NULL ? strtoull(given, NULL, 10) : scaled(3));

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("hostile");
	alarm((unsigned)seconds + WATCHDOG_SECONDS);
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	perform("noise in slots, rings, names and counters", TABLE, seconds / 3);
	perform("noise in rules too", RECORDS, seconds / 3);
	perform("noise in all", HEADER, seconds - 2 * (seconds / 3));
	return tap_done();
}
