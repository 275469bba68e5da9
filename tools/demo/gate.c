/*
 * gate: the limiter in front of the service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include "gate.h"

int gate_open(struct gate *gate, const char *segment, const char *rule_name)
{
	int error = shmlimit_open(segment, SHMLIMIT_OPEN_TRUSTED, NULL, &gate->limiter);

	if (error < 0) {
		warnx("segment %s: %s", segment, shmlimit_strerror(error));
		return -1;
	}
	gate->segment = segment;
	gate->rule_name = rule_name;
	gate->params.struct_size = sizeof(gate->params);
	gate->rule = error = shmlimit_rule_find(gate->limiter, rule_name);
	if (error >= 0)
		error = shmlimit_rule_get(gate->limiter, gate->rule, &gate->params);
	if (error < 0) {
		warnx("segment %s: rule %s: %s", segment, rule_name, shmlimit_strerror(error));
		shmlimit_close(gate->limiter);
		gate->limiter = NULL;
		return -1;
	}
	return 0;
}

int gate_separate(struct gate *gate)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "worker-%ld", (long)getpid());
	gate->rule = shmlimit_rule_ensure(gate->limiter, name, &gate->params);
	if (gate->rule < 0) {
		warnx("segment %s: rule %s: %s", gate->segment, name, shmlimit_strerror(gate->rule));
		return -1;
	}
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
	/* Once, and not once a request: a broken limiter must not fill the disk too. */
	if (answer != gate->reported)
		warnx("segment %s: rule %s: %s: %s from now on", gate->segment, gate->rule_name,
		      shmlimit_strerror(answer), gate->fail_open ? "unlimited" : "503");
	gate->reported = answer;
	return gate->fail_open ? GATE_UNLIMITED : GATE_OUT_OF_ORDER;
}

void gate_fields(const struct gate *gate, enum gate_answer answer, const struct shmlimit_result *r,
                 struct shmlimit_fields *out)
{
	out->struct_size = sizeof(*out);
	/* The name is one that a rule has, so there is nothing to go wrong. */
	(void)shmlimit_fields(gate->rule_name, &gate->params,
	                      answer == GATE_DENIED ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED, r, out);
}
