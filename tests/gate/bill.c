/*
 * bill: requests whose cost is known afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "entered.h"
#include "../rng.h"

#define SETTLE(gate, held, ...) shmlimit_gate_settle(gate, keys, key_count, (const uint64_t[]){ __VA_ARGS__ }, held)
#define CHARGE(gate, held, ...) shmlimit_gate_charge(gate, keys, key_count, (const uint64_t[]){ __VA_ARGS__ }, held)

static void settles(void)
{
	struct shmlimit_gate *g =
		gate_new("create=yes slots=64 rule=r rate=\"100/200 days\" estimate=10 charge_max=366d "
	                 "rule=plain rate=\"5/200 days\"");
	struct shmlimit_gate_held a, b;

	is(ENTER(g, &a, "k", 0, 1), SHMLIMIT_ALLOWED, "a request pays its estimate");
	ok(left("r", "k") == 90 && left("plain", "k") == 4, "an estimate is taken before");
	ok(a.bill_count == 1 && a.bills[0].key == 0 && a.bills[0].paid == 10 && a.count == 0,
	   "what was paid is in the bill");
	is(SETTLE(g, &a, 25, 3), 0, "a request is settled");
	ok(left("r", "k") == 75 && left("plain", "k") == 4,
	   "the difference is charged, and nothing in a limit without estimate");
	is(SETTLE(g, &a, 25, 3), 0, "a request can be settled again");
	is(left("r", "k"), 75, "the same again changes nothing");
	SETTLE(g, &a, 40, 0);
	is(left("r", "k"), 60, "a request that goes on is charged what is new");
	SETTLE(g, &a, SHMLIMIT_GATE_NOT_KNOWN, 0);
	is(left("r", "k"), 60, "a cost that is not known leaves what was paid");
	SETTLE(g, &a, 3, 0);
	is(left("r", "k"), 97, "what was paid too much is given back");
	SETTLE(g, &a, 0, 0);
	is(left("r", "k"), 100, "a request that cost nothing gets all of it back");

	ENTER(g, &a, "debt", 0);
	SETTLE(g, &a, 250);
	is(ENTER(g, &b, "debt", 0), SHMLIMIT_DENIED, "a key that used too much is denied until that is paid");
	is(b.bill_count, 0, "a request that is denied has no bill");
	ok(answer.retry_after_ns / 1000000000 / 86400 >= 319 && answer.retry_after_ns / 1000000000 / 86400 <= 320,
	   "what it used is debt in full");
	is(gate_said, 0, "nothing of this is a problem");
	shmlimit_gate_close(g);
}

static void goes_on(void)
{
	struct shmlimit_gate *g = gate_new("create=yes slots=64 rule=r rate=\"100/200 days\" estimate=10 "
	                                   "rule=two rate=\"100/200 days\" estimate=20");
	struct shmlimit_gate_held a;

	ENTER(g, &a, "k", 0, 1);
	is(CHARGE(g, &a, 0, 0), 0, "a request that goes on is charged");
	ok(left("r", "k") == 90 && left("two", "k") == 80, "a request that goes on gets nothing back of its estimate");
	CHARGE(g, &a, 19, 19);
	ok(left("r", "k") == 90 && left("two", "k") == 80, "less than another estimate is not charged yet");
	CHARGE(g, &a, 20, 20);
	ok(left("r", "k") == 80 && left("two", "k") == 80, "each limit is charged when its estimate was used again");
	CHARGE(g, &a, 35, SHMLIMIT_GATE_NOT_KNOWN);
	ok(left("r", "k") == 65 && left("two", "k") == 80,
	   "all that was used so far is charged, and nothing that is not known");
	CHARGE(g, &a, 34, 40);
	ok(left("r", "k") == 65 && left("two", "k") == 60, "a request that goes on is given nothing back");
	CHARGE(g, &a, 44, 59);
	SETTLE(g, &a, 44, 41);
	ok(left("r", "k") == 56 && left("two", "k") == 59, "when it ends the sum is what it cost, to the token");
	SETTLE(g, &a, 44, 41);
	ok(left("r", "k") == 56 && left("two", "k") == 59, "to settle it again changes nothing");

	ENTER(g, &a, "debt", 0);
	CHARGE(g, &a, 250);
	is(ENTER(g, &a, "debt", 0), SHMLIMIT_DENIED,
	   "a request that goes on and used too much makes the next one wait");

	keys[0] = (struct shmlimit_gate_key){ .bytes = "own", .length = 3, .cost = 5 };
	key_count = 1;
	a.struct_size = sizeof(a);
	new_out();
	shmlimit_gate_enter(g, keys, 1, &answer, &a);
	CHARGE(g, &a, 9);
	is(left("r", "own"), 95, "a request whose estimate is its own has not used it again");
	CHARGE(g, &a, 10);
	is(left("r", "own"), 90, "a request whose estimate is its own has used it again, and is charged");
	is(gate_said, 0, "a request that goes on is no problem");

	shmlimit_destroy(unit_name);
	is(shmlimit_gate_attach(g), 0, "there is another segment");
	is(CHARGE(g, &a, 90), 0, "a request of a segment that is gone goes on");
	is(left("r", "own"), 100, "a segment is not charged for requests of another segment");
	shmlimit_gate_close(g);
}

/* The limits of a request itself, texts as well as structures. */
static void own_limits(void)
{
	struct shmlimit_gate *g = gate_new("create=yes rule=plans algorithm=gcra estimate=1");
	struct shmlimit_gate_held a;
	struct shmlimit_result r;
	struct shmlimit_limit limit = { .struct_size = sizeof(limit) };
	struct shmlimit *l;

	keys[0] = (struct shmlimit_gate_key){ .bytes = "k", .length = 1, .rate = "100/200 days", .rate_length = 12 };
	key_count = 1;
	answer.struct_size = sizeof(answer);
	answer.buffer = NULL;
	a.struct_size = sizeof(a);
	is(shmlimit_gate_enter(g, keys, 1, &answer, &a), SHMLIMIT_ALLOWED,
	   "a request with a limit of its own pays its estimate");
	is(SETTLE(g, &a, 31), 0, "it is settled by its own limit");
	if (shmlimit_open(unit_name, 0, NULL, &l) != 0 || shmlimit_limit_parse("100/200 days", &limit, NULL) != 0)
		bail("shmlimit_open");
	by_limit(l, SHMLIMIT_PEEK, shmlimit_rule_find(l, "plans"), "k", 1, 1, &limit, &r);
	is(r.remaining, 69, "the difference is charged by its own limit");
	SETTLE(g, &a, 1000);
	by_limit(l, SHMLIMIT_PEEK, shmlimit_rule_find(l, "plans"), "k", 1, 1, &limit, &r);
	ok(r.retry_after_ns / 1000000000 / 86400 >= 200 && r.retry_after_ns / 1000000000 / 86400 <= 202,
	   "what it used is debt, of the limit's time to full at most");
	ok(gate_said == 1 && strstr(gate_lines[0], "not all tokens that a request used are charged (1000)") != NULL,
	   "a longer debt is reported: %s", gate_lines[0]);
	shmlimit_close(l);
	shmlimit_gate_close(g);
}

/* However wrong an amount is, its client waits for no longer than charge_max=, and the time of the next request. */
static void bounds(void)
{
	static const struct {
		const char *rate, *words;
		uint64_t debt_s, next_s;
		const char *title;
	} limits[] = {
		{ "60/minute", "", 3600, 1, "an hour, where the limit is full sooner" },
		{ "86400/day", "", 86400, 1, "the time to full, where that is longer than an hour" },
		{ "60/minute", "charge_max=10m", 600, 1, "charge_max=" },
		{ "86400/day", "charge_max=90s", 90, 1, "a charge_max= below the time to full" },
		{ "366/366 days", "", 366 * 86400, 86400, "366 days at most" },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (int own = 0; own < 2; own++) {
			struct shmlimit_gate_held a;
			struct shmlimit_gate *g;
			char rest[200];

			if (own)
				snprintf(rest, sizeof(rest), "create=yes rule=own%zu algorithm=gcra estimate=1 %s", i,
				         limits[i].words);
			else
				snprintf(rest, sizeof(rest), "create=yes rule=r%zu rate=\"%s\" estimate=1 %s", i,
				         limits[i].rate, limits[i].words);
			g = gate_new(rest);
			keys[0] = (struct shmlimit_gate_key){ .bytes = "k", .length = 1 };
			key_count = 1;
			if (own) {
				keys[0].rate = limits[i].rate;
				keys[0].rate_length = (uint32_t)strlen(limits[i].rate);
			}
			a.struct_size = sizeof(a);
			answer.struct_size = sizeof(answer);
			answer.buffer = NULL;
			shmlimit_gate_enter(g, keys, 1, &answer, &a);
			SETTLE(g, &a, 1000000000000);
			is(shmlimit_gate_enter(g, keys, 1, &answer, &a), SHMLIMIT_DENIED,
			   "%s %s: a wrong amount makes debt", rest, own ? limits[i].rate : "");
			ok(answer.retry_after_ns / 1000000000 >= limits[i].debt_s - 5 &&
			           answer.retry_after_ns / 1000000000 <= limits[i].debt_s + limits[i].next_s,
			   "%s: its client waits for %s (%llu s)", limits[i].rate, limits[i].title,
			   (unsigned long long)(answer.retry_after_ns / 1000000000));
			ok(gate_said == 1 && strstr(gate_lines[0], "(1000000000000)") != NULL &&
			           strstr(gate_lines[0], "charge_max=") != NULL,
			   "the amount is reported: %s", gate_lines[0]);
			shmlimit_gate_close(g);
		}
}

static void modes(void)
{
	struct shmlimit_gate *g =
		gate_new("create=yes rule=mode rate=\"4/200 days\" estimate=2 rule=rehearsed rate=\"4/200 days\" "
	                 "estimate=3 dry_run");
	struct shmlimit_gate_held a;

	ENTER(g, &a, "k", 0, 1);
	is(a.bill_count, 2, "a limit in a dry run has a bill, too");
	SETTLE(g, &a, 1, 1);
	ok(left("mode", "k") == 3 && left("rehearsed", "k") == 3, "a limit in a dry run is settled as the others are");
	ENTER(g, &a, "k", 0, 1);
	ENTER(g, &a, "k", 1);
	is(a.bill_count, 0, "a dry run that would have denied took nothing, and has no bill");
	set_mode(SHMLIMIT_DRY_RUN);
	ENTER(g, &a, "k", 0);
	is(a.bill_count, 0, "a rule in a dry run that would have denied has no bill");
	set_mode(SHMLIMIT_OFF);
	ENTER(g, &a, "k", 0);
	is(SETTLE(g, &a, 100), 0, "a rule that is off is settled");
	is(gate_said, 0, "to settle what is off is no problem");
	shmlimit_gate_close(g);
}

static void refused(void)
{
	static const struct {
		const char *spec, *text;
	} wrong[] = {
		{ "create=yes rule=r rate=5/minute estimate=0", "must be estimate=N, 1 or more" },
		{ "create=yes rule=r rate=5/minute estimate=6",
		  "rule=r: rate=\"5/minute\" allows at most less than the cost" },
		{ "create=yes rule=r rate=\"5 at once\" estimate=1", "cannot be charged afterwards" },
		{ "create=yes rule=r rate=5/minute algorithm=window estimate=1", "cannot be charged afterwards" },
		{ "create=yes rule=r rate=5/minute estimate=1 peek", "rule=r: a limit with peek takes nothing" },
		{ "create=yes backend=redis://h rule=r rate=5/minute estimate=1", "it needs the word local" },
	};
	struct shmlimit_gate_wrong w = { .struct_size = sizeof(w) };
	struct shmlimit_gate *g;
	struct shmlimit_gate_held a;
	struct shmlimit *l;
	char spec[300];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(spec, sizeof(spec), "segment=s %s", wrong[i].spec);
		ok(shmlimit_gate_check(spec, &w) == -EINVAL && strstr(w.text, wrong[i].text) != NULL, "refused: %s",
		   wrong[i].spec);
	}
	is(shmlimit_gate_check("segment=s create=yes backend=redis://h rule=r rate=5/minute estimate=1 local", NULL), 0,
	   "a limit of this host is settled where others are shared");
	g = gate_new("create=yes rule=r rate=\"9/200 days\" estimate=1 rule=two rate=\"9/200 days\" estimate=1");
	ENTER(g, &a, "k", 0);
	is(shmlimit_gate_settle(NULL, keys, 1, (uint64_t[]){ 2 }, &a), -EINVAL, "without a gate nothing is settled");
	is(shmlimit_gate_settle(g, NULL, 1, (uint64_t[]){ 2 }, &a), -EINVAL, "without keys nothing is settled");
	is(shmlimit_gate_settle(g, keys, 1, NULL, &a), -EINVAL, "without numbers nothing is settled");
	is(shmlimit_gate_settle(g, keys, 1, (uint64_t[]){ 2 }, NULL), -EINVAL,
	   "without what was paid nothing is settled");
	is(shmlimit_gate_settle(g, keys, 0, (uint64_t[]){ 2 }, &a), -EINVAL, "with other keys nothing is settled");
	is(shmlimit_gate_charge(NULL, keys, 1, (uint64_t[]){ 2 }, &a), -EINVAL, "without a gate nothing is charged");
	is(shmlimit_gate_charge(g, NULL, 1, (uint64_t[]){ 2 }, &a), -EINVAL, "without keys nothing is charged");
	is(shmlimit_gate_charge(g, keys, 1, NULL, &a), -EINVAL, "without numbers nothing is charged");
	is(shmlimit_gate_charge(g, keys, 1, (uint64_t[]){ 2 }, NULL), -EINVAL,
	   "without what was paid nothing is charged");
	is(shmlimit_gate_charge(g, keys, 0, (uint64_t[]){ 2 }, &a), -EINVAL, "with other keys nothing is charged");
	is(left("r", "k"), 8, "what was refused changed nothing");

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0 || shmlimit_rule_remove(l, "r") != 0)
		bail("shmlimit_rule_remove");
	is(SETTLE(g, &a, 5), 0, "a rule that is gone is no error");
	is(gate_said, 1, "a rule that is gone is reported");
	shmlimit_close(l);
	shmlimit_gate_close(g);
}

/* Sums are exact, whatever the order of what is charged and settled: beside a number for each key. */
static void oracle(void)
{
	struct shmlimit_gate *g = gate_new("create=yes rule=sum rate=\"1000000/366 days\" estimate=7");
	struct shmlimit_gate_held held[40];
	static const char *const names[] = { "a", "b", "c" };
	uint64_t used[3] = { 0 }, cost[40], of[40];
	int wrong = 0, behind = 0;
	struct rng rng = { rng_seed() };

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 40; i++) {
			of[i] = rng_below(&rng, 3);
			cost[i] = 7;
			ENTER(g, &held[i], names[of[i]], 0);
		}
		for (int i = 0; i < 100; i++) {
			uint64_t which = rng_below(&rng, 40);

			cost[which] = rng_below(&rng, 30);
			keys[0] = (struct shmlimit_gate_key){ .bytes = names[of[which]], .length = 1 };
			key_count = 1;
			if (rng_below(&rng, 2)) {
				SETTLE(g, &held[which], cost[which]);
				continue;
			}
			behind += CHARGE(g, &held[which], cost[which]) != 0;
			behind += held[which].bills[0].paid + 7 <= cost[which];
			cost[which] = held[which].bills[0].paid;
		}
		for (int i = 0; i < 40; i++)
			used[of[i]] += cost[i];
		for (int i = 0; i < 3; i++)
			wrong += left("sum", names[i]) != 1000000 - used[i];
	}
	is(behind, 0, "a request that goes on is behind by less than its estimate");
	is(wrong, 0, "over any history the sum of what was settled is what requests used, to the token");
	shmlimit_gate_close(g);
}

int main(void)
{
	shmlimit_close(unit_create("gate.bill", NULL));
	shmlimit_destroy(unit_name);
	settles();
	goes_on();
	own_limits();
	bounds();
	modes();
	refused();
	oracle();
	return tap_done();
}
