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
#include "field_text.h"
#include "sized.h"
#include "traits.h"

/* The draft's unit of a quota that says how many at once. */
#define AT_ONCE ";qu=\"concurrent-requests\""

/*
 * Of SHMLIMIT_FIELD_MAX: quotes, a name with every byte escaped, a parameter like ";q=1", the unit,
 * and the NUL.
 */
#define LONGEST (2 + 2 * SHMLIMIT_RULE_NAME_MAX + 3 + FIELD_INTEGER_DIGITS + sizeof(AT_ONCE))
_Static_assert(sizeof(((struct shmlimit_fields *)0)->retry_after) == FIELD_RETRY_AFTER_MAX &&
                       FIELD_RETRY_AFTER_MAX > FIELD_INTEGER_DIGITS,
               "Retry-After has room");
_Static_assert(LONGEST <= SHMLIMIT_FIELD_MAX, "every field has room");

/* Where the part ends that the first release had: what a caller must know of the structure. */
#define KNOWN_MIN (offsetof(struct shmlimit_fields, retry_after) + sizeof(((struct shmlimit_fields *)0)->retry_after))

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
			return FIELD_INTEGER_MAX;
		ns = (uint64_t)(product / rule->refill);
	}
	s = field_seconds(ns);
	return s > 0 ? s : 1;
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
	const struct traits *traits = traits_of(rule->algorithm);
	char *policy = put_string(out->policy, name);
	size_t length = (size_t)(policy - out->policy);
	char *limit = (char *)memcpy(out->limit, out->policy, length) + length;

	/*
	 * WHY no time: a place is free when its holder leaves, and that time is not known; its
	 * period is only the longest wait.
	 */
	if (traits->is_places) {
		memcpy(field_parameter_put(policy, 'q', r->limit), AT_ONCE, sizeof(AT_ONCE));
		field_limit_put(limit, r->remaining, 0, 0);
		return;
	}
	/* WHY no times: a rule that blocks gives out nothing in any time. */
	if (rule->mode == SHMLIMIT_BLOCK) {
		field_parameter_put(policy, 'q', 0);
		field_limit_put(limit, 0, 0, 0);
		return;
	}
	policy = field_parameter_put(policy, 'q', r->limit);
	/* WHY no w: it is the call that brought a period, not the rule. */
	if (rule->refill != 0 || !(traits->takes_times || traits->takes_limits))
		field_parameter_put(policy, 'w', window_s(rule, r->limit));
	field_limit_put(limit, r->remaining, 1, t_s);
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
	t_s = field_wait_put(out->retry_after, !traits_of(known.algorithm)->is_places, answer, r);
	put_fields(name, &known, r, t_s, out);
	return 0;
}
