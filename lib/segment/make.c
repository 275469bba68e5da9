/*
 * make: see make.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "attach.h"
#include "make.h"
#include "sized.h"

#define SLOTS_DEFAULT 65536u /* a mebibyte */
#define GROWTH_DEFAULT 16u   /* times the slots: it takes address space, no memory */
#define RULES_DEFAULT 64u
#define MODE_DEFAULT 0600u /* and the least: without these its owner could neither list nor destroy it */
#define STRIPES_MIN 4u     /* few CPUs may still have many processes without rseq */
#define STRIPES_MAX 16u
#define CPUS_MAX 1024u /* CPUs beyond these count on the stripes */

uint64_t make_slots_max(uint64_t slots)
{
	return slots < SHMLIMIT_SLOTS_MAX / GROWTH_DEFAULT ? slots * GROWTH_DEFAULT : SHMLIMIT_SLOTS_MAX;
}

static int check_options(struct shmlimit_options *o)
{
	if (o->slots == 0)
		o->slots = SLOTS_DEFAULT;
	if (o->slots_max == 0)
		o->slots_max = make_slots_max(o->slots);
	if (o->rules_max == 0)
		o->rules_max = SHMLIMIT_RULES_MAX;
	if (o->rules == 0)
		o->rules = o->rules_max < RULES_DEFAULT ? o->rules_max : RULES_DEFAULT;
	if (o->mode == 0)
		o->mode = MODE_DEFAULT;
	if (o->slots < SHMLIMIT_SLOTS_MIN || o->slots > o->slots_max || o->slots_max > SHMLIMIT_SLOTS_MAX ||
	    o->rules > o->rules_max || o->rules_max > SHMLIMIT_RULES_MAX || (o->mode & ~0777u) != 0 ||
	    (o->mode & MODE_DEFAULT) != MODE_DEFAULT || o->on_full > SHMLIMIT_FULL_DENY ||
	    o->clock > SHMLIMIT_CLOCK_COARSE || o->store_keys > SHMLIMIT_KEY_MAX ||
	    (o->flags & ~(uint32_t)(SHMLIMIT_OPTION_GROUP | SHMLIMIT_OPTION_FIT)) != 0 || o->gid == UINT32_MAX ||
	    (o->gid != 0 && !(o->flags & SHMLIMIT_OPTION_GROUP)))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(o->reserved) / sizeof(o->reserved[0]); i++)
		if (o->reserved[i] != 0)
			return -E2BIG;
	return 0;
}

static uint32_t clamp(uint32_t x, uint32_t least, uint32_t most)
{
	return x < least ? least : x > most ? most : x;
}

/* What a segment of these options has, and where its parts begin. Returns 0 or -EINVAL. */
static int count_parts(const struct shmlimit_options *o, struct layout_header *h, struct layout_offsets *offsets)
{
	uint32_t cpus = segment_cpus();

	memset(h, 0, sizeof(*h));
	h->lines = (o->slots + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE;
	h->lines_max = (o->slots_max + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE;
	h->rules = o->rules;
	h->rules_max = o->rules_max;
	h->cpus = clamp(cpus, 1, CPUS_MAX);
	h->stripes = clamp(cpus, STRIPES_MIN, STRIPES_MAX);
	h->names = layout_names(o->store_keys);
	return layout_offsets(h, offsets) ? 0 : -EINVAL;
}

/* `asked` slots there may have been no room for. */
static int make_header(const struct shmlimit_options *o, uint64_t asked, const uint64_t secret[2],
                       struct layout_header *h, struct layout_offsets *offsets)
{
	int clock_id = attach_clock(o->clock), error = count_parts(o, h, offsets);
	struct header_host host;

	if (error != 0)
		return error;
	memcpy(h->magic, LAYOUT_MAGIC, sizeof(h->magic));
	h->version = LAYOUT_VERSION;
	h->byte_order = LAYOUT_BYTE_ORDER;
	h->fingerprint = layout_fingerprint();
	h->rules_offset = offsets->rules;
	h->counters_offset = offsets->counters;
	h->slots_offset = offsets->slots;
	h->names_offset = offsets->names;
	h->size = offsets->size;
	h->on_full = o->on_full;
	h->clock = o->clock;
	attach_host(&host);
	memcpy(h->boot_id, host.boot_id, sizeof(h->boot_id));
	h->time_namespace = host.time_namespace;
	h->created_unix_ns = segment_unix_ns();
	h->unix_ns = clock_read(clock_wall(clock_id)) - clock_read(clock_id);
	if (secret != NULL)
		memcpy(h->secret, secret, sizeof(h->secret));
	else
		error = segment_random(h->secret, sizeof(h->secret));
	if (asked > o->slots)
		h->lines_asked = (asked + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE;
	h->checksum = layout_checksum(h);
	h->sweep_after_ns = SWEEP_AFTER_MAX_NS;
	h->rules_now = o->rules;
	return error;
}

static int make_file(const struct layout_header *header, const struct layout_offsets *offsets,
                     const struct shmlimit_options *o, int is_private, struct segment *segment, int *fd)
{
	uint64_t area = header->slots_offset - LAYOUT_AREA;
	const struct layout_range reserved[] = {
		{ 0, header->rules_offset, 0, 1 },
		layout_records(header->rules_offset, header->rules),
		layout_counters(header->counters_offset, header->cpus + header->stripes, header->rules_max,
		                header->rules),
		{ area, offsets->end - area, 0, 1 },
	};
	const struct segment_file file = {
		.head = header,
		.head_len = sizeof(*header),
		.reserved = reserved,
		.ranges = sizeof(reserved) / sizeof(reserved[0]),
		.size = offsets->file,
		.mode = o->mode,
		.group = o->flags & SHMLIMIT_OPTION_GROUP ? 1 + (uint64_t)o->gid : 0,
	};

	return is_private ? segment_make_private(&file, segment, fd) : segment_make(&file, segment, fd);
}

int make_options(const struct shmlimit_options *options, struct shmlimit_options *o)
{
	int error = 0;

	memset(o, 0, sizeof(*o));
	if (options != NULL)
		error = sized_in(o, options, sizeof(*o));
	return error != 0 ? error : check_options(o);
}

/* Bytes that are reserved for a segment of these options; UINT64_MAX: there can be none. */
static uint64_t bytes_of(const struct shmlimit_options *o, uint64_t slots)
{
	struct shmlimit_options other = *o;
	struct layout_header h;
	struct layout_offsets offsets;

	other.slots = slots;
	if (count_parts(&other, &h, &offsets) != 0)
		return UINT64_MAX;
	return layout_next_page(offsets.end) - layout_holes(h.cpus + h.stripes, h.rules_max, h.rules);
}

static uint64_t half(uint64_t slots)
{
	return slots / 2 > SHMLIMIT_SLOTS_MIN ? slots / 2 : SHMLIMIT_SLOTS_MIN;
}

/* WHY half of the room: what comes later needs some, such as more rules, and other programs. */
int make_fit(const struct shmlimit_options *o, uint64_t *slots)
{
	uint64_t room = segment_room(), least = bytes_of(o, SHMLIMIT_SLOTS_MIN);

	*slots = o->slots;
	if (bytes_of(o, *slots) <= room)
		return 0;
	*slots = half(*slots);
	if (least > room)
		return -ENOSPC;
	while (*slots > SHMLIMIT_SLOTS_MIN && bytes_of(o, *slots) - least > (room - least) / 2)
		*slots = half(*slots);
	return 0;
}

/* Is there too little room for so long a file? */
static int is_file_too_long(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -ENOMEM;
}

/* BOUND: each round has half as many slots as its predecessor. */
int make_segment(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
                 struct segment *segment, int *fd)
{
	struct shmlimit_options o;
	struct layout_offsets offsets;
	uint64_t asked;
	int error = make_options(options, &o);

	asked = o.slots;
	if (error == 0 && (o.flags & SHMLIMIT_OPTION_FIT))
		(void)make_fit(&o, &o.slots); /* without room making it says so */
	while (error == 0) {
		error = make_header(&o, asked, secret, header, &offsets);
		if (error == 0)
			error = make_file(header, &offsets, &o, 0, segment, fd);
		if (!is_file_too_long(error) || !(o.flags & SHMLIMIT_OPTION_FIT) || o.slots == SHMLIMIT_SLOTS_MIN)
			break;
		/*
		 * A file may be shorter here than /dev/shm has room for, or another process was
		 * faster.
		 */
		o.slots = half(o.slots);
		error = 0;
	}
	return error;
}

int make_private(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
                 struct segment *segment, int *fd)
{
	struct shmlimit_options o;
	struct layout_offsets offsets;
	int error = make_options(options, &o);

	if (error == 0)
		error = make_header(&o, 0, secret, header, &offsets);
	o.slots = o.slots_max = SHMLIMIT_SLOTS_MIN;
	o.store_keys = 0;
	o.mode = 0600;
	o.flags = 0;
	if (error == 0)
		error = make_header(&o, 0, secret, header, &offsets);
	return error != 0 ? error : make_file(header, &offsets, &o, 1, segment, fd);
}
