/*
 * named_segment.h: a segment by its name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NAMED_SEGMENT_H
#define NAMED_SEGMENT_H

#include <jansson.h>
#include <stdint.h>

#include "number_text.h"
#include "shmlimit.h"

/*
 * Open a segment as shmlimit_open() does. segment_try() returns what that returns, segment_open() a
 * status. segment_trust() adds a user, by name or number, whose segments are trusted.
 *
 * Root opens another user's segment, too, and says once whose it is, unless the flags have
 * SHMLIMIT_OPEN_TRUSTED: those are for commands that no person begins. If that user truncates the
 * file, the command ends with a message.
 */
int segment_trust(const char *user);  /* a status */
int segment_trusts(uint32_t user_id); /* true for a user that was added */
int segment_try(const char *name, uint32_t flags, struct shmlimit **out);
int segment_open(const char *name, uint32_t flags, struct shmlimit **out);
/*
 * Open a segment of any owner to read it, call visit() with it and close it: for commands that take
 * all segments of the host. Returns what shmlimit_open() returned, or -EUCLEAN if its owner
 * truncated the file during the visit; visit() then has not come to its end, and what it allocated
 * is lost.
 */
int segment_visit(const char *name, void (*visit)(void *context, struct shmlimit *limiter), void *context);
json_t *segment_json(const char *name, const struct shmlimit_info *info);
void segment_owner(const struct shmlimit_info *info, char owner[TEXT_LEN]);

#endif
