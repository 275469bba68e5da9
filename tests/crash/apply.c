/*
 * apply: the command that makes a segment's rules those of a file, killed before
 * and after each of its system calls, and after each change that it makes to
 * the segment. Each rule is then the old one or the new one; the same command,
 * given again, makes them what the file says: I4.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../tap.h"

#ifndef __x86_64__

int main(void)
{
	return tap_skip_all("instructions are read, and stopped at, as those of x86-64");
}

#else

#include "audit.h"
#include "rules.h"

#define CHANGES_MAX 1000

enum { OLD = HELD + 1, NEW }; /* ids of two more rules */

/* One rule that changes, two that don't, a new one. A fifth is not there, and has to go. */
static const char wanted[] = "[subject]\ncapacity = 3\nrate = 2/h\n"
			     "[other]\ncapacity = 5\nrate = 1/h\nmax-wait = 3h\n"
			     "[held]\ncapacity = 1\nrate = 1/365d\n"
			     "[new]\ncapacity = 8\nrate = 8/s\n";

static struct {
	char command[4096];
	int file; /* the rules wanted */
	unsigned char *kept;
	struct audit audit;
	struct rules before, after;
	uint64_t kills, boundaries, changes;
	unsigned mixed, undone, files; /* faults */
} now;

static struct states seen;

/* The command, as a program to be traced: stopped when it has been loaded. */
static void start(struct tracee *t)
{
	t->pid = fork_bound();
	if (t->pid == 0) {
		int out = open("/dev/null", O_WRONLY);

		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		dup2(out, STDOUT_FILENO);
		dup2(now.file, STDIN_FILENO);
		lseek(now.file, 0, SEEK_SET);
		execl(now.command, "shmlimit", "apply", stage_name, "-", "--prune", (char *)NULL);
		_exit(127);
	}
	tracee_wait(t);
}

/* The command in peace, which must succeed. */
static void run(void)
{
	struct tracee t = { 0 };

	start(&t);
	while (t.pid != 0)
		tracee_go(&t, PTRACE_CONT);
}

/* Up to the n-th entry to or return from a system call. Returns false if it has ended. */
static int bring(struct tracee *t, uint64_t n)
{
	start(t);
	while (n-- > 0 && t->pid != 0)
		tracee_go(t, PTRACE_SYSCALL);
	return t->pid != 0;
}

static void check(void)
{
	struct sights sights;

	if (states_add(&seen))
		audit_state(&now.audit, 0);
	now.mixed += !rules_are_due(&now.before, &now.after);
	run();
	audit_see(&sights);
	now.undone += memcmp(&sights, &now.audit.after, sizeof(sights)) != 0;
	now.mixed += !rules_are_due(&now.after, &now.after);
	now.files += shm_files() != 1;
}

static void kill_and_check(struct tracee *t)
{
	now.kills += t->pid != 0;
	tracee_kill(t);
	check();
}

/* Step on until the segment changes, `changes` times. Returns false at the next system call. */
static int step_to_change(struct tracee *t, uint64_t changes)
{
	static unsigned char *last;

	last = scene_keep(last);
	while (changes > 0) {
		const struct user_regs_struct registers = tracee_registers(t);
		long code = ptrace(PTRACE_PEEKTEXT, t->pid, registers.rip, NULL);

		if ((code & 0xffff) == 0x050f)
			return 0;
		tracee_go(t, PTRACE_SINGLESTEP);
		if (memcmp(last, scene.bytes, scene.size) == 0)
			continue;
		scene_keep(last);
		changes--;
	}
	return 1;
}

/* Kill after each change of the segment between this boundary and the next. */
static void kill_at_changes(uint64_t boundary)
{
	struct tracee t = { 0 };

	for (uint64_t n = 1; n < CHANGES_MAX; n++) {
		scene_restore(now.kept);
		bring(&t, boundary);
		if (!step_to_change(&t, n)) {
			tracee_kill(&t);
			return;
		}
		now.changes++;
		kill_and_check(&t);
	}
	bail("more than %d changes", CHANGES_MAX);
}

/* Does the segment change between this boundary and the next? */
static int changes_after(uint64_t boundary)
{
	static unsigned char *at;
	struct tracee t = { 0 };
	int changes;

	scene_restore(now.kept);
	if (!bring(&t, boundary))
		return 0;
	at = scene_keep(at);
	tracee_go(&t, PTRACE_SYSCALL);
	changes = memcmp(at, scene.bytes, scene.size) != 0;
	tracee_kill(&t);
	return changes;
}

static void kill_everywhere(void)
{
	struct tracee t = { 0 };

	for (;; now.boundaries++) {
		scene_restore(now.kept);
		if (!bring(&t, now.boundaries))
			return;
		kill_and_check(&t);
		if (changes_after(now.boundaries))
			kill_at_changes(now.boundaries);
	}
}

/* The rules wanted, in a file that has no name to be left behind. */
static void write_file(void)
{
	now.file = memfd_create("rules", 0);
	if (now.file < 0 || write(now.file, wanted, sizeof(wanted) - 1) != (ssize_t)sizeof(wanted) - 1)
		bail("no file of rules: %s", strerror(errno));
}

/* ../../bin/shmlimit, seen from where this program is. */
static void find_command(void)
{
	ssize_t n = readlink("/proc/self/exe", now.command, sizeof(now.command) - 32);

	for (int up = 0; n > 0 && up < 3; n--)
		up += now.command[n - 1] == '/';
	strcpy(now.command + (n < 0 ? 0 : n), "/bin/shmlimit");
	if (access(now.command, X_OK) != 0)
		bail("no %s", now.command);
}

int main(int argc, char **argv)
{
	const struct call charge = { CHARGE, "k", 4 }, old = { RULE_SET, "old" };
	const char *impossible = tracee_impossible();
	struct rng rng;

	(void)argc;
	if (impossible != NULL)
		return tap_skip_all(impossible);
	tracee_begin(argv, 1);
	find_command();
	if (private_shm("size=16m") != 0)
		return tap_skip_all("no /dev/shm of our own: mounting is not permitted");
	scene_begin("crash.apply");
	rng.state = rng_seed();
	write_file();
	scene_open(&rng, SHMLIMIT_FULL_EVICT, 1);
	tracee_share_cpu();
	audit_calibrate();
	if (call_make(&charge) != 0 || call_make(&old) != OLD)
		bail("not prepared");
	now.kept = scene_keep(NULL);
	audit_see(&now.audit.before);
	rules_read(&now.before);
	run();
	audit_see(&now.audit.after);
	rules_read(&now.after);
	is(now.audit.after.key[0].drained, 1, "it makes a rule another");
	ok(!now.after.found[OLD] && now.after.found[NEW], "one goes, and there is a new one");

	kill_everywhere();
	ok(now.boundaries > 50 && now.changes > 20, "it was killed at system calls and after changes");
	is(now.audit.sound, 0, "the segment is sound");
	is(now.audit.keys, 0, "each key is as before or as after");
	is(now.audit.stuck, 0, "others finish by themselves");
	is(now.audit.lost, 0, "no slot is lost");
	is(now.mixed, 0, "each rule is the old or the new one");
	is(now.undone, 0, "given again, the command does it all");
	is(now.files, 0, "there is no file but the segment");
	diag("%" PRIu64 " boundaries, %" PRIu64 " changes, %" PRIu64 " kills, %u states, %.0f s", now.boundaries,
	     now.changes, now.kills, seen.n, tracee_seconds());
	scene_close();
	return tap_done();
}

#endif
