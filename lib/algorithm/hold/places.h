/*
 * places: an entry whose place is known to the caller, with a limit or without.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_PLACES_H
#define SHMLIMIT_LIB_PLACES_H

#include "request.h"

/* Bytes in release 1.0. WHY NOT sizeof: an older program's structure has what is used here. */
#define PLACE_SIZE_1_0 16u

/*
 * As shmlimit_enter(), of an OP_ENTER that has perhaps no hash and no time, by its limit if it has
 * one.
 */
int places_enter(const struct shmlimit *l, const struct request *request, struct shmlimit_place *place,
                 struct shmlimit_result *r);

#endif
