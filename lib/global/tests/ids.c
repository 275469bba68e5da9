/*
 * ids: a number that is no rule's id is no rule to any call of many hosts. None of them asks the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "server.h"

#define KEY "key", 3

static struct shmlimit *l;
static struct shmlimit_global *g;

static struct shmlimit_request request_of(int id)
{
	return (struct shmlimit_request){ .rule = id, .key = "key", .key_len = 3, .cost = 1 };
}

static int take(int id)
{
	return shmlimit_global_take(g, id, KEY, 1, NULL);
}

static int take_many(int id)
{
	struct shmlimit_request request = request_of(id);
	int answer, error = shmlimit_global_take_many(g, &request, 1, &answer, NULL);

	return error != 0 ? error : answer;
}

static int take_all(int id)
{
	struct shmlimit_request request = request_of(id);

	return shmlimit_global_take_all(g, &request, 1, NULL, NULL);
}

static int count(int id)
{
	struct shmlimit_count_request request = { .struct_size = sizeof(request), .n = 1, .bound = 9 };

	return shmlimit_global_count(g, id, KEY, &request, NULL);
}

static int begin(int id)
{
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	struct shmlimit_request request = request_of(id);

	return shmlimit_global_begin(g, &request, &ticket, NULL);
}

static int begin_all(int id)
{
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	struct shmlimit_request request = request_of(id);

	return shmlimit_global_begin_all(g, &request, 1, &ticket, NULL, NULL);
}

static int peek(int id)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

	return shmlimit_global_peek(g, id, KEY, &funnel);
}

static int reset(int id)
{
	return shmlimit_global_reset(g, id, KEY);
}

static int reset_rule(int id)
{
	return shmlimit_global_reset(g, id, NULL, 0);
}

static const struct {
	const char *name;
	int (*call)(int id);
} calls[] = {
	{ "take", take },   { "take_many", take_many },  { "take_all", take_all },
	{ "count", count }, { "begin", begin },          { "begin_all", begin_all },
	{ "peek", peek },   { "reset of a key", reset }, { "reset of a rule", reset_rule },
};

int main(void)
{
	static const int ids[] = { -1, -2, -3, -22, -4095, 2, 63, 64, 4096, INT_MAX, INT_MIN + 1, SHMLIMIT_ALL_RULES };
	struct shmlimit_result r;
	int rule;

	stage_begin("global.ids");
	l = stage_create(64, 0, 0);
	rule = lease_rule(l, "login", 8, 1, 1000000000);
	if (shmlimit_global_open(l, "redis://127.0.0.1:1", NULL, &g) != 0)
		bail("open");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int wrong = 0, worst = 0;

		for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
			int answer = calls[i].call(ids[k]);

			if (answer != -ESRCH) {
				wrong++;
				worst = answer;
			}
		}
		ok(wrong == 0, "%s: what is no rule's id is no rule (%d answers, such as %d)", calls[i].name, wrong,
		   worst);
	}
	for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++)
		if (shmlimit_global_failures(l, ids[k]) != 0)
			bail("failures of %d", ids[k]);
	is(shmlimit_peek(l, rule, KEY, 1, &r) >= 0, 1, "the rule that there is stands");
	shmlimit_global_close(g);
	shmlimit_close(l);
	return tap_done();
}
