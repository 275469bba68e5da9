/*
 * open: a segment is opened, or created where there is none; of any number of processes that do so at once, one creates it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/wait.h>

#include "unit.h"

#define PROCESSES 8
#define ROUNDS 200

static int open_with(uint32_t flags, const struct shmlimit_options *options, struct shmlimit **out)
{
	return shmlimit_open(unit_name, flags, options, out);
}

static void options(void)
{
	struct shmlimit_options small = { .struct_size = sizeof(small), .slots = 64 }, owned = small, bad = small;
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l = NULL, *kept;

	owned.owner = (uint32_t)getuid() + 1;
	bad.slots = 1;
	unit_gone();
	is(open_with(0, &small, &l), -ENOENT, "options alone create nothing");
	is(open_with(SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_READ_ONLY, NULL, &l), -EINVAL,
	   "a segment is not created to be read only");
	is(open_with(SHMLIMIT_OPEN_CREATE, &bad, &l), -EINVAL, "options out of range create nothing");
	is(open_with(SHMLIMIT_OPEN_CREATE, &owned, &l), -EINVAL, "an owner to trust is refused where all are trusted");
	is(open_with(SHMLIMIT_OPEN_CREATE, NULL, NULL), -EINVAL,
	   "no segment is created without a place for its handle");
	ok(l == NULL, "after an error the handle is untouched");
	is(open_with(0, NULL, &l), -ENOENT, "after all these errors there is no segment");
	is(open_with(SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, &small, &l), 0,
	   "a segment that is missing is created");
	shmlimit_info(l, &info);
	is(info.slots, 64, "it has the options");
	kept = l;
	is(open_with(SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, NULL, &l), 0, "a segment that exists is opened");
	shmlimit_info(l, &info);
	is(info.slots, 64, "it stays as it is, whatever the options are");
	is(open_with(SHMLIMIT_OPEN_CREATE, &bad, &kept), -EINVAL, "options out of range are refused even then");
	shmlimit_close(kept);
	shmlimit_close(l);
}

/* Each takes once from a rule of one token; each round all begin when the pipe is closed. */
static int one_process(int start)
{
	struct shmlimit_options small = { .struct_size = sizeof(small), .slots = 64 };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = 86400 * SECOND
	};
	struct shmlimit *l;
	char byte;
	int id;

	if (read(start, &byte, 1) != 0 || open_with(SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, &small, &l) != 0)
		return 2;
	id = shmlimit_rule_set(l, "login", &rule);
	return id < 0 ? 3 : shmlimit_take(l, id, "user:42", 7, 1, NULL);
}

static int round_of_processes(void)
{
	int start[2], allowed = 0;

	unit_gone();
	if (pipe(start) != 0)
		bail("pipe: %s", strerror(errno));
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			close(start[1]);
			_exit(one_process(start[0]));
		}
	close(start[0]);
	close(start[1]);
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
			return -1;
		allowed += WEXITSTATUS(status) == 0;
	}
	return allowed;
}

/* How often this process has mapped the segment's file. */
static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	unsigned n = 0;

	if (maps == NULL)
		bail("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, unit_name) != NULL;
	fclose(maps);
	return n;
}

static void closed(void)
{
	/* Few slots: sanitizers and emulators leave a process fewer addresses. */
	const struct shmlimit_options few = { .struct_size = sizeof(few), .slots = 64, .slots_max = 64 };
	struct shmlimit *l;
	unsigned before;

	/* The process that creates it has mapped it before it had its name. */
	shmlimit_close(unit_create("open", &few));
	if (open_with(0, NULL, &l) != 0)
		bail("open");
	before = mappings();
	for (uint64_t capacity = 1; capacity <= SHMLIMIT_WINDOW_MAX; capacity *= 16) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = SHMLIMIT_WINDOW,
			                      .capacity = capacity,
			                      .period_ns = SECOND };

		is(shmlimit_take(l, unit_id(shmlimit_rule_set(l, "window", &rule)), &capacity, sizeof(capacity), 1,
		                 NULL),
		   SHMLIMIT_ALLOWED, "a window of %llu admits", (unsigned long long)capacity);
	}
	ok(mappings() > before, "logs of several sizes are mapped");
	shmlimit_close(l);
	is(mappings(), 0, "nothing of a segment stays mapped when its handle is closed");
}

int main(void)
{
	int once = 0;

	shmlimit_close(unit_create("open", NULL));
	options();
	closed();
	for (int i = 0; i < ROUNDS; i++)
		once += round_of_processes() == 1;
	is(once, ROUNDS, "%d processes that open or create at once share one segment, in each of %d rounds", PROCESSES,
	   ROUNDS);
	return tap_done();
}
