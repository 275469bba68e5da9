/*
 * json_line.c: a line of a log that is a JSON object. Servers name its members differently: these
 * are nginx's variables, and what Caddy, Traefik, Envoy, pino, the Elastic Common Schema and the
 * journal have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "log_line.h"
#include "log_time.h"

/* A dot leads into an object, unless a member has the whole name. */
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
	                                  "downstream_direct_remote_address",
	                                  "ip",
	                                  NULL };
/*
 * What a proxy wrote, the best first: a client can forge the last ones. Members may have capitals,
 * "-" for "_", and before their names what servers put there. They are of the object itself, or of
 * one of these members.
 */
static const char *const forwarded_names[] = {
	"proxy_protocol_addr", "cf_connecting_ip",         "true_client_ip", "x_real_ip", "x_forwarded_for",
	"x_forward_for",       "x_original_forwarded_for", "forwarded",      NULL
};
static const char *const forwarded_prefixes[] = { "http_", "request_", "req_", NULL };
static const char *const forwarded_objects[] = {
	"", "request", "request.headers", "headers", "req.headers", "request_headers", "http.request.headers", NULL
};
static const char *const method_names[] = {
	"method", "request_method", "RequestMethod", "http.request.method", "req.method", "httpRequest.requestMethod",
	NULL
};
static const char *const status_names[] = { "status",
	                                    "DownstreamStatus",
	                                    "response_code",
	                                    "res.statusCode",
	                                    "http.response.status_code",
	                                    "httpRequest.status",
	                                    "statusCode",
	                                    "status_code",
	                                    NULL };
static const char *const user_names[] = { "user_id", "remote_user", "ClientUsername", "user.name", "user", NULL };
static const char *const path_names[] = { "uri",      "request_uri", "RequestPath", "path",
	                                  "url.path", "req.url",     "url",         NULL };
static const char *const request_names[] = { "request", NULL };
static const char *const size_names[] = { "body_bytes_sent",          "size",  "bytes_sent", "DownstreamContentSize",
	                                  "http.response.body.bytes", "bytes", NULL };
/* What has a server's line as a string: the journal, docker, Fluentd and Filebeat, Google Cloud. */
static const char *const line_names[] = { "MESSAGE", "log", "message", "textPayload", NULL };

static json_t *by_path(const json_t *object, const char *name)
{
	json_t *found = json_object_get(object, name);
	const char *dot = strchr(name, '.');
	char outer[32];

	if (found != NULL || dot == NULL || (size_t)(dot - name) >= sizeof(outer))
		return found;
	memcpy(outer, name, (size_t)(dot - name));
	outer[dot - name] = '\0';
	return by_path(json_object_get(object, outer), dot + 1);
}

/* The member of that name, of the object or of its member `request`, as Caddy has it; or NULL. */
static json_t *member(const json_t *object, const char *name)
{
	json_t *found = by_path(object, name);

	return found != NULL ? found : by_path(json_object_get(object, "request"), name);
}

/* A header that came several times is an array, which becomes the list of its strings. */
static void join(json_t *array)
{
	char *text = NULL;
	size_t size, i;
	json_t *each;
	FILE *to = open_memstream(&text, &size);

	json_array_foreach(array, i, each)
		if (to != NULL && json_is_string(each))
			fprintf(to, "%s%s", i > 0 ? ", " : "", json_string_value(each));
	if (to != NULL && fclose(to) == 0) {
		json_array_clear(array);
		json_array_append_new(array, json_stringn(text, size));
	}
	free(text);
}

/* Of a string, or of an array of strings; "-" is nothing. */
static struct span text_in(json_t *value)
{
	struct span text;

	if (json_is_array(value)) {
		if (json_array_size(value) > 1)
			join(value);
		value = json_array_get(value, 0);
	}
	text = (struct span){ json_string_value(value), json_string_length(value) };
	return text.len > 0 && (text.len > 1 || *text.at != '-') ? text : (struct span){ "", 0 };
}

/* The first of these members that has a text. */
static struct span text_of(const json_t *object, const char *const names[])
{
	struct span text = { "", 0 };

	for (; *names != NULL && text.len == 0; names++)
		text = text_in(member(object, *names));
	return text;
}

/* Is it that name, whatever its capitals and hyphens? */
static int is_name(const char *member, const char *name)
{
	for (; *name != '\0'; member++, name++) {
		char c = *member >= 'A' && *member <= 'Z' ? (char)(*member | 0x20) : *member;

		if ((c == '-' ? '_' : c) != *name)
			return 0;
	}
	return *member == '\0';
}

/* The place of a member's name among forwarded_names, or that of their end. */
static size_t forwarded_rank(const char *member)
{
	size_t rank = 0;

	for (const char *const *prefix = forwarded_prefixes; *prefix != NULL; prefix++) {
		size_t len = strlen(*prefix);

		if (strncasecmp(member, *prefix, len) == 0) {
			member += len;
			break;
		}
	}
	while (forwarded_names[rank] != NULL && !is_name(member, forwarded_names[rank]))
		rank++;
	return rank;
}

struct span json_line_forwarded(const void *json, char *name, size_t size)
{
	struct span best = { "", 0 };
	size_t best_rank = sizeof(forwarded_names) / sizeof(*forwarded_names) - 1;

	for (const char *const *in = forwarded_objects; *in != NULL; in++) {
		/* WHY NOT json_object_foreach: it needs an object that can be changed. */
		json_t *object = **in != '\0' ? by_path(json, *in) : (json_t *)(uintptr_t)json;

		for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
			size_t rank = forwarded_rank(json_object_iter_key(at));
			struct span text;

			if (rank >= best_rank)
				continue;
			text = text_in(json_object_iter_value(at));
			if (!log_is_address(text))
				continue;
			best = text;
			best_rank = rank;
			snprintf(name, size, "%s%s%s", *in, **in != '\0' ? "." : "", json_object_iter_key(at));
		}
	}
	return best;
}

struct span json_line_method(const void *json)
{
	struct span method = text_of(json, method_names);

	return method.len > 0 ? method : log_method_of(text_of(json, request_names));
}

int json_line_status(const void *json)
{
	for (const char *const *name = status_names; *name != NULL; name++) {
		const json_t *value = member(json, *name);
		json_int_t number =
			json_is_string(value) ? strtol(json_string_value(value), NULL, 10) : json_integer_value(value);

		if (number >= 100 && number <= 999)
			return (int)number;
	}
	return 0;
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
	if (!time_of(object, &out->unix_ns))
		return 0;
	out->user = text_of(object, user_names);
	out->path = path.len > 0 ? log_path_cut(path) : log_path_of(request);
	out->bytes = size_of(object);
	return 1;
}

/* The line that another program wrapped into the object, without its end; or nothing. */
static struct span inner_line(const json_t *object)
{
	struct span line = log_prefix_skip(text_of(object, line_names));

	while (line.len > 0 && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
		line.len--;
	return line;
}

static int has_client(const json_t *object, const struct log_line *line)
{
	char ignored[1];

	return line->addr.len > 0 || json_line_forwarded(object, ignored, sizeof(ignored)).len > 0;
}

/* WHY one may be without a client: --client names a member that no list here has. */
int json_line_parse(struct span line, struct log_line *out)
{
	json_t *outer = json_loadb(line.at, line.len, JSON_DISABLE_EOF_CHECK, NULL), *inner = NULL;
	struct span wrapped = inner_line(outer);
	struct log_line of_outer = *out;
	int has_inner, has_outer;

	if (wrapped.len > 0 && *wrapped.at != '{' && log_text_parse(wrapped, out)) {
		out->json = outer;
		return 1;
	}
	/* BOUND: what is in a wrapped line is not unwrapped again. */
	if (wrapped.len > 0 && *wrapped.at == '{')
		inner = json_loadb(wrapped.at, wrapped.len, JSON_DISABLE_EOF_CHECK, NULL);
	has_inner = inner != NULL && object_parse(inner, out);
	out->json = inner;
	if (has_inner && has_client(inner, out)) {
		json_decref(outer);
		return 1;
	}
	has_outer = object_parse(outer, &of_outer);
	if (has_outer && (has_client(outer, &of_outer) || !has_inner)) {
		*out = of_outer;
		out->json = outer;
		outer = inner;
	}
	json_decref(outer);
	if (!has_inner && !has_outer)
		log_line_free(out);
	return has_inner || has_outer;
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
