/*
 * replay_order.c: requests in the order of their times. A server writes a line
 * when it is done with a request, and Apache's has the time at which that began:
 * lines are late by as long as requests take. A line waits here until a time has
 * come up that is ORDER_S later, in a list for each second; those of one second
 * stay in the order in which they were written.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "log_time.h"
#include "replay.h"

/* 0 ends a list. */
struct replay_entry {
	struct replay_key *key;
	struct replay_plan *plan;
	uint64_t cost;
	uint32_t next, ns; /* the fraction of its second */
};

/* Makes room for one more. */
static int make_room(struct replay_order *order)
{
	uint32_t room = order->room > 0 ? 2 * order->room : 1024;
	struct replay_entry *entry;

	if (order->used + 1 < order->room)
		return 0;
	entry = reallocarray(order->entry, room, sizeof(*entry));
	if (entry == NULL)
		return -ENOMEM;
	order->entry = entry;
	order->room = room;
	return 0;
}

static struct replay_second *second_of(struct replay_order *order, int64_t unix_s)
{
	return &order->second[(uint64_t)unix_s % ORDER_S];
}

int order_expect(struct replay_order *order, int64_t unix_ns)
{
	int64_t unix_s = unix_ns / LOG_SECOND;

	if (order->newest_s < 0)
		order->from_s = unix_s < ORDER_S ? 0 : unix_s - ORDER_S + 1;
	if (unix_s > order->newest_s)
		order->newest_s = unix_s;
	return unix_s >= order->from_s;
}

int order_add(struct replay_order *order, const struct replay_request *q)
{
	struct replay_second *second = second_of(order, q->unix_ns / LOG_SECOND);
	uint32_t place = order->free, ns = (uint32_t)(q->unix_ns % LOG_SECOND);

	if (place != 0)
		order->free = order->entry[place].next;
	else if (make_room(order) != 0)
		return -ENOMEM;
	else
		place = ++order->used;
	order->entry[place] = (struct replay_entry){ q->key, q->plan, q->cost, 0, ns };
	if (second->last == 0) {
		second->first = place;
	} else {
		second->unsorted |= ns < order->entry[second->last].ns;
		order->entry[second->last].next = place;
	}
	second->last = place;
	order->count++;
	return 0;
}

/* Cuts the list behind its first `n` entries. Returns the rest. */
static uint32_t cut(struct replay_entry *entry, uint32_t list, uint64_t n)
{
	uint32_t rest;

	while (--n > 0 && list != 0)
		list = entry[list].next;
	if (list == 0)
		return 0;
	rest = entry[list].next;
	entry[list].next = 0;
	return rest;
}

/*
 * Merges two sorted lists behind the entry `last`, the left one first where times are the same.
 * Returns the last one.
 */
static uint32_t merge(struct replay_entry *entry, uint32_t last, uint32_t left, uint32_t right)
{
	while (left != 0 || right != 0) {
		uint32_t *from = right == 0 || (left != 0 && entry[left].ns <= entry[right].ns) ? &left : &right;

		last = entry[last].next = *from;
		*from = entry[last].next;
	}
	return last;
}

/*
 * Merges runs of 1, 2, 4, ... entries, so entries of one time keep their order. Entry 0, which is
 * never in use, is the head.
 */
static void sort(struct replay_entry *entry, struct replay_second *second)
{
	uint32_t merged = 0;

	/* BOUND: a list is shorter than 2^32, and each round doubles the run. */
	for (uint64_t run = 1; merged != 1; run *= 2) {
		uint32_t rest = second->first, last = 0;

		for (merged = 0; rest != 0; merged++) {
			uint32_t left = rest, right = cut(entry, left, run);

			rest = cut(entry, right, run);
			last = merge(entry, last, left, right);
		}
		second->first = entry[0].next;
		second->last = last;
	}
	second->unsorted = 0;
}

int order_take(struct replay_order *order, int at_end, struct replay_request *q)
{
	/* BOUND: all that waits is of the ORDER_S seconds from the first on. */
	while (order->count > 0 &&
	       (at_end || order->newest_s >= order->from_s + ORDER_S || order->count >= ORDER_MAX)) {
		struct replay_second *second = second_of(order, order->from_s);
		uint32_t place;

		if (second->unsorted)
			sort(order->entry, second);
		place = second->first;
		if (place == 0) {
			order->from_s++;
			continue;
		}
		*q = (struct replay_request){ order->entry[place].key, order->entry[place].plan,
			                      order->entry[place].cost,
			                      order->from_s * LOG_SECOND + order->entry[place].ns };
		second->first = order->entry[place].next;
		if (second->first == 0)
			second->last = 0;
		order->entry[place].next = order->free;
		order->free = place;
		order->count--;
		return 1;
	}
	if (order->newest_s >= order->from_s + ORDER_S)
		order->from_s = order->newest_s - ORDER_S + 1;
	return 0;
}

void order_free(struct replay_order *order)
{
	free(order->entry);
}
