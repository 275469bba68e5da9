/*
 * flags: a flag that is given to another call than its own is refused, and nothing is changed. So is a bit that no set has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "shmlimit_global.h"
#include "unit.h"

/* All sets; each row of the calls below says which bits are its own. */
#define RULE_FLAGS \
	(SHMLIMIT_RULE_NEXT_PAYS | SHMLIMIT_RULE_COUNT_REFUSED | SHMLIMIT_RULE_PROTECTED | SHMLIMIT_RULE_NO_WAIT)
#define OPEN_FLAGS (SHMLIMIT_OPEN_READ_ONLY | SHMLIMIT_OPEN_TRUSTED | SHMLIMIT_OPEN_CREATE)
#define OPTION_FLAGS (SHMLIMIT_OPTION_GROUP | SHMLIMIT_OPTION_FIT)
#define LOAD_FLAGS (SHMLIMIT_LOAD_NO_ELAPSED | SHMLIMIT_LOAD_CHECK_ONLY | SHMLIMIT_LOAD_CAN_GROW)
#define COUNT_FLAGS (SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART | SHMLIMIT_COUNT_LONGER)
#define TICKET_FLAGS (SHMLIMIT_GLOBAL_TICKET_NO_WAIT | SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY)

static const uint32_t sets[] = { RULE_FLAGS, OPEN_FLAGS, OPTION_FLAGS, LOAD_FLAGS, COUNT_FLAGS, TICKET_FLAGS };

static struct shmlimit *l, *untouched = (struct shmlimit *)unit_name;
static int count_rule;

static int try_open(uint32_t flags)
{
	struct shmlimit *out = untouched;
	int error = shmlimit_open(unit_name, flags, NULL, &out);

	if (out != untouched)
		shmlimit_close(out);
	return error;
}

static int try_create(uint32_t flags)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .flags = flags };

	return shmlimit_create(unit_name, &options, NULL);
}

/* Nothing can be read from this descriptor, so a flag that is obeyed gives another error. */
static int try_load(uint32_t flags)
{
	struct shmlimit *out = untouched;
	int error = shmlimit_load(unit_name, -1, flags, &out);

	return out != untouched ? 0 : error;
}

static int try_count(uint32_t flags)
{
	return shmlimit_count(
		l, count_rule, "user:42", 7,
		&(struct shmlimit_count_request){
			.struct_size = sizeof(struct shmlimit_count_request), .flags = flags, .n = 1, .bound = 5 },
		NULL);
}

/* The first rule is made by a good call; a rule that was refused does not change it. */
static int try_rule_set(uint32_t flags)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = SECOND };
	int id;

	rule.flags = flags;
	id = shmlimit_rule_set(l, "login", &rule);
	return id < 0 ? id : 0;
}

static int try_window_set(uint32_t flags)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .period_ns = SECOND };
	int id;

	rule.algorithm = SHMLIMIT_WINDOW;
	rule.flags = flags;
	id = shmlimit_rule_set(l, "window", &rule);
	return id < 0 ? id : 0;
}

static int try_capacity_max(uint32_t flags)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .refill = 1, .period_ns = SECOND };
	uint64_t most;

	rule.flags = flags;
	return shmlimit_rule_capacity_max(&rule, &most);
}

static int try_undecided(uint32_t flags)
{
	return shmlimit_count_undecided(l, flags, 1);
}

static int try_lease_count(uint32_t flags)
{
	return shmlimit_lease_count(l, flags, 1);
}

static const struct call {
	const char *name;
	int (*call)(uint32_t flags);
	uint32_t own; /* what is not refused as unknown */
} calls[] = {
	{ "shmlimit_open", try_open, OPEN_FLAGS },
	{ "shmlimit_create", try_create, OPTION_FLAGS },
	{ "shmlimit_load", try_load, LOAD_FLAGS },
	{ "shmlimit_count", try_count, COUNT_FLAGS },
	{ "shmlimit_rule_set of a FUNNEL", try_rule_set, RULE_FLAGS & ~SHMLIMIT_RULE_COUNT_REFUSED },
	{ "shmlimit_rule_set of a WINDOW", try_window_set, RULE_FLAGS & ~SHMLIMIT_RULE_NEXT_PAYS },
	{ "shmlimit_rule_capacity_max", try_capacity_max, RULE_FLAGS & ~SHMLIMIT_RULE_COUNT_REFUSED },
	{ "shmlimit_count_undecided", try_undecided, 1 },
	{ "shmlimit_lease_count", try_lease_count, 1 },
};

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct shmlimit_rule counter = {
		.struct_size = sizeof(counter), .algorithm = SHMLIMIT_COUNTER, .capacity = 5, .period_ns = SECOND
	};
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	uint32_t all = 0, shared = 0;

	l = unit_create("flags", &options);
	count_rule = shmlimit_rule_set(l, "count", &counter);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		shared |= all & sets[i];
		all |= sets[i];
	}
	is(shared, 0, "no two sets of flags share a bit");
	for (const struct call *c = calls; c < calls + sizeof(calls) / sizeof(calls[0]); c++) {
		int refused = 0, expected = 0, obeyed = 0;

		for (uint32_t flag = 1; flag != 0; flag <<= 1) {
			int answer = c->call(flag);

			refused += answer == -EINVAL && (c->own & flag) == 0;
			expected += (c->own & flag) == 0;
			obeyed += answer != -EINVAL && (c->own & flag) != 0;
		}
		is(refused, expected, "%s refuses each bit that is not of its set", c->name);
		is(obeyed, 32 - expected, "%s accepts each flag of its set", c->name);
	}
	/* The two flags of COUNT. */
	is(shmlimit_count(l, count_rule, "user:43", 7,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 0, .bound = 5 },
	                  &count),
	   SHMLIMIT_ALLOWED, "a count can be read");
	is(count.count, 0, "calls that were refused have counted nothing for another key");
	return tap_done();
}
