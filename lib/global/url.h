/*
 * url: where an engine is and who asks it, as text has it. Pure.
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

/* What is not given is "". A path is that of a Unix socket; there is either a path or a host. */
struct url {
	char user[128], password[512];
	char host[256], port[6];
	char path[108];        /* as long as sun_path */
	unsigned db;
};

/*
 * Returns 0, or -EINVAL, or -EPROTONOSUPPORT for rediss:, and says in `why`
 * which part is wrong and what would be right. It never shows who asks: a
 * password may stand where it should not.
 */
int url_parse(const char *text, struct url *url, char why[URL_WHY_MAX]);

/* "host:port/db" or "/path?db=N": what may be shown. Returns `text`. */
#define URL_TEXT_MAX 384
const char *url_text(const struct url *url, char text[URL_TEXT_MAX]);

#endif
