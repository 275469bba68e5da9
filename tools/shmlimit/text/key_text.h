/*
 * key_text.h: keys as people can read them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef KEY_TEXT_H
#define KEY_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "number_text.h"
#include "shmlimit.h"

/*
 * Keys as people can read them: addresses, and all others escaped. Text that would read as an
 * address, or that begins with a quote, is put into quotes, so that no two keys look the same.
 */
#define KEY_TEXT_LEN (4 * SHMLIMIT_KEY_MAX + TEXT_LEN)

/*
 * Returns 1 if the key is what shmlimit_key_ip() makes; as --key-ip reads it: 203.0.113.9,
 * 2001:db8::/64.
 */
int key_ip_show(char text[KEY_TEXT_LEN], const void *key, size_t len);
/* `len` bytes of a key that has `key_len`: where that is more they are its beginning. */
const char *key_show(char text[KEY_TEXT_LEN], const void *key, size_t len, size_t key_len);
/* Members key, key_hex, key_length and key_ip: exact, for programs. */
json_t *json_key(const void *key, size_t len, size_t key_len);

#endif
