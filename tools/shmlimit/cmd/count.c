/*
 * count.c: shmlimit count: a count that expires, like Redis's INCREX.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "value_parse.h"

enum { NAME, RULE, KEY };
enum { BY, TTL, BOUND, SATURATE, RESTART, JSON, QUIET };

#define MS UINT64_C(1000000)

static const struct command_option options[] = {
	[BY] = { "by", "N", "add N (default 1); -N takes away, 0 only reads" },
	[TTL] = { "ttl", "DURATION", "how long a count lives that begins now (default: the rule's period)" },
	[BOUND] = { "bound", "N", "the count may not be above N (default: the rule's capacity)" },
	[SATURATE] = { "saturate", NULL, "beyond the bound, or below 0: add what fits, instead of nothing" },
	[RESTART] = { "restart", NULL, "the time to live begins again" },
	[JSON] = { "json", NULL, "print the facts as JSON" },
	[QUIET] = { "quiet", NULL, "print nothing; the exit status is the answer" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

struct question {
	struct key key;
	int64_t n, bound;
	uint64_t ttl_ns;
	uint32_t flags;
};

static int by_parse(const char *text, int64_t *n)
{
	uint64_t number;
	int negative = text[0] == '-';
	int status = number_parse("--by", text + negative, 0, INT64_MAX, &number);

	*n = negative ? -(int64_t)number : (int64_t)number;
	return status;
}

static int options_parse(const struct call *call, struct question *q)
{
	uint64_t bound = INT64_MAX;
	int status;

	if (call->option[JSON] != NULL && call->option[QUIET] != NULL)
		return fail("--json and --quiet cannot be combined");
	status = key_parse(call, call->operand[KEY], &q->key);
	if (status == STATUS_OK && call->option[BY] != NULL)
		status = by_parse(call->option[BY], &q->n);
	if (status == STATUS_OK && call->option[TTL] != NULL)
		status = duration_parse("--ttl", call->option[TTL], &q->ttl_ns);
	if (status == STATUS_OK && call->option[TTL] != NULL && q->ttl_ns == 0)
		status = fail("--ttl %s: must be more than 0", call->option[TTL]);
	if (status == STATUS_OK && call->option[BOUND] != NULL)
		status = number_parse("--bound", call->option[BOUND], 0, INT64_MAX, &bound);
	q->bound = (int64_t)bound;
	if (call->option[SATURATE] != NULL)
		q->flags |= SHMLIMIT_COUNT_SATURATE;
	if (call->option[RESTART] != NULL)
		q->flags |= SHMLIMIT_COUNT_RESTART;
	return status;
}

static json_t *count_json(int answer, const struct shmlimit_count *c)
{
	/* clang-format off */
	return json_pack("{s:b, s:I, s:I, s:o}",
	                 "allowed", answer == SHMLIMIT_ALLOWED,
	                 "count", (json_int_t)c->count,
	                 "applied", (json_int_t)c->applied,
	                 "ttl_ns", json_number(c->ttl_ns));
	/* clang-format on */
}

static int fail_count(struct shmlimit *limiter, const struct call *call, int id, int error)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	char longest[TEXT_LEN];

	if (error == -EOPNOTSUPP)
		return fail("rule %s: not a counter (set one with --algorithm counter)", call->operand[RULE]);
	if (error == -ERANGE && shmlimit_rule_range(limiter, id, &range) == 0)
		return fail("--ttl %s: a count of rule %s lives for its period, %s, at most", call->option[TTL],
		            call->operand[RULE], duration_text(longest, range.refill_ns));
	return fail_rule(call->operand[NAME], call->operand[RULE], error);
}

static int ask(const struct call *call, struct shmlimit *limiter, struct question *q)
{
	struct shmlimit_count c = { .struct_size = sizeof(c) };
	int id, answer, status = rule_find(limiter, call->operand[NAME], call->operand[RULE], &id);

	if (status != STATUS_OK)
		return status;
	key_choose(limiter, id, &q->key);
	answer = shmlimit_count(limiter, id, q->key.bytes, q->key.len,
	                        &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                          .flags = q->flags,
	                                                          .n = q->n,
	                                                          .bound = q->bound,
	                                                          .ttl_ns = q->ttl_ns },
	                        &c);
	if (answer < 0)
		return fail_count(limiter, call, id, answer);
	if (call->option[JSON] != NULL)
		status = print_json(count_json(answer, &c));
	else if (call->option[QUIET] == NULL)
		printf("%" PRId64 " %" PRId64 " %" PRIu64 ".%03" PRIu64 "\n", c.count, c.applied,
		       (c.ttl_ns + MS - 1) / MS / 1000, (c.ttl_ns + MS - 1) / MS % 1000);
	if (status != STATUS_OK)
		return status;
	return answer == SHMLIMIT_ALLOWED ? STATUS_OK : STATUS_NO;
}

static int run(const struct call *call)
{
	struct question q = { .n = 1 };
	struct shmlimit *limiter;
	int status = options_parse(call, &q);

	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], q.n == 0 && q.flags == 0 ? SHMLIMIT_OPEN_READ_ONLY : 0,
		                      &limiter);
	if (status != STATUS_OK)
		return status;
	status = ask(call, limiter, &q);
	shmlimit_close(limiter);
	return status;
}

const struct command command_count = {
	.name = "count",
	.operands = "NAME RULE KEY",
	.purpose = "add to a count that expires, like Redis's INCREX",
	.details = "Prints one line: the count; what was added; seconds until the count ends. Exit 0 if it was added,\n"
		   "or 1 if the count would be above the bound or below 0: then nothing was changed.\n",
	.options = options,
	.run = run,
};
