/*
 * inspect_text.c: what inspect found, for people.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <time.h>

#include "about.h"
#include "choice.h"
#include "columns.h"
#include "decision.h"
#include "field.h"
#include "inspect.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"

static void print_segment(const struct view *view)
{
	const struct shmlimit_info *info = &view->info;
	time_t created = (time_t)(info->created_unix_ns / 1000000000);
	char text[TEXT_LEN];
	struct tm tm;

	print_line("segment", "%s", view->name);
	print_line("layout version", "%" PRIu32, info->layout_version);
	print_line("size", "%" PRIu64 " (%s)", info->size, size_text(text, info->size));
	print_line("slots", "%" PRIu64 " (at most %" PRIu64 ")", info->slots, info->slots_max);
	if (info->old_slots != 0)
		print_line("old slots", "%" PRIu64, info->old_slots);
	print_line("rules", "%" PRIu32 "/%" PRIu32, info->rules_used, info->rules_max);
	if (info->store_keys != 0)
		print_line("store keys", "%" PRIu32, info->store_keys);
	print_line("on full", "%s", choice_word(choices_on_full, info->on_full));
	print_line("clock", "%s", choice_word(choices_clock, info->clock));
	segment_owner(info, text);
	print_line("owner", "%s", text);
	print_line("mode", "%04" PRIo32, info->mode);
	print_line("state", "%s", info->enabled ? "enabled" : "disabled");
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&created, &tm));
	print_line("created", "%s", text);
}

static void add_counters(struct table *table, struct shmlimit *limiter, int id)
{
	struct shmlimit_counters c = { .struct_size = sizeof(c) };
	uint64_t *each[] = {
		&c.allowed,  &c.denied,    &c.shadow_denied, &c.claims,
		&c.reclaims, &c.evictions, &c.no_slot,       &c.failed_cas,
	};

	if (id < 0)
		rule_counters_all(limiter, &c);
	else
		shmlimit_counters(limiter, id, &c);
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++)
		table_cell(table, "%" PRIu64, *each[i]);
}

static int print_rules(const struct view *view)
{
	static const int fields[] = { FIELD_ALGORITHM, FIELD_CAPACITY, FIELD_RATE, FIELD_MODE };
	struct table table = { .align = "llrrlrrrrrrrr" };
	struct rule_facts facts;
	char text[TEXT_LEN];

	table_words(&table, "RULE ALGORITHM CAPACITY RATE MODE");
	table_words(&table, "ALLOWED DENIED SHADOW CLAIMS RECLAIMS EVICTIONS NO-SLOT FAILED-CAS");
	for (int id = 0; id < (int)view->info.rules; id++) {
		if ((view->rule >= 0 && id != view->rule) || rule_read(view->limiter, id, &facts) < 0)
			continue;
		if (view->rule < 0 && rule_is_breaker(facts.name))
			continue;
		table_cell(&table, "%s", facts.name);
		for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
			table_cell(&table, "%s", field_text(text, fields[i], &facts.rule));
		add_counters(&table, view->limiter, id);
	}
	if (view->rule < 0) {
		table_words(&table, "(all) - - - -");
		add_counters(&table, view->limiter, SHMLIMIT_ALL_RULES);
	}
	putchar('\n');
	return table_print(&table);
}

/* Of a segment in which something was leased. */
static void print_leases(const struct view *view)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	shmlimit_lease_counters(view->limiter, &c);
	if (c.leases + c.denied + c.backend_errors == 0)
		return;
	putchar('\n');
	print_line("leases", "%" PRIu64 ": tokens %" PRIu64 ", spent %" PRIu64 ", expired %" PRIu64, c.leases, c.leased,
	           c.spent, c.expired);
	print_line("known denials", "%" PRIu64, c.denied);
	print_line("backend errors", "%" PRIu64 ", breaker openings %" PRIu64, c.backend_errors, c.breaker_openings);
}

static int print_live(const struct view *view)
{
	const struct top_keys *keys = &view->keys;
	int status;

	putchar('\n');
	print_line("occupancy",
	           "free %" PRIu64 ", live %" PRIu64 ", refilled %" PRIu64 ", tentative %" PRIu64 ", stale %" PRIu64,
	           keys->states[SHMLIMIT_SLOT_FREE], keys->states[SHMLIMIT_SLOT_LIVE],
	           keys->states[SHMLIMIT_SLOT_REFILLED], keys->states[SHMLIMIT_SLOT_TENTATIVE],
	           keys->states[SHMLIMIT_SLOT_STALE]);
	status = keys->count > 0 ? inspect_slots_text(view) : STATUS_OK;
	if (status == STATUS_OK && keys->found > keys->count)
		printf("live slots left out: %" PRIu64 " (--%s)\n", keys->found - keys->count,
		       keys->order == TOP_KEYS_BY_DENIAL ? "top" : "limit");
	return status;
}

int inspect_text(const struct view *view)
{
	char key[KEY_TEXT_LEN], left[TEXT_LEN];
	int status;

	print_segment(view);
	status = print_rules(view);
	if (status != STATUS_OK)
		return status;
	print_leases(view);
	if (view->key == NULL)
		return print_live(view);
	putchar('\n');
	print_line("key", "%s", key_show(key, view->key->bytes, view->key->len, view->key->len));
	decision_print(view->answer, &view->result);
	if (view->paused_ns != 0)
		print_line("paused for", "%s", duration_about(left, view->paused_ns));
	return STATUS_OK;
}
