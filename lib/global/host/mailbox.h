/*
 * mailbox: the processes of a host ask its agent through shared memory: 64 cells. The owner of a
 * cell is determined by one word, and changes only by a compare-and-swap of it:
 *
 *	word : [ generation : 56 ] [ state : 8 ]
 *
 *	FREE -> WRITING -> POSTED -> TAKEN -> ALLOWED, DENIED, FAILED, AGAIN -> FREE
 *	        process    process   agent    agent                             process
 *	                 REPEATED <-
 *	                          agent
 *
 * From FREE to WRITING the generation grows by one. A process that stops waiting frees its cell,
 * from POSTED, REPEATED or TAKEN. The agent frees cells whose word has not changed for a while:
 * their process was killed, or is stopped.
 *
 * REPEATED: an agent had taken the request, and was killed, replaced or ended before it answered.
 * The next one takes it again, with the same identity: cell and generation. The backend keeps the
 * identities of additions that it has counted for this host, and answers a repeated one without
 * counting it again.
 *
 * INVARIANT A process accepts only an answer of its own generation, since the answer is in the
 * word. So no answer is taken for that of another request, whatever the two ask for.
 *
 * INVARIANT The agent asks only for what one process wrote as a whole. The text has a seal: a keyed
 * hash of the text and the generation. A process that was stopped while it wrote, and continues in
 * a cell that has a new owner, spoils a text, and the seal shows it. WHY a key: without one a
 * client could choose keys that make a mixture of two texts look whole. The numbers of an answer
 * have a seal too.
 *
 * Nothing waits for a process or an agent that was killed: a process waits until its deadline, and
 * the agent does not wait for processes. After posting, a process must check that there is an
 * agent, or not wait: an agent that ended before did not see the request.
 *
 * Threads: all functions may run in any number of threads and processes, except those of the agent.
 * Signals: not to be called from handlers. Times are of CLOCK_MONOTONIC.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_MAILBOX_H
#define GLOBAL_MAILBOX_H

#include <stddef.h>
#include <stdint.h>

#include "shmlimit_global.h"

/*
 * WHY NOT 1,024: the area of each segment would be 1.2 MB, for hosts that have no backend too. At a
 * round trip of a millisecond 64 requests at once are 64,000 a second. One that finds no cell is
 * made again until its deadline; that is counted (`full`), and there is an alert for it.
 */
#define MAILBOX_CELLS 64u

/*
 * An agent that does not renew its claim for this long is replaced; at once if its process is seen
 * to be gone, as in the same pid namespace.
 */
#define MAILBOX_CLAIM_NS UINT64_C(800000000)

enum request_state {
	REQUEST_FREE,
	REQUEST_WRITING,
	REQUEST_POSTED,
	REQUEST_REPEATED, /* posted again by an agent, which may have asked the backend */
	REQUEST_TAKEN,
	REQUEST_ALLOWED,
	REQUEST_DENIED,
	REQUEST_FAILED, /* the backend gave no answer: on_failure decides */
	REQUEST_AGAIN,  /* the rule has changed or the agent ends: ask again */
};

enum request_kind {
	REQUEST_AWAITED,    /* a process waits for the answer */
	REQUEST_UNAWAITED,  /* tokens are missing, but no process waits: none are taken for it */
	REQUEST_DEBIT,      /* the key was lent `cost` tokens: the backend counts them; no process waits */
	REQUEST_COUNT,      /* add `cost` to a count, up to `need`; one that begins lives for `want` ns */
	REQUEST_COUNT_FITS, /* the same, or what fits */
	/* As REQUEST_AWAITED, and 1 to 8 requests of the key will come in a longer lease. */
	REQUEST_STEADY = 16,
};

#define REQUEST_STEADY_MAX 8u

/* 0: the request does not ask for a longer lease. */
static inline unsigned request_steady(unsigned kind)
{
	return kind > REQUEST_STEADY && kind <= REQUEST_STEADY + REQUEST_STEADY_MAX ? kind - REQUEST_STEADY : 0;
}

/* Has it neither its answer nor its end? */
static inline int request_is_open(enum request_state state)
{
	return state >= REQUEST_POSTED && state <= REQUEST_TAKEN;
}

static inline int request_is_awaited(unsigned kind)
{
	return kind == REQUEST_AWAITED || request_steady(kind) != 0;
}

static inline int request_is_count(unsigned kind)
{
	return kind == REQUEST_COUNT || kind == REQUEST_COUNT_FITS;
}

/* What a process asks for. A multiple of 8 bytes, without padding. */
struct request_text {
	uint64_t backend; /* the number of the backend and prefix: see mailbox_backend() */
	uint32_t rule;
	uint16_t key_len, kind; /* kind: enum request_kind */
	uint64_t set_us;        /* when the rule was set: an answer is of one version of it */
	uint64_t cost;          /* 0: more is leased ahead, and no process waits for the answer */
	uint64_t need, want;
	unsigned char key[SHMLIMIT_KEY_MAX];
};

/*
 * The numbers of an answer. Of a count: the count, what was added, nothing, and the time until it
 * ends.
 */
struct request_answer {
	uint64_t limit, remaining, retry_after_ns, reset_after_ns;
};

/* One request: its cell, and the word of the cell while it has this request. */
struct receipt {
	unsigned cell;
	uint64_t word;
};

/* What the agent reports about itself, and how often requests found no free cell. */
struct mailbox_board {
	uint64_t pid, pid_space, holder; /* the same process: in which namespace, and as of holder.h */
	uint64_t started_ns;
	uint64_t served, failed, late, spoiled;
	uint64_t round_trip_ns, open_until_ns, connections;
	uint64_t full;    /* counted by the processes */
	uint64_t servers; /* of the agent */
	uint64_t misses;  /* requests that processes wait for */
	uint64_t unpaid;  /* tokens that were lent to keys, and that the backend did not give */
	uint64_t round_trips_ns, round_trips[SHMLIMIT_GLOBAL_ROUND_TRIPS];
};

/* What the agent reports about a server. A name that is read while it changes may be a mixture. */
struct mailbox_server {
	uint64_t failing, openings;
	uint64_t name[sizeof(((struct shmlimit_global_server *)0)->name) / 8];
};

/*
 * Of outage.h: since when (0: there is none), when it was last reported, what on_failure decided.
 */
struct mailbox_outage {
	uint64_t since_ns, told_ns, decisions;
};

struct mailbox; /* the area of a segment */

/* Returns the mailbox in a segment's area; NULL if there is none, or it is too small. */
struct mailbox *mailbox_in(void *area, size_t size);

/* Returns the number of a backend and prefix. */
uint64_t mailbox_backend(const char *url, const char *prefix);

struct mailbox_outage *mailbox_outage(struct mailbox *box);

/* ---- Processes ---- */

/* Is there an agent; and is it for this backend? */
int mailbox_is_claimed(const struct mailbox *box, uint64_t now_ns);
int mailbox_has_agent(const struct mailbox *box, uint64_t backend, uint64_t now_ns);

/* Does the server of the agent's URL fail, as far as the agent knows? */
int mailbox_is_failing(const struct mailbox *box, uint64_t now_ns);

/*
 * Post a request and wake the agent; one that dozes goes on dozing if it is a debit or more to be
 * leased ahead. Returns 0, or -EAGAIN: no cell is free.
 */
int mailbox_post(struct mailbox *box, const struct request_text *text, struct receipt *receipt);

/*
 * Look for the answer. Returns a state that request_is_open() while there is none. Otherwise the
 * cell is no longer the caller's: REQUEST_ALLOWED ... _AGAIN, with *answer filled, or zeroed if its
 * seal is wrong; or REQUEST_FREE: the agent gave the request up.
 */
enum request_state mailbox_poll(struct mailbox *box, const struct receipt *receipt, struct request_answer *answer);

/* Wait for the answer. Returns as mailbox_poll(). */
enum request_state mailbox_await(struct mailbox *box, const struct receipt *receipt, uint64_t until_ns,
                                 struct request_answer *answer);

/*
 * The same, but if the time is over it returns REQUEST_FREE, and the cell is no longer the
 * caller's.
 */
enum request_state mailbox_wait(struct mailbox *box, const struct receipt *receipt, uint64_t until_ns,
                                struct request_answer *answer);

/*
 * Count a request that on_failure decided, and return the count, of a rule; only of the first
 * MAILBOX_RULES ids.
 */
#define MAILBOX_RULES 256
void mailbox_count_failure(struct mailbox *box, int rule);
uint64_t mailbox_failures(const struct mailbox *box, int rule);

/* ---- The agent ---- */

/* A process calls this once before it claims. Returns 0, or -errno without random numbers. */
int mailbox_prepare(struct mailbox *box);

/*
 * Become the agent, or stay it. *mine is 0 at first, and the caller keeps it. Returns 1 if the
 * caller is the agent; 0 if another process is, or has been in between.
 */
int mailbox_claim(struct mailbox *box, uint64_t *mine, uint64_t backend, uint64_t now_ns);

/* Write which process is the agent, so that others of its pid namespace see when it was killed. */
void mailbox_sign(struct mailbox *box);

/* Stop being the agent. Requests that were not taken yet are made again. */
void mailbox_resign(struct mailbox *box, uint64_t *mine);

/* Post again what an earlier agent had taken. */
void mailbox_inherit(struct mailbox *box);

/*
 * Take the next request from cell *at on, and move *at behind it. Returns REQUEST_POSTED;
 * REQUEST_REPEATED: an agent may have asked the backend for it before; or 0: there is none.
 */
enum request_state mailbox_next(struct mailbox *box, unsigned *at, struct request_text *text, struct receipt *receipt);

/*
 * What identifies a request for ever: its host, which is this mailbox, and its number there. They
 * are the same each time that an agent takes it.
 */
uint64_t mailbox_host(const struct mailbox *box);
uint64_t mailbox_number(const struct receipt *receipt);

/* Does the process of this request still wait? */
int mailbox_is_awaited(const struct mailbox *box, const struct receipt *receipt);

/*
 * Answer the request. Returns 1, or 0 if the process no longer waits. FREE: for a request that no
 * process waited for. REPEATED: no answer; the next agent is to take it again.
 */
int mailbox_answer(struct mailbox *box, const struct receipt *receipt, enum request_state state,
                   const struct request_answer *answer);

/*
 * For freeing the cells of killed processes: those whose words have equalled `seen` since
 * `since_ns`.
 */
struct mailbox_watch {
	uint64_t seen[MAILBOX_CELLS], since_ns[MAILBOX_CELLS];
};
void mailbox_sweep(struct mailbox *box, struct mailbox_watch *watch, uint64_t now_ns);

/*
 * Sleep until a request is posted, a signal comes, or the time is over. `mine`: as of
 * mailbox_claim().
 */
void mailbox_sleep(struct mailbox *box, uint64_t mine, uint64_t ns);

/*
 * The same, but what may wait does not wake the agent (see mailbox_post()): to be looked for again
 * soon. A system call that wakes another process takes 20 us; so an agent that was asked lately
 * spares its processes that.
 */
void mailbox_doze(struct mailbox *box, uint64_t mine, uint64_t ns);

/* Wake an agent that sleeps or dozes. It may be another process's. */
void mailbox_wake(struct mailbox *box);

/* The agent's figures. mailbox_read_board() reads them without order. */
struct mailbox_board *mailbox_board(struct mailbox *box);
void mailbox_read_board(const struct mailbox *box, struct mailbox_board *out);
struct mailbox_server *mailbox_server(struct mailbox *box, unsigned place);
void mailbox_name_server(struct mailbox *box, unsigned place, const char *name);
void mailbox_read_server(const struct mailbox *box, unsigned place, struct mailbox_server *out);
void mailbox_set(uint64_t *word, uint64_t value);

/*
 * Where the backend is far away, as measured by the agent: the usual round trip, which is more than
 * half of the agent's deadline; otherwise 0. It is what all processes go by that lease from there.
 */
uint64_t mailbox_far_ns(const struct mailbox *box);
void mailbox_set_far(struct mailbox *box, uint64_t far_ns);

uint64_t mailbox_claimed_until_ns(const struct mailbox *box);
unsigned mailbox_waiting(const struct mailbox *box);

#endif
