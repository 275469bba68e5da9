/*
 * address: the reader of IP addresses as people, servers and proxies write them. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stddef.h>

struct address {
	unsigned char bytes[16]; /* in network order */
	size_t len;              /* 4 or 16; an IPv4-mapped address has 16 */
	int has_port;            /* a port followed it */
};

/*
 * Read one address. Blanks and double quotes may be around it. IPv4 may have a port; IPv6 may have
 * a zone and, in brackets, a port:
 *
 *	203.0.113.9  203.0.113.9:443  2001:db8::1  fe80::1%eth0  [2001:db8::1]  "[2001:db8::1]:443"
 *
 * Returns 1, or 0 if the text is anything else; *out is then undefined.
 */
int address_read(const char *text, size_t len, struct address *out);

/*
 * Is it the address of a host of one's own net, as proxies and load balancers have: loopback,
 * private (RFC 1918, 6598, 4193) or link-local, also where it is IPv4-mapped?
 */
int address_is_private(const struct address *address);

/*
 * Find the nth element of a list whose elements are separated by commas, such as X-Forwarded-For: 1
 * is the first, -1 the last, -2 the last but one. Empty elements do not count. Double quotes around
 * the whole list are left out. Returns 1; *element, of *element_len bytes, is then a part of the
 * text, without blanks around it. Returns 0 if the list has no such element, and for 0.
 */
int address_nth(const char *text, size_t len, int nth, const char **element, size_t *element_len);

#endif
