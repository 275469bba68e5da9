/*
 * unnamed: the rules of shmlimit_throttle(), where two threads ask for the first time
 * at once. The other thread comes in between where the first has allocated what only
 * one of them will use: this program's allocations are wrapped when it is linked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include <urcu/urcu-bp.h>
#include <urcu/rculfhash.h>

#include "unit.h"

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

	for (int id = 0; id < 8; id++)
		n += shmlimit_rule_get(l, id, &rule) == 0;
	return n;
}

/* ---- The other thread ---- */

static struct triple others;
enum { NOWHERE, AT_TABLE, AT_ENTRY };
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

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
struct cds_lfht *__real__cds_lfht_new(unsigned long init, unsigned long min, unsigned long max, int flags,
                                      const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
                                      pthread_attr_t *attr);
struct cds_lfht *__wrap__cds_lfht_new(unsigned long init, unsigned long min, unsigned long max, int flags,
                                      const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
                                      pthread_attr_t *attr);

void *__wrap_malloc(size_t size)
{
	void *p = __real_malloc(size);

	come(AT_ENTRY);
	return p;
}

struct cds_lfht *__wrap__cds_lfht_new(unsigned long init, unsigned long min, unsigned long max, int flags,
                                      const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
                                      pthread_attr_t *attr)
{
	struct cds_lfht *table = __real__cds_lfht_new(init, min, max, flags, mm, flavor, attr);

	come(AT_TABLE);
	return table;
}

/* ---- */

static void fresh(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 8 };

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

	at_once(AT_TABLE, one, one, 1);
	at_once(AT_TABLE, one, other, 2);
	at_once(AT_ENTRY, one, one, 1);
	at_once(AT_ENTRY, one, other, 2);
	too_long();
	shmlimit_close(l);
	return tap_done();
}
