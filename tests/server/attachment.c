/*
 * attachment: what becomes of a request whose limits are enforced, in a dry run,
 * or cannot be asked, and what is said of that.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/stat.h>

#include "../unit/unit.h"
#include "attachment.h"

enum { SMALL, LARGE, ABSENT };

static const char *const names[] = { "small", "large", "absent" };
static char lines[8][256];
static int said, bad_said;
static const char *attach_engine;
static uint32_t attach_owner;

static void hear(void *context, int bad, const char *text)
{
	if (context != lines)
		bail("another context");
	bad_said += bad;
	if (said < 8)
		snprintf(lines[said], sizeof(lines[said]), "%s", text);
	said++;
}

static struct attachment *attach(size_t rules, int fail_open)
{
	struct attachment_options options = {
		.segment = unit_name,
		.rules = names,
		.rule_count = rules,
		.fail_open = fail_open,
		.engine = attach_engine,
		.owner = attach_owner,
		.log = hear,
		.context = lines,
	};
	struct attachment *a;

	said = bad_said = 0;
	a = attachment_new(&options);
	if (a == NULL)
		bail("attachment_new");
	return a;
}

static struct limit limits[3] = { LIMIT_DEFAULT, LIMIT_DEFAULT, LIMIT_DEFAULT };
static const struct limit_key keys[3] = { { .bytes = "k", .length = 1 }, { .bytes = "k", .length = 1 },
	{ .bytes = "k", .length = 1 } };
static struct verdict v;

/* Ask two limits; a dry run where the sign is negative: 1 + the rule. */
static int ask(struct attachment *a, int first, int second)
{
	int of[2] = { first, second };
	size_t n = 0;

	for (size_t i = 0; i < 2; i++)
		if (of[i] != 0) {
			limits[n].rule = (size_t)abs(of[i]) - 1;
			limits[n++].dry_run = of[i] < 0;
		}
	memset(&v, 0x77, sizeof(v));
	attachment_ask(a, limits, keys, n, &v);
	return v.answer;
}

static uint64_t left(struct shmlimit *l, int rule)
{
	struct shmlimit_result r;

	shmlimit_peek(l, rule, "k", 1, 1, &r);
	return r.remaining;
}

#define S (SMALL + 1)
#define L (LARGE + 1)
#define A (ABSENT + 1)

static void verdicts(struct shmlimit *l, int small, int large)
{
	struct attachment *a = attach(2, 0);

	is(said, 0, "that all is well is not said");
	is(ask(a, L, S), SHMLIMIT_ALLOWED, "two limits allow");
	ok(v.told_count == 2 && v.remaining == 1 && !v.dry_denied && !v.dry_failed, "both are told, and the least is left");
	is_str(v.told[1].limit, "\"small\";r=1;t=3600", "in the words of fields");
	ask(a, L, S);
	is(ask(a, L, S), SHMLIMIT_DENIED, "until the second denies");
	ok(v.denied_by == 1 && v.told_count == 1 && v.remaining == 0, "which is the one that is told");
	is(left(l, large), 98, "and the first has given back");
	is(ask(a, -S, L), SHMLIMIT_ALLOWED, "in a dry run it denies nobody");
	ok(v.dry_denied && v.told_count == 1 && v.remaining == 0, "but that is known, and only the other is told");
	is(left(l, large), 97, "which takes");
	is(ask(a, S, -L), SHMLIMIT_DENIED, "who is denied");
	is(left(l, large), 97, "is not asked of dry runs");
	is(ask(a, -L, 0), SHMLIMIT_ALLOWED, "a dry run alone allows");
	ok(!v.dry_denied && v.told_count == 0 && v.remaining == 96, "and takes, and tells nobody");
	shmlimit_reset(l, small, NULL, 0);
	is(said, 0, "and of all this nothing is said");
	attachment_free(a);
	attachment_free(NULL);
}

static void leases(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = SHMLIMIT_LEASE, .capacity = 2, .count = 1,
		                      .period_ns = 3600 * SECOND };
	struct attachment *a;

	shmlimit_rule_remove(l, "absent");
	if (shmlimit_rule_set(l, "absent", &rule) < 0)
		bail("rule_set");
	a = attach(3, 0);
	is(said, 1, "a rule to lease from an engine is said, where none is given");
	ok(strstr(lines[0], ": rule absent: it is a lease, and there is no engine= to lease from: requests that need it are "
	          "refused") != NULL, "with what is missing");
	is(ask(a, L, A), -EDESTADDRREQ, "who needs it gets an error");
	is(ask(a, L, S), SHMLIMIT_ALLOWED, "who does not is answered");
	attachment_free(a);
	attach_engine = "redis://host:port";
	a = attach(3, 0);
	ok(strcmp(lines[0], "engine's URL: port: must be a number from 1 to 65535") == 0, "a bad URL is said");
	ok(said == 2 && strstr(lines[1], ": rule absent: it is a lease, and the engine's URL is wrong: requests ") != NULL,
	   "as is whose it is");
	is(ask(a, L, A), -EDESTADDRREQ, "who needs it gets an error");
	attachment_free(a);
	attach_engine = NULL;
}

static void options(void)
{
	static const char *const bad[] = { "", "fail", "fail=", "fail=open ", "fail=shut", "engine", "engine=",
		"engine=localhost", "engine=http://host", "deadline=", "deadline=5", "deadline=5m", "deadline=5s",
		"owner=", "owner=65534", "owner=no-such-user", "deadline=0ms", "deadline=10001ms", "deadline=5ms ", "share=0", "share=1001", "share=10%" };
	struct attachment_options o = { .fail_open = 1 }, before = o;
	size_t refused = 0;

	unsetenv("SHMLIMIT_ENGINE");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused += attachment_option(&o, bad[i]) != NULL;
	is(refused, sizeof(bad) / sizeof(bad[0]), "what is no option is refused");
	ok(attachment_option(&o, "engine=-") != NULL, "as is the engine of an environment that has none");
	ok(memcmp(&o, &before, sizeof(o)) == 0, "and changes nothing");
	ok(attachment_option(&o, "fail=closed") == NULL && !o.fail_open, "fail=closed is one");
	ok(attachment_option(&o, "deadline=20ms") == NULL && o.deadline_ms == 20, "a deadline is");
	ok(attachment_option(&o, "share=250") == NULL && o.share_milli == 250, "a share is");
	ok(attachment_option(&o, "owner=root") == NULL && o.owner == 0, "an owner is");
	ok(attachment_option(&o, "engine=redis://host") == NULL && strcmp(o.engine, "redis://host") == 0, "an URL is");
	setenv("SHMLIMIT_ENGINE", "unix:///run/redis.sock", 1);
	ok(attachment_option(&o, "engine=-") == NULL && strcmp(o.engine, "unix:///run/redis.sock") == 0,
	   "which can come from the environment");
}

static void failures(struct shmlimit *l)
{
	struct attachment *a = attach(3, 0);
	char path[96];

	is(said, 1, "a rule that is not there is said");
	ok(strstr(lines[0], ": rule absent: no such rule: requests that need it are refused") != NULL, "with its name");
	is(ask(a, L, A), -ESRCH, "who needs it gets an error");
	is(v.told_count, 0, "and is told nothing");
	is(ask(a, L, S), SHMLIMIT_ALLOWED, "who does not is answered");
	is(ask(a, L, -A), SHMLIMIT_ALLOWED, "as is who would in a dry run");
	is(v.dry_failed, -ESRCH, "which has failed");
	unit_rule(l, "absent", 1, 1, 3600 * SECOND);
	is(ask(a, A, 0), SHMLIMIT_ALLOWED, "set, it is found at once");
	attachment_free(a);
	leases(l);

	snprintf(path, sizeof(path), "/dev/shm/%s", unit_name);
	if (geteuid() == 0 && chown(path, 65534, 65534) == 0) {
		a = attach(1, 1);
		is(ask(a, S, 0), -EPERM, "a segment of a stranger's is not obeyed");
		ok(said == 1 && strstr(lines[0], ": it belongs to neither root nor this user, or has another hard link: requests that "
		                             "need it pass") != NULL,
		   "which is said");
		attachment_free(a);
		attach_owner = 65534;
		a = attach(1, 1);
		ok(ask(a, S, 0) >= 0, "a segment is obeyed whose owner the options name");
		attachment_free(a);
		attach_owner = 0;
	} else {
		tap_skip("a segment of a stranger's is not obeyed", "needs root");
	}
	shmlimit_destroy(unit_name);
	a = attach(2, 1);
	is(ask(a, S, 0), -ENOENT, "without a segment everybody gets an error");
	is(ask(a, -S, 0), SHMLIMIT_ALLOWED, "but in a dry run");
	is(v.dry_failed, -ENOENT, "which has failed");
	is(said, 1, "and that is said once");
	is(bad_said, 1, "as something bad");
	attachment_free(a);
}

int main(void)
{
	struct shmlimit *l = unit_create("attachment", NULL);
	int small = unit_rule(l, "small", 2, 1, 3600 * SECOND), large = unit_rule(l, "large", 100, 1, 3600 * SECOND);

	options();
	verdicts(l, small, large);
	failures(l);
	shmlimit_close(l);
	return tap_done();
}
