/*
 * numbers: whatever is typed for a number, a duration or a rate is that
 * or is not; what it is comes back the same when it is written and read again.
 *
 *	input  [ text; its first eight bytes are a double, too ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"
#include "field.h"
#include "fuzz.h"
#include "number_text.h"
#include "value_parse.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stderr = fopen("/dev/null", "w");
	return 0;
}

static void check_number(const char *text)
{
	char written[TEXT_LEN];
	uint64_t value, again;

	if (number_parse("--n", text, 3, UINT64_MAX - 3, &value) == STATUS_OK)
		law(value >= 3 && value <= UINT64_MAX - 3, "%s: %" PRIu64, text, value);
	if (number_parse("--n", text, 0, UINT64_MAX, &value) != STATUS_OK)
		return;
	number_text(written, value);
	law(number_parse("--n", written, 0, UINT64_MAX, &again) == STATUS_OK && again == value, "%s: written as %s",
	    text, written);
	snprintf(written, sizeof(written), "%" PRIu64, value);
	law(number_parse("--n", written, 0, UINT64_MAX, &again) == STATUS_OK && again == value, "%s: not %s", text,
	    written);
	law(strlen(size_text(written, value)) < TEXT_LEN, "%s", text);
}

static void check_duration(const char *text)
{
	char written[TEXT_LEN];
	uint64_t ns, again;

	if (duration_parse("--d", text, &ns) != STATUS_OK)
		return;
	law(ns != UINT64_MAX, "%s: never", text);
	duration_text(written, ns);
	law(strlen(written) < TEXT_LEN, "%s", text);
	law(duration_parse("--d", written, &again) == STATUS_OK && again == ns, "%s: written as %s", text, written);
	law(strlen(resolution_text(written, ns)) < TEXT_LEN, "%s", text);
}

/* A limit prints as a text that reads the same; what is refused has a reason, and the limit that was meant is one. */
static void check_limit(const char *text, uint32_t algorithm)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = algorithm }, again = rule;
	struct shmlimit_problem wrong = { 0 };
	char written[SHMLIMIT_RULE_TEXT_MAX];
	char *meant;

	if (shmlimit_rule_parse(text, &rule, &wrong) == 0) {
		law(rule.period_ns > 0 && (rule.capacity > 0 || algorithm == SHMLIMIT_WARMUP), "%s is no limit", text);
		law(shmlimit_rule_text(&rule, written) == 0, "%s has no text", text);
		again.algorithm = rule.algorithm;
		law(shmlimit_rule_parse(written, &again, NULL) == 0 && memcmp(&again, &rule, sizeof(rule)) == 0,
		    "%s: written as %s", text, written);
		return;
	}
	law(wrong.offset <= strlen(text), "%s: wrong at %" PRIu64, text, wrong.offset);
	law(wrong.text[0] != '\0' && strlen(wrong.text) < sizeof(wrong.text) - 1, "%s: what is wrong is cut", text);
	meant = strstr(wrong.text, "did you mean \"");
	if (meant == NULL)
		return;
	meant += strlen("did you mean \"");
	law(strrchr(meant, '"') != NULL, "%s: %s", text, wrong.text);
	*strrchr(meant, '"') = '\0';
	rule = (struct shmlimit_rule){ .struct_size = sizeof(rule) };
	law(shmlimit_rule_parse(meant, &rule, NULL) == 0, "%s: meant as %s", text, meant);
}

/* Any double is a rate or it is not; one that is, is that rate except for one part in 2^53. */
static void check_double(const uint8_t *data, size_t size)
{
	static const uint64_t units[] = { 1, 1000000000, 60000000000, 86400000000000, 31536000000000000 };
	uint64_t refill = 0, period_ns = 0;
	double rate;

	if (size < sizeof(rate))
		return;
	memcpy(&rate, data, sizeof(rate));
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (shmlimit_rate_from_double(rate, units[i], &refill, &period_ns) != 0)
			continue;
		law(refill > 0 && period_ns > 0 && period_ns <= (uint64_t)1 << 60, "%a: %" PRIu64 "/%" PRIu64, rate,
		    refill, period_ns);
		law(__builtin_fabsl((long double)refill / (long double)period_ns * (long double)units[i] -
		                    (long double)rate) <= (long double)rate * 0x1.01p-53L,
		    "%a: %" PRIu64 "/%" PRIu64, rate, refill, period_ns);
	}
}

/* What a rule is given, in words; of all algorithms. */
static void check_fields(const char *text)
{
	for (int field = 0; field < FIELDS; field++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) }, again = rule;
		char written[TEXT_LEN];
		const char *back;

		if (field == FIELD_RATE || field_parse("r", field, text, &rule) != STATUS_OK)
			continue;
		back = field_text(written, field, &rule);
		law(field_parse("r", field, back, &again) == STATUS_OK && memcmp(&again, &rule, sizeof(rule)) == 0,
		    "%s %s: written as %s", field_names[field], text, back);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	check_number(text);
	check_duration(text);
	for (uint32_t algorithm = 0; algorithm <= SHMLIMIT_GCRA; algorithm++)
		check_limit(text, algorithm);
	check_fields(text);
	check_double(data, size);
	free(text);
	return 0;
}
