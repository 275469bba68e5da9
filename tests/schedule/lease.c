/*
 * lease: several actors spend what a backend gives, and ask it for more, one at a time (I1, I4).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define CAPACITY 10
#define LEASE_NS 8000
#define CLAIM_NS 1000
#define GIFTS_MAX 16

/* What the backend gave: as a call, of tokens that may be spent from its beginning until its end and LEASE_NS. */
static struct gift {
	uint64_t tokens, ended_ns; /* ended_ns UINT64_MAX: killed in it */
} gifts[GIFTS_MAX];
static unsigned gifts_n;
static unsigned lent, debited; /* credits: a worker posted the debit; the agent took it */
static unsigned asking;        /* actors that are between the answer to ask and what the backend says */

static struct shmlimit *set_lease(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2,
	                 (struct shmlimit_rule){
				 .algorithm = SHMLIMIT_LEASE, .capacity = CAPACITY, .refill = 1, .period_ns = SECOND });
}

static void begin(void)
{
	gifts_n = asking = lent = debited = 0;
}

static int deposit(uint32_t key, uint64_t tokens, uint64_t cost)
{
	struct gift *gift = &gifts[gifts_n++];
	int answer;

	*gift = (struct gift){ tokens, UINT64_MAX };
	actor_calls();
	answer = shmlimit_lease_deposit(stage.l, stage.rule, &key, sizeof(key), tokens, cost, 0, LEASE_NS, NULL);
	gift->ended_ns = schedule.now_ns;
	return answer;
}

/* Spend; if the answer is to ask, ask the backend, which gives or denies. */
static void spend(uint32_t key, uint64_t cost, int yes)
{
	struct call *c = call_begin(key, (int64_t)cost);
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	int answer;

	actor_calls();
	answer = shmlimit_lease_take(
		stage.l, stage.rule, &key, sizeof(key),
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .lease_ns = LEASE_NS,
	                                          .claim_ns = CLAIM_NS },
		&lease, NULL);
	if (answer == SHMLIMIT_LEASE_ASK) {
		if (asking++ != 0 && schedule.now_ns == START_NS)
			blame("two ask at once");
		actor_calls();
		asking--;
		if (yes)
			answer = deposit(key, lease.want + 1, cost);
		else
			answer = shmlimit_lease_deny(stage.l, stage.rule, &key, sizeof(key), cost, CLAIM_NS, NULL);
	}
	call_end(c, answer == SHMLIMIT_LEASE_WAIT ? SHMLIMIT_DENIED : answer);
}

static void act(unsigned who)
{
	spend(KEY, 2, 1);
	spend(KEY, 1 + who % 2, who != 2);
	spend(KEY, 3, 1);
}

/* What was given is spent once, or is here; it ends with its lease. */
static void law_books(void)
{
	uint64_t spent = 0, gave = 0, rest = left(KEY);

	for (unsigned i = 0; i < gifts_n; i++)
		gave += gifts[i].tokens;
	for (unsigned i = 0; i < stage.n; i++)
		spent += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (spent + rest > gave)
		blame("spent %" PRIu64 ", have %" PRIu64 ": were given %" PRIu64, spent, rest, gave);
	/* A call that began after a lease had expired got nothing of it. */
	for (unsigned i = 0; i < stage.n; i++) {
		uint64_t since_ns = stage.calls[i].began_ns, alive = 0;

		spent = 0;
		for (unsigned j = 0; j < stage.n; j++)
			if (was_taken(&stage.calls[j]) && stage.calls[j].began_ns >= since_ns)
				spent += (uint64_t)stage.calls[j].tokens;
		for (unsigned j = 0; j < gifts_n; j++)
			if (gifts[j].ended_ns == UINT64_MAX || gifts[j].ended_ns + LEASE_NS > since_ns)
				alive += gifts[j].tokens;
		if (spent > alive)
			blame("spent %" PRIu64 " since %" PRIu64 " ns: %" PRIu64 " lived then", spent,
			      since_ns - START_NS, alive);
	}
}

static void judge_standing(void)
{
	struct shmlimit_lease_counters counted = { .struct_size = sizeof(counted) };
	uint64_t spent = 0, gave = 0, killed = 0;

	law_books();
	for (unsigned i = 0; i < schedule.scene->actors; i++)
		killed += schedule.actor[i].state == KILLED;
	for (unsigned i = 0; i < gifts_n; i++)
		gave += gifts[i].tokens;
	for (unsigned i = 0; i < stage.n; i++)
		spent += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	shmlimit_lease_counters(stage.l, &counted);
	if (killed == 0 && (counted.spent != spent || counted.leased != gave))
		blame("%" PRIu64 " tokens were counted as spent, not %" PRIu64 "; %" PRIu64 " as leased, not %" PRIu64,
		      counted.spent, spent, counted.leased, gave);
	if (killed == 0 && spent + left(KEY) != gave)
		blame("spent %" PRIu64 ", have %" PRIu64 ", were given %" PRIu64 " that cannot have expired", spent,
		      left(KEY), gave);
	law_sound();
}

static const struct scene standing = {
	.title = "what is leased is spent once, by any caller, and one at a time asks for more",
	.actors = 3,
	.mortals = 2,
	.set = set_lease,
	.begin = begin,
	.act = act,
	.judge = judge_standing,
};

static void judge_moving(void)
{
	law_books();
	law_sound();
}

static const struct scene moving = {
	.title = "nothing is spent once its lease is over",
	.actors = 3,
	.mortals = 2,
	.away_ns = { CLAIM_NS / 2, CLAIM_NS + 100, LEASE_NS },
	.set = set_lease,
	.begin = begin,
	.act = act,
	.judge = judge_moving,
};

/* ---- Credit ---- */

#define CREDIT 3

/* As libshmlimit-global lends: the debit is posted, then the credit deposited. */
static void spend_on_credit(uint32_t key, uint64_t cost)
{
	struct call *c = call_begin(key, (int64_t)cost);
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	int answer;

	actor_calls();
	answer = shmlimit_lease_take(
		stage.l, stage.rule, &key, sizeof(key),
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .lease_ns = LEASE_NS,
	                                          .claim_ns = CLAIM_NS },
		&lease, NULL);
	if (answer == SHMLIMIT_LEASE_ASK && lease.unknown) {
		lent++;
		answer = deposit(key, CREDIT, cost);
	} else if (answer == SHMLIMIT_LEASE_ASK) {
		answer = deposit(key, lease.want, cost);
	}
	call_end(c, answer == SHMLIMIT_LEASE_WAIT ? SHMLIMIT_DENIED : answer);
}

/* The last actor is the agent, whose backend denies the debit. */
static void act_on_credit(unsigned who)
{
	uint32_t key = KEY;

	for (int i = 0; i < 3; i++) {
		if (who != 2) {
			spend_on_credit(KEY, 1);
			continue;
		}
		actor_calls();
		if (debited == lent)
			continue;
		debited++;
		shmlimit_charge(stage.l, stage.rule, &key, sizeof(key), CREDIT, NULL);
		actor_calls();
		shmlimit_lease_deny(stage.l, stage.rule, &key, sizeof(key), CREDIT, CLAIM_NS, NULL);
	}
}

static void judge_credit(void)
{
	law_books();
	law_sound();
	if (lent > 1)
		blame("a key was lent its credit %u times", lent);
}

static const struct scene credit = {
	.title = "a key is lent its credit once, whatever becomes of the debit",
	.actors = 3,
	.mortals = 3,
	.away_ns = { CLAIM_NS / 2, CLAIM_NS + 100, LEASE_NS },
	.set = set_lease,
	.begin = begin,
	.act = act_on_credit,
	.judge = judge_credit,
};

/* A denied call gives back what it took, while the backend gives more. */
static struct shmlimit *set_giving_back(void)
{
	return stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.algorithm = SHMLIMIT_LEASE, .capacity = 4 * CAPACITY, .refill = 1, .period_ns = SECOND });
}

static void begin_giving_back(void)
{
	uint32_t key = KEY;

	begin();
	(void)shmlimit_lease_deposit(stage.l, stage.rule, &key, sizeof(key), 8, 0, 0, LEASE_NS, NULL);
	gifts[gifts_n++] = (struct gift){ 8, schedule.now_ns };
}

static void act_giving_back(unsigned who)
{
	if (who == 2) {
		take(KEY, 3);
		(void)deposit(KEY, 8, 0);
		take(KEY, 6);
		take(KEY, 2);
		return;
	}
	take_in_vain(KEY, 2);
	take_in_vain(KEY, 4);
	take(KEY, 1);
}

static const struct scene giving_back = {
	.title = "what a denied call gives back is spent in the lease that it was of",
	.actors = 3,
	.mortals = 2,
	.away_ns = { LEASE_NS / 2, LEASE_NS },
	.set = set_giving_back,
	.begin = begin_giving_back,
	.act = act_giving_back,
	.judge = judge_moving,
};

int main(void)
{
	play(&standing);
	play(&moving);
	play(&giving_back);
	play(&credit);
	return tap_done();
}
