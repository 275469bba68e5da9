/*
 * stored_key: the keys themselves, stored beside their slots for display. No
 * decision reads them.
 *
 *	byte   0         2 ...
 *	     [ length ][ the key, zero up to a whole word                  ]
 *	     [ length ][ as much of a longer key as fits ... ][ seal : 8   ]
 *
 * A process that claims a slot writes its entry after the commit: once, word by word.
 * If it is killed before, the slot has no stored key until it is claimed again.
 *
 * ORDER: none. The words that a reader finds may be of several claimers, of a key
 * that had the slot before, or of any other: no order would say which. So it believes
 * what proves itself: a key that has the fingerprint which it saw in the slot. What
 * is stored of a longer key has no such hash; it has a seal, a hash of itself, of the
 * length and of the slot's tag.
 *
 * WHY NOT a sequence number around the entry: a writer that is killed leaves it odd.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_STORED_KEY_H
#define SHMLIMIT_LIB_STORED_KEY_H

#include "key_bytes.h"
#include "limiter.h"

/* Write the entry of a slot that was committed with this plain tag; l->names_max is not 0. */
void stored_key_write(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot, uint64_t tag,
                      struct key_bytes key);

/*
 * Copy the key, or as much as is kept of it, if it is that of the plain tag, whose flags
 * do not matter. `key` has room for SHMLIMIT_KEY_MAX bytes. Returns how many were copied, 0 if
 * the entry is no such key's; *key_len is then untouched.
 */
size_t stored_key_read(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot, uint64_t tag,
                       void *key, size_t *key_len);

#endif
