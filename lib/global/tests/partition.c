/*
 * partition: hosts in network namespaces of their own, wires of theirs to the
 * backend's that are cut and joined again. Who is cut off admits what it has leased
 * and then nothing, or its share, as configured; the others go on; it comes back
 * by itself; and over all of them no stretch of time sees more than its due.
 *
 * All of it is in namespaces of the test's own, and gone with it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ledger.h"
#include "server.h"

#define HOSTS 3
#define WORKERS 6

#define CAPACITY 1000u
#define COUNT 2000u
#define PERIOD_NS UINT64_C(1000000000)
#define CUTS 4

struct play {
	int rule[HOSTS];
	_Atomic uint64_t admitted[HOSTS], leased[HOSTS];
	struct ledger ledger;
};

static struct play *play;

static struct shmlimit *host[HOSTS];
static pid_t holder[HOSTS];
static struct server server;
static uint32_t on_failure;

static int run(const char *format, ...)
{
	char command[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	return system(command) == 0 ? 0 : -1;
}

/* A process that does nothing but keep a namespace. Returns 0, or -1 where there can be none. */
static int hold(int i)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready) != 0)
		bail("pipe: %s", strerror(errno));
	holder[i] = fork_bound();
	if (holder[i] == 0) {
		byte = unshare(CLONE_NEWNET) == 0;
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1 || byte == 0)
		return -1;
	close(ready[0]);
	return 0;
}

/* The backend's namespace is ours; a wire from it to each host's. */
static int lay_wires(void)
{
	if (unshare(CLONE_NEWNET) != 0 || run("ip link set lo up 2>/dev/null") != 0)
		return -1;
	for (int i = 0; i < HOSTS; i++) {
		if (hold(i) != 0 ||
		    run("ip link add e%d type veth peer name wire netns %d 2>/dev/null", i, (int)holder[i]) != 0 ||
		    run("ip addr add 10.77.%d.1/24 dev e%d && ip link set e%d up", i, i, i) != 0 ||
		    run("nsenter --net=/proc/%d/ns/net sh -c 'ip addr add 10.77.%d.2/24 dev wire && ip link set wire up'",
		        (int)holder[i], i) != 0)
			return -1;
	}
	return 0;
}

static void work(struct crew *crew, int index)
{
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.on_failure = on_failure,
		.local_milli = 250,
		.deadline_ns = 20000000,
		.open_ns = 20000000,
	};
	int i = index % HOSTS, fd, error;
	struct shmlimit *l = host[i];
	struct shmlimit_global *g;
	char text[64];

	(void)crew;
	snprintf(text, sizeof(text), "/proc/%d/ns/net", (int)holder[i]);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	worker_check(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "setns: %s", strerror(errno));
	snprintf(text, sizeof(text), "redis://10.77.%d.1:6379", i);
	error = shmlimit_global_open(l, text, &options, &g);
	worker_check(error == 0, "open: %s", shmlimit_strerror(error));
	for (;;) {
		uint64_t began_ns = shmlimit_now(l), ended_ns;
		int answer = shmlimit_global_take(g, play->rule[i], "hot", 3, 1, NULL);
		struct timespec pause = { 0, answer == SHMLIMIT_DENIED ? 1000000 : 0 };

		ended_ns = shmlimit_now(l);
		worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
		if (answer == SHMLIMIT_ALLOWED) {
			ledger_write(&play->ledger, 1, began_ns, ended_ns);
			atomic_fetch_add(&play->admitted[i], 1);
		}
		nanosleep(&pause, NULL);
	}
}

/* Until this host was admitted as much more. */
static void await_admitted(int i, uint64_t n)
{
	uint64_t from = atomic_load(&play->admitted[i]);

	while (atomic_load(&play->admitted[i]) < from + n)
		crew_await_long();
}

static uint64_t errors_of(int i)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	shmlimit_lease_counters(host[i], &c);
	return c.backend_errors;
}

static void await_errors(int i, uint64_t n)
{
	uint64_t from = errors_of(i);

	while (errors_of(i) < from + n)
		crew_await_long();
}

static void raise_hosts(void)
{
	memset(play, 0, sizeof(*play));
	for (int i = 0; i < HOSTS; i++) {
		host[i] = host_create(i, 8);
		play->rule[i] = lease_rule(host[i], "cut", CAPACITY, COUNT, PERIOD_NS);
	}
}

static void raze_hosts(struct crew *crew)
{
	char name[96];

	for (int i = 0; i < WORKERS; i++)
		if (!crew_kill(crew, i))
			bail("worker %d ended by itself", i);
	munmap(crew->gate, sizeof(*crew->gate));
	for (int i = 0; i < HOSTS; i++) {
		snprintf(name, sizeof(name), "%s.%d", stage_name, i);
		shmlimit_destroy(name);
		shmlimit_close(host[i]);
	}
	server_tell(&server, "FLUSHALL");
}

/* Cut off, a host is denied what it has not leased. */
static void denied(uint64_t seed)
{
	struct rng rng = { seed };
	unsigned spent = 0, joined = 0;
	struct crew crew;
	double most;

	on_failure = SHMLIMIT_GLOBAL_DENY;
	raise_hosts();
	crew_start(&crew, WORKERS, work, NULL);
	for (int i = 0; i < HOSTS; i++)
		await_admitted(i, CAPACITY / 4);
	for (int cut = 0; cut < CUTS; cut++) {
		int i = (int)rng_below(&rng, HOSTS), other = (i + 1) % HOSTS;
		uint64_t before;

		run("ip link set e%d down", i);
		/* A lease is over long before this many calls have failed, each with its deadline and the breaker's time. */
		await_errors(i, 12);
		before = atomic_load(&play->admitted[i]);
		await_admitted(other, CAPACITY / 4);
		spent += atomic_load(&play->admitted[i]) != before;
		run("ip link set e%d up", i);
		await_admitted(i, CAPACITY / 4);
		joined += atomic_load(&play->admitted[i]) > before;
	}
	is(spent, 0, "a host that is cut off admits nothing any more, and the others go on");
	is(joined, CUTS, "a host that is joined again continues by itself");
	for (int i = 0; i < HOSTS; i++)
		run("ip link set e%d down", i);
	for (int i = 0; i < HOSTS; i++)
		await_errors(i, 3);
	for (int i = 0; i < HOSTS; i++)
		run("ip link set e%d up", i);
	for (int i = 0; i < HOSTS; i++)
		await_admitted(i, 10);
	most = ledger_most(&play->ledger, COUNT, PERIOD_NS);
	ok(most <= CAPACITY, "no stretch of time sees more than the capacity and what leaks in it: %.1f", most);
	raze_hosts(&crew);
}

/* How many funnels the backend has. */
static long long funnels(void)
{
	redisReply *reply = server_ask(&server, "EXISTS shmlimit:{cut/hot}");
	long long n = reply->integer;

	freeReplyObject(reply);
	return n;
}

/* Cut off, a host has its share. */
static void shared(void)
{
	struct crew crew;
	double most;

	on_failure = SHMLIMIT_GLOBAL_LOCAL;
	raise_hosts();
	for (int i = 0; i < HOSTS; i++)
		run("ip link set e%d down", i);
	crew_start(&crew, WORKERS, work, NULL);
	for (int i = 0; i < HOSTS; i++)
		await_admitted(i, CAPACITY);
	most = ledger_most(&play->ledger, COUNT, PERIOD_NS);
	ok(most <= CAPACITY, "while all are cut off, hosts with a quarter of the limit each keep to it: %.1f", most);
	is(funnels(), 0, "the backend knows of nothing that was admitted while all were cut off");
	for (int i = 0; i < HOSTS; i++)
		run("ip link set e%d up", i);
	while (funnels() == 0)
		crew_await_long();
	is(funnels(), 1, "joined again, they ask the backend by themselves");
	raze_hosts(&crew);
}

int main(void)
{
	static const char *const words[] = { "--port", "6379",         "--bind", "0.0.0.0", "--protected-mode",
		                             "no",     "--appendonly", "no",     NULL };
	uint64_t seed;

	if (server_missing())
		return tap_skip_all("no redis-server");
	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("global.partition");
	if (lay_wires() != 0)
		return tap_skip_all("network namespaces and wires between them are not permitted here");
	seed = rng_seed();
	server_begin(&server, words);
	play = shared_memory(sizeof(*play));
	denied(seed);
	shared();
	return tap_done();
}
