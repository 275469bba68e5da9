/*
 * agent_thread: the agent of a host is a thread of one of the processes that use it. The limit is as exact as with any other
 * agent, whatever is killed, stopped, closed or forked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define WORKERS 4
#define THREADS 4
#define KEYS 5
#define CAPACITY 400u

/* ThreadSanitizer starts no thread in the child of a process with threads, and its swaps are one process's. */
#define STARTS_THREADS_AFTER_FORK !SWAPS_ARE_PRIVATE

static struct server server;
static struct shmlimit *l;

/* Go on when `condition` holds without keeping a processor busy; for a minute at most. */
#define await_long(condition) \
	do { \
		time_t await_end = time(NULL) + 60; \
		while (!(condition)) { \
			if (time(NULL) > await_end) \
				bail("in vain: " #condition); \
			nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL); \
		} \
	} while (0)

/* Where processes are killed the deadline is short, since the claim of a killed process blocks its key for that long. */
#define SHORT_NS 1000000000

static struct shmlimit_global *open_global(uint32_t agent, uint64_t deadline_ns)
{
	return global_open(
		l, server.url,
		(struct shmlimit_global_options){
			.deadline_ns = deadline_ns, .lease_ns = PATIENT_NS, .open_ns = 1000000, .flags = agent });
}

/* Take from a key that was never seen, which has to be asked for. */
static int take_new(struct shmlimit_global *g, int rule)
{
	static uint64_t n;
	char key[48];

	snprintf(key, sizeof(key), "%d.%llu", (int)getpid(), (unsigned long long)++n);
	return shmlimit_global_take(g, rule, key, strlen(key), 1, NULL);
}

/* The agents' threads of this process, by their name; *thread is one of them. */
static int agents(int *thread)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	if (folder == NULL)
		bail("/proc/self/task: %s", strerror(errno));
	while ((entry = readdir(folder)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL || fgets(name, sizeof(name), file) == NULL || strcmp(name, "shmlimit-agent\n") != 0)
			name[0] = '\0';
		if (file != NULL)
			fclose(file);
		n += name[0] != '\0';
		if (name[0] != '\0' && thread != NULL)
			*thread = atoi(entry->d_name);
	}
	closedir(folder);
	return n;
}

static unsigned long long blocked_signals(int task)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", task);
	file = fopen(path, "r");
	if (file == NULL)
		bail("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	fclose(file);
	return mask;
}

static int agent_is(pid_t pid)
{
	return agent_status(l).serving && agent_status(l).pid == (uint64_t)pid;
}

static void serves(void)
{
	int rule = lease_rule(l, "serves", 15, 1, DAY), thread = 0, allowed = 0;
	struct shmlimit_global *g = open_global(0, PATIENT_NS), *first, *second;
	struct shmlimit_global_options options = { .struct_size = sizeof(options), .flags = 2 };
	uint64_t answered, began_ns = monotonic_ns();
	unsigned long long mask;

	take_new(g, rule);
	is(agents(NULL), 0, "no agent's thread is started unless the option says so");
	is(agent_status(l).serving, 0, "without the option there is no agent");
	shmlimit_global_close(g);
	is(shmlimit_global_open(l, server.url, &options, &g), -EINVAL, "an unknown option for the agent is refused");
	options = (struct shmlimit_global_options){ .struct_size = sizeof(options), .reserved[2] = 1 };
	is(shmlimit_global_open(l, server.url, &options, &g), -E2BIG, "what is reserved must be zero");

	first = open_global(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, PATIENT_NS);
	await_long(agent_is(getpid()) && agent_status(l).connections == 1);
	is(agents(&thread), 1, "the agent is one thread");
	mask = blocked_signals(thread);
	ok((mask >> (SIGTERM - 1) & 1) && (mask >> (SIGALRM - 1) & 1) && (mask >> (SIGCHLD - 1) & 1),
	   "signals of the process are not handled in the agent's thread");
	second = open_global(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, PATIENT_NS);
	answered = agent_status(l).answered;
	for (int i = 0; i < 30; i++)
		allowed +=
			shmlimit_global_take(i % 2 ? first : second, rule, "user:42", 7, 1, NULL) == SHMLIMIT_ALLOWED;
	/* On a machine that stands still for long, leases expire. */
	ok(allowed == 15 || (allowed < 15 && monotonic_ns() - began_ns > PATIENT_NS / 2),
	   "two handles get the limit's tokens from the thread, and no more");
	ok(agent_status(l).answered > answered, "the thread has asked the server for them");
	/* On a machine that stands still, the second one may have seen no agent: then one of the two ends. */
	await_long(agents(NULL) == 1);
	ok(1, "a second handle has no second agent");
	shmlimit_global_close(second);
	shmlimit_global_close(first);
	is(agents(NULL), 0, "a closed handle has ended its thread");
	is(agent_status(l).serving, 0, "there is no agent then");
}

/* ---- Processes ---- */

/* What a process does whose agent is a thread: it asks until the play has ended. */
struct play {
	int rule;
	_Atomic uint64_t admitted[KEYS], asked[WORKERS];
	_Atomic int ended;
};

static struct play *play;

static void ask_on(struct shmlimit_global *g, int index)
{
	struct rng rng = { .state = (uint64_t)getpid() };

	while (!atomic_load(&play->ended)) {
		char key = (char)('a' + rng_below(&rng, KEYS));
		int answer = shmlimit_global_take(g, play->rule, &key, 1, 1, NULL);

		worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->admitted[key - 'a'], 1);
		take_new(g, play->rule);
		atomic_fetch_add(&play->asked[index], 1);
	}
}

static void work(struct crew *crew, int index)
{
	struct shmlimit_global *g = open_global(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, SHORT_NS);

	(void)crew;
	ask_on(g, index);
	shmlimit_global_close(g);
	worker_check(agents(NULL) == 0, "a closed handle has a thread");
}

static int agent_of(const struct crew *crew)
{
	for (int i = 0; i < crew->n; i++)
		if (agent_is(crew->pid[i]))
			return i;
	return -1;
}

/* Kill the agent's process, again and again: another process is the agent each time, and its requests are served. */
static void killed(void)
{
	struct crew crew;
	uint64_t over = 0, admitted = 0;
	int replaced = 0;

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, "killed", CAPACITY, 1, DAY);
	crew_start(&crew, WORKERS, work, NULL);
	/* BOUND: an agent that lost its claim, since the machine stood still, is not killed. */
	for (int i = 0; i < 20 && replaced < 2; i++) {
		uint64_t answered;
		int victim;

		await_long(agent_of(&crew) >= 0);
		victim = agent_of(&crew);
		answered = agent_status(l).answered;
		await_long(agent_status(l).answered > answered + 50 || !agent_status(l).serving);
		if (victim < 0 || agent_of(&crew) != victim)
			continue;
		crew_kill(&crew, victim);
		await_long(agent_of(&crew) >= 0 && agent_of(&crew) != victim);
		crew_spawn(&crew, victim, 0);
		replaced++;
	}
	ok(replaced > 0, "a killed process's agent is replaced by a thread of another process: %d times", replaced);
	atomic_store(&play->ended, 1);
	is(crew_wait(&crew), 0, "no process waits for ever after the agent's process was killed");
	for (int i = 0; i < KEYS; i++) {
		over += atomic_load(&play->admitted[i]) > CAPACITY;
		admitted += atomic_load(&play->admitted[i]);
	}
	ok(over == 0 || SWAPS_ARE_PRIVATE,
	   "no key is admitted more than its capacity while the agent's process is killed");
	ok(admitted > 0, "requests were admitted: %d", (int)admitted);
}

/* A process that is stopped loses its claim. When it goes on it has no agent, and asks that of the other one. */
static void stopped(void)
{
	struct crew crew;
	int first = -1;
	uint64_t asked;

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, "stopped", CAPACITY, 1, DAY);
	crew_start(&crew, 2, work, NULL);
	await_long((first = agent_of(&crew)) >= 0);
	kill(crew.pid[first], SIGSTOP);
	await_long(agent_is(crew.pid[!first]));
	ok(1, "the agent of a stopped process is replaced");
	kill(crew.pid[first], SIGCONT);
	asked = atomic_load(&play->asked[first]);
	await_long(atomic_load(&play->asked[first]) > asked + 20);
	ok(1, "a process that was stopped is served by the agent that replaced its own");
	atomic_store(&play->ended, 1);
	is(crew_wait(&crew), 0, "a process whose thread has lost the claim closes its handle");
}

/* A child goes on with its parent's handle: while the parent is the agent, and after it was killed. */
static void forked(void)
{
	int status[2];
	uint64_t answered = agent_status(l).answered;
	_Atomic int *parent_ready = shared_memory(sizeof(*parent_ready));
	_Atomic pid_t *child = shared_memory(sizeof(*child));
	pid_t parent;

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, "forked", CAPACITY, 1, DAY);
	if (pipe(status) != 0)
		bail("pipe");
	parent = fork_bound();
	if (parent == 0) {
		struct shmlimit_global *g = open_global(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, PATIENT_NS);
		pid_t pid;

		await_long(agent_is(getpid()));
		pid = fork();
		if (pid == 0) {
			char well = 1;

			/* It must not outlive the test, and its parent is to be killed. */
			alarm(120);
			atomic_store(child, getpid());
			for (int i = 0; i < 20; i++)
				well &= take_new(g, play->rule) == SHMLIMIT_ALLOWED;
			well &= agents(NULL) == 0 || !agent_is(getppid());
			atomic_store(parent_ready, 1);
			ask_on(g, 0);
			shmlimit_global_close(g);
			if (write(status[1], &well, 1) != 1)
				_exit(1);
			_exit(0);
		}
		for (;;)
			pause();
	}
	await_long(atomic_load(parent_ready));
	/* On a machine that stands still the parent may have lost the claim. */
	ok(agent_status(l).answered > answered, "a child is served by an agent");
	if (STARTS_THREADS_AFTER_FORK) {
		char well = 0;

		agent_kill(&(struct agent_process){ .pid = parent });
		await_long(agent_is(atomic_load(child)));
		ok(1, "a child whose parent was killed starts a thread of its own");
		atomic_store(&play->ended, 1);
		close(status[1]);
		ok(read(status[0], &well, 1) == 1 && well,
		   "a child has no thread before it needs one, and closes its handle");
	} else {
		kill(atomic_load(child), SIGKILL);
		agent_kill(&(struct agent_process){ .pid = parent });
		tap_skip("a child whose parent was killed starts a thread of its own",
		         "ThreadSanitizer allows no thread after fork");
		close(status[1]);
	}
	close(status[0]);
}

/* ---- Threads, each with a handle of its own ---- */

static void *ask_in_thread(void *arg)
{
	struct shmlimit_global *g = open_global(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, PATIENT_NS);
	struct rng rng = { .state = (uint64_t)(uintptr_t)arg };

	for (int i = 0; i < 400; i++) {
		char key = (char)('a' + rng_below(&rng, KEYS));

		if (shmlimit_global_take(g, play->rule, &key, 1, 1, NULL) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->admitted[key - 'a'], 1);
	}
	shmlimit_global_close(g);
	return NULL;
}

static void threads(void)
{
	pthread_t id[THREADS];
	uint64_t over = 0;

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, "threads", CAPACITY / 4, 1, DAY);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&id[i], NULL, ask_in_thread, (void *)(i + 1)) != 0)
			bail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < KEYS; i++)
		over += atomic_load(&play->admitted[i]) > CAPACITY / 4;
	is(over, 0, "threads with a handle each, of which one has the agent, are admitted no more than the capacity");
	is(agents(NULL), 0, "handles that were closed in several threads have ended their agents");
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.agent_thread");
	server_begin(&server, NULL);
	l = stage_create(16384, 0, 0);
	killed();
	stopped();
	forked();
	serves();
	threads();
	shmlimit_close(l);
	return tap_done();
}
