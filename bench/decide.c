/*
 * decide: what does a decision cost, beside what it cannot do without?
 *
 * One process, one hot key, one core; the floor is measured in the same rounds.
 * See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>

#include "atomic.h"
#include "clock.h"
#include "hash.h"
#include "kit/bench.h"
#include "kit/rounds.h"

static const char key[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(key) - 1)
#define SECOND ((uint64_t)1000000000)
#define DAY (86400 * SECOND)
#define PLACES 64

static struct shmlimit *precise, *coarse, *windows, *places;
static int open_rule, shut_rule, dry_rule, coarse_rule, window_rule, full_rule, warmup_rule, all_rule[4];
static int taken_rule, leased_rule, refused_rule, counted_rule, empty_rule, half_rule, last_rule, bound_rule;
static int total_rule, tenant_rule, auto_rule;
static uint64_t now_ns;
static struct layout_slot cell;
static uint64_t secret[2] = { 1, 2 };
static volatile uint64_t sink;

static void run_clock(uint64_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += clock_read(CLOCK_MONOTONIC);
	sink = sum;
}

static void run_hash(uint64_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += hash_bytes(secret, 0, key, KEY_LEN);
	sink = sum;
}

static void run_cas(uint64_t n)
{
	while (n--)
		sink = (uint64_t)slot_cas(&cell, (struct slot_seen){ cell.tag, cell.word }, cell.tag, cell.word + 1);
}

static void run_floor(uint64_t n)
{
	while (n--) {
		uint64_t hash = hash_bytes(secret, 0, key, KEY_LEN);
		uint64_t now = clock_read(CLOCK_MONOTONIC);

		sink = (uint64_t)slot_cas(&cell, (struct slot_seen){ cell.tag, cell.word }, hash, now);
	}
}

static void run_allowed(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(precise, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_allowed_result(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		bench_expect(shmlimit_take(precise, open_rule, key, KEY_LEN, 1, &r), SHMLIMIT_ALLOWED);
	sink = r.remaining;
}

static void run_denied(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(precise, shut_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_DENIED);
}

static void run_denied_result(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		bench_expect(shmlimit_take(precise, shut_rule, key, KEY_LEN, 1, &r), SHMLIMIT_DENIED);
	sink = r.retry_after_ns;
}

static void run_dry(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(precise, dry_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_peek(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_peek(precise, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_reserve(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		bench_expect(shmlimit_reserve(precise, open_rule, key, KEY_LEN, 1, 0, &r), SHMLIMIT_ALLOWED);
	sink = r.wait_ns;
}

static void run_coarse(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(coarse, coarse_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_injected(uint64_t n)
{
	now_ns = clock_read(CLOCK_MONOTONIC);
	while (n--)
		bench_expect(shmlimit_take(at_time(precise, now_ns++), open_rule, key, KEY_LEN, 1, NULL),
		             SHMLIMIT_ALLOWED);
}

static void run_window(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(windows, window_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_window_denied(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(windows, full_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_DENIED);
}

static void lease(uint64_t n, int rule, int answer)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };

	while (n--)
		bench_expect(shmlimit_lease_take(precise, rule, key, KEY_LEN,
		                                 &(struct shmlimit_lease_request){
							 .struct_size = sizeof(struct shmlimit_lease_request),
							 .cost = 1,
							 .lease_ns = SECOND,
							 .claim_ns = SECOND },
		                                 &lease, NULL),
		             answer);
}

static void run_lease(uint64_t n)
{
	lease(n, leased_rule, SHMLIMIT_ALLOWED);
}

static void run_lease_denied(uint64_t n)
{
	lease(n, refused_rule, SHMLIMIT_DENIED);
}

static void run_lease_taken(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_take(precise, taken_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_warmup(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		bench_expect(shmlimit_reserve(precise, warmup_rule, key, KEY_LEN, 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED);
	sink = r.wait_ns;
}

static void run_charge(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_charge(precise, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_refund(uint64_t n)
{
	while (n--)
		bench_expect(shmlimit_refund(precise, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_count(uint64_t n)
{
	struct shmlimit_count count = { .struct_size = sizeof(count) };

	while (n--)
		bench_expect(shmlimit_count(precise, counted_rule, key, KEY_LEN,
		                            &(struct shmlimit_count_request){
						    .struct_size = sizeof(struct shmlimit_count_request),
						    .n = 1,
						    .bound = INT64_MAX },
		                            &count),
		             SHMLIMIT_ALLOWED);
	sink = (uint64_t)count.count;
}

static void hold(uint64_t n, int rule)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };

	while (n--) {
		bench_expect(shmlimit_enter(places, rule, key, KEY_LEN, &hold, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_leave(places, rule, key, KEY_LEN, &hold), 0);
	}
}

/* One of 64 places is entered and left: no other is held; or 32 others are, or all others. */
static void run_hold(uint64_t n)
{
	hold(n, empty_rule);
}

/* The number of places is found. */
static void run_hold_auto(uint64_t n)
{
	hold(n, auto_rule);
}

static void run_hold_of_many(uint64_t n)
{
	hold(n, half_rule);
}

/* By a bound of its own, above which none is held. */
static void run_hold_by(uint64_t n)
{
	struct shmlimit_limit forty = { .struct_size = sizeof(forty), .flags = SHMLIMIT_LIMIT_PLACES, .capacity = 40 };
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_request asked = {
		.rule = half_rule, .key = key, .key_len = KEY_LEN, .cost = 1, .limit = &forty, .place = &hold
	};

	while (n-- > 0) {
		bench_expect(shmlimit_decide(places, SHMLIMIT_TAKE, &asked, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_leave(places, half_rule, key, KEY_LEN, &hold), 0);
	}
}

static void run_hold_of_all(uint64_t n)
{
	hold(n, last_rule);
}

/* The place is bound to this process in the same step. */
static void run_hold_bound(uint64_t n)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold), .flags = SHMLIMIT_PLACE_BIND };

	while (n--) {
		bench_expect(shmlimit_enter(places, empty_rule, key, KEY_LEN, &hold, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_leave(places, empty_rule, key, KEY_LEN, &hold), 0);
	}
}

/* ... and afterwards. */
static void run_hold_bind(uint64_t n)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };

	while (n--) {
		bench_expect(shmlimit_enter(places, empty_rule, key, KEY_LEN, &hold, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_bind(places, empty_rule, key, KEY_LEN, &hold, 0), 0);
		bench_expect(shmlimit_leave(places, empty_rule, key, KEY_LEN, &hold), 0);
	}
}

/* All places are held, and each is bound to a process that lives. */
static void run_hold_denied(uint64_t n)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };

	while (n--)
		bench_expect(shmlimit_enter(places, bound_rule, key, KEY_LEN, &hold, NULL), SHMLIMIT_DENIED);
}

/*
 * A place of all, of which 32 are held by this process, and one of the key's, which holds none, or
 * as many as its share is: in one step.
 */
static const char greedy[] = "client:192.168.100.2";

static void enter_two(uint64_t n, const char *whose, uint32_t share, int answer)
{
	struct shmlimit_place place[2] = { { .struct_size = sizeof(place[0]), .flags = SHMLIMIT_PLACE_BIND },
		                           { .struct_size = sizeof(place[1]), .flags = SHMLIMIT_PLACE_BIND } };
	struct shmlimit_request both[2] = { { total_rule, 0, "all", 3, 1, NULL, &place[0] },
		                            { tenant_rule, share, whose, KEY_LEN, 1, NULL, &place[1] } };

	while (n--) {
		bench_expect(shmlimit_take_all(places, both, 2, NULL, NULL), answer);
		if (answer != SHMLIMIT_ALLOWED)
			continue;
		bench_expect(shmlimit_leave(places, tenant_rule, whose, KEY_LEN, &place[1]), 0);
		bench_expect(shmlimit_leave(places, total_rule, "all", 3, &place[0]), 0);
	}
}

static void run_two(uint64_t n)
{
	enter_two(n, key, 0, SHMLIMIT_ALLOWED);
}

static void run_share(uint64_t n)
{
	enter_two(n, key, SHMLIMIT_SHARE_ONE, SHMLIMIT_ALLOWED);
}

static void run_share_denied(uint64_t n)
{
	enter_two(n, greedy, SHMLIMIT_SHARE_ONE, SHMLIMIT_DENIED);
}

/* With a result all places are looked at, to say how many are left. */
static void run_hold_result(uint64_t n)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_result r;

	while (n--) {
		bench_expect(shmlimit_enter(places, half_rule, key, KEY_LEN, &hold, &r), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_leave(places, half_rule, key, KEY_LEN, &hold), 0);
	}
	sink = r.remaining;
}

static void run_count_denied(uint64_t n)
{
	struct shmlimit_count count = { .struct_size = sizeof(count) };

	while (n--)
		bench_expect(shmlimit_count(
				     precise, counted_rule, key, KEY_LEN,
				     &(struct shmlimit_count_request){
					     .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 1 },
				     &count),
		             SHMLIMIT_DENIED);
	sink = (uint64_t)count.count;
}

static void run_throttle(uint64_t n)
{
	int64_t reply[5];

	while (n--)
		bench_expect(shmlimit_throttle(precise, key, KEY_LEN, 1000000000, 1000, 1, 1, reply), SHMLIMIT_ALLOWED);
	sink = (uint64_t)reply[2];
}

static void run_throttle_two(uint64_t n)
{
	int64_t reply[5];

	while (n--)
		bench_expect(shmlimit_throttle(precise, key, KEY_LEN, 1000000000, 1000 + (n & 1), 1, 1, reply),
		             SHMLIMIT_ALLOWED);
	sink = (uint64_t)reply[2];
}

/* One key under `limits` rules, all of which allow. A fourth of it, or half, is one limit's share. */
static void take_all(uint64_t n, size_t limits)
{
	struct shmlimit_request requests[4];

	for (size_t i = 0; i < limits; i++)
		requests[i] = (struct shmlimit_request){ all_rule[i], 0, key, KEY_LEN, 1, NULL, NULL };
	while (n--)
		bench_expect(shmlimit_take_all(precise, requests, limits, NULL, NULL), SHMLIMIT_ALLOWED);
}

static void run_all_of_one(uint64_t n)
{
	take_all(n, 1);
}

static void run_all_of_four(uint64_t n)
{
	take_all(n / 4, 4);
}

/* A new algorithm is a rule in prepare() and a line here. */
static struct contender {
	const char *name;
	void (*run)(uint64_t n);
	struct rounds ns;
} contenders[] = {
	{ .name = "floor", .run = run_floor },
	{ .name = "clock read", .run = run_clock },
	{ .name = "hash, 20-byte key", .run = run_hash },
	{ .name = "CAS, 16 bytes", .run = run_cas },
	{ .name = "allowed", .run = run_allowed },
	{ .name = "allowed, with result", .run = run_allowed_result },
	{ .name = "denied", .run = run_denied },
	{ .name = "denied, with result", .run = run_denied_result },
	{ .name = "denied, dry run", .run = run_dry },
	{ .name = "peek", .run = run_peek },
	{ .name = "reserve, with result", .run = run_reserve },
	{ .name = "allowed, coarse clock", .run = run_coarse },
	{ .name = "allowed, time given", .run = run_injected },
	{ .name = "window, allowed", .run = run_window },
	{ .name = "window, denied", .run = run_window_denied },
	{ .name = "lease, allowed", .run = run_lease },
	{ .name = "lease, allowed, a take", .run = run_lease_taken },
	{ .name = "lease, denied (cached)", .run = run_lease_denied },
	{ .name = "warm-up, reserve", .run = run_warmup },
	{ .name = "charge", .run = run_charge },
	{ .name = "refund", .run = run_refund },
	{ .name = "count", .run = run_count },
	{ .name = "count, denied", .run = run_count_denied },
	{ .name = "enter + leave", .run = run_hold },
	{ .name = "enter + leave, found", .run = run_hold_auto },
	{ .name = "enter + leave, 32 held", .run = run_hold_of_many },
	{ .name = "... 32 held, bound of 40", .run = run_hold_by },
	{ .name = "enter + leave, 63 held", .run = run_hold_of_all },
	{ .name = "... 32 held, with result", .run = run_hold_result },
	{ .name = "enter, bound + leave", .run = run_hold_bound },
	{ .name = "enter + bind + leave", .run = run_hold_bind },
	{ .name = "enter, 64 bound, denied", .run = run_hold_denied },
	{ .name = "enter two + leave", .run = run_two },
	{ .name = "... one by a share", .run = run_share },
	{ .name = "... denied by its share", .run = run_share_denied },
	{ .name = "throttle", .run = run_throttle },
	{ .name = "throttle, two triples", .run = run_throttle_two },
	{ .name = "take_all, one limit", .run = run_all_of_one },
	{ .name = "take_all, each of four", .run = run_all_of_four },
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))
#define FLOOR 0
#define ALLOWED 4

static int set(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule)
{
	int id = shmlimit_rule_set(l, name, rule);

	if (id < 0)
		bench_fail(name, shmlimit_strerror(id));
	return id;
}

static void prepare(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .clock = SHMLIMIT_CLOCK_COARSE };
	struct shmlimit_rule dry = {
		.struct_size = sizeof(dry), .mode = SHMLIMIT_DRY_RUN, .capacity = 1, .refill = 1, .period_ns = DAY
	};
	/* A hundred decisions take longer than the period: none is denied. */
	struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 100, .period_ns = 2000
	};
	struct shmlimit_rule full = {
		.struct_size = sizeof(full), .algorithm = SHMLIMIT_WINDOW, .capacity = 100, .period_ns = DAY
	};
	struct shmlimit_rule warmup = { .struct_size = sizeof(warmup),
		                        .algorithm = SHMLIMIT_WARMUP,
		                        .refill = 250000,
		                        .period_ns = SECOND,
		                        .warmup_ns = SECOND,
		                        .max_wait_ns = 200 * SECOND };
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = SHMLIMIT_LEASE_CAPACITY_MAX,
		                       .refill = 1,
		                       .period_ns = SECOND };
	struct shmlimit_rule counted = {
		.struct_size = sizeof(counted), .algorithm = SHMLIMIT_COUNTER, .capacity = 1000000000, .period_ns = DAY
	};
	struct shmlimit_rule held = {
		.struct_size = sizeof(held), .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = DAY
	};

	precise = bench_create(NULL);
	open_rule = bench_rule(precise, "open", 1000000000, 1000, SECOND);
	shut_rule = bench_rule(precise, "shut", 1, 1, DAY);
	dry_rule = set(precise, "dry", &dry);
	warmup_rule = set(precise, "warmup", &warmup);
	leased_rule = set(precise, "leased", &lease);
	taken_rule = set(precise, "taken", &lease);
	refused_rule = set(precise, "refused", &lease);
	counted_rule = set(precise, "counted", &counted);
	for (int i = 0; i < 4; i++)
		all_rule[i] = bench_rule(precise, (char[]){ 'a', (char)('0' + i), 0 }, 1000000000, 1000, SECOND);
	coarse = bench_create(&options);
	coarse_rule = bench_rule(coarse, "open", 1000000000, 1000, SECOND);
	options = (struct shmlimit_options){ .struct_size = sizeof(options), .slots = 1024 };
	windows = bench_create(&options);
	window_rule = set(windows, "window", &window);
	full_rule = set(windows, "full", &full);
	places = bench_create(&options);
	empty_rule = set(places, "empty", &held);
	half_rule = set(places, "half", &held);
	last_rule = set(places, "last", &held);
	bound_rule = set(places, "bound", &held);
	total_rule = set(places, "total", &held);
	tenant_rule = set(places, "tenant", &held);
	held.law = SHMLIMIT_LAW_VEGAS;
	held.least = 4;
	auto_rule = set(places, "auto", &held);
}

static void deposit(int rule)
{
	bench_expect(shmlimit_lease_deposit(precise, rule, key, KEY_LEN, SHMLIMIT_LEASE_CAPACITY_MAX, 1, 0, DAY, NULL),
	             SHMLIMIT_ALLOWED);
}

/* Before a round: what is open is full, what is shut is empty. */
static void refill(void)
{
	shmlimit_reset(precise, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_reset(coarse, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_reset(windows, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_reset(places, SHMLIMIT_ALL_RULES, NULL, 0);
	bench_expect(shmlimit_take(precise, shut_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	bench_expect(shmlimit_take(precise, dry_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	bench_expect(shmlimit_take(windows, full_rule, key, KEY_LEN, 100, NULL), SHMLIMIT_ALLOWED);
	for (int i = 0; i < PLACES / 2; i++)
		bench_expect(shmlimit_take(places, half_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	for (int i = 0; i < PLACES - 1; i++)
		bench_expect(shmlimit_take(places, last_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	for (int i = 0; i < PLACES; i++) {
		struct shmlimit_place bound = { .struct_size = sizeof(bound) };

		bench_expect(shmlimit_enter(places, bound_rule, key, KEY_LEN, &bound, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_bind(places, bound_rule, key, KEY_LEN, &bound, 0), 0);
	}
	for (int i = 0; i < PLACES / 2; i++) {
		struct shmlimit_place bound = { .struct_size = sizeof(bound), .flags = SHMLIMIT_PLACE_BIND };

		bench_expect(shmlimit_enter(places, total_rule, "all", 3, &bound, NULL), SHMLIMIT_ALLOWED);
		bench_expect(shmlimit_enter(places, tenant_rule, greedy, KEY_LEN, &bound, NULL), SHMLIMIT_ALLOWED);
	}
	deposit(leased_rule);
	deposit(taken_rule);
	bench_expect(shmlimit_lease_deny(precise, refused_rule, key, KEY_LEN, 1, DAY, NULL), SHMLIMIT_DENIED);
}

int main(int argc, char **argv)
{
	uint64_t n;
	int rounds;

	bench_begin(argc, argv, "decide");
	n = bench_quick ? 1000 : 100000;
	rounds = bench_quick ? 3 : ROUNDS_MAX;
	prepare();
	bench_pin(0);
	for (int round = -1; round < rounds; round++) {
		refill();
		for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
			uint64_t start = bench_ns();

			c->run(n);
			rounds_add(&c->ns, round, (double)(bench_ns() - start) / (double)n);
		}
	}
	printf("%-24s %10s %10s\n", "one process, one key", "ns", "/ floor");
	for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
		double ns = rounds_least(&c->ns), ratio = rounds_least_ratio(&c->ns, &contenders[FLOOR].ns);

		printf("%-24s %10.1f %10.2f\n", c->name, ns, ratio);
		bench_row(c->name, "hot key", "ns", ns);
		bench_row(c->name, "hot key", "/ floor", ratio);
		bench_row(c->name, "hot key", "/ allowed", rounds_least_ratio(&c->ns, &contenders[ALLOWED].ns));
	}
	shmlimit_close(precise);
	shmlimit_close(coarse);
	shmlimit_close(windows);
	shmlimit_close(places);
	return bench_end();
}
