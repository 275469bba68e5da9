/*
 * world: see world.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handle.h"
#include "../kit/bench.h"
#include "../kit/lua.h"
#include "../kit/virtual.h"
#include "world.h"

#define SECOND_NS UINT64_C(1000000000)

struct world world;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);
void __wrap_cluster_lease(struct cluster *cluster, struct backend_question *questions, size_t n, uint64_t until_ns);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(virtual_now_ns / SECOND_NS);
	now->tv_nsec = (long)(virtual_now_ns % SECOND_NS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest)
{
	(void)clock;
	(void)flags;
	(void)rest;
	virtual_wait(virtual_now_ns + (uint64_t)pause->tv_sec * SECOND_NS + (uint64_t)pause->tv_nsec);
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < n; i++)
		((unsigned char *)bytes)[i] = (unsigned char)rng_draw(&world.rng);
	return (ssize_t)n;
}

double world_draw(double mean)
{
	return -mean * log(1 - rng_unit(&world.rng));
}

static uint64_t travel_ns(const struct world_caller *caller)
{
	return caller->latency_ns + (uint64_t)world_draw((double)caller->latency_ns / 4);
}

static int backend_hears(uint64_t at_ns)
{
	return at_ns < world.deaf_from_ns || at_ns >= world.deaf_until_ns;
}

/* The key's last part is its own; what is before tells the hosts apart. */
static void perform(struct backend_question *q)
{
	const char *key = (const char *)memrchr(q->key, '/', q->key_len) + 1;
	const struct script_question asked = { q->need, q->want, q->most };
	char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX], *args[SCRIPT_ARGUMENTS_MAX];
	int n = script_arguments(q->params, &asked, 0, text);
	int64_t reply[5];

	for (int i = 0; i < n; i++)
		args[i] = text[i];
	lua_ask(virtual_now_ns / 1000, key, q->key_len - (size_t)(key - (const char *)q->key), args, n, reply, 5);
	q->failure.kind = ERROR_NONE;
	q->leased = (uint64_t)reply[0];
	q->retry_us = reply[1] < 0 ? UINT64_MAX : (uint64_t)reply[1];
	q->left = (uint64_t)reply[2];
	q->full_us = (uint64_t)reply[3];
	q->lasts_us = (uint64_t)reply[4];
	world.left = q->left;
	world.left_ns = virtual_now_ns;
}

/* A question that arrives when no worker waits for the answer any more. */
struct late {
	struct backend_question question;
	struct script_params params;
	char key[64];
};

static void perform_late(void *of)
{
	struct late *late = of;

	perform(&late->question);
	free(late);
}

static void post_late(const struct backend_question *q, uint64_t at_ns)
{
	struct late *late = malloc(sizeof(*late));

	if (late == NULL)
		bench_fail("a question", "no memory");
	late->question = *q;
	late->params = *q->params;
	late->question.params = &late->params;
	late->question.key = memcpy(late->key, q->key, q->key_len);
	virtual_call(at_ns, perform_late, late);
}

static struct world_caller *caller_of(struct cluster *cluster)
{
	struct shmlimit_global *g = (void *)((char *)cluster - offsetof(struct shmlimit_global, cluster));

	return g->options.arg;
}

/* Connections are there. A backend takes no time itself, and is asked at whole microseconds, as its clock has them. */
void __wrap_cluster_lease(struct cluster *cluster, struct backend_question *q, size_t n, uint64_t until_ns)
{
	struct world_caller *caller = caller_of(cluster);
	uint64_t there_ns = (virtual_now_ns + travel_ns(caller) + 999) / 1000 * 1000,
		 back_ns = there_ns + travel_ns(caller);

	if (n != 1)
		bench_fail("a question", "not one");
	q->failure = (struct backend_error){ .kind = ERROR_LATE };
	world.commands++;
	if (!backend_hears(there_ns)) {
		world.unheard++;
		virtual_wait(until_ns);
		return;
	}
	if (there_ns >= until_ns) {
		post_late(q, there_ns);
		virtual_wait(until_ns);
		return;
	}
	virtual_wait(there_ns);
	perform(q);
	if (q->leased != 0)
		caller->debited_ns = there_ns;
	virtual_wait(back_ns < until_ns ? back_ns : until_ns);
	if (back_ns >= until_ns)
		q->failure.kind = ERROR_LATE;
}

/* ---- The ledger ---- */

static void keep(struct world_times *times, uint64_t ns)
{
	if (times->n == times->max) {
		times->max = 2 * times->max + 1024;
		times->ns = realloc(times->ns, times->max * sizeof(*times->ns));
		if (times->ns == NULL)
			bench_fail("times", "no memory");
	}
	times->ns[times->n++] = ns;
}

void world_admitted(struct world_ledger *ledger, const struct world_caller *caller)
{
	if (caller->debited_ns != 0)
		keep(&ledger->there, caller->debited_ns);
	else
		keep(&ledger->here, virtual_now_ns);
	keep(&ledger->answered, virtual_now_ns);
}

void world_ledger_clear(struct world_ledger *ledger)
{
	ledger->here.n = ledger->there.n = ledger->answered.n = 0;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * tokens * period - count * time of a stretch is that of its end less that of its begin, of which
 * the least so far is kept.
 */
struct excess {
	uint64_t begin_ns;
	__int128 admitted, least, most;
};

static void excess_add(struct excess *e, uint64_t at_ns, uint64_t count, uint64_t period_ns)
{
	__int128 level;

	e->begin_ns = e->admitted == 0 ? at_ns : e->begin_ns;
	level = e->admitted * period_ns - (__int128)count * (at_ns - e->begin_ns);
	e->least = e->admitted == 0 || level < e->least ? level : e->least;
	level += period_ns - e->least;
	e->most = e->admitted == 0 || level > e->most ? level : e->most;
	e->admitted++;
}

/* Both lists are in order. */
static double excess_of(const struct world_times *a, const struct world_times *b, uint64_t capacity, uint64_t count,
                        uint64_t period_ns)
{
	struct excess e = { 0, 0, 0, 0 };
	size_t i = 0, j = 0, m = b != NULL ? b->n : 0;

	while (i < a->n || j < m)
		if (j == m || (i < a->n && a->ns[i] < b->ns[j]))
			excess_add(&e, a->ns[i++], count, period_ns);
		else
			excess_add(&e, b->ns[j++], count, period_ns);
	return (double)e.most / (double)period_ns - (double)capacity;
}

double world_excess(struct world_ledger *ledger, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	if (ledger->there.n != 0)
		qsort(ledger->there.ns, ledger->there.n, sizeof(*ledger->there.ns), by_time);
	return excess_of(&ledger->here, &ledger->there, capacity, count, period_ns);
}

double world_excess_answered(const struct world_ledger *ledger, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	return excess_of(&ledger->answered, NULL, capacity, count, period_ns);
}
