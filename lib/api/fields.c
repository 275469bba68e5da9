/*
 * fields: an answer in the words of HTTP. Pure.
 *
 * The fields are those of draft-ietf-httpapi-ratelimit-headers-10: lists of
 * structured fields (RFC 9651), of which one rule gives one item.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "shmlimit.h"
#include "sized.h"

#define NS_PER_S UINT64_C(1000000000)

/* The largest Integer of a structured field: 15 digits. */
#define INTEGER_DIGITS 15
#define INTEGER_MAX UINT64_C(999999999999999)

/* The draft's unit of a quota that says how many at once. */
#define AT_ONCE ";qu=\"concurrent-requests\""

/*
 * Of SHMLIMIT_FIELD_MAX: quotes, a name with every byte escaped, a parameter like ";q=1", the unit,
 * and the NUL.
 */
#define LONGEST (2 + 2 * SHMLIMIT_RULE_NAME_MAX + 3 + INTEGER_DIGITS + sizeof(AT_ONCE))
_Static_assert(LONGEST <= SHMLIMIT_FIELD_MAX, "every field has room");

/* Where the part ends that the first release had: what a caller must know of the structure. */
#define KNOWN_MIN (offsetof(struct shmlimit_fields, retry_after) + sizeof(((struct shmlimit_fields *)0)->retry_after))

static uint64_t clamp(uint64_t value)
{
	return value < INTEGER_MAX ? value : INTEGER_MAX;
}

static uint64_t seconds(uint64_t ns)
{
	return ns / NS_PER_S + (ns % NS_PER_S != 0);
}

/*
 * How long it takes to give out `quota` tokens at the rule's rate; at least a second, since none is
 * no window.
 */
static uint64_t window_s(const struct shmlimit_rule *rule, uint64_t quota)
{
	uint64_t ns, s;

	/* A rule that gives out its capacity once a period need not say so. */
	if (rule->refill == 0) {
		ns = rule->period_ns;
	} else if (!__builtin_mul_overflow(quota, rule->period_ns, &ns)) {
		ns = ns / rule->refill + (ns % rule->refill != 0);
	} else {
		unsigned __int128 product = (unsigned __int128)quota * rule->period_ns + (rule->refill - 1);

		if (product / rule->refill > UINT64_MAX)
			return INTEGER_MAX;
		ns = (uint64_t)(product / rule->refill);
	}
	s = seconds(ns);
	return s > 0 ? s : 1;
}

/*
 * WHY NOT snprintf(): it may not be called in a signal handler, and a server
 * that writes two fields for each of its answers notices the difference.
 */
static char *put_number(char *to, uint64_t value)
{
	char digits[INTEGER_DIGITS];
	size_t n = 0;

	for (value = clamp(value); n == 0 || value > 0; value /= 10)
		digits[n++] = (char)('0' + value % 10);
	while (n > 0)
		*to++ = digits[--n];
	*to = '\0';
	return to;
}

/* A parameter whose name is one letter. */
static char *put_parameter(char *to, char name, uint64_t value)
{
	*to++ = ';';
	*to++ = name;
	*to++ = '=';
	return put_number(to, value);
}

/* A String; of a checked name. */
static char *put_string(char *to, const char *text)
{
	*to++ = '"';
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to++ = '"';
	return to;
}

/* Whatever a String may hold, since a policy need not go by its rule's name. */
static int check_name(const char *name)
{
	size_t length = strnlen(name, SHMLIMIT_RULE_NAME_MAX + 1);

	if (length > SHMLIMIT_RULE_NAME_MAX)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < length; i++)
		if (name[i] < 0x20 || name[i] > 0x7e)
			return -EILSEQ;
	return length == 0 ? -EILSEQ : 0;
}

EXPORT int shmlimit_fields(const char *name, const struct shmlimit_rule *rule, int answer,
                           const struct shmlimit_result *r, struct shmlimit_fields *out)
{
	struct shmlimit_rule known;
	uint64_t t_s;
	int error;

	if (name == NULL || r == NULL || out == NULL || out->struct_size < KNOWN_MIN ||
	    (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED))
		return -EINVAL;
	error = check_name(name);
	if (error == 0)
		error = sized_in(&known, rule, sizeof(known));
	if (error == 0)
		error = sized_rest(out, sizeof(*out));
	if (error != 0)
		return error;
	out->reserved32 = 0;
	out->retry_after[0] = '\0';
	/*
	 * WHY no time: a place is free when its holder leaves, and that time is not known; its
	 * period is only the longest wait.
	 */
	if (known.algorithm == SHMLIMIT_HOLD) {
		memcpy(put_parameter(put_string(out->policy, name), 'q', r->limit), AT_ONCE, sizeof(AT_ONCE));
		put_parameter(put_string(out->limit, name), 'r', r->remaining);
		return 0;
	}
	t_s = seconds(r->reset_after_ns);
	if (answer == SHMLIMIT_DENIED && r->retry_after_ns != UINT64_MAX) {
		t_s = seconds(r->retry_after_ns);
		t_s = t_s > 0 ? t_s : 1;
		put_number(out->retry_after, t_s);
	}
	/* WHY no times: a rule that blocks gives out nothing in any time. */
	if (known.mode == SHMLIMIT_BLOCK) {
		put_parameter(put_string(out->policy, name), 'q', 0);
		put_parameter(put_string(out->limit, name), 'r', 0);
		return 0;
	}
	/* WHY no w: it is the call that brought a period, not the rule. */
	if (known.refill == 0 && (known.algorithm == SHMLIMIT_GCRA || known.algorithm == SHMLIMIT_COUNTER))
		put_parameter(put_string(out->policy, name), 'q', r->limit);
	else
		put_parameter(put_parameter(put_string(out->policy, name), 'q', r->limit), 'w',
		              window_s(&known, r->limit));
	put_parameter(put_parameter(put_string(out->limit, name), 'r', r->remaining), 't', t_s);
	return 0;
}
