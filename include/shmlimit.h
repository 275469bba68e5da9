/*
 * shmlimit: one rate limit for all processes of a host.
 *
 * A limiter is a POSIX shared-memory segment that holds rules and a table of
 * funnels, one for each (rule, key). A funnel that leaks `count` tokens a
 * `period` and holds `capacity` of them admits at most
 *
 *	capacity + count * (time / period)
 *
 * tokens in any stretch of time, summed over every thread of every process
 * that opened the segment. There is no daemon, no lock that a decision could
 * wait for, and nothing to repair after a process was killed.
 *
 * Every function that can fail returns a negative errno value; the list, one
 * meaning each, stands at shmlimit_strerror(). errno itself is neither read
 * nor set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_H
#define SHMLIMIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMLIMIT_VERSION "0.1.0"

/* The two answers of a decision; an error is negative. `== 0` fails closed. */
#define SHMLIMIT_ALLOWED 0
#define SHMLIMIT_DENIED 1

#define SHMLIMIT_KEY_MAX 1024      /* bytes of a key; at least 1 */
#define SHMLIMIT_NAME_MAX 255      /* bytes of a segment's name, the NUL apart */
#define SHMLIMIT_RULE_NAME_MAX 63  /* bytes of a rule's name, the NUL apart */
#define SHMLIMIT_RULES_MAX 4096    /* rules that a segment can be made for */
#define SHMLIMIT_REQUESTS_MAX 16   /* limits that one shmlimit_take_all() can ask */
#define SHMLIMIT_FIELD_MAX 192     /* bytes of a header field of shmlimit_fields(), the NUL included */
#define SHMLIMIT_KEY_IP_MAX 18     /* bytes of the longest key that shmlimit_key_ip() makes */
#define SHMLIMIT_SLOTS_MIN 16      /* slots of the smallest segment, 16 bytes each */
#define SHMLIMIT_SLOTS_MAX ((uint64_t)1 << 36)
#define SHMLIMIT_CAPACITY_MAX ((uint64_t)1 << 48) /* largest capacity of a FUNNEL rule */
#define SHMLIMIT_WINDOW_MAX 65536  /* largest capacity of a WINDOW rule that a segment can be made for */

/* shmlimit_options.on_full: what a new key gets when its window has no room. */
#define SHMLIMIT_FULL_EVICT 0      /* the place of the funnel that is full again soonest */
#define SHMLIMIT_FULL_ALLOW 1      /* an answer of allowed, nothing being recorded */
#define SHMLIMIT_FULL_DENY 2       /* an answer of denied */

/* shmlimit_options.clock */
#define SHMLIMIT_CLOCK_PRECISE 0   /* CLOCK_MONOTONIC */
#define SHMLIMIT_CLOCK_COARSE 1    /* CLOCK_MONOTONIC_COARSE: cheaper, steps of one kernel tick (1 to 10 ms) */

/* shmlimit_rule.algorithm */
#define SHMLIMIT_FUNNEL 0          /* a burst, then a rate */
#define SHMLIMIT_WARMUP 1          /* a rate that rises from cold to warm: Guava's SmoothWarmingUp */
#define SHMLIMIT_WINDOW 2          /* so many in any stretch of a period, exactly */
#define SHMLIMIT_LEASE 3           /* tokens that are leased from a funnel elsewhere, spent here */

/* shmlimit_rule.mode */
#define SHMLIMIT_ENFORCE 0
#define SHMLIMIT_DRY_RUN 1         /* decide and count, but answer allowed */
#define SHMLIMIT_OFF 2             /* answer allowed, touching nothing */

/*
 * shmlimit_rule.flags: who waits for the debt that a reservation makes. The one
 * who makes it (default: nobody goes on before his tokens are there); or, as in
 * Guava's RateLimiter, the next one, while he himself waits for what was owed
 * before him. He may then leave max_wait_ns and a whole capacity of debt.
 */
#define SHMLIMIT_NEXT_PAYS 1u

/* shmlimit_rule.flags, WINDOW only: what was refused counts too, so that who keeps asking keeps being refused. */
#define SHMLIMIT_COUNT_REFUSED 2u

/*
 * shmlimit_rule.flags, of shmlimit_rule_set() only: return -EAGAIN at once where it would wait for another writer. No
 * part of the rule.
 */
#define SHMLIMIT_NO_WAIT 0x80000000u

/* What shmlimit_lease_take() may answer besides. */
#define SHMLIMIT_LEASE_ASK 2       /* not enough here: the caller is the one who asks for more */
#define SHMLIMIT_LEASE_WAIT 3      /* not enough here, and somebody else is asking: look again */

#define SHMLIMIT_LEASE_CAPACITY_MAX 2097151 /* largest capacity of a LEASE rule: 2^21 - 1 */

/* shmlimit_lease_count(): what only those who lease know of. */
#define SHMLIMIT_LEASE_ENGINE_ERRORS 0u
#define SHMLIMIT_LEASE_BREAKER_OPENINGS 1u

/* shmlimit_open() flags */
#define SHMLIMIT_READ_ONLY 1u
#define SHMLIMIT_TRUSTED_OWNER 2u  /* refuse a segment that belongs to neither root nor this user */

/* shmlimit_load() flags */
#define SHMLIMIT_NO_ELAPSED 1u     /* count no time between saving and loading */
#define SHMLIMIT_CHECK_ONLY 2u     /* read all of the file, and make nothing */

/* A process's handle on one segment. */
struct shmlimit;

/* What shmlimit_create() is asked for. Zero everything, set struct_size, then what differs from the default. */
struct shmlimit_options {
	uint32_t struct_size;      /* sizeof(struct shmlimit_options) */
	uint32_t mode;             /* permission bits of the segment, default 0600; the umask does not apply */
	uint64_t slots;            /* keys that can be live at once, SHMLIMIT_SLOTS_MIN to _MAX, default 65536 */
	uint32_t rules;            /* rules that can be named, 1 to SHMLIMIT_RULES_MAX, default 64 */
	uint32_t window_max;       /* the largest capacity of WINDOW rules: as many times 16 bytes a slot; 0 = none */
	uint32_t on_full;          /* SHMLIMIT_FULL_EVICT (default), _ALLOW, _DENY */
	uint32_t clock;            /* SHMLIMIT_CLOCK_PRECISE (default), _COARSE */
	uint64_t group;            /* 1 + the group id that is to own the segment; 0 = the creator's group */
	uint32_t names;            /* bytes of each key that are kept for who looks in, to SHMLIMIT_KEY_MAX; 0 = none */
	uint32_t reserved32;       /* must be zero */
	uint64_t slots_max;        /* to how many slots it can be grown, `slots` or more; default 16 times as many */
	uint64_t reserved[1];      /* must be zero */
};

/* A limit. Zero everything, set struct_size, then at least capacity, count and period_ns. */
struct shmlimit_rule {
	uint32_t struct_size;      /* sizeof(struct shmlimit_rule) */
	uint32_t algorithm;        /* SHMLIMIT_FUNNEL, _WARMUP, _WINDOW, _LEASE */
	uint32_t mode;             /* SHMLIMIT_ENFORCE, _DRY_RUN, _OFF */
	uint32_t flags;            /* SHMLIMIT_NEXT_PAYS, SHMLIMIT_COUNT_REFUSED, SHMLIMIT_NO_WAIT or none */
	uint64_t capacity;         /* whole tokens, 1 to SHMLIMIT_CAPACITY_MAX: the largest burst; WARMUP: 0, or what follows from the rest */
	uint64_t count;            /* the funnel leaks `count` tokens, 1 or more; WINDOW: 0, or the capacity ... */
	uint64_t period_ns;        /* ... every `period_ns` nanoseconds, 1 or more; WINDOW: how long it is */
	uint64_t max_wait_ns;      /* the longest wait that a reservation may buy; 0 = no reservations, no debt */
	uint64_t warmup_ns;        /* WARMUP only: from cold to warm, or back, takes so long */
	uint32_t cold_factor_milli; /* WARMUP only: a cold token takes so many thousandths of a warm one's time,
	                               1,000 to 1,000,000, default 3,000 */
	uint32_t reserved32;       /* must be zero */
	uint64_t set_unix_ns;      /* shmlimit_rule_get(): when these numbers were set, since 1970; else ignored */
	uint64_t reserved[3];      /* must be zero */
};

/* What a decision found. Filled whenever SHMLIMIT_ALLOWED or SHMLIMIT_DENIED is returned. */
struct shmlimit_result {
	uint64_t limit;            /* the rule's capacity, tokens */
	uint64_t remaining;        /* whole tokens left now */
	uint64_t wait_ns;          /* allowed: wait this long before going on; 0 except for reservations */
	uint64_t retry_after_ns;   /* denied: the same request fits then, if nobody else takes; UINT64_MAX = never */
	uint64_t reset_after_ns;   /* until the funnel is full again */
};

/* How finely and how far a rule's funnels can tell time. */
struct shmlimit_range {
	uint32_t struct_size;      /* sizeof(struct shmlimit_range) */
	uint32_t reserved32;
	uint64_t resolution_ps;    /* one tick of the rule's clock, picoseconds, rounded up: decisions are exact to it */
	uint64_t fill_ns;          /* an empty funnel is full after this long */
	uint64_t back_ns;          /* a key that was idle for up to this long is known to be full */
	uint64_t ahead_ns;         /* a clock that stepped back by up to this much is recognised */
};

/*
 * Counters since the rule was defined, or (of all rules) the segment created.
 * Monotonic; a process killed between deciding and counting loses one.
 */
struct shmlimit_counters {
	uint32_t struct_size;      /* sizeof(struct shmlimit_counters) */
	uint32_t reserved32;
	uint64_t allowed;          /* answers of allowed: of OFF rules and disabled segments too, not those shadow_denied */
	uint64_t denied;           /* answers of denied */
	uint64_t shadow_denied;    /* answers of allowed that an enforced rule would have denied (DRY_RUN) */
	uint64_t claims;           /* slots taken for a key that had none */
	uint64_t reclaims;         /* slots taken from a key whose funnel had refilled */
	uint64_t evictions;        /* slots taken from a key whose funnel had not (on_full = evict) */
	uint64_t no_slot;          /* decisions made without a slot, as on_full says */
	uint64_t failed_cas;       /* compare-and-swaps that lost to another process and were tried again */
};

/* What shmlimit_lease_take() found. Filled when SHMLIMIT_LEASE_ASK or SHMLIMIT_LEASE_WAIT is returned. */
struct shmlimit_lease {
	uint32_t struct_size;      /* sizeof(struct shmlimit_lease) */
	uint32_t reserved32;
	uint64_t want;             /* ASK: tokens to lease; with those held they are the cost or more */
	uint64_t need;             /* ASK: tokens without which the request is denied: its cost less those held */
	uint64_t held;             /* tokens that may be spent here now; less than the cost */
	uint64_t wait_ns;          /* how long the claim of the caller that asks goes on; 0 if there is none */
};

/* What was leased, since the segment was created, under all LEASE rules. Monotonic. */
struct shmlimit_lease_counters {
	uint32_t struct_size;      /* sizeof(struct shmlimit_lease_counters) */
	uint32_t reserved32;
	uint64_t leases;           /* deposits of one token or more */
	uint64_t leased;           /* tokens deposited */
	uint64_t spent;            /* tokens spent, those too that were given back */
	uint64_t lapsed;           /* tokens that were found expired, or had no room; of evicted keys they are not seen */
	uint64_t denied;           /* denials that were known here, and nobody was asked */
	uint64_t engine_errors;    /* as shmlimit_lease_count() was told */
	uint64_t breaker_openings;
};

/* A segment's geometry and state. */
struct shmlimit_info {
	uint32_t struct_size;      /* sizeof(struct shmlimit_info) */
	uint32_t layout_version;
	uint64_t size;             /* bytes of shared memory that are reserved */
	uint64_t slots;            /* of the present table */
	uint32_t rules;            /* rules that can be named */
	uint32_t rules_used;       /* rules that are */
	uint32_t on_full;
	uint32_t clock;
	uint32_t enabled;          /* 0 = the segment is switched off: every decision answers allowed */
	uint32_t mode;             /* permission bits */
	uint32_t uid, gid;         /* owner */
	uint64_t created_unix_ns;  /* when, nanoseconds of the real-time clock since 1970 */
	uint32_t window_max;       /* the largest capacity of WINDOW rules */
	uint32_t names;            /* bytes of each key that are kept, rounded up to fill whole words; 0 = none */
	uint64_t slots_before;     /* of the table before, while there may still be keys in it; else 0 */
	uint64_t slots_max;        /* to how many it can be grown */
	uint64_t undecided_passed; /* requests that servers let pass because the limiter could not decide */
	uint64_t undecided_refused; /* requests that servers refused for that reason */
	uint64_t reserved[1];
};

/* One limit, one key: for shmlimit_take_all() and shmlimit_take_many(). */
struct shmlimit_request {
	int32_t rule;
	uint32_t reserved32;       /* must be zero */
	const void *key;
	size_t key_len;
	uint64_t cost;
};

/* shmlimit_slot.state */
#define SHMLIMIT_SLOT_FREE 0       /* holds nothing */
#define SHMLIMIT_SLOT_LIVE 1       /* holds a funnel that is not full */
#define SHMLIMIT_SLOT_REFILLED 2   /* holds a full funnel: the same as none */
#define SHMLIMIT_SLOT_TENTATIVE 3  /* being claimed, or left so by a process that was killed */
#define SHMLIMIT_SLOT_STALE 4      /* of a rule that is gone: the same as free */

/* shmlimit_slot.lease: what a slot of a LEASE rule says. */
#define SHMLIMIT_SLOT_TOKENS 1     /* that many tokens may be spent */
#define SHMLIMIT_SLOT_DENIED 2     /* the engine said no */
#define SHMLIMIT_SLOT_ASKED 3      /* somebody is asking */

/* One place of the table. */
struct shmlimit_slot {
	uint32_t struct_size;      /* sizeof(struct shmlimit_slot) */
	uint32_t state;            /* SHMLIMIT_SLOT_... */
	uint64_t fingerprint;      /* 48 bits of the key's hash */
	int32_t rule;              /* LIVE, REFILLED: the rule's id; else -1 */
	uint32_t lease;            /* LIVE, of a LEASE rule: SHMLIMIT_SLOT_TOKENS, _DENIED, _ASKED; else 0 */
	uint64_t remaining;        /* LIVE, REFILLED: whole tokens left; WARMUP: stored; LEASE: here */
	uint64_t reset_after_ns;   /* LIVE: until the funnel is full again; LEASE: until what it says ends */
	uint64_t debt_ns;          /* LIVE: until all that was borrowed is back; WARMUP, WINDOW: until the last reservation */
};

/* One thing that shmlimit_verify() found wrong, or shmlimit_repair() repaired. */
struct shmlimit_problem {
	uint64_t offset;           /* byte of the segment where it stands */
	char text[120];            /* what, and what would be right; one line, NUL-terminated */
};

/* The header fields of an answer; strings, NUL-terminated. */
struct shmlimit_fields {
	uint32_t struct_size;      /* sizeof(struct shmlimit_fields) */
	uint32_t reserved32;
	char policy[SHMLIMIT_FIELD_MAX];   /* RateLimit-Policy: "login";q=15;w=30 */
	char limit[SHMLIMIT_FIELD_MAX];    /* RateLimit: "login";r=14;t=2 */
	char retry_after[16];      /* Retry-After: 2; empty unless denied, and when it would never fit */
};

/*
 * ---- Segments -------------------------------------------------------------
 *
 * A name is 1 to SHMLIMIT_NAME_MAX bytes without '/' and control characters
 * and does not begin with '.'; the segment is the file of that name in
 * /dev/shm. Errors that all these share: -EILSEQ and -ENAMETOOLONG for a bad
 * name, -EACCES, and what the system says (-EMFILE, -ENOMEM ...).
 *
 * Threads: safe. Signals: not to be called from handlers. Fork: a handle
 * opened before fork() works in parent and children alike. One process may
 * open a segment several times. Cost: system calls; call them at start-up.
 */

/*
 * Make a segment and, where `out` is not NULL, open it. `options` NULL means
 * all defaults. All of its memory is reserved now: a decision never meets a
 * full /dev/shm. The segment appears under its name in one step, complete; a
 * creator killed at any point leaves nothing behind.
 *
 * Returns 0, or: -EEXIST the name is taken; -ENOSPC /dev/shm has not that much
 * room; -EINVAL an option is out of its range; -E2BIG a field is set
 * that this library does not know; -EPERM the group cannot be given. On any
 * error nothing was made and *out is untouched.
 */
int shmlimit_create(const char *name, const struct shmlimit_options *options, struct shmlimit **out);

/*
 * Open a segment. With SHMLIMIT_READ_ONLY it is mapped without write
 * permission (read permission on the file suffices) and every call that would
 * write returns -EROFS. Everything in the header is checked before it is used,
 * and what was checked is kept: a header that is overwritten later misleads
 * nobody who is in.
 *
 * The owner of a file can truncate it, which kills every process that has it
 * mapped with SIGBUS; and any user can create a segment under a name that is
 * free. So a program that opens a segment by its name sets SHMLIMIT_TRUSTED_OWNER,
 * unless it trusts all users of the host. The file is then checked before it is
 * mapped: its owner must be root or the effective user of this process, it must
 * have no other hard link, and the file system must have reserved its first table.
 *
 * Returns 0, or: -ENOENT no such segment; -EMEDIUMTYPE the file is not a
 * segment of ours; -EPERM its owner is not trusted, or it has another hard link;
 * -EPROTO it has another layout version; -EUCLEAN it is
 * damaged (see shmlimit_verify()); -ESTALE it was made before the last boot;
 * -EXDEV it was made in another time namespace, where clocks differ; -EINVAL a
 * flag is unknown. On any error *out is untouched and the segment unchanged.
 */
int shmlimit_open(const char *name, uint32_t flags, struct shmlimit **out);

/*
 * Open with SHMLIMIT_TRUSTED_OWNER, and trust the user `owner` (a user id) besides:
 * for segments that another service's user creates. Returns as shmlimit_open() does.
 */
int shmlimit_open_owned(const char *name, uint32_t flags, uint32_t owner, struct shmlimit **out);

/*
 * Give the handle back. No thread may be inside a call on it. NULL is allowed.
 * The segment and its funnels stay; so do those of other processes.
 */
void shmlimit_close(struct shmlimit *limiter);

/*
 * Remove the name. Processes that have the segment open go on with it, among
 * themselves; its memory goes back when the last of them closes it or dies.
 *
 * Returns 0, or: -ENOENT no such segment; -EMEDIUMTYPE the file is not a
 * segment of ours, and was left alone. Damaged ones and those of other
 * versions can be destroyed.
 */
int shmlimit_destroy(const char *name);

/*
 * Is the segment no longer the one of its name: destroyed, and perhaps created
 * anew? For who lives longer than segments do, and then opens it again. Returns
 * 1, or 0 while it is the same, or -errno. Cost: one system call.
 */
int shmlimit_gone(struct shmlimit *limiter);

/*
 * Walk the segments of this host that may be read, in byte order of their
 * names: give an empty string first, then what came back. `name` is replaced
 * by the next one.
 *
 * Returns 1, or 0 when there are no more (`name` is then ""), or -errno.
 * Names that vanish or appear meanwhile may or may not be met.
 */
int shmlimit_next(char name[SHMLIMIT_NAME_MAX + 1]);

/*
 * Can a segment have this name, and one of its rules the other? For programs that
 * read names from a configuration, before there is a segment. A NULL is not looked
 * at. Returns 0, -EILSEQ or -ENAMETOOLONG. Pure: no system call, safe anywhere.
 */
int shmlimit_check_names(const char *name, const char *rule_name);

/*
 * Give the segment a larger table of `slots` slots, at least twice as many as it
 * has, under the same name and in all processes that have it open. They decide
 * on meanwhile: each key's state moves when it is asked for next, and no answer
 * fails or differs for it. The memory of the table before stays in use.
 *
 * Before it can grow again all of its keys must have moved there or refilled,
 * for which this looks. `slots` 0: only do that.
 *
 * Returns 0, or, nothing being changed: -EALREADY there are keys left in the
 * table before: call again when they have refilled; -EINVAL fewer than twice as
 * many slots; -EFBIG more than the segment was made for (options.slots_max);
 * -ENOSPC /dev/shm has not that much room; -EROFS; -EACCES; -EAGAIN another
 * process holds the lock; -ENOENT the segment was destroyed; -EUCLEAN it is damaged. If killed inside, the segment has the
 * larger table or has it not. One at a time, and not beside writers of rules: it
 * waits for them. Not to be called from signal handlers. Cost: reserving the
 * memory, and a pass over the table before. `_at`: where the keys' times
 * were given too.
 */
int shmlimit_grow(struct shmlimit *limiter, uint64_t slots);
int shmlimit_grow_at(struct shmlimit *limiter, uint64_t slots, uint64_t now_ns);

/* Fill *out, whose struct_size says how much of it the caller knows. Returns 0, -EINVAL. */
int shmlimit_info(struct shmlimit *limiter, struct shmlimit_info *out);

/*
 * Turn the whole segment off (on = 0: every decision of every process answers
 * allowed and touches no funnel, as if all rules were OFF) or on again. Takes
 * effect with each process's next decision. Returns 0, -EROFS.
 */
int shmlimit_switch(struct shmlimit *limiter, uint32_t on);

/*
 * Count `n` requests that were let pass (`refused` 0) or refused (1) because the segment or a rule was missing: for
 * servers, when the segment is back, so that metrics show the outage. Returns 0, -EINVAL, -EROFS. No system call.
 */
int shmlimit_count_undecided(struct shmlimit *limiter, uint32_t refused, uint64_t n);

/*
 * Write what the segment holds to an open file, for shmlimit_load(): what it was
 * made with, switch, rules, what each key has left, and the secret of its hash, so
 * let nobody read the file who must not choose keys. Not in it are counters, names
 * of keys, and leases, which are given back by not being spent.
 *
 * Decisions go on meanwhile, and each key is as of some moment of the call; writers
 * of rules wait for it. A handle that is read-only will do. The file is written to
 * where it stands, a pipe too, which is waited for; syncing it is the caller's. Of
 * a segment that has just grown both tables are written, and loaded.
 *
 * Returns 0, or: -ENOENT the segment was destroyed meanwhile; -EUCLEAN a rule or
 * the header is damaged; -EAGAIN another process holds the lock;
 * -EINVAL limiter is NULL; -ENOMEM; what write(2) says. On any error what was
 * written is of no use. Cost: one pass over the table, and 32 bytes a live key, in
 * a WINDOW 8 for each token that counts.
 */
int shmlimit_save(struct shmlimit *limiter, int fd);

/*
 * Make a segment of what shmlimit_save() wrote, perhaps before the last boot, and,
 * where `out` is not NULL, open it. The same keys have the same tokens left,
 * and what time gives back since: as much as passed by the real-time clock,
 * nothing if that went back or `flags` has SHMLIMIT_NO_ELAPSED. Where times cannot
 * be told exactly, a key has a tick of its rule less, never more. Counters
 * begin anew. Mode and group are the old segment's, the owner if the caller is root.
 *
 * With SHMLIMIT_CHECK_ONLY all of the file is read, and nothing is made: 0 says that
 * it can be loaded where there are room and rights. `name` and `out` are not looked at.
 *
 * The file is read from where it stands to its end. All of it is checked, against
 * accidents: trust it as far as you trust those who may write to it. The segment
 * appears in one step, complete; a caller killed at any point leaves nothing.
 *
 * Returns 0, or: -EMEDIUMTYPE the file was not written by shmlimit_save();
 * -EPROTO it was by another version; -EUCLEAN it is damaged or not whole; -EEXIST
 * the name is taken; -EINVAL a flag is unknown; -ENOSPC, -EPERM as of
 * shmlimit_create(); -ENOMEM; what read(2) says. On any error nothing was made and
 * *out is untouched. Cost: creating it, and a sort of the live keys.
 */
int shmlimit_load(const char *name, int fd, uint32_t flags, struct shmlimit **out);

/*
 * Check everything that can be checked in a segment, one that cannot be opened
 * too: header, geometry, rules, counters, every slot, no key in two slots.
 * Reads only. The first `n` findings go to `problems`.
 *
 * Returns how many things are wrong (0 = sound; may exceed n; saturates at
 * INT_MAX), or -ENOENT, -EMEDIUMTYPE. Safe beside running decisions: what
 * looks wrong is looked at twice. Cost: one pass over the table, and a sort.
 */
int shmlimit_verify(const char *name, struct shmlimit_problem *problems, size_t n);

/*
 * Repair what can be without guessing, under the lock of those who write rules:
 * reserved fields become zero, a switch or mode out of range what decisions take
 * it for, and so does a slot's word; a slot that nobody can use is freed. Of two
 * slots of one key the one that is full later stays, so that the key gets no more
 * than before. A rule's name and terms cannot be repaired (set the rule again, or
 * remove it), nor can a segment that cannot be opened. The first `n` repairs go to
 * `repairs`, each with what was done.
 *
 * Returns how many there were (may exceed n; saturates at INT_MAX), what
 * shmlimit_open() says, or -EAGAIN another process holds the lock. Ask shmlimit_verify() what is left. Safe beside running
 * decisions. If killed inside: some were made, ask again.
 */
int shmlimit_repair(const char *name, struct shmlimit_problem *repairs, size_t n);

/*
 * ---- Rules ----------------------------------------------------------------
 *
 * A rule lives in the segment under a name of 1 to SHMLIMIT_RULE_NAME_MAX
 * letters, digits and . _ : @ + - (those without a name, see shmlimit_throttle(),
 * can be found and removed by what they are listed as; '~' and a letter begin the
 * name of a rule that a library makes for itself, which the command neither exports
 * nor prunes) and has an id, 0 or more,
 * that stays the same while the rule exists. Ask for the id once, decide with it
 * for ever.
 *
 * Errors that all these share: -EILSEQ, -ENAMETOOLONG a bad rule name; of those
 * that write, -EAGAIN another process holds the lock.
 * Threads, processes, fork: safe. Signals: not to be called from handlers.
 * Progress: writers wait for one another, about 5 seconds, on a flock(2) of the
 * segment's file, which the kernel drops when its holder dies. A process that can
 * read the file can hold it for as long as it likes. No decision ever waits for it.
 * If killed inside: the old state or the new one is in force, never a mix.
 */

/*
 * Define the rule `rule_name`, or change one that exists: capacity, rate, debt
 * and mode at once, in all processes, with their next decision. Keys keep their
 * tokens, clamped to the new capacity, and their debts, clamped to the new
 * longest: raising a limit denies nothing that the old one would have allowed.
 * A key that has no slot is full, as ever. Cost: two passes over the table. The
 * twin `_at` is for segments whose decisions are given their time too.
 *
 * FUNNEL: a burst of `capacity`, then `count` tokens every `period_ns`. WINDOW:
 * at most `capacity` tokens in any stretch of `period_ns`, exactly; `count` is 0.
 * WARMUP: `count` tokens every `period_ns` once it is warm; each request waits
 * for what was owed before it, as in Guava's RateLimiter.create(rate,
 * warmupPeriod), whose stored permits the capacity is; it follows from the rest.
 * LEASE: capacity, count and period are those of a funnel that others share, and
 * a key without a slot has nothing: see shmlimit_lease_take().
 *
 * Returns the id (0 or more), or: -EDOM capacity, count, period_ns or warmup_ns is
 * 0; -ERANGE the rule cannot be represented exactly (see shmlimit_rule_range()),
 * a WARMUP stores no whole token, or a LEASE's capacity is above
 * SHMLIMIT_LEASE_CAPACITY_MAX or, times the period over its common factor with
 * 1000 * count, 2^53 or more; -EFBIG a WINDOW's capacity is above the
 * segment's window_max; -EBUSY the rule exists and has another algorithm;
 * -EINVAL a mode, algorithm or flag is unknown or does not go with the others, or a
 * WARMUP's capacity or cold factor is out of range; -E2BIG a field is set that
 * this library does not know; -EXFULL the segment has no room for another rule;
 * -EROFS; -ENOENT the segment was destroyed meanwhile. On any error nothing was
 * changed. The rule is looked at first: with a read-only handle -EROFS says that
 * there is nothing wrong with it.
 */
int shmlimit_rule_set(struct shmlimit *limiter, const char *rule_name, const struct shmlimit_rule *rule);
int shmlimit_rule_set_at(struct shmlimit *limiter, const char *rule_name, const struct shmlimit_rule *rule,
                         uint64_t now_ns);

/* The id of a rule, or -ESRCH. No system call; cost: a comparison a rule. */
int shmlimit_rule_find(struct shmlimit *limiter, const char *rule_name);

/*
 * Fill *out (set its struct_size first) with the rule as it was set. Returns 0, -ESRCH, -EINVAL, or -EUCLEAN where
 * its capacity, count or period is 0, as no rule is set: somebody has written over it; set or remove it.
 */
int shmlimit_rule_get(struct shmlimit *limiter, int rule, struct shmlimit_rule *out);

/*
 * Which algorithm a rule has: SHMLIMIT_FUNNEL, ... That of an id may be another
 * once the rule was removed and one set anew. Returns it, or -ESRCH, -EINVAL. No
 * system call; cost: a look at two lines, so that it may be asked before each decision.
 */
int shmlimit_rule_algorithm(struct shmlimit *limiter, int rule);

/*
 * Copy the name of a rule, NUL-terminated; a byte that no rule's name has, as a writer may have put there, becomes '?'.
 * Ids run from 0 to info.rules - 1. Returns 0, -ESRCH.
 */
int shmlimit_rule_name(struct shmlimit *limiter, int rule, char name[SHMLIMIT_RULE_NAME_MAX + 1]);

/*
 * Tell in *capacity the largest capacity that shmlimit_rule_set() accepts with the rest of *rule; what *rule says
 * of it does not matter. A WINDOW's is that of the largest segment. Returns 0; -ERANGE no capacity is accepted with
 * such a rate and max_wait_ns; -EINVAL an argument is NULL, or a WARMUP's capacity follows from the rest; any other
 * error of shmlimit_rule_set() for the rest of *rule. Needs no segment, makes no system call.
 */
int shmlimit_rule_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity);

/* Fill *out (set its struct_size first) with what the rule's clock can tell. Returns 0, -ESRCH, -EINVAL. */
int shmlimit_rule_range(struct shmlimit *limiter, int rule, struct shmlimit_range *out);

/*
 * Forget the rule and all its funnels. Decisions with its id return -ESRCH
 * from now on, until the id is given to another rule. Returns 0, -ESRCH,
 * -EROFS, -ENOENT the segment was destroyed meanwhile.
 */
int shmlimit_rule_remove(struct shmlimit *limiter, const char *rule_name);

/*
 * ---- Decisions ------------------------------------------------------------
 *
 * `rule` is an id; `key` is `key_len` bytes, 1 to SHMLIMIT_KEY_MAX, any bytes,
 * NUL included; a key never seen has a full funnel. `r` may be NULL. Each call
 * has a twin `_at` that takes the time, `now_ns`, from the caller instead of
 * the limiter's clock: for tests, for replaying logs, or to decide several
 * times with one clock read. Use one clock for one segment.
 *
 * Errors that all these share, nothing being changed: -EMSGSIZE the key's
 * length; -ESRCH no rule has this id; -EINVAL limiter or key is NULL; -EROFS
 * the handle is read-only and the call would write.
 *
 * Threads, processes, fork: safe. Signals: safe in handlers, also when the
 * handler interrupted a decision. Progress: lock-free; no call waits for
 * another process, and none makes a system call (the clock is the vDSO's), except
 * one in the first decision of a process after the segment grew. If killed
 * inside: the tokens were taken or they were not, nothing is left to repair.
 * Cost: about a clock read, a hash of the key and a compare-and-swap; a denial
 * writes nothing to the table.
 *
 * The funnel is the book's (capacity, leaking rate, left quota, time of the
 * last leak) with whole tokens in the quota and the fraction kept in the time,
 * so that being asked often does not slow the leak.
 */

/*
 * Take `cost` tokens if the funnel has them. `cost` 0 is a peek. A cost above
 * the rule's capacity is denied with retry_after_ns = UINT64_MAX.
 * Returns SHMLIMIT_ALLOWED, SHMLIMIT_DENIED or an error. Under a DRY_RUN rule
 * a refusal returns SHMLIMIT_ALLOWED with retry_after_ns > 0, having taken
 * nothing.
 */
int shmlimit_take(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                  struct shmlimit_result *r);
int shmlimit_take_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                     uint64_t now_ns, struct shmlimit_result *r);

/*
 * Take from several limits, all or none: per address and per user and for the
 * whole site, or 20 a second and 1,000 an hour for one key. `requests` are 1 to
 * SHMLIMIT_REQUESTS_MAX; `results` has as many places, or is NULL. Allowed if
 * all are. At the first that is denied, or an error, what was taken before is
 * given back and *failed (unless NULL) says which it was; results are filled up
 * to that one. Each key is then as it was, unless another process changed it
 * meanwhile: then its tokens are refunded.
 *
 * The requests are decided one after the other at one time, in their order (put
 * the one that denies most first): until it is given back, others may for a
 * moment see less than there is, and be denied; nobody is ever admitted beyond
 * any of the limits. If killed inside: what was taken is taken. Counted at each
 * rule as decided there, also what was given back. Cost: n takes.
 */
int shmlimit_take_all(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n, size_t *failed,
                      struct shmlimit_result *results);
int shmlimit_take_all_at(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n, size_t *failed,
                         uint64_t now_ns, struct shmlimit_result *results);

/*
 * Take for many requests at once, each by itself: for who serves a batch, or has
 * a list to send. Request i is answered in answers[i], as shmlimit_take() would
 * have: SHMLIMIT_ALLOWED, SHMLIMIT_DENIED or an error; `results` has as many
 * places, or is NULL. They are decided at one time, in their order, so the same
 * key may stand in it several times. `n` 0 does nothing.
 *
 * Returns 0, or, nothing being decided: -EINVAL limiter, requests or answers is
 * NULL, or a request's reserved32 is not zero. If killed inside: some were decided
 * and some not. Cost: one clock read, then n takes without it, of which up to 32
 * wait for memory together.
 */
int shmlimit_take_many(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n, int *answers,
                       struct shmlimit_result *results);
int shmlimit_take_many_at(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n, int *answers,
                          uint64_t now_ns, struct shmlimit_result *results);

/*
 * Take `cost` tokens, now or in advance. What the funnel lacks is borrowed from
 * its future, and r->wait_ns says how long to wait before going on: 0 if nothing
 * was lacking. Denied, and nothing changed, if that were longer than
 * `max_wait_ns` or the rule's, whichever is less. Never blocks. Many may
 * hold reservations at once: each waits behind those before it. The cost may be
 * above the capacity, as far as the wait allows. A reservation that will not be
 * used can be given back by shmlimit_refund().
 */
int shmlimit_reserve(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                     uint64_t max_wait_ns, struct shmlimit_result *r);
int shmlimit_reserve_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                        uint64_t max_wait_ns, uint64_t now_ns, struct shmlimit_result *r);

/*
 * Reserve, then sleep until the tokens are there; signals do not cut the sleep
 * short. Returns as shmlimit_reserve() does, r->wait_ns being the time waited
 * for: nothing was waited for when denied. The only call on a limiter that
 * blocks, and only for its own key's debt; never longer than `max_wait_ns`,
 * whatever is written to the segment. If killed inside: the tokens are
 * taken. Signals: not to be called from handlers.
 */
int shmlimit_acquire(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                     uint64_t max_wait_ns, struct shmlimit_result *r);

/*
 * Take tokens for what has happened already: always applied, into debt as far
 * as the rule's max_wait_ns, and no further. Counted nowhere. Returns
 * SHMLIMIT_ALLOWED or an error. If only a part of them could be taken, or a new
 * key found no slot, r->retry_after_ns is UINT64_MAX; else it is 0.
 */
int shmlimit_charge(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                    struct shmlimit_result *r);
int shmlimit_charge_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                       uint64_t now_ns, struct shmlimit_result *r);

/* What a take would answer, without taking. Writes nothing and counts nothing; works on a read-only handle. */
int shmlimit_peek(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                  struct shmlimit_result *r);
int shmlimit_peek_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                     uint64_t now_ns, struct shmlimit_result *r);

/*
 * redis-cell's CL.THROTTLE key capacity count period [quantity] and its reply,
 * for code that carries its limits along: take `quantity` tokens from a funnel
 * of `capacity` that leaks `count` tokens every `period_s` seconds. Each triple
 * becomes a rule without a name (listed as ~capacity:count:period) the first time
 * that any process asks for it, until it is removed; a segment has room for as
 * many as it was made for (options.rules).
 *
 *	reply[0]   0 allowed, 1 denied: as returned
 *	reply[1]   capacity
 *	reply[2]   tokens left
 *	reply[3]   seconds until a retry fits, rounded up; -1 if allowed, or if it never will
 *	reply[4]   seconds until the funnel is full, rounded up
 *
 * (The module takes max_burst and reports max_burst + 1 as the limit; here both
 * are the capacity.) Errors besides a take's: -EDOM, -ERANGE as of
 * shmlimit_rule_set(); -EXFULL no room for another triple; -ENOMEM; -EAGAIN the
 * triple is new, and another process holds the lock of those who write rules, for
 * which this does not wait: nothing was taken, ask again. Signals: not to be called
 * from handlers. Cost: a take, and a look-up in this process.
 */
int shmlimit_throttle(struct shmlimit *limiter, const void *key, size_t key_len, uint64_t capacity, uint64_t count,
                      uint64_t period_s, uint64_t quantity, int64_t reply[5]);

/*
 * Give `tokens` back, to a debt first, then up to the capacity: for a request
 * that was admitted, or a reservation that was made, and then not carried out.
 * Only tokens that were taken may be given back, or the key gets more than its
 * rate. Returns SHMLIMIT_ALLOWED or an error.
 */
int shmlimit_refund(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                    struct shmlimit_result *r);
int shmlimit_refund_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                       uint64_t now_ns, struct shmlimit_result *r);

/*
 * Fill funnels up again: of one key (`key` not NULL), of every key of a rule
 * (`key` NULL), or of every key of every rule (`rule` < 0; `key` is then not
 * looked at). Returns how many keys the table had, at most INT_MAX, or an error:
 * 0 means that there was nothing to reset, and each key in question had all its
 * tokens. A key that refilled may still be counted. Decisions that run beside it
 * fall before or after it, each key by itself. Cost: one key, a probe; else a
 * pass over the table.
 */
int shmlimit_reset(struct shmlimit *limiter, int rule, const void *key, size_t key_len);

/*
 * The same for a key whose bytes are not known, only the fingerprint that
 * shmlimit_slot() gave. All keys of the rule that share it are reset: two of
 * 10 million keys do with a probability of about 0.16. Cost: a pass over the
 * table. -EINVAL if no key can have the fingerprint.
 */
int shmlimit_reset_fingerprint(struct shmlimit *limiter, int rule, uint64_t fingerprint);

/*
 * ---- Leases ---------------------------------------------------------------
 *
 * For libraries that share one funnel among many hosts. The funnel is an
 * engine's, say a Redis server's. Tokens are debited there first, many at a time,
 * deposited in the slot of the key under a LEASE rule, and spent here: so the
 * hosts together never admit more than the funnel gave, and few requests ask it.
 *
 *	answer = shmlimit_lease_take(..., cost, lease_ns, claim_ns, &lease, &r);
 *	ALLOWED, DENIED        decided here
 *	SHMLIMIT_LEASE_WAIT    somebody is asking: take again, at the latest after lease.wait_ns
 *	SHMLIMIT_LEASE_ASK     ask the engine for lease.want tokens, within claim_ns; then one of
 *	                       shmlimit_lease_deposit()   it gave some, lease.need or more
 *	                       shmlimit_lease_deny()      it said no
 *	                       shmlimit_lease_abandon()   it said nothing
 *
 * A slot holds tokens that may be spent for some time; or a denial, that holds
 * for some time; or the claim of who is asking, beside tokens that may be left. All
 * three end by themselves, so a process that is killed leaves nothing to repair,
 * and a slot that was evicted or reset has lost some tokens and given none. Times are
 * lengths on the limiter's own clock, so hosts need no common one; each ends
 * when it was told to, or up to one tick (shmlimit_rule_range()) before it; a claim
 * up to one tick after it.
 *
 * The other verbs decide on what is here and never ask: shmlimit_take(), _peek(),
 * _take_all(), _take_many() deny what is not here, shmlimit_reserve() is a take,
 * shmlimit_charge() spends no more than there is, shmlimit_refund() gives back to a
 * lease that lives, up to what it had at first, or else to nobody. A result's retry_after_ns is until a
 * known denial or claim ends, else the time of one token; reset_after_ns is until
 * what the slot says ends.
 *
 * A circuit breaker is a LEASE key of its own, under a rule of its own, that stands
 * for the engine and whose tokens are calls to it. Before each call: take 1.
 * ALLOWED: call; after a failure shmlimit_charge() all of the capacity, then
 * shmlimit_lease_deny() for as long as it shall be open. ASK: this is the one probe:
 * call, then deposit a capacity of tokens, of which 1 was spent, or deny. WAIT and
 * DENIED: it is open, or being probed.
 *
 * Errors besides a decision's: -EOPNOTSUPP the rule is not a LEASE rule. Twins
 * `_at`, threads, processes, signals, fork, progress, cost: as of decisions.
 */

/*
 * Take `cost` tokens of a lease. Where there are not enough: DENIED if that is
 * known, or the cost is above the capacity; else one caller a key gets
 * SHMLIMIT_LEASE_ASK, and has `claim_ns` in which nobody else gets it, and the
 * others SHMLIMIT_LEASE_WAIT. Meanwhile what is left is spent by who can; it lapses
 * with the claim, or now if it would before.
 *
 * lease->want is what this key spends here in about three quarters of
 * `lease_ns`, by how its last lease went: used up early, the next one is up to twice as
 * large; lapsed in part, it is smaller; what a cold key wants is the cost. If no
 * slot can be had for the key, every caller gets ASK (on_full = DENY: is denied).
 *
 * With a `claim_ns` of 0 nobody gets a claim: SHMLIMIT_LEASE_ASK then says that the
 * engine must be asked, lease->want is lease->need, and nothing is changed. So a caller
 * that must not wait decides what it can, and leaves the rest to one that may.
 *
 * Under a rule that is OFF the answer is ALLOWED. Only ALLOWED and DENIED are counted:
 * a call that ends with ASK or WAIT is, when it is decided. -EINVAL also: `lease` is
 * NULL or its struct_size too small. If killed inside, or before it answered the
 * claim: it ends after claim_ns.
 */
int shmlimit_lease_take(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                        uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *lease,
                        struct shmlimit_result *r);
int shmlimit_lease_take_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                           uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *lease, uint64_t now_ns,
                           struct shmlimit_result *r);

/*
 * Deposit `tokens` that the engine gave, spend `cost` of them, and of what is left
 * here, and end the claim: all in one step. The rest may be spent for `lasts_ns`
 * (the lease_ns that was told to shmlimit_lease_take()), up to the capacity; what is
 * above it lapses. Tokens that were here and were to end sooner make the new ones
 * end with them, or lapse, whichever loses less: no token outlives its time.
 *
 * Returns ALLOWED; or SHMLIMIT_LEASE_WAIT if the tokens are deposited but others spent
 * what was held: take again. If killed inside: all of it was done, or nothing.
 */
int shmlimit_lease_deposit(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                           uint64_t cost, uint64_t lasts_ns, struct shmlimit_result *r);
int shmlimit_lease_deposit_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                              uint64_t cost, uint64_t lasts_ns, uint64_t now_ns, struct shmlimit_result *r);

/*
 * The engine said no to `cost`, and will for `for_ns`: deny requests of that or more
 * here until then. Ends the claim. Tokens that are left here stay until it would have
 * ended, and then the denial is not remembered. Returns DENIED (ALLOWED of a dry run).
 */
int shmlimit_lease_deny(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                        uint64_t for_ns, struct shmlimit_result *r);
int shmlimit_lease_deny_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
                           uint64_t for_ns, uint64_t now_ns, struct shmlimit_result *r);

/* The engine said nothing: end the claim, so that the next one asks. Returns 0 or an error. */
int shmlimit_lease_abandon(struct shmlimit *limiter, int rule, const void *key, size_t key_len);
int shmlimit_lease_abandon_at(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                              uint64_t now_ns);

/* Count `n` of what only the caller knows of: SHMLIMIT_LEASE_ENGINE_ERRORS ... Returns 0, -EINVAL, -EROFS. */
int shmlimit_lease_count(struct shmlimit *limiter, uint32_t which, uint64_t n);

/* Fill *out (set its struct_size first). Returns 0, -EINVAL. */
int shmlimit_lease_counters(struct shmlimit *limiter, struct shmlimit_lease_counters *out);

/* The limiter's clock, nanoseconds since an arbitrary point before the last boot's first decision. */
uint64_t shmlimit_now(struct shmlimit *limiter);

/*
 * ---- Looking in -----------------------------------------------------------
 */

/* Fill *out (set its struct_size first) for one rule, or summed over all (`rule` < 0). Returns 0, -ESRCH, -EINVAL. */
int shmlimit_counters(struct shmlimit *limiter, int rule, struct shmlimit_counters *out);

/*
 * Fill *out (set its struct_size first) with what stands in slot `index`, 0 to
 * info.slots + info.slots_before - 1, as of now_ns: first those of the present
 * table, then those of the one before, while keys may be left there. Reads only, never disturbs a decision. Returns
 * 0, -EINVAL.
 */
int shmlimit_slot(struct shmlimit *limiter, uint64_t index, uint64_t now_ns, struct shmlimit_slot *out);

/*
 * Copy the key of slot `index`, which shmlimit_slot() described as *slot, where
 * the segment was made to keep keys (options.names). `size` says how much room
 * `key` has; SHMLIMIT_KEY_MAX suffices. The key's whole length goes to *key_len
 * (unless NULL): it is more than what was copied where the key is longer than
 * the segment keeps, which is then its beginning.
 *
 * Returns how many bytes were copied; 0 if the key is not known: none are kept,
 * who claimed the slot has not written it yet or was killed before he did, or
 * what stands there is another key's; or -EINVAL, -ENOBUFS. What was written is
 * not trusted but hashed again, so a key that is shown is the slot's. Keys are
 * any bytes: escape them before they go to a terminal. Reads only, never
 * disturbs a decision.
 */
int shmlimit_slot_key(struct shmlimit *limiter, uint64_t index, const struct shmlimit_slot *slot, void *key,
                      size_t size, size_t *key_len);

/*
 * ---- Keys and answers -----------------------------------------------------
 *
 * For servers. Pure: no segment, no system call; safe anywhere.
 */

/*
 * Make a key of the net that an address lies in, so that whoever has a whole
 * net to ask from is one client. `address` is 4 or 16 bytes in network order;
 * an IPv4-mapped IPv6 address is IPv4. Of IPv4 the first `prefix_v4` bits count,
 * 0 to 32, of IPv6 the first `prefix_v6`, 0 to 128: 32 and 64 are what one
 * customer has. The key is the family, the prefix length and the net: no two
 * that differ in one of these share a key. SHMLIMIT_KEY_IP_MAX bytes suffice.
 *
 * Returns the key's length, or: -EINVAL an argument is NULL or out of its
 * range; -ENOBUFS `key_size` is too small. On any error nothing was written.
 */
int shmlimit_key_ip(const void *address, size_t address_len, unsigned prefix_v4, unsigned prefix_v6, void *key,
                    size_t key_size);

/*
 * The same of an address as text, as inet_pton(3) reads it: neither brackets
 * nor a port. The zone of an IPv6 address (%eth0) is left out, for it says
 * where this host heard from the client and not who it is. Returns as
 * shmlimit_key_ip() does, -EINVAL also for what is not an address.
 */
int shmlimit_key_ip_text(const char *text, unsigned prefix_v4, unsigned prefix_v6, void *key, size_t key_size);

/*
 * Write an answer as HTTP's fields RateLimit-Policy, RateLimit and Retry-After
 * (draft-ietf-httpapi-ratelimit-headers-10). `name` is the policy's, say the
 * rule's: 1 to SHMLIMIT_RULE_NAME_MAX bytes of printable ASCII, quoted
 * here. `rule` is as shmlimit_rule_get() has it, `answer` and `r` as a decision
 * returned them. Set out->struct_size first.
 *
 *	q   the rule's capacity
 *	w   seconds that it takes to give that out, 1 at least
 *	r   tokens left
 *	t   seconds: denied, until a retry fits; else until the funnel is full
 *
 * A client that spreads r over t is never denied. Retry-After is the t of a
 * denial, 1 at least, and missing where a retry never fits. Seconds are rounded
 * up, and every number ends at 15 digits, as an Integer of a structured field
 * does. A request with several limits sends one field for each, or joins them by
 * commas.
 *
 * Returns 0, or: -EINVAL an argument is NULL or unknown, or a struct_size too
 * small; -EILSEQ, -ENAMETOOLONG a bad name; -E2BIG the rule is longer than
 * this library knows, and says something there.
 */
int shmlimit_fields(const char *name, const struct shmlimit_rule *rule, int answer,
                    const struct shmlimit_result *r, struct shmlimit_fields *out);

/*
 * What an error of this library means, in its own words: a static string, also
 * for values that it never returns. Takes the value as returned (negative) or
 * as an errno (positive). Safe anywhere.
 *
 *	EINVAL        an argument is NULL, unknown, or out of its range
 *	E2BIG         a field is set that this library does not know
 *	EILSEQ        a name is empty or has a character it may not have
 *	ENAMETOOLONG  a name is too long
 *	EMSGSIZE      a key is not 1 to 1024 bytes long
 *	EDOM          a rule's capacity, count, period or warm-up is 0
 *	ERANGE        a rule cannot be represented exactly
 *	EFBIG         a window or a table is larger than the segment was made for
 *	EBUSY         a rule's algorithm cannot be changed: remove the rule first
 *	EOPNOTSUPP    the rule is not a LEASE rule
 *	EALREADY      the table grew, and keys are left in the one before
 *	ESRCH         no such rule
 *	EXFULL        the segment has no room for another rule
 *	EROFS         the handle is read-only, or /dev/shm is
 *	EAGAIN        another process holds the lock of those who write rules
 *	ENOENT        no such segment
 *	EEXIST        a segment or file of this name exists
 *	EMEDIUMTYPE   not a shmlimit segment, or not a saved one
 *	EPROTO        a segment, or a saved one, of another version
 *	EUCLEAN       a damaged segment or rule, or a damaged saved one
 *	ESTALE        a segment made before the last boot
 *	EXDEV         a segment of another time namespace
 *	EACCES        no permission on the segment
 *	EPERM         the segment belongs to neither root nor this user, or its group cannot be given
 *	ENOSPC        no room left in /dev/shm
 *	ENOBUFS       a buffer is too small
 */
const char *shmlimit_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
