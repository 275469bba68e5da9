/*
 * metrics.h: what metrics collected, and how it is written.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef METRICS_H
#define METRICS_H

#include "command.h"
#include "print.h"
#include "many_hosts.h"
#include "shmlimit_lease.h"
#include "top_keys.h"

struct metrics_rule {
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule;
	struct shmlimit_counters counters;
	int id;
	uint64_t failures;      /* if the segment's agent is known */
	struct top_key busiest; /* of a rule with a law, the key that holds most places; number 0: there is none */
};

struct metrics_segment {
	char name[SHMLIMIT_NAME_MAX + 1];
	int up;         /* it can be opened; if not, the rest is empty */
	uint32_t owner; /* with --all */
	struct shmlimit_info info;
	struct shmlimit_counters counters; /* of all rules, those that are gone too */
	struct shmlimit_lease_counters leases;
	uint64_t states[SHMLIMIT_SLOT_STALE + 1];
	int agent_known; /* `agent` is filled */
	struct shmlimit_global_status agent;
	struct shmlimit_global_server server[SHMLIMIT_GLOBAL_SERVERS];
	unsigned servers;
	struct metrics_rule *rule;
	size_t rules;
};

struct metrics {
	struct metrics_segment *segment;
	size_t segments;
	int of_host;      /* all segments that there are, and */
	size_t left_out;  /* as many more, of which nothing is written */
	int older_format; /* Prometheus' text format instead of OpenMetrics */
};

void metrics_text(FILE *to, const struct metrics *metrics);

#endif
