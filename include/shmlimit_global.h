/*
 * shmlimit_global: one limit over many hosts, through a Redis or Valkey server.
 *
 * A LEASE rule's funnel stands in the engine, one for all hosts. A host leases
 * tokens there, many at a time, and its processes spend them in shared memory: a
 * token is debited there before it is spent here, so that over all hosts no more
 * than
 *
 *	capacity + count * (time / period)
 *
 * tokens are admitted in any stretch of time; and a busy key asks the engine some
 * ten times a second and host, however many requests there are. A denial is kept
 * until a retry is worth it, so a flooded key costs the engine nothing.
 *
 * Every function that can fail returns a negative errno value; errno itself means
 * nothing afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GLOBAL_H
#define SHMLIMIT_GLOBAL_H

#include <stddef.h>
#include <stdint.h>

#include "shmlimit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHMLIMIT_GLOBAL_PREFIX_MAX 64      /* bytes of a prefix, the NUL apart */
#define SHMLIMIT_GLOBAL_REQUESTS_MAX 64    /* requests that one shmlimit_global_take_many() can ask */

/* shmlimit_global_options.on_failure: what is answered when the engine says nothing. */
#define SHMLIMIT_GLOBAL_DENY 0
#define SHMLIMIT_GLOBAL_ALLOW 1
/*
 * What a funnel of this host says: a share of the limit. It does not know of the engine's funnel: at worst a stretch of
 * time sees 1 + hosts * local_milli / 1000 times the limit.
 */
#define SHMLIMIT_GLOBAL_LOCAL 2

/* A process's, or thread's, handle on an engine. */
struct shmlimit_global;

/* Zero everything, set struct_size, then what differs from the default. */
struct shmlimit_global_options {
	uint32_t struct_size;      /* sizeof(struct shmlimit_global_options) */
	uint32_t on_failure;       /* SHMLIMIT_GLOBAL_DENY (default), _ALLOW, _LOCAL */
	uint64_t deadline_ns;      /* the longest that a call waits for the engine: 100 us to 10 s, default 5 ms */
	uint64_t lease_ns;         /* how long a lease lasts, and how much is leased: 1 ms to 10 s, default 100 ms */
	uint64_t open_ns;          /* how long nobody asks an engine that failed: 1 ms to 1 h, default 200 ms */
	uint32_t open_after;       /* ... so many times running, in one process: default 1 */
	uint32_t local_milli;      /* LOCAL: this host's share, thousandths of the limit: 1 to 1000, default 1000 */
	const char *prefix;        /* of the keys there, without '{': default "shmlimit:" */
	/*
	 * Is told what is wrong, in one line, when it begins to be so: an URL, a
	 * password, an engine that is gone, a rule that is another one elsewhere. NULL:
	 * nobody is. Never has the password in it. Must not call the handle.
	 */
	void (*report)(void *arg, const char *text);
	void *arg;
	uint64_t reserved[4];      /* must be zero */
};

/* What an engine says of itself. */
struct shmlimit_global_info {
	uint32_t struct_size;      /* sizeof(struct shmlimit_global_info) */
	uint32_t reserved32;
	uint64_t round_trip_ns;    /* of one PING */
	char version[24];          /* "7.0.15" */
	char mode[16];             /* "standalone", "cluster", "sentinel" */
	char role[16];             /* "master", "replica" */
	char eviction[24];         /* its maxmemory-policy, "noeviction"; "": its user may not know (INFO) */
	uint64_t memory_max;       /* maxmemory, bytes; 0: without a limit, or not known */
	uint64_t clients;          /* connections that it has; 0: not known */
	uint64_t clients_max;      /* maxclients; 0: not known */
};

/* A funnel as the engine has it. */
struct shmlimit_global_funnel {
	uint32_t struct_size;      /* sizeof(struct shmlimit_global_funnel) */
	uint32_t reserved32;
	uint64_t remaining;        /* whole tokens that may still be leased */
	uint64_t reset_after_ns;   /* until it is full, if nobody leases */
	uint64_t lease_ns;         /* how long leases of this rule last */
};

/*
 * Make a handle for the engine at `url`:
 *
 *	redis://[[user]:password@]host[:port][/db]       port 6379, database 0
 *	unix://[[user]:password@]/path[?db=N]            also redis+unix:
 *
 * Reserved characters are %-encoded. `limiter` must stay open until the handle is
 * closed. `options` NULL means all defaults. Nobody is connected to yet: who asks
 * first does.
 *
 * In the segment a rule "~engine" is made, if there is none: for the circuit
 * breaker, which all processes of the host share.
 *
 * Returns 0, or: -EINVAL an argument is NULL, the URL is wrong (options.report is
 * told how), or an option is out of its range; -EPROTONOSUPPORT rediss:, which
 * needs a tunnel; -E2BIG a field is set that this library does not know; -ENOMEM; and
 * what shmlimit_rule_set() says: -EROFS, -EXFULL, -ENOENT ...
 *
 * Threads: a handle is one thread's at a time; each has its own. Signals: not to
 * be called from handlers. Fork: a child may go on with the handle, and connects
 * anew. Cost: system calls.
 */
int shmlimit_global_open(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                         struct shmlimit_global **out);

/* Give the handle back. NULL is allowed. Leases stay with the host until they end. */
void shmlimit_global_close(struct shmlimit_global *global);

/*
 * Take `cost` tokens of the funnel that all hosts share. Where this host has them
 * leased this is a take, without a system call. Else one process a key asks the
 * engine; others wait for what it gets. Under a rule that is not a LEASE this is
 * shmlimit_take().
 *
 * r->remaining is what this host holds, and what the engine has left if it was
 * just asked; r->reset_after_ns of the funnel there, if it was; r->retry_after_ns is
 * when this host asks again, and may be later than a token is there: a busy key
 * asks for batches.
 *
 * When the engine says nothing by the deadline, the answer is on_failure's; so it
 * is at once while the breaker is open, and when the engine says what is
 * reported: another type of key. An error is only what a take
 * returns: a bad key, rule or handle.
 *
 * If killed inside: what was leased and not deposited is lost, as if it were
 * spent. Cost: a take; or a round trip, the deadline at the most; the first in a
 * process connects too, and looks a host's name up, for as long as that takes.
 */
int shmlimit_global_take(struct shmlimit_global *global, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r);

/*
 * Take for 0 to SHMLIMIT_GLOBAL_REQUESTS_MAX requests, each by itself, as
 * shmlimit_take_many() does. Those that need the engine ask it 16 in a round trip,
 * each of which has the deadline.
 * Returns 0 or, nothing being decided, -EINVAL.
 */
int shmlimit_global_take_many(struct shmlimit_global *global, const struct shmlimit_request *requests, size_t n,
                              int *answers, struct shmlimit_result *results);

/*
 * Ask the engine what it is; *out may be NULL. The breaker is not looked at. Returns
 * 0, or, options.report being told why: -EACCES user or password; -EPROTO too old;
 * -ETIMEDOUT no answer in the deadline; -EBADMSG an answer that makes no sense; -EBUSY it does not
 * write; -EDOM no such database; -ENOEXEC it keeps no scripts; -EXDEV the key is on a node that was not
 * found; -ECONNREFUSED, -ENOENT ... what the system says.
 */
int shmlimit_global_ping(struct shmlimit_global *global, struct shmlimit_global_info *out);

/*
 * How long the circuit breaker of this host stays open, so that the engine is not
 * asked and takes are answered by on_failure; 0 while it is closed. Cost: a peek.
 */
uint64_t shmlimit_global_breaker_ns(struct shmlimit_global *global);

/* What the engine has of one key. Returns 0, or as ping does; -EMEDIUMTYPE no funnel. */
int shmlimit_global_peek(struct shmlimit_global *global, int rule, const void *key, size_t key_len,
                         struct shmlimit_global_funnel *out);

/*
 * Delete one key's funnel in the engine, which is full then, and this host's lease
 * of it; where `key` is NULL, those of all keys of the rule. Also ones of other
 * terms, left from before the rule was changed on all hosts. Other hosts go on
 * spending what they have leased. Returns how many funnels the engine had, or as ping
 * does. Cost: a walk over all
 * the engine's keys where `key` is NULL, the deadline being each step's; in a cluster,
 * of those that the URL's node has.
 */
int shmlimit_global_reset(struct shmlimit_global *global, int rule, const void *key, size_t key_len);

#ifdef __cplusplus
}
#endif

#endif
