/*
 * sketch: a limiter of fixed size that keeps no keys: rows of funnels, each key
 * in one of each row, and only the fullest counts (Cormode, Muthukrishnan:
 * "An improved data stream summary: the count-min sketch", 2005), updated
 * conservatively (Estan, Varghese, 2002). For one process, to compare answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_PEERS_SKETCH_H
#define BENCH_PEERS_SKETCH_H

#include <stdint.h>

struct sketch;

struct sketch *sketch_create(uint64_t bytes);
void sketch_destroy(struct sketch *sketch);

/* Take a token from a bucket of `capacity` that gets `rate` a second. Returns 0 allowed, 1 denied. */
int sketch_take(struct sketch *sketch, uint64_t key, double capacity, double rate, double now_s);

#endif
