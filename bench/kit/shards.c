/*
 * shards: see shards.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "folder.h"
#include "shards.h"

/* The server's binary: in the package redis-tools it is the checker's program, which acts by argv[0]. */
#define SERVER "/usr/bin/redis-check-rdb"

#define SLOTS 16384u
#define TRIES 500 /* of 20 ms */

static int is_free(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), good;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	good = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return good;
}

/* A free port from this one on. That of the cluster's bus, 10,000 above, is free too. */
static int free_port(int port)
{
	for (; port < 30000; port++)
		if (is_free(port) && is_free(port + 10000))
			return port;
	bench_fail("shards", "no free port");
}

static void run_server(int port)
{
	char number[16], config[32];

	snprintf(number, sizeof(number), "%d", port);
	snprintf(config, sizeof(config), "nodes.%d", port);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(SERVER, "redis-server", "--port", number, "--bind", "127.0.0.1", "--dir", folder_path(),
	      "--cluster-enabled", "yes", "--cluster-config-file", config, "--cluster-node-timeout", "60000",
	      "--cluster-require-full-coverage", "no", "--save", "", "--appendonly", "no", "--logfile", "/dev/null",
	      (char *)NULL);
	_exit(127);
}

static redisContext *connect_to(int port)
{
	struct timespec pause = { 0, 20000000 };

	for (int i = 0; i < TRIES; i++) {
		redisContext *c = redisConnect("127.0.0.1", port);

		if (c != NULL && c->err == 0)
			return c;
		redisFree(c);
		nanosleep(&pause, NULL);
	}
	bench_fail("shards", "a server does not answer");
}

static int is_whole(redisContext *c)
{
	redisReply *reply = redisCommand(c, "CLUSTER INFO");
	int whole = reply != NULL && strstr(reply->str, "cluster_state:ok") != NULL &&
	            strstr(reply->str, "cluster_known_nodes:3") != NULL;

	freeReplyObject(reply);
	return whole;
}

struct shards shards_start(void)
{
	struct timespec pause = { 0, 20000000 };
	struct shards s;
	int port = 20000 + (int)(getpid() % 5000);

	(void)folder_path();
	for (unsigned i = 0; i < SHARDS; i++) {
		s.port[i] = free_port(port);
		port = s.port[i] + 1;
		s.pid[i] = fork();
		if (s.pid[i] < 0)
			bench_fail("fork", "failed");
		if (s.pid[i] == 0)
			run_server(s.port[i]);
		s.admin[i] = connect_to(s.port[i]);
		freeReplyObject(redisCommand(s.admin[i], "CLUSTER ADDSLOTSRANGE %u %u", i * SLOTS / SHARDS,
		                             (i + 1) * SLOTS / SHARDS - 1));
		freeReplyObject(redisCommand(s.admin[0], "CLUSTER MEET 127.0.0.1 %d", s.port[i]));
	}
	for (unsigned i = 0; i < SHARDS; i++) {
		int tries = 0;

		while (!is_whole(s.admin[i])) {
			if (tries++ == TRIES)
				bench_fail("shards", "the cluster does not become whole");
			nanosleep(&pause, NULL);
		}
	}
	return s;
}

void shards_end(struct shards *shards)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		redisFree(shards->admin[i]);
		kill(shards->pid[i], SIGKILL);
		waitpid(shards->pid[i], NULL, 0);
	}
}

unsigned shards_of_slot(unsigned slot)
{
	unsigned i = 0;

	while (slot >= (i + 1) * SLOTS / SHARDS)
		i++;
	return i;
}
