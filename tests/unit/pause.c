/*
 * Pauses: while a key is paused nothing of it passes and nothing is taken, and before and after that its rule decides as
 * one that has none; for each algorithm, beside keys of such a rule. Also through changes, a larger table and a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>
#include <sys/mman.h>

#include "unit.h"

#include "../rng.h"

#include "limiter.h"
#include "rule.h"

#define T0 ((uint64_t)1000 * 86400 * SECOND)
#define KEYS 4
#define TICK_NS 1000000 /* an end is rounded up by less */
#define YEAR (366 * UINT64_C(86400) * SECOND)

static struct shmlimit *l;
static struct rng rng;

/* ---- Beside a rule that has none ---- */

struct game {
	const char *title;
	struct shmlimit_rule rule;
	const struct shmlimit_limit *limit; /* that calls bring, or NULL */
};

static const struct shmlimit_limit plan = {
	.struct_size = sizeof(plan), .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND
};

static const struct game games[] = {
	{ "a funnel", { .capacity = 5, .refill = 2, .period_ns = SECOND, .max_wait_ns = SECOND }, NULL },
	{ "a warming-up limiter",
	  { .algorithm = SHMLIMIT_WARMUP, .refill = 5, .period_ns = SECOND, .warmup_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "a window",
	  { .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "a window that counts what is refused",
	  { .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = SECOND, .flags = SHMLIMIT_RULE_COUNT_REFUSED },
	  NULL },
	{ "a count", { .algorithm = SHMLIMIT_COUNTER, .capacity = 6, .period_ns = SECOND }, NULL },
	{ "gcra",
	  { .algorithm = SHMLIMIT_GCRA, .capacity = 5, .refill = 3, .period_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "gcra, by a limit of the call", { .algorithm = SHMLIMIT_GCRA }, &plan },
	{ "places", { .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = SECOND }, NULL },
	{ "a lease", { .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = SECOND }, NULL },
};

static const uint32_t verbs[] = { SHMLIMIT_TAKE,   SHMLIMIT_TAKE,   SHMLIMIT_PEEK,     SHMLIMIT_RESERVE,
	                          SHMLIMIT_CHARGE, SHMLIMIT_REFUND, SHMLIMIT_TAKE_SOME };
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* Neither places nor leases are taken as many as fit. */
static int passes(const struct game *game, uint32_t verb)
{
	if (game->rule.algorithm == SHMLIMIT_HOLD || game->rule.algorithm == SHMLIMIT_LEASE)
		return verb == SHMLIMIT_TAKE || verb == SHMLIMIT_PEEK || verb == SHMLIMIT_RESERVE;
	return verb != SHMLIMIT_CHARGE && verb != SHMLIMIT_REFUND;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Of a key that is paused for left_ns: denied, as long as that, and otherwise as a peek has it. */
static int is_denied(const struct shmlimit_request *q, const struct shmlimit_request *same, uint32_t verb,
                     uint64_t left_ns, uint64_t now_ns)
{
	struct shmlimit_result r = { 0 }, peeked = { 0 }, after = { 0 };
	int answer = shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, same, &peeked);
	uint64_t least_ns = longer(left_ns, answer == SHMLIMIT_DENIED ? peeked.retry_after_ns : 0);

	if (shmlimit_decide(at_time(l, now_ns), verb, q, &r) != SHMLIMIT_DENIED ||
	    shmlimit_decide(at_time(l, now_ns), verb, q, NULL) != SHMLIMIT_DENIED ||
	    shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, q, &after) != SHMLIMIT_DENIED)
		return 0;
	return r.limit == peeked.limit && r.remaining == peeked.remaining && r.wait_ns == 0 && r.granted == 0 &&
	       r.reset_after_ns == peeked.reset_after_ns && after.remaining == peeked.remaining &&
	       (r.retry_after_ns == least_ns ||
	        (least_ns == left_ns && r.retry_after_ns > least_ns && r.retry_after_ns - least_ns < TICK_NS));
}

static int is_same(const struct shmlimit_request *q, const struct shmlimit_request *same, uint32_t verb,
                   uint64_t now_ns)
{
	struct shmlimit_result one = { 0 }, other = { 0 };
	int answer = shmlimit_decide(at_time(l, now_ns), verb, q, &one);

	return answer == shmlimit_decide(at_time(l, now_ns), verb, same, &other) &&
	       (answer < 0 || memcmp(&one, &other, sizeof(one)) == 0);
}

static void beside(const struct game *game)
{
	uint64_t now_ns = T0, ends_ns[KEYS] = { 0 }, total = scaled(6000), wrong = 0, denied = 0, same_as = 0, kept = 0;
	int rule = unit_rule_at(l, "paused", game->rule, T0), second = unit_rule_at(l, "other", game->rule, T0);

	for (uint64_t i = 0; i < total; i++) {
		unsigned key = (unsigned)rng_below(&rng, KEYS);
		uint32_t verb = verbs[rng_below(&rng, VERBS)];
		struct shmlimit_request q = { .rule = rule,
			                      .key = &key,
			                      .key_len = sizeof(key),
			                      .limit = game->limit,
			                      .cost = game->rule.algorithm == SHMLIMIT_HOLD ? 1
			                                                                    : 1 + rng_below(&rng, 4) },
					same;
		uint64_t left_ns = 0, for_ns = 0;
		int paused;

		now_ns += rng_below(&rng, 3) != 0 ? rng_below(&rng, SECOND / 4) : rng_below(&rng, 3 * SECOND);
		same = q;
		same.rule = second;
		if (rng_below(&rng, 12) == 0) {
			/* 0 ends it. */
			for_ns = rng_below(&rng, 4) == 0 ? 0 : 1 + rng_below(&rng, 30 * SECOND);
			kept += for_ns != 0 && ends_ns[key] > now_ns + for_ns;
			if (shmlimit_pause(at_time(l, now_ns), rule, &key, sizeof(key), for_ns) != 0)
				wrong++;
			ends_ns[key] = for_ns == 0 ? 0 : longer(ends_ns[key], now_ns + for_ns);
		}
		paused = shmlimit_paused(at_time(l, now_ns), rule, &key, sizeof(key), &left_ns);
		/* Within a tick of its end it may be over or not. */
		if (ends_ns[key] + TICK_NS > now_ns && ends_ns[key] <= now_ns)
			continue;
		if (paused != (ends_ns[key] > now_ns ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED) ||
		    (paused == SHMLIMIT_DENIED) != (left_ns != 0)) {
			wrong++;
		} else if (paused == SHMLIMIT_DENIED && passes(game, verb)) {
			wrong += !is_denied(&q, &same, verb, left_ns, now_ns);
			denied++;
		} else {
			wrong += !is_same(&q, &same, verb, now_ns);
			same_as++;
		}
	}
	is(wrong, 0, "%s: a paused key is denied until the later end, and else as if there were no pauses",
	   game->title);
	ok(denied > total / 20 && same_as > total / 20 && kept > total / 1000,
	   "%s: of %" PRIu64 " calls %" PRIu64 " were denied, %" PRIu64 " decided, %" PRIu64 " pauses stayed",
	   game->title, total, denied, same_as, kept);
}

/* ---- What has a call of its own ---- */

static void counts_and_places(void)
{
	struct shmlimit_rule counter = { .algorithm = SHMLIMIT_COUNTER, .capacity = 9, .period_ns = 9 * SECOND };
	struct shmlimit_rule hold = { .algorithm = SHMLIMIT_HOLD, .capacity = 2, .period_ns = 9 * SECOND };
	int count = unit_rule_at(l, "count", counter, T0), places = unit_rule_at(l, "places", hold, T0);
	struct shmlimit_count_request more = { .struct_size = sizeof(more), .n = 2, .bound = 9 };
	struct shmlimit_count found = { .struct_size = sizeof(found) };
	struct shmlimit_place place = { .struct_size = sizeof(place) }, other = place;
	struct shmlimit_request both[2] = { { .rule = count, .key = "free", .key_len = 4, .cost = 1 },
		                            { .rule = count, .key = "k", .key_len = 1, .cost = 1 } };
	size_t failed = 9;

	is(shmlimit_count(at_time(l, T0), count, "k", 1, &more, &found), 0, "before a pause a count goes on");
	is(shmlimit_pause(at_time(l, T0), count, "k", 1, SECOND), 0, "a count is paused");
	is(shmlimit_count(at_time(l, T0), count, "k", 1, &more, &found), SHMLIMIT_DENIED,
	   "nothing is added to a paused count");
	ok(found.count == 2 && found.applied == 0, "a denial fills in the count, too");
	is(shmlimit_take_all(at_time(l, T0), both, 2, &failed, NULL), SHMLIMIT_DENIED, "of all or none it denies all");
	ok(failed == 1 && shmlimit_peek(at_time(l, T0), count, "free", 4, 9, NULL) == SHMLIMIT_ALLOWED,
	   "the other key of all or none has what it had");
	more.n = -1;
	is(shmlimit_count(at_time(l, T0), count, "k", 1, &more, &found), 0, "what is taken away is taken");
	is(shmlimit_enter(at_time(l, T0), places, "k", 1, &place, NULL), 0, "a place is entered");
	is(shmlimit_pause(at_time(l, T0), places, "k", 1, SECOND), 0, "the key of a place is paused");
	is(shmlimit_enter(at_time(l, T0), places, "k", 1, &other, NULL), SHMLIMIT_DENIED,
	   "no process enters a paused key");
	is(shmlimit_renew(at_time(l, T0), places, "k", 1, &place), 0, "a process that is there may stay");
	is(shmlimit_leave(at_time(l, T0), places, "k", 1, &place), 0, "a process that is there may leave");
	is(shmlimit_enter(at_time(l, T0), places, "k", 1, &other, NULL), SHMLIMIT_DENIED, "no process enters after it");
	is(shmlimit_enter(at_time(l, T0 + SECOND + TICK_NS), places, "k", 1, &other, NULL), 0,
	   "a process enters once the pause is over");
}

static void refusals(void)
{
	char longest[SHMLIMIT_KEY_MAX];
	struct shmlimit *reader;
	uint64_t left_ns = 7;
	int rule = unit_rule(l, "refusals", 5, 1, SECOND), pauses;

	memset(longest, 'k', sizeof(longest));
	is(shmlimit_pause(NULL, rule, "k", 1, SECOND), -EINVAL, "no handle");
	is(shmlimit_pause(l, rule, NULL, 1, SECOND), -EINVAL, "no key");
	is(shmlimit_pause(l, rule, "k", 0, SECOND), -EMSGSIZE, "an empty key");
	is(shmlimit_pause(l, rule, longest, sizeof(longest) + 1, SECOND), -EMSGSIZE, "a key that is too long");
	is(shmlimit_pause(l, rule, "k", 1, YEAR + 1), -ERANGE, "a pause that is too long");
	is(shmlimit_paused(l, rule, "k", 0, &left_ns), -EMSGSIZE, "no pause of an empty key");
	is(left_ns, 7, "for an empty key left_ns stays as it was");
	is(shmlimit_pause(l, rule, longest, sizeof(longest), YEAR), 0, "the longest key, for the longest time");
	is(shmlimit_take(l, rule, longest, sizeof(longest), 1, NULL), SHMLIMIT_DENIED, "a paused key is denied");
	is(shmlimit_take(l, rule, longest, sizeof(longest) - 1, 1, NULL), SHMLIMIT_ALLOWED, "a shorter key is allowed");
	is(shmlimit_pause(l, rule, longest, sizeof(longest), 0), 0, "the longest key's pause ends");
	is(shmlimit_take(l, rule, longest, sizeof(longest), 1, NULL), SHMLIMIT_ALLOWED, "the longest key is allowed");
	pauses = shmlimit_rule_find(l, "~pause");
	is(shmlimit_pause(l, pauses, "k", 1, SECOND), -EOPNOTSUPP, "pauses are not paused");
	is(shmlimit_pause(l, rule, "k", 1, 60 * SECOND), 0, "a key is paused");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	is(shmlimit_pause(reader, rule, "k", 1, SECOND), -EROFS, "a handle that may only read pauses nothing");
	is(shmlimit_paused(reader, rule, "k", 1, &left_ns), SHMLIMIT_DENIED,
	   "a handle that may only read sees a pause");
	is(shmlimit_peek(reader, rule, "k", 1, 1, NULL), SHMLIMIT_DENIED,
	   "a handle that may only read peeks by a pause");
	shmlimit_close(reader);
}

static int paused(int rule)
{
	return shmlimit_paused(l, rule, "k", 1, NULL);
}

/* The rule, or that of pauses, or the segment, does not enforce. */
static void switches(void)
{
	struct shmlimit_rule rule = { .capacity = 5, .refill = 1, .period_ns = SECOND },
			     off = { .algorithm = SHMLIMIT_COUNTER, .capacity = 1, .mode = SHMLIMIT_OFF };
	struct shmlimit_counters before, after;
	int id = unit_rule_of(l, "switched", rule);

	is(shmlimit_pause(l, id, "k", 1, 60 * SECOND), 0, "a key is paused");
	is(paused(id), SHMLIMIT_DENIED, "that key is paused");
	before = unit_counters(l, id);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a paused key is denied");
	after = unit_counters(l, id);
	ok(after.denied == before.denied + 1 && after.claims == before.claims,
	   "a denial by a pause is counted, and claims no slot");
	rule.mode = SHMLIMIT_DRY_RUN;
	unit_rule_of(l, "switched", rule);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a dry run denies no call");
	is(unit_counters(l, id).shadow_denied, 1, "a dry run counts what a pause would deny");
	is(paused(id), SHMLIMIT_ALLOWED, "a dry run pauses nothing");
	rule.mode = SHMLIMIT_OFF;
	unit_rule_of(l, "switched", rule);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a rule that is off denies no call");
	rule.mode = SHMLIMIT_ENFORCE;
	rule.capacity = 7;
	unit_rule_of(l, "switched", rule);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a changed rule has its pauses");
	unit_rule_of(l, "~pause", off);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "there are no pauses where ~pause is off");
	is(shmlimit_pause(l, id, "l", 1, SECOND), SHMLIMIT_DENIED, "a new pause is refused where ~pause is off");
	off.mode = SHMLIMIT_ENFORCE;
	off.period_ns = 100 * SECOND;
	unit_rule_of(l, "~pause", off);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "pauses are in force where ~pause is on again");
	is(shmlimit_pause(l, id, "k", 1, 101 * SECOND), -ERANGE, "a pause is no longer than ~pause counts");
	off.period_ns = 0;
	unit_rule_of(l, "~pause", off);
	shmlimit_rule_remove(l, "switched");
	unit_rule(l, "else", 5, 1, SECOND); /* has the id */
	is(shmlimit_take(l, shmlimit_rule_find(l, "else"), "k", 1, 1, NULL), SHMLIMIT_ALLOWED,
	   "a rule that got the id has none of its pauses");
	id = unit_rule_of(l, "switched", rule);
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a rule that is set again has its pauses");
	unit_rule_of(l, "switched",
	             (struct shmlimit_rule){
			     .algorithm = SHMLIMIT_FUNNEL, .capacity = 5, .refill = 1, .period_ns = SECOND });
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a rule that is changed after that has its pauses");
}

/* ---- First tries ---- */

/* Once the last pause is over the rule's version is what it was: first tries decide again. */
static void ends(void)
{
	int id = unit_rule(l, "ends", 5, 1, SECOND);
	uint64_t before, now;

	(void)shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL);
	(void)shmlimit_rule_version(l, id, &before);
	is(shmlimit_pause(at_time(l, T0), id, "k", 1, SECOND), 0, "a key is paused");
	(void)shmlimit_rule_version(l, id, &now);
	is(now, before, "no pause is another version of the rule");
	is(shmlimit_take(at_time(l, T0 + SECOND / 2), id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a paused key is denied");
	is(shmlimit_take(at_time(l, T0 + 5 * SECOND), id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED,
	   "a process enters once the pause is over");
	is((long long)published_paused(l->rules[id].published), 0,
	   "the rule has no mark then, so that first tries decide");
	is(shmlimit_pause(at_time(l, T0 + 5 * SECOND), id, "k", 1, 2 * SECOND), 0, "the key is paused again");
	is(shmlimit_take(at_time(l, T0 + 6 * SECOND), id, "k", 1, 1, NULL), SHMLIMIT_DENIED,
	   "the key that is paused again is denied");
	/* Each end, by times around the word's range. */
	for (uint64_t at = UINT64_C(1) << 57, i = 0; i < 6; at += UINT64_C(1) << 56, i++) {
		struct shmlimit_rule again = {
			.struct_size = sizeof(again), .capacity = 5, .refill = 1, .period_ns = SECOND
		};
		int wrapped;

		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		shmlimit_rule_remove(l, "wraps");
		wrapped = unit_rule_at(l, "wraps", again, at - 2 * SECOND);
		is(shmlimit_pause(at_time(l, at - SECOND), wrapped, "k", 1, YEAR), 0,
		   "a key is paused for a year, from %" PRIx64, at);
		is(shmlimit_take(at_time(l, at - SECOND + YEAR - 1), wrapped, "k", 1, 1, NULL), SHMLIMIT_DENIED,
		   "at the end of a year it is denied");
		is(shmlimit_take(at_time(l, at + YEAR + 5 * SECOND), wrapped, "k", 1, 1, NULL), SHMLIMIT_ALLOWED,
		   "after a year it is allowed");
	}
}

/* ---- A larger table, and a file ---- */

static void moves(void)
{
	int id = unit_rule(l, "moves", 5, 1, SECOND), fd = memfd_create("pauses", MFD_CLOEXEC), refused = 0;
	struct shmlimit *loaded;
	char second[sizeof(unit_name) + 2];

	for (unsigned key = 0; key < 20; key++)
		if (shmlimit_pause(l, id, &key, sizeof(key), 3600 * SECOND) != 0)
			bail("pause");
	is(shmlimit_grow(l, 1024), 0, "the table grows");
	for (unsigned key = 0; key < 20; key++)
		refused += shmlimit_take(l, id, &key, sizeof(key), 1, NULL) == SHMLIMIT_DENIED;
	is(refused, 20, "the pauses are in the larger table");
	snprintf(second, sizeof(second), "%s.2", unit_name);
	is(shmlimit_save(l, fd), 0, "a segment with pauses is saved");
	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(second, fd, 0, &loaded), 0, "a segment with pauses is loaded");
	id = shmlimit_rule_find(loaded, "moves");
	for (unsigned key = 0; key < 20; key++)
		refused += shmlimit_take(loaded, id, &key, sizeof(key), 1, NULL) == SHMLIMIT_DENIED;
	is(refused, 40, "the pauses are in the loaded segment");
	is(shmlimit_pause(loaded, id, &(unsigned){ 3 }, sizeof(unsigned), 0), 0, "a pause ends in the loaded segment");
	is(shmlimit_take(loaded, id, &(unsigned){ 3 }, sizeof(unsigned), 1, NULL), SHMLIMIT_ALLOWED,
	   "the key is allowed in the loaded segment");
	is(shmlimit_take(l, shmlimit_rule_find(l, "moves"), &(unsigned){ 3 }, sizeof(unsigned), 1, NULL),
	   SHMLIMIT_DENIED, "the key is paused in the segment that was saved");
	shmlimit_close(loaded);
	shmlimit_destroy(second);
	close(fd);
}

/* The longest key of the longest name, while the rule of pauses is marked as if its keys were paused. */
static void longest(void)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1] = { 0 }, key[SHMLIMIT_KEY_MAX];
	int id;

	memset(name, 'n', SHMLIMIT_RULE_NAME_MAX);
	memset(key, 'k', sizeof(key));
	id = unit_rule(l, name, 5, 1, SECOND);
	is(shmlimit_pause(l, id, key, sizeof(key), 3600 * SECOND), 0, "the longest key is paused");
	set_bits(&l->rules[shmlimit_rule_find(l, "~pause")].published, published_paused(l->rules[id].published));
	is(shmlimit_pause(l, id, key, sizeof(key), 7200 * SECOND), 0, "the longest key is paused for longer");
	is(shmlimit_take(l, id, key, sizeof(key), 1, NULL), SHMLIMIT_DENIED, "the longest key is denied");
	is(shmlimit_pause(l, id, key, sizeof(key), 0), 0, "the pause of the longest key ends");
	is(shmlimit_take(l, id, key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED, "the longest key is allowed");
}

/* A segment that is full of keys that may not be evicted has no room for a pause. */
static void full(void)
{
	const struct shmlimit_options options = { .struct_size = sizeof(options),
		                                  .slots = 16,
		                                  .slots_max = 16,
		                                  .on_full = SHMLIMIT_FULL_DENY },
				      allows = { .struct_size = sizeof(options),
		                                 .slots = 16,
		                                 .slots_max = 16,
		                                 .on_full = SHMLIMIT_FULL_ALLOW };

	for (int i = 0; i < 2; i++) {
		int id;

		shmlimit_close(l);
		l = unit_create("pause", i == 0 ? &options : &allows);
		id = unit_rule(l, "full", 1, 1, 3600 * SECOND);
		for (unsigned key = 0; key < 16; key++)
			(void)shmlimit_take(l, id, &key, sizeof(key), 1, NULL);
		is(shmlimit_pause(l, id, "k", 1, SECOND), SHMLIMIT_DENIED, "a pause that finds no slot says so");
		is(paused(id), SHMLIMIT_ALLOWED, "a key whose pause found no slot is not paused");
	}
}

/* ---- Waiting ---- */

static struct waiter {
	pthread_t thread;
	uint64_t max_ns, passed_ns;
	struct shmlimit_result r;
	int answer, rule;
} waiters[3];

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	w->answer = shmlimit_acquire(l, w->rule, "k", 1, 1, w->max_ns, &w->r);
	w->passed_ns = shmlimit_now(l);
	return NULL;
}

/* Returns 0, where this process was too slow to pause calls that wait: they may have passed. */
static int acquires_in(uint64_t second)
{
	struct shmlimit_rule rule = { .capacity = 1, .refill = 5, .period_ns = second, .max_wait_ns = 10 * second };
	int id = unit_rule_of(l, "acquires", rule);
	uint64_t begun_ns = shmlimit_now(l), ends_ns, last_ns = 0, first_ns = UINT64_MAX, denied = 0,
		 before = unit_counters(l, id).allowed;
	int is_late;

	/* Five tokens at once: the two calls that wait are due in a second and in 1.2 s. */
	(void)shmlimit_reserve(l, id, "k", 1, 5, second, NULL);
	for (int i = 0; i < 2; i++) {
		waiters[i] = (struct waiter){ .max_ns = 600 * second, .rule = id };
		if (pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]) != 0)
			bail("no thread");
	}
	while (unit_counters(l, id).allowed < before + 3)
		usleep(1000);
	/* Five more, for which others wait until 2.2 s: their turns are after the pause. */
	(void)shmlimit_reserve(l, id, "k", 1, 5, 600 * second, NULL);
	ends_ns = shmlimit_now(l) + 1300 * (second / 1000);
	is(shmlimit_pause(l, id, "k", 1, 1300 * (second / 1000)), 0, "two calls wait, and are paused");
	waiters[2] = (struct waiter){ .max_ns = second / 10, .rule = id };
	wait_for_it(&waiters[2]);
	is_late = shmlimit_now(l) - begun_ns >= second;
	for (int i = 0; i < 2; i++) {
		pthread_join(waiters[i].thread, NULL);
		denied += waiters[i].answer != SHMLIMIT_ALLOWED;
		last_ns = longer(last_ns, waiters[i].passed_ns);
		if (waiters[i].passed_ns < first_ns)
			first_ns = waiters[i].passed_ns;
	}
	(void)shmlimit_pause(l, id, "k", 1, 0);
	(void)shmlimit_reset(l, id, NULL, 0);
	if (is_late)
		return 0;
	ok(waiters[2].answer == SHMLIMIT_DENIED && waiters[2].r.retry_after_ns > second / 10,
	   "a call that may not wait that long is denied at once");
	is(denied, 0, "all that waited get their token");
	ok(first_ns >= ends_ns, "no call passes before the pause is over");
	/* Fourteen tokens, of which the first was there. */
	ok(last_ns - begun_ns >= 13 * (second / 5) - TICK_NS,
	   "after the pause they come behind those that had reserved before");
	return 1;
}

static void acquires(void)
{
	uint64_t second = SECOND;

	while (second < 60 * SECOND && !acquires_in(second))
		second *= 4;
	ok(second < 60 * SECOND, "calls that waited were paused in time");
}

/* The verb is the call of that name. */
static void acquires_by_verb(void)
{
	struct shmlimit_rule rule = { .capacity = 2, .refill = 2, .period_ns = SECOND };
	int id = unit_rule_of(l, "verb", rule);
	const struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1 };
	struct shmlimit_result r;
	uint64_t ends_ns = shmlimit_now(l) + SECOND / 10;

	is(shmlimit_pause(l, id, "k", 1, SECOND / 10), 0, "a key is paused under a rule that allows no wait");
	is(shmlimit_decide(l, SHMLIMIT_ACQUIRE, &q, &r), SHMLIMIT_ALLOWED,
	   "an acquisition by its verb waits for the pause, too");
	ok(shmlimit_now(l) >= ends_ns, "it goes on when the pause is over");
}

int main(void)
{
	const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 256 };

	rng = (struct rng){ 20261130 };
	l = unit_create("pause", &options);
	for (size_t i = 0; i < sizeof(games) / sizeof(games[0]); i++) {
		shmlimit_close(l);
		l = unit_create("pause", &options);
		beside(&games[i]);
	}
	shmlimit_close(l);
	l = unit_create("pause", &options);
	counts_and_places();
	ends();
	shmlimit_close(l);
	l = unit_create("pause", &options);
	refusals();
	switches();
	moves();
	longest();
	acquires();
	acquires_by_verb();
	full();
	return tap_done();
}
