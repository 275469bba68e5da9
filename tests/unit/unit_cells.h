/*
 * unit_cells: the cells of a slot, for tests that write into them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_UNIT_UNIT_CELLS_H
#define TESTS_UNIT_UNIT_CELLS_H

#include "cells.h"
#include "rule.h"
#include "unit.h"

/* Of a committed slot in the first table. */
static inline uint64_t *unit_cells(struct shmlimit *l, const struct layout_slot *slot)
{
	struct rule_view view;

	if (rule_load_tag(l, slot->tag & ~TAG_FROZEN, &view) != 0)
		bail("no rule");
	return cells_at(l, &l->tables[0], slot, &view.params);
}

#endif
