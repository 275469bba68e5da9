/*
 * hash: SipHash, see hash.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "hash.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void round_once(struct state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static inline void absorb(struct state *s, uint64_t word, int rounds)
{
	s->v3 ^= word;
	for (int i = 0; i < rounds; i++)
		round_once(s);
	s->v0 ^= word;
}

static inline uint64_t little_endian(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(word);
#else
	return word;
#endif
}

/* The last 0 to 7 bytes, little endian. */
static inline uint64_t tail(const unsigned char *p, size_t len)
{
	uint64_t word = 0;

	/* WHY NOT memcpy of `len` bytes: it becomes a call, which costs as much as a round. */
	if (len & 4) {
		uint32_t four;

		memcpy(&four, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		four = __builtin_bswap32(four);
#endif
		word = four;
		p += 4;
	}
	if (len & 2) {
		word |= ((uint64_t)p[0] | (uint64_t)p[1] << 8) << (len & 4) * 8;
		p += 2;
	}
	if (len & 1)
		word |= (uint64_t)p[0] << (len & 6) * 8;
	return word;
}

static inline uint64_t siphash(const uint64_t secret[2], uint64_t tweak, const void *data, size_t len, int words,
                               int end)
{
	struct state s = {
		secret[0] ^ 0x736f6d6570736575u,
		secret[1] ^ 0x646f72616e646f6du ^ tweak,
		secret[0] ^ 0x6c7967656e657261u,
		secret[1] ^ 0x7465646279746573u,
	};
	const unsigned char *p = data;
	size_t left = len;

	for (; left >= 8; p += 8, left -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		absorb(&s, little_endian(word), words);
	}
	absorb(&s, (uint64_t)len << 56 | tail(p, left), words);
	s.v2 ^= 0xff;
	for (int i = 0; i < end; i++)
		round_once(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_bytes(const uint64_t secret[2], uint64_t tweak, const void *data, size_t len)
{
	return siphash(secret, tweak, data, len, 1, 3);
}

uint64_t hash_rounds(const uint64_t secret[2], uint64_t tweak, const void *data, size_t len, int words, int end)
{
	return siphash(secret, tweak, data, len, words, end);
}
