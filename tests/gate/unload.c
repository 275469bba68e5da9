/*
 * unload: a host that loads a library, uses it in threads, and unloads it while they live, as hosts of plug-ins do. The
 * threads end afterwards, and the process forks: what the library gave the C library to call must still be there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "../unit/unit.h"
#include "shmlimit_gate.h"
#include "shmlimit_global.h"

#define THREADS 4

static void *library;
static pthread_barrier_t used, unloaded;

#define CALL(name) ((__typeof__(&(name)))call(library, #name))

static void *call(void *from, const char *name)
{
	void *found = dlsym(from, name);

	if (found == NULL)
		bail("%s", dlerror());
	return found;
}

/* ---- What each library is used for ---- */

static struct shmlimit_gate *gate;

static void gate_begin(void)
{
	char text[160];

	snprintf(text, sizeof(text), "segment=%s create=yes rule=login rate=1000/s", unit_name);
	if (CALL(shmlimit_gate_open)(text, &gate) != 0)
		bail("no gate");
}

static int gate_use(void)
{
	struct shmlimit_gate_key key = { .bytes = "user:42", .length = 7 };
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer),
		                               .buffer = buffer,
		                               .buffer_size = sizeof(buffer) };

	return CALL(shmlimit_gate_ask)(gate, &key, 1, &answer);
}

static void gate_end(void)
{
	CALL(shmlimit_gate_close)(gate);
}

static struct shmlimit *l;
static struct shmlimit_global *global;

/* With a thread of its own, and a backend that is not there. */
static void global_begin(void)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 100,
		                      .refill = 10,
		                      .period_ns = SECOND };

	if (((__typeof__(&shmlimit_create))call(RTLD_DEFAULT, "shmlimit_create"))(unit_name, NULL, &l) != 0 ||
	    ((__typeof__(&shmlimit_rule_set))call(RTLD_DEFAULT, "shmlimit_rule_set"))(l, "login", &rule) < 0 ||
	    CALL(shmlimit_global_open)(l, "unix:///nonexistent", &options, &global) != 0)
		bail("no limiter for many hosts");
}

static int global_use(void)
{
	int answer = CALL(shmlimit_global_take)(global, 0, "user:42", 7, 1, NULL);

	return answer < 0 ? answer : 0;
}

static void global_end(void)
{
	CALL(shmlimit_global_close)(global);
	((__typeof__(&shmlimit_close))call(RTLD_DEFAULT, "shmlimit_close"))(l);
}

static const struct use {
	const char *library;
	void (*begin)(void);
	int (*use)(void);
	void (*end)(void);
} uses[] = {
	{ "libshmlimit-gate.so.1", gate_begin, gate_use, gate_end },
	{ "libshmlimit-global.so.1", global_begin, global_use, global_end },
};

/* ---- The host ---- */

static void *use_it(void *which)
{
	const struct use *use = which;
	intptr_t answer = use->use();

	pthread_barrier_wait(&used);
	pthread_barrier_wait(&unloaded);
	return (void *)answer;
}

/* Exits with the number of threads that were not answered; a crash ends it by a signal. */
static void host(const struct use *use, const char *path)
{
	pthread_t threads[THREADS];
	void *answer;
	int bad = 0;
	pid_t pid;

	alarm(120);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		bail("%s", dlerror());
	use->begin();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, use_it, (void *)(uintptr_t)use) != 0)
			bail("no thread");
	pthread_barrier_wait(&used);
	use->end();
	dlclose(library);
	pthread_barrier_wait(&unloaded);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &answer);
		bad += answer != NULL;
	}
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	_exit(bad);
}

/* Beside this program: build/tests/gate/unload.t, build/libshmlimit.so.1. */
static void path_of(const char *name, char path[512])
{
	char self[256];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		bail("readlink: %s", strerror(errno));
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, 512, "%s/../../%s", self, name);
}

static char segment_path[SHMLIMIT_PATH_MAX];

static void remove_segment(void)
{
	unlink(segment_path);
}

int main(void)
{
	char path[512];
	int status;

	snprintf(unit_name, sizeof(unit_name), "test.unload.%ld", (long)getpid());
	guard_begin(remove_segment);
	/* Those for servers and many hosts need it; it is found by its name, being loaded. */
	path_of("libshmlimit.so.1", path);
	if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL)
		bail("%s", dlerror());
	((__typeof__(&shmlimit_path))call(RTLD_DEFAULT, "shmlimit_path"))(unit_name, segment_path);
	pthread_barrier_init(&used, NULL, THREADS + 1);
	pthread_barrier_init(&unloaded, NULL, THREADS + 1);
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		pid_t pid = fork();

		path_of(uses[i].library, path);
		if (pid == 0)
			host(&uses[i], path);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			bail("no child");
		ok(!WIFSIGNALED(status), "%s: threads end after it was unloaded, and the process forks",
		   uses[i].library);
		is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "%s: each thread was answered", uses[i].library);
		remove_segment();
	}
	return tap_done();
}
