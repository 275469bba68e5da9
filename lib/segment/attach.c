/*
 * attach: see attach.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach.h"
#include "cells.h"
#include "generation.h"
#include "keep_errno.h"
#include "registry.h"

void attach_host(struct header_host *host)
{
	segment_boot_id(host->boot_id);
	host->time_namespace = segment_time_namespace();
}

/*
 * From a checked header and a mapping to a handle: from here on nothing in the header is trusted
 * again.
 */
static void fill_handle(struct shmlimit *l, const struct layout_header *header, const struct segment *segment,
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
	l->names_max = (uint32_t)header->names;
	memcpy(l->secret, header->secret, sizeof(l->secret));
	l->rules = (struct layout_rule *)(void *)(base + header->rules_offset);
	l->rule_count = header->rules;
	l->rules_max = header->rules_max;
	l->counter_stride = (uint32_t)layout_counter_stride(header->rules_max);
	l->counters = base + header->counters_offset;
	l->area = base + header->slots_offset - LAYOUT_AREA;
	l->cpus = header->cpus;
	l->stripes = header->stripes;
	l->on_full = header->on_full;
	l->clock_id = attach_clock(header->clock);
	l->read_only = !writable;
	l->mode = segment->mode;
	l->uid = segment->uid;
	l->gid = segment->gid;
	l->created_unix_ns = header->created_unix_ns;
	l->tables_offset = generation_next(l, &l->tables[0]);
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
	/* And the first page of cells, for cells_map(). */
	error = segment_map(segment, fd, header->size + 4096, writable);
	if (error != 0) {
		free(l);
		return error;
	}
	fill_handle(l, header, segment, name, writable);
	*out = l;
	return 0;
}

void attach_end(struct shmlimit *l)
{
	if (l == NULL)
		return;
	registry_close(l);
	cells_unmap(l);
	segment_unmap(l->header, l->size + 4096);
	free(l);
}
