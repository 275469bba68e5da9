/*
 * said_time: each time that an answer says is right when it has come. After what retry_after_ns says the same request
 * is allowed; after reset_after_ns the key is full; a request that comes after wait_ns has nothing to wait for. Random
 * rules of each algorithm, random histories: the segment's bytes are kept, the later call is made, and they are put
 * back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>

#include "draw.h"
#include "unit.h"

#define RULES 600
#define ASKS 40
#define KEY "k", 1
#define DAY (86400 * SECOND)

enum verb { TAKE, PEEK, RESERVE, CHARGE, REFUND, ENTER, LEAVE, COUNT, LEASE_TAKE, LEASE_DEPOSIT, LEASE_DENY };

struct asked {
	enum verb verb;
	uint64_t cost, max_wait_ns;
	const struct shmlimit_limit *limit; /* NULL: the rule's own */
	struct shmlimit_place place;
	uint32_t count_flags;
};

static struct shmlimit *l;
static int file, rule;
static int steps; /* in this history the clock steps back by up to two days, and the rule changes */

/* ---- The bytes of the segment ---- */

#define EXTENTS_MAX 64

/* What the file holds, without its holes. */
struct kept {
	struct {
		off_t at, size;
	} extent[EXTENTS_MAX];
	int n;
	unsigned char *bytes;
	size_t room;
};

static void extents(struct kept *k)
{
	off_t at = 0, end;
	size_t all = 0;

	for (k->n = 0; (at = lseek(file, at, SEEK_DATA)) >= 0; at = end) {
		end = lseek(file, at, SEEK_HOLE);
		if (end < 0 || k->n == EXTENTS_MAX)
			bail("extents");
		k->extent[k->n].at = at;
		k->extent[k->n++].size = end - at;
		all += (size_t)(end - at);
	}
	if (all > k->room)
		k->bytes = realloc(k->bytes, k->room = all);
	if (k->bytes == NULL)
		bail("realloc");
}

static void keep(struct kept *k)
{
	size_t at = 0;

	extents(k);
	for (int i = 0; i < k->n; at += (size_t)k->extent[i++].size)
		if (pread(file, k->bytes + at, (size_t)k->extent[i].size, k->extent[i].at) != k->extent[i].size)
			bail("pread");
}

static void put(const struct kept *k)
{
	size_t at = 0;

	for (int i = 0; i < k->n; at += (size_t)k->extent[i++].size)
		if (pwrite(file, k->bytes + at, (size_t)k->extent[i].size, k->extent[i].at) != k->extent[i].size)
			bail("pwrite");
}

static void put_back(const struct kept *k)
{
	static struct kept now;

	/* What was a hole is zero. */
	extents(&now);
	memset(now.bytes, 0, now.room);
	put(&now);
	put(k);
}

/* ---- Calls ---- */

static int lease_take(uint64_t cost, struct shmlimit_result *r, uint64_t now_ns)
{
	struct shmlimit_lease_request request = {
		.struct_size = sizeof(request), .cost = cost, .lease_ns = 10 * SECOND, .claim_ns = SECOND
	};
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };

	return shmlimit_lease_take(at_time(l, now_ns), rule, KEY, &request, &lease, r);
}

/* A count's answer, as a result. */
static int count(const struct asked *a, struct shmlimit_result *r, uint64_t now_ns)
{
	struct shmlimit_count_request request = {
		.struct_size = sizeof(request), .n = (int64_t)a->cost, .bound = 9, .flags = a->count_flags
	};
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	int answer = shmlimit_count(at_time(l, now_ns), rule, KEY, &request, &out);
	struct shmlimit_rule is = { .struct_size = sizeof(is) };

	(void)shmlimit_rule_get(l, rule, &is);
	*r = (struct shmlimit_result){ .reset_after_ns = out.ttl_ns };
	if (answer == SHMLIMIT_DENIED)
		r->retry_after_ns = a->cost > is.capacity ? UINT64_MAX : out.ttl_ns;
	return answer;
}

static int ask(struct asked *a, struct shmlimit_result *r, uint64_t now_ns)
{
	static const uint32_t verb_of[] = { [TAKE] = SHMLIMIT_TAKE,
		                            [PEEK] = SHMLIMIT_PEEK,
		                            [RESERVE] = SHMLIMIT_RESERVE,
		                            [CHARGE] = SHMLIMIT_CHARGE,
		                            [REFUND] = SHMLIMIT_REFUND };

	*r = (struct shmlimit_result){ 0 };
	if (a->limit != NULL)
		return by_limit(at_time(l, now_ns), verb_of[a->verb], rule, KEY, a->cost, a->limit, r);
	switch (a->verb) {
	case TAKE:
		return shmlimit_take(at_time(l, now_ns), rule, KEY, a->cost, r);
	case PEEK:
		return shmlimit_peek(at_time(l, now_ns), rule, KEY, a->cost, r);
	case RESERVE:
		return shmlimit_reserve(at_time(l, now_ns), rule, KEY, a->cost, a->max_wait_ns, r);
	case CHARGE:
		return shmlimit_charge(at_time(l, now_ns), rule, KEY, a->cost, r);
	case REFUND:
		return shmlimit_refund(at_time(l, now_ns), rule, KEY, a->cost, r);
	case ENTER:
		a->place = (struct shmlimit_place){ .struct_size = sizeof(a->place) };
		return shmlimit_enter(at_time(l, now_ns), rule, KEY, &a->place, r);
	case COUNT:
		return count(a, r, now_ns);
	case LEASE_TAKE:
		return lease_take(a->cost, r, now_ns);
	case LEASE_DEPOSIT:
		return shmlimit_lease_deposit(at_time(l, now_ns), rule, KEY, a->cost, 0, 1 + up_to(20 * SECOND), 0, r);
	case LEASE_DENY:
		return shmlimit_lease_deny(at_time(l, now_ns), rule, KEY, a->cost, 1 + up_to(20 * SECOND), r);
	default:
		return shmlimit_leave(at_time(l, now_ns), rule, KEY, &a->place);
	}
}

/* ---- What is true then ---- */

static struct {
	uint64_t retries, early, resets, waits;            /* asked */
	uint64_t late, soon, not_full, full_early, waited; /* wrong */
	uint64_t slots, debts, otherwise;                  /* what the key's slot shows, and wrong */
} did;

static void show(const char *what, const struct asked *a, const struct shmlimit_result *said, int answer,
                 const struct shmlimit_result *then)
{
	struct shmlimit_rule is = { .struct_size = sizeof(is) };

	shmlimit_rule_get(l, rule, &is);
	diag("%s: verb %d cost %" PRIu64 "; algorithm %" PRIu32 " capacity %" PRIu64 " refill %" PRIu64
	     " period %" PRIu64 " wait %" PRIu64 " flags %" PRIx32 "; said wait %" PRIu64 " retry %" PRIu64
	     " reset %" PRIu64 " remaining %" PRIu64 "; then %d: wait %" PRIu64 " retry %" PRIu64 " reset %" PRIu64
	     " remaining %" PRIu64 " of %" PRIu64,
	     what, (int)a->verb, a->cost, is.algorithm, is.capacity, is.refill, is.period_ns, is.max_wait_ns, is.flags,
	     said->wait_ns, said->retry_after_ns, said->reset_after_ns, said->remaining, answer, then->wait_ns,
	     then->retry_after_ns, then->reset_after_ns, then->remaining, then->limit);
}

static void check_retry(struct asked *a, const struct shmlimit_result *said, uint64_t now_ns, uint64_t step_ns,
                        const struct kept *after)
{
	struct asked again = *a;
	struct shmlimit_result then;
	int answer;

	/* When the backend's denial is over a request asks it again. */
	again.verb = a->verb == LEASE_DENY ? LEASE_TAKE : a->verb;
	answer = ask(&again, &then, now_ns + said->retry_after_ns);
	did.retries++;
	if (answer == SHMLIMIT_DENIED) {
		if (did.late++ == 0)
			show("late", a, said, answer, &then);
	}
	put_back(after);
	/* A denial is not remembered where tokens are left. */
	if (said->retry_after_ns <= step_ns || a->verb == LEASE_DENY)
		return;
	did.early++;
	answer = ask(a, &then, now_ns + said->retry_after_ns - step_ns - 1);
	if (answer == SHMLIMIT_ALLOWED) {
		if (did.soon++ == 0)
			show("soon", a, said, answer, &then);
	}
	put_back(after);
}

static int is_full(const struct asked *a, struct shmlimit_result *then, uint64_t now_ns)
{
	struct asked look = { .verb = a->verb == COUNT ? COUNT : PEEK, .limit = a->limit };

	return ask(&look, then, now_ns) == SHMLIMIT_ALLOWED && then->reset_after_ns == 0 &&
	       (shmlimit_rule_algorithm(l, rule) == SHMLIMIT_LEASE || then->remaining == then->limit);
}

static void check_reset(struct asked *a, const struct shmlimit_result *said, uint64_t now_ns, uint64_t step_ns)
{
	struct shmlimit_result then;

	did.resets++;
	if (!is_full(a, &then, now_ns + said->reset_after_ns) && did.not_full++ == 0)
		show("not full", a, said, -1, &then);
	/*
	 * A place that had ended is held again after the clock stepped back, beside others that are held: it is free
	 * with them.
	 */
	if (steps && shmlimit_rule_algorithm(l, rule) == SHMLIMIT_HOLD)
		return;
	if (said->reset_after_ns > step_ns && is_full(a, &then, now_ns + said->reset_after_ns - step_ns - 1) &&
	    did.full_early++ == 0)
		show("full early", a, said, -1, &then);
}

static void check_wait(struct asked *a, const struct shmlimit_result *said, uint64_t now_ns, const struct kept *before,
                       const struct kept *after)
{
	struct shmlimit_result then;
	int answer;

	put_back(before);
	answer = ask(a, &then, now_ns + said->wait_ns);
	did.waits++;
	if ((answer != SHMLIMIT_ALLOWED || then.wait_ns != 0) && did.waited++ == 0)
		show("waited", a, said, answer, &then);
	put_back(after);
}

/* The slot of the only key, where it says something. */
static int find_slot(struct shmlimit_slot *slot, uint64_t now_ns)
{
	*slot = (struct shmlimit_slot){ .struct_size = sizeof(*slot) };
	for (uint64_t i = 0; shmlimit_slot(l, i, slot, now_ns) == 0; i++)
		if (slot->rule == rule && slot->state == SHMLIMIT_SLOT_LIVE)
			return 1;
	return 0;
}

/* Does the slot owe what it showed, less the time that went by? */
static int owes(uint64_t debt_ns, uint64_t now_ns, uint64_t step_ns)
{
	struct shmlimit_slot then;

	if (find_slot(&then, now_ns + debt_ns) && then.debt_ns > 0)
		return 0;
	return debt_ns <= step_ns || (find_slot(&then, now_ns + debt_ns - step_ns) && then.debt_ns > 0);
}

/*
 * The key's slot shows what a peek by the rule's own limit says, and no debt where tokens are left. Of a lease and a warm-up it
 * shows another number.
 */
static void check_slot(uint64_t now_ns, uint64_t step_ns)
{
	uint32_t algorithm = (uint32_t)shmlimit_rule_algorithm(l, rule);
	struct asked look = { .verb = PEEK };
	struct shmlimit_slot slot;
	struct shmlimit_result then;
	int right;

	if (!find_slot(&slot, now_ns) || ask(&look, &then, now_ns) < 0)
		return;
	did.slots++;
	did.debts += slot.debt_ns > step_ns;
	right = owes(slot.debt_ns, now_ns, step_ns);
	if (algorithm != SHMLIMIT_LEASE && algorithm != SHMLIMIT_WARMUP)
		right &= slot.remaining == then.remaining && slot.reset_after_ns == then.reset_after_ns;
	if (algorithm == SHMLIMIT_FUNNEL || algorithm == SHMLIMIT_GCRA)
		right &= slot.debt_ns == 0 || then.remaining == 0;
	if (!right && did.otherwise++ == 0) {
		show("shown", &look, &then, SHMLIMIT_ALLOWED, &then);
		diag("remaining %" PRIu64 " reset %" PRIu64 " debt %" PRIu64, slot.remaining, slot.reset_after_ns,
		     slot.debt_ns);
	}
}

static void check(struct asked *a, int answer, const struct shmlimit_result *said, uint64_t now_ns,
                  const struct kept *before)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	static struct kept after;
	uint64_t step_ns;

	if (answer < 0)
		bail("verb %d: %s", (int)a->verb, shmlimit_strerror(answer));
	if (shmlimit_rule_range(l, rule, &range) != 0)
		bail("range");
	step_ns = 2 * range.resolution_ps / 1000 + 1;
	keep(&after);
	/* When a backend has tokens for a key, no process here knows. */
	if (answer == SHMLIMIT_DENIED && said->retry_after_ns != UINT64_MAX &&
	    ((a->verb >= LEASE_TAKE && a->cost <= said->limit) || shmlimit_rule_algorithm(l, rule) != SHMLIMIT_LEASE))
		check_retry(a, said, now_ns, step_ns, &after);
	check_reset(a, said, now_ns, step_ns);
	check_slot(now_ns, step_ns);
	/* Tokens beyond the capacity are waited for at any time. What was before was not mended. */
	if (!steps && a->verb == RESERVE && answer == SHMLIMIT_ALLOWED && a->cost <= said->limit)
		check_wait(a, said, now_ns, before, &after);
}

/* ---- Random rules and histories ---- */

/* 1 to most, small ones as often as large ones. */
static uint64_t some(uint64_t most)
{
	uint64_t n = draw() >> up_to(63);

	return 1 + n % most;
}

static struct shmlimit_rule drawn(uint32_t algorithm)
{
	uint32_t flags = algorithm <= SHMLIMIT_WARMUP && up_to(2) == 0 ? (uint32_t)SHMLIMIT_RULE_NEXT_PAYS : 0;
	struct shmlimit_rule r = { .struct_size = sizeof(r),
		                   .algorithm = algorithm,
		                   .capacity = some(20),
		                   .refill = some(20),
		                   .period_ns = some(DAY),
		                   .flags = flags };

	if (algorithm == SHMLIMIT_WINDOW || algorithm == SHMLIMIT_HOLD) {
		r.capacity = some(8);
		r.refill = 0;
	}
	if (algorithm == SHMLIMIT_WINDOW && up_to(3) == 0)
		r.flags = SHMLIMIT_RULE_COUNT_REFUSED;
	if (algorithm == SHMLIMIT_COUNTER)
		r.refill = 0;
	if (algorithm == SHMLIMIT_LEASE)
		r.period_ns = SECOND;
	if (algorithm == SHMLIMIT_WARMUP) {
		r.capacity = 0;
		r.warmup_ns = some(20) * (r.period_ns / r.refill + 1);
		r.cold_factor_milli = (uint32_t)(1000 + up_to(4000));
	}
	if (algorithm <= SHMLIMIT_WINDOW || algorithm == SHMLIMIT_GCRA)
		r.max_wait_ns = r.flags == SHMLIMIT_RULE_COUNT_REFUSED ? 0 : up_to(1) * up_to(3 * r.period_ns);
	return r;
}

static enum verb verb_of(uint32_t algorithm)
{
	static const enum verb plain[] = { TAKE, TAKE, PEEK, RESERVE, RESERVE, CHARGE, REFUND };
	static const enum verb counter[] = { TAKE, PEEK, COUNT, COUNT };
	static const enum verb hold[] = { ENTER, ENTER, PEEK, LEAVE, TAKE };
	static const enum verb lease[] = { LEASE_TAKE, LEASE_TAKE, LEASE_DEPOSIT, LEASE_DENY, TAKE, PEEK, REFUND };

	if (algorithm == SHMLIMIT_COUNTER)
		return counter[up_to(sizeof(counter) / sizeof(*counter) - 1)];
	if (algorithm == SHMLIMIT_HOLD)
		return hold[up_to(sizeof(hold) / sizeof(*hold) - 1)];
	if (algorithm == SHMLIMIT_LEASE)
		return lease[up_to(sizeof(lease) / sizeof(*lease) - 1)];
	return plain[up_to(sizeof(plain) / sizeof(*plain) - 1)];
}

/*
 * Did the call write what it made of a state that the clock or the rule made impossible? A peek writes nothing, and of
 * HOLD's places only a denial shortens those of others.
 */
static int has_mended(const struct asked *a, uint32_t algorithm, int answer)
{
	return a->verb != PEEK && a->cost != 0 && (algorithm != SHMLIMIT_HOLD || answer == SHMLIMIT_DENIED);
}

static void history(uint32_t algorithm)
{
	struct shmlimit_rule r = drawn(algorithm);
	uint64_t now_ns = 1000 * DAY + up_to(DAY), gap_ns;
	struct shmlimit_limit limits[2];
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	static struct kept before;

	rule = shmlimit_rule_set(at_time(l, now_ns), "said", &r);
	if (rule == -ERANGE || rule == -EDOM)
		return;
	if (rule < 0)
		bail("rule_set: %s", shmlimit_strerror(rule));
	gap_ns = algorithm == SHMLIMIT_WARMUP ? r.warmup_ns : r.period_ns;
	for (int i = 0; i < 2; i++)
		limits[i] = (struct shmlimit_limit){ .struct_size = sizeof(limits[i]),
			                             .capacity = some(20),
			                             .refill = some(20),
			                             .period_ns = some(DAY),
			                             .max_wait_ns = up_to(1) * up_to(DAY) };
	for (int i = 0; i < ASKS; i++) {
		struct asked a = { .verb = verb_of(algorithm), .cost = up_to(4), .max_wait_ns = up_to(3 * gap_ns) };
		struct shmlimit_result said;
		int answer;

		now_ns += up_to(2) == 0 ? up_to(gap_ns) : up_to(2) == 0 ? 0 : up_to(gap_ns / 20);
		if (algorithm == SHMLIMIT_GCRA && up_to(1) == 0)
			a.limit = &limits[up_to(1)];
		if (a.verb == LEASE_TAKE || a.verb == LEASE_DENY)
			a.cost = 1 + up_to(3);
		if (algorithm == SHMLIMIT_HOLD && a.verb != PEEK)
			a.cost = 1;
		if (a.verb == COUNT)
			a.count_flags = up_to(2) == 0 ? SHMLIMIT_COUNT_RESTART : 0;
		a.place = place;
		if (steps && up_to(9) == 0) {
			r = drawn(algorithm);
			(void)shmlimit_rule_set(at_time(l, now_ns), "said", &r);
		}
		if (steps && up_to(9) == 0)
			now_ns -= up_to(2 * DAY);
		keep(&before);
		answer = ask(&a, &said, now_ns);
		if (a.verb == ENTER)
			place = a.place;
		else if (a.verb != LEAVE)
			place.value = a.verb == TAKE && algorithm == SHMLIMIT_HOLD ? 0 : place.value;
		if (a.verb != LEAVE && (!steps || has_mended(&a, algorithm, answer)))
			check(&a, answer, &said, now_ns, &before);
	}
	if (shmlimit_rule_remove(l, "said") != 0)
		bail("rule_remove");
}

int main(void)
{
	static const char *const names[] = { "funnel", "warmup", "window", "lease", "counter", "hold", "gcra" };
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 16, .rules = 2, .rules_max = 2
	};
	char path[SHMLIMIT_PATH_MAX];

	draws.state = rng_seed();
	l = unit_create("said_time", &options);
	if (shmlimit_path(unit_name, path) != 0 || (file = open(path, O_RDWR | O_CLOEXEC)) < 0)
		bail("%s", path);
	for (uint32_t algorithm = 0; algorithm <= LAST_ALGORITHM; algorithm++) {
		memset(&did, 0, sizeof(did));
		for (uint64_t i = 0; i < scaled(RULES); i++) {
			steps = (int)(i % 2);
			history(algorithm);
		}
		is(did.late, 0, "%s: what is denied is allowed when retry_after_ns is over", names[algorithm]);
		is(did.soon, 0, "%s: it is denied two steps of its clock earlier", names[algorithm]);
		is(did.not_full, 0, "%s: a key is full when reset_after_ns is over", names[algorithm]);
		is(did.full_early, 0, "%s: it is not full two steps earlier", names[algorithm]);
		is(did.waited, 0, "%s: a reservation that is made when wait_ns is over does not wait",
		   names[algorithm]);
		is(did.otherwise, 0, "%s: a key's slot shows what a peek says, and its debt", names[algorithm]);
		diag("%" PRIu64 " slots, %" PRIu64 " with a debt", did.slots, did.debts);
		ok(did.slots > scaled(RULES), "%s: many keys have a slot to compare with", names[algorithm]);
		ok(did.retries > scaled(RULES) && did.early > scaled(RULES) / 2 && did.resets > scaled(RULES) * 10,
		   "%s: many requests are denied, and many keys are not full", names[algorithm]);
	}
	close(file);
	shmlimit_close(l);
	return tap_done();
}
