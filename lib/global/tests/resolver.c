/*
 * resolver: a system resolver that hangs. Only the agent looks names up, so no process that has one waits for it. The
 * resolver's functions are replaced here: they hang, or find the test's server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <netdb.h>

#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define MAILBOX_CELLS 50
#define SHORT_NS UINT64_C(5000000)

static struct server server;
static struct shmlimit *l;
struct resolver {
	_Atomic int hangs, asked;
};

static struct resolver *resolver;

int getaddrinfo_a(int mode, struct gaicb *list[], int n, struct sigevent *event)
{
	(void)mode;
	(void)list;
	(void)n;
	(void)event;
	atomic_fetch_add(&resolver->asked, 1);
	return 0;
}

int gai_error(struct gaicb *request)
{
	static struct sockaddr_un address;
	struct addrinfo *found;

	if (atomic_load(&resolver->hangs))
		return EAI_INPROGRESS;
	found = calloc(1, sizeof(*found));
	if (found == NULL)
		return EAI_MEMORY;
	address.sun_family = AF_UNIX;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server.socket);
	*found = (struct addrinfo){ .ai_family = AF_UNIX,
		                    .ai_socktype = SOCK_STREAM,
		                    .ai_addrlen = sizeof(address),
		                    .ai_addr = (struct sockaddr *)&address };
	request->ar_result = found;
	return 0;
}

int gai_cancel(struct gaicb *request)
{
	(void)request;
	return atomic_load(&resolver->hangs) ? EAI_NOTCANCELED : EAI_ALLDONE;
}

void freeaddrinfo(struct addrinfo *found)
{
	free(found);
}

/* The processes' deadline is so long that the test would be ended if they waited for it. */
static struct shmlimit_global *open_patient(uint32_t on_failure)
{
	return global_open(l, "redis://no-such-host.invalid",
	                   (struct shmlimit_global_options){ .deadline_ns = PATIENT_NS,
	                                                     .lease_ns = PATIENT_NS,
	                                                     .open_ns = 1000000,
	                                                     .on_failure = on_failure });
}

static int take_some(struct shmlimit_global *g, int rule)
{
	int allowed = 0;

	for (int i = 0; i < MAILBOX_CELLS; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, NULL) == SHMLIMIT_ALLOWED;
	return allowed;
}

int main(void)
{
	struct shmlimit_rule here = {
		.struct_size = sizeof(here), .capacity = MAILBOX_CELLS, .refill = 1, .period_ns = DAY
	};
	struct shmlimit_global *g, *strict;
	struct agent_process agent;
	int rule, local, allowed = 0;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.resolver");
	server_begin(&server, NULL);
	resolver = shared_memory(sizeof(*resolver));
	atomic_store(&resolver->hangs, 1);
	l = stage_create(1024, 0, 0);
	rule = lease_rule(l, "leased", 10, 1, DAY);
	local = shmlimit_rule_set(l, "local", &here);

	agent = agent_start(l, "redis://no-such-host.invalid", SHORT_NS);
	g = open_patient(SHMLIMIT_GLOBAL_ALLOW);
	strict = open_patient(SHMLIMIT_GLOBAL_DENY);
	await(agent_status(l).serving && shmlimit_global_breaker_ns(g) != 0);
	ok(atomic_load(&resolver->asked) > 0, "the agent has asked the resolver");
	is(agent_status(l).connections, 0, "an agent whose resolver hangs has no connection");
	is(take_some(g, rule), MAILBOX_CELLS, "while the resolver hangs on_failure allows at once");
	is(take_some(strict, rule), 0, "while the resolver hangs on_failure denies at once");
	is(take_some(g, local), MAILBOX_CELLS, "while the resolver hangs limits of this host are decided");
	ok(agent_status(l).serving, "an agent whose resolver hangs remains the agent");

	atomic_store(&resolver->hangs, 0);
	await(agent_status(l).connections == 1 && shmlimit_global_breaker_ns(g) == 0);
	/* A machine that stands still for a tenth of a second makes the agent think that the server does. */
	await((allowed += shmlimit_global_take(strict, rule, "key", 3, 1, NULL) == SHMLIMIT_ALLOWED) >= 10);
	is(take_some(strict, rule), 0, "when the resolver answers the limit of all hosts is in force");
	ok(agent_stop(&agent), "the agent ends when it is told to");
	shmlimit_global_close(g);
	shmlimit_global_close(strict);
	return tap_done();
}
