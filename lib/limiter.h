/*
 * limiter: a process's handle on one segment. Private memory, written once by
 * shmlimit_open() and, but for two pointers of unnamed.c's, only read afterwards:
 * that is what makes it safe in threads, signal handlers and forked children, and
 * why a header that somebody overwrites later misleads nobody who is in.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LIMITER_H
#define SHMLIMIT_LIB_LIMITER_H

#include "layout.h"

struct cds_lfht;
struct unnamed_entry;

struct shmlimit {
	struct layout_slot *slots;
	uint64_t lines;
	uint64_t *rings;                  /* window_max cells a slot */
	uint64_t secret[2];
	struct layout_rule *rules;
	unsigned char *counters;
	uint32_t rule_count;
	uint32_t cpus, stripes;
	uint32_t window_max;
	uint32_t on_full;
	int clock_id;
	int read_only;
	uint32_t names_max;               /* bytes of a key that are kept; 0 = none */
	uint64_t *names;                  /* an entry a slot: see names.h */

	struct cds_lfht *unnamed;         /* unnamed.c's: NULL until there is a rule without a name */
	struct unnamed_entry *last_unnamed;

	struct layout_header *header;     /* the mapping; a decision reads `switched_off` of it */
	uint64_t size;
	uint64_t device, inode;           /* of the file, to know it again */
	uint64_t created_unix_ns;
	uint32_t mode, uid, gid;
	char name[SHMLIMIT_NAME_MAX + 1];
};

#endif
