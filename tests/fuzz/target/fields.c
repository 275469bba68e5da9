/*
 * fields: whatever a rule is called and its answer says, header fields are
 * structured fields of printable ASCII, whole and in their place.
 *
 *	input  [ answer, 1 ] [ numbers: see input_any() ] [ name ... ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"
#include "shmlimit.h"

/* An Integer of 1 to 15 digits. Returns what follows. */
static const char *skip_integer(const char *at)
{
	size_t digits = strspn(at, "0123456789");

	law(digits >= 1 && digits <= 15 && (digits == 1 || *at != '0'), "no integer: %s", at);
	return at + digits;
}

/* The name, quoted, then two parameters of these letters. */
static void check_item(const char *field, const char *name, const char letters[2])
{
	const char *at = field;

	law(strnlen(field, SHMLIMIT_FIELD_MAX) < SHMLIMIT_FIELD_MAX, "a field without an end");
	law(*at++ == '"', "no string: %s", field);
	for (; *name != '\0'; name++) {
		if (*name == '"' || *name == '\\')
			law(*at++ == '\\', "not escaped: %s", field);
		law(*at++ == *name, "another name: %s", field);
	}
	law(*at++ == '"', "a string without an end: %s", field);
	for (int i = 0; i < 2; i++) {
		law(at[0] == ';' && at[1] == letters[i] && at[2] == '=', "no parameter %c: %s", letters[i], field);
		at = skip_integer(at + 3);
	}
	law(*at == '\0', "more than an item: %s", field);
}

static int is_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return 0;
	return len >= 1 && len <= SHMLIMIT_RULE_NAME_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	int answer = (int)input_number(&in, 1) % 4 - 1, error;
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_fields fields = { .struct_size = sizeof(fields) };
	struct shmlimit_result r;
	char *name;

	rule.capacity = input_any(&in);
	rule.refill = input_any(&in);
	rule.period_ns = input_any(&in);
	r.limit = input_any(&in);
	r.remaining = input_any(&in);
	r.wait_ns = 0;
	r.retry_after_ns = input_any(&in);
	r.reset_after_ns = input_any(&in);
	name = strndup((const char *)in.at, in.left);
	error = shmlimit_fields(name, &rule, answer, &r, &fields);
	if (answer < 0 || answer > 1) {
		law(error == -EINVAL, "an answer that there is not: %d", error);
	} else if (!is_name(name)) {
		law(error == -EILSEQ || error == -ENAMETOOLONG, "a bad name: %d", error);
	} else {
		law(error == 0, "%d", error);
		check_item(fields.policy, name, "qw");
		check_item(fields.limit, name, "rt");
		if (answer == SHMLIMIT_DENIED && r.retry_after_ns != UINT64_MAX)
			law(*skip_integer(fields.retry_after) == '\0' && fields.retry_after[0] != '0', "Retry-After");
		else
			law(fields.retry_after[0] == '\0', "Retry-After: %s", fields.retry_after);
	}
	free(name);
	return 0;
}
