/*
 * url: parses a backend's address and login. Pure.
 *
 *	redis://[[user]:password@]host[:port][,host[:port]...][/db]
 *	redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/primary[/db]
 *	rediss:// and rediss+sentinel://, the same with TLS, and at the end [?cacert=FILE][&cert=FILE][&key=FILE]
 *	unix://[[user]:password@]/path[?db=N]          also redis+unix:
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_URL_H
#define GLOBAL_URL_H

#include <stddef.h>

#define URL_WHY_MAX 256
#define URL_HOSTS_MAX 8
#define URL_HOST_SIZE 256
#define URL_PORT_SIZE 6
#define URL_FILE_SIZE 256

/*
 * A part that the URL lacks is "". A path is that of a Unix socket; there is either a path or a
 * host.
 */
struct url {
	char user[128], password[512];
	char host[URL_HOST_SIZE], port[URL_PORT_SIZE]; /* the host in use */
	char path[108];                                /* as long as sun_path */
	unsigned db;
	char primary[64]; /* the hosts are sentinels, and this is their name of the primary */
	int tls;
	char cacert[URL_FILE_SIZE], cert[URL_FILE_SIZE], key[URL_FILE_SIZE];
	unsigned others; /* further hosts */
	struct {
		char host[URL_HOST_SIZE], port[URL_PORT_SIZE];
	} other[URL_HOSTS_MAX - 1];
};

/*
 * Returns 0, or -EINVAL with the wrong part and the correction in `why`. It never shows the user
 * and password part, since a password may be in the wrong place.
 */
int url_parse(const char *text, struct url *url, char why[URL_WHY_MAX]);

/* Use the next host. The present one is the last of the others then. */
void url_next(struct url *url);

/* Write the part that may be shown: "host:port,host:port/db", "host:port,host:port/primary/db" or
 * "/path?db=N". Returns `text`. */
#define URL_TEXT_MAX 512
const char *url_text(const struct url *url, char text[URL_TEXT_MAX]);

#endif
