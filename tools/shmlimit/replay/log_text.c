/*
 * log_text.c: a line of text that a web server logged. Pure.
 *
 *	10.0.0.7 - laoqian [21/Nov/2026:09:22:45 +0100] "GET /login?next=/ HTTP/1.1" 200 512 ...
 *	www.example.org:443 10.0.0.7 - ...                       a server, with or without its port, before the client
 *	10.0.0.7, 192.0.2.1 - ...                                X-Forwarded-For in the client's place
 *	10.0.0.1 - - [...] "GET / ..." 200 512 "-" "curl" "10.0.0.7"   behind a proxy: nginx's "main" format
 *	<134>Nov 21 09:22:45 web1 nginx: 10.0.0.7 - ...          by way of syslog, the journal, docker, containerd
 *
 * The time in brackets is what a line is known by. Before it the client is the first word that is
 * an address, since what stands behind the client, the user's name, may be anything that a client
 * chose.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "address.h"
#include "log_line.h"
#include "log_time.h"

#define ADDRESSES_MAX 16 /* of a list are looked at: a line may be all commas */
#define TAG_WORDS 3      /* the words behind a time of syslog of which one is the program's name: host, program, pid */

static struct span skip(struct span s, size_t n)
{
	return (struct span){ s.at + n, s.len - n };
}

static struct span skip_blanks(struct span s)
{
	while (s.len > 0 && *s.at == ' ')
		s = skip(s, 1);
	return s;
}

static int begins(struct span s, const char *with)
{
	size_t n = strlen(with);

	return s.len >= n && memcmp(s.at, with, n) == 0;
}

/* The bytes up to the next `end`, or all; *rest becomes what is behind it. */
static struct span take_until(struct span *rest, char end)
{
	const char *at = memchr(rest->at, end, rest->len);
	struct span taken = { rest->at, at != NULL ? (size_t)(at - rest->at) : rest->len };

	*rest = skip(*rest, taken.len + (at != NULL));
	return taken;
}

static struct span take_word(struct span *rest)
{
	*rest = skip_blanks(*rest);
	return take_until(rest, ' ');
}

static int is(struct span s, const char *text)
{
	return s.len == strlen(text) && begins(s, text);
}

/* ---- the client ---- */

struct span log_net_address(struct span text, int *bits)
{
	const char *slash = memrchr(text.at, '/', text.len);
	size_t digits = slash != NULL ? (size_t)(text.at + text.len - slash) - 1 : 0;

	*bits = -1;
	if (digits < 1 || digits > 3)
		return text;
	*bits = 0;
	for (size_t i = 1; i <= digits; i++) {
		if (slash[i] < '0' || slash[i] > '9') {
			*bits = -1;
			return text;
		}
		*bits = 10 * *bits + (slash[i] - '0');
	}
	return (struct span){ text.at, (size_t)(slash - text.at) };
}

/* Quotes around it, which logs write as they are or escaped. */
static struct span bare(struct span text)
{
	static const char *const quotes[] = { "\\x22", "\\\"", "\"" };

	for (size_t i = 0; i < sizeof(quotes) / sizeof(*quotes); i++) {
		size_t len = strlen(quotes[i]);

		if (text.len < 2 * len || memcmp(text.at, quotes[i], len) != 0)
			continue;
		text.at += len;
		text.len -= len;
		if (memcmp(text.at + text.len - len, quotes[i], len) == 0)
			text.len -= len;
		break;
	}
	return text;
}

/* RFC 7239: for=192.0.2.43;proto=https, in any order. */
static struct span behind_for(struct span text)
{
	while (text.len > 0) {
		const char *semicolon = memchr(text.at, ';', text.len);
		struct span pair = { text.at, semicolon == NULL ? text.len : (size_t)(semicolon - text.at) };

		pair = skip_blanks(pair);
		if (pair.len > 4 && strncasecmp(pair.at, "for=", 4) == 0)
			return bare((struct span){ pair.at + 4, pair.len - 4 });
		if (semicolon == NULL)
			break;
		text.len -= pair.len + (size_t)(pair.at - text.at) + 1;
		text.at = semicolon + 1;
	}
	return (struct span){ "", 0 };
}

int log_element(struct span list, int nth, struct span *element)
{
	if (!address_nth(list.at, list.len, nth, &element->at, &element->len))
		return 0;
	if (memchr(element->at, '=', element->len) != NULL)
		*element = behind_for(*element);
	return 1;
}

static int read_one(struct span text, struct address *out)
{
	int bits;

	text = log_net_address(text, &bits);
	return address_read(text.at, text.len, out) && bits <= 8 * (int)out->len;
}

/* The first address of a list. Returns 0: it has none. */
static int first_address(struct span text, struct address *out)
{
	struct span element;

	for (int nth = 1; nth <= ADDRESSES_MAX && log_element(text, nth, &element); nth++)
		if (read_one(element, out))
			return 1;
	return 0;
}

int log_is_address(struct span text)
{
	struct address address;

	return first_address(text, &address);
}

/* A word, or a list of several: one that is in quotes, or whose elements end in commas. */
static struct span take_item(struct span *rest)
{
	struct span item;

	*rest = skip_blanks(*rest);
	item = *rest;
	if (item.len > 0 && *item.at == '"') {
		const char *quote = memchr(item.at + 1, '"', item.len - 1);

		if (quote != NULL) {
			item.len = (size_t)(quote + 1 - item.at);
			*rest = skip(*rest, item.len);
			return item;
		}
	}
	for (;;) {
		struct span word = take_word(rest);

		item.len = (size_t)(word.at + word.len - item.at);
		if (word.len == 0 || word.at[word.len - 1] != ',' || rest->len == 0)
			return item;
	}
}

/* 10.0.0.9:8080 before an address is the server of vhost_combined. */
static int is_server(struct span item, struct span rest)
{
	struct address address;
	struct span next = take_item(&rest);

	return address_read(item.at, item.len, &address) && address.has_port && log_is_address(next);
}

/* What is before the time: the client, and what is behind it. Returns 0 if there is none. */
static int take_client(struct span *rest, struct span *client)
{
	struct span first = { NULL, 0 }, behind_first = *rest, before = first;

	while (skip_blanks(*rest).len > 0) {
		struct span from = *rest, item = take_item(rest);

		if (log_is_address(item) && !is_server(item, *rest)) {
			*client = item;
			return 1;
		}
		/*
		 * A client that is a name stands before the "-" that nearly every log has for its
		 * identity.
		 */
		if (is(item, "-") && before.at != NULL) {
			*rest = from;
			*client = before;
			return 1;
		}
		if (first.at == NULL && !is(item, "-")) {
			first = item;
			behind_first = *rest;
		}
		if (!is(item, "-"))
			before = item;
	}
	*client = first;
	*rest = behind_first;
	return first.at != NULL && skip_blanks(behind_first).len > 0;
}

/* ---- fields ---- */

struct field {
	struct span text;
	enum { FIELD_WORD, FIELD_QUOTED, FIELD_BRACKETS } kind;
};

/* Up to a quotation mark without a backslash before it, or all. */
static struct span take_quoted(struct span *rest)
{
	struct span taken = { rest->at, 0 };

	while (taken.len < rest->len && taken.at[taken.len] != '"')
		taken.len += taken.at[taken.len] == '\\' && taken.len + 1 < rest->len ? 2 : 1;
	*rest = skip(*rest, taken.len + (taken.len < rest->len));
	return taken;
}

/*
 * A word, a list whose elements end in commas, what is in quotes, also behind name=, or in
 * brackets.
 */
static int take_field(struct span *rest, struct field *out)
{
	struct span quoted;

	*rest = skip_blanks(*rest);
	if (rest->len == 0)
		return 0;
	out->kind = *rest->at == '"' ? FIELD_QUOTED : *rest->at == '[' ? FIELD_BRACKETS : FIELD_WORD;
	if (out->kind != FIELD_WORD)
		*rest = skip(*rest, 1);
	if (out->kind == FIELD_QUOTED) {
		out->text = take_quoted(rest);
	} else if (out->kind == FIELD_BRACKETS) {
		out->text = take_until(rest, ']');
	} else {
		struct span from = *rest;

		out->text = take_item(rest);
		quoted.at = memmem(out->text.at, out->text.len, "=\"", 2);
		if (quoted.at != NULL) {
			*rest = skip(from, (size_t)(quoted.at + 2 - from.at));
			out->text = take_quoted(rest);
		}
	}
	return 1;
}

struct span log_text_field(struct span text, long n)
{
	struct field field = { { "", 0 }, FIELD_WORD };
	struct span rest = text;

	if (n < 0) {
		/* BOUND: each field takes a byte at least. */
		for (n++; take_field(&rest, &field); n++)
			;
		rest = text;
	}
	for (; n > 0 && take_field(&rest, &field); n--)
		if (n == 1)
			return field.text;
	return (struct span){ "", 0 };
}

int log_is_public(struct span text)
{
	struct address address;
	struct span element;

	for (int nth = 1; nth <= ADDRESSES_MAX && log_element(text, nth, &element); nth++)
		if (read_one(element, &address) && !address_is_private(&address))
			return 1;
	return 0;
}

/*
 * Behind the request the first two fields in quotes are the referer and the client's program, which
 * the client chooses. An upstream server's address is a word, or has a port.
 */
static int is_forwarded(const struct field *field, int quoted)
{
	struct address address;
	int is_private;

	if (quoted < 2 || field->kind == FIELD_BRACKETS || !first_address(field->text, &address))
		return 0;
	is_private = address_is_private(&address);
	return field->kind == FIELD_QUOTED ? !(is_private && address.has_port) : !is_private && !address.has_port;
}

long log_text_forwarded(struct span text, struct span *forwarded)
{
	struct span rest = text;
	struct field field;
	int64_t ignored;
	int quoted = -1, has_time = 0, has_client = 0, behind_client = 0;

	/* BOUND: each field takes a byte at least. */
	for (long n = 1; take_field(&rest, &field); n++) {
		*forwarded = field.text;
		if (has_time) {
			if (is_forwarded(&field, quoted))
				return n;
			quoted += field.kind == FIELD_QUOTED;
			continue;
		}
		has_time = field.kind == FIELD_BRACKETS &&
		           log_time_read(field.text.at, field.text.len, &ignored) == field.text.len;
		if (has_time || field.kind == FIELD_BRACKETS)
			continue;
		if (behind_client && log_is_address(field.text))
			return n;
		behind_client = !has_client && log_is_address(field.text) && !is_server(field.text, rest);
		has_client |= behind_client;
	}
	*forwarded = (struct span){ "", 0 };
	return 0;
}

/* ---- what is put before a line ---- */

/*
 * "Nov 21 09:22:45 " with a fraction or none, or a time as in RFC 3339, and a blank. Returns its
 * length, or 0.
 */
static size_t time_of_syslog(struct span s)
{
	static const char form[] = "Mmm dd 00:00:00";
	int64_t ignored;
	size_t n;

	for (n = 0; n < sizeof(form) - 1 && n < s.len; n++) {
		char c = s.at[n];
		int fits = form[n] == '0'   ? c >= '0' && c <= '9'
		           : form[n] == 'd' ? c == ' ' || (c >= '0' && c <= '9')
		           : form[n] == 'M' ? c >= 'A' && c <= 'Z'
		           : form[n] == 'm' ? c >= 'a' && c <= 'z'
		                            : c == form[n];

		if (!fits)
			break;
	}
	if (n < sizeof(form) - 1)
		n = log_time_read(s.at, s.len, &ignored);
	else if (n < s.len && s.at[n] == '.')
		for (n++; n < s.len && s.at[n] >= '0' && s.at[n] <= '9'; n++)
			;
	return n > 0 && n < s.len && s.at[n] == ' ' ? n + 1 : 0;
}

/* "web1 nginx[99]: ", "web1 nginx: ", "nginx: ". */
static struct span skip_tag(struct span s)
{
	struct span rest = s;
	struct address ignored;

	for (int i = 0; i < TAG_WORDS; i++) {
		struct span word = take_word(&rest);

		/* What follows may be a user's name, which a client chooses. */
		if (is(word, "-"))
			break;
		if (word.len > 1 && word.at[word.len - 1] == ':' && !is(word, "unix:") &&
		    !address_read(word.at, word.len, &ignored))
			return skip_blanks(rest);
	}
	return s;
}

/* Behind "<134>1 ": TIMESTAMP HOSTNAME APP-NAME PROCID MSGID, structured data, MSG. */
static struct span skip_rfc5424(struct span s)
{
	for (int i = 0; i < 5; i++)
		take_word(&s);
	if (begins(s, "-"))
		return skip_blanks(skip(s, 1));
	while (s.len > 0 && *s.at == '[') {
		int quoted = 0;
		size_t n = 1;

		for (; n < s.len && (quoted || s.at[n] != ']'); n++) {
			if (s.at[n] == '\\' && n + 1 < s.len)
				n++;
			else if (s.at[n] == '"')
				quoted = !quoted;
		}
		s = skip(s, n < s.len ? n + 1 : s.len);
	}
	return skip_blanks(s);
}

static struct span skip_mark(struct span s)
{
	return begins(s, "\xef\xbb\xbf") ? skip(s, 3) : s;
}

struct span log_prefix_skip(struct span line)
{
	struct span s = line;
	size_t n = 0;

	if (begins(s, "<")) {
		for (n = 1; n < s.len && s.at[n] >= '0' && s.at[n] <= '9'; n++)
			;
		if (n == 1 || n > 4 || n == s.len || s.at[n] != '>')
			return line;
		s = skip(s, n + 1);
		if (begins(s, "1 "))
			return skip_mark(skip_rfc5424(skip(s, 2)));
	}
	if (begins(s, "1 ") && time_of_syslog(skip(s, 2)) > 0)
		return skip_mark(skip_rfc5424(skip(s, 2)));
	n = time_of_syslog(s);
	if (n == 0)
		return s;
	s = skip_blanks(skip(s, n));
	if (begins(s, "stdout F ") || begins(s, "stderr F ") || begins(s, "stdout P ") || begins(s, "stderr P "))
		return skip(s, 9);
	return skip_mark(skip_tag(s));
}

/* ---- the line ---- */

struct span log_path_cut(struct span path)
{
	return take_until(&path, '?');
}

/*
 * "GET /path?query HTTP/1.1"; what is none, as a scanner's bytes, is taken for a path as a whole.
 */
struct span log_path_of(struct span request)
{
	struct span rest = request;

	if (memchr(request.at, ' ', request.len) == NULL)
		return request;
	take_until(&rest, ' ');
	return log_path_cut(take_until(&rest, ' '));
}

struct span log_method_of(struct span request)
{
	if (memchr(request.at, ' ', request.len) == NULL)
		return (struct span){ "", 0 };
	return take_until(&request, ' ');
}

/*
 * The first time in brackets; *before is what precedes it, *behind what follows. Returns 0 if there
 * is none.
 */
static int find_time(struct span line, struct span *before, struct span *behind, int64_t *unix_ns)
{
	const char *end = line.at + line.len, *at = line.at;

	while ((at = memchr(at, '[', (size_t)(end - at))) != NULL) {
		size_t n = log_time_read(at + 1, (size_t)(end - at) - 1, unix_ns);

		if (n > 0 && at + 1 + n < end && at[1 + n] == ']') {
			*before = (struct span){ line.at, (size_t)(at - line.at) };
			*behind = (struct span){ at + 2 + n, (size_t)(end - at) - 2 - n };
			return 1;
		}
		at++;
	}
	return 0;
}

/* Three digits; or 0. */
static int status_of(struct span word)
{
	int sum = 0;

	for (size_t i = 0; i < 3 && word.len == 3; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return 0;
		sum = 10 * sum + (word.at[i] - '0');
	}
	return sum;
}

/* Behind the status: "512"; "-" is none. */
static int64_t bytes_of(struct span word)
{
	int64_t sum = 0;

	if (is(word, "-"))
		return 0;
	for (size_t i = 0; i < word.len && sum < LOG_BYTES_MAX; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return -1;
		sum = 10 * sum + (word.at[i] - '0');
	}
	return word.len > 0 && sum < LOG_BYTES_MAX ? sum : -1;
}

/*
 * A user's name may have blanks in it. Before it is the identity; and where the client's address is
 * a proxy's, what that one wrote may be before both.
 */
static struct span user_of(struct span rest)
{
	struct span behind = rest;

	if (log_is_address(take_item(&behind)) && skip_blanks(behind).len > 0)
		rest = behind;
	take_word(&rest);
	rest = skip_blanks(rest);
	while (rest.len > 0 && rest.at[rest.len - 1] == ' ')
		rest.len--;
	return rest;
}

int log_text_parse(struct span line, struct log_line *out)
{
	struct span before, rest, request, status;

	if (!find_time(line, &before, &rest, &out->unix_ns) || !take_client(&before, &out->addr))
		return 0;
	out->user = user_of(before);
	take_until(&rest, '"');
	if (memchr(rest.at, '"', rest.len) == NULL)
		return 0;
	request = take_until(&rest, '"');
	out->path = log_path_of(request);
	out->method = log_method_of(request);
	/* A quotation mark of the request may be escaped. */
	while (request.len > 0 && request.at[request.len - 1] == '\\' && rest.len > 0)
		request = take_until(&rest, '"');
	status = take_word(&rest);
	out->status = status_of(status);
	out->bytes = status.len == 3 ? bytes_of(take_word(&rest)) : -1;
	out->text = line;
	return 1;
}
