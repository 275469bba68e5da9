/*
 * log_line.c: a line of a web server's log. Pure.
 *
 *	10.0.0.7 - laoqian [21/Nov/2026:09:22:45 +0100] "GET /login?next=/ HTTP/1.1" 200 512 ...
 *	www.example.org:443 10.0.0.7 - ...
 *	{"time": "2026-11-21T09:22:45+01:00", "remote_addr": "10.0.0.7", ...}
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <string.h>

#include "log_line.h"

#define YEAR_MIN 1970
#define YEAR_MAX 2500 /* its nanoseconds still fit into 64 bits */

/* What is before the next `end`, which is skipped. Returns 0 if there is none. */
static int cut(struct span *rest, char end, struct span *out)
{
	const char *at = memchr(rest->at, end, rest->len);

	if (at == NULL)
		return 0;
	*out = (struct span){ rest->at, (size_t)(at - rest->at) };
	rest->at += out->len + 1;
	rest->len -= out->len + 1;
	return 1;
}

/* `n` digits. Returns -1 if there are others. */
static int digits(const char *text, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		sum = sum * 10 + (text[i] - '0');
	}
	return sum;
}

static int month_number(const char *text)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12; i++)
		if (memcmp(names + 3 * i, text, 3) == 0)
			return i + 1;
	return -1;
}

/* Days since 1970 of the Gregorian calendar: years are counted from March, so that a leap day is their last. */
static int64_t days_of(int year, int month, int day)
{
	int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

	return 365 * (int64_t)y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

int log_time_parse(const char *t, int64_t *unix_s)
{
	int day = digits(t, 2), month = month_number(t + 3), year = digits(t + 7, 4);
	int hour = digits(t + 12, 2), minute = digits(t + 15, 2), second = digits(t + 18, 2);
	int zone_hour = digits(t + 22, 2), zone_minute = digits(t + 24, 2);
	int zone = (zone_hour * 60 + zone_minute) * 60;

	if (t[2] != '/' || t[6] != '/' || t[11] != ':' || t[14] != ':' || t[17] != ':' || t[20] != ' ' ||
	    (t[21] != '+' && t[21] != '-'))
		return 0;
	if (day < 1 || day > 31 || month < 1 || year < YEAR_MIN || year > YEAR_MAX || hour < 0 || hour > 23 ||
	    minute < 0 || minute > 59 || second < 0 || second > 60 || zone_hour < 0 || zone_minute < 0)
		return 0;
	*unix_s =
		days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - (t[21] == '+' ? zone : -zone);
	return *unix_s >= 0;
}

struct span log_path_cut(struct span path)
{
	const char *query = memchr(path.at, '?', path.len);

	if (query != NULL)
		path.len = (size_t)(query - path.at);
	return path;
}

/* "GET /path?query HTTP/1.1"; what is none, as a scanner's bytes, is taken for a path as a whole. */
struct span log_path_of(struct span request)
{
	struct span method, path, rest = request;

	if (!cut(&rest, ' ', &method))
		return request;
	path = rest;
	cut(&rest, ' ', &path);
	return log_path_cut(path);
}

/* Is it SERVER:PORT, which vhost_combined puts before all else? An IPv6 address may end in a colon and digits, too. */
static int is_vhost(struct span word)
{
	const char *colon = memrchr(word.at, ':', word.len);
	char address[INET6_ADDRSTRLEN];
	struct in6_addr ignored;

	if (colon == NULL || colon == word.at || colon + 1 == word.at + word.len)
		return 0;
	for (const char *c = colon + 1; c < word.at + word.len; c++)
		if (*c < '0' || *c > '9')
			return 0;
	if (word.len >= sizeof(address))
		return 1;
	memcpy(address, word.at, word.len);
	address[word.len] = '\0';
	return inet_pton(AF_INET6, address, &ignored) != 1;
}

/* Behind the request, of which a quotation mark may be escaped: " 200 512"; "-" is none. */
static int64_t bytes_of(struct span rest)
{
	struct span word;
	int64_t sum = 0;

	if (!cut(&rest, ' ', &word) || word.len != 0 || !cut(&rest, ' ', &word) || word.len != 3)
		return -1;
	if (!cut(&rest, ' ', &word))
		word = rest;
	if (word.len > 0 && word.at[word.len - 1] == '\r')
		word.len--;
	if (word.len == 1 && *word.at == '-')
		return 0;
	for (size_t i = 0; i < word.len && sum < LOG_BYTES_MAX; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return -1;
		sum = 10 * sum + (word.at[i] - '0');
	}
	return word.len > 0 && sum < LOG_BYTES_MAX ? sum : -1;
}

/* A user's name may have blanks in it; what stands behind it is the time. */
int log_line_parse(const char *text, size_t len, struct log_line *out)
{
	struct span rest = { text, len }, server = rest, ident, request;
	const char *time;

	out->bytes = -1;
	if (len > 0 && *text == '{')
		return json_line_parse(text, len, out);
	out->json = NULL;
	if (cut(&server, ' ', &ident) && is_vhost(ident))
		rest = server;
	if (!cut(&rest, ' ', &out->addr) || !cut(&rest, ' ', &ident) || out->addr.len == 0)
		return 0;
	time = memmem(rest.at, rest.len, " [", 2);
	if (time == NULL || (size_t)(rest.at + rest.len - time) < LOG_TIME_LEN + sizeof(" [] \"") - 1)
		return 0;
	out->user = (struct span){ rest.at, (size_t)(time - rest.at) };
	time += 2;
	if (memcmp(time + LOG_TIME_LEN, "] \"", 3) != 0 || !log_time_parse(time, &out->unix_s))
		return 0;
	rest.len -= (size_t)(time + LOG_TIME_LEN + 3 - rest.at);
	rest.at = time + LOG_TIME_LEN + 3;
	if (!cut(&rest, '"', &request))
		return 0;
	out->path = log_path_of(request);
	while (request.len > 0 && request.at[request.len - 1] == '\\' && cut(&rest, '"', &request))
		;
	out->bytes = bytes_of(rest);
	return 1;
}
