/*
 * ban.h: bans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BAN_H
#define BAN_H

#include <stdint.h>

#include "key_option.h"

/*
 * Ban a key, of which all bytes are known, under a rule that is made if it is missing. For a key
 * that is banned already the new time replaces the old one, or with BAN_LONGER the longer one
 * stays: what no person typed must not shorten a ban. Returns 0 or -errno: then ban_error() has the
 * words for it, or NULL: those of fail_rule() do.
 */
#define BAN_RULE "ban"
enum ban_time { BAN_REPLACE, BAN_LONGER };
int ban_begin(struct shmlimit *limiter, const char *rule, const struct key *key, uint64_t for_ns, enum ban_time time);
const char *ban_error(int error);

#endif
