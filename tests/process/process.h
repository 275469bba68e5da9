/*
 * process: what the tests of several processes share: memory, a group of forked workers and a gate that they pass
 * together, rng, and a segment that is removed when the test ends, however it ends.
 *
 * Workers never report: they write what they saw into shared memory and leave through _exit(), and the parent reads it.
 * A worker that finds a fault says so and fails (worker_check). crew_wait() counts all workers that did not end well,
 * and ends the others, so that none waits at a gate for a dead one.
 *
 * Nothing here sleeps: a process that waits yields its processor.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PROCESS_PROCESS_H
#define TESTS_PROCESS_PROCESS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../by_limit.h"
#include "../guard.h"
#include "../rng.h"
#include "../tap.h"
#include "../at.h"
#include "shmlimit_lease.h"

/*
 * ThreadSanitizer does a 16-byte compare-and-swap under a lock of its own, which
 * is one process's: between processes nothing is atomic then.
 */
#ifdef UNDER_TSAN
#define SWAPS_ARE_PRIVATE 1
#else
#define SWAPS_ARE_PRIVATE 0
#endif

/* A program that takes longer hangs: it is ended, and fails for want of a plan. */
#define WATCHDOG_SECONDS 900

/* ---- Shared memory ---- */

/* Zeroed memory that children forked later share. Never freed. */
static inline void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("no shared memory: %s", strerror(errno));
	return p;
}

/* ---- Gates and crews ---- */

/* Opens when `n` have come, and then is closed again. */
struct gate {
	_Atomic uint32_t came, opened;
	uint32_t n;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static inline void gate_pass(struct gate *gate)
{
	uint32_t opened = atomic_load(&gate->opened);

	if (atomic_fetch_add(&gate->came, 1) + 1 == gate->n) {
		atomic_store(&gate->came, 0);
		atomic_store(&gate->opened, opened + 1);
		syscall(SYS_futex, &gate->opened, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return;
	}
	/* Two spin first: where there is a core for each, they go through together. */
	for (unsigned i = 0; i < (gate->n <= 2 ? 1000 : 20) && atomic_load(&gate->opened) == opened; i++)
		relax();
	/* WHY NOT yield: beside a busy program on the same processor each yield costs a whole time slice of it. */
	while (atomic_load(&gate->opened) == opened)
		syscall(SYS_futex, &gate->opened, FUTEX_WAIT, opened, NULL, NULL, 0);
}

#define CREW_MAX 64

struct crew {
	int n;
	pid_t pid[CREW_MAX]; /* 0: ended */
	struct gate *gate;   /* of all its workers: passed once before they begin */
	void *arg;
	void (*work)(struct crew *crew, int index);
};

/*
 * From here on this process makes room for another now and then, wherever it
 * is: also between the look at a word and its swap. Else a worker that has a
 * core to itself would do its part in one go, and workers that share a single
 * core would hardly ever meet. A call that the signal finds waiting goes on.
 */
#define PREEMPT_NS 20000
#define STRANGER_AFTER_NS 1000000 /* BOUND: all workers' turns together are shorter */
#define BESIDE_STRANGERS_NS 500000

static timer_t preempt_timer;

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void preempt_next(long ns)
{
	struct itimerspec once = { { 0, 0 }, { 0, ns } };

	if (timer_settime(preempt_timer, 0, &once, NULL) != 0)
		_exit(1);
}

/*
 * Armed again only when it is our turn: a worker that waits long for a core loses none of its turn. Beside a busy
 * program on the same processor a yield takes a time slice of that program, and what follows is longer, too: else
 * nearly all of the time would be that program's.
 */
static inline void make_room(int number)
{
	uint64_t since_ns = monotonic_ns();

	(void)number;
	sched_yield();
	preempt_next(monotonic_ns() - since_ns < STRANGER_AFTER_NS ? PREEMPT_NS : BESIDE_STRANGERS_NS);
}

static inline void preempt_often(void)
{
	struct sigaction action = { .sa_handler = make_room, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

	if (sigaction(SIGRTMIN, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &preempt_timer) != 0)
		bail("no timer: %s", strerror(errno));
	preempt_next(PREEMPT_NS);
}

/* A worker's end when something is wrong. */
#define worker_check(condition, ...) ((condition) ? (void)0 : (diag(__VA_ARGS__), _exit(1)))

/* Fork a process that dies with this one. Returns as fork() does. */
static inline pid_t fork_bound(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* Start, or start again, one worker. */
static inline void crew_spawn(struct crew *crew, int index, int at_gate)
{
	crew->pid[index] = fork_bound();
	if (crew->pid[index] != 0)
		return;
	if (at_gate)
		gate_pass(crew->gate);
	preempt_often();
	crew->work(crew, index);
	_exit(0);
}

/* Start n workers, which begin together. `crew` may be private memory: each worker has its copy. */
static inline void crew_start(struct crew *crew, int n, void (*work)(struct crew *, int), void *arg)
{
	*crew = (struct crew){ .n = n, .gate = shared_memory(sizeof(*crew->gate)), .arg = arg, .work = work };
	crew->gate->n = (uint32_t)n;
	for (int i = 0; i < n; i++)
		crew_spawn(crew, i, 1);
}

/* Did a process leave by itself, with status 0? Says how it ended if not. */
static inline int ended_well(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 1;
	if (WIFSIGNALED(status))
		diag("a process died by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		diag("a process ended with status %d", WEXITSTATUS(status));
	return 0;
}

/* Wait for one process; returns 1 if it ended well. */
static inline int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	return ended_well(status);
}

/* SIGKILL a worker. Returns 1 if that, and nothing else, ended it. */
static inline int crew_kill(struct crew *crew, int index)
{
	int status;

	/* All come to the gate first: if one were killed on its way there, the others would wait for ever. */
	while (crew->gate != NULL && atomic_load(&crew->gate->opened) == 0)
		syscall(SYS_futex, &crew->gate->opened, FUTEX_WAIT, 0, NULL, NULL, 0);
	kill(crew->pid[index], SIGKILL);
	while (waitpid(crew->pid[index], &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid: %s", strerror(errno));
	crew->pid[index] = 0;
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || ended_well(status);
}

/* Wait for all. Returns how many did not end well; as soon as one did not, the others are ended. */
static inline int crew_wait(struct crew *crew)
{
	int bad = 0, left = 0;

	for (int i = 0; i < crew->n; i++)
		left += crew->pid[i] != 0;
	while (left > 0) {
		int status, index = -1;
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0 && errno != EINTR)
			bail("waitpid: %s", strerror(errno));
		for (int i = 0; i < crew->n; i++)
			if (pid > 0 && crew->pid[i] == pid)
				index = i;
		if (index < 0)
			continue;
		crew->pid[index] = 0;
		left--;
		if (bad != 0 || ended_well(status))
			continue;
		bad++;
		for (int i = 0; i < crew->n; i++)
			if (crew->pid[i] != 0)
				kill(crew->pid[i], SIGKILL);
	}
	munmap(crew->gate, sizeof(*crew->gate));
	return bad;
}

/* For loops that wait until workers have got on: yield, and end the test if one of them has ended. */
static inline void crew_await(void)
{
	siginfo_t ended = { 0 };

	sched_yield();
	if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
		bail("process %d ended by itself: status %d", (int)ended.si_pid, ended.si_status);
}

/* The same for waits of milliseconds and more: it keeps no processor busy. */
static inline void crew_await_long(void)
{
	struct timespec moment = { 0, 200000 };

	crew_await();
	nanosleep(&moment, NULL);
}

/* Start n workers and wait for them. Returns how many did not end well. */
static inline int crew_run(int n, void (*work)(struct crew *, int), void *arg)
{
	struct crew crew;

	crew_start(&crew, n, work, arg);
	return crew_wait(&crew);
}

/* ---- The segment under test ---- */

static char stage_name[64];

/* Remove our segment and those whose names go on after it with a dot. Returns how many there were. */
static inline int stage_sweep(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	int n = 0;

	if (folder == NULL)
		return 0;
	while ((entry = readdir(folder)) != NULL) {
		const char *at = strstr(entry->d_name, stage_name);

		/* Of any layout. Test 12 leaves those of test 123 alone. */
		if (at == NULL || !strchr(".", at[strlen(stage_name)]))
			continue;
		unlinkat(dirfd(folder), entry->d_name, 0);
		n++;
	}
	closedir(folder);
	return n;
}

static inline void stage_clean(void)
{
	stage_sweep();
}

/* To be called first in main(): names the segment, sets the watchdog. */
static inline void stage_begin(const char *program)
{
	snprintf(stage_name, sizeof(stage_name), "test.%s.%d", program, (int)getpid());
	alarm(WATCHDOG_SECONDS);
	guard_begin(stage_clean);
}

/* Make the segment, 0 standing for the default, and open it. */
static inline struct shmlimit *stage_create(uint64_t slots, uint32_t rules, uint32_t on_full)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options),
		.slots = slots,
		.rules = rules,
		.on_full = on_full,
		.store_keys = 14,
	};
	struct shmlimit *l;
	int error = shmlimit_create(stage_name, &options, &l);

	if (error != 0)
		bail("create %s: %s", stage_name, shmlimit_strerror(error));
	return l;
}

static inline int stage_rule_of(struct shmlimit *l, const char *name, struct shmlimit_rule rule)
{
	int id;

	rule.struct_size = sizeof(rule);
	id = shmlimit_rule_set(l, name, &rule);
	if (id < 0)
		bail("rule %s: %s", name, shmlimit_strerror(id));
	return id;
}

static inline int stage_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count,
                             uint64_t period_ns)
{
	return stage_rule_of(l, name,
	                     (struct shmlimit_rule){ .capacity = capacity, .refill = count, .period_ns = period_ns });
}

/* Make its file as long as that: for tests that look at all of a mapping, which is as long as the segment can grow. */
static inline void stage_extend(uint64_t size)
{
	char path[SHMLIMIT_PATH_MAX];
	int fd, error;

	(void)shmlimit_path(stage_name, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);
	if (error != 0)
		bail("no room for all of %s: %s", path, strerror(error));
	close(fd);
}

/* Take the segment's name away. A process that has it open goes on with it; rules can't be set any more. */
static inline void stage_hide(void)
{
	int error = shmlimit_destroy(stage_name);

	if (error != 0)
		bail("destroy %s: %s", stage_name, shmlimit_strerror(error));
}

static inline struct shmlimit_counters counters_of(struct shmlimit *l, int rule)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	int error = shmlimit_counters(l, rule, &counters);

	if (error != 0)
		bail("counters: %s", shmlimit_strerror(error));
	return counters;
}

/* ---- A /dev/shm of our own ---- */

static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

/*
 * From here on this process and its children have a /dev/shm of their own, a
 * new tmpfs mounted with `options`; it is gone when they are. Returns 0 or
 * -errno where that is not permitted.
 */
static inline int private_shm(const char *options)
{
	char map[64];
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWNS) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			return -errno;
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (write_text("/proc/self/setgroups", "deny") != 0 || write_text("/proc/self/uid_map", map) != 0)
			return -EPERM;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (write_text("/proc/self/gid_map", map) != 0)
			return -EPERM;
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -errno;
	return mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0 ? 0 : -errno;
}

/* How many files /dev/shm has. */
static inline int shm_files(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	int n = 0;

	if (folder == NULL)
		return -errno;
	while ((entry = readdir(folder)) != NULL)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(folder);
	return n;
}

#endif
