/*
 * forwarded: a proxy whose address is the key of a limit is reported once in a process, and nothing else is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "gate.h"

static int lines;

static void hear(void *arg, int bad, const char *text)
{
	(void)arg;
	lines += bad && strstr(text, " has a field X-Forwarded-For: behind a proxy all clients are one") != NULL;
}

static struct shmlimit_gate *open_gate(const char *more)
{
	struct shmlimit_gate *gate;
	char spec[256];

	snprintf(spec, sizeof(spec), "segment=w %s rule=a rule=b", more);
	if (shmlimit_gate_open(spec, &gate) != 0)
		bail("%s", spec);
	shmlimit_gate_report(gate, hear, NULL);
	lines = 0;
	return gate;
}

/* A request with this key, of this peer, and with the field or without. */
static int ask(struct shmlimit_gate *gate, const char *key, const char *peer, const char *field)
{
	struct shmlimit_gate_key keys[2] = { { .bytes = "all", .length = 3 },
		                             { .limit = 1, .bytes = key, .length = strlen(key) } };

	return shmlimit_gate_forwarded(gate, keys, 2, peer, strlen(peer), field, "advice");
}

static const char field[] = "X-Forwarded-For";

int main(void)
{
	static const char *const proxies[] = { "127.0.0.1",       "127.9.9.9",   "10.0.0.1",       "172.16.0.1",
		                               "172.31.255.9",    "192.168.0.1", "100.64.0.1",     "100.127.0.1",
		                               "169.254.1.1",     "::1",         "fd00::1",        "fe80::1%eth0",
		                               "::ffff:10.0.0.1", "unix:",       "10.0.0.1:50001", "[fc00::1]:443" };
	static const char *const others[] = { "203.0.113.9",
		                              "172.15.0.1",
		                              "172.32.0.1",
		                              "192.169.0.1",
		                              "100.63.0.1",
		                              "100.128.0.1",
		                              "169.253.0.1",
		                              "11.0.0.1",
		                              "2001:db8::1",
		                              "fec0::1",
		                              "::ffff:203.0.113.9",
		                              "host",
		                              "" };
	struct shmlimit_gate *gate, *other;

	gate = open_gate("");
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		is(ask(gate, proxies[i], proxies[i], NULL), 1, "%s is a proxy's address", proxies[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		is(ask(gate, others[i], others[i], field), 0, "'%s' is no proxy's address", others[i]);
	is(ask(gate, "203.0.113.9", "10.0.0.1", field), 0, "a key that is not the peer is a client's");
	is(ask(gate, "10.0.0.10", "10.0.0.1", field), 0, "a key that begins as the peer is another one");
	is(lines, 0, "none of these is reported");
	is(shmlimit_gate_forwarded(gate, NULL, 0, "10.0.0.1", 8, field, "advice"), 0,
	   "without keys nothing is reported");
	is(shmlimit_gate_forwarded(NULL, NULL, 0, "10.0.0.1", 8, field, "advice"), -EINVAL, "a gate is needed");
	is(shmlimit_gate_forwarded(gate, NULL, 1, "10.0.0.1", 8, field, "advice"), -EINVAL, "keys are needed");
	is(shmlimit_gate_forwarded(gate, NULL, 0, NULL, 8, field, "advice"), -EINVAL, "a peer is needed");
	is(shmlimit_gate_forwarded(gate, NULL, 0, "10.0.0.1", 8, field, NULL), -EINVAL, "advice is needed");
	shmlimit_gate_close(gate);
	gate = open_gate("proxy_warning=no");
	is(ask(gate, "10.0.0.1", "10.0.0.1", NULL), 0, "with proxy_warning=no it does not matter");
	is(ask(gate, "10.0.0.1", "10.0.0.1", field) + lines, 0, "with proxy_warning=no nothing is reported");
	shmlimit_gate_close(gate);
	gate = open_gate("");
	is(ask(gate, "10.0.0.1", "10.0.0.1", field), 1, "a field is reported");
	is(ask(gate, "10.0.0.1", "10.0.0.1", field), 0, "another one is not");
	is(ask(gate, "10.0.0.1", "10.0.0.1", NULL), 0, "from then on it does not matter");
	is(lines, 1, "there is one line");
	other = open_gate("");
	is(ask(other, "10.0.0.1", "10.0.0.1", field) + lines, 0,
	   "another gate of the process does not report it again");
	shmlimit_gate_close(other);
	shmlimit_gate_close(gate);
	return tap_done();
}
