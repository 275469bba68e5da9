/*
 * holder: see holder.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holder.h"
#include "keep_errno.h"

#define START_BITS 10
#define START_MASK ((1u << START_BITS) - 1)
#define PID_MAX ((1u << 22) - 1)

/* What /proc/PID/stat says of a process. */
struct life {
	int is_over; /* a zombie without another thread */
	uint64_t start;
};

uint64_t holder_namespace(void)
{
	KEEP_ERRNO;
	struct stat status;

	return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/* Are the pids in /proc those that this process and kill(2) go by? */
static int proc_is_ours(void)
{
	char link[16] = "";
	ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

	return n > 0 && strtoul(link, NULL, 10) == (unsigned long)getpid();
}

static ssize_t proc_read(uint32_t pid, const char *file, char *text, size_t size)
{
	char path[32];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, size);
	close(fd);
	return n;
}

/*
 * Fields are counted from 1, as in proc(5); the second is a name in parentheses, which may contain
 * any byte. BOUND: once over the text.
 */
static const char *field(const char *text, unsigned number)
{
	const char *at = strrchr(text, ')');

	for (unsigned i = 2; at != NULL && i < number; i++)
		at = strchr(at + 1, ' ');
	return at == NULL ? NULL : at + 1;
}

/* Returns false where it is not known. */
static int life_read(uint32_t pid, struct life *life)
{
	char text[512] = "";
	const char *state, *threads, *start;

	if (!proc_is_ours() || proc_read(pid, "stat", text, sizeof(text) - 1) <= 0)
		return 0;
	state = field(text, 3);
	threads = field(text, 20);
	start = field(text, 22);
	if (state == NULL || threads == NULL || start == NULL)
		return 0;
	/* A first thread that ended is a zombie, too, while others go on. */
	life->is_over = (*state == 'Z' || *state == 'X') && strtoul(threads, NULL, 10) <= 1;
	life->start = strtoull(start, NULL, 10);
	return 1;
}

/* The process that a thread is of; else the same. */
static uint32_t process_of(uint32_t pid)
{
	static const char name[] = "\nTgid:\t";
	char text[512] = "";
	const char *at;

	if (proc_read(pid, "status", text, sizeof(text) - 1) <= 0)
		return pid;
	at = strstr(text, name);
	return at == NULL ? pid : (uint32_t)strtoul(at + sizeof(name) - 1, NULL, 10);
}

int holder_find(uint32_t *pid, uint64_t *start)
{
	KEEP_ERRNO;
	struct life life;

	if (*pid > PID_MAX || (*pid != 0 && kill((pid_t)*pid, 0) != 0 && errno == ESRCH))
		return -ECHILD;
	if (*pid == 0)
		*pid = (uint32_t)getpid();
	else if (proc_is_ours())
		*pid = process_of(*pid);
	if (!life_read(*pid, &life))
		return -ENODEV;
	*start = life.start;
	return life.is_over ? -ECHILD : 0;
}

int holder_of(uint32_t pid, uint32_t *holder)
{
	uint64_t start;
	int error = holder_find(&pid, &start);

	if (error == 0)
		*holder = pid << START_BITS | ((uint32_t)start & START_MASK);
	return error;
}

int holder_is_over(uint32_t pid, uint64_t start, uint64_t mask)
{
	KEEP_ERRNO;
	struct life life;

	if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		return 1;
	return life_read(pid, &life) && (life.is_over || ((life.start ^ start) & mask) != 0);
}

/* ---- What is known for a while ---- */

/*
 * Processes that /proc showed alive, and when, in units of 2^20 ns: [ holder : 32 ][ time : 32 ].
 * What another thread overwrites, or was learned in another namespace before a fork, costs another
 * read or lets a dead process count as alive for a while.
 */
static _Atomic uint64_t fresh[256];

static uint64_t fresh_as(uint32_t holder, uint64_t now_ns)
{
	return (uint64_t)holder << 32 | (uint32_t)(now_ns >> 20);
}

static _Atomic uint64_t *fresh_of(uint32_t holder)
{
	return &fresh[(holder >> START_BITS) % (sizeof(fresh) / sizeof(fresh[0]))];
}

/* Has /proc shown it alive just now? */
static int is_fresh(uint32_t holder, uint64_t now_ns)
{
	return fresh_as(holder, now_ns) - atomic_load_explicit(fresh_of(holder), memory_order_relaxed) <
	       HOLDER_FRESH_NS >> 20;
}

int holder_is_dead(uint32_t holder, uint64_t now_ns)
{
	KEEP_ERRNO;
	uint32_t pid = holder >> START_BITS;
	struct life life;

	if (pid == 0)
		return 0;
	if (kill((pid_t)pid, 0) != 0)
		return errno == ESRCH;
	if (is_fresh(holder, now_ns))
		return 0;
	if (life_read(pid, &life) && (life.is_over || ((uint32_t)life.start & START_MASK) != (holder & START_MASK)))
		return 1;
	atomic_store_explicit(fresh_of(holder), fresh_as(holder, now_ns), memory_order_relaxed);
	return 0;
}
