/*
 * denial: a denial writes nothing to the table (I5). The table is byte for byte
 * what it was after denials of every kind, by 1 process and by 4 at once; a
 * handle that was opened for reading may peek and nothing else; and where the
 * table's pages may not be written, a denial does not try.
 *
 * Time stands still: a denial that finds the clock stepped back writes, once,
 * and says so in decide.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "limiter.h"

#define NOW_NS 1000000000000u
#define CAPACITY 3u
#define HOUR_NS 3600000000000u
#define KEYS 100
#define DENIALS 200000

static struct shmlimit *l;
static int rule, dry;
struct play {
	_Atomic uint64_t denied, shadow, errors;
	_Atomic uint64_t tried;
};

static struct play *play;

static size_t table_bytes(const struct shmlimit *limiter)
{
	return limiter->tables[0].lines * LINE;
}

static unsigned char *snapshot(const struct shmlimit *limiter)
{
	unsigned char *copy = malloc(table_bytes(limiter));

	if (copy == NULL)
		bail("no memory");
	memcpy(copy, limiter->tables[0].slots, table_bytes(limiter));
	return copy;
}

/* Compares, and frees the copy. */
static int is_unchanged(const struct shmlimit *limiter, unsigned char *before)
{
	int same = memcmp(before, limiter->tables[0].slots, table_bytes(limiter)) == 0;

	free(before);
	return same;
}

/* Keys 0 to KEYS - 1 are empty under both rules. */
static void empty_funnels(void)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), CAPACITY, NULL);
		shmlimit_take(at_time(l, NOW_NS), dry, &key, sizeof(key), CAPACITY, NULL);
	}
}

static void expect(int answer, int wanted)
{
	if (answer == wanted)
		atomic_fetch_add(&play->denied, answer == SHMLIMIT_DENIED);
	else
		atomic_fetch_add(&play->errors, 1);
}

/* Every way to be denied; and what is no denial, but changes nothing either. */
static void be_denied(uint32_t key)
{
	uint32_t stranger = KEYS + key;
	struct shmlimit_result r;

	expect(shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), 1, NULL), SHMLIMIT_DENIED);
	expect(shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), CAPACITY, &r), SHMLIMIT_DENIED);
	expect(shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), CAPACITY + 1, &r), SHMLIMIT_DENIED);
	expect(shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), UINT64_MAX, &r), SHMLIMIT_DENIED);
	expect(shmlimit_take(at_time(l, NOW_NS), rule, &stranger, sizeof(stranger), CAPACITY + 1, &r), SHMLIMIT_DENIED);
	expect(shmlimit_reserve(at_time(l, NOW_NS), rule, &key, sizeof(key), 1, UINT64_MAX, &r), SHMLIMIT_DENIED);
	expect(shmlimit_reserve(at_time(l, NOW_NS), rule, &key, sizeof(key), CAPACITY + 1, 0, &r), SHMLIMIT_DENIED);
	expect(shmlimit_peek(at_time(l, NOW_NS), rule, &key, sizeof(key), 1, &r), SHMLIMIT_DENIED);
	expect(shmlimit_peek(at_time(l, NOW_NS), rule, &stranger, sizeof(stranger), 1, &r), SHMLIMIT_ALLOWED);
	expect(shmlimit_take(at_time(l, NOW_NS), rule, &key, sizeof(key), 0, &r), SHMLIMIT_ALLOWED);
	expect(shmlimit_take(at_time(l, NOW_NS), dry, &key, sizeof(key), 1, &r), SHMLIMIT_ALLOWED);
	atomic_fetch_add(&play->shadow, r.retry_after_ns > 0);
	expect(shmlimit_refund(at_time(l, NOW_NS), rule, &stranger, sizeof(stranger), 1, NULL), SHMLIMIT_ALLOWED);
	/* Half an hour on, half a token has come back: still none to take. */
	expect(shmlimit_take(at_time(l, NOW_NS + HOUR_NS / 2), rule, &key, sizeof(key), 1, &r), SHMLIMIT_DENIED);
}

static void be_denied_often(struct crew *crew, int index)
{
	uint64_t n = scaled(DENIALS) / (uint64_t)crew->n;

	for (uint64_t i = 0; i < n; i++)
		be_denied((uint32_t)((i + (uint64_t)index) % (i % 2 == 0 ? 3 : KEYS)));
}

static void denials(int workers)
{
	unsigned char *before = snapshot(l);

	memset(play, 0, sizeof(*play));
	is(crew_run(workers, be_denied_often, NULL), 0, "%d processes: they end well", workers);
	ok(is_unchanged(l, before), "%d processes: denials leave the table as it was", workers);
	is(play->errors, 0, "%d processes: every call is answered as expected", workers);
	ok(play->denied >= scaled(DENIALS) / 2 && play->shadow > 0, "%d processes: there were denials", workers);
}

/* A table of 16 slots that are all taken, whose segment denies strangers. */
static void full_table(void)
{
	struct shmlimit *full;
	unsigned char *before;
	unsigned denied = 0;
	int id;

	full = stage_create(16, 1, SHMLIMIT_FULL_DENY);
	id = stage_rule(full, "full", CAPACITY, 1, HOUR_NS);
	stage_hide();
	for (uint32_t key = 0; key < 1000; key++)
		shmlimit_take(at_time(full, NOW_NS), id, &key, sizeof(key), CAPACITY, NULL);
	before = snapshot(full);
	for (uint32_t key = 0; key < 1000; key++)
		denied += shmlimit_take(at_time(full, NOW_NS), id, &key, sizeof(key), 1, NULL) == SHMLIMIT_DENIED;
	is(denied, 1000, "in a full table everybody is denied");
	ok(is_unchanged(full, before), "denials leave a full table as it was");
	is(counters_of(full, id).no_slot, 2 * (1000 - 16), "strangers for want of a slot");
	shmlimit_close(full);
}

static void read_only(void)
{
	struct shmlimit_rule r = { .struct_size = sizeof(r), .capacity = 1, .refill = 1, .period_ns = 1 };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	unsigned char *before;
	struct shmlimit *reader;
	uint32_t key = 1, stranger = KEYS + 1;

	is(shmlimit_open(stage_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader), 0, "a segment can be opened for reading");
	before = snapshot(reader);
	is(shmlimit_peek(at_time(reader, NOW_NS), rule, &key, sizeof(key), 1, NULL), SHMLIMIT_DENIED,
	   "read-only: peek denies");
	is(shmlimit_peek(at_time(reader, NOW_NS), rule, &stranger, sizeof(stranger), 1, NULL), SHMLIMIT_ALLOWED,
	   "read-only: peek allows");
	is(shmlimit_peek(reader, rule, &key, sizeof(key), 1, NULL) >= 0, 1, "read-only: peek reads the clock");
	is(shmlimit_take(at_time(reader, NOW_NS), rule, &key, sizeof(key), 0, NULL), SHMLIMIT_ALLOWED,
	   "read-only: a take of nothing is a peek");
	is(shmlimit_peek(at_time(reader, 0), rule, &key, sizeof(key), 1, NULL) >= 0, 1,
	   "read-only: peek writes nothing when the clock steps back either");
	is(shmlimit_take(at_time(reader, NOW_NS), rule, &key, sizeof(key), 1, NULL), -EROFS, "read-only: no take");
	is(shmlimit_take(reader, rule, &key, sizeof(key), 1, NULL), -EROFS, "read-only: no take by the clock");
	is(shmlimit_refund(at_time(reader, NOW_NS), rule, &key, sizeof(key), 1, NULL), -EROFS, "read-only: no refund");
	is(shmlimit_refund(reader, rule, &key, sizeof(key), 1, NULL), -EROFS, "read-only: no refund by the clock");
	is(shmlimit_reset(reader, rule, &key, sizeof(key)), -EROFS, "read-only: no reset of a key");
	is(shmlimit_reset(reader, rule, NULL, 0), -EROFS, "read-only: no reset of a rule");
	is(shmlimit_reset(reader, SHMLIMIT_ALL_RULES, NULL, 0), -EROFS, "read-only: no reset of all");
	is(shmlimit_rule_set(reader, "new", &r), -EROFS, "read-only: no new rule");
	is(shmlimit_rule_remove(reader, "denial"), -EROFS, "read-only: no rule removed");
	is(shmlimit_enable(reader, 0), -EROFS, "read-only: no switching off");
	is(shmlimit_rule_find(reader, "denial"), rule, "read-only: a rule is found");
	is(shmlimit_slot(reader, 0, &slot, NOW_NS), 0, "read-only: a slot can be looked at");
	is(shmlimit_info(reader, &info), 0, "read-only: so can the segment");
	is(counters_of(reader, rule).shadow_denied, 0, "read-only: so can the counters");
	ok(is_unchanged(reader, before), "read-only: the table is as it was");
	shmlimit_close(reader);
}

/* ---- Pages that may not be written ---- */

static void leave_on_fault(int number)
{
	(void)number;
	_exit(7);
}

/* The whole pages of the table: it begins in the middle of one, after counters that are written. */
static unsigned char *pages(size_t *len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)l->tables[0].slots + page - 1) / page * page;
	uintptr_t end = (uintptr_t)l->tables[0].slots + table_bytes(l);

	*len = (end - begin) / page * page;
	return (unsigned char *)begin;
}

/* Is the key's slot, and whatever else has its fingerprint, in those pages? */
static int lies_within(uint32_t key, int of_rule, const unsigned char *begin, size_t len)
{
	struct shmlimit_result r;

	/* Its slot is the one that differs after a refund and after taking that again. */
	unsigned char *before = snapshot(l);
	const unsigned char *slots = (const unsigned char *)l->tables[0].slots;
	size_t at = 0;

	shmlimit_refund(at_time(l, NOW_NS), of_rule, &key, sizeof(key), 1, &r);
	while (at < table_bytes(l) && before[at] == slots[at])
		at++;
	shmlimit_take(at_time(l, NOW_NS), of_rule, &key, sizeof(key), 1, NULL);
	free(before);
	return at < table_bytes(l) && slots + at >= begin && slots + at < begin + len;
}

static void protect(void)
{
	struct sigaction action = { .sa_handler = leave_on_fault };
	unsigned char *begin;
	size_t len;

	begin = pages(&len);
	sigaction(SIGSEGV, &action, NULL);
	worker_check(mprotect(begin, len, PROT_READ) == 0, "mprotect: %s", strerror(errno));
}

static void be_denied_protected(struct crew *crew, int index)
{
	unsigned char *begin;
	size_t len;

	(void)crew;
	(void)index;
	begin = pages(&len);
	for (uint32_t key = 0; key < KEYS; key++) {
		if (!lies_within(key, rule, begin, len) || !lies_within(key, dry, begin, len))
			continue;
		protect();
		be_denied(key);
		atomic_fetch_add(&play->tried, 1);
		worker_check(mprotect(begin, len, PROT_READ | PROT_WRITE) == 0, "mprotect: %s", strerror(errno));
	}
}

static void be_admitted_protected(struct crew *crew, int index)
{
	unsigned char *begin;
	size_t len;

	(void)crew;
	(void)index;
	begin = pages(&len);
	for (uint32_t key = 0; key < KEYS; key++) {
		if (!lies_within(key, rule, begin, len))
			continue;
		protect();
		/* Four hours on there is something to take. */
		shmlimit_take(at_time(l, NOW_NS + 4 * (uint64_t)HOUR_NS), rule, &key, sizeof(key), 1, NULL);
		_exit(0);
	}
}

static void unwritable_pages(void)
{
	struct crew crew;
	int status;

	memset(play, 0, sizeof(*play));
	is(crew_run(1, be_denied_protected, NULL), 0, "a denial does not write where it may not");
	ok(play->tried > 0 && play->denied > 0, "there were denials by unwritable slots");
	is(play->errors, 0, "they are answered as expected");

	crew_start(&crew, 1, be_admitted_protected, NULL);
	waitpid(crew.pid[0], &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "an admission would have been caught");
}

int main(void)
{
	struct shmlimit_rule r = {
		.struct_size = sizeof(r),
		.mode = SHMLIMIT_DRY_RUN,
		.capacity = CAPACITY,
		.refill = 1,
		.period_ns = HOUR_NS,
	};

	stage_begin("denial");
	play = shared_memory(sizeof(*play));
	l = stage_create(4096, 4, SHMLIMIT_FULL_EVICT);
	rule = stage_rule(l, "denial", CAPACITY, 1, HOUR_NS);
	dry = shmlimit_rule_set(l, "dry", &r);
	empty_funnels();
	read_only();
	stage_hide();
	denials(1);
	denials(4);
	unwritable_pages();
	full_table();
	shmlimit_close(l);
	return tap_done();
}
