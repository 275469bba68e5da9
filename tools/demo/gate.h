/*
 * gate: the limiter in front of the service. Opens the segment and asks it
 * about a client.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_DEMO_GATE_H
#define SHMLIMIT_DEMO_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shmlimit.h"

struct gate {
	struct shmlimit *limiter; /* NULL: there is no limit */
	const char *segment;
	const char *rule_name;
	int rule;
	bool separate;  /* each worker has a rule, and so a limit, of its own */
	bool fail_open; /* what an error of the limiter means: pass, or out of order */
	int reported;   /* the error that was logged last */
	struct shmlimit_rule params;
};

enum gate_answer {
	GATE_ALLOWED,
	GATE_DENIED,
	GATE_UNLIMITED,   /* pass: there is no limit, or it failed and the gate fails open */
	GATE_OUT_OF_ORDER /* the limiter failed and the gate fails closed */
};

/*
 * Open `segment` and look up `rule_name`; both strings must outlive the gate.
 * Call it before fork(): parent and children share the handle. Returns 0, or
 * -1 after a message.
 */
int gate_open(struct gate *gate, const char *segment, const char *rule_name);

/*
 * Give this worker a rule of its own with the limit of the common one, named after its process. Returns 0, or -1 after a
 * message.
 */
int gate_separate(struct gate *gate);

/* Ask for one token of the client's. *r is filled when the answer is GATE_ALLOWED or GATE_DENIED. */
enum gate_answer gate_ask(struct gate *gate, const void *key, size_t key_len, struct shmlimit_result *r);

/* What the response says of an answer that is GATE_ALLOWED or GATE_DENIED. */
void gate_fields(const struct gate *gate, enum gate_answer answer, const struct shmlimit_result *r,
                 struct shmlimit_fields *out);

#endif
