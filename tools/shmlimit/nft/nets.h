/*
 * nets.h: nets that may lie in each other become ranges that do not, as an nftables set wants them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NETS_H
#define NETS_H

#include <stddef.h>
#include <stdint.h>

struct net {
	unsigned char first[16], last[16]; /* in network order */
	size_t len;                        /* of an address: 4 or 16 */
	uint64_t ms;                       /* how long it is dropped; 0: never, whatever else it lies in */
};

struct nets {
	size_t count, room;
	struct net *net;
};

/* The first `bits` bits of an address. */
void nets_add(struct nets *nets, const void *address, size_t len, unsigned bits, uint64_t ms);

/*
 * Leaves out nets, the largest first, until the others have no more addresses than 4096 nets of
 * `widest` bits, for IPv4 and IPv6 each. Nets that are never dropped stay. Returns how many were
 * left out.
 */
#define NETS_OF_WIDEST 4096
size_t nets_bound(struct nets *nets, const unsigned widest[2]);

/*
 * The ranges that are dropped, in order and disjoint, are added to *ranges. A net in another one is
 * dropped for the longer time of both; all around it for the other net's. Sorts *nets. Returns how
 * often a net that is never dropped and one that is meet.
 */
size_t nets_cut(struct nets *nets, struct nets *ranges);

#endif
