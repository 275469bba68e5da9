/*
 * shared: a gate with backend= has limits that all hosts share. A host is a segment here.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../server.h"
#include "gate/gate.h"

#define HOSTS 4

static struct server server;
static struct shmlimit_gate *gates[HOSTS];
static char names[HOSTS][80];

/* Each host has a gate of the same limits; nothing was set up before. */
static void hosts_begin(const char *limits)
{
	char spec[600];

	gate_said = gate_bad = 0;
	for (int h = 0; h < HOSTS; h++) {
		snprintf(names[h], sizeof(names[h]), "%s.%d", unit_name, h);
		snprintf(spec, sizeof(spec), "segment=%s backend=%s deadline=10000ms slots=64 create=yes %s", names[h],
		         server.url, limits);
		if (shmlimit_gate_open(spec, &gates[h]) != 0)
			bail("shmlimit_gate_open: %s", spec);
		shmlimit_gate_report(gates[h], gate_hear, gate_lines);
	}
}

static void hosts_end(void)
{
	for (int h = 0; h < HOSTS; h++) {
		shmlimit_gate_close(gates[h]);
		shmlimit_destroy(names[h]);
	}
}

/* 10 requests of one key on each host, in turn. Returns how many were admitted. */
static int admitted(const char *key)
{
	int n = 0;

	for (int i = 0; i < 10 * HOSTS; i++)
		n += ASK(gates[i % HOSTS], key, 0) == SHMLIMIT_ALLOWED && answer.outcome == SHMLIMIT_GATE_PASSED;
	return n;
}

static void rates(void)
{
	static const struct {
		const char *limits, *key;
		int most;
		const char *title;
	} cases[] = {
		{ "rule=login rate=5/day", "a", 5, "hosts with backend= admit a rate once, together" },
		{ "rule=login rate=5/day algorithm=lease", "b", 5, "algorithm=lease is the same" },
		{ "algorithm=lease rule=login rate=5/day", "c", 5, "algorithm=lease may be said of all limits" },
		{ "rule=login rate=\"5/day burst 2\"", "d", 2, "a burst is shared" },
		{ "rule=login rate=5/day local", "e", 5 * HOSTS, "with the word local each host admits the rate" },
		{ "local rule=login rate=5/day algorithm=window", "f", 5 * HOSTS, "a window can be local" },
		{ "rule=login rate=\"5 at once for 1 day\" local", "g", 5 * HOSTS, "places can be local" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hosts_begin(cases[i].limits);
		is(admitted(cases[i].key), cases[i].most, "%s", cases[i].title);
		is(gate_said, 0, "nothing is reported of \"%s\"", cases[i].limits);
		hosts_end();
	}
}

/* What one prefix has spent is not another's. */
static void prefixes(void)
{
	hosts_begin("backend_prefix=prod: rule=login rate=5/day");
	is(admitted("h"), 5, "hosts of one prefix share a limit");
	hosts_end();
	hosts_begin("backend_prefix=staging: rule=login rate=5/day");
	is(admitted("h"), 5, "hosts of another prefix have a limit of their own");
	hosts_end();
	hosts_begin("backend_prefix=prod: rule=login rate=5/day");
	is(admitted("h"), 0, "the first prefix has what it had left");
	hosts_end();
}

/* A site had a limit of each host by itself, whose rule is no lease; then its configuration gets backend=. */
static void begins_to_share(void)
{
	static const char *const before[] = { "rate=5/day", "rate=5/day algorithm=window",
		                              "rate=\"5 at once for 1 day\"", "rate=block" };

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		char spec[300], key[16];

		for (int h = 0; h < HOSTS; h++) {
			struct shmlimit_gate *alone;

			snprintf(spec, sizeof(spec), "segment=%s.%d slots=64 create=yes rule=login %s", unit_name, h,
			         before[i]);
			if (shmlimit_gate_open(spec, &alone) != 0)
				bail("shmlimit_gate_open: %s", spec);
			(void)ASK(alone, "k", 0);
			shmlimit_gate_close(alone);
		}
		hosts_begin("rule=login rate=5/day");
		snprintf(key, sizeof(key), "begins%zu", i);
		is(admitted(key), 5, "hosts that had %s share a rate once they have backend=", before[i]);
		is(gate_said, 0, "nothing is reported where %s becomes a shared rate", before[i]);
		hosts_end();
	}
}

/* A rule that was set by hand is what the hand said, but it is reported: each host admits it. */
static void by_hand(void)
{
	struct shmlimit *l = unit_create("shared", NULL);
	char rest[300];
	struct shmlimit_gate *g;

	unit_rule(l, "page", 5, 5, 86400 * SECOND);
	snprintf(rest, sizeof(rest), "backend=%s rule=page", server.url);
	g = gate_new(rest);
	ok(gate_said == 1 && strstr(gate_lines[0], ": rule page: it limits this host alone, beside backend=") != NULL,
	   "a rule of this host beside backend= is reported");
	is(ASK(g, "k", 0), SHMLIMIT_ALLOWED, "a rule of this host beside backend= is in force");
	shmlimit_gate_attach(g);
	is(gate_said, 1, "a rule of this host is reported once");
	shmlimit_rule_remove(l, "page");
	shmlimit_gate_attach(g);
	is(gate_said, 2, "a rule that is removed afterwards is reported");
	unit_rule(l, "page", 5, 5, 86400 * SECOND);
	shmlimit_gate_close(g);
	snprintf(rest, sizeof(rest), "backend=%s rule=page local rule=ban peek", server.url);
	g = gate_new(rest);
	is(gate_said, 0, "a rule of this host with the word local is not reported, nor one that is peeked at");
	shmlimit_gate_close(g);
	g = gate_new("rule=page");
	is(gate_said, 0, "a rule of this host without backend= is not reported");
	shmlimit_gate_close(g);
	shmlimit_close(l);
}

static void wrong_url(void)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };

	is(shmlimit_gate_check("segment=web create=yes backend=redis://h:99999 rule=login rate=5/s", &wrong), -EINVAL,
	   "a spec's URL is read when the spec is");
	ok(wrong.offset == 23 && strcmp(wrong.text, "backend's URL: port: must be a number from 1 to 65535") == 0,
	   "what is wrong with it is said: %s", wrong.text);
	is(shmlimit_gate_check("segment=web create=yes backend=redis://h:9999 rule=login rate=5/s", &wrong), 0,
	   "another one is right: %s", wrong.text);
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	wrong_url();
	server_begin(&server, NULL);
	shmlimit_close(unit_create("shared", NULL));
	shmlimit_destroy(unit_name);
	rates();
	prefixes();
	begins_to_share();
	by_hand();
	return tap_done();
}
