/*
 * segments: make, open and remove segments; what holds for a whole one: size, switch, clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "atomic.h"
#include "attach.h"
#include "clock.h"
#include "export.h"
#include "generation.h"
#include "make.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "shmlimit.h"
#include "sized.h"
#include "table_grow.h"

#define OPEN_ROUNDS 64

EXPORT int shmlimit_create(const char *name, const struct shmlimit_options *options, struct shmlimit **out)
{
	struct layout_header header;
	struct shmlimit *l = NULL;
	struct segment segment;
	int error, fd;

	error = name_check_segment(name);
	if (error == 0)
		error = make_segment(options, NULL, &header, &segment, &fd);
	if (error != 0)
		return error;

	/*
	 * The name comes last: until then it may fail without a trace, and what is open is what was
	 * made.
	 */
	if (out != NULL)
		error = attach(name, &header, &segment, fd, 1, &l);
	if (error == 0)
		error = segment_link(fd, name);
	segment_close(fd);
	if (error != 0)
		shmlimit_close(l);
	else if (out != NULL)
		*out = l;
	return error;
}

EXPORT int shmlimit_fit(const struct shmlimit_options *options, uint64_t *slots)
{
	struct shmlimit_options o;
	uint64_t fitting;
	int error = slots == NULL ? -EINVAL : make_options(options, &o);

	if (error == 0)
		error = make_fit(&o, &fitting);
	if (error != 0)
		return error;
	*slots = fitting;
	return fitting < o.slots;
}

/*
 * Only a trusted user may own the file: its owner can truncate it, and a process that
 * maps it then dies of SIGBUS. The open file is asked, before it is mapped, so the
 * answer holds for what is mapped. A second link gives the file a name that its owner
 * may not have chosen.
 */
static int check_owner(const struct segment *segment, uint32_t owner)
{
	if (segment->uid != 0 && segment->uid != owner && segment->uid != segment_user())
		return -EPERM;
	if (segment->links == 0)
		return -ENOENT; /* destroyed since it was opened */
	return segment->links == 1 ? 0 : -EPERM;
}

/*
 * As much as its creator reserved must be: the first table and all before it, except what more
 * rules would need. A file system that does not count what it reserves (ramfs) says 0.
 */
static int check_reserved(const struct layout_header *header, const struct segment *segment)
{
	uint64_t holes = layout_holes(header->cpus + header->stripes, header->rules_max, header->rules);
	struct layout_offsets offsets;

	return segment->allocated == 0 ||
	                       (layout_offsets(header, &offsets) && segment->allocated >= offsets.end - holes)
	               ? 0
	               : -EUCLEAN;
}

static int check_file(const struct layout_header *header, const struct segment *segment, uint32_t flags, uint32_t owner)
{
	struct header_host host;
	int error = 0, layout;

	attach_host(&host);
	layout = header_check(header, segment->size, &host, NULL);
	/* A segment of another layout cannot be used, by any user. */
	if (layout != -EPROTO && (flags & SHMLIMIT_OPEN_TRUSTED))
		error = check_owner(segment, owner);
	if (error != 0)
		return error;
	error = layout;
	if (error == 0 && (flags & SHMLIMIT_OPEN_TRUSTED))
		error = check_reserved(header, segment);
	return error;
}

static int open_existing(const char *name, uint32_t flags, uint32_t owner, struct shmlimit **out)
{
	int writable = (flags & SHMLIMIT_OPEN_READ_ONLY) == 0;
	struct layout_header header = { 0 };
	struct segment segment;
	struct generation tables;
	struct shmlimit *l;
	int error, fd;

	error = name_check_segment(name);
	if (error == 0)
		error = segment_peek(name, writable, &header, sizeof(header), &segment, &fd);
	if (error != 0)
		return error;
	error = check_file(&header, &segment, flags, owner);
	if (error == 0)
		error = attach(name, &header, &segment, fd, writable, &l);
	segment_close(fd);
	if (error != 0)
		return error;
	if (!generation_read(l, &tables)) {
		shmlimit_close(l);
		return -EUCLEAN;
	}
	*out = l;
	return 0;
}

static int check_open(uint32_t flags, const struct shmlimit_options *options, uint32_t *owner)
{
	const uint32_t known = SHMLIMIT_OPEN_READ_ONLY | SHMLIMIT_OPEN_TRUSTED | SHMLIMIT_OPEN_CREATE;
	struct shmlimit_options o;
	int error = make_options(options, &o);

	if (error != 0)
		return error;
	if ((flags & ~known) != 0 || (flags & SHMLIMIT_OPEN_CREATE && flags & SHMLIMIT_OPEN_READ_ONLY) ||
	    (o.owner != 0 && !(flags & SHMLIMIT_OPEN_TRUSTED)))
		return -EINVAL;
	*owner = o.owner;
	return 0;
}

/*
 * BOUND the segment must come and go between two system calls of this process for each round more.
 */
EXPORT int shmlimit_open(const char *name, uint32_t flags, const struct shmlimit_options *options,
                         struct shmlimit **out)
{
	uint32_t owner;
	int error = out == NULL ? -EINVAL : check_open(flags, options, &owner);

	if (error != 0)
		return error;
	for (int round = 0; round < OPEN_ROUNDS; round++) {
		error = open_existing(name, flags, owner, out);
		if (error != -ENOENT || !(flags & SHMLIMIT_OPEN_CREATE))
			return error;
		error = shmlimit_create(name, options, out);
		if (error != -EEXIST)
			return error;
	}
	return -EAGAIN;
}

EXPORT void shmlimit_close(struct shmlimit *l)
{
	attach_end(l);
}

EXPORT int shmlimit_destroy_layout(const char *name, uint32_t layout)
{
	uint8_t magic[sizeof(((struct layout_header *)0)->magic)] = { 0 };
	int error = name_check_segment(name);

	if (error == 0 && (layout == 0 || layout > SHMLIMIT_LAYOUT_MAX))
		error = -EINVAL;
	if (error == 0)
		error = segment_peek_layout(name, layout, magic, sizeof(magic));
	if (error != 0)
		return error;
	/* Other files in /dev/shm belong to other programs. */
	if (memcmp(magic, LAYOUT_MAGIC, sizeof(magic)) != 0)
		return -EMEDIUMTYPE;
	return segment_unlink(name, layout);
}

EXPORT int shmlimit_destroy(const char *name)
{
	return shmlimit_destroy_layout(name, LAYOUT_VERSION);
}

EXPORT uint32_t shmlimit_layout(void)
{
	return LAYOUT_VERSION;
}

EXPORT int shmlimit_path(const char *name, char path[SHMLIMIT_PATH_MAX])
{
	int error = path == NULL ? -EINVAL : name_check_segment(name);

	if (error == 0)
		segment_path(name, path);
	return error;
}

EXPORT int shmlimit_gone(struct shmlimit *l)
{
	if (l == NULL)
		return -EINVAL;
	/* No other file gets the inode's number while the handle maps this one. */
	return segment_moved(l->name, l->device, l->inode);
}

static int next(char name[SHMLIMIT_NAME_MAX + 1], uint32_t *layout, uint32_t only)
{
	int found;

	_Static_assert(sizeof(((struct layout_header *)0)->magic) == SEGMENT_MAGIC_LEN, "what a segment begins with");
	if (name == NULL || layout == NULL)
		return -EINVAL;
	if (strnlen(name, SHMLIMIT_NAME_MAX + 1) > SHMLIMIT_NAME_MAX)
		return -ENAMETOOLONG;
	do {
		found = segment_next(name, layout, only, LAYOUT_MAGIC);
		/* a name that another program chose */
	} while (found == 1 && name_check_segment(name) != 0);
	return found;
}

EXPORT int shmlimit_next(char name[SHMLIMIT_NAME_MAX + 1])
{
	uint32_t layout = LAYOUT_VERSION;

	return next(name, &layout, LAYOUT_VERSION);
}

EXPORT int shmlimit_next_layout(char name[SHMLIMIT_NAME_MAX + 1], uint32_t *layout)
{
	return next(name, layout, 0);
}

EXPORT int shmlimit_check_names(const char *name, const char *rule_name)
{
	int error = name != NULL ? name_check_segment(name) : 0;

	return error == 0 && rule_name != NULL ? name_check_any_rule(rule_name) : error;
}

EXPORT int shmlimit_info(struct shmlimit *l, struct shmlimit_info *out)
{
	struct shmlimit_info info = { 0 };
	struct generation tables;
	uint64_t asked;

	if (l == NULL)
		return -EINVAL;
	info.layout_version = LAYOUT_VERSION;
	generation_read(l, &tables);
	info.size = generation_end(l, &tables.now) - layout_holes(l->cpus + l->stripes, l->rules_max, rule_count(l));
	info.slots = tables.now.lines * SLOTS_PER_LINE;
	info.old_slots = tables.old.lines * SLOTS_PER_LINE;
	info.slots_max = l->lines_max * SLOTS_PER_LINE;
	info.rules = rule_count(l);
	info.rules_max = l->rules_max;
	for (uint32_t i = 0; i < info.rules; i++)
		info.rules_used += (uint32_t)published_in_use(load_acquire(&l->rules[i].published));
	asked = load_relaxed(&l->header->lines_asked);
	info.slots_asked = asked > tables.now.lines && asked <= l->lines_max ? asked * SLOTS_PER_LINE : 0;
	info.store_keys = l->names_max;
	info.on_full = l->on_full;
	info.clock = l->clock_id == CLOCK_MONOTONIC ? SHMLIMIT_CLOCK_PRECISE : SHMLIMIT_CLOCK_COARSE;
	info.enabled = (load_relaxed(&l->header->state) & STATE_OFF) == 0;
	info.mode = l->mode;
	info.uid = l->uid;
	info.gid = l->gid;
	info.created_unix_ns = l->created_unix_ns;
	info.undecided_passed = load_relaxed(&l->header->undecided[0]);
	info.undecided_refused = load_relaxed(&l->header->undecided[1]);
	info.unregistered = load_relaxed(&l->header->unregistered);
	return sized_out(out, &info, sizeof(info));
}

static int lock_to_grow(struct shmlimit *l, int *lock)
{
	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	return segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, lock);
}

EXPORT int shmlimit_grow(struct shmlimit *l, uint64_t slots)
{
	int lock, error = l != NULL && slots > l->lines_max * SLOTS_PER_LINE ? -EFBIG : lock_to_grow(l, &lock);

	if (error != 0)
		return error;
	error = table_grow(l, (slots + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE, when_clock());
	segment_unlock(lock);
	return error;
}

EXPORT int shmlimit_enable(struct shmlimit *l, uint32_t on)
{
	if (l == NULL || on > 1)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (on == 0)
		set_bits(&l->header->state, STATE_OFF);
	else
		clear_bits(&l->header->state, STATE_OFF);
	return 0;
}

EXPORT void *shmlimit_area(struct shmlimit *l, size_t *size)
{
	if (l == NULL || l->read_only)
		return NULL;
	if (size != NULL)
		*size = LAYOUT_AREA;
	return l->area;
}

EXPORT uint64_t shmlimit_now(struct shmlimit *l)
{
	return l == NULL ? clock_read(CLOCK_MONOTONIC) : when_read(l).ns;
}

EXPORT int shmlimit_set_time(struct shmlimit *l, const uint64_t *now_ns)
{
	if (l == NULL)
		return -EINVAL;
	when_set(l, now_ns);
	return 0;
}
