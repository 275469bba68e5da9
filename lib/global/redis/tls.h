/*
 * tls: TLS on a socket that does not block. OpenSSL does it; the bytes are sent and received here.
 * WHY NOT OpenSSL's own: writing to a closed connection raises SIGPIPE in the program.
 *
 * The server's certificate must be for url.host, and be signed by an authority of url.cacert, or by
 * default of the system. Functions that may wait for the socket return -EAGAIN instead.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TLS_H
#define GLOBAL_TLS_H

#include <sys/types.h>

#include "url.h"

#define TLS_WHY_MAX 160

struct tls;

/*
 * Make one for the socket *fd, which may change until the handshake begins. Returns 0, -ENOMEM, or
 * -EKEYREJECTED: the reason is in `why`.
 */
int tls_begin(struct tls **tls, const int *fd, const struct url *url, char why[TLS_WHY_MAX]);

/* Free it, if there is one. Sends nothing: a forked child must not end its parent's connection. */
void tls_end(struct tls *tls);

/*
 * Return 0, or the number of bytes; -EAGAIN, with the event of poll(2) in *events; -EPIPE at the
 * end; -EKEYREJECTED with the reason in `why`; or the socket's error.
 */
int tls_handshake(struct tls *tls, short *events, char why[TLS_WHY_MAX]);
ssize_t tls_read(struct tls *tls, char *bytes, size_t size, char why[TLS_WHY_MAX]);
ssize_t tls_write(struct tls *tls, const char *bytes, size_t len, char why[TLS_WHY_MAX]);

/* Are there bytes to read that have left the socket? */
int tls_is_pending(const struct tls *tls);

#endif
