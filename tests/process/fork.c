/*
 * fork: a handle that was opened before fork() works in parent, children and
 * grandchildren; a process may open a segment twice, decide from 8 threads on
 * one handle, and fork while its threads decide or set rules
 * (I10). Each time exactly the capacity is admitted (I1, I2), and all is counted.
 *
 * Time stands still throughout.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "process.h"

#define NOW_NS 1000000000000u
#define CAPACITY 200000u
#define THREADS 8
#define FORKS 50
#define ROUNDS_MAX 1000 /* for contention to be seen */

struct play {
	_Atomic uint64_t allowed, denied, errors;
	_Atomic int stop, running, closed, pass;
	_Atomic uint64_t counter;
};

static struct play *play;

static struct shmlimit *handle, *duplicate;
static int rule;

/* A fresh segment, its handle, its rule, and books to fill in. */
static void fresh(void)
{
	memset(play, 0, sizeof(*play));
	handle = stage_create(64, 8, SHMLIMIT_FULL_EVICT);
	rule = stage_rule(handle, "fork", CAPACITY, 1, 1000000000);
}

static void take(struct shmlimit *l)
{
	int answer = shmlimit_take(at_time(l, NOW_NS), rule, "key", 3, 1, NULL);

	if (answer == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->allowed, 1);
	else if (answer == SHMLIMIT_DENIED)
		atomic_fetch_add(&play->denied, 1);
	else
		atomic_fetch_add(&play->errors, 1);
}

static void drain(struct shmlimit *l)
{
	uint64_t denied = atomic_load(&play->denied);

	do {
		take(l);
	} while (atomic_load(&play->denied) == denied && atomic_load(&play->errors) == 0);
}

/* The laws that hold however the taking was shared out; the segment is done with. */
static void settle(const char *title)
{
	struct shmlimit_counters c;

	drain(handle);
	c = counters_of(handle, rule);
	is(play->allowed, CAPACITY, "%s: exactly the capacity is admitted", title);
	is(play->errors, 0, "%s: no call fails", title);
	is(c.allowed, play->allowed, "%s: the counter of allowed is the sum of the answers", title);
	is(c.denied, play->denied, "%s: the counter of denied is the sum of the answers", title);
	is(c.claims, 1, "%s: the key has one slot", title);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "%s: the segment is sound", title);
	stage_hide();
	shmlimit_close(handle);
	handle = NULL;
}

/* Play on fresh segments until there was contention, and settle the last. `act` returns how many ended badly. */
static void perform(const char *title, int (*act)(void))
{
	uint64_t failed = 0;
	int bad = 0, off = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		fresh();
		bad += act();
		failed = counters_of(handle, rule).failed_cas;
		if (bad != 0 || failed > 0 || round == ROUNDS_MAX - 1)
			break;
		drain(handle);
		off += atomic_load(&play->allowed) != CAPACITY;
		stage_hide();
		shmlimit_close(handle);
	}
	is(bad, 0, "%s: all end well", title);
	is(off, 0, "%s: exactly the capacity was admitted each time before", title);
	ok(failed > 0, "%s: they did contend", title);
	settle(title);
}

static void take_share(struct crew *crew, int index)
{
	(void)index;
	for (unsigned i = 0; i < CAPACITY / (unsigned)crew->n; i++)
		take(handle);
}

static int parent_and_children(void)
{
	struct crew crew;

	crew_start(&crew, 4, take_share, NULL);
	take_share(&crew, 0);
	return crew_wait(&crew);
}

/* The child of a child takes on when its parent has closed the handle and gone. */
static void bear(struct crew *crew, int index)
{
	pid_t pid = fork();

	worker_check(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		alarm(WATCHDOG_SECONDS);
		while (!atomic_load(&play->closed))
			sched_yield();
		take_share(crew, index);
		atomic_fetch_sub(&play->running, 1);
		_exit(0);
	}
	shmlimit_close(handle);
}

static int grandchildren(void)
{
	int bad;

	atomic_store(&play->running, 4);
	bad = crew_run(4, bear, NULL);
	atomic_store(&play->closed, 1);
	while (bad == 0 && atomic_load(&play->running) > 0)
		sched_yield();
	return bad;
}

static void take_twice(struct crew *crew, int index)
{
	(void)index;
	for (unsigned i = 0; i < CAPACITY / (unsigned)crew->n; i++)
		take(i % 2 == 0 ? handle : duplicate);
}

static int opened_twice(void)
{
	int bad;

	if (shmlimit_open(stage_name, 0, NULL, &duplicate) != 0 || duplicate == handle)
		return 1;
	bad = crew_run(4, take_twice, NULL);
	drain(duplicate);
	shmlimit_close(duplicate);
	return bad;
}

static void *take_until_stopped(void *arg)
{
	struct shmlimit *l = arg;

	while (!atomic_load(&play->stop)) {
		take(l);
		atomic_fetch_add(&play->counter, 1);
	}
	return NULL;
}

static void start_threads(pthread_t *threads, int n, void *(*work)(void *), void *arg)
{
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, arg) != 0)
			bail("no thread");
}

static void stop_threads(pthread_t *threads, int n)
{
	atomic_store(&play->stop, 1);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static int threads_on_one_handle(void)
{
	pthread_t threads[THREADS];

	start_threads(threads, THREADS, take_until_stopped, handle);
	while (atomic_load(&play->counter) < 2 * CAPACITY)
		sched_yield();
	stop_threads(threads, THREADS);
	return 0;
}

static void take_a_little(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	for (unsigned i = 0; i < 1000; i++)
		take(handle);
}

static int forks_beside_deciding_threads(void)
{
	pthread_t threads[4];
	int bad = 0;

	start_threads(threads, 4, take_until_stopped, handle);
	for (int i = 0; i < FORKS && bad == 0; i++)
		bad = crew_run(2, take_a_little, NULL);
	stop_threads(threads, 4);
	return bad;
}

static void *switch_modes(void *arg)
{
	struct shmlimit_rule r = { .struct_size = sizeof(r), .capacity = 5, .refill = 1, .period_ns = 1000 };

	(void)arg;
	for (uint32_t i = 0; !atomic_load(&play->stop); i++) {
		r.mode = i % 3;
		if (shmlimit_rule_set(handle, "other", &r) < 0)
			atomic_fetch_add(&play->errors, 1);
		atomic_fetch_add(&play->counter, 1);
	}
	return NULL;
}

/* Lives on, deciding nothing, with whatever it has inherited. */
static void linger(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	for (;;)
		pause();
}

/* Fork while threads set rules; the children stay. All this in a process that may hang. */
static void set_rules_beside_lingerers(void)
{
	struct crew crews[FORKS];
	pthread_t threads[2];
	int bad = 0;

	start_threads(threads, 2, switch_modes, NULL);
	for (int i = 0; i < FORKS; i++) {
		uint64_t before = atomic_load(&play->counter);

		crew_start(&crews[i], 1, linger, NULL);
		/* The setters go on: no process holds their lock. */
		while (atomic_load(&play->counter) < before + 4)
			sched_yield();
		atomic_store(&play->pass, i + 1);
	}
	stop_threads(threads, 2);
	for (int i = 0; i < FORKS; i++)
		bad += !crew_kill(&crews[i], 0);
	_exit(bad != 0);
}

static void forks_beside_rule_setters(void)
{
	const char *title = "forks while threads set rules";
	pid_t pid;

	fresh();
	pid = fork_bound();
	if (pid == 0) {
		/* Not a limit on what takes long, but the end of waiting for what never comes. */
		alarm(WATCHDOG_SECONDS / 2);
		set_rules_beside_lingerers();
	}
	ok(wait_for(pid), "%s: no child keeps the lock of a rule's writer", title);
	is(play->pass, FORKS, "%s: rules can be set after each fork", title);
	settle(title);
}

int main(void)
{
	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("fork");
	play = shared_memory(sizeof(*play));
	perform("parent and children", parent_and_children);
	perform("grandchildren", grandchildren);
	perform("opened twice in one process", opened_twice);
	perform("8 threads on one handle", threads_on_one_handle);
	perform("forks while threads decide", forks_beside_deciding_threads);
	forks_beside_rule_setters();
	return tap_done();
}
