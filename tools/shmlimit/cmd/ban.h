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
 * Ban a key, of which all bytes are known, under a rule that is made if it is missing. Returns 0 or -errno: then
 * ban_error() has the words for it, or NULL: those of fail_rule() do.
 */
#define BAN_RULE "ban"
int ban_begin(struct shmlimit *limiter, const char *rule, const struct key *key, uint64_t for_ns);
const char *ban_error(int error);

#endif
