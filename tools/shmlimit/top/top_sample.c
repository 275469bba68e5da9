/*
 * top_sample.c: all counters of a segment, at one moment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "fail.h"
#include "monotonic.h"
#include "named_segment.h"
#include "rule_facts.h"
#include "many_hosts.h"
#include "top.h"

/* WHY NOT shmlimit_now(): the segment's clock may be a coarse one. */
/* WHY another handle: the part of a segment that agents use is not for read-only ones. */
static int count_failures(const char *name, struct top_sample *sample)
{
	struct shmlimit *limiter = NULL;
	int error = segment_try(name, SHMLIMIT_OPEN_TRUSTED, &limiter);

	sample->all.on_failure = error == 0 ? 0 : UINT64_MAX;
	for (size_t i = 0; i < sample->rules; i++) {
		struct top_count *count = &sample->rule[i];

		count->on_failure = error == 0 ? many_hosts_failures(limiter, count->id) : UINT64_MAX;
		sample->all.on_failure += error == 0 ? count->on_failure : 0;
	}
	shmlimit_close(limiter);
	return error == -ENOMEM ? fail_memory() : STATUS_OK;
}

int top_sample_take(const char *name, struct shmlimit *limiter, const struct shmlimit_info *info,
                    struct top_sample *sample)
{
	sample->rules = 0;
	if (sample->rule == NULL)
		sample->rule = calloc(info->rules, sizeof(*sample->rule));
	if (sample->rule == NULL)
		return fail_memory();
	for (int id = 0; id < (int)info->rules; id++) {
		struct top_count *count = &sample->rule[sample->rules];

		count->id = id;
		count->counters.struct_size = sizeof(count->counters);
		if (shmlimit_rule_name(limiter, id, count->name) == 0 && !rule_is_breaker(count->name) &&
		    shmlimit_counters(limiter, id, &count->counters) == 0)
			sample->rules++;
	}
	rule_counters_all(limiter, &sample->all.counters);
	sample->at_ns = monotonic_ns();
	return count_failures(name, sample);
}

void top_sample_free(struct top_sample *sample)
{
	free(sample->rule);
	*sample = (struct top_sample){ 0 };
}
