/*
 * inspect_json.c: what inspect found, for programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "decision.h"
#include "fail.h"
#include "inspect.h"
#include "key_text.h"
#include "named_segment.h"
#include "print.h"
#include "rule_facts.h"

static json_t *counters_json(struct shmlimit *limiter, int id)
{
	struct shmlimit_counters c = { .struct_size = sizeof(c) };

	if (id < 0)
		rule_counters_all(limiter, &c);
	else
		shmlimit_counters(limiter, id, &c);
	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "allowed", json_number(c.allowed),
	                 "denied", json_number(c.denied),
	                 "shadow_denied", json_number(c.shadow_denied),
	                 "claims", json_number(c.claims),
	                 "reclaims", json_number(c.reclaims),
	                 "evictions", json_number(c.evictions),
	                 "no_slot", json_number(c.no_slot),
	                 "failed_cas", json_number(c.failed_cas));
	/* clang-format on */
}

static json_t *leases_json(const struct view *view)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	shmlimit_lease_counters(view->limiter, &c);
	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "leases", json_number(c.leases),
	                 "leased", json_number(c.leased),
	                 "spent", json_number(c.spent),
	                 "expired", json_number(c.expired),
	                 "denied", json_number(c.denied),
	                 "backend_errors", json_number(c.backend_errors),
	                 "breaker_openings", json_number(c.breaker_openings));
	/* clang-format on */
}

static json_t *rules_json(const struct view *view)
{
	json_t *list = json_array();
	struct rule_facts facts;

	for (int id = 0; id < (int)view->info.rules; id++) {
		json_t *rule;

		if ((view->rule >= 0 && id != view->rule) || rule_read(view->limiter, id, &facts) < 0)
			continue;
		if (view->rule < 0 && rule_is_breaker(facts.name))
			continue;
		rule = rule_json(&facts);
		if (json_object_set_new(rule, "counters", counters_json(view->limiter, id)) < 0) {
			json_decref(rule);
			rule = NULL;
		}
		json_append(&list, rule);
	}
	return list;
}

static json_t *occupancy_json(const struct view *view)
{
	const struct top_keys *keys = &view->keys;

	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "free", json_number(keys->states[SHMLIMIT_SLOT_FREE]),
	                 "live", json_number(keys->states[SHMLIMIT_SLOT_LIVE]),
	                 "refilled", json_number(keys->states[SHMLIMIT_SLOT_REFILLED]),
	                 "tentative", json_number(keys->states[SHMLIMIT_SLOT_TENTATIVE]),
	                 "stale", json_number(keys->states[SHMLIMIT_SLOT_STALE]),
	                 "shown", json_array(),        /* for inspect_slots_json() */
	                 "left_out", json_number(keys->found - keys->count));
	/* clang-format on */
}

static json_t *key_json(const struct view *view)
{
	json_t *key = decision_json(view->answer, &view->result);

	if (json_object_update_new(key, json_key(view->key->bytes, view->key->len, view->key->len)) == 0)
		return key;
	json_decref(key);
	return NULL;
}

static json_t *view_json(const struct view *view)
{
	int one_key = view->key != NULL;

	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o*}",
	                 "segment", segment_json(view->name, &view->info),
	                 "rules", rules_json(view),
	                 "counters", counters_json(view->limiter, view->rule),
	                 "leases", leases_json(view),
	                 one_key ? "key" : "occupancy", one_key ? key_json(view) : occupancy_json(view),
	                 "paused_ns", one_key ? json_number(view->paused_ns) : NULL);
	/* clang-format on */
}

/*
 * A million slots as objects of jansson take a gibibyte and seconds. So they are
 * left out, and written where their empty list stands: no string has its quotes.
 */
int inspect_json(const struct view *view)
{
	static const char hole[] = "\"shown\": []";
	json_t *root = view_json(view);
	char *text, *at;
	int status = STATUS_OK;

	if (view->keys.count == 0)
		return print_json(root);
	text = json_write(root);
	json_decref(root);
	if (text == NULL)
		return fail_memory();
	at = strstr(text, hole) + strlen(hole) - 1;
	fwrite(text, 1, (size_t)(at - text), stdout);
	status = inspect_slots_json(view);
	puts(at);
	free(text);
	return status;
}
