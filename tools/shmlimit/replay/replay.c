/*
 * replay.c: shmlimit replay: what limits would have done to the requests of a
 * log. They are decided by the library itself, at the log's times, in segments
 * that no other process sees.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choice.h"
#include "decimal.h"
#include "fail.h"
#include "log_files.h"
#include "print.h"
#include "replay.h"
#include "temp_segment.h"
#include "value_parse.h"

#define TOP_DEFAULT 10
#define SLOTS_DEFAULT (UINT64_C(1) << 20)
#define WINDOWS_SIZE (UINT64_C(1) << 28) /* bytes that windows may take unless --slots says more */
#define PROGRESS_LINES (1u << 15)        /* often enough for the eye */

enum {
	RULE,
	KEY,
	TOP,
	SLOTS,
	JSON,
	PLOT,
	SUGGEST,
	MAX_DENIED,
	SINCE,
	UNTIL,
	COST,
	FORWARDED,
	LIMIT_FIELD,
	LIMITS,
	CLIENT,
	PATH,
	METHOD,
	STATUS
};

/* clang-format off */
static const struct command_option options[] = {
	[RULE] = { "rule", "LIMIT...", "'10/s burst 20', or '100/m window'; up to 16 limits, each on its own (--limit-field is one)" },
	[KEY] = { "key", "FIELDS", "addr, addr/24 or addr/24,64, user, path, or several: addr+path (default addr)" },
	[TOP] = { "top", "N", "show the N keys that a rule denies most (default 10)" },
	[SLOTS] = { "slots", "N", "keys that can be live at once (default 1Mi, fewer for large windows)" },
	[JSON] = { "json", NULL, "print JSON" },
	[PLOT] = { "plot", "FILE.svg", "draw requests and denials over time, with gnuplot; -: print the SVG only" },
	[SUGGEST] = { "suggest", "SHARE", "find for each LIMIT the smallest ? that denies at most this share: 0.1% (default '?/m burst ?')" },
	[MAX_DENIED] = { "max-denied", "SHARE", "exit with 1 if a limit denies more: 1%" },
	[SINCE] = { "since", "TIME", "only requests since TIME: 2026-11-21T09:00Z, or 2h for 2 hours ago" },
	[UNTIL] = { "until", "TIME", "only requests before TIME" },
	[COST] = { "cost", "requests|bytes", "a request costs 1 (default), or the bytes of its response: '10M/s burst 50M'" },
	[FORWARDED] = { "forwarded", "N", "of a list of addresses the Nth is the client: 1 the first (default), -1 the last" },
	[LIMIT_FIELD] = { "limit-field", "FIELD", "each request brings its limit: its plan is in FIELD, user or a member of JSON" },
	[LIMITS] = { "limits", "FILE", "lines PLAN LIMIT; * LIMIT is for other plans (without --limits, FIELD has the limit)" },
	[CLIENT] = { "client", "FIELD", "where the client's address is: a member of JSON, the number of a field (-1 the last), or addr" },
	[PATH] = { "path", "LIST", "only requests for these paths: /login, '/api/*', or several: /login,/signin" },
	[METHOD] = { "method", "LIST", "only requests with these methods: POST, or several: POST,PUT" },
	[STATUS] = { "status", "LIST", "only requests answered by these: 401, 4xx, 400-499, or several: 401,403" },
	{ 0 },
};
/* clang-format on */

static int open_rule(struct replay_rule *rule, uint64_t slots)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = slots, .rules = 1 };

	if (rule->rule.algorithm == SHMLIMIT_WINDOW) {
		uint64_t most = WINDOWS_SIZE / (16 + 16 * rule->rule.capacity);

		if (rule->rule.capacity > SHMLIMIT_WINDOW_MAX)
			return fail("--rule %s: window too large: must be %d or less", rule->text, SHMLIMIT_WINDOW_MAX);
		if (slots == 0)
			o.slots = most < SLOTS_DEFAULT ? most : SLOTS_DEFAULT;
	}
	if (o.slots == 0)
		o.slots = SLOTS_DEFAULT;
	return temp_segment_open(&o, &rule->rule, &rule->text, 1, &rule->limiter);
}

/*
 * 2026-11-21, with T09:00 or T09:00:30 and Z behind it or not, always UTC; or a duration before
 * now.
 */
static int moment_parse(const char *what, const char *text, int64_t *unix_s)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };
	uint64_t ago_ns;
	int status;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);

		if (end != NULL && (*end == '\0' || strcmp(end, "Z") == 0)) {
			*unix_s = timegm(&tm);
			return STATUS_OK;
		}
	}
	if (!isdigit((unsigned char)*text) || strchr(text, '-') != NULL)
		return fail("%s %s: not a time (for example 2026-11-21T09:00Z, or 2h before now)", what, text);
	status = duration_parse(what, text, &ago_ns);
	*unix_s = time(NULL) - (int64_t)(ago_ns / 1000000000);
	return status;
}

/* Of a limit with an open number it is looked at whether it would be one. */
static int rule_of(struct replay_rule *rule, const char *text, int suggests)
{
	rule->text = text;
	if (!suggest_is_open(text))
		return replay_rule_parse(text, &rule->rule);
	if (!suggests)
		return fail("--rule '%s': ? stands for a number to find, which needs --suggest SHARE", text);
	rule->pattern = text;
	return suggest_parse(text, 1, &rule->rule);
}

static int rules_parse(const struct call *call, struct replay *r)
{
	int suggests = call->option[SUGGEST] != NULL, open = 0, status = STATUS_OK;

	if (suggests)
		status = share_parse("--suggest", call->option[SUGGEST], &r->suggest);
	if (status == STATUS_OK && call->repeated_count == 0 && suggests) {
		r->rules = 1;
		return rule_of(&r->rule[0], "?/m burst ?", 1);
	}
	if (status == STATUS_OK && call->repeated_count == 0 && call->option[LIMIT_FIELD] == NULL &&
	    call->option[LIMITS] == NULL)
		return fail("replay: missing --rule LIMIT (for example '10/s burst 20' or '100/h window')");
	for (size_t i = 0; i < call->repeated_count && status == STATUS_OK; i++) {
		status = rule_of(&r->rule[i], call->repeated[i], suggests);
		open |= r->rule[i].pattern != NULL;
	}
	r->rules = call->repeated_count;
	if (status == STATUS_OK && suggests && !open)
		return fail("--suggest: nothing to find: give a --rule with a ?, as in '?/m burst 20', '10/s burst ?'");
	return status;
}

/* All plans are one more limit beside those of --rule. */
static int plans_parse(const struct call *call, struct replay *r)
{
	struct replay_rule *rule = &r->rule[r->rules];

	r->limit_field = call->option[LIMIT_FIELD];
	r->plans_path = call->option[LIMITS];
	if (r->limit_field == NULL)
		return r->plans_path == NULL
		               ? STATUS_OK
		               : fail("--limits %s: needs --limit-field FIELD, which says the plan of a request",
		                      r->plans_path);
	if (r->rules == REPEATED_MAX)
		return fail("--limit-field %s: must be beside less than %d --rule", r->limit_field, REPEATED_MAX);
	r->rules++;
	*rule = (struct replay_rule){ .text = r->plans_path != NULL ? "by plan" : "its own",
		                      .by_plan = 1,
		                      .rule = { .struct_size = sizeof(rule->rule), .algorithm = SHMLIMIT_GCRA } };
	return r->plans_path != NULL ? plans_read(r, r->plans_path) : STATUS_OK;
}

static const struct choice choices_cost[] = { { "requests", 0 }, { "bytes", 1 }, { 0 } };

/* WHY NOT --suggest of bytes: with costs that differ a larger limit may deny more requests. */
static int cost_parse(const struct call *call, struct replay *r)
{
	uint32_t cost;
	int status = choice_parse("--cost", call->option[COST], choices_cost, &cost);

	if (status != STATUS_OK)
		return status;
	r->cost_bytes = cost != 0;
	if (r->cost_bytes && call->option[SUGGEST] != NULL)
		return fail("--cost bytes: no number can be found for it: must be without --suggest");
	return STATUS_OK;
}

#define FORWARDED_MAX 1000

static int forwarded_parse(const char *text, int *nth)
{
	int from_end = *text == '-';
	const char *end = text + from_end;
	uint64_t n = 0;

	if (digits_scan(&end, &n) != 0 || *end != '\0' || n < 1 || n > FORWARDED_MAX)
		return fail("--forwarded %s: must be 1 to %d from the first address on, or -1 to -%d from the last",
		            text, FORWARDED_MAX, FORWARDED_MAX);
	*nth = from_end ? -(int)n : (int)n;
	return STATUS_OK;
}

static int parse(const struct call *call, struct replay *r)
{
	const char *key = call->option[KEY] != NULL ? call->option[KEY] : "addr";
	int status = rules_parse(call, r);

	if (status == STATUS_OK)
		status = plans_parse(call, r);
	if (status == STATUS_OK && call->option[MAX_DENIED] != NULL)
		status = share_parse("--max-denied", call->option[MAX_DENIED], &r->max_denied);
	if (status == STATUS_OK && call->option[SINCE] != NULL)
		status = moment_parse("--since", call->option[SINCE], &r->since_s);
	if (status == STATUS_OK && call->option[UNTIL] != NULL)
		status = moment_parse("--until", call->option[UNTIL], &r->until_s);
	if (status == STATUS_OK && call->option[SINCE] != NULL && call->option[UNTIL] != NULL &&
	    r->since_s >= r->until_s)
		return fail("--since %s: must be before --until %s", call->option[SINCE], call->option[UNTIL]);
	if (status == STATUS_OK)
		status = key_spec_parse(key, &r->spec);
	r->clients.field = call->option[CLIENT];
	r->filter = (struct replay_filter){ call->option[PATH], call->option[METHOD], call->option[STATUS] };
	if (status == STATUS_OK)
		status = filter_check(&r->filter);
	if (status == STATUS_OK && call->option[FORWARDED] != NULL)
		status = forwarded_parse(call->option[FORWARDED], &r->spec.forwarded);
	if (status == STATUS_OK && call->option[TOP] != NULL)
		status = number_parse("--top", call->option[TOP], 0, UINT64_MAX, &r->top);
	if (status == STATUS_OK && call->option[SLOTS] != NULL)
		status =
			number_parse("--slots", call->option[SLOTS], SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &r->slots);
	if (status == STATUS_OK && call->option[COST] != NULL)
		status = cost_parse(call, r);
	if (status == STATUS_OK && call->option[PLOT] != NULL)
		status = plot_check();
	return status;
}

static int read_lines(struct replay *r, struct log_files *files)
{
	struct span line;
	int found = 1, understood, status = STATUS_OK;

	while (status == STATUS_OK && found) {
		status = log_files_line(files, &line, &found);
		if (status != STATUS_OK || !found)
			break;
		status = replay_line(r, &line, &understood);
		log_files_note(files, &line, understood);
		if (r->lines % PROGRESS_LINES == 0)
			progress_show(log_files_done(files), files->size, r->lines);
	}
	progress_clear();
	return status;
}

static int denies_too_much(const struct replay *r)
{
	for (size_t i = 0; i < r->rules; i++)
		if (r->max_denied.scale != 0 &&
		    r->rule[i].denied > share_of(&r->max_denied, r->rule[i].allowed + r->rule[i].denied))
			return 1;
	return 0;
}

static int replay(const struct call *call, struct replay *r)
{
	struct log_files files;
	int status = STATUS_OK;

	for (size_t i = 0; i < r->rules && status == STATUS_OK; i++)
		if (r->rule[i].pattern == NULL)
			status = open_rule(&r->rule[i], r->slots);
	if (status != STATUS_OK)
		return status;
	status = log_files_open(&files, call->operand);
	if (status == STATUS_OK)
		status = read_lines(r, &files);
	log_files_close(&files);
	if (status != STATUS_OK)
		return status;
	status = replay_finish(r);
	if (status == STATUS_OK)
		status = replay_suggest(r);
	if (status == STATUS_OK && call->option[PLOT] != NULL)
		status = replay_plot(r, call->option[PLOT]);
	/* A picture on standard output is all that is printed. */
	if (status == STATUS_OK && (call->option[PLOT] == NULL || strcmp(call->option[PLOT], "-") != 0))
		status = call->option[JSON] != NULL ? print_json(replay_json(r)) : replay_text(r);
	return status == STATUS_OK && denies_too_much(r) ? STATUS_NO : status;
}

static int run(const struct call *call)
{
	struct replay *r = calloc(1, sizeof(*r));
	int status;

	if (r == NULL)
		return fail_memory();
	r->top = TOP_DEFAULT;
	status = replay_begin(r);
	if (status == STATUS_OK)
		status = parse(call, r);
	if (status == STATUS_OK)
		status = replay(call, r);
	replay_free(r);
	free(r);
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.operands = "[FILE...]",
	.purpose = "show from a web server's logs what limits would have denied",
	.details = "Each FILE is a log in the common, combined or vhost_combined format, or of JSON objects (nginx,\n"
		   "Caddy, Traefik, Envoy, pino). What syslog, the journal, docker or containerd puts before a line\n"
		   "is skipped. Where a proxy connected, the client is that of a field such as X-Forwarded-For's, if\n"
		   "the log has one. Logs may be compressed by gzip, xz, zstd or bzip2. The oldest is read first.\n"
		   "Without FILE, or for -, reads standard input. No segment is needed, and none is changed.\n",
	.options = options,
	.run = run,
};
