/*
 * open, close: a process's handle on a segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach.h"
#include "export.h"
#include "keep_errno.h"
#include "name.h"
#include "tables.h"
#include "unnamed.h"

void attach_host(struct header_host *host)
{
	segment_boot_id(host->boot_id);
	host->time_namespace = segment_time_namespace();
}

/* From a checked header and a mapping to a handle: from here on nothing in the header is trusted again. */
static void fill(struct shmlimit *l, const struct layout_header *header, const struct segment *segment,
                 const char *name, int writable)
{
	unsigned char *base = segment->base;

	l->header = segment->base;
	l->size = header->size;
	l->device = segment->device;
	l->inode = segment->inode;
	l->self = l;
	l->tables[0].slots = (struct layout_slot *)(void *)(base + header->slots_offset);
	l->tables[0].lines = header->lines;
	l->lines_max = header->lines_max;
	l->window_max = header->window_max;
	l->names_max = (uint32_t)header->names;
	memcpy(l->secret, header->secret, sizeof(l->secret));
	l->rules = (struct layout_rule *)(void *)(base + header->rules_offset);
	l->rule_count = header->rules;
	l->counters = base + header->counters_offset;
	l->cpus = header->cpus;
	l->stripes = header->stripes;
	l->on_full = header->on_full;
	l->clock_id = header->clock == SHMLIMIT_CLOCK_COARSE ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;
	l->read_only = !writable;
	l->mode = segment->mode;
	l->uid = segment->uid;
	l->gid = segment->gid;
	l->created_unix_ns = header->created_unix_ns;
	l->tables_offset = layout_next_page(tables_end(l, &l->tables[0]));
	strcpy(l->name, name);
}

int attach(const char *name, const struct layout_header *header, struct segment *segment, int fd, int writable,
           struct shmlimit **out)
{
	KEEP_ERRNO;
	struct shmlimit *l = calloc(1, sizeof(*l));
	int error;

	if (l == NULL)
		return -ENOMEM;
	error = segment_map(segment, fd, header->size, writable);
	if (error != 0) {
		free(l);
		return error;
	}
	fill(l, header, segment, name, writable);
	*out = l;
	return 0;
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
 * A file is as long as what was reserved, so it has no hole. A file system that does
 * not count what it reserves (ramfs) says 0.
 */
static int check_reserved(const struct segment *segment)
{
	return segment->allocated == 0 || segment->allocated >= segment->size ? 0 : -EUCLEAN;
}

static int check(const struct layout_header *header, const struct segment *segment, uint32_t flags, uint32_t owner)
{
	struct header_host host;
	int error = 0;

	if (flags & SHMLIMIT_TRUSTED_OWNER)
		error = check_owner(segment, owner);
	if (error != 0)
		return error;
	attach_host(&host);
	error = header_check(header, segment->size, &host, NULL);
	if (error == 0 && (flags & SHMLIMIT_TRUSTED_OWNER))
		error = check_reserved(segment);
	return error;
}

static int open_segment(const char *name, uint32_t flags, uint32_t owner, struct shmlimit **out)
{
	int writable = (flags & SHMLIMIT_READ_ONLY) == 0;
	struct layout_header header = { 0 };
	struct segment segment;
	struct tables tables;
	struct shmlimit *l;
	int error, fd;

	if (out == NULL || (flags & ~(SHMLIMIT_READ_ONLY | SHMLIMIT_TRUSTED_OWNER)) != 0)
		return -EINVAL;
	error = name_check_segment(name);
	if (error == 0)
		error = segment_peek(name, writable, &header, sizeof(header), &segment, &fd);
	if (error != 0)
		return error;
	error = check(&header, &segment, flags, owner);
	if (error == 0)
		error = attach(name, &header, &segment, fd, writable, &l);
	segment_close(fd);
	if (error != 0)
		return error;
	if (!tables_read(l, &tables)) {
		shmlimit_close(l);
		return -EUCLEAN;
	}
	*out = l;
	return 0;
}

EXPORT int shmlimit_open(const char *name, uint32_t flags, struct shmlimit **out)
{
	return open_segment(name, flags, 0, out);
}

EXPORT int shmlimit_open_owned(const char *name, uint32_t flags, uint32_t owner, struct shmlimit **out)
{
	return open_segment(name, flags | SHMLIMIT_TRUSTED_OWNER, owner, out);
}

EXPORT void shmlimit_close(struct shmlimit *l)
{
	if (l == NULL)
		return;
	unnamed_forget(l);
	segment_unmap(l->header, l->size);
	free(l);
}
