/*
 * limit_text: see limit_text.h.
 *
 *	limit   = rate | places | "block" | "unlimited" | "off" | "0"
 *	rate    = number [noun] ("/" | "per") duration {"burst" ["="] count | "strict" | "window" | "in" zone}
 *	places  = (count [noun] | auto) "at once" ["by" law] ["for" duration | "at most" duration ["each"]]
 *	auto    = "auto" [count "to" count], and only that has a law: "vegas", "gradient2" or "aimd"
 *
 * What is not that is refused with the reading that is nearest to it: a text that this reader
 * accepts, since it was given to it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "decimal.h"
#include "duration.h"
#include "fraction.h"
#include "limit_text.h"
#include "nearest.h"
#include "strict.h"
#include "traits.h"
#include "whole.h"
#include "zone_data.h"

#define SECOND UINT64_C(1000000000)
/* expiry of a place for which none is given; Laravel's funnel has the same */
#define PLACE_NS (60 * SECOND)
#define BLANKS " \t"
#define AUTO_LEAST 4
#define AUTO_MOST 200
#define WORD_MAX 20   /* bytes of a word that a message repeats */
#define DIGITS_MAX 60 /* digits of a number that a message rounds */

enum kind { RATE, PLACES, BLOCK, UNLIMITED };

struct limit {
	enum kind kind;
	uint64_t count, period_ns;
	uint64_t burst; /* 0: none is given */
	uint64_t whole; /* the burst then: the number that was read, rounded up */
	int strict, window, places;
	int cut_off;                  /* a place ends with its period */
	uint32_t law, least;          /* of a number that is found, or 0 */
	char zone[SHMLIMIT_ZONE_MAX]; /* by whose calendar the period is; empty: by none */
};

struct reader {
	const char *text, *at;
	struct shmlimit_problem *wrong; /* NULL: the caller does not ask what is wrong */
	struct limit limit;
};

struct word {
	const char *word, *meant;
};

/* What may stand between a count and its period. */
static const char *const nouns[] = { "r",      "req",  "reqs",  "request", "requests", "token",
	                             "tokens", "call", "calls", "hit",     "hits",     NULL };

/* What other programs write for a whole limit, for "/", and for a whole rate. */
static const struct word limits[] = { { "none", "unlimited" }, { "infinite", "unlimited" }, { "infinity", "unlimited" },
	                              { "inf", "unlimited" },  { "null", "unlimited" },     { "nil", "unlimited" },
	                              { "false", "off" },      { "disabled", "off" },       { "no", "off" },
	                              { "deny", "block" },     { "denied", "block" },       { "blocked", "block" },
	                              { "reject", "block" },   { "-1", "unlimited" },       { NULL, NULL } };
static const struct word separators[] = { { "a", "" },  { "an", "" },     { "every", "" }, { "each", "" },
	                                  { "in", "" }, { "within", "" }, { "by", "" },    { NULL, NULL } };
static const struct word rates[] = { { "rps", "s" }, { "qps", "s" }, { "tps", "s" }, { "rpm", "m" },
	                             { "qpm", "m" }, { "tpm", "m" }, { "rph", "h" }, { "tph", "h" },
	                             { "rpd", "d" }, { "tpd", "d" }, { NULL, NULL } };
/*
 * Bytes, which are counted as any other tokens; and words that multiply, so that none may be left
 * out.
 */
static const struct word sizes[] = { { "b", "" },     { "byte", "" },  { "bytes", "" }, { "kb", "k" },
	                             { "mb", "M" },   { "gb", "G" },   { "tb", "T" },   { "kib", "Ki" },
	                             { "mib", "Mi" }, { "gib", "Gi" }, { "tib", "Ti" }, { NULL, NULL } };
static const char *const multiples[] = { "bit", "bps", "byte", "illion", "thousand", "hundred", "dozen", NULL };
static const char *const at_once[] = { "concurrent",   "concurrently", "connections", "parallel",
	                               "simultaneous", "places",       NULL };
/* What other programs write after a rate, and what means nothing here. */
static const char *const idle[] = { "nodelay", NULL };

static int read_limit(struct reader *r);

/* ---- Words ---- */

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, BLANKS);
}

static size_t limit_word_len(const char *at)
{
	size_t len = 0;

	while (is_letter(at[len]))
		len++;
	return len;
}

static int is_limit_word(const char *at, size_t len, const char *word)
{
	return strncasecmp(at, word, len) == 0 && word[len] == '\0';
}

static int is_one_of(const char *at, size_t len, const char *const *words)
{
	for (; len > 0 && *words != NULL; words++)
		if (is_limit_word(at, len, *words))
			return 1;
	return 0;
}

static const char *meant_by(const struct word *words, const char *at, size_t len)
{
	for (; words->word != NULL; words++)
		if (is_limit_word(at, len, words->word))
			return words->meant;
	return NULL;
}

/* Skip the word if it is the next. */
static int skip_word(struct reader *r, const char *word)
{
	size_t len = limit_word_len(r->at);

	if (len == 0 || !is_limit_word(r->at, len, word))
		return 0;
	r->at += len;
	return 1;
}

/* ---- What is wrong ---- */

__attribute__((format(printf, 3, 4))) static int refuse(struct reader *r, const char *at, const char *format, ...)
{
	va_list list;

	if (r->wrong == NULL)
		return -EINVAL;
	va_start(list, format);
	r->wrong->offset = (uint64_t)(at - r->text);
	(void)vsnprintf(r->wrong->text, sizeof(r->wrong->text), format, list);
	va_end(list);
	return -EINVAL;
}

static int is_limit(const char *text)
{
	struct reader r = { .text = text, .at = text };

	return read_limit(&r) == 0;
}

/* Refuse, with the text that was probably meant, if that is one. */
__attribute__((format(printf, 4, 5))) static int suggest(struct reader *r, const char *at, const char *fault,
                                                         const char *format, ...)
{
	char text[SHMLIMIT_RULE_TEXT_MAX];
	static const char form[] = "%s: did you mean \"%s\"?";
	va_list list;
	int len;

	if (r->wrong == NULL)
		return -EINVAL;
	va_start(list, format);
	len = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	while (len > 0 && (size_t)len < sizeof(text) && strchr(BLANKS, text[len - 1]) != NULL)
		text[--len] = '\0';
	if (len < 0 || (size_t)len >= sizeof(text) || !is_limit(text) ||
	    sizeof(form) + strlen(fault) + (size_t)len > sizeof(r->wrong->text))
		return refuse(r, at, "%s", fault);
	return refuse(r, at, form, fault, text);
}

static int refuse_all(struct reader *r)
{
	static const char *const words[] = { "block", "unlimited", "off" };
	char word[WORD_MAX + 1] = "";
	struct nearest nearest = { .word = word };
	size_t len = limit_word_len(r->at);

	if (len > 0 && len <= WORD_MAX && r->at[len] == '\0') {
		memcpy(word, r->at, len);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			nearest_try(&nearest, words[i]);
	}
	if (nearest.best[0] != '\0')
		return suggest(r, r->at, "not a limit", "%s", nearest.best);
	return refuse(r, r->text,
	              "not a limit: must be such as 5/minute, \"10/s burst 20\", \"20 at once\", block or "
	              "unlimited");
}

static int refuse_number(struct reader *r, int error)
{
	if (error == -ERANGE)
		return refuse(r, r->at, "the number is too large: must be %" PRIu64 " or less", UINT64_MAX);
	return refuse(r, r->at, error == -EDOM ? "not a whole number" : "a number is missing");
}

/* The text up to `at`, another word for the one there, and what follows. */
static int suggest_word(struct reader *r, const char *at, const char *fault, const char *word)
{
	return suggest(r, at, fault, "%.*s%s%s", (int)(at - r->text), r->text, word, at + limit_word_len(at));
}

static void try_unit(void *nearest, const char *word)
{
	/* WHY NOT the short ones: of "10/x" each is as near as all others. */
	if (strlen(word) > 2)
		nearest_try(nearest, word);
}

static int refuse_unit(struct reader *r, const char *at)
{
	size_t len = limit_word_len(at);
	char word[WORD_MAX + 1] = "", fault[sizeof(r->wrong->text)];
	struct nearest nearest = { .word = word };

	if (len == 1 && *at == 'M')
		return refuse(r, at, "M is a minute to some and a month to others: write m or month");
	if (len == 0 && is_digit(at > r->text ? at[-1] : ' '))
		return suggest(r, at, "a unit is missing", "%.*ss%s", (int)(at - r->text), r->text, at);
	if (len == 0)
		return refuse(r, at, "a unit is missing: must be " DURATION_UNITS);
	if (len <= WORD_MAX)
		memcpy(word, at, len);
	for (char *c = word; *c != '\0'; c++)
		*c |= 0x20;
	duration_words(try_unit, &nearest);
	snprintf(fault, sizeof(fault), "%.*s%s is not a unit", (int)(len <= WORD_MAX ? len : WORD_MAX), at,
	         len <= WORD_MAX ? "" : "...");
	if (nearest.best[0] != '\0')
		return suggest_word(r, at, fault, nearest.best);
	return refuse(r, at, "%s: must be " DURATION_UNITS, fault);
}

/* ---- Numbers and times ---- */

static int read_duration(struct reader *r, int bare, uint64_t *ns)
{
	const char *begin = r->at, *at = begin;
	char most[DURATION_TEXT_MAX];

	switch (-duration_scan(&at, bare, ns)) {
	case 0:
		r->at = at;
		return *ns > 0 ? 0 : refuse(r, begin, "a period of 0: must be 1ns or more");
	case EINVAL:
		return refuse_unit(r, at);
	case EILSEQ:
		return refuse(r, at, "a unit must be shorter than the one before it, as in 1h30m");
	case EDOM:
		return refuse(r, begin, "the period is finer than a nanosecond");
	default:
		return refuse(r, begin, "the period is too long: must be %s or less",
		              duration_text(most, DURATION_MAX));
	}
}

/* Digits with commas or underscores, three after each; or Laravel's count and minutes, "60,1". */
static int refuse_separated(struct reader *r, const char *at)
{
	char digits[32];
	size_t len = 0, group = 0;
	const char *t = r->at;

	for (; (is_digit(*t) || *t == *at) && len < sizeof(digits) - 1; t++) {
		group = is_digit(*t) ? group + 1 : 0;
		if (is_digit(*t))
			digits[len++] = *t;
	}
	digits[len] = '\0';
	if (group == 3)
		return suggest(r, at, "digits are not grouped", "%.*s%s%s", (int)(r->at - r->text), r->text, digits, t);
	return suggest(r, at, "a period is missing", "%.*s/%sm", (int)(at - r->at), r->at, at + 1);
}

/* redis-cell's three numbers: the burst less one, the count, and the seconds of the period. */
static int refuse_three(struct reader *r, const char *at)
{
	uint64_t n[3];
	const char *t = r->text + strspn(r->text, BLANKS);

	for (int i = 0; i < 3; i++, t += strspn(t, BLANKS))
		if (digits_scan(&t, &n[i]) != 0)
			return refuse(r, at, "a period is missing, such as /s or /minute");
	return *t != '\0'
	               ? refuse_all(r)
	               : suggest(r, at, "not a limit", "%" PRIu64 "/%" PRIu64 "s burst %" PRIu64, n[1], n[2], n[0] + 1);
}

/* The whole number above one that is not, or below it. */
static int refuse_part(struct reader *r, int up)
{
	const char *t = r->at;
	struct fraction f;
	uint64_t whole;

	if (fraction_scan(&t, &f) != 0)
		return refuse_number(r, -EDOM);
	whole = f.num / f.den + (up ? f.num % f.den != 0 : f.num < f.den);
	return suggest(r, r->at, "not a whole number", "%.*s%" PRIu64 "%s", (int)(r->at - r->text), r->text, whole, t);
}

static int read_count(struct reader *r, uint64_t *count)
{
	int error = number_scan(&r->at, count);

	return error == 0 ? 0 : error == -EDOM ? refuse_part(r, 1) : refuse_number(r, error);
}

/* ---- A rate that cannot be represented ---- */

/* Round digits with a point to `keep` places at most. A carry may need one digit more. */
static void put_rounded(char *to, const char *from, size_t whole, size_t keep)
{
	size_t end = keep == 0 ? whole : whole + 1 + keep;
	int up = from[end + (from[end] == '.')] >= '5';
	char *digit = to + end;

	*to = '0';
	memcpy(to + 1, from, end);
	to[end + 1] = '\0';
	for (; up; digit--) {
		if (*digit == '.')
			continue;
		up = *digit == '9';
		*digit = up ? '0' : (char)(*digit + 1);
	}
	if (*to == '0')
		memmove(to, to + 1, end + 1);
	if (keep == 0)
		return;
	for (digit = to + strlen(to) - 1; *digit == '0'; digit--)
		;
	digit[*digit != '.'] = '\0';
}

/*
 * The number at `from` has more digits than there are terms for. The nearest of fewer digits that
 * is a limit is probably good enough. Returns 0 if there is none.
 */
static int refuse_digits(struct reader *r, const char *from)
{
	size_t whole = strspn(from, "0123456789");
	size_t places = from[whole] == '.' ? strspn(from + whole + 1, "0123456789") : 0;
	const char *rest = from + whole + (places > 0 ? places + 1 : 0);
	char number[DIGITS_MAX + 3], text[SHMLIMIT_RULE_TEXT_MAX];

	if (r->wrong == NULL)
		return -EINVAL;
	if (whole > DIGITS_MAX / 2)
		return 0;
	for (size_t keep = places < DIGITS_MAX / 2 ? places : DIGITS_MAX / 2; keep-- > 0;) {
		put_rounded(number, from, whole, keep);
		/* WHY NOT 0: that is another limit. */
		if (strspn(number, "0.") == strlen(number))
			return 0;
		if (snprintf(text, sizeof(text), "%s%s", number, rest) < (int)sizeof(text) && is_limit(text))
			return suggest(r, from, "too many digits", "%s", text);
	}
	return 0;
}

/* One that is a whole number below the line, however long its period, is a limit. */
static int refuse_rate(struct reader *r, const char *from, struct fraction f, uint64_t period_ns)
{
	char period[DURATION_TEXT_MAX];
	int error = refuse_digits(r, from);

	if (error != 0)
		return error;
	if (!__builtin_mul_overflow(period_ns, f.den, &period_ns) && period_ns <= DURATION_MAX)
		return suggest(r, from, "not a whole number", "%" PRIu64 "/%s%s", f.num,
		               duration_text(period, period_ns), r->at);
	return refuse(r, from, "the period is too long: must be %s or less", duration_text(period, DURATION_MAX));
}

static int read_number(struct reader *r, struct fraction *f)
{
	const char *begin = r->at;
	int error = fraction_scan(&r->at, f);

	if (error == 0)
		return 0;
	if (error != -EINVAL && refuse_digits(r, begin) != 0)
		return -EINVAL;
	if (error == -EDOM || (error == -ERANGE && !is_digit(begin[strspn(begin, "0")])))
		return refuse(r, begin, "the number is too small: write one and its period, such as 1/36y");
	return refuse_number(r, error);
}

/* ---- The parts of a limit ---- */

static int read_end(struct reader *r, const char *may_follow)
{
	size_t len;

	skip_blanks(r);
	if (*r->at == '\0')
		return 0;
	len = limit_word_len(r->at);
	if (is_one_of(r->at, len, idle))
		return suggest(r, r->at, "nobody is delayed", "%.*s%s", (int)(r->at - r->text), r->text, r->at + len);
	if (strchr(";,|&", *r->at) != NULL)
		return refuse(r, r->at, "more than one limit: each needs a rule of its own");
	return refuse(r, r->at, "must be %s at the end", may_follow);
}

/*
 * What a period is called that a calendar has, or NULL. A month is written as one, and read as 30
 * days.
 */
static const char *calendar_name(uint64_t period_ns)
{
	const uint64_t day = 86400 * SECOND;

	return period_ns == 3600 * SECOND ? "hour"
	       : period_ns == day         ? "day"
	       : period_ns == 7 * day     ? "week"
	       : period_ns == 30 * day    ? "month"
	                                  : NULL;
}

static int refuse_option(struct reader *r)
{
	static const char *const options[] = { "burst", "strict", "window" };
	size_t len = limit_word_len(r->at);
	char word[WORD_MAX + 1] = "";
	struct nearest nearest = { .word = word };

	if (len > 0 && len <= WORD_MAX) {
		memcpy(word, r->at, len);
		for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
			nearest_try(&nearest, options[i]);
	}
	if (nearest.best[0] != '\0')
		return suggest_word(r, r->at, "not an option", nearest.best);
	return read_end(r, "\"burst N\", strict, window, \"in ZONE\" or nothing");
}

static int read_burst(struct reader *r)
{
	const char *begin = r->at;
	int error;

	if (r->limit.burst != 0)
		return refuse(r, begin, "burst appears more than once");
	skip_blanks(r);
	if (*r->at == '=' || *r->at == ':')
		r->at++;
	skip_blanks(r);
	begin = r->at;
	error = read_count(r, &r->limit.burst);
	if (error == 0 && r->limit.burst == 0)
		return suggest(r, begin, "burst 0: must be 1 or more, which is how many pass at once", "%.*s1%s",
		               (int)(begin - r->text), r->text, r->at);
	return error;
}

/* The name of a time zone, up to a blank. Whether there is such a zone is not asked here. */
static int read_zone(struct reader *r, const char *begin)
{
	size_t len;

	skip_blanks(r);
	len = strcspn(r->at, BLANKS);
	if (r->limit.zone[0] != '\0')
		return refuse(r, begin, "appears more than once");
	if (calendar_name(r->limit.period_ns) == NULL)
		return refuse(r, begin, "a calendar has hours, days, weeks and months: must be such as 5/day in UTC");
	if (len == 0)
		return suggest(r, begin, "a time zone is missing", "%.*sin UTC", (int)(begin - r->text), r->text);
	if (len >= SHMLIMIT_ZONE_MAX)
		return refuse(r, r->at, "the name of a time zone is too long: must be %d bytes or less",
		              SHMLIMIT_ZONE_MAX - 1);
	memcpy(r->limit.zone, r->at, len);
	if (strcasecmp(r->limit.zone, "utc") == 0)
		strcpy(r->limit.zone, "UTC");
	if (!zone_data_is_name(r->limit.zone))
		return refuse(r, r->at, "not a time zone: must be such as UTC or Europe/Berlin");
	r->at += len;
	return 0;
}

/* "10000/day at midnight UTC" */
static int refuse_midnight(struct reader *r, const char *begin)
{
	skip_blanks(r);
	(void)skip_word(r, "midnight");
	skip_blanks(r);
	return suggest(r, begin, "must be \"in\" and a time zone", "%.*sin %s", (int)(begin - r->text), r->text,
	               *r->at != '\0' ? r->at : "UTC");
}

static int read_options(struct reader *r)
{
	struct limit *limit = &r->limit;
	int error = 0;

	for (skip_blanks(r); error == 0 && *r->at != '\0'; skip_blanks(r)) {
		const char *begin = r->at;

		if (skip_word(r, "burst"))
			error = read_burst(r);
		else if (skip_word(r, "in"))
			error = read_zone(r, begin);
		else if (skip_word(r, "at"))
			error = refuse_midnight(r, begin);
		else if (skip_word(r, "strict") && !limit->strict)
			limit->strict = 1;
		else if (r->at == begin && skip_word(r, "window") && !limit->window)
			limit->window = 1;
		else
			return r->at != begin ? refuse(r, begin, "appears more than once") : refuse_option(r);
		if (limit->burst != 0 && (limit->strict || limit->window || limit->count == 0))
			return refuse(r, begin,
			              limit->count == 0 ? "a limit of 0 has no burst"
			              : limit->strict   ? "a strict limit has no burst of its own"
			                                : "a window has no burst");
		if (limit->zone[0] != '\0' && (limit->burst != 0 || limit->strict || limit->window))
			return refuse(r, begin, "a calendar period has neither burst nor window");
	}
	return error;
}

const char *const limit_laws[] = { "", "vegas", "gradient2", "aimd", NULL };

static int read_law(struct reader *r)
{
	const char *begin;
	size_t len;

	skip_blanks(r);
	begin = r->at;
	for (len = 0; is_letter(begin[len]) || is_digit(begin[len]); len++)
		;
	for (uint32_t law = SHMLIMIT_LAW_VEGAS; len != 0 && limit_laws[law] != NULL; law++)
		if (is_limit_word(begin, len, limit_laws[law])) {
			r->at += len;
			r->limit.law = law;
			return 0;
		}
	return refuse(r, begin, "must be vegas, gradient2 or aimd");
}

static int read_places(struct reader *r)
{
	const char *begin = r->at;

	r->limit.kind = PLACES;
	r->limit.places = 1;
	r->limit.period_ns = PLACE_NS;
	skip_blanks(r);
	if (!skip_word(r, "once"))
		return refuse(r, begin, "must be \"at once\"");
	skip_blanks(r);
	if (r->limit.law != 0 && skip_word(r, "by")) {
		int error = read_law(r);

		if (error != 0)
			return error;
		skip_blanks(r);
	}
	if (skip_word(r, "at")) {
		skip_blanks(r);
		if (!skip_word(r, "most"))
			return suggest(r, r->at, "must be \"at most\"", "%.*smost %s", (int)(r->at - r->text), r->text,
			               r->at);
		r->limit.cut_off = 1;
	}
	if (r->limit.cut_off || skip_word(r, "for")) {
		int error;

		skip_blanks(r);
		error = read_duration(r, 0, &r->limit.period_ns);
		if (error != 0)
			return error;
		skip_blanks(r);
		if (r->limit.cut_off)
			(void)skip_word(r, "each");
	}
	return read_end(r, "\"for\" or \"at most\" and a duration, or nothing");
}

/* "auto" is skipped. */
static int read_auto(struct reader *r)
{
	uint64_t least = AUTO_LEAST, most = AUTO_MOST;
	const char *begin = r->at;
	int error = 0;

	skip_blanks(r);
	if (is_digit(*r->at)) {
		begin = r->at;
		error = read_count(r, &least);
		skip_blanks(r);
		if (error == 0 && !skip_word(r, "to"))
			return refuse(r, r->at, "must be such as \"auto %d to %d at once\"", AUTO_LEAST, AUTO_MOST);
		skip_blanks(r);
		if (error == 0)
			error = read_count(r, &most);
		if (error != 0)
			return error;
		if (least == 0 || least > most || most > UINT32_MAX)
			return refuse(r, begin, "must be from 1 or more to as many or more");
	}
	skip_blanks(r);
	begin = r->at;
	if (!skip_word(r, "at"))
		return refuse(r, begin, "must be \"at once\"");
	r->limit.law = SHMLIMIT_LAW_VEGAS;
	r->limit.least = (uint32_t)least;
	r->limit.count = r->limit.whole = most;
	return read_places(r);
}

static int has_multiple(const char *word)
{
	for (const char *const *m = multiples; *m != NULL; m++)
		if (strcasestr(word, *m) != NULL)
			return 1;
	return 0;
}

/* A word between a count and its period: the unit of a size, or what is counted, as "attempts". */
static int refuse_counted(struct reader *r, const char *after, size_t len)
{
	const char *size = meant_by(sizes, r->at, len), *rest = r->at + len, *period = rest + strspn(rest, BLANKS);
	int has_separator = meant_by(separators, period, limit_word_len(period)) != NULL;
	char word[WORD_MAX + 1], fault[WORD_MAX + 32];

	snprintf(word, sizeof(word), "%.*s", (int)(len < WORD_MAX ? len : WORD_MAX), r->at);
	if (size == NULL && (len > WORD_MAX || has_multiple(word)))
		return refuse(r, r->at, "%s is not understood: write a number such as 5k, 1M or 1Mi", word);
	snprintf(fault, sizeof(fault), "%s is not understood", word);
	if (has_separator) {
		rest = period + limit_word_len(period);
		rest += strspn(rest, BLANKS);
	}
	return suggest(r, r->at, fault, "%.*s%s%s%s", (int)(after - r->text), r->text, size != NULL ? size : "",
	               has_separator ? "/" : "", rest);
}

/* Does a period begin there? */
static int is_period(const char *at)
{
	size_t len;

	at += strspn(at, BLANKS);
	len = limit_word_len(at);
	return *at == '/' || (len > 0 && is_limit_word(at, len, "per")) || meant_by(separators, at, len) != NULL;
}

/* What follows a count is neither a period nor places. */
static int refuse_after_count(struct reader *r, const char *after)
{
	size_t len = limit_word_len(r->at);
	const char *meant = meant_by(rates, r->at, len), *rest = r->at + len;

	if (meant != NULL)
		return suggest(r, r->at, "not a unit", "%.*s/%s%s", (int)(after - r->text), r->text, meant, rest);
	if (meant_by(separators, r->at, len) != NULL)
		return suggest_word(r, r->at, "must be / or per", "per");
	if (is_one_of(r->at, len, at_once))
		return suggest(r, r->at, "places are held at once", "%.*s at once", (int)(after - r->text), r->text);
	if (*r->at == ',' || *r->at == '_')
		return refuse_separated(r, r->at);
	if (is_digit(*r->at))
		return refuse_three(r, r->at);
	/* WHY NOT a letter or two: "1e/s" and "5k k/s" are no counts of something. */
	if ((len > 2 || meant_by(sizes, r->at, len) != NULL) && is_period(rest))
		return refuse_counted(r, after, len);
	return suggest(r, r->at, "a period is missing, such as /s or /minute", "%.*s/s%s", (int)(after - r->text),
	               r->text, r->at);
}

/* ',' and '_' are looked at before what they separate. */
static int read_numbered(struct reader *r)
{
	const char *begin = r->at, *digits = begin + strspn(begin, "0123456789"), *after;
	struct fraction f;
	uint64_t period_ns;
	int error;

	if ((*digits == ',' || *digits == '_') && is_digit(digits[1]))
		return refuse_separated(r, digits);
	error = read_number(r, &f);
	if (error != 0)
		return error;
	after = r->at;
	r->limit.count = f.num;
	r->limit.whole = f.num / f.den + (f.num % f.den != 0);
	skip_blanks(r);
	if (*r->at == '\0' && r->limit.count == 0) {
		r->limit.kind = BLOCK;
		return 0;
	}
	if (is_one_of(r->at, limit_word_len(r->at), nouns)) {
		r->at += limit_word_len(r->at);
		skip_blanks(r);
	}
	if (skip_word(r, "at")) {
		r->at = f.den != 1 ? begin : r->at;
		return f.den != 1 ? refuse_part(r, 0) : read_places(r);
	}
	if (*r->at == '/')
		r->at++;
	else if (!skip_word(r, "per"))
		return refuse_after_count(r, after);
	skip_blanks(r);
	error = read_duration(r, 1, &period_ns);
	if (error == 0 && fraction_rate(f, period_ns, &r->limit.count, &r->limit.period_ns) != 0)
		error = refuse_rate(r, begin, f, period_ns);
	return error != 0 ? error : read_options(r);
}

static int read_limit(struct reader *r)
{
	const char *meant;
	size_t len;

	skip_blanks(r);
	if (is_digit(*r->at)) {
		int error = read_numbered(r);

		if (error == 0 && r->limit.count == 0)
			r->limit.kind = BLOCK;
		return error;
	}
	len = strcspn(r->at, BLANKS);
	meant = meant_by(limits, r->at, len);
	if (meant != NULL && r->at[len] == '\0')
		return suggest(r, r->at, "not a limit", "%s", meant);
	if (*r->at == '-' || *r->at == '+')
		return suggest(r, r->at, "a number has no sign", "%s", r->at + 1);
	if (skip_word(r, "auto"))
		return read_auto(r);
	if (skip_word(r, "block"))
		r->limit.kind = BLOCK;
	else if (skip_word(r, "unlimited") || skip_word(r, "off"))
		r->limit.kind = UNLIMITED;
	else
		return refuse_all(r);
	return read_end(r, "nothing");
}

/* ---- From a limit to a rule ---- */

/* What the algorithm has not must not be asked for. Returns how to correct it, or NULL. */
static const char *unfit(const struct limit *limit, const struct traits *traits)
{
	if (limit->kind == BLOCK || limit->kind == UNLIMITED)
		return NULL;
	if ((limit->kind == PLACES) != traits->is_places)
		return traits->is_places ? "places are meant: must be such as \"20 at once\""
		                         : "this algorithm has a rate, not places: must be such as 5/minute";
	if (limit->burst != 0 && !traits_has_burst(traits))
		return "this algorithm has no burst";
	if (limit->zone[0] != '\0' && (traits->sets & SETS_ZONE) == 0)
		return "this algorithm has no calendar: only a counter has";
	if (limit->window && !traits->is_window)
		return "this algorithm is not a window";
	if (limit->strict && !traits->strict_halves && !traits->is_window)
		return "this algorithm is not strict: leave the word out";
	return NULL;
}

/*
 * A rule that its mode decides has numbers too: such as every algorithm accepts, and the largest
 * there are.
 */
static void fill_by_mode(struct limit *limit, struct shmlimit_rule *rule)
{
	int most = limit->kind == UNLIMITED && rule->algorithm == SHMLIMIT_FUNNEL;

	rule->mode = limit->kind == BLOCK ? SHMLIMIT_BLOCK : SHMLIMIT_OFF;
	*limit = (struct limit){ .kind = RATE, .count = 1, .whole = 1, .period_ns = SECOND };
	if (most) {
		limit->count = SECOND;
		limit->burst = SHMLIMIT_CAPACITY_MAX;
	}
}

static void fill_rule(struct limit limit, struct shmlimit_rule *rule)
{
	const struct traits *traits = traits_of(rule->algorithm);

	rule->mode = SHMLIMIT_ENFORCE;
	rule->flags &= ~(uint32_t)SHMLIMIT_RULE_CUT_OFF;
	if (limit.cut_off)
		rule->flags |= SHMLIMIT_RULE_CUT_OFF;
	rule->law = limit.law;
	rule->least = limit.least;
	if (limit.kind == BLOCK || limit.kind == UNLIMITED)
		fill_by_mode(&limit, rule);
	rule->capacity = limit.burst != 0 ? limit.burst : traits_has_burst(traits) ? limit.whole : limit.count;
	rule->refill = limit.count;
	rule->period_ns = limit.period_ns;
	memcpy(rule->zone, limit.zone, sizeof(rule->zone));
	memset(rule->zone_offsets, 0, sizeof(rule->zone_offsets));
	if (limit.strict && traits->strict_halves)
		strict_rule(limit.count, limit.period_ns, rule);
	if (traits->sets & SETS_WARMUP)
		rule->capacity = 0;
	if (traits->counts_capacity)
		rule->refill = 0;
}

/* The algorithm of which alone a limit can be that has such a word; else FUNNEL. */
static uint32_t algorithm_of_word(const struct limit *limit)
{
	for (uint32_t i = 0; i < ALGORITHMS; i++)
		if (limit->places            ? traits_of(i)->is_places
		    : limit->zone[0] != '\0' ? (traits_of(i)->sets & SETS_ZONE) != 0
		                             : limit->window && traits_of(i)->is_window)
			return i;
	return SHMLIMIT_FUNNEL;
}

int limit_parse(const char *text, struct shmlimit_rule *rule, struct shmlimit_problem *wrong)
{
	struct reader r = { .text = text, .at = text, .wrong = wrong };
	uint32_t algorithm = rule->algorithm;
	int error = read_limit(&r);
	const char *fault;

	if (error != 0)
		return error;
	if (algorithm == SHMLIMIT_FUNNEL)
		algorithm = algorithm_of_word(&r.limit);
	fault = unfit(&r.limit, traits_of(algorithm));
	if (fault != NULL)
		return refuse(&r, text, "%s", fault);
	rule->algorithm = algorithm;
	fill_rule(r.limit, rule);
	return 0;
}

/* ---- From a rule to a text ---- */

const char *rate_text(char *text, uint64_t count, uint64_t period_ns)
{
	char period[DURATION_TEXT_MAX];

	duration_text(period, period_ns);
	snprintf(text, SHMLIMIT_RULE_TEXT_MAX, "%" PRIu64 "/%.40s", count,
	         period + (period[0] == '1' && strpbrk(period + 1, "0123456789.") == NULL));
	return text;
}

void limit_text(const struct shmlimit_rule *rule, char text[SHMLIMIT_RULE_TEXT_MAX])
{
	const struct traits *traits = traits_of(rule->algorithm);
	uint64_t count = rule->refill != 0 ? rule->refill : rule->capacity;
	char period[DURATION_TEXT_MAX];
	size_t len;

	if (rule->mode == SHMLIMIT_BLOCK || rule->mode == SHMLIMIT_OFF) {
		strcpy(text, rule->mode == SHMLIMIT_BLOCK ? "block" : "unlimited");
		return;
	}
	if (traits->is_places) {
		int cut_off = (rule->flags & SHMLIMIT_RULE_CUT_OFF) != 0;
		char found[24] = "", law[16] = "";

		if (rule->law != 0)
			snprintf(found, sizeof(found), "auto %" PRIu32 " to ", rule->least);
		if (rule->law > SHMLIMIT_LAW_VEGAS && rule->law <= SHMLIMIT_LAW_AIMD)
			snprintf(law, sizeof(law), " by %s", limit_laws[rule->law]);
		snprintf(text, SHMLIMIT_RULE_TEXT_MAX, "%s%" PRIu64 " at once%s %s %.30s%s", found, rule->capacity, law,
		         cut_off ? "at most" : "for", duration_text(period, rule->period_ns), cut_off ? " each" : "");
		return;
	}
	if (rule->zone[0] != '\0') {
		const char *name = calendar_name(rule->period_ns);

		snprintf(text, SHMLIMIT_RULE_TEXT_MAX, "%" PRIu64 "/%s in %.*s", count, name != NULL ? name : "day",
		         SHMLIMIT_ZONE_MAX, rule->zone);
		return;
	}
	len = strlen(rate_text(text, count, rule->period_ns));
	if (traits->is_window)
		strcpy(text + len, " window");
	else if (rule->capacity != count && traits_has_burst(traits))
		snprintf(text + len, SHMLIMIT_RULE_TEXT_MAX - len, " burst %" PRIu64, rule->capacity);
}
