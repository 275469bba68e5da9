/*
 * places: requests that hold places while they last, beside limits of other kinds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/wait.h>

#include "entered.h"

static void enters(void)
{
	struct shmlimit_gate *g =
		gate_new("create=yes slots=64 rule=r rate=\"2 at once for 2 days\" rule=day rate=5/day");
	struct shmlimit_gate_held a, b, c;

	is(ENTER(g, &a, "k", 0, 1), SHMLIMIT_ALLOWED, "the first of two places is given");
	is(a.count, 1, "one place is held: the other limit has none");
	is_str(gate_field("RateLimit-Policy"), "\"r\";q=2;qu=\"concurrent-requests\"",
	       "the policy says how many at once");
	is(ENTER(g, &b, "k", 1, 0), SHMLIMIT_ALLOWED, "the second place is given");
	is(ENTER(g, &c, "k", 0, 1), SHMLIMIT_DENIED, "a third request is denied");
	ok(c.count == 0 && answer.denied_by == 0 && answer.status == 429, "the answer names the limit of places");
	is_str(gate_field("Retry-After"), "", "nobody knows when a place will become free, so there is no Retry-After");
	is(left("day", "k"), 3, "a denied place costs no token of the other limit");
	is(ENTER(g, &c, "other", 0), SHMLIMIT_ALLOWED, "another key has its own places");
	is(shmlimit_gate_leave(g, keys, key_count, &c), 0, "a place can be left");
	is(c.count, 0, "nothing is held after leaving");
	is(left("r", "other"), 2, "all places are free when the last was left");
	is(shmlimit_gate_leave(g, keys, key_count, &c), 0, "leaving again is no error");
	keys[0] = (struct shmlimit_gate_key){ .limit = 1, .bytes = "k", .length = 1 };
	keys[1] = (struct shmlimit_gate_key){ .limit = 0, .bytes = "k", .length = 1 };
	shmlimit_gate_leave(g, keys, 2, &b);
	is(left("r", "k"), 1, "a place whose key is the second of two is left");
	keys[0].limit = 0;
	shmlimit_gate_leave(g, keys, 2, &a);
	is(left("r", "k"), 2, "a place whose key is the first of two is left");
	shmlimit_gate_close(g);
}

/* A rule that is off gives no place, and one that rehearses gives none that is taken. */
static void modes(void)
{
	struct shmlimit_gate *g = gate_new("create=yes rule=mode rate=\"1 at once for 2 days\"");
	static const uint32_t held[] = { [SHMLIMIT_OFF] = 0, [SHMLIMIT_DRY_RUN] = 1 };

	for (uint32_t mode = SHMLIMIT_DRY_RUN; mode <= SHMLIMIT_OFF; mode++) {
		struct shmlimit_gate_held a, b;

		set_mode(mode);
		is(ENTER(g, &a, "m", 0), SHMLIMIT_ALLOWED, "a rule in mode %u allows a first request", mode);
		is(a.count, held[mode], "a first request holds what a rule in mode %u gives", mode);
		is(ENTER(g, &b, "m", 0), SHMLIMIT_ALLOWED, "a rule in mode %u allows a second request", mode);
		is(b.count, 0, "a second request holds no place in mode %u", mode);
		shmlimit_gate_leave(g, keys, key_count, &a);
	}
	shmlimit_gate_close(g);
}

static void all_or_none(void)
{
	struct shmlimit_gate *g = gate_new("create=yes rule=r rate=\"2 at once for 2 days\" rule=one rate=1/day rule=s "
	                                   "rate=\"1 at once for 2 days\"");
	struct shmlimit_gate_held a, b;

	is(ENTER(g, &a, "all", 0, 1, 2), SHMLIMIT_ALLOWED, "places of two limits and a token are given together");
	is(a.count, 2, "two places are held");
	is(ENTER(g, &b, "all", 1, 0), SHMLIMIT_DENIED, "without a token the request is denied");
	ok(b.count == 0 && answer.denied_by == 0, "the answer names the limit of tokens");
	is(left("r", "all"), 1, "a request without a token leaves its place again");
	is(ENTER(g, &b, "all", 0, 2), SHMLIMIT_DENIED, "a request without a place of the second limit is denied");
	is(left("r", "all"), 1, "it leaves its place of the first limit again");
	keys[0] = (struct shmlimit_gate_key){ .limit = 0, .bytes = "all", .length = 3 };
	keys[1] = (struct shmlimit_gate_key){ .limit = 1, .bytes = "all", .length = 3 };
	keys[2] = (struct shmlimit_gate_key){ .limit = 2, .bytes = "all", .length = 3 };
	shmlimit_gate_leave(g, keys, 3, &a);
	ok(left("r", "all") == 2 && left("s", "all") == 1, "both places are left at once");
	shmlimit_gate_close(g);
}

static void dry_runs(void)
{
	struct shmlimit_gate *g = gate_new("create=yes rule=s rate=\"1 at once for 2 days\" dry_run");
	struct shmlimit_gate_held a, b;

	is(ENTER(g, &a, "dry", 0), SHMLIMIT_ALLOWED, "a dry run of places lets a request go on");
	is(a.count, 1, "a dry run of places holds one, so that it shows what the limit would do");
	is(ENTER(g, &b, "dry", 0), SHMLIMIT_ALLOWED, "a dry run without a free place lets the request go on");
	ok(b.count == 0 && answer.outcome == SHMLIMIT_GATE_REJECTED_DRY_RUN,
	   "a dry run says that it would have denied");
	ENTER(g, &b, "dry", 0);
	shmlimit_gate_leave(g, keys, key_count, &a);
	is(left("s", "dry"), 1, "a place of a dry run is left");
	shmlimit_gate_close(g);
}

/* A place that was taken by shmlimit_gate_ask() cannot be left. */
static void asks(void)
{
	struct shmlimit_gate *g = gate_new("rule=r");

	is(ASK(g, "asked", 0), SHMLIMIT_ALLOWED, "a request that only asks gets a place");
	is(left("r", "asked"), 1, "a request that only asks keeps its place until the period is over");
	shmlimit_gate_close(g);
}

static void replaced(void)
{
	struct shmlimit_gate *g = gate_new("create=yes slots=64 rule=r rate=\"2 at once for 2 days\"");
	struct shmlimit_gate_held a, b;

	ENTER(g, &a, "k", 0);
	shmlimit_destroy(unit_name);
	(void)shmlimit_gate_attach(g);
	is(ENTER(g, &b, "k", 0), SHMLIMIT_ALLOWED, "a new segment gives its own places");
	is(shmlimit_gate_leave(g, keys, key_count, &a), 0, "a place of a segment that is gone can be left");
	is(left("r", "k"), 1, "leaving a place of a segment that is gone frees none of the new one");
	shmlimit_destroy(unit_name);
	is(shmlimit_gate_leave(g, keys, key_count, &b), 0,
	   "a place of a segment that was destroyed just now can be left");
	(void)shmlimit_gate_attach(g);
	shmlimit_gate_close(g);
}

static void forked(void)
{
	struct shmlimit_gate *g = gate_new("rule=r");
	struct shmlimit_gate_held a;
	int status;
	pid_t pid;

	ENTER(g, &a, "forked", 0);
	pid = fork();
	if (pid == 0)
		_exit(shmlimit_gate_leave(g, keys, key_count, &a) != 0);
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child leaves the place of its parent");
	is(left("r", "forked"), 2, "the place that a child left is free");
	shmlimit_gate_close(g);
}

static void wrong(void)
{
	struct shmlimit_gate *g = gate_new("rule=r rule=day cost=2");
	struct shmlimit_gate_held held;
	char longest[3000];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	is(ENTER(g, &held, longest, 0), SHMLIMIT_ALLOWED, "a key of 2,999 bytes gets a place");
	is(shmlimit_gate_leave(g, keys, 0, &held), -EINVAL, "leaving needs the keys of entering");
	keys[0].limit = 7;
	is(shmlimit_gate_leave(g, keys, key_count, &held), -EINVAL, "leaving needs a limit of the gate");
	keys[0].limit = 0;
	is(held.count, 1, "a place is still held when leaving it failed");
	is(shmlimit_gate_leave(g, keys, key_count, &held), 0, "a place of a key of 2,999 bytes is left");
	is(ENTER(g, &held, longest, 0, 0), SHMLIMIT_ALLOWED, "one request may hold two places of a key");
	is(held.count, 2, "two places of a key are held");
	shmlimit_gate_leave(g, keys, key_count, &held);
	is(ENTER(g, &held, longest, 0, 0), SHMLIMIT_ALLOWED, "two places of a key are both left");
	shmlimit_gate_leave(g, keys, key_count, &held);
	held.struct_size = 8;
	is(shmlimit_gate_enter(g, keys, key_count, &answer, &held), -EINVAL, "entering needs the whole structure");
	is(shmlimit_gate_enter(g, keys, key_count, &answer, NULL), -EINVAL,
	   "entering needs somewhere to put the places");
	is(shmlimit_gate_leave(NULL, keys, key_count, &held), -EINVAL, "leaving needs a gate");
	held.struct_size = sizeof(held);
	is(shmlimit_gate_enter(g, keys, SHMLIMIT_REQUESTS_MAX + 1, &answer, &held), -EINVAL,
	   "a request has at most 16 limits");
	is(held.count, 0, "nothing is held after an error");
	shmlimit_gate_close(g);
}

/* A worker that is killed gives its places back; that of one that lives lasts, or is cut off. */
static void holders(void)
{
	struct shmlimit_gate *g = gate_new("create=yes slots=64 rule=lasts rate=\"1 at once for 1ms\" "
	                                   "rule=cut rate=\"1 at once at most 1ms each\"");
	struct shmlimit_gate_held a, b;
	int ends[2];
	char word = 0;
	pid_t pid;

	if (pipe(ends) != 0)
		bail("pipe");
	pid = fork();
	if (pid == 0) {
		(void)ENTER(g, &a, "k", 0, 1);
		if (write(ends[1], &word, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &word, 1) != 1)
		bail("no child");
	usleep(5000);
	is(ENTER(g, &b, "k", 0), SHMLIMIT_DENIED, "a place lasts longer than its period while its process lives");
	is(ENTER(g, &b, "k", 1), SHMLIMIT_ALLOWED, "a place that is cut off does not last longer than its period");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* It was found alive just now. */
	for (int i = 0; i < 1000 && ENTER(g, &a, "k", 0) != SHMLIMIT_ALLOWED; i++)
		usleep(1000);
	is(a.count, 1, "the place of a killed process goes to the next request");
	shmlimit_gate_leave(g, keys, key_count, &a);
	close(ends[0]);
	close(ends[1]);
	shmlimit_gate_close(g);
}

int main(void)
{
	shmlimit_close(unit_create("gate.places", NULL));
	shmlimit_destroy(unit_name);
	enters();
	all_or_none();
	dry_runs();
	modes();
	asks();
	wrong();
	forked();
	replaced();
	holders();
	return tap_done();
}
