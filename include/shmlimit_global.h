/*
 * shmlimit_global: one limit over many hosts, through a Redis or Valkey server.
 *
 * The backend holds the funnel of a LEASE rule, one for all hosts. A host leases many tokens at
 * a time, and its processes spend them in shared memory. A token is debited on the backend
 * before it is spent on the host. So in any stretch of time all hosts together admit at most
 *
 *	capacity + refill * (time / period)
 *
 * tokens; and where they give tokens back, what refills in one lease more. A busy key makes about
 * ten calls per second per host, regardless of its request rate. A denial is remembered until a
 * retry can succeed, so a flooded key costs the backend nothing. shmlimit_global_count() shares
 * counts that expire, of COUNTER rules.
 *
 * Small limits lose nothing. Below a capacity of 8,192, and below 320 tokens a second at the
 * default lease, a host leases no more than a request needs and what comes back in a quarter of a
 * lease. So a request is denied, though the limit has a token, for at most one lease and a half and
 * a quarter of a lease for each host. A key of such a limit costs up to a call for each request
 * that is allowed. If its requests come slowly, and its funnel is over three quarters full, a host
 * leases up to 8 tokens more, for a quarter of the time to full or 20 s: far from its limit a key
 * costs about one call for three requests. These tokens do not come back before they expire: at
 * most a quarter of the funnel.
 *
 * Every function that can fail returns a negative errno value. errno itself is undefined
 * afterwards.
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

#define SHMLIMIT_GLOBAL_PREFIX_MAX 64 /* longest prefix, bytes without the NUL */
/* most requests in one call of shmlimit_global_take_many() */
#define SHMLIMIT_GLOBAL_REQUESTS_MAX 64

/* shmlimit_global_options.on_failure: the answer while the backend does not respond. */
enum shmlimit_global_on_failure {
	SHMLIMIT_GLOBAL_DENY = 0,  /* denied */
	SHMLIMIT_GLOBAL_ALLOW = 1, /* allowed */
	/*
	 * The answer of a funnel on this host, with a share of the limit. What the host leases is
	 * charged to it, so a host that uses its share up through the backend gets no more while
	 * the backend is gone. The backend does not learn what the share gave: in the worst stretch
	 * of time the hosts admit 1 + hosts * local_milli / 1000 times the limit. With a share of
	 * 1000 / hosts the limit holds while all hosts are cut off. The funnel's rule is
	 * ~local:NAME, which the library creates.
	 */
	SHMLIMIT_GLOBAL_LOCAL = 2,
	/*
	 * -EHOSTDOWN, with nothing taken. So the caller knows that the client has done nothing
	 * wrong, and can answer 503 where it answers 429 to a client over its limit.
	 */
	SHMLIMIT_GLOBAL_ERROR = 3
};

/* shmlimit_global_options.flags */
enum shmlimit_global_option_flags {
	/*
	 * While the host has no agent (see shmlimit_global_serve()), a thread of this process is
	 * it. The thread is started by shmlimit_global_open(), and again by a call that needs the
	 * backend and finds no agent. So if the process of the agent is killed, the next one that
	 * needs the backend replaces it, within a second. A thread that finds an agent ends at
	 * once: a host has one, however many processes it has. shmlimit_global_close() ends the
	 * thread. options.report may be called in it, beside other threads. All signals are blocked
	 * in it. A child of fork() has no thread until it needs one. Without this flag the library
	 * starts no thread.
	 */
	SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD = 0x2000000,
	/*
	 * No call waits. on_failure decides at once what this host's lease cannot, and the agent
	 * leases, so that the next requests for the key find tokens or a denial. It needs an agent:
	 * without one on_failure decides whatever is not leased, which is reported once. Nothing is
	 * taken for a request that on_failure allowed. Without this flag a call waits for the
	 * backend, up to deadline_ns.
	 */
	SHMLIMIT_GLOBAL_OPTION_NO_WAIT = 0x4000000
};

/* A handle on a backend. Any number of threads may use it at once. */
struct shmlimit_global;

/* Zero everything, set struct_size, then each field that differs from its default. */
struct shmlimit_global_options {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_options) */
	uint32_t on_failure;  /* SHMLIMIT_GLOBAL_DENY (default), _ALLOW, _LOCAL, _ERROR */
	/*
	 * Longest time that a call waits for the backend, including the time to connect: 100 us to
	 * 10 s. The default, 50 ms, leaves room for a busy host, whose answers are late now and
	 * then. A connection that takes longer to open is kept, and the next call uses it: so a
	 * round trip that is shorter than the deadline suffices.
	 */
	uint64_t deadline_ns;
	/*
	 * Duration of a lease, which also sets its size: 1 ms to 10 s, default 100 ms. It is at
	 * least twice the deadline, but at most an eighth of the rule's time to full; and at least
	 * the deadline in any case.
	 */
	uint64_t lease_ns;
	/* a failing backend is left alone for about this long: 1 ms to 1 h, default 200 ms */
	uint64_t open_ns;
	/* ... after this many failures in a row in one process, or of its agent: default 3 */
	uint32_t open_after;
	/* LOCAL: this host's share in thousandths of the limit: 1 to 1000, must be set */
	uint32_t local_milli;
	/* of the backend's keys PREFIX{RULE/KEY}, without '{': default "shmlimit:" */
	const char *prefix;
	/*
	 * Called with one line of text when a problem begins: a bad URL or password, a backend that
	 * is gone. While the host's agent has no answer of
	 * the backend, one process reports the beginning, once a minute the number of requests
	 * that on_failure decided, and the end. NULL: not called. The text never
	 * contains the password. Must not use the handle. Threads that use the handle may call it
	 * at once.
	 */
	void (*report)(void *arg, const char *text);
	void *arg;
	uint32_t flags;       /* SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, _NO_WAIT or none */
	uint32_t reserved32;  /* must be zero */
	uint64_t reserved[3]; /* must be zero */
};

/* An answer of shmlimit_global_begin() and shmlimit_global_poll(): not decided yet. */
#define SHMLIMIT_GLOBAL_PENDING 2

/* shmlimit_global_ticket.flags: one of them, or 0 */
enum shmlimit_global_ticket_flags {
	/* Without an agent, on_failure decides at once, instead of waiting for the backend. */
	SHMLIMIT_GLOBAL_TICKET_NO_WAIT = 0x100000,
	/*
	 * Without an agent, -EAGAIN is returned at once. Nothing is taken: the caller may take
	 * where waiting is allowed.
	 */
	SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY = 0x200000
};

/* A request that waits for the backend while its caller does other work. */
struct shmlimit_global_ticket {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_ticket) */
	/* 0, SHMLIMIT_GLOBAL_TICKET_NO_WAIT or SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY */
	uint32_t flags;
	/* PENDING: poll again after this long, and at the deadline at the latest */
	uint64_t poll_ns;
	/* what was asked; the key's bytes must stay until the request is decided */
	struct shmlimit_request request;
	uint64_t opaque[7]; /* of the library */
};

/* What a backend reports about itself. */
struct shmlimit_global_info {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_info) */
	uint32_t reserved32;
	uint64_t round_trip_ns; /* duration of one PING */
	char version[24];       /* "7.0.15" */
	char mode[16];          /* "standalone", "cluster" */
	char role[16];          /* "master", "replica" */
	/* maxmemory-policy, such as "noeviction"; "" if the user may not read it (INFO) */
	char eviction[24];
	uint64_t memory_max;  /* maxmemory in bytes; 0: no limit, or not known */
	uint64_t clients;     /* its connections; 0: not known */
	uint64_t clients_max; /* maxclients; 0: not known */
};

/* The state of a funnel on the backend. */
struct shmlimit_global_funnel {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_funnel) */
	uint32_t reserved32;
	uint64_t remaining;      /* whole tokens that can still be leased */
	uint64_t reset_after_ns; /* time until it is full, if no host leases */
	uint64_t lease_ns;       /* duration of this rule's leases */
};

#define SHMLIMIT_GLOBAL_ROUND_TRIPS 12

/* What the agent of a host reports about itself. */
struct shmlimit_global_status {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_status) */
	uint32_t serving;     /* 1: there is an agent; 0: processes ask the backend themselves */
	/* the agent's process id, in its own namespace; of the last agent if there is none */
	uint64_t pid;
	uint64_t running_ns;  /* time since it became the agent */
	uint64_t connections; /* its connections to backend servers */
	/* time that an answer from the backend usually takes; 0: none yet */
	uint64_t round_trip_ns;
	/*
	 * while the URL's server fails: time until it connects again, or open_ns while it does;
	 * else 0
	 */
	uint64_t breaker_ns;
	uint64_t waiting; /* requests that wait for it now, up to 64 */
	/* Counts since the segment was created. */
	uint64_t answered; /* requests that the agents answered from the backend's reply */
	uint64_t failed;   /* ... and those that on_failure decided */
	/*
	 * answers that came after the process had stopped waiting; the next requests use their
	 * tokens
	 */
	uint64_t late;
	/*
	 * requests that a process overwrote which had been stopped for seconds: they are made again
	 */
	uint64_t spoiled;
	uint64_t full; /* times that a request found no room, and was made again later */
	/* requests that came to an agent because the host's lease did not suffice */
	uint64_t misses;
	/* tokens of rules' credit that the backend did not give: at most these were too many */
	uint64_t unpaid;
	uint64_t round_trips_ns; /* sum of the times that the backend's answers took */
	/*
	 * Answers by that time: [0] up to 100 us, [i] up to 100 us * 2^i, and all longer ones in
	 * the last.
	 */
	uint64_t round_trips[SHMLIMIT_GLOBAL_ROUND_TRIPS];
};

#define SHMLIMIT_GLOBAL_SERVERS 12

/* A server that the agent of a host asks: that of the URL, or another node of its cluster. */
struct shmlimit_global_server {
	uint32_t struct_size; /* sizeof(struct shmlimit_global_server) */
	/* 1: it is not asked now, since it failed: its circuit breaker is open */
	uint32_t failing;
	uint64_t openings; /* times that its breaker has opened under this agent */
	/* "host:port", or the URL without user and password; as much as fits */
	char name[80];
};

/*
 * Make a handle for the backend at `url`:
 *
 *	redis://[[user]:password@]host[:port][,host[:port]...][/db]  port 6379, database 0
 *	redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/primary[/db]  of sentinels
 *	rediss://, rediss+sentinel://  with TLS, at the end [?cacert=FILE][&cert=FILE][&key=FILE]
 *	unix://[[user]:password@]/path[?db=N]  also redis+unix:
 *
 * Up to eight hosts are tried in order: nodes of one cluster, or a primary and its replicas. The
 * first one that answers is used, unless it is a replica, and another one when it fails. With
 * redis+sentinel: the hosts are sentinels, port 26379, which are asked for the primary's address.
 * Reserved characters are %-encoded. `limiter` must stay open until the handle is closed.
 * `options` NULL means all defaults. The first call that needs the backend connects to it; this
 * one does not.
 *
 * Creates the rule "~backend" in the segment, if it does not exist: the circuit breaker that all
 * processes of the host share. Its decisions are not part of any sum.
 *
 * With `limiter` and `out` NULL only the URL and the options are checked, as a program does when it
 * reads its configuration. Nothing is made then, and the cost is that of reading the text.
 *
 * Returns 0, or: -EINVAL url is NULL, or one of limiter and out, the URL is wrong (options.report
 * gets the reason), an option is out of range, or LOCAL has no share; -E2BIG a field is set that
 * this library does not know; -ELIBBAD libshmlimit has another layout version than this library was
 * built with, as in a program that runs since before an upgrade; -ENOMEM; or an error of
 * shmlimit_rule_set(): -EROFS, -EXFULL, -ENOENT ...; or with SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD
 * -EAGAIN: no thread can be made.
 *
 * Threads: any number may use the handle at once, in all functions but shmlimit_global_close().
 * None waits for another one, except for the result of a key that both ask for: each thread
 * that asks the backend uses a connection of its own, of which up to 64 are kept. Signals: not
 * to be called from handlers. Fork: a child may go on using the handle, and opens its own
 * connections.
 * Cost: system calls.
 */
int shmlimit_global_open(struct shmlimit *limiter, const char *url,
                         const struct shmlimit_global_options *options,
                         struct shmlimit_global **out);

/*
 * Release the handle. NULL is allowed. The host keeps its leases until they expire. If the handle
 * has a thread, this ends it first, which takes up to 200 ms, and up to 50 ms or half of the
 * deadline more if the backend owes answers; no thread of the process may be in a call on the
 * handle.
 */
void shmlimit_global_close(struct shmlimit_global *global);

/*
 * Take `cost` tokens of the funnel that all hosts share. If this host has leased enough, this
 * is a take without a system call. Otherwise one process per key asks the backend, and the
 * others wait for the result. Under a rule that is not a LEASE rule this is shmlimit_take().
 *
 * r->remaining is the number of tokens that this host holds, plus those left on the backend if
 * it was asked in this call; r->reset_after_ns is then that of the backend's funnel.
 * r->retry_after_ns is the time until this host asks again. It may be later than the next
 * token, since a busy key asks for batches.
 *
 * If the backend does not answer by the deadline, on_failure decides. It decides at once while
 * the circuit breaker is open, and after a reported error of the backend, such as a key of
 * another type. Errors are those of a take: a bad key, rule or handle; and -EHOSTDOWN, if
 * on_failure is SHMLIMIT_GLOBAL_ERROR and decides.
 *
 * If the host has an agent for this backend and prefix (see shmlimit_global_serve()), the agent
 * asks, and this call waits for it until the deadline; it makes no connection. on_failure then
 * decides at once while the agent has no connection to the backend.
 *
 * If killed inside: tokens that were leased and not deposited are lost, as if they were spent.
 * Cost: a take; or a round trip, at most the deadline. Without an agent, the first call of a
 * process also connects and resolves the host name, for as long as that takes.
 */
int shmlimit_global_take(struct shmlimit_global *global, int rule, const void *key, size_t key_len,
                         uint64_t cost, struct shmlimit_result *r);

/*
 * Decide a batch of 0 to SHMLIMIT_GLOBAL_REQUESTS_MAX independent requests, as
 * shmlimit_take_many() does. Those that need the backend are sent 16 in a round trip; each
 * round trip has the deadline. Returns 0 or, with nothing decided, -EINVAL.
 */
int shmlimit_global_take_many(struct shmlimit_global *global,
                              const struct shmlimit_request *requests, size_t n, int *answers,
                              struct shmlimit_result *results);

/*
 * Take from 1 to SHMLIMIT_REQUESTS_MAX limits, all or none: some of this host, and some that all
 * hosts share. The answer is allowed if all of them are. `results` has room for as many, or is
 * NULL; all are filled if the answer is allowed. At a denial or error *failed (unless NULL) is the
 * index of that request, whose result is filled if it was denied.
 *
 * The limits of this host are looked at first: if one of them would deny, the backend is not asked.
 * Then LEASE rules are taken from: first all that this host has leased, so that a denial that is
 * known here costs no lease of the others; then all the rest is asked for in one round trip, with
 * one deadline. The limits of this host are taken from at the end, as shmlimit_take_all() does; so
 * none of their tokens is held while the backend is waited for, and they are as they were if
 * another limit denies. Tokens of LEASE rules are then given back to this host's leases. A lease
 * that has expired in the meantime takes none back, and they are lost as if they were spent. What
 * on_failure gave is given back too: ALLOW gave nothing, and LOCAL tokens of the host's share. No
 * limit is ever exceeded.
 *
 * Returns SHMLIMIT_ALLOWED, SHMLIMIT_DENIED, or with nothing taken: -EINVAL an argument is NULL,
 * `n` is out of range; -EOPNOTSUPP a request has a place or a share, or of a LEASE rule a limit of
 * its own; or an error of shmlimit_global_take(). If killed inside: what was
 * taken is lost, at most each request's cost. Cost: n takes, a peek for each limit of this host,
 * and at most one deadline.
 */
int shmlimit_global_take_all(struct shmlimit_global *global,
                             const struct shmlimit_request *requests, size_t n, size_t *failed,
                             struct shmlimit_result *results);

/*
 * Add request->n, 0 or more, to the key's count under a COUNTER rule, which all hosts share: as
 * shmlimit_count(), and as exact. The backend has the count. Each addition that is allowed is one
 * round trip; this host remembers the backend's last answer until the count ends, and denies by
 * itself what that leaves no room for. So a client over its limit costs the backend nothing.
 *
 * The request goes through the agent of this host: see shmlimit_global_serve() and
 * SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD. The time to live begins with the count, on the backend, to a
 * millisecond. `n` of 0 reads what this host knows, which may be less than the count. A rule that
 * is in DRY_RUN, BLOCK or OFF, and one of a segment that is disabled, is of this host alone.
 *
 * If there is no agent, or no answer by the deadline, on_failure decides: LOCAL counts on this host
 * alone, with local_milli thousandths of the bound; ALLOW counts nothing; ERROR returns -EHOSTDOWN.
 * The next answer of the backend replaces this host's count. A request whose answer was late, or
 * whose agent was killed, may have been counted on the backend: so no more than the bound is ever
 * allowed, and at most what was asked for in that time is lost.
 *
 * Returns SHMLIMIT_ALLOWED or SHMLIMIT_DENIED, and fills *out unless it is NULL; or -EOPNOTSUPP:
 * `n` is below 0, SHMLIMIT_COUNT_RESTART is set, it is no COUNTER rule, or the handle must not wait
 * (SHMLIMIT_GLOBAL_OPTION_NO_WAIT); or as shmlimit_count(). On an error nothing was changed.
 * Threads: safe. Signals: not to be called from handlers. Fork: as shmlimit_global_open() says.
 * Cost: two counts, or a round trip, at most the deadline.
 */
int shmlimit_global_count(struct shmlimit_global *global, int rule, const void *key, size_t key_len,
                          const struct shmlimit_count_request *request, struct shmlimit_count *out);

/*
 * For event loops: shmlimit_global_take() in steps, none of which waits for the agent. Set the
 * ticket's struct_size and flags. Returns what shmlimit_global_take() returns, or
 * SHMLIMIT_GLOBAL_PENDING: the agent is asked, or another caller that asks for this key is waited
 * for. Then call shmlimit_global_poll() until it decides, each time after ticket->poll_ns: at first
 * 100 us, later half of the time since the begin, at most 16 ms. At the deadline, on_failure
 * decides. *r is filled by the call that decides.
 *
 * Without an agent for this backend and prefix, shmlimit_global_begin() waits for the backend as
 * shmlimit_global_take() does, and so does shmlimit_global_poll() if the agent has ended since.
 * With SHMLIMIT_GLOBAL_TICKET_NO_WAIT, on_failure decides at once instead; with
 * SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY they return -EAGAIN. Then neither ever waits.
 *
 * A ticket belongs to the process that began it. Any of its handles for the same limiter, URL and
 * options may poll it, one thread at a time. Several tickets may have the same key. A ticket that
 * is neither polled nor cancelled is like that of a killed process: its tokens are lost, as if they
 * were spent, and its place is free again after at most a minute. Errors besides those of
 * shmlimit_global_take(): -EINVAL the ticket has a wrong struct_size or flag, or is not pending.
 * Cost: a take, without a system call except the clock's, and one to wake the agent.
 */
int shmlimit_global_begin(struct shmlimit_global *global, const struct shmlimit_request *request,
                          struct shmlimit_global_ticket *ticket, struct shmlimit_result *r);
int shmlimit_global_poll(struct shmlimit_global *global, struct shmlimit_global_ticket *ticket,
                         struct shmlimit_result *r);

/*
 * End a request that is no longer wanted, such as that of a client that has gone. Tokens that were
 * already taken for it are given back to this host's lease. Does nothing if the ticket is not
 * pending.
 */
void shmlimit_global_cancel(struct shmlimit_global *global, struct shmlimit_global_ticket *ticket);

/*
 * shmlimit_global_take_all() in steps, none of which waits for the agent. `tickets` has a ticket
 * for each request, with its struct_size and flags set. While the answer is
 * SHMLIMIT_GLOBAL_PENDING, poll after tickets[0].poll_ns, with the same `n` and `results`. If the
 * bytes of a key move in the meantime, set its tickets[i].request.key. All else is as for
 * shmlimit_global_begin(), shmlimit_global_poll() and shmlimit_global_cancel(). Until the answer,
 * tokens of LEASE rules stay taken, and the limits of this host are untouched.
 */
int shmlimit_global_begin_all(struct shmlimit_global *global,
                              const struct shmlimit_request *requests, size_t n,
                              struct shmlimit_global_ticket *tickets, size_t *failed,
                              struct shmlimit_result *results);
int shmlimit_global_poll_all(struct shmlimit_global *global, struct shmlimit_global_ticket *tickets,
                             size_t n, size_t *failed, struct shmlimit_result *results);
void shmlimit_global_cancel_all(struct shmlimit_global *global,
                                struct shmlimit_global_ticket *tickets, size_t n);

/*
 * Ask the backend what it is. *out may be NULL. The circuit breaker is ignored. Returns 0, or,
 * with the reason passed to options.report, an error of the system, such as -ECONNREFUSED, or one
 * of the backend, as a negative value:
 *
 *	EACCES         the user or password is refused, or may not do this
 *	EADDRNOTAVAIL  the host's name has no address
 *	EBADMSG        the answer is invalid, or larger than any real one
 *	EBUSY          it refuses writes: it is loading its data, or is a replica, or has no room; a
 *	               connection to a replica is shut, and the next call connects again
 *	EDESTADDRREQ   the sentinels do not know the primary
 *	EDOM           there is no such database
 *	EKEYREJECTED   TLS fails: the server does not speak it, its certificate is not valid or not
 *	               for this host, it refuses the client's certificate, or a file cannot be read
 *	EMEDIUMTYPE    the key has another type there
 *	ENOEXEC        the server does not keep scripts
 *	EPROTO         the server is too old
 *	EPROTOTYPE     the server is a sentinel, and the URL is not one of sentinels
 *	ENOTUNIQ       the server is no sentinel, and the URL is one of sentinels
 *	ERANGE         the backend cannot count the rule exactly: shmlimit_rule_set() refuses such a
 *	               rule, so the segment was damaged
 *	ETIMEDOUT      there was no answer by the deadline
 *	EXDEV          the key is on a node of the cluster that was not found
 */
int shmlimit_global_ping(struct shmlimit_global *global, struct shmlimit_global_info *out);

/*
 * Returns the time that this host's circuit breaker stays open; 0 while it is closed. While it
 * is open the backend is not asked, and on_failure decides. If the host has an agent, this is the
 * agent's. Cost: a peek.
 */
uint64_t shmlimit_global_breaker_ns(struct shmlimit_global *global);

/*
 * Fill *out with the backend's funnel of one key. Returns 0, or as shmlimit_global_ping();
 * -EMEDIUMTYPE not a funnel.
 */
int shmlimit_global_peek(struct shmlimit_global *global, int rule, const void *key, size_t key_len,
                         struct shmlimit_global_funnel *out);

/*
 * Delete the funnel of one key on the backend, which restores all of its tokens, and this
 * host's lease of it; if `key` is NULL, those of all keys of the rule. Other hosts go on
 * spending what they have leased. Returns the number of funnels that the backend had, or as
 * shmlimit_global_ping(). Cost: if `key` is NULL, a walk over all keys of the backend, with the
 * deadline for each step; in a cluster, over those of the URL's node.
 */
int shmlimit_global_reset(struct shmlimit_global *global, int rule, const void *key,
                          size_t key_len);

/*
 * Returns what an error of this library means, as a constant text. `error` is a value that was
 * returned, or a positive errno value. An error that has its own meaning for backends is described
 * as such; any other as shmlimit_strerror() does. Threads: safe. Signals: safe.
 */
const char *shmlimit_global_strerror(int error);

/*
 * Be the agent of this host: ask the backend for all processes that use the same segment,
 * backend and prefix, over one connection per server, until proceed(arg, serving) returns 0.
 * proceed() is called several times a second, and after a signal; `serving` is 1 while this
 * process is the agent, and 0 while another one is. A segment has one agent at a time; another
 * process takes its place within a second if it is stopped or killed. A killed one is replaced
 * within 100 ms by processes of the same pid namespace, also while it is a zombie. Of the
 * handle's options lease_ns, prefix and report are in force for all processes that use this agent.
 *
 * A failure of a server is that it sends nothing, while answers are due, for the longest of 50 ms,
 * deadline_ns and two usual round trips. After open_after failures in a row, on_failure of each
 * process decides its requests until the server answers, however late. The agent connects to it
 * again after open_ns. If a reply is late, as after a lost packet, new questions go over a second
 * connection, before the server fails.
 *
 * The agent keeps answers that come after the process's deadline: their tokens serve the next
 * request. When it ends, by itself or killed, processes ask the backend themselves.
 *
 * Returns 0, or: -EINVAL an argument is NULL; -EROFS the segment is read-only; -ENOMEM; or an
 * error of getrandom(2).
 *
 * Threads: blocks the calling thread; others may use the handle. A host name that is
 * not an address is looked up in a thread that the C library makes. Signals: not to be called
 * from handlers; a handler may set a flag that proceed() reads.
 */
int shmlimit_global_serve(struct shmlimit_global *global, int (*proceed)(void *arg, int serving),
                          void *arg);

/*
 * Fill *out (set its struct_size first). Returns 0, -EINVAL, or -EROFS: the limiter is read-only.
 * Cost: no system call except the clock's.
 */
int shmlimit_global_status(struct shmlimit *limiter, struct shmlimit_global_status *out);

/*
 * Fill *out (set its struct_size first) with the agent's server at `place`, from 0, the server of
 * the URL. Only the first SHMLIMIT_GLOBAL_SERVERS can be read. Returns 0, -EINVAL, -EROFS as above,
 * or -ESRCH: there is no agent, or it has no such server. Cost: as above.
 */
int shmlimit_global_server(struct shmlimit *limiter, unsigned place,
                           struct shmlimit_global_server *out);

/*
 * Returns how many requests under a rule on_failure has decided on this host, with or without an
 * agent, since the segment was created. Only rules of ids below 256 are counted, and a rule that
 * takes the id of a removed one goes on with its count. 0 if the limiter is read-only. Cost: no
 * system call.
 */
uint64_t shmlimit_global_failures(struct shmlimit *limiter, int rule);

#ifdef __cplusplus
}
#endif

#endif
