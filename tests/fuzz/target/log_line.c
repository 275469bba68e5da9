/*
 * log_line: whatever stands in a server's log, a line of it is understood or not;
 * what was understood lies in the line, and makes a key that can be shown.
 *
 *	input  [ the key's fields, as --key has them ] newline [ line ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"
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
		check_key(&spec, &parsed);
		log_line_free(&parsed);
	}
	free(line);
	free(words);
	return 0;
}
