/*
 * held: the places that a request holds in limits of HOLD rules, until it ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_HELD_H
#define SHMLIMIT_GATE_HELD_H

#include "multi_take.h"
#include "shmlimit_gate.h"

/*
 * Like multi_take_begin() and, if resumed, multi_take_continue(), but of each HOLD rule a place is
 * entered, all of them in one step, and added to *held, with keys[i] for q->requests[i]. The places
 * come first, since leaving one undoes it exactly. If a limit denies, the places entered here are
 * left again. A request with a share: -EOPNOTSUPP its rule is no HOLD rule; -EINVAL no request
 * before it has places.
 */
int held_take(struct multi_take *take, int resumed, const struct multi_request *q, const size_t *keys,
              struct shmlimit_gate_held *held);

/*
 * The places say nothing of how long work takes, to limits that find their number: the request
 * waited for another limit while it held them, or did not go on. NULL: it holds none.
 */
void held_untimed(struct shmlimit_gate_held *held);

#endif
