/*
 * save: the commands that save and load a segment, killed before and after each
 * of their system calls. The file is then the old one or the new one, whole; the
 * segment is all there or there is none; and the same command, given again, does
 * what it is for: I4.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../tap.h"

#ifndef __x86_64__

int main(void)
{
	return tap_skip_all("system calls are stopped at as those of x86-64");
}

#else

#include <sys/statfs.h>

#include "tracee.h"

#define DAY_NS 86400000000000u
#define FILE_NAME "/dev/shm/state" /* in a /dev/shm that is this test's own */
#define OLD 3u                     /* tokens left in the file that is there, ... */
#define NEW 2u                     /* ... and in the segment that is saved */

static char command[4096], copy_name[96];
static struct shmlimit *l;
static unsigned char old_file[8192];
static size_t old_len;
static uint64_t kills;
static unsigned torn, lost, unsound, undone, files, memory; /* faults */

/* The command, as a program to be traced: stopped when it has been loaded. */
static void start(struct tracee *t, const char *verb, const char *name)
{
	t->pid = fork_bound();
	if (t->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(command, "shmlimit", verb, name, FILE_NAME, (char *)NULL);
		_exit(127);
	}
	tracee_wait(t);
}

/* Up to the n-th entry to or return from a system call. Returns false if it has ended. */
static int bring(struct tracee *t, uint64_t n)
{
	while (n-- > 0 && t->pid != 0)
		tracee_go(t, PTRACE_SYSCALL);
	return t->pid != 0;
}

static void put_old_file(void)
{
	int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, old_file, old_len) != (ssize_t)old_len)
		bail("%s: %s", FILE_NAME, strerror(errno));
	close(fd);
}

/* What the key has left in a segment; UINT64_MAX if there is none. */
static uint64_t left(const char *name)
{
	struct shmlimit_result r = { .remaining = UINT64_MAX };
	struct shmlimit *at;

	if (shmlimit_open(name, SHMLIMIT_OPEN_READ_ONLY, NULL, &at) != 0)
		return UINT64_MAX;
	shmlimit_peek(at, 0, "k", 1, 1, &r);
	shmlimit_close(at);
	return r.remaining;
}

/* What the key has left in the file; UINT64_MAX if that is not whole. */
static uint64_t left_in_file(void)
{
	uint64_t found = UINT64_MAX;
	int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);

	if (shmlimit_load(copy_name, fd, 0, NULL) == 0)
		found = left(copy_name);
	close(fd);
	shmlimit_destroy(copy_name);
	return found;
}

/* Files that a killed save left beside FILE_NAME go; they have done no harm. */
static unsigned sweep(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	unsigned n = 0;

	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (strncmp(entry->d_name, "state.", 6) == 0) {
			n++;
			unlinkat(dirfd(folder), entry->d_name, 0);
		}
	closedir(folder);
	return n;
}

static uint64_t memory_left(void)
{
	struct statfs status;

	return statfs("/dev/shm", &status) == 0 ? status.f_bfree : 0;
}

static void kill_savers(void)
{
	uint64_t n = 0, had;
	struct tracee t = { 0 };

	for (;; n++) {
		put_old_file();
		start(&t, "save", stage_name);
		if (!bring(&t, n))
			break;
		tracee_kill(&t);
		kills++;
		files += sweep() > 1;
		had = left_in_file();
		torn += had != OLD && had != NEW;
		lost += left(stage_name) != NEW;
		unsound += shmlimit_verify(stage_name, NULL, 0) != 0;
		start(&t, "save", stage_name);
		(void)bring(&t, UINT64_MAX);
		undone += left_in_file() != NEW;
		files += shm_files() != 2;
	}
	ok(n > 50, "save was killed at system calls");
	is(torn, 0, "the file is the old one or the new one");
	is(lost, 0, "the segment is as it was");
	is(unsound, 0, "the segment is sound");
	is(undone, 0, "given again, save does it");
	is(files, 0, "a save leaves the segment and the file, and no more than one beside it if killed");
}

static void kill_loaders(void)
{
	uint64_t n = 0, had, before;
	struct tracee t = { 0 };

	files = unsound = torn = undone = 0;
	put_old_file();
	before = memory_left();
	for (;; n++) {
		start(&t, "load", copy_name);
		if (!bring(&t, n))
			break;
		tracee_kill(&t);
		kills++;
		had = left(copy_name);
		torn += had != UINT64_MAX && had != OLD;
		unsound += had == OLD && shmlimit_verify(copy_name, NULL, 0) != 0;
		files += shm_files() != (had == OLD ? 3 : 2);
		shmlimit_destroy(copy_name);
		memory += memory_left() != before;
	}
	is(left(copy_name), OLD, "load loads");
	ok(n > 50, "load was killed at system calls");
	is(torn, 0, "the segment has all, or is not there");
	is(unsound, 0, "where it is there it is sound");
	is(files, 0, "there is no other file");
	is(memory, 0, "no memory is left that no file has");
	shmlimit_destroy(copy_name);
}

/* ../../bin/shmlimit, seen from where this program is. */
static void find_command(void)
{
	ssize_t n = readlink("/proc/self/exe", command, sizeof(command) - 32);

	for (int up = 0; n > 0 && up < 3; n--)
		up += command[n - 1] == '/';
	strcpy(command + (n < 0 ? 0 : n), "/bin/shmlimit");
	if (access(command, X_OK) != 0)
		bail("no %s", command);
}

static void keep_old_file(void)
{
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0 || shmlimit_save(l, fd) != 0 || (n = pread(fd, old_file, sizeof(old_file), 0)) <= 0)
		bail("%s: not saved", FILE_NAME);
	old_len = (size_t)n;
	close(fd);
}

int main(int argc, char **argv)
{
	const char *impossible = tracee_impossible();

	(void)argc;
	if (impossible != NULL)
		return tap_skip_all(impossible);
	tracee_begin(argv, 1);
	find_command();
	if (private_shm("size=16m") != 0)
		return tap_skip_all("no /dev/shm of our own: mounting is not permitted");
	stage_begin("crash.save");
	snprintf(copy_name, sizeof(copy_name), "%s.copy", stage_name);
	l = stage_create(16, 2, SHMLIMIT_FULL_EVICT);
	stage_rule(l, "slow", OLD + 1, 1, 365 * DAY_NS);
	shmlimit_take(l, 0, "k", 1, 1, NULL);
	keep_old_file();
	shmlimit_take(l, 0, "k", 1, OLD - NEW, NULL);
	tracee_share_cpu();
	kill_savers();
	kill_loaders();
	diag("%" PRIu64 " kills, %.0f s", kills, tracee_seconds());
	shmlimit_close(l);
	shmlimit_destroy(stage_name);
	return tap_done();
}

#endif
