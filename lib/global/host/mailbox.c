/*
 * mailbox: see mailbox.h.
 *
 * ORDER. The compare-and-swap of a word is a full barrier. A process that loads the word
 * (load_acquire) after it sees what was written to the cell before it. Texts and answers are read
 * and written a word at a time without order, since a process that was stopped may write to a cell
 * that has a new owner: the seal decides whether they are valid.
 *
 * mailbox_sleep() and mailbox_post() are Dekker's pattern: each writes (`asleep`; the cell's word),
 * then reads what the other wrote. So either the agent sees the request, or the process sees that
 * the agent sleeps and wakes it. mailbox_resign() and a process that posts form the same pattern.
 * One ends the claim and then searches for requests. The other posts, and then checks that there is
 * still an agent.
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
#include "clock.h"
#include "hash.h"
#include "holder.h"
#include "mailbox.h"

#define WORDS_OF(type) (sizeof(type) / sizeof(uint64_t))

/* Longer than any process takes to write a text or fetch an answer, unless it is stopped. */
#define ABANDONED_NS UINT64_C(2000000000)

/* Longer than any process waits for an answer. */
#define LOST_NS UINT64_C(60000000000)

/*
 * No agent claims a time that is so far ahead. Such a value is not a claim, and must not keep
 * agents out for ever.
 */
#define BOGUS_NS (10 * MAILBOX_CLAIM_NS)

/* In `asleep`: what may wait does not wake it. No time is so large. */
#define DOZES (UINT64_C(1) << 63)

struct cell {
	uint64_t text_seal;
	uint64_t text[WORDS_OF(struct request_text)];
	uint64_t answer_seal;
	uint64_t answer[WORDS_OF(struct request_answer)];
	uint64_t unused[4];
};

struct mailbox {
	uint64_t claimed_until_ns; /* the agent's claim: claims are never equal, and only grow */
	uint64_t backend;          /* the agent's backend */
	uint64_t secret[2];        /* chosen by the first process that claims; never changed */
	struct mailbox_outage outage;
	uint64_t far_ns;
	uint64_t asleep __attribute__((aligned(64))); /* claim of the sleeping agent, | DOZES; 0: none */
	uint64_t words[MAILBOX_CELLS] __attribute__((aligned(64)));
	struct mailbox_board board __attribute__((aligned(64)));
	uint64_t failures[MAILBOX_RULES] __attribute__((aligned(64)));
	struct mailbox_server servers[SHMLIMIT_GLOBAL_SERVERS];
	struct cell cells[MAILBOX_CELLS] __attribute__((aligned(4096)));
};

_Static_assert(offsetof(struct mailbox, cells) == 4096, "the board fits in the first page");
_Static_assert(sizeof(struct cell) == 18 * 64, "a cell is 18 lines");
_Static_assert(sizeof(struct request_text) % 8 == 0 && sizeof(struct request_answer) % 8 == 0, "both are words");

struct mailbox *mailbox_in(void *area, size_t size)
{
	return area != NULL && size >= offsetof(struct mailbox, cells) + sizeof(struct cell) * MAILBOX_CELLS ? area
	                                                                                                     : NULL;
}

uint64_t mailbox_backend(const char *url, const char *prefix)
{
	static const uint64_t none[2];

	return hash_bytes(none, hash_bytes(none, 0, url, strlen(url)), prefix, strlen(prefix)) | 1;
}

struct mailbox_outage *mailbox_outage(struct mailbox *box)
{
	return &box->outage;
}

/* ---- Cells ---- */

static enum request_state state_of_word(uint64_t word)
{
	return word & 255;
}

/* May the agent take it? */
static int is_posted(enum request_state state)
{
	return state == REQUEST_POSTED || state == REQUEST_REPEATED;
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

static uint64_t seal(const struct mailbox *box, uint64_t word, const void *bytes, size_t len)
{
	uint64_t secret[2] = { load_relaxed(&box->secret[0]), load_relaxed(&box->secret[1]) };

	return hash_bytes(secret, with_state(word, 0), bytes, len);
}

/* Returns the size of a text up to the end of its key, in whole words. */
static size_t text_words(const struct request_text *text)
{
	return (offsetof(struct request_text, key) + text->key_len + 7) / 8;
}

/* ---- Processes ---- */

/*
 * Was the agent's process killed? So it need not be waited for until its claim ends. A zombie was,
 * too: its parent may take long to notice. Where the pid says nothing here the answer is no. WHY a
 * wrong yes does no harm: an agent can be replaced at any moment, and sees that.
 */
static int is_dead(const struct mailbox *box)
{
	uint64_t space = load_relaxed(&box->board.pid_space);

	if (space == 0 || space != holder_namespace())
		return 0;
	return holder_is_dead((uint32_t)load_relaxed(&box->board.holder), clock_read(CLOCK_MONOTONIC));
}

static int is_claimed(const struct mailbox *box, uint64_t until_ns, uint64_t now_ns)
{
	return now_ns < until_ns && until_ns - now_ns < BOGUS_NS && !is_dead(box);
}

int mailbox_is_claimed(const struct mailbox *box, uint64_t now_ns)
{
	return is_claimed(box, load_acquire(&box->claimed_until_ns), now_ns);
}

void mailbox_sign(struct mailbox *box)
{
	uint32_t holder = 0; /* where /proc does not show it: never dead */

	(void)holder_of(0, &holder);
	mailbox_set(&box->board.pid_space, holder_namespace());
	mailbox_set(&box->board.holder, holder);
	mailbox_set(&box->board.pid, (uint64_t)getpid());
}

int mailbox_has_agent(const struct mailbox *box, uint64_t backend, uint64_t now_ns)
{
	return mailbox_is_claimed(box, now_ns) && load_relaxed(&box->backend) == backend;
}

int mailbox_is_failing(const struct mailbox *box, uint64_t now_ns)
{
	return now_ns < load_relaxed(&box->board.open_until_ns);
}

/* Claim the next free cell, from a start that differs between processes. */
static int claim_cell(struct mailbox *box, struct receipt *receipt)
{
	unsigned from = (unsigned)((uintptr_t)receipt >> 6) + (unsigned)getpid();

	for (unsigned i = 0; i < MAILBOX_CELLS; i++) {
		unsigned cell = (from + i) % MAILBOX_CELLS;
		uint64_t word = load_acquire(&box->words[cell]);

		if (state_of_word(word) != REQUEST_FREE ||
		    !word_cas(&box->words[cell], word, with_state(word + 256, REQUEST_WRITING)))
			continue;
		*receipt = (struct receipt){ cell, with_state(word + 256, 0) };
		return 0;
	}
	add_relaxed(&box->board.full, 1);
	return -EAGAIN;
}

static void wake(struct mailbox *box, int may_wait)
{
	uint64_t agent = load_acquire(&box->asleep);

	if (agent == 0 || (may_wait && (agent & DOZES) != 0))
		return;
	/*
	 * If it fails, another process wakes the agent, or another agent has gone to sleep: this
	 * one still sleeps.
	 */
	word_cas(&box->asleep, agent, 0);
	futex_wake(&box->asleep);
}

void mailbox_wake(struct mailbox *box)
{
	wake(box, 0);
}

int mailbox_post(struct mailbox *box, const struct request_text *text, struct receipt *receipt)
{
	struct cell *cell;
	size_t words = text_words(text);

	if (claim_cell(box, receipt) != 0)
		return -EAGAIN;
	cell = &box->cells[receipt->cell];
	copy_in(cell->text, text, words);
	store_relaxed(&cell->text_seal, seal(box, receipt->word, text, 8 * words));
	/* It fails if this process was stopped until the cell was taken away. */
	if (!word_cas(&box->words[receipt->cell], with_state(receipt->word, REQUEST_WRITING),
	              with_state(receipt->word, REQUEST_POSTED)))
		return -EAGAIN;
	/* ORDER after the compare-and-swap; the partner is in fall_asleep(). */
	wake(box, text->kind == REQUEST_DEBIT || text->cost == 0);
	return 0;
}

static int is_answer(enum request_state state)
{
	return state >= REQUEST_ALLOWED && state <= REQUEST_AGAIN;
}

enum request_state mailbox_poll(struct mailbox *box, const struct receipt *receipt, struct request_answer *answer)
{
	const struct cell *cell = &box->cells[receipt->cell];
	uint64_t word = load_acquire(&box->words[receipt->cell]), found;

	if (with_state(word, 0) != receipt->word)
		return REQUEST_FREE;
	if (is_answer(state_of_word(word))) {
		copy_out(answer, cell->answer, WORDS_OF(*answer));
		found = load_relaxed(&cell->answer_seal);
		if (found != seal(box, word, answer, sizeof(*answer)))
			memset(answer, 0, sizeof(*answer));
		word_cas(&box->words[receipt->cell], word, with_state(word, REQUEST_FREE));
	}
	return state_of_word(word);
}

/* BOUND: until_ns; each round but the last is a wake-up, a signal, or a change of the cell. */
enum request_state mailbox_await(struct mailbox *box, const struct receipt *receipt, uint64_t until_ns,
                                 struct request_answer *answer)
{
	for (;;) {
		enum request_state state = mailbox_poll(box, receipt, answer);
		uint64_t now_ns = now();

		if (!request_is_open(state) || now_ns >= until_ns)
			return state;
		futex_wait(&box->words[receipt->cell], with_state(receipt->word, state), until_ns - now_ns);
	}
}

/*
 * BOUND: a swap fails if the cell has changed: agents change it a few times, then it has an answer.
 */
enum request_state mailbox_wait(struct mailbox *box, const struct receipt *receipt, uint64_t until_ns,
                                struct request_answer *answer)
{
	uint64_t *at = &box->words[receipt->cell];

	for (;;) {
		enum request_state state = mailbox_await(box, receipt, until_ns, answer);
		uint64_t word = with_state(receipt->word, state);

		if (!request_is_open(state))
			return state;
		else if (word_cas(at, word, with_state(word, REQUEST_FREE)))
			return REQUEST_FREE;
	}
}

/* ---- The agent ---- */

int mailbox_prepare(struct mailbox *box)
{
	uint64_t secret[2];

	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return -errno;
	for (int i = 0; i < 2; i++)
		if (load_relaxed(&box->secret[i]) == 0)
			word_cas(&box->secret[i], 0, secret[i] | 1);
	return 0;
}

/*
 * A new claim ends later than all earlier ones, so a process that was stopped and replaced cannot
 * renew its own. WHY write the backend each time: a process that was stopped between the two steps
 * may have written its own in between.
 */
int mailbox_claim(struct mailbox *box, uint64_t *mine, uint64_t backend, uint64_t now_ns)
{
	uint64_t there = load_acquire(&box->claimed_until_ns), until_ns = now_ns + MAILBOX_CLAIM_NS;
	int was_mine = *mine != 0;

	if (was_mine ? there != *mine || until_ns <= there : is_claimed(box, there, now_ns)) {
		*mine = there == *mine ? there : 0;
		return *mine != 0;
	}
	/* The claim of an agent that was killed just now may end as late. */
	if (until_ns <= there && !was_mine && is_dead(box))
		until_ns = there + 1;
	if (!word_cas(&box->claimed_until_ns, there, until_ns)) {
		*mine = 0;
		return 0;
	}
	/*
	 * A doze of the old claim is over. Nothing else can be hidden: an agent that slept since
	 * has put its own claim there.
	 */
	if (was_mine)
		word_cas(&box->asleep, there | DOZES, 0);
	*mine = until_ns;
	store_relaxed(&box->backend, backend);
	return 1;
}

/*
 * End all requests in this state: their processes make them again. Those that an agent had taken do
 * not end: the next agent repeats them.
 */
static void refuse_requests(struct mailbox *box, enum request_state state)
{
	enum request_state to = state == REQUEST_TAKEN ? REQUEST_REPEATED : REQUEST_AGAIN;

	for (unsigned i = 0; i < MAILBOX_CELLS; i++) {
		uint64_t word = load_acquire(&box->words[i]);

		if (state_of_word(word) == state && word_cas(&box->words[i], word, with_state(word, to)))
			futex_wake(&box->words[i]);
	}
}

void mailbox_resign(struct mailbox *box, uint64_t *mine)
{
	/* ORDER the compare-and-swap is a full barrier; the partner is in via_agent(). */
	if (*mine != 0 && word_cas(&box->claimed_until_ns, *mine, now()))
		refuse_requests(box, REQUEST_POSTED);
	*mine = 0;
}

void mailbox_inherit(struct mailbox *box)
{
	refuse_requests(box, REQUEST_TAKEN);
}

/* Read the text. Returns whether it is whole: as one process posted it. */
static int read_text(const struct mailbox *box, const struct receipt *receipt, struct request_text *text)
{
	const struct cell *cell = &box->cells[receipt->cell];
	uint64_t found = load_relaxed(&cell->text_seal);

	copy_out(text, cell->text, offsetof(struct request_text, key) / 8);
	if (text->key_len < 1 || text->key_len > SHMLIMIT_KEY_MAX)
		return 0;
	copy_out(text->key, cell->text + offsetof(struct request_text, key) / 8, (text->key_len + 7) / 8);
	return found == seal(box, receipt->word, text, 8 * text_words(text));
}

/*
 * WHY NOT stop after a few: requests in later cells would wait for as long as the earlier cells are
 * busy.
 */
enum request_state mailbox_next(struct mailbox *box, unsigned *at, struct request_text *text, struct receipt *receipt)
{
	while (*at < MAILBOX_CELLS) {
		unsigned cell = (*at)++;
		uint64_t word = load_acquire(&box->words[cell]);

		if (!is_posted(state_of_word(word)) ||
		    !word_cas(&box->words[cell], word, with_state(word, REQUEST_TAKEN)))
			continue;
		*receipt = (struct receipt){ cell, with_state(word, 0) };
		if (read_text(box, receipt, text))
			return state_of_word(word);
		add_relaxed(&box->board.spoiled, 1);
		mailbox_answer(box, receipt, REQUEST_AGAIN, NULL);
	}
	return REQUEST_FREE;
}

uint64_t mailbox_host(const struct mailbox *box)
{
	/* The word of no cell: it is not the seal of anything. */
	return seal(box, UINT64_MAX, "", 0);
}

uint64_t mailbox_number(const struct receipt *receipt)
{
	return (receipt->word >> 8) * MAILBOX_CELLS + receipt->cell;
}

int mailbox_is_awaited(const struct mailbox *box, const struct receipt *receipt)
{
	return load_acquire(&box->words[receipt->cell]) == with_state(receipt->word, REQUEST_TAKEN);
}

int mailbox_answer(struct mailbox *box, const struct receipt *receipt, enum request_state state,
                   const struct request_answer *answer)
{
	static const struct request_answer none;
	struct cell *cell = &box->cells[receipt->cell];

	if (!mailbox_is_awaited(box, receipt))
		return 0;
	answer = answer != NULL ? answer : &none;
	copy_in(cell->answer, answer, WORDS_OF(*answer));
	store_relaxed(&cell->answer_seal, seal(box, receipt->word, answer, sizeof(*answer)));
	if (!word_cas(&box->words[receipt->cell], with_state(receipt->word, REQUEST_TAKEN),
	              with_state(receipt->word, state)))
		return 0;
	if (state != REQUEST_FREE)
		futex_wake(&box->words[receipt->cell]);
	return 1;
}

/*
 * The agent ends a posted request by taking it. Any other request must be ended by its agent or
 * process, which may have been killed.
 */
static int is_abandoned(enum request_state state, uint64_t unchanged_ns)
{
	if (state == REQUEST_TAKEN)
		return unchanged_ns >= LOST_NS;
	return (state == REQUEST_WRITING || state > REQUEST_TAKEN) && unchanged_ns >= ABANDONED_NS;
}

void mailbox_sweep(struct mailbox *box, struct mailbox_watch *watch, uint64_t now_ns)
{
	for (unsigned i = 0; i < MAILBOX_CELLS; i++) {
		uint64_t word = load_acquire(&box->words[i]);

		if (word != watch->seen[i]) {
			watch->seen[i] = word;
			watch->since_ns[i] = now_ns;
		} else if (is_abandoned(state_of_word(word), now_ns - watch->since_ns[i])) {
			word_cas(&box->words[i], word, with_state(word, REQUEST_FREE));
		}
	}
}

static int has_posted(const struct mailbox *box)
{
	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		if (is_posted(state_of_word(load_acquire(&box->words[i]))))
			return 1;
	return 0;
}

/*
 * Claims are never equal. So an agent that was stopped and replaced, and goes to sleep while the
 * next one does, cannot undo that a process woke the next one. WHY NOT clear `asleep` at the end:
 * another agent may have set it.
 */
/*
 * `word` is in `asleep`. ORDER what put it there is a full barrier; the partner is in
 * mailbox_post().
 */
static void fall_asleep(struct mailbox *box, uint64_t word, uint64_t ns)
{
	if (!has_posted(box))
		futex_wait(&box->asleep, word, ns);
}

void mailbox_sleep(struct mailbox *box, uint64_t mine, uint64_t ns)
{
	publish(&box->asleep, mine);
	fall_asleep(box, mine, ns);
}

/*
 * An agent that was replaced, and does not know it yet, must not hide that the other one sleeps.
 * WHY NOT from `mine` either: that may have been put there while the other one slept.
 */
void mailbox_doze(struct mailbox *box, uint64_t mine, uint64_t ns)
{
	uint64_t there = load_acquire(&box->asleep);

	if ((there != 0 && there != (mine | DOZES)) || !word_cas(&box->asleep, there, mine | DOZES))
		mailbox_sleep(box, mine, ns);
	else
		fall_asleep(box, mine | DOZES, ns);
}

void mailbox_count_failure(struct mailbox *box, int rule)
{
	if (rule >= 0 && rule < MAILBOX_RULES)
		add_relaxed(&box->failures[rule], 1);
}

uint64_t mailbox_failures(const struct mailbox *box, int rule)
{
	return rule >= 0 && rule < MAILBOX_RULES ? load_relaxed(&box->failures[rule]) : 0;
}

struct mailbox_board *mailbox_board(struct mailbox *box)
{
	return &box->board;
}

void mailbox_read_board(const struct mailbox *box, struct mailbox_board *out)
{
	copy_out(out, (const uint64_t *)(const void *)&box->board, WORDS_OF(*out));
}

struct mailbox_server *mailbox_server(struct mailbox *box, unsigned place)
{
	return &box->servers[place];
}

void mailbox_name_server(struct mailbox *box, unsigned place, const char *name)
{
	uint64_t text[WORDS_OF(box->servers[0].name)] = { 0 };

	strncpy((char *)text, name, sizeof(text) - 1);
	for (size_t i = 0; i < WORDS_OF(text); i++)
		store_relaxed(&box->servers[place].name[i], text[i]);
}

void mailbox_read_server(const struct mailbox *box, unsigned place, struct mailbox_server *out)
{
	copy_out(out, (const uint64_t *)(const void *)&box->servers[place], WORDS_OF(*out));
}

void mailbox_set(uint64_t *word, uint64_t value)
{
	store_relaxed(word, value);
}

uint64_t mailbox_claimed_until_ns(const struct mailbox *box)
{
	return load_acquire(&box->claimed_until_ns);
}

uint64_t mailbox_far_ns(const struct mailbox *box)
{
	return load_relaxed(&box->far_ns);
}

void mailbox_set_far(struct mailbox *box, uint64_t far_ns)
{
	if (load_relaxed(&box->far_ns) != far_ns)
		store_relaxed(&box->far_ns, far_ns);
}

unsigned mailbox_waiting(const struct mailbox *box)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		n += (unsigned)request_is_open(state_of_word(load_acquire(&box->words[i])));
	return n;
}
