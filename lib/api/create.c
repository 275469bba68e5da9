/*
 * create: make a segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "attach.h"
#include "export.h"
#include "make.h"
#include "name.h"

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

	/* The name comes last: until then it may fail without a trace, and what is open is what was made. */
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
