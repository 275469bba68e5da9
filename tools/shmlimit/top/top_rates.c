/*
 * top_rates.c: what happened between two moments. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "duration.h"
#include "number_text.h"
#include "top.h"

const struct choice choices_top_sort[] = {
	{ "denied", TOP_DENIED },
	{ "allowed", TOP_ALLOWED },
	{ "name", TOP_NAME },
	{ 0 },
};
const struct choice choices_top_order[] = {
	{ "denial", TOP_KEYS_BY_DENIAL },
	{ "near", TOP_KEYS_BY_NEAR },
	{ "reset", TOP_KEYS_BY_RESET },
	{ 0 },
};

#define SECOND UINT64_C(1000000000)

/* A counter that went back began at 0 again. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
	if (!(seconds > 0))
		return -1;
	return (double)(now >= before ? now - before : now) / seconds;
}

static struct top_row row_of(const char *name, const struct top_count *before, const struct top_count *now,
                             double seconds)
{
	const struct shmlimit_counters *was = &before->counters, *is = &now->counters;
	struct top_row row = {
		.allowed = is->allowed,
		.denied = is->denied,
		.allowed_s = rate(was->allowed, is->allowed, seconds),
		.denied_s = rate(was->denied, is->denied, seconds),
		.shadow_s = rate(was->shadow_denied, is->shadow_denied, seconds),
		.evictions_s = rate(was->evictions, is->evictions, seconds),
		.no_slot_s = rate(was->no_slot, is->no_slot, seconds),
		.on_failure_s = -1,
	};

	if (before->on_failure != UINT64_MAX && now->on_failure != UINT64_MAX)
		row.on_failure_s = rate(before->on_failure, now->on_failure, seconds);
	strcpy(row.name, name);
	return row;
}

void top_rows(const struct top_sample *before, const struct top_sample *now, struct top_row *rows, struct top_row *all)
{
	static const struct top_count none;
	double seconds = before->at_ns != 0 ? (double)(now->at_ns - before->at_ns) / SECOND : 0;
	size_t b = 0;

	for (size_t i = 0; i < now->rules; i++) {
		const struct top_count *rule = &now->rule[i], *then = &none;

		/*
		 * Both are in the order of ids. A rule that was not there, or had another name,
		 * began with nothing.
		 */
		while (b < before->rules && before->rule[b].id < rule->id)
			b++;
		if (b < before->rules && before->rule[b].id == rule->id &&
		    strcmp(before->rule[b].name, rule->name) == 0)
			then = &before->rule[b];
		rows[i] = row_of(rule->name, then, rule, seconds);
	}
	*all = row_of("(all)", &before->all, &now->all, seconds);
}

static int larger(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare(const void *left, const void *right, void *sort)
{
	const struct top_row *a = left, *b = right;
	int first = 0;

	if (*(const enum top_sort *)sort == TOP_DENIED)
		first = larger(a->denied_s + a->shadow_s, b->denied_s + b->shadow_s);
	if (first == 0 && *(const enum top_sort *)sort == TOP_DENIED)
		first = larger((double)a->denied, (double)b->denied);
	if (first == 0 && *(const enum top_sort *)sort != TOP_NAME)
		first = larger(a->allowed_s, b->allowed_s);
	if (first == 0 && *(const enum top_sort *)sort != TOP_NAME)
		first = larger((double)a->allowed, (double)b->allowed);
	return first != 0 ? first : strcmp(a->name, b->name);
}

void top_rows_sort(struct top_row *rows, size_t n, enum top_sort sort)
{
	if (n > 1)
		qsort_r(rows, n, sizeof(*rows), compare, &sort);
}

const char *top_rate_text(char text[TEXT_LEN], double per_second)
{
	if (per_second < 0)
		strcpy(text, "-");
	else
		snprintf(text, TEXT_LEN, "%.*f", per_second < 999.95 ? 1 : 0, per_second);
	return text;
}

const char *top_span_text(char text[TEXT_LEN], uint64_t ns)
{
	uint64_t step = ns < 60 * SECOND      ? SECOND / 10
	                : ns < 3600 * SECOND  ? SECOND
	                : ns < 86400 * SECOND ? 60 * SECOND
	                                      : 3600 * SECOND;

	return duration_text(text, ns == UINT64_MAX ? ns : ns - ns % step);
}
