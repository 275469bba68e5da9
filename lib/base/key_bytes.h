/*
 * key_bytes: a key as the caller has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_KEY_BYTES_H
#define SHMLIMIT_LIB_KEY_BYTES_H

#include <stddef.h>

/* 1 to SHMLIMIT_KEY_MAX bytes. */
struct key_bytes {
	const void *bytes;
	size_t len;
};

static inline struct key_bytes key_bytes(const void *bytes, size_t len)
{
	return (struct key_bytes){ bytes, len };
}

#endif
