/*
 * ban.c: shmlimit ban and shmlimit unban. A ban is a key of a COUNTER rule whose count is at its
 * bound, for as long as the count lives. Servers have a limit on that rule that peeks: it denies
 * such a key, and never counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ban.h"
#include "ban_keys.h"
#include "command.h"
#include "fail.h"
#include "key_option.h"
#include "key_text.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "reset.h"
#include "rule_facts.h"
#include "value_parse.h"

enum { NAME, KEY };
enum { RULE, FOR, JSON };

static const struct command_option ban_options[] = {
	[RULE] = { "rule", "RULE", "the rule that servers peek at, made if it is missing (default ban)" },
	[FOR] = { "for", "DURATION", "how long: 10m, 1h30m, 7d" },
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

/* A rule that is missing is made. Returns its id, or -errno. */
static int find_or_make(struct shmlimit *limiter, const char *rule)
{
	struct shmlimit_rule counter = { .struct_size = sizeof(counter),
		                         .algorithm = SHMLIMIT_COUNTER,
		                         .flags = SHMLIMIT_RULE_PROTECTED,
		                         .capacity = 1 };
	int id = shmlimit_rule_find(limiter, rule);

	return id == -ESRCH ? shmlimit_rule_set(limiter, rule, &counter) : id;
}

/*
 * Was it in force? Not without a slot for its key, nor while the rule or the segment is off. The
 * moment is before it was begun: a short ban may be over by now.
 */
static int check_banned(struct shmlimit *limiter, int id, const struct key *key, uint64_t at_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_result r;
	int answer;

	shmlimit_set_time(limiter, &at_ns);
	answer = shmlimit_peek(limiter, id, key->bytes, key->len, 1, &r);
	shmlimit_set_time(limiter, NULL);
	if (answer < 0 || answer == SHMLIMIT_DENIED || r.retry_after_ns > 0)
		return answer < 0 ? answer : 0;
	answer = shmlimit_rule_get(limiter, id, &rule);
	shmlimit_info(limiter, &info);
	if (answer < 0)
		return answer;
	return rule.mode == SHMLIMIT_OFF || !info.enabled ? -ESHUTDOWN : -ENOBUFS;
}

int ban_begin(struct shmlimit *limiter, const char *rule, const struct key *key, uint64_t for_ns, enum ban_time time)
{
	int id = find_or_make(limiter, rule), answer;
	uint64_t begun_ns = shmlimit_now(limiter);

	if (id < 0)
		return id;
	answer = shmlimit_count(limiter, id, key->bytes, key->len,
	                        &(struct shmlimit_count_request){
					.struct_size = sizeof(struct shmlimit_count_request),
					.flags = SHMLIMIT_COUNT_SATURATE |
	                                         (time == BAN_LONGER ? SHMLIMIT_COUNT_LONGER : SHMLIMIT_COUNT_RESTART),
					.n = SHMLIMIT_CAPACITY_MAX,
					.bound = INT64_MAX,
					.ttl_ns = for_ns },
	                        NULL);
	if (answer == SHMLIMIT_DENIED)
		return -ENOBUFS;
	return answer < 0 ? answer : check_banned(limiter, id, key, begun_ns);
}

const char *ban_error(int error)
{
	switch (error) {
	case -EOPNOTSUPP:
		return "not a counter (use another rule, or set one with --algorithm counter)";
	case -ESHUTDOWN:
		return "the rule or the segment is off: nobody is banned";
	case -ENOBUFS:
		return "the segment is full: the key is not banned (see shmlimit grow)";
	case -ENOSPC:
		return "no room in /dev/shm: the key is not banned (give it more: mount -o remount,size=SIZE /dev/shm; "
		       "shmlimit list shows what uses it)";
	default:
		return NULL;
	}
}

static const char *rule_of(const struct call *call)
{
	const char *rule = call_option(call, "rule");

	return rule != NULL ? rule : BAN_RULE;
}

/* A rule that this command makes is protected. One that was there before may not be. */
static void warn_unprotected(struct shmlimit *limiter, const char *segment, const char *name)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(limiter, &info);
	if (info.on_full == SHMLIMIT_FULL_EVICT &&
	    shmlimit_rule_get(limiter, shmlimit_rule_find(limiter, name), &rule) == 0 &&
	    (rule.flags & SHMLIMIT_RULE_PROTECTED) == 0)
		fail("rule %s: not protected: other keys may evict the ban when the table is full (shmlimit rule set %s %s "
		     "--protected yes)",
		     name, segment, name);
}

/* A ban that is printed: of a key, or of a net of `count` keys. */
static int print_ban(const struct call *call, const struct key *key, uint64_t count, uint64_t for_ns)
{
	char text[KEY_TEXT_LEN], left[TEXT_LEN];
	json_t *json;

	if (call->option[JSON] == NULL) {
		print_line("key", "%s", key_show(text, key->bytes, key->len, key->len));
		if (count > 1)
			print_line("keys", "%" PRIu64 ", one for each address or net that servers look up", count);
		print_line("rule", "%s", rule_of(call));
		print_line("ends in", "%s", duration_text(left, for_ns));
		return STATUS_OK;
	}
	json = json_pack("{s:o, s:o, s:o}", "rule", json_text(rule_of(call)), "ends_after_ns", json_number(for_ns),
	                 "keys", json_number(count));
	if (json != NULL && json_object_update_new(json, json_key(key->bytes, key->len, key->len)) != 0) {
		json_decref(json);
		json = NULL;
	}
	return print_json(json);
}

struct banning {
	const struct call *call;
	struct shmlimit *limiter;
	uint64_t for_ns, done;
};

static int ban_one(void *context, const struct key *key)
{
	struct banning *banning = context;
	int error = ban_begin(banning->limiter, rule_of(banning->call), key, banning->for_ns, BAN_REPLACE);

	banning->done += error >= 0;
	return error;
}

static int print_one(void *context, const struct key *key)
{
	const struct banning *banning = context;

	return print_ban(banning->call, key, 1, banning->for_ns) == STATUS_OK ? 0 : -EIO;
}

static int print_all(struct banning *banning, const struct ban_keys *keys)
{
	if (keys->is_net)
		return print_ban(banning->call, &keys->shown, keys->count, banning->for_ns);
	return ban_keys_each(keys, print_one, banning) == 0 ? STATUS_OK : STATUS_ERROR;
}

/* A count lives for its rule's period at most. */
static int fail_for(const struct call *call, uint64_t most_ns)
{
	char text[TEXT_LEN];

	return fail(
		"--for %s: rule %s counts for %s at most (for longer bans set a rule of its own: shmlimit rule set %s "
		"RULE --algorithm counter --period %s; then ban --rule RULE)",
		call->option[FOR], rule_of(call), duration_text(text, most_ns), call->operand[NAME], call->option[FOR]);
}

static int ban_all(struct banning *banning, struct ban_keys *keys)
{
	const struct call *call = banning->call;
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	const char *segment = call->operand[NAME], *rule = rule_of(call);
	int error, status;

	ban_keys_choose(banning->limiter, shmlimit_rule_find(banning->limiter, rule), keys);
	status = ban_keys_check(banning->limiter, keys);
	if (status != STATUS_OK)
		return status;
	error = ban_keys_each(keys, ban_one, banning);
	if (error >= 0) {
		warn_unprotected(banning->limiter, segment, rule);
		return print_all(banning, keys);
	}
	if (error == -ERANGE &&
	    shmlimit_rule_range(banning->limiter, shmlimit_rule_find(banning->limiter, rule), &range) == 0)
		return fail_for(call, range.refill_ns);
	if (error == -ENOBUFS && keys->count > 1)
		return fail("rule %s: the segment is full: %" PRIu64 " of %" PRIu64
		            " keys are banned, and stay so (see shmlimit grow, and unban)",
		            rule, banning->done, keys->count);
	if (ban_error(error) != NULL)
		return fail("rule %s: %s", rule, ban_error(error));
	return fail_rule(segment, rule, error);
}

static int ban_run(const struct call *call)
{
	struct banning banning = { .call = call };
	struct ban_keys keys;
	int status = ban_keys_read(call, call->operand[KEY], &keys);

	if (status == STATUS_OK && call->option[FOR] == NULL)
		return fail("ban: missing --for DURATION, how long the ban lasts, such as --for 1h");
	if (status == STATUS_OK)
		status = duration_parse("--for", call->option[FOR], &banning.for_ns);
	if (status == STATUS_OK && banning.for_ns == 0)
		return fail("--for %s: must be more than 0", call->option[FOR]);
	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &banning.limiter);
	if (status != STATUS_OK)
		return status;
	status = ban_all(&banning, &keys);
	shmlimit_close(banning.limiter);
	return status;
}

const struct command command_ban = {
	.name = "ban",
	.operands = "NAME KEY",
	.purpose = "ban a key for a time",
	.details =
		"The ban holds from the next request, where servers have a limit that peeks at the rule:\n"
		"rule=ban peek. For a key that is banned already, the new time replaces the old. See unban and bans.\n"
		"An address is banned in the form in which the segment's users store it; if that is not known, as\n"
		"text and as by --key-ip. Of a net, such as 203.0.113.0/24, each key is banned, 1024 at most.\n",
	.options = ban_options,
	.run = ban_run,
};

enum { UNBAN_RULE, UNBAN_JSON };

static const struct command_option unban_options[] = {
	[UNBAN_RULE] = { "rule", "RULE", "the rule that servers peek at (default ban)" },
	[UNBAN_JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	KEY_FINGERPRINT_ROW,
	{ 0 },
};

struct unbanning {
	struct shmlimit *limiter;
	int id, found;
};

static int unban_one(void *context, const struct key *key)
{
	struct unbanning *unbanning = context;
	int one = shmlimit_reset(unbanning->limiter, unbanning->id, key->bytes, key->len);

	unbanning->found += one > 0;
	return one;
}

/* The address may also be banned by wider nets. */
static int unban_nets(struct unbanning *unbanning, const struct address *address)
{
	char text[KEY_TEXT_LEN];
	struct key net;
	int answer = 0;

	/* BOUND: as many as an address has bits. */
	for (int n = 0; n < 128 && answer >= 0; n++) {
		if (!key_find_net(unbanning->limiter, unbanning->id, address, &net))
			break;
		answer = unban_one(unbanning, &net);
		if (answer > 0)
			fail("net %s: unbanned", key_show(text, net.bytes, net.len, net.len));
	}
	return answer;
}

/* The keys of a ban; besides, the net as one key. Returns how many, or -errno. */
static int unban_keys(struct unbanning *unbanning, const struct ban_keys *keys)
{
	int answer = 0;

	if (keys->given.len == 0)
		return reset_key(unbanning->limiter, unbanning->id, &keys->given);
	if (keys->count > 0 && keys->count <= BAN_KEYS_MAX)
		answer = ban_keys_each(keys, unban_one, unbanning);
	if (answer >= 0 && keys->is_net)
		answer = unban_one(unbanning, &keys->shown);
	if (answer >= 0 && keys->is_address && keys->given.text != NULL)
		answer = unban_one(unbanning, &keys->given);
	if (answer >= 0 && keys->is_address && !keys->is_net)
		answer = unban_nets(unbanning, &keys->address);
	return answer < 0 ? answer : unbanning->found;
}

static int unban(const struct call *call, struct shmlimit *limiter, struct ban_keys *keys)
{
	struct unbanning unbanning = { .limiter = limiter };
	char text[KEY_TEXT_LEN];
	int found = 0, status;

	unbanning.id = shmlimit_rule_find(limiter, rule_of(call));
	ban_keys_choose(limiter, unbanning.id, keys);
	/*
	 * As long as there is no rule no key is banned; a name that was typed may be a wrong one.
	 */
	if (unbanning.id >= 0 || unbanning.id != -ESRCH || call->option[UNBAN_RULE] != NULL) {
		status = rule_find(limiter, call->operand[NAME], rule_of(call), &unbanning.id);
		if (status != STATUS_OK)
			return status;
		found = unban_keys(&unbanning, keys);
	}
	if (found < 0)
		return fail_rule(call->operand[NAME], rule_of(call), found);
	if (found == 0 && keys->is_net && keys->count > BAN_KEYS_MAX)
		return fail("net %s: has more than %u keys: unban smaller nets (shmlimit bans %s lists what is banned)",
		            key_show(text, keys->shown.bytes, keys->shown.len, keys->shown.len), BAN_KEYS_MAX,
		            call->operand[NAME]);
	if (call->option[UNBAN_JSON] != NULL)
		return reset_print_json(found, 0);
	if (found == 0 && keys->given.len > 0)
		fail("key %s: not banned by rule %s",
		     key_show(text, keys->shown.bytes, keys->shown.len, keys->shown.len), rule_of(call));
	else if (found == 0)
		fail("fingerprint %s: not banned by rule %s", call_option(call, "fingerprint"), rule_of(call));
	return STATUS_OK;
}

static int unban_run(const struct call *call)
{
	struct shmlimit *limiter;
	struct ban_keys keys;
	int status = ban_keys_read(call, call->operand[KEY], &keys);

	if (status == STATUS_OK)
		status = segment_open(call->operand[NAME], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = unban(call, limiter, &keys);
	shmlimit_close(limiter);
	return status;
}

const struct command command_unban = {
	.name = "unban",
	.operands = "NAME KEY",
	.purpose = "end the ban of a key",
	.details = "A key that is not banned, or whose ban has ended, is no error: a message says so.\n",
	.options = unban_options,
	.run = unban_run,
};
