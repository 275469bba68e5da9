/*
 * unnamed: the rules of shmlimit_throttle(), where two threads ask for the first time
 * at once, where triples come and go, and where a process has no memory. The other
 * thread comes in between before the first puts a rule, or before it remembers it:
 * these calls, and allocations, are wrapped when this program is linked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "limiter.h"
#include "rule.h"
#include "../rng.h"
#include "unit.h"

#define RULES 8
#define TRIPLES 64
#define THREADS 4
#define ROUNDS 200

static struct shmlimit *l;

struct triple {
	uint64_t capacity, count, period_s;
};

static int throttle(struct triple t)
{
	int64_t reply[5];

	return shmlimit_throttle(l, "key", 3, t.capacity, t.count, t.period_s, 1, reply);
}

static int rules(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int n = 0;

	for (int id = 0; id < RULES; id++)
		n += shmlimit_rule_get(l, id, &rule) == 0;
	return n;
}

/* ---- The other thread ---- */

static struct triple others;
enum { NOWHERE, BEFORE_PUT, AFTER_PUT };
static int comes; /* where */

static void *ask(void *answer)
{
	*(int *)answer = throttle(others);
	return NULL;
}

/* Let it do all that it has to, if it comes here. */
static void come(int here)
{
	pthread_t thread;
	int answer = -1;

	if (comes != here)
		return;
	comes = NOWHERE;
	if (pthread_create(&thread, NULL, ask, &answer) != 0 || pthread_join(thread, NULL) != 0)
		bail("no thread");
	is(answer, SHMLIMIT_ALLOWED, "the other thread is admitted meanwhile");
}

int __real_rule_put(struct shmlimit *to, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
                    struct when when);
int __wrap_rule_put(struct shmlimit *to, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
                    struct when when);
int __real_rule_read(const struct shmlimit *from, uint32_t id, struct rule_view *view, char *name);
int __wrap_rule_read(const struct shmlimit *from, uint32_t id, struct rule_view *view, char *name);

int __wrap_rule_put(struct shmlimit *to, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
                    struct when when)
{
	come(BEFORE_PUT);
	return __real_rule_put(to, name, rule, wait_ns, when);
}

int __wrap_rule_read(const struct shmlimit *from, uint32_t id, struct rule_view *view, char *name)
{
	come(AFTER_PUT);
	return __real_rule_read(from, id, view, name);
}

static void fresh(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = RULES };

	shmlimit_close(l);
	l = unit_create("unnamed", &options);
}

static void at_once(int where, struct triple mine, struct triple other, int want)
{
	fresh();
	comes = where;
	others = other;
	is(throttle(mine), SHMLIMIT_ALLOWED, "the thread that was interrupted is admitted");
	is(comes, NOWHERE, "another thread did come in between");
	is(rules(), want, "there %s", want == 1 ? "is one rule for both" : "are two rules");
	is(throttle(mine), want == 1 ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED, "with what they left");
	is(rules(), want, "a triple that is asked again makes no more rules");
}

/* ---- Memory ---- */

static int allocations; /* while a thread throttles; each fails */
static int no_memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
int __real_posix_memalign(void **p, size_t alignment, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
int __wrap_posix_memalign(void **p, size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static int fails(void)
{
	allocations += no_memory;
	return no_memory;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t size)
{
	return fails() ? ENOMEM : __real_posix_memalign(p, alignment, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

static void without_memory(void)
{
	fresh();
	no_memory = 1;
	is(throttle((struct triple){ 2, 1, 3600 }), SHMLIMIT_ALLOWED, "the first triple is admitted without memory");
	is(throttle((struct triple){ 3, 1, 3600 }), SHMLIMIT_ALLOWED, "another triple is admitted without memory");
	is(throttle((struct triple){ 2, 1, 3600 }), SHMLIMIT_ALLOWED, "a known triple is admitted without memory");
	no_memory = 0;
	is(allocations, 0, "no triple needed an allocation");
}

/* ---- Triples that come and go ---- */

static struct triple triple_of(uint64_t n)
{
	return (struct triple){ 1000 + n, 1 + n % 3, 3600 + n % 2 };
}

/* Returns 1 if the call was decided by the triple that it named, or there was no room for the triple. */
static int is_decided_by_its_own(uint64_t n)
{
	struct triple t = triple_of(n);
	int64_t reply[5];
	int answer = shmlimit_throttle(l, "key", 3, t.capacity, t.count, t.period_s, 1, reply);

	return answer == -EXFULL || answer == -EAGAIN ||
	       (answer == SHMLIMIT_ALLOWED && reply[1] == (int64_t)t.capacity);
}

static void remove_one(uint64_t n)
{
	struct triple t = triple_of(n);
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "~%" PRIu64 ":%" PRIu64 ":%" PRIu64, t.capacity, t.count, t.period_s);
	shmlimit_rule_remove(l, name);
}

/* Many more than the handle has room for are made and removed, in a random order. */
static void come_and_go(struct rng *rng)
{
	int wrong = 0, most = 0;

	fresh();
	for (int i = 0; i < (int)scaled(20000); i++) {
		uint64_t n = rng_below(rng, TRIPLES);

		if (rng_below(rng, 4) == 0)
			remove_one(n);
		else
			wrong += !is_decided_by_its_own(n);
		most = i % 16 == 0 && rules() > most ? rules() : most;
	}
	is(wrong, 0, "each call is decided by its own triple while rules are removed and made again");
	is(most, RULES, "triples did use all rules");
}

static pthread_barrier_t round_begins, round_ends;
static _Atomic uint64_t wrong_in_threads;

static void *throttle_many(void *seed)
{
	struct rng rng = { (uint64_t)(uintptr_t)seed };

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&round_begins);
		for (int i = 0; i < 64; i++) {
			wrong_in_threads +=
				!is_decided_by_its_own(rng_below(&rng, RULES) + (uint64_t)(round * 3) % TRIPLES);
		}
		pthread_barrier_wait(&round_ends);
	}
	return NULL;
}

/* All threads remember the same triples at once; between two rounds all rules are removed. */
static void threads_at_once(void)
{
	pthread_t threads[THREADS];

	fresh();
	pthread_barrier_init(&round_begins, NULL, THREADS + 1);
	pthread_barrier_init(&round_ends, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, throttle_many, (void *)(uintptr_t)(i + 1)) != 0)
			bail("no thread");
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&round_begins);
		pthread_barrier_wait(&round_ends);
		for (uint64_t n = 0; n < TRIPLES + RULES; n++)
			remove_one(n);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	is((int)wrong_in_threads, 0, "each thread's call is decided by its own triple");
}

/* As a forked child may inherit them: taken by threads that it does not have. */
static void all_entries_are_taken(void)
{
	fresh();
	for (uint32_t i = 0; i < l->unnamed_room; i++)
		l->unnamed[i].place = 1;
	is(throttle((struct triple){ 2, 1, 3600 }), SHMLIMIT_ALLOWED, "a triple that cannot be remembered is admitted");
	is(throttle((struct triple){ 2, 1, 3600 }), SHMLIMIT_ALLOWED, "a triple that cannot be remembered is found");
	is(throttle((struct triple){ 2, 1, 3600 }), SHMLIMIT_DENIED, "a triple that cannot be remembered is denied");
	is(rules(), 1, "a triple that cannot be remembered has one rule");
}

/* The least period in seconds whose nanoseconds do not fit 64 bits, and others. */
static void too_long(void)
{
	static const uint64_t period_s[] = { UINT64_MAX / 1000000000 + 1, UINT64_MAX / 1000000000 + 2, UINT64_MAX / 2,
		                             UINT64_MAX };

	fresh();
	for (size_t i = 0; i < sizeof(period_s) / sizeof(period_s[0]); i++)
		is(throttle((struct triple){ 1, 1, period_s[i] }), -ERANGE,
		   "a period of %" PRIu64 " s, which is too long in nanoseconds, is refused", period_s[i]);
	is(rules(), 0, "a triple that is refused leaves no rule behind");
}

int main(void)
{
	const struct triple one = { 2, 1, 3600 }, other = { 3, 1, 3600 };
	struct rng rng = { rng_seed() };

	at_once(BEFORE_PUT, one, one, 1);
	at_once(BEFORE_PUT, one, other, 2);
	at_once(AFTER_PUT, one, one, 1);
	at_once(AFTER_PUT, one, other, 2);
	without_memory();
	come_and_go(&rng);
	threads_at_once();
	all_entries_are_taken();
	too_long();
	shmlimit_close(l);
	return tap_done();
}
