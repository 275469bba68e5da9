/*
 * refusal: see refusal.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "header_fields.h"
#include "one_limit.h"
#include "refusal.h"

/* A count of denials=, in a rule that the gate makes. */
#define DENIALS_MAX 1000000
#define DENIALS_PERIOD_NS UINT64_C(60000000000)

static void report_denials(struct segment_ref *ref, const char *counter, int error)
{
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];

	snprintf(text, sizeof(text), "segment %.*s: rule %.*s: it does not count denials: %s", SHMLIMIT_NAME_MAX,
	         ref->spec->segment, SHMLIMIT_RULE_NAME_MAX, counter,
	         error == -EOPNOTSUPP ? "it is not a counter" : shmlimit_strerror(error));
	segment_ref_report(ref, text);
}

/*
 * Count a denial of the key, for a minute from its first one. A rule that is missing is made, with
 * create=yes. The count saturates, and without a slot for it nothing is counted.
 */
RARE static void count_denial(struct segment_ref *ref, const struct view *view, const struct gate_request *q,
                              size_t which)
{
	const char *counter = q->limits[which]->denials;
	const struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                            .algorithm = SHMLIMIT_COUNTER,
		                            .capacity = DENIALS_MAX,
		                            .period_ns = DENIALS_PERIOD_NS };
	const struct shmlimit_count_request one = {
		.struct_size = sizeof(one), .flags = SHMLIMIT_COUNT_SATURATE, .n = 1, .bound = INT64_MAX
	};
	int id = shmlimit_rule_find(view->limiter, counter), answer;

	if (id == -ESRCH && ref->spec->create)
		id = shmlimit_rule_set(view->limiter, counter, &rule);
	answer = id < 0 ? id
	                : shmlimit_count(view->limiter, id, q->keys[which].bytes, q->keys[which].length, &one, NULL);
	if (answer < 0)
		report_denials(ref, counter, answer);
}

/*
 * Clients of one key that are denied together would come back together: each gets a time of its
 * own, from the wait to the limit's percentage more. It follows from the key's bytes and the clock.
 */
RARE static void spread(const struct gate_request *q, size_t which, struct shmlimit_result *r)
{
	const unsigned char *key = q->keys[which].bytes;
	uint64_t mixed = clock_read(CLOCK_MONOTONIC), range;

	if (r->retry_after_ns == 0 || r->retry_after_ns > UINT64_MAX / 4)
		return;
	for (size_t i = 0; i < q->keys[which].length; i++)
		mixed = (mixed ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
	mixed ^= mixed >> 32;
	mixed = mixed * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	range = r->retry_after_ns / 100 * q->limits[which]->jitter_percent;
	r->retry_after_ns += (uint64_t)((unsigned __int128)range * mixed >> 32);
}

void refusal_make(struct segment_ref *ref, struct view *view, struct gate_request *q, size_t which,
                  struct shmlimit_result *r, struct shmlimit_gate_answer *out)
{
	if (q->limits[which]->jitter_percent != 0)
		spread(q, which, r);
	if (q->limits[which]->denials != NULL)
		count_denial(ref, view, q, which);
	out->denied_by = (uint32_t)q->key_index[which];
	out->status = q->limits[which]->status;
	out->retry_after_ns = r->retry_after_ns;
	refusal_note_remaining(q, r);
	header_fields_add(view, q, which, SHMLIMIT_DENIED, r, out);
}

void refusal_dry_delay(struct gate_request *q, size_t which)
{
	if (!q->dry_denied && !q->dry_delayed && !(q->others > 0 && q->waited))
		q->by = q->key_index[which];
	q->dry_delayed = 1;
}
