/*
 * writer: what a process with write permission can do to others, and what it cannot (I7): each sentence of shmlimit.7
 * about it is a law here. tests/torture/hostile and tests/fuzz show what becomes of random noise.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/file.h>
#include <sys/stat.h>

#include "process.h"

#include "hash.h"
#include "limiter.h"
#include "table.h"

#define SECOND ((uint64_t)1000000000)
#define NOW_NS (1000 * SECOND)
#define CAPACITY 5u
#define FILL_NS SECOND
#define WAIT_NS (2 * SECOND)
#define SLACK_NS (FILL_NS / 2)
#define GONE 2 /* exit status of a process that reached the end */

static struct shmlimit *l; /* the victim's handle; no other process has one */
static char path[SHMLIMIT_PATH_MAX];
static int rule;

static void fresh(void)
{
	struct shmlimit_rule funnel = {
		.capacity = CAPACITY, .refill = CAPACITY, .period_ns = FILL_NS, .max_wait_ns = WAIT_NS
	};

	shmlimit_close(l);
	(void)unlink(path);
	l = stage_create(16, 4, SHMLIMIT_FULL_EVICT);
	rule = stage_rule_of(l, "r", funnel);
}

static int take(uint64_t tokens, uint64_t now_ns)
{
	return shmlimit_take(at_time(l, now_ns), rule, "key", 3, tokens, NULL);
}

static struct layout_slot *slot_of_key(void)
{
	uint64_t hash = hash_bytes(l->header->secret, (uint32_t)rule, "key", 3);

	return table_find(l->tables, hash, tag_pack(hash, (uint32_t)rule, 1));
}

/* ---- Through a mapping ---- */

static void tokens(void)
{
	struct layout_slot *slot;

	fresh();
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED, "a key takes all that it has");
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a key that took all that it had is denied");
	slot = slot_of_key();
	ok(slot != NULL,
	   "a process that knows the secret, which is in the header, finds the slot of a key that it guesses");
	slot->word |= CAPACITY;
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED, "a process with write access fills a funnel");
	slot->tag = slot->word = 0;
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED,
	   "a process with write access frees a slot, which is the same as filling it");
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a key whose slot was freed gets its capacity and no more");
	slot_of_key()->word |= 7;
	is(take(CAPACITY + 1, NOW_NS), SHMLIMIT_DENIED, "no number gives a key more than its capacity");
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED,
	   "a key gets its capacity, whatever number a writer leaves in its slot");
}

/* A word for each place where a time can stand, without tokens. */
static void lock_out(void)
{
	unsigned late = 0, denied = 0;

	fresh();
	take(1, NOW_NS);
	for (unsigned bit = 3; bit < 64; bit++) {
		slot_of_key()->word ^= (uint64_t)1 << bit;
		slot_of_key()->word &= ~(uint64_t)7;
		denied += take(1, NOW_NS) == SHMLIMIT_DENIED;
		late += take(CAPACITY, NOW_NS + WAIT_NS + SLACK_NS + FILL_NS) != SHMLIMIT_ALLOWED;
		slot_of_key()->tag = slot_of_key()->word = 0;
		take(1, NOW_NS);
	}
	ok(denied > 20, "a process with write access empties funnels");
	is(late, 0, "no number in a slot lasts longer than time to fill, longest debt and slack");
}

static void duplicates(void)
{
	struct layout_slot *mine, *other;

	fresh();
	take(1, NOW_NS);
	mine = slot_of_key();
	/* Of the key's window: with four lines each is in it. */
	other = mine == l->tables->slots ? l->tables->slots + 15 : l->tables->slots;
	other->tag = mine->tag;
	other->word = mine->word;
	is(shmlimit_verify(stage_name, NULL, 0), 1, "verify finds a key that was given two slots");
	is(take(CAPACITY + 1, NOW_NS), SHMLIMIT_DENIED,
	   "a key that was given two slots has no more than its capacity at once");
	is(shmlimit_reset(l, rule, NULL, 0), 2, "a reset of the rule frees both slots of a key");
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED, "a key whose two slots were freed has its capacity");
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a key whose two slots were freed has one slot");
}

/* Describe a table that the segment could grow to, but did not. */
static void invent_table(int moving)
{
	l->header->tables[1].offset = l->tables_offset;
	l->header->tables[1].lines = l->lines_max;
	l->header->state = state_pack(1, moving);
}

static void switches(void)
{
	struct shmlimit *out;

	fresh();
	take(CAPACITY, NOW_NS);
	l->header->state |= STATE_OFF;
	is(take(1, NOW_NS), SHMLIMIT_ALLOWED, "a process with write access switches the segment off");
	is(shmlimit_enable(l, 1), 0, "a segment that a writer switched off can be switched on");
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a segment that is switched on again has what its keys had");
	l->header->state = UINT64_MAX - STATE_OFF;
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a larger table that there cannot be is not believed");
	invent_table(0);
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a larger table for which nothing was reserved is not believed");
	invent_table(1);
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "a larger table for which nothing was reserved is not moved to");
	is(shmlimit_open(stage_name, 0, NULL, &out), -EUCLEAN, "a segment that describes such a table is not opened");
	is(shmlimit_open(stage_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &out), -EUCLEAN,
	   "a segment that describes such a table is not opened read-only");
}

/*
 * A record names an algorithm in eight bits, and four exist. Each number in turn: a key in debt, so that the answer has
 * a wait, and a result that is full of noise before.
 */
static void algorithms(void)
{
	unsigned waits = 0, limits = 0, answers = 0;

	fresh();
	for (uint64_t algorithm = 0; algorithm < 256; algorithm++) {
		struct layout_params *params = &l->rules[rule].params[1];
		struct shmlimit_result r;
		int answer;

		params->shape = (params->shape & ~(UINT64_C(255) << 16)) | algorithm << 16;
		memset(&r, 0xa5, sizeof(r));
		answer = shmlimit_reserve(at_time(l, NOW_NS), rule, "key", 3, 1, WAIT_NS, &r);
		answers += answer >= 0 && answer <= SHMLIMIT_LEASE_WAIT;
		waits += r.wait_ns <= WAIT_NS;
		limits += r.limit <= CAPACITY;
	}
	is(answers, 256, "a writer that names any algorithm in a rule does not keep a reservation from an answer");
	is(waits, 256,
	   "a writer that names any algorithm does not make a reservation wait longer than the caller allows");
	is(limits, 256, "a writer that names any algorithm does not make a caller get an unfilled result");
}

static void rule_names(void)
{
	static const char noise[] = "a\x1b[2J\n[b]\xc2\x9b"
				    "1m/%";
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	fresh();
	memcpy(l->rules[rule].name, noise, sizeof(noise));
	is(shmlimit_rule_name(l, rule, name), 0, "a rule whose name a writer wrote over has a name still");
	is_str(name, "a??2J??b???1m??", "in which each byte that no rule's name has is a question mark");
	memset(l->rules[rule].name, 'x', sizeof(l->rules[rule].name));
	is(shmlimit_rule_name(l, rule, name), 0, "a rule's name that has no end is read");
	is((int)strlen(name), SHMLIMIT_RULE_NAME_MAX, "a rule's name that has no end is no longer than a name");
}

static void header(void)
{
	struct shmlimit *out;
	uint32_t lines = (uint32_t)l->header->lines;

	fresh();
	l->header->lines = UINT64_MAX;
	l->header->slots_offset = UINT64_MAX - 7;
	is(shmlimit_open(stage_name, 0, NULL, &out), -EUCLEAN,
	   "a process with write access spoils the header, so that no process can open the segment");
	is(take(CAPACITY, NOW_NS), SHMLIMIT_ALLOWED, "a process that has a spoilt segment open goes on");
	is(take(1, NOW_NS), SHMLIMIT_DENIED, "deciding as before");
	ok(l->tables->lines == lines, "an open handle keeps the geometry that it has checked");
	is(shmlimit_rule_remove(l, "r"), 0, "a process that has a spoilt segment open removes rules");
	is(shmlimit_destroy(stage_name), 0, "a spoilt segment can be destroyed");
}

/* ---- The file ---- */

/* Each call that needs the lock; two of them do not wait for it. */
enum { SET, REMOVE, GROW, SAVE, REPAIR, SET_AT_ONCE, THROTTLE, CALLS };

/* clang-format off */
static const char *const calls[CALLS] = {
	[SET] = "rule_set", [REMOVE] = "rule_remove", [GROW] = "grow", [SAVE] = "save", [REPAIR] = "repair",
	[SET_AT_ONCE] = "rule_set with NO_WAIT", [THROTTLE] = "the first throttle",
};
/* clang-format on */

struct locked {
	_Atomic int held;
	int answer[CALLS];
};

static void hold_lock(struct crew *crew, int index)
{
	int fd = open(path, O_RDONLY);

	(void)index;
	worker_check(flock(fd, LOCK_EX) == 0, "flock: %s", strerror(errno));
	atomic_store(&((struct locked *)crew->arg)->held, 1);
	for (;;)
		pause();
}

static int call(int which)
{
	struct shmlimit_rule other = { .struct_size = sizeof(other), .capacity = 1, .refill = 1, .period_ns = SECOND };
	int fd = -1, error;

	switch (which) {
	case SET_AT_ONCE:
		other.flags = SHMLIMIT_RULE_NO_WAIT;
		return shmlimit_rule_set(l, "r2", &other);
	case SET:
		return shmlimit_rule_set(l, "r2", &other);
	case REMOVE:
		return shmlimit_rule_remove(l, "r2");
	case GROW:
		return shmlimit_grow(l, 64);
	case SAVE:
		fd = memfd_create("saved", MFD_CLOEXEC);
		worker_check(fd >= 0, "memfd_create: %s", strerror(errno));
		error = shmlimit_save(l, fd);
		close(fd);
		return error;
	case REPAIR:
		return shmlimit_repair(stage_name, NULL, 0);
	default:
		return shmlimit_throttle(l, "key", 3, 7, 1, 60, 1, NULL);
	}
}

static void lock(void)
{
	struct locked *locked = shared_memory(sizeof(*locked));
	pid_t waiting[CALLS];
	struct crew holder;
	int decided = 0;

	fresh();
	crew_start(&holder, 1, hold_lock, locked);
	while (!atomic_load(&locked->held))
		crew_await();
	for (uint64_t i = 0; i < 10000; i++)
		decided += take(1, NOW_NS + i * SECOND) == SHMLIMIT_ALLOWED;
	is(decided, 10000, "a process that can only read holds the lock, and decisions go on");
	/* All at once: each waits some seconds. */
	for (int i = 0; i < CALLS; i++) {
		pid_t pid = fork_bound();

		if (pid == 0) {
			locked->answer[i] = call(i);
			_exit(0);
		}
		waiting[i] = pid;
	}
	for (int i = 0; i < CALLS; i++) {
		ok(wait_for(waiting[i]), "%s comes back while the lock is held", calls[i]);
		is(locked->answer[i], -EAGAIN, "%s: the lock is another's", calls[i]);
	}
	ok(crew_kill(&holder, 0), "the holder ends");
	is(call(SET_AT_ONCE), 1, "a rule is then set at once");
	is(call(REMOVE), 0, "a rule is then removed");
	is(call(SAVE), 0, "the segment is then saved");
	is(call(REPAIR), 0, "nothing has to be repaired");
	is(call(GROW), 0, "a segment grows after a writer described tables");
}

/* Decide in a process, which the file is cut under. Returns how it ended. */
static int decide_apart(int (*cut)(void))
{
	int status;
	pid_t pid = fork_bound();

	if (pid == 0) {
		signal(SIGBUS, SIG_DFL); /* a sanitizer's report of it is another death */
		take(1, NOW_NS);
		if (cut() != 0)
			_exit(1);
		take(1, NOW_NS);
		_exit(GONE);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			bail("waitpid");
	return status;
}

static int truncate_to_nothing(void)
{
	return truncate(path, 0);
}

static int truncate_to_a_page(void)
{
	return truncate(path, 4096);
}

/* What is behind it was reserved, and is not any more. */
static int truncate_and_back(void)
{
	return truncate(path, 0) == 0 ? truncate(path, (off_t)l->size) : -1;
}

static int punch(void)
{
	int fd = open(path, O_RDWR);

	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, (off_t)l->size - 4096);
}

static const char *filler(void)
{
	static char aside[SHMLIMIT_PATH_MAX + 8];

	snprintf(aside, sizeof(aside), "%s.aside", path);
	return aside;
}

/* Nothing of the file system is free any more. */
static int fill(void)
{
	static char page[4096];
	int fd = open(filler(), O_WRONLY | O_CREAT, 0600);

	while (write(fd, page, sizeof(page)) > 0)
		;
	return 0;
}

static int punch_and_fill(void)
{
	return punch() == 0 ? fill() : -1;
}

static int invent_and_fill(void)
{
	invent_table(0);
	return fill();
}

static int died_of_bus(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

static int lived(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == GONE;
}

static void truncation(void)
{
	struct shmlimit *out;

	fresh();
	ok(died_of_bus(decide_apart(truncate_to_nothing)), "a process that decides in a truncated file dies of SIGBUS");
	is(shmlimit_gone(l), 0, "a process can ask whether a truncated segment was replaced");
	is(shmlimit_open(stage_name, 0, NULL, &out), -EMEDIUMTYPE, "a file truncated to nothing is not ours");
	is(shmlimit_destroy(stage_name), -EMEDIUMTYPE,
	   "a file truncated to nothing is not destroyed: it has to be removed otherwise");
	fresh();
	ok(died_of_bus(decide_apart(truncate_to_a_page)),
	   "a process that decides where only the header is left dies of SIGBUS");
	is(shmlimit_open(stage_name, 0, NULL, &out), -EUCLEAN, "a file truncated to its header is not opened");
	is(shmlimit_destroy(stage_name), 0, "a file truncated to its header can be destroyed");
	fresh();
	ok(lived(decide_apart(truncate_and_back)), "a file that is long again harms no process while there is room");
	is(take(1, NOW_NS), -ESRCH, "a file that is long again has no rules");
	fresh();
	ok(lived(decide_apart(punch)), "a hole in a file harms no process while there is room");
	is(take(1, NOW_NS), -ESRCH, "where rules were");
}

static void full(void)
{
	const char *title = "unless the file system is full: then a process that writes there dies of SIGBUS",
		   *invented = "a table that was not reserved crashes no process while the file system is full";
	struct {
		int not_permitted, lived;
	} *seen = shared_memory(sizeof(*seen));
	int ended_well;
	pid_t pid = fork_bound();

	if (pid == 0) {
		seen->not_permitted = private_shm("size=1m");
		if (seen->not_permitted != 0)
			_exit(0);
		fresh();
		seen->lived = lived(decide_apart(invent_and_fill));
		unlink(filler());
		fresh();
		_exit(died_of_bus(decide_apart(punch_and_fill)) ? 0 : 1);
	}
	ended_well = wait_for(pid);
	if (seen->not_permitted != 0) {
		tap_skip(invented, "no /dev/shm of one's own is permitted");
		tap_skip(title, "no /dev/shm of one's own is permitted");
		return;
	}
	ok(seen->lived, "%s", invented);
	ok(ended_well, "%s", title);
}

int main(void)
{
	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("writer");
	(void)shmlimit_path(stage_name, path);
	tokens();
	lock_out();
	duplicates();
	switches();
	algorithms();
	rule_names();
	header();
	lock();
	truncation();
	full();
	shmlimit_close(l);
	return tap_done();
}
