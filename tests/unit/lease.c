/*
 * lease: LEASE rules: what was deposited is spent once and in time, one caller a key asks, and
 * denials are remembered; first in chosen cases, then beside a bag of tokens (I1).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#include "lease.h"

#define T0 (1000 * SECOND)
#define MS (SECOND / 1000)
#define LEASE_NS (100 * MS)
#define CLAIM_NS (10 * MS)
#define CAPACITY 100
#define STEPS 1000000

static struct shmlimit *l;
static struct shmlimit_result r;
static struct shmlimit_lease lease;
static uint64_t tick_ns; /* of a rule of CAPACITY */

static int set(const char *name, uint64_t capacity)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = capacity,
		                      .refill = 10,
		                      .period_ns = SECOND };

	return shmlimit_rule_set(at_time(l, T0), name, &rule);
}

/* Of `refill` tokens in a period. */
static int rule_of(const char *name, uint64_t capacity, uint64_t refill, uint64_t period_ns)
{
	return unit_rule_at(
		l, name,
		(struct shmlimit_rule){
			.algorithm = SHMLIMIT_LEASE, .capacity = capacity, .refill = refill, .period_ns = period_ns },
		T0);
}

static int rule(const char *name, uint64_t capacity)
{
	return unit_id(set(name, capacity));
}

static uint32_t few_times;

static int ask(int id, uint64_t cost, uint64_t at)
{
	lease = (struct shmlimit_lease){ .struct_size = sizeof(lease) };
	return shmlimit_lease_take(
		at_time(l, at), id, "k", 1,
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .few_times = few_times,
	                                          .cost = cost,
	                                          .lease_ns = LEASE_NS,
	                                          .claim_ns = CLAIM_NS },
		&lease, &r);
}

static int take(int id, uint64_t cost, uint64_t at)
{
	return shmlimit_take(at_time(l, at), id, "k", 1, cost, &r);
}

static int deposit(int id, uint64_t tokens, uint64_t cost, uint64_t at)
{
	return shmlimit_lease_deposit(at_time(l, at), id, "k", 1, tokens, cost, 0, LEASE_NS, &r);
}

static int deny(int id, uint64_t cost, uint64_t for_ns, uint64_t at)
{
	return shmlimit_lease_deny(at_time(l, at), id, "k", 1, cost, for_ns, &r);
}

static uint64_t left(int id, uint64_t at)
{
	shmlimit_peek(at_time(l, at), id, "k", 1, 0, &r);
	return r.remaining;
}

static struct shmlimit_lease_counters counters(void)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	if (shmlimit_lease_counters(l, &c) != 0)
		bail("lease_counters");
	return c;
}

static void by_hand(void)
{
	int id = rule("hand", CAPACITY);
	uint64_t at = T0;

	is(take(id, 1, at), SHMLIMIT_DENIED, "a key that leased nothing has nothing");
	is(r.retry_after_ns, SECOND / 10,
	   "a key without a lease is to be asked again when the funnel elsewhere has got a token");
	is(ask(id, 2, at), SHMLIMIT_LEASE_ASK, "the first caller that misses is to ask the backend");
	is(lease.unknown, 1, "the first caller learns that nothing is known of the key");
	is(lease.want, 2, "a cold key asks for what the caller needs");
	is(lease.need, 2, "all that the first caller needs is missing");
	ok(lease.wait_ns >= CLAIM_NS && lease.wait_ns < CLAIM_NS + tick_ns,
	   "the first caller has the time of a claim to ask in");
	is(ask(id, 1, at + MS), SHMLIMIT_LEASE_WAIT, "a second caller waits while the first one asks");
	ok(lease.wait_ns >= CLAIM_NS - MS && lease.wait_ns < CLAIM_NS - MS + tick_ns,
	   "a second caller waits until the claim's time is over");
	is(take(id, 1, at + MS), SHMLIMIT_DENIED, "a take is denied while another caller asks");
	ok(r.retry_after_ns >= CLAIM_NS - MS && r.retry_after_ns < CLAIM_NS - MS + tick_ns,
	   "a take that is denied is to be made again when the claim's time is over");
	is(deposit(id, 12, 2, at + 2 * MS), SHMLIMIT_ALLOWED, "a deposit spends what its caller needs");
	is(r.limit, CAPACITY, "a deposit's result has the rule's capacity");
	is(r.remaining, 10, "what a deposit does not spend is left for all callers");
	ok(r.reset_after_ns <= LEASE_NS && r.reset_after_ns > LEASE_NS - tick_ns,
	   "a deposit lasts as long as its caller says, to a tick");
	is(take(id, 3, at + 3 * MS), SHMLIMIT_ALLOWED, "a take spends what was deposited");
	is(ask(id, 3, at + 3 * MS), SHMLIMIT_ALLOWED, "a caller that may ask spends what was deposited");
	is(r.remaining, 4, "two calls for three tokens leave four of ten");
	is(ask(id, 0, at + 3 * MS), SHMLIMIT_ALLOWED, "a cost of 0 is always allowed");
	is(ask(id, CAPACITY + 1, at + 3 * MS), SHMLIMIT_DENIED, "a cost above the capacity is denied");
	ok(r.retry_after_ns == UINT64_MAX, "a cost above the capacity is denied for ever, without asking the backend");
	is(left(id, at + 2 * MS + LEASE_NS - tick_ns), 4,
	   "what was deposited can be spent until a tick before its end");
	is(left(id, at + 2 * MS + LEASE_NS), 0, "what was deposited cannot be spent at its end");
	is(take(id, 1, at + 2 * MS + LEASE_NS), SHMLIMIT_DENIED, "what has expired is not spent");
	is(ask(id, 1, at + 366 * 86400 * SECOND), SHMLIMIT_LEASE_ASK, "a year later a caller is to ask again");
	is(lease.unknown, 1, "what was over for a year is as if it had never been");
	is(ask(id, 1, at), SHMLIMIT_LEASE_ASK, "before that a caller asks as well");
	is(shmlimit_reset(l, id, "k", 1), 1, "a key can be reset");
	is(ask(id, 1, at), SHMLIMIT_LEASE_ASK, "after a reset a caller is to ask");
	is(lease.unknown, 1, "nothing is known of a key that was reset");
	at += 2 * CLAIM_NS;
	is(ask(id, 1, at), SHMLIMIT_LEASE_ASK, "after a claim's end the next caller is to ask");
	is(lease.unknown, 0, "a key for which the backend was asked in vain is known");
	is(deny(id, 1, MS, at), SHMLIMIT_DENIED, "the backend denies");
	is(ask(id, 1, at + 2 * MS), SHMLIMIT_LEASE_ASK, "after the denial a caller is to ask again");
	is(lease.unknown, 0, "a key that was denied is known");
	is(left(id, at + 366 * 86400 * SECOND), 0, "what has expired has not come back a year later");
}

static int look(int id, uint64_t cost, uint64_t at)
{
	lease = (struct shmlimit_lease){ .struct_size = sizeof(lease) };
	return shmlimit_lease_take(
		at_time(l, at), id, "k", 1,
		&(struct shmlimit_lease_request){
			.struct_size = sizeof(struct shmlimit_lease_request), .cost = cost, .lease_ns = LEASE_NS },
		&lease, &r);
}

static void looks(void)
{
	int id = rule("looks", CAPACITY);
	uint64_t at = T0 + SECOND;

	is(look(id, 2, at), SHMLIMIT_LEASE_ASK,
	   "without time for a claim, a caller learns that the backend must be asked");
	ok(lease.want == 2 && lease.need == 2 && lease.held == 0 && lease.wait_ns == 0,
	   "a caller without time for a claim learns how much is missing");
	is(look(id, 2, at), SHMLIMIT_LEASE_ASK, "a caller without time for a claim gets none");
	is(ask(id, 2, at), SHMLIMIT_LEASE_ASK, "the next caller with time for a claim gets one");
	is(look(id, 2, at), SHMLIMIT_LEASE_WAIT, "while a claim lasts, a caller without time learns that");
	ok(lease.wait_ns >= CLAIM_NS, "a caller without time for a claim learns how long another's claim lasts");
	is(deposit(id, 6, 2, at), SHMLIMIT_ALLOWED,
	   "tokens can be deposited after a caller without time for a claim looked");
	is(look(id, 3, at), SHMLIMIT_ALLOWED, "a caller without time for a claim spends them");
	is(r.remaining, 1, "tokens that a caller without time for a claim spent are gone");
	is(look(id, 3, at), SHMLIMIT_LEASE_ASK,
	   "where some tokens are left, but not enough, the backend must be asked");
	ok(lease.want == 2 && lease.need == 2 && lease.held == 1 && lease.wait_ns == 0,
	   "where some tokens are left, the backend must be asked for those that are missing");
	is(left(id, at), 1, "looking for more than is left leaves what is left");
	is(take(id, 1, at), SHMLIMIT_ALLOWED, "tokens that were left can be spent");
	is(deny(id, 2, 10 * MS, at), SHMLIMIT_DENIED, "the backend can deny a caller two tokens");
	is(look(id, 2, at), SHMLIMIT_DENIED, "a caller without time for a claim is denied two");
	is(look(id, 1, at), SHMLIMIT_LEASE_ASK, "after a denial of two tokens the backend must be asked for one");
	ok(lease.need == 1 && lease.held == 0 && lease.wait_ns == 0,
	   "after a denial of two tokens a request for one lacks one");
	is(look(id, 2, at), SHMLIMIT_DENIED, "a request for fewer tokens leaves the denial in force");
	is(look(id, CAPACITY + 1, at), SHMLIMIT_DENIED,
	   "more than the capacity is denied, and no backend need be asked");
}

static void claims(void)
{
	int id = rule("claims", CAPACITY);

	is(ask(id, 5, T0), SHMLIMIT_LEASE_ASK, "a caller that misses gets a claim");
	is(ask(id, 5, T0 + CLAIM_NS - 1), SHMLIMIT_LEASE_WAIT, "a claim whose holder is dead keeps others waiting");
	is(ask(id, 5, T0 + CLAIM_NS + tick_ns), SHMLIMIT_LEASE_ASK, "a claim whose holder is dead ends by itself");
	is(shmlimit_lease_abandon(at_time(l, T0 + CLAIM_NS + 2 * tick_ns), id, "k", 1), 0, "a claim can be abandoned");
	is(ask(id, 5, T0 + CLAIM_NS + 2 * tick_ns), SHMLIMIT_LEASE_ASK,
	   "after a claim was abandoned the next caller asks");
	is(deposit(id, 8, 5, T0 + 20 * MS), SHMLIMIT_ALLOWED, "a deposit that comes after its claim's end is accepted");
	is(deposit(id, 9, 5, T0 + 21 * MS), SHMLIMIT_ALLOWED, "a second deposit that comes late is accepted");
	is(left(id, T0 + 21 * MS), 7, "two deposits that came late are both left");
	shmlimit_reset(l, id, "k", 1);

	deposit(id, 10, 4, T0);
	is(ask(id, 8, T0 + MS), SHMLIMIT_LEASE_ASK, "a caller that wants more than is left is to ask");
	is(lease.held, 6, "a caller that wants more than is left learns what is left");
	is(lease.need, 2, "a caller that wants more than is left asks for what is missing");
	is(take(id, 2, T0 + MS), SHMLIMIT_ALLOWED, "while one caller asks, another can take what is left");
	is(deposit(id, 2, 8, T0 + 2 * MS), SHMLIMIT_LEASE_WAIT,
	   "a deposit that is too small for its caller's request does not allow it");
	is(left(id, T0 + 2 * MS), 6, "a deposit that is too small for its caller's request is added");
	is(ask(id, 8, T0 + 2 * MS), SHMLIMIT_LEASE_ASK, "a caller whose deposit was too small asks again");
	shmlimit_reset(l, id, "k", 1);

	deposit(id, 10, 4, T0);
	ask(id, 8, T0 + 2 * MS);
	is(shmlimit_lease_abandon(at_time(l, T0 + 2 * MS), id, "k", 1), 0, "a claim beside tokens can be abandoned");
	is(left(id, T0 + 2 * MS), 6, "abandoning a claim leaves the tokens that there were");
	is(left(id, T0 + 2 * MS + CLAIM_NS + tick_ns), 0,
	   "tokens beside a claim last no longer than the claim would have");
	shmlimit_reset(l, id, "k", 1);

	deposit(id, 10, 4, T0);
	is(ask(id, 8, T0 + LEASE_NS - MS), SHMLIMIT_LEASE_ASK,
	   "a caller that wants more than what is about to expire is to ask");
	is(lease.need, 8, "tokens that would expire during the claim are not counted on");
	is(left(id, T0 + LEASE_NS - MS), 0, "tokens that would expire during the claim are not spent any more");
}

static void denials(void)
{
	int id = rule("denials", CAPACITY);
	uint64_t before = counters().denied, denied;
	struct shmlimit_counters c = { .struct_size = sizeof(c) };

	ask(id, 5, T0);
	is(deny(id, 5, SECOND, T0 + MS), SHMLIMIT_DENIED, "a denial by the backend denies the request");
	is(r.retry_after_ns, SECOND, "a denial by the backend says when to ask again");
	is(ask(id, 5, T0 + 2 * MS), SHMLIMIT_DENIED, "a denial by the backend is remembered");
	ok(r.retry_after_ns <= SECOND - MS && r.retry_after_ns > SECOND - MS - tick_ns,
	   "a remembered denial says when to ask again");
	is(take(id, 7, T0 + 2 * MS), SHMLIMIT_DENIED, "a take of more than was denied is denied");
	ok(r.retry_after_ns <= SECOND - MS && r.retry_after_ns > SECOND - MS - tick_ns,
	   "a take of more than was denied is to be made again at the same time");
	is(counters().denied - before, 2, "two denials were counted that needed no backend");
	is(ask(id, 4, T0 + 2 * MS), SHMLIMIT_LEASE_ASK, "the backend may be asked for less than it denied");
	is(deny(id, 4, MS, T0 + 2 * MS), SHMLIMIT_DENIED, "the backend can deny less than it denied before");
	is(ask(id, 4, T0 + 3 * MS), SHMLIMIT_LEASE_ASK, "the backend may be asked again when a denial's time is over");
	is(deny(id, 4, UINT64_MAX, T0 + 3 * MS), SHMLIMIT_DENIED, "the backend can deny for ever");
	is(ask(id, 4, T0 + 86400 * SECOND), SHMLIMIT_DENIED, "a denial for ever holds for a day");
	is(ask(id, 4, T0 + 27 * 86400 * SECOND), SHMLIMIT_LEASE_ASK, "a denial for ever does not hold for four weeks");
	shmlimit_reset(l, id, "k", 1);
	shmlimit_counters(l, id, &c);
	denied = c.denied;
	deposit(id, 9, 6, T0);
	ask(id, 5, T0);
	is(deny(id, 5, SECOND, T0), SHMLIMIT_DENIED, "a denial can be told where tokens are left");
	is(left(id, T0), 3, "a denial leaves the tokens that are left");
	is(ask(id, 5, T0), SHMLIMIT_LEASE_ASK, "a denial beside tokens that are left is not remembered");
	shmlimit_counters(l, id, &c);
	is(c.denied - denied, 1, "each denial is counted once, and a request to ask is not counted");
}

/*
 * What a refund makes of each thing that a key can be; it has a lease of six tokens for LEASE_NS.
 */
static void given_back(int id, uint64_t at)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	unsigned expired = 0;

	is(shmlimit_charge(at_time(l, at), id, "k", 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED,
	   "a charge spends all of a lease");
	is(shmlimit_charge(at_time(l, at), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a charge of a lease that is spent changes nothing");
	is(r.retry_after_ns, UINT64_MAX, "a charge that could not charge all says so");
	is(shmlimit_refund(at_time(l, at), id, "k", 1, 0, &r), SHMLIMIT_ALLOWED, "a refund of nothing is accepted");
	is(r.remaining, 0, "a refund of nothing changes nothing");
	shmlimit_refund(at_time(l, at), id, "k", 1, 5, &r);
	is(r.remaining, 5, "a refund gives back what was taken");
	shmlimit_refund(at_time(l, at), id, "k", 1, 2, &r);
	is(r.remaining, 6, "a refund gives back no more than the lease began with");
	shmlimit_refund(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 6, "a refund of any size gives back no more than the lease began with");
	is(ask(id, 7, at), SHMLIMIT_LEASE_ASK, "a caller that needs more than the lease has is to ask");
	shmlimit_refund(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 6, "a refund restores nothing while a caller asks");
	take(id, 2, at);
	shmlimit_lease_abandon(at_time(l, at), id, "k", 1);
	shmlimit_refund(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 4, "a refund restores nothing after a caller asked in vain");
	shmlimit_charge(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(ask(id, 7, at), SHMLIMIT_LEASE_ASK, "a caller is to ask when all is spent");
	shmlimit_lease_abandon(at_time(l, at), id, "k", 1);
	shmlimit_refund(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 0, "a refund restores nothing of what was asked for in vain");
	deposit(id, 6, 0, at);
	shmlimit_refund(at_time(l, at + 2 * LEASE_NS), id, "k", 1, 1, &r);
	is(r.remaining, 0, "a refund restores nothing when the lease's time is over");
	shmlimit_charge(at_time(l, at), id, "k", 1, UINT64_MAX, &r);
	is(deny(id, 1, SECOND, at), SHMLIMIT_DENIED, "the backend can deny after a lease was spent");
	shmlimit_refund(at_time(l, at), id, "k", 1, 1, &r);
	is(r.remaining, 0, "a refund restores nothing to a denial");
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, at + 2 * SECOND) == 0; i++)
		expired += slot.rule == id && slot.state == SHMLIMIT_SLOT_REFILLED && slot.lease == 0;
	is(expired, 1, "a denial whose time is over leaves an empty slot");
}

static void other_verbs(void)
{
	int id = rule("verbs", CAPACITY), funnel = unit_rule(l, "funnel", 1, 1, SECOND);
	struct shmlimit_request all[2] = { { id, 0, "k", 1, 3, NULL, NULL }, { funnel, 0, "f", 1, 1, NULL, NULL } };
	struct shmlimit_rule dry = { .struct_size = sizeof(dry),
		                     .algorithm = SHMLIMIT_LEASE,
		                     .capacity = CAPACITY,
		                     .refill = 10,
		                     .period_ns = SECOND,
		                     .mode = SHMLIMIT_DRY_RUN };
	struct shmlimit *reader;
	int answers[2];

	is(shmlimit_refund(at_time(l, T0), id, "k", 1, 5, &r), SHMLIMIT_ALLOWED,
	   "a refund to a key without a lease is accepted");
	is(left(id, T0), 0, "a refund to a key without a lease is lost");
	deposit(id, 10, 1, T0);
	take(id, 4, T0);
	shmlimit_refund(at_time(l, T0), id, "k", 1, 4, &r);
	is(r.remaining, 9, "a refund to a live lease gives back what was taken");
	shmlimit_refund(at_time(l, T0), id, "k", 1, UINT64_MAX, &r);
	ok(r.remaining == 9 || r.remaining == 10, "a refund to a live lease gives back no more than was leased: %d",
	   (int)r.remaining);
	deposit(id, 90, 0, T0);
	shmlimit_charge(at_time(l, T0), id, "k", 1, r.remaining - 90, &r);
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 80, UINT64_MAX, &r), SHMLIMIT_ALLOWED,
	   "a reservation is a take");
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 11, UINT64_MAX, &r), SHMLIMIT_DENIED,
	   "a reservation borrows nothing from a lease");
	is(shmlimit_charge(at_time(l, T0), id, "k", 1, 4, &r), SHMLIMIT_ALLOWED,
	   "a charge of what a lease has is accepted");
	is(r.remaining, 6, "a charge takes just its cost");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 6, &r), SHMLIMIT_ALLOWED, "a peek at what is left is allowed");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 7, &r), SHMLIMIT_DENIED, "a peek at more than is left is denied");
	is(shmlimit_take_all(at_time(l, T0), all, 2, NULL, NULL), SHMLIMIT_ALLOWED, "a lease is one of several limits");
	is(shmlimit_take_all(at_time(l, T0), all, 2, NULL, NULL), SHMLIMIT_DENIED,
	   "several limits are denied where one that is no lease denies");
	is(left(id, T0), 3, "a lease gets back what was taken where another limit denies");
	is(shmlimit_take_many(at_time(l, T0), (struct shmlimit_request[]){ all[0], all[0] }, 2, answers, NULL), 0,
	   "a batch of requests may be of a lease");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_DENIED,
	   "each request of a batch takes what the others left");
	deposit(id, 6, 1, T0);
	shmlimit_charge(at_time(l, T0), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 0, "a charge takes no more than there is");
	deposit(id, 6, 1, T0);
	given_back(id, T0);
	is(shmlimit_lease_take(at_time(l, T0), funnel, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = 1,
	                                                         .claim_ns = 1 },
	                       &lease, &r),
	   -EOPNOTSUPP, "a funnel leases nothing");
	is(shmlimit_lease_deposit(at_time(l, T0), funnel, "k", 1, 1, 1, 0, 1, &r), -EOPNOTSUPP,
	   "a funnel takes no deposits");

	id = shmlimit_rule_set(at_time(l, T0), "dry", &dry);
	is(ask(id, 1, T0), SHMLIMIT_LEASE_ASK, "a dry run asks");
	is(deny(id, 1, SECOND, T0), SHMLIMIT_ALLOWED, "a dry run answers a denial by the backend with allowed");
	is(ask(id, 1, T0), SHMLIMIT_ALLOWED, "a dry run allows a request that is denied");
	ok(r.retry_after_ns != 0, "a dry run tells of a denial by its time to wait");
	dry.mode = SHMLIMIT_OFF;
	shmlimit_rule_set(at_time(l, T0), "dry", &dry);
	is(ask(id, 1, T0), SHMLIMIT_ALLOWED, "a lease that is off allows");
	is(r.remaining, CAPACITY, "a lease that is off has all of its capacity left");

	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	is(shmlimit_lease_take(reader, id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = 1,
	                                                         .claim_ns = 1 },
	                       &lease, &r),
	   -EROFS, "a read-only handle leases nothing");
	is(shmlimit_lease_count(reader, 0, 1), -EROFS, "a read-only handle counts nothing");
	shmlimit_close(reader);
	is(shmlimit_lease_take(l, id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = 1,
	                                                         .claim_ns = 1 },
	                       NULL, &r),
	   -EINVAL, "the structure for what to lease must be given");
	lease.struct_size = 0;
	is(shmlimit_lease_take(l, id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = 1,
	                                                         .claim_ns = 1 },
	                       &lease, &r),
	   -EINVAL, "the structure for what to lease must have its size");
	is(shmlimit_lease_take(l, id, "k", 0,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = 1,
	                                                         .claim_ns = 1 },
	                       &lease, &r),
	   -EINVAL, "the structure's size is checked before the key's length");
	is(shmlimit_lease_abandon(l, id, NULL, 1), -EINVAL, "a claim of no key is not abandoned");
	is(shmlimit_lease_abandon(l, id, "k", 0), -EMSGSIZE, "a claim of an empty key is not abandoned");
	is(shmlimit_lease_abandon(l, 63, "k", 1), -ESRCH, "a claim of no rule is not abandoned");
}

/* The arithmetic of two leases in one slot. */
static void meetings(void)
{
	int id = rule("meetings", CAPACITY);

	deposit(id, 11, 1, T0);
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 50, 0, 0, 10 * LEASE_NS, &r), SHMLIMIT_ALLOWED,
	   "a long deposit is added to a few tokens that end sooner");
	is(r.remaining, 50, "beside many tokens that end later, a few that end sooner expire");
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 5, 0, 0, 20 * LEASE_NS, &r), SHMLIMIT_ALLOWED,
	   "a few tokens that end later are deposited beside many");
	is(r.remaining, 55, "a few tokens that end later are added to many");
	ok(r.reset_after_ns <= 10 * LEASE_NS, "a few tokens that end later end with the many that they were added to");
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 5, 0, 0, LEASE_NS, &r), SHMLIMIT_ALLOWED,
	   "a few tokens that end sooner are deposited beside many");
	is(r.remaining, 55, "a few tokens that end sooner expire beside many");
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 70, 10, 0, LEASE_NS, &r), SHMLIMIT_ALLOWED,
	   "many tokens that end sooner are deposited beside many");
	is(r.remaining, CAPACITY, "many tokens that end sooner are added, up to the capacity");
	ok(r.reset_after_ns <= LEASE_NS, "tokens that many were added to end with these");
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, UINT64_MAX, UINT64_MAX, 0, LEASE_NS, &r),
	   SHMLIMIT_ALLOWED, "a deposit that is spent at once needs no room");
	is(r.remaining, 100, "a deposit that is spent at once leaves the old tokens");
	is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 0, 101, 0, LEASE_NS, &r), SHMLIMIT_LEASE_WAIT,
	   "a deposit of nothing leaves a request above what there is undecided");
	is(r.remaining, 100, "a deposit of nothing adds nothing");
	is(shmlimit_lease_deposit(at_time(l, T0 + SECOND), id, "k", 1, 7, 0, 0, 0, &r), SHMLIMIT_ALLOWED,
	   "a deposit for no time is accepted");
	is(r.remaining, 0, "a deposit for no time is over at once");
}

static void bounds(void)
{
	struct shmlimit_rule wrong = { .struct_size = sizeof(wrong),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 1,
		                       .refill = 1,
		                       .period_ns = SECOND };
	struct shmlimit_rule got = { .struct_size = sizeof(got) };
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	unsigned seen[4] = { 0 };
	int id;

	is(set("bad", 0), -EDOM, "a lease of nothing is refused");
	is(set("bad", SHMLIMIT_LEASE_CAPACITY_MAX + 1), -ERANGE,
	   "a lease of more than the largest capacity is refused");
	wrong.refill = 0;
	is(shmlimit_rule_set(l, "bad", &wrong), -EDOM, "a lease without a rate is refused");
	wrong.refill = 1;
	wrong.period_ns = 0;
	is(shmlimit_rule_set(l, "bad", &wrong), -EDOM, "a lease whose rate has no period is refused");
	wrong.period_ns = SECOND;
	wrong.max_wait_ns = 1;
	is(shmlimit_rule_set(l, "bad", &wrong), -EINVAL, "a lease with a longest wait is refused");
	wrong.max_wait_ns = 0;
	wrong.credit = (uint32_t)wrong.capacity + 1;
	is(shmlimit_rule_set(l, "bad", &wrong), -EINVAL, "a credit above the capacity is refused");
	wrong.credit--;
	id = shmlimit_rule_set(l, "lent", &wrong);
	is(shmlimit_rule_get(l, id, &got), 0, "a lease with a credit of the whole capacity can be set");
	is(got.credit, wrong.credit, "a rule's credit is read back as it was set");
	wrong.credit = 0;
	wrong.flags = SHMLIMIT_RULE_NEXT_PAYS;
	is(shmlimit_rule_set(l, "bad", &wrong), -EINVAL, "a lease with flags is refused");
	wrong.flags = 0;
	wrong.algorithm = SHMLIMIT_FUNNEL;
	id = rule("good", SHMLIMIT_LEASE_CAPACITY_MAX);
	is(shmlimit_rule_set(l, "good", &wrong), -EBUSY, "a lease does not become a funnel");
	is(shmlimit_rule_get(l, id, &got), 0, "a lease's rule is read back");
	ok(got.algorithm == SHMLIMIT_LEASE && got.capacity == SHMLIMIT_LEASE_CAPACITY_MAX && got.refill == 10 &&
	           got.period_ns == SECOND,
	   "a lease's rule is read back as it was set");
	is(shmlimit_rule_range(l, id, &range), 0, "the largest lease has a range");
	ok(range.resolution_ps <= 1100000000, "the largest lease has ticks of a millisecond");
	ok(range.back_ns > 366 * 86400 * SECOND, "the largest lease knows for a year what is over");
	is(deposit(id, UINT64_MAX, 1, T0), SHMLIMIT_ALLOWED, "the largest lease can be filled");
	is(r.remaining, SHMLIMIT_LEASE_CAPACITY_MAX, "the largest lease is filled to its capacity");
	is(take(id, SHMLIMIT_LEASE_CAPACITY_MAX, T0), SHMLIMIT_ALLOWED, "the largest lease can be emptied at once");
	is(ask(id, 1, T0), SHMLIMIT_LEASE_ASK, "the largest lease asks when it is empty");
	ok(lease.want <= SHMLIMIT_LEASE_CAPACITY_MAX, "the largest lease asks for no more than its capacity");

	/* Its slot, through its states. */
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	for (int state = 0; state < 4; state++) {
		if (state == 1)
			deposit(id, 5, 1, T0);
		else if (state == 2)
			ask(id, 7, T0);
		else if (state == 3)
			shmlimit_charge(at_time(l, T0), id, "k", 1, 9, NULL), deny(id, 1, SECOND, T0);
		for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
			if (slot.state == SHMLIMIT_SLOT_LIVE)
				seen[state] = slot.lease;
	}
	ok(seen[0] == 0 && seen[1] == SHMLIMIT_SLOT_TOKENS && seen[2] == SHMLIMIT_SLOT_ASKED &&
	           seen[3] == SHMLIMIT_SLOT_DENIED,
	   "a slot of a lease is shown as empty, with tokens, asked for, or denied");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after leases were in each state");
}

/*
 * A capacity may change under a lease. The tokens stay, up to the new capacity, and for no longer
 * than before.
 */
static void changes(void)
{
	int id = rule("changes", 1000);
	uint64_t ends;
	int later = 0;

	deposit(id, 501, 1, T0);
	ends = r.reset_after_ns;
	rule("changes", 700);
	is(left(id, T0), 500, "a change of the rule keeps tokens");
	rule("changes", 40);
	is(left(id, T0), 40, "a change of the rule keeps no more tokens than the new capacity");
	for (uint64_t i = 0; i < 40; i++) {
		rule("changes", i % 2 ? 3000 : 40 + i);
		left(id, T0);
		later |= r.reset_after_ns > ends;
	}
	is(left(id, T0), 40, "forty changes of a rule give no tokens");
	is(later, 0, "forty changes of a rule give no time");
	shmlimit_reset(l, id, "k", 1);
	deny(id, 5, SECOND, T0);
	rule("changes", 3);
	is(ask(id, 3, T0), SHMLIMIT_LEASE_ASK, "a denial is forgotten, since the new rule may allow the request");
}

static uint64_t wanted; /* by the call that asked last in drive() */

/* Take `tokens`, `rate` a second, and lease what is wanted. Returns how often a call asked. */
static uint64_t drive(int id, uint64_t rate, uint64_t tokens, uint64_t *at)
{
	uint64_t asked = 0;

	for (uint64_t i = 0; i < tokens; i++) {
		*at += SECOND / rate;
		if (ask(id, 1, *at) == SHMLIMIT_LEASE_ASK) {
			asked++;
			wanted = lease.want;
			deposit(id, wanted, 1, *at);
		}
	}
	return asked;
}

static void batches(void)
{
	int id = rule_of("batches", 100000, 100000, SECOND);
	struct shmlimit_lease_counters before = counters(), after;
	uint64_t at = T0, asked;

	is(drive(id, 1, 10, &at), 10, "a cold key asks each time");
	is(wanted, 1, "a cold key asks for one token");
	asked = drive(id, 25000, 5000, &at);
	ok(asked <= 16, "when a key gets hot what it asks for doubles each time: %" PRIu64, asked);
	asked = drive(id, 25000, 100000, &at);
	ok(asked >= 25 && asked <= 66, "a hot key asks for what it spends in about a tenth of a second: %" PRIu64,
	   asked);
	ok(wanted >= 1500 && wanted <= 4000, "a hot key asks for %" PRIu64 " tokens", wanted);
	asked = drive(id, 2500, 100000, &at);
	ok(asked >= 250 && asked <= 660, "at a tenth of the rate a key asks for a tenth: %" PRIu64, asked);
	after = counters();
	ok((after.expired - before.expired) * 50 <= after.leased - before.leased,
	   "of leased tokens one in fifty lapses, at most");
	is(after.spent - before.spent, 205010, "all tokens that were spent are counted");
	is(after.leased - before.leased - (after.spent - before.spent) - (after.expired - before.expired), left(id, at),
	   "what was leased is spent, expired, or still here");
	at += 3600 * SECOND;
	is(ask(id, 1, at), SHMLIMIT_LEASE_ASK, "a key asks again an hour later");
	is(lease.want, 1, "a key that nobody asked for an hour is cold again");
}

/*
 * Take `cost` at a time until nothing is left. Returns how often the lease ran low; *held is what
 * it had then.
 */
static unsigned run_down(int id, uint64_t cost, uint64_t *held)
{
	unsigned low = 0;

	while (ask(id, cost, T0) == SHMLIMIT_ALLOWED) {
		if (lease.want == 0)
			continue;
		low++;
		*held = r.remaining;
		is(lease.need + lease.held + lease.wait_ns, 0,
		   "of a lease that runs low only what to lease ahead is said");
		ok(lease.want >= 64 && lease.want <= 256,
		   "a lease that was spent at once is followed by a larger one: %" PRIu64, lease.want);
	}
	return low;
}

static void ahead(void)
{
	int id = rule("ahead", 1000);
	uint64_t held = 0;

	deposit(id, 128, 0, T0);
	is(run_down(id, 1, &held), 1, "a lease runs low once");
	is(held, 31, "a lease runs low at a quarter of what it began with");
	deposit(id, 128, 0, T0);
	is(run_down(id, 9, &held), 1, "a lease runs low once, whatever is taken at a time");
	ok(held < 32 && held >= 32 - 9, "the take that goes below a quarter is the one: %" PRIu64, held);
	deposit(id, 128, 0, T0);
	is(ask(id, 97, T0 + LEASE_NS / 4 * 3), SHMLIMIT_ALLOWED,
	   "a lease is spent down to a quarter in three quarters of its time");
	is(lease.want, 128, "a lease that is spent as fast as it should be is followed by one of the same size");
	ask(id, 31, T0 + LEASE_NS / 4 * 3);
	deposit(id, 27, 0, T0);
	is(run_down(id, 1, &held), 0, "a small lease does not run low");
	ask(id, 100, T0);
	deposit(id, 64, 1, T0 + LEASE_NS);
	lease.want = 7;
	is(shmlimit_lease_take(at_time(l, T0 + LEASE_NS), id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = LEASE_NS,
	                                                         .claim_ns = CLAIM_NS },
	                       &lease, NULL),
	   SHMLIMIT_ALLOWED, "a take of a lease that does not run low is allowed");
	is(lease.want, 7, "a take of a lease that does not run low leaves the caller's structure alone");
}

/* What a key asks for that had one token, leased at T0, and comes again later. */
static unsigned steady_after(const char *name, uint64_t capacity, uint64_t refill, uint64_t period_ns,
                             uint64_t later_ns)
{
	int id = rule_of(name, capacity, refill, period_ns);

	if (ask(id, 1, T0) != SHMLIMIT_LEASE_ASK || lease.steady != 0)
		bail("a key that was never seen is steady");
	deposit(id, 1, 1, T0);
	ask(id, 1, T0 + later_ns);
	shmlimit_rule_remove(l, name);
	return lease.steady;
}

/* Requests that come slowly, but several in a quarter of the time to full. */
static void slow(void)
{
	int id;

	is(steady_after("slow", 100, 100, 60 * SECOND, 5 * SECOND), 3,
	   "of a key that comes every five seconds three requests come in 15 seconds");
	is(steady_after("slow", 100, 100, 60 * SECOND, SECOND), 8, "no more than eight requests are expected");
	is(steady_after("slow", 100, 100, 60 * SECOND, SECOND / 2), 0, "a key that comes twice a second is not slow");
	is(steady_after("slow", 100, 100, 60 * SECOND, LEASE_NS / 2), 0, "a key that comes within a lease is not slow");
	is(steady_after("slow", 100, 100, 60 * SECOND, 16 * SECOND), 0,
	   "a key that comes every 16 seconds would not use a lease of 15");
	is(steady_after("slow", 2000, 1, SECOND, 4900 * MS), 4, "leases last 20 seconds at most");
	is(steady_after("slow", 10, 10, SECOND, SECOND / 5), 0, "a limit that is full soon has no longer leases");
	is(steady_after("slow", 100000, 320, SECOND, 5 * SECOND), 0, "a limit of many tokens has no longer leases");
	is(steady_after("slow", 100000, 310, SECOND, 4900 * MS), 4, "a large limit of fewer tokens has longer leases");
	id = rule_of("long", 100, 100, 60 * SECOND);
	ask(id, 1, T0);
	shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 4, 1, 0, 15 * SECOND, NULL);
	is(ask(id, 3, T0 + 10 * SECOND), SHMLIMIT_ALLOWED, "tokens of a longer lease are spent until it ends");
	is(ask(id, 1, T0 + 12 * SECOND), SHMLIMIT_LEASE_ASK, "a longer lease that is spent is followed by another one");
	is(lease.steady, 5, "four requests in twelve seconds are five in fifteen");
	ok(lease.need == 1 && lease.want == 3,
	   "a longer lease is followed by one of three quarters of it, if the backend has them");
}

/*
 * Of a small limit the backend leases little more than what is needed. What a key wants goes on
 * saying how busy it is: up to eight times what it had, elsewhere up to twice.
 */
static void small(void)
{
	static const struct {
		uint64_t count, spare; /* spare: UINT64_MAX: as many as the key wants */
	} limits[] = {
		{ 39, 0 }, { 40, 1 }, { 100, 2 }, { 319, 7 }, { 320, UINT64_MAX }, { 100000, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int id = rule_of("small", 1000, limits[i].count, SECOND);
		uint64_t at = T0, most = 0, had = 1, above = 0, times = limits[i].spare < UINT64_MAX ? 8 : 2;

		shmlimit_reset(l, id, NULL, 0);
		for (int n = 0; n < 1000; n++) {
			at += MS;
			if (ask(id, 1, at) != SHMLIMIT_LEASE_ASK)
				continue;
			most = lease.want > most ? lease.want : most;
			above += lease.want > times * had;
			had = lease.want - 1 > limits[i].spare ? 1 + limits[i].spare : lease.want;
			deposit(id, had, 1, at);
		}
		is(above, 0, "of %" PRIu64 " a second a key wants at most %" PRIu64 " times what it had",
		   limits[i].count, times);
		ok(most >= (limits[i].spare < UINT64_MAX ? 6 * (1 + limits[i].spare) : 50),
		   "of %" PRIu64 " a second a key that is busy wants what it could spend: %" PRIu64, limits[i].count,
		   most);
	}
}

/* Few tokens may be spent for longer; and two requests that come together by chance are not a busy key. */
static void few(void)
{
	int id = rule_of("few", 1000, 1000, SECOND);

	few_times = 3;
	ask(id, 1, T0);
	shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 1, 1, 0, 3 * LEASE_NS, NULL);
	is(ask(id, 1, T0 + LEASE_NS / 4), SHMLIMIT_LEASE_ASK, "a lease of one token is spent at once");
	is(lease.want, 1, "a second request within a quarter of a lease wants one token");
	shmlimit_lease_deposit(at_time(l, T0 + LEASE_NS / 4), id, "k", 1, 1, 1, 0, 3 * LEASE_NS, NULL);
	ask(id, 1, T0 + LEASE_NS / 4 + LEASE_NS / 8);
	is(lease.want, 2, "a second request within an eighth of a lease wants two");
	shmlimit_lease_deposit(at_time(l, T0 + SECOND), id, "k", 1, 2, 1, 0, 3 * LEASE_NS, NULL);
	is(ask(id, 1, T0 + SECOND + 2 * LEASE_NS), SHMLIMIT_ALLOWED, "few tokens are spent in three leases");
	ask(id, 1, T0 + SECOND + 2 * LEASE_NS);
	is(lease.want, 1, "two tokens that lasted two leases are followed by one");
	shmlimit_lease_deposit(at_time(l, T0 + 2 * SECOND), id, "k", 1, 20, 20, 0, 3 * LEASE_NS, NULL);
	ask(id, 1, T0 + 2 * SECOND + LEASE_NS);
	is(lease.want, 20, "few tokens that lasted a lease are followed by as many");
	shmlimit_lease_deposit(at_time(l, T0 + 3 * SECOND), id, "k", 1, 80, 80, 0, LEASE_NS, NULL);
	ask(id, 1, T0 + 3 * SECOND + LEASE_NS / 2);
	is(lease.want, 120, "more tokens are wanted for three quarters of a lease");
	id = rule_of("slow-few", 100, 100, 60 * SECOND);
	few_times = 16;
	ask(id, 1, T0);
	shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 1, 1, 0, 16 * LEASE_NS, NULL);
	ask(id, 1, T0 + 15 * LEASE_NS);
	is(lease.steady, 8, "a key that comes later than a lease is slow, though its lease lasts");
	few_times = 17;
	is(ask(id, 1, T0 + 4 * SECOND), -EINVAL, "few tokens that would last seventeen leases are refused");
	few_times = 0;
}

static void sizes(void)
{
	static const uint64_t capacities[] = {
		1, 2, 3, 100, 65536, 131071, 131072, 1000000, SHMLIMIT_LEASE_CAPACITY_MAX
	};
	unsigned far = 0, unordered = 0, unstable = 0, above = 0, loose = 0, beyond = 0;

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct shmlimit_rule rule = {
			.algorithm = SHMLIMIT_LEASE, .capacity = capacities[i], .refill = 1, .period_ns = 1
		};
		struct layout_params params = { 0 };
		unsigned last = 0;

		if (lease_compile(&rule, &params) != 0)
			bail("compile");
		for (uint64_t tokens = 1; tokens <= capacities[i]; tokens += 1 + tokens / 1000) {
			unsigned size = lease_size(&params, tokens);
			uint64_t back = lease_size_tokens(&params, size);
			uint64_t off = back > tokens ? back - tokens : tokens - back;

			far += off * 8 > tokens && off * 65536 > capacities[i];
			unordered += size < last || size == 0 || size > 63;
			unstable += lease_size(&params, back < capacities[i] ? back : capacities[i]) != size &&
			            back <= capacities[i];
			above += lease_size_least(&params, size) > tokens;
			loose += lease_size(&params, lease_size_least(&params, size)) != size;
			last = size;
		}
		last = lease_size(&params, capacities[i]);
		beyond += lease_size(&params, capacities[i] + 1) != last || lease_size(&params, UINT64_MAX) != last;
	}
	is(beyond, 0, "more than the capacity, of a generous backend, has the capacity's size");
	is(far, 0, "the size of a lease is about what it stands for");
	is(unordered, 0, "the size of a lease is larger for more tokens");
	is(unstable, 0, "the size of a lease stands for itself");
	is(above, 0, "the fewest tokens of a size are no more than any that have it");
	is(loose, 0, "the fewest tokens of a size have that size");
}

static void any_bits(void)
{
	struct rng rng = { rng_seed() };
	unsigned wrong = 0;

	for (uint64_t i = 0; i < scaled(1000000); i++) {
		struct shmlimit_rule rule = { .algorithm = SHMLIMIT_LEASE,
			                      .refill = 1,
			                      .period_ns = 1,
			                      .capacity = 1 + rng_below(&rng, 1 + (rng_draw(&rng) &
			                                                           SHMLIMIT_LEASE_CAPACITY_MAX >>
			                                                                   rng_below(&rng, 21))) };
		struct layout_params params = { 0 };
		uint64_t word = rng_draw(&rng), now_ns = rng_draw(&rng);
		struct lease seen;

		if (rule.capacity > SHMLIMIT_LEASE_CAPACITY_MAX)
			rule.capacity = SHMLIMIT_LEASE_CAPACITY_MAX;
		if (lease_compile(&rule, &params) != 0)
			bail("compile");
		seen = lease_read(&params, word, now_ns);
		wrong += seen.quota > rule.capacity || seen.left_ns > LEASE_AHEAD_NS ||
		         lease_wait(&seen) > LEASE_AHEAD_NS || (lease_held(&seen) != 0 && seen.left_ns == 0);
		if (seen.left_ns != 0)
			wrong += lease_read(&params, lease_pack(&params, seen), now_ns).quota != seen.quota;
		wrong += lease_next(&params, &seen, now_ns,
		                    &(struct lease_pace){ rng_draw(&rng) & (LEASE_AHEAD_NS - 1),
		                                          (uint32_t)rng_below(&rng, 17) },
		                    8) > rule.capacity;
		for (uint64_t lease_ns = 0; lease_ns < 3; lease_ns++)
			wrong += lease_next(&params, &seen, now_ns, &(struct lease_pace){ lease_ns, 3 }, 2) >
			         rule.capacity;
	}
	is(wrong, 0, "any bits say something in its range");
}

/*
 * The oracle: a bag of tokens, each with the time at which it is over. Whatever
 * is spent must be in it; taking those that are over first leaves most.
 */
#define BAG 4096

static struct {
	uint64_t tokens, ends;
} bag[BAG];
static unsigned in_bag;

static void bag_put(uint64_t tokens, uint64_t ends)
{
	if (tokens == 0)
		return;
	if (in_bag == BAG)
		bail("the bag is full");
	bag[in_bag].tokens = tokens;
	bag[in_bag++].ends = ends;
}

static int bag_take(uint64_t tokens, uint64_t at)
{
	while (tokens != 0) {
		unsigned first = in_bag;
		uint64_t n;

		for (unsigned i = 0; i < in_bag;) {
			if (bag[i].ends <= at || bag[i].tokens == 0) {
				bag[i] = bag[--in_bag];
				continue;
			}
			i++;
		}
		first = in_bag;
		for (unsigned i = 0; i < in_bag; i++)
			if (first == in_bag || bag[i].ends < bag[first].ends)
				first = i;
		if (first == in_bag)
			return 0;
		n = tokens < bag[first].tokens ? tokens : bag[first].tokens;
		bag[first].tokens -= n;
		tokens -= n;
	}
	return 1;
}

/* What was deposited, whether spent or not: what was leased counts as lent. */
static struct {
	uint64_t tokens, ends;
} lent[BAG];
static unsigned lents;

static void lent_put(uint64_t tokens, uint64_t ends)
{
	lent[lents % BAG].tokens = tokens;
	lent[lents++ % BAG].ends = ends;
}

/* Of which this many live until then. */
static uint64_t lent_until(uint64_t ends)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BAG && i < lents; i++)
		sum += lent[i].ends >= ends ? lent[i].tokens : 0;
	return sum;
}

static void any_history(void)
{
	struct rng rng = { rng_seed() };
	int id = rule("history", CAPACITY);
	uint64_t at = T0, claimed_until = 0, denied_until = 0, denied_cost = 0;
	unsigned unpaid = 0, twice = 0, forgotten = 0, asked = 0, spent = 0, denials = 0, above = 0, unlent = 0,
		 restored = 0;

	for (uint64_t i = 0; i < scaled(STEPS); i++) {
		uint64_t cost = 1 + rng_below(&rng, rng_below(&rng, 8) ? 10 : CAPACITY + 5);
		uint64_t time = rng_below(&rng, rng_below(&rng, 4) ? 20 * MS : 300 * MS), n;
		int answer, looked;

		at += rng_below(&rng, 3) ? rng_below(&rng, MS) : rng_below(&rng, 10) ? 0 : rng_below(&rng, 200 * MS);
		if (rng_below(&rng, 20000) == 0)
			at += rng_below(&rng, 40) * 86400 * SECOND;
		switch (rng_below(&rng, 12)) {
		case 0:
		case 1:
		case 2:
		case 3:
			looked = rng_below(&rng, 4) == 0;
			lease = (struct shmlimit_lease){ .struct_size = sizeof(lease) };
			answer = shmlimit_lease_take(
				at_time(l, at), id, "k", 1,
				&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
			                                          .cost = cost,
			                                          .lease_ns = LEASE_NS,
			                                          .claim_ns = looked ? 0 : time | 1 },
				&lease, &r);
			if (answer == SHMLIMIT_ALLOWED)
				unpaid += !bag_take(cost, at);
			spent += answer == SHMLIMIT_ALLOWED;
			if (looked && answer == SHMLIMIT_LEASE_ASK) {
				twice += at < claimed_until;
				above += lease.want != lease.need || lease.held + lease.need != cost;
			} else if (answer == SHMLIMIT_LEASE_ASK) {
				twice += at < claimed_until;
				claimed_until = at + time;
				denied_until = 0;
				asked++;
				above += lease.want + lease.held > CAPACITY || lease.want < lease.need ||
				         lease.held >= cost;
			}
			if (cost >= denied_cost && at < denied_until) {
				forgotten += answer != SHMLIMIT_DENIED;
				denials++;
			}
			break;
		case 4:
		case 5:
		case 6:
			answer = rng_below(&rng, 2) ? shmlimit_take(at_time(l, at), id, "k", 1, cost, &r)
			                            : shmlimit_reserve(at_time(l, at), id, "k", 1, cost, 0, &r);
			if (answer == SHMLIMIT_ALLOWED)
				unpaid += !bag_take(cost, at);
			spent += answer == SHMLIMIT_ALLOWED;
			break;
		case 7:
		case 8:
			n = rng_below(&rng, 2 * cost);
			bag_put(n, at + time);
			lent_put(n, at + time);
			if (shmlimit_lease_deposit(at_time(l, at), id, "k", 1, n, cost, 0, time, &r) ==
			    SHMLIMIT_ALLOWED)
				unpaid += !bag_take(cost, at);
			above += r.remaining > CAPACITY;
			claimed_until = denied_until = 0;
			break;
		case 9:
			n = left(id, at);
			shmlimit_lease_deny(at_time(l, at), id, "k", 1, cost, time, &r);
			claimed_until = 0;
			if (n == 0) {
				denied_until = at + time - (time < tick_ns ? time : tick_ns);
				denied_cost = cost < CAPACITY ? cost : CAPACITY;
			}
			break;
		case 10:
			n = left(id, at);
			shmlimit_charge(at_time(l, at), id, "k", 1, cost, &r);
			unpaid += !bag_take(n - r.remaining, at);
			if (rng_below(&rng, 2)) {
				uint64_t before = left(id, at);

				shmlimit_refund(at_time(l, at), id, "k", 1, cost, &r);
				restored += r.remaining > before;
				bag_put(r.remaining - before, at + r.reset_after_ns);
				unlent += r.remaining != 0 && r.remaining > lent_until(at + r.reset_after_ns);
			}
			break;
		case 11:
			if (rng_below(&rng, 2)) {
				shmlimit_lease_abandon(at_time(l, at), id, "k", 1);
				claimed_until = 0;
			} else if (rng_below(&rng, 10) == 0) {
				shmlimit_reset(l, id, "k", 1);
				claimed_until = denied_until = 0;
			}
			break;
		}
	}
	ok(asked > 100 && spent > 100 && denials > 100, "a random history asks, spends and denies");
	is(unpaid, 0, "nothing is spent that was not deposited, or twice, or after its time");
	ok(restored > 100, "refunds restore something, %u times", restored);
	is(unlent, 0, "no refund makes a key hold more than deposits that live as long had");
	is(twice, 0, "no call asks while another does");
	is(forgotten, 0, "no denial is forgotten before its time");
	is(above, 0, "no lease is above the capacity, and no caller asks for more, or for less than it needs");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after all random calls");
}

/* A table without room. */
static void full(void)
{
	for (uint32_t on_full = SHMLIMIT_FULL_EVICT; on_full <= SHMLIMIT_FULL_DENY; on_full++) {
		struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .on_full = on_full };
		unsigned asked = 0, denied = 0, allowed = 0;
		int id;

		shmlimit_close(l);
		l = unit_create("lease", &options);
		id = rule("full", CAPACITY);
		for (uint32_t key = 0; key < 100; key++) {
			lease = (struct shmlimit_lease){ .struct_size = sizeof(lease) };
			switch (shmlimit_lease_take(
				at_time(l, T0), id, &key, sizeof(key),
				&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
			                                          .cost = 1,
			                                          .lease_ns = LEASE_NS,
			                                          .claim_ns = CLAIM_NS },
				&lease, &r)) {
			case SHMLIMIT_LEASE_ASK:
				asked++;
				allowed += shmlimit_lease_deposit(at_time(l, T0), id, &key, sizeof(key), 5, 1, 0,
				                                  LEASE_NS, NULL) == SHMLIMIT_ALLOWED;
				break;
			case SHMLIMIT_DENIED:
				denied++;
			}
		}
		if (on_full == SHMLIMIT_FULL_DENY) {
			ok(asked <= 16 && asked + denied == 100, "a full table denies if on_full is DENY");
			is(allowed, asked,
			   "on a full table that denies, each caller that asked gets what it deposited");
			is(shmlimit_lease_deposit(at_time(l, T0), id, "k", 1, 5, 1, 0, LEASE_NS, &r), SHMLIMIT_ALLOWED,
			   "a deposit without a slot is spent for its caller");
			is(r.remaining, 4, "a deposit without a slot says what would be left");
		} else {
			is(asked, 100, "on a full table that does not deny, every key may ask");
			is(allowed, 100, "on a full table that does not deny, each caller gets what it deposited");
		}
		is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	}
}

/* A key of its own stands for the backend: see shmlimit_lease_take(). */
static void breaker(void)
{
	int id = rule("backend", CAPACITY);

	is(ask(id, 1, T0), SHMLIMIT_LEASE_ASK, "the first call to a backend is a probe");
	is(ask(id, 1, T0), SHMLIMIT_LEASE_WAIT, "a second call to a backend waits for the probe");
	is(deposit(id, CAPACITY, 1, T0), SHMLIMIT_ALLOWED, "a probe that succeeds closes the breaker");
	is(ask(id, 1, T0), SHMLIMIT_ALLOWED, "a closed breaker lets others call");
	is(shmlimit_charge(at_time(l, T0), id, "k", 1, CAPACITY, NULL), SHMLIMIT_ALLOWED,
	   "a caller that failed takes the permits of others");
	is(deny(id, 1, SECOND, T0), SHMLIMIT_DENIED, "a caller that failed opens the breaker");
	is(ask(id, 1, T0 + SECOND / 2), SHMLIMIT_DENIED, "an open breaker lets nobody call");
	is(ask(id, 1, T0 + SECOND), SHMLIMIT_LEASE_ASK, "an open breaker lets one caller probe when its time is over");
	is(ask(id, 1, T0 + SECOND), SHMLIMIT_LEASE_WAIT, "an open breaker lets only one caller probe");
	is(ask(id, 1, T0 + 2 * SECOND), SHMLIMIT_LEASE_ASK, "another caller probes where the first one was killed");
	is(shmlimit_lease_count(l, SHMLIMIT_LEASE_BACKEND_ERRORS, 3), 0, "errors are counted");
	is(shmlimit_lease_count(l, SHMLIMIT_LEASE_BREAKER_OPENINGS, 2), 0, "openings of the breaker are counted");
	is(shmlimit_lease_count(l, 2, 1), -EINVAL, "there is no third counter of leases");
	ok(counters().backend_errors == 3 && counters().breaker_openings == 2, "each by itself");
}

/* Far from the backend, where the answer takes half of a lease. */
static void far_away(void)
{
	int id = rule_of("far", CAPACITY, 1000, SECOND);
	uint64_t at = T0, largest = 0;

	for (int i = 0; i < 20; i++) {
		if (ask(id, 1, at) != SHMLIMIT_LEASE_ASK)
			bail("no ask");
		largest = lease.want;
		at += LEASE_NS / 2;
		/* Tokens count from when they were asked for. */
		shmlimit_lease_deposit(at_time(l, at), id, "k", 1, lease.want, lease.want, 0, LEASE_NS / 2, &r);
	}
	ok(largest >= 10, "a lease grows where it took long to come, too (%llu)", (unsigned long long)largest);
}

/* A table that grows leaves them behind: to be carried twice would be to be spent twice. */
static void left_behind(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .slots_max = 64 };
	uint64_t at = T0;
	int id;

	l = unit_create("lease.grown", &options);
	id = rule("r", CAPACITY);
	ask(id, 1, at);
	deposit(id, 10, 1, at);
	is(take(id, 1, at + MS), SHMLIMIT_ALLOWED, "what was leased is spent");
	is(shmlimit_grow(at_time(l, at + MS), 64), 0, "a table with leases can grow");
	is(shmlimit_peek(at_time(l, at + MS), id, "k", 1, 9, NULL), SHMLIMIT_DENIED,
	   "what is left is not counted twice");
	is(ask(id, 1, at + MS), SHMLIMIT_LEASE_ASK, "a lease ends when the table grows");
	is(deposit(id, 6, 1, at + MS), SHMLIMIT_ALLOWED, "another lease is deposited after the table grew");
	is(take(id, 6, at + MS), SHMLIMIT_DENIED, "after the table grew a key has the new lease only");
	given_back(id, at + MS);
	is(shmlimit_grow(at_time(l, at + MS), 0), 0, "the old table is done with");
	shmlimit_close(l);
}

int main(void)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };

	l = unit_create("lease", NULL);
	shmlimit_rule_range(l, rule("range", CAPACITY), &range);
	tick_ns = range.resolution_ps / 1000;
	by_hand();
	looks();
	claims();
	denials();
	other_verbs();
	meetings();
	far_away();
	bounds();
	changes();
	batches();
	ahead();
	small();
	few();
	slow();
	breaker();
	sizes();
	any_bits();
	any_history();
	full();
	shmlimit_close(l);
	left_behind();
	return tap_done();
}
