/*
 * json_line.c: a line of a log that is a JSON object. Servers name its members differently: these are nginx's variables,
 * and what Caddy, Traefik and the journal write.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE 1
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log_line.h"

#define MS_MIN 100000000000.0 /* a Unix time above this, the year 5138, has milliseconds; above the next, nanoseconds */
#define NS_MIN 1e17

static const char *const time_names[] = { "ts",        "time_iso8601", "time_local", "msec", "time",
	                                  "timestamp", "@timestamp",   "StartUTC",   NULL };
static const char *const addr_names[] = { "client_ip", "remote_addr", "remote_ip", "ClientHost", "clientip", NULL };
static const char *const user_names[] = { "user_id", "remote_user", "ClientUsername", "user", NULL };
static const char *const path_names[] = { "uri", "request_uri", "RequestPath", "path", NULL };
static const char *const request_names[] = { "request", NULL };
static const char *const size_names[] = { "body_bytes_sent",       "size",  "bytes_sent",
	                                  "DownstreamContentSize", "bytes", NULL };

/* The first of these members that there is, of the object or of its member `request`, as Caddy has it; or NULL. */
static const json_t *member(const json_t *object, const char *const names[])
{
	const json_t *found = NULL;

	for (; *names != NULL && found == NULL; names++) {
		found = json_object_get(object, *names);
		if (found == NULL)
			found = json_object_get(json_object_get(object, "request"), *names);
	}
	return found;
}

static struct span text_of(const json_t *value)
{
	return (struct span){ json_string_value(value), json_string_length(value) };
}

static int number_of(const json_t *value, double *number)
{
	const char *text = json_string_value(value);
	char *end;

	if (json_is_number(value)) {
		*number = json_number_value(value);
		return 1;
	}
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return 0;
	*number = strtod(text, &end);
	return *end == '\0';
}

/* Z, +01:00, +0100 or nothing, behind a fraction or none. Returns 0 if it is something else. */
static int zone_parse(const char *text, int *zone_s)
{
	int hours, minutes;

	if (*text == '.' || *text == ',')
		text += 1 + strspn(text + 1, "0123456789");
	*zone_s = 0;
	if (*text == '\0' || strcmp(text, "Z") == 0)
		return 1;
	if ((*text != '+' && *text != '-') || strspn(text + 1, "0123456789:") != strlen(text + 1) ||
	    (sscanf(text + 1, "%2d:%2d", &hours, &minutes) != 2 && sscanf(text + 1, "%2d%2d", &hours, &minutes) != 2))
		return 0;
	*zone_s = (*text == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
	return 1;
}

static int time_of(const json_t *value, int64_t *unix_s)
{
	const char *text = json_string_value(value), *rest;
	struct tm tm = { 0 };
	double number;
	int zone_s;

	if (number_of(value, &number)) {
		number /= number > NS_MIN ? 1e9 : number > MS_MIN ? 1e3 : 1;
		*unix_s = number >= 0 && number < LOG_TIME_MAX ? (int64_t)number : -1;
	} else if (text == NULL) {
		return 0;
	} else if ((rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) != NULL && zone_parse(rest, &zone_s)) {
		*unix_s = timegm(&tm) - zone_s;
	} else if (strlen(text) != LOG_TIME_LEN || !log_time_parse(text, unix_s)) {
		return 0;
	}
	return *unix_s >= 0 && *unix_s < LOG_TIME_MAX;
}

static int object_parse(const json_t *object, struct log_line *out)
{
	const json_t *path = member(object, path_names), *request = member(object, request_names);
	double size;

	out->addr = text_of(member(object, addr_names));
	if (out->addr.len == 0 || !time_of(member(object, time_names), &out->unix_s))
		return 0;
	out->user = text_of(member(object, user_names));
	if (out->user.len == 0)
		out->user = (struct span){ "-", 1 };
	if (json_is_string(path))
		out->path = log_path_cut(text_of(path));
	else
		out->path = json_is_string(request) ? log_path_of(text_of(request)) : (struct span){ "", 0 };
	if (number_of(member(object, size_names), &size) && size >= 0 && size < LOG_BYTES_MAX)
		out->bytes = (int64_t)size;
	return 1;
}

/* The journal has a server's line as a string. BOUND: one that is JSON again is taken as it is. */
int json_line_parse(const char *text, size_t len, struct log_line *out)
{
	json_t *object = json_loadb(text, len, JSON_DISABLE_EOF_CHECK, NULL);
	struct span message = text_of(json_object_get(object, "MESSAGE"));
	int understood;

	out->json = NULL;
	if (message.len > 0 && message.at[0] == '{') {
		json_t *inner = json_loadb(message.at, message.len, JSON_DISABLE_EOF_CHECK, NULL);

		json_decref(object);
		object = inner;
		message.len = 0;
	}
	if (message.len > 0)
		understood = log_line_parse(message.at, message.len, out);
	else
		understood = object_parse(object, out);
	if (understood)
		out->json = object;
	else
		json_decref(object);
	return understood;
}

void log_line_free(struct log_line *line)
{
	json_decref(line->json);
	line->json = NULL;
}
