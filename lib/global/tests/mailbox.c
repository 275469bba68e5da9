/*
 * requests: the cells through which processes ask an agent. Each process gets the answer to its own request or none;
 * nothing that was killed or stopped leaves a cell taken for ever.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "process/process.h"
#include "holder.h"
#include "mailbox.h"

#define FAR_NS (monotonic_ns() + 60000000000u)
#define THREADS 8

static struct mailbox *q;
static struct mailbox_watch watch;
static uint64_t mine;

static struct request_text text_of(uint64_t number, size_t key_len)
{
	struct request_text text = { .backend = 7,
		                     .rule = 3,
		                     .key_len = (uint16_t)key_len,
		                     .set_us = 11,
		                     .cost = number,
		                     .need = number,
		                     .want = 2 * number };

	for (size_t i = 0; i < key_len; i++)
		text.key[i] = (unsigned char)(number + i);
	return text;
}

static int same(const struct request_text *a, const struct request_text *b)
{
	return memcmp(a, b, offsetof(struct request_text, key)) == 0 && memcmp(a->key, b->key, a->key_len) == 0;
}

/* Take the only request that there is. */
static enum request_state next(struct request_text *text, struct receipt *receipt)
{
	unsigned at = 0;

	return mailbox_next(q, &at, text, receipt);
}

static void one(void)
{
	static const size_t lens[] = { 1, 7, 8, 9, 1023, SHMLIMIT_KEY_MAX };
	struct request_answer answer, given = { 100, 99, 0, 5 };
	struct receipt receipt, taken;
	struct request_text got;
	int whole = 0;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct request_text text = text_of(i + 1, lens[i]);

		whole += mailbox_post(q, &text, &receipt) == 0 && next(&got, &taken) == REQUEST_POSTED &&
		         same(&text, &got);
		whole += mailbox_is_awaited(q, &taken) && mailbox_answer(q, &taken, REQUEST_ALLOWED, &given);
		whole += mailbox_wait(q, &receipt, 0, &answer) == REQUEST_ALLOWED &&
		         memcmp(&answer, &given, sizeof(answer)) == 0;
	}
	is(whole, 18, "requests with keys of any length arrive as they were posted, and so do their answers");
	is(next(&got, &taken), 0, "an answered request is not taken again");
	is(mailbox_answer(q, &taken, REQUEST_DENIED, &given), 0, "an answered request is not answered again");
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_FREE, "an answer is fetched once");
}

static void gone(void)
{
	struct request_text text = text_of(1, 4), got;
	struct request_answer answer;
	struct receipt receipt, taken;
	uint64_t number;

	mailbox_post(q, &text, &receipt);
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_FREE, "a process whose deadline is over has no answer");
	is(next(&got, &taken), 0, "the agent does not take a request that nobody waits for");
	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	mailbox_wait(q, &receipt, 0, &answer);
	is(mailbox_is_awaited(q, &taken), 0, "the agent sees that a process no longer waits");
	is(mailbox_answer(q, &taken, REQUEST_ALLOWED, NULL), 0, "an answer that nobody waits for is not given");
	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	is(mailbox_answer(q, &taken, REQUEST_FREE, NULL), 1, "a request that nobody waits for ends without an answer");
	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	mailbox_inherit(q);
	number = mailbox_number(&taken);
	ok(next(&got, &taken) == REQUEST_REPEATED && got.cost == text.cost,
	   "what a killed agent had taken is taken again");
	ok(mailbox_number(&taken) == number, "it has the same number");
	is(mailbox_answer(q, &taken, REQUEST_REPEATED, NULL), 1, "an agent that ends hands back what it had taken");
	is(mailbox_await(q, &receipt, 0, &answer), REQUEST_REPEATED, "its process waits for the next agent");
	ok(next(&got, &taken) == REQUEST_REPEATED, "the next agent takes it again");
	mailbox_answer(q, &taken, REQUEST_DENIED, NULL);
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_DENIED, "its answer arrives");
	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	ok(mailbox_number(&taken) != number, "the next request has another number");
	mailbox_wait(q, &receipt, 0, &answer);
}

/* 64 processes are killed at one place each: with a cell that they write, posted, that is taken, or answered. */
static void killed(void)
{
	struct request_text text = text_of(5, 30), got;
	struct mailbox_board board;
	struct request_answer answer;
	struct receipt receipt, taken, old;
	uint64_t now_ns = 1;
	unsigned at = 0, again = 0, cells = 0;

	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		cells += mailbox_post(q, &text, &receipt) == 0;
	is(cells, MAILBOX_CELLS, "there is room for 64 requests");
	is(mailbox_post(q, &text, &receipt), -EAGAIN, "there is no room for one more");
	mailbox_read_board(q, &board);
	is(board.full, 1, "a request without room is counted");
	is(mailbox_waiting(q), MAILBOX_CELLS, "all of them wait");
	old = receipt;
	while (mailbox_next(q, &at, &got, &taken))
		mailbox_answer(q, &taken, REQUEST_ALLOWED, NULL);
	mailbox_sweep(q, &watch, now_ns);
	is(mailbox_post(q, &text, &receipt), -EAGAIN, "an answer that was not fetched is kept for a while");
	mailbox_sweep(q, &watch, now_ns += 3000000000u);
	for (unsigned i = 0; i < MAILBOX_CELLS; i++)
		again += mailbox_post(q, &text, &receipt) == 0;
	is(again, MAILBOX_CELLS, "the cells of processes that were killed are free again");
	is(mailbox_wait(q, &old, 0, &answer), REQUEST_FREE,
	   "a process that was only stopped finds that its cell was taken away");
	is(mailbox_waiting(q), MAILBOX_CELLS,
	   "a process whose cell was taken away leaves the request that is there alone");
	mailbox_sweep(q, &watch, now_ns += 1);
	mailbox_sweep(q, &watch, now_ns += 3000000000u);
	is(mailbox_waiting(q), MAILBOX_CELLS, "a request that waits is never swept away");
	at = 0;
	while (mailbox_next(q, &at, &got, &taken))
		mailbox_answer(q, &taken, REQUEST_FREE, NULL);
}

/* A process that was stopped while it wrote goes on in a cell that is another's by now. */
static void spoiled(void)
{
	struct request_text text = text_of(1, 100), got;
	struct request_answer answer, given = { 1, 2, 3, 4 };
	unsigned char *area = (unsigned char *)q, *found;
	struct receipt receipt, taken;

	/* Found by its key, which no other request had. */
	memset(text.key, 'u', 100);
	mailbox_post(q, &text, &receipt);
	found = memmem(area, 76 << 10, text.key, 100);
	found[50] ^= 1;
	is(next(&got, &taken), 0, "a text that another process wrote into is not taken");
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_AGAIN, "its process asks again");
	memset(text.key, 'v', 100);
	mailbox_post(q, &text, &receipt);
	found = memmem(area, 76 << 10, text.key, 100);
	found[100 - 1] ^= 1;
	is(next(&got, &taken), 0, "the key's last byte is sealed");
	mailbox_wait(q, &receipt, 0, &answer);
	given.limit = UINT64_C(0x123456789abcdef);
	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	mailbox_answer(q, &taken, REQUEST_DENIED, &given);
	found = memmem(area, 76 << 10, &given.limit, 8);
	found[9] ^= 1;
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_DENIED, "the answer itself is in the word");
	is(answer.limit | answer.remaining, 0, "numbers that another process wrote into are not believed");
}

static void claims(void)
{
	uint64_t a = 0, b = 0, now_ns = 1000;

	is(mailbox_claim(q, &a, 7, now_ns), 1, "the first is the agent");
	is(mailbox_claim(q, &b, 8, now_ns), 0, "a second process is not");
	is(mailbox_has_agent(q, 7, now_ns), 1, "processes with this backend have an agent");
	is(mailbox_has_agent(q, 8, now_ns), 0, "processes with another backend have none");
	is(mailbox_claim(q, &a, 7, now_ns += MAILBOX_CLAIM_NS - 1), 1, "the agent goes on being it");
	is(mailbox_claim(q, &b, 8, now_ns), 0, "nobody takes its place");
	now_ns += MAILBOX_CLAIM_NS;
	is(mailbox_has_agent(q, 7, now_ns), 0, "an agent that does not say that it lives is none");
	is(mailbox_claim(q, &b, 8, now_ns), 1, "another takes its place then");
	is(mailbox_claim(q, &a, 7, now_ns), 0, "the one that was stopped is the agent no more");
	is(a, 0, "it knows");
	mailbox_resign(q, &b);
	is(mailbox_has_agent(q, 8, monotonic_ns()), 0, "an agent that ends leaves none");
}

/* No time passes here: a killed agent is replaced before its claim ends. */
static void claims_of_the_killed(void)
{
	uint64_t a = 0, b = 0, now_ns = 1000;
	time_t end = time(NULL) + 60;
	pid_t child = fork();
	uint32_t holder = 0;
	siginfo_t info;

	if (child == 0)
		for (;;)
			pause();
	is(mailbox_claim(q, &a, 7, now_ns), 1, "a process is the agent");
	mailbox_sign(q);
	is(mailbox_claim(q, &b, 8, now_ns), 0, "an agent that has signed is not replaced");
	is(holder_of((uint32_t)child, &holder), 0, "a child has a holder");
	mailbox_set(&mailbox_board(q)->holder, holder);
	is(mailbox_has_agent(q, 7, now_ns), 1, "a process that lives is the agent");
	kill(child, SIGKILL);
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	/* What /proc showed alive is believed for some milliseconds. */
	while (mailbox_has_agent(q, 7, now_ns) && time(NULL) < end)
		sched_yield();
	is(mailbox_has_agent(q, 7, now_ns), 0, "an agent that was killed is none, though its parent does not know yet");
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	is(mailbox_has_agent(q, 7, now_ns), 0, "the same when its parent knows");
	is(mailbox_claim(q, &b, 8, now_ns), 1, "another process takes its place in the same moment");
	mailbox_sign(q);
	is(mailbox_has_agent(q, 8, now_ns), 1, "the new agent lives");
	is(mailbox_claim(q, &a, 7, now_ns), 0, "the old claim is over");
	mailbox_set(&mailbox_board(q)->holder, holder);
	mailbox_set(&mailbox_board(q)->pid_space, 1);
	is(mailbox_has_agent(q, 8, now_ns), 1, "a pid of another namespace says nothing");
	mailbox_resign(q, &b);
}

/* What a process with a fault, or one that was stopped, wrote beside the claim heals by itself. */
static void claims_are_overwritten(void)
{
	uint64_t *claim = (uint64_t *)(void *)q, a = 0, now_ns = 1000;

	*claim = UINT64_MAX;
	is(mailbox_has_agent(q, 7, now_ns), 0, "a claim without end is none");
	is(mailbox_is_claimed(q, now_ns), 0, "the status shows no agent then");
	is(mailbox_claim(q, &a, 7, now_ns), 1, "a process becomes the agent all the same");
	claim[1] = 8;
	is(mailbox_has_agent(q, 7, now_ns), 0, "the backend of another agent was written");
	is(mailbox_claim(q, &a, 7, now_ns += 1), 1, "the agent says that it lives");
	is(mailbox_has_agent(q, 7, now_ns), 1, "processes find the agent again, since it writes its backend each time");
	mailbox_resign(q, &a);
}

/* A request that comes while the agent ends. */
static void resigned(void)
{
	struct request_text text = text_of(1, 4), got;
	struct request_answer answer;
	struct receipt receipt, taken;
	uint64_t a = 0, now_ns = monotonic_ns() + 1;

	is(mailbox_claim(q, &a, 7, now_ns), 1, "there is an agent that will end");
	mailbox_post(q, &text, &receipt);
	mailbox_resign(q, &a);
	is(mailbox_wait(q, &receipt, 0, &answer), REQUEST_AGAIN, "an agent that ends hands back what it has not taken");
	mailbox_post(q, &text, &receipt);
	mailbox_resign(q, &a);
	is(next(&got, &taken), REQUEST_POSTED, "one that was not the agent hands back nothing");
	mailbox_answer(q, &taken, REQUEST_FREE, NULL);
}

/* Both the agent that took it and its process were killed, and no other agent inherited. */
static void lost(void)
{
	struct request_text text = text_of(1, 4), got;
	struct receipt receipt, taken;
	uint64_t now_ns = monotonic_ns();

	mailbox_post(q, &text, &receipt);
	next(&got, &taken);
	mailbox_sweep(q, &watch, now_ns);
	mailbox_sweep(q, &watch, now_ns += 20000000000u);
	is(mailbox_is_awaited(q, &taken), 1, "a request that is taken stays for longer than any process waits");
	mailbox_sweep(q, &watch, now_ns += 60000000000u);
	is(mailbox_is_awaited(q, &taken), 0, "a request that was lost is freed");
}

static void *sleep_long(void *until_ns)
{
	mailbox_sleep(q, 1, *(uint64_t *)until_ns - monotonic_ns());
	return NULL;
}

/* An agent that was stopped in its sleep, and replaced, wakes up while the next one sleeps. */
static void sleepers(void)
{
	uint64_t until_ns = monotonic_ns() + 60000000000u, *asleep = (uint64_t *)(void *)q + 8;
	struct request_text text = text_of(1, 4), got;
	struct receipt receipt, taken;
	pthread_t thread;

	*asleep = 0;
	if (pthread_create(&thread, NULL, sleep_long, &until_ns) != 0)
		bail("pthread_create");
	while (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	mailbox_sleep(q, 2, 1);
	mailbox_post(q, &text, &receipt);
	pthread_join(thread, NULL);
	ok(monotonic_ns() < until_ns, "a request wakes the agent, though one that was replaced woke up before");
	next(&got, &taken);
	mailbox_answer(q, &taken, REQUEST_FREE, NULL);
}

/* ---- Threads ---- */

static _Atomic unsigned wrong, right, running;

/* The answer tells the request. */
static void *ask(void *arg)
{
	uint64_t self = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 1; i <= 300; i++) {
		struct request_text text = text_of(self * 1000 + i, 1 + (self * 131 + i * 7) % 300);
		struct request_answer answer;
		struct receipt receipt;
		enum request_state state;

		if (mailbox_post(q, &text, &receipt) != 0)
			continue;
		/* Some give up at once. */
		state = mailbox_wait(q, &receipt, i % 5 == 0 ? 0 : FAR_NS, &answer);
		if (state == REQUEST_FREE && i % 5 == 0)
			continue;
		if (state == (text.cost % 2 ? REQUEST_ALLOWED : REQUEST_DENIED) && answer.limit == text.cost &&
		    answer.remaining == text.key[text.key_len - 1])
			right++;
		else
			wrong++;
	}
	running--;
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	struct request_text text;
	struct mailbox_board board, before;
	struct receipt receipt;

	mailbox_read_board(q, &before);
	running = THREADS;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, ask, (void *)i) != 0)
			bail("pthread_create");
	while (running > 0) {
		unsigned at = 0;

		while (mailbox_next(q, &at, &text, &receipt)) {
			struct request_answer answer = { text.cost, text.key[text.key_len - 1], 0, 0 };

			mailbox_answer(q, &receipt, text.cost % 2 ? REQUEST_ALLOWED : REQUEST_DENIED, &answer);
		}
		mailbox_sleep(q, 1, 1000000);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	mailbox_read_board(q, &board);
	is(wrong, 0, "in 8 threads each request gets its own answer or none");
	ok(right >= THREADS * 240, "each that waits gets one");
	is(board.spoiled - before.spoiled, 0, "no text is spoiled where nothing is stopped");
	is(mailbox_waiting(q), 0, "no request is left");
}

int main(void)
{
	struct shmlimit *l;
	size_t size = 0;
	void *area;

	stage_begin("global.requests");
	l = stage_create(64, 0, 0);
	area = shmlimit_area(l, &size);
	is(size, 76 << 10, "the area has 76 KiB");
	is((uintptr_t)area % 4096, 0, "it begins at a page");
	q = mailbox_in(area, size);
	ok(q != NULL, "the requests fit into a segment's area");
	ok(mailbox_in(area, size - 1) == NULL, "they do not fit into a smaller one");
	is(mailbox_prepare(q), 0, "there is a secret");
	is(mailbox_claim(q, &mine, 7, 1), 1, "there is an agent");
	mailbox_resign(q, &mine);
	*(uint64_t *)area = 0;
	one();
	gone();
	killed();
	spoiled();
	claims();
	claims_of_the_killed();
	claims_are_overwritten();
	resigned();
	lost();
	sleepers();
	threads();
	shmlimit_close(l);
	return tap_done();
}
