/*
 * header_fields: see header_fields.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>
#include <time.h>

#include "field_text.h"
#include "header_fields.h"
#include "refusal.h"
#include "traits.h"

#define NS_PER_S UINT64_C(1000000000)
#define NUMBER_MAX 21 /* bytes of a number, the NUL included */

_Static_assert(SHMLIMIT_GATE_BUFFER_EACH >= sizeof(struct shmlimit_fields), "a limit's fields fit");
_Static_assert(HEADER_FIELDS_REST >= 3 * NUMBER_MAX + _Alignof(struct shmlimit_fields), "the numbers fit");
_Static_assert(SHMLIMIT_GATE_FIELDS_MAX == 2 * SHMLIMIT_REQUESTS_MAX + 4, "Retry-After, and three of X-RateLimit");

static void add_field(struct shmlimit_gate_answer *out, const char *name, size_t name_length, const char *value,
                      size_t value_length)
{
	out->fields[out->field_count++] =
		(struct shmlimit_gate_field){ name, value, (uint32_t)name_length, (uint32_t)value_length };
}

#define ADD_FIELD(out, name, value, length) add_field(out, name, sizeof(name) - 1, value, length)

static void add_number(struct shmlimit_gate_answer *out, struct gate_request *q, const char *name, size_t name_length,
                       uint64_t value)
{
	char *at = q->to + NUMBER_MAX - 1;

	q->to += NUMBER_MAX;
	*at = '\0';
	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	add_field(out, name, name_length, at, strlen(at));
}

/* The rule of a limit as it is now. Returns 0, or -ESRCH. */
static int read_key(const struct view *view, const struct gate_request *q, size_t i, const struct shmlimit_result *r,
                    struct fixed_key *key)
{
	key->id = __atomic_load_n(&view->ids[q->limits[i]->rule], __ATOMIC_RELAXED);
	/* What a share allows differs with each request, and stands in no policy. */
	key->quota = q->shares[i] != 0 ? 0 : r->limit;
	return shmlimit_rule_version(view->limiter, key->id, &key->version);
}

static struct fixed_fields *kept_of(const struct view *view, const struct gate_request *q, size_t i)
{
	return &view->fixed[q->limits[i] - q->spec->limits];
}

/*
 * Make what the fields say as long as the rule does not change, and keep it. Returns 1: *shape and
 * *to are filled in, as by fixed_fields_find(); or 0: there is no rule.
 */
__attribute__((noinline, cold)) static int make_fixed(const struct view *view, const struct gate_request *q, size_t i,
                                                      const struct shmlimit_result *r, struct fixed_shape *shape,
                                                      struct shmlimit_fields *to)
{
	const struct spec_limit *limit = q->limits[i];
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_result says = *r;
	struct fixed_key key, again;
	const struct traits *traits;

	*shape = (struct fixed_shape){ 0 };
	if (read_key(view, q, i, r, &key) != 0 || shmlimit_rule_get(view->limiter, key.id, &rule) != 0)
		return 0;
	if (q->has_limit[i]) {
		const struct shmlimit_limit *own = &q->own_limits[i];

		/* As of a rule that blocks, or is off. */
		if (own->flags != 0 && own->flags != SHMLIMIT_LIMIT_PLACES)
			return 0;
		rule.capacity = own->capacity;
		rule.refill = own->refill;
		/* How long a place is held is the rule's. */
		if (own->flags == 0)
			rule.period_ns = own->period_ns;
	}
	traits = traits_of(rule.algorithm);
	/* A ban lasts as long as the call that counts says. The period is only the longest time. */
	if (limit->peek && traits->takes_times)
		rule.refill = 0;
	if (q->shares[i] != 0)
		says.limit = rule.capacity;
	to->struct_size = sizeof(*to);
	/* Clients get no fields of a dry run. */
	if (rule.mode == SHMLIMIT_ENFORCE) {
		if (shmlimit_fields(q->spec->rules[limit->rule].name, &rule, SHMLIMIT_ALLOWED, &says, to) != 0)
			return 0;
		shape->length = (uint32_t)strlen(to->policy);
		shape->name_length = (uint32_t)(strrchr(to->limit, '"') + 1 - to->limit);
		shape->has_time = !traits->is_places;
	}
	/*
	 * WHY look again: the rule may have been changed between its version and what was read of
	 * it.
	 */
	if (!q->has_limit[i] && read_key(view, q, i, r, &again) == 0 && again.id == key.id &&
	    again.version == key.version)
		fixed_fields_keep(kept_of(view, q, i), &key, shape, to->policy);
	return 1;
}

/* WHY NOT of a limit that a request brings: the next request brings another. */
static int find_fixed(const struct view *view, const struct gate_request *q, size_t i, const struct shmlimit_result *r,
                      struct fixed_shape *shape, struct shmlimit_fields *to)
{
	struct fixed_key key;

	return !q->has_limit[i] && read_key(view, q, i, r, &key) == 0 &&
	       fixed_fields_find(kept_of(view, q, i), &key, shape, to);
}

void header_fields_add(struct view *view, struct gate_request *q, size_t i, int answer, const struct shmlimit_result *r,
                       struct shmlimit_gate_answer *out)
{
	struct shmlimit_fields *fields = (void *)q->to;
	struct fixed_shape shape;
	uint64_t t_s;

	if (answer == SHMLIMIT_ALLOWED && r->retry_after_ns > 0)
		refusal_dry(q, i);
	if (out->buffer == NULL || (answer == SHMLIMIT_ALLOWED && q->limits[i]->denied_only))
		return;
	if ((!find_fixed(view, q, i, r, &shape, fields) && !make_fixed(view, q, i, r, &shape, fields)) ||
	    shape.length == 0)
		return;
	q->to += sizeof(*fields);
	t_s = field_wait_put(fields->retry_after, shape.has_time, answer, r);
	ADD_FIELD(out, "RateLimit-Policy", fields->policy, shape.length);
	ADD_FIELD(out, "RateLimit", fields->limit,
	          (size_t)(field_limit_put(fields->limit + shape.name_length, r->remaining, shape.has_time, t_s) -
	                   fields->limit));
	if (fields->retry_after[0] != '\0')
		ADD_FIELD(out, "Retry-After", fields->retry_after, strlen(fields->retry_after));
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
