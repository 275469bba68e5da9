/*
 * entered: requests that hold places or have paid an estimate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GATE_ENTERED_H
#define TESTS_GATE_ENTERED_H

#include "gate.h"

/* Of the last request that entered. */
static struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
static size_t key_count;

/* Enter with one key the limits that are listed, up to -1. */
__attribute__((unused)) static int gate_enter(struct shmlimit_gate *gate, struct shmlimit_gate_held *held,
                                              const char *key, const int *limits)
{
	for (key_count = 0; limits[key_count] >= 0; key_count++)
		keys[key_count] = (struct shmlimit_gate_key){ .limit = (uint32_t)limits[key_count],
			                                      .bytes = key,
			                                      .length = (uint32_t)strlen(key) };
	new_out();
	memset(held, 0x77, sizeof(*held));
	held->struct_size = sizeof(*held);
	return shmlimit_gate_enter(gate, keys, key_count, &answer, held);
}

#define ENTER(gate, held, key, ...) gate_enter(gate, held, key, (const int[]){ __VA_ARGS__, -1 })

/* Tokens or places that are left. */
__attribute__((unused)) static uint64_t left(const char *rule, const char *key)
{
	struct shmlimit_result r = { 0 };
	struct shmlimit *l;

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
		bail("shmlimit_open");
	shmlimit_peek(l, shmlimit_rule_find(l, rule), key, strlen(key), 1, &r);
	shmlimit_close(l);
	return r.remaining;
}

/* Of the rule "mode". */
__attribute__((unused)) static void set_mode(uint32_t mode)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit *l;

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
		bail("shmlimit_open");
	shmlimit_rule_get(l, shmlimit_rule_find(l, "mode"), &rule);
	rule.mode = mode;
	rule.set_unix_ns = 0;
	unit_id(shmlimit_rule_set(l, "mode", &rule));
	shmlimit_close(l);
}

#endif
