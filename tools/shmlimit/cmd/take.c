/*
 * take.c: shmlimit take: of one key, of each key of a file, or of several limits at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "about.h"
#include "columns.h"
#include "command.h"
#include "decision.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "value_parse.h"

/* What was given besides the keys: decision.c reads the same options for one key. */
static int options_parse(const struct call *call, uint64_t *cost)
{
	const char *text = call_option(call, "cost");

	*cost = 1;
	if (call_option(call, "at-most") != NULL)
		return fail("--at-most: of one rule and one key: cannot be combined with --all or --keys-from");
	if (call_option(call, "json") != NULL && call_option(call, "quiet") != NULL)
		return fail("--json and --quiet: cannot be combined");
	return text != NULL ? number_parse("--cost", text, 0, UINT64_MAX, cost) : STATUS_OK;
}

static int print_json_line(json_t *json)
{
	char *text = json_write_line(json);

	json_decref(json);
	if (text == NULL)
		return fail_memory();
	puts(text);
	free(text);
	return STATUS_OK;
}

/* ---- each key of a file ---- */

struct lines {
	const struct call *call;
	struct shmlimit *limiter;
	int rule, json, quiet;
	const char *prefix; /* --prefix, or NULL */
	uint64_t cost;
	struct shmlimit_limit limit; /* --limit, if its struct_size is set */
};

static int print_answer(const struct lines *lines, const char *text, const struct key *key, int answer,
                        const struct shmlimit_result *r)
{
	json_t *json;

	if (lines->quiet)
		return STATUS_OK;
	if (!lines->json) {
		printf("%s\t", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied");
		print_clean(stdout, text);
		putchar('\n');
		return STATUS_OK;
	}
	json = decision_json(answer, r);
	if (json_object_update_new(json, json_key(key->bytes, key->len, key->len)) == 0)
		return print_json_line(json);
	json_decref(json);
	return fail_memory();
}

/* With --prefix each line is an address; else one is taken as users store it. */
static int line_key(const struct lines *lines, const char *text, size_t len, struct key *key)
{
	int status;

	if (strlen(text) != len || len < 1 || len > SHMLIMIT_KEY_MAX)
		return fail("key of %zu bytes: must be 1 to %d, none of them NUL", len, SHMLIMIT_KEY_MAX);
	if (lines->prefix != NULL)
		return key_ip_parse(text, lines->prefix, key);
	status = key_text_parse(text, key);
	if (status == STATUS_OK)
		key_choose(lines->limiter, lines->rule, key);
	return status;
}

/* A line without its end. Returns a status: STATUS_NO is denied. */
static int take_line(const struct lines *lines, const char *text, size_t len)
{
	struct shmlimit_request asked;
	struct shmlimit_result r;
	struct key key;
	int answer, status = line_key(lines, text, len, &key);

	if (status != STATUS_OK)
		return status;
	asked = (struct shmlimit_request){
		.rule = lines->rule, .key = key.bytes, .key_len = key.len, .cost = lines->cost
	};
	if (lines->limit.struct_size != 0)
		asked.limit = &lines->limit;
	answer = shmlimit_decide(lines->limiter, SHMLIMIT_TAKE, &asked, &r);
	if (answer < 0)
		return fail_decision(lines->call, lines->call->operand[1], answer);
	status = print_answer(lines, text, &key, answer, &r);
	return status == STATUS_OK && answer == SHMLIMIT_DENIED ? STATUS_NO : status;
}

/* What is wrong with one line does not concern the others. */
static int take_lines(const struct lines *lines, FILE *from, const char *path)
{
	char *key = NULL;
	size_t room = 0;
	ssize_t len;
	size_t mark;
	int status = STATUS_OK, found;

	/* Who asks by a pipe waits for the answer. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int line = 1; (len = getline(&key, &room, from)) >= 0 && !ferror(stdout); line++) {
		if (len > 0 && key[len - 1] == '\n')
			key[--len] = '\0';
		/*
		 * A list from Windows: the end of a line has two bytes, and the first line may
		 * begin with a mark.
		 */
		if (len > 0 && key[len - 1] == '\r')
			key[--len] = '\0';
		mark = line == 1 && strncmp(key, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
		fail_where(path, line);
		found = take_line(lines, key + mark, (size_t)len - mark);
		if (found > status)
			status = found;
	}
	fail_where(NULL, 0);
	free(key);
	/* No more line, and no end: the caller says what an error of reading is. */
	return feof(from) || ferror(from) || ferror(stdout) ? status : fail_memory();
}

static int take_keys(const struct call *call, const char *path)
{
	const char *segment = call->operand[0];
	struct lines lines = { .call = call,
		               .json = call_option(call, "json") != NULL,
		               .quiet = call_option(call, "quiet") != NULL };
	int status = options_parse(call, &lines.cost), is_stdin = strcmp(path, "-") == 0;
	FILE *from;

	lines.prefix = call_option(call, "prefix");
	if (status == STATUS_OK)
		status = limit_option_read(call, &lines.limit);
	if (status == STATUS_OK && key_is_single(call))
		return fail(
			"--keys-from %s: its lines are the keys: must be without --key-ip, --key-text and --key-hex",
			path);
	if (status == STATUS_OK)
		status = segment_open(segment, 0, &lines.limiter);
	if (status != STATUS_OK)
		return status;
	status = rule_find(lines.limiter, segment, call->operand[1], &lines.rule);
	if (status == STATUS_OK) {
		from = is_stdin ? stdin : fopen(path, "re");
		status = from != NULL ? take_lines(&lines, from, is_stdin ? "standard input" : path) : STATUS_ERROR;
		if (from == NULL || ferror(from))
			status = fail("%s: %s", path, strerror(errno));
		if (from != NULL && !is_stdin)
			fclose(from);
	}
	shmlimit_close(lines.limiter);
	return status;
}

/* ---- several limits at once ---- */

struct limits {
	size_t count, failed; /* failed: the one that denied */
	char *const *words;   /* RULE KEY RULE KEY ... */
	struct key key[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_request request[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result result[SHMLIMIT_REQUESTS_MAX];
};

static int limits_parse(const struct call *call, struct limits *limits)
{
	size_t words = 0;

	limits->words = call->operand + 1;
	while (limits->words[words] != NULL)
		words++;
	if (words % 2 != 0)
		return fail("take: %s: missing key (usage: NAME RULE KEY RULE KEY ...)", limits->words[words - 1]);
	if (words > 2 * SHMLIMIT_REQUESTS_MAX)
		return fail("take --all: %zu limits: must be %d or less", words / 2, SHMLIMIT_REQUESTS_MAX);
	limits->count = words / 2;
	return STATUS_OK;
}

static int limits_find(const struct call *call, struct shmlimit *limiter, uint64_t cost, struct limits *limits)
{
	for (size_t i = 0; i < limits->count; i++) {
		const char *rule = limits->words[2 * i], *key = limits->words[2 * i + 1];
		int id, status = rule_find(limiter, call->operand[0], rule, &id);

		if (status != STATUS_OK)
			return status;
		status = key_text_parse(key, &limits->key[i]);
		if (status != STATUS_OK)
			return status;
		key_choose(limiter, id, &limits->key[i]);
		limits->request[i] = (struct shmlimit_request){
			.rule = id, .key = limits->key[i].bytes, .key_len = limits->key[i].len, .cost = cost
		};
	}
	return STATUS_OK;
}

/* Results behind the limit that denied are not known. */
static size_t known_results(const struct limits *limits, int answer)
{
	return answer == SHMLIMIT_ALLOWED ? limits->count : limits->failed + 1;
}

static int print_limits(const struct limits *limits, int answer)
{
	struct table table = { .align = "llrrrr" };
	char key[KEY_TEXT_LEN], text[TEXT_LEN];

	print_line("decision", "%s", answer == SHMLIMIT_ALLOWED ? "allowed" : "denied");
	if (answer == SHMLIMIT_DENIED)
		print_line("denied by", "%s", limits->words[2 * limits->failed]);
	table_words(&table, "RULE KEY LIMIT REMAINING RETRY-AFTER RESET-AFTER");
	for (size_t i = 0; i < known_results(limits, answer); i++) {
		const struct shmlimit_result *r = &limits->result[i];
		const struct shmlimit_request *q = &limits->request[i];

		table_cell(&table, "%s", limits->words[2 * i]);
		table_cell(&table, "%s", key_show(key, q->key, q->key_len, q->key_len));
		table_cell(&table, "%" PRIu64, r->limit);
		table_cell(&table, "%" PRIu64, r->remaining);
		table_cell(&table, "%s", duration_about(text, r->retry_after_ns));
		table_cell(&table, "%s", duration_about(text, r->reset_after_ns));
	}
	return table_print(&table);
}

static int print_limits_json(const struct limits *limits, int answer)
{
	json_t *list = json_array();

	for (size_t i = 0; i < known_results(limits, answer); i++) {
		const struct shmlimit_request *q = &limits->request[i];
		int denies = answer == SHMLIMIT_DENIED && i == limits->failed;
		json_t *one = decision_json(denies ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED, &limits->result[i]);

		json_object_set_new(one, "rule", json_text(limits->words[2 * i]));
		json_object_update_new(one, json_key(q->key, q->key_len, q->key_len));
		json_append(&list, one);
	}
	return print_json(
		json_pack("{s:b, s:o, s:o}", "allowed", answer == SHMLIMIT_ALLOWED, "denied_by",
	                  answer == SHMLIMIT_DENIED ? json_text(limits->words[2 * limits->failed]) : json_null(),
	                  "limits", list));
}

static int decide_all(const struct call *call, struct shmlimit *limiter, struct limits *limits)
{
	int status = STATUS_OK;
	int answer = shmlimit_take_all(limiter, limits->request, limits->count, &limits->failed, limits->result);

	if (answer < 0)
		return fail_decision(call, limits->words[2 * limits->failed], answer);
	if (call_option(call, "json") != NULL)
		status = print_limits_json(limits, answer);
	else if (call_option(call, "quiet") == NULL)
		status = print_limits(limits, answer);
	return status == STATUS_OK && answer == SHMLIMIT_DENIED ? STATUS_NO : status;
}

static int take_all(const struct call *call)
{
	struct limits limits = { 0 };
	struct shmlimit *limiter;
	uint64_t cost;
	int status = options_parse(call, &cost);

	if (status == STATUS_OK && key_is_option(call))
		return fail("take --all: each limit has its key as an operand (usage: NAME RULE KEY RULE KEY ...)");
	if (status == STATUS_OK && call_option(call, "limit") != NULL)
		return fail("take --all: --limit %s: for one rule only: leave --all out", call_option(call, "limit"));
	if (status == STATUS_OK)
		status = limits_parse(call, &limits);
	if (status == STATUS_OK)
		status = segment_open(call->operand[0], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = limits_find(call, limiter, cost, &limits);
	if (status == STATUS_OK)
		status = decide_all(call, limiter, &limits);
	shmlimit_close(limiter);
	return status;
}

static int run(const struct call *call)
{
	const char *path = call_option(call, "keys-from");

	if (call_option(call, "all") != NULL)
		return take_all(call);
	if (call->operand[3] != NULL)
		return fail("take: %s: one operand too many; usage: shmlimit take NAME RULE KEY, or NAME RULE KEY "
		            "RULE KEY ... --all",
		            call->operand[3]);
	return path != NULL ? take_keys(call, path) : decision_run(call, 0, SHMLIMIT_TAKE);
}

const struct command command_take = {
	.name = "take",
	.operands = "NAME RULE KEY [RULE KEY...]",
	.purpose = "take tokens: exit 0 if allowed, 1 if denied",
	.details =
		"With --all, takes from every limit RULE KEY, or from none if one denies. With --keys-from, prints a\n"
		"line for each key: allowed or denied, and the key; exits with 1 if one was denied.\n",
	.options = take_options,
	.run = run,
};
