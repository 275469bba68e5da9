/*
 * shares: a limit of places by key that has a share of the places free in the limit before it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "entered.h"

#define HELD_MAX 80

static struct shmlimit_gate_held held[HELD_MAX];
static char tenants[HELD_MAX];
static unsigned entered;

/* One request of a tenant: the limits of the list, of which the first has one key for all. */
static int request(struct shmlimit_gate *g, char tenant, uint32_t share, const uint32_t *limits, size_t n)
{
	static const char all[] = "all";
	struct shmlimit_gate_held *h = &held[entered];
	int got;

	key_count = n;
	tenants[entered] = tenant;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct shmlimit_gate_key){ .limit = limits[i],
			                              .bytes = i == 0 ? all : &tenants[entered],
			                              .length = 1,
			                              .share = i == 0 ? 0 : share };
	new_out();
	memset(h, 0x77, sizeof(*h));
	h->struct_size = sizeof(*h);
	got = shmlimit_gate_enter(g, keys, n, &answer, h);
	entered += got == SHMLIMIT_ALLOWED && h->count > 0;
	return got;
}

static const uint32_t both[] = { 0, 1 };

static unsigned fill(struct shmlimit_gate *g, char tenant, uint32_t share)
{
	unsigned before = entered;

	while (request(g, tenant, share, both, 2) == SHMLIMIT_ALLOWED && answer.outcome == SHMLIMIT_GATE_PASSED)
		;
	return entered - before;
}

static void leave_all(struct shmlimit_gate *g)
{
	while (entered > 0) {
		entered--;
		keys[0].bytes = "all";
		keys[1].bytes = &tenants[entered];
		shmlimit_gate_leave(g, keys, 2, &held[entered]);
	}
}

static struct shmlimit_gate *fresh(const char *rest)
{
	shmlimit_destroy(unit_name);
	entered = 0;
	return gate_new(rest);
}

static void tenants_share(void)
{
	struct shmlimit_gate *g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" rule=each share=4");

	is(fill(g, 'a', 0), 52, "a tenant that is alone holds 52 of 64 places with a share of 4");
	is(answer.denied_by, 1, "its share denies it");
	is(answer.status, 429, "with the status of its limit");
	is_str(gate_field("RateLimit-Policy"), "\"each\";q=64;qu=\"concurrent-requests\"",
	       "the policy is that of the limit before it");
	is(left("all", "a"), 12, "a denied request leaves its place in the total");
	is(fill(g, 'b', 0), 10, "another tenant gets places of those that are free");
	leave_all(g);
	is(left("all", "a"), 64, "all places are left");
	is(fill(g, 'a', 500), 21, "a request may bring a smaller share");
	is(fill(g, 'b', 100 * SHMLIMIT_SHARE_ONE), 43, "a request may bring a larger share");
	is(request(g, 'c', 0, both, 2), SHMLIMIT_DENIED, "none is free then");
	is(answer.denied_by, 0, "the total denies");
	leave_all(g);
	shmlimit_gate_close(g);
	g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" rule=each share=0.25");
	is(request(g, 'a', 0, both, 2), SHMLIMIT_ALLOWED, "a tenant enters by a share of a quarter");
	is_str(answer.fields[2].value, "\"each\";q=64;qu=\"concurrent-requests\"",
	       "its first answer has the same policy");
	leave_all(g);
	shmlimit_gate_close(g);
}

/* The limit that denied last is asked first, but not before the one that it shares. */
static void order(void)
{
	static const uint32_t limits[] = { 0, 1, 2 };
	struct shmlimit_gate *g = fresh("create=yes slots=64 rule=all rate=\"4 at once\" rule=each share=1 rule=day "
	                                "rate=3/day");

	is(request(g, 'a', 0, limits, 3), SHMLIMIT_ALLOWED, "places and tokens are taken together");
	is(request(g, 'a', 0, limits, 3), SHMLIMIT_ALLOWED, "a tenant enters while its share allows it");
	is(request(g, 'a', 0, limits, 3), SHMLIMIT_DENIED, "the share denies");
	is(left("day", "a"), 1, "a denial by a share costs no token");
	for (int i = 0; i < 2; i++) {
		is(request(g, 'a', 0, limits, 3), SHMLIMIT_DENIED, "the share denies again, time %d", i);
		is(answer.denied_by, 1, "a denial by a share names its limit, time %d", i);
	}
	keys[0].bytes = "all";
	keys[1].bytes = keys[2].bytes = "a";
	shmlimit_gate_leave(g, keys, 3, &held[--entered]);
	is(request(g, 'a', 0, limits, 3), SHMLIMIT_ALLOWED, "when one has left, it allows");
	shmlimit_gate_leave(g, keys, 3, &held[--entered]);
	is(request(g, 'a', 0, limits, 3), SHMLIMIT_DENIED, "without a token the request is denied");
	is(answer.denied_by, 2, "by that limit");
	ok(left("all", "a") == 3 && left("each", "a") == 3, "a request without a token leaves both places again");
	shmlimit_gate_close(g);
}

static void dry_runs(void)
{
	static const uint32_t between[] = { 0, 1, 2 };
	struct shmlimit_gate *g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" rule=each share=4 dry_run");

	is(fill(g, 'a', 0), 52 + 1, "a share in a dry run says when it would deny");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "a share in a dry run lets the request go on");
	is(answer.denied_by, 1, "a dry run names the limit of the share");
	is(left("each", "a"), 12, "that request holds no place of it");
	leave_all(g);
	shmlimit_gate_close(g);
	g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" rule=day rate=1000/day rule=each share=1 dry_run");
	while (request(g, 'a', 0, between, 3) == SHMLIMIT_ALLOWED && answer.outcome == SHMLIMIT_GATE_PASSED)
		;
	is(entered, 32 + 1, "a share in a dry run is of the last limit that has places");
	leave_all(g);
	shmlimit_gate_close(g);
	g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" rule=each share=0.001 dry_run");
	is(request(g, 'a', 0, both, 2), SHMLIMIT_ALLOWED, "a share of nothing in a dry run lets requests go on");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "a share of nothing would deny the first");
	leave_all(g);
	shmlimit_gate_close(g);
	g = fresh("create=yes slots=64 rule=all rate=\"64 at once\" dry_run rule=each share=4 dry_run");
	is(fill(g, 'a', 0), 52 + 1, "both limits may be in a dry run");
	is(answer.denied_by, 1, "the one that would deny is named");
	leave_all(g);
	shmlimit_gate_close(g);
}

/* The limit before it is not in force: the segment has one rule. */
static void without_room(void)
{
	const struct shmlimit_options one = { .struct_size = sizeof(one), .slots = 64, .rules = 1, .rules_max = 1 };
	const struct shmlimit_rule two = {
		.struct_size = sizeof(two), .algorithm = SHMLIMIT_HOLD, .capacity = 2, .period_ns = 3600 * SECOND
	};
	struct shmlimit_gate *g;
	struct shmlimit *l;

	shmlimit_destroy(unit_name);
	l = unit_create("gate.shares", &one);
	unit_id(shmlimit_rule_set(l, "each", &two));
	shmlimit_close(l);
	entered = 0;
	g = gate_new("create=yes rule=all rate=\"2 at once for 1h\" rule=each share=0.001");
	for (int i = 0; i < 2; i++) {
		is(request(g, 'a', 0, both, 2), SHMLIMIT_ALLOWED, "without its limit a share bounds nothing, time %d",
		   i);
		is(answer.error, -EXFULL, "the answer says that a limit has no room, time %d", i);
	}
	is(request(g, 'a', 0, both, 2), SHMLIMIT_DENIED, "its own rule does");
	is(answer.denied_by, 1, "a limit whose share is of no limit in force denies");
	shmlimit_gate_close(g);
}

static void wrong(void)
{
	static const uint32_t alone[] = { 1 }, turned[] = { 1, 0 };
	struct shmlimit_gate *g = fresh("create=yes slots=64 rule=all rate=\"4 at once\" rule=each share=1");
	struct shmlimit_rule funnel = { .struct_size = sizeof(funnel), .capacity = 5, .refill = 5, .period_ns = SECOND };
	struct shmlimit *l;

	is(request(g, 'a', 0, alone, 1), SHMLIMIT_DENIED, "a share without the limit before it fails");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.status == 503 && answer.error == -EINVAL,
	   "a share without its limit fails as fail= says");
	ok(gate_said == 1 && strstr(gate_lines[0], "rule each: share= needs a limit of places before it in the same "
	                                           "request: requests that need it are refused") != NULL,
	   "a share without its limit is reported: %s", gate_lines[0]);
	is(request(g, 'a', 0, turned, 2), SHMLIMIT_DENIED, "a share that comes before its limit fails");
	is(left("each", "a") + left("all", "a"), 8, "a request that failed holds nothing");
	is(gate_said, 1, "it is reported once a minute");
	is(request(g, 'a', 0, (const uint32_t[]){ 0 }, 1), SHMLIMIT_ALLOWED, "the limit before it may be alone");
	keys[0].share = 1;
	is(shmlimit_gate_enter(g, keys, 1, &answer, &held[HELD_MAX - 1]), -EINVAL, "a limit without share= takes none");
	keys[0] = (struct shmlimit_gate_key){ .limit = 0, .bytes = "all", .length = 3 };
	keys[1] = (struct shmlimit_gate_key){ .limit = 1, .bytes = "a", .length = 1 };
	new_out();
	is(shmlimit_gate_ask(g, keys, 2, &answer), -EINVAL, "a share needs shmlimit_gate_enter()");
	if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
		bail("shmlimit_open");
	is(shmlimit_rule_remove(l, "each"), 0, "a rule is removed");
	unit_id(shmlimit_rule_set(l, "each", &funnel));
	shmlimit_close(l);
	gate_said = 0;
	shmlimit_gate_close(g);
	g = gate_new("rule=all rule=each share=1");
	is(request(g, 'a', 0, both, 2), SHMLIMIT_DENIED, "a rule that is no longer of places fails");
	ok(gate_said == 1 && strstr(gate_lines[0], "share= needs a rule of places") != NULL,
	   "a rule that has no places any more is reported: %s", gate_lines[0]);
	is(left("all", "a"), 3, "a request that failed enters nothing in the total, of which one place was held");
	shmlimit_gate_close(g);
}

/* The quickest time that the key of a number that is found knows of. */
static uint64_t quickest_ns(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t quickest = 0;
	struct shmlimit *l;

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
		bail("shmlimit_open");
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, shmlimit_now(l)) == 0; i++)
		quickest = slot.number != 0 ? slot.base_ns : quickest;
	shmlimit_close(l);
	return quickest;
}

/* What another limit denies does no work: the time of its place is not that of work. */
static void denied_by_another(void)
{
	struct shmlimit_gate *g = fresh("create=yes slots=64 rule=found rate=\"auto at once\" rule=day rate=\"block\"");
	unsigned denied = 0;

	/* Two windows, if they counted. */
	for (int window = 0; window < 2; window++) {
		for (int i = 0; i < 60; i++)
			denied += request(g, 'a', 0, both, 2) == SHMLIMIT_DENIED;
		usleep(300000);
	}
	is(request(g, 'a', 0, both, 2), SHMLIMIT_DENIED, "another limit denies all");
	is(denied, 120, "it denied those before, too");
	is(quickest_ns(), 0, "a number that is found learns nothing of requests that another limit denied");
	shmlimit_gate_close(g);
}

int main(void)
{
	shmlimit_close(unit_create("gate.shares", NULL));
	tenants_share();
	order();
	dry_runs();
	without_room();
	wrong();
	denied_by_another();
	return tap_done();
}
