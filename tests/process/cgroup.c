/*
 * cgroup: a process claims keys with logs until its memory cgroup is at its limit. The kernel then kills a process of that
 * cgroup, as for any memory, or says that there is none. No process dies of another signal; what was granted is
 * counted; the segment is sound; and a process of another cgroup goes on, with new keys too (I1, I4, I7).
 *
 * It needs the right to make a cgroup, which containers and ordinary users lack as a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/stat.h>

#include "process.h"

#define NOW_NS 1000000000000u
#define TOKENS 256u /* a key's log is a page */
#define KEYS 8000u
#define LIMIT "16777216" /* half of that */
#define NOT_PERMITTED 77

static struct shmlimit *l;
static int window;
static unsigned char *answer; /* of each key: 1 and that of its take; 0: it was not asked */
static char folder[4200];

static int put(const char *file, const char *text)
{
	char path[4300];
	int fd, good;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

/* A cgroup below this process's own, by the first or second version of the interface. Returns false if there is none. */
static int make_cgroup(void)
{
	static const struct {
		const char *controller, *root, *limit;
	} versions[] = { { ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
		         { "0::", "/sys/fs/cgroup", "memory.max" } };
	FILE *file = fopen("/proc/self/cgroup", "r");
	char line[4096];
	int made = 0;

	while (file != NULL && !made && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < 2 && !made; i++) {
			const char *at = strstr(line, versions[i].controller);

			if (at == NULL)
				continue;
			snprintf(folder, sizeof(folder), "%s%s/%s", versions[i].root,
			         at + strlen(versions[i].controller), stage_name);
			made = mkdir(folder, 0700) == 0;
			if (made && !put(versions[i].limit, LIMIT)) {
				rmdir(folder);
				made = 0;
			}
		}
	}
	if (file != NULL)
		fclose(file);
	return made;
}

static void remove_cgroup(void)
{
	rmdir(folder);
}

static int take(uint64_t key)
{
	return shmlimit_take(at_time(l, NOW_NS), window, &key, sizeof(key), 1, NULL);
}

static uint64_t remaining(uint64_t key)
{
	struct shmlimit_result r = { 0 };

	shmlimit_peek(at_time(l, NOW_NS), window, &key, sizeof(key), 1, &r);
	return r.remaining;
}

/* Returns the status with which a process ended that claimed all keys inside the cgroup. */
static int claim_inside(void)
{
	pid_t pid = fork_bound();
	int status;

	if (pid == 0) {
		if (!put("cgroup.procs", "0"))
			_exit(NOT_PERMITTED);
		for (uint64_t key = 0; key < KEYS; key++)
			answer[key] = (unsigned char)(1 + take(key));
		_exit(0);
	}
	while (waitpid(pid, &status, 0) != pid)
		;
	return status;
}

int main(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_WINDOW,
		                      .capacity = TOKENS,
		                      .period_ns = 86400000000000u };
	unsigned allowed = 0, denied = 0, wrong = 0, others = 0;
	int status;

	stage_begin("cgroup");
	if (!make_cgroup())
		return tap_skip_all("no memory cgroup of our own is permitted");
	atexit(remove_cgroup);
	/* Ignoring failure: then there is no swap. */
	(void)put("memory.memsw.limit_in_bytes", LIMIT);
	(void)put("memory.swap.max", "0");
	answer = shared_memory(KEYS);
	l = stage_create(4 * (uint64_t)KEYS, 2, SHMLIMIT_FULL_DENY);
	window = shmlimit_rule_set(at_time(l, NOW_NS), "window", &rule);
	status = claim_inside();
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
		return tap_skip_all("no process may be moved to a cgroup");
	for (uint64_t key = 0; key < KEYS; key++) {
		allowed += answer[key] == 1 + SHMLIMIT_ALLOWED;
		denied += answer[key] == 1 + SHMLIMIT_DENIED;
		wrong += answer[key] == 1 + SHMLIMIT_ALLOWED && remaining(key) != TOKENS - 1;
	}
	ok((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
	   "in a cgroup at its limit a process ends by itself, or the kernel kills it, but not by SIGBUS (status %x)",
	   status);
	ok(allowed > 0 && allowed < KEYS, "the limit was met, after %u keys; %u were denied", allowed, denied);
	is(wrong, 0, "each key has what it was granted");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	for (uint64_t key = KEYS; key < KEYS + 100; key++)
		others += take(key) == SHMLIMIT_ALLOWED && remaining(key) == TOKENS - 1;
	is(others, 100, "a process of another cgroup goes on, with new keys too");
	shmlimit_close(l);
	return tap_done();
}
