/*
 * kill: 8 workers decide at full speed while a killer ends them by SIGKILL at random moments and starts others. At
 * whatever point they die, the segment stays sound, no key is admitted more than its due, no more tokens are lost than
 * the killed workers held, and no slot is lost: I4, with I1 and I2.
 *
 * Turns: a turn has its own keys and its own time. Each worker takes from each key until it is denied, and reports
 * that. When all have, the next turn begins, and the admissions of the last turn but one are added up: the capacity of
 * each key, less one token for each worker that was killed between taking it and noting it. Keys are full again three
 * turns later, so slots are claimed and reclaimed in every turn. A late worker is late by one turn, which is less than
 * the slack.
 *
 * Churn: no turns, more keys than slots, evictions, and other calls, too: rules are set and removed, funnels refunded
 * and reset.
 *
 * Kills are paced by what the victims have done. After every 50 kills all workers are killed while they claim, and the
 * segment is audited: it is sound, and a fresh process can claim every slot once the funnels have refilled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 8
#define SLOTS 16u
#define START_NS 1000000000000u

#define TURN_KEYS 4
#define TURN_CAPACITY 24u
#define TURN_NS 8000u
#define TURN_FILL_NS (3 * TURN_NS)
#define TURNS_KEPT 4 /* in the logs */

#define CHURN_KEYS 100000 /* and 8 of them as often as all others */
#define CHURN_CAPACITY 3u
#define CHURN_FILL_NS 1200u

#define TURN_KILLS 2000
#define CHURN_KILLS 600
#define KILLS_MAX 20000 /* for those to be seen that prove something */
#define KILLS_AN_AUDIT 50

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed;
	_Atomic uint64_t turn, now_ns, errors, late;
	struct {
		_Atomic uint64_t done;     /* calls */
		_Atomic uint64_t finished; /* turns: 1 + the last one of which it was denied every key */
		_Atomic int inside;
		_Atomic uint64_t logged[TURNS_KEPT][TURN_KEYS];
	} __attribute__((aligned(64))) worker[WORKERS];
	int live, refused; /* found by the auditor */
	uint64_t drained[TURN_KEYS];
};

static struct play *play;

/* What the killer did. */
static struct {
	uint64_t kills, inside, audits, turns;
	uint64_t tentative;               /* slots that an audit found so: their claimers were killed */
	uint64_t over, lost, unexplained; /* tokens: above the capacity; below it; below it by more than was killed */
	int unsound, slots_lost, ended_badly;
} sum;

/* ---- Killing ---- */

static void wait_for_end(struct crew *crew, int index)
{
	sum.ended_badly += !crew_kill(crew, index);
	sum.kills++;
	sum.inside += (uint64_t)atomic_exchange(&play->worker[index].inside, 0);
}

/*
 * Kill the first to have made this many more calls, inside the next of them if
 * that can be seen. (That can be seen only of one that runs on another core. BOUND:
 * the wait ends for a worker that does not run.)
 */
static void kill_one(struct crew *crew, struct rng *rng, uint64_t calls)
{
	int victim = (int)rng_below(rng, WORKERS);
	uint64_t before[WORKERS];

	calls = rng_below(rng, calls);
	for (int i = 0; i < WORKERS; i++)
		before[i] = atomic_load(&play->worker[i].done);
	for (unsigned i = 1; atomic_load(&play->worker[victim].done) - before[victim] <= calls; i++) {
		victim = (victim + 1) % WORKERS;
		/* A process that yields among busy ones waits for long: watch for a while first. */
		if (i % 4000 == 0)
			crew_await();
		else
			relax();
	}
	for (int i = 0; i < 10000 && !atomic_load(&play->worker[victim].inside); i++)
		relax();
	wait_for_end(crew, victim);
	atomic_store(&play->worker[victim].finished, 0);
	crew_spawn(crew, victim, 0);
}

/* All at once: no worker gets to tidy up behind another. */
static void end_all(struct crew *crew)
{
	for (int i = 0; i < WORKERS; i++)
		kill(crew->pid[i], SIGKILL);
	for (int i = 0; i < WORKERS; i++)
		wait_for_end(crew, i);
}

/* ---- Auditing ---- */

/* A fresh process, at a time when all has refilled, claims all slots. */
static void claim_all(struct crew *crew, int index)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t now_ns = atomic_load(&play->now_ns);
	struct shmlimit *l;

	(void)crew;
	(void)index;
	worker_check(shmlimit_open(stage_name, 0, NULL, &l) == 0, "a fresh process cannot open the segment");
	for (uint64_t i = 0; i < SLOTS; i++) {
		uint64_t key[2] = { now_ns, i };

		play->refused += shmlimit_take(at_time(l, now_ns), play->rule, key, sizeof(key), 1, NULL) != 0;
	}
	for (uint64_t i = 0; i < SLOTS; i++)
		play->live += shmlimit_slot(l, i, &slot, now_ns) == 0 && slot.state == SHMLIMIT_SLOT_LIVE;
}

static uint64_t tentative_slots(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t n = 0;

	for (uint64_t i = 0; i < SLOTS; i++)
		n += shmlimit_slot(play->l, i, &slot, START_NS) == 0 && slot.state == SHMLIMIT_SLOT_TENTATIVE;
	return n;
}

/* All workers are dead. */
static void audit(uint64_t now_ns)
{
	struct shmlimit_counters before, after;
	struct shmlimit_problem problem;
	int problems = shmlimit_verify(stage_name, &problem, 1);

	sum.audits++;
	sum.tentative += tentative_slots();
	if (problems != 0) {
		diag("verify: %d: %s", problems, problems > 0 ? problem.text : shmlimit_strerror(problems));
		sum.unsound++;
	}
	play->live = play->refused = 0;
	atomic_store(&play->now_ns, now_ns);
	before = counters_of(play->l, play->rule);
	sum.ended_badly += crew_run(1, claim_all, NULL);
	after = counters_of(play->l, play->rule);
	sum.slots_lost += play->live != (int)SLOTS || play->refused != 0 || after.evictions != before.evictions ||
	                  after.no_slot != before.no_slot || after.claims - before.claims != SLOTS;
}

/* ---- Turns ---- */

static uint64_t turn_ns(uint64_t turn)
{
	return START_NS + turn * TURN_NS;
}

static int take_in_turn(uint64_t turn, uint64_t number)
{
	uint64_t key[2] = { turn, number };

	return shmlimit_take(at_time(play->l, turn_ns(turn)), play->rule, key, sizeof(key), 1, NULL);
}

/* One call, logged as soon as it is done. */
static int log_take(int index, uint64_t turn, uint64_t number)
{
	int answer;

	atomic_store(&play->worker[index].inside, 1);
	answer = take_in_turn(turn, number);
	if (answer == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->worker[index].logged[turn % TURNS_KEPT][number], 1);
	atomic_store(&play->worker[index].inside, 0);
	atomic_fetch_add(&play->worker[index].done, 1);
	if (answer < 0)
		atomic_fetch_add(&play->errors, 1);
	return answer;
}

static void take_turns(struct crew *crew, int index)
{
	(void)crew;
	for (;;) {
		uint64_t turn = atomic_load(&play->turn);

		for (uint64_t i = 0; i < TURN_KEYS; i++)
			while (log_take(index, turn, i) == SHMLIMIT_ALLOWED)
				;
		atomic_store(&play->worker[index].finished, turn + 1);
		for (unsigned i = 0; atomic_load(&play->turn) == turn; i++) {
			if (log_take(index, turn, i % TURN_KEYS) == SHMLIMIT_ALLOWED)
				atomic_fetch_add(&play->late, 1);
			if (i % 32 == 31)
				sched_yield();
		}
	}
}

static int all_finished(uint64_t turn)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load(&play->worker[i].finished) != turn + 1)
			return 0;
	return 1;
}

/* No worker is in this turn any more. `spared` are tokens that may be missing in it. */
static void sum_up(uint64_t turn, uint64_t spared)
{
	uint64_t lost = 0;

	sum.turns++;
	for (int key = 0; key < TURN_KEYS; key++) {
		uint64_t logged = play->drained[key];

		for (int i = 0; i < WORKERS; i++)
			logged += atomic_exchange(&play->worker[i].logged[turn % TURNS_KEPT][key], 0);
		play->drained[key] = 0;
		if (logged > TURN_CAPACITY)
			sum.over += logged - TURN_CAPACITY;
		else
			lost += TURN_CAPACITY - logged;
	}
	sum.lost += lost;
	if (lost > spared) {
		diag("turn %" PRIu64 ": %" PRIu64 " tokens are missing, %" PRIu64 " workers were killed", turn, lost,
		     spared);
		sum.unexplained += lost - spared;
	}
}

static void finish_turn(struct crew *crew, uint64_t turn, struct rng *rng)
{
	/* In three of four turns a worker dies, mostly at their beginning. */
	if (rng_below(rng, 4) != 0)
		kill_one(crew, rng, rng_below(rng, 4) == 0 ? 400 : 20);
	while (!all_finished(turn))
		crew_await();
}

/* From a turn on, until this many have been killed, and then all. Returns the first turn after. */
static uint64_t turns_between_audits(uint64_t turn, struct rng *rng)
{
	uint64_t until = sum.kills + KILLS_AN_AUDIT - WORKERS, spared_before = 0, kills_before = sum.kills;
	struct crew crew;

	atomic_store(&play->turn, turn);
	crew_start(&crew, WORKERS, take_turns, NULL);
	for (uint64_t first = turn;; turn++) {
		uint64_t spared;

		finish_turn(&crew, turn, rng);
		spared = sum.kills - kills_before;
		kills_before = sum.kills;
		if (turn > first)
			sum_up(turn - 1, spared_before + spared);
		spared_before = spared;
		atomic_store(&play->turn, turn + 1);
		if (sum.kills >= until)
			break;
	}
	/* Turn + 1 has begun. A moment later all are dead, and what they left of it is taken here. */
	kill_one(&crew, rng, 8);
	end_all(&crew);
	spared_before += sum.kills - kills_before;
	sum_up(turn, spared_before);
	for (uint64_t i = 0; i < TURN_KEYS; i++)
		while (take_in_turn(turn + 1, i) == SHMLIMIT_ALLOWED)
			play->drained[i]++;
	sum_up(turn + 1, sum.kills - kills_before);
	munmap(crew.gate, sizeof(*crew.gate));
	return turn + 2;
}

static int goes_on(uint64_t kills, int seen_enough)
{
	return sum.kills < scaled(kills) || (!seen_enough && sum.kills < KILLS_MAX);
}

static void report(const char *title, uint64_t kills)
{
	is(sum.ended_badly, 0, "%s: workers die by the killer alone", title);
	ok(sum.kills >= scaled(kills) && sum.audits > 0, "%s: there were kills", title);
	ok(sum.inside > 0, "%s: there were kills inside a call", title);
	is(sum.unsound, 0, "%s: the segment is sound after each %d kills", title, KILLS_AN_AUDIT);
	is(sum.slots_lost, 0, "%s: no slot is lost once funnels have refilled", title);
	is(play->errors, 0, "%s: no call fails", title);
}

static void turns(uint64_t seed)
{
	struct rng rng = { seed };
	struct shmlimit_counters c;
	uint64_t turn = 1, expected;

	memset(play, 0, sizeof(*play));
	memset(&sum, 0, sizeof(sum));
	play->l = stage_create(SLOTS, 2, SHMLIMIT_FULL_DENY);
	play->rule = stage_rule(play->l, "turns", TURN_CAPACITY, TURN_CAPACITY, TURN_FILL_NS);
	while (goes_on(TURN_KILLS, sum.inside > 0 && counters_of(play->l, play->rule).failed_cas > 0) &&
	       sum.unexplained + sum.over == 0) {
		turn = turns_between_audits(turn, &rng) + 10;
		audit(turn_ns(turn));
		turn += 10;
	}
	report("turns", TURN_KILLS);
	is(sum.over, 0, "turns: no key is admitted more than its capacity");
	is(sum.unexplained, 0, "turns: nor less, but for what the killed had in hand");
	is(play->late, 0, "turns: nothing is admitted after a denial");
	c = counters_of(play->l, play->rule);
	expected = sum.turns * TURN_KEYS * TURN_CAPACITY + sum.audits * SLOTS;
	ok(c.allowed <= expected && c.allowed + sum.kills >= expected,
	   "turns: the counter of allowed is off by no more than the number of the killed");
	ok(c.no_slot == 0 && c.evictions == 0, "turns: there is a slot for every key");
	ok(c.reclaims > 0, "turns: slots were reclaimed");
	ok(c.failed_cas > 0, "turns: workers did contend");
	diag("%" PRIu64 " turns, %" PRIu64 " kills, %" PRIu64 " inside a call, %" PRIu64 " tokens in hand; %" PRIu64
	     " failed compare-and-swaps",
	     sum.turns, sum.kills, sum.inside, sum.lost, c.failed_cas);
	stage_hide();
	shmlimit_close(play->l);
}

/* ---- Churn ---- */

static void expect(int right)
{
	if (!right)
		atomic_fetch_add(&play->errors, 1);
}

/* Returns the answer of one of the rare calls. No call may rely on the rule that comes and goes. */
static int rare(uint64_t which, uint32_t mode, const void *key, size_t key_len)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 7, .refill = 1, .period_ns = 1000 };

	switch (which) {
	case 0:
		rule.mode = mode;
		return shmlimit_rule_set(play->l, "guest", &rule);
	case 1:
		return shmlimit_rule_remove(play->l, "guest");
	case 2:
		return shmlimit_reset(play->l, play->rule, key, key_len);
	default:
		return shmlimit_reset(play->l, SHMLIMIT_ALL_RULES, NULL, 0);
	}
}

static void do_rare(struct rng *rng, const void *key, size_t key_len, uint64_t now_ns)
{
	uint64_t which = rng_below(rng, 4);
	uint32_t mode = (uint32_t)rng_below(rng, 3);
	int answer;

	/* On a busy machine the others may have the rules' lock for longer than a call waits. */
	do
		answer = rare(which, mode, key, key_len);
	while (answer == -EAGAIN);
	expect(answer >= 0 || (which == 1 && answer == -ESRCH));
	if (which == 0) {
		answer = shmlimit_take(at_time(play->l, now_ns), answer, key, key_len, 1, NULL);
		expect(answer >= 0 || answer == -ESRCH);
	}
}

static void churn_on(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)getpid() << 16 };

	(void)crew;
	for (;;) {
		uint64_t key = rng_below(&rng, rng_below(&rng, 2) == 0 ? CHURN_KEYS : 8);
		uint64_t now_ns = atomic_fetch_add(&play->now_ns, rng_below(&rng, 100));

		atomic_store(&play->worker[index].inside, 1);
		if (rng_below(&rng, 512) == 0)
			do_rare(&rng, &key, sizeof(key), now_ns);
		else if (rng_below(&rng, 8) == 0)
			expect(shmlimit_refund(at_time(play->l, now_ns), play->rule, &key, sizeof(key), 1, NULL) == 0);
		else
			expect(shmlimit_take(at_time(play->l, now_ns), play->rule, &key, sizeof(key),
			                     1 + rng_below(&rng, 2), NULL) >= 0);
		atomic_store(&play->worker[index].inside, 0);
		atomic_fetch_add(&play->worker[index].done, 1);
	}
}

static int churned(void)
{
	struct shmlimit_counters c = counters_of(play->l, play->rule);

	return sum.inside > 0 && sum.tentative > 0 && c.evictions > 0 && c.reclaims > 0 && c.failed_cas > 0;
}

static void churn(uint64_t seed)
{
	struct rng rng = { seed };
	struct shmlimit_counters c;

	memset(play, 0, sizeof(*play));
	memset(&sum, 0, sizeof(sum));
	play->seed = seed;
	play->l = stage_create(SLOTS, 2, SHMLIMIT_FULL_EVICT);
	play->rule = stage_rule(play->l, "churn", CHURN_CAPACITY, CHURN_CAPACITY, CHURN_FILL_NS);
	atomic_store(&play->now_ns, START_NS);
	while (goes_on(CHURN_KILLS, churned())) {
		uint64_t until = sum.kills + KILLS_AN_AUDIT - WORKERS;
		struct crew crew;

		crew_start(&crew, WORKERS, churn_on, NULL);
		while (sum.kills < until)
			kill_one(&crew, &rng, 400);
		end_all(&crew);
		munmap(crew.gate, sizeof(*crew.gate));
		audit(atomic_load(&play->now_ns) + 2 * CHURN_FILL_NS);
		atomic_fetch_add(&play->now_ns, 2 * CHURN_FILL_NS);
	}
	report("churn", CHURN_KILLS);
	ok(sum.tentative > 0, "churn: there were kills in the middle of a claim");
	ok(stage_rule(play->l, "guest", 7, 1, 1000) >= 0, "churn: a killed writer leaves no lock");
	c = counters_of(play->l, play->rule);
	ok(c.evictions > 0 && c.reclaims > 0, "churn: slots were evicted and reclaimed");
	ok(c.failed_cas > 0, "churn: workers did contend");
	diag("%" PRIu64 " kills, %" PRIu64 " inside a call, %" PRIu64 " slots found tentative; %" PRIu64
	     " failed compare-and-swaps",
	     sum.kills, sum.inside, sum.tentative, c.failed_cas);
	stage_hide();
	shmlimit_close(play->l);
}

int main(void)
{
	uint64_t seed;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("kill");
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	turns(seed);
	churn(seed + 1);
	return tap_done();
}
