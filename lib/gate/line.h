/*
 * line: those that wait for a limit with delay=, in the order in which they came.
 *
 * Each holds a place of a HOLD rule that the gate makes, under a key of the limit and its key, and
 * asks how many places before its own are held. When one leaves it gives its place back, so all
 * behind it move up by one. A process that dies leaves its places. Those of one that is stopped end
 * by the clock, after its requests would have been denied.
 *
 * The line says only whose turn is next, and never that there is one. Whose turn it is takes its
 * tokens from the limit itself, and gives none of them back. So whatever happens to a line,
 * no stretch of time sees more than the limit allows (I1).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_LINE_H
#define SHMLIMIT_GATE_LINE_H

#include "key.h"
#include "shmlimit.h"

/* A place in a line; place.value 0: in none. */
struct line {
	int of;   /* the limit's rule, when the place was entered */
	int rule; /* of the places */
	struct shmlimit_place place;
};

/* Of a limit. */
struct line_size {
	uint64_t places;     /* about as many wait at once */
	uint64_t longest_ns; /* how long a request may wait: it is denied after twice that */
};

/*
 * Go to the end of the line of `key` under the rule `of`. Returns 1, or 0: it is full. Where there
 * is no line, since its rule cannot be made or there is no slot, it returns 1 without a place: such
 * a caller waits beside the line.
 */
int line_enter(struct shmlimit *l, int of, const struct key *key, const struct line_size *size, struct line *line);

/* How many wait there. */
uint64_t line_length(struct shmlimit *l, int of, const struct key *key, const struct line_size *size);

/* How many are ahead; of one without a place: none. A place that was evicted is lost. */
uint64_t line_ahead(struct shmlimit *l, const struct key *key, struct line *line);

void line_leave(struct shmlimit *l, const struct key *key, struct line *line);

#endif
