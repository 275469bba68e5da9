/*
 * full: calls that reserve memory, in a /dev/shm that is full from some system call on, for each of their system calls: the
 * process goes on, or is killed there; or /dev/shm was full before, and has room from there on. No process dies of SIGBUS,
 * nor does any that comes later: what it asks for is answered, a key without room as on_full says, all others exactly (I1,
 * I3, I7, I9). When there is room again the same call succeeds, and no token was given twice or lost.
 *
 * WHY system calls: a page is taken by one of them, or by an instruction that touches a hole. The latter is a fault
 * wherever memory has ended, and here it has ended at the earliest moment that differs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "../process/process.h"

#define NOW_NS ((uint64_t)1000000000000)
#define DAY_NS ((uint64_t)86400000000000)
#define SLOTS 32u
#define SMALL 3u
#define LARGE 300u /* a key takes more than a page */
#define LARGER 1300u
#define FUNNEL 5u

enum { WINDOW, PLACES, OTHER_WINDOW, FUNNELS, HELD, RULES };
static const struct {
	const char *name;
	uint32_t algorithm;
	uint64_t capacity;
} rules[RULES] = { [WINDOW] = { "window", SHMLIMIT_WINDOW, LARGE },
	           [PLACES] = { "places", SHMLIMIT_HOLD, LARGE },
	           [OTHER_WINDOW] = { "other-window", SHMLIMIT_WINDOW, SMALL },
	           [FUNNELS] = { "funnels", SHMLIMIT_FUNNEL, FUNNEL },
	           [HELD] = { "held", SHMLIMIT_FUNNEL, 1 } };

/* What a process says, in shared memory. */
static struct said {
	_Atomic int over;
	int answer;
	uint64_t counted[4];
} * said;

static struct shmlimit *l;
static int saved; /* a file */
static char copy[96];

static const struct scenario {
	const char *title;
	int (*call)(void);
	void (*before)(void); /* prepares, or NULL */
	struct {
		int with, without, again; /* where there is memory; where there is none; when it was done before */
	} answer;
	uint32_t on_full;
	int rule;        /* whose key is looked at in the end, ... */
	const char *key; /* ... NULL: that of a rule whose logs grow, and may be lost */
	unsigned taken;  /* of it before the call */
	int takes;       /* a token more, where it is allowed */
	int makes_file, grows;
} * now;

/* ---- The segment ---- */

static int set_rule(const char *name, uint32_t algorithm, uint64_t capacity)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .capacity = capacity,
		                      .refill = algorithm == SHMLIMIT_FUNNEL,
		                      .period_ns = DAY_NS };

	return shmlimit_rule_set(at_time(l, NOW_NS), name, &rule);
}

static int ask(int rule, const char *key)
{
	struct shmlimit_place place = { .struct_size = sizeof(place) };

	return rule == PLACES ? shmlimit_enter(at_time(l, NOW_NS), rule, key, strlen(key), &place, NULL)
	                      : shmlimit_take(at_time(l, NOW_NS), rule, key, strlen(key), 1, NULL);
}

/* How often a key is admitted from now on. */
static uint64_t drain(int rule, const char *key, uint64_t most)
{
	uint64_t n = 0;

	while (n <= most && ask(rule, key) == SHMLIMIT_ALLOWED)
		n++;
	return n;
}

static void make(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o),
		                      .slots = SLOTS,
		                      .slots_max = 2 * SLOTS,
		                      .rules = RULES,
		                      .rules_max = 200,
		                      .on_full = now->on_full };

	int error;

	shmlimit_close(l);
	shmlimit_destroy(copy);
	shmlimit_destroy(stage_name);
	error = shmlimit_create(stage_name, &o, &l);
	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	for (int i = 0; i < RULES; i++) {
		int id = set_rule(rules[i].name, rules[i].algorithm, rules[i].capacity);

		if (id != i)
			bail("rule %s: %s", rules[i].name, shmlimit_strerror(id));
	}
	if (ask(WINDOW, "known") + ask(PLACES, "known") + ask(OTHER_WINDOW, "known") + ask(FUNNELS, "known") != 0)
		bail("no key is known");
	if (now->before != NULL)
		now->before();
	/* What a process maps, or knows to be reserved, is its own. */
	shmlimit_close(l);
	if (shmlimit_open(stage_name, 0, NULL, &l) != 0)
		bail("open");
}

/* ---- Calls ---- */

/* clang-format off */
static int take_new(void) { return ask(WINDOW, "new"); }
static int take_known(void) { return ask(WINDOW, "known"); }
static int enter_new(void) { return ask(PLACES, "new"); }
static int enter_known(void) { return ask(PLACES, "known"); }
static int grow(void) { return shmlimit_grow(at_time(l, NOW_NS), 2 * (uint64_t)SLOTS); }
static int set_larger(void) { return set_rule("window", SHMLIMIT_WINDOW, LARGER); }
static int set_more_places(void) { return set_rule("places", SHMLIMIT_HOLD, LARGER); }
/* clang-format on */

static int set_one_more(void)
{
	int id = set_rule("one-more", SHMLIMIT_FUNNEL, 1);

	return id < 0 ? id : 0;
}

static int take_both(void)
{
	struct shmlimit_request requests[] = {
		{ .rule = WINDOW, .key = "new", .key_len = 3, .cost = 1 },
		{ .rule = OTHER_WINDOW, .key = "new", .key_len = 3, .cost = 1 },
	};

	return shmlimit_take_all(at_time(l, NOW_NS), requests, 2, NULL, NULL);
}

static int load(void)
{
	lseek(saved, 0, SEEK_SET);
	return shmlimit_load(copy, saved, 0, NULL);
}

static int create(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 4096 };

	return shmlimit_create(copy, &o, NULL);
}

static int create_fit(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 65536, .flags = SHMLIMIT_OPTION_FIT };

	return shmlimit_create(copy, &o, NULL);
}

/* No slot is free. */
static void fill_table(void)
{
	for (int i = 0; i < (int)SLOTS - 4; i++) {
		char key[16];

		snprintf(key, sizeof(key), "held %d", i);
		if (ask(HELD, key) != SHMLIMIT_ALLOWED)
			bail("the table is full");
	}
}

static void grow_before(void)
{
	if (grow() != 0)
		bail("grow");
}

/* As many rules as are reserved: pages of records, and of counters. */
static void fill_rules(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(l, &info);
	for (int i = RULES; i < (int)info.rules; i++) {
		char name[16];

		snprintf(name, sizeof(name), "rule%d", i);
		if (set_rule(name, SHMLIMIT_FUNNEL, 1) != i)
			bail("rules");
	}
}

#define TAKES .rule = WINDOW, .key = "new", .takes = 1
#define MOVES .key = "known", .taken = 1, .takes = 1, .grows = 1
#define LEAVES .rule = WINDOW, .key = "known", .taken = 1
static const struct scenario scenarios[] = {
	/* clang-format off */
	{ "take: a new key", take_new, NULL, { 0, 1, 0 }, SHMLIMIT_FULL_DENY, TAKES },
	{ "take: a new key, evicting", take_new, fill_table, { 0, 0, 0 }, SHMLIMIT_FULL_EVICT, .key = NULL },
	{ "take: a new key, allowed without room", take_new, NULL, { 0, 0, 0 }, SHMLIMIT_FULL_ALLOW, .key = NULL },
	{ "enter: a new key", enter_new, NULL, { 0, 1, 0 }, SHMLIMIT_FULL_DENY, .rule = PLACES, .key = "new", .takes = 1 },
	{ "take_all: new keys of two windows", take_both, NULL, { 0, 1, 0 }, SHMLIMIT_FULL_DENY, TAKES },
	{ "take: a key that moves to a larger table", take_known, grow_before, { 0, 1, 0 }, SHMLIMIT_FULL_DENY, .rule = WINDOW, MOVES },
	{ "enter: a key that moves to a larger table", enter_known, grow_before, { 0, 1, 0 }, SHMLIMIT_FULL_DENY, .rule = PLACES, MOVES },
	{ "grow", grow, NULL, { 0, -ENOSPC, -EINVAL }, SHMLIMIT_FULL_DENY, LEAVES, .grows = 1 },
	{ "rule_set: a larger window", set_larger, NULL, { WINDOW, WINDOW, WINDOW }, SHMLIMIT_FULL_DENY, .key = NULL },
	{ "rule_set: more places", set_more_places, NULL, { PLACES, PLACES, PLACES }, SHMLIMIT_FULL_DENY, .key = NULL },
	{ "rule_set: a longer list of rules", set_one_more, fill_rules, { 0, -ENOSPC, 0 }, SHMLIMIT_FULL_DENY, LEAVES },
	{ "load", load, NULL, { 0, -ENOSPC, -EEXIST }, SHMLIMIT_FULL_DENY, LEAVES, .makes_file = 1 },
	{ "create", create, NULL, { 0, -ENOSPC, -EEXIST }, SHMLIMIT_FULL_DENY, LEAVES, .makes_file = 1 },
	{ "create: as large as there is room for", create_fit, NULL, { 0, -ENOSPC, -EEXIST }, SHMLIMIT_FULL_DENY, LEAVES, .makes_file = 1 },
	/* clang-format on */
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* ---- Memory ---- */

static uint64_t room(void)
{
	struct statvfs status;

	return statvfs("/dev/shm", &status) == 0 ? status.f_bfree * status.f_frsize : 0;
}

static void end_memory(void)
{
	int fd = open("/dev/shm/filler", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || (room() > 0 && posix_fallocate(fd, 0, (off_t)room()) != 0))
		bail("/dev/shm is not filled");
	close(fd);
}

static void bring_memory(void)
{
	unlink("/dev/shm/filler");
}

/* ---- Processes ---- */

static unsigned died, wrong, inexact, unsound, files, undone; /* faults */
static unsigned refused, granted, kills;

/* A process, stopped before its call. */
static pid_t start(int (*work)(void), int traced)
{
	pid_t pid;

	atomic_store(&said->over, 0);
	pid = fork_bound();
	if (pid != 0)
		return pid;
	if (traced) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
	}
	said->answer = work();
	said->over = 1;
	_exit(0);
}

/* Up to where it enters or leaves a system call. Returns false when it has ended. */
static int step(pid_t pid, int how)
{
	int status;

	if (how != 0 && ptrace((enum __ptrace_request)how, pid, NULL, NULL) != 0)
		bail("ptrace: %s", strerror(errno));
	if (waitpid(pid, &status, 0) != pid)
		bail("waitpid: %s", strerror(errno));
	if (WIFSTOPPED(status) && (WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP))
		return 1;
	if (WIFSTOPPED(status)) {
		diag("%s: signal %d", now->title, WSTOPSIG(status));
		died++;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	} else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		diag("%s: ended with status %x", now->title, status);
		died++;
	}
	return 0;
}

static int answer_of(int (*work)(void))
{
	(void)step(start(work, 0), 0);
	return said->over ? said->answer : -EINTR;
}

/* Others, while memory has ended: what they have is theirs, and a new key gets an answer. */
static int look(void)
{
	said->counted[0] = drain(OTHER_WINDOW, "known", SMALL);
	said->counted[1] = drain(FUNNELS, "known", FUNNEL);
	said->counted[2] = drain(FUNNELS, "new", FUNNEL);
	(void)drain(PLACES, "stranger", 3);
	(void)drain(WINDOW, "stranger", 3);
	return shmlimit_verify(stage_name, NULL, 0);
}

/* All that the scenario's key still has. */
static int use_up(void)
{
	said->counted[0] = drain(now->rule, now->key, LARGER);
	return 0;
}

static int use_up_grown(void)
{
	said->counted[0] = drain(WINDOW, "known", LARGER);
	said->counted[1] = drain(PLACES, "known", LARGER);
	return 0;
}

enum way { ENDS, ENDS_KILLED, COMES, WAYS };

/* What others see while memory has ended, and what the call left. */
static void check_full(int answer, int was_killed)
{
	unsound += answer_of(look) != 0;
	/* A key with a log that has to move to a larger table needs memory there. */
	if (now->on_full == SHMLIMIT_FULL_DENY)
		inexact += (said->counted[0] != SMALL - 1 && (said->counted[0] != 0 || !now->grows)) ||
		           said->counted[1] != FUNNEL - 1 || said->counted[2] != FUNNEL;
	if (now->makes_file && !was_killed)
		files += (unsigned)shm_files() != (answer == 0 ? 3 : 2);
}

/* There is memory again: the same call succeeds, and the key has got no more and no less than its limit. */
static void check_after(int answer, int was_killed)
{
	int again = answer_of(now->call);
	uint64_t got = now->taken;

	undone += again != now->answer.with && again != now->answer.again;
	unsound += shmlimit_verify(stage_name, NULL, 0) != 0;
	if (now->makes_file)
		unsound += shmlimit_verify(copy, NULL, 0) != 0;
	if (now->key == NULL) {
		(void)answer_of(use_up_grown);
		inexact += said->counted[0] > LARGER || said->counted[1] > LARGER;
		return;
	}
	(void)answer_of(use_up);
	got += said->counted[0] + (unsigned)(now->takes && again == 0) + (unsigned)(now->takes && answer == 0);
	/* A process that was killed may have taken one. */
	inexact += got > LARGE || got + (unsigned)was_killed < LARGE;
}

/* The call; from its n-th stop on memory is as `way` says. Returns false if it has no such stop. */
static int perform(enum way way, unsigned n)
{
	int answer = -EINTR, inside;
	pid_t pid;

	make();
	if (way == COMES)
		end_memory();
	pid = start(now->call, 1);
	inside = step(pid, 0);
	for (unsigned i = 0; i < n && inside; i++)
		inside = step(pid, PTRACE_SYSCALL);
	if (way == COMES)
		bring_memory();
	else
		end_memory();
	if (inside && way == ENDS_KILLED) {
		kill(pid, SIGKILL);
		kills += waitpid(pid, NULL, 0) == pid;
	} else if (inside && !step(pid, PTRACE_CONT)) {
		answer = said->over ? said->answer : -EINTR;
		wrong += answer != now->answer.with && answer != now->answer.without;
		refused += answer == now->answer.without;
		granted += answer == now->answer.with;
	}
	if (inside) {
		end_memory();
		check_full(answer, way == ENDS_KILLED);
	}
	bring_memory();
	if (inside)
		check_after(answer, way == ENDS_KILLED);
	return inside;
}

static void play(const struct scenario *s)
{
	unsigned stops[WAYS] = { 0 };

	now = s;
	died = wrong = inexact = unsound = files = undone = refused = granted = kills = 0;
	for (enum way way = ENDS; way < WAYS; way++)
		while (died == 0 && perform(way, stops[way]))
			stops[way]++;
	is(died, 0, "%s: no process dies of a signal", s->title);
	is(wrong, 0, "%s: the answer is that of a call with memory, or of one without", s->title);
	is(inexact, 0,
	   "%s: a key with reserved memory gets exactly its limit, while memory is missing and when there is some again",
	   s->title);
	is(unsound, 0, "%s: the segment is sound, with and without memory", s->title);
	is(undone, 0, "%s: when there is memory again the same call succeeds", s->title);
	if (s->makes_file)
		is(files, 0, "%s: there is a segment, or no file", s->title);
	ok(stops[ENDS] > 2 && kills > 2 && granted > 0, "%s: memory ended, or came, at each of %u stops", s->title,
	   stops[ENDS] + stops[COMES]);
	if (s->answer.with != s->answer.without)
		ok(refused > 0, "%s: memory was missing %u times", s->title, refused);
}

/* A file to be loaded: with keys that have cells. */
static void save(void)
{
	now = &scenarios[0];
	make();
	saved = memfd_create("saved", MFD_CLOEXEC);
	if (shmlimit_save(l, saved) != 0)
		bail("save");
}

int main(void)
{
	pid_t pid;

	stage_begin("crash.full");
	if (private_shm("size=3m") != 0)
		return tap_skip_all("no /dev/shm of our own: mounting is not permitted");
	said = shared_memory(sizeof(*said));
	snprintf(copy, sizeof(copy), "%s.copy", stage_name);
	save();
	pid = start(create, 1);
	if (!step(pid, 0) || ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0)
		return tap_skip_all("ptrace is not permitted");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (size_t i = 0; i < SCENARIOS; i++)
		play(&scenarios[i]);
	shmlimit_close(l);
	return tap_done();
}
