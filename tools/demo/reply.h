/*
 * reply: one request in, one response out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_DEMO_REPLY_H
#define SHMLIMIT_DEMO_REPLY_H

#include <microhttpd.h>
#include <stddef.h>

/*
 * libmicrohttpd's access handler; `gate` is the struct gate to ask. The client
 * is the one that the query names (?client=alice), else the peer's address: a real
 * service would take the name from what it has authenticated.
 */
enum MHD_Result reply_to_request(void *gate, struct MHD_Connection *connection, const char *url, const char *method,
                                 const char *version, const char *body, size_t *body_len, void **state);

#endif
