/*
 * header_fields: see header_fields.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "header_fields.h"

#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define NUMBER_MAX 21 /* bytes of a number, the NUL included */

_Static_assert(SHMLIMIT_GATE_BUFFER_EACH >= sizeof(struct shmlimit_fields), "a limit's fields fit");
_Static_assert(HEADER_FIELDS_REST >= 3 * NUMBER_MAX + _Alignof(struct shmlimit_fields), "the numbers fit");
_Static_assert(SHMLIMIT_GATE_FIELDS_MAX == 2 * SHMLIMIT_REQUESTS_MAX + 4, "Retry-After, and three of X-RateLimit");

static void add_field(struct shmlimit_gate_answer *out, const char *name, size_t name_length, const char *value)
{
	out->fields[out->field_count++] =
		(struct shmlimit_gate_field){ name, value, (uint32_t)name_length, (uint32_t)strlen(value) };
}

#define ADD_FIELD(out, name, value) add_field(out, name, sizeof(name) - 1, value)

static void add_number(struct shmlimit_gate_answer *out, struct gate_request *q, const char *name, size_t name_length,
                       uint64_t value)
{
	char *at = q->to + NUMBER_MAX - 1;

	q->to += NUMBER_MAX;
	*at = '\0';
	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	add_field(out, name, name_length, at);
}

void header_fields_add(struct view *view, struct gate_request *q, size_t i, int answer, const struct shmlimit_result *r,
                       struct shmlimit_gate_answer *out)
{
	const struct spec_limit *limit = q->limits[i];
	struct shmlimit_fields *fields = (void *)q->to;
	struct shmlimit_rule rule;

	/* A rule in a dry run that denies is at its limit. Clients get no fields of a dry run. */
	if (answer == SHMLIMIT_ALLOWED && r->retry_after_ns > 0)
		q->dry_denied = 1;
	if (out->buffer == NULL || (answer == SHMLIMIT_ALLOWED && limit->denied_only))
		return;
	rule.struct_size = sizeof(rule);
	if (shmlimit_rule_get(view->limiter, __atomic_load_n(&view->ids[limit->rule], __ATOMIC_RELAXED), &rule) != 0 ||
	    rule.mode != SHMLIMIT_ENFORCE)
		return;
	if (q->has_limit[i]) {
		const struct shmlimit_limit *own = &q->own_limits[i];

		/* As of a rule that blocks, or is off. */
		if (own->flags != 0)
			return;
		rule.capacity = own->capacity;
		rule.refill = own->refill;
		rule.period_ns = own->period_ns;
	}
	/* A ban lasts as long as the call that counts says. The period is only the longest time. */
	if (limit->peek && rule.algorithm == SHMLIMIT_COUNTER)
		rule.refill = 0;
	fields->struct_size = sizeof(*fields);
	if (shmlimit_fields(q->spec->rules[limit->rule].name, &rule, answer, r, fields) != 0)
		return;
	q->to += sizeof(*fields);
	ADD_FIELD(out, "RateLimit-Policy", fields->policy);
	ADD_FIELD(out, "RateLimit", fields->limit);
	if (fields->retry_after[0] != '\0')
		ADD_FIELD(out, "Retry-After", fields->retry_after);
	if (r->remaining < q->remaining) {
		q->limit = r->limit;
		q->remaining = r->remaining;
		q->reset_ns = out->retry_after_ns != 0 && out->retry_after_ns != UINT64_MAX ? out->retry_after_ns
		                                                                            : r->reset_after_ns;
	}
}

void header_fields_add_x(struct gate_request *q, struct shmlimit_gate_answer *out)
{
	struct timespec now;
	uint64_t reset_s;

	if (out->field_count == 0)
		return;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	reset_s = (uint64_t)now.tv_sec + (q->reset_ns + (uint64_t)now.tv_nsec + NS_PER_S - 1) / NS_PER_S;
#define ADD_NUMBER(name, value) add_number(out, q, name, sizeof(name) - 1, value)
	ADD_NUMBER("X-RateLimit-Limit", q->limit);
	ADD_NUMBER("X-RateLimit-Remaining", q->remaining);
	ADD_NUMBER("X-RateLimit-Reset", reset_s);
#undef ADD_NUMBER
}
