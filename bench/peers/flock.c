/*
 * flock: a file a key, locked while it is read and written, as scripts do it
 * that have nothing else.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <dirent.h>
#include <unistd.h>

#include "../kit/bench.h"
#include "../kit/folder.h"
#include "peer.h"

struct funnel {
	double quota;
	uint64_t time_ns;
};

static char name[300];

static void start(void)
{
	(void)folder_path();
}

static void *open_session(void)
{
	return name;
}

static int take(const char *path, double capacity, double rate)
{
	struct funnel funnel = { .quota = capacity };
	uint64_t now;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), answer;

	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		bench_fail(path, "not locked");
	now = bench_ns();
	if (pread(fd, &funnel, sizeof(funnel), 0) == sizeof(funnel)) {
		funnel.quota += (double)(now - funnel.time_ns) * 1e-9 * rate;
		if (funnel.quota > capacity)
			funnel.quota = capacity;
	}
	answer = funnel.quota < 1;
	if (!answer) {
		funnel.quota -= 1;
		funnel.time_ns = now;
		if (pwrite(fd, &funnel, sizeof(funnel), 0) != sizeof(funnel))
			bench_fail(path, "not written");
	}
	close(fd);
	return answer;
}

static void decide(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	(void)session;
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "funnel.%s", keys[i].bytes);
		answers[i] =
			limit == PEER_OPEN
				? take(folder_file(name), PEER_OPEN_CAPACITY, (double)PEER_OPEN_A_DAY / PEER_DAY_S)
				: take(folder_file(name), PEER_DRAIN_CAPACITY, (double)PEER_DRAIN_A_DAY / PEER_DAY_S);
	}
}

static void close_session(void *session)
{
	(void)session;
}

/* Pages only: what the kernel keeps for each file besides is not counted. */
static double bytes(void)
{
	DIR *dir = opendir(folder_path());
	struct dirent *entry;
	struct stat status;
	double sum = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] == 'f' && fstatat(dirfd(dir), entry->d_name, &status, 0) == 0)
			sum += (double)status.st_blocks * 512;
	if (dir != NULL)
		closedir(dir);
	return sum;
}

static void end(void)
{
}

const struct peer peer_flock = {
	.name = "flock, a file a key",
	.many = 1,
	.start = start,
	.open = open_session,
	.decide = decide,
	.close = close_session,
	.bytes = bytes,
	.end = end,
};
