/*
 * torture: everything at once. Eight processes use every operation on random keys under rules of each algorithm. A
 * ninth changes rules, removes and resets some, and verifies. All nine are killed at random and replaced. It takes 20
 * seconds, or the environment's SECONDS.
 *
 * Keys under the watched rules are only taken from, alone or as the last of several limits, so that their history can
 * be judged (I1), whatever is killed or changed in between:
 *
 *	funnel    no stretch of time has more than the larger capacity and what the faster rate gives in it
 *	window    no period has more than the larger capacity
 *	warmup    gives no more than its stable rate after its dearest request
 *	count     no period has more than twice the capacity
 *	hold      no period has more entries than there are places
 *	lease     no token is spent that was not deposited, or twice, or after its time; one process a key asks
 *
 * The other rules are there to take and give slots: their keys are charged, refunded, reserved and reset at will.
 *
 * There are about as many keys as slots, and claims by strangers. At the end of each round all processes are killed,
 * and what they left open is finished: tentative slots are met, sliding-window logs completed, and claims of processes
 * that asked a backend expire (I4). A run fails if nothing was left open, if no slot was reclaimed while others were at
 * work, or if no compare-and-swap was lost: it has shown nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../process/process.h"

#include "hash.h"
#include "history.h"
#include "lease.h"
#include "leases.h"
#include "ring.h"
#include "table.h"

#define WORKERS 8
#define GOVERNOR WORKERS /* the ninth */
#define SLOTS 64
#define RING 64
#define KEYS 12 /* of each watched rule */
#define WILD_KEYS 100
#define KILLS_A_ROUND 8
#define CALLS_A_KILL 4000
#define SECONDS_MORE 600 /* for near misses to be seen */
#define SECOND ((uint64_t)1000000000)
#define MILLISECOND ((uint64_t)1000000)
#define MICROSECOND ((uint64_t)1000)

/* What a rule's keys may be admitted, whichever version is in force. The versions differ in one number. */
static const struct watched {
	const char *name;
	struct shmlimit_rule version[2]; /* the second gives more */
	uint64_t tokens;                 /* most of a request */
} watched[] = {
	/* clang-format off */
	{ "funnel",
	  { { .capacity = 6, .refill = 1, .period_ns = 100 * MICROSECOND },
	    { .capacity = 6, .refill = 3, .period_ns = 100 * MICROSECOND } },
	  3 },
	{ "warmup",
	  { { .algorithm = SHMLIMIT_WARMUP, .refill = 1, .period_ns = 50 * MICROSECOND, .warmup_ns = 2 * MILLISECOND },
	    { .algorithm = SHMLIMIT_WARMUP,
	      .refill = 2,
	      .period_ns = 50 * MICROSECOND,
	      .warmup_ns = 2 * MILLISECOND } },
	  3 },
	{ "window",
	  { { .algorithm = SHMLIMIT_WINDOW, .capacity = 20, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_WINDOW, .capacity = 40, .period_ns = 5 * MILLISECOND } },
	  4 },
	{ "lease",
	  { { .algorithm = SHMLIMIT_LEASE, .capacity = 20, .refill = 1, .period_ns = MILLISECOND },
	    { .algorithm = SHMLIMIT_LEASE, .capacity = 40, .refill = 1, .period_ns = MILLISECOND } },
	  3 },
	/* Of this the words have no quota. */
	{ "bytes",
	  { { .capacity = 600000, .refill = 100000, .period_ns = 100 * MICROSECOND },
	    { .capacity = 600000, .refill = 300000, .period_ns = 100 * MICROSECOND } },
	  300000 },
	{ "counter",
	  { { .algorithm = SHMLIMIT_COUNTER, .capacity = 20, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_COUNTER, .capacity = 20, .period_ns = 2 * MILLISECOND } },
	  4 },
	/* Places that are entered and never left: as if each holder were killed. */
	{ "hold",
	  { { .algorithm = SHMLIMIT_HOLD, .capacity = 20, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_HOLD, .capacity = 40, .period_ns = 5 * MILLISECOND } },
	  1 },
	/* Logs and places of other sizes, in the same slots. */
	{ "window.small",
	  { { .algorithm = SHMLIMIT_WINDOW, .capacity = 1, .period_ns = MILLISECOND },
	    { .algorithm = SHMLIMIT_WINDOW, .capacity = 3, .period_ns = MILLISECOND } },
	  1 },
	{ "window.large",
	  { { .algorithm = SHMLIMIT_WINDOW, .capacity = 300, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_WINDOW, .capacity = 2000, .period_ns = 5 * MILLISECOND } },
	  100 },
	{ "hold.large",
	  { { .algorithm = SHMLIMIT_HOLD, .capacity = 100, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_HOLD, .capacity = 700, .period_ns = 5 * MILLISECOND } },
	  1 },
	/* shmlimit_throttle()'s, which has no versions. */
	{ "~throttle",
	  { { .capacity = 3, .refill = 10000, .period_ns = SECOND },
	    { .capacity = 3, .refill = 10000, .period_ns = SECOND } },
	  2 },
	/* clang-format on */
};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))
#define THROTTLE (WATCHED - 1)
#define LEASED 3
#define COUNTED 5
#define WILD 4 /* rules, one of each algorithm */

struct play {
	struct shmlimit *l;
	int id[WATCHED];
	uint64_t grace_ns[WATCHED]; /* an interval is exact to a tick at either end */
	uint64_t seed;
	_Atomic int wild[WILD]; /* ids, now and then of a rule that is gone */
	_Atomic uint64_t calls, changes, resets, verifies, unsound;
	struct history history;
	struct story story;
	struct books books;
	struct ledger ledger;
};

static struct play *play;

static struct {
	uint64_t rounds, kills, admitted, excesses, truncated;
	uint64_t left_tentative, met, left_open, helped, reclaimed; /* rounds with reclaims and lost swaps: the last */
	uint64_t booked, unbacked, crowds, left_asking, claims_ended, claims_stuck;
	int ended_badly;
} sum;

/* What shmlimit_throttle() brings: the rule has no limit of its own. */
static const struct shmlimit_limit throttled = {
	.struct_size = sizeof(throttled), .capacity = 3, .refill = 10000, .period_ns = SECOND
};

static int has_places(uint32_t i)
{
	return watched[i].version[0].algorithm == SHMLIMIT_HOLD;
}

static int has_log(uint32_t i)
{
	return watched[i].version[0].algorithm == SHMLIMIT_WINDOW;
}

/* ---- The eight ---- */

static void admitted(uint32_t i, uint32_t key, uint64_t tokens, uint64_t began_ns)
{
	if (i == LEASED)
		books_add(&play->books, SPENT, key, tokens, began_ns, shmlimit_now(play->l));
	else
		history_add(&play->history, i, key, tokens, began_ns, shmlimit_now(play->l));
}

static void watched_take(struct rng *rng)
{
	uint32_t i = (uint32_t)rng_below(rng, WATCHED), key = (uint32_t)rng_below(rng, KEYS);
	uint64_t tokens = 1 + rng_below(rng, watched[i].tokens), began_ns = shmlimit_now(play->l);
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	int64_t reply[5];
	int answer;

	if (i == THROTTLE)
		answer = shmlimit_throttle(play->l, &key, sizeof(key), 3, 10000, 1, tokens, reply);
	else if (i == COUNTED && began_ns % 2 == 0)
		answer = shmlimit_count(
			play->l, play->id[i], &key, sizeof(key),
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .n = (int64_t)tokens,
		                                          .bound = INT64_MAX },
			NULL);
	else if (has_places(i) && began_ns % 2 == 0)
		answer = shmlimit_enter(play->l, play->id[i], &key, sizeof(key), &hold, NULL);
	else
		answer = shmlimit_take(play->l, play->id[i], &key, sizeof(key), tokens, NULL);
	worker_check(answer >= 0, "%s: %s", watched[i].name, shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		admitted(i, key, tokens, began_ns);
}

/* What only leases have, beside the takes that they have too: now and then an answer that comes too late. */
static void leased_call(struct rng *rng)
{
	uint32_t key = (uint32_t)rng_below(rng, KEYS);
	uint64_t tokens = 1 + rng_below(rng, 3);
	int answer;

	if (rng_below(rng, 30) == 0)
		answer = leases_deposit(play->l, play->id[LEASED], &play->books, key, 8 * tokens, tokens);
	else
		answer = leases_spend(play->l, play->id[LEASED], &play->books, key, tokens, rng);

	worker_check(answer >= 0, "lease: %s", shmlimit_strerror(answer));
}

static void watched_peek(struct rng *rng)
{
	uint32_t i = (uint32_t)rng_below(rng, WATCHED), key = (uint32_t)rng_below(rng, KEYS);
	struct shmlimit_result r = { 0 };
	uint64_t cost = rng_below(rng, 8);
	int answer = i == THROTTLE
	                     ? by_limit(play->l, SHMLIMIT_PEEK, play->id[i], &key, sizeof(key), cost, &throttled, &r)
	                     : shmlimit_peek(play->l, play->id[i], &key, sizeof(key), cost, &r);

	worker_check(answer >= 0 && r.remaining <= r.limit, "peek: %d, %" PRIu64 " of %" PRIu64, answer, r.remaining,
	             r.limit);
}

static int wild_rule(struct rng *rng)
{
	return atomic_load(&play->wild[rng_below(rng, WILD)]);
}

/* A watched key is the last: what was taken of it is not given back, and perhaps too late. */
static void take_all(struct rng *rng)
{
	uint32_t i = (uint32_t)rng_below(rng, WATCHED), key = (uint32_t)rng_below(rng, KEYS);
	uint32_t stranger = (uint32_t)rng_below(rng, WILD_KEYS);
	struct shmlimit_request requests[2] = {
		{ .rule = wild_rule(rng), .key = &stranger, .key_len = sizeof(stranger), .cost = 1 },
		{ .rule = play->id[i],
		  .key = &key,
		  .key_len = sizeof(key),
		  .cost = 1,
		  .limit = i == THROTTLE ? &throttled : NULL },
	};
	uint64_t began_ns = shmlimit_now(play->l);
	int answer = shmlimit_take_all(play->l, requests, 2, NULL, NULL);

	worker_check(answer >= 0 || answer == -ESRCH, "take_all: %s", shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		admitted(i, key, 1, began_ns);
}

static void wild_call(struct rng *rng)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	uint32_t key = (uint32_t)rng_below(rng, WILD_KEYS);
	uint64_t tokens = rng_below(rng, 9);
	int rule = wild_rule(rng), answer = 0;

	switch (rng_below(rng, 11)) {
	case 0:
		answer = shmlimit_take(play->l, rule, &key, sizeof(key), tokens, NULL);
		break;
	case 1:
		answer = shmlimit_peek(play->l, rule, &key, sizeof(key), tokens, NULL);
		break;
	case 2:
		answer = shmlimit_reserve(play->l, rule, &key, sizeof(key), tokens, rng_below(rng, MILLISECOND), NULL);
		break;
	case 3:
		answer = shmlimit_charge(play->l, rule, &key, sizeof(key), tokens, NULL);
		break;
	case 4:
		answer = shmlimit_refund(play->l, rule, &key, sizeof(key), tokens, NULL);
		break;
	case 5:
		answer = shmlimit_reset(play->l, rule, &key, sizeof(key));
		break;
	case 6:
		answer = shmlimit_throttle(play->l, &key, sizeof(key), 5, 100000, 1 + rng_below(rng, 2), tokens, NULL);
		break;
	case 7:
		answer = shmlimit_lease_take(
			play->l, rule, &key, sizeof(key),
			&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                          .cost = tokens,
		                                          .lease_ns = MILLISECOND,
		                                          .claim_ns = MILLISECOND },
			&lease, NULL);
		break;
	case 8:
		answer = shmlimit_lease_deposit(play->l, rule, &key, sizeof(key), tokens, 1, 0, MILLISECOND, NULL);
		break;
	case 9:
		answer = shmlimit_lease_deny(play->l, rule, &key, sizeof(key), tokens, MILLISECOND, NULL);
		break;
	case 10:
		answer = shmlimit_lease_abandon(play->l, rule, &key, sizeof(key));
		break;
	}
	/* The rule may be gone, or of another algorithm. */
	worker_check(answer >= 0 || answer == -ESRCH || answer == -EOPNOTSUPP, "a call failed: %s",
	             shmlimit_strerror(answer));
}

/* Where the main process gets little time, a round has more calls than there is room to write down. */
static int may_be_written(void)
{
	return !history_is_nearly_full(&play->history) && !books_are_nearly_full(&play->books);
}

static void use(struct rng *rng)
{
	enum { WILD_CALL = 75, KINDS = 100 };

	for (;;) {
		uint64_t which = may_be_written() ? rng_below(rng, KINDS) : WILD_CALL;

		if (which < 50)
			watched_take(rng);
		else if (which < 60)
			leased_call(rng);
		else if (which < 65)
			watched_peek(rng);
		else if (which < WILD_CALL)
			take_all(rng);
		else
			wild_call(rng);
		atomic_fetch_add(&play->calls, 1);
	}
}

/* ---- The ninth ---- */

static int set_rule(const char *name, struct shmlimit_rule rule)
{
	int id;

	rule.struct_size = sizeof(rule);
	do
		id = shmlimit_rule_set(play->l, name, &rule);
	while (id == -EAGAIN); /* on a busy machine the others may have the lock for five seconds */
	worker_check(id >= 0, "rule_set %s: %s", name, shmlimit_strerror(id));
	return id;
}

static void set_wild(struct rng *rng, uint32_t algorithm)
{
	static const char *const names[WILD] = { "wild.funnel", "wild.warmup", "wild.window", "wild.lease" };
	/* A window of any size, each size as often. */
	uint64_t most = algorithm == SHMLIMIT_WINDOW ? (uint64_t)1 << rng_below(rng, 13) : 8;
	struct shmlimit_rule rule = {
		.algorithm = algorithm,
		.mode = rng_below(rng, 4) == 0 ? (uint32_t)rng_below(rng, 3) : SHMLIMIT_ENFORCE,
		.capacity = algorithm == SHMLIMIT_WARMUP ? 0 : 1 + rng_below(rng, most),
		.refill = algorithm == SHMLIMIT_WINDOW ? 0 : 1 + rng_below(rng, 3),
		.period_ns = (1 + rng_below(rng, 50)) * MICROSECOND,
		.max_wait_ns = algorithm == SHMLIMIT_LEASE ? 0 : rng_below(rng, 3) * 100 * MICROSECOND,
		.warmup_ns = algorithm == SHMLIMIT_WARMUP ? MILLISECOND : 0,
	};
	int error = 0;

	if (rng_below(rng, 4) == 0)
		error = shmlimit_rule_remove(play->l, names[algorithm]);
	worker_check(error == 0 || error == -ESRCH, "rule_remove: %s", shmlimit_strerror(error));
	atomic_store(&play->wild[algorithm], set_rule(names[algorithm], rule));
}

static void govern(struct rng *rng)
{
	struct shmlimit_problem problem;
	int problems, error;

	for (;;) {
		uint32_t i = (uint32_t)rng_below(rng, THROTTLE);

		switch (rng_below(rng, 4)) {
		case 0:
			worker_check(set_rule(watched[i].name, watched[i].version[rng_below(rng, 2)]) == play->id[i],
			             "rule %s has another id", watched[i].name);
			atomic_fetch_add(&play->changes, 1);
			break;
		case 1:
			set_wild(rng, i % WILD);
			atomic_fetch_add(&play->changes, 1);
			break;
		case 2:
			error = shmlimit_reset(play->l, atomic_load(&play->wild[i % WILD]), NULL, 0);
			worker_check(error >= 0 || error == -ESRCH, "reset: %s", shmlimit_strerror(error));
			atomic_fetch_add(&play->resets, 1);
			break;
		case 3:
			problems = shmlimit_verify(stage_name, &problem, 1);
			if (problems != 0 && atomic_fetch_add(&play->unsound, 1) == 0)
				diag("verify: %d: %s", problems,
				     problems > 0 ? problem.text : shmlimit_strerror(problems));
			atomic_fetch_add(&play->verifies, 1);
			break;
		}
		sched_yield();
	}
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)getpid() << 16 };

	(void)crew;
	if (index == GOVERNOR)
		govern(&rng);
	else
		use(&rng);
}

/* ---- What the killed left ---- */

/* All slots of a watched key: its committed one, and a tentative one. */
struct trace {
	struct layout_slot *committed;
	const struct layout_slot *tentative;
	struct slot_seen seen, nonce;
};

static struct trace trace_of(const struct rule_view *view, uint32_t rule, uint32_t key)
{
	uint64_t hash = hash_bytes(play->l->secret, rule, &key, sizeof(key));
	struct table_key wanted = table_key(hash, rule, rule_version(view));
	struct table_window window = table_window(play->l->tables, hash);
	struct trace trace = { NULL, NULL, { 0, 0 }, { 0, 0 } };
	struct table_slot found;

	(void)table_find_any(play->l, play->l->tables, &wanted, 0, &found);
	trace.committed = found.slot;
	trace.seen = found.seen;
	for (unsigned i = 0; i < WINDOW_LINES * SLOTS_PER_LINE; i++) {
		const struct layout_slot *slot =
			table_line(play->l->tables, window, i / SLOTS_PER_LINE) + i % SLOTS_PER_LINE;

		if (slot_read(slot).tag != (wanted.tag | TAG_TENTATIVE))
			continue;
		trace.tentative = slot;
		trace.nonce = slot_read(slot);
	}
	return trace;
}

/* What a process leaves that admits a token and is killed before it writes the cell: few of the killed hit that moment. */
static int leave_open(const struct layout_params *params, struct layout_slot *slot, struct slot_seen *seen,
                      const struct ring *ring, uint64_t now_ns)
{
	struct window w = { window_advance(ring->w.n, 1, params_tokens(params)), 1, ring->w.last_ns };
	struct slot_seen before = *seen;

	if ((int64_t)(now_ns - w.last_ns) > 0)
		w.last_ns = now_ns;
	seen->word = window_pack(params, w);
	return slot_cas(slot, before, seen->tag, seen->word);
}

/* A ring whose cells lag behind the word: are they written when the word is moved on? */
static void help(const struct rule_view *view, uint32_t rule, uint32_t key, const struct trace *before)
{
	const struct layout_params *params = &view->params;
	uint64_t now_ns = shmlimit_now(play->l), cell_ns;
	struct look k = look_make(play->l, play->l->tables, before->committed, params, when_given(now_ns));
	struct ring ring = ring_read(&k, before->seen.word), after;
	struct slot_seen open = before->seen, seen;

	if (ring.valid == 0)
		return;
	if (ring.complete && !leave_open(params, before->committed, &open, &ring, now_ns))
		return;
	ring = ring_read(&k, open.word);
	sum.left_open++;
	if (shmlimit_charge(play->l, (int)rule, &key, sizeof(key), 1, NULL) != 0)
		bail("charge");
	seen = slot_read(before->committed);
	after = ring_read(&k, seen.word);
	cell_ns = ring_cells(&k)[window_cell(after.w.n, 1, params_tokens(params))];
	sum.helped += seen.tag == before->seen.tag && after.w.n == window_advance(ring.w.n, 1, params_tokens(params)) &&
	              window_agrees(params, open.word, cell_ns);
}

static int is_current(const struct rule_view *view, const struct trace *trace)
{
	return trace->committed != NULL && ((trace->seen.tag ^ rule_version(view)) & TAG_VERSION) == 0;
}

/* A call that writes, so that it meets what is tentative. */
static void meet(uint32_t i, uint32_t key)
{
	uint64_t now_ns = shmlimit_now(play->l);
	int answer;

	if (i == LEASED)
		answer = leases_deposit(play->l, play->id[i], &play->books, key, 1, 0);
	else if (has_places(i)) /* when all of them have ended */
		answer = shmlimit_take(at_time(play->l, now_ns + SECOND), play->id[i], &key, sizeof(key), 1, NULL);
	else if (i == THROTTLE)
		answer = by_limit(play->l, SHMLIMIT_CHARGE, play->id[i], &key, sizeof(key), 1, &throttled, NULL);
	else
		answer = shmlimit_charge(play->l, play->id[i], &key, sizeof(key), 1, NULL);
	at_clock(play->l);
	if (answer != 0)
		bail("nothing can be written for key %u of rule %s", key, watched[i].name);
}

/* All are dead. */
static void finish_what_they_left(void)
{
	for (uint32_t i = WATCHED; i-- > 0;) {
		struct rule_view view;

		if (rule_load(play->l, (uint32_t)play->id[i], &view) != 0)
			bail("rule %s is gone", watched[i].name);
		for (uint32_t key = 0; key < KEYS; key++) {
			struct trace trace = trace_of(&view, (uint32_t)play->id[i], key);

			if (has_log(i) && is_current(&view, &trace))
				help(&view, (uint32_t)play->id[i], key, &trace);
			if (trace.tentative == NULL)
				continue;
			sum.left_tentative++;
			meet(i, key);
			sum.met += slot_read(trace.tentative).word != trace.nonce.word;
		}
	}
}

/*
 * The process that asked was killed in killed_ns or later, and dead in died_ns: does its claim expire in time, so that
 * another process asks? WHY NOT only claims that last beyond died_ns: where processes end slowly there are none.
 */
static void outlast(const struct rule_view *view, uint32_t key, const struct trace *trace, uint64_t killed_ns,
                    uint64_t died_ns)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct lease left = lease_read(&view->params, trace->seen.word, killed_ns);
	uint64_t then_ns = died_ns + CLAIM_NS + play->grace_ns[LEASED];

	if (left.state != LEASE_ASKED || left.left_ns == 0)
		return;
	sum.left_asking++;
	if (shmlimit_lease_take(at_time(play->l, then_ns), play->id[LEASED], &key, sizeof(key),
	                        &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                          .cost = 1,
	                                                          .lease_ns = LEASE_NS,
	                                                          .claim_ns = CLAIM_NS },
	                        &lease, NULL) == SHMLIMIT_LEASE_ASK)
		sum.claims_ended++;
	else
		sum.claims_stuck++;
	at_clock(play->l);
}

/* All books have been looked at: the next round begins with none. */
static void end_leases(uint64_t killed_ns, uint64_t died_ns)
{
	struct rule_view view;

	if (rule_load(play->l, (uint32_t)play->id[LEASED], &view) != 0)
		bail("rule %s is gone", watched[LEASED].name);
	for (uint32_t key = 0; key < KEYS; key++) {
		struct trace trace = trace_of(&view, (uint32_t)play->id[LEASED], key);

		if (is_current(&view, &trace))
			outlast(&view, key, &trace, killed_ns, died_ns);
	}
	if (shmlimit_reset(play->l, play->id[LEASED], NULL, 0) < 0)
		bail("leases are not reset");
	books_clear(&play->books);
}

/* ---- Judging ---- */

/* Did a key get more than the version that gives more permits? */
static int exceeds(uint32_t i, uint32_t key)
{
	const struct shmlimit_rule *rule = &watched[i].version[1];
	uint64_t got, may = rule->capacity;

	history_tell(&play->history, i, key, &play->story);
	if (has_log(i) || has_places(i)) {
		got = story_most(&play->story, rule->period_ns);
	} else if (i == COUNTED) {
		/* A period has the end of one count and the beginning of the next. */
		got = story_most(&play->story, rule->period_ns);
		may = 2 * rule->capacity;
	} else {
		got = story_burst(&play->story, rule->refill, rule->period_ns, play->grace_ns[i]);
		if (rule->algorithm == SHMLIMIT_WARMUP)
			may = watched[i].tokens;
	}
	if (got > may)
		diag("rule %s, key %u: %" PRIu64 " tokens where %" PRIu64 " are permitted", watched[i].name, key, got,
		     may);
	return got > may;
}

/* What a key has left is as good as spent now. */
static void audit(uint32_t key)
{
	uint64_t now_ns = shmlimit_now(play->l), unbacked, crowds;
	struct shmlimit_result r = { 0 };

	if (shmlimit_peek(at_time(play->l, now_ns), play->id[LEASED], &key, sizeof(key), 0, &r) < 0)
		bail("peek");
	at_clock(play->l);
	if (r.remaining != 0)
		books_add(&play->books, SPENT, key, r.remaining, now_ns, now_ns);
	books_tell(&play->books, key, &play->ledger);
	crowds = ledger_crowds(&play->ledger);
	unbacked = ledger_unbacked(&play->ledger);
	if (unbacked + crowds != 0)
		diag("lease of key %u: %" PRIu64 " tokens spent that are no gift's, %" PRIu64 " asked beside another",
		     key, unbacked, crowds);
	sum.unbacked += unbacked;
	sum.crowds += crowds;
}

static void judge(void)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		for (uint32_t i = 0; i < WATCHED; i++)
			sum.excesses += i != LEASED && exceeds(i, key);
		audit(key);
	}
	sum.admitted += history_length(&play->history);
	sum.booked += books_length(&play->books);
	sum.truncated += books_length(&play->books) != atomic_load(&play->books.n);
	sum.truncated += history_length(&play->history) != atomic_load(&play->history.n);
}

/* ---- Rounds ---- */

static void round_of(struct rng *rng)
{
	struct shmlimit_counters before = counters_of(play->l, SHMLIMIT_ALL_RULES), after;
	struct crew crew;
	uint64_t killed_ns, died_ns;

	play->seed = rng_draw(rng);
	history_clear(&play->history);
	crew_start(&crew, WORKERS + 1, work, NULL);
	for (int i = 0; i < KILLS_A_ROUND; i++) {
		uint64_t until = atomic_load(&play->calls) + rng_below(rng, CALLS_A_KILL);
		int victim = (int)rng_below(rng, WORKERS + 1);

		while (atomic_load(&play->calls) < until)
			crew_await();
		sum.ended_badly += !crew_kill(&crew, victim);
		crew_spawn(&crew, victim, 0);
	}
	killed_ns = shmlimit_now(play->l);
	for (int i = 0; i <= WORKERS; i++)
		kill(crew.pid[i], SIGKILL);
	for (int i = 0; i <= WORKERS; i++)
		sum.ended_badly += !crew_kill(&crew, i);
	munmap(crew.gate, sizeof(*crew.gate));
	died_ns = shmlimit_now(play->l);
	finish_what_they_left();
	after = counters_of(play->l, SHMLIMIT_ALL_RULES);
	sum.reclaimed += after.reclaims > before.reclaims && after.failed_cas > before.failed_cas;
	sum.kills += KILLS_A_ROUND + WORKERS + 1;
	sum.rounds++;
	judge();
	end_leases(killed_ns, died_ns);
	play->unsound += shmlimit_verify(stage_name, NULL, 0) != 0;
}

static int seen_enough(void)
{
	return sum.admitted > 0 && counters_of(play->l, SHMLIMIT_ALL_RULES).failed_cas > 0 && sum.reclaimed > 0 &&
	       sum.met > 0 && sum.helped > 0 && sum.claims_ended > 0 && atomic_load(&play->changes) > 0 &&
	       atomic_load(&play->resets) > 0 && atomic_load(&play->verifies) > 0;
}

static void progress(uint64_t seconds)
{
	diag("%" PRIu64 " s: %" PRIu64 " rounds, %" PRIu64 " kills, %" PRIu64 " calls, %" PRIu64 " admitted, %" PRIu64
	     " rule changes",
	     seconds, sum.rounds, sum.kills, atomic_load(&play->calls), sum.admitted, atomic_load(&play->changes));
	diag("  %" PRIu64 " swaps lost; %" PRIu64 " slots left tentative, %" PRIu64 " met; %" PRIu64
	     " rings left open, %" PRIu64 " completed; %" PRIu64 " excesses",
	     counters_of(play->l, SHMLIMIT_ALL_RULES).failed_cas, sum.left_tentative, sum.met, sum.left_open,
	     sum.helped, sum.excesses);
	diag("  %" PRIu64 " entries in books of leases; %" PRIu64 " claims left, %" PRIu64 " ended", sum.booked,
	     sum.left_asking, sum.claims_ended);
}

/* The coarser of the two versions' ticks, at either end. */
static void measure(uint32_t i)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	uint64_t grace_ns;

	if (shmlimit_rule_range(play->l, play->id[i], &range) != 0)
		bail("no range");
	grace_ns = 2 * (range.resolution_ps / 1000 + 1);
	if (grace_ns > play->grace_ns[i])
		play->grace_ns[i] = grace_ns;
}

static void begin(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .rules = 16, .on_full = SHMLIMIT_FULL_DENY
	};
	struct rng rng = { play->seed };
	uint32_t key = 0;
	int error = shmlimit_create(stage_name, &options, &play->l);

	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	for (uint32_t i = 0; i < 2 * THROTTLE; i++) {
		play->id[i / 2] = set_rule(watched[i / 2].name, watched[i / 2].version[i % 2]);
		measure(i / 2);
	}
	for (uint32_t i = 0; i < WILD; i++)
		set_wild(&rng, i);
	/* Only the governor makes rules, unnamed ones included. */
	for (uint64_t period_s = 1; period_s <= 2; period_s++)
		shmlimit_throttle(play->l, &key, sizeof(key), 5, 100000, period_s, 1, NULL);
	shmlimit_throttle(play->l, &key, sizeof(key), 3, 10000, 1, 1, NULL);
	play->id[THROTTLE] = shmlimit_rule_find(play->l, watched[THROTTLE].name);
	if (play->id[THROTTLE] < 0)
		bail("no rule for throttle");
	measure(THROTTLE);
	for (uint32_t i = 0; i < WATCHED; i++)
		diag("%s: exact to %" PRIu64 " ns", watched[i].name, play->grace_ns[i] / 2);
}

int main(void)
{
	const char *given = getenv("SECONDS");
	uint64_t seconds = given != NULL ? strtoull(given, NULL, 10) : scaled(8), reported = 0, passed = 0;
	struct rng rng;
	time_t began = time(NULL);

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("torture");
	alarm((unsigned)seconds + SECONDS_MORE + WATCHDOG_SECONDS);
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	rng.state = play->seed + 1;
	begin();
	while (sum.excesses + sum.unbacked + sum.crowds == 0 && sum.ended_badly == 0 &&
	       (passed < seconds || (passed < seconds + SECONDS_MORE && !seen_enough()))) {
		round_of(&rng);
		passed = (uint64_t)(time(NULL) - began);
		if (passed >= reported + 60) {
			progress(passed);
			reported = passed;
		}
	}
	progress(passed);
	is(sum.ended_badly, 0, "nine processes die by the killer alone");
	is(sum.excesses, 0, "no key is admitted more in any stretch of time than its rule ever permitted");
	is(sum.unbacked, 0, "no lease is spent that was not given, or twice, or after its time");
	is(sum.crowds, 0, "one process a key asks at a time");
	is(sum.claims_stuck, 0, "the claims of the killed end by themselves");
	is(play->unsound, 0, "the segment is sound all the while");
	is(sum.truncated, 0, "the histories are complete");
	ok(sum.admitted > 0, "calls were admitted (%" PRIu64 ")", sum.admitted);
	ok(atomic_load(&play->changes) > 0, "rules were changed meanwhile (%" PRIu64 ")", atomic_load(&play->changes));
	ok(atomic_load(&play->resets) > 0, "rules were reset");
	ok(atomic_load(&play->verifies) > 0, "the segment was verified while calls were made");
	ok(counters_of(play->l, SHMLIMIT_ALL_RULES).failed_cas > 0, "compare-and-swaps were lost to others");
	ok(sum.reclaimed > 0, "slots were reclaimed while others contended");
	ok(sum.met > 0, "tentative slots that the killed left were met (%" PRIu64 ")", sum.met);
	ok(sum.helped > 0, "rings that were left open were completed (%" PRIu64 ")", sum.helped);
	ok(sum.claims_ended > 0, "claims that the killed left ended, and others asked (%" PRIu64 ")", sum.claims_ended);
	is(counters_of(play->l, SHMLIMIT_ALL_RULES).evictions, 0, "no funnel was evicted");
	shmlimit_close(play->l);
	return tap_done();
}
