/*
 * pairs: two processes make a call each on the same few slots. One is stopped
 * somewhere in its call, the other somewhere in its own; then one is let go to
 * its end, and is followed by the other, or that one is killed. Whatever became
 * of both is what one after the other would have made of it, in either order:
 * the same answers and the same funnels, so that nothing is admitted twice and
 * nothing is lost (I1, I2, I3). Of one that was killed, the other's answer and
 * each funnel are as if it had not begun, or had finished (I4).
 *
 * Where to stop: before each instruction that looks at the segment, and after
 * each that changed it; elsewhere no process can tell the difference. For what the
 * one does to the other it is enough that either of them stands after a change
 * (or at its beginning), and the other one anywhere. Of these schedules, and of
 * those with both anywhere, SCHEDULES are drawn; CRASH_FULL=1: all of the first kind,
 * and as many of the second.
 *
 * A process that stands still holds nothing: so what it would leave if it were
 * killed is looked at before it goes on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../tap.h"

#ifndef __x86_64__

int main(void)
{
	return tap_skip_all("instructions are read, and stopped at, as those of x86-64");
}

#else

#include "audit.h"
#include "trace.h"

#define SCHEDULES 300 /* of each pair */
#define PREPARED 3
#define SKEW_NS 500000000 /* between clocks: a slot has refilled by one and not by the other */
#define SECRETS_MAX 1000  /* tried, for keys to have the slots that a pair is about */
#define PLAYS_MAX 10
#define GROUPS_MAX 32 /* states of the segment that a call makes */
#define ASKED 4       /* the first keys watched: those that calls ask for */

static const struct pair {
	const char *title;
	struct call before[PREPARED];
	struct call call[2];
	uint32_t on_full;
	uint64_t gives_back; /* tokens that the first may hold, and then gives back */
	int apart;           /* alone, each would give "k" another slot */
	uint32_t algorithm;  /* of "subject" */
} pairs[] = {
	/* clang-format off */
	{ "two claims of one key", { { 0 } }, { { TAKE, "k", 1 }, { TAKE, "k", 1 } } },
	{ "two claims of one key, for all it has", { { 0 } }, { { TAKE, "k", 5 }, { TAKE, "k", 3 } } },
	{ "two claims of one key that a dead one began", { { ABANDON, "k" } },
	  { { TAKE, "k", 4 }, { TAKE, "k", 2 } } },
	{ "two claims of one key, that choose other slots",
	  { { HOLD, NULL, 14 }, { TAKE, "m", 5, -5 * (int64_t)HOUR_NS }, { TAKE, "n", 1, -2 * (int64_t)HOUR_NS } },
	  { { TAKE, "k", 5 }, { TAKE, "k", 3, -SKEW_NS } }, SHMLIMIT_FULL_DENY, .apart = 1 },
	{ "two claims of one key, that choose other slots, the later first",
	  { { HOLD, NULL, 14 }, { TAKE, "m", 5, -5 * (int64_t)HOUR_NS }, { TAKE, "n", 1, -2 * (int64_t)HOUR_NS } },
	  { { TAKE, "k", 3, -SKEW_NS }, { TAKE, "k", 5 } }, SHMLIMIT_FULL_DENY, .apart = 1 },
	{ "claims of two keys, a slot and a dead one's left", { { HOLD, NULL, 14 }, { ABANDON, "m" } },
	  { { TAKE, "k", 1 }, { TAKE, "l", 1 } }, SHMLIMIT_FULL_DENY },
	{ "claims of two keys, one slot left", { { HOLD, NULL, 15 } }, { { TAKE, "k", 1 }, { TAKE, "l", 1 } },
	  SHMLIMIT_FULL_DENY },
	{ "two reclaims of one slot", { { HOLD, NULL, 15 }, { TAKE, "m", 1, -(int64_t)DAY_NS } },
	  { { TAKE, "k", 1 }, { TAKE, "l", 1 } }, SHMLIMIT_FULL_DENY },
	{ "a reclaim and a take by the key that had the slot", { { HOLD, NULL, 15 }, { TAKE, "l", 2, -(int64_t)DAY_NS } },
	  { { TAKE, "k", 1 }, { TAKE, "l", 1 } }, SHMLIMIT_FULL_DENY },
	{ "two takes of the last token", { { TAKE, "k", 4 } }, { { TAKE, "k", 1 }, { TAKE, "k", 1 } } },
	{ "two charges", { { TAKE, "k", 1 } }, { { CHARGE, "k", 2 }, { CHARGE, "k", 3 } } },
	{ "a charge and a refund", { { TAKE, "k", 3 } }, { { CHARGE, "k", 4 }, { REFUND, "k", 3 } } },
	{ "two conversions", { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } },
	  { { TAKE, "k", 2 }, { TAKE, "k", 2 } } },
	{ "a take and a new capacity", { { TAKE, "k", 1 } },
	  { { TAKE, "k", 1 }, { RULE_SET, .params = { .capacity = 3 } } } },
	{ "a claim and a new capacity", { { 0 } }, { { TAKE, "k", 1 }, { RULE_SET, .params = { .capacity = 9 } } } },
	{ "a take and a reset", { { TAKE, "k", 2 } }, { { TAKE, "k", 1 }, { RESET_KEY, "k" } } },
	{ "a claim and a reset of all", { { TAKE, "l", 2 } }, { { TAKE, "k", 1 }, { RESET_ALL } } },
	{ "two evictions", { { HOLD, NULL, 6 }, { FILL, NULL, 10 } }, { { TAKE, "k", 3 }, { TAKE, "l", 3 } } },
	{ "a reservation and a refund", { { TAKE, "k", 4 } }, { { RESERVE, "k", 3 }, { REFUND, "k", 2 } } },
	{ "two reservations, one too many", { { TAKE, "k", 4 } }, { { RESERVE, "k", 2 }, { RESERVE, "k", 3 } } },
	{ "window: two claims of one key", { { 0 } }, { { TAKE, "k", 2 }, { TAKE, "k", 1 } }, .algorithm = SHMLIMIT_WINDOW },
	{ "window: two takes", { { TAKE, "k", 2 } }, { { TAKE, "k", 2 }, { TAKE, "k", 1 } }, .algorithm = SHMLIMIT_WINDOW },
	{ "window: two takes of the last place", { { TAKE, "k", 4 } }, { { TAKE, "k", 1 }, { TAKE, "k", 1 } },
	  .algorithm = SHMLIMIT_WINDOW },
	{ "window: two that help a dead one", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 2 } },
	  { { TAKE, "k", 1 }, { TAKE, "k", 1 } }, .algorithm = SHMLIMIT_WINDOW },
	{ "window: two laps begun", { { TAKE, "k", 5, -6 * (int64_t)HOUR_NS } },
	  { { TAKE, "k", 2 }, { TAKE, "k", 3 } }, .algorithm = SHMLIMIT_WINDOW },
	{ "window: a take and a refund", { { TAKE, "k", 4 } }, { { TAKE, "k", 1 }, { REFUND, "k", 2 } },
	  .algorithm = SHMLIMIT_WINDOW },
	{ "window: a take and a new capacity", { { TAKE, "k", 1 } },
	  { { TAKE, "k", 1 }, { RULE_SET, .params = { .capacity = 3 } } }, .algorithm = SHMLIMIT_WINDOW },
	{ "window: a take and a reset", { { TAKE, "k", 2 } }, { { TAKE, "k", 1 }, { RESET_KEY, "k" } },
	  .algorithm = SHMLIMIT_WINDOW },
	{ "lease: two calls that ask, of a new key", { { 0 } }, { { LEASE, "k", 1 }, { LEASE, "k", 2 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: two calls that ask, beside what is left", { { DEPOSIT, "k", 3 } },
	  { { LEASE, "k", 3 }, { LEASE, "k", 4 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: two calls that ask, after one that was killed", { { LEASE, "k", 2, -2 * (int64_t)HOUR_NS } },
	  { { LEASE, "k", 1 }, { LEASE, "k", 1 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a call that asks, and the late answer to another", { { LEASE, "k", 2, -2 * (int64_t)HOUR_NS } },
	  { { LEASE, "k", 1 }, { DEPOSIT, "k", 4 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a call that asks, and one that spends", { { DEPOSIT, "k", 3 } },
	  { { LEASE, "k", 3 }, { LEASE, "k", 2 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and a take", { { LEASE, "k", 1 } }, { { DEPOSIT, "k", 4 }, { LEASE, "k", 2 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and a take, of a new key", { { 0 } }, { { DEPOSIT, "k", 4 }, { LEASE, "k", 2 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and a denial", { { LEASE, "k", 1 } }, { { DEPOSIT, "k", 4 }, { DENY, "k", 1 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit that comes too late, and a denial", { { LEASE, "k", 2, -2 * (int64_t)HOUR_NS } },
	  { { DEPOSIT, "k", 4 }, { DENY, "k", 2 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: two deposits", { { LEASE, "k", 1 } }, { { DEPOSIT, "k", 3 }, { DEPOSIT, "k", 4, HOUR_NS / 2 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and nothing", { { DEPOSIT, "k", 3 }, { LEASE, "k", 3 } },
	  { { DEPOSIT, "k", 4 }, { GIVE_UP, "k" } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a denial, and a call that asks", { { LEASE, "k", 1 } }, { { DENY, "k", 1 }, { LEASE, "k", 1 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: nothing, and a call that asks", { { LEASE, "k", 1 } }, { { GIVE_UP, "k" }, { LEASE, "k", 1 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: two takes of the last token", { { DEPOSIT, "k", 2 } }, { { LEASE, "k", 1 }, { TAKE, "k", 1 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: a charge and a refund", { { DEPOSIT, "k", 4 } }, { { CHARGE, "k", 2 }, { REFUND, "k", 2 } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "lease: two claims, one slot left, which a lease had",
	  { { HOLD, NULL, 15 }, { DEPOSIT, "m", 3, -(int64_t)DAY_NS } }, { { LEASE, "k", 1 }, { DEPOSIT, "l", 4 } },
	  SHMLIMIT_FULL_DENY, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and a new capacity", { { LEASE, "k", 1 } },
	  { { DEPOSIT, "k", 5 }, { RULE_SET, .params = { .capacity = 3 } } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: two conversions", { { DEPOSIT, "k", 5 }, { SET_KILLED, .params = { .capacity = 3 } } },
	  { { LEASE, "k", 2 }, { LEASE, "k", 2 } }, .algorithm = SHMLIMIT_LEASE },
	{ "lease: a deposit and a reset", { { DEPOSIT, "k", 3 } }, { { DEPOSIT, "k", 2 }, { RESET_KEY, "k" } },
	  .algorithm = SHMLIMIT_LEASE },
	{ "all or none, and a take of what the second has", { { TAKE, "k", 4, .rule = OTHER } },
	  { { TAKE_ALL, "k", 1 }, { TAKE, "k", 1, .rule = OTHER } }, 0, 1 },
	/* clang-format on */
};

#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

struct outcome {
	int answer[2];
	int place; /* the slot of "k" */
	struct sights sights;
};

/* What the one, the other, or both one after the other make of it. */
enum { NOBODY, FIRST, SECOND, FIRST_SECOND, SECOND_FIRST, SERIAL };

/* Points to stop at of the second, the first standing in a certain state of the segment. */
struct group {
	uint64_t hash; /* of the segment */
	struct trace trace;
	size_t *point, points;
};

static struct {
	const struct pair *is;
	unsigned char *kept;
	struct outcome serial[SERIAL];
	struct trace trace; /* of the first, alone */
	size_t *point, points, possible;
	struct group **of_point; /* the one in which each leaves the segment */
	struct group group[GROUPS_MAX];
	unsigned groups;
	uint64_t schedules, kills, lost;
	uint64_t ended[2]; /* as if the first had come first and not last; as if the second had */
	unsigned unsound, not_serial, not_clean, slots_lost; /* faults */
} now;

static struct {
	uint64_t schedules, kills, lost;
} sum;

static struct tracee process[2];

/* ---- What should become of it ---- */

static void see(struct outcome *out)
{
	uint64_t hash = hash_bytes(scene.l->secret, SUBJECT, "k", 1), tag = tag_pack(hash, SUBJECT, 0);

	out->place = -1;
	for (int i = 0; i < (int)SLOTS; i++)
		if (tag_same_key(rule_plain(scene.l, scene.l->tables[0].slots[i].tag), tag))
			out->place = i;
	audit_see(&out->sights);
}

static void run_serially(int which, int one, int other)
{
	struct outcome *out = &now.serial[which];

	scene_restore(now.kept);
	out->answer[0] = out->answer[1] = 0;
	if (one >= 0)
		out->answer[one] = tracee_run(call_make, &now.is->call[one]);
	if (other >= 0)
		out->answer[other] = tracee_run(call_make, &now.is->call[other]);
	see(out);
}

static void run_all_serially(void)
{
	run_serially(NOBODY, -1, -1);
	run_serially(FIRST, 0, -1);
	run_serially(SECOND, 1, -1);
	run_serially(FIRST_SECOND, 0, 1);
	run_serially(SECOND_FIRST, 1, 0);
}

static int same_key(const struct outcome *a, const struct outcome *b, unsigned i)
{
	return same_sight(&a->sights.key[i], &b->sights.key[i]);
}

/* Keys that are not asked for have been left alone, evicted, or converted. */
static int others_are_due(const struct outcome *seen)
{
	for (unsigned i = ASKED; i < WATCHED; i++) {
		int due = 0;

		for (int which = 0; which < SERIAL; which++)
			due |= same_key(seen, &now.serial[which], i);
		if (!due)
			return 0;
	}
	return 1;
}

static int is_serial(const struct outcome *seen, int which)
{
	const struct outcome *serial = &now.serial[which];
	int same = seen->answer[0] == serial->answer[0] && seen->answer[1] == serial->answer[1];

	for (unsigned i = 0; i < ASKED; i++)
		same &= same_key(seen, serial, i);
	return same;
}

/* A key as it is when the dead one had not begun, or was done: before the one that lives, or after. */
static int key_is_clean(const struct outcome *seen, int dead, unsigned i)
{
	const int which[3] = { dead == 0 ? SECOND : FIRST, FIRST_SECOND, SECOND_FIRST };
	int alive = !dead;

	for (int j = 0; j < 3; j++) {
		const struct outcome *serial = &now.serial[which[j]];
		unsigned drained = serial->sights.key[i].drained;

		if (seen->answer[alive] != serial->answer[alive])
			continue;
		if (same_key(seen, serial, i))
			return 1;
		if (dead == 0 && now.is->gives_back != 0 && seen->sights.key[i].drained <= drained &&
		    seen->sights.key[i].drained + now.is->gives_back >= drained)
			return 1;
	}
	return 0;
}

static int is_clean(const struct outcome *seen, int dead)
{
	int clean = 1;

	for (unsigned i = 0; i < ASKED; i++)
		clean &= key_is_clean(seen, dead, i);
	return clean;
}

/* ---- Where to stop ---- */

/* States before a look, after a change, and at the beginning. */
static size_t *choose_points(const struct trace *trace, size_t *points)
{
	size_t *point = malloc((trace->n + 1) * sizeof(*point));

	*points = 0;
	for (size_t k = 0; k < trace->n && point != NULL; k++)
		if (k == 0 || trace->step[k].looks || trace->step[k].changed)
			point[(*points)++] = k;
	return point;
}

static int is_change(const struct trace *trace, size_t k)
{
	return k == 0 || trace->step[k].changed;
}

/* The first, stopped at its point i. */
static void start_first(size_t i)
{
	scene_restore(now.kept);
	tracee_start(&process[0], call_make, &now.is->call[0]);
	trace_bring(&now.trace, &process[0], now.point[i]);
}

/* The group of the segment as it is, a new one if need be. */
static struct group *find_group(void)
{
	uint64_t hash = scene_hash();
	struct group *group = now.group;

	while (group < now.group + now.groups && group->hash != hash)
		group++;
	if (group == now.group + GROUPS_MAX)
		bail("more than %d states", GROUPS_MAX);
	if (group < now.group + now.groups)
		return group;
	now.groups++;
	group->hash = hash;
	trace_record(&group->trace, &now.is->call[1]);
	group->point = choose_points(&group->trace, &group->points);
	return group;
}

/* Find out where both may stop. From one change to the next the first leaves the segment in the same state. */
static void survey(void)
{
	scene_restore(now.kept);
	trace_record(&now.trace, &now.is->call[0]);
	now.point = choose_points(&now.trace, &now.points);
	now.of_point = calloc(now.points, sizeof(*now.of_point));
	for (size_t i = 0; i < now.points; i++) {
		if (!is_change(&now.trace, now.point[i])) {
			now.of_point[i] = now.of_point[i - 1];
			continue;
		}
		start_first(i);
		now.of_point[i] = find_group();
		tracee_kill(&process[0]);
	}
}

static void forget(void)
{
	for (unsigned i = 0; i < now.groups; i++) {
		free(now.group[i].point);
		free(now.group[i].trace.step);
	}
	free(now.of_point);
	free(now.point);
	free(now.trace.step);
	free(now.kept);
	memset(&now, 0, sizeof(now));
}

/* ---- Schedules ---- */

static void fault(unsigned *faults, const char *what, size_t i, size_t j, int ahead, const struct outcome *seen)
{
	if (++*faults > 3)
		return;
	diag("%s: the first in state %zu, the second in %zu, the %s goes on: answers %d %d, left %u %u %u", what, i, j,
	     ahead == 0 ? "first" : "second", seen->answer[0], seen->answer[1], seen->sights.key[0].drained,
	     seen->sights.key[1].drained, seen->sights.key[2].drained);
}

/* Both are stopped; `ahead` finishes, then the other, unless it is killed. */
static void play(size_t i, size_t j, int ahead, int kills)
{
	struct outcome seen = { 0 };
	int behind = !ahead, first, second;

	seen.answer[ahead] = tracee_finish(&process[ahead]);
	see(&seen);
	if (!is_sound())
		fault(&now.unsound, "unsound", i, j, ahead, &seen);
	if (!is_clean(&seen, behind) || !others_are_due(&seen))
		fault(&now.not_clean, "not as if the other had begun, or had not", i, j, ahead, &seen);
	if (kills) {
		now.kills += !process[behind].said->over;
		tracee_kill(&process[behind]);
		if (audit_lost() != 0)
			fault(&now.slots_lost, "a slot is lost", i, j, ahead, &seen);
		return;
	}
	seen.answer[behind] = tracee_finish(&process[behind]);
	see(&seen);
	if (!is_sound())
		fault(&now.unsound, "unsound, both being done", i, j, ahead, &seen);
	first = is_serial(&seen, FIRST_SECOND);
	second = is_serial(&seen, SECOND_FIRST);
	now.ended[0] += first && !second;
	now.ended[1] += second && !first;
	if ((!first && !second) || !others_are_due(&seen))
		fault(&now.not_serial, "not as one after the other", i, j, ahead, &seen);
	now.lost += counters_of(scene.l, SUBJECT).failed_cas;
}

/* The first stops at its point i, the second at its j. */
static void play_schedule(size_t i, size_t j, uint64_t how)
{
	const struct group *group = now.of_point[i];

	start_first(i);
	tracee_start(&process[1], call_make, &now.is->call[1]);
	trace_bring(&group->trace, &process[1], group->point[j]);
	now.schedules++;
	play(now.point[i], group->point[j], how & 1, (how & 6) == 0);
}

/* ---- Which schedules ---- */

struct schedule {
	size_t i, j; /* points of the first, of the second */
};

/* All in which one of both stands after a change, in random order. */
static struct schedule *list_schedules(struct rng *rng, size_t *n)
{
	struct schedule *list = NULL;
	size_t room = 0;

	*n = 0;
	for (size_t i = 0; i < now.points; i++)
		for (size_t j = 0; j < now.of_point[i]->points; j++) {
			if (!is_change(&now.trace, now.point[i]) &&
			    !is_change(&now.of_point[i]->trace, now.of_point[i]->point[j]))
				continue;
			if (*n == room) {
				room = 2 * room + 1024;
				list = realloc(list, room * sizeof(*list));
				if (list == NULL)
					bail("no memory");
			}
			list[(*n)++] = (struct schedule){ i, j };
		}
	for (size_t i = *n; i > 1; i--) {
		size_t other = (size_t)rng_below(rng, i);
		struct schedule last = list[i - 1];

		list[i - 1] = list[other];
		list[other] = last;
	}
	return list;
}

/* One made a swap of the other's fail, or each came first in some schedule. */
static int they_met(void)
{
	return now.lost > 0 || (now.ended[0] > 0 && now.ended[1] > 0);
}

static void play_all(struct rng *rng)
{
	size_t n, some;
	struct schedule *list = list_schedules(rng, &n);

	some = scene_is_full() ? n : (size_t)scaled(SCHEDULES) * 3 / 4;
	now.possible = n;
	for (size_t i = 0; i < n && i < some; i++)
		play_schedule(list[i].i, list[i].j, rng_draw(rng));
	for (size_t i = 0; i < some / 3; i++) {
		size_t first = (size_t)rng_below(rng, now.points);

		play_schedule(first, (size_t)rng_below(rng, now.of_point[first]->points), rng_draw(rng));
	}
	free(list);
}

/* The scene, under a new secret. Returns true if it is what the pair is about. */
static int prepare(struct rng *rng)
{
	if (scene.l != NULL)
		scene_close();
	scene.algorithm = now.is->algorithm;
	scene_open(rng, now.is->on_full, 0);
	for (int i = 0; i < PREPARED; i++)
		if (call_make(&now.is->before[i]) < 0)
			bail("%s: not prepared: call %d", now.is->title, i);
	free(now.kept);
	now.kept = scene_keep(NULL);
	run_all_serially();
	return !now.is->apart || now.serial[FIRST].place != now.serial[SECOND].place;
}

static void perform(const struct pair *pair, struct rng *rng)
{
	const char *title = pair->title;

	now.is = pair;
	tracee_share_cpu();
	for (int i = 0; !prepare(rng); i++)
		if (i == SECRETS_MAX)
			bail("%s: not prepared", title);
	survey();
	play_all(rng);
	/* Few schedules of some pairs make a swap fail: of those that were played, perhaps none. */
	for (int i = 0; i < PLAYS_MAX && !they_met(); i++)
		play_all(rng);
	ok(now.kills > 0, "%s: processes were killed inside the call", title);
	ok(they_met(), "%s: they got into each other's way", title);
	is(now.unsound, 0, "%s: the segment is sound", title);
	is(now.slots_lost, 0, "%s: no slot is lost", title);
	is(now.not_serial, 0, "%s: it ends as if one had come after the other", title);
	is(now.not_clean, 0, "%s: of a killed one all is done, or nothing", title);
	diag("%s: %zu points, then %zu; %u states; %" PRIu64 " of %zu schedules, %" PRIu64 " kills, %" PRIu64
	     " failed compare-and-swaps",
	     title, now.points, now.of_point[0]->points, now.groups, now.schedules, now.possible, now.kills, now.lost);
	sum.schedules += now.schedules;
	sum.kills += now.kills;
	sum.lost += now.lost;
	scene_close();
	forget();
}

int main(int argc, char **argv)
{
	const char *impossible = tracee_impossible();
	struct rng rng;

	(void)argc;
	if (impossible != NULL)
		return tap_skip_all(impossible);
	tracee_begin(argv, 1);
	scene_begin("crash.pairs");
	rng.state = rng_seed();
	for (size_t i = 0; i < PAIRS; i++)
		perform(&pairs[i], &rng);
	ok(trace_astray * 100 < sum.schedules, "processes came where they were wanted");
	diag("%zu pairs of calls, %" PRIu64 " schedules, %" PRIu64 " kills, %" PRIu64 " failed compare-and-swaps, "
	     "%" PRIu64 " astray, %.0f s",
	     PAIRS, sum.schedules, sum.kills, sum.lost, trace_astray, tracee_seconds());
	return tap_done();
}

#endif
