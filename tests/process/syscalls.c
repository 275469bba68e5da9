/*
 * syscalls: no decision makes a system call (I6). A process, and then a thread
 * that has never decided before, allows itself no system call but exit (by a
 * seccomp filter) and then decides in every way there is, on the limiter's own
 * clock: the kernel would kill it at the first other one.
 *
 * The exception is the first use of a key whose rule has logs or places, which takes two at most: a tracer counts them.
 *
 * WHY NOT seccomp's strict mode: on x86 it forbids reading the time-stamp
 * counter too, which is where the vDSO has the time from.
 *
 * Where the clock itself is a system call there is nothing to see, and the
 * program is skipped; so it is under sanitizers, which make calls of their own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include "../by_limit.h"
#include "process.h"

#define SLOW_NS 3600000000000u /* a token an hour: nothing refills while we look */
#define FAST_NS 1000u

/* What the confined one found. */
struct seen {
	_Atomic int confined, finished;
	_Atomic int step; /* the last that was begun */
	int wrong;        /* the first step that was answered otherwise than expected; 0 none */
	int answer;
};

static struct seen *seen;

struct stage {
	struct shmlimit *l, *reader, *full_allow, *full_deny, *coarse, *grown;
	int slow, fast, dry, off, gone, allow_slow, deny_slow, coarse_slow, grown_slow;
};

static struct stage stage;

/* Any system call but exit kills the thread from here on. (A call of another architecture's has other numbers.) */
static int confine(void)
{
	static struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
	};
	static const struct sock_fprog filter = { sizeof(program) / sizeof(program[0]), program };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void leave(int status)
{
	syscall(SYS_exit, status);
}

static void expect(int step, int answer, int wanted)
{
	if (answer != wanted && seen->wrong == 0) {
		seen->wrong = step;
		seen->answer = answer;
	}
}

#define NEXT (atomic_fetch_add(&seen->step, 1) + 1)

/* Every verb, answer and mode; `salt` makes the keys new. */
static void decide(const struct stage *s, uint64_t salt)
{
	uint64_t key = salt, before = shmlimit_now(s->l);
	struct shmlimit_result r;

	/* A claim, the admissions of a burst of two, and denials, seen or not. */
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_DENIED);
	expect(NEXT, r.retry_after_ns > 0, 1);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 1, NULL), SHMLIMIT_DENIED);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 3, &r), SHMLIMIT_DENIED);
	expect(NEXT, r.retry_after_ns == UINT64_MAX, 1);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 0, NULL), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_peek(s->l, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_DENIED);
	expect(NEXT, shmlimit_peek(s->reader, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_DENIED);
	expect(NEXT, shmlimit_refund(s->l, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, by_limit(s->l, SHMLIMIT_TAKE_SOME, s->slow, &key, sizeof(key), 9, NULL, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, (int)r.granted, 1);
	expect(NEXT, shmlimit_refund(s->l, s->slow, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_refund(s->l, s->slow, &key, sizeof(key), 5, NULL), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_peek(s->l, s->slow, &key, sizeof(key), 2, NULL), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(s->l, s->dry, &key, sizeof(key), 2, NULL), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(s->l, s->dry, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, r.retry_after_ns > 0, 1);
	expect(NEXT, shmlimit_take(s->l, s->off, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(s->l, s->gone, &key, sizeof(key), 1, &r), -ESRCH);
	expect(NEXT, shmlimit_take(s->reader, s->slow, &key, sizeof(key), 1, &r), -EROFS);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, 0, 1, &r), -EMSGSIZE);
	expect(NEXT, shmlimit_take(at_time(s->l, before), s->fast, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	/* Long ago, and in a far future: a clock that steps is looked at again. */
	expect(NEXT, shmlimit_take(at_time(s->l, before + 24 * SLOW_NS), s->slow, "ahead", 5, 1, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_take(at_clock(s->l), s->slow, "ahead", 5, 1, &r) >= 0, 1);
	/* More keys than slots: evictions, then reclaims of what refills at once. */
	for (uint64_t i = 1; i <= 100; i++) {
		key = salt + i;
		expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 2, &r), SHMLIMIT_ALLOWED);
	}
	for (uint64_t i = 1; i <= 100; i++) {
		key = salt + i;
		expect(NEXT, shmlimit_take(s->l, s->fast, &key, sizeof(key), 1, &r) >= 0, 1);
	}
	/* Full tables that do otherwise: what they answer depends on which key came first. */
	for (uint64_t i = 1; i <= 100; i++) {
		key = salt + i;
		expect(NEXT, shmlimit_take(s->full_allow, s->allow_slow, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
		expect(NEXT, shmlimit_take(s->full_deny, s->deny_slow, &key, sizeof(key), 1, &r) >= 0, 1);
	}
	/* One key to a bitter end: compare-and-swaps on one slot, by both clocks. */
	for (uint64_t i = 0; i < 1000; i++)
		expect(NEXT, shmlimit_take(s->coarse, s->coarse_slow, &salt, sizeof(salt), 1, &r) >= 0, 1);
	/* A larger table that this process has met: keys that are new, and keys that move there. */
	for (uint64_t i = 0; i < 50; i++) {
		key = i < 10 ? i : salt + i;
		expect(NEXT, shmlimit_take(s->grown, s->grown_slow, &key, sizeof(key), 1, &r) >= 0, 1);
	}
	expect(NEXT, shmlimit_enable(s->l, 0), 0);
	expect(NEXT, shmlimit_take(s->l, s->slow, &key, sizeof(key), 9, &r), SHMLIMIT_ALLOWED);
	expect(NEXT, shmlimit_enable(s->l, 1), 0);
	expect(NEXT, shmlimit_reset(s->l, s->slow, &key, sizeof(key)) >= 0, 1);
	/* Not promised, but so: neither introspection nor finding a rule makes one. */
	expect(NEXT, shmlimit_rule_find(s->l, "slow"), s->slow);
}

static void *decide_confined(void *arg)
{
	const struct stage *s = arg;

	if (confine() != 0)
		leave(2);
	atomic_store(&seen->confined, 1);
	decide(s, 1000000);
	atomic_store(&seen->finished, 1);
	leave(0);
	return NULL;
}

static void in_a_process(void)
{
	decide_confined(&stage);
}

#ifdef __GLIBC__
/* A thread's first decision ever. The rest of its process is free. */
static void in_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, decide_confined, &stage) != 0)
		_exit(1);
	pthread_join(thread, NULL);
	_exit(0);
}
#endif

static void only_clocks(void)
{
	struct timespec now;

	if (confine() != 0)
		leave(2);
	atomic_store(&seen->confined, 1);
	for (int i = 0; i < 1000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	}
	atomic_store(&seen->finished, 1);
	leave(0);
}

static void one_call(void)
{
	if (confine() != 0)
		leave(2);
	atomic_store(&seen->confined, 1);
	syscall(SYS_getppid);
	atomic_store(&seen->finished, 1);
	leave(0);
}

/* Let it be done in a process; returns how that ended. */
static int do_apart(void (*what)(void))
{
	int status;
	pid_t pid;

	memset(seen, 0, sizeof(*seen));
	pid = fork_bound();
	if (pid == 0) {
		what();
		_exit(1);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	return status;
}

static struct shmlimit *create_full(uint32_t on_full, int *slow)
{
	struct shmlimit *l = stage_create(16, 1, on_full);

	*slow = stage_rule(l, "slow", 2, 1, SLOW_NS);
	stage_hide();
	return l;
}

static void set_up(void)
{
	struct shmlimit_options coarse = { .struct_size = sizeof(coarse), .slots = 16, .clock = SHMLIMIT_CLOCK_COARSE };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 2, .refill = 1, .period_ns = SLOW_NS };

	stage.full_allow = create_full(SHMLIMIT_FULL_ALLOW, &stage.allow_slow);
	stage.full_deny = create_full(SHMLIMIT_FULL_DENY, &stage.deny_slow);
	if (shmlimit_create(stage_name, &coarse, &stage.coarse) != 0)
		bail("create");
	stage.coarse_slow = stage_rule(stage.coarse, "slow", 500, 1, SLOW_NS);
	stage_hide();

	stage.grown = stage_create(16, 1, SHMLIMIT_FULL_EVICT);
	stage.grown_slow = stage_rule(stage.grown, "slow", 2, 1, SLOW_NS);
	for (uint64_t key = 0; key < 10; key++)
		shmlimit_take(stage.grown, stage.grown_slow, &key, sizeof(key), 1, NULL);
	if (shmlimit_grow(stage.grown, 128) != 0 ||
	    shmlimit_take(stage.grown, stage.grown_slow, "new", 3, 1, NULL) != SHMLIMIT_ALLOWED)
		bail("grow");
	stage_hide();

	stage.l = stage_create(16, 8, SHMLIMIT_FULL_EVICT);
	stage.slow = stage_rule(stage.l, "slow", 2, 1, SLOW_NS);
	stage.fast = stage_rule(stage.l, "fast", 2, 1, FAST_NS);
	rule.mode = SHMLIMIT_DRY_RUN;
	stage.dry = shmlimit_rule_set(stage.l, "dry", &rule);
	rule.mode = SHMLIMIT_OFF;
	stage.off = shmlimit_rule_set(stage.l, "off", &rule);
	stage.gone = stage_rule(stage.l, "gone", 2, 1, SLOW_NS);
	shmlimit_rule_remove(stage.l, "gone");
	if (shmlimit_open(stage_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &stage.reader) != 0)
		bail("open");
	stage_hide();
}

/* ---- A key whose rule has logs or places: its memory is reserved when it is first used ---- */

static struct shmlimit *roomy;
static int logged, placed; /* rules */
static uint64_t next_key;

static void nothing(void)
{
}

static void take_first(void)
{
	(void)shmlimit_take(roomy, logged, &next_key, sizeof(next_key), 1, NULL);
}

static void take_twice(void)
{
	take_first();
	take_first();
}

static void enter_first(void)
{
	struct shmlimit_place place = { .struct_size = sizeof(place) };

	(void)shmlimit_enter(roomy, placed, &next_key, sizeof(next_key), &place, NULL);
}

/* How often a child enters or leaves a system call in this, and in being stopped. Returns 0 if it cannot be traced. */
static unsigned stops_in(void (*what)(void))
{
	unsigned stops = 0;
	pid_t pid = fork_bound();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(1);
		raise(SIGSTOP);
		what();
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 0;
	(void)ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == (SIGTRAP | 0x80))
		stops++;
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return stops;
}

/* System calls that are made in this, beside those of being stopped. */
static int calls_in(void (*what)(void))
{
	next_key++;
	return ((int)stops_in(what) - (int)stops_in(nothing)) / 2;
}

static int one_or_two(int calls)
{
	if (calls < 1 || calls > 2)
		diag("%d system calls", calls);
	return calls == 1 || calls == 2;
}

static void first_uses(void)
{
	static char page[8192];
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = 1000, .period_ns = SLOW_NS
	};

	/* Since Linux 5.14; before, each page takes a system call. */
	if (madvise((void *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095), 4096, 23) != 0 || stops_in(nothing) == 0) {
		tap_skip("first uses of keys", "this kernel reserves page by page, or traces no child");
		return;
	}
	roomy = stage_create(64, 2, SHMLIMIT_FULL_EVICT);
	logged = shmlimit_rule_set(roomy, "logged", &rule);
	rule.algorithm = SHMLIMIT_HOLD;
	placed = shmlimit_rule_set(roomy, "placed", &rule);
	if (logged < 0 || placed < 0)
		bail("rules");
	/* A process maps the cells of a size once. */
	take_first();
	enter_first();
	is(calls_in(nothing), 0, "what makes no system call is seen to make none");
	ok(one_or_two(calls_in(take_first)), "the first use of a key with a log takes one or two system calls");
	ok(one_or_two(calls_in(enter_first)), "the first use of a key with places takes one or two system calls");
	is(calls_in(take_twice), calls_in(take_first), "the second use of a key with a log takes no system call");
	shmlimit_close(roomy);
	stage_hide();
}

static void report(const char *title, void (*what)(void))
{
	int status = do_apart(what);

	ok(atomic_load(&seen->confined), "%s: may make no system call", title);
	if (!ok(WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&seen->finished),
	        "%s: decides in every way without one", title))
		diag("ended with 0x%x in step %d", (unsigned)status, atomic_load(&seen->step));
	if (!ok(seen->wrong == 0, "%s: every answer is as expected", title))
		diag("step %d: %d", seen->wrong, seen->answer);
}

int main(void)
{
	struct shmlimit_counters c;
	int status;

#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
	return tap_skip_all("sanitizers make system calls of their own");
#endif
	stage_begin("syscalls");
	seen = shared_memory(sizeof(*seen));
	do_apart(only_clocks);
	if (!atomic_load(&seen->confined))
		return tap_skip_all("seccomp is not permitted");
	if (!atomic_load(&seen->finished))
		return tap_skip_all("reading the clock is a system call here");

	status = do_apart(one_call);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS && !atomic_load(&seen->finished),
	   "a process that may make no system call dies of one");
	set_up();
	report("a process", in_a_process);
	/* Another C library makes system calls of its own when a thread ends. */
#ifdef __GLIBC__
	report("a new thread", in_a_thread);
#endif
	c = counters_of(stage.l, SHMLIMIT_ALL_RULES);
	ok(c.claims > 0 && c.reclaims > 0 && c.evictions > 0 && c.allowed > 0 && c.denied > 0 && c.shadow_denied > 0,
	   "there were claims, reclaims, evictions, admissions and denials");
	ok(counters_of(stage.full_allow, SHMLIMIT_ALL_RULES).no_slot > 0 &&
	           counters_of(stage.full_deny, SHMLIMIT_ALL_RULES).no_slot > 0,
	   "there were decisions without a slot");
	first_uses();
	shmlimit_close(stage.grown);
	shmlimit_close(stage.coarse);
	shmlimit_close(stage.full_deny);
	shmlimit_close(stage.full_allow);
	shmlimit_close(stage.reader);
	shmlimit_close(stage.l);
	return tap_done();
}
