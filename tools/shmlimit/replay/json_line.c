/*
 * json_line.c: a line of a log that is a JSON object. Servers name its members differently: these are nginx's variables,
 * and what Caddy, Traefik, Envoy, pino, the Elastic Common Schema and the journal have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "log_line.h"
#include "log_time.h"

/* A dot leads into an object, unless a member has the whole name. X-Forwarded-For is asked for last: a client can forge it. */
static const char *const time_names[] = { "ts",        "msec",       "time_iso8601", "time_local", "time",
	                                  "timestamp", "@timestamp", "StartUTC",     "start_time", NULL };
static const char *const addr_names[] = { "client_ip",
	                                  "remote_addr",
	                                  "remote_ip",
	                                  "ClientHost",
	                                  "clientip",
	                                  "client.ip",
	                                  "source.ip",
	                                  "httpRequest.remoteIp",
	                                  "remoteAddress",
	                                  "req.remoteAddress",
	                                  "ClientAddr",
	                                  "downstream_remote_address",
	                                  "ip",
	                                  "x_forwarded_for",
	                                  "http_x_forwarded_for",
	                                  "x-forwarded-for",
	                                  "X-Forwarded-For",
	                                  NULL };
static const char *const user_names[] = { "user_id", "remote_user", "ClientUsername", "user.name", "user", NULL };
static const char *const path_names[] = { "uri",      "request_uri", "RequestPath", "path",
	                                  "url.path", "req.url",     "url",         NULL };
static const char *const request_names[] = { "request", NULL };
static const char *const size_names[] = { "body_bytes_sent",          "size",  "bytes_sent", "DownstreamContentSize",
	                                  "http.response.body.bytes", "bytes", NULL };
/* What has a server's line as a string: the journal, docker, Fluentd and Filebeat, Google Cloud. */
static const char *const line_names[] = { "MESSAGE", "log", "message", "textPayload", NULL };

static const json_t *by_path(const json_t *object, const char *name)
{
	const json_t *found = json_object_get(object, name);
	const char *dot = strchr(name, '.');
	char outer[32];

	if (found != NULL || dot == NULL || (size_t)(dot - name) >= sizeof(outer))
		return found;
	memcpy(outer, name, (size_t)(dot - name));
	outer[dot - name] = '\0';
	return by_path(json_object_get(object, outer), dot + 1);
}

/* The member of that name, of the object or of its member `request`, as Caddy has it; or NULL. */
static const json_t *member(const json_t *object, const char *name)
{
	const json_t *found = by_path(object, name);

	return found != NULL ? found : by_path(json_object_get(object, "request"), name);
}

/* The first of these members that is a string with something in it; "-" is nothing. */
static struct span text_of(const json_t *object, const char *const names[])
{
	for (; *names != NULL; names++) {
		const json_t *value = member(object, *names);
		struct span text = { json_string_value(value), json_string_length(value) };

		if (text.len > 0 && (text.len > 1 || *text.at != '-'))
			return text;
	}
	return (struct span){ "", 0 };
}

static int read_time(const json_t *value, int64_t *unix_ns)
{
	char number[32];
	const char *text = json_string_value(value);

	if (json_is_real(value))
		return log_time_of_number(json_real_value(value), unix_ns);
	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		text = number;
	}
	return text != NULL && *text != '\0' && log_time_read(text, strlen(text), unix_ns) == strlen(text);
}

/* The first of the members that is a time: others have a duration under such a name. */
static int time_of(const json_t *object, int64_t *unix_ns)
{
	for (const char *const *name = time_names; *name != NULL; name++)
		if (read_time(member(object, *name), unix_ns))
			return 1;
	return 0;
}

static int64_t size_of(const json_t *object)
{
	for (const char *const *name = size_names; *name != NULL; name++) {
		const json_t *value = member(object, *name);
		const char *text = json_string_value(value);
		double number = json_number_value(value);
		char *end;

		if (text != NULL && text[0] >= '0' && text[0] <= '9') {
			number = strtod(text, &end);
			if (*end != '\0')
				return -1;
		} else if (!json_is_number(value)) {
			continue;
		}
		return number >= 0 && number < LOG_BYTES_MAX ? (int64_t)number : -1;
	}
	return -1;
}

static int object_parse(const json_t *object, struct log_line *out)
{
	struct span path = text_of(object, path_names), request = text_of(object, request_names);

	out->addr = text_of(object, addr_names);
	if (out->addr.len == 0 || !time_of(object, &out->unix_ns))
		return 0;
	out->user = text_of(object, user_names);
	out->path = path.len > 0 ? log_path_cut(path) : log_path_of(request);
	out->bytes = size_of(object);
	return 1;
}

/*
 * A line that another program wrapped into an object. BOUND: what is in it is not unwrapped again. Returns 0, or 1 after
 * *object was replaced where the line is an object itself, whose strings are now the line's.
 */
static int inner_parse(json_t **object, struct log_line *out)
{
	struct span text = text_of(*object, line_names), line = log_prefix_skip(text);
	json_t *inner;

	while (line.len > 0 && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
		line.len--;
	if (line.len == 0)
		return 0;
	if (*line.at != '{')
		return log_text_parse(line, out);
	inner = json_loadb(line.at, line.len, JSON_DISABLE_EOF_CHECK, NULL);
	if (!object_parse(inner, out)) {
		json_decref(inner);
		return 0;
	}
	json_decref(*object);
	*object = inner;
	return 1;
}

int json_line_parse(struct span line, struct log_line *out)
{
	json_t *object = json_loadb(line.at, line.len, JSON_DISABLE_EOF_CHECK, NULL);

	if (!inner_parse(&object, out) && !object_parse(object, out)) {
		json_decref(object);
		return 0;
	}
	out->json = object;
	return 1;
}

struct span json_line_field(const void *json, const char *name)
{
	const char *const names[] = { name, NULL };

	return text_of(json, names);
}

void log_line_free(struct log_line *line)
{
	json_decref(line->json);
	line->json = NULL;
}
