/*
 * places: an entry and a peek by a request that has a place.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_PLACES_H
#define SHMLIMIT_LIB_PLACES_H

#include <errno.h>

#include "request.h"

/* Bytes in release 1.0. WHY NOT sizeof: an older program's structure has what is used here. */
#define PLACE_SIZE_1_0 24u

/* Can it be entered? Returns 0, -EINVAL or -E2BIG. */
static inline int places_check(const struct shmlimit_place *place)
{
	if (place == NULL || place->struct_size < PLACE_SIZE_1_0)
		return -EINVAL;
	return (place->flags & ~(uint32_t)(SHMLIMIT_PLACE_BIND | SHMLIMIT_PLACE_DROPPED | SHMLIMIT_PLACE_UNTIMED)) != 0
	               ? -E2BIG
	               : 0;
}

/* As shmlimit_decide(), of a take with a place: see there. */
int places_enter(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                 struct shmlimit_result *r);

/*
 * The same within the share, unless that is NULL. *undo: the swap that entered; its slot stays as
 * it is if there was none.
 */
int places_enter_within(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                        const struct hold_share *share, struct undo *undo, struct shmlimit_result *r);

/* As places_enter(), of a peek. */
int places_peek(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                struct shmlimit_result *r);

#endif
