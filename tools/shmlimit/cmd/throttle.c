/*
 * throttle.c: shmlimit throttle: redis-cell's CL.THROTTLE.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "fraction.h"
#include "key_option.h"
#include "named_segment.h"
#include "print.h"
#include "value_parse.h"

enum { NAME, KEY, CAPACITY, COUNT, PERIOD, QUANTITY };
enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

#define SECOND UINT64_C(1000000000)

struct limit {
	uint64_t capacity, count, period_s, quantity;
};

/* WHY NOT a suffix: 1m would be a million seconds, and be taken for a minute. */
static int seconds_parse(const char *text, uint64_t *seconds)
{
	const char *t = text;
	uint64_t s;
	int error = digits_scan(&t, &s);

	if (error == -EINVAL || (error == 0 && *t != '\0'))
		return fail("period %s: not a whole number of seconds", text);
	if (error != 0 || s < 1 || s > UINT64_MAX / SECOND)
		return fail("period %s: must be 1 to %" PRIu64, text, UINT64_MAX / SECOND);
	*seconds = s;
	return STATUS_OK;
}

/* 0.5 in a second is 1 in 2. The reader of limits says what is nearest to one that cannot be. */
static int count_parse(const char *text, struct limit *limit)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	char rate[SHMLIMIT_RULE_TEXT_MAX];
	const char *t = text;
	struct fraction f;
	int error = fraction_scan(&t, &f), status;

	if (error == -EINVAL || (error == 0 && *t != '\0'))
		return fail("count %s: not a number (for example 30 or 0.5)", text);
	if (error == 0 && f.num == 0)
		return fail("count %s: must be above 0", text);
	snprintf(rate, sizeof(rate), "%.60s/%" PRIu64 "s", text, limit->period_s);
	status = limit_option_parse("count", rate, &rule);
	if (status != STATUS_OK)
		return status;
	if (rule.period_ns % SECOND != 0)
		return fail("count %s: no whole number of tokens in whole seconds", text);
	limit->count = rule.refill;
	limit->period_s = rule.period_ns / SECOND;
	return STATUS_OK;
}

static int operands_parse(const struct call *call, struct key *key, struct limit *limit)
{
	char **text = call->operand;
	int status = key_parse(call, text[KEY], key);

	if (status == STATUS_OK)
		status = number_parse("capacity", text[CAPACITY], 1, UINT64_MAX, &limit->capacity);
	if (status == STATUS_OK)
		status = seconds_parse(text[PERIOD], &limit->period_s);
	if (status == STATUS_OK)
		status = count_parse(text[COUNT], limit);
	if (status == STATUS_OK && text[QUANTITY] != NULL)
		status = number_parse("quantity", text[QUANTITY], 0, UINT64_MAX, &limit->quantity);
	return status;
}

static int fail_throttle(const char *segment, const struct limit *limit, int error)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_GCRA,
		                      .capacity = limit->capacity,
		                      .refill = limit->count,
		                      .period_ns = limit->period_s * SECOND };

	return error == -ERANGE ? fail_exact("~throttle", &rule) : fail_rule(segment, "~throttle", error);
}

static json_t *reply_json(const int64_t reply[5])
{
	/* clang-format off */
	return json_pack("{s:b, s:I, s:I, s:o, s:I}",
	                 "allowed", reply[0] == 0,
	                 "limit", (json_int_t)reply[1],
	                 "remaining", (json_int_t)reply[2],
	                 "retry_after_s", reply[3] < 0 ? json_null() : json_integer(reply[3]),
	                 "reset_after_s", (json_int_t)reply[4]);
	/* clang-format on */
}

static int run(const struct call *call)
{
	struct limit limit = { .quantity = 1 };
	struct key key;
	struct shmlimit *limiter;
	int64_t reply[5];
	int answer, status = operands_parse(call, &key, &limit);

	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	answer = shmlimit_throttle(limiter, key.bytes, key.len, limit.capacity, limit.count, limit.period_s,
	                           limit.quantity, reply);
	shmlimit_close(limiter);
	if (answer < 0)
		return fail_throttle(call->operand[NAME], &limit, answer);
	if (call->option[JSON] != NULL && (status = print_json(reply_json(reply))) != STATUS_OK)
		return status;
	for (int i = 0; i < 5 && call->option[JSON] == NULL; i++)
		printf("%" PRId64 "%c", reply[i], i < 4 ? ' ' : '\n');
	return answer == SHMLIMIT_ALLOWED ? STATUS_OK : STATUS_NO;
}

const struct command command_throttle = {
	.name = "throttle",
	.operands = "NAME KEY CAPACITY COUNT PERIOD [QUANTITY]",
	.purpose = "take tokens of a limit given by its numbers, like redis-cell's CL.THROTTLE",
	.details =
		"COUNT tokens, such as 30 or 0.5, come back every PERIOD seconds; QUANTITY, by default 1, are asked\n"
		"for. Prints, as one line: 0 allowed or 1 denied; capacity; tokens left; seconds until a retry fits, or -1;\n"
		"seconds until the funnel is full. Exit 0 if allowed, 1 if denied.\n",
	.options = options,
	.run = run,
};
