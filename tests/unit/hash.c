/*
 * hash: the keyed hash is the SipHash of its authors' paper, reads exactly the
 * bytes that it is given wherever they stand, and no bit of key, length, secret
 * or tweak is lost on it (I3: what keys share a fingerprint is left to chance).
 *
 * The published vectors vouch for the plain implementation below, which builds
 * the padded message first and goes byte by byte; that one vouches for the rest.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "hash.h"
#include "layout.h"

/* The paper's secret: the bytes 00 to 0f, little endian. */
static const uint64_t paper_secret[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

static uint64_t rotl(uint64_t x, unsigned bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static void sipround(uint64_t v[4])
{
	/* clang-format off */
	v[0] += v[1]; v[1] = rotl(v[1], 13); v[1] ^= v[0]; v[0] = rotl(v[0], 32);
	v[2] += v[3]; v[3] = rotl(v[3], 16); v[3] ^= v[2];
	v[0] += v[3]; v[3] = rotl(v[3], 21); v[3] ^= v[0];
	v[2] += v[1]; v[1] = rotl(v[1], 17); v[1] ^= v[2]; v[2] = rotl(v[2], 32);
	/* clang-format on */
}

/* Section 2.2 of the paper, as it reads. */
static uint64_t plain(const uint64_t secret[2], uint64_t tweak, const unsigned char *data, size_t len, int c, int d)
{
	unsigned char padded[SHMLIMIT_KEY_MAX + 8] = { 0 };
	uint64_t v[4] = { secret[0], secret[1], secret[0], secret[1] };
	size_t words = len / 8 + 1;

	for (int i = 0; i < 32; i++)
		v[i / 8] ^= (uint64_t)(unsigned char)"somepseudorandomlygeneratedbytes"[i] << 8 * (7 - i % 8);
	v[1] ^= tweak;
	for (size_t i = 0; i < len; i++)
		padded[i] = data[i];
	padded[words * 8 - 1] = (unsigned char)(len % 256);
	for (size_t w = 0; w < words; w++) {
		uint64_t m = 0;

		for (int i = 7; i >= 0; i--)
			m = m * 256 + padded[w * 8 + (size_t)i];
		v[3] ^= m;
		for (int i = 0; i < c; i++)
			sipround(v);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < d; i++)
		sipround(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void published(void)
{
	unsigned char message[15];

	for (unsigned char i = 0; i < sizeof(message); i++)
		message[i] = i;
	ok(hash_rounds(paper_secret, 0, message, 15, 2, 4) == 0xa129ca6149be45e5,
	   "SipHash-2-4 of the paper's 15 bytes is the paper's");
	ok(hash_rounds(paper_secret, 0, message, 0, 2, 4) == 0x726fdb47dd0e0e31,
	   "SipHash-2-4 of no bytes is the reference implementation's");
	ok(hash_rounds(paper_secret, 0, message, 1, 2, 4) == 0x74f839c593dc67fd,
	   "SipHash-2-4 of one byte is the reference implementation's");
	ok(hash_bytes(paper_secret, 0, message, 0) == 0xabac0158050fc4dc,
	   "SipHash-1-3 of no bytes is what Rust's library has");
	ok(plain(paper_secret, 0, message, 15, 2, 4) == 0xa129ca6149be45e5,
	   "the implementation to compare with passes the same test");
}

/* The message ends where its allocation does, so that a byte read beyond it is AddressSanitizer's. */
static int differs(size_t len, size_t offset, uint64_t tweak)
{
	const uint64_t secret[2] = { 0x0123456789abcdef + len, 0xfedcba9876543210 ^ offset };
	unsigned char *buffer = malloc(offset + len + (offset + len == 0));
	unsigned char *message = buffer + offset;
	int wrong;

	if (buffer == NULL)
		bail("no memory");
	memset(buffer, 0xa5, offset);
	for (size_t i = 0; i < len; i++)
		message[i] = (unsigned char)(i * 151 + len * 7 + 200);
	wrong = hash_bytes(secret, tweak, message, len) != plain(secret, tweak, message, len, 1, 3) ||
	        hash_rounds(secret, tweak, message, len, 2, 4) != plain(secret, tweak, message, len, 2, 4);
	if (wrong)
		diag("length %zu, offset %zu, tweak %llu", len, offset, (unsigned long long)tweak);
	free(buffer);
	return wrong;
}

static void everywhere(void)
{
	int wrong = 0;

	for (size_t len = 0; len <= 80; len++)
		for (size_t offset = 0; offset < 16; offset++)
			wrong += differs(len, offset, 0) + differs(len, offset, 4095);
	is(wrong, 0, "the hash of 0 to 80 bytes is SipHash, wherever they stand");
	wrong = 0;
	for (size_t offset = 0; offset < 16; offset++)
		for (size_t len = SHMLIMIT_KEY_MAX - 9; len <= SHMLIMIT_KEY_MAX; len++)
			wrong += differs(len, offset, UINT64_MAX);
	is(wrong, 0, "the hash of the longest keys is SipHash, wherever they stand");
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How many of n numbers occur before. */
static int repeated(uint64_t *hashes, size_t n)
{
	int found = 0;

	qsort(hashes, n, sizeof(*hashes), compare);
	for (size_t i = 1; i < n; i++)
		found += hashes[i] == hashes[i - 1];
	return found;
}

/* All hashes are of one fixed secret, so that none of these is left to chance. */
static void everything(void)
{
	static uint64_t hashes[8 * SHMLIMIT_KEY_MAX + 1];
	unsigned char key[SHMLIMIT_KEY_MAX] = { 0 };
	size_t n = 0;

	hashes[n++] = hash_bytes(paper_secret, 0, key, sizeof(key));
	for (size_t i = 0; i < sizeof(key) * 8; i++) {
		key[i / 8] ^= (unsigned char)(1 << i % 8);
		hashes[n++] = hash_bytes(paper_secret, 0, key, sizeof(key));
		key[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	is(repeated(hashes, n), 0, "each bit of a key of 1024 bytes matters");

	n = 0;
	for (size_t len = 0; len <= sizeof(key); len++)
		hashes[n++] = hash_bytes(paper_secret, 0, key, len);
	is(repeated(hashes, n), 0, "the length matters: no two strings of NULs are one key");

	n = 0;
	for (uint64_t tweak = 0; tweak < SHMLIMIT_RULES_MAX; tweak++)
		hashes[n++] = hash_bytes(paper_secret, tweak, "laoqian", 7);
	for (int bit = 12; bit < 64; bit++)
		hashes[n++] = hash_bytes(paper_secret, (uint64_t)1 << bit, "laoqian", 7);
	is(repeated(hashes, n), 0, "the tweak matters: one key has another hash under each rule");

	n = 0;
	hashes[n++] = hash_bytes(paper_secret, 0, "laoqian", 7);
	for (int bit = 0; bit < 128; bit++) {
		uint64_t secret[2] = { paper_secret[0], paper_secret[1] };

		secret[bit / 64] ^= (uint64_t)1 << bit % 64;
		hashes[n++] = hash_bytes(secret, 0, "laoqian", 7);
	}
	is(repeated(hashes, n), 0, "each bit of the secret matters");

	n = 0;
	hashes[n++] = hash_bytes(paper_secret, 0, "a", 1);
	hashes[n++] = hash_bytes(paper_secret, 0, "a\0", 2);
	hashes[n++] = hash_bytes(paper_secret, 0, "a\0b", 3);
	hashes[n++] = hash_bytes(paper_secret, 0, "a\0c", 3);
	is(repeated(hashes, n), 0, "a NUL is a byte like others");
}

static void tags(void)
{
	ok(tag_pack(0, 0, 0) != 0, "no key's tag is that of a free slot");
	is(tag_fingerprint(tag_pack((uint64_t)7 << 48, 3, 0)), 1, "the lowest bit of a fingerprint is set");
	is(tag_rule(tag_pack((uint64_t)7 << 48, 3, 1)), 3, "a tag keeps its rule");
}

int main(void)
{
	published();
	everywhere();
	everything();
	tags();
	return tap_done();
}
