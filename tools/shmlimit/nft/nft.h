/*
 * nft.h: bans as nftables sets: the kernel drops what a banned client sends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NFT_H
#define NFT_H

#include <stddef.h>

#include "nets.h"

#define NFT_TABLE "shmlimit"
#define NFT_SET "bans"
#define NFT_NAME_MAX 63

struct nft {
	const char *table; /* of the family inet; NULL: NFT_TABLE, with the rules that drop */
	const char *set;   /* NULL: NFT_SET. Its name and 4, or 6, are the sets' names */
};

int nft_check_name(const char *what, const char *name); /* a status */

/*
 * Nets that are never dropped: loopback and link-local addresses, and that from which this session came, as its environment or
 * that of a process which began it says (sudo clears SSH_CONNECTION). Processes of other users are asked as far as /proc allows.
 */
void nft_keep_own(struct nets *nets);
/* ADDR or ADDR/N. A status. */
int nft_keep(struct nets *nets, const char *text);
/* Returns 1 if it is the key of an address, or of a net, and adds it; 0: it is none, or the net of all addresses. */
int nft_add_key(struct nets *nets, const void *key, size_t len, uint64_t ms);

/* Both print, or give nft, one transaction: it makes what is missing and replaces the sets' elements. A status. */
int nft_print(const struct nft *nft, const struct nets *ranges);
int nft_apply(const struct nft *nft, const struct nets *ranges);

#endif
