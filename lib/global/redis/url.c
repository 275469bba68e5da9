/*
 * url: see url.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "scheme.h"
#include "url.h"

#define PORT_DEFAULT "6379"
#define PORT_SENTINEL "26379"
#define DB_MAX 65535 /* Redis allows more */

/* It goes to logs and terminals, and may repeat a byte of the URL: none that these act on. */
__attribute__((format(printf, 2, 3))) static int wrong(char *why, const char *format, ...)
{
	char text[URL_WHY_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	backend_error_copy(why, URL_WHY_MAX, text, strlen(text));
	return -EINVAL;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A part of the text, and what messages call it. */
struct piece {
	const char *what, *text;
	size_t len;
};

/* Copy a part and decode %41 to A. `secret`: error messages must not show the text. */
static int part(struct piece from, int secret, char *to, size_t size, char *why)
{
	const char *what = from.what, *text = from.text;
	size_t len = from.len, n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			int high = i + 2 < len ? hex(text[i + 1]) : -1, low = high >= 0 ? hex(text[i + 2]) : -1;

			if (low < 0)
				return wrong(why,
				             "%s: a %% without two hexadecimal digits behind it: must be %%25 for "
				             "itself",
				             what);
			c = high << 4 | low;
			i += 2;
		}
		if (c < ' ' || c == 0x7f)
			return wrong(why, "%s: has a control character: must have none", what);
		if (n + 1 >= size)
			return wrong(why, "%s: %zu bytes or more: must be %zu at most", what, n + 1, size - 1);
		to[n++] = (char)c;
	}
	to[n] = '\0';
	if (n == 0 && !secret)
		return wrong(why, "%s: empty: must be given", what);
	return 0;
}

/*
 * Read a whole number without a sign or leading zeros. WHY NOT show it in the message: it may be a
 * misplaced password.
 */
static int number(struct piece from, unsigned min, unsigned max, unsigned *value, char *why)
{
	const char *text = from.text;
	size_t len = from.len;
	unsigned n = 0;
	int bad = len == 0 || len > 5 || (len > 1 && text[0] == '0');

	for (size_t i = 0; i < len && !bad; i++) {
		bad = text[i] < '0' || text[i] > '9';
		n = n * 10 + (unsigned)(text[i] - '0');
	}
	if (bad || n < min || n > max)
		return wrong(why, "%s: must be a number from %u to %u", from.what, min, max);
	*value = n;
	return 0;
}

/* [user]:password@, before the first slash. Moves *text behind it. */
static int parse_user(const char **text, struct url *url, char *why)
{
	size_t len = strcspn(*text, "/?#");
	const char *at = memrchr(*text, '@', len), *colon;
	int error;

	if (at == NULL && **text != '/' && strchr(*text, '@') != NULL)
		return wrong(why, "user: has a '/', '?' or '#': must be %%2F, %%3F or %%23 in its place");
	if (at == NULL)
		return 0;
	len = (size_t)(at - *text);
	colon = memchr(*text, ':', len);
	if (colon == NULL)
		return wrong(why, "user: has no password: must be user:password@ or :password@");
	error = part((struct piece){ "user", *text, (size_t)(colon - *text) }, 1, url->user, sizeof(url->user), why);
	if (error == 0)
		error = part((struct piece){ "password", colon + 1, (size_t)(at - colon - 1) }, 1, url->password,
		             sizeof(url->password), why);
	if (error == 0 && url->password[0] == '\0')
		return wrong(why, "password: empty: must be user:password@ or :password@");
	*text = at + 1;
	return error;
}

/* host[:port], of `len` bytes; a host that contains colons is in brackets. */
static int parse_host(const char *text, size_t len, const char *port_default, char name[URL_HOST_SIZE],
                      char port[URL_PORT_SIZE], char *why)
{
	const char *end = text + len, *host = text, *host_end, *rest;
	unsigned value = 0;
	int error;

	if (len > 0 && text[0] == '[') {
		host = text + 1;
		host_end = memchr(host, ']', (size_t)(end - host));
		if (host_end == NULL)
			return wrong(why, "host: '[' without ']': must be [::1] for example");
		rest = host_end + 1;
	} else {
		host_end = memchr(text, ':', len);
		if (host_end == NULL)
			host_end = end;
		rest = host_end;
	}
	error = part((struct piece){ "host", host, (size_t)(host_end - host) }, 0, name, URL_HOST_SIZE, why);
	if (error != 0)
		return error;
	strcpy(port, port_default);
	if (rest < end && *rest != ':')
		return wrong(why, "host: something behind ']': must be a port or nothing");
	if (rest < end) {
		error = number((struct piece){ "port", rest + 1, (size_t)(end - rest - 1) }, 1, 65535, &value, why);
		if (error != 0)
			return error;
		snprintf(port, URL_PORT_SIZE, "%u", value);
	}
	return 0;
}

/* host[:port][,host[:port]...]; *end is what is behind them. */
static int parse_hosts(const char *text, const char *port_default, struct url *url, const char **end, char *why)
{
	size_t len = strcspn(text, ",/?#");
	int error = parse_host(text, len, port_default, url->host, url->port, why);

	for (text += len; error == 0 && *text == ','; text += len) {
		if (url->others == URL_HOSTS_MAX - 1)
			return wrong(why, "host: more than %d: must be %d at most", URL_HOSTS_MAX, URL_HOSTS_MAX);
		text++;
		len = strcspn(text, ",/?#");
		error = parse_host(text, len, port_default, url->other[url->others].host, url->other[url->others].port,
		                   why);
		url->others++;
	}
	*end = text;
	return error;
}

/* A name that sentinels accept. Moves *text behind it. */
static int parse_primary(const char **text, struct url *url, char *why)
{
	const char *name = *text + (**text == '/');
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

	if (**text != '/' || len == 0 || len >= sizeof(url->primary))
		return wrong(why, "primary: must be the sentinels' name of it, behind the hosts, as in "
		                  "redis+sentinel://host/mymaster");
	memcpy(url->primary, name, len);
	*text = name + len;
	return 0;
}

/* cacert=FILE, cert=FILE and key=FILE, with '&' between them */
static int parse_files(const char *text, struct url *url, char *why)
{
	struct {
		const char *name;
		char *file;
	} files[] = { { "cacert", url->cacert }, { "cert", url->cert }, { "key", url->key } };
	int error = 0;

	for (size_t len; error == 0; text += len + 1) {
		size_t name_len = strcspn(text, "=&"), i = 0;

		len = strcspn(text, "&");
		while (i < 3 && (strlen(files[i].name) != name_len || strncmp(files[i].name, text, name_len) != 0))
			i++;
		if (i == 3 || text[name_len] != '=')
			return wrong(why, "file: must be cacert=FILE, cert=FILE or key=FILE");
		error = part((struct piece){ files[i].name, text + name_len + 1, len - name_len - 1 }, 0, files[i].file,
		             URL_FILE_SIZE, why);
		if (text[len] == '\0')
			break;
	}
	if (error == 0 && url->key[0] != '\0' && url->cert[0] == '\0')
		return wrong(why, "key: without a certificate: must be cert=FILE&key=FILE");
	return error;
}

/* [/db], and with TLS [?FILES], at the end of the text. */
static int parse_rest(const char *text, const char *behind, struct url *url, char *why)
{
	size_t len = url->tls ? strcspn(text, "?") : strlen(text);
	int error = 0;

	if (len > 0 && text[0] != '/')
		return wrong(why, "'%c' behind the %s: must be /DB or nothing", text[0], behind);
	if (len > 1)
		error = number((struct piece){ "database", text + 1, len - 1 }, 0, DB_MAX, &url->db, why);
	if (error == 0 && text[len] != '\0')
		error = parse_files(text + len + 1, url, why);
	return error;
}

static int parse_network(const char *text, int sentinel, struct url *url, char *why)
{
	char shown[URL_TEXT_MAX];
	int error = parse_hosts(text, sentinel ? PORT_SENTINEL : PORT_DEFAULT, url, &text, why);

	if (error == 0 && sentinel)
		error = parse_primary(&text, url, why);
	if (error == 0)
		error = parse_rest(text, sentinel ? "primary" : "host", url, why);
	/* Two backends must not look the same. */
	if (error == 0 && strlen(url_text(url, shown)) == URL_TEXT_MAX - 1)
		return wrong(why, "host: all hosts have %d bytes or more: must have fewer", URL_TEXT_MAX - 1);
	return error;
}

/* /path[?db=N] */
static int parse_path(const char *text, struct url *url, char *why)
{
	size_t len = strcspn(text, "?#");
	int error;

	if (text[0] != '/')
		return wrong(why, "path: must begin with '/', as in unix:///run/redis/redis.sock");
	error = part((struct piece){ "path", text, len }, 0, url->path, sizeof(url->path), why);
	if (error != 0 || text[len] == '\0')
		return error;
	if (strncmp(text + len, "?db=", 4) != 0)
		return wrong(why, "'%c' behind the path: must be ?db=N or nothing", text[len]);
	return number((struct piece){ "database", text + len + 4, strlen(text + len + 4) }, 0, DB_MAX, &url->db, why);
}

int url_parse(const char *text, struct url *url, char why[URL_WHY_MAX])
{
	const struct scheme *scheme = scheme_of(text);
	int error;

	*url = (struct url){ .db = 0 };
	if (scheme == NULL)
		return wrong(why, "scheme: must be " SCHEME_NAMES);
	text += strlen(scheme->name);
	url->tls = scheme->tls;
	error = parse_user(&text, url, why);
	if (error != 0)
		return error;
	if (scheme->transport == UNIX)
		return parse_path(text, url, why);
	return parse_network(text, scheme->transport == SENTINEL, url, why);
}

void url_next(struct url *url)
{
	char host[URL_HOST_SIZE], port[URL_PORT_SIZE];
	unsigned last = url->others - 1;

	if (url->others == 0)
		return;
	strcpy(host, url->host);
	strcpy(port, url->port);
	strcpy(url->host, url->other[0].host);
	strcpy(url->port, url->other[0].port);
	memmove(&url->other[0], &url->other[1], last * sizeof(url->other[0]));
	strcpy(url->other[last].host, host);
	strcpy(url->other[last].port, port);
}

__attribute__((format(printf, 2, 3))) static void text_append(char text[URL_TEXT_MAX], const char *format, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + len, URL_TEXT_MAX - len, format, ap);
	va_end(ap);
}

static void append_host(char text[URL_TEXT_MAX], const char *host, const char *port)
{
	text_append(text, strchr(host, ':') != NULL ? "%s[%s]:%s" : "%s%s:%s", text[0] != '\0' ? "," : "", host, port);
}

const char *url_text(const struct url *url, char text[URL_TEXT_MAX])
{
	text[0] = '\0';
	if (url->path[0] != '\0') {
		text_append(text, "%s?db=%u", url->path, url->db);
		return text;
	}
	append_host(text, url->host, url->port);
	for (unsigned i = 0; i < url->others; i++)
		append_host(text, url->other[i].host, url->other[i].port);
	text_append(text, "%s%s/%u", url->primary[0] != '\0' ? "/" : "", url->primary, url->db);
	return text;
}
