/*
 * state: the bytes of a saved segment, and how they are written and read. What
 * they mean is save's and load's.
 *
 *	header      what the segment was made with, the hash secret, the moment
 *	rules       one record each, by id
 *	slots       one record each, by index: of the old table, then of the present
 *	            one; a WINDOW's is followed by its times. Of two records of one key the
 *	            later one was read later, and counts
 *	end         STATE_END where the next index would be
 *
 * All of this is in pages of 4096 bytes, the last one padded with zeros. The
 * last 8 bytes of a page are a check of the page and of those before it, so what
 * is handed to the reader is what was written. That detects accidents, not attacks:
 * a process that may write to the file can compute a check that is right.
 *
 * Numbers are in the machine's byte order; the header tells which.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_STATE_H
#define SHMLIMIT_LIB_STATE_H

#include "layout.h"

#define STATE_MAGIC "shmsaved" /* the first 8 bytes, without a NUL */
#define STATE_VERSION 4u
#define STATE_VERSION_3 3u /* is read, too: its rules have no zone */
#define STATE_VERSION_2 2u /* is read, too: its GCRA slots have quota 0, and the time at which they are full */
#define STATE_END UINT64_MAX
#define STATE_TIMES_MAX (2 * SHMLIMIT_WINDOW_MAX) /* of one window: as many as the largest ring has cells */

struct state_header {
	uint8_t magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint64_t slots, slots_max;
	uint32_t rules_max;         /* records there may be */
	uint32_t rules;             /* that follow */
	uint32_t unused_window_max; /* layout 8 had that: ignored, and written as zero */
	uint32_t on_full;
	uint32_t clock;
	uint32_t switched_off;
	uint32_t mode, uid, gid;
	uint32_t names;
	uint64_t secret[2];
	uint64_t then_ns;   /* the moment, by the segment's clock ... */
	uint64_t unix_ns;   /* ... and by the real-time clock */
	uint64_t old_slots; /* of the old table, while keys are left in it; else 0 */
	uint32_t unused_window_limit, unused_old_window_max;
	uint64_t rules_limit;  /* to which the list of rules can grow; 0: as usual */
	uint64_t reserved[16]; /* zero */
};

struct state_rule {
	uint32_t id;
	uint32_t mode;
	uint32_t algorithm;
	uint32_t flags;
	uint64_t capacity, count, period_ns, max_wait_ns, warmup_ns;
	uint32_t cold_factor_milli; /* HOLD: the law */
	uint32_t credit;            /* HOLD: the least number */
	uint64_t set_unix_ns;       /* when its numbers were set */
	/* what its slots' ticks and quotas are: see struct layout_params */
	uint64_t num, den, shape;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	char zone[SHMLIMIT_ZONE_MAX]; /* up to version 3 there was none */
};

struct state_slot {
	uint64_t index;
	uint64_t tag; /* without flags */
	/* WINDOW: how many times follow, latest first, each an int64_t; GCRA: the span, in ticks */
	uint64_t quota;
	int64_t ticks; /* from the moment to the word's time; WINDOW: 0 */
};

_Static_assert(sizeof(struct state_header) == 256, "a header has no holes");
_Static_assert(sizeof(struct state_rule) == 200, "nor has a rule");
_Static_assert(sizeof(struct state_slot) == 32, "nor a slot");

#define STATE_PAGE 4096u
#define STATE_PAGE_ROOM (STATE_PAGE - sizeof(uint64_t))

/* A file under way. Zero all but `fd`. */
struct state_file {
	int fd;
	uint32_t version; /* reading: of what is read */
	uint64_t number;  /* pages done */
	uint64_t check;   /* of these */
	/* bytes of this page; reading: of those that there are, if number is not 0 */
	size_t used;
	unsigned char page[STATE_PAGE];
};

/* Append. state_end() is the last call: it writes what was not yet written. Return 0 or -errno. */
int state_put(struct state_file *file, const void *from, size_t len);
int state_end(struct state_file *file);

/*
 * Read what was put, in the same pieces or others. Returns 0, or -EMEDIUMTYPE
 * it begins with another magic, -EPROTO it is of another version or byte order,
 * -EUCLEAN it is damaged or ends early, or what the system says. After an error *to
 * is undefined. state_get_end(): -EUCLEAN too if there is more.
 */
int state_get(struct state_file *file, void *to, size_t len);
int state_get_end(struct state_file *file);

#endif
