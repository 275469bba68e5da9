/*
 * line: random histories of requests that wait for limits with delay=, many of which go away. No stretch of time sees
 * more than the limit allows (I1); those that stay pass in the order in which they came, no later than was expected then,
 * and those behind one that goes away move up.
 *
 * The clock is made up, so that no test waits, and none depends on speed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../rng.h"
#include "gate.h"

#define MS ((uint64_t)1000000)
#define SOON (20 * MS) /* as gate_request.c has it */
#define TICK ((uint64_t)65536)
#define PENDING SHMLIMIT_GATE_PENDING
#define HISTORIES 20
#define EVENTS 300
#define WAITERS 64

static uint64_t now_ns = 1000 * SECOND;

int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	(void)id;
	*out = (struct timespec){ .tv_sec = (time_t)(now_ns / SECOND), .tv_nsec = (long)(now_ns % SECOND) };
	return 0;
}

struct waiter {
	struct shmlimit_gate_pending *pending;
	struct shmlimit_gate_held held;
	uint64_t came, poll_ns, leave_ns; /* leave_ns 0: it stays */
	size_t keys;
	unsigned limits;
};

static struct shmlimit *l;
static struct shmlimit_gate *gate;
static struct rng rng;
static struct waiter waiters[WAITERS];
static struct shmlimit_gate_key keys[2];
static size_t key_count;
static uint32_t first_limit; /* of those that a request asks for */
static const char *brought;

static struct {
	uint64_t pass_ns[4 * EVENTS];
	size_t passes;
	uint64_t last_came, last_pass_ns;
	uint64_t batch_ns; /* those that pass within this time do so together */
	int is_polite;
	uint64_t quiet_since_ns; /* no request waited, or one passed */
	uint64_t gap_ns;         /* the longest time since then */
	size_t left, denied, waited, inversions, late;
	size_t passes_of[3];         /* by the number of limits */
	unsigned limits[4 * EVENTS]; /* of each that passed: bits */
} h;

static int waiting(void)
{
	int n = 0;

	for (size_t i = 0; i < WAITERS; i++)
		n += waiters[i].pending != NULL;
	return n;
}

static void note_gap(void)
{
	if (waiting() > 0 && now_ns - h.quiet_since_ns > h.gap_ns)
		h.gap_ns = now_ns - h.quiet_since_ns;
}

static void passed(const struct waiter *w)
{
	h.limits[h.passes] = w->limits;
	h.pass_ns[h.passes++] = now_ns;
	h.passes_of[w->keys]++;
	note_gap();
	h.quiet_since_ns = now_ns;
	/* Those of one tick of a place come at the same time. */
	h.inversions += w->came + TICK < h.last_came && now_ns - h.last_pass_ns >= h.batch_ns;
	h.last_came = w->came;
	h.last_pass_ns = now_ns;
}

static struct waiter *come(uint64_t leave_ns)
{
	struct waiter *w = NULL;
	int answered;

	for (size_t i = 0; i < WAITERS && w == NULL; i++)
		if (waiters[i].pending == NULL)
			w = &waiters[i];
	if (w == NULL)
		return NULL;
	*w = (struct waiter){ .came = now_ns, .leave_ns = leave_ns, .keys = key_count };
	w->limits = key_count == 2 ? 3 : 1u << first_limit;
	w->held.struct_size = sizeof(w->held);
	for (size_t i = 0; i < key_count; i++) {
		keys[i] = (struct shmlimit_gate_key){ .limit = first_limit + (uint32_t)i,
			                              .bytes = "user:42",
			                              .length = 7 };
		if (brought != NULL && i == 0) {
			keys[i].rate = brought;
			keys[i].rate_length = (uint32_t)strlen(brought);
		}
	}
	if (waiting() == 0)
		h.quiet_since_ns = now_ns;
	new_out();
	answered = shmlimit_gate_begin(gate, keys, key_count, &answer, &w->held, &w->pending);
	w->poll_ns = now_ns + answer.retry_after_ns;
	h.denied += answered == SHMLIMIT_DENIED;
	h.waited += answered == PENDING;
	if (answered != PENDING)
		w->pending = NULL;
	if (answered == SHMLIMIT_ALLOWED)
		passed(w);
	if (answered < 0 || answer.outcome == SHMLIMIT_GATE_FAILED)
		bail("begin: %d", answered);
	return answered == PENDING ? w : NULL;
}

static void look(struct waiter *w)
{
	int answered;

	new_out();
	answered = shmlimit_gate_poll(gate, w->pending, &answer, &w->held);
	if (answered == PENDING) {
		w->poll_ns = now_ns + answer.retry_after_ns;
		return;
	}
	w->pending = NULL;
	if (answered == SHMLIMIT_ALLOWED)
		passed(w);
	else if (answered == SHMLIMIT_DENIED)
		h.late++;
	else
		bail("poll: %d", answered);
}

/* One that goes when its turn is soon leaves it unused, which delays those behind it: in some histories none does. */
static void leave(struct waiter *w)
{
	if (h.is_polite && w->poll_ns < now_ns + SOON) {
		w->leave_ns = 0;
		return;
	}
	shmlimit_gate_cancel(gate, w->pending, &w->held);
	w->pending = NULL;
	h.left++;
}

static void advance(uint64_t ns)
{
	if (ns > now_ns)
		now_ns = ns;
}

/* What happens next before `until_ns`; returns 0: nothing. Each look is late by up to late_ns. */
static int next_event(uint64_t until_ns, uint64_t late_ns)
{
	struct waiter *first = NULL;
	uint64_t at = UINT64_MAX;

	for (size_t i = 0; i < WAITERS; i++) {
		struct waiter *w = &waiters[i];
		uint64_t due = w->leave_ns != 0 && w->leave_ns < w->poll_ns ? w->leave_ns : w->poll_ns;

		/* Of those that look at the same time any may be the first. */
		if (w->pending != NULL && (due < at || (due == at && rng_below(&rng, 2) == 0))) {
			at = due;
			first = w;
		}
	}
	if (first == NULL || at > until_ns)
		return 0;
	if (at == first->leave_ns) {
		advance(at);
		leave(first);
	} else {
		advance(at + (late_ns != 0 ? rng_below(&rng, late_ns) : 0));
		look(first);
	}
	return 1;
}

/* By how many tokens some stretch exceeds what a burst and the rate allow; at most 0 is right. */
static double excess(double burst, double per_ns, double cost, double late_ns)
{
	double most = -burst;

	for (size_t i = 0; i < h.passes; i++)
		for (size_t j = i; j < h.passes; j++) {
			double more = (double)(j - i + 1) * cost - burst -
			              per_ns * ((double)(h.pass_ns[j] - h.pass_ns[i]) + late_ns);

			most = more > most ? more : most;
		}
	return most;
}

/* The same of a limit with a burst of 1, by its bit, among several. */
static double excess_of(unsigned limit, double per_ns)
{
	double most = -1;

	for (size_t i = 0; i < h.passes; i++)
		for (size_t j = i, n = 0; j < h.passes && (h.limits[i] & limit) != 0; j++) {
			double more;

			n += (h.limits[j] & limit) != 0;
			more = (double)n - 1 - per_ns * (double)(h.pass_ns[j] - h.pass_ns[i]);
			most = more > most ? more : most;
		}
	return most;
}

/* A window has no more in any period. */
static double excess_of_window(uint64_t capacity, uint64_t period_ns, uint64_t cost, uint64_t late_ns)
{
	size_t n = (size_t)(capacity / cost);

	for (size_t i = 0; i + n < h.passes; i++)
		if (h.pass_ns[i + n] - h.pass_ns[i] + late_ns < period_ns)
			return 1;
	return 0;
}

static void open_gate(const char *spec)
{
	char name[8];

	if (gate != NULL)
		shmlimit_gate_close(gate);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		(void)shmlimit_rule_remove(l, name);
	}
	memset(&h, 0, sizeof(h));
	gate = gate_new(spec);
}

struct kind {
	const char *name, *words;
	int is_window, brings;
};

static const struct kind kinds[] = {
	{ "a funnel", "", 0, 0 },
	{ "gcra", "algorithm=gcra", 0, 0 },
	{ "a limit of the request", "algorithm=gcra", 0, 1 },
	{ "a window", "algorithm=window", 1, 0 },
};

static struct {
	size_t histories, passes, left, waited, exceeded, inverted, slow, idle, held;
} all;

static int is_line_empty(void)
{
	int of = shmlimit_rule_find(l, "r0");
	struct shmlimit_result r;
	char name[SHMLIMIT_RULE_NAME_MAX + 1], key[40];

	for (int id = 0; id < 16; id++) {
		snprintf(key, sizeof(key), "%d:user:42", of);
		if (shmlimit_rule_name(l, id, name) == 0 && strncmp(name, "~line", 5) == 0 &&
		    shmlimit_peek(l, id, key, strlen(key), 1, &r) >= 0 && r.remaining != r.limit)
			return 0;
	}
	return 1;
}

/* In a strict one each looks in time, none goes in its last milliseconds, and there is one limit. */
static void history(const struct kind *kind, int is_strict)
{
	uint64_t interval_ns = (20 + rng_below(&rng, 180)) * MS, cost = 1 + rng_below(&rng, 2),
		 delay = 1 + rng_below(&rng, 3);
	uint64_t burst = cost + rng_below(&rng, 3), late_ns = is_strict ? 0 : rng_below(&rng, 2) * 30 * MS;
	int two = !is_strict && !kind->brings && rng_below(&rng, 3) == 0;
	uint64_t most_ns;
	double over;
	char spec[400], rate[60];

	if (kind->is_window)
		burst -= burst % cost;
	if (kind->is_window)
		snprintf(rate, sizeof(rate), "%" PRIu64 "/%" PRIu64 "ms", burst, interval_ns * burst / MS);
	else
		snprintf(rate, sizeof(rate), "1/%" PRIu64 "ms burst %" PRIu64, interval_ns / MS, burst);
	snprintf(spec, sizeof(spec), "create=yes rule=r0 %s%s%s %s cost=%" PRIu64 " delay=%" PRIu64 "s%s%s%s",
	         kind->brings ? "" : "rate=\"", kind->brings ? "" : rate, kind->brings ? "" : "\"", kind->words, cost,
	         delay, two ? " rule=r1 rate=\"" : "", two ? rate : "", two ? "\" delay=1s" : "");
	brought = kind->brings ? rate : NULL;
	key_count = two ? 2 : 1;
	open_gate(spec);
	/* A window's tokens come back together. */
	h.batch_ns = kind->is_window ? 2 * SOON : 0;
	h.is_polite = is_strict || rng_below(&rng, 2);
	for (int i = 0; i < EVENTS && h.passes < EVENTS; i++) {
		uint64_t until = now_ns + rng_below(&rng, 2 * interval_ns * cost);

		/* Now and then a crowd comes, most of which goes away. */
		for (uint64_t n = rng_below(&rng, 12) == 0 ? rng_below(&rng, 30) : 1; n > 0; n--)
			(void)come(rng_below(&rng, 3) != 0 ? now_ns + 1 + rng_below(&rng, delay * SECOND) : 0);
		while (next_event(until, late_ns))
			;
		advance(until);
	}
	for (int i = 0; next_event(UINT64_MAX, late_ns); i++)
		if (i == 100000)
			bail("%s: %s: a request waits for ever: %" PRIu64 " ns", kind->name, spec,
			     answer.retry_after_ns);
	over = kind->is_window ? excess_of_window(burst, interval_ns * burst, cost, late_ns)
	                       : excess((double)burst, 1.0 / (double)interval_ns, (double)cost, (double)late_ns);
	all.histories++;
	all.left += h.left;
	all.waited += h.waited;
	all.held += !is_line_empty();
	if (over > 1e-6) {
		all.exceeded++;
		diag("%s: %s: %g too many", kind->name, spec, over);
	}
	if (!is_strict)
		return;
	all.passes += h.passes;
	all.slow += h.late;
	if (h.late != 0)
		diag("%s: %s: %zu denied late, %zu out of order", kind->name, spec, h.late, h.inversions);
	if (interval_ns * cost > 2 * SOON)
		all.inverted += h.inversions;
	most_ns = (kind->is_window ? burst : 3 * cost) * interval_ns + delay * SECOND / 8 + 2 * SOON;
	if (h.gap_ns > most_ns) {
		all.idle++;
		diag("%s: %s: %" PRIu64 " ms without a turn", kind->name, spec, h.gap_ns / MS);
	}
}

static void histories(void)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		memset(&all, 0, sizeof(all));
		for (uint64_t i = scaled(HISTORIES); i > 0; i--)
			history(&kinds[k], i % 4 == 1);
		is((long long)all.exceeded, 0,
		   "%s: no stretch of time sees more than the limit allows, in %zu histories", kinds[k].name,
		   all.histories);
		/* One that looks when another was stopped, by its time, may overtake. */
		ok(all.inverted * 100 <= all.passes && all.passes > 100,
		   "%s: those that wait pass in the order in which they came: of %zu all but %zu", kinds[k].name,
		   all.passes, all.inverted);
		is((long long)all.idle, 0, "%s: no turns are lost while a request waits", kinds[k].name);
		is((long long)all.slow, 0, "%s: each that was let into the line passes, unless it goes", kinds[k].name);
		is((long long)all.held, 0, "%s: a line in which no request waits is empty", kinds[k].name);
		ok(all.left > all.histories && all.waited > all.left, "%s: many waited and left: %zu of %zu",
		   kinds[k].name, all.left, all.waited);
	}
}

/* Twenty wait, and all but the last three go away: these pass with the next turns, and newcomers after them. */
static void moves_up(void)
{
	struct waiter *in_line[20], *new_one;
	uint64_t begun;

	brought = NULL;
	key_count = 1;
	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	begun = now_ns;
	(void)come(0);
	for (int i = 0; i < 20; i++)
		in_line[i] = come(0);
	is((long long)h.waited, 20, "twenty wait");
	is((long long)(come(0) == NULL), 1, "one that would wait for longer than its delay is denied");
	now_ns += 50 * MS;
	for (int i = 0; i < 17; i++)
		leave(in_line[i]);
	new_one = come(0);
	ok(new_one != NULL, "when most have gone there is room for another");
	while (next_event(UINT64_MAX, 0))
		;
	is((long long)h.passes, 5, "all that stay pass");
	ok(h.inversions == 0 && h.pass_ns[4] - begun <= 800 * MS,
	   "those behind move up, in their order: the last passes after %u ms",
	   (unsigned)((h.pass_ns[4] - begun) / MS));
}

/* One that does not look any more, such as a stopped process, keeps those behind it no longer than was expected. */
static void stopped(void)
{
	struct waiter *first, *second;
	uint64_t begun = now_ns;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	first = come(0);
	second = come(0);
	first->poll_ns = UINT64_MAX;
	while (second->pending != NULL && next_event(begun + 10 * SECOND, 0))
		;
	ok(second->pending == NULL && h.passes == 2 && now_ns - begun <= 200 * MS + 2 * SOON,
	   "one that is stopped holds up no other: the next passes after %u ms", (unsigned)((now_ns - begun) / MS));
	leave(first);
}

/* What many that are stopped wait for is not theirs for long. */
static void stopped_crowd(void)
{
	struct waiter *in_line[20];

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	for (int i = 0; i < 20; i++)
		in_line[i] = come(0);
	is((long long)h.waited, 20, "twenty requests wait, and are stopped");
	now_ns += 10 * SECOND;
	h.passes = 0;
	(void)come(0);
	is((long long)h.passes, 1, "a request that comes after the places of stopped ones ended passes at once");
	for (int i = 0; i < 20; i++)
		leave(in_line[i]);
	open_gate("create=yes rule=r0 rate=\"10/s burst 4\" delay=2s");
	for (int i = 0; i < 4; i++)
		(void)come(0);
	for (int i = 0; i < 20; i++)
		in_line[i] = come(0);
	is((long long)h.waited, 20, "twenty requests wait for a limit with a burst, and are stopped");
	now_ns += SECOND;
	h.passes = 0;
	(void)come(0);
	is((long long)h.passes, 1, "a request that finds the limit full passes though others are stopped in its line");
	for (int i = 0; i < 20; i++)
		leave(in_line[i]);
}

/* A token is there that is for one in the line, which has not looked yet since another left. */
static void newcomer(void)
{
	uint64_t begun = now_ns;
	struct waiter *first, *second, *third;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	first = come(0);
	now_ns += MS;
	second = come(0);
	leave(first);
	now_ns = begun + 105 * MS;
	h.passes = 0;
	third = come(0);
	ok(third != NULL && h.passes == 0, "a request that comes when the token of another is there waits behind it");
	while (second->pending != NULL && next_event(UINT64_MAX, 0))
		;
	ok(third != NULL && third->pending != NULL, "the other one passes before it");
	while (next_event(UINT64_MAX, 0))
		;
	is((long long)h.inversions, 0, "both pass in their order");
}

/* Others take the limit's tokens without waiting: those in the line keep their order, however long it takes. */
static void overtaken(void)
{
	uint64_t last = now_ns;
	int stolen = 0;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	for (int i = 0; i < 12; i++) {
		(void)come(0);
		now_ns += MS;
	}
	is(waiting(), 12, "twelve requests wait");
	h.last_came = 0;
	while (waiting() > 0) {
		/* Every second turn, before the first of the line takes it. */
		if (now_ns - last > 200 * MS && shmlimit_reserve(l, shmlimit_rule_find(l, "r0"), "user:42", 7, 1,
		                                                 60 * MS, NULL) == SHMLIMIT_ALLOWED) {
			stolen++;
			last = now_ns;
		}
		if (!next_event(now_ns + 3 * MS, 0))
			now_ns += 3 * MS;
	}
	ok(stolen >= 5, "others take tokens: %d times", stolen);
	is((long long)h.inversions, 0, "those that wait pass in their order though others take tokens: %zu of them",
	   h.passes - 1);
}

/* Requests that wait for two limits, each of which has a crowd that waits for it alone. */
static void several(const char *rate, uint64_t interval_ns)
{
	char spec[200];
	size_t came = 0, denied = 0;

	snprintf(spec, sizeof(spec),
	         "create=yes rule=r0 rate=\"%s burst 1\" delay=%dms rule=r1 rate=\"%s burst 1\" delay=%dms", rate,
	         (int)(16 * interval_ns / MS), rate, (int)(16 * interval_ns / MS));
	open_gate(spec);
	for (int i = 0; i < 600; i++) {
		if (i % 7 == 5) {
			size_t before = h.denied;

			key_count = 2;
			(void)come(0);
			came++;
			denied += h.denied - before;
		}
		key_count = 1;
		for (first_limit = 0; first_limit < 2; first_limit++)
			(void)come(0);
		first_limit = 0;
		for (uint64_t until = now_ns + interval_ns / 2; next_event(until, 0) || now_ns < until;)
			if (!next_event(until, 0))
				advance(until);
	}
	while (next_event(UINT64_MAX, 0))
		;
	key_count = 1;
	ok(h.passes_of[1] > 100 && denied < came / 2, "%s: crowds pass by one of two limits: %zu requests", rate,
	   h.passes_of[1]);
	for (unsigned limit = 1; limit <= 2; limit++)
		ok(excess_of(limit, 1.0 / (double)interval_ns) <= 1e-6,
		   "%s: no stretch of time sees more than limit %u allows", rate, limit);
	/* In the last 20 ms of a crowd's waiting its turns are taken, and those of both limits must be there together. */
	ok(h.passes_of[2] * 3 >= came - denied,
	   "%s: %zu of %zu requests that wait for both limits pass, beside crowds that wait for one", rate,
	   h.passes_of[2], came - denied);
	ok(interval_ns <= SOON || h.passes_of[2] == came - denied,
	   "%s: where turns are further apart than that, all of them do", rate);
}

/* A process that is killed leaves the line at once. */
static void killed(void)
{
	uint64_t begun = now_ns;
	struct waiter *behind;
	pid_t child;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	child = fork();
	if (child < 0)
		bail("fork: %s", strerror(errno));
	if (child == 0)
		_exit(come(0) == NULL);
	if (waitpid(child, &(int){ 0 }, 0) != child)
		bail("no child");
	now_ns += MS;
	behind = come(0);
	ok(behind != NULL, "a request waits behind one of a process that was killed");
	while (behind->pending != NULL && next_event(begun + 10 * SECOND, 0))
		;
	ok(now_ns - begun <= 110 * MS, "it passes at the turn of the other: after %u ms",
	   (unsigned)((now_ns - begun) / MS));
}

/* A pause of the key, while requests wait: none passes before it is over, and then they do so by the limit's rate. */
static void paused(void)
{
	uint64_t begun, first_ns = 0;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	for (int i = 0; i < 5; i++) {
		(void)come(0);
		now_ns += MS;
	}
	is(waiting(), 5, "five requests wait");
	begun = now_ns;
	h.passes = 0;
	h.last_came = 0;
	is(shmlimit_pause(l, shmlimit_rule_find(l, "r0"), "user:42", 7, SECOND), 0, "their key is paused for a second");
	while (next_event(UINT64_MAX, 0))
		;
	if (h.passes > 0)
		first_ns = h.pass_ns[0] - begun;
	is((long long)h.passes, 5, "all of them pass");
	ok(first_ns >= SECOND - TICK, "none passes before the pause is over: the first after %u ms",
	   (unsigned)(first_ns / MS));
	ok(excess(1, 1e-8, 1, 0) <= 1e-6 && h.inversions == 0,
	   "those that waited pass after it in their order, by the limit's rate");

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	for (int i = 0; i < 5; i++)
		(void)come(0);
	h.passes = 0;
	begun = now_ns;
	is(shmlimit_pause(l, shmlimit_rule_find(l, "r0"), "user:42", 7, 3600 * SECOND), 0,
	   "the key is paused for an hour");
	while (next_event(UINT64_MAX, 0))
		;
	ok(h.passes == 0 && h.late == 5 && now_ns - begun < 5 * SECOND,
	   "requests that wait are denied: %zu, after %u ms at most", h.late, (unsigned)((now_ns - begun) / MS));
	ok(come(0) == NULL && h.denied == 1, "a request that comes during the pause is denied");
	is(shmlimit_pause(l, shmlimit_rule_find(l, "r0"), "user:42", 7, 0), 0, "the pause is ended");
}

/* A request has its turn in one limit, and by then no token of the other, which was there when it came. */
static void unused_turn(void)
{
	uint64_t begun = now_ns;
	struct waiter *both;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s rule=r1 rate=\"10/s burst 1\" delay=2s");
	(void)come(0);
	now_ns += MS;
	key_count = 2;
	both = come(0);
	key_count = 1;
	ok(both != NULL, "a request waits for one of its limits");
	now_ns = begun + 99 * MS;
	is(shmlimit_take(l, shmlimit_rule_find(l, "r1"), "user:42", 7, 1, NULL), SHMLIMIT_ALLOWED,
	   "something else takes the token of the other limit");
	while (next_event(begun + 110 * MS, 0))
		;
	(void)come(0);
	is(waiting(), 2, "the request waits on when its turn in the first has come, and another one comes");
	while (next_event(begun + 10 * SECOND, 0))
		;
	is((long long)h.passes, 3, "all pass");
	ok(excess_of(1, 1e-8) <= 1e-6, "a turn that came too early for the other limit is not used later");
}

/* A place of a line, which a request that does not wait any more has left. */
static void switched_off(void)
{
	uint64_t begun = now_ns;
	struct shmlimit_result r;
	char key[32];
	int line;

	open_gate("create=yes rule=r0 rate=\"10/s burst 1\" delay=2s");
	for (int i = 0; i < 4; i++)
		(void)come(0);
	is(waiting(), 3, "three requests wait");
	line = shmlimit_rule_find(l, "~line128-8s");
	snprintf(key, sizeof(key), "%d:user:42", shmlimit_rule_find(l, "r0"));
	is(shmlimit_peek(l, line, key, strlen(key), 1, &r), SHMLIMIT_ALLOWED, "there is room in their line");
	is(r.limit - r.remaining, 3, "each has a place there");
	is(shmlimit_enable(l, 0), 0, "the segment is switched off");
	while (waiting() > 0 && next_event(begun + 10 * SECOND, 0))
		;
	is(waiting(), 0, "they go on then");
	is(shmlimit_enable(l, 1), 0, "the segment is switched on");
	is(shmlimit_peek(l, line, key, strlen(key), 1, &r), SHMLIMIT_ALLOWED, "the line is there still");
	is(r.limit - r.remaining, 0, "all places of the line are free");
}

int main(void)
{
	static const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };

	rng.state = rng_seed();
	l = unit_create("gate.line", &options);
	moves_up();
	stopped();
	stopped_crowd();
	newcomer();
	overtaken();
	killed();
	paused();
	unused_turn();
	several("10/s", 100 * MS);
	several("40/s", 25 * MS);
	several("200/s", 5 * MS);
	switched_off();
	histories();
	shmlimit_gate_close(gate);
	return tap_done();
}
