/*
 * count: counts are exact and stand where they belong: on the CPUs' blocks where
 * the kernel knows restartable sequences, else on the stripes. Under valgrind,
 * which does not, that is the second: it could not run a sequence as one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "counter.h"

#define CALLS 1000
#define NOW_NS 1000000000000u

static struct shmlimit *l;
static int rule;

static int has_sequences(void)
{
#ifdef COUNTER_RSEQ
	return __rseq_size != 0;
#else
	return 0;
#endif
}

/* The denials that stand in the blocks from one number to another. */
static uint64_t counted_in(uint32_t from, uint32_t to)
{
	uint64_t sum = 0;

	for (uint32_t block = from; block < to; block++)
		sum += load_relaxed(counter_line(l, block, rule) + COUNT_DENIED);
	return sum;
}

int main(void)
{
	uint64_t on_cpus, on_stripes;

	l = unit_create("count", NULL);
	rule = unit_rule(l, "one", 1, 1, 3600000000000u);
	for (int i = 0; i <= CALLS; i++)
		(void)shmlimit_take_at(l, rule, "key", 3, 1, NOW_NS, NULL);
	is(unit_counters(l, rule).allowed, 1, "what was allowed is counted,");
	is(unit_counters(l, rule).denied, CALLS, "and each denial, once");
	on_cpus = counted_in(0, l->cpus);
	on_stripes = counted_in(l->cpus, l->cpus + l->stripes);
	is(on_cpus + on_stripes, CALLS, "no block has anything else");
	if (has_sequences()) {
		ok(on_cpus > CALLS / 2, "where there are restartable sequences most is counted on the CPUs' blocks");
		ok(!under_valgrind(), "and valgrind has none");
	} else {
		is(on_cpus, 0, "where there are no restartable sequences nothing is counted on the CPUs' blocks");
	}
	diag("%" PRIu64 " counted on CPUs, %" PRIu64 " on stripes%s", on_cpus, on_stripes,
	     under_valgrind() ? ", under valgrind" : "");
	shmlimit_close(l);
	return tap_done();
}
