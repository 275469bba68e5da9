/*
 * rate: limits that come with requests: as text or read before, what decides instead of one that cannot be read, what is
 * reported of it, and the texts that are kept, which threads read while others write them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "gate.h"

static struct shmlimit_gate_key with(const char *key, const char *rate)
{
	return (struct shmlimit_gate_key){ .bytes = key,
		                           .length = (uint32_t)strlen(key),
		                           .rate = rate,
		                           .rate_length = rate != NULL ? (uint32_t)strlen(rate) : 0 };
}

static int ask_of(struct shmlimit_gate *gate, struct shmlimit_gate_key key)
{
	answer.struct_size = sizeof(answer);
	answer.buffer = gate_buffer;
	answer.buffer_size = sizeof(gate_buffer);
	return shmlimit_gate_ask(gate, &key, 1, &answer);
}

static int ask(struct shmlimit_gate *gate, const char *key, const char *rate)
{
	return ask_of(gate, with(key, rate));
}

/* How many of `n` requests pass. */
static int passed(struct shmlimit_gate *gate, const char *key, const char *rate, int n)
{
	int count = 0;

	while (n-- > 0)
		count += ask(gate, key, rate) == SHMLIMIT_ALLOWED;
	return count;
}

static int said(const char *text)
{
	int count = 0;

	for (int i = 0; i < gate_said && i < 8; i++)
		count += strstr(gate_lines[i], text) != NULL;
	return count;
}

static void texts(void)
{
	static const struct {
		const char *text;
		int passed;
		const char *policy; /* the last answer's, which denies; "": it has none */
	} want[] = {
		{ "3/hour", 3, "\"api\";q=3;w=3600" },
		{ "3/hour", 0, "\"api\";q=3;w=3600" }, /* the same key */
		{ "10 per day burst 4", 4, "\"api\";q=4;w=34560" },
		{ "6/day strict", 3, "\"api\";q=3;w=86400" },
		{ "block", 0, "" },
		{ "0/s", 0, "" },
		{ "unlimited", 9, "" },
		{ "7/y", 7, "\"api\";q=7;w=31536000" },
		{ "  5/h  ", 5, "\"api\";q=5;w=3600" },
		{ "5                                                 per                                               hour",
		  5, "\"api\";q=5;w=3600" },
	};
	struct shmlimit_gate *gate = gate_new("create=yes rule=api algorithm=gcra");
	char key[16];

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		/* Twice, the second time it is known. */
		for (int again = 0; again < 2; again++) {
			snprintf(key, sizeof(key), "text%zu%d", i == 1 ? 0 : i, again);
			is(passed(gate, key, want[i].text, 9), want[i].passed, "as many pass as \"%s\" says",
			   want[i].text);
			is_str(gate_field("RateLimit-Policy"), want[i].policy, "its field says so");
		}
	}
	is(gate_said, 0, "nothing is reported of limits that can be read");
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

/* Of each length, in memory that ends where the text does: those that are kept, those that are not, and those that are too long. */
static void lengths(void)
{
	struct shmlimit_gate *gate = gate_new("create=yes rule=api algorithm=gcra rate_error=1/h");
	int wrong = 0, longest = 0;

	for (int length = 3; length <= 300; length++) {
		int burst = 2 + length % 7, count = 0;
		char *text = malloc((size_t)length), key[16], limit[16];
		struct shmlimit_gate_key one = { .bytes = key, .rate = text, .rate_length = (uint32_t)length };

		memset(text, ' ', (size_t)length);
		one.length = (uint32_t)snprintf(key, sizeof(key), "length%d", length);
		snprintf(limit, sizeof(limit), "%d/h", burst);
		memcpy(text + length - 3, limit, 3);
		for (int i = 0; i < 9; i++)
			count += ask_of(gate, one) == SHMLIMIT_ALLOWED;
		if (count == burst)
			longest = length;
		wrong += count != (length < 256 ? burst : 1);
		free(text);
	}
	is(wrong, 0, "a text of fewer than 256 bytes is a limit, and a longer one is none: the longest has %d",
	   longest);
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

static void structures(void)
{
	struct shmlimit_gate *gate = gate_new("create=yes rule=api algorithm=gcra rate=1/h");
	struct shmlimit_limit limit = {
		.struct_size = sizeof(limit), .capacity = 2, .refill = 2, .period_ns = 60 * SECOND
	};
	struct {
		struct shmlimit_limit limit;
		uint64_t more;
	} longer = { .limit = limit, .more = 1 };
	struct shmlimit_gate_key key = with("parsed", "9/h");

	key.parsed = &limit;
	is(ask_of(gate, key) + ask_of(gate, key), 0, "a limit that was read before comes first");
	is(ask_of(gate, key), SHMLIMIT_DENIED, "it decides");
	is_str(gate_field("RateLimit-Policy"), "\"api\";q=2;w=60", "it is in the field");
	limit.struct_size = 8;
	is(ask_of(gate, key), -EINVAL, "a limit that is too short is refused");
	key.parsed = &longer.limit;
	longer.limit.struct_size = sizeof(longer);
	is(ask_of(gate, key), -E2BIG, "a limit is refused that says what this library does not know");
	longer.more = 0;
	is(ask_of(gate, key), SHMLIMIT_DENIED, "one that has more members is obeyed if they are zero");
	longer.limit.capacity = 0;
	is(ask_of(gate, key), SHMLIMIT_DENIED, "a limit of nothing in a time is no limit");
	is(answer.error, -EDOM, "the failure policy decides, and the answer says why");
	key = with("parsed", NULL);
	key.rate_length = 3;
	is(ask_of(gate, key), -EINVAL, "a text must be given");
	key = with("parsed", "1/s");
	key.share = 1;
	is(ask_of(gate, key), -EINVAL, "a limit without share= takes no share");
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

/* What cannot be read, and what is missing. */
static void instead(void)
{
	struct shmlimit_gate *gate = gate_new("create=yes rule=api algorithm=gcra rate=2/h");
	char nul[] = "5/h\0/h";
	struct shmlimit_gate_key key = with("nul", nul);

	is(passed(gate, "k", "7/fortnight", 9), 2, "where the text cannot be read the rule's own limit decides");
	is(gate_said, 1, "one line says so, not one for each request");
	is(said("rule api: the rate \"7/fortnight\" of a request: fortnight is not a unit"), 1,
	   "it has the text, and what is wrong");
	is(said("the rule's own limit decides"), 1, "it says what decides: %s", gate_lines[0]);
	is(passed(gate, "empty", "", 9), 2, "an empty text leaves it to the rule, too");
	is(passed(gate, "none", NULL, 9), 2, "no text leaves it to the rule, too");
	key.rate_length = sizeof(nul) - 1;
	is(ask_of(gate, key), SHMLIMIT_ALLOWED, "a NUL does not end a text");
	is(answer.remaining, 1, "it makes it unreadable");
	is(ask(gate, "window", "20/h window"), SHMLIMIT_ALLOWED, "a window does not come with a request");
	is(answer.remaining, 1, "the rule's own limit decides");
	is(ask(gate, "range", "1/y burst 3"), SHMLIMIT_ALLOWED, "what is out of range is not used");
	is(answer.remaining, 1, "the rule's own limit decides");
	is(gate_said, 1, "all this within a minute is one line");
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);

	gate = gate_new("create=yes rule=api algorithm=gcra rate_error=4/h");
	is(passed(gate, "k", "\033[31m", 9), 4, "rate_error= decides");
	is(said("the rate \"?[31m\" of a request"), 1, "what acts on a terminal is not reported: %s", gate_lines[0]);
	is(said("rate_error= decides"), 1, "the line says so");
	is(passed(gate, "empty", "", 9), 4, "rate_error= decides for an empty text, too");
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);

	gate = gate_new("create=yes rule=api algorithm=gcra");
	is(ask(gate, "k", ""), SHMLIMIT_DENIED, "without any limit the failure policy decides: closed");
	is(answer.status, 503, "by the status 503");
	is(answer.error, -EDOM, "the answer says why");
	is(said("rule api: a request brings no limit, and the rule has none of its own: requests that need it are refused"),
	   1, "the log says why: %s", gate_lines[0]);
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

/* Of a segment whose rule is of another algorithm. */
static void other_rule(void)
{
	struct shmlimit *l = unit_create("gate_rate", NULL);
	struct shmlimit_gate *gate;

	unit_rule(l, "api", 2, 2, SECOND);
	gate = gate_new("rule=api algorithm=gcra");
	is(said("rule api: it is not a gcra rule, which limits that come with requests need: requests that need it are refused"),
	   1, "a rule of another algorithm is reported at once: %s", gate_lines[0]);
	is(ask(gate, "k", "9/s"), SHMLIMIT_DENIED,
	   "a request that brings a limit is a failure, never limited by another");
	is(answer.error, -EOPNOTSUPP, "the answer says why");
	shmlimit_gate_close(gate);
	gate = gate_new("create=yes rule=api algorithm=gcra");
	is(ask(gate, "k", "9/h"), SHMLIMIT_ALLOWED, "with create=yes the rule becomes one");
	is(answer.remaining, 8, "it decides by the request's limit");
	shmlimit_gate_close(gate);
	unit_rule(l, "funnel", 2, 2, SECOND);
	for (int peeks = 0; peeks < 2; peeks++) {
		gate = gate_new(peeks ? "rule=funnel peek" : "rule=funnel");
		gate_said = 0;
		is(ask(gate, "k", NULL), SHMLIMIT_ALLOWED, "a spec need not say a rule's algorithm");
		is(ask(gate, "k", "9/s") + ask(gate, "k", "9/s"), 2 * SHMLIMIT_DENIED,
		   "a limit that comes with a request is a failure there");
		is(said("rule funnel: a request brings a limit, and the rule is not a gcra rule (algorithm=gcra): requests that need it are refused"),
		   1, "the log says why, once: %s", gate_lines[0]);
		shmlimit_gate_close(gate);
	}
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* Places: the rule's number is the most that a request's can be. */
static void places(void)
{
	struct shmlimit_gate *gate = gate_new("create=yes rule=jobs rate=\"4 at once for 2 days\" "
	                                      "rule=peeked rate=\"4 at once\" peek rule=plans algorithm=gcra");
	static const struct {
		const char *text;
		int passed;
		const char *policy;
	} want[] = {
		{ "2 at once", 2, "\"jobs\";q=2;qu=\"concurrent-requests\"" },
		{ "1 at once", 0, "\"jobs\";q=1;qu=\"concurrent-requests\"" },
		{ "3 at once", 1, "\"jobs\";q=3;qu=\"concurrent-requests\"" },
		{ "9 at once", 1, "\"jobs\";q=4;qu=\"concurrent-requests\"" },
		{ "block", 0, "" },
		{ "unlimited", 9, "" },
		{ "", 0, "\"jobs\";q=4;qu=\"concurrent-requests\"" },
		{ "3 at once for 1m", 0, "\"jobs\";q=4;qu=\"concurrent-requests\"" },
	};
	struct shmlimit_gate_held held[16];
	int entered = 0;

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		int count = 0;

		for (int n = 0; n < 9; n++) {
			struct shmlimit_gate_key key = with("k", want[i].text);

			answer.struct_size = sizeof(answer);
			answer.buffer = gate_buffer;
			answer.buffer_size = sizeof(gate_buffer);
			held[entered].struct_size = sizeof(held[entered]);
			if (shmlimit_gate_enter(gate, &key, 1, &answer, &held[entered]) != SHMLIMIT_ALLOWED)
				continue;
			count++;
			entered += held[entered].count != 0;
		}
		is(count, want[i].passed, "as many enter as \"%s\" says", want[i].text);
		is_str(gate_field("RateLimit-Policy"), want[i].policy, "its field says so");
	}
	is(entered, 4, "each that is limited has a place");
	is(gate_said, 1, "what is no number of places is reported");
	is(said("the rate \"3 at once for 1m\" of a request: how long a place is held is the rule's"), 1,
	   "the line says why: %s", gate_lines[0]);
	for (int i = 0; i < entered; i++) {
		struct shmlimit_gate_key key = with("k", NULL);

		is(shmlimit_gate_leave(gate, &key, 1, &held[i]), 0, "each is left");
	}
	is(passed(gate, "asked", "2 at once", 9), 2, "a request that only asks is within its number too");
	struct shmlimit_gate_key peeks = with("asked", "1 at once");
	peeks.limit = 1;
	is(ask_of(gate, peeks), SHMLIMIT_ALLOWED, "a peek is by the request's number");
	gate_said = 0;
	is(ask(gate, "rate", "9/s"), SHMLIMIT_DENIED, "a rate is a failure there");
	is(answer.error, -EOPNOTSUPP, "the answer says why");
	peeks.limit = 2;
	is(ask_of(gate, peeks), SHMLIMIT_DENIED, "places are a failure where the rule has a rate");
	is(said("rule plans: a request brings a number of places, and the rule has none (rate=\"20 at once\"): requests that need it are refused"),
	   1, "the log says so: %s", gate_lines[gate_said - 1]);
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

/* Several limits in one request, with limits of their own each, all or none. */
static void several(void)
{
	struct shmlimit_gate *gate =
		gate_new("create=yes rule=user algorithm=gcra rule=site rate=5/h rule=ban algorithm=gcra peek "
	                 "rule=trial algorithm=gcra dry_run");
	struct shmlimit_gate_key keys[4] = { with("alice", "3/h"), with("all", NULL), with("ban", "unlimited"),
		                             with("trial", "1/h") };
	int passes = 0;

	for (uint32_t i = 0; i < 4; i++)
		keys[i].limit = i;
	for (int i = 0; i < 9; i++) {
		answer.struct_size = sizeof(answer);
		answer.buffer = NULL;
		passes += shmlimit_gate_ask(gate, keys, 4, &answer) == SHMLIMIT_ALLOWED;
		if (i == 1)
			is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "a dry run is by the request's limit, too");
	}
	is(passes, 3, "the smaller one decides");
	is(answer.denied_by, 0, "it is named");
	keys[0] = with("bob", "9/h");
	passes = 0;
	for (int i = 0; i < 9; i++)
		passes += shmlimit_gate_ask(gate, keys, 4, &answer) == SHMLIMIT_ALLOWED;
	is(passes, 2, "what a denial took was given back");
	is(answer.denied_by, 1, "the other one denies next");
	keys[2].rate = "0/s";
	keys[2].rate_length = 3;
	is(shmlimit_gate_ask(gate, keys, 4, &answer), SHMLIMIT_DENIED, "a peek is by the request's limit");
	is(answer.denied_by, 2, "it comes first");
	shmlimit_gate_close(gate);
	shmlimit_destroy(unit_name);
}

/* ---- Texts that are kept ---- */

#define THREADS 4
#define TEXTS 1000 /* four times as many as are kept */
#define ROUNDS 20000

static struct shmlimit_gate *shared;

static void *reads(void *arg)
{
	uint64_t random = (uintptr_t)arg * 7919, faults = 0;
	struct shmlimit_gate_answer own = { .struct_size = sizeof(own) };
	char key[24], rate[24];

	for (int i = 0; i < ROUNDS; i++) {
		unsigned n =
			(unsigned)((random = random * 6364136223846793005u + 1442695040888963407u) >> 33) % TEXTS + 1;
		struct shmlimit_gate_key one;

		snprintf(rate, sizeof(rate), "%u/h burst %u", n % 7 + 1, n);
		snprintf(key, sizeof(key), "%u", n);
		one = with(key, rate);
		/* As much as there is: none is left, unless a token came back. */
		one.cost = n + 1;
		faults +=
			shmlimit_gate_ask(shared, &one, 1, &own) != SHMLIMIT_DENIED || own.retry_after_ns != UINT64_MAX;
		one.cost = n;
		(void)shmlimit_gate_ask(shared, &one, 1, &own);
		faults += own.retry_after_ns == UINT64_MAX;
	}
	return (void *)(uintptr_t)faults;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	uintptr_t faults = 0;

	shared = gate_new("create=yes slots=8192 rule=api algorithm=gcra");
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, reads, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++) {
		void *found;

		pthread_join(thread[i], &found);
		faults += (uintptr_t)found;
	}
	is(faults, 0, "%d threads with %d limits each decide by the one that they bring", THREADS, TEXTS);
	shmlimit_gate_close(shared);
}

int main(void)
{
	shmlimit_close(unit_create("gate_rate", NULL));
	shmlimit_destroy(unit_name);
	texts();
	lengths();
	structures();
	instead();
	other_rule();
	places();
	several();
	threads();
	shmlimit_destroy(unit_name);
	return tap_done();
}
