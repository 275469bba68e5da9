/*
 * tracee: a process that makes one call, an instruction at a time.
 *
 * It stops right before the call. From there on its tracer lets it go by
 * single steps, up to an instruction, to its end, or kills it where it stands.
 * Whether it is still in the call is read from memory that both share, which
 * costs nothing: a step takes 20 to 70 µs.
 *
 * A tracee that watches may not write to some pages. It stops before each
 * instruction that does, and behind it: a thousandth of all steps.
 *
 * Tracer and tracee share a processor, else each step waits for two to wake up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_TRACEE_H
#define TESTS_CRASH_TRACEE_H

#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <ucontext.h>

#include "../process/process.h"

/* BOUND: no call that is traced has this many instructions. */
#define STEPS_MAX 1000000

/* What a tracee says, in shared memory. */
struct said {
	_Atomic int over; /* the call has returned */
	_Atomic int answer;
};

struct tracee {
	pid_t pid; /* 0: ended */
	int watches;
	int signal; /* that stopped it while it watches: its own, to be delivered when it goes on */
	struct said *said;
};

/* The pages that are watched. */
static struct {
	void *start;
	size_t len;
} tracee_pages;

/* Why processes can't be traced here, or NULL. */
static inline const char *tracee_impossible(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return "no process to trace";
	if (WIFEXITED(status))
		return "ptrace is not permitted";
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return NULL;
}

static struct timespec tracee_begun;

/* Seconds since then, for the report. */
static inline double tracee_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - tracee_begun.tv_sec) + (double)(now.tv_nsec - tracee_begun.tv_nsec) / 1e9;
}

/*
 * Start over with every symbol bound, and without restartable sequences where
 * `no_rseq`: then a call takes the same path however its process is stopped.
 */
static inline void tracee_begin(char **argv, int no_rseq)
{
	clock_gettime(CLOCK_MONOTONIC, &tracee_begun);
	if (getenv("TRACEE_BEGUN") != NULL)
		return;
	setenv("TRACEE_BEGUN", "1", 1);
	setenv("LD_BIND_NOW", "1", 1);
	if (no_rseq)
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	execv("/proc/self/exe", argv);
	bail("exec: %s", strerror(errno));
}

/* On one processor from here on, whichever has time just now. */
static inline void tracee_share_cpu(void)
{
	cpu_set_t all, one;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	sched_yield();
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

#define TRAP_FLAG 0x100

/* In the tracee: before an instruction that writes to the pages, and behind it. */
static inline void tracee_writes(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	int allowed = number == SIGSEGV;

	if (allowed && (size_t)((char *)info->si_addr - (char *)tracee_pages.start) >= tracee_pages.len)
		_exit(1);
	if (mprotect(tracee_pages.start, tracee_pages.len, PROT_READ | (allowed ? PROT_WRITE : 0)) != 0)
		_exit(1);
	*flags = allowed ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

static inline void tracee_watch(void)
{
	struct sigaction action = { .sa_sigaction = tracee_writes, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGTRAP, &action, NULL) != 0 ||
	    mprotect(tracee_pages.start, tracee_pages.len, PROT_READ) != 0)
		_exit(1);
}

/* Wait until it stops, by a trap or what is watched and nothing else, or ends well. */
static inline void tracee_wait(struct tracee *t)
{
	int status;

	while (waitpid(t->pid, &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	if (WIFSTOPPED(status) &&
	    ((WSTOPSIG(status) & 0x7f) == SIGTRAP || (t->watches && WSTOPSIG(status) == SIGSEGV))) {
		t->signal = t->watches ? WSTOPSIG(status) : 0;
		return;
	}
	t->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		bail("the traced process ended or stopped: status 0x%x", status);
}

/* Let it go on, and wait until it stops. */
static inline void tracee_go(struct tracee *t, long how)
{
	if (ptrace((enum __ptrace_request)how, t->pid, NULL, (void *)(intptr_t)t->signal) != 0)
		bail("ptrace: %s", strerror(errno));
	tracee_wait(t);
}

/*
 * A process that is about to make the call, work(arg), whose answer it will
 * write down. Not inline: that it stops at one address wherever it was started.
 */
__attribute__((noinline, unused)) static void tracee_start(struct tracee *t, int (*work)(const void *), const void *arg)
{
	if (t->said == NULL)
		t->said = shared_memory(sizeof(*t->said));
	atomic_store(&t->said->over, 0);
	t->pid = fork_bound();
	if (t->pid == 0) {
		struct said *said = t->said;

		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		if (t->watches)
			tracee_watch();
		__asm__ volatile("int3" : : : "memory");
		said->answer = work(arg);
		said->over = 1;
		_exit(0);
	}
	tracee_wait(t);
	t->signal = 0;
}

/* One instruction. Returns true while it is in the call. */
static inline int tracee_step(struct tracee *t)
{
	tracee_go(t, PTRACE_SINGLESTEP);
	return t->pid != 0 && !t->said->over;
}

/*
 * One that watches: up to an instruction that writes to the pages, or behind it. (What a system call writes there is seen
 * at the next of them.) Returns true while it is in the call.
 */
static inline int tracee_write(struct tracee *t)
{
	tracee_go(t, PTRACE_CONT);
	return t->pid != 0 && !t->said->over;
}

/* To the end of the call and the process. */
static inline int tracee_finish(struct tracee *t)
{
	while (t->pid != 0)
		tracee_go(t, PTRACE_CONT);
	return t->said->answer;
}

/* SIGKILL. */
static inline void tracee_kill(struct tracee *t)
{
	int status;

	if (t->pid == 0)
		return;
	kill(t->pid, SIGKILL);
	while (waitpid(t->pid, &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		bail("the traced process was not killed: status 0x%x", status);
	t->pid = 0;
}

/* The call alone, at full speed. */
static inline int tracee_run(int (*work)(const void *), const void *arg)
{
	static struct tracee t;

	tracee_start(&t, work, arg);
	return tracee_finish(&t);
}

/* How many instructions the call takes. */
static inline uint64_t tracee_count(int (*work)(const void *), const void *arg)
{
	static struct tracee t;
	uint64_t steps = 0;

	tracee_start(&t, work, arg);
	while (tracee_step(&t))
		if (++steps == STEPS_MAX)
			bail("a call that does not end");
	tracee_finish(&t);
	return steps;
}

static inline struct user_regs_struct tracee_registers(const struct tracee *t)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &registers) != 0)
		bail("ptrace: %s", strerror(errno));
	return registers;
}

static inline void tracee_write_code(const struct tracee *t, uint64_t rip, long word)
{
	if (ptrace(PTRACE_POKETEXT, t->pid, rip, word) != 0)
		bail("no breakpoint: %s", strerror(errno));
}

/*
 * Run up to the `times`-th time that it is about to execute the instruction there. WHY NOT a breakpoint of the processor:
 * some virtual machines take it and never stop.
 */
static inline void tracee_run_to(struct tracee *t, uint64_t rip, uint64_t times)
{
	long code;

	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, t->pid, rip, NULL);
	if (errno != 0)
		bail("no breakpoint: %s", strerror(errno));
	while (times-- > 0 && t->pid != 0) {
		tracee_write_code(t, rip, (code & ~0xffL) | 0xcc);
		tracee_go(t, PTRACE_CONT);
		if (t->pid == 0)
			return;
		tracee_write_code(t, rip, code);
		if (tracee_registers(t).rip == rip + 1 &&
		    ptrace(PTRACE_POKEUSER, t->pid, offsetof(struct user, regs.rip), rip) != 0)
			bail("ptrace: %s", strerror(errno));
		if (times > 0)
			tracee_go(t, PTRACE_SINGLESTEP);
	}
}

#endif
