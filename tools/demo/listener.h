/*
 * listener: the one socket that all workers accept on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_DEMO_LISTENER_H
#define SHMLIMIT_DEMO_LISTENER_H

/*
 * Listen on 127.0.0.1, at a port of the kernel's choice, without blocking in
 * accept. Fills *port. Returns the socket, or -1 after a message.
 */
int listener_open(unsigned *port);

/*
 * Say where we listen: the port, one line, to the file `path`, which appears
 * complete or not at all; or an address to stdout where `path` is NULL.
 * Returns 0, or -1 after a message.
 */
int listener_announce(unsigned port, const char *path);

#endif
