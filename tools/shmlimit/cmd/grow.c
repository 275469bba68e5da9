/*
 * grow.c: shmlimit grow.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "about.h"
#include "command.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "value_parse.h"

#define SECOND_NS ((uint64_t)1000000000)
#define KEYS_LEFT_LEN (TEXT_LEN + 80)

enum { SLOTS, WAIT, JSON };

static const struct command_option options[] = {
	[SLOTS] = { "slots", "N", "new number of slots, at least twice the current number" },
	[WAIT] = { "wait", NULL, "wait until no key is left in the old table" },
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

/* What is left in the old table. */
struct rest {
	uint64_t keys;
	uint64_t until_ns; /* the last of them is full after this time */
};

static struct rest rest_of(struct shmlimit *limiter)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t now_ns = shmlimit_now(limiter);
	struct rest rest = { 0, 0 };

	shmlimit_info(limiter, &info);
	for (uint64_t i = 0; i < info.old_slots; i++) {
		if (shmlimit_slot(limiter, info.slots + i, &slot, now_ns) < 0 || slot.state != SHMLIMIT_SLOT_LIVE)
			continue;
		rest.keys++;
		if (slot.reset_after_ns > rest.until_ns)
			rest.until_ns = slot.reset_after_ns;
	}
	/* Seconds are fine enough for people. */
	if (rest.until_ns > SECOND_NS)
		rest.until_ns = (rest.until_ns + SECOND_NS - 1) / SECOND_NS * SECOND_NS;
	return rest;
}

/* Such as "2 keys are left in the old table, the last for 40s". */
static const char *keys_left(char text[KEYS_LEFT_LEN], const struct rest *rest)
{
	char until[TEXT_LEN];

	duration_about(until, rest->until_ns);
	if (rest->keys == 1)
		snprintf(text, KEYS_LEFT_LEN, "1 key is left in the old table, for %s", until);
	else
		snprintf(text, KEYS_LEFT_LEN, "%" PRIu64 " keys are left in the old table, the last for %s", rest->keys,
		         until);
	return text;
}

/*
 * The copy has another name until it is put in the segment's place; whatever uses the segment opens
 * the copy then.
 */
static int fail_most(const char *name, uint64_t most, const char *slots)
{
	char copy[SHMLIMIT_NAME_MAX + 5], from[SHMLIMIT_PATH_MAX] = "", to[SHMLIMIT_PATH_MAX] = "";

	snprintf(copy, sizeof(copy), "%s.new", name);
	if (shmlimit_path(name, to) != 0 || shmlimit_path(copy, from) != 0)
		return fail("--slots %s: segment %s was created for %" PRIu64 " at the most: use fewer", slots, name,
		            most);
	return fail(
		"--slots %s: segment %s was created for %" PRIu64
		" at the most: use fewer, or put a copy in its place that can grow, with all its keys "
		"(shmlimit save %s FILE && shmlimit load %s FILE --can-grow && shmlimit grow %s --slots %s && mv %s %s)",
		slots, name, most, name, copy, copy, slots, from, to);
}

/* `slots` is what was asked for. */
static int fail_growth(const char *name, struct shmlimit *limiter, const char *slots, int error)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct rest rest = rest_of(limiter);
	char text[TEXT_LEN], left[KEYS_LEFT_LEN];

	shmlimit_info(limiter, &info);
	switch (-error) {
	case EALREADY:
		return fail("segment %s: has grown before, and %s: try again then, or use --wait", name,
		            keys_left(left, &rest));
	case EINVAL:
		return fail("--slots %s: segment %s has %s: must be %" PRIu64 " or more", slots, name,
		            number_text(text, info.slots), 2 * info.slots);
	case EFBIG:
		return fail_most(name, info.slots_max, slots);
	case ENOSPC:
		return fail(
			"segment %s: no room in /dev/shm: use fewer slots, or destroy segments that no process uses "
			"(shmlimit list)",
			name);
	default:
		return fail_segment(name, error);
	}
}

static void sleep_ns(uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

/* Leave the old table, now or when its last key has refilled. */
static int finish(struct shmlimit *limiter, int wait)
{
	int error = shmlimit_grow(limiter, 0);

	while (wait && error == -EALREADY) {
		uint64_t until_ns = rest_of(limiter).until_ns;

		/* It may be over earlier than that: a process asks, refunds or resets. */
		sleep_ns(until_ns < SECOND_NS ? until_ns + 1 : SECOND_NS);
		error = shmlimit_grow(limiter, 0);
	}
	return error;
}

static int print_rest_json(struct shmlimit *limiter)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct rest rest = rest_of(limiter);

	shmlimit_info(limiter, &info);
	return print_json(json_pack("{s:o, s:o, s:o}", "slots", json_number(info.slots), "keys_left",
	                            json_number(rest.keys), "until_ns",
	                            json_number(rest.keys > 0 ? rest.until_ns : 0)));
}

static void print_rest(struct shmlimit *limiter)
{
	struct rest rest = rest_of(limiter);
	char text[KEYS_LEFT_LEN];

	if (rest.keys > 0)
		puts(keys_left(text, &rest));
}

/* What `slots` says, if anything; then what is left of the old table. */
static int make_larger(struct shmlimit *limiter, uint64_t slots, int wait)
{
	int error = slots != 0 && wait ? finish(limiter, 1) : 0;

	if (error == 0 && slots != 0)
		error = shmlimit_grow(limiter, slots);
	if (error != 0)
		return error;
	error = finish(limiter, wait);
	return error == -EALREADY ? 0 : error;
}

static int run(const struct call *call)
{
	const char *name = call->operand[0], *const *asked = call->option;
	struct shmlimit *limiter;
	int error, status = STATUS_OK;
	uint64_t slots = 0;

	if (asked[SLOTS] != NULL)
		status = number_parse("--slots", asked[SLOTS], SHMLIMIT_SLOTS_MIN, SHMLIMIT_SLOTS_MAX, &slots);
	if (status == STATUS_OK)
		status = segment_open(name, 0, &limiter);
	if (status != STATUS_OK)
		return status;
	error = make_larger(limiter, slots, call->option[WAIT] != NULL);
	if (error == 0 && call->option[JSON] != NULL)
		status = print_rest_json(limiter);
	else if (error == 0)
		print_rest(limiter);
	else
		status = fail_growth(name, limiter, asked[SLOTS], error);
	shmlimit_close(limiter);
	return status;
}

const struct command command_grow = {
	.name = "grow",
	.operands = "NAME",
	.purpose = "give a segment a larger table while it is in use",
	.options = options,
	.run = run,
};
