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
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char *end = to + 1, *at;

	value = clamp(value);
	for (uint64_t power = 10; power <= value; power *= 10)
		end++;
	*end = '\0';
	at = end;
	for (; at - to >= 2; value /= 100)
		at = (char *)memcpy(at - 2, &pairs[2 * (value % 100)], 2);
	if (at > to)
		*to = (char)('0' + value);
	return end;
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
	unsigned outside = 0;
	size_t length;

	for (length = 0; name[length] != '\0'; length++) {
		if (length == SHMLIMIT_RULE_NAME_MAX)
			return -ENAMETOOLONG;
		outside |= (unsigned char)(name[length] - 0x20) > 0x7e - 0x20;
	}
	return outside || length == 0 ? -EILSEQ : 0;
}

/* The fields of a policy of this name. */
static void put_fields(const char *name, const struct shmlimit_rule *rule, const struct shmlimit_result *r,
                       uint64_t t_s, struct shmlimit_fields *out)
{
	char *policy = put_string(out->policy, name);
	size_t length = (size_t)(policy - out->policy);
	char *limit = (char *)memcpy(out->limit, out->policy, length) + length;

	/*
	 * WHY no time: a place is free when its holder leaves, and that time is not known; its
	 * period is only the longest wait.
	 */
	if (rule->algorithm == SHMLIMIT_HOLD) {
		memcpy(put_parameter(policy, 'q', r->limit), AT_ONCE, sizeof(AT_ONCE));
		put_parameter(limit, 'r', r->remaining);
		return;
	}
	/* WHY no times: a rule that blocks gives out nothing in any time. */
	if (rule->mode == SHMLIMIT_BLOCK) {
		put_parameter(policy, 'q', 0);
		put_parameter(limit, 'r', 0);
		return;
	}
	policy = put_parameter(policy, 'q', r->limit);
	/* WHY no w: it is the call that brought a period, not the rule. */
	if (rule->refill != 0 || (rule->algorithm != SHMLIMIT_GCRA && rule->algorithm != SHMLIMIT_COUNTER))
		put_parameter(policy, 'w', window_s(rule, r->limit));
	put_parameter(put_parameter(limit, 'r', r->remaining), 't', t_s);
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
	t_s = seconds(r->reset_after_ns);
	if (known.algorithm != SHMLIMIT_HOLD && answer == SHMLIMIT_DENIED && r->retry_after_ns != UINT64_MAX) {
		t_s = seconds(r->retry_after_ns);
		t_s = t_s > 0 ? t_s : 1;
		put_number(out->retry_after, t_s);
	}
	put_fields(name, &known, r, t_s, out);
	return 0;
}
