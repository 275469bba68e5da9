/*
 * compare: a spec beside its segment, for those that check a configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "duration.h"
#include "export.h"
#include "room.h"
#include "traits.h"

struct comparison {
	struct spec spec;
	struct shmlimit *limiter;
	struct shmlimit_info info;
	uint32_t unused; /* rules that the segment has room for */
	int lines;
	void (*report)(void *arg, size_t offset, const char *text);
	void *arg;
};

__attribute__((format(printf, 3, 4))) static void say_difference(struct comparison *c, size_t offset,
                                                                 const char *format, ...)
{
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 300];
	va_list values;
	int at = snprintf(text, sizeof(text), "segment %.*s: ", SHMLIMIT_NAME_MAX, c->spec.segment);

	va_start(values, format);
	vsnprintf(text + at, sizeof(text) - (size_t)at, format, values);
	va_end(values);
	c->lines++;
	c->report(c->arg, offset, text);
}

static void say_option(void *comparison, const char *text)
{
	say_difference(comparison, 0, "%s", text);
}

/* A rule that is missing. */
static void compare_missing(struct comparison *c, const struct spec_rule *rule, size_t offset)
{
	char room[200];

	if (!rule->has_rate) {
		if (rule->taken)
			say_difference(c, offset, "rule %s: no such rule: requests that need it %s", rule->name,
			               c->spec.fail_open ? "pass without a limit" : "are refused");
		return;
	}
	if (c->unused > 0) {
		c->unused--;
		return;
	}
	room_text(room, sizeof(room), -EXFULL, &c->info);
	say_difference(c, offset, "rule %s: would not be in force: %s", rule->name, room);
}

/* The first limit of a rule: what is wrong with the rule is said there. */
static void compare_rule(struct comparison *c, const struct spec_rule *rule, int id, size_t offset)
{
	if (id < 0) {
		compare_missing(c, rule, offset);
	} else if (rule->gcra && !rule->has_rate &&
	           !traits_of((uint32_t)shmlimit_rule_algorithm(c->limiter, id))->takes_limits) {
		say_difference(c, offset, "rule %s: not a gcra rule, which limits that come with requests need",
		               rule->name);
	}
}

static void compare_cost(struct comparison *c, const struct spec_limit *limit, const struct spec_rule *rule, int id)
{
	struct shmlimit_rule found = { .struct_size = sizeof(found) };

	if (rule->has_rate || limit->peek || rule->gcra || shmlimit_rule_get(c->limiter, id, &found) != 0 ||
	    found.mode != SHMLIMIT_ENFORCE || limit->cost <= found.capacity)
		return;
	say_difference(c, limit->offset,
	               "rule %s: cost=%" PRIu64 " is above its capacity of %" PRIu64
	               ", so every request would be refused",
	               rule->name, limit->cost, found.capacity);
}

/* A rule without rate= has the debt that it was given by hand. */
static void compare_delay(struct comparison *c, const struct spec_limit *limit, const struct spec_rule *rule, int id)
{
	struct shmlimit_rule found = { .struct_size = sizeof(found) };
	char delay[DURATION_TEXT_MAX], longest[DURATION_TEXT_MAX];

	if (limit->delay_ns == 0 || rule->has_rate || shmlimit_rule_get(c->limiter, id, &found) != 0)
		return;
	if ((traits_of(found.algorithm)->sets & SETS_MAX_WAIT) == 0)
		say_difference(c, limit->offset, "rule %s: requests cannot wait for it, as delay= wants", rule->name);
	else if (found.max_wait_ns < limit->delay_ns && !rule->gcra)
		say_difference(
			c, limit->offset,
			"rule %s: delay=%s is longer than its max-wait of %s, so requests wait no longer than that",
			rule->name, duration_text(delay, limit->delay_ns), duration_text(longest, found.max_wait_ns));
}

static void compare(struct comparison *c)
{
	const struct spec *s = &c->spec;

	room_options(s, &c->info, say_option, c);
	for (size_t i = 0; i < s->limit_count; i++) {
		const struct spec_limit *limit = &s->limits[i];
		const struct spec_rule *rule = &s->rules[limit->rule];
		int id = shmlimit_rule_find(c->limiter, rule->name);
		size_t first = 0;

		while (s->limits[first].rule != limit->rule)
			first++;
		if (first == i)
			compare_rule(c, rule, id, limit->offset);
		if (id >= 0)
			compare_cost(c, limit, rule, id);
		if (id >= 0)
			compare_delay(c, limit, rule, id);
	}
}

/* A segment that create=yes is to make. */
static void compare_room(struct comparison *c)
{
	uint64_t slots = 0;
	int fewer = shmlimit_fit(&c->spec.options, &slots);

	if (fewer < 0)
		say_difference(c, 0, "it cannot be made: %s", shmlimit_strerror(fewer));
	else if (fewer != 0)
		say_difference(c, 0, "it would have %" PRIu64 " slots, since /dev/shm has no room for more", slots);
}

EXPORT int shmlimit_gate_compare(const char *text, void (*report)(void *arg, size_t offset, const char *text),
                                 void *arg)
{
	struct comparison c = { .report = report, .arg = arg, .info = { .struct_size = sizeof(c.info) } };
	struct shmlimit_gate_wrong wrong;
	int error;

	if (text == NULL || report == NULL)
		return -EINVAL;
	error = spec_read(text, &c.spec, &wrong);
	if (error != 0)
		return error;
	error = shmlimit_open(c.spec.segment, SHMLIMIT_OPEN_READ_ONLY, NULL, &c.limiter);
	if (error == 0)
		error = shmlimit_info(c.limiter, &c.info);
	if (error == 0) {
		c.unused = c.info.rules_max - c.info.rules_used;
		compare(&c);
	} else if (error == -ENOENT && c.spec.create) {
		compare_room(&c);
	} else {
		say_difference(&c, 0, "%s%s", shmlimit_strerror(error),
		               error == -ENOENT ? " (create=yes makes it when it is needed)" : "");
	}
	shmlimit_close(c.limiter);
	spec_free(&c.spec);
	return c.lines;
}
