/*
 * nets: nets that lie in each other become disjoint ranges: beside an oracle that asks for each address.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "nets.h"
#include "../rng.h"
#include "../unit/unit.h"

#define ADDRESSES 256 /* of the net that all others lie in */

/* By the nets themselves: 0, or the longest time. */
static void ask_nets(const struct nets *nets, size_t len, uint64_t want[ADDRESSES])
{
	unsigned char kept[ADDRESSES] = { 0 };

	memset(want, 0, ADDRESSES * sizeof(*want));
	for (size_t i = 0; i < nets->count; i++) {
		const struct net *net = &nets->net[i];

		for (unsigned a = net->first[len - 1]; net->len == len && a <= net->last[len - 1]; a++) {
			kept[a] |= net->ms == 0;
			want[a] = net->ms > want[a] ? net->ms : want[a];
		}
	}
	for (unsigned a = 0; a < ADDRESSES; a++)
		want[a] = kept[a] ? 0 : want[a];
}

/* By the ranges. Returns 0 if they are not in order and disjoint. */
static int ask_ranges(const struct nets *ranges, size_t len, uint64_t got[ADDRESSES])
{
	int next = 0;

	memset(got, 0, ADDRESSES * sizeof(*got));
	for (size_t i = 0; i < ranges->count; i++) {
		const struct net *range = &ranges->net[i];

		if (range->len != len)
			continue;
		if (range->first[len - 1] < next || range->last[len - 1] < range->first[len - 1] || range->ms == 0)
			return 0;
		next = range->last[len - 1] + 1;
		for (unsigned a = range->first[len - 1]; a <= range->last[len - 1]; a++)
			got[a] = range->ms;
	}
	return 1;
}

/* Nets of both families, at the beginning, in the middle or at the end of all addresses. */
static int is_right(struct rng *rng)
{
	static const unsigned char ends[] = { 0, 203, 255 };
	struct nets nets = { 0 }, ranges = { 0 };
	unsigned char address[16];
	uint64_t want[ADDRESSES], got[ADDRESSES];
	int right = 1;

	memset(address, ends[rng_below(rng, 3)], sizeof(address));
	for (uint64_t n = rng_below(rng, 30); n > 0; n--) {
		size_t len = rng_below(rng, 2) ? 4 : 16;

		address[len - 1] = (unsigned char)rng_below(rng, ADDRESSES);
		nets_add(&nets, address, len, (unsigned)(8 * len - rng_below(rng, 9)), rng_below(rng, 5));
		address[len - 1] = address[0];
	}
	nets_cut(&nets, &ranges);
	for (size_t len = 4; len <= 16; len += 12) {
		ask_nets(&nets, len, want);
		right = right && ask_ranges(&ranges, len, got) && memcmp(want, got, sizeof(want)) == 0;
	}
	free(nets.net);
	free(ranges.net);
	return right;
}

int main(void)
{
	struct rng rng = { rng_seed() };
	uint64_t rounds = scaled(20000), right = 0;

	for (uint64_t i = 0; i < rounds; i++)
		right += (uint64_t)is_right(&rng);
	is(right, rounds,
	   "each address is dropped for the longest time of its nets, or is kept, by disjoint ranges in order");
	return tap_done();
}
