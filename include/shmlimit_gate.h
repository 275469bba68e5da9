/*
 * shmlimit_gate: the limits in front of a server or an application, in one call per request.
 *
 * A gate is described by a text (see shmlimit_gate_open()). It opens the segment
 * once per process, reopens it when it is replaced, makes keys from addresses and
 * long strings, asks up to 16 limits all or none, applies the failure policy, and
 * writes the header fields of the response.
 *
 * Every function that can fail returns a negative errno value; errno itself means
 * nothing afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_H
#define SHMLIMIT_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "shmlimit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* limits in one spec; one request asks up to SHMLIMIT_REQUESTS_MAX of them */
#define SHMLIMIT_GATE_LIMITS_MAX 4096
/* header fields of one answer: two for each limit, and four */
#define SHMLIMIT_GATE_FIELDS_MAX 36
#define SHMLIMIT_GATE_BUFFER 6784 /* bytes that suffice for the values of all fields */
/* bytes that suffice for one limit's fields; and 128 for the others */
#define SHMLIMIT_GATE_BUFFER_EACH 416

/* shmlimit_gate_answer.outcome */
enum shmlimit_gate_outcome {
	SHMLIMIT_GATE_UNLIMITED = 0, /* no limit had a key: the request goes on */
	SHMLIMIT_GATE_PASSED = 1,    /* all limits allow the request */
	SHMLIMIT_GATE_REJECTED = 2,  /* a limit denies the request */
	/* the request goes on; a limit in a dry run would have denied it */
	SHMLIMIT_GATE_REJECTED_DRY_RUN = 3,
	/*
	 * The segment or a rule is missing, or with fail=closed a LEASE rule's Redis server does
	 * not answer: the failure policy decided. Or there is no room for a rule, and the others
	 * allow.
	 */
	SHMLIMIT_GATE_FAILED = 4,
	/* the request goes on after it waited for a limit with delay= */
	SHMLIMIT_GATE_DELAYED = 5,
	/* the request goes on; a limit in a dry run would have made it wait */
	SHMLIMIT_GATE_DELAYED_DRY_RUN = 6
};

/* An answer of shmlimit_gate_begin() and shmlimit_gate_poll(): not decided yet. */
#define SHMLIMIT_GATE_PENDING 2

/* A request that waits for the agent while its caller does other work. */
struct shmlimit_gate_pending;

/* The limits of a server or an application, in one process or in several that fork from one. */
struct shmlimit_gate;

/* What is wrong with a spec. */
struct shmlimit_gate_wrong {
	uint32_t struct_size; /* sizeof(struct shmlimit_gate_wrong) */
	/*
	 * The word that is wrong; length 0: the whole limit whose rule= is at offset, or with
	 * offset 0 the whole spec.
	 */
	uint32_t offset, length;
	char text[180]; /* "must be cost=N, 1 or more" */
};

/* A limit of the spec, and whose tokens the request takes there. */
struct shmlimit_gate_key {
	uint32_t limit; /* the limit's place in the spec, from 0 */
	/* bytes of the key, any number; 0: the limit does not apply to this request */
	uint32_t length;
	const void *bytes;
	uint64_t cost; /* tokens that the request takes; 0: the cost in the spec */
	/*
	 * The request's own limit, of a rule with algorithm=gcra: as a text, such as "100/minute",
	 * or of a rule with places, such as rate="200 at once", as a number of them: "20 at once";
	 * the rule's is the most that counts. It is read by shmlimit_limit_parse() once for each
	 * text and process; or as such a structure, if `parsed` is not NULL. If the text is empty
	 * or cannot be read, which is reported, rate_error= decides, or else the rule's own limit;
	 * if it has none, fail= does.
	 */
	const char *rate;
	uint32_t rate_length; /* bytes; 0: there is no text */
	/*
	 * Of a limit with share=: this request's share, in thousandths, such as 4 *
	 * SHMLIMIT_SHARE_ONE; 0: the share in the spec.
	 */
	uint32_t share;
	const struct shmlimit_limit *parsed;
};

/* A header field of the response; both strings are NUL-terminated. */
struct shmlimit_gate_field {
	const char *name;  /* "RateLimit", a static string */
	const char *value; /* in the caller's buffer */
	uint32_t name_length, value_length;
};

/* The answer to a request. Set the first three members before the call. */
struct shmlimit_gate_answer {
	uint32_t struct_size; /* sizeof(struct shmlimit_gate_answer) */
	uint32_t buffer_size; /* bytes of `buffer` */
	char *buffer;         /* where the fields' values go; NULL: write no fields */
	uint32_t outcome;     /* SHMLIMIT_GATE_PASSED ... */
	uint32_t status;      /* HTTP status of the refusal; 0: the request goes on */
	int32_t error;        /* FAILED: why, as shmlimit_strerror() explains it; else 0 */
	/*
	 * REJECTED, DELAYED: index in `keys` of the limit that denied or delayed the request; in a
	 * dry run, that would have; else 0.
	 */
	uint32_t denied_by;
	/*
	 * tokens left in the limit that has the fewest, or in the one that denies; UINT64_MAX: not
	 * known
	 */
	uint64_t remaining;
	/* REJECTED: the same request fits after this long; UINT64_MAX: never; else 0 */
	uint64_t retry_after_ns;
	uint32_t field_count; /* number of `fields` */
	uint32_t reserved32;
	/*
	 * RateLimit-Policy and RateLimit for each limit that is enforced, as shmlimit_fields()
	 * writes them; Retry-After where a limit denies; and with x_fields X-RateLimit-Limit,
	 * X-RateLimit-Remaining and X-RateLimit-Reset (Unix time) of the limit that denies or has
	 * the fewest tokens left.
	 */
	struct shmlimit_gate_field fields[SHMLIMIT_GATE_FIELDS_MAX];
};

/* A place that a request holds in a limit of a HOLD rule. */
struct shmlimit_gate_place {
	uint32_t key; /* index in `keys` */
	int32_t rule; /* the rule's id */
	struct shmlimit_place place;
};

/* What a request has paid in a limit with estimate=. */
struct shmlimit_gate_bill {
	uint32_t key; /* index in `keys` */
	uint32_t reserved32;
	uint64_t paid; /* tokens */
};

/*
 * All places that a request holds, and what it has paid where that is not its cost yet. Set
 * struct_size before the call.
 */
struct shmlimit_gate_held {
	uint32_t struct_size; /* sizeof(struct shmlimit_gate_held) */
	uint32_t count;       /* 0: there is nothing to leave */
	/* which of the segments that the process had open has the places and tokens */
	uint64_t segment;
	struct shmlimit_gate_place places[SHMLIMIT_REQUESTS_MAX];
	uint32_t bill_count; /* 0: there is nothing to settle */
	uint32_t reserved32;
	struct shmlimit_gate_bill bills[SHMLIMIT_REQUESTS_MAX];
};

/*
 * Make a gate from its spec: words separated by white space.
 *
 *	segment=web fail=open create=yes mode=0660 group=www-data
 *	rule=login rate="5/minute" prefix=32,64
 *	rule=site cost=10 fields=denied
 *
 * shmlimit_gate(3) lists the words.
 *
 * backend=-, owner= and group= are looked up now. Nothing is opened before the first
 * shmlimit_gate_attach() or shmlimit_gate_ask() in the process, so a server can read its
 * configuration before it forks.
 *
 * Returns 0, or: -EINVAL an argument is NULL or the spec is wrong, see
 * shmlimit_gate_check(); -ENOMEM. Cost: system calls; call it at start-up.
 */
int shmlimit_gate_open(const char *spec, struct shmlimit_gate **out);

/* Release the gate. No thread may be inside a call on it. NULL is allowed. */
void shmlimit_gate_close(struct shmlimit_gate *gate);

/*
 * Check a spec. Returns 0, or -EINVAL after filling *wrong (unless NULL; set its struct_size
 * first), or -ENOMEM. Opens nothing. `spec` may lack rules, and may have only words of a limit
 * after rule=.
 */
int shmlimit_gate_check(const char *spec, struct shmlimit_gate_wrong *wrong);

/*
 * Compare a spec with its segment as it is now, to check a configuration before it is used.
 * `report` gets a line of text for each limit that would not be in force, whose rule is missing or
 * whose cost is above the rule's capacity; for slots=, mode= and group= that differ from what the
 * segment has; where /dev/shm had, or has, too little room for the slots; and for a segment that is
 * missing, unless there is create=yes, or that cannot be opened or created. `offset` is where the
 * limit's rule= begins in `spec`, or 0. Nothing is created or changed.
 *
 * Returns the number of lines, or: -EINVAL an argument is NULL or the spec is wrong; -ENOMEM. A
 * segment of any user is opened, and its owner can truncate it, which ends this process by SIGBUS:
 * call it in a process that only checks. Cost: system calls.
 */
int shmlimit_gate_compare(const char *spec,
                          void (*report)(void *arg, size_t offset, const char *text), void *arg);

/* The number of limits in the gate's spec. Pure. */
size_t shmlimit_gate_limits(const struct shmlimit_gate *gate);

/*
 * Set the function that gets one line of text when a problem begins (bad is 1) and when it ends
 * (bad is 0). The same text comes at most once a minute in each process. Set it before other
 * threads use the gate; any thread may call it. It must not call the gate.
 */
void shmlimit_gate_report(struct shmlimit_gate *gate,
                          void (*report)(void *arg, int bad, const char *text), void *arg);

/*
 * Report that clients behind a proxy are one, since the proxy's address is the key of a limit: once
 * in each process, however many gates it has, by the function of shmlimit_gate_report(), unless the
 * spec has proxy_warning=no.
 * `peer` is the address that connected, as text of `length` bytes, or "unix:"; `keys` are those of
 * the request. It is a proxy if it is loopback, private (RFC 1918, 6598, 4193), link-local or a
 * Unix socket, and the request has a header field that proxies write. `field` is its name, such as
 * X-Forwarded-For, or NULL to ask whether it matters; `advice` says how proxies are configured in
 * the server. Where they are, the key is the client's address, and nothing is reported.
 *
 * Returns 1: it was reported now, or would be if the request had the field; 0: neither; -EINVAL an
 * argument is NULL. Threads, fork, signals: as shmlimit_gate_ask(). Cost: a few comparisons.
 */
int shmlimit_gate_forwarded(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys,
                            size_t n, const char *peer, size_t length, const char *field,
                            const char *advice);

/*
 * Open the segment in this process now, and not with the first request, so that problems are
 * reported at start-up. Creates what create=yes allows; a rule gets the rate of the spec, unless
 * that is the rate that a gate gave it last: what was changed by hand since stays. Returns 0, or
 * what shmlimit_open() or shmlimit_create() returned: the gate is usable all the same, and tries
 * again each second.
 */
int shmlimit_gate_attach(struct shmlimit_gate *gate);

/*
 * Ask the limits of a request, 0 to SHMLIMIT_REQUESTS_MAX, all or none. Those with `peek` are asked
 * first, so that one that refuses costs no tokens; then the one that denied the gate's last denied
 * request, and the rest is not asked if it denies again. Where several deny, the answer names the
 * one that was asked first. Those with `peek` have fields only when they refuse, `remaining` leaves
 * them out, and a rule that is missing refuses nothing. A LEASE rule cannot be peeked at: that is a
 * failure. Those in a dry run are asked when the others allow, each by itself. A key longer than
 * SHMLIMIT_KEY_MAX is replaced by its SHA-512. With prefix=, an address as text, with or without a
 * port, or a list of them (see shmlimit_key_ip_text()), is replaced by the net of the address that
 * nth= chooses, and any other text is used as it is.
 *
 * Returns SHMLIMIT_ALLOWED: the request goes on; SHMLIMIT_DENIED: answer it with out->status. In
 * both cases add out->fields to the response. A missing segment or rule is no error here: the
 * failure policy gives the answer. Or, nothing being asked: -EINVAL an argument is NULL or out of
 * its range, also of a limit that is `parsed`; -E2BIG a member is set that this library does not
 * know; -ENOBUFS the buffer is smaller than 128 bytes and SHMLIMIT_GATE_BUFFER_EACH for each key.
 *
 * A request that is too early for a limit with delay= waits in that limit's line, in which it
 * stands before the other limits are asked, and the call returns when its turn comes: an event loop
 * calls shmlimit_gate_begin() instead. One that would wait for longer than that time is denied at
 * once; if other requests that do not wait take its tokens, it is denied after twice that time. It
 * takes its tokens 20 ms before its turn or less; until then it has taken nothing, and when a
 * request leaves the line or its process dies, all behind it move up. If killed later: the turn
 * passes unused. Whatever happens, no stretch of time sees more than the limit allows. Waiting
 * requests hold places under HOLD rules, which the gate makes, such as ~line128-8s: 16, 128, 1024
 * or 8192 places, each of which lasts for longer than requests may wait. 8192 wait for one
 * key at most; a key in whose line more than 1024 may wait has 128 KiB of places.
 *
 * Threads: safe. Fork: a child may go on with the gate. Signals: not to be called from handlers. No
 * memory is allocated. Cost: the decisions, and once a second a few system calls, to check whether
 * the segment was replaced under its name. A LEASE rule may ask its Redis server, and then waits up
 * to the deadline.
 */
int shmlimit_gate_ask(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                      struct shmlimit_gate_answer *out);

/*
 * Like shmlimit_gate_ask(), for requests that also have limits of HOLD rules: how many at once. A
 * request that goes on holds a place in each, until shmlimit_gate_leave(), or until this process is
 * dead; a rule such as "20 at once at most 5 minutes each" ends it by the clock, too. Places come
 * first: a request that one of them denies takes no tokens, and one that another limit denies
 * leaves its places. Under a rule that is off, or in a dry run without a free place, the request
 * holds none. Under a limit with the word dry_run it holds one, so that the answers are what they
 * would be without that word. Where other processes cannot know whether this one lives, a place
 * ends with the period of its rule. The cost of such a limit must be 1. Its field RateLimit says
 * how many places are free; it has no Retry-After, since nobody knows when a place will become
 * free. All places are entered in one step, or none. A limit with share= is asked after those
 * before it, also where it denied last; its policy is the limit of its rule, and its field
 * RateLimit says how many more its share allowed.
 *
 * Limits with the word estimate=N take N tokens, and are settled afterwards: see
 * shmlimit_gate_settle().
 *
 * Set the struct_size of *held first; held->count is 0 when nothing is held, and held->bill_count
 * when nothing is to be settled, also after an error. With shmlimit_gate_ask() a request takes a
 * place, too, which ends only with the period, and pays its estimate. More errors: -EINVAL `held`
 * is NULL or its struct_size is too small; or, of shmlimit_gate_ask(), a limit has a share.
 */
int shmlimit_gate_enter(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                        struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held);

/*
 * Leave all places of a request, and set held->count to 0. `keys` are those of
 * shmlimit_gate_enter(), with the same bytes; `n` is their number. Call it in the same process, or
 * in one that was forked since. A place that has ended, or whose segment was replaced, is skipped.
 * Returns 0, or -EINVAL: an argument is NULL, or `keys` are others. Threads, fork, signals: as
 * shmlimit_gate_ask(). Cost: less than a take for each place.
 */
int shmlimit_gate_leave(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                        struct shmlimit_gate_held *held);

#define SHMLIMIT_GATE_NOT_KNOWN UINT64_MAX

/*
 * Charge a request that goes on, such as a download, for what it has used so far, in its limits
 * with estimate=: used[i] is the number of tokens that keys[i] has used, or
 * SHMLIMIT_GATE_NOT_KNOWN. A limit is charged when the request has used as much as the estimate, or
 * more, beyond what it has paid; nothing is given back. So call it as often as something was used:
 * a request is never behind by more than its estimate and what it used since the last call.
 * shmlimit_gate_settle() then charges the rest, so that the sum is what the request cost. If the
 * process is killed, what was charged stays charged. The estimate is the cost of the key, or the
 * limit's if that is 0.
 *
 * Arguments, errors, threads, fork, signals and what cannot be charged: as shmlimit_gate_settle().
 * Cost: a few comparisons; where a limit is charged, a take.
 */
int shmlimit_gate_charge(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                         const uint64_t *used, struct shmlimit_gate_held *held);

/*
 * Settle what a request turned out to cost, in its limits with estimate=: used[i] is the number of
 * tokens that keys[i] has used in all, or SHMLIMIT_GATE_NOT_KNOWN, which leaves what it has paid.
 * The difference to what it has paid is charged or given back, and held->bills then says what it
 * has paid: so the same call again changes nothing, and a request can be settled as often as its
 * cost is known better. Whatever is never settled, such as a request of a killed process, has paid
 * its estimate, and what shmlimit_gate_charge() charged. The charge itself is never
 * denied: it makes debt, up to charge_max=. Later requests of the key are denied until that is
 * paid.
 *
 * `keys` are those of shmlimit_gate_enter(), with the same bytes and limits; `n` is their number,
 * also of `used`. Call it before or after shmlimit_gate_leave(), in the same process, or in one
 * that was forked since. Where the segment was replaced since, nothing is settled. Where a rule
 * allows no more debt, by its max-wait, or cannot be charged, as a window, what could be is
 * charged, which is reported once a minute.
 *
 * Returns 0, or -EINVAL: an argument is NULL, or `keys` are others. Threads, fork, signals: as
 * shmlimit_gate_ask(). If killed inside: some are settled. Cost: less than a take for each bill.
 */
int shmlimit_gate_settle(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                         const uint64_t *used, struct shmlimit_gate_held *held);

/*
 * For event loops: shmlimit_gate_ask() or, unless `held` is NULL, shmlimit_gate_enter() in steps,
 * none of which waits for the host's agent (see shmlimit_global_serve()), or for the tokens of a
 * limit with delay=. Returns what they return; or SHMLIMIT_GATE_PENDING: a LEASE rule is asked for,
 * or the request waits for its turn, and *pending is set. Then only out->retry_after_ns is meant:
 * poll again after this long, which is not how long it waits: it moves up when others leave. Other
 * requests, and those whose tokens are in the host's lease, are decided at once.
 *
 * -EAGAIN: the backend must be asked for a LEASE rule, or such a rule is in a dry run, and there is
 * no agent for it. Nothing is taken. Call shmlimit_gate_ask() or shmlimit_gate_enter() instead,
 * perhaps in another thread. shmlimit_gate_poll() returns it if the agent has ended. If it ends
 * when only a dry run is left, that is a failure of the dry run, and the request goes on.
 *
 * While a request is pending, its places and the tokens of LEASE rules stay taken; those of this
 * host's limits are taken at the end, but before a wait for a turn. The caller keeps `held`; keys,
 * `out` and its buffer are needed no longer. More errors: -ENOMEM.
 */
int shmlimit_gate_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                        struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held,
                        struct shmlimit_gate_pending **pending);

/*
 * Ask whether a pending request has been decided. Set out->struct_size, buffer and buffer_size as
 * for the first call. `held` is what the first call had, or a copy of it. Any other answer than
 * SHMLIMIT_GATE_PENDING, -EINVAL and -ENOBUFS releases `pending`. Call it in the process that began
 * the request, one thread at a time. If the segment was replaced since, the request begins again in
 * the new one.
 */
int shmlimit_gate_poll(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                       struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held);

/*
 * The request is no longer wanted, such as that of a client that has gone. Gives back what it has
 * taken, except a turn of delay= that comes within 20 ms, and releases `pending`. If held->count is
 * still above 0, call shmlimit_gate_leave() as for any request that ends. `pending` NULL is
 * allowed.
 */
void shmlimit_gate_cancel(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                          struct shmlimit_gate_held *held);

#ifdef __cplusplus
}
#endif

#endif
