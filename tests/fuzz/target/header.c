/*
 * header: whatever stands in a header, in a file of whatever length: open and
 * verify answer as documented, write nothing, and what they let in is used
 * without a fault (I7, I11). A byte says whether the checksum is made right again.
 *
 *	input  [ file's length, 4 ] [ how, 1 ] [ offset, 2 ][ byte ] ...
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../process/process.h"
#include "fuzz.h"

#include "header.h"

#define SECOND ((uint64_t)1000000000)
#define LONGEST (1 << 18)
#define LENGTH_AS_IT_IS 1 /* how */
#define CHECKSUM_RIGHT 2

static struct layout_header sound;
static int fd;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 16, .rules = 2, .rules_max = 2
	};
	char path[SHMLIMIT_PATH_MAX];

	(void)argc;
	(void)argv;
	snprintf(stage_name, sizeof(stage_name), "test.fuzz.header.%d", (int)getpid());
	guard_begin(stage_clean);
	law(shmlimit_create(stage_name, &options, NULL) == 0, "no segment to damage");
	(void)shmlimit_path(stage_name, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	law(fd >= 0 && pread(fd, &sound, sizeof(sound), 0) == (ssize_t)sizeof(sound), "no segment to damage");
	return 0;
}

/* What the manual says of such a header. 0: it does not have to be refused. */
static int refusal(const struct layout_header *h, uint64_t size)
{
	struct layout_offsets offsets;

	if (size < sizeof(h->magic) || memcmp(h->magic, "shmlimit", sizeof(h->magic)) != 0)
		return -EMEDIUMTYPE;
	if (size < sizeof(*h))
		return -EUCLEAN;
	if (h->version != sound.version || h->byte_order != sound.byte_order || h->fingerprint != sound.fingerprint)
		return -EPROTO;
	if (h->checksum != layout_checksum(h) || !layout_offsets(h, &offsets) || size > offsets.file)
		return -EUCLEAN;
	/* This one cannot grow, so all of its table is in the file. */
	if (memcmp(h, &sound, sizeof(*h)) == 0)
		return size < h->size ? -EUCLEAN : 0;
	return 1;
}

static void use(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 3, .refill = 1, .period_ns = SECOND };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_result r;
	int id, answer;

	law(shmlimit_info(l, &info) == 0 && info.slots * 16 < info.size, "%" PRIu64 " slots", info.slots);
	id = shmlimit_rule_set(l, "r", &rule);
	law(id == 0, "rule_set: %d", id);
	answer = shmlimit_take(at_time(l, SECOND), id, "key", 3, 1, &r);
	law(answer == SHMLIMIT_ALLOWED, "a new key: %d", answer);
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, SECOND) == 0; i++)
		;
	law(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0) >= 0, "reset");
	law(shmlimit_rule_remove(l, "r") == 0, "rule_remove");
}

static void meet(const struct layout_header *h, uint64_t size)
{
	int must = refusal(h, size), error, found;
	unsigned char before[LONGEST + 1], after[LONGEST + 1];
	struct shmlimit_problem problem;
	struct shmlimit *l = NULL;
	ssize_t len = pread(fd, before, sizeof(before), 0);

	error = shmlimit_open(stage_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &l);
	law(must == 1 ? error == 0 || error == -EUCLEAN || error == -ESTALE || error == -EXDEV : error == must,
	    "open: %d, must be %d", error, must);
	shmlimit_close(l);
	found = shmlimit_verify(stage_name, &problem, 1);
	law(error == -EMEDIUMTYPE ? found == error
	    : error != 0          ? found == 1
	                          : found >= 0,
	    "verify: %d, open: %d", found, error);
	law(pread(fd, after, sizeof(after), 0) == len && memcmp(before, after, (size_t)len) == 0,
	    "looking at it has changed it");
	if (error != 0)
		return;
	law(shmlimit_open(stage_name, 0, NULL, &l) == 0, "it opens to be read only");
	use(l);
	shmlimit_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct layout_header h = sound;
	uint64_t length = input_number(&in, 4) % LONGEST, how = input_number(&in, 1);
	size_t head;

	while (in.left > 0) {
		size_t offset = input_number(&in, 2) % sizeof(h);

		((unsigned char *)&h)[offset] = (unsigned char)input_number(&in, 1);
	}
	if (how & LENGTH_AS_IT_IS)
		length = h.size < LONGEST ? h.size : sound.size;
	if (how & CHECKSUM_RIGHT)
		h.checksum = layout_checksum(&h);
	head = length < sizeof(h) ? length : sizeof(h);
	law(ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)length) == 0 && pwrite(fd, &h, head, 0) == (ssize_t)head,
	    "no file to damage");
	meet(&h, length);
	return 0;
}
