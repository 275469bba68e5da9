/*
 * requests: the cells through which processes ask their agent, while another process scribbles over them (I7). Processes and
 * two agents do what they may do at any moment, one step at a time.
 *
 *	input  steps: [ what, 1 ] [ its numbers ... ]; see play()
 *
 * What an agent takes is what a process posted, as a whole; the numbers of an answer are those that an agent gave to this
 * request, or zeros. When the scribbling has ended: an agent gets the claim and no other one has it, all cells are free
 * after a minute, and all requests are answered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "fuzz/target/fuzz.h"
#include "mailbox.h"

#define AREA (76 * 1024u)
#define SECOND UINT64_C(1000000000)
#define HANDS 8u /* tickets that processes have, and that agents have */
#define NOTES 512u
/* In words: where the cells are, how long each is, and where in it the answer is. */
#define CELLS 512u
#define CELL 144u
#define ANSWER 135u

static union {
	uint64_t words[AREA / 8];
	unsigned char bytes[AREA];
} area __attribute__((aligned(4096))), pristine;
static struct mailbox *q;

/* A text that was posted, or an answer that was given. */
static struct note {
	struct receipt receipt;
	struct request_text text;
	struct request_answer answer;
} posted[NOTES], answered[NOTES];

static struct play {
	uint64_t now_ns;
	unsigned posted, answered;
	struct receipt asks[HANDS], serves[HANDS];
	uint64_t claims[2];
	struct mailbox_watch watch[2];
	unsigned at[2];
} p;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	q = mailbox_in(&area, sizeof(area));
	law(q != NULL, "the area is large enough");
	law(mailbox_in(&area, 4096) == NULL && mailbox_in(NULL, AREA) == NULL, "a small area has no requests");
	law(mailbox_prepare(q) == 0, "no random numbers");
	pristine = area;
	return 0;
}

static int is_ticket(const struct receipt *a, const struct receipt *b)
{
	return a->cell == b->cell && a->word == b->word;
}

static size_t text_size(const struct request_text *text)
{
	return offsetof(struct request_text, key) + text->key_len;
}

static int post(struct input *in, struct receipt *receipt)
{
	struct request_text text = { .backend = input_number(in, 1), .rule = (uint32_t)input_number(in, 1) };
	uint64_t len = input_number(in, 2);
	int error;

	text.key_len = (uint16_t)(1 + (len < 0xf000 ? len % 48 : len % SHMLIMIT_KEY_MAX));
	text.kind = (uint16_t)(input_number(in, 1) & 3);
	text.cost = input_any(in);
	text.need = input_any(in);
	text.want = input_any(in);
	memset(text.key, (int)input_number(in, 1), text.key_len);
	error = mailbox_post(q, &text, receipt);
	law(error == 0 || error == -EAGAIN, "post: %d", error);
	if (error == 0)
		posted[p.posted++ % NOTES] = (struct note){ .receipt = *receipt, .text = text };
	return error;
}

static void check_text(const struct receipt *receipt, const struct request_text *text)
{
	law(text->key_len >= 1 && text->key_len <= SHMLIMIT_KEY_MAX && receipt->cell < MAILBOX_CELLS,
	    "a key of %u bytes", text->key_len);
	for (unsigned i = 0; i < p.posted && i < NOTES; i++)
		if (is_ticket(&posted[i].receipt, receipt) && posted[i].text.key_len == text->key_len &&
		    memcmp(&posted[i].text, text, text_size(text)) == 0)
			return;
	law(p.posted > NOTES, "a text that nobody posted in cell %u", receipt->cell);
}

static void check_answer(const struct receipt *receipt, const struct request_answer *answer)
{
	static const struct request_answer none;

	if (memcmp(answer, &none, sizeof(none)) == 0)
		return;
	for (unsigned i = 0; i < p.answered && i < NOTES; i++)
		if (is_ticket(&answered[i].receipt, receipt) &&
		    memcmp(&answered[i].answer, answer, sizeof(*answer)) == 0)
			return;
	law(p.answered > NOTES, "numbers that nobody gave to cell %u", receipt->cell);
}

static enum request_state hear(struct receipt *receipt, int wait)
{
	struct request_answer answer = { 0 };
	enum request_state state = wait ? mailbox_wait(q, receipt, 0, &answer) : mailbox_poll(q, receipt, &answer);

	if (state >= REQUEST_ALLOWED && state <= REQUEST_AGAIN)
		check_answer(receipt, &answer);
	return state;
}

static void answer(struct input *in, struct receipt *receipt, enum request_state state)
{
	struct request_answer with = { input_any(in), input_any(in), input_any(in), input_any(in) };

	/* Noted first: an answer that comes too late has been written nevertheless. */
	answered[p.answered++ % NOTES] = (struct note){ .receipt = *receipt, .answer = with };
	mailbox_is_awaited(q, receipt);
	mailbox_answer(q, receipt, state, &with);
}

static int take(unsigned agent, struct receipt *receipt)
{
	struct request_text text;

	if (!mailbox_next(q, &p.at[agent], &text, receipt)) {
		p.at[agent] = 0;
		return 0;
	}
	check_text(receipt, &text);
	return 1;
}

/* What is in the first lines, a text or an answer of another process's cell, or anything. */
static uint64_t *pick_word(struct input *in)
{
	uint64_t where = input_number(in, 1), at = input_number(in, 2);
	const struct receipt *receipt = where & 4 ? &p.asks[where / 8 % HANDS] : &p.serves[where / 8 % HANDS];

	switch (where % 4) {
	case 0:
		return &area.words[at % 96];
	case 1:
		return &area.words[CELLS + receipt->cell * CELL + at % 9];
	case 2:
		return &area.words[CELLS + receipt->cell * CELL + ANSWER + at % 5];
	default:
		return &area.words[at % (AREA / 8)];
	}
}

static void scribble(struct input *in)
{
	uint64_t *word = pick_word(in);

	switch (input_number(in, 1) % 4) {
	case 0:
		*word = input_any(in);
		break;
	case 1:
		*word ^= (uint64_t)1 << input_number(in, 1) % 64;
		break;
	case 2:
		*word = *pick_word(in);
		break;
	case 3:
		*word = p.now_ns + (uint64_t)(int64_t)(int32_t)input_number(in, 4) * 1000;
		break;
	}
}

static void play(struct input *in)
{
	uint64_t what = input_number(in, 1), which = what / 16 % HANDS, agent = what / 16 % 2;

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
		post(in, &p.asks[which]);
		break;
	case 3:
	case 4:
		hear(&p.asks[which], what % 2);
		break;
	case 5:
		mailbox_claim(q, &p.claims[agent], 1 + agent, p.now_ns);
		break;
	case 6:
	case 7:
		take((unsigned)agent, &p.serves[which]);
		break;
	case 8:
	case 9:
		answer(in, &p.serves[which], REQUEST_ALLOWED + input_number(in, 1) % 4);
		break;
	case 10:
		mailbox_sweep(q, &p.watch[agent], p.now_ns);
		break;
	case 11:
		if (which < 4)
			mailbox_inherit(q);
		else
			mailbox_resign(q, &p.claims[agent]);
		break;
	case 12:
		p.now_ns += input_number(in, 4) * 1000;
		break;
	case 13:
		mailbox_sleep(q, 1, 0);
		mailbox_wake(q);
		break;
	default:
		scribble(in);
	}
}

/* The scribbling has ended. */
static void recover(struct input *in)
{
	struct receipt tickets[MAILBOX_CELLS], receipt;
	unsigned taken = 0;
	uint64_t mine = 0, other = 0;

	p.now_ns += 20 * SECOND;
	law(mailbox_claim(q, &mine, 1, p.now_ns), "nobody gets the claim");
	law(!mailbox_claim(q, &other, 2, p.now_ns), "two have the claim");
	law(mailbox_has_agent(q, 1, p.now_ns), "the agent is not known");
	p.at[0] = 0;
	while (take(0, &receipt))
		answer(in, &receipt, REQUEST_AGAIN);
	mailbox_sweep(q, &p.watch[0], p.now_ns);
	p.now_ns += 61 * SECOND;
	mailbox_sweep(q, &p.watch[0], p.now_ns);
	law(mailbox_waiting(q) == 0, "%u requests are left", mailbox_waiting(q));
	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		law(post(in, &tickets[i]) == 0, "%u cells are free", i);
	law(post(in, &receipt) == -EAGAIN, "there are more cells than there are");
	p.at[0] = 0;
	while (take(0, &receipt)) {
		answer(in, &receipt, REQUEST_DENIED);
		taken++;
	}
	law(taken == MAILBOX_CELLS, "%u of 64 requests are taken", taken);
	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		law(hear(&tickets[i], (int)(i % 2)) == REQUEST_DENIED, "request %u is not answered", i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	memset(&p, 0, sizeof(p));
	p.now_ns = (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
	memcpy(&area, &pristine, sizeof(area));
	while (in.left > 0)
		play(&in);
	recover(&in);
	return 0;
}
