/*
 * kill: a real SIGKILL inside the calls that make system calls or take the writers' lock: create, open, destroy,
 * rule_set, rule_remove, reset. Then another process makes the same call, and succeeds: I4.
 *
 * The victim is killed before and after each system call, after each change of the segment, and at every n-th other
 * instruction, where n gives about KILLS kills a call. With CRASH_FULL=1 it is killed at every instruction.
 *
 * What is left is a sound segment, or none (create, destroy). Each rule and each key is as before the call or as after
 * it. /dev/shm, which is this test's own, has no other file, and no memory is in use that belongs to no file.
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

#include <sys/statfs.h>

#include "audit.h"
#include "rules.h"
#include "trace.h"

#define KILLS 400
#define PREPARED 3

static const struct scenario {
	const char *title;
	struct call before[PREPARED];
	struct call call;
	int answer, again; /* another process's answer if it is first, and if it finds the call done */
} scenarios[] = {
	/* clang-format off */
	{ "create", { { DESTROY } }, { CREATE }, 0, -EEXIST },
	{ "open", { { TAKE, "k", 1 } }, { OPEN }, 0, 0 },
	{ "open: to read", { { TAKE, "k", 1 } }, { OPEN_READ_ONLY }, 0, 0 },
	{ "destroy", { { TAKE, "k", 1 } }, { DESTROY }, 0, -ENOENT },
	{ "rule_set: a new rule", { { TAKE, "k", 1 } }, { RULE_SET, "new" }, 3, 3 },
	{ "rule_set: a lower capacity", { { TAKE, "k", 1 }, { TAKE, "l", 4 } },
	  { RULE_SET, .params = { .capacity = 2 } }, SUBJECT, SUBJECT },
	{ "rule_set: another rate", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } }, { RULE_SET, .params = { .refill = 3 } },
	  SUBJECT, SUBJECT },
	{ "rule_set: another mode", { { TAKE, "k", 1 } }, { RULE_SET, .params = { .mode = SHMLIMIT_OFF } }, SUBJECT,
	  SUBJECT },
	{ "rule_set: after a writer that was killed", { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 4 } } },
	  { RULE_SET, .params = { .capacity = 3 } }, SUBJECT, SUBJECT },
	{ "rule_remove", { { TAKE, "k", 1 }, { TAKE, "l", 1 } }, { RULE_REMOVE }, 0, -ESRCH },
	{ "reset: a rule", { { TAKE, "k", 3 }, { ABANDON, "l" }, { FILL, NULL, 5 } }, { RESET_RULE }, 0, 0 },
	{ "pause: the first", { { TAKE, "k", 1 } }, { PAUSE, "k", 7 }, 0, 0 },
	{ "throttle: a new triple", { { TAKE, "k", 1 } }, { THROTTLE, "m", 7 }, 0, 0 },
	/* clang-format on */
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* One scenario. */
static struct {
	const struct scenario *is;
	struct rng rng;
	unsigned char *kept; /* the segment before the call */
	struct audit audit;
	struct rules before, after;
	uint64_t kills;
	unsigned mixed, undone, files; /* faults: rules, the call made again, files and memory */
} now;

static struct states seen; /* by scenario, and audited */

static struct {
	uint64_t kills, steps, states;
} sum;

static uint64_t memory_left(void)
{
	struct statfs status;

	return statfs("/dev/shm", &status) == 0 ? status.f_bfree : 0;
}

/* Calls that make a segment, or take it away: there is nothing to be put back. */
static int is_about_name(void)
{
	return now.is->call.act == CREATE || now.is->call.act == DESTROY;
}

/* As it is before the call. */
static void set_scene(void)
{
	struct rng rng = now.rng;

	if (scene.l != NULL && !is_about_name()) {
		scene_restore(now.kept);
		return;
	}
	if (scene.l != NULL)
		scene_close();
	scene_open(&rng, SHMLIMIT_FULL_EVICT, now.is->call.act == THROTTLE);
	for (int i = 0; i < PREPARED; i++)
		if (call_make(&now.is->before[i]) < 0)
			bail("%s: not prepared: call %d", now.is->title, i);
}

/* After a victim of any other call than create or destroy: what it left, and what that is when the call is made again. */
static void check_segment(void)
{
	struct sights sights;
	int answer;

	if (states_add(&seen))
		audit_state(&now.audit, 0);
	now.mixed += !rules_are_due(&now.before, &now.after);
	answer = tracee_run(call_make, &now.is->call);
	now.undone += answer != now.is->answer && answer != now.is->again;
	audit_see(&sights);
	now.undone += memcmp(&sights, &now.audit.after, sizeof(sights)) != 0;
	now.mixed += !rules_are_due(&now.after, &now.after);
	now.files += shm_files() != 1;
}

/* What a victim of create or destroy left: the name is that of a sound segment, or of none. */
static void check_name(void)
{
	int there = shmlimit_verify(stage_name, NULL, 0), done = now.is->call.act == CREATE ? there == 0 : there != 0;
	int answer = tracee_run(call_make, &now.is->call);

	now.audit.sound += there != 0 && there != -ENOENT;
	now.undone += answer != (done ? now.is->again : now.is->answer);
	now.files += shm_files() != (now.is->call.act == CREATE);
}

/* A process, killed in state k of the call; and what it leaves. */
static void kill_at(const struct trace *trace, size_t k)
{
	static struct tracee t;

	set_scene();
	tracee_start(&t, call_make, &now.is->call);
	trace_bring(trace, &t, k);
	now.kills += t.pid != 0 && !t.said->over;
	tracee_kill(&t);
	if (is_about_name())
		check_name();
	else
		check_segment();
}

/* Is state k among those in which processes are killed? */
static int is_chosen(const struct trace *trace, size_t k)
{
	size_t every = scene_is_full() ? 1 : trace->n / KILLS + 1;

	if (trace->step[k].clock)
		return 0;
	return trace->step[k].calls || (k > 0 && trace->step[k - 1].calls) || trace->step[k].changed || k % every == 0;
}

static void perform(const struct scenario *s)
{
	uint64_t memory = memory_left();
	struct trace trace = { 0 };
	int answer;

	now.is = s;
	now.kills = now.mixed = now.undone = now.files = 0;
	now.audit = (struct audit){ 0 };
	states_forget(&seen);
	set_scene();
	tracee_share_cpu();
	now.kept = scene_keep(NULL);
	if (!is_about_name()) {
		audit_see(&now.audit.before);
		rules_read(&now.before);
	}
	answer = trace_record(&trace, &s->call);
	is(answer, s->answer, "%s: the answer is %d", s->title, s->answer);
	if (!is_about_name()) {
		rules_read(&now.after);
		audit_see(&now.audit.after);
	}
	for (size_t k = 0; k < trace.n; k++)
		if (is_chosen(&trace, k))
			kill_at(&trace, k);
	ok(now.kills > KILLS / 4, "%s: processes were killed inside the call", s->title);
	is(now.audit.sound, 0, "%s: the segment is sound", s->title);
	is(now.audit.keys, 0, "%s: each key is as before or as after", s->title);
	is(now.audit.stuck, 0, "%s: others finish by themselves", s->title);
	is(now.audit.lost, 0, "%s: no slot is lost", s->title);
	is(now.mixed, 0, "%s: each rule is the old or the new one", s->title);
	is(now.undone, 0, "%s: made again by another process, it succeeds", s->title);
	scene_close();
	is(now.files, 0, "%s: there is no file but the segment", s->title);
	is(memory_left(), memory, "%s: no memory is left that no file has", s->title);
	diag("%s: %zu instructions, %" PRIu64 " kills, %u states", s->title, trace.n, now.kills, seen.n);
	sum.steps += trace.n;
	sum.states += seen.n;
	sum.kills += now.kills;
	free(now.kept);
	free(trace.step);
}

int main(int argc, char **argv)
{
	const char *impossible = tracee_impossible();

	(void)argc;
	if (impossible != NULL)
		return tap_skip_all(impossible);
	tracee_begin(argv, 1);
	if (private_shm("size=16m") != 0)
		return tap_skip_all("no /dev/shm of our own: mounting is not permitted");
	scene_begin("crash.kill");
	now.rng.state = rng_seed();
	scene_open(&(struct rng){ now.rng.state }, SHMLIMIT_FULL_EVICT, 0);
	audit_calibrate();
	scene_close();
	for (size_t i = 0; i < SCENARIOS; i++)
		perform(&scenarios[i]);
	ok(trace_astray * 100 < sum.kills, "processes came where they were wanted");
	diag("%zu calls, %" PRIu64 " instructions, %" PRIu64 " kills, %" PRIu64 " states, %" PRIu64 " astray, %.0f s",
	     SCENARIOS, sum.steps, sum.kills, sum.states, trace_astray, tracee_seconds());
	return tap_done();
}

#endif
