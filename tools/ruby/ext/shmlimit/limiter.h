/*
 * limiter: what an open Shmlimit::Limiter is, for the files that have its methods.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_RUBY_LIMITER_H
#define SHMLIMIT_RUBY_LIMITER_H

#include <time.h>

#include "native.h"

#define LIMITER_SYMBOLS 16 /* names of rules whose ids are remembered; a power of 2 */
#define LIMITER_LOOK_EVERY_S 1

struct limiter {
	struct shmlimit *handle;
	struct use use;
	time_t checked_s; /* when _add() last answered nil, by the coarse clock */
	time_t looked_s;  /* when the ids were forgotten, by the same clock */
	struct {
		VALUE symbol; /* 0: none */
		int id;
	} ids[LIMITER_SYMBOLS];
	char name[SHMLIMIT_NAME_MAX + 1];
};

/* Raises if the limiter is closed. */
struct limiter *limiter_of(VALUE self);

/*
 * A rule's id, or its name: a Symbol is looked up once a second, a String each time. Raises if there is none.
 *
 * This runs no Ruby code, as converting other arguments may, which could close the limiter: so those are converted first.
 */
int limiter_rule(VALUE self, struct limiter *l, VALUE rule);

#endif
