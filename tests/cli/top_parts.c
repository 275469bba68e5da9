/*
 * top_parts: what top computes, without a clock and a terminal: rates between
 * two moments, the order of rules and of keys, and how a table that is too large
 * for one look is looked at in parts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "number_text.h"
#include "top.h"
#include "../unit/unit.h"

#define RULES 3
#define KEYS 40

static struct top_count counted(int id, const char *name, uint64_t allowed, uint64_t denied)
{
	struct top_count count = { .id = id, .counters = { .allowed = allowed, .denied = denied } };

	snprintf(count.name, sizeof(count.name), "%s", name);
	return count;
}

static void rates(void)
{
	struct top_count then[] = { counted(0, "a", 100, 10), counted(1, "gone", 5, 5),
		                    counted(4, "anew", 1000, 1000) };
	struct top_count now[] = { counted(0, "a", 150, 11), counted(2, "new", 7, 0), counted(4, "anew", 4, 2),
		                   counted(5, "b", 0, 0) };
	struct top_sample before = { 3 * SECOND, { .counters = { .allowed = 1000 } }, then, 3 };
	struct top_sample after = { 5 * SECOND, { .counters = { .allowed = 1061, .evictions = 1 } }, now, 4 };
	struct top_row row[4], all;

	top_rows(&before, &after, row, &all);
	ok(row[0].allowed_s == 25 && row[0].denied_s == 0.5, "a rate is what was counted since, over the time since");
	ok(row[0].allowed == 150 && row[0].denied == 11, "totals are as they are");
	ok(row[1].allowed_s == 3.5, "a rule that was not there began with nothing");
	ok(row[2].allowed_s == 2 && row[2].denied_s == 1, "a rule whose counters went back began again");
	ok(row[3].allowed_s == 0, "a rule that does nothing has a rate of 0");
	ok(all.allowed_s == 30.5 && all.evictions_s == 0.5, "all together have theirs");
	strcpy(then[0].name, "A");
	top_rows(&before, &after, row, &all);
	ok(row[0].allowed_s == 75, "an id that another rule had says nothing of that one");
	before = (struct top_sample){ 0 };
	top_rows(&before, &after, row, &all);
	ok(row[0].allowed_s < 0 && all.allowed_s < 0, "without an earlier sample no rate is known");
	before.at_ns = after.at_ns;
	top_rows(&before, &after, row, &all);
	ok(row[0].allowed_s < 0, "samples of the same time give no rate");
}

/* Lists of rules that come and go between two samples, in the order of ids: each is found, however many are not there any more. */
static void rules_come_and_go(void)
{
	enum { IDS = 8 };
	int wrong = 0;

	for (unsigned lists = 0; lists < 1u << (2 * IDS); lists += 7) {
		struct top_count then[IDS], now[IDS];
		struct top_row row[IDS], all;
		struct top_sample before = { SECOND, { .id = -1 }, then, 0 },
				  after = { 2 * SECOND, { .id = -1 }, now, 0 };

		for (int id = 0; id < IDS; id++) {
			if (lists >> id & 1)
				then[before.rules++] = counted(id, "r", 100, 0);
			if (lists >> IDS >> id & 1)
				now[after.rules++] = counted(id, "r", 103, 0);
		}
		top_rows(&before, &after, row, &all);
		for (size_t i = 0; i < after.rules; i++)
			wrong += row[i].allowed_s != (lists >> now[i].id & 1 ? 3 : 103);
	}
	is(wrong, 0, "a rule has its rate since the sample before, whichever rules were there then");
}

/* The names of rows in their order. */
static const char *order_of(struct top_row *rows, enum top_sort sort)
{
	static char names[RULES + 1];

	top_rows_sort(rows, RULES, sort);
	for (int i = 0; i < RULES; i++)
		names[i] = rows[i].name[0];
	return names;
}

static void rows(void)
{
	struct top_row rows[RULES] = {
		{ .name = "b", .allowed_s = 1, .denied_s = 2, .shadow_s = 0, .allowed = 9, .denied = 1 },
		{ .name = "c", .allowed_s = 3, .denied_s = 0, .shadow_s = 3, .allowed = 1, .denied = 3 },
		{ .name = "a", .allowed_s = 3, .denied_s = 1, .shadow_s = 1, .allowed = 2, .denied = 2 },
	};

	is_str(order_of(rows, TOP_DENIED), "cab", "a dry run's denials count as denials, then totals do");
	is_str(order_of(rows, TOP_ALLOWED), "acb", "rules by what they allow, then by what they allowed");
	is_str(order_of(rows, TOP_NAME), "abc", "rules by name");
	top_rows_sort(rows, 0, TOP_NAME);
	ok(1, "no rules are in order");
}

static void texts(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} spans[] = {
		/* clang-format off */
		{ 0, "0s" }, { SECOND - 1, "900ms" }, { 60 * SECOND - 1, "59.9s" }, { 60 * SECOND, "1m" },
		{ 3600 * SECOND - 1, "59m59s" }, { 3600 * SECOND, "1h" }, { 86400 * SECOND - 1, "23h59m" },
		{ 86400 * SECOND, "1d" }, { UINT64_MAX - 1, "213503d23h" }, { UINT64_MAX, "never" },
		/* clang-format on */
	};
	static const struct {
		double per_second;
		const char *text;
	} rates[] = { { -1, "-" },        { 0, "0.0" },       { 0.05, "0.1" },
		      { 999.9, "999.9" }, { 999.96, "1000" }, { 1e7, "10000000" } };
	char text[TEXT_LEN];

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		is_str(top_span_text(text, spans[i].ns), spans[i].text, "a time is shown as %s", spans[i].text);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		is_str(top_rate_text(text, rates[i].per_second), rates[i].text, "a rate is shown as %s", rates[i].text);
}

static void keys(void)
{
	/* Owing, empty, a hundredth left, half left but long to go. */
	struct top_key slot[] = {
		{ .index = 0, .debt_ns = 5, .reset_after_ns = 10, .share = 0 },
		{ .index = 1, .reset_after_ns = 100, .share = 0 },
		{ .index = 2, .reset_after_ns = 20, .share = UINT32_MAX / 100 },
		{ .index = 3, .reset_after_ns = 1000, .share = UINT32_MAX / 2 },
	};
	static const uint64_t by_denial[] = { 0, 1, 2, 3 }, near[] = { 2, 3, 0, 1 }, reset[] = { 3, 1, 2, 0 };
	static const struct {
		enum top_keys_order order;
		const uint64_t *index;
	} want[] = { { TOP_KEYS_BY_DENIAL, by_denial }, { TOP_KEYS_BY_NEAR, near }, { TOP_KEYS_BY_RESET, reset } };
	int wrong = 0;

	for (size_t w = 0; w < 3; w++)
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++) {
				int first = top_key_compare(want[w].order, &slot[want[w].index[i]],
				                            &slot[want[w].index[j]]);

				wrong += i == j ? first != 0 : (first < 0) != (i < j);
			}
	is(wrong, 0, "keys have an order in each of three ways");
}

/* Every look at a sixteenth: the deepest is found when its part is, and stays. */
static void parts(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 256 };
	struct top top = { .name = NULL, .order = TOP_KEYS_BY_DENIAL, .keys_max = 3, .slots = 16 };
	struct shmlimit *l = unit_create("top_parts", &options);
	int rule = unit_rule(l, "r", 100, 1, 86400 * SECOND), lost = 0;
	uint64_t keys = 0, deepest = 100;
	char line[TOP_LINE_LEN];

	for (uint64_t key = 0; key < KEYS; key++)
		shmlimit_take(l, rule, &key, sizeof(key), 1 + key, NULL);
	top.name = unit_name;
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &top.limiter) != 0)
		bail("open");
	for (uint64_t look = 0; look < 16; look++) {
		uint64_t shown;

		if (top_look(&top) != STATUS_OK)
			bail("look");
		/* Keys lie where their hashes say: the first parts may have none. */
		shown = top.keys.count > 0 ? top.keys.slot[0].remaining : 100;
		lost += top.first != 16 * look || top.looked != 16 || shown > deepest;
		deepest = shown;
		keys += top.keys.states[SHMLIMIT_SLOT_LIVE];
	}
	top.name = "a-segment-whose-name-is-longer-than-the-line-that-it-is-shown-in";
	top_segment_text(line, &top, 80);
	ok(strncmp(line, "a-segment-w", 11) == 0 && strstr(line, "~, enabled, 256 slots: live ") != NULL &&
	           strlen(line) <= 80,
	   "a segment's name that is too long is cut, so that the facts behind it are seen: %s", line);
	top_segment_text(line, &top, SIZE_MAX);
	ok(strncmp(line, top.name, strlen(top.name)) == 0, "a line of any length has all of the name");
	top.name = unit_name;
	is(lost, 0, "a large table is looked at part by part, and what came first is not lost from sight");
	is(keys, KEYS, "all parts are all of it");
	ok(top.keys.count == 3 && top.keys.slot[0].remaining == 100 - KEYS && top.keys.slot[2].remaining == 102 - KEYS,
	   "after one round the first are those of all");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	top_look(&top);
	ok(top.first == 0 && top.keys.count == 0, "what is gone is gone, and the next round begins");
	top_close(&top);
	shmlimit_close(l);
}

int main(void)
{
	rates();
	rules_come_and_go();
	rows();
	texts();
	keys();
	parts();
	return tap_done();
}
