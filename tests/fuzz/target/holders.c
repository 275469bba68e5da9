/*
 * holders: whatever stands in the table of holders, a process registers or gets the reason why not, each question has an
 * answer, places are entered and left, and nothing but the table and its counter is written to (I7).
 *
 *	input  steps: [ what, 1 ] [ its numbers ... ]; see step()
 *
 * While no process writes to the table, this process is never said to be dead, and no more places are held than there are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../unit/unit.h"
#include "fuzz.h"

#include "holder.h"
#include "limiter.h"
#include "registry.h"

#define PLACES 4u
#define SPACE_MASK UINT32_MAX
#define TABLE (LAYOUT_HOLDERS * sizeof(struct layout_holder))

static struct shmlimit *l;
static int rule;
static uint64_t own_start, own_space;
static unsigned char *before; /* the segment as it was before a call */
static size_t length;         /* up to the end of the counters and rules: of what a call could reach by mistake */

static struct play {
	uint64_t number; /* of this process; 0: it has not registered since the table was written to */
	int scribbled;   /* since this handle registered: its places may pass for those of a dead process */
	unsigned held;
	struct shmlimit_place places[PLACES];
} play;

static struct layout_holder *entry(uint64_t i)
{
	return (struct layout_holder *)(void *)((char *)l->header + LAYOUT_HOLDERS_OFFSET) + i % LAYOUT_HOLDERS;
}

/* As a handle that has not registered. */
static void forget(void)
{
	registry_close(l);
	memset(&l->holder, 0, sizeof(l->holder));
	play = (struct play){ 0 };
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SHMLIMIT_SLOTS_MIN, .rules = 2, .rules_max = 2
	};
	struct shmlimit_rule hold = { .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = 3600 * SECOND };
	uint32_t pid = 0;

	(void)argc;
	(void)argv;
	law(holder_find(&pid, &own_start) == 0, "this process is found");
	own_space = holder_namespace() & SPACE_MASK;
	l = unit_create("fuzz.holders", &options);
	rule = unit_rule_of(l, "busy", hold);
	length = (size_t)((char *)(void *)l->tables->slots - (char *)(void *)l->header);
	before = malloc(length);
	return 0;
}

/* ---- The table ---- */

static uint64_t pick_pid(struct input *in)
{
	uint64_t how = input_number(in, 1);

	switch (how % 4) {
	case 0:
		return (uint64_t)getpid();
	case 1:
		return 1;
	case 2:
		return how / 4;
	default:
		return input_number(in, 4);
	}
}

static uint64_t pick_number(struct input *in, uint64_t at)
{
	uint64_t how = input_number(in, 1), start = how & 64 ? own_start : input_number(in, 3);

	switch (how % 5) {
	case 0:
		return input_any(in);
	case 1:
		return play.number + input_number(in, 3);
	case 2:
		return play.number ^ (uint64_t)1 << input_number(in, 1) % 64;
	case 3:
		at += input_number(in, 2);
		break;
	default:
		break;
	}
	return REGISTRY_FIRST | at % LAYOUT_HOLDERS << REGISTRY_ENTRY_SHIFT | (start & 0xffffff) << 24 |
	       (input_number(in, 1) + how / 128);
}

static uint64_t pick_process(struct input *in)
{
	uint64_t how = input_number(in, 1), space = how & 32 ? own_space : input_number(in, 4);

	if (how % 4 == 0)
		return input_any(in);
	return pick_pid(in) << 42 | (how & 64 ? entry(0)->process & ((uint64_t)1023 << 32) : 0) | space;
}

static void scribble(struct input *in)
{
	uint64_t what = input_number(in, 1), i = input_number(in, 2);
	struct layout_holder *e = entry(i);

	switch (what % 6) {
	case 0:
		((uint64_t *)(void *)e)[what / 6 % 4] = input_any(in);
		break;
	case 1:
		e->number = pick_number(in, i);
		e->process = pick_process(in);
		break;
	case 2:
		e->space = e->number;
		e->seen = input_any(in);
		break;
	case 3:
		*e = *entry(input_number(in, 2));
		break;
	case 4:
		e->number = pick_number(in, i);
		break;
	default: {
		/* All of them: of a kind of process that is not known to be dead, perhaps. */
		struct layout_holder each = { .process = pick_process(in), .seen = input_number(in, 8) };
		uint64_t number = pick_number(in, 0);

		for (uint64_t k = 0; k < LAYOUT_HOLDERS; k++) {
			each.number = (number & ~((uint64_t)(LAYOUT_HOLDERS - 1) << REGISTRY_ENTRY_SHIFT)) |
			              k << REGISTRY_ENTRY_SHIFT;
			each.space = what & 128 ? each.number : 0;
			*entry(k) = each;
		}
	}
	}
	play = (struct play){ .scribbled = 1 };
}

/* ---- Calls ---- */

static void note(void)
{
	memcpy(before, l->header, length);
}

/* Nothing but the table and its counter has changed. */
static void untouched(const char *call)
{
	const unsigned char *now = (const unsigned char *)l->header;
	size_t counter = offsetof(struct layout_header, unregistered);

	law(memcmp(now, before, counter) == 0 &&
	            memcmp(now + counter + 8, before + counter + 8, LAYOUT_HOLDERS_OFFSET - counter - 8) == 0 &&
	            memcmp(now + LAYOUT_HOLDERS_OFFSET + TABLE, before + LAYOUT_HOLDERS_OFFSET + TABLE,
	                   length - LAYOUT_HOLDERS_OFFSET - TABLE) == 0,
	    "%s has written beside the table", call);
}

static void registered(int error, uint64_t number)
{
	if (error == 0) {
		law(registry_is_number(number), "number %" PRIx64, number);
		law(entry(registry_entry(number))->number == number, "number %" PRIx64 " is not that of its entry",
		    number);
		return;
	}
	for (uint64_t i = 0; i < LAYOUT_HOLDERS && error == -EXFULL; i++)
		law(registry_is_number(entry(i)->number) && registry_entry(entry(i)->number) == i,
		    "the registry reports a full table, but entry %" PRIu64 " holds %" PRIx64, i, entry(i)->number);
}

static void register_own(void)
{
	uint64_t number;
	int error;

	forget();
	note();
	error = registry_self(l, &number);
	untouched("registry_self");
	law(error == 0 || error == -EXFULL, "registry_self: %d", error);
	registered(error, number);
	if (error != 0)
		return;
	law(entry(registry_entry(number))->process >> 42 == (uint64_t)getpid(), "the entry is not this process's");
	play.number = number;
}

static void register_another(struct input *in)
{
	uint64_t number;
	int error;

	note();
	error = registry_process(l, (uint32_t)pick_pid(in), &number);
	untouched("registry_process");
	law(error == 0 || error == -EXFULL || error == -ECHILD || error == -ENODEV, "registry_process: %d", error);
	registered(error, number);
}

static void ask(struct input *in)
{
	uint64_t i = input_number(in, 2), how = input_number(in, 1), number = pick_number(in, i), now_ns;
	enum registry_answer answer;

	number = how % 4 == 0 ? play.number : how % 4 == 1 ? entry(i)->number : number;
	now_ns = how & 4 ? input_any(in) : registry_now_ns();
	note();
	answer = registry_ask(l, number, now_ns);
	untouched("registry_ask");
	law(answer == HOLDER_UNKNOWN || answer == HOLDER_ALIVE || answer == HOLDER_DEAD, "answer %d", answer);
	law(registry_is_number(number) || answer == HOLDER_UNKNOWN, "%" PRIx64 " is no number: %d", number, answer);
	law(number != play.number || play.number == 0 || answer == HOLDER_ALIVE, "this process: %d", answer);
	/* What is asked again at once has the same answer, or that it is not known. */
	law(registry_ask(l, number, now_ns) == answer || answer == HOLDER_ALIVE, "answered in two ways");
}

static void enter(void)
{
	struct shmlimit_place place = { .struct_size = sizeof(place), .flags = SHMLIMIT_PLACE_BIND };
	struct shmlimit_result r;
	int answer = shmlimit_enter(l, rule, "user:42", 7, &place, &r);

	law(answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_DENIED, "enter: %d", answer);
	law(r.limit == PLACES && r.remaining <= PLACES, "%" PRIu64 " of %" PRIu64 " are left", r.remaining, r.limit);
	if (answer == SHMLIMIT_DENIED)
		return;
	law(place.bind_error == 0 || place.bind_error == -EXFULL, "bind: %d", place.bind_error);
	law(play.held < PLACES || play.scribbled, "more places are held than there are");
	if (play.held < PLACES)
		play.places[play.held++] = place;
}

static void leave(struct input *in)
{
	uint64_t which = input_number(in, 1);
	int answer;

	if (play.held == 0)
		return;
	which %= play.held;
	answer = shmlimit_leave(l, rule, "user:42", 7, &play.places[which]);
	law(answer == 0 || (play.scribbled && answer == -ETIME), "leave: %d", answer);
	play.places[which] = play.places[--play.held];
}

static void step(struct input *in)
{
	struct shmlimit_problem problem;
	uint64_t what = input_number(in, 1);

	switch (what % 8) {
	case 0:
		register_own();
		break;
	case 1:
		register_another(in);
		break;
	case 2:
		ask(in);
		break;
	case 3:
		enter();
		break;
	case 4:
		leave(in);
		break;
	case 5:
		law(shmlimit_verify(unit_name, &problem, 1) >= 0, "verify");
		break;
	default:
		scribble(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	memset(entry(0), 0, TABLE);
	forget();
	law(shmlimit_reset(l, rule, NULL, 0) >= 0, "reset");
	while (in.left > 0)
		step(&in);
	/* In a sound table all is as in a new one. */
	memset(entry(0), 0, TABLE);
	forget();
	law(shmlimit_reset(l, rule, NULL, 0) >= 0, "reset");
	register_own();
	law(play.number != 0, "a process registers in an empty table");
	for (unsigned i = 0; i < PLACES; i++)
		enter();
	law(play.held == PLACES, "of %u places %u are entered", PLACES, play.held);
	law(shmlimit_enter(l, rule, "user:42", 7,
	                   &(struct shmlimit_place){ .struct_size = sizeof(struct shmlimit_place) },
	                   NULL) == SHMLIMIT_DENIED,
	    "one more is entered");
	return 0;
}
