/*
 * fast: which calls are decided at the first try. decide_slowly() gives the same answers, only later, so that no
 * other test notices when a call that could be decided at once goes there. It is wrapped here when this program is
 * linked, and counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "decide.h"

#define T0 (1000 * SECOND)

int __real_decide_slowly(const struct shmlimit *, const struct request *, uint32_t failed, struct shmlimit_result *);
int __wrap_decide_slowly(const struct shmlimit *, const struct request *, uint32_t failed, struct shmlimit_result *);

static unsigned slowly;

int __wrap_decide_slowly(const struct shmlimit *limiter, const struct request *request, uint32_t failed,
                         struct shmlimit_result *r)
{
	slowly++;
	return __real_decide_slowly(limiter, request, failed, r);
}

static struct shmlimit *l;

static int rule_of(const char *name, uint32_t algorithm)
{
	struct shmlimit_rule rule = { .algorithm = algorithm, .capacity = 10, .refill = 10, .period_ns = 60 * SECOND };

	if (algorithm == SHMLIMIT_WARMUP) {
		rule.capacity = 0;
		rule.warmup_ns = 60 * SECOND;
	}
	return unit_rule_at(l, name, rule, T0);
}

/* How many of three kinds of call on a key go the slow way. */
static unsigned slow_calls(int rule, const char *key, uint64_t now_ns)
{
	struct shmlimit_result r;

	slowly = 0;
	shmlimit_take(at_time(l, now_ns), rule, key, strlen(key), 1, NULL);
	shmlimit_take(at_time(l, now_ns + SECOND), rule, key, strlen(key), 1, &r);
	shmlimit_peek(at_time(l, now_ns + SECOND), rule, key, strlen(key), 1, &r);
	return slowly;
}

static void denied_too(int rule)
{
	struct shmlimit_result r;

	slowly = 0;
	while (shmlimit_take(at_time(l, T0), rule, "user:42", 7, 1, NULL) == SHMLIMIT_ALLOWED)
		;
	is(shmlimit_take(at_time(l, T0), rule, "user:42", 7, 1, &r), SHMLIMIT_DENIED, "the key runs out of tokens");
	is(slowly, 0, "the first try takes the last token, and denies");
}

/* Reserve, charge and refund; take_all and take_many. */
static void other_calls(int rule, const char *name)
{
	struct shmlimit_request request = { rule, 0, "user:42", 7, 1, NULL, NULL };
	struct shmlimit_result r;
	int answer;

	shmlimit_reset(l, rule, "user:42", 7);
	shmlimit_take(at_time(l, T0), rule, "user:42", 7, 1, NULL);
	slowly = 0;
	shmlimit_reserve(at_time(l, T0), rule, "user:42", 7, 1, 0, &r);
	shmlimit_charge(at_time(l, T0), rule, "user:42", 7, 1, &r);
	shmlimit_refund(at_time(l, T0), rule, "user:42", 7, 1, &r);
	is(slowly, 0, "%s: reserve, charge and refund are decided at the first try", name);
	shmlimit_take_all(at_time(l, T0), &request, 1, NULL, NULL);
	shmlimit_take_many(at_time(l, T0), &request, 1, &answer, NULL);
	is(slowly, 0, "%s: take_all and take_many are decided at the first try", name);
}

/* The key has a slot, which a take of the rule's own limit finds at the first try. */
static void no_limit_of_its_own(int rule, const char *name)
{
	struct shmlimit_limit limit = {
		.struct_size = sizeof(limit), .capacity = 5, .refill = 5, .period_ns = 60 * SECOND
	};
	struct shmlimit_request request = { rule, 0, "user:42", 7, 1, &limit, NULL };
	int answer;

	is(by_limit(at_time(l, T0), SHMLIMIT_TAKE, rule, "user:42", 7, 1, &limit, NULL), -EOPNOTSUPP,
	   "%s: a limit that comes with the call is refused, also for a key that has a slot", name);
	shmlimit_take_many(at_time(l, T0), &request, 1, &answer, NULL);
	is(answer, -EOPNOTSUPP, "%s: a take_many refuses such a limit, too", name);
}

static void leased(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 10,
		                      .refill = 10,
		                      .period_ns = 60 * SECOND };
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	int id = shmlimit_rule_set(at_time(l, T0), "lease", &rule);

	shmlimit_lease_deposit(at_time(l, T0), id, "user:42", 7, 10, 1, 0, 60 * SECOND, NULL);
	slowly = 0;
	shmlimit_take(at_time(l, T0), id, "user:42", 7, 1, NULL);
	is(shmlimit_lease_take(at_time(l, T0), id, "user:42", 7,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = SECOND,
	                                                         .claim_ns = SECOND },
	                       &lease, NULL),
	   SHMLIMIT_ALLOWED, "a leased token is spent");
	is(slowly, 0, "lease: a take of what is leased is decided at the first try");
	no_limit_of_its_own(id, "lease");
}

static void counted(void)
{
	int id = rule_of("count", SHMLIMIT_COUNTER);
	struct shmlimit_count count = { .struct_size = sizeof(count) };

	slowly = 0;
	shmlimit_count(at_time(l, T0), id, "user:42", 7,
	               &(struct shmlimit_count_request){
			       .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 10 },
	               &count);
	is(slowly, 1, "a count that begins is not decided at the first try");
	is(shmlimit_count(at_time(l, T0), id, "user:42", 7,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 9, .bound = 10 },
	                  &count),
	   SHMLIMIT_ALLOWED, "a count goes up to its bound");
	is(shmlimit_count(at_time(l, T0), id, "user:42", 7,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 10 },
	                  &count),
	   SHMLIMIT_DENIED, "a count goes no further than its bound");
	is(slowly, 1, "count: a count that goes up or is denied is decided at the first try");
}

/* All 16 places but one, which is neither the first nor the last. */
static void held(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_HOLD, .capacity = 16, .period_ns = 60 * SECOND
	};
	struct shmlimit_place hold[16];
	int id = shmlimit_rule_set(at_time(l, T0), "hold", &rule), answer = 0;

	slowly = 0;
	for (int i = 0; i < 16; i++) {
		hold[i] = (struct shmlimit_place){ .struct_size = sizeof(hold[i]) };
		answer |= shmlimit_enter(at_time(l, T0), id, "user:42", 7, &hold[i], NULL);
	}
	is(answer, SHMLIMIT_ALLOWED, "sixteen places are entered");
	is(slowly, 1, "hold: the first place of a key is not entered at the first try, and the others are");
	is(shmlimit_leave(at_time(l, T0), id, "user:42", 7, &hold[7]), 0, "a place between others is left");
	is(shmlimit_enter(at_time(l, T0), id, "user:42", 7, &hold[0], NULL), SHMLIMIT_ALLOWED,
	   "a place between others is entered");
	is((int)hold[0].index, (int)hold[7].index, "the place that was left is entered again");
	is(slowly, 1, "hold: a place is left and entered at the first try, whatever others are held");
	is(shmlimit_enter(at_time(l, T0), id, "user:42", 7, &hold[0], NULL), SHMLIMIT_DENIED,
	   "no more places are entered than there are");
	is(slowly, 1, "hold: an entry is denied at the first try");
}

/* A key of a funnel has a slot, and a word that others would take for theirs. */
static void of_another_algorithm(int rule)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct shmlimit_place hold = { .struct_size = sizeof(hold), .value = 1 };

	shmlimit_take(at_time(l, T0), rule, "user:42", 7, 1, NULL);
	is(shmlimit_count(at_time(l, T0), rule, "user:42", 7,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 10 },
	                  &count),
	   -EOPNOTSUPP, "a funnel counts nothing");
	is(shmlimit_enter(at_time(l, T0), rule, "user:42", 7, &hold, NULL), -EOPNOTSUPP,
	   "a funnel has no places to enter");
	is(shmlimit_leave(at_time(l, T0), rule, "user:42", 7, &hold), -EOPNOTSUPP, "a funnel has no places to leave");
	is(shmlimit_lease_take(at_time(l, T0), rule, "user:42", 7,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = SECOND,
	                                                         .claim_ns = SECOND },
	                       &lease, NULL),
	   -EOPNOTSUPP, "a funnel leases nothing, whether the key has a slot or not");
}

static void on_its_own_clock(int rule)
{
	struct shmlimit_result r;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_take(l, rule, "user:42", 7, 1, NULL);
	slowly = 0;
	shmlimit_take(l, rule, "user:42", 7, 1, NULL);
	shmlimit_take(l, rule, "user:42", 7, 1, &r);
	is(slowly, 0, "lease: a take by the limiter's own clock is decided at the first try");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	static const struct {
		const char *name;
		uint32_t algorithm;
	} limits[] = {
		{ "funnel", SHMLIMIT_FUNNEL },
		{ "window", SHMLIMIT_WINDOW },
		{ "warmup", SHMLIMIT_WARMUP },
	};

	l = unit_create("fast", &options);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int rule = rule_of(limits[i].name, limits[i].algorithm);

		slowly = 0;
		shmlimit_take(at_time(l, T0), rule, "user:42", 7, 1, NULL);
		if (limits[i].algorithm == SHMLIMIT_FUNNEL)
			is(slowly, 1, "a new key is not decided at the first try, and this test counts that");
		is(slow_calls(rule, "user:42", T0), 0, "%s: a key that has a slot is decided at the first try",
		   limits[i].name);
		other_calls(rule, limits[i].name);
		no_limit_of_its_own(rule, limits[i].name);
	}
	leased();
	counted();
	held();
	of_another_algorithm(shmlimit_rule_find(l, "funnel"));
	denied_too(shmlimit_rule_find(l, "funnel"));
	on_its_own_clock(shmlimit_rule_find(l, "funnel"));
	shmlimit_close(l);
	return tap_done();
}
