/*
 * spec: see spec.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "global_library.h"
#include "number.h"
#include "scheme.h"
#include "shmlimit_global.h"
#include "spec.h"
#include "traits.h"

#define NTH_MAX 1000 /* addresses of a list */
#define DELAY_MAX_NS UINT64_C(3600000000000)
#define SHARE_MAX UINT32_C(1000000) /* more bounds nothing: a rule has fewer places */

/*
 * A word of a spec. read() stores its value in *spec or *limit. It returns NULL, or how to correct
 * the word.
 */
struct option {
	const char *name; /* what the word begins with; without a '=' it is the whole word */
	const char *(*read)(struct spec *spec, struct spec_limit *limit, const char *value);
};

static const char *read_segment(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->segment = value;
	return shmlimit_check_names(value, NULL) == 0
	               ? NULL
	               : "must be a segment's name: 1 to 239 bytes, no / or control characters, not a dot first";
}

static const char *read_fail(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->fail_open = strcmp(value, "open") == 0;
	return spec->fail_open || strcmp(value, "closed") == 0 ? NULL : "must be fail=open or fail=closed";
}

static const char *read_owner(struct spec *spec, struct spec_limit *limit, const char *value)
{
	const struct passwd *found = getpwnam(value);

	(void)limit;
	if (found == NULL)
		return "must be owner=USER, a user of this host";
	spec->options.owner = found->pw_uid;
	return NULL;
}

static const char *read_create(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->create = strcmp(value, "yes") == 0;
	return spec->create || strcmp(value, "no") == 0 ? NULL : "must be create=yes or create=no";
}

static const char *read_mode(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint32_t mode = 0;
	const char *at;

	(void)limit;
	for (at = value; *at >= '0' && *at <= '7' && mode <= 0777; at++)
		mode = mode * 8 + (uint32_t)(*at - '0');
	if (at == value || *at != '\0' || mode > 0777 || (mode & 0600) != 0600)
		return "must be mode=MODE, octal, up to 0777; the owner's read and write bits (0600) are required";
	spec->options.mode = mode;
	return NULL;
}

static const char *read_group(struct spec *spec, struct spec_limit *limit, const char *value)
{
	const struct group *found = getgrnam(value);

	(void)limit;
	if (found == NULL)
		return "must be group=GROUP, a group of this host";
	spec->options.flags |= SHMLIMIT_OPTION_GROUP;
	spec->options.gid = found->gr_gid;
	return NULL;
}

static const char *read_slots(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	return number(value, SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, '\0', &spec->options.slots) != NULL
	               ? NULL
	               : "must be slots=N, 16 to 68719476736";
}

static const char *read_x_fields(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	(void)value;
	spec->x_fields = 1;
	return NULL;
}

static const char *read_backend(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	if (strcmp(value, "-") == 0)
		value = getenv("SHMLIMIT_BACKEND");
	if (value == NULL)
		return "needs SHMLIMIT_BACKEND in the environment";
	if (scheme_of(value) == NULL)
		return "must be backend=- or backend=URL; a URL begins with " SCHEME_NAMES;
	spec->backend = value;
	return global_library_check_url(value, &spec->problem) != 0 ? spec->problem.text : NULL;
}

static const char *read_backend_prefix(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->backend_prefix = value;
	return value[0] != '\0' && strlen(value) <= SHMLIMIT_GLOBAL_PREFIX_MAX && strchr(value, '{') == NULL
	               ? NULL
	               : "must be backend_prefix=TEXT, 1 to 64 bytes without {";
}

static const char *read_deadline(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint64_t n = 0;
	const char *unit = number(value, 100, 10000000, 'u', &n);

	(void)limit;
	if (unit == NULL) {
		unit = number(value, 1, 10000, 'm', &n);
		n *= 1000;
	}
	spec->deadline_us = (unsigned)n;
	return unit != NULL && strcmp(unit, "s") == 0 ? NULL : "must be deadline=Nms or deadline=Nus, 100us to 10000ms";
}

static const char *read_local_share(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint64_t n = 0;
	const char *end = number(value, 1, 1000, '\0', &n);

	(void)limit;
	spec->local_milli = (unsigned)n;
	return end != NULL ? NULL : "must be local_share=N, thousandths, 1 to 1000";
}

static const char *read_proxy_warning(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->proxy_quiet = strcmp(value, "no") == 0;
	return spec->proxy_quiet ? NULL : "must be proxy_warning=no";
}

static const char *read_agent(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->agent = strcmp(value, "thread") == 0 ? SPEC_AGENT_THREAD : SPEC_AGENT_NO;
	return spec->agent == SPEC_AGENT_THREAD || strcmp(value, "no") == 0 ? NULL : "must be agent=thread or agent=no";
}

static const char *read_wait(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	spec->no_wait = 1;
	return strcmp(value, "0") == 0 ? NULL : "must be wait=0; without it a request waits up to the deadline";
}

static const char *read_cost(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	return number(value, 1, UINT64_MAX, '\0', &limit->cost) != NULL ? NULL : "must be cost=N, 1 or more";
}

static const char *read_estimate(struct spec *spec, struct spec_limit *limit, const char *value)
{
	limit->estimated = 1;
	return read_cost(spec, limit, value) == NULL ? NULL : "must be estimate=N, 1 or more";
}

static const char *read_prefix(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint64_t v4 = 0, v6 = 0;
	const char *at = number(value, 0, 32, ',', &v4);

	(void)spec;
	if (at == NULL || number(at, 0, 128, '\0', &v6) == NULL)
		return "must be prefix=V4,V6, at most prefix=32,128";
	limit->by_net = 1;
	limit->prefix_v4 = (unsigned)v4;
	limit->prefix_v6 = (unsigned)v6;
	return NULL;
}

static const char *read_nth(struct spec *spec, struct spec_limit *limit, const char *value)
{
	int from_end = value[0] == '-';
	uint64_t n = 0;
	const char *end = number(value + from_end, 1, NTH_MAX, '\0', &n);

	(void)spec;
	limit->nth = from_end ? -(int)n : (int)n;
	return end != NULL ? NULL : "must be nth=N: 1 is the first address of a list, -1 the last";
}

static const char *read_status(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint64_t n = 0;
	const char *end = number(value, 400, 599, '\0', &n);

	(void)spec;
	limit->status = (uint32_t)n;
	return end != NULL ? NULL : "must be status=N, 400 to 599";
}

static const char *read_fields(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	limit->denied_only = strcmp(value, "denied") == 0;
	return limit->denied_only || strcmp(value, "always") == 0 ? NULL : "must be fields=always or fields=denied";
}

static const char *read_dry_run(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	(void)value;
	limit->dry_run = 1;
	return NULL;
}

static const char *read_peek(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	(void)value;
	limit->peek = 1;
	return NULL;
}

static const char *read_delay(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	return duration_scan(&value, 0, &limit->delay_ns) == 0 && *value == '\0' && limit->delay_ns <= DELAY_MAX_NS
	               ? NULL
	               : "must be delay=TIME, such as 500ms or 2s, 1h at most";
}

static const char *read_charge_max(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	return duration_scan(&value, 0, &limit->charge_max_ns) == 0 && *value == '\0' && limit->charge_max_ns > 0 &&
	                       limit->charge_max_ns <= DEBT_MAX_NS
	               ? NULL
	               : "must be charge_max=TIME, such as 10m or 1d, 366d at most";
}

static const char *read_denials(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	limit->denials = value;
	return shmlimit_check_names(NULL, value) == 0 ? NULL : "must be denials=RULE, a counter's name";
}

static const char *read_jitter(struct spec *spec, struct spec_limit *limit, const char *value)
{
	uint64_t n = 0;
	const char *unit = number(value, 0, 100, '%', &n);

	(void)spec;
	limit->jitter_percent = (uint32_t)n;
	return unit != NULL && *unit == '\0' ? NULL : "must be jitter=N%, 0 to 100";
}

static const char *read_share(struct spec *spec, struct spec_limit *limit, const char *value)
{
	if (spec->limit_count == 0)
		return "must follow a limit's rule=; local_share= is this host's share while the backend is gone";
	return number_thousandths(value, SHARE_MAX, &limit->share) != NULL
	               ? NULL
	               : "must be share=N, such as 4 or 0.5: 0.001 to 1000000 times the places that are free";
}

static const char *read_nodelay(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	(void)value;
	limit->delay_ns = 0;
	return NULL;
}

static const char *read_protected(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	(void)value;
	limit->flags = SHMLIMIT_RULE_PROTECTED;
	return NULL;
}

/* Which algorithms a limit can name. */
static const char *say_algorithms(char *text, size_t size)
{
	size_t length = 0, left = 0;

	for (uint32_t i = 0; i < ALGORITHMS; i++)
		left += traits_of(i)->in_gate != 0;
	for (uint32_t i = 0; i < ALGORITHMS && length < size; i++) {
		if (!traits_of(i)->in_gate)
			continue;
		left--;
		length += (size_t)snprintf(text + length, size - length, "%salgorithm=%s",
		                           length == 0 ? "must be "
		                           : left == 0 ? " or "
		                                       : ", ",
		                           traits_of(i)->name);
	}
	return text;
}

static const char *read_algorithm(struct spec *spec, struct spec_limit *limit, const char *value)
{
	limit->has_algorithm = 1;
	if (traits_find(value, &limit->algorithm) && traits_of(limit->algorithm)->in_gate)
		return NULL;
	limit->algorithm = SHMLIMIT_FUNNEL;
	return say_algorithms(spec->problem.text, sizeof(spec->problem.text));
}

static const char *read_local(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)spec;
	(void)value;
	limit->local = 1;
	return NULL;
}

static const char *read_rate(struct spec *spec, struct spec_limit *limit, const char *value)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	limit->rate = value;
	return shmlimit_rule_parse(value, &rule, &spec->problem) == 0 ? NULL : spec->problem.text;
}

static const char *read_rate_error(struct spec *spec, struct spec_limit *limit, const char *value)
{
	limit->rate_error = (struct shmlimit_limit){ .struct_size = sizeof(limit->rate_error) };
	limit->has_rate_error = 1;
	return shmlimit_limit_parse(value, &limit->rate_error, &spec->problem) == 0 ? NULL : spec->problem.text;
}

/* Returns the place of the rule `name`, which is added if it is new. */
static size_t find_rule(struct spec *spec, const char *name)
{
	size_t i = 0;

	while (i < spec->rule_count && strcmp(spec->rules[i].name, name) != 0)
		i++;
	if (i == spec->rule_count)
		spec->rules[spec->rule_count++].name = name;
	return i;
}

static const char *read_rule(struct spec *spec, struct spec_limit *limit, const char *value)
{
	(void)limit;
	if (shmlimit_check_names(NULL, value) != 0)
		return "must be a rule's name: 1 to 63 letters, digits and . _ : @ + -";
	if (spec->limit_count == SHMLIMIT_GATE_LIMITS_MAX)
		return "must be one of at most 4096 limits";
	spec->limits[spec->limit_count] = spec->defaults;
	spec->limits[spec->limit_count].given = 0;
	spec->limits[spec->limit_count++].rule = find_rule(spec, value);
	return NULL;
}

static const struct option of_limits[] = {
	{ "rule=", read_rule },
	{ "cost=", read_cost },
	{ "prefix=", read_prefix },
	{ "nth=", read_nth },
	{ "status=", read_status },
	{ "fields=", read_fields },
	{ "dry_run", read_dry_run },
	{ "peek", read_peek },
	{ "rate=", read_rate },
	{ "rate_error=", read_rate_error },
	{ "algorithm=", read_algorithm },
	{ "local", read_local },
	{ "protected", read_protected },
	{ "estimate=", read_estimate },
	{ "charge_max=", read_charge_max },
	{ "delay=", read_delay },
	{ "nodelay", read_nodelay },
	{ "denials=", read_denials },
	{ "jitter=", read_jitter },
	{ "share=", read_share },
	{ NULL, NULL },
};

static const struct option of_gates[] = {
	{ "segment=", read_segment },
	{ "fail=", read_fail },
	{ "owner=", read_owner },
	{ "create=", read_create },
	{ "mode=", read_mode },
	{ "group=", read_group },
	{ "slots=", read_slots },
	{ "x_fields", read_x_fields },
	{ "backend_prefix=", read_backend_prefix },
	{ "backend=", read_backend },
	{ "deadline=", read_deadline },
	{ "local_share=", read_local_share },
	{ "agent=", read_agent },
	{ "wait=", read_wait },
	{ "proxy_warning=", read_proxy_warning },
	{ NULL, NULL },
};

/* Returns the option that matches the word, and its value; or NULL. */
static const struct option *find_option(const struct option *options, const char *word, const char **value)
{
	for (; options->name != NULL; options++) {
		*value = number_after(word, options->name);
		if (*value != NULL && (strchr(options->name, '=') != NULL || **value == '\0'))
			return options;
	}
	return NULL;
}

#define WRONG_SIZE sizeof(((struct shmlimit_gate_wrong *)0)->text)
static const char limit_words[] =
	"must be cost=, estimate=, charge_max=, prefix=, nth=, status=, fields=, jitter=, dry_run, peek, delay=, denials=, rate_error=, share=, local, rate=, algorithm=, protected";
_Static_assert(sizeof(limit_words) <= WRONG_SIZE, "all words are listed");

/* Words that a limit cannot have both. */
static const struct {
	const char *one, *other, *wrong;
} contradictions[] = {
	{ "cost=", "estimate=", "must be either cost=, or estimate= and a charge afterwards" },
	{ "delay=", "nodelay", "must be either delay= or nodelay" },
};

/* Is an option among those that are given? */
static int is_given(const struct option *options, uint64_t given, const char *name)
{
	for (size_t i = 0; options[i].name != NULL; i++)
		if ((given & UINT64_C(1) << i) && strcmp(options[i].name, name) == 0)
			return 1;
	return 0;
}

/* Note that the word is given. Returns NULL, or what it contradicts: another, or itself. */
static const char *give(const struct option *options, const struct option *option, uint64_t *given)
{
	if (is_given(options, *given, option->name))
		return "is given twice";
	*given |= UINT64_C(1) << (option - options);
	for (size_t i = 0; i < sizeof(contradictions) / sizeof(contradictions[0]); i++)
		if (is_given(options, *given, contradictions[i].one) &&
		    is_given(options, *given, contradictions[i].other))
			return contradictions[i].wrong;
	return NULL;
}

static const char *read_word(struct spec *spec, const char *word)
{
	struct spec_limit *limit = spec->limit_count == 0 ? &spec->defaults : &spec->limits[spec->limit_count - 1];
	const struct option *options = of_limits;
	uint64_t *given = &limit->given;
	const char *value, *wrong;
	const struct option *option = find_option(options, word, &value);

	if (option == NULL && spec->limit_count == 0) {
		options = of_gates;
		given = &spec->given;
		option = find_option(options, word, &value);
	}
	if (option != NULL) {
		wrong = option->read == read_rule ? NULL : give(options, option, given);
		return wrong != NULL ? wrong : option->read(spec, limit, value);
	}
	return spec->limit_count > 0
	               ? limit_words
	               : "must be fail=open or fail=closed, owner=USER, backend=URL, deadline=Nms, wait=0, local_share=N, "
	                 "agent=no, proxy_warning=no, x_fields or create=yes, with mode=, group=, slots=";
}

/*
 * Copy the word at *from to *to, without its quotes and backslashes, and NUL-terminate it. Both
 * pointers are moved behind it. Returns NULL, or how to correct the word.
 */
static const char *copy_word(const char **from, char **to)
{
	int quoted = 0;

	for (; **from != '\0' && (quoted || strchr(" \t\r\n", **from) == NULL); (*from)++) {
		if (**from == '"') {
			quoted = !quoted;
			continue;
		}
		if (**from == '\\' && (*from)[1] != '\0')
			(*from)++;
		*(*to)++ = **from;
	}
	*(*to)++ = '\0';
	return quoted ? "must end with a quotation mark" : NULL;
}

static const char *skip_to_word(const char *at)
{
	at += strspn(at, " \t\r\n");
	while (*at == '#') {
		at += strcspn(at, "\n");
		at += strspn(at, " \t\r\n");
	}
	return at;
}

/*
 * A text that does not fit ends with dots. It may repeat what was given, such as a URL, and goes to
 * logs and terminals: it has no byte that these act on.
 */
static int say_wrong(struct shmlimit_gate_wrong *wrong, size_t offset, size_t length, const char *text)
{
	wrong->offset = (uint32_t)offset;
	wrong->length = (uint32_t)length;
	if (snprintf(wrong->text, sizeof(wrong->text), "%s", text) >= (int)sizeof(wrong->text))
		strcpy(wrong->text + sizeof(wrong->text) - sizeof("..."), "...");
	for (char *c = wrong->text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -EINVAL;
}

static int read_words(struct spec *spec, const char *text, struct shmlimit_gate_wrong *wrong)
{
	char *to = spec->words;

	for (const char *at = skip_to_word(text); *at != '\0'; at = skip_to_word(at)) {
		const char *begin = at, *word = to, *right = copy_word(&at, &to);

		size_t limits = spec->limit_count;

		if (right == NULL)
			right = read_word(spec, word);
		if (spec->limit_count > limits)
			spec->limits[limits].offset = (size_t)(begin - text);
		if (right != NULL)
			return say_wrong(wrong, (size_t)(begin - text), (size_t)(at - begin), right);
	}
	return 0;
}

/*
 * With backend= a rate is one of all hosts, a LEASE rule, unless the limit says `local`. WHY refuse
 * what cannot be shared, rather than limit each host by itself: N hosts would admit N times the
 * limit. Returns NULL, or how to correct the rate, which has its algorithm.
 */
static const char *rate_of_hosts(const struct spec *spec, const struct spec_limit *limit, struct shmlimit_rule *rate)
{
	const struct traits *traits = traits_of(rate->algorithm);

	if (spec->backend == NULL)
		return traits->is_shared ? "is shared by hosts, which needs backend=URL" : NULL;
	if (limit->local)
		return traits->is_shared ? "is shared by hosts, so it cannot be local" : NULL;
	if (traits->is_places)
		return "counts on one host: with backend= it needs the word local";
	if (rate->zone[0] != '\0')
		return "counts by a calendar on one host: with backend= it needs the word local";
	if (traits->takes_limits)
		return "is for limits that come with requests, which hosts cannot share: with backend= it needs the word local";
	if (limit->has_algorithm && !traits->is_shared)
		return "needs algorithm=lease, or the word local: with backend= all hosts share it";
	if (limit->flags != 0)
		return "is shared by hosts, so it cannot be protected, except with the word local";
	rate->algorithm = SHMLIMIT_LEASE;
	return NULL;
}

/* Is it a rule without a limit of its own, since requests bring theirs? */
static int has_no_rate(const struct spec_rule *rule)
{
	return traits_of(rule->rate.algorithm)->takes_limits && rule->rate.capacity == 0;
}

/* Returns NULL, or how to correct a rate whose rule is charged afterwards. */
static const char *estimate_rate(const struct spec_rule *rule, struct shmlimit_rule *rate)
{
	uint64_t debt_ns = rule->charge_max_ns;

	if (!rule->estimated)
		return NULL;
	if (traits_of(rate->algorithm)->is_shared)
		return "has an estimate=, and hosts cannot share what is charged afterwards: it needs the word local";
	if (!traits_of(rate->algorithm)->is_billed)
		return "cannot be charged afterwards, as estimate= wants";
	if (debt_ns == 0)
		debt_ns = debt_of_charges(rate->capacity, rate->refill, rate->period_ns);
	/* A count owes nothing. */
	if (debt_ns > rate->max_wait_ns && (traits_of(rate->algorithm)->sets & SETS_MAX_WAIT) != 0)
		rate->max_wait_ns = debt_ns;
	return NULL;
}

uint64_t debt_of_charges(uint64_t capacity, uint64_t refill, uint64_t period_ns)
{
	unsigned __int128 full_ns = refill == 0 ? 0 : (unsigned __int128)capacity * period_ns / refill;

	return full_ns < DEBT_DEFAULT_NS ? DEBT_DEFAULT_NS : full_ns > DEBT_MAX_NS ? DEBT_MAX_NS : (uint64_t)full_ns;
}

/* Give the rule the debt that its limits need. Returns NULL, or how to correct the rate. */
static const char *debt_rate(const struct spec_rule *rule, struct shmlimit_rule *rate)
{
	if (rule->delay_ns != 0 && traits_of(rate->algorithm)->is_places)
		return "cannot have a delay=, since nobody knows when a place will become free";
	if (rule->delay_ns != 0 && rate->zone[0] != '\0')
		return "counts by a calendar, and cannot have a delay=";
	if (rule->delay_ns != 0)
		rate->max_wait_ns = rule->delay_ns;
	return estimate_rate(rule, rate);
}

/*
 * A rule whose requests bring their limits needs none of its own, which another limit may give it.
 */
static const char *set_without_rate(struct spec *spec, const struct spec_limit *limit)
{
	struct spec_rule *rule = &spec->rules[limit->rule];
	struct shmlimit_rule rate = { .struct_size = sizeof(rate), .algorithm = limit->algorithm };
	const char *right = rate_of_hosts(spec, limit, &rate);

	if (right == NULL)
		right = debt_rate(rule, &rate);
	if (right != NULL || !spec->create)
		return right;
	if (rule->has_rate && rule->rate.algorithm != limit->algorithm)
		return "is not the algorithm that another limit gives the same rule";
	rule->rate.flags |= limit->flags;
	if (rule->has_rate)
		return NULL;
	rate.flags = rule->rate.flags;
	rule->rate = rate;
	rule->has_rate = 1;
	return NULL;
}

/* Apply a limit's rate to its rule. Returns NULL, or how to correct it. */
static const char *set_rate(struct spec *spec, const struct spec_limit *limit)
{
	struct spec_rule *rule = &spec->rules[limit->rule];
	struct shmlimit_rule rate = { .struct_size = sizeof(rate), .algorithm = limit->algorithm };
	uint64_t capacity_max;
	const char *right;

	if (limit->rate == NULL)
		return traits_of(limit->algorithm)->takes_limits ? set_without_rate(spec, limit) : NULL;
	if (!spec->create)
		return "needs create=yes";
	if (shmlimit_rule_parse(limit->rate, &rate, &spec->problem) != 0)
		return spec->problem.text;
	if (traits_of(rate.algorithm)->is_places && limit->cost != 1)
		return "needs cost=1";
	right = rate_of_hosts(spec, limit, &rate);
	if (right != NULL)
		return right;
	/* Again, for the algorithm that it has now. */
	if (shmlimit_rule_parse(limit->rate, &rate, &spec->problem) != 0)
		return spec->problem.text;
	right = debt_rate(rule, &rate);
	if (right != NULL)
		return right;
	if (rate.mode == SHMLIMIT_ENFORCE && limit->cost > rate.capacity)
		return "allows at most less than the cost at once, so every request would be refused";
	/* It is the rule that is protected: its other limits may leave the word out. */
	rule->rate.flags |= limit->flags;
	rate.flags |= rule->rate.flags & SHMLIMIT_RULE_PROTECTED;
	if (shmlimit_rule_capacity_max(&rate, &capacity_max) != 0 || rate.capacity > capacity_max)
		return "is out of range";
	if (rule->has_rate && !(rate.algorithm == rule->rate.algorithm && has_no_rate(rule)) &&
	    memcmp(&rule->rate, &rate, sizeof(rate)) != 0)
		return "is not the rate that another limit gives the same rule";
	rule->rate = rate;
	rule->has_rate = 1;
	return NULL;
}

/* Returns NULL, or how to correct the limit's delay=. */
static const char *check_delay(const struct spec *spec, const struct spec_limit *limit)
{
	if (limit->delay_ns == 0)
		return NULL;
	if (limit->peek)
		return "a limit with peek takes nothing, and cannot have a delay=";
	return spec->backend != NULL ? "delay= is for limits of one host, and cannot be used with backend=" : NULL;
}

/*
 * May the limit have places? Where its rule has no rate here, it may be of places in the segment.
 */
static int may_have_places(const struct spec *spec, const struct spec_limit *limit)
{
	const struct spec_rule *rule = &spec->rules[limit->rule];

	return !limit->peek && !rule->gcra && (!rule->has_rate || traits_of(rule->rate.algorithm)->is_places);
}

/*
 * Check a limit's share, and give a rule without a rate that of the limit before it, whose places
 * it shares. Returns NULL, or how to correct the share.
 */
static const char *set_share(struct spec *spec, size_t which)
{
	const struct spec_limit *limit = &spec->limits[which];
	struct spec_rule *rule = &spec->rules[limit->rule];
	const struct spec_rule *shared;
	struct shmlimit_rule rate;
	size_t i = which;

	if (limit->share == 0)
		return NULL;
	if (limit->cost != 1 || limit->estimated)
		return "is of places, and needs cost=1";
	if (limit->peek)
		return "is of places, and peek takes none";
	if (limit->delay_ns != 0)
		return "cannot have a delay=, since nobody knows when a place will become free";
	if (limit->has_algorithm)
		return "is of places, which have no other algorithm=";
	if (spec->backend != NULL && !limit->local)
		return "counts on one host: with backend= it needs the word local";
	while (i > 0 && !may_have_places(spec, &spec->limits[i - 1]))
		i--;
	if (i == 0)
		return "needs a limit of places before it, such as rate=\"64 at once\"";
	if (spec->limits[i - 1].dry_run && !limit->dry_run)
		return "is of a limit in a dry run, so it needs dry_run too";
	shared = &spec->rules[spec->limits[i - 1].rule];
	if (shared == rule)
		return "is of its own rule: the limit before it needs another one";
	if (rule->has_rate && !traits_of(rule->rate.algorithm)->is_places)
		return "needs a rate= of places, such as \"20 at once\", or none";
	if (!shared->has_rate || (rule->has_rate && !rule->follows))
		return NULL;
	rate = shared->rate;
	/* A share of the number that is found bounds each key enough. */
	rate.law = rate.least = 0;
	rate.flags &= ~SHMLIMIT_RULE_PROTECTED;
	rate.flags |= (rule->rate.flags | limit->flags) & SHMLIMIT_RULE_PROTECTED;
	rule->rate.flags |= limit->flags;
	if (rule->has_rate && memcmp(&rate, &rule->rate, sizeof(rate)) != 0)
		return "is of two limits with different rates: write a rate=, or use two rules";
	rule->rate = rate;
	rule->has_rate = rule->follows = 1;
	return NULL;
}

/* Check what depends on more than one word. */
static int check_whole(struct spec *spec, struct shmlimit_gate_wrong *wrong)
{
	char text[sizeof(wrong->text) + SHMLIMIT_RULE_NAME_MAX + 1]; /* too long rather than cut: see say_wrong() */

	if (spec->segment == NULL)
		return say_wrong(wrong, 0, 0, "needs segment=NAME before the first rule=");
	for (size_t i = 0; i < spec->limit_count; i++)
		spec->rules[spec->limits[i].rule].estimated |= spec->limits[i].estimated;
	for (size_t i = 0; i < spec->limit_count; i++) {
		struct spec_rule *rule = &spec->rules[spec->limits[i].rule];
		const char *right = check_delay(spec, &spec->limits[i]);

		spec->limits[i].plain =
			!spec->limits[i].peek && !spec->limits[i].dry_run && spec->limits[i].delay_ns == 0;

		if (spec->limits[i].delay_ns > rule->delay_ns)
			rule->delay_ns = spec->limits[i].delay_ns;
		if (spec->limits[i].charge_max_ns > rule->charge_max_ns)
			rule->charge_max_ns = spec->limits[i].charge_max_ns;
		if (right == NULL)
			continue;
		snprintf(text, sizeof(text), "rule=%s: %s", rule->name, right);
		return say_wrong(wrong, spec->limits[i].offset, 0, text);
	}
	for (size_t i = 0; i < spec->limit_count; i++) {
		const char *right = set_rate(spec, &spec->limits[i]);
		struct spec_rule *rule = &spec->rules[spec->limits[i].rule];

		rule->taken |= !spec->limits[i].peek;
		rule->peeked |= spec->limits[i].peek;
		rule->local |= spec->limits[i].local;
		rule->gcra |= traits_of(spec->limits[i].algorithm)->takes_limits;
		if (spec->limits[i].nth != 0 && !spec->limits[i].by_net) {
			snprintf(text, sizeof(text), "rule=%s: nth= needs prefix=", rule->name);
			return say_wrong(wrong, spec->limits[i].offset, 0, text);
		}
		if (spec->limits[i].estimated && spec->limits[i].peek) {
			snprintf(text, sizeof(text),
			         "rule=%s: a limit with peek takes nothing, and needs no estimate=", rule->name);
			return say_wrong(wrong, spec->limits[i].offset, 0, text);
		}
		if (is_given(of_limits, spec->limits[i].given, "charge_max=") && !spec->limits[i].estimated) {
			snprintf(text, sizeof(text), "rule=%s: charge_max= needs estimate= and a charge afterwards",
			         rule->name);
			return say_wrong(wrong, spec->limits[i].offset, 0, text);
		}
		if (right == NULL)
			continue;
		if (spec->limits[i].rate == NULL)
			snprintf(text, sizeof(text), "rule=%s: algorithm=gcra %s", rule->name, right);
		else
			snprintf(text, sizeof(text), "rule=%s: rate=\"%.30s\" %s", rule->name, spec->limits[i].rate,
			         right);
		return say_wrong(wrong, spec->limits[i].offset, 0, text);
	}
	for (size_t i = 0; i < spec->limit_count; i++) {
		const char *right = set_share(spec, i);

		if (right == NULL)
			continue;
		snprintf(text, sizeof(text), "rule=%s: share= %s", spec->rules[spec->limits[i].rule].name, right);
		return say_wrong(wrong, spec->limits[i].offset, 0, text);
	}
	for (size_t i = 0; i < spec->limit_count; i++) {
		const struct spec_rule *rule = &spec->rules[spec->limits[i].rule];

		if (!spec->limits[i].peek || !rule->has_rate || !traits_of(rule->rate.algorithm)->is_shared)
			continue;
		snprintf(text, sizeof(text), "rule=%s: is shared by hosts, and cannot be peeked at", rule->name);
		return say_wrong(wrong, spec->limits[i].offset, 0, text);
	}
	return 0;
}

/* BOUND: a limit takes at least seven bytes of the text, "rule=x". */
static int allocate(struct spec *spec, size_t length)
{
	size_t limits = length / 6 + 1;

	if (limits > SHMLIMIT_GATE_LIMITS_MAX)
		limits = SHMLIMIT_GATE_LIMITS_MAX;
	spec->words = calloc(length + 2, 1);
	spec->limits = calloc(limits, sizeof(spec->limits[0]));
	spec->rules = calloc(limits, sizeof(spec->rules[0]));
	return spec->words != NULL && spec->limits != NULL && spec->rules != NULL ? 0 : -ENOMEM;
}

int spec_read(const char *text, struct spec *spec, struct shmlimit_gate_wrong *wrong)
{
	size_t length = strlen(text);
	int error;

	*spec = (struct spec){
		.options = { .struct_size = sizeof(spec->options), .flags = SHMLIMIT_OPTION_FIT },
		.defaults = { .cost = 1, .prefix_v4 = 32, .prefix_v6 = 64, .status = 429 },
	};
	if (length > UINT32_MAX)
		return say_wrong(wrong, 0, 0, "must be shorter than 4 GiB");
	error = allocate(spec, length);
	if (error == 0)
		error = read_words(spec, text, wrong);
	if (error == 0)
		error = check_whole(spec, wrong);
	if (error != 0)
		spec_free(spec);
	return error;
}

void spec_free(struct spec *spec)
{
	free(spec->words);
	free(spec->limits);
	free(spec->rules);
	*spec = (struct spec){ .words = NULL };
}
