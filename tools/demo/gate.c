/*
 * gate: the limiter in front of the service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>

#include "gate.h"

#define NS_PER_S UINT64_C(1000000000)

int gate_open(struct gate *gate, const char *segment, const char *rule_name)
{
	struct shmlimit_rule rule = {.struct_size = sizeof(rule)};
	struct shmlimit_range range = {.struct_size = sizeof(range)};
	int error = shmlimit_open(segment, 0, &gate->limiter);

	if (error < 0) {
		warnx("segment %s: %s", segment, shmlimit_strerror(error));
		return -1;
	}
	gate->segment = segment;
	gate->rule_name = rule_name;
	gate->rule = error = shmlimit_rule_find(gate->limiter, rule_name);
	if (error >= 0)
		error = shmlimit_rule_get(gate->limiter, gate->rule, &rule);
	if (error >= 0)
		error = shmlimit_rule_range(gate->limiter, gate->rule, &range);
	if (error < 0) {
		warnx("segment %s: rule %s: %s", segment, rule_name, shmlimit_strerror(error));
		shmlimit_close(gate->limiter);
		gate->limiter = NULL;
		return -1;
	}
	snprintf(gate->policy, sizeof(gate->policy), "\"%s\";q=%" PRIu64 ";w=%" PRIu64, rule_name, rule.capacity,
		 gate_seconds(range.fill_ns));
	return 0;
}

enum gate_answer gate_ask(struct gate *gate, const void *key, size_t key_len, struct shmlimit_result *r)
{
	int answer;

	if (gate->limiter == NULL)
		return GATE_UNLIMITED;
	answer = shmlimit_take(gate->limiter, gate->rule, key, key_len, 1, r);
	if (answer >= 0)
		return answer == SHMLIMIT_ALLOWED ? GATE_ALLOWED : GATE_DENIED;
	/* Once, and not once a request: who breaks the limiter must not fill the disk too. */
	if (answer != gate->reported)
		warnx("segment %s: rule %s: %s: %s from now on", gate->segment, gate->rule_name,
		      shmlimit_strerror(answer), gate->fail_open ? "unlimited" : "503");
	gate->reported = answer;
	return gate->fail_open ? GATE_UNLIMITED : GATE_OUT_OF_ORDER;
}

void gate_state(const struct gate *gate, enum gate_answer answer, const struct shmlimit_result *r, char *out,
		size_t size)
{
	uint64_t wait_ns = answer == GATE_DENIED ? r->retry_after_ns : r->reset_after_ns;

	snprintf(out, size, "\"%s\";r=%" PRIu64 ";t=%" PRIu64, gate->rule_name, r->remaining, gate_seconds(wait_ns));
}

uint64_t gate_seconds(uint64_t ns)
{
	return ns / NS_PER_S + (ns % NS_PER_S != 0);
}
