/*
 * shmlimit_at: calls whose time the caller gives, for simulations, replays of logs, and tests.
 *
 * Also for a program that decides several times with one clock read. shmlimit_now() reads the
 * limiter's own clock. Part of libshmlimit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_AT_H
#define SHMLIMIT_AT_H

#include "shmlimit.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ---- Given times ----------------------------------------------------------
 *
 * Each function is the one without `_at` in its name, but takes the time `now_ns` from the caller
 * instead of reading the limiter's clock. The time is in nanoseconds since a point of the caller's
 * choice. Use only one clock for a segment: decisions, rule changes and growth alike.
 *
 * Given times may be a little old, as those of different threads are, but must not lag behind one
 * another by more than one second or half the rule's time to full, whichever is less, or a key may
 * get more than its rate. A time that is older than the funnel by more than that plus the rule's
 * longest debt counts as a clock that stepped back, and the funnel refills from there. A funnel
 * that was full by a later time may have been forgotten since; for an older time it is then full,
 * too.
 *
 * Values, errors, threads, processes, signals and fork are as for the function without `_at`. Cost:
 * that less a clock read.
 */

/* Decisions. */
int shmlimit_take_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                     uint64_t cost, struct shmlimit_result *r, uint64_t now_ns);
int shmlimit_take_all_at(struct shmlimit *limiter, const struct shmlimit_request *requests,
                         size_t n, size_t *failed, struct shmlimit_result *results,
                         uint64_t now_ns);
int shmlimit_take_many_at(struct shmlimit *limiter, const struct shmlimit_request *requests,
                          size_t n, int *answers, struct shmlimit_result *results, uint64_t now_ns);
int shmlimit_peek_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                     uint64_t cost, struct shmlimit_result *r, uint64_t now_ns);
int shmlimit_reserve_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                        uint64_t cost, uint64_t max_wait_ns, struct shmlimit_result *r,
                        uint64_t now_ns);
int shmlimit_charge_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                       uint64_t tokens, struct shmlimit_result *r, uint64_t now_ns);
int shmlimit_refund_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                       uint64_t tokens, struct shmlimit_result *r, uint64_t now_ns);
int shmlimit_decide_at(struct shmlimit *limiter, uint32_t verb,
                       const struct shmlimit_request *request, struct shmlimit_result *r,
                       uint64_t now_ns);

/* Counts and places. */
int shmlimit_count_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                      const struct shmlimit_count_request *request, struct shmlimit_count *out,
                      uint64_t now_ns);
int shmlimit_enter_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                      struct shmlimit_place *place, struct shmlimit_result *r, uint64_t now_ns);
int shmlimit_renew_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                      struct shmlimit_place *place, uint64_t now_ns);
int shmlimit_bind_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                     struct shmlimit_place *place, uint32_t pid, uint64_t now_ns);
int shmlimit_leave_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                      const struct shmlimit_place *place, uint64_t now_ns);

/* Pauses. */
int shmlimit_pause_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                      uint64_t for_ns, uint64_t now_ns);
int shmlimit_paused_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                       uint64_t *left_ns, uint64_t now_ns);

/* Rules and growth. A program that gives times to decisions gives them here too. */
int shmlimit_rule_set_at(struct shmlimit *limiter, const char *rule_name,
                         const struct shmlimit_rule *rule, uint64_t now_ns);
int shmlimit_grow_at(struct shmlimit *limiter, uint64_t slots, uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
