/*
 * hosts: eight hosts of four processes each share one funnel through one redis-server. Over all of them no stretch of
 * time sees more than capacity + rate * time, whatever is killed, stopped or flushed in it. A host is a segment.
 *
 * Each time that the backend loses its data (it is killed, and nothing was on disk), one more capacity may be admitted.
 *
 * A denied worker waits for the time that its answer reports, so that it leaves the processor to the others. The test
 * runs for a number of events, or for SECONDS if that is longer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ledger.h"
#include "server.h"

#define HOSTS 8
#define PROCESSES 4
#define WORKERS (HOSTS * PROCESSES)

#define CAPACITY 4000u
#define COUNT 20000u
#define PERIOD_NS UINT64_C(1000000000)

#define PATIENCE_NS UINT64_C(2000000) /* a denied worker waits no longer than that */
#define STOP_NS UINT64_C(60000000)    /* the backend is stopped for so long: several deadlines */

enum event { KILL_WORKER, FLUSH_SCRIPTS, STOP_BACKEND, KILL_BACKEND, LULL, EVENTS };

struct scene {
	const char *title;
	const char *const *words; /* the backend's */
	uint64_t events;
	unsigned weight[EVENTS];
	int loses; /* a backend that is killed forgets */
	unsigned cost_max;
	unsigned refunds; /* this many of a hundred requests give back what they took, sooner or later */
};

struct play {
	const struct scene *scene;
	uint64_t seed;
	int rule[HOSTS];
	_Atomic uint64_t calls;
	_Atomic int lull; /* they ask for less than comes back: the funnel fills up, and leases are held */
	struct ledger ledger;
};

static struct play *play;

static struct shmlimit *host[HOSTS];
static struct server server;

static struct shmlimit_global *open_global(struct shmlimit *l)
{
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.deadline_ns = 20000000,
		.open_ns = 20000000,
	};
	struct shmlimit_global *g;
	int error = shmlimit_global_open(l, server.url, &options, &g);

	worker_check(error == 0, "open: %s", shmlimit_strerror(error));
	return g;
}

static void rest(uint64_t ns)
{
	struct timespec time = { 0, (long)ns };

	nanosleep(&time, NULL);
}

/* Give back what was taken, at once or after leases have come and gone. */
static void give_back(struct shmlimit *l, int rule, struct rng *rng, uint32_t tokens)
{
	uint64_t at;

	if (rng_below(rng, 2))
		rest(rng_below(rng, 50 * PATIENCE_NS));
	at = ledger_refund(&play->ledger, tokens, shmlimit_now(l));
	worker_check(shmlimit_refund(l, rule, "hot", 3, tokens, NULL) == 0, "refund");
	ledger_refunded(&play->ledger, at, shmlimit_now(l));
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)getpid() << 20 };
	struct shmlimit *l = host[index % HOSTS];
	struct shmlimit_global *g = open_global(l);
	int rule = play->rule[index % HOSTS];

	(void)crew;
	for (;;) {
		uint64_t began_ns = shmlimit_now(l), ended_ns;
		uint32_t cost = 1 + (uint32_t)rng_below(&rng, play->scene->cost_max);
		struct shmlimit_result r;
		int answer = shmlimit_global_take(g, rule, "hot", 3, cost, &r);

		ended_ns = shmlimit_now(l);
		worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
		atomic_fetch_add(&play->calls, 1);
		if (answer == SHMLIMIT_ALLOWED)
			ledger_write(&play->ledger, cost, began_ns, ended_ns);
		if (answer == SHMLIMIT_ALLOWED && rng_below(&rng, 100) < play->scene->refunds)
			give_back(l, rule, &rng, cost);
		if (answer == SHMLIMIT_DENIED)
			rest(r.retry_after_ns < PATIENCE_NS ? r.retry_after_ns : PATIENCE_NS);
		else if (atomic_load(&play->lull))
			rest(rng_below(&rng, 5 * PATIENCE_NS));
	}
}

/* Waits until any host has admitted something since. */
static void await_admissions(uint64_t n)
{
	uint64_t from = atomic_load(&play->ledger.entries);

	while (atomic_load(&play->ledger.entries) < from + n)
		crew_await_long();
}

static void await_ns(uint64_t ns)
{
	uint64_t from = shmlimit_now(host[0]);

	while (shmlimit_now(host[0]) - from < ns)
		crew_await_long();
}

static struct shmlimit_lease_counters sum_counters(void)
{
	struct shmlimit_lease_counters sum = { .struct_size = sizeof(sum) };

	for (int i = 0; i < HOSTS; i++) {
		struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

		shmlimit_lease_counters(host[i], &c);
		sum.leases += c.leases;
		sum.leased += c.leased;
		sum.spent += c.spent;
		sum.expired += c.expired;
		sum.denied += c.denied;
		sum.backend_errors += c.backend_errors;
		sum.breaker_openings += c.breaker_openings;
	}
	return sum;
}

/* On a busy machine it may take longer than several deadlines until a process has asked a backend that is gone. */
static void await_opening(void)
{
	while (sum_counters().breaker_openings == 0)
		crew_await_long();
}

static enum event choose(struct rng *rng, const unsigned weight[EVENTS])
{
	unsigned sum = 0, event = 0;
	uint64_t thrown;

	for (int i = 0; i < EVENTS; i++)
		sum += weight[i];
	thrown = rng_below(rng, sum);
	for (; thrown >= weight[event]; event++)
		thrown -= weight[event];
	return (enum event)event;
}

/* crew_await() takes any child that ended for a worker: no process may wait while the backend is down. */
static void happen(struct crew *crew, struct rng *rng, enum event event)
{
	int victim = (int)rng_below(rng, WORKERS);

	switch (event) {
	case KILL_WORKER:
		if (!crew_kill(crew, victim))
			bail("worker %d ended by itself", victim);
		crew_spawn(crew, victim, 0);
		break;
	case FLUSH_SCRIPTS:
		server_tell(&server, "SCRIPT FLUSH");
		break;
	case STOP_BACKEND:
		kill(server.pid, SIGSTOP);
		await_ns(STOP_NS);
		await_opening();
		kill(server.pid, SIGCONT);
		break;
	case KILL_BACKEND:
		server_kill(&server);
		await_ns(rng_below(rng, STOP_NS));
		server_start(&server);
		break;
	default:
		atomic_store(&play->lull, 1);
		await_admissions(CAPACITY);
		atomic_store(&play->lull, 0);
	}
}

/* In the environment's SECONDS this much time was given: all scenes together. */
static uint64_t given_ns(void)
{
	const char *given = getenv("SECONDS");

	return given == NULL ? 0 : strtoull(given, NULL, 10) * 1000000000u;
}

static void raise_hosts(void)
{
	for (int i = 0; i < HOSTS; i++) {
		host[i] = host_create(i, 4);
		play->rule[i] = lease_rule(host[i], "hosts", CAPACITY, COUNT, PERIOD_NS);
	}
}

static void raze_hosts(const char *title)
{
	char name[96];
	int wrong = 0;

	for (int i = 0; i < HOSTS; i++) {
		snprintf(name, sizeof(name), "%s.%d", stage_name, i);
		wrong += shmlimit_verify(name, NULL, 0) != 0;
		shmlimit_destroy(name);
		shmlimit_close(host[i]);
	}
	is(wrong, 0, "%s: every host's segment is sound", title);
}

static void perform(const struct scene *scene, uint64_t seed, uint64_t least_ns)
{
	unsigned happened[EVENTS] = { 0 }, losses;
	const char *title = scene->title;
	struct rng rng = { seed };
	struct shmlimit_lease_counters c;
	struct crew crew;
	uint64_t began_ns;
	double most;

	memset(play, 0, sizeof(*play));
	play->scene = scene;
	play->seed = seed;
	raise_hosts();
	server_begin(&server, scene->words);
	crew_start(&crew, WORKERS, work, NULL);
	began_ns = shmlimit_now(host[0]);
	for (uint64_t i = 0; i < scaled(scene->events) || shmlimit_now(host[0]) - began_ns < least_ns; i++) {
		/* Each of them once, at least. */
		enum event event = i < EVENTS && scene->weight[i] != 0 ? (enum event)i : choose(&rng, scene->weight);

		await_admissions(rng_below(&rng, CAPACITY / 4));
		happen(&crew, &rng, event);
		happened[event]++;
	}
	/* Whatever came last, all hosts go on after it; and ask for more than there is, until that is known. */
	do
		await_admissions(CAPACITY);
	while (sum_counters().denied == 0);
	for (int i = 0; i < WORKERS; i++)
		if (!crew_kill(&crew, i))
			bail("worker %d ended by itself", i);
	munmap(crew.gate, sizeof(*crew.gate));
	server_end(&server);

	c = sum_counters();
	most = ledger_most(&play->ledger, COUNT, PERIOD_NS);
	losses = scene->loses ? happened[KILL_BACKEND] : 0;
	ok(most <= (double)CAPACITY * (1 + losses),
	   "%s: no stretch of time sees more than the capacity and what leaks in it: %.1f", title, most);
	if (losses != 0)
		diag("a capacity and %.2f times as many more, for %u losses", most / CAPACITY - 1, losses);
	ok(c.spent + (happened[KILL_WORKER] + WORKERS) * scene->cost_max >= atomic_load(&play->ledger.admitted),
	   "%s: what was admitted was leased, and counted but for what the killed did not", title);
	ok(c.leased > 4 * c.leases, "%s: tokens are leased many at a time: %.0f", title,
	   (double)c.leased / (double)(c.leases | (c.leases == 0)));
	ok(c.denied > 0, "%s: denials are known here", title);
	for (int i = 0; i < EVENTS; i++)
		if (scene->weight[i] != 0)
			ok(happened[i] > 0, "%s: event %d did happen, %u times", title, i, happened[i]);
	if (happened[STOP_BACKEND] != 0)
		ok(c.backend_errors > 0 && c.breaker_openings > 0,
		   "%s: a backend that was gone was noticed, and let alone", title);
	diag("%s: %.1f s, %" PRIu64 " calls, %" PRIu64 " tokens admitted, %" PRIu64 " leases of %" PRIu64 ", %" PRIu64
	     " expired, %" PRIu64 " errors, %" PRIu64 " openings",
	     title, (double)(shmlimit_now(host[0]) - began_ns) / 1e9, atomic_load(&play->calls),
	     atomic_load(&play->ledger.admitted), c.leases, c.leased, c.expired, c.backend_errors, c.breaker_openings);
	raze_hosts(title);
}

int main(void)
{
	static const char *const memory[] = { "--appendonly", "no", NULL };
	/* Written before it is answered; what is written outlives a process, and fsync() is for a loss of power. */
	static const char *const disk[] = { "--appendonly", "yes", "--appendfsync", "no", NULL };
	static const struct scene scenes[] = {
		{ "workers are killed", memory, 20, { 8, 1, 0, 0, 1 }, 0, 3, 0 },
		{ "the backend is stopped, killed and comes back with all", disk, 15, { 4, 1, 4, 4, 2 }, 0, 3, 0 },
		{ "the backend is killed and forgets", memory, 10, { 2, 0, 2, 4, 1 }, 1, 1, 0 },
		{ "tokens are given back", memory, 20, { 2, 0, 0, 0, 2 }, 0, 3, 30 },
	};
	uint64_t seed;

	if (server_missing())
		return tap_skip_all("no redis-server");
	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("global.hosts");
	alarm((unsigned)(given_ns() / 1000000000u) + WATCHDOG_SECONDS);
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		perform(&scenes[i], seed + i * 1000003, given_ns() / (sizeof(scenes) / sizeof(scenes[0])));
	return tap_done();
}
