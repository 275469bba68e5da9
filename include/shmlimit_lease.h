/*
 * shmlimit_lease: tokens leased from a funnel that many hosts share.
 *
 * For libraries such as libshmlimit-global, which asks Redis or Valkey with these calls. A program
 * that has limits over many hosts uses that library, or libshmlimit-gate. Part of libshmlimit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LEASE_H
#define SHMLIMIT_LEASE_H

#include "shmlimit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two more answers of shmlimit_lease_take(). */
enum shmlimit_lease_answer {
	/* not enough tokens here: this caller has the claim and asks the backend */
	SHMLIMIT_LEASE_ASK = 2,
	/* not enough tokens here: another caller has the claim; take again later */
	SHMLIMIT_LEASE_WAIT = 3
};

/* shmlimit_lease_count(): events that only the caller of the lease functions can see. */
enum shmlimit_lease_event {
	SHMLIMIT_LEASE_BACKEND_ERRORS = 0,  /* the backend failed or did not answer in time */
	SHMLIMIT_LEASE_BREAKER_OPENINGS = 1 /* a circuit breaker opened */
};

/*
 * The details of SHMLIMIT_LEASE_ASK and SHMLIMIT_LEASE_WAIT. Filled when one of them is returned,
 * and when the lease runs low: see shmlimit_lease_take().
 */
struct shmlimit_lease {
	uint32_t struct_size; /* sizeof(struct shmlimit_lease) */
	/*
	 * ASK with a claim: 1 = nothing is known here of the key, since it has no slot; else 0. So
	 * it is before a key's first request, and again when its slot was given to another key, the
	 * table grew, or the key was reset.
	 */
	uint32_t unknown;
	/* ASK: tokens to lease, at most the capacity; together with `held` at least the cost */
	uint64_t want;
	uint64_t need;    /* ASK: fewest tokens that the request needs: the cost minus `held` */
	uint64_t held;    /* tokens that can be spent here now; less than the cost */
	uint64_t wait_ns; /* time until the current claim ends; 0 if there is none */
	/*
	 * ASK with a claim: requests of the key that will come in a lease that lasts for a quarter
	 * of the time to full, 20 s at most, if they go on as slowly as they did: up to 8. 0: not
	 * known, or they come faster.
	 */
	uint32_t steady;
	uint32_t reserved32;
};

#define SHMLIMIT_LEASE_FEW_TIMES_MAX 16u

/*
 * What shmlimit_lease_take() is asked for. Zero everything, set struct_size, then each member that
 * is not 0.
 */
struct shmlimit_lease_request {
	uint32_t struct_size; /* sizeof(struct shmlimit_lease_request) */
	/*
	 * Leases of 30 tokens or fewer last lease_ns times this number, up to
	 * SHMLIMIT_LEASE_FEW_TIMES_MAX. 0: as long as others, as they must where the capacity is
	 * above 131,071.
	 */
	uint32_t few_times;
	uint64_t cost;     /* tokens to take */
	uint64_t lease_ns; /* how long tokens that are leased can be spent */
	uint64_t claim_ns; /* how long the caller may ask the backend; 0: no caller gets a claim */
};

/* Totals of all LEASE rules since the segment was created. They never decrease. */
struct shmlimit_lease_counters {
	uint32_t struct_size; /* sizeof(struct shmlimit_lease_counters) */
	uint32_t reserved32;
	uint64_t leases;         /* deposits of one token or more */
	uint64_t leased;         /* tokens deposited */
	uint64_t spent;          /* tokens spent, including those refunded later */
	uint64_t expired;        /* tokens that expired or had no room; not those of evicted keys */
	uint64_t denied;         /* denials answered here, without asking the backend */
	uint64_t backend_errors; /* as counted by shmlimit_lease_count() */
	uint64_t breaker_openings;
};

/*
 * ---- Leases ---------------------------------------------------------------
 *
 * The funnel that hosts share is on a backend, such as a
 * Redis server. Tokens are debited there first, many at a time. They are then deposited in the
 * key's slot under a LEASE rule, and spent here. So the hosts together never admit more than
 * the funnel gave, and few requests need the backend. shmlimit_lease_take() answers:
 *
 *	ALLOWED, DENIED      decided here
 *	SHMLIMIT_LEASE_WAIT  another caller is asking: take again, after lease.wait_ns at the latest
 *	SHMLIMIT_LEASE_ASK   ask the backend for lease.want tokens, within claim_ns; then call
 *	                     shmlimit_lease_deposit() if it gave lease.need or more,
 *	                     shmlimit_lease_deny() if it denied the request, or
 *	                     shmlimit_lease_abandon() if it did not answer
 *
 * A slot holds one of three things, for a limited time: tokens to spend; a denial; or the claim
 * of the caller that is asking the backend, possibly with tokens that are left. All three
 * expire by themselves, so a process that is killed leaves nothing to repair. A slot that is
 * evicted or reset loses tokens and gives none. Times are durations on the limiter's own clock,
 * so hosts need no common clock. Tokens and denials expire at their time or up to one tick
 * (shmlimit_rule_range()) before it, claims up to one tick after it.
 *
 * The other operations decide on what is here, and never ask the backend. shmlimit_take(),
 * _peek(), _take_all() and _take_many() deny what is not here. shmlimit_reserve() is a take.
 * shmlimit_charge() spends no more than there is. shmlimit_refund() adds to a lease that has not
 * expired, up to its original size, rounded down by up to an eighth, and while no caller is
 * asking; otherwise the tokens are lost. A result's retry_after_ns is the time until a known
 * denial or claim ends, else the time of one token. reset_after_ns is the time until the tokens,
 * denial or claim end; 0 if the slot holds none of them.
 *
 * A circuit breaker is a LEASE key of its own, under a rule of its own. It stands for the
 * backend, and its tokens are calls to it. Before each call take 1. ALLOWED: call; after a
 * failure shmlimit_charge() the whole capacity, then shmlimit_lease_deny() for as long as the
 * breaker shall be open. ASK: this is the one probe; call, then deposit one capacity of tokens,
 * of which 1 is spent, or deny. WAIT and DENIED: the breaker is open, or another caller is
 * probing.
 *
 * Errors besides those of decisions: -EOPNOTSUPP the rule is not a LEASE rule. Threads,
 * processes, signals, fork, progress and cost are as for decisions.
 */

/*
 * Take `cost` tokens of a lease. If there are too few: DENIED if the backend's denial is known
 * or the cost is above the capacity. Otherwise one caller per key gets SHMLIMIT_LEASE_ASK, and
 * with it a claim for `claim_ns` in which no other caller gets it; the others get
 * SHMLIMIT_LEASE_WAIT. Until then any request that fits can spend the tokens that are left. They
 * expire with the claim, or at once if they would expire before it.
 *
 * lease->want is what this key spends here in about three quarters of `lease_ns`, judged by its
 * last lease; with `few_times`, in all of it as long as that is at most 28. If the last lease was
 * used up early, the next one is up to twice as large, and up to eight times where the last one was
 * more than a small limit should lend; if a part expired, it is smaller. The backend may lease
 * fewer. A limit is small if its capacity is below 8,192 and less than 8 tokens come back in a
 * quarter of `lease_ns`: of such a one a host should hold no more than that beyond what it needs. A
 * cold key wants just the cost. If the key cannot get a slot, every
 * caller gets ASK (with on_full = DENY: DENIED).
 *
 * With a `claim_ns` of 0 no caller gets a claim. SHMLIMIT_LEASE_ASK then says that the backend
 * must be asked, lease->want is lease->need, and nothing changes. A caller that must not wait
 * can so decide what is here and leave the rest to one that may wait.
 *
 * The lease runs low when a take leaves less than a quarter of what it began with. To that one take
 * the answer is ALLOWED with lease->want filled: a caller can lease that number of tokens ahead and
 * deposit them with a cost of 0, best when the key has next to nothing left. With any other ALLOWED
 * *lease is left alone, so set `want` to 0 before the call. A lease of less than about 32 tokens
 * does not run low (more where the capacity is above 131,071).
 *
 * Under an OFF rule the answer is ALLOWED. Only ALLOWED and DENIED are counted; a request that
 * gets ASK or WAIT is counted when it is decided. -EINVAL also: `lease` is NULL or its
 * struct_size too small. If killed inside, or before ending the claim: the claim ends after
 * claim_ns.
 */
int shmlimit_lease_take(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                        const struct shmlimit_lease_request *request, struct shmlimit_lease *lease,
                        struct shmlimit_result *r);

/*
 * Deposit `tokens` that the backend gave, spend `cost` of all the tokens that are here then, and
 * end the claim, in one step. The rest can be spent for `lasts_ns` (the lease_ns that was passed to
 * shmlimit_lease_take()) since `since_ns`, a time of shmlimit_now(): when the backend was asked,
 * since it may debit them then. 0: now. Tokens above the capacity expire at once. If tokens that
 * were here expire sooner, either the new ones expire with them, or the old ones at once, whichever
 * loses less: no token outlives its time.
 *
 * Returns ALLOWED; or SHMLIMIT_LEASE_WAIT if the tokens are deposited but other requests spent
 * those that were held: take again. If killed inside: all of it was done, or nothing.
 */
int shmlimit_lease_deposit(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                           uint64_t tokens, uint64_t cost, uint64_t since_ns, uint64_t lasts_ns,
                           struct shmlimit_result *r);

/*
 * The backend denied `cost`, and will for `for_ns`: until then, deny requests of that cost or
 * more here. Ends the claim. If tokens are left here, they stay until the claim would have
 * ended, and the denial is not remembered. Returns DENIED (ALLOWED under a DRY_RUN rule).
 */
int shmlimit_lease_deny(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                        uint64_t cost, uint64_t for_ns, struct shmlimit_result *r);

/*
 * The backend did not answer: end the claim, so that the next caller asks. Returns 0 or an error.
 */
int shmlimit_lease_abandon(struct shmlimit *limiter, int rule, const void *key, size_t key_len);

/*
 * Count `n` events that only the caller can see: SHMLIMIT_LEASE_BACKEND_ERRORS ... Returns 0,
 * -EINVAL, -EROFS.
 */
int shmlimit_lease_count(struct shmlimit *limiter, uint32_t which, uint64_t n);

/* Fill *out (set its struct_size first). Returns 0, -EINVAL. */
int shmlimit_lease_counters(struct shmlimit *limiter, struct shmlimit_lease_counters *out);

/*
 * The part of the segment in which libshmlimit-global passes requests from processes to the
 * host's agent. It is 76 KiB, zero in a new segment, not saved, and nothing else uses it.
 * Programs need not call this. Returns its address, aligned to a page, and its bytes in *size
 * (unless NULL); or NULL if the handle is NULL or read-only.
 */
void *shmlimit_area(struct shmlimit *limiter, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
