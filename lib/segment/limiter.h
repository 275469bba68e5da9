/*
 * limiter: a process's handle on one segment. Private memory, written once by shmlimit_open() and
 * only read afterwards, except for what throttle.c remembers, what generation.c learns of larger
 * tables, the regions of cells.h, the number of registry.h and the hints of fast_hold.h: that is
 * what makes it safe in threads, signal handlers and forked children, and why a header that a
 * process overwrites later misleads no process that has the segment open.
 *
 * A change of this structure changes LAYOUT_VERSION, too, as does one of what libshmlimit-global
 * keeps in shmlimit_area(): see lib/gate/global_library.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LIMITER_H
#define SHMLIMIT_LIB_LIMITER_H

#include "layout.h"

/* A table of slots, with stored keys behind it. */
struct table {
	struct layout_slot *slots;
	uint64_t lines;
} __attribute__((aligned(16))); /* both are learnt by one compare-and-swap */

#define LIMITER_HINTS 16
#define LIMITER_RESERVED 1024

struct shmlimit {
	/* of the last generation met, neither off nor moving: what a decision expects */
	uint64_t state;
	uint64_t secret[2];
	struct layout_rule *rules;
	unsigned char *counters;
	uint64_t rule_count; /* of the list, as far as this process knows: see rule_count() */
	uint32_t cpus, stripes;
	uint32_t counter_stride; /* bytes from a block of counters to the next */
	uint32_t on_full;
	int clock_id;
	int is_set; /* there is a time that stands for the clock: set_ns, see when.h */
	int read_only;
	uint32_t names_max; /* bytes of a key that are kept; 0 = none */

	void *area;                   /* before the slots; see shmlimit_area() */
	struct layout_header *header; /* the mapping; a decision reads `state` of it */
	uint64_t size;                /* of the mapping: as far as the file can grow */
	uint64_t tables_offset;       /* where the first of the larger tables may begin */
	uint64_t lines_max;           /* of the largest */
	/* for generation.c and fast_hold.h: deciding has the handle const, and may learn */
	struct shmlimit *self;
	struct table tables[GENERATIONS_MAX + 1]; /* by generation; slots NULL: not met yet */
	uint64_t regions[CELLS_SIZES];            /* of cells, see cells.h: addresses; 0: not mapped yet */
	uint64_t reserved[LIMITER_RESERVED];      /* addresses of pages of cells that are */
	/* cells of places that were left, see fast_hold.h */
	uint64_t left[LIMITER_HINTS];
	/* for registry.c: this process as a holder, if the epoch is that of this process */
	struct limiter_holder {
		uint64_t epoch, number;
		uint64_t page;                                 /* address of a page that keeps a lock; 0: none */
		uint64_t failed_epoch, failed_ns, failed_with; /* when it could not register, and why */
	} holder;
	uint64_t device, inode; /* of the file, to know it again */
	int unlinked;           /* its descriptor and 1, while it has no name; else 0 */
	uint64_t created_unix_ns;
	uint32_t mode, uid, gid;
	uint32_t rules_max;
	uint64_t set_ns;
	uint64_t throttle; /* the rule of shmlimit_throttle(), 0 while unknown: see throttle.c */
	char name[SHMLIMIT_NAME_MAX + 1];
};

#endif
