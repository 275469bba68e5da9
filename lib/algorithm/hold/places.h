/*
 * places: an entry and a peek by a request that has a place.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_PLACES_H
#define SHMLIMIT_LIB_PLACES_H

#include "request.h"

/* Bytes in release 1.0. WHY NOT sizeof: an older program's structure has what is used here. */
#define PLACE_SIZE_1_0 16u

/* As shmlimit_decide(), of a take with a place: see there. */
int places_enter(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                 struct shmlimit_result *r);

/* The same of a peek with a place. */
int places_peek(const struct shmlimit *l, const struct shmlimit_request *asked, struct when when,
                struct shmlimit_result *r);

#endif
