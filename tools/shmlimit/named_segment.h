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
 * Open a segment as shmlimit_open() does; root always does so with SHMLIMIT_OPEN_TRUSTED.
 * segment_try() returns what that returns, segment_open() a status. segment_trust() adds a user, by name or number,
 * whose segments are trusted.
 */
int segment_trust(const char *user);  /* a status */
int segment_trusts(uint32_t user_id); /* true for a user that was added */
int segment_try(const char *name, uint32_t flags, struct shmlimit **out);
int segment_open(const char *name, uint32_t flags, struct shmlimit **out);
json_t *segment_json(const char *name, const struct shmlimit_info *info);
void segment_owner(const struct shmlimit_info *info, char owner[TEXT_LEN]);

#endif
