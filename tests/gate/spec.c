/*
 * spec: which specs are right, what is said of the others, and what words, rates and keys mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "../tap.h"
#include "key.h"
#include "scheme.h"
#include "spec.h"

static struct shmlimit_gate_wrong wrong;

static int check(const char *text)
{
	memset(&wrong, 0, sizeof(wrong));
	wrong.struct_size = sizeof(wrong);
	return shmlimit_gate_check(text, &wrong);
}

/* What is wrong with a limit as a whole names its rule, and is at a rule= with this name. */
static int is_at_its_limit(const char *text)
{
	if (strncmp(wrong.text, "rule=", 5) != 0)
		return wrong.offset == 0;
	return strncmp(text + wrong.offset, wrong.text, strcspn(wrong.text, ":")) == 0;
}

/* The text is refused, the word `word` with these words. */
static void is_wrong(const char *text, const char *word, const char *right)
{
	ok(check(text) == -EINVAL && wrong.length == strlen(word) && (word[0] != '\0' || is_at_its_limit(text)) &&
	           strncmp(text + wrong.offset, word, wrong.length) == 0 && strstr(wrong.text, right) != NULL,
	   "%s: the word %s %s", text, word, right);
}

/* With backend= a rate is one of all hosts, or says that it is not. */
static void shared(void)
{
	static const struct {
		const char *words, *right; /* NULL: the spec is right */
	} specs[] = {
		{ "rule=r rate=5/s", NULL },
		{ "rule=r rate=5/s algorithm=lease", NULL },
		{ "rule=r rate=5/s local", NULL },
		{ "rule=r rate=5/s algorithm=funnel local", NULL },
		{ "rule=r rate=5/s algorithm=token-bucket local", NULL },
		{ "rule=r rate=5/s algorithm=window local", NULL },
		{ "rule=r rate=\"5 at once\" local", NULL },
		{ "rule=r rate=5/s protected local", NULL },
		{ "rule=r rate=5/s local peek", NULL },
		{ "local rule=r rate=\"5 at once\"", NULL },
		{ "rule=r algorithm=gcra local", NULL },
		{ "rule=r", NULL },
		{ "rule=r peek", NULL },
		{ "rule=r rate=\"5/day in UTC\" local", NULL },
		{ "rule=r rate=\"5/day in UTC\"",
		  "counts by a calendar on one host: with backend= it needs the word local" },
		{ "rule=r rate=\"5 at once\"", "counts on one host: with backend= it needs the word local" },
		{ "rule=r rate=\"5 at once\" algorithm=lease", "this algorithm has a rate, not places" },
		{ "rule=r rate=5/s algorithm=window", "needs algorithm=lease, or the word local" },
		{ "rule=r rate=5/s algorithm=funnel", "needs algorithm=lease, or the word local" },
		{ "algorithm=funnel rule=r rate=5/s", "needs algorithm=lease, or the word local" },
		{ "rule=r algorithm=gcra", "which hosts cannot share: with backend= it needs the word local" },
		{ "rule=r rate=5/s algorithm=gcra", "which hosts cannot share: with backend= it needs the word local" },
		{ "rule=r rate=5/s algorithm=lease local", "is shared by hosts, so it cannot be local" },
		{ "rule=r rate=5/s protected", "cannot be protected, except with the word local" },
		{ "rule=r rate=5/s peek", "is shared by hosts, and cannot be peeked at" },
		{ "rule=r rate=5/s rule=r peek", "is shared by hosts, and cannot be peeked at" },
		{ "rule=r peek rule=r rate=5/s", "is shared by hosts, and cannot be peeked at" },
		{ "rule=r rate=5/s rule=r rate=5/s local", "is not the rate that another limit gives the same rule" },
		{ "rule=r rate=3000K/s", "is out of range" },
		{ "rule=r rate=\"5/s strict\"", "this algorithm is not strict" },
		{ "rule=r rate=\"5/s window\"", "this algorithm is not a window" },
		{ "rule=r rate=block", NULL },
		{ "rule=r rate=unlimited", NULL },
	};
	char text[200];

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		snprintf(text, sizeof(text), "segment=web create=yes backend=redis://host %s", specs[i].words);
		if (specs[i].right != NULL)
			is_wrong(text, "", specs[i].right);
		else
			is(check(text), 0, "%s is a right spec", text);
	}
	is_wrong("segment=web create=yes rule=r rate=5/s algorithm=lease", "",
	         "is shared by hosts, which needs backend=URL");
	is(check("segment=web create=yes rule=r rate=5/s local"), 0, "local is allowed without backend=");
}

/* Each word stands once in a limit, and beside nothing that it contradicts; each limit may change a default. */
static void together(void)
{
	static const char *const once[] = {
		"cost=2",        "estimate=2", "prefix=32,64",   "status=503",     "fields=denied", "dry_run",
		"peek",          "rate=5/s",   "rate_error=5/s", "algorithm=gcra", "local",         "protected",
		"charge_max=1h", "delay=1s",   "nodelay",        "denials=d",      "jitter=5%",     "share=4",
	};
	static const char *const of_gates[] = { "fail=open", "create=yes", "mode=660", "slots=64", "x_fields" };
	char text[200];

	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
		snprintf(text, sizeof(text), "segment=web create=yes rule=r %s %s", once[i], once[i]);
		ok(check(text) == -EINVAL && wrong.offset == strlen(text) - strlen(once[i]) &&
		           strcmp(wrong.text, "is given twice") == 0,
		   "%s: the second word is refused", text);
	}
	for (size_t i = 0; i < sizeof(of_gates) / sizeof(of_gates[0]); i++) {
		snprintf(text, sizeof(text), "segment=web %s %s rule=r", of_gates[i], of_gates[i]);
		is_wrong(text, of_gates[i], "is given twice");
	}
	is_wrong("segment=web rule=r status=429 status=503", "status=503", "is given twice");
	is_wrong("segment=web status=429 status=503 rule=r", "status=503", "is given twice");
	is_wrong("segment=web rule=r cost=2 estimate=5", "estimate=5", "must be either cost=, or estimate=");
	is_wrong("segment=web rule=r estimate=5 cost=2", "cost=2", "must be either cost=, or estimate=");
	is_wrong("segment=web rule=r delay=1s nodelay", "nodelay", "must be either delay= or nodelay");
	is_wrong("segment=web rule=r nodelay delay=1s", "delay=1s", "must be either delay= or nodelay");
	is_wrong("segment=web create=yes rule=r rate=5/s charge_max=1h", "", "charge_max= needs estimate=");
	is(check("segment=web status=429 cost=2 delay=1s charge_max=1h rule=a status=503 nodelay rule=b status=500 estimate=3"),
	   0, "a limit may change each default");
}

/* A share is of a limit of places before it. */
static void shares(void)
{
	static const struct {
		const char *words, *right; /* NULL: the spec is right */
	} specs[] = {
		{ "rule=all rate=\"64 at once\" rule=each share=4", NULL },
		{ "rule=all rate=\"auto at once\"", NULL },
		{ "rule=all rate=\"auto 8 to 64 at once by aimd\" rule=each share=4", NULL },
		{ "rule=all rate=\"64 at once\" rule=each share=0.5", NULL },
		{ "rule=all rate=\"64 at once\" rule=each share=0.001", NULL },
		{ "rule=all rate=\"64 at once\" rule=each share=1000000", NULL },
		{ "rule=all rate=\"64 at once\" rule=each rate=\"20 at once\" share=4", NULL },
		{ "rule=all rate=\"64 at once\" rule=login rate=5/m rule=each share=4", NULL },
		{ "rule=all rate=\"64 at once\" rule=org share=4 rule=user share=2", NULL },
		{ "rule=all rate=\"64 at once\" rule=each share=4 rule=all rule=each share=8", NULL },
		{ "rule=all rule=each share=4", NULL },
		{ "rule=all rate=\"64 at once\" dry_run rule=each share=4 dry_run", NULL },
		{ "rule=all rate=\"64 at once\" rule=each share=4 dry_run", NULL },
		{ "rule=each share=4", "needs a limit of places before it, such as rate=\"64 at once\"" },
		{ "rule=each share=4 rule=all rate=\"64 at once\"", "needs a limit of places before it" },
		{ "rule=all rate=64/s rule=each share=4", "needs a limit of places before it" },
		{ "rule=all algorithm=gcra rule=each share=4", "needs a limit of places before it" },
		{ "rule=all rate=\"64 at once\" rule=each rate=20/s share=4", "needs a rate= of places" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 cost=2", "is of places, and needs cost=1" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 estimate=1", "is of places, and needs cost=1" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 peek", "is of places, and peek takes none" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 delay=1s", "cannot have a delay=" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 algorithm=gcra", "have no other algorithm=" },
		{ "rule=all rate=\"64 at once\" rule=all share=4", "is of its own rule" },
		{ "rule=all rate=\"64 at once\" dry_run rule=each share=4", "so it needs dry_run too" },
		{ "rule=all rate=\"64 at once\" rule=each share=4 rule=few rate=\"8 at once\" rule=each share=4",
		  "is of two limits with different rates" },
	};
	char text[200];
	struct spec s;

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		snprintf(text, sizeof(text), "segment=web create=yes %s", specs[i].words);
		if (specs[i].right != NULL)
			is_wrong(text, "", specs[i].right);
		else
			is(check(text), 0, "%s is a right spec", text);
	}
	is_wrong("segment=web create=yes backend=redis://host rule=all rate=\"64 at once\" local rule=each share=4", "",
	         "rule=each: share= counts on one host: with backend= it needs the word local");
	is_wrong("segment=web share=4 rule=all", "share=4", "must follow a limit's rule=; local_share= is this host's");
	is(check("segment=web create=yes backend=redis://host rule=all rate=\"64 at once\" local rule=each share=4 local"),
	   0, "limits of this host may have shares beside others of all hosts");
	if (spec_read(
		    "segment=web create=yes rule=all rate=\"64 at once at most 5m each\" rule=each share=2.75 protected",
		    &s, &wrong) != 0)
		bail("spec_read");
	is(s.limits[1].share, 2750, "a share is kept in thousandths");
	ok(s.rules[1].has_rate && s.rules[1].rate.capacity == 64 &&
	           s.rules[1].rate.flags == (SHMLIMIT_RULE_CUT_OFF | SHMLIMIT_RULE_PROTECTED),
	   "its rule has the rate of the limit before it, and flags of its own");
	is(s.rules[0].rate.flags, SHMLIMIT_RULE_CUT_OFF, "the limit before it does not get its flags");
	spec_free(&s);
}

static void words(void)
{
	/* clang-format off */
	static const char *const of_gates[] = { "fail", "fail=", "fail=shut", "backend", "backend=", "backend=localhost",
		"backend=http://host", "backend_prefix=", "backend_prefix={a}", "backend_prefix=12345678901234567890123456789012345678901234567890123456789012345", "deadline=", "deadline=5", "deadline=5m", "deadline=5s", "deadline=0ms", "deadline=99us", "deadline=10000001us",
		"deadline=10001ms", "owner=", "owner=65534", "owner=no-such-user", "local_share=0", "local_share=1001", "local_share=10%", "share=250", "agent=", "proxy_warning=yes", "agent=yes", "agent=none", "wait=", "wait=1", "wait=5ms",
		"create", "create=", "create=maybe", "mode=", "mode=0", "mode=0200", "mode=0577", "mode=1000", "mode=8", "mode=0660x", "group=",
		"group=no-such-group", "slots=15", "slots=", "x_fields=1", "segment=", "segment=a/b" };
	/* clang-format on */
	/* clang-format off */
	static const char *const of_limits[] = { "cost", "cost=", "cost=0", "cost=-1", "cost=1x", "cost=0x10",
		"cost=18446744073709551616", "cost=99999999999999999999999", "prefix=", "prefix=32", "prefix=32,",
		"prefix=,64", "prefix=33,64", "prefix=32,129", "prefix=32,64,", "nth=", "nth=0", "nth=-0", "nth=+1", "nth=1001", "nth=-1001", "nth=last", "status=399", "status=600",
		"status=", "dry_run=1", "Dry_run", "peek=1", "protected=1", "burst=5", "fields=", "fields=never", "rate=", "rate=5", "rate=5/minut",
		"algorithm=", "algorithm=log", "delay=", "delay=2", "delay=2h", "delay=-1s", "nodelay=1", "charge_max=", "charge_max=0s", "charge_max=5", "charge_max=367d", "charge_max=-1h", "jitter=", "jitter=5", "jitter=101%", "jitter=5%%", "denials=", "denials=si*te", "share=", "share=0", "share=0.0", "share=-1", "share=4x", "share=.5", "share=4.", "share=0.0001", "share=1000000.001", "share=1000001", "share=4.5.1", "share=1e3", "share=99999999999999999999", "local=1", "segment=web", "fail=open", "rule=", "rule=si*te" };
	/* clang-format on */
	char text[128];

	for (size_t i = 0; i < sizeof(of_gates) / sizeof(of_gates[0]); i++) {
		snprintf(text, sizeof(text), "segment=web %s rule=r", of_gates[i]);
		is_wrong(text, of_gates[i], "");
	}
	for (size_t i = 0; i < sizeof(of_limits) / sizeof(of_limits[0]); i++) {
		snprintf(text, sizeof(text), "segment=web rule=r %s", of_limits[i]);
		is_wrong(text, of_limits[i], "");
	}
	unsetenv("SHMLIMIT_BACKEND");
	is_wrong("segment=web backend=http://host", "backend=http://host",
	         "must be backend=- or backend=URL; a URL begins with " SCHEME_NAMES);
	is_wrong("segment=web backend=-", "backend=-", "needs SHMLIMIT_BACKEND in the environment");
	is_wrong("segment=web rule=r rate=5/minut", "rate=5/minut", "minut is not a unit: did you mean \"5/minute\"?");
	is_wrong("segment=web create=yes rule=r rate=5/m cost=6", "", "so every request would be refused");
	is_wrong("segment=web rule=r cost=0", "cost=0", "must be cost=N, 1 or more");
	is_wrong("segment=web create=yes rule=r rate=\"5 at once\" delay=2s", "",
	         "cannot have a delay=, since nobody knows when a place will become free");
	is_wrong("segment=web create=yes rule=r rate=\"5/day in UTC\" delay=2s", "",
	         "counts by a calendar, and cannot have a delay=");
	is_wrong("segment=web rule=r peek delay=2s", "", "rule=r: a limit with peek takes nothing");
	is_wrong("segment=web backend=redis://host rule=r local delay=2s", "",
	         "rule=r: delay= is for limits of one host");
	is_wrong("segment=web owner_=root", "owner_=root", "must be fail=open or fail=closed");
	is_wrong("segment=web rule=r owner=root", "owner=root", "must be cost=");
	is_wrong("segment=web \"rule=a", "\"rule=a", "must end with a quotation mark");
	is_wrong("", "", "needs segment=NAME");
	is_wrong("segment=web rule=r rate=5/s", "", "rule=r: rate=\"5/s\" needs create=yes");
	is_wrong("segment=web create=yes rule=r rate=5/s rule=r rate=6/s", "",
	         "is not the rate that another limit gives");
	is(wrong.offset, 39, "of two limits with one rule the second is wrong");
	is_wrong("segment=web create=yes rule=r rate=\"5/s burst 9\" algorithm=window", "",
	         "this algorithm has no burst");
	is_wrong("segment=web create=yes rule=r rate=1000000G/s", "", "is out of range");
	is_wrong("segment=web rule=r nth=1", "", "rule=r: nth= needs prefix=");
	is_wrong(
		"segment=web create=yes backend=redis://host "
		"rule=0123456789012345678901234567890123456789012345678901234567890xy "
		"rate=\"1000000 per 100000 seconds\" algorithm=gcra",
		"",
		"rule=0123456789012345678901234567890123456789012345678901234567890xy: rate=\"1000000 per 100000 seconds\" is for limits that come with requests, which hosts cannot share: with ba...");
	is(check("segment=web rule=r nth=-1000 prefix=32,64"), 0, "the place in a list may come before the prefix");
	together();
	shared();
	shares();
	is(check("segment=web"), 0, "a spec may have no rules");
	is(shmlimit_gate_check(NULL, &wrong), -EINVAL, "a spec is a text");
	is(shmlimit_gate_check("segment=web", NULL), 0, "a caller need not ask what is wrong");
	is(shmlimit_gate_check("bad", NULL), -EINVAL, "of a bad spec either");
}

static void meanings(void)
{
	struct shmlimit_gate_wrong none;
	struct spec s;

	if (spec_read(
		    " # a comment\n segment=\"my \\\"web\\\"\"\tfail=open cost=3\n# another\nrule=a \"rule=b\" cost=5 status=503 "
		    "dry_run fields=denied prefix=0,128 rule=a#b\n",
		    &s, &none) == 0)
		bail("a # inside of a name");
	if (spec_read(
		    " # a comment\n segment=\"my \\\"web\\\"\"\tfail=open cost=3\n# another\nrule=a \"rule=b\" cost=5 status=503 "
		    "dry_run fields=denied prefix=0,128 rule=a\\\n",
		    &s, &none) == 0)
		bail("a backslash in a name");
	if (spec_read(
		    " # a comment\n segment=\"my \\\"web\\\"\"\tfail=open cost=3\n# another\nrule=a \"rule=b\" cost=5 status=503 "
		    "dry_run fields=denied prefix=0,128 peek rule=a",
		    &s, &none) != 0)
		bail("spec_read");
	is_str(s.segment, "my \"web\"", "a value may have spaces and quotation marks");
	ok(s.fail_open && !s.create && !s.x_fields && s.backend == NULL, "what is not asked for is off");
	ok(s.limit_count == 3 && s.rule_count == 2, "each rule= begins a limit, and limits share rules by name");
	ok(s.limits[0].rule == 0 && s.limits[1].rule == 1 && s.limits[2].rule == 0, "in the order of the text");
	ok(s.limits[0].cost == 3 && s.limits[2].cost == 3, "words before the first rule= hold for all limits");
	ok(s.limits[1].cost == 5 && s.limits[1].status == 503 && s.limits[1].dry_run && s.limits[1].denied_only &&
	           s.limits[1].by_net && s.limits[1].prefix_v4 == 0 && s.limits[1].prefix_v6 == 128,
	   "the words after rule= apply to its limit");
	ok(s.limits[2].status == 429 && !s.limits[2].dry_run && !s.limits[2].denied_only && !s.limits[2].by_net,
	   "the words of one limit apply to no other");
	ok(s.limits[1].peek && !s.limits[2].peek && s.rules[1].peeked && !s.rules[1].taken && s.rules[0].taken &&
	           !s.rules[0].peeked,
	   "a rule that is only peeked at is known as such");
	spec_free(&s);

	setenv("SHMLIMIT_BACKEND", "unix:///run/redis.sock", 1);
	if (spec_read(
		    "segment=w create=yes mode=0660 group=root slots=128 x_fields owner=root backend=- deadline=20ms local_share=250 agent=thread proxy_warning=no "
		    "rule=r local rate=\"7 per minute\" algorithm=window rule=q cost=18446744073709551615",
		    &s, &none) != 0)
		bail("spec_read");
	ok(s.create && s.x_fields && s.options.mode == 0660 &&
	           s.options.flags == (SHMLIMIT_OPTION_FIT | SHMLIMIT_OPTION_GROUP) && s.options.gid == 0 &&
	           s.options.slots == 128,
	   "a segment that is created has mode, group and slots");
	ok(s.rules[0].has_rate && s.rules[0].rate.algorithm == SHMLIMIT_WINDOW && s.rules[0].rate.capacity == 7 &&
	           s.rules[0].rate.refill == 0,
	   "a limit may be a window");
	is(s.agent, SPEC_AGENT_THREAD, "a thread may be the host's agent");
	is(s.proxy_quiet, 1, "a proxy need not be reported");
	ok(s.deadline_us == 20000 && s.local_milli == 250 && strcmp(s.backend, "unix:///run/redis.sock") == 0,
	   "the backend may come from the environment");
	ok(s.limits[1].cost == UINT64_MAX, "a cost has 64 bits");
	spec_free(&s);
	if (spec_read("segment=w deadline=100us rule=r", &s, &none) != 0)
		bail("spec_read");
	is(s.deadline_us, 100, "a deadline may be as short as 100 microseconds");
	spec_free(&s);
}

#define SECOND UINT64_C(1000000000)

/* Each number that a word may have is between two that it may have, and the numbers beyond them are refused. */
static void bounds(void)
{
	static const struct {
		const char *format; /* of the word, with its number */
		int of_limit;
		uint64_t least, most;
	} words[] = {
		{ "slots=%" PRIu64, 0, SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX },
		{ "mode=%" PRIo64, 0, 0600, 0777 },
		{ "deadline=%" PRIu64 "us", 0, 100, 10000000 },
		{ "deadline=%" PRIu64 "ms", 0, 1, 10000 },
		{ "local_share=%" PRIu64, 0, 1, 1000 },
		{ "cost=%" PRIu64, 1, 1, UINT64_MAX },
		{ "status=%" PRIu64, 1, 400, 599 },
		{ "prefix=%" PRIu64 ",64", 1, 0, 32 },
		{ "prefix=32,%" PRIu64, 1, 0, 128 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t least = words[i].least, most = words[i].most;
		const uint64_t numbers[] = { least, most, least - 1, most + 1 };

		for (int n = 0; n < 4; n++) {
			char word[64], text[128];

			if (n >= 2 && (numbers[n] == 0) == (least != 1)) /* there is none beyond */
				continue;
			snprintf(word, sizeof(word), words[i].format, numbers[n]);
			snprintf(text, sizeof(text), "segment=w create=yes %s %s", words[i].of_limit ? "rule=r" : "",
			         word);
			is(check(text), n < 2 ? 0 : -EINVAL, "%s is %s", word, n < 2 ? "accepted" : "refused");
		}
	}
}

/* All prefixes, users and groups that there are mean themselves. */
static void each(void)
{
	struct shmlimit_gate_wrong none;
	char text[400];
	struct spec s;
	uint64_t misread = 0, users = 0, groups = 0;
	const struct passwd *user;
	const struct group *group;

	for (unsigned v4 = 0; v4 <= 32; v4++) {
		for (unsigned v6 = 0; v6 <= 128; v6++) {
			snprintf(text, sizeof(text), "segment=w rule=r prefix=%u,%u", v4, v6);
			if (spec_read(text, &s, &none) != 0)
				bail("%s", text);
			misread += !s.limits[0].by_net || s.limits[0].prefix_v4 != v4 || s.limits[0].prefix_v6 != v6;
			spec_free(&s);
		}
	}
	is(misread, 0, "each pair of prefixes is read as it is written");
	for (misread = 0; (user = getpwent()) != NULL && users < 1000; users++) {
		uid_t uid = user->pw_uid;

		snprintf(text, sizeof(text), "segment=w \"owner=%.200s\"", user->pw_name);
		misread += spec_read(text, &s, &none) != 0 || s.options.owner != uid;
		spec_free(&s);
	}
	endpwent();
	ok(users > 0 && misread == 0, "each user of this host can own a segment");
	for (misread = 0; (group = getgrent()) != NULL && groups < 1000; groups++) {
		gid_t gid = group->gr_gid;

		snprintf(text, sizeof(text), "segment=w \"group=%.200s\"", group->gr_name);
		misread += spec_read(text, &s, &none) != 0 || s.options.gid != gid;
		spec_free(&s);
	}
	endgrent();
	ok(groups > 1 && misread == 0, "each group of this host can be a segment's");
}

/* A rate may be what its algorithm can hold, and no more; several limits may give one rule the same rate. */
static void most(void)
{
	static const struct {
		const char *algorithm, *format;
		struct shmlimit_rule rule;
	} rates[] = {
		{ "funnel", "1/s burst %" PRIu64, { .algorithm = SHMLIMIT_FUNNEL, .refill = 1, .period_ns = SECOND } },
		{ "funnel",
		  "3 per 2 days burst %" PRIu64,
		  { .algorithm = SHMLIMIT_FUNNEL, .refill = 3, .period_ns = 2 * 86400 * SECOND } },
		{ "window", "%" PRIu64 "/s", { .algorithm = SHMLIMIT_WINDOW, .period_ns = SECOND } },
		{ "window", "%" PRIu64 "/hour", { .algorithm = SHMLIMIT_WINDOW, .period_ns = 3600 * SECOND } },
	};
	char rate[64], text[256];

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct shmlimit_rule rule = rates[i].rule;
		uint64_t max = 0;

		rule.struct_size = sizeof(rule);
		rule.capacity = 1;
		if (shmlimit_rule_capacity_max(&rule, &max) != 0)
			bail("capacity_max");
		for (uint64_t over = 0; over < 2; over++) {
			snprintf(rate, sizeof(rate), rates[i].format, max + over);
			snprintf(text, sizeof(text), "segment=w create=yes rule=r rate=\"%s\" algorithm=%s", rate,
			         rates[i].algorithm);
			is(check(text), over ? -EINVAL : 0, "a %s of %s is %s", rates[i].algorithm, rate,
			   over ? "refused" : "accepted");
		}
	}
	is(check("segment=w create=yes rule=r rate=5/s rule=r rate=5/s cost=2"), 0,
	   "two limits may give one rule the same rate");
	is(check("segment=w create=yes rule=r rate=\"5 at once\" rule=q rate=\"7 at once\""), 0,
	   "two rules of one spec may have different rates");
}

/* shmlimit_rule_parse() reads rates, and tests/unit/limit_text its texts: here is what a spec makes of them. */
static void rates(void)
{
	static const struct {
		const char *words;
		uint32_t algorithm, mode;
		uint64_t capacity, refill;
	} good[] = {
		{ "rate=5/minute", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 5, 5 },
		{ "rate=\"10r/s burst=20\"", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 20, 10 },
		{ "rate=\"9/h strict\"", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 5, 4 },
		{ "rate=\"9/h window\"", SHMLIMIT_WINDOW, SHMLIMIT_ENFORCE, 9, 0 },
		{ "rate=\"9/h strict\" algorithm=window", SHMLIMIT_WINDOW, SHMLIMIT_ENFORCE, 9, 0 },
		{ "rate=\"9 at once\"", SHMLIMIT_HOLD, SHMLIMIT_ENFORCE, 9, 0 },
		{ "rate=0/s", SHMLIMIT_FUNNEL, SHMLIMIT_BLOCK, 1, 1 },
		{ "rate=block algorithm=window", SHMLIMIT_WINDOW, SHMLIMIT_BLOCK, 1, 0 },
		{ "rate=\"0 at once\"", SHMLIMIT_HOLD, SHMLIMIT_BLOCK, 1, 0 },
		{ "rate=unlimited", SHMLIMIT_FUNNEL, SHMLIMIT_OFF, SHMLIMIT_CAPACITY_MAX, SECOND },
		{ "rate=off cost=100 algorithm=window", SHMLIMIT_WINDOW, SHMLIMIT_OFF, 1, 0 },
	};
	struct shmlimit_gate_wrong none;
	char text[256];
	struct spec s;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const struct shmlimit_rule *rate;

		snprintf(text, sizeof(text), "segment=w create=yes rule=r %s", good[i].words);
		if (spec_read(text, &s, &none) != 0)
			bail("%s", text);
		rate = &s.rules[0].rate;
		ok(rate->algorithm == good[i].algorithm && rate->mode == good[i].mode &&
		           rate->capacity == good[i].capacity && rate->refill == good[i].refill,
		   "%s is its rule", good[i].words);
		spec_free(&s);
	}
}

static int key_is(const struct spec_limit *limit, const char *text, size_t length, const void *bytes, size_t key_length)
{
	struct key key;

	key_make(limit, text, length, &key);
	return key.length == key_length && memcmp(key.bytes, bytes, key_length) == 0;
}

static void keys(void)
{
	struct spec_limit limit = { .cost = 1 };
	char longest[SHMLIMIT_KEY_MAX + 100];
	unsigned char net[SHMLIMIT_KEY_IP_MAX];
	/* python3 -c 'import hashlib; print(hashlib.sha512(b"x" * 1124).hexdigest())' */
	static const unsigned char digest[] = {
		0xc5, 0xd5, 0xa7, 0x17, 0x4f, 0x45, 0x78, 0xa8, 0x61, 0x73, 0x34, 0x0d, 0xd8, 0x8a, 0xdb, 0x32,
		0x9f, 0x04, 0x46, 0x7f, 0xdc, 0x0f, 0x2c, 0xae, 0x92, 0xd4, 0x73, 0x08, 0x96, 0x0f, 0x7c, 0xb8,
		0x7d, 0x1e, 0x41, 0xc7, 0xb4, 0x5c, 0x6c, 0x49, 0xd9, 0xc3, 0xc3, 0xac, 0x11, 0x1b, 0x09, 0x10,
		0x0a, 0x9c, 0x88, 0xde, 0xda, 0x09, 0x5a, 0x76, 0x7b, 0x93, 0x48, 0xb1, 0x0c, 0x07, 0xd2, 0xe5,
	};
	int length;

	memset(longest, 'x', sizeof(longest));
	ok(key_is(&limit, "a\0b", 3, "a\0b", 3), "a key is any bytes");
	ok(key_is(&limit, longest, SHMLIMIT_KEY_MAX, longest, SHMLIMIT_KEY_MAX),
	   "a key of 1,024 bytes is a key as it is");
	ok(key_is(&limit, longest, sizeof(longest), digest, sizeof(digest)), "a longer key is replaced by its SHA-512");
	ok(!key_is(&limit, longest, sizeof(longest) - 1, digest, sizeof(digest)),
	   "long keys that begin alike stay different");
	ok(key_is(&limit, "10.0.0.7", 8, "10.0.0.7", 8), "without prefix= an address is text");
	limit = (struct spec_limit){ .by_net = 1, .prefix_v4 = 24, .prefix_v6 = 64 };
	length = shmlimit_key_ip_text("10.0.0.1", 0, 24, 64, net, sizeof(net));
	ok(key_is(&limit, "10.0.0.7", 8, net, (size_t)length), "with prefix= its net is the key");
	ok(key_is(&limit, "10.0.0.7, and more", 8, net, (size_t)length), "the address ends where the key ends");
	ok(key_is(&limit, "::ffff:10.0.0.9", 15, net, (size_t)length), "an IPv4-mapped address is the IPv4 address");
	ok(key_is(&limit, "10.0.0.9:50001", 14, net, (size_t)length), "a port of the client does not count");
	ok(key_is(&limit, "10.0.0.9\r", 9, net, (size_t)length), "blanks around an address do not count");
	ok(key_is(&limit, "198.51.100.1, 10.0.0.9", 22, net, (size_t)length),
	   "the last address of a list is the key, which no client can forge");
	ok(key_is(&limit, "10.0.0.9, -", 11, "10.0.0.9, -", 11), "a list that ends in no address is a key as it is");
	limit.nth = -2;
	ok(key_is(&limit, "192.0.2.1, 10.0.0.9:50001, 198.51.100.1", 39, net, (size_t)length),
	   "nth=-2 takes the address before the last");
	ok(key_is(&limit, "10.0.0.9", 8, "10.0.0.9", 8), "a list that is too short for nth= is a key as it is");
	limit.nth = 1;
	ok(key_is(&limit, "10.0.0.9, 198.51.100.1", 22, net, (size_t)length), "nth=1 takes the first address");
	ok(key_is(&limit, "unix:", 5, "unix:", 5), "what is no address is a key as it is");
	ok(key_is(&limit, longest, sizeof(longest), digest, sizeof(digest)),
	   "a long key that is no address is replaced too");
}

static size_t count_raw(const char *text)
{
	size_t raw = 0;

	for (; *text != '\0'; text++)
		raw += *text < ' ' || *text > '~';
	return raw;
}

/* An error about a spec goes to logs and terminals: no byte of the spec is repeated raw if it is a control byte. */
static void repeated(void)
{
	static const char *const specs[] = {
		"segment=w backend=redis://u:p@192.0.2.1:6379/0?x rule=r rate=5/s",
		"segment=w backend=rediss://host owner=nobody:x mode=0999 group=none: rule=r",
		"segment=w create=yes slots=1x fail=shut rule=a+b rate=\"5/minute burst 0\" status=1 text=x",
		"segment=w rule=r rate=\"5 attempts per minute\" algorithm=gcre prefix=33 nth=0 cost=x",
	};
	static const char bytes[] = { 1, 7, 0x1b, 0x7f, (char)0x80, (char)0x9b, (char)0xff };
	size_t raw = 0, refused = 0;
	char text[256];

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		for (size_t at = 0; at < strlen(specs[i]); at++)
			for (size_t b = 0; b < sizeof(bytes); b++) {
				strcpy(text, specs[i]);
				text[at] = bytes[b];
				if (check(text) != -EINVAL)
					continue;
				refused++;
				raw += count_raw(wrong.text);
			}
	ok(refused > 1000, "%zu specs with a control byte are refused", refused);
	is(raw, 0, "no message about a spec has a byte that a terminal acts on");
}

int main(void)
{
	repeated();
	words();
	meanings();
	bounds();
	each();
	most();
	rates();
	keys();
	return tap_done();
}
