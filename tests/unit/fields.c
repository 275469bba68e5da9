/*
 * fields: what is written parses, says what the answer said, and never tells
 * a client to come back too early.
 *
 * Debian packages no parser of structured fields; the one below is as strict as
 * RFC 9651, section 4.2, and knows Strings and Integers only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#define INTEGER_MAX UINT64_C(999999999999999)

static struct shmlimit_fields f;

static struct shmlimit_rule rule_of(uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = capacity, .refill = count, .period_ns = period_ns
	};

	return rule;
}

/* An item, as parsed: a String and two Integers. */
struct item {
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	uint64_t value[2];
};

/* A String, unescaped. Returns what follows, or NULL. */
static const char *parse_string(const char *at, char *to, size_t size)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if (*at == '\\' && *++at != '"' && *at != '\\')
			return NULL;
		if (*at < 0x20 || *at > 0x7e || size <= 1)
			return NULL;
		*to++ = *at;
		size--;
	}
	*to = '\0';
	return at + 1;
}

/* A parameter of this name, an Integer that is not negative. */
static const char *parse_parameter(const char *at, char name, uint64_t *value)
{
	unsigned digits = 0;

	if (at == NULL || at[0] != ';' || at[1] != name || at[2] != '=')
		return NULL;
	*value = 0;
	for (at += 3; *at >= '0' && *at <= '9'; at++, digits++)
		*value = 10 * *value + (uint64_t)(*at - '0');
	return digits >= 1 && digits <= 15 ? at : NULL;
}

static int parses(const char *field, char first, char second, struct item *item)
{
	const char *at = parse_string(field, item->name, sizeof(item->name));

	at = parse_parameter(at, first, &item->value[0]);
	at = parse_parameter(at, second, &item->value[1]);
	return at != NULL && *at == '\0' && at < field + SHMLIMIT_FIELD_MAX;
}

static int write_fields(const char *name, struct shmlimit_rule rule, int answer, struct shmlimit_result r)
{
	memset(&f, 0x77, sizeof(f));
	f.struct_size = sizeof(f);
	return shmlimit_fields(name, &rule, answer, &r, &f);
}

static void words(void)
{
	struct shmlimit_rule rule = rule_of(15, 30, 60 * SECOND);

	is(write_fields("login", rule, SHMLIMIT_ALLOWED, (struct shmlimit_result){ 15, 14, 0, 0, 2 * SECOND, 0 }), 0,
	   "an answer has fields");
	is_str(f.policy, "\"login\";q=15;w=30", "the policy is the capacity, and how long it takes to give that out");
	is_str(f.limit, "\"login\";r=14;t=2", "an allowed request is told what is left, and when the funnel is full");
	is_str(f.retry_after, "", "an allowed request gets no Retry-After");
	write_fields("login", rule, SHMLIMIT_DENIED, (struct shmlimit_result){ 15, 0, 0, 1700000000, 30 * SECOND, 0 });
	is_str(f.limit, "\"login\";r=0;t=2", "a denied request is told when a retry fits");
	is_str(f.retry_after, "2", "Retry-After says when a retry fits");
	write_fields("login", rule, SHMLIMIT_DENIED, (struct shmlimit_result){ 15, 3, 0, UINT64_MAX, 24 * SECOND, 0 });
	is_str(f.limit, "\"login\";r=3;t=24", "where a retry never fits, it is when the funnel is full");
	is_str(f.retry_after, "", "a request that never fits gets no Retry-After");
	write_fields("login", rule, SHMLIMIT_ALLOWED, (struct shmlimit_result){ 15, 0, 0, SECOND, 30 * SECOND, 0 });
	is_str(f.retry_after, "", "a request that a dry run allowed gets no Retry-After");
	is_str(f.limit, "\"login\";r=0;t=30",
	       "a request that a dry run allowed is told what any allowed request is told");
	is(f.reserved32, 0, "what is reserved is zero");
}

static void places(void)
{
	struct shmlimit_rule rule = rule_of(2, 0, 60 * SECOND);

	rule.algorithm = SHMLIMIT_HOLD;
	is(write_fields("reports", rule, SHMLIMIT_DENIED,
	                (struct shmlimit_result){ 2, 0, 0, 60 * SECOND, 60 * SECOND, 0 }),
	   0, "an answer about places has fields");
	is_str(f.policy, "\"reports\";q=2;qu=\"concurrent-requests\"", "the policy of places has a unit and no time");
	is_str(f.limit, "\"reports\";r=0", "the limit of places is those that are free, without a time");
	is_str(f.retry_after, "", "a denied place gets no Retry-After");
}

static void counts(void)
{
	struct shmlimit_rule rule = rule_of(5, 5, 60 * SECOND);
	struct shmlimit_result r = { 5, 0, 0, 20 * SECOND, 20 * SECOND, 0 };

	rule.algorithm = SHMLIMIT_COUNTER;
	write_fields("pins", rule, SHMLIMIT_DENIED, r);
	is_str(f.policy, "\"pins\";q=5;w=60", "a counter that is taken from has its period as the window");
	rule.refill = 0;
	write_fields("pins", rule, SHMLIMIT_DENIED, r);
	is_str(f.policy, "\"pins\";q=5", "a count that lives as long as the call says has no window");
	is_str(f.limit, "\"pins\";r=0;t=20", "when it ends is known");
	is_str(f.retry_after, "20", "Retry-After says when it ends");
}

static void blocks(void)
{
	struct shmlimit_rule rule = rule_of(15, 30, 60 * SECOND);

	rule.mode = SHMLIMIT_BLOCK;
	write_fields("ads", rule, SHMLIMIT_DENIED, (struct shmlimit_result){ .retry_after_ns = UINT64_MAX });
	is_str(f.policy, "\"ads\";q=0", "the policy of a rule that blocks is 0, without a time");
	is_str(f.limit, "\"ads\";r=0", "a rule that blocks has nothing left, without a time");
	is_str(f.retry_after, "", "a rule that blocks asks for no retry");
}

static uint64_t retry(uint64_t ns)
{
	write_fields("r", rule_of(1, 1, SECOND), SHMLIMIT_DENIED, (struct shmlimit_result){ .retry_after_ns = ns });
	return strtoull(f.retry_after, NULL, 10);
}

static void seconds(void)
{
	is(retry(0), 1, "no denial says 0 seconds");
	is(retry(1), 1, "a nanosecond is a second");
	is(retry(SECOND), 1, "a second is a second");
	is(retry(SECOND + 1), 2, "a nanosecond more is two");
	is(retry(UINT64_MAX - 1), UINT64_MAX / SECOND + 1, "the longest time is no shorter in seconds");
	write_fields("r", rule_of(1, 1, 1), SHMLIMIT_ALLOWED, (struct shmlimit_result){ .limit = 1 });
	is_str(f.policy, "\"r\";q=1;w=1", "a window is a second or longer");
	is_str(f.limit, "\"r\";r=0;t=0", "no time at all is 0 seconds for an allowed request");
	write_fields("r", rule_of(3, 2, SECOND), SHMLIMIT_ALLOWED, (struct shmlimit_result){ .limit = 3 });
	is_str(f.policy, "\"r\";q=3;w=2", "a window is rounded up");
	write_fields("r", rule_of(7, 0, 5 * SECOND), SHMLIMIT_ALLOWED, (struct shmlimit_result){ .limit = 7 });
	is_str(f.policy, "\"r\";q=7;w=5", "without a count it is the period");
}

static void names(void)
{
	static const char *const good[] = {
		"x", "a b", "say \"hi\"", "back\\slash", "\\", "\"", "~15:30:60", " ", "~}"
	};
	static const char *const bad[] = { "", "new\nline", "\t", "\177", "caf\xc3\xa9", "a\x1f" };
	char longest[SHMLIMIT_RULE_NAME_MAX + 2];
	struct shmlimit_rule rule = rule_of(UINT64_MAX, 1, UINT64_MAX);
	struct shmlimit_result r = { .limit = UINT64_MAX, .remaining = UINT64_MAX, .reset_after_ns = UINT64_MAX };
	struct item item;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		is(write_fields(good[i], rule, SHMLIMIT_ALLOWED, r), 0, "a policy may be called <%s>", good[i]);
		ok(parses(f.policy, 'q', 'w', &item) && strcmp(item.name, good[i]) == 0,
		   "the policy field parses with this name");
		ok(parses(f.limit, 'r', 't', &item) && strcmp(item.name, good[i]) == 0,
		   "the limit field parses with this name");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(write_fields(bad[i], rule, SHMLIMIT_ALLOWED, r), -EILSEQ, "bad name %zu is no String", i);
	memset(longest, '"', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	is(write_fields(longest, rule, SHMLIMIT_ALLOWED, r), -ENAMETOOLONG, "64 bytes are too long");
	longest[sizeof(longest) - 2] = '\0';
	is(write_fields(longest, rule, SHMLIMIT_DENIED, r), 0, "63 are not");
	ok(parses(f.policy, 'q', 'w', &item) && strcmp(item.name, longest) == 0,
	   "fields parse with every byte escaped and every number as long as it gets");
}

/* A number that is often at an edge. */
static uint64_t edgy(uint64_t *state)
{
	uint64_t x;

	*state = *state * 6364136223846793005u + 1442695040888963407u;
	x = *state >> 33;
	switch (x & 3) {
	case 0:
		return (x >> 2) % 5;
	case 1:
		return UINT64_MAX - (x >> 2) % 5;
	case 2:
		return INTEGER_MAX - 2 + (x >> 2) % 5;
	default:
		return *state >> (x >> 2) % 64;
	}
}

static uint64_t up_to_15_digits(uint64_t value)
{
	return value < INTEGER_MAX ? value : INTEGER_MAX;
}

static uint64_t rounded_up(uint64_t ns)
{
	return ns / SECOND + (ns % SECOND != 0);
}

/* Against the definitions, in wider numbers. */
static void extremes(void)
{
	uint64_t state = (uint64_t)getpid(), seed = state;
	unsigned wrong = 0, bad = 0, cases = 100000;
	struct item policy, limit;

	for (unsigned i = 0; i < cases; i++) {
		struct shmlimit_rule rule = rule_of(edgy(&state), edgy(&state), edgy(&state));
		struct shmlimit_result r = { .limit = rule.capacity,
			                     .remaining = edgy(&state),
			                     .retry_after_ns = edgy(&state),
			                     .reset_after_ns = edgy(&state) };
		int answer = (int)(edgy(&state) & 1);
		int never = r.retry_after_ns == UINT64_MAX;
		uint64_t t_s = rounded_up(answer == SHMLIMIT_DENIED && !never ? r.retry_after_ns : r.reset_after_ns);
		long double w_s = rule.refill == 0 ? (long double)rule.period_ns / SECOND
		                                   : (long double)r.limit * rule.period_ns / rule.refill / SECOND;

		if (write_fields("r", rule, answer, r) != 0 || !parses(f.policy, 'q', 'w', &policy) ||
		    !parses(f.limit, 'r', 't', &limit)) {
			bad++;
			continue;
		}
		if (answer == SHMLIMIT_DENIED && !never && t_s == 0)
			t_s = 1;
		wrong += policy.value[0] != up_to_15_digits(r.limit) || policy.value[1] < 1;
		wrong += limit.value[0] != up_to_15_digits(r.remaining) || limit.value[1] != up_to_15_digits(t_s);
		/* A long double has 64 bits: enough to tell a second from the next up to 15 digits. */
		wrong += policy.value[1] < INTEGER_MAX && w_s <= UINT64_MAX / SECOND &&
		         (policy.value[1] + 1e-3L < w_s || policy.value[1] > w_s + 1);
		wrong += (f.retry_after[0] == '\0') != (answer == SHMLIMIT_ALLOWED || never);
		wrong += f.retry_after[0] != '\0' && strtoull(f.retry_after, NULL, 10) != limit.value[1];
	}
	is(bad, 0, "whatever the numbers are, the fields parse (seed %llu)", (unsigned long long)seed);
	is(wrong, 0, "the fields have the numbers, up to 15 digits, in %u cases", cases);
}

static void errors(void)
{
	struct shmlimit_rule rule = rule_of(1, 1, SECOND);
	struct shmlimit_result r = { .limit = 1 };
	struct {
		struct shmlimit_rule known;
		uint64_t beyond;
	} later_rule = { rule, 1 };
	struct {
		struct shmlimit_fields known;
		unsigned char beyond[8];
	} later = { .known.struct_size = sizeof(later), .beyond = { 1, 2, 3 } };

	f.struct_size = sizeof(f);
	is(shmlimit_fields(NULL, &rule, 0, &r, &f), -EINVAL, "no name");
	is(shmlimit_fields("r", NULL, 0, &r, &f), -EINVAL, "no rule");
	is(shmlimit_fields("r", &rule, 0, NULL, &f), -EINVAL, "no result");
	is(shmlimit_fields("r", &rule, 0, &r, NULL), -EINVAL, "nowhere to put them");
	is(shmlimit_fields("r", &rule, 2, &r, &f), -EINVAL, "an answer that there is not");
	is(shmlimit_fields("r", &rule, -ESRCH, &r, &f), -EINVAL, "an error");
	f.struct_size = sizeof(f) - 1;
	is(shmlimit_fields("r", &rule, 0, &r, &f), -EINVAL, "a structure that would cut a string");
	is(shmlimit_fields("r", &rule, 0, &r, &later.known), 0, "a later structure is filled");
	ok(later.known.struct_size == sizeof(later) && later.beyond[0] == 0 && later.beyond[2] == 0,
	   "with zeros in what is not known yet");
	later_rule.known.struct_size = sizeof(later_rule);
	f.struct_size = sizeof(f);
	is(shmlimit_fields("r", &later_rule.known, 0, &r, &f), -E2BIG, "a rule that says something unknown");
}

int main(void)
{
	words();
	places();
	counts();
	blocks();
	seconds();
	names();
	extremes();
	errors();
	return tap_done();
}
