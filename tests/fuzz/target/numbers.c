/*
 * numbers: whatever is typed for a number, a duration or a rate is that
 * or is not; what it is comes back the same when it is written and read again.
 *
 *	input  [ text ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"
#include "duration.h"
#include "field.h"
#include "fuzz.h"
#include "number_text.h"
#include "rate_text.h"

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

static void check_rate(const char *text)
{
	char written[TEXT_LEN];
	uint64_t count, period_ns, count_again, period_again;

	if (rate_parse("--rate", text, &count, &period_ns) != STATUS_OK)
		return;
	law(count > 0 && period_ns > 0, "%s: %" PRIu64 " in %" PRIu64, text, count, period_ns);
	rate_text(written, count, period_ns);
	law(rate_parse("--rate", written, &count_again, &period_again) == STATUS_OK && count_again == count &&
	            period_again == period_ns,
	    "%s: written as %s", text, written);
}

/* What a rule is given, in words; of all algorithms. */
static void check_fields(const char *text)
{
	for (int field = 0; field < FIELDS; field++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) }, again = rule;
		char written[TEXT_LEN];
		const char *back;

		if (field_parse("r", field, text, &rule) != STATUS_OK)
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
	check_rate(text);
	check_fields(text);
	free(text);
	return 0;
}
