/*
 * header: each bit of a header is inverted, each byte of its small fields gets each value, and the file gets each
 * length. A process that opens, verifies or destroys such a segment gets the error that says what is wrong, and changes
 * nothing (I7, I11).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/stat.h>

#include "../process/process.h"

#include "layout.h"

#define FILE_MAX 262144

/* From one value of a byte to the next. 17 leads from 0 to 255 too: enough where less than all is asked for. */
static unsigned step;

/* The segment's name, and another name of the same file, which stays. */
static char path[SHMLIMIT_PATH_MAX], kept[SHMLIMIT_PATH_MAX + 8];
static int fd;
static unsigned char *file;                                        /* its mapping */
static unsigned char sound[FILE_MAX] __attribute__((aligned(64))); /* the file as it was made */
static size_t size;

/* What is wrong with a file, as open says, and of whom it is. */
static int judge(const unsigned char *bytes, size_t len)
{
	struct layout_header h = { 0 };
	const struct layout_header *good = (const void *)sound;

	memcpy(&h, bytes, len < sizeof(h) ? len : sizeof(h));
	if (len < sizeof(h.magic) || memcmp(h.magic, good->magic, sizeof(h.magic)) != 0)
		return -EMEDIUMTYPE;
	if (len < sizeof(h))
		return -EUCLEAN;
	if (h.version != good->version || h.byte_order != good->byte_order || h.fingerprint != good->fingerprint)
		return -EPROTO;
	if (h.checksum != layout_checksum(&h) || len < size)
		return -EUCLEAN;
	if ((h.state & ~STATE_OFF) != 0)
		return -EUCLEAN; /* a table that is not there */
	return memcmp(&h, good, offsetof(struct layout_header, state)) == 0 ? 0 : -EUCLEAN;
}

static struct tally {
	unsigned cases, opened, verified, destroyed, written;
} tally;

static int opens(uint32_t flags)
{
	struct shmlimit *out = (void *)path;
	int error = shmlimit_open(stage_name, flags, NULL, &out);

	if (error == 0)
		shmlimit_close(out);
	else if (out != (void *)path)
		bail("open failed and touched its result");
	return error;
}

static int destroys(void)
{
	int error = shmlimit_destroy(stage_name);

	if ((error == 0) != (access(path, F_OK) != 0))
		bail("destroy: %d, but the file says otherwise", error);
	return error;
}

/* A file of these bytes: each call must give this answer and leave the file as it is. Those that don't are counted. */
static void meet(const unsigned char *bytes, size_t len, int want)
{
	struct stat after;
	int found;

	if ((link(kept, path) != 0 && errno != EEXIST) || ftruncate(fd, (off_t)len) != 0)
		bail("no file: %s", strerror(errno));
	memcpy(file, bytes, len);
	tally.cases++;
	tally.opened += opens(0) != want || opens(SHMLIMIT_OPEN_READ_ONLY) != want;
	found = shmlimit_verify(stage_name, NULL, 0);
	tally.verified += want == -EMEDIUMTYPE ? found != want : want != 0 ? found != 1 : found < 0;
	/* What is damaged, or another version's, may go; what is not ours may not. */
	tally.destroyed += destroys() != (want == -EMEDIUMTYPE ? want : 0);
	if (fstat(fd, &after) != 0)
		bail("fstat: %s", strerror(errno));
	tally.written += after.st_size != (off_t)len || memcmp(file, bytes, len) != 0;
}

static void report(const char *title, unsigned cases)
{
	is(tally.cases, cases, "%s: %u cases", title, cases);
	is(tally.opened, 0, "%s: opening says what is wrong", title);
	is(tally.verified, 0, "%s: verify says what is wrong", title);
	is(tally.destroyed, 0, "%s: destroyed is what is ours", title);
	is(tally.written, 0, "%s: nothing is written", title);
	tally = (struct tally){ 0 };
}

static void bits(void)
{
	static unsigned char bytes[FILE_MAX] __attribute__((aligned(64)));
	unsigned checked = offsetof(struct layout_header, state) * 8, silent = 0;

	for (unsigned bit = 0; bit < sizeof(struct layout_header) * 8; bit++) {
		memcpy(bytes, sound, size);
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		silent += bit < checked && judge(bytes, size) == 0;
		meet(bytes, size, judge(bytes, size));
	}
	is(silent, 0, "no bit is without an error but in the line that changes");
	report("each bit of the header", sizeof(struct layout_header) * 8);
}

/* With a checksum that is right, so that what is behind it is looked at. `want`: of a value that is not its own. */
static void values(const char *title, size_t offset, size_t len, int want)
{
	static unsigned char bytes[FILE_MAX] __attribute__((aligned(64)));

	for (size_t i = 0; i < len; i++) {
		for (unsigned value = 0; value < 256; value += step) {
			struct layout_header *h = (void *)bytes;

			memcpy(bytes, sound, size);
			bytes[offset + i] = (unsigned char)value;
			h->checksum = layout_checksum(h);
			meet(bytes, size, memcmp(bytes, sound, sizeof(*h)) == 0 ? 0 : want);
		}
	}
	report(title, (unsigned)len * (255 / step + 1));
}

#define FIELD(name, want) \
	values("each value of a byte of " #name, offsetof(struct layout_header, name), \
	       sizeof(((struct layout_header *)0)->name), want)

/* Two fields of which several values are good, in a segment of the same size. */
static void choices(void)
{
	static unsigned char bytes[FILE_MAX] __attribute__((aligned(64)));
	struct layout_header *h = (void *)bytes;

	for (unsigned value = 0; value < 256; value++) {
		memcpy(bytes, sound, size);
		h->on_full = value;
		h->checksum = layout_checksum(h);
		meet(bytes, size, value <= SHMLIMIT_FULL_DENY ? 0 : -EUCLEAN);
		memcpy(bytes, sound, size);
		h->clock = value;
		h->checksum = layout_checksum(h);
		meet(bytes, size, value <= SHMLIMIT_CLOCK_COARSE ? 0 : -EUCLEAN);
	}
	report("each small value of on_full and clock", 512);
}

/* Numbers that are no segment's, though each field could have them, or could not hold more. */
static void extremes(void)
{
	static unsigned char bytes[FILE_MAX] __attribute__((aligned(64)));
	struct layout_header *h = (void *)bytes;
	const struct {
		size_t offset;
		uint32_t value;
	} bad[] = {
		{ offsetof(struct layout_header, rules), 0 },
		{ offsetof(struct layout_header, rules), SHMLIMIT_RULES_MAX + 1 },
		{ offsetof(struct layout_header, cpus), 0 },
		{ offsetof(struct layout_header, cpus), UINT32_MAX },
		{ offsetof(struct layout_header, stripes), 0 },
		{ offsetof(struct layout_header, stripes), UINT32_MAX },
		{ offsetof(struct layout_header, rules_max), UINT32_MAX },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(bytes, sound, size);
		memcpy(bytes + bad[i].offset, &bad[i].value, sizeof(bad[i].value));
		h->checksum = layout_checksum(h);
		meet(bytes, size, -EUCLEAN);
	}
	report("none and too many of what is counted", sizeof(bad) / sizeof(bad[0]));
}

static void lengths(void)
{
	const struct layout_header *h = (const void *)sound;
	const uint64_t edges[] = { 512, 4096, h->counters_offset, h->slots_offset, h->names_offset, size - 8, size };
	static unsigned char bytes[FILE_MAX] __attribute__((aligned(64)));
	unsigned cases = 0;

	memcpy(bytes, sound, size);
	for (size_t len = 0; len <= sizeof(*h) + 1; len++, cases++)
		meet(bytes, len, judge(bytes, len));
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (size_t len = edges[i] - 1; len <= edges[i] + 1; len++, cases++)
			meet(bytes, len, judge(bytes, len));
	is(judge(bytes, size), 0, "the file as it was made is sound");
	report("each length", cases);
}

/* As shmlimit(7) says. */
static void stripes(void)
{
	const struct layout_header *h = (const void *)sound;

	ok(h->cpus >= 1 && h->cpus <= 1024, "a segment counts for each CPU apart: %u", h->cpus);
	is(h->stripes, h->cpus < 4 ? 4 : h->cpus > 16 ? 16 : h->cpus, "a segment has a stripe for each CPU, 4 to 16");
}

int main(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 16, .rules = 1, .rules_max = 1
	};
	struct layout_offsets offsets;
	ssize_t len;

	stage_begin("header");
	step = scaled(100) < 100 ? 17 : 1;
	if (shmlimit_create(stage_name, &options, NULL) != 0)
		bail("create");
	(void)shmlimit_path(stage_name, path);
	snprintf(kept, sizeof(kept), "%s.kept", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	len = pread(fd, sound, sizeof(sound), 0);
	/* Behind its table there are only holes. */
	if (len <= 0 || !layout_offsets((const struct layout_header *)(const void *)sound, &offsets) ||
	    offsets.end >= FILE_MAX - 1)
		bail("the segment is not as long as it should be");
	size = (size_t)offsets.end;
	file = mmap(NULL, FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED || link(path, kept) != 0)
		bail("no second name: %s", strerror(errno));

	stripes();
	bits();
	FIELD(version, -EPROTO);
	FIELD(byte_order, -EPROTO);
	FIELD(fingerprint, -EPROTO);
	FIELD(size, -EUCLEAN);
	FIELD(lines, -EUCLEAN);
	FIELD(lines_max, -EUCLEAN);
	FIELD(slots_offset, -EUCLEAN);
	FIELD(rules_offset, -EUCLEAN);
	FIELD(counters_offset, -EUCLEAN);
	FIELD(names_offset, -EUCLEAN);
	FIELD(names, -EUCLEAN);
	FIELD(rules, -EUCLEAN);
	FIELD(reserved, -EUCLEAN);
	FIELD(boot_id, -ESTALE);
	FIELD(time_namespace, -EXDEV);
	choices();
	extremes();
	lengths();
	return tap_done();
}
