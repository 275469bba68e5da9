/*
 * reset.h: a reset, and what it found.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef RESET_H
#define RESET_H

#include "key_option.h"

/*
 * Reset a key of a rule, an address that was typed as text in each form of key_forms(). Returns the
 * number, or -errno.
 */
int reset_key(struct shmlimit *limiter, int rule, const struct key *key);
/* Say how many keys were reset: `key` is the one that should be, or NULL. A status. */
int reset_report(int found, const struct key *key, const char *rule);
int reset_print_json(int found, int one_key);

#endif
