/*
 * nets.c: see nets.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "allocate.h"
#include "nets.h"

static void append(struct nets *nets, const struct net *net)
{
	if (nets->count == nets->room) {
		nets->room = nets->room > 0 ? 2 * nets->room : 64;
		nets->net = allocate_array(nets->net, nets->room, sizeof(*nets->net));
	}
	nets->net[nets->count++] = *net;
}

void nets_add(struct nets *nets, const void *address, size_t len, unsigned bits, uint64_t ms)
{
	struct net net = { .len = len, .ms = ms };

	memcpy(net.first, address, len);
	memcpy(net.last, address, len);
	for (unsigned bit = bits; bit < 8 * len; bit++) {
		net.first[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
		net.last[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
	}
	append(nets, &net);
}

/* How many addresses it has; nets that are never dropped have none. */
static double size_of(const struct net *net)
{
	double size = 0;

	for (size_t i = 0; net->ms > 0 && i < net->len; i++)
		size = 256 * size + net->last[i] - net->first[i];
	return net->ms > 0 ? size + 1 : 0;
}

static int compare_sizes(const void *left, const void *right)
{
	double a = size_of(left), b = size_of(right);

	return (a > b) - (a < b);
}

size_t nets_bound(struct nets *nets, const unsigned widest[2])
{
	double room[2] = { NETS_OF_WIDEST, NETS_OF_WIDEST };
	size_t kept = 0, all = nets->count;

	for (unsigned bit = widest[0]; bit < 32; bit++)
		room[0] *= 2;
	for (unsigned bit = widest[1]; bit < 128; bit++)
		room[1] *= 2;
	if (all > 1)
		qsort(nets->net, all, sizeof(*nets->net), compare_sizes);
	for (size_t i = 0; i < all; i++) {
		double *left = &room[nets->net[i].len == 16], size = size_of(&nets->net[i]);

		if (size > *left)
			continue;
		*left -= size;
		nets->net[kept++] = nets->net[i];
	}
	nets->count = kept;
	return all - kept;
}

/*
 * A net comes before all that lie in it; of equal ones first that which decides: it is never
 * dropped, or the longest.
 */
static int compare(const void *left, const void *right)
{
	const struct net *a = left, *b = right;
	int order = (a->len > b->len) - (a->len < b->len);

	if (order == 0)
		order = memcmp(a->first, b->first, a->len);
	if (order == 0)
		order = memcmp(b->last, a->last, a->len);
	/* 0 - 1 is the largest number. */
	return order != 0 ? order : (a->ms - 1 < b->ms - 1) - (a->ms - 1 > b->ms - 1);
}

/* One more (1), or one less (-1). Returns 0 beyond the last, or before the first, address. */
static int step(unsigned char *address, size_t len, int by)
{
	unsigned char over = by > 0 ? 0 : 0xff;

	while (len-- > 0) {
		address[len] = (unsigned char)(address[len] + by);
		if (address[len] != over)
			return 1;
	}
	return 0;
}

/* Nets that lie in each other, the outermost first, and where the next range begins. */
struct cut {
	const struct net *open[130]; /* BOUND: each has more bits than the one that it lies in: 0 to 128 */
	size_t depth;
	unsigned char next[16];
	int ended; /* there is no next address */
	size_t spared;
	struct nets *ranges;
};

/* What is left of the innermost net, up to `last`. */
static void put(struct cut *cut, const unsigned char *last)
{
	struct net range = *cut->open[cut->depth - 1];

	if (range.ms == 0 || cut->ended || memcmp(cut->next, last, range.len) > 0)
		return;
	memcpy(range.first, cut->next, range.len);
	memcpy(range.last, last, range.len);
	append(cut->ranges, &range);
}

static void leave(struct cut *cut)
{
	const struct net *net = cut->open[cut->depth - 1];

	put(cut, net->last);
	cut->depth--;
	memcpy(cut->next, net->last, net->len);
	cut->ended = !step(cut->next, net->len, 1);
}

static void enter(struct cut *cut, const struct net *net)
{
	const struct net *outer = cut->depth > 0 ? cut->open[cut->depth - 1] : NULL;
	unsigned char before[16];

	cut->spared += outer != NULL && (outer->ms == 0) != (net->ms == 0);
	if (outer != NULL && (outer->ms == 0 || (net->ms != 0 && net->ms <= outer->ms)))
		return;
	memcpy(before, net->first, net->len);
	if (outer != NULL && step(before, net->len, -1))
		put(cut, before);
	cut->open[cut->depth++] = net;
	memcpy(cut->next, net->first, net->len);
	cut->ended = 0;
}

/* Does the net end before the other begins? */
static int is_before(const struct net *net, const struct net *other)
{
	return net->len != other->len || memcmp(net->last, other->first, net->len) < 0;
}

size_t nets_cut(struct nets *nets, struct nets *ranges)
{
	struct cut cut = { .ranges = ranges };

	if (nets->count > 1)
		qsort(nets->net, nets->count, sizeof(*nets->net), compare);
	for (size_t i = 0; i < nets->count; i++) {
		while (cut.depth > 0 && is_before(cut.open[cut.depth - 1], &nets->net[i]))
			leave(&cut);
		enter(&cut, &nets->net[i]);
	}
	while (cut.depth > 0)
		leave(&cut);
	return cut.spared;
}
