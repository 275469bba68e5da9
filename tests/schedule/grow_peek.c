/*
 * grow_peek: a process that only peeks, while the table grows (I5).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"

static const struct shmlimit_rule rule = { .capacity = CAPACITY, .refill = 1, .period_ns = SECOND };

static struct shmlimit *set_key(void)
{
	struct shmlimit *l = set_growing(rule);

	take_before(l, KEY, 1);
	return l;
}

#define PEEKS_MAX 16

static struct peek {
	unsigned began, ended;
	uint64_t rest;
} peeks[PEEKS_MAX];
static unsigned peeks_n;

static void begin_peeking(void)
{
	peeks_n = 0;
}

/* I5 is judged here: a peek that no other actor interrupted leaves both tables as they were. */
static void peek(uint32_t key)
{
	unsigned char *slots = (unsigned char *)stage.l->tables[0].slots;
	size_t size = stage.l->size - (size_t)(slots - (unsigned char *)stage.l->header);
	static unsigned char before[64 * 4096];
	struct shmlimit_result r = { 0 };
	struct peek *p = &peeks[peeks_n++];
	unsigned turns = schedule.turns;

	if (peeks_n >= PEEKS_MAX || size > sizeof(before))
		bail("too many peeks");
	memcpy(before, slots, size);
	p->began = ++stage.moments;
	p->ended = 0;
	actor_calls();
	if (shmlimit_peek(handle(), stage.rule, &key, sizeof(key), 1, &r) < 0)
		blame("peek failed");
	p->ended = ++stage.moments;
	p->rest = r.remaining;
	if (turns == schedule.turns && memcmp(before, slots, size) != 0)
		blame("a peek wrote to the table");
}

static void act_peeking(unsigned who)
{
	if (who < 2) {
		act_one_key(who);
		return;
	}
	peek(KEY);
	peek(KEY);
	take(KEY, 1);
	peek(KEY);
}

/* What is left cannot be more than before the calls that had ended, nor less than after those that had begun. */
static void judge_peeking(void)
{
	for (const struct peek *p = peeks; p < peeks + peeks_n; p++) {
		uint64_t most = CAPACITY - 1, ended = 0, begun = 0;

		for (unsigned i = 0; i < stage.n; i++) {
			const struct call *c = &stage.calls[i];

			if (was_taken(c) && c->ended != 0 && c->ended < p->began)
				ended += (uint64_t)c->tokens;
			if (may_have_taken(c) && c->began < p->ended)
				begun += (uint64_t)c->tokens;
		}
		if (p->ended != 0 && (p->rest + ended > most || p->rest + begun < most))
			blame("a peek saw %" PRIu64 " of %" PRIu64 " left, of which from %" PRIu64 " to %" PRIu64
			      " were taken",
			      p->rest, most, ended, begun);
	}
	judge_one_key();
}

static const struct scene peeking = {
	.title = "a peek writes nothing, and sees what is left, whichever table it is in",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.begin = begin_peeking,
	.act = act_peeking,
	.judge = judge_peeking,
};

int main(void)
{
	play(&peeking);
	return tap_done();
}
