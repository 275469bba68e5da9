/*
 * words: see words.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "words.h"

size_t words_write(char *to, const char *word)
{
	size_t n = 0;

	if (to != NULL)
		to[n] = ' ';
	for (n = 1; *word != '\0'; word++) {
		if (strchr(" \t\r\n\"\\#", *word) != NULL) {
			if (to != NULL)
				to[n] = '\\';
			n++;
		}
		if (to != NULL)
			to[n] = *word;
		n++;
	}
	return n;
}

/* Check the spec that begins with `before` and ends with the word. */
static const char *check(const char *before, const char *word, struct shmlimit_gate_wrong *wrong)
{
	size_t length = strlen(before), n = words_write(NULL, word);
	char *spec = malloc(length + n + 1);
	int error;

	if (spec == NULL)
		return "cannot be checked: out of memory";
	memcpy(spec, before, length);
	words_write(spec + length, word);
	spec[length + n] = '\0';
	wrong->struct_size = sizeof(*wrong);
	error = shmlimit_gate_check(spec, wrong);
	free(spec);
	return error == 0 ? NULL : wrong->text;
}

const char *words_check_segment(const char *name)
{
	return shmlimit_check_names(name, NULL) == 0
	               ? NULL
	               : "must be a segment's name: 1 to 239 bytes, no / or control characters, not a dot first";
}

const char *words_check_rule(const char *name)
{
	return shmlimit_check_names(NULL, name) == 0 ? NULL
	                                             : "must be a rule's name: 1 to 63 letters, digits and . _ : @ + -";
}

const char *words_check_gate(const char *word, struct shmlimit_gate_wrong *wrong)
{
	return strncmp(word, "rule=", 5) == 0 ? "belongs to a limit" : check("segment=x", word, wrong);
}

const char *words_check_limit(const char *word, struct shmlimit_gate_wrong *wrong)
{
	if (strncmp(word, "rule=", 5) == 0)
		return "is a second rule";
	if (strncmp(word, "charge_max=", 11) == 0)
		return check("segment=x rule=x estimate=1", word, wrong);
	if (strncmp(word, "share=", 6) == 0)
		return check("segment=x create=yes rule=all rate=1\\ at\\ once rule=x", word, wrong);
	return check("segment=x create=yes rule=x", word, wrong);
}

int words_has_places(const char *rate)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	return shmlimit_rule_parse(rate, &rule, NULL) == 0 && rule.algorithm == SHMLIMIT_HOLD;
}

/* Read one number from *at, times `scale`, rounded up. Returns 0 if it is none, or too large. */
static int read_number(const char **at, const char *end, uint64_t scale, uint64_t *out)
{
	unsigned __int128 scaled = 0;
	uint64_t unit = 1;
	const char *begin = *at;

	for (; *at < end && **at >= '0' && **at <= '9' && scaled <= UINT64_MAX; (*at)++)
		scaled = scaled * 10 + (unsigned)(**at - '0') * scale;
	if (*at == begin || scaled >= UINT64_MAX)
		return 0;
	if (*at < end && **at == '.')
		for ((*at)++; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
			/* Nine places are exact; what is behind them is more than nothing. */
			if (unit == 1000000000)
				scaled += **at != '0' && scaled % unit == 0;
			else
				unit *= 10, scaled = scaled * 10 + (unsigned)(**at - '0') * scale;
		}
	*out = (uint64_t)((scaled + unit - 1) / unit);
	return 1;
}

static int ends_number(const char *at, const char *end)
{
	return at == end || *at == ' ' || *at == ',' || *at == ':';
}

uint64_t words_used(const char *text, size_t length, uint64_t scale)
{
	const char *end = text + length;
	uint64_t sum = 0, one;
	int numbers = 0;

	for (const char *at = text; at < end;) {
		/* A "-" by itself is a value that is missing; before a number it is a sign. */
		if (ends_number(at, end) || (*at == '-' && ends_number(at + 1, end))) {
			at++;
			continue;
		}
		if (!read_number(&at, end, scale, &one) || !ends_number(at, end) ||
		    __builtin_add_overflow(sum, one, &sum) || sum == SHMLIMIT_GATE_NOT_KNOWN)
			return SHMLIMIT_GATE_NOT_KNOWN;
		numbers = 1;
	}
	return numbers ? sum : SHMLIMIT_GATE_NOT_KNOWN;
}

uint32_t words_share(const char *text, size_t length, int *wrong)
{
	const char *at = text;
	uint64_t share;

	*wrong = length > 0 && !(length == 1 && text[0] == '-');
	if (!read_number(&at, text + length, SHMLIMIT_SHARE_ONE, &share) || at != text + length || share == 0 ||
	    share > 1000000000)
		return 0;
	*wrong = 0;
	return (uint32_t)share;
}

const char *words_event(const struct shmlimit_gate_answer *answer, int *delayed)
{
	*delayed = answer->outcome == SHMLIMIT_GATE_DELAYED || answer->outcome == SHMLIMIT_GATE_DELAYED_DRY_RUN;
	switch (answer->outcome) {
	case SHMLIMIT_GATE_REJECTED:
		return "limiting requests";
	case SHMLIMIT_GATE_REJECTED_DRY_RUN:
		return "limiting requests, dry run,";
	case SHMLIMIT_GATE_DELAYED:
		return "delayed request";
	case SHMLIMIT_GATE_DELAYED_DRY_RUN:
		return "delayed request, dry run,";
	default:
		return NULL;
	}
}

const char *words_outcome(const struct shmlimit_gate_answer *answer)
{
	static const char *const outcomes[] = {
		[SHMLIMIT_GATE_PASSED] = "PASSED",
		[SHMLIMIT_GATE_REJECTED] = "REJECTED",
		[SHMLIMIT_GATE_REJECTED_DRY_RUN] = "REJECTED_DRY_RUN",
		[SHMLIMIT_GATE_FAILED] = "FAILED",
		[SHMLIMIT_GATE_DELAYED] = "DELAYED",
		[SHMLIMIT_GATE_DELAYED_DRY_RUN] = "DELAYED_DRY_RUN",
	};

	return outcomes[answer->outcome];
}

const char *const words_forwarded[] = { "X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", NULL };
