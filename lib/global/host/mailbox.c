/*
 * mailbox: see mailbox.h.
 *
 * ORDER. The compare-and-swap of a word is a full barrier. A process that loads the word (load_acquire) after it sees
 * what was written to the cell before it. Texts and answers are read and written a word at a time without order,
 * since a process that was stopped may write to a cell that has a new owner: the seal decides whether they are valid.
 *
 * requests_sleep() and requests_post() are Dekker's pattern: each writes (`asleep`; the cell's word), then reads what
 * the other wrote. So either the agent sees the request, or the process sees that the agent sleeps and wakes it.
 * requests_resign() and a process that posts form the same pattern. One ends the claim and then searches for
 * requests. The other posts, and then checks that there is still an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "atomic.h"
#include "hash.h"
#include "mailbox.h"

#define WORDS_OF(type) (sizeof(type) / sizeof(uint64_t))

/* Longer than any process takes to write a text or fetch an answer, unless it is stopped. */
#define ABANDONED_NS UINT64_C(2000000000)

/* Longer than any process waits for an answer. */
#define LOST_NS UINT64_C(60000000000)

/* No agent claims a time that is so far ahead. Such a value is not a claim, and must not keep agents out for ever. */
#define BOGUS_NS (10 * REQUESTS_CLAIM_NS)

/* In `asleep`: what may wait does not wake it. No time is so large. */
#define DOZES (UINT64_C(1) << 63)

struct cell {
	uint64_t text_seal;
	uint64_t text[WORDS_OF(struct request_text)];
	uint64_t answer_seal;
	uint64_t answer[WORDS_OF(struct request_answer)];
	uint64_t unused[4];
};

struct requests {
	uint64_t claimed_until_ns; /* the agent's claim: claims are never equal, and only grow */
	uint64_t backend;          /* the agent's backend */
	uint64_t secret[2];        /* chosen by the first process that wanted to be the agent; then never changed */
	uint64_t unused[4];
	uint64_t asleep
		__attribute__((aligned(64))); /* the claim of the agent that sleeps, perhaps with DOZES; 0: none */
	uint64_t words[REQUESTS] __attribute__((aligned(64)));
	struct request_board board __attribute__((aligned(64)));
	uint64_t failures[REQUESTS_RULES] __attribute__((aligned(64)));
	struct request_server servers[SHMLIMIT_GLOBAL_SERVERS];
	struct cell cells[REQUESTS] __attribute__((aligned(4096)));
};

_Static_assert(offsetof(struct requests, cells) == 4096, "the board fits in the first page");
_Static_assert(sizeof(struct cell) == 18 * 64, "a cell is 18 lines");
_Static_assert(sizeof(struct request_text) % 8 == 0 && sizeof(struct request_answer) % 8 == 0, "both are words");

struct requests *requests_in(void *area, size_t size)
{
	return area != NULL && size >= offsetof(struct requests, cells) + sizeof(struct cell) * REQUESTS ? area : NULL;
}

uint64_t requests_backend(const char *url, const char *prefix)
{
	static const uint64_t none[2];

	return hash_bytes(none, hash_bytes(none, 0, url, strlen(url)), prefix, strlen(prefix)) | 1;
}

/* ---- Cells ---- */

static enum request_state state_of(uint64_t word)
{
	return word & 255;
}

static uint64_t with_state(uint64_t word, enum request_state state)
{
	return (word & ~UINT64_C(255)) | state;
}

/* Returns the futex of a word, which is 32 bits: the half that has the state. */
static uint32_t *futex_of(uint64_t *word)
{
	return (uint32_t *)(void *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static void futex_wait(uint64_t *word, uint64_t expected, uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	syscall(SYS_futex, futex_of(word), FUTEX_WAIT, (uint32_t)expected, &time, NULL, 0);
}

static void futex_wake(uint64_t *word)
{
	syscall(SYS_futex, futex_of(word), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void copy_in(uint64_t *to, const void *from, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, (const char *)from + 8 * i, sizeof(word));
		store_relaxed(&to[i], word);
	}
}

static void copy_out(void *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		uint64_t word = load_relaxed(&from[i]);

		memcpy((char *)to + 8 * i, &word, sizeof(word));
	}
}

static uint64_t seal(const struct requests *q, uint64_t word, const void *bytes, size_t len)
{
	uint64_t secret[2] = { load_relaxed(&q->secret[0]), load_relaxed(&q->secret[1]) };

	return hash_bytes(secret, with_state(word, 0), bytes, len);
}

/* Returns the size of a text up to the end of its key, in whole words. */
static size_t text_words(const struct request_text *text)
{
	return (offsetof(struct request_text, key) + text->key_len + 7) / 8;
}

/* ---- Processes ---- */

static int is_claimed(uint64_t until_ns, uint64_t now_ns)
{
	return now_ns < until_ns && until_ns - now_ns < BOGUS_NS;
}

int requests_are_claimed(const struct requests *q, uint64_t now_ns)
{
	return is_claimed(load_acquire(&q->claimed_until_ns), now_ns);
}

int requests_have_agent(const struct requests *q, uint64_t backend, uint64_t now_ns)
{
	return requests_are_claimed(q, now_ns) && load_relaxed(&q->backend) == backend;
}

int requests_are_failing(const struct requests *q, uint64_t now_ns)
{
	return now_ns < load_relaxed(&q->board.open_until_ns);
}

/* Claim the next free cell, from a start that differs between processes. */
static int claim_cell(struct requests *q, struct ticket *ticket)
{
	unsigned from = (unsigned)((uintptr_t)ticket >> 6) + (unsigned)getpid();

	for (unsigned i = 0; i < REQUESTS; i++) {
		unsigned cell = (from + i) % REQUESTS;
		uint64_t word = load_acquire(&q->words[cell]);

		if (state_of(word) != REQUEST_FREE ||
		    !word_cas(&q->words[cell], word, with_state(word + 256, REQUEST_WRITING)))
			continue;
		*ticket = (struct ticket){ cell, with_state(word + 256, 0) };
		return 0;
	}
	add_relaxed(&q->board.full, 1);
	return -EAGAIN;
}

static void wake(struct requests *q, int may_wait)
{
	uint64_t agent = load_acquire(&q->asleep);

	if (agent == 0 || (may_wait && (agent & DOZES) != 0))
		return;
	/* If it fails, another process wakes the agent, or another agent has gone to sleep: this one still sleeps. */
	word_cas(&q->asleep, agent, 0);
	futex_wake(&q->asleep);
}

void requests_wake(struct requests *q)
{
	wake(q, 0);
}

int requests_post(struct requests *q, const struct request_text *text, struct ticket *ticket)
{
	struct cell *cell;
	size_t words = text_words(text);

	if (claim_cell(q, ticket) != 0)
		return -EAGAIN;
	cell = &q->cells[ticket->cell];
	copy_in(cell->text, text, words);
	store_relaxed(&cell->text_seal, seal(q, ticket->word, text, 8 * words));
	/* It fails if this process was stopped until the cell was taken away. */
	if (!word_cas(&q->words[ticket->cell], with_state(ticket->word, REQUEST_WRITING),
	              with_state(ticket->word, REQUEST_POSTED)))
		return -EAGAIN;
	/* ORDER after the compare-and-swap; the partner is in fall_asleep(). */
	wake(q, text->kind == REQUEST_DEBIT || text->cost == 0);
	return 0;
}

static int is_answer(enum request_state state)
{
	return state >= REQUEST_ALLOWED && state <= REQUEST_AGAIN;
}

enum request_state requests_poll(struct requests *q, const struct ticket *ticket, struct request_answer *answer)
{
	const struct cell *cell = &q->cells[ticket->cell];
	uint64_t word = load_acquire(&q->words[ticket->cell]), found;

	if (with_state(word, 0) != ticket->word)
		return REQUEST_FREE;
	if (is_answer(state_of(word))) {
		copy_out(answer, cell->answer, WORDS_OF(*answer));
		found = load_relaxed(&cell->answer_seal);
		if (found != seal(q, word, answer, sizeof(*answer)))
			memset(answer, 0, sizeof(*answer));
		word_cas(&q->words[ticket->cell], word, with_state(word, REQUEST_FREE));
	}
	return state_of(word);
}

/* BOUND: until_ns; each round but the last is a wake-up, a signal, or a change of the cell. */
enum request_state requests_wait(struct requests *q, const struct ticket *ticket, uint64_t until_ns,
                                 struct request_answer *answer)
{
	uint64_t *at = &q->words[ticket->cell];

	for (;;) {
		enum request_state state = requests_poll(q, ticket, answer);
		uint64_t word = with_state(ticket->word, state), now_ns = now();

		if (state == REQUEST_FREE || is_answer(state))
			return state;
		if (now_ns < until_ns)
			futex_wait(at, word, until_ns - now_ns);
		else if (word_cas(at, word, with_state(word, REQUEST_FREE)))
			return REQUEST_FREE;
	}
}

/* ---- The agent ---- */

int requests_prepare(struct requests *q)
{
	uint64_t secret[2];

	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return -errno;
	for (int i = 0; i < 2; i++)
		if (load_relaxed(&q->secret[i]) == 0)
			word_cas(&q->secret[i], 0, secret[i] | 1);
	return 0;
}

/*
 * A new claim ends later than all earlier ones, so a process that was stopped and replaced cannot renew its own. WHY
 * write the backend each time: a process that was stopped between the two steps may have written its own in between.
 */
int requests_claim(struct requests *q, uint64_t *mine, uint64_t backend, uint64_t now_ns)
{
	uint64_t there = load_acquire(&q->claimed_until_ns), until_ns = now_ns + REQUESTS_CLAIM_NS;
	int was_mine = *mine != 0;

	if (was_mine ? there != *mine || until_ns <= there : is_claimed(there, now_ns)) {
		*mine = there == *mine ? there : 0;
		return *mine != 0;
	}
	if (!word_cas(&q->claimed_until_ns, there, until_ns)) {
		*mine = 0;
		return 0;
	}
	/* A doze of the old claim is over. Nothing else can be hidden: an agent that slept since has put its own claim there. */
	if (was_mine)
		word_cas(&q->asleep, there | DOZES, 0);
	*mine = until_ns;
	store_relaxed(&q->backend, backend);
	return 1;
}

/* End all requests in this state: their processes make them again. */
static void refuse(struct requests *q, enum request_state state)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint64_t word = load_acquire(&q->words[i]);

		if (state_of(word) == state && word_cas(&q->words[i], word, with_state(word, REQUEST_AGAIN)))
			futex_wake(&q->words[i]);
	}
}

void requests_resign(struct requests *q, uint64_t *mine)
{
	/* ORDER the compare-and-swap is a full barrier; the partner is in ask_agent(). */
	if (*mine != 0 && word_cas(&q->claimed_until_ns, *mine, now()))
		refuse(q, REQUEST_POSTED);
	*mine = 0;
}

void requests_inherit(struct requests *q)
{
	refuse(q, REQUEST_TAKEN);
}

/* Read the text. Returns whether it is whole: as one process posted it. */
static int read_text(const struct requests *q, const struct ticket *ticket, struct request_text *text)
{
	const struct cell *cell = &q->cells[ticket->cell];
	uint64_t found = load_relaxed(&cell->text_seal);

	copy_out(text, cell->text, offsetof(struct request_text, key) / 8);
	if (text->key_len < 1 || text->key_len > SHMLIMIT_KEY_MAX)
		return 0;
	copy_out(text->key, cell->text + offsetof(struct request_text, key) / 8, (text->key_len + 7) / 8);
	return found == seal(q, ticket->word, text, 8 * text_words(text));
}

/* WHY NOT stop after a few: requests in later cells would wait for as long as the earlier cells are busy. */
int requests_next(struct requests *q, unsigned *at, struct request_text *text, struct ticket *ticket)
{
	while (*at < REQUESTS) {
		unsigned cell = (*at)++;
		uint64_t word = load_acquire(&q->words[cell]);

		if (state_of(word) != REQUEST_POSTED ||
		    !word_cas(&q->words[cell], word, with_state(word, REQUEST_TAKEN)))
			continue;
		*ticket = (struct ticket){ cell, with_state(word, 0) };
		if (read_text(q, ticket, text))
			return 1;
		add_relaxed(&q->board.spoiled, 1);
		requests_answer(q, ticket, REQUEST_AGAIN, NULL);
	}
	return 0;
}

int requests_waits(const struct requests *q, const struct ticket *ticket)
{
	return load_acquire(&q->words[ticket->cell]) == with_state(ticket->word, REQUEST_TAKEN);
}

int requests_answer(struct requests *q, const struct ticket *ticket, enum request_state state,
                    const struct request_answer *answer)
{
	static const struct request_answer none;
	struct cell *cell = &q->cells[ticket->cell];

	if (!requests_waits(q, ticket))
		return 0;
	answer = answer != NULL ? answer : &none;
	copy_in(cell->answer, answer, WORDS_OF(*answer));
	store_relaxed(&cell->answer_seal, seal(q, ticket->word, answer, sizeof(*answer)));
	if (!word_cas(&q->words[ticket->cell], with_state(ticket->word, REQUEST_TAKEN),
	              with_state(ticket->word, state)))
		return 0;
	if (state != REQUEST_FREE)
		futex_wake(&q->words[ticket->cell]);
	return 1;
}

/*
 * The agent ends a posted request by taking it. Any other request must be ended by its agent or process, which may
 * have been killed.
 */
static int is_abandoned(enum request_state state, uint64_t unchanged_ns)
{
	if (state == REQUEST_TAKEN)
		return unchanged_ns >= LOST_NS;
	return (state == REQUEST_WRITING || state > REQUEST_TAKEN) && unchanged_ns >= ABANDONED_NS;
}

void requests_sweep(struct requests *q, struct requests_watch *watch, uint64_t now_ns)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint64_t word = load_acquire(&q->words[i]);

		if (word != watch->seen[i]) {
			watch->seen[i] = word;
			watch->since_ns[i] = now_ns;
		} else if (is_abandoned(state_of(word), now_ns - watch->since_ns[i])) {
			word_cas(&q->words[i], word, with_state(word, REQUEST_FREE));
		}
	}
}

static int has_posted(const struct requests *q)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (state_of(load_acquire(&q->words[i])) == REQUEST_POSTED)
			return 1;
	return 0;
}

/*
 * Claims are never equal. So an agent that was stopped and replaced, and goes to sleep while the next one does, cannot
 * undo that a process woke the next one. WHY NOT clear `asleep` at the end: another agent may have set it.
 */
/* `word` is in `asleep`. ORDER what put it there is a full barrier; the partner is in requests_post(). */
static void fall_asleep(struct requests *q, uint64_t word, uint64_t ns)
{
	if (!has_posted(q))
		futex_wait(&q->asleep, word, ns);
}

void requests_sleep(struct requests *q, uint64_t mine, uint64_t ns)
{
	publish(&q->asleep, mine);
	fall_asleep(q, mine, ns);
}

/*
 * An agent that was replaced, and does not know it yet, must not hide that the other one sleeps. WHY NOT from `mine` either: that
 * may have been put there while the other one slept.
 */
void requests_doze(struct requests *q, uint64_t mine, uint64_t ns)
{
	uint64_t there = load_acquire(&q->asleep);

	if ((there != 0 && there != (mine | DOZES)) || !word_cas(&q->asleep, there, mine | DOZES))
		requests_sleep(q, mine, ns);
	else
		fall_asleep(q, mine | DOZES, ns);
}

void requests_count_failure(struct requests *q, int rule)
{
	if (rule >= 0 && rule < REQUESTS_RULES)
		add_relaxed(&q->failures[rule], 1);
}

uint64_t requests_failures(const struct requests *q, int rule)
{
	return rule >= 0 && rule < REQUESTS_RULES ? load_relaxed(&q->failures[rule]) : 0;
}

struct request_board *requests_board(struct requests *q)
{
	return &q->board;
}

void requests_read_board(const struct requests *q, struct request_board *out)
{
	copy_out(out, (const uint64_t *)(const void *)&q->board, WORDS_OF(*out));
}

struct request_server *requests_server(struct requests *q, unsigned place)
{
	return &q->servers[place];
}

void requests_name_server(struct requests *q, unsigned place, const char *name)
{
	uint64_t text[WORDS_OF(q->servers[0].name)] = { 0 };

	strncpy((char *)text, name, sizeof(text) - 1);
	for (size_t i = 0; i < WORDS_OF(text); i++)
		store_relaxed(&q->servers[place].name[i], text[i]);
}

void requests_read_server(const struct requests *q, unsigned place, struct request_server *out)
{
	copy_out(out, (const uint64_t *)(const void *)&q->servers[place], WORDS_OF(*out));
}

void requests_set(uint64_t *word, uint64_t value)
{
	store_relaxed(word, value);
}

uint64_t requests_claimed_until_ns(const struct requests *q)
{
	return load_acquire(&q->claimed_until_ns);
}

unsigned requests_waiting(const struct requests *q)
{
	unsigned n = 0;

	for (unsigned i = 0; i < REQUESTS; i++)
		n += state_of(load_acquire(&q->words[i])) == REQUEST_POSTED ||
		     state_of(load_acquire(&q->words[i])) == REQUEST_TAKEN;
	return n;
}
