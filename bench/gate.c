/*
 * gate: what does a request cost in front of a server, beside the decision in it?
 *
 * One process, one client; a plain take is measured in the same rounds. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit/bench.h"
#include "kit/rounds.h"
#include "shmlimit_gate.h"

#define ADDRESS "192.168.100.1"

enum { OPEN, QUIET, NET, SECOND, SHUT };

static char name[64];
static struct shmlimit *limiter;
static struct shmlimit_gate *gate;
static int rule;
static volatile uint64_t sink;

static void run_take(uint64_t n)
{
	struct shmlimit_result r;

	while (n--)
		bench_expect(shmlimit_take(limiter, rule, ADDRESS, sizeof(ADDRESS) - 1, 1, &r), SHMLIMIT_ALLOWED);
	sink = r.remaining;
}

static void ask(uint64_t n, const uint32_t *limits, size_t count, int answer)
{
	static char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer out = { .struct_size = sizeof(out),
		                            .buffer = buffer,
		                            .buffer_size = sizeof(buffer) };
	struct shmlimit_gate_key keys[2];

	for (size_t i = 0; i < count; i++)
		keys[i] = (struct shmlimit_gate_key){ .limit = limits[i],
			                              .bytes = ADDRESS,
			                              .length = sizeof(ADDRESS) - 1 };
	while (n--)
		bench_expect(shmlimit_gate_ask(gate, keys, count, &out), answer);
	sink = out.field_count;
}

static void run_quiet(uint64_t n)
{
	ask(n, (const uint32_t[]){ QUIET }, 1, SHMLIMIT_ALLOWED);
}

static void run_fields(uint64_t n)
{
	ask(n, (const uint32_t[]){ OPEN }, 1, SHMLIMIT_ALLOWED);
}

static void run_net(uint64_t n)
{
	ask(n, (const uint32_t[]){ NET }, 1, SHMLIMIT_ALLOWED);
}

static void run_two(uint64_t n)
{
	ask(n, (const uint32_t[]){ OPEN, SECOND }, 2, SHMLIMIT_ALLOWED);
}

static void run_denied(uint64_t n)
{
	ask(n, (const uint32_t[]){ SHUT }, 1, SHMLIMIT_DENIED);
}

static struct contender {
	const char *name;
	void (*run)(uint64_t n);
	struct rounds ns;
} contenders[] = {
	/* clang-format off */
	{ .name = "take, with result", .run = run_take },
	{ .name = "gate, no fields", .run = run_quiet },
	{ .name = "gate, fields", .run = run_fields },
	{ .name = "gate, fields, a net", .run = run_net },
	{ .name = "gate, fields, two limits", .run = run_two },
	{ .name = "gate, fields, denied", .run = run_denied },
	/* clang-format on */
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))
#define TAKE 0

static void clean(void)
{
	shmlimit_destroy(name);
}

static void prepare(void)
{
	struct shmlimit_gate_answer out = { .struct_size = sizeof(out) };
	char spec[512];
	int error;

	snprintf(name, sizeof(name), "bench.gate.%ld.0", (long)getpid());
	snprintf(spec, sizeof(spec),
	         "segment=%s create=yes rule=open rate=\"1000/s burst 1G\" rule=open fields=denied "
	         "rule=open prefix=32,64 rule=second rate=\"1000/s burst 1G\" rule=shut rate=1/day",
	         name);
	bench_at_end(clean);
	error = shmlimit_gate_open(spec, &gate);
	if (error == 0)
		error = shmlimit_gate_attach(gate);
	if (error == 0)
		error = shmlimit_open(name, 0, NULL, &limiter);
	if (error != 0)
		bench_fail(name, shmlimit_strerror(error));
	rule = shmlimit_rule_find(limiter, "open");
	shmlimit_gate_ask(gate,
	                  &(struct shmlimit_gate_key){ .limit = SHUT, .bytes = ADDRESS, .length = sizeof(ADDRESS) - 1 },
	                  1, &out);
}

int main(int argc, char **argv)
{
	uint64_t n;
	int rounds;

	bench_begin(argc, argv, "gate");
	n = bench_quick ? 1000 : 500000;
	rounds = bench_quick ? 3 : 9;
	prepare();
	bench_pin(0);
	for (int round = -1; round < rounds; round++)
		for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
			uint64_t start = bench_ns();

			c->run(n);
			rounds_add(&c->ns, round, (double)(bench_ns() - start) / (double)n);
		}
	printf("%-24s %10s %10s\n", "one process, one client", "ns", "/ take");
	for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
		double ns = rounds_least(&c->ns), ratio = rounds_least_ratio(&c->ns, &contenders[TAKE].ns);

		printf("%-24s %10.1f %10.2f\n", c->name, ns, ratio);
		bench_row(c->name, "one client", "ns", ns);
		bench_row(c->name, "one client", "/ take", ratio);
	}
	shmlimit_close(limiter);
	shmlimit_gate_close(gate);
	return bench_end();
}
