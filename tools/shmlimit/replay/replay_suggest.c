/*
 * replay_suggest.c: the smallest limit that denies no more than so much of a log.
 *
 * A limit has a number left open, '?', and a larger number never denies more: at each moment the
 * larger limit has allowed a key as many requests or more, and what it has left besides is no less
 * than the lead of the smaller one. So the smallest number is found by halving, and a limit is
 * tried by the library itself, on a key after the other: keys do not see each other, and need a few
 * slots only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "fail.h"
#include "print.h"
#include "replay.h"
#include "temp_segment.h"
#include "traits.h"
#include "value_parse.h"

#define SECOND UINT64_C(1000000000)
#define NUMBER_MAX (UINT64_C(1) << 40) /* as many requests of one key are in no log */

/*
 * Its text, with the number in place of each '?'. Returns NULL without memory; else it is the
 * caller's to free.
 */
static char *text_with(const char *pattern, uint64_t number)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to == NULL)
		return NULL;
	for (; *pattern != '\0'; pattern++) {
		if (*pattern == '?')
			fprintf(to, "%" PRIu64, number);
		else
			putc(*pattern, to);
	}
	return fclose(to) == 0 ? text : NULL;
}

int suggest_is_open(const char *pattern)
{
	return strchr(pattern, '?') != NULL;
}

int replay_rule_parse(const char *text, struct shmlimit_rule *rule)
{
	int status;

	*rule = (struct shmlimit_rule){ .struct_size = sizeof(*rule) };
	status = limit_option_parse("--rule", text, rule);
	if (status == STATUS_OK && traits_of(rule->algorithm)->is_places)
		return fail("--rule %s: no log says how long a place is held: use COUNT/PERIOD", text);
	return status;
}

int suggest_parse(const char *pattern, uint64_t number, struct shmlimit_rule *rule)
{
	char *text = text_with(pattern, number);
	int status = text != NULL ? replay_rule_parse(text, rule) : fail_memory();

	free(text);
	return status;
}

static int open_number(struct replay_rule *rule, uint64_t number)
{
	struct shmlimit_options o = { .struct_size = sizeof(o), .slots = SHMLIMIT_SLOTS_MIN, .rules = 1 };
	int status = suggest_parse(rule->pattern, number, &rule->rule);

	if (status != STATUS_OK)
		return status;
	return temp_segment_open(&o, &rule->rule, &rule->pattern, 1, &rule->limiter);
}

static void close_number(struct replay_rule *rule)
{
	shmlimit_close(rule->limiter);
	rule->limiter = NULL;
}

/* Stops counting above `most`. Returns a status. */
static int count_denied(struct replay *r, size_t i, uint64_t number, uint64_t most, uint64_t *denied)
{
	struct replay_rule *rule = &r->rule[i];
	struct replay_key *k, *next;
	int status = open_number(rule, number), answer;

	*denied = 0;
	if (status != STATUS_OK)
		return status;
	HASH_ITER(hh, r->keys, k, next) {
		for (uint64_t n = 0; n < k->requests && *denied <= most; n++) {
			shmlimit_set_time(rule->limiter, &(uint64_t){ (uint64_t)k->at_ns[n] });
			answer = shmlimit_take(rule->limiter, 0, k->key, k->len, 1, NULL);
			if (answer < 0)
				status = fail("rule %s: %s", rule->pattern, shmlimit_strerror(answer));
			*denied += answer == SHMLIMIT_DENIED;
		}
		if (status != STATUS_OK || *denied > most)
			break;
	}
	close_number(rule);
	return status;
}

/*
 * The largest number that is worth a try: a burst of all requests of a key, or as many in each
 * second.
 */
static uint64_t largest_number(const struct replay *r, const struct replay_rule *rule)
{
	uint64_t largest = 1, seconds = (rule->rule.period_ns + SECOND - 1) / SECOND;
	const struct replay_key *k;

	for (k = r->keys; k != NULL; k = k->hh.next)
		if (k->requests > largest)
			largest = k->requests;
	if (rule->rule.algorithm == SHMLIMIT_WINDOW)
		return largest < SHMLIMIT_WINDOW_MAX ? largest : SHMLIMIT_WINDOW_MAX;
	if (rule->pattern[0] != '?')
		return largest;
	return largest < NUMBER_MAX / (seconds + 1) ? largest * (seconds + 1) : NUMBER_MAX;
}

static int find(struct replay *r, size_t i, uint64_t most, uint64_t *number)
{
	struct replay_rule *rule = &r->rule[i];
	uint64_t low = 0, high = largest_number(r, rule), denied;
	int status = count_denied(r, i, high, most, &denied);

	if (status == STATUS_OK && denied > most)
		return fail("--rule '%s': no number denies so little (%" PRIu64 " denies more requests than %" PRIu64
		            "; try a larger burst, or --suggest with a larger share)",
		            rule->pattern, high, most);
	/*
	 * BOUND: denied(low) > most, as of 0, and denied(high) <= most; each round halves what is
	 * between.
	 */
	while (status == STATUS_OK && high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		status = count_denied(r, i, middle, most, &denied);
		if (denied > most)
			low = middle;
		else
			high = middle;
	}
	*number = high;
	return status;
}

/* What it denies is then counted as of any other limit. */
static int replay_number(struct replay *r, size_t i)
{
	struct replay_rule *rule = &r->rule[i];
	struct replay_key *k, *next;
	int status = open_number(rule, rule->suggested);

	if (status != STATUS_OK)
		return status;
	HASH_ITER(hh, r->keys, k, next)
		for (uint64_t n = 0; n < k->requests && status == STATUS_OK; n++)
			status = replay_decide(r, i,
			                       &(struct replay_request){ .key = k, .cost = 1, .unix_ns = k->at_ns[n] },
			                       step_at(&r->steps, k->at_ns[n]));
	close_number(rule);
	return status;
}

int replay_suggest(struct replay *r)
{
	uint64_t requests = 0;
	const struct replay_key *k;
	int status = STATUS_OK;

	for (k = r->keys; k != NULL; k = k->hh.next)
		requests += k->requests;
	for (size_t i = 0; i < r->rules && status == STATUS_OK; i++) {
		struct replay_rule *rule = &r->rule[i];

		if (rule->pattern == NULL)
			continue;
		status = find(r, i, share_of(&r->suggest, requests), &rule->suggested);
		if (status != STATUS_OK)
			return status;
		rule->made_text = text_with(rule->pattern, rule->suggested);
		if (rule->made_text == NULL)
			return fail_memory();
		rule->text = rule->made_text;
		status = replay_number(r, i);
	}
	return status;
}

int share_parse(const char *what, const char *text, struct share *share)
{
	const char *t = text;
	int error = decimal_scan(&t, &share->whole, &share->fraction, &share->scale);

	if (error != 0 || strcmp(t, "%") != 0 || share->whole > 100 || (share->whole == 100 && share->fraction != 0))
		return fail("%s %s: not a share (for example 1%% or 0.1%%, up to 100%%)", what, text);
	return STATUS_OK;
}

/*
 * BOUND: a decimal number's scale and a log's requests are below 2^64, and 100 * 2^64 * 2^57 fit
 * into 128 bits.
 */
uint64_t share_of(const struct share *share, uint64_t requests)
{
	unsigned __int128 hundredths = (unsigned __int128)share->whole * share->scale + share->fraction;

	return (uint64_t)(hundredths * requests / ((unsigned __int128)100 * share->scale));
}
