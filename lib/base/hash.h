/*
 * hash: the keyed hash of a key.
 *
 * SipHash (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012) with
 * 1 round a word and 3 at the end, as Rust and Python use it for tables that
 * strangers fill: without the secret no one can aim at a slot or crowd a line.
 *
 * WHY NOT the processor's AES. Constructions with a published analysis are slower for
 * keys as short as these: AES-CBC-MAC takes 33 ns for 20 bytes, and the Pelican MAC
 * (Daemen, Rijmen 2005: four rounds a block, ten at both ends) 44 ns, where this takes
 * 10.7 ns (AMD Zen 3). Four rounds alone are as fast as this, but AES of four rounds can
 * be told from random by its integral property, and there is no published argument
 * that it is safe here.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_HASH_H
#define SHMLIMIT_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * SipHash-1-3 under `secret` of the `len` bytes of `data`. The tweak goes into
 * v1, as the paper's authors put 0xee there for their 128-bit variant: one key
 * under two tweaks has two unrelated hashes; tweak 0 is plain SipHash.
 */
uint64_t hash_bytes(const uint64_t secret[2], uint64_t tweak, const void *data, size_t len);

/* The same with other numbers of rounds; 2 and 4 are what the paper's test vectors are for. */
uint64_t hash_rounds(const uint64_t secret[2], uint64_t tweak, const void *data, size_t len, int words, int end);

#endif
