/*
 * save: a segment that is saved beside deciders, and loaded, gives no key more
 * than it had at some moment of the saving (I1), and none two slots (I3).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 4
#define KEYS 200u
#define CAPACITY 20000u
#define SLOW_NS ((uint64_t)86400 * 1000000000)
#define ROUNDS 12
#define DECISIONS 10000u

/* What workers took, each a key's tokens, before it counts as taken and after. */
struct shared {
	_Atomic uint64_t begun[KEYS], done[KEYS];
	_Atomic int stop;
};

static struct shared *shared;

static struct shmlimit *l;
static int slow, fast, window;
static char copy_name[96];

static void work(struct crew *crew, int index)
{
	struct rng rng = { *(uint64_t *)crew->arg + (uint64_t)index };

	while (!atomic_load(&shared->stop)) {
		uint64_t key = rng_below(&rng, KEYS), one = rng_below(&rng, 4 * KEYS);
		int id = rng_below(&rng, 2) ? slow : window;

		/* Keys of the fast rule are soon full again: their slots pass from hand to hand. */
		(void)shmlimit_take(l, fast, &one, sizeof(one), 1, NULL);
		if (id == window) {
			(void)shmlimit_take(l, window, &key, sizeof(key), 1, NULL);
			continue;
		}
		atomic_fetch_add(&shared->begun[key], 1);
		if (shmlimit_take(l, slow, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&shared->done[key], 1);
		else
			atomic_fetch_sub(&shared->begun[key], 1);
	}
}

/* `begun` less what was denied is at least, `done` at most, what was taken at any moment. */
static void look(const _Atomic uint64_t *from, uint64_t to[KEYS])
{
	for (uint64_t key = 0; key < KEYS; key++)
		to[key] = atomic_load(&from[key]);
}

static struct {
	uint64_t partly;
	unsigned failed, more, less, unsound, over;
} seen;

static void check_round(int fd)
{
	uint64_t done[KEYS], begun[KEYS];
	struct shmlimit *copy;
	struct shmlimit_result r;

	if (ftruncate(fd, 0) != 0)
		bail("ftruncate");
	lseek(fd, 0, SEEK_SET);
	look(shared->done, done);
	seen.failed += shmlimit_save(l, fd) != 0;
	look(shared->begun, begun);
	lseek(fd, 0, SEEK_SET);
	if (shmlimit_load(copy_name, fd, 0, &copy) != 0) {
		seen.failed++;
		return;
	}
	seen.unsound += shmlimit_verify(copy_name, NULL, 0) != 0;
	for (uint64_t key = 0; key < KEYS; key++) {
		if (shmlimit_peek(copy, slow, &key, sizeof(key), 1, &r) < 0)
			continue;
		seen.more += CAPACITY - r.remaining < done[key];
		seen.less += CAPACITY - r.remaining > begun[key];
		seen.partly += r.remaining < CAPACITY && r.remaining > 0;
	}
	shmlimit_close(copy);
	shmlimit_destroy(copy_name);
}

/* ---- Into a pipe that is read slowly, while each key moves to a larger table ---- */

#define MOVING_KEYS 3000u
#define PAGE 4096

static void take_each(int rule, uint64_t n)
{
	for (uint64_t key = 0; key < MOVING_KEYS; key++)
		if (shmlimit_take(l, rule, &key, sizeof(key), n, NULL) != SHMLIMIT_ALLOWED)
			bail("key %llu cannot take", (unsigned long long)key);
}

/*
 * The saver has read a part of the old table, for the pipe has room for a page. It is stopped there while the keys move. WHY
 * NOT let it wait for its reader: when the rest of the old table is empty, it goes on to the new one while keys move.
 */
static int save_slowly(int rule, int to)
{
	int pipe_fd[2], status;
	char page[PAGE];
	ssize_t n;
	pid_t saver;

	if (pipe(pipe_fd) != 0 || fcntl(pipe_fd[1], F_SETPIPE_SZ, PAGE) < 0 || (saver = fork()) < 0)
		bail("fork a saver: %s", strerror(errno));
	if (saver == 0)
		_exit(-shmlimit_save(l, pipe_fd[1]));
	close(pipe_fd[1]);
	for (int pages = 0; (n = read(pipe_fd[0], page, sizeof(page))) > 0; pages++) {
		if (write(to, page, (size_t)n) != n)
			bail("write");
		if (pages == 0) {
			if (kill(saver, SIGSTOP) != 0 || waitpid(saver, &status, WUNTRACED) != saver ||
			    !WIFSTOPPED(status))
				bail("stop the saver: %s", strerror(errno));
			take_each(rule, 1);
			kill(saver, SIGCONT);
		}
	}
	close(pipe_fd[0]);
	return waitpid(saver, &status, 0) == saver && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void saved_on_the_move(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 8192 };
	int rule, fd = memfd_create("state", MFD_CLOEXEC), right = 0;
	struct shmlimit *copy;

	if (fd < 0 || shmlimit_create(stage_name, &o, &l) != 0)
		bail("create");
	rule = stage_rule(l, "slow", 10, 1, SLOW_NS);
	take_each(rule, 5);
	if (shmlimit_grow(l, 32768) != 0)
		bail("grow");
	is(save_slowly(rule, fd), 0, "a segment is saved into a slow pipe while its keys move to a larger table");
	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(copy_name, fd, 0, &copy), 0, "what was saved while keys moved is loaded");
	is(shmlimit_verify(copy_name, NULL, 0), 0, "it is sound: keys that were saved from both tables have one slot");
	for (uint64_t key = 0; key < MOVING_KEYS; key++) {
		struct shmlimit_result r;

		right += shmlimit_peek(copy, rule, &key, sizeof(key), 1, &r) >= 0 && r.remaining == 4;
	}
	is(right, MOVING_KEYS, "each key has what it had after it moved");
	is(shmlimit_grow(copy, 0), 0, "no key is left in the old table of what is loaded");
	shmlimit_close(copy);
	shmlimit_destroy(copy_name);
	shmlimit_close(l);
	shmlimit_destroy(stage_name);
}

int main(void)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = 1024 };
	struct shmlimit_rule ring = {
		.struct_size = sizeof(ring), .algorithm = SHMLIMIT_WINDOW, .capacity = 64, .period_ns = 1000000
	};
	uint64_t seed = rng_seed(), before = 0, after;
	int fd = memfd_create("state", MFD_CLOEXEC);
	struct crew crew;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer's swaps are atomic within one process only");
	stage_begin("save");
	snprintf(copy_name, sizeof(copy_name), "%s.copy", stage_name);
	shared = shared_memory(sizeof(*shared));
	if (fd < 0 || shmlimit_create(stage_name, &o, &l) != 0)
		bail("create");
	slow = stage_rule(l, "slow", CAPACITY, 1, SLOW_NS);
	fast = stage_rule(l, "fast", 1, 1, 500000);
	window = shmlimit_rule_set(l, "window", &ring);
	crew_start(&crew, WORKERS, work, &seed);
	while (before < 1000)
		before = counters_of(l, slow).allowed;
	after = before;
	for (uint64_t i = 0; i < scaled(ROUNDS) || after - before < DECISIONS; i++) {
		check_round(fd);
		after = counters_of(l, slow).allowed;
	}
	atomic_store(&shared->stop, 1);
	is(crew_wait(&crew), 0, "all workers end well");
	ok(after - before >= DECISIONS, "they decided meanwhile");
	ok(counters_of(l, fast).reclaims > 1000, "slots went from key to key while it was saved");
	ok(seen.partly > 100, "keys were saved that had something left");
	is(seen.failed, 0, "it is saved and loaded");
	is(seen.unsound, 0, "what is loaded is sound, with no key in two slots");
	is(seen.more, 0, "no key has more than it had when saving began");
	is(seen.less, 0, "no key has less than when saving was done");
	shmlimit_close(l);
	shmlimit_destroy(stage_name);
	saved_on_the_move();
	return tap_done();
}
