/*
 * replay_json.c: what replay found, for programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "choice.h"
#include "log_time.h"
#include "print.h"
#include "replay.h"

static json_t *steps_json(const uint64_t *each, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_append(&list, json_number(each[i]));
	return list;
}

static json_t *time_json(int64_t unix_ns, uint64_t among)
{
	return among > 0 ? json_number((uint64_t)unix_ns) : json_null();
}

static json_t *worst_json(struct replay *r, size_t rule)
{
	json_t *json = json_array();
	struct replay_key **list;
	size_t count;

	if (replay_worst(r, rule, &list, &count) != STATUS_OK) {
		json_decref(json);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		char *text = key_text(&r->spec, list[i]->key, list[i]->len);

		/* clang-format off */
		json_append(&json, json_pack("{s:o, s:o, s:o, s:o, s:o}",
		                             "key", text != NULL ? json_text(text) : NULL,
		                             "requests", json_number(list[i]->requests),
		                             "denied", json_number(list[i]->of_rule[rule].denied),
		                             "first_unix_ns", time_json(list[i]->of_rule[rule].first_ns, 1),
		                             "last_unix_ns", time_json(list[i]->of_rule[rule].last_ns, 1)));
		/* clang-format on */
		free(text);
	}
	free(list);
	return json;
}

static json_t *rules_json(struct replay *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->rules; i++) {
		const struct replay_rule *rule = &r->rule[i];

		/* clang-format off */
		json_append(&list, json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		                             "rule", rule->text,
		                             "suggested", rule->pattern != NULL ? json_number(rule->suggested) : json_null(),
		                             "algorithm", choice_word(choices_algorithm(), rule->rule.algorithm),
		                             "capacity", json_number(rule->rule.capacity),
		                             "allowed", json_number(rule->allowed),
		                             "denied", json_number(rule->denied),
		                             "keys_denied", json_number(rule->keys_denied),
		                             "no_room", json_number(rule->no_room),
		                             "first_unix_ns", time_json(rule->first_ns, rule->denied),
		                             "last_unix_ns", time_json(rule->last_ns, rule->denied),
		                             "denied_by_step", steps_json(r->steps.denied[i], r->steps.count),
		                             "worst", worst_json(r, i)));
		/* clang-format on */
	}
	return list;
}

static json_t *plans_json(const struct replay *r)
{
	json_t *json = json_array();
	struct replay_plan **list;
	size_t count;

	if (plans_worst(r, &list, &count) != STATUS_OK) {
		json_decref(json);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		json_append(&json, json_pack("{s:o, s:o, s:o, s:o}", "plan", json_text(list[i]->name), "limit",
		                             json_text(list[i]->limit_text), "allowed", json_number(list[i]->allowed),
		                             "denied", json_number(list[i]->denied)));
	free(list);
	return json;
}

json_t *replay_json(struct replay *r)
{
	int any = r->first_ns >= 0;

	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "lines", json_number(r->lines),
	                 "not_understood", json_number(r->not_understood),
	                 "forwarded", json_number(r->clients.forwarded),
	                 "filtered", json_number(r->filtered),
	                 "outside", json_number(r->outside),
	                 "too_late", json_number(r->too_late),
	                 "without_key", json_number(r->without_key),
	                 "no_address", json_number(r->no_address),
	                 "without_limit", json_number(r->without_plan),
	                 "keys", json_number(HASH_COUNT(r->keys)),
	                 "first_unix_ns", time_json(r->first_ns, (uint64_t)any),
	                 "last_unix_ns", time_json(r->last_ns, (uint64_t)any),
	                 "steps_from_unix_ns", time_json(r->steps.from_s * LOG_SECOND, r->steps.count),
	                 "step_ns", json_number(r->steps.step_s * LOG_SECOND),
	                 "requests_by_step", steps_json(r->steps.requests, r->steps.count),
	                 "plans", plans_json(r),
	                 "rules", rules_json(r));
	/* clang-format on */
}
