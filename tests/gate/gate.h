/*
 * gate: what the tests of a gate share: one gate on the program's segment, and the last answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GATE_GATE_H
#define TESTS_GATE_GATE_H

#include "../unit/unit.h"
#include "shmlimit_gate.h"

static char gate_lines[8][300]; /* what was reported, up to eight lines */
static int gate_said, gate_bad;
static char gate_buffer[SHMLIMIT_GATE_BUFFER];
static struct shmlimit_gate_answer answer;

/* An answer that no call has written yet. */
static inline void new_out(void)
{
	memset(&answer, 0x77, sizeof(answer));
	memset(gate_buffer, 'x', sizeof(gate_buffer));
	answer.struct_size = sizeof(answer);
	answer.buffer = gate_buffer;
	answer.buffer_size = sizeof(gate_buffer);
}

__attribute__((unused)) static void gate_hear(void *arg, int bad, const char *text)
{
	if (arg != gate_lines)
		bail("another argument");
	gate_bad += bad;
	if (gate_said < 8)
		snprintf(gate_lines[gate_said], sizeof(gate_lines[0]), "%s", text);
	gate_said++;
}

/* A gate on the program's segment, attached; `rest` is what its spec has besides. */
__attribute__((unused)) static struct shmlimit_gate *gate_new(const char *rest)
{
	struct shmlimit_gate *gate;
	char spec[2048];

	snprintf(spec, sizeof(spec), "segment=%s %s", unit_name, rest);
	gate_said = gate_bad = 0;
	if (shmlimit_gate_open(spec, &gate) != 0)
		bail("shmlimit_gate_open: %s", spec);
	shmlimit_gate_report(gate, gate_hear, gate_lines);
	(void)shmlimit_gate_attach(gate);
	return gate;
}

/* Ask the limits whose places in the spec are listed, up to -1, with one key. */
__attribute__((unused)) static int gate_ask(struct shmlimit_gate *gate, const char *key, const int *limits)
{
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n = 0;

	for (; limits[n] >= 0; n++)
		keys[n] = (struct shmlimit_gate_key){ .limit = (uint32_t)limits[n],
			                              .bytes = key,
			                              .length = (uint32_t)strlen(key) };
	new_out();
	return shmlimit_gate_ask(gate, keys, n, &answer);
}

#define ASK(gate, key, ...) gate_ask(gate, key, (const int[]){ __VA_ARGS__, -1 })

/* The value of the field `name`, the first of several, or "". */
__attribute__((unused)) static const char *gate_field(const char *name)
{
	for (uint32_t i = 0; i < answer.field_count; i++)
		if (strcmp(answer.fields[i].name, name) == 0)
			return answer.fields[i].value;
	return "";
}

#endif
