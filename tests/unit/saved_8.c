/*
 * saved_8: what the library of layout 8 saved can be loaded, also of a segment that had grown, with keys in both of its
 * tables. It grew for the sake of logs, too: to a table of as many slots, whose keys then have longer ones. Each key has
 * what that library said that it had, at the moment of saving and 23 hours later. The calls before were:
 *
 *	rules funnel (10, one a day), window (5 a day), plans (GCRA: 8, one a day), in a segment of 32 slots
 *	a: 1 token 20 hours before, 2 tokens 10 hours before; b: 3, 15 hours before; c: 5, 5 hours before; d: 1, 2 hours before
 *	MORE_SLOTS     the segment grows to 64 slots
 *	LARGER_LOGS    the window becomes 20 a day; f: 17 tokens of it, an hour before
 *	b: 1 token, e: 2 tokens, an hour before
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "saved.h"

#define HOUR (3600 * SECOND)
#define T0 (10000 * 24 * HOUR)

/* What was answered for a key, that number of hours after saving. */
struct told {
	const char *rule;
	char key;
	uint64_t hours;
	int answer;
	uint64_t remaining, full_after_ns;
};

#include "saved_8.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Keys that have something else than they were said to have. */
static int differ(struct shmlimit *l, const struct told *told, size_t n)
{
	int wrong = 0;

	for (size_t i = 0; i < n; i++) {
		struct shmlimit_result r = { 0 };
		int id = shmlimit_rule_find(l, told[i].rule);
		int answer = shmlimit_peek(at_time(l, T0 + told[i].hours * HOUR), id, &told[i].key, 1, 1, &r);
		uint64_t late_ns = r.reset_after_ns - told[i].full_after_ns + SECOND / 1000;

		/* A window's words may have other ticks, of less than a microsecond. */
		if (answer != told[i].answer || r.remaining != told[i].remaining || late_ns > SECOND / 500) {
			diag("%s %c, after %llu hours: %d, %llu left, full after %llu ns; was %d, %llu, %llu",
			     told[i].rule, told[i].key, (unsigned long long)told[i].hours, answer,
			     (unsigned long long)r.remaining, (unsigned long long)r.reset_after_ns, told[i].answer,
			     (unsigned long long)told[i].remaining, (unsigned long long)told[i].full_after_ns);
			wrong++;
		}
	}
	return wrong;
}

/* As much as is left, and no more: also the cells behind the word are right. */
static int excess(struct shmlimit *l, const struct told *told, size_t n)
{
	int wrong = 0;

	for (size_t i = 0; i < n; i++) {
		int id = shmlimit_rule_find(l, told[i].rule);

		if (told[i].hours == 0)
			wrong += told[i].remaining > 0 && shmlimit_take(at_time(l, T0), id, &told[i].key, 1,
			                                                told[i].remaining, NULL) != SHMLIMIT_ALLOWED;
		if (told[i].hours == 0)
			wrong += shmlimit_take(at_time(l, T0), id, &told[i].key, 1, 1, NULL) != SHMLIMIT_DENIED;
	}
	return wrong;
}

static void check(const char *title, int fd, const struct told *told, size_t n, uint64_t slots)
{
	struct rebase given = { 0, T0, 0 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l, *again;
	int copy = memfd_create("copy", MFD_CLOEXEC);
	char name[96];

	is(shmlimit_load(unit_name, fd, SHMLIMIT_LOAD_CHECK_ONLY, NULL), 0, "%s: the file can be checked", title);
	lseek(fd, 0, SEEK_SET);
	if (!ok(load(unit_name, fd, 0, &given, &l) == 0, "%s: the file can be loaded", title))
		return;
	shmlimit_info(l, &info);
	is(info.slots, slots, "%s: the segment has %llu slots", title, (unsigned long long)slots);
	is(differ(l, told, n), 0, "%s: each key has what it had", title);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "%s: the segment is sound", title);
	is(save(l, copy, when_given(T0)), 0, "%s: what was loaded can be saved", title);
	lseek(copy, 0, SEEK_SET);
	snprintf(name, sizeof(name), "%s.copy", unit_name);
	given.then_ns = T0;
	is(load(name, copy, 0, &given, &again), 0, "%s: it can be loaded again", title);
	is(differ(again, told, n), 0, "%s: each key has what it had when it was loaded twice", title);
	is(excess(again, told, n), 0, "%s: each key gets what it has left, and no more", title);
	shmlimit_close(again);
	shmlimit_destroy(name);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	close(copy);
	close(fd);
}

int main(void)
{
	shmlimit_close(unit_create("saved_8", NULL));
	unit_gone();
	check("two tables, the larger one on the way", saved_file(MORE_SLOTS, COUNT(MORE_SLOTS), STATE_VERSION_3),
	      MORE_SLOTS_TOLD, COUNT(MORE_SLOTS_TOLD), 64);
	check("two tables of as many slots, the second of longer logs",
	      saved_file(LARGER_LOGS, COUNT(LARGER_LOGS), STATE_VERSION_3), LARGER_LOGS_TOLD, COUNT(LARGER_LOGS_TOLD),
	      32);
	return tap_done();
}
