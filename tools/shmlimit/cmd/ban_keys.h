/*
 * ban_keys.h: the keys that a ban must reach. Servers look up the address of a client as a key of
 * one prefix, so a ban of a wider net is a ban of each of its keys; a ban of a key that no server
 * looks up would deny no client.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BAN_KEYS_H
#define BAN_KEYS_H

#include "address.h"
#include "key_form.h"

/*
 * Of one net. A larger one also takes more slots than an eighth of the segment, or is the
 * firewall's work.
 */
#define BAN_KEYS_MAX 1024u

struct ban_keys {
	struct key given;       /* what was typed; the only key, unless it is an address */
	int is_address, is_net; /* ADDR, or ADDR/N without --prefix */
	int as_net, as_text;    /* the forms in which users have it */
	struct address address;
	unsigned bits;      /* of the net that is banned */
	unsigned prefix[2]; /* those of its keys; both may be equal */
	struct key shown;   /* the net, or the first key */
	uint64_t count;     /* of keys */
};

int ban_keys_read(const struct call *call, const char *operand, struct ban_keys *keys); /* a status */
/*
 * Choose the forms, by what the segment shows (key_form.h). The rule may be -1. The count is 0 if
 * no user has such keys.
 */
void ban_keys_choose(struct shmlimit *limiter, int rule, struct ban_keys *keys);
/*
 * A status: a net of too many keys is refused, and so is one that is smaller than those of the
 * users' prefix.
 */
int ban_keys_check(struct shmlimit *limiter, const struct ban_keys *keys);
/* Calls visit() with each key until it returns a number below 0, and returns that, or 0. */
int ban_keys_each(const struct ban_keys *keys, int (*visit)(void *context, const struct key *key), void *context);

#endif
