/*
 * agent.h: a process that is a host's agent, and a proxy between it and its server, which can hold replies back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GLOBAL_AGENT_H
#define TESTS_GLOBAL_AGENT_H

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server.h"

#define PATIENT_NS UINT64_C(10000000000)

/* A handle of a patient caller, that looks after a millisecond whether a server is back. It has reported nothing yet. */
static inline struct shmlimit_global *patient_open(struct shmlimit *l, const char *url, const char *prefix,
                                                   struct reports *reports)
{
	struct shmlimit_global *g = global_open(l, url,
	                                        (struct shmlimit_global_options){ .deadline_ns = PATIENT_NS,
	                                                                          .open_ns = 1000000,
	                                                                          .prefix = prefix,
	                                                                          .report = reports_take,
	                                                                          .arg = reports });

	*reports = (struct reports){ 0 };
	return g;
}

struct agent_process {
	pid_t pid;
	_Atomic int *stop; /* [0] asks it to end, [1] says that it does */
};

static inline int agent_proceeds(void *arg, int serving)
{
	_Atomic int *stop = arg;

	(void)serving;
	if (atomic_load(&stop[0]))
		atomic_store(&stop[1], 1);
	return !atomic_load(&stop[1]);
}

static inline struct shmlimit_global_status agent_status(struct shmlimit *l)
{
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };

	if (shmlimit_global_status(l, &status) != 0)
		bail("status");
	return status;
}

/* Answers that it had from its servers. */
static inline uint64_t agent_trips(struct shmlimit *l)
{
	struct shmlimit_global_status status = agent_status(l);
	uint64_t n = 0;

	for (int i = 0; i < SHMLIMIT_GLOBAL_ROUND_TRIPS; i++)
		n += status.round_trips[i];
	return n;
}

/* The agent's server of the URL; nothing while there is no agent. */
static inline struct shmlimit_global_server agent_server(struct shmlimit *l)
{
	struct shmlimit_global_server server = { .struct_size = sizeof(server) };

	(void)shmlimit_global_server(l, 0, &server);
	return server;
}

/* Until `condition` holds, for a minute at most. */
#define await(condition) \
	do { \
		time_t await_end = time(NULL) + 60; \
		while (!(condition)) { \
			if (time(NULL) > await_end) \
				bail("in vain: " #condition); \
			sched_yield(); \
		} \
	} while (0)

static uint64_t agent_open_ns __attribute__((unused)) = 1000000; /* that a server which fails is left alone */
static uint64_t agent_lease_ns __attribute__((unused)) = PATIENT_NS;
static unsigned agent_open_after __attribute__((unused)); /* failures in a row until then; 0: the default */

/* Start one, which is perhaps not the agent yet. A backend may be silent for deadline_ns. */
static inline struct agent_process agent_start_with(struct shmlimit *l, const char *url, uint64_t deadline_ns,
                                                    const char *prefix)
{
	struct agent_process agent = { .stop = shared_memory(2 * sizeof(*agent.stop)) };
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .deadline_ns = deadline_ns,
		                                   .lease_ns = agent_lease_ns,
		                                   .open_ns = agent_open_ns,
		                                   .open_after = agent_open_after,
		                                   .prefix = prefix };
	struct shmlimit_global *g;

	agent.pid = fork_bound();
	if (agent.pid != 0)
		return agent;
	if (shmlimit_global_open(l, url, &options, &g) != 0 ||
	    shmlimit_global_serve(g, agent_proceeds, agent.stop) != 0)
		_exit(1);
	shmlimit_global_close(g);
	_exit(0);
}

static inline struct agent_process agent_start(struct shmlimit *l, const char *url, uint64_t deadline_ns)
{
	return agent_start_with(l, url, deadline_ns, NULL);
}

static inline void agent_await(struct shmlimit *l)
{
	await(agent_status(l).serving && agent_status(l).connections == 1);
}

static inline void agent_kill(const struct agent_process *agent)
{
	kill(agent->pid, SIGKILL);
	while (waitpid(agent->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Ask it to end. Returns whether it ended well. */
static inline int agent_stop(const struct agent_process *agent)
{
	int status = -1;

	atomic_store(agent->stop, 1);
	while (waitpid(agent->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/* ---- A proxy ---- */

struct proxy_state {
	_Atomic int hold;        /* 1: replies are held back; 2: those of the first connection */
	_Atomic int delay_ms;    /* that each reply takes, one after the other */
	_Atomic int cut;         /* 1: shut all connections, once */
	_Atomic int connections; /* that were ever made */
	_Atomic int held;        /* replies that are held back now: 1 if there is one */
};

struct proxy {
	pid_t pid;
	char path[96], url[128];
	struct proxy_state *at;
};

#define PROXY_MAX 16

/* BOUND: the test's life. */
static inline void proxy_run(struct proxy *p, int listener, const char *to)
{
	int client[PROXY_MAX], server[PROXY_MAX], n = 0;
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", to);
	for (;;) {
		struct pollfd fds[1 + 2 * PROXY_MAX] = { { .fd = listener, .events = POLLIN } };
		int hold = atomic_load(&p->at->hold), held = 0;

		for (int i = 0; i < n; i++) {
			fds[1 + 2 * i] = (struct pollfd){ .fd = client[i], .events = POLLIN };
			fds[2 + 2 * i] = (struct pollfd){ .fd = server[i], .events = POLLIN };
		}
		poll(fds, 1 + 2 * (nfds_t)n, 1);
		if ((fds[0].revents & POLLIN) && n < PROXY_MAX) {
			client[n] = accept(listener, NULL, NULL);
			server[n] = socket(AF_UNIX, SOCK_STREAM, 0);
			atomic_fetch_add(&p->at->connections, 1);
			if (connect(server[n], (struct sockaddr *)&address, sizeof(address)) == 0) {
				n++;
				continue;
			}
			close(client[n]);
			close(server[n]);
		}
		for (int i = 0; i < n; i++) {
			int cut = atomic_load(&p->at->cut);

			for (int back = 0; back < 2 && !cut; back++) {
				char bytes[4096];
				ssize_t got;

				if (fds[1 + 2 * i + back].revents == 0)
					continue;
				if (back && (hold == 1 || (hold == 2 && i == 0))) {
					held = 1;
					continue;
				}
				if (back)
					usleep(1000 * (useconds_t)atomic_load(&p->at->delay_ms));
				got = read(back ? server[i] : client[i], bytes, sizeof(bytes));
				cut = got <= 0 || write(back ? client[i] : server[i], bytes, (size_t)got) != got;
			}
			if (!cut)
				continue;
			close(client[i]);
			close(server[i]);
			n--;
			client[i] = client[n];
			server[i] = server[n];
			break;
		}
		atomic_store(&p->at->held, held);
		if (n == 0)
			atomic_store(&p->at->cut, 0);
		if (held)
			sched_yield();
	}
}

static inline void proxy_begin(struct proxy *p, const struct server *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	p->at = shared_memory(sizeof(*p->at));
	snprintf(p->path, sizeof(p->path), "%.63s/proxy.sock", s->folder);
	snprintf(p->url, sizeof(p->url), "unix://%s", p->path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", p->path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 16) != 0)
		bail("proxy: %s", strerror(errno));
	p->pid = fork_bound();
	if (p->pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		proxy_run(p, listener, s->socket);
	}
	close(listener);
}

static inline void proxy_end(struct proxy *p)
{
	unlink(p->path);
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

#endif
