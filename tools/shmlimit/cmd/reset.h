/*
 * reset.h: what a reset found.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef RESET_H
#define RESET_H

#include "key_option.h"

/* Say how many keys were reset: `key` is the one that should be, or NULL. A status. */
int reset_report(int found, const struct key *key, const char *rule);
int reset_print_json(int found, int one_key);

#endif
