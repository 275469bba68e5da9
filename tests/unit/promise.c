/*
 * promise: what 1.0 wrote can be read: a segment and a saved file, as words in promise_1_0.h, have the rules, and their
 * keys the answers, that 1.0 gave. `build/tests/unit/promise.t --renew` prints that file, until
 * 1.0 is released; then it stays, and a later version adds one of its own where it adds to the layout.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "unit.h"

#include "header.h"
#include "segment.h"
#include "state.h"

#define T0 (1000000 * SECOND)
#define LATER (T0 + SECOND)
#define KEYS 3

struct word {
	uint32_t at; /* bytes from the beginning */
	uint64_t word;
};

/* What was answered for one of its keys, a second later. */
struct told {
	const char *rule;
	int key, answer;
	uint64_t remaining, retry_after_ns, full_after_ns;
};

#include "promise_1_0.h"

static const struct {
	const char *name;
	struct shmlimit_rule rule;
} rules[] = {
	/* clang-format off */
	{ "funnel", { .capacity = 10, .refill = 3, .period_ns = 60 * SECOND, .max_wait_ns = 5 * SECOND } },
	{ "warmup", { .algorithm = SHMLIMIT_WARMUP, .refill = 5, .period_ns = SECOND, .warmup_ns = 60 * SECOND,
	  .max_wait_ns = 60 * SECOND } },
	{ "window", { .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = 60 * SECOND } },
	{ "lease", { .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = SECOND } },
	{ "counter", { .algorithm = SHMLIMIT_COUNTER, .capacity = 9, .period_ns = 3600 * SECOND } },
	{ "hold", { .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = 60 * SECOND } },
	{ "gcra", { .algorithm = SHMLIMIT_GCRA } },
	/* clang-format on */
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static const struct shmlimit_limit plan = {
	.struct_size = sizeof(plan), .capacity = 8, .refill = 1, .period_ns = 10 * SECOND
};

/* Key 0 has asked once, key 1 twice, key 2 as often as it was allowed. */
static void use(struct shmlimit *l, int rule, uint32_t algorithm, const char *key, int times)
{
	struct shmlimit_count_request count = { .struct_size = sizeof(count), .n = 1, .bound = 9 };
	struct shmlimit_place place = { .struct_size = sizeof(place) };

	for (int i = 0; i < times; i++) {
		if (algorithm == SHMLIMIT_COUNTER)
			(void)shmlimit_count(at_time(l, T0), rule, key, 1, &count, NULL);
		else if (algorithm == SHMLIMIT_HOLD)
			(void)shmlimit_enter(at_time(l, T0), rule, key, 1, &place, NULL);
		else if (algorithm == SHMLIMIT_GCRA)
			(void)by_limit(at_time(l, T0), SHMLIMIT_TAKE, rule, key, 1, 1, &plan, NULL);
		else if (algorithm == SHMLIMIT_WARMUP)
			(void)shmlimit_reserve(at_time(l, T0), rule, key, 1, 1, 60 * SECOND, NULL);
		else
			(void)shmlimit_take(at_time(l, T0), rule, key, 1, 1, NULL);
	}
}

static struct told ask(struct shmlimit *l, size_t rule, int key)
{
	struct shmlimit_result r = { .remaining = 0 };
	struct told told = { .rule = rules[rule].name, .key = key };
	char text = (char)('a' + key);
	int id = shmlimit_rule_find(l, rules[rule].name);

	told.answer = rules[rule].rule.algorithm == SHMLIMIT_GCRA
	                      ? by_limit(at_time(l, LATER), SHMLIMIT_PEEK, id, &text, 1, 1, &plan, &r)
	                      : shmlimit_peek(at_time(l, LATER), id, &text, 1, 1, &r);
	told.remaining = r.remaining;
	told.retry_after_ns = r.retry_after_ns;
	told.full_after_ns = r.reset_after_ns;
	return told;
}

/* ---- Write it ---- */

static void print_words(const char *name, int fd)
{
	struct stat file;

	if (fstat(fd, &file) != 0)
		bail("fstat: %s", strerror(errno));
	printf("#define %s_SIZE %lldu\nstatic const struct word %s[] = {\n", name, (long long)file.st_size, name);
	/* Holes are zero, and looking at them would fill them. */
	for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0 && at < file.st_size; at = lseek(fd, at, SEEK_DATA))
		for (off_t end = at + 4096; at < end && at < file.st_size; at += 8) {
			uint64_t word = 0;

			if (pread(fd, &word, sizeof(word), at) > 0 && word != 0)
				printf("\t{ %lld, 0x%016llx },\n", (long long)at, (unsigned long long)word);
		}
	printf("};\n");
}

static int renew(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 32, .slots_max = 64, .rules = 8, .rules_max = 8
	};
	struct shmlimit *l = unit_create("promise", &options);
	char path[SHMLIMIT_PATH_MAX];
	int fd, saved = memfd_create("saved", MFD_CLOEXEC);

	for (size_t i = 0; i < RULES; i++) {
		struct shmlimit_rule rule = rules[i].rule;
		int id;

		rule.struct_size = sizeof(rule);
		id = unit_id(shmlimit_rule_set(at_time(l, T0), rules[i].name, &rule));
		for (int key = 0; key < KEYS; key++)
			use(l, id, rule.algorithm, &"abc"[key], key < KEYS - 1 ? key + 1 : 20);
	}
	if (shmlimit_save(l, saved) != 0)
		bail("save");
	segment_path(unit_name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	printf("/*\n * promise_1_0: what 1.0 wrote; see promise.c, which wrote this file.\n *\n * SPDX-License-Identifier: BSD-2-Clause\n */\n"
	       "/* clang-format off */\n");
	print_words("IMAGE", fd);
	print_words("SAVED", saved);
	printf("static const struct told TOLD[] = {\n");
	for (size_t i = 0; i < RULES; i++)
		for (int key = 0; key < KEYS; key++) {
			struct told t = ask(l, i, key);

			printf("\t{ \"%s\", %d, %d, %lluu, %lluu, %lluu },\n", t.rule, t.key, t.answer,
			       (unsigned long long)t.remaining, (unsigned long long)t.retry_after_ns,
			       (unsigned long long)t.full_after_ns);
		}
	printf("};\n");
	close(fd);
	close(saved);
	shmlimit_close(l);
	return 0;
}

/* ---- Read it ---- */

static void fill(uint8_t *bytes, const struct word *words, size_t n, size_t size)
{
	for (size_t i = 0; i < n && words[i].at < size; i++)
		memcpy(bytes + words[i].at, &words[i].word, size - words[i].at < 8 ? size - words[i].at : 8);
}
#define WORDS(name) (sizeof(name) / sizeof((name)[0]))

static void check_rules(struct shmlimit *l, const char *what)
{
	for (size_t i = 0; i < RULES; i++) {
		struct shmlimit_rule got = { .struct_size = sizeof(got) }, want = rules[i].rule;
		int id = shmlimit_rule_find(l, rules[i].name);

		/* What an algorithm does not have is 0 in the one and what follows from the rest in the other. */
		ok(id >= 0 && shmlimit_rule_get(l, id, &got) == 0 && got.algorithm == want.algorithm &&
		           (want.capacity == 0 || got.capacity == want.capacity) &&
		           (want.refill == 0 || got.refill == want.refill) &&
		           (want.period_ns == 0 || got.period_ns == want.period_ns) &&
		           got.max_wait_ns == want.max_wait_ns && got.warmup_ns == want.warmup_ns,
		   "%s: rule %s is what it was", what, rules[i].name);
	}
}

static void check_answers(struct shmlimit *l, const char *what)
{
	for (size_t i = 0; i < sizeof(TOLD) / sizeof(TOLD[0]); i++) {
		struct told now = ask(l, i / KEYS, TOLD[i].key);

		if (!ok(now.answer == TOLD[i].answer && now.remaining == TOLD[i].remaining &&
		                now.retry_after_ns == TOLD[i].retry_after_ns &&
		                now.full_after_ns == TOLD[i].full_after_ns,
		        "%s: rule %s answers key %d as it did", what, TOLD[i].rule, TOLD[i].key))
			diag("now %d, %llu, %llu, %llu; then %d, %llu, %llu, %llu", now.answer,
			     (unsigned long long)now.remaining, (unsigned long long)now.retry_after_ns,
			     (unsigned long long)now.full_after_ns, TOLD[i].answer,
			     (unsigned long long)TOLD[i].remaining, (unsigned long long)TOLD[i].retry_after_ns,
			     (unsigned long long)TOLD[i].full_after_ns);
	}
}

static void check_image(void)
{
	struct layout_header header = { .version = 0 };
	struct header_host unknown = { .time_namespace = 0 };
	struct shmlimit *l = unit_create("promise", NULL);
	const char *why = "";
	char path[SHMLIMIT_PATH_MAX];
	int fd;

	fill((uint8_t *)&header, IMAGE, WORDS(IMAGE), sizeof(header));
	is(header_check(&header, IMAGE_SIZE, &unknown, &why), 0, "the segment of 1.0 has a header that is valid");
	diag("%s", why);
	/* As if it was created after this boot. */
	memset(header.boot_id, 0, sizeof(header.boot_id));
	header.time_namespace = 0;
	header.checksum = layout_checksum(&header);
	segment_path(unit_name, path);
	shmlimit_close(l);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, IMAGE_SIZE) != 0)
		bail("no image");
	for (size_t i = 0; i < WORDS(IMAGE); i++)
		if (pwrite(fd, &IMAGE[i].word, sizeof(IMAGE[i].word), IMAGE[i].at) != sizeof(IMAGE[i].word))
			bail("no word of the image");
	if (pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		bail("no header");
	close(fd);
	if (!ok(shmlimit_open(unit_name, 0, NULL, &l) == 0, "the segment of 1.0 can be opened"))
		return;
	check_rules(l, "segment");
	check_answers(l, "segment");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "nothing is wrong in the segment of 1.0");
	is(shmlimit_take(at_time(l, LATER), shmlimit_rule_find(l, "funnel"), "d", 1, 1, NULL), 0,
	   "a new key is decided in it");
	shmlimit_close(l);
}

/* With this user's group: a user who is not in that of the user who wrote the file could not load it. */
static int write_as_own(int fd, uint8_t saved[SAVED_SIZE])
{
	struct state_file file = { .fd = fd };

	((struct state_header *)(void *)saved)->gid = getgid();
	for (size_t at = 0; at < SAVED_SIZE; at += STATE_PAGE)
		if (state_put(&file, saved + at, STATE_PAGE_ROOM) != 0)
			return -1;
	return state_end(&file);
}

static void check_saved(void)
{
	static uint8_t saved[SAVED_SIZE] __attribute__((aligned(16)));
	struct shmlimit *l = NULL;
	int fd = memfd_create("saved", MFD_CLOEXEC);

	fill(saved, SAVED, WORDS(SAVED), SAVED_SIZE);
	if (geteuid() != 0 ? write_as_own(fd, saved) != 0 : write(fd, saved, sizeof(saved)) != (ssize_t)sizeof(saved))
		bail("no saved file");
	lseek(fd, 0, SEEK_SET);
	unit_gone();
	if (!ok(shmlimit_load(unit_name, fd, SHMLIMIT_LOAD_NO_ELAPSED, &l) == 0,
	        "the file that 1.0 saved can be loaded"))
		return;
	check_rules(l, "saved file");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "nothing is wrong in what was loaded");
	close(fd);
	shmlimit_close(l);
}

int main(int argc, char *argv[])
{
	if (argc == 2 && strcmp(argv[1], "--renew") == 0)
		return renew();
	check_image();
	check_saved();
	return tap_done();
}
