/*
 * log_line: whatever stands in a server's log, a line of it is understood or not;
 * what was understood lies in the line, and makes a key that can be shown. The records that it is
 * made of are the same however few of its bytes there are at a time.
 *
 *	input  [ the key's fields, as --key has them ] newline [ line ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"
#include "log_record.h"
#include "log_time.h"
#include "replay.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	/* Messages are of no interest. */
	stderr = fopen("/dev/null", "w");
	return 0;
}

static void check_span(struct span span, const char *line, size_t len)
{
	law(span.at >= line && span.at <= line + len && span.len <= (size_t)(line + len - span.at),
	    "a part of %zu bytes is not in its line", span.len);
}

/* The number of a field of text is that of what was found by it. */
static void check_client(const struct log_line *line, const char *text, size_t len)
{
	char name[LOG_NAME_MAX];
	struct span client = log_client(line), forwarded = log_forwarded(line, name), field;

	log_method(line);
	law(log_status(line) >= 0 && log_status(line) <= 999, "the status is %d", log_status(line));
	if (line->json != NULL)
		return;
	check_span(client, text, len);
	if (line->method.len > 0)
		check_span(line->method, text, len);
	field = log_field(line, name);
	law(forwarded.len == 0 || (field.at == forwarded.at && field.len == forwarded.len),
	    "field %s is not what was forwarded", name);
	field = log_text_field(line->text, -1);
	if (field.len > 0)
		check_span(field, text, len);
}

/* How many of the bytes are looked at: the next record, or what is left out. */
static size_t record_of(const char *at, size_t len, int inside, size_t by, struct log_record *out)
{
	for (size_t n = by < len ? by : len;; n = n + by < len ? n + by : len) {
		char *exact = malloc(n + (n == 0));
		int found;

		memcpy(exact, at, n);
		found = log_record_find(exact, n, inside, n == len, out);
		free(exact);
		if (found)
			return out->next;
		if (n == len)
			return 0;
	}
}

static void check_records(const char *at, size_t len)
{
	int inside = 0;

	while (len > 0) {
		struct log_record whole, part;
		size_t next = record_of(at, len, inside, len, &whole);

		law(next <= len, "a record ends behind the bytes");
		if (next == 0)
			return;
		law(!whole.found || (whole.begin <= whole.end && whole.end <= next),
		    "a record of %zu to %zu of %zu bytes", whole.begin, whole.end, next);
		for (size_t by = 1; by < len && len < 200; by += by + 1) {
			law(record_of(at, len, inside, by, &part) == next && part.begin == whole.begin &&
			            part.end == whole.end && part.found == whole.found && part.inside == whole.inside,
			    "a record is another one, %zu bytes at a time", by);
		}
		at += next;
		len -= next;
		inside = whole.inside;
	}
}

static void check_key(const struct key_spec *spec, const struct log_line *line)
{
	unsigned char *key = malloc(SHMLIMIT_KEY_MAX), *exact;
	char *text;
	int is_address;
	size_t len = key_make(spec, line, key, &is_address);

	law(len <= SHMLIMIT_KEY_MAX, "a key of %zu bytes", len);
	exact = malloc(len + 1);
	memcpy(exact, key, len);
	exact = realloc(exact, len != 0 ? len : 1);
	text = key_text(spec, exact, len);
	law(text != NULL, "a key that has no text");
	free(text);
	free(exact);
	free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = memchr(data, '\n', size);
	size_t head = newline != NULL ? (size_t)(newline - data) : 0, len = newline != NULL ? size - head - 1 : size;
	char *words = strndup((const char *)data, head), *line = malloc(len + (len == 0));
	struct key_spec spec;
	struct log_line parsed;

	memcpy(line, data + size - len, len);
	if (key_spec_parse(words, &spec) != STATUS_OK)
		law(key_spec_parse("addr+user+path", &spec) == STATUS_OK, "no key at all");
	check_records(line, len);
	if (log_line_parse(line, len, &parsed)) {
		law(parsed.unix_ns >= 0 && parsed.unix_ns / LOG_SECOND < LOG_TIME_MAX, "the time is %" PRId64,
		    parsed.unix_ns);
		law(parsed.bytes >= -1 && parsed.bytes < LOG_BYTES_MAX, "the response has %" PRId64 " bytes",
		    parsed.bytes);
		if (parsed.json == NULL) {
			check_span(parsed.addr, line, len);
			check_span(parsed.user, line, len);
			check_span(parsed.path, line, len);
		}
		check_client(&parsed, line, len);
		check_key(&spec, &parsed);
		log_line_free(&parsed);
	}
	free(line);
	free(words);
	return 0;
}
