/*
 * requests: processes post requests, wait, cancel and are killed, while an agent serves, sleeps, resigns, is killed or
 * is replaced. Sleeping is the scheduler's too: a process in a futex goes on when another one wakes it, or when all
 * sleep and time passes. The laws are those of tests/model/mailbox.pml.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define SCHEDULES 5000
#include "schedule/schedule.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "mailbox.h"

#define PROCESSES 2
#define FIRST PROCESSES /* the first agent */
#define POSTS_MAX 16
#define LOST 99                                /* the number of requests whose processes were killed before */
#define TURN_NS UINT64_C(200000000)            /* that an agent sleeps */
#define DOZE_NS UINT64_C(1000000)              /* that it dozes */
#define FAR_NS UINT64_C(10000000000)           /* the deadline of a process that waits: farther than any agent sleeps */
#define CLAIM_NS (START_NS + MAILBOX_CLAIM_NS) /* of the agent that is there at the beginning */
#define BACKEND 7
#define SLOW_NS UINT64_C(3000000000) /* a cell that does not change for this long is swept */

/* A request, from its post to the outcome that its process sees. */
static struct posted {
	struct receipt receipt
		__attribute__((aligned(4096))); /* the search for a cell begins by the receipt's address */
	uint64_t number;
	int over;
	enum request_state outcome;
	unsigned accepted; /* answers that agents gave: mailbox_answer() returned 1 */
} posts[POSTS_MAX];
static unsigned posts_n;

/* An actor in a futex. */
static struct sleeper {
	const void *at; /* NULL: none */
	uint64_t until_ns;
} sleepers[ACTORS_MAX];

static struct mailbox *q;
static struct mailbox_watch watch;
static int dozes;  /* in this scene agents doze, too */
static int debits; /* posted, and not taken */
static int slow;   /* in this scene a process may be taken for a killed one */
/* Of the scene in which an agent is replaced: what the next one has done. What the first takes later, and is killed, is lost. */
static enum { NOT_INHERITED, INHERITED, INHERITED_ALL } inherited;
static struct {
	uint64_t answered, given_up, taken_away, again, woken;
} seen; /* of a whole scene */

/* ---- Time and sleep ---- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, void *at, long operation, long value, const struct timespec *time, void *other,
                    long more);
int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void);

static int is_live(unsigned who)
{
	return schedule.actor[who].state == NOT_BEGUN || schedule.actor[who].state == STOPPED;
}

static int is_agent(unsigned who)
{
	return who >= PROCESSES;
}

static int processes_live(void)
{
	int n = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		n += is_live(i);
	return n;
}

static int sleeps(unsigned who)
{
	return sleepers[who].at != NULL && schedule.now_ns < sleepers[who].until_ns;
}

static int all_sleep(void)
{
	for (unsigned i = 0; i < schedule.scene->actors; i++)
		if (is_live(i) && !sleeps(i))
			return 0;
	return 1;
}

/*
 * No actor can go on: time passes until the first of them wakes by itself. No process waits then while there is an agent,
 * unless an actor was killed, perhaps before it woke another one: the agent looks again when it has slept its time.
 */
static void pass_time(void)
{
	uint64_t next_ns = UINT64_MAX;
	int killed = 0, waiting = 0, serving = 0, asleep = 0;

	for (unsigned i = 0; i < schedule.scene->actors; i++) {
		killed |= schedule.actor[i].state == KILLED;
		waiting |= is_live(i) && !is_agent(i);
		serving |= is_live(i) && is_agent(i);
		/* The last one is the agent; others were replaced. */
		asleep = is_live(i) && is_agent(i) && sleepers[i].until_ns > schedule.now_ns + DOZE_NS;
		if (is_live(i) && sleepers[i].until_ns < next_ns)
			next_ns = sleepers[i].until_ns;
	}
	if (waiting && serving && !killed)
		blame("an agent sleeps while a process waits");
	if (dozes && asleep && debits > 0 && !killed)
		blame("an agent sleeps beside %d debits", debits);
	schedule.now_ns = next_ns;
	if (schedule.telling)
		diag("  all sleep: it is %" PRIu64 " ns later", schedule.now_ns - START_NS);
}

static long sleep_at(const void *at, uint64_t ns)
{
	struct sleeper *me = &sleepers[schedule.acting - schedule.actor];

	*me = (struct sleeper){ at, schedule.now_ns + ns };
	while (sleeps((unsigned)(me - sleepers))) {
		if (all_sleep())
			pass_time();
		else
			point_reached(POINT_LOCK, NULL);
	}
	me->at = NULL;
	return 0;
}

static long wake_at(const void *at)
{
	for (unsigned i = 0; i < ACTORS_MAX; i++) {
		if (sleepers[i].at == at) {
			sleepers[i].at = NULL;
			seen.woken++;
		}
	}
	return 0;
}

/* A futex's value is compared, and the caller put to sleep, in one step. */
long __wrap_syscall(long number, void *at, long operation, long value, const struct timespec *time, void *other,
                    long more)
{
	if (number != SYS_futex || schedule.acting == NULL)
		return __real_syscall(number, at, operation, value, time, other, more);
	point_reached(POINT_LOAD, (const void *)((uintptr_t)at & ~(uintptr_t)7));
	if (operation == FUTEX_WAKE)
		return wake_at(at);
	if (*(uint32_t *)at != (uint32_t)value)
		return -1;
	return sleep_at(at, (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	if (schedule.acting == NULL)
		return __real_clock_gettime(id, time);
	*time = (struct timespec){ (time_t)(schedule.now_ns / SECOND), (long)(schedule.now_ns % SECOND) };
	return 0;
}

/* All processes look for a free cell from the same one on. */
pid_t __wrap_getpid(void)
{
	return schedule.acting == NULL ? __real_getpid() : 0;
}

/* ---- What actors do ---- */

static struct request_text text_of(uint64_t number)
{
	struct request_text text = {
		.backend = BACKEND, .key_len = 16, .set_us = number, .cost = number, .need = number, .want = number
	};

	memset(text.key, (int)number, text.key_len);
	return text;
}

static struct request_answer answer_to(uint64_t number)
{
	return (struct request_answer){ number, number, number, number };
}

/* Post a request, and wait for its answer; an impatient process cancels unless it finds the answer at once. */
static void request(unsigned who, int patient)
{
	static const struct request_answer none;
	struct posted *p = &posts[posts_n++];
	struct request_text text;
	struct request_answer answer = none, expected;
	int spoiled;

	if (posts_n == POSTS_MAX)
		bail("too many requests");
	*p = (struct posted){ .number = posts_n };
	text = text_of(p->number);
	expected = answer_to(p->number);
	actor_calls();
	p->receipt.cell = MAILBOX_CELLS;
	if (mailbox_post(q, &text, &p->receipt) == 0) {
		/* Without an agent no process answers. */
		patient = patient && mailbox_has_agent(q, BACKEND, schedule.now_ns);
		p->outcome = mailbox_wait(q, &p->receipt, patient ? schedule.now_ns + FAR_NS : 0, &answer);
	} else if (p->receipt.cell != MAILBOX_CELLS) {
		seen.taken_away++;
	} else {
		point_reached(POINT_PAUSE, NULL);
	}
	p->over = 1;
	if (schedule.telling)
		diag("  %u: request %" PRIu64 " in cell %u ends: %d", who, p->number, p->receipt.cell, p->outcome);
	/* Numbers that an agent spoils that was stopped are none. */
	spoiled = memcmp(&answer, &none, sizeof(answer)) == 0 && (slow || schedule.scene->actors > PROCESSES + 1);
	if (p->outcome == REQUEST_ALLOWED && !spoiled && memcmp(&answer, &expected, sizeof(answer)) != 0)
		blame("request %" PRIu64 " has another's answer, or a mixture", p->number);
	if (p->outcome != REQUEST_FREE && p->outcome != REQUEST_ALLOWED && p->outcome != REQUEST_AGAIN)
		blame("request %" PRIu64 " ends as no agent said", p->number);
	if (patient && p->outcome == REQUEST_FREE && !slow &&
	    !(schedule.actor[FIRST].state == KILLED && inherited == INHERITED))
		blame("request %" PRIu64 " was not answered", p->number);
	seen.answered += p->outcome == REQUEST_ALLOWED;
	seen.again += p->outcome == REQUEST_AGAIN;
	seen.given_up += p->outcome == REQUEST_FREE;
}

/* What may wait: no process waits for it. */
static void debit(void)
{
	struct request_text text = text_of(0);
	struct receipt receipt;

	text.kind = REQUEST_DEBIT;
	actor_calls();
	debits += mailbox_post(q, &text, &receipt) == 0;
}

static struct posted *posted_as(const struct receipt *receipt, uint64_t number)
{
	for (unsigned i = 0; i < posts_n; i++)
		if (posts[i].receipt.cell == receipt->cell && posts[i].receipt.word == receipt->word &&
		    posts[i].number == number)
			return &posts[i];
	return NULL;
}

/* An agent answers all that there is. */
static void serve(void)
{
	struct request_text text, expected;
	struct receipt receipt;
	unsigned at = 0;

	for (;;) {
		struct request_answer answer;
		enum request_state state;
		struct posted *p;
		int was_over;

		if (schedule.acting != NULL)
			actor_calls();
		state = mailbox_next(q, &at, &text, &receipt);
		if (state == REQUEST_FREE)
			return;
		if (text.kind == REQUEST_DEBIT) {
			debits--;
			mailbox_answer(q, &receipt, REQUEST_FREE, NULL);
			continue;
		}
		if (state == REQUEST_REPEATED && text.cost == LOST) {
			mailbox_answer(q, &receipt, REQUEST_FREE, NULL);
			continue;
		}
		p = posted_as(&receipt, text.cost);
		expected = text_of(text.cost);
		if (p == NULL || memcmp(&text, &expected, offsetof(struct request_text, key) + text.key_len) != 0) {
			blame("an agent asks for what no process posted in cell %u", receipt.cell);
			return;
		}
		was_over = p->over;
		answer = answer_to(p->number);
		if (mailbox_answer(q, &receipt, REQUEST_ALLOWED, &answer)) {
			p->accepted++;
			if (was_over)
				blame("request %" PRIu64 " was answered when it was over", p->number);
		}
	}
}

static void serve_until_all_have_ended(uint64_t mine)
{
	uint64_t now_ns = 1;

	while (processes_live() != 0) {
		int sweeps = rng_below(&schedule.rng, 3) == 0;

		serve();
		/* What takes seconds may happen at any moment. Cells that do not change between two sweeps are freed. */
		for (int i = 0; slow && sweeps && i < 2; i++) {
			actor_calls();
			mailbox_sweep(q, &watch, now_ns += SLOW_NS);
		}
		actor_calls();
		if (dozes && rng_below(&schedule.rng, 2))
			mailbox_doze(q, mine, DOZE_NS);
		else
			mailbox_sleep(q, mine, TURN_NS);
	}
}

/* ---- Laws ---- */

/* The tokens of an answer that an agent gave are the process's, unless it was killed or taken for killed. */
static void law_accepted(void)
{
	for (unsigned i = 0; i < posts_n; i++) {
		const struct posted *p = &posts[i];

		if (p->accepted > 1)
			blame("request %" PRIu64 " was answered %u times", p->number, p->accepted);
		if (p->accepted != 0 && p->over && p->outcome != REQUEST_ALLOWED && !slow)
			blame("the answer to request %" PRIu64 " is lost", p->number);
	}
}

/* The next agent has all cells again. */
static void law_cells(void)
{
	struct request_text text = text_of(100), got;
	struct mailbox_watch after = { .since_ns = { 0 } };
	struct request_answer answer;
	struct receipt tickets[MAILBOX_CELLS], receipt;
	unsigned n = 0, at = 0;

	mailbox_inherit(q);
	serve();
	mailbox_sweep(q, &after, 1);
	mailbox_sweep(q, &after, 1 + SLOW_NS);
	if (mailbox_waiting(q) != 0)
		blame("%u requests are left", mailbox_waiting(q));
	/* Not each time: it is most of the work. */
	if (schedule.seed % 8 != 0)
		return;
	while (n < MAILBOX_CELLS && mailbox_post(q, &text, &tickets[n]) == 0)
		n++;
	if (n != MAILBOX_CELLS)
		blame("%u cells are lost", MAILBOX_CELLS - n);
	while (mailbox_next(q, &at, &got, &receipt))
		mailbox_answer(q, &receipt, REQUEST_DENIED, NULL);
	for (unsigned i = 0; i < n; i++)
		if (mailbox_wait(q, &tickets[i], 0, &answer) != REQUEST_DENIED)
			blame("a cell does not work any more");
}

static void judge(void)
{
	law_accepted();
	law_cells();
}

static void stage_clear(void)
{
	memset(posts, 0, sizeof(posts));
	memset(sleepers, 0, sizeof(sleepers));
	memset(&watch, 0, sizeof(watch));
	posts_n = 0;
	debits = 0;
	inherited = NOT_INHERITED;
}

static int stage_was_used(void)
{
	diag("%" PRIu64 " requests answered, %" PRIu64 " given up, %" PRIu64 " to be made again, %" PRIu64
	     " taken away while they were written, %" PRIu64 " sleepers woken",
	     seen.answered, seen.given_up, seen.again, seen.taken_away, seen.woken);
	return seen.answered != 0 && seen.woken != 0 && (!slow || seen.taken_away != 0);
}

/* ---- Scenes ---- */

static struct shmlimit *set(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SHMLIMIT_SLOTS_MIN, .rules = 1 };
	struct shmlimit *l = unit_create("schedule.requests", &options);
	uint64_t mine = 0;
	size_t size;

	q = mailbox_in(shmlimit_area(l, &size), size);
	if (q == NULL || mailbox_prepare(q) != 0 || !mailbox_claim(q, &mine, BACKEND, START_NS))
		bail("no requests");
	slow = dozes = 0;
	memset(&seen, 0, sizeof(seen));
	return l;
}

static void act_standing(unsigned who)
{
	if (is_agent(who)) {
		serve_until_all_have_ended(CLAIM_NS);
		return;
	}
	request(who, 1);
	request(who, who == 0);
}

static const struct scene standing = {
	.title = "each request is answered once, and to its own process, or is given up; no process waits in vain",
	.actors = PROCESSES + 1,
	.mortals = PROCESSES,
	.set = set,
	.act = act_standing,
	.judge = judge,
};

/* All cells but one have requests of processes and agents that were killed. */
static struct shmlimit *set_slow(void)
{
	struct shmlimit *l = set();
	struct request_text text = text_of(LOST);
	struct receipt receipt;
	unsigned at = 0;

	for (unsigned i = 0; i < MAILBOX_CELLS - 1; i++)
		mailbox_post(q, &text, &receipt);
	while (mailbox_next(q, &at, &text, &receipt))
		;
	slow = 1;
	return l;
}

static void act_slow(unsigned who)
{
	if (is_agent(who)) {
		serve_until_all_have_ended(CLAIM_NS);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		request(who, who != i);
}

static const struct scene taken_away = {
	.title = "a process whose cell was taken away learns it, and spoils neither the next request nor its answer",
	.actors = PROCESSES + 1,
	.mortals = PROCESSES,
	.set = set_slow,
	.act = act_slow,
	.judge = judge,
};

/* The agent ends, and no other takes its place. */
static void act_ending(unsigned who)
{
	uint64_t mine = CLAIM_NS;

	if (is_agent(who)) {
		serve();
		actor_calls();
		mailbox_resign(q, &mine);
		return;
	}
	request(who, 1);
	request(who, 1);
}

static const struct scene ending = {
	.title = "no process waits for an agent that has ended",
	.actors = PROCESSES + 1,
	.mortals = PROCESSES,
	.set = set,
	.act = act_ending,
	.judge = judge,
};

/* The next agent takes the claim over at any moment, as if the first had been stopped for long. */
static void act_replaced(unsigned who)
{
	uint64_t mine = CLAIM_NS;
	int first_had_ended;

	if (!is_agent(who)) {
		request(who, 1);
		request(who, who == 0);
	} else if (who == FIRST) {
		for (int i = 0; i < 2; i++) {
			serve();
			actor_calls();
			mailbox_sleep(q, mine, TURN_NS);
		}
		actor_calls();
		mailbox_resign(q, &mine);
	} else {
		mine = 0;
		first_had_ended = !is_live(FIRST);
		/* It fails while the first one resigns. */
		while (!mailbox_claim(q, &mine, BACKEND, START_NS + 3 * SECOND))
			;
		mailbox_inherit(q);
		inherited = first_had_ended ? INHERITED_ALL : INHERITED;
		serve_until_all_have_ended(mine);
	}
}

static const struct scene replaced = {
	.title = "what an agent had taken when it was killed or replaced is made again, and answered once",
	.actors = PROCESSES + 2,
	.mortals = PROCESSES + 1,
	.set = set,
	.act = act_replaced,
	.judge = judge,
};

/* One process, and of two agents that go to sleep one was replaced: it serves no more. */
static void act_sleeping(unsigned who)
{
	if (who == 0) {
		request(who, 1);
		request(who, 1);
	} else if (who == FIRST) {
		mailbox_sleep(q, CLAIM_NS - 1, TURN_NS);
		actor_calls();
		mailbox_sleep(q, CLAIM_NS - 1, TURN_NS);
	} else if (is_agent(who)) {
		serve_until_all_have_ended(CLAIM_NS);
	}
}

static const struct scene sleeping = {
	.title = "no process waits because an agent that was replaced goes to sleep",
	.actors = PROCESSES + 2,
	.set = set,
	.act = act_sleeping,
	.judge = judge,
};

static struct shmlimit *set_dozing(void)
{
	struct shmlimit *l = set();

	dozes = 1;
	return l;
}

/* One process waits, in half of the schedules, the other one does not; and there is an agent that was replaced. */
static void act_dozing(unsigned who)
{
	if (who == 0) {
		if (schedule.seed % 2)
			request(who, 1);
	} else if (who == 1) {
		debit();
	} else if (who == FIRST) {
		mailbox_doze(q, CLAIM_NS - 1, DOZE_NS);
		actor_calls();
		mailbox_sleep(q, CLAIM_NS - 1, TURN_NS);
	} else {
		serve_until_all_have_ended(CLAIM_NS);
	}
}

static const struct scene dozing = {
	.title = "an agent that dozes is woken for a process that waits, and one that sleeps for any request",
	.actors = PROCESSES + 2,
	.set = set_dozing,
	.act = act_dozing,
	.judge = judge,
};

int main(void)
{
	play(&standing);
	play(&taken_away);
	play(&ending);
	play(&replaced);
	play(&sleeping);
	play(&dozing);
	return tap_done();
}
