/*
 * errors: bad input of every kind gets an error of its own, and nothing is
 * changed (must-hold 6; I7, I11, I12 for what callers and files can say).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "layout.h"
#include "unit.h"

static struct shmlimit *l;
static char path[SHMLIMIT_PATH_MAX];

static void names(void)
{
	char longest[SHMLIMIT_NAME_MAX + 2];
	static const char *const bad[] = { "", "a/b", "/a", ".", "..", ".hidden", "new\nline", "\177" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		is(shmlimit_create(bad[i], NULL, NULL), -EILSEQ, "no segment is created under bad name %zu", i);
		is(shmlimit_open(bad[i], 0, NULL, &l), -EILSEQ, "no segment is opened under a bad name");
		is(shmlimit_destroy(bad[i]), -EILSEQ, "no segment is destroyed under a bad name");
		is(shmlimit_verify(bad[i], NULL, 0), -EILSEQ, "no segment is verified under a bad name");
		is(shmlimit_check_names(bad[i], NULL), -EILSEQ,
		   "a check of bad name %zu says that no segment can have it", i);
	}
	is(shmlimit_check_names("web", "login"), 0, "a check of a good name of a segment and of a rule says so");
	is(shmlimit_check_names(NULL, NULL), 0, "a check of no names finds nothing wrong");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	is(shmlimit_create(longest, NULL, NULL), -ENAMETOOLONG, "256 bytes are too long for a name");
	is(shmlimit_check_names(longest, "login"), -ENAMETOOLONG,
	   "a check says that 256 bytes are too long for a name");
	is(shmlimit_create(NULL, NULL, NULL), -EINVAL, "no segment is created without a name");
	is(shmlimit_open("test.errors.none", 0, NULL, &l), -ENOENT, "a segment that is not there is not opened");
	is(shmlimit_destroy("test.errors.none"), -ENOENT, "a segment that is not there is not destroyed");
}

static int create(struct shmlimit_options options)
{
	struct shmlimit *out = (void *)path;
	int error;

	if (options.struct_size == 0)
		options.struct_size = sizeof(options);
	error = shmlimit_create("test.errors.options", &options, &out);
	if (error != 0 && out != (void *)path)
		bail("create failed and touched its result");
	(void)shmlimit_path("test.errors.options", path);
	if (access(path, F_OK) == 0)
		bail("create failed and left something behind");
	return error;
}

static void options(void)
{
	struct {
		struct shmlimit_options known;
		uint64_t beyond;
	} later = { { .struct_size = sizeof(later) }, 1 };

	is(create((struct shmlimit_options){ .slots = 15 }), -EINVAL, "15 slots are too few for a segment");
	is(create((struct shmlimit_options){ .slots = ((uint64_t)1 << 36) + 1 }), -EINVAL,
	   "2^36 + 1 slots are too many for a segment");
	is(create((struct shmlimit_options){ .slots = UINT64_MAX }), -EINVAL,
	   "2^64 - 1 slots are too many for a segment");
	is(create((struct shmlimit_options){ .rules = 4097 }), -EINVAL, "4097 rules are too many for a segment");
	is(create((struct shmlimit_options){ .mode = 01000 }), -EINVAL, "a mode of more than nine bits is refused");
	for (uint32_t mode = 1; mode < 0600; mode++)
		if (create((struct shmlimit_options){ .mode = mode }) != -EINVAL)
			bail("mode %o is accepted", (unsigned)mode);
	ok(1, "a mode without the owner's read or write bit is refused");
	is(create((struct shmlimit_options){ .on_full = 3 }), -EINVAL, "a fourth way of being full is refused");
	is(create((struct shmlimit_options){ .clock = 2 }), -EINVAL, "a third clock is refused");
	is(create((struct shmlimit_options){ .flags = SHMLIMIT_OPTION_GROUP, .gid = UINT32_MAX }), -EINVAL,
	   "the group id that means no change is refused");
	is(create((struct shmlimit_options){ .gid = 1 }), -EINVAL, "a group id without its flag is refused");
	is(create((struct shmlimit_options){ .reserved = { 1 } }), -E2BIG,
	   "a reserved option that is not zero is refused");
	is(create((struct shmlimit_options){ .store_keys = SHMLIMIT_KEY_MAX + 1 }), -EINVAL,
	   "more than 1024 stored bytes of a key are refused");
	is(create((struct shmlimit_options){ .struct_size = 3 }), -EINVAL, "a structure of 3 bytes is refused");
	is(create((struct shmlimit_options){ .struct_size = 1 << 20 }), -EINVAL,
	   "a structure of a mebibyte is refused");
	is(shmlimit_create("test.errors.options", &later.known, NULL), -E2BIG,
	   "a later structure that says something new is refused");
	later.beyond = 0;
	is(shmlimit_create("test.errors.options", &later.known, NULL), 0,
	   "a later structure that says nothing new is accepted");
	is(shmlimit_create("test.errors.options", NULL, NULL), -EEXIST, "a name that is taken is refused");
	is(shmlimit_destroy("test.errors.options"), 0, "a segment can be destroyed by its name");
}

static int set(struct shmlimit_rule rule)
{
	rule.struct_size = sizeof(rule);
	return shmlimit_rule_set(l, "r", &rule);
}

static void rules(void)
{
	struct shmlimit_rule good = { .struct_size = sizeof(good), .capacity = 1, .refill = 1, .period_ns = 1 };
	static const char *const bad[] = { "", "a b", "a/b", "a\"b", "[r]", "a=b", "\xc3\xa4" };
	char longest[SHMLIMIT_RULE_NAME_MAX + 2];

	is(set((struct shmlimit_rule){ .capacity = 0, .refill = 1, .period_ns = 1 }), -EDOM,
	   "a capacity of 0 is refused");
	is(set((struct shmlimit_rule){ .capacity = 1, .refill = 0, .period_ns = 1 }), -EDOM, "a count of 0 is refused");
	is(set((struct shmlimit_rule){ .capacity = 1, .refill = 1, .period_ns = 0 }), -EDOM,
	   "a period of 0 is refused");
	is(set((struct shmlimit_rule){ .capacity = 1, .refill = UINT64_MAX, .period_ns = 1 }), -ERANGE,
	   "a rate too high to represent is refused");
	is(set((struct shmlimit_rule){ .capacity = UINT64_MAX, .refill = 1, .period_ns = 1 }), -ERANGE,
	   "a capacity too large to represent is refused");
	is(set((struct shmlimit_rule){ .capacity = 1000, .refill = 1, .period_ns = UINT64_MAX }), -ERANGE,
	   "a time to fill of centuries is refused");
	good.mode = SHMLIMIT_BLOCK + 1;
	is(set(good), -EINVAL, "a rule with an unknown mode is refused");
	good.mode = 0;
	good.algorithm = SHMLIMIT_GCRA + 1;
	is(set(good), -EINVAL, "a rule with an unknown algorithm is refused");
	good.algorithm = 0;
	good.credit = 1;
	is(set(good), -EINVAL, "a funnel with a credit is refused");
	good.credit = 0;
	good.law = SHMLIMIT_LAW_VEGAS;
	is(set(good), -EINVAL, "a funnel whose number is found is refused");
	good.law = 0;
	good.least = 1;
	is(set(good), -EINVAL, "a funnel with a least number is refused");
	good.least = 0;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		is(shmlimit_rule_set(l, bad[i], &good), -EILSEQ, "a rule with bad name %zu is refused", i);
		is(shmlimit_check_names(NULL, bad[i]), -EILSEQ, "a check of bad name %zu says that no rule can have it",
		   i);
	}
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	is(shmlimit_rule_set(l, longest, &good), -ENAMETOOLONG, "a rule's name of 64 bytes is refused");
	is(shmlimit_check_names("web", longest), -ENAMETOOLONG,
	   "a check says that 64 bytes are too long for a rule's name");
	is(shmlimit_rule_set(l, "r", NULL), -EINVAL, "setting no rule is refused");
	is(shmlimit_rule_ensure(l, "r", NULL), -EINVAL, "rule_ensure refuses to have no rule");
	is(shmlimit_rule_find(l, "r"), -ESRCH, "no rule is there after all were refused");
}

static void decisions(void)
{
	int id = unit_rule(l, "d", 1, 1, SECOND);
	static char key[SHMLIMIT_KEY_MAX + 1];

	is(shmlimit_take(l, id, key, 0, 1, NULL), -EMSGSIZE, "take refuses a key of no bytes");
	is(shmlimit_take(l, id, key, 1025, 1, NULL), -EMSGSIZE, "take refuses a key of 1025 bytes");
	is(shmlimit_take(l, id, key, SIZE_MAX, 1, NULL), -EMSGSIZE, "take refuses a key as long as memory");
	is(shmlimit_peek(l, id, key, 0, 1, NULL), -EMSGSIZE, "peek refuses a key of no bytes");
	is(shmlimit_refund(l, id, key, 0, 1, NULL), -EMSGSIZE, "refund refuses a key of no bytes");
	is(shmlimit_reset(l, id, key, 0), -EMSGSIZE, "reset refuses a key of no bytes");
	is(shmlimit_take(l, id, NULL, 1, 1, NULL), -EINVAL, "take refuses to have no key");
	is(shmlimit_take(NULL, id, key, 1, 1, NULL), -EINVAL, "take refuses to have no limiter");
	is(shmlimit_take(l, -1, key, 1, 1, NULL), -ESRCH, "take refuses rule -1");
	is(shmlimit_take(l, 64, key, 1, 1, NULL), -ESRCH, "take refuses a rule beyond the last");
	is(shmlimit_take(l, INT32_MAX, key, 1, 1, NULL), -ESRCH, "take refuses a rule far beyond the last");
	is(shmlimit_take(l, 63, key, 1, 1, NULL), -ESRCH, "take refuses a rule that was never set");
	is(shmlimit_reset(l, 63, NULL, 0), -ESRCH, "reset refuses a rule that was never set");
	is(unit_counters(l, SHMLIMIT_ALL_RULES).allowed + unit_counters(l, SHMLIMIT_ALL_RULES).denied +
	           unit_counters(l, SHMLIMIT_ALL_RULES).claims,
	   0, "calls that were refused counted and claimed nothing");
}

static void read_only(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = SECOND };
	int id = shmlimit_rule_find(l, "d");
	struct shmlimit *ro;

	is(shmlimit_open(unit_name, 4, NULL, &ro), -EINVAL, "open refuses an unknown flag");
	is(shmlimit_open(unit_name, 0, NULL, NULL), -EINVAL, "open refuses to have no place for the handle");
	is(shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &ro), 0, "a segment can be opened read-only");
	is(shmlimit_take(ro, id, "k", 1, 1, NULL), -EROFS, "a read-only handle does not take");
	is(shmlimit_refund(ro, id, "k", 1, 1, NULL), -EROFS, "a read-only handle does not refund");
	is(shmlimit_reset(ro, SHMLIMIT_ALL_RULES, NULL, 0), -EROFS, "a read-only handle does not reset");
	is(shmlimit_enable(ro, 0), -EROFS, "a read-only handle does not switch a segment off");
	ok(shmlimit_area(ro, NULL) == NULL, "a read-only handle has no area for the requests to an agent");
	is(shmlimit_count_undecided(ro, 0, 1), -EROFS, "a read-only handle does not count undecided requests");
	is(shmlimit_rule_set(ro, "d", &rule), -EROFS, "a read-only handle sets no rules");
	is(shmlimit_rule_ensure(ro, "d", &rule), id, "a read-only handle has the rule that is there");
	is(shmlimit_rule_ensure(ro, "e", &rule), -EROFS, "a read-only handle gives nobody a rule");
	is(shmlimit_rule_remove(ro, "d"), -EROFS, "a read-only handle removes no rules");
	is(shmlimit_peek(ro, id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a read-only handle peeks");
	shmlimit_close(ro);
	shmlimit_close(NULL);
	ok(1, "closing no limiter is allowed");
}

/* Every call that is not of a segment's name. */
static void no_limiter(void)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit_lease_counters leases = { .struct_size = sizeof(leases) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = SECOND };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	uint64_t version;

	is(shmlimit_info(NULL, &info), -EINVAL, "info refuses to have no limiter");
	is(shmlimit_enable(NULL, 1), -EINVAL, "switch refuses to have no limiter");
	ok(shmlimit_area(NULL, NULL) == NULL, "no handle has no area for the requests to an agent");
	is(shmlimit_count_undecided(NULL, 0, 1), -EINVAL, "undecided requests are not counted without a segment");
	is(shmlimit_counters(NULL, SHMLIMIT_ALL_RULES, &counters), -EINVAL, "counters refuses to have no limiter");
	is(shmlimit_lease_counters(NULL, &leases), -EINVAL, "lease_counters refuses to have no limiter");
	is(shmlimit_lease_count(NULL, 0, 1), -EINVAL, "lease_count refuses to have no limiter");
	is(shmlimit_slot(NULL, 0, &slot, 0), -EINVAL, "slot refuses to have no limiter");
	is(shmlimit_rule_set(NULL, "r", &rule), -EINVAL, "rule_set refuses to have no limiter");
	is(shmlimit_rule_ensure(NULL, "r", &rule), -EINVAL, "rule_ensure refuses to have no limiter");
	is(shmlimit_rule_remove(NULL, "r"), -EINVAL, "rule_remove refuses to have no limiter");
	is(shmlimit_rule_find(NULL, "r"), -EINVAL, "rule_find refuses to have no limiter");
	is(shmlimit_rule_name(NULL, 0, name), -EINVAL, "rule_name refuses to have no limiter");
	is(shmlimit_rule_get(NULL, 0, &rule), -EINVAL, "rule_get refuses to have no limiter");
	is(shmlimit_rule_range(NULL, 0, &range), -EINVAL, "rule_range refuses to have no limiter");
	is(shmlimit_rule_algorithm(NULL, 0), -EINVAL, "rule_algorithm refuses to have no limiter");
	is(shmlimit_rule_version(NULL, 0, &version), -EINVAL, "rule_version refuses to have no limiter");
	is(shmlimit_rule_version(l, 0, NULL), -EINVAL, "rule_version refuses to have no place for the version");
	is(shmlimit_reset(NULL, SHMLIMIT_ALL_RULES, NULL, 0), -EINVAL, "reset refuses to have no limiter");
	is(shmlimit_acquire(NULL, 0, "k", 1, 1, 0, NULL), -EINVAL, "acquire refuses to have no limiter");
	is(shmlimit_reserve(NULL, 0, "k", 1, 1, 0, NULL), -EINVAL, "reserve refuses to have no limiter");
	is(shmlimit_charge(NULL, 0, "k", 1, 1, NULL), -EINVAL, "charge refuses to have no limiter");
	is(shmlimit_refund(NULL, 0, "k", 1, 1, NULL), -EINVAL, "refund refuses to have no limiter");
	is(shmlimit_peek(NULL, 0, "k", 1, 1, NULL), -EINVAL, "peek refuses to have no limiter");
	is(shmlimit_lease_take(NULL, 0, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = SECOND,
	                                                         .claim_ns = SECOND },
	                       &lease, NULL),
	   -EINVAL, "lease_take refuses to have no limiter");
	is(shmlimit_lease_deny(NULL, 0, "k", 1, 1, SECOND, NULL), -EINVAL, "lease_deny refuses to have no limiter");
	ok(shmlimit_now(NULL) != 0, "now without a limiter is the time of the default clock");
}

/* What stands in no rule, and where answers do not fit. */
static void no_rule(void)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit_info info = { .struct_size = 4 };
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_lease lease = { .struct_size = 4 };
	char name[SHMLIMIT_RULE_NAME_MAX + 1], segment[SHMLIMIT_NAME_MAX + 1];
	static const int none[] = { 63, 64, INT32_MAX, -1 };
	int id = shmlimit_rule_find(l, "d");
	uint64_t version;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		is(shmlimit_rule_name(l, none[i], name), -ESRCH, "rule %d has no name", none[i]);
		is(shmlimit_rule_get(l, none[i], &rule), -ESRCH, "rule %d has no parameters", none[i]);
		is(shmlimit_rule_range(l, none[i], &range), -ESRCH, "rule %d has no range", none[i]);
		is(shmlimit_rule_algorithm(l, none[i]), -ESRCH, "rule %d has no algorithm", none[i]);
		is(shmlimit_rule_version(l, none[i], &version), -ESRCH, "rule %d has no version", none[i]);
		if (none[i] >= 0)
			is(shmlimit_counters(l, none[i], &counters), -ESRCH, "rule %d has no counters", none[i]);
	}
	is(shmlimit_rule_name(l, id, NULL), -EINVAL, "rule_name refuses to have no place for the name");
	is(shmlimit_rule_find(l, NULL), -EINVAL, "a rule without a name is not found");
	is(shmlimit_rule_remove(l, NULL), -EINVAL, "a rule without a name is not removed");
	is(shmlimit_info(l, &info), -EINVAL, "info refuses a structure of 4 bytes");
	is(shmlimit_lease_take(l, id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = SECOND,
	                                                         .claim_ns = SECOND },
	                       &lease, NULL),
	   -EINVAL, "lease_take refuses a structure of 4 bytes");
	is(shmlimit_lease_take(l, id, "k", 1,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = SECOND,
	                                                         .claim_ns = SECOND },
	                       NULL, NULL),
	   -EINVAL, "lease_take refuses to have no structure");
	is(shmlimit_lease_deny(l, id, NULL, 1, 1, SECOND, NULL), -EINVAL, "lease_deny refuses to have no key");
	is(shmlimit_lease_deny(l, id, "k", 0, 1, SECOND, NULL), -EMSGSIZE, "lease_deny refuses a key of no bytes");
	is(shmlimit_lease_count(l, SHMLIMIT_LEASE_BREAKER_OPENINGS + 1, 1), -EINVAL,
	   "lease_count refuses an unknown counter");
	is(shmlimit_count_undecided(l, 2, 1), -EINVAL, "an undecided request passed or was refused, nothing else");
	is(shmlimit_acquire(l, 63, "k", 1, 1, 0, NULL), -ESRCH, "acquire refuses a rule that was never set");
	memset(segment, 'x', sizeof(segment));
	is(shmlimit_next(segment), -ENAMETOOLONG, "next refuses a name without an end");
	is(shmlimit_next(NULL), -EINVAL, "next refuses to have no name");
}

/* Put bytes into the file, see what open says, put back what was there. */
static int with(off_t offset, const void *bytes, size_t len)
{
	unsigned char saved[64];
	struct shmlimit *out;
	int fd = open(path, O_RDWR), error;

	if (pread(fd, saved, len, offset) != (ssize_t)len || pwrite(fd, bytes, len, offset) != (ssize_t)len)
		bail("pwrite");
	error = shmlimit_open(unit_name, 0, NULL, &out);
	if (error == 0)
		shmlimit_close(out);
	if (pwrite(fd, saved, len, offset) != (ssize_t)len)
		bail("pwrite");
	close(fd);
	return error;
}

static int cut_to(off_t size)
{
	struct shmlimit *out;
	int error;

	if (truncate(path, size) != 0)
		bail("truncate");
	error = shmlimit_open(unit_name, 0, NULL, &out);
	if (error == 0)
		shmlimit_close(out);
	return error;
}

static void damage(void)
{
	struct layout_header header;
	struct shmlimit_problem problem;
	struct layout_offsets offsets;
	struct shmlimit *out;
	int fd = open(path, O_RDWR);

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		bail("pread");
	is(with(0, "SHMLIMIT", 8), -EMEDIUMTYPE, "a file with another magic is not ours");
	is(with(8, &(uint32_t){ LAYOUT_VERSION + 1 }, 4), -EPROTO, "a segment of another layout version is refused");
	is(with(16, &(uint64_t){ 0 }, 8), -EPROTO, "a segment of another layout is refused");
	is(with(40, &(uint64_t){ UINT64_MAX }, 8), -EUCLEAN, "a segment with a changed count is damaged");
	is(shmlimit_open(unit_name, 0, NULL, &out), 0, "a segment with all put back opens");
	shmlimit_close(out);

	header.boot_id[0] ^= 1;
	header.checksum = layout_checksum(&header);
	if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		bail("pwrite");
	is(shmlimit_open(unit_name, 0, NULL, &out), -ESTALE, "a segment of another boot is refused");
	is(shmlimit_verify(unit_name, &problem, 1), 1, "verify says that a segment is of another boot");
	header.boot_id[0] ^= 1;
	header.time_namespace ^= 1;
	header.checksum = layout_checksum(&header);
	if (pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		bail("pwrite");
	is(shmlimit_open(unit_name, 0, NULL, &out), -EXDEV, "a segment of another time namespace is refused");

	if (!layout_offsets(&header, &offsets))
		bail("layout_offsets");
	is(cut_to((off_t)offsets.file + 1), -EUCLEAN, "a file that is longer than it can grow is damaged");
	is(cut_to((off_t)offsets.end - 1), -EUCLEAN, "a short file is damaged");
	is(cut_to(300), -EUCLEAN, "a file without a whole header is damaged");
	is(shmlimit_verify(unit_name, &problem, 1), 1, "verify says what is wrong with a file without a whole header");
	is(cut_to(7), -EMEDIUMTYPE, "a file without a magic is not ours");
	is(shmlimit_verify(unit_name, &problem, 1), -EMEDIUMTYPE, "a file without a magic is not verified");
	is(shmlimit_destroy(unit_name), -EMEDIUMTYPE,
	   "a file without a magic is not destroyed: it may be somebody else's");
	is(cut_to(0), -EMEDIUMTYPE, "an empty file is not ours");
	close(fd);
	unlink(path);
	mkdir(path, 0700);
	is(shmlimit_open(unit_name, 0, NULL, &out), -EMEDIUMTYPE, "a folder is not a segment");
	is(shmlimit_create(unit_name, NULL, NULL), -EEXIST, "the name of a folder is taken");
	rmdir(path);
	if (symlink("/dev/shm/elsewhere", path) != 0)
		bail("symlink");
	is(shmlimit_open(unit_name, 0, NULL, &out), -EMEDIUMTYPE, "a link is not followed");
	unlink(path);
}

static void texts(void)
{
	static const int known[] = { EINVAL, E2BIG,    EILSEQ, ENAMETOOLONG, EMSGSIZE,    EDOM,   ERANGE,  ESRCH,
		                     EXFULL, EROFS,    ENOENT, EEXIST,       EMEDIUMTYPE, EPROTO, EUCLEAN, ESTALE,
		                     EXDEV,  EACCES,   EPERM,  ENOSPC,       ENOBUFS,     EFBIG,  EBUSY,   EOPNOTSUPP,
		                     ETIME,  EALREADY, EAGAIN, ENOMEM,       EMFILE,      ENFILE, 0 };
	size_t n = sizeof(known) / sizeof(known[0]), same = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			same += strcmp(shmlimit_strerror(known[i]), shmlimit_strerror(-known[j])) == 0;
	is(same, 0, "each error has words of its own");
	is_str(shmlimit_strerror(-ESRCH), shmlimit_strerror(ESRCH), "whichever sign it is given with");
	is_str(shmlimit_strerror(INT32_MIN), shmlimit_strerror(9999), "a value that is not ours has a text");
}

int main(void)
{
	names();
	options();
	l = unit_create("errors", NULL);
	(void)shmlimit_path(unit_name, path);
	rules();
	decisions();
	no_limiter();
	no_rule();
	read_only();
	damage();
	texts();
	return tap_done();
}
