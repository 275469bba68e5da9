/*
 * decide: what does a decision cost, beside what it cannot do without?
 *
 *	floor = one clock read + one keyed hash of the same key + one
 *	        uncontended 16-byte compare-and-swap, in one loop, nothing else
 *
 * A decision on a hot key, allowed or denied, its result filled or not,
 * counting included, is measured in the same rounds on the same core. Then two
 * processes on two cores deny on one key: their summed decisions a second over
 * those of one alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/mman.h>

#include "atomic.h"
#include "bench.h"
#include "clock.h"
#include "hash.h"

static const char key[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(key) - 1)

static struct shmlimit *limiter;
static int open_rule, shut_rule;
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

static void expect(int got, int want)
{
	if (got == want)
		return;
	fprintf(stderr, "bench: a decision answered %d instead of %d\n", got, want);
	exit(1);
}

static void run_allowed(uint64_t n)
{
	while (n--)
		expect(shmlimit_take(limiter, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_allowed_result(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		expect(shmlimit_take(limiter, open_rule, key, KEY_LEN, 1, &r), SHMLIMIT_ALLOWED);
	sink = r.remaining;
}

static void run_denied(uint64_t n)
{
	while (n--)
		expect(shmlimit_take(limiter, shut_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_DENIED);
}

static void run_denied_result(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		expect(shmlimit_take(limiter, shut_rule, key, KEY_LEN, 1, &r), SHMLIMIT_DENIED);
	sink = r.retry_after_ns;
}

static void run_peek(uint64_t n)
{
	while (n--)
		expect(shmlimit_peek(limiter, open_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void run_throttle(uint64_t n)
{
	int64_t reply[5];

	while (n--)
		expect(shmlimit_throttle(limiter, key, KEY_LEN, 1000000000, 1000, 1, 1, reply), SHMLIMIT_ALLOWED);
	sink = (uint64_t)reply[2];
}

static void run_throttle_two(uint64_t n)
{
	int64_t reply[5];

	while (n--)
		expect(shmlimit_throttle(limiter, key, KEY_LEN, 1000000000, 1000 + (n & 1), 1, 1, reply),
		       SHMLIMIT_ALLOWED);
	sink = (uint64_t)reply[2];
}

static void run_reserve(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		expect(shmlimit_reserve(limiter, open_rule, key, KEY_LEN, 1, 0, &r), SHMLIMIT_ALLOWED);
	sink = r.wait_ns;
}

static const struct contender {
	const char *name;
	void (*run)(uint64_t n);
} contenders[] = {
	{ "clock read", run_clock },
	{ "hash, 20-byte key", run_hash },
	{ "CAS, 16 bytes", run_cas },
	{ "floor", run_floor },
	{ "allowed", run_allowed },
	{ "allowed, with result", run_allowed_result },
	{ "denied", run_denied },
	{ "denied, with result", run_denied_result },
	{ "peek", run_peek },
	{ "reserve, with result", run_reserve },
	{ "throttle", run_throttle },
	{ "throttle, two triples", run_throttle_two },
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))
#define FLOOR 3

static double times[CONTENDERS][BENCH_ROUNDS_MAX];

static void one_core(uint64_t n, int rounds)
{
	bench_pin(0);
	for (int round = -1; round < rounds; round++) {
		for (size_t i = 0; i < CONTENDERS; i++) {
			uint64_t start = bench_ns();

			contenders[i].run(n);
			if (round >= 0)      /* the first is for warming up */
				times[i][round] = (double)(bench_ns() - start) / (double)n;
		}
		shmlimit_reset(limiter, -1, NULL, 0);
		expect(shmlimit_take(limiter, shut_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	}
	printf("%-24s %10s %10s\n", "one core", "ns", "/ floor");
	for (size_t i = 0; i < CONTENDERS; i++)
		printf("%-24s %10.1f %10.2f\n", contenders[i].name, bench_median(times[i], rounds),
		       bench_median_ratio(times[i], times[FLOOR], rounds));
}

/* Decisions a second of `processes` at once, each on a core of its own, all on one denied key. */
static double together(int processes, uint64_t n)
{
	volatile int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t *spent = (uint64_t *)(void *)((char *)(uintptr_t)go + 64);
	double rate = 0;
	pid_t children[2];

	for (int i = 0; i < processes; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			uint64_t start;

			signal(SIGINT, SIG_DFL);
			bench_pin(i);
			run_denied(n / 10 + 1);
			__sync_fetch_and_add((int *)(uintptr_t)go, 1);
			while (*go < processes)
				;
			start = bench_ns();
			run_denied(n);
			spent[i] = bench_ns() - start;
			_exit(0);
		}
	}
	for (int i = 0; i < processes; i++) {
		waitpid(children[i], NULL, 0);
		rate += (double)n / (double)spent[i] * 1e9;
	}
	munmap((void *)(uintptr_t)go, 4096);
	return rate;
}

static void two_cores(uint64_t n, int rounds)
{
	double alone[BENCH_ROUNDS_MAX], both[BENCH_ROUNDS_MAX];

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("\none core only: no figure for two\n");
		return;
	}
	for (int round = 0; round < rounds; round++) {
		alone[round] = together(1, n);
		both[round] = together(2, n);
	}
	printf("\n%-24s %10s %10s\n", "denied, one key", "M/s", "/ one");
	printf("%-24s %10.1f %10.2f\n", "1 process", bench_median(alone, rounds) / 1e6, 1.0);
	printf("%-24s %10.1f %10.2f\n", "2 processes", bench_median(both, rounds) / 1e6,
	       bench_median_ratio(both, alone, rounds));
}

int main(int argc, char **argv)
{
	int quick = bench_quick(argc, argv);
	uint64_t n = quick ? 1000 : 1000000;
	int rounds = quick ? 3 : 21;

	limiter = bench_create("decide", 0);
	open_rule = bench_rule(limiter, "open", 1000000000, 1000, 1000000000);
	shut_rule = bench_rule(limiter, "shut", 1, 1, 86400 * (uint64_t)1000000000);
	expect(shmlimit_take(limiter, shut_rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	setvbuf(stdout, NULL, _IONBF, 0);
	one_core(n, rounds);
	fflush(stdout);
	two_cores(n, rounds);
	shmlimit_close(limiter);
	return 0;
}
