/*
 * sizing.c: shmlimit size: how many slots, and how much memory. What a segment
 * takes, and how long a rule's funnels take to fill, a small one of them tells.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "fail.h"
#include "number_text.h"
#include "print.h"
#include "temp_segment.h"
#include "value_parse.h"

enum { KEYS, RATE, CAPACITY, STORE_KEYS, JSON };

static const struct command_option options[] = {
	[KEYS] = { "keys", "N[/PERIOD]", "keys that are live at once, or that ask within a period: 10k, 5000/h" },
	[RATE] = { "rate", "LIMIT", "the rule's rate, as for rule set" },
	[CAPACITY] = { "capacity", "N", "the rule's capacity; without it the rule is a window" },
	[STORE_KEYS] = { "store-keys", "BYTES", "bytes stored of each key, as for create (default 0)" },
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

/*
 * Of every LOAD_KEYS keys in LOAD_SLOTS slots less than 0.05 % find no slot: at
 * this load bench/occupancy finds 0.0002 %, at 0.9 it is 0.08 %.
 */
#define LOAD_KEYS 4u
#define LOAD_SLOTS 5u
#define SLOTS_STEP 4u /* a line's: segments have whole ones */
#define KEYS_MAX (SHMLIMIT_SLOTS_MAX / LOAD_SLOTS * LOAD_KEYS)

struct demand {
	uint64_t keys, period_ns; /* `keys` in this time; 0: at once */
	struct shmlimit_rule rule;
	int has_rule;
	uint64_t window, store_keys;
	/* What follows. */
	uint64_t refill_ns;
	uint64_t live, slots, size, logs;
};

static int parse_rule(const struct call *call, struct demand *d)
{
	struct shmlimit_rule *rule = &d->rule;
	int status;

	rule->struct_size = sizeof(*rule);
	if (call->option[RATE] == NULL) {
		if (call->option[CAPACITY] != NULL)
			return fail("--capacity needs --rate COUNT/PERIOD");
		if (d->period_ns != 0)
			return fail("--keys %s: a period needs --rate, and --capacity unless it is a window's",
			            call->option[KEYS]);
		return STATUS_OK;
	}
	d->has_rule = 1;
	rule->algorithm = call->option[CAPACITY] == NULL ? SHMLIMIT_WINDOW : SHMLIMIT_FUNNEL;
	status = limit_option_parse("--rate", call->option[RATE], rule);
	if (status == STATUS_OK && rule->mode != SHMLIMIT_ENFORCE)
		return fail("--rate %s: takes no slots: must be a count and a period, such as 5/minute",
		            call->option[RATE]);
	if (status == STATUS_OK && call->option[CAPACITY] != NULL)
		status = number_parse("--capacity", call->option[CAPACITY], 1, UINT64_MAX, &rule->capacity);
	return status;
}

/* New keys come at a rate. */
static int parse_keys(const char *text, struct demand *d)
{
	struct shmlimit_rule rate = { .struct_size = sizeof(rate), .algorithm = SHMLIMIT_WARMUP };
	int status = limit_option_parse("--keys", text, &rate);

	if (status == STATUS_OK && rate.mode != SHMLIMIT_ENFORCE)
		return fail("--keys %s: must be 1 or more", text);
	d->keys = rate.refill;
	d->period_ns = rate.period_ns;
	return status;
}

static int parse(const struct call *call, struct demand *d)
{
	const char *keys = call->option[KEYS];
	int status;

	if (keys == NULL)
		return fail("size: missing --keys N or --keys N/PERIOD");
	if (strchr(keys, '/') != NULL)
		status = parse_keys(keys, d);
	else
		status = number_parse("--keys", keys, 1, KEYS_MAX, &d->keys);
	if (status == STATUS_OK)
		status = parse_rule(call, d);
	if (status != STATUS_OK)
		return status;
	if (d->rule.algorithm == SHMLIMIT_WINDOW)
		d->window = d->rule.capacity;
	if (status == STATUS_OK && call->option[STORE_KEYS] != NULL)
		status = number_parse("--store-keys", call->option[STORE_KEYS], 0, SHMLIMIT_KEY_MAX, &d->store_keys);
	if (status == STATUS_OK && d->window > SHMLIMIT_WINDOW_MAX)
		return fail("--rate %s: window too large: must be %d or less, or have a --capacity", call->option[RATE],
		            SHMLIMIT_WINDOW_MAX);
	return status;
}

/* The smallest segment that could have the rule: what it says, and what it takes. */
static int ask_library(const char *called, struct demand *d, struct shmlimit_info *info)
{
	struct shmlimit_options o = {
		.struct_size = sizeof(o),
		.slots = SHMLIMIT_SLOTS_MIN,
		.store_keys = (uint32_t)d->store_keys,
	};
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit *limiter;
	int status = temp_segment_open(&o, &d->rule, &called, (size_t)d->has_rule, &limiter);

	if (status != STATUS_OK)
		return status;
	info->struct_size = sizeof(*info);
	shmlimit_info(limiter, info);
	d->store_keys = info->store_keys;
	if (d->has_rule && shmlimit_rule_range(limiter, 0, &range) == 0)
		d->refill_ns = range.refill_ns;
	shmlimit_close(limiter);
	return STATUS_OK;
}

/*
 * What the logs of all these keys take, at most: those of small windows stand side by side in
 * pages, which all are used; larger ones have pages of their own. Their cells are for 4, 5, 6, 7,
 * 8, 10, 12, 14, 16, 20 ... tokens.
 */
static uint64_t logs_size(const struct demand *d)
{
	uint64_t step = 1, bytes, packed, apart;

	if (d->window == 0)
		return 0;
	while ((d->window + step - 1) / step > 7)
		step *= 2;
	bytes = 16 * step * (d->window <= 4 ? 4 : (d->window + step - 1) / step);
	packed = d->slots * bytes;
	apart = d->live * ((bytes + 4095) / 4096 + 1) * 4096;
	return packed < apart ? packed : apart;
}

/* A key that asks once more before it is full stays live, and is none that comes. */
static int add_up(const struct call *call, const struct shmlimit_info *small, struct demand *d)
{
	unsigned __int128 live = d->keys;
	uint64_t slot_bytes = 16 + (d->store_keys == 0 ? 0 : (d->store_keys + 2 + 7) / 8 * 8);

	if (d->period_ns != 0)
		live = (live * d->refill_ns + d->period_ns - 1) / d->period_ns;
	if (live > KEYS_MAX)
		return fail("--keys %s: too many live at once: must be %" PRIu64 " or less", call->option[KEYS],
		            KEYS_MAX);
	d->live = (uint64_t)live;
	d->slots = (d->live * LOAD_SLOTS + LOAD_KEYS - 1) / LOAD_KEYS;
	d->slots = (d->slots + SLOTS_STEP - 1) / SLOTS_STEP * SLOTS_STEP;
	if (d->slots < SHMLIMIT_SLOTS_MIN)
		d->slots = SHMLIMIT_SLOTS_MIN;
	d->size = small->size + (d->slots - small->slots) * slot_bytes;
	d->logs = logs_size(d);
	return STATUS_OK;
}

static void print_text(const struct demand *d)
{
	char text[TEXT_LEN];

	print_line("keys live at once", "%" PRIu64 "%s", d->live, d->period_ns != 0 ? " at most" : "");
	if (d->has_rule)
		print_line("time to full", "%s", duration_text(text, d->refill_ns));
	print_line("slots", "%" PRIu64, d->slots);
	print_line("size", "%" PRIu64 " (%s)", d->size, size_text(text, d->size));
	if (d->logs != 0)
		print_line("logs", "up to %" PRIu64 " (%s)", d->logs, size_text(text, d->logs));
	printf("shmlimit create NAME --slots %" PRIu64, d->slots);
	if (d->store_keys != 0)
		printf(" --store-keys %" PRIu64, d->store_keys);
	putchar('\n');
}

static json_t *demand_json(const struct demand *d)
{
	/* clang-format off */
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
	                 "keys_live", json_number(d->live),
	                 "refill_ns", d->has_rule ? json_number(d->refill_ns) : json_null(),
	                 "slots", json_number(d->slots),
	                 "store_keys", json_number(d->store_keys),
	                 "size", json_number(d->size),
	                 "logs_size", json_number(d->logs));
	/* clang-format on */
}

static int run(const struct call *call)
{
	struct shmlimit_info info;
	struct demand d = { 0 };
	int status = parse(call, &d);

	if (status == STATUS_OK)
		status = ask_library(call->option[RATE], &d, &info);
	if (status == STATUS_OK)
		status = add_up(call, &info, &d);
	if (status != STATUS_OK)
		return status;
	if (call->option[JSON] != NULL)
		return print_json(demand_json(&d));
	print_text(&d);
	return STATUS_OK;
}

const struct command command_size = {
	.name = "size",
	.operands = "",
	.purpose = "compute how many slots and how much memory a segment needs",
	.details = "A key is live until it has all its tokens back, at most for a rule's time to full. With this\n"
		   "number of slots, less than 0.05 % of the keys find no slot of their own.\n",
	.options = options,
	.run = run,
};
