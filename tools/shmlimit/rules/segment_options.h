/*
 * segment_options.h: what a segment is made with, in words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SEGMENT_OPTIONS_H
#define SEGMENT_OPTIONS_H

#include "number_text.h"
#include "shmlimit.h"

/* What a segment is made with: shmlimit_options, in words. */
enum {
	OPTION_SLOTS,
	OPTION_SLOTS_MAX,
	OPTION_MODE,
	OPTION_GROUP,
	OPTION_ON_FULL,
	OPTION_RULES,
	OPTION_RULES_MAX,
	OPTION_NAMES,
	OPTION_CLOCK,
	SEGMENT_OPTIONS,
};

/* One of these; those of an existing segment; making one, and why that failed. */
extern const char *const segment_options_names[SEGMENT_OPTIONS];

int segment_options_parse(const char *what, int field, const char *text, struct shmlimit_options *o); /* a status */
const char *segment_options_text(char text[TEXT_LEN], int field, const struct shmlimit_options *o);
void segment_options_of(const struct shmlimit_info *info, struct shmlimit_options *o);
/* Warn if the segment has something else than what is wanted: it keeps it. */
void segment_options_warn(const char *name, const struct shmlimit_info *info, int field,
                          const struct shmlimit_options *wanted);
int segment_options_create(const char *name, const struct shmlimit_options *o, struct shmlimit **out); /* a status */
int segment_options_fail(const char *name, int error);                                                 /* a status */
int segment_options_fail_as(const char *name, const struct shmlimit_options *o, int error); /* where these are known */

#endif
