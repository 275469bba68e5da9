/*
 * segments: a process's handle on a segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "attach.h"
#include "export.h"
#include "generation.h"
#include "name.h"

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
	struct generation tables;
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
	if (!generation_read(l, &tables)) {
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
