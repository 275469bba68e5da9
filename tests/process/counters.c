/*
 * counters: no count is lost when a thread is moved, preempted or interrupted while it counts (I10, and counter.h). The
 * counters hold exactly the answers that the workers got.
 *
 * A thread counts in its CPU's block by a restartable sequence. So workers do little else than count, on one cache
 * line. They are moved from CPU to CPU, and interrupted by a timer whose handler counts, too. The test goes on until
 * that was seen to abort sequences: such a count goes to a stripe. Then the program starts again with glibc's
 * registration of sequences switched off, where all counts go to the stripes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ticks.h"

#include "counter.h"

#define WORKERS 4
#define MOVES 4000
#define TICKS_MAX 1000000 /* for broken sequences to be seen */
#define NOW_NS 1000000000000u
#define WITHOUT "without sequences"

struct play {
	struct shmlimit *l;
	int rule, dry, off;
	_Atomic int stop;
	_Atomic uint64_t ticks, tick_errors;
	struct {
		uint64_t allowed, denied, shadow, errors;
	} __attribute__((aligned(64))) worker[WORKERS];
};

static struct play *play;

static void tick(int number)
{
	(void)number;
	atomic_fetch_add(&play->ticks, 1);
	if (shmlimit_take(at_time(play->l, NOW_NS), play->rule, "key", 3, 1, NULL) != SHMLIMIT_DENIED)
		atomic_fetch_add(&play->tick_errors, 1);
	ticks_next();
}

/* Nothing that these calls decide is written to the table: they read, and count. */
static void count_on(struct crew *crew, int index)
{
	uint64_t rounds = 0, errors = 0;

	(void)crew;
	ticks_start(tick);
	while (!atomic_load(&play->stop)) {
		errors += shmlimit_take(at_time(play->l, NOW_NS), play->rule, "key", 3, 1, NULL) != SHMLIMIT_DENIED;
		errors += shmlimit_take(at_time(play->l, NOW_NS), play->dry, "key", 3, 1, NULL) != SHMLIMIT_ALLOWED;
		errors += shmlimit_take(at_time(play->l, NOW_NS), play->off, "key", 3, 1, NULL) != SHMLIMIT_ALLOWED;
		rounds++;
	}
	ticks_hold(SIG_BLOCK);
	play->worker[index].allowed = play->worker[index].denied = play->worker[index].shadow = rounds;
	play->worker[index].errors = errors;
}

/* The CPUs that this process may run on. */
static int allowed_cpus(int cpus[CPU_SETSIZE])
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		bail("sched_getaffinity: %s", strerror(errno));
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	return n;
}

static void move(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set) != 0)
		bail("sched_setaffinity: %s", strerror(errno));
}

/* The denials that stand in the blocks from one number to another. */
static uint64_t counted_in(uint32_t from, uint32_t to)
{
	uint64_t sum = 0;

	for (uint32_t block = from; block < to; block++)
		sum += load_relaxed(counter_line(play->l, block, play->rule) + COUNT_DENIED);
	return sum;
}

static uint64_t counted_on_stripes(void)
{
	return counted_in(play->l->cpus, play->l->cpus + play->l->stripes);
}

/*
 * The test waits for aborted sequences, after which counts go to stripes. BOUND: the number of interruptions of the
 * workers, and not of their moves: beside busy programs they may not run between two moves.
 */
static int seen_enough(void)
{
	return counted_on_stripes() > 0 || atomic_load(&play->ticks) > TICKS_MAX;
}

/* Returns how many workers ended badly. */
static int drive_about(uint64_t seed)
{
	struct rng rng = { seed };
	int cpus[CPU_SETSIZE];
	int n = allowed_cpus(cpus);
	struct crew crew;

	crew_start(&crew, WORKERS, count_on, NULL);
	for (uint64_t i = 0; i < scaled(MOVES) || !seen_enough(); i++) {
		move(crew.pid[i % WORKERS], cpus[rng_below(&rng, (uint64_t)n)]);
		if (i >= scaled(MOVES))
			crew_await();
	}
	atomic_store(&play->stop, 1);
	return crew_wait(&crew);
}

static int mode_rule(const char *name, uint32_t mode)
{
	struct shmlimit_rule rule = { .mode = mode, .capacity = 1, .refill = 1, .period_ns = 1000000000 };

	return stage_rule_of(play->l, name, rule);
}

static void set_up(void)
{
	play->l = stage_create(16, 4, SHMLIMIT_FULL_EVICT);
	play->rule = mode_rule("rule", SHMLIMIT_ENFORCE);
	play->dry = mode_rule("dry", SHMLIMIT_DRY_RUN);
	play->off = mode_rule("off", SHMLIMIT_OFF);
	stage_hide();
	/* The two takes that are admitted, and counted. */
	shmlimit_take(at_time(play->l, NOW_NS), play->rule, "key", 3, 1, NULL);
	shmlimit_take(at_time(play->l, NOW_NS), play->dry, "key", 3, 1, NULL);
}

/* What the counters should hold. */
struct wanted {
	uint64_t allowed, denied, shadow, errors;
};

static struct wanted answers(void)
{
	struct wanted sum = { 2, play->ticks, 0, play->tick_errors };

	for (int i = 0; i < WORKERS; i++) {
		sum.allowed += play->worker[i].allowed;
		sum.denied += play->worker[i].denied;
		sum.shadow += play->worker[i].shadow;
		sum.errors += play->worker[i].errors;
	}
	return sum;
}

/* The second part, in a process of its own that does not report. Returns its exit status. */
static int without_sequences(uint64_t seed)
{
	struct shmlimit_counters c;
	struct wanted want;
	uint64_t on_cpus;
	int bad;

	set_up();
	bad = drive_about(seed);
	c = counters_of(play->l, SHMLIMIT_ALL_RULES);
	on_cpus = counted_in(0, play->l->cpus);
	want = answers();
	shmlimit_close(play->l);
	if (bad == 0 && want.errors == 0 && want.denied > 0 && c.allowed == want.allowed && c.denied == want.denied &&
	    c.shadow_denied == want.shadow && on_cpus == 0)
		return 0;
	diag("allowed %" PRIu64 ", counted %" PRIu64 "; denied %" PRIu64 ", counted %" PRIu64 "; shadow %" PRIu64
	     ", counted %" PRIu64 "; %" PRIu64 " of the denials on CPUs",
	     want.allowed, c.allowed, want.denied, c.denied, want.shadow, c.shadow_denied, on_cpus);
	return 1;
}

static int run_without_sequences(void)
{
	pid_t pid = fork_bound();

	if (pid == 0) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execl("/proc/self/exe", "counters", WITHOUT, (char *)NULL);
		_exit(1);
	}
	return wait_for(pid);
}

int main(int argc, char **argv)
{
	struct shmlimit_counters c;
	struct wanted want;
	uint64_t seed;

	stage_begin("counters");
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	if (argc > 1 && strcmp(argv[1], WITHOUT) == 0)
		return without_sequences(seed);

	set_up();
	is(drive_about(seed), 0, "workers end well");
	c = counters_of(play->l, SHMLIMIT_ALL_RULES);
	want = answers();
	is(want.errors, 0, "every call is answered as expected");
	ok(want.denied >= WORKERS, "workers did count");
	is(c.allowed, want.allowed, "a process that moves between CPUs loses no count of allowed");
	is(c.denied, want.denied, "a process that moves between CPUs loses no count of denied");
	is(c.shadow_denied, want.shadow,
	   "a process that moves between CPUs loses no count of what would have been denied");
#ifdef COUNTER_RSEQ
	if (__rseq_size != 0) {
		ok(counted_in(0, play->l->cpus) > want.denied / 2, "most counts are made on the CPUs' blocks");
		ok(counted_on_stripes() > 0, "the few whose sequence was broken off on the stripes");
		diag("%" PRIu64 " denials, %" PRIu64 " of them counted on stripes", want.denied, counted_on_stripes());
	}
#endif
	shmlimit_close(play->l);
	ok(run_without_sequences(), "where there are no restartable sequences all is counted on the stripes");
	return tap_done();
}
