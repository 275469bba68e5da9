/*
 * url: parses a backend's address and login. Pure.
 *
 *	redis://[[user]:password@]host[:port][/db]
 *	unix://[[user]:password@]/path[?db=N]          also redis+unix:
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_URL_H
#define GLOBAL_URL_H

#include <stddef.h>

#define URL_WHY_MAX 256

/* A part that the URL lacks is "". A path is that of a Unix socket; there is either a path or a host. */
struct url {
	char user[128], password[512];
	char host[256], port[6];
	char path[108];        /* as long as sun_path */
	unsigned db;
};

/*
 * Returns 0, -EINVAL, or -EPROTONOSUPPORT for rediss:, with the wrong part and the correction in `why`. It never
 * shows the user and password part, since a password may be in the wrong place.
 */
int url_parse(const char *text, struct url *url, char why[URL_WHY_MAX]);

/* Write the part that may be shown: "host:port/db" or "/path?db=N". Returns `text`. */
#define URL_TEXT_MAX 384
const char *url_text(const struct url *url, char text[URL_TEXT_MAX]);

#endif
