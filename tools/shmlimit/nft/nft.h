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

#define NFT_WIDEST_V4 24
#define NFT_WIDEST_V6 48

/*
 * Nets that are never dropped: loopback and link-local addresses, the net of the default route,
 * resolvers, and the address from which this session came, as its environment or that of a process
 * which began it says (sudo clears SSH_CONNECTION). Processes of other users are asked as far as
 * /proc allows.
 */
void nft_keep_own(struct nets *nets);
/* Private addresses (RFC 1918, 6598, 4193), which proxies have, and the host's own. */
void nft_keep_private(struct nets *nets);
int nft_is_private(const void *key, size_t len); /* is it the key of such an address? */
/* ADDR or ADDR/N. A status. */
int nft_keep(struct nets *nets, const char *text);
/* Adds the key of an address, or of a net of at least `widest` bits of IPv4 and IPv6. */
enum nft_added { NFT_ADDED, NFT_NO_ADDRESS, NFT_TOO_WIDE };
enum nft_added nft_add_key(struct nets *nets, const void *key, size_t len, uint64_t ms, const unsigned widest[2]);

/*
 * Both print, or give nft, one transaction: it makes what is missing and replaces the sets'
 * elements. A status.
 */
int nft_print(const struct nft *nft, const struct nets *ranges);
int nft_apply(const struct nft *nft, const struct nets *ranges);

#endif
