/*
 * lease: the rare half of the arithmetic, see lease.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "lease.h"

typedef unsigned __int128 u128;

/*
 * A size is a float without a sign: n for n < 4, else (4 + n mod 4) * 2^(n / 4 - 1).
 * Steps are an eighth to a quarter, and 64 of them reach over 17 bits; where the
 * capacity has more, sizes leave its low bits out.
 */
#define SIZE_STEPS 4u
#define SIZE_REACH_BITS 17u

static unsigned bit_length(uint64_t x)
{
	return x == 0 ? 0 : 64 - (unsigned)__builtin_clzll(x);
}

/*
 * The engine's script counts in doubles, which are whole numbers below 2^53: parts of a token, of which count * 1000 /
 * common come back in a microsecond and period_ns / common make a token. The same check is in global/script.c.
 */
#define ENGINE_EXACT ((uint64_t)1 << 53)

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int engine_can_count(const struct shmlimit_rule *rule)
{
	uint64_t common;

	if (rule->count >= ENGINE_EXACT / 1000)
		return 0;
	common = common_divisor(rule->count * 1000, rule->period_ns);
	return (u128)rule->capacity * (rule->period_ns / common) + rule->count * 1000 / common < ENGINE_EXACT;
}

int lease_compile(const struct shmlimit_rule *rule, struct layout_terms *terms)
{
	unsigned bits = bit_length(rule->capacity);

	if (rule->capacity == 0 || rule->count == 0 || rule->period_ns == 0)
		return -EDOM;
	if (bits > LEASE_QUOTA_BITS_MAX || !engine_can_count(rule))
		return -ERANGE;
	if (rule->flags != 0 || rule->max_wait_ns != 0)
		return -EINVAL;
	terms->capacity = rule->capacity;
	terms->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	terms->num = rule->count;
	terms->den = rule->period_ns;
	terms->back = ((uint64_t)1 << LEASE_TIME_BITS) - LEASE_AHEAD_NS;
	terms->ahead = LEASE_AHEAD_NS;
	terms->shape = terms_shape(bits, 0, SHMLIMIT_LEASE, 0);
	terms->count = rule->count;
	terms->period_ns = rule->period_ns;
	return 0;
}

void lease_range(const struct layout_terms *terms, struct shmlimit_range *out)
{
	uint64_t count = terms->num | (terms->num == 0);
	u128 fill_ns = ((u128)terms->capacity * terms->den + count - 1) / count;

	out->resolution_ps = 1000 * lease_tick_ns(terms);
	out->fill_ns = fill_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)fill_ns;
	out->back_ns = terms->back;
	out->ahead_ns = terms->ahead;
}

/* Bits that sizes of these terms leave out. */
static unsigned size_shift(const struct layout_terms *terms)
{
	unsigned bits = terms_quota_bits(terms);

	return bits > SIZE_REACH_BITS ? bits - SIZE_REACH_BITS : 0;
}

unsigned lease_size(const struct layout_terms *terms, uint64_t tokens)
{
	unsigned shift = size_shift(terms), exponent, size;
	uint64_t units;

	if (tokens > terms->capacity)
		tokens = terms->capacity;
	units = tokens >> shift;
	if (units == 0)
		return tokens != 0;
	if (units < SIZE_STEPS)
		return (unsigned)units;
	exponent = bit_length(units) - 3;
	units += (uint64_t)1 << exponent >> 1; /* to the nearest; from the last of an octave to the first of the next */
	size = SIZE_STEPS * exponent + (unsigned)(units >> exponent);
	return size < (1u << LEASE_SIZE_BITS) ? size : (1u << LEASE_SIZE_BITS) - 1;
}

uint64_t lease_size_tokens(const struct layout_terms *terms, unsigned size)
{
	uint64_t units = size < SIZE_STEPS ? size : (SIZE_STEPS + size % SIZE_STEPS) << (size / SIZE_STEPS - 1);

	return units << size_shift(terms);
}

/* lease_size() rounds to the nearest: below the first size of an octave steps are half as wide. */
uint64_t lease_size_least(const struct layout_terms *terms, unsigned size)
{
	unsigned octave = size / SIZE_STEPS, shift = size_shift(terms);
	uint64_t half = octave < 2 ? 0 : ((uint64_t)1 << (octave - 1)) / (size % SIZE_STEPS == 0 ? 4 : 2);

	if (size <= 1)
		return size;
	return ((lease_size_tokens(terms, size) >> shift) - half) << shift;
}

uint64_t lease_next(const struct layout_terms *terms, const struct lease *lease, uint64_t now_ns, uint64_t lease_ns)
{
	uint64_t size = lease_size_tokens(terms, lease->size), used = size, wanted_ns = lease_ns, since_ns, next;
	u128 scaled;

	/* How long ago the lease began, if it was to last as long as the next one will. */
	if (lease->left_ns != 0)
		since_ns = lease->left_ns < lease_ns ? lease_ns - lease->left_ns : 1;
	else
		since_ns = lease_ns + ((now_ns - lease->until_ns) & (UINT64_MAX >> LEASE_TIME_SHIFT));
	if (lease->state == LEASE_TOKENS) {
		uint64_t left = lease->quota + lease->lapsed;

		used = left < size ? size - left : 0;
		wanted_ns = lease_ns / 4 * 3;
	} else if (lease->left_ns != 0) {
		since_ns = lease_ns; /* nothing was learned */
	}
	since_ns |= since_ns == 0;
	/* To the nearest: else a lease of one token, which took long to come, would be followed by one of one for ever. */
	scaled = ((u128)used * wanted_ns + since_ns / 2) / since_ns;
	next = scaled < 2 * size ? (uint64_t)scaled : 2 * size;
	return next < terms->capacity ? next : terms->capacity;
}

uint64_t lease_convert(const struct layout_terms *from, uint64_t word, const struct layout_terms *to)
{
	unsigned bits = terms_quota_bits(from);
	struct lease lease = {
		.until_ns = ((word & ~lease_low(from)) >> LEASE_TIME_SHIFT),
		.quota = word & (((uint64_t)1 << bits) - 1),
		.state = word >> bits & 3,
	};
	unsigned size = word >> ((bits + LEASE_STATE_BITS) & 63) & ((1u << LEASE_SIZE_BITS) - 1);

	/* A denial was of the old rule: somebody asks anew. */
	if (lease.state == LEASE_DENIED) {
		lease.state = LEASE_TOKENS;
		lease.quota = 0;
	}
	if (lease.quota > to->capacity)
		lease.quota = to->capacity;
	/* WHY NOT lease_size_tokens(): other steps could round it up, to more than was lent. */
	lease.size = lease_size(to, lease_size_least(from, size));
	return lease_pack(to, lease);
}

uint64_t lease_token_ns(const struct layout_terms *terms)
{
	uint64_t count = terms->num | (terms->num == 0);

	return terms->den / count + (terms->den % count != 0);
}
