/*
 * shmlimit: a token bucket rate limiter that all processes of a host share.
 *
 * A limiter is a POSIX shared-memory segment. It holds rules and a table of token buckets,
 * called funnels here: one for each (rule, key). A funnel holds up to `capacity` tokens;
 * `refill` tokens come back every `period`. In any stretch of time it admits at most
 *
 *	capacity + refill * (time / period)
 *
 * tokens, summed over every thread of every process that opened the segment. There is no
 * daemon, no lock that a decision could wait for, and nothing to repair after a process was
 * killed.
 *
 * Every function that can fail returns a negative errno value. shmlimit_strerror() lists these
 * values, with one meaning each. No function reads or sets errno itself.
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

/* The version of this header. */
#define SHMLIMIT_VERSION "1.0.0"

/* The two answers of a decision. An error is negative, so `== 0` fails closed. */
enum shmlimit_answer {
	SHMLIMIT_ALLOWED = 0, /* the request is within the limit */
	SHMLIMIT_DENIED = 1   /* it is beyond it, and nothing was taken */
};

#define SHMLIMIT_KEY_MAX 1024      /* longest key, bytes; the shortest has 1 */
#define SHMLIMIT_NAME_MAX 239      /* longest name of a segment, bytes without the NUL */
#define SHMLIMIT_PATH_MAX 272      /* longest path of a segment's file, bytes with the NUL */
#define SHMLIMIT_LAYOUT_MAX 999999 /* largest layout version */
#define SHMLIMIT_RULE_NAME_MAX 63  /* longest name of a rule, bytes without the NUL */
#define SHMLIMIT_RULES_MAX 4096    /* largest number of rules in a segment */
/*
 * In place of a rule's id, where a call says so: all rules. No call returns it, neither as an id
 * nor as an error: so a name that was not found is never all rules.
 */
#define SHMLIMIT_ALL_RULES (-2147483647 - 1)
#define SHMLIMIT_REQUESTS_MAX 16 /* most limits in one call of shmlimit_take_all() */
/* longest header field of shmlimit_fields(), bytes with the NUL */
#define SHMLIMIT_FIELD_MAX 192
#define SHMLIMIT_ZONE_MAX 40      /* longest name of a time zone, bytes with the NUL */
#define SHMLIMIT_RULE_TEXT_MAX 96 /* longest text of shmlimit_rule_text(), bytes with the NUL */
#define SHMLIMIT_KEY_IP_MAX 18    /* longest key that shmlimit_key_ip() makes, bytes */
#define SHMLIMIT_SLOTS_MIN 16     /* fewest slots of a segment, 16 bytes each */
#define SHMLIMIT_SLOTS_MAX ((uint64_t)1 << 36)
#define SHMLIMIT_CAPACITY_MAX ((uint64_t)1 << 48) /* largest capacity of a FUNNEL rule */
#define SHMLIMIT_WINDOW_MAX 65536                 /* largest capacity of a WINDOW or HOLD rule */

/*
 * shmlimit_options.on_full: what happens to a new key whose probe window has no free slot. A take
 * of more than the rule's capacity is denied all the same.
 */
enum shmlimit_full {
	/* it evicts the key closest to full; see also SHMLIMIT_RULE_PROTECTED */
	SHMLIMIT_FULL_EVICT = 0,
	SHMLIMIT_FULL_ALLOW = 1, /* it is allowed, and nothing is recorded */
	SHMLIMIT_FULL_DENY = 2   /* it is denied */
};

/* shmlimit_options.clock */
enum shmlimit_clock {
	SHMLIMIT_CLOCK_PRECISE = 0, /* CLOCK_MONOTONIC */
	/* CLOCK_MONOTONIC_COARSE: faster to read, advances by one kernel tick (1 to 10 ms) */
	SHMLIMIT_CLOCK_COARSE = 1
};

/* shmlimit_rule.algorithm */
enum shmlimit_algorithm {
	SHMLIMIT_FUNNEL = 0, /* a burst, then a rate */
	SHMLIMIT_WARMUP = 1, /* a rate that rises from cold to warm: Guava's SmoothWarmingUp */
	/* a sliding window: at most `capacity` tokens in any stretch of one period, exactly */
	SHMLIMIT_WINDOW = 2,
	/* tokens leased from a funnel on a backend (such as Redis), spent here */
	SHMLIMIT_LEASE = 3,
	/* a count that expires, as Redis's INCREX; to shmlimit_take() a fixed window */
	SHMLIMIT_COUNTER = 4,
	/* places that are held: at most `capacity` at once; one that is not left ends by itself */
	SHMLIMIT_HOLD = 5,
	/* as FUNNEL, but each call may bring its own limit: see shmlimit_decide() */
	SHMLIMIT_GCRA = 6
};

/* shmlimit_rule.mode */
enum shmlimit_mode {
	SHMLIMIT_ENFORCE = 0,
	SHMLIMIT_DRY_RUN = 1, /* decide and count, but always answer allowed */
	SHMLIMIT_OFF = 2,     /* answer allowed, and touch nothing */
	/* answer denied, to retry never, and touch nothing; a charge or refund does nothing */
	SHMLIMIT_BLOCK = 3
};

#define SHMLIMIT_LEASE_CAPACITY_MAX 2097151 /* largest capacity of a LEASE rule: 2^21 - 1 */

/*
 * ---- Flags ----------------------------------------------------------------
 *
 * A flag's name begins with its set, and a set belongs to the calls or the member named here. No
 * two sets share a bit, those of shmlimit_global.h included. A call returns -EINVAL for a bit that
 * is not of its set.
 */

/* shmlimit_rule.flags */
enum shmlimit_rule_flags {
	/*
	 * Which caller waits for a reservation's debt. By default the caller waits for its own
	 * tokens. With NEXT_PAYS the caller waits only for earlier debt, and the next caller pays
	 * for this one, as in Guava's RateLimiter. The debt can then reach max_wait_ns plus one
	 * whole capacity.
	 */
	SHMLIMIT_RULE_NEXT_PAYS = 0x1,
	/* WINDOW only: refused tokens count too, so a client that keeps asking stays refused. */
	SHMLIMIT_RULE_COUNT_REFUSED = 0x2,
	/*
	 * On a full table (SHMLIMIT_FULL_EVICT) the rule's keys keep their slots against new keys
	 * of rules without this flag, and take theirs, for up to half of the slots where a key can
	 * be. Beyond half they count as any other key. For bans and for limits that a flood of
	 * other keys must not undo.
	 */
	SHMLIMIT_RULE_PROTECTED = 0x4,
	/*
	 * For shmlimit_rule_set() only: return -EAGAIN at once instead of waiting for another
	 * writer. Not stored in the rule.
	 */
	SHMLIMIT_RULE_NO_WAIT = 0x8,
	/*
	 * HOLD only: a place ends when its period is over, also while the process lives that it is
	 * bound to: see shmlimit_bind(). For work that is to be cut off.
	 */
	SHMLIMIT_RULE_CUT_OFF = 0x10
};

/*
 * shmlimit_rule.law: how the number of places moves, after each window of 250 ms and 30 places that
 * were left, or longer. Their source: Netflix, concurrency-limits 0.5.
 */
enum shmlimit_law {
	/*
	 * By how many requests wait, which follows from how much longer work takes than at its
	 * quickest: fewer than three: up; more than six: down. From 10 places on, log10 times that.
	 */
	SHMLIMIT_LAW_VEGAS = 1,
	/*
	 * Down as work takes more than one and a half times the average of the last minutes; else
	 * up.
	 */
	SHMLIMIT_LAW_GRADIENT2 = 2,
	/*
	 * To nine tenths as work takes three times as long as at its quickest, or is dropped; else
	 * up by one.
	 */
	SHMLIMIT_LAW_AIMD = 3
};

/* shmlimit_open() */
enum shmlimit_open_flags {
	SHMLIMIT_OPEN_READ_ONLY = 0x100,
	SHMLIMIT_OPEN_TRUSTED = 0x200, /* refuse a segment of a user that is not trusted */
	SHMLIMIT_OPEN_CREATE = 0x400   /* create the segment if there is none of this name */
};

/* shmlimit_load() */
enum shmlimit_load_flags {
	SHMLIMIT_LOAD_NO_ELAPSED = 0x1000, /* ignore the time between saving and loading */
	SHMLIMIT_LOAD_CHECK_ONLY = 0x2000, /* read and check the whole file, but create nothing */
	SHMLIMIT_LOAD_CAN_GROW = 0x4000    /* to 16 times its slots, or as far as before */
};

/* shmlimit_count() */
enum shmlimit_count_flags {
	SHMLIMIT_COUNT_SATURATE = 0x10000, /* beyond the bound, or below 0: add what fits */
	SHMLIMIT_COUNT_RESTART = 0x20000,  /* the time to live begins again with this call */
	SHMLIMIT_COUNT_LONGER = 0x40000    /* ... unless the count lives longer already */
};

/* shmlimit_place.flags */
enum shmlimit_place_flags {
	/* an entry binds the place to the caller's process in the same step */
	SHMLIMIT_PLACE_BIND = 0x80000,
	/*
	 * shmlimit_leave(), where the rule has a law; an entry ignores both. The work failed by
	 * overload: it timed out, or what it needs rejected it.
	 */
	SHMLIMIT_PLACE_DROPPED = 0x400000,
	/*
	 * How long the work took says nothing of the load: an error at once, an answer from a
	 * cache.
	 */
	SHMLIMIT_PLACE_UNTIMED = 0x800000
};

/* shmlimit_options.flags */
enum shmlimit_option_flags {
	SHMLIMIT_OPTION_GROUP = 0x1000000, /* the segment's group is `gid`, not the creator's */
	/* fewer slots, where /dev/shm has too little room for `slots` */
	SHMLIMIT_OPTION_FIT = 0x2000000
};

/* What shmlimit_decide() does: as the call of that name, if there is one. */
enum shmlimit_verb {
	SHMLIMIT_TAKE = 0,
	SHMLIMIT_PEEK = 1,
	SHMLIMIT_RESERVE = 2,
	SHMLIMIT_CHARGE = 3,
	SHMLIMIT_REFUND = 4,
	SHMLIMIT_ACQUIRE = 5,  /* not while a time is set */
	SHMLIMIT_TAKE_SOME = 6 /* of `cost` tokens as many as fit: see shmlimit_decide() */
};

/* shmlimit_limit.flags: one of them, or 0: a rate */
enum shmlimit_limit_flags {
	SHMLIMIT_LIMIT_BLOCK = 0x10000000, /* denied always; all else of the limit is ignored */
	/* allowed always; all else of the limit is ignored */
	SHMLIMIT_LIMIT_UNLIMITED = 0x20000000,
	/* `capacity` places at once, of a HOLD rule; all else is 0 */
	SHMLIMIT_LIMIT_PLACES = 0x40000000
};

/* A process's handle on one segment. */
struct shmlimit;

/*
 * Options of shmlimit_create() and shmlimit_open(). Zero everything, set struct_size, then each
 * field that differs from its default.
 */
struct shmlimit_options {
	uint32_t struct_size; /* sizeof(struct shmlimit_options) */
	/* permission bits, 0600 (the default) and others; the umask is not applied */
	uint32_t mode;
	/*
	 * Keys that can be live at once, SHMLIMIT_SLOTS_MIN to _MAX, default 65536, rounded up to a
	 * multiple of 4.
	 */
	uint64_t slots;
	/*
	 * room for this many rules at first, 1 to rules_max, default 64, or rules_max if that is
	 * less
	 */
	uint32_t rules;
	/* the list of rules can grow to this many, default SHMLIMIT_RULES_MAX */
	uint32_t rules_max;
	uint32_t on_full; /* SHMLIMIT_FULL_EVICT (default), _ALLOW, _DENY */
	uint32_t clock;   /* SHMLIMIT_CLOCK_PRECISE (default), _COARSE */
	uint32_t gid;     /* the segment's group, with SHMLIMIT_OPTION_GROUP; else 0 */
	/* shmlimit_open(), with SHMLIMIT_OPEN_TRUSTED: a user id that is trusted too; else 0 */
	uint32_t owner;
	/*
	 * Bytes of each key stored for display by `inspect` and `top`, up to SHMLIMIT_KEY_MAX; 0 =
	 * none. Each slot takes that much more memory, and 2 bytes, rounded up to words of 8 bytes,
	 * at least two. Any process that may read the segment can then read the keys.
	 */
	uint32_t store_keys;
	uint32_t flags; /* SHMLIMIT_OPTION_GROUP, _FIT or 0 */
	/*
	 * The segment can grow to this many slots, `slots` or more; default 16 * slots. It costs
	 * address space in each process, but no memory.
	 */
	uint64_t slots_max;
	uint64_t reserved[2]; /* must be zero */
};

/* A rule. Zero everything, set struct_size, then at least capacity, refill and period_ns. */
struct shmlimit_rule {
	uint32_t struct_size; /* sizeof(struct shmlimit_rule) */
	/* SHMLIMIT_FUNNEL, _WARMUP, _WINDOW, _LEASE, _COUNTER, _HOLD, _GCRA */
	uint32_t algorithm;
	uint32_t mode; /* SHMLIMIT_ENFORCE, _DRY_RUN, _OFF, _BLOCK */
	/* SHMLIMIT_RULE_NEXT_PAYS, _COUNT_REFUSED, _PROTECTED, _NO_WAIT, _CUT_OFF or none */
	uint32_t flags;
	/*
	 * Largest burst, 1 to SHMLIMIT_CAPACITY_MAX. WINDOW, HOLD: tokens of a window, or places,
	 * up to SHMLIMIT_WINDOW_MAX. LEASE: up to SHMLIMIT_LEASE_CAPACITY_MAX. COUNTER: the
	 * largest count; 0 = 2^31 - 1. WARMUP: 0, or what follows from the rest. GCRA: 0, also as
	 * refill and period_ns, of a rule that has no limit of its own.
	 */
	uint64_t capacity;
	/* `refill` tokens come back, 1 or more; WINDOW, COUNTER, HOLD: 0, or the capacity ... */
	uint64_t refill;
	/*
	 * ... every `period_ns` nanoseconds, 1 or more. WINDOW: length of the window. HOLD: how
	 * long a place is held that is neither left nor renewed nor bound. COUNTER: the longest
	 * time that a count lives, and how long it lives where no other time is given; 0 = 366
	 * days.
	 */
	uint64_t period_ns;
	/*
	 * Longest wait that a reservation may cause, and with it the longest debt; 0 = no
	 * reservations, no debt. LEASE, COUNTER, HOLD: 0.
	 */
	uint64_t max_wait_ns;
	uint64_t warmup_ns; /* WARMUP only: time from cold to warm, and from warm to cold */
	/*
	 * WARMUP only: time of a cold token, in thousandths of a warm token's time: 1,000 to
	 * 1,000,000, default 3,000
	 */
	uint32_t cold_factor_milli;
	/*
	 * LEASE only: tokens that a key of which nothing is known here may spend before the backend
	 * was asked: 0 to the capacity. libshmlimit-global lends them where the host has an agent;
	 * this library only keeps the number.
	 */
	uint32_t credit;
	/* shmlimit_rule_get(): when it was set, nanoseconds since 1970; otherwise ignored */
	uint64_t set_unix_ns;
	/*
	 * A number of the caller's, kept with the rule; 0: keep the one that is there. Not saved. A
	 * program whose configuration has the rule can so tell whether it has set the rule like
	 * this before, and leave alone what was changed by hand since.
	 */
	uint64_t mark;
	/*
	 * shmlimit_rule_get(): when shmlimit_rule_ensure() was last refused another limit for the
	 * rule, nanoseconds since 1970; 0: not since a change of it succeeded. Otherwise ignored.
	 * Not saved.
	 */
	uint64_t refused_unix_ns;
	/*
	 * HOLD only: SHMLIMIT_LAW_VEGAS, _GRADIENT2 or _AIMD: each key finds for itself how many
	 * places there are, between `least` and `capacity`. 0: there are `capacity`.
	 */
	uint32_t law;
	uint32_t least; /* with a law: 1 to `capacity`; without: 0 */
	/*
	 * COUNTER only. Empty: each key's count lives for the period, from its first token. A time
	 * zone, UTC or a name of the system's zone data such as Europe/Berlin: the counts of all
	 * keys end together, with the hour, the day, the week (from Monday) or the month of the
	 * zone's calendar. period_ns is then one of 1 h, 24 h, 7 days, and 30 days, which stands
	 * for a month.
	 */
	char zone[SHMLIMIT_ZONE_MAX];
	/*
	 * When the zone's offset changes, in a form of this library. 0: shmlimit_rule_set(),
	 * _ensure() and _parse() read it from the zone data. What shmlimit_rule_get() gave is taken
	 * as it is.
	 */
	uint64_t zone_offsets[2];
};

/*
 * The details of a decision. Filled whenever SHMLIMIT_ALLOWED or SHMLIMIT_DENIED is returned. A key
 * that is denied because no slot is free (SHMLIMIT_FULL_DENY) is reported as full, and
 * retry_after_ns is the time until a slot is free. Under a rule or segment that is off, `remaining`
 * is the capacity and the times are 0.
 */
struct shmlimit_result {
	uint64_t limit;     /* the rule's capacity in tokens; 0 of a BLOCK rule */
	uint64_t remaining; /* whole tokens left now */
	uint64_t wait_ns;   /* allowed: wait this long before going on; 0 except for reservations */
	/*
	 * denied: the same request fits after this long, if no other caller takes; UINT64_MAX =
	 * never
	 */
	uint64_t retry_after_ns;
	uint64_t reset_after_ns; /* time until the funnel is full, with the time to pay its debt */
	/* of SHMLIMIT_TAKE_SOME: how many tokens were taken; of other calls without meaning */
	uint64_t granted;
};

/* Resolution and range of the times of a rule's funnels. The ranges are rounded down. */
struct shmlimit_range {
	uint32_t struct_size; /* sizeof(struct shmlimit_range) */
	uint32_t reserved32;
	/*
	 * one tick of the rule's clock in picoseconds, rounded up; decisions are exact to one tick
	 */
	uint64_t resolution_ps;
	uint64_t refill_ns; /* time in which an empty funnel becomes full */
	/*
	 * How long a slot can tell by itself that its key is full again. The table is swept at
	 * least this often, so a key may be idle for any time.
	 */
	uint64_t back_ns;
	/*
	 * a step back of the clock of up to this length is recognised: more than the longest debt
	 */
	uint64_t ahead_ns;
};

/*
 * Counters since the rule was defined, or for all rules: since the segment was created. They
 * never decrease, but a rule that gets the id of a removed one starts at zero. A process that is
 * killed between deciding and counting loses one count.
 */
struct shmlimit_counters {
	uint32_t struct_size; /* sizeof(struct shmlimit_counters) */
	uint32_t reserved32;
	/* answers of allowed, including OFF rules and disabled segments, excluding shadow_denied */
	uint64_t allowed;
	uint64_t denied; /* answers of denied */
	/* DRY_RUN: answers of allowed that would have been denied under ENFORCE */
	uint64_t shadow_denied;
	uint64_t claims;   /* slots taken for a key that had no slot */
	uint64_t reclaims; /* slots taken from a key whose funnel was full again */
	/* slots taken from a key whose funnel was not full (on_full = evict) */
	uint64_t evictions;
	uint64_t no_slot; /* decisions made without a slot, as on_full says */
	/* compare-and-swaps that another process won, and that were tried again */
	uint64_t failed_cas;
};

/* What shmlimit_count() is asked for. Zero everything, set struct_size, `n` and `bound`. */
struct shmlimit_count_request {
	uint32_t struct_size; /* sizeof(struct shmlimit_count_request) */
	uint32_t flags;       /* SHMLIMIT_COUNT_SATURATE, _RESTART, _LONGER or none */
	int64_t n;            /* what to add; below 0: to take away; 0: only read */
	int64_t bound;        /* the largest sum, 0 or more, and at most the rule's capacity */
	/* time to live of a count that begins; 0: the rule's period, the longest */
	uint64_t ttl_ns;
};

/* What shmlimit_count() found and did. */
struct shmlimit_count {
	uint32_t struct_size; /* sizeof(struct shmlimit_count) */
	uint32_t reserved32;
	/* after this call; above the capacity if that was lowered since it was counted */
	int64_t count;
	int64_t applied; /* what this call added; below 0: took away */
	uint64_t ttl_ns; /* how long the count lives from now; 0 = there is none */
};

/*
 * A place that shmlimit_enter() took, for shmlimit_renew() and shmlimit_leave(). Any thread or
 * process may have a copy.
 */
struct shmlimit_place {
	uint32_t struct_size; /* sizeof(struct shmlimit_place) */
	uint32_t index;       /* which of the key's places */
	uint64_t value;       /* what was written there; 0 = no place is held */
	/*
	 * of an entry: SHMLIMIT_PLACE_BIND or 0; of shmlimit_leave(): SHMLIMIT_PLACE_DROPPED,
	 * _UNTIMED or 0; of other calls without meaning
	 */
	uint32_t flags;
	/* of an entry: 0, or why the place that is held is not bound: see shmlimit_bind() */
	int32_t bind_error;
};

/* A segment's geometry and state. */
struct shmlimit_info {
	uint32_t struct_size;    /* sizeof(struct shmlimit_info) */
	uint32_t layout_version; /* of the segment's bytes */
	/* bytes of reserved shared memory, logs and places apart: see du(1) */
	uint64_t size;
	uint64_t slots;      /* slots of the current table */
	uint32_t rules;      /* rules that the segment has room for */
	uint32_t rules_used; /* rules that are defined */
	uint32_t on_full;    /* as in the options */
	uint32_t clock;
	/* 0 = the segment is switched off, and every decision answers allowed */
	uint32_t enabled;
	uint32_t mode;            /* permission bits, as they were when it was opened */
	uint32_t uid, gid;        /* owner, then */
	uint64_t created_unix_ns; /* nanoseconds of the real-time clock since 1970 */
	uint32_t rules_max;       /* the list of rules can grow to this many */
	/* bytes of each key stored for display, rounded up to whole words; 0 = none */
	uint32_t store_keys;
	/* slots of the old table while keys may be left in it; else 0 */
	uint64_t old_slots;
	uint64_t slots_max; /* the segment can grow to this many slots */
	/* requests that servers let pass because the limiter could not decide */
	uint64_t undecided_passed;
	uint64_t undecided_refused; /* requests that servers refused for that reason */
	/* more slots, which were asked for with SHMLIMIT_OPTION_FIT; 0 = none are lacking */
	uint64_t slots_asked;
	/*
	 * times that a place was not bound, since 1024 living processes had some: shmlimit_bind()
	 */
	uint64_t unregistered;
};

/*
 * A limit that comes with a call. Zero everything, set struct_size, then each member, or use
 * shmlimit_limit_parse().
 */
struct shmlimit_limit {
	uint32_t struct_size; /* sizeof(struct shmlimit_limit) */
	uint32_t flags;       /* SHMLIMIT_LIMIT_BLOCK, _UNLIMITED, _PLACES or 0 */
	/* largest burst, 1 to SHMLIMIT_CAPACITY_MAX; PLACES: to SHMLIMIT_WINDOW_MAX */
	uint64_t capacity;
	uint64_t refill;    /* `refill` tokens come back, 1 or more ... */
	uint64_t period_ns; /* ... every `period_ns` nanoseconds, 1 or more */
	/* longest wait that a reservation may cause, and longest debt; 0 = none */
	uint64_t max_wait_ns;
};

/* shmlimit_request.share: as many places as are free */
#define SHMLIMIT_SHARE_ONE 1000

/* One rule and one key, for shmlimit_decide(), shmlimit_take_all() and shmlimit_take_many(). */
struct shmlimit_request {
	int32_t rule;   /* id */
	uint32_t share; /* of shmlimit_take_all(), in thousandths: see there; 0: none */
	const void *key;
	size_t key_len;                     /* bytes */
	uint64_t cost;                      /* as for shmlimit_take() */
	const struct shmlimit_limit *limit; /* as for shmlimit_decide(); NULL: the rule's own */
	/*
	 * SHMLIMIT_TAKE of 1 from a HOLD rule: to be filled in, as by shmlimit_enter(), so that the
	 * place can be left; set its struct_size. Otherwise NULL.
	 */
	struct shmlimit_place *place;
};

/* shmlimit_slot.state */
enum shmlimit_slot_state {
	SHMLIMIT_SLOT_FREE = 0,      /* holds no key */
	SHMLIMIT_SLOT_LIVE = 1,      /* holds a funnel that is not full */
	SHMLIMIT_SLOT_REFILLED = 2,  /* holds a full funnel, which is the same as holding none */
	SHMLIMIT_SLOT_TENTATIVE = 3, /* being claimed, or left so by a process that was killed */
	SHMLIMIT_SLOT_STALE = 4      /* belongs to a removed rule, which is the same as free */
};

/* shmlimit_slot.lease: what a slot of a LEASE rule holds. */
enum shmlimit_slot_lease {
	SHMLIMIT_SLOT_TOKENS = 1, /* tokens to spend */
	SHMLIMIT_SLOT_DENIED = 2, /* a denial by the backend */
	SHMLIMIT_SLOT_ASKED = 3   /* the claim of a caller that is asking the backend */
};

/* One slot of the table. */
struct shmlimit_slot {
	uint32_t struct_size; /* sizeof(struct shmlimit_slot) */
	uint32_t state;       /* SHMLIMIT_SLOT_... */
	uint64_t fingerprint; /* low 48 bits of the key's hash, the lowest set */
	int32_t rule;         /* LIVE, REFILLED: id of the rule; else -1 */
	/* LIVE and a LEASE rule: SHMLIMIT_SLOT_TOKENS, _DENIED, _ASKED; else 0 */
	uint32_t lease;
	/* LIVE, REFILLED: whole tokens left; WARMUP: tokens stored; LEASE: tokens here */
	uint64_t remaining;
	/* LIVE: time until the funnel is full; LEASE: until the tokens, denial or claim end */
	uint64_t reset_after_ns;
	/*
	 * LIVE: time until all borrowed tokens are back; WARMUP, WINDOW: until the last reservation
	 */
	uint64_t debt_ns;
	/*
	 * LIVE, REFILLED, of a rule with a law: how many places there are now; how long a place is
	 * held where nothing waits, 0 = not known yet; and how many of those that hold one wait, by
	 * the times of the last window, in thousandths. Else 0.
	 */
	uint64_t number;
	uint64_t base_ns;
	uint64_t queue_milli;
};

/*
 * One finding of shmlimit_verify(), one repair of shmlimit_repair(), or what shmlimit_rule_parse()
 * could not read.
 */
struct shmlimit_problem {
	/* offset of the damaged bytes in the segment, or of what is wrong in the text */
	uint64_t offset;
	char text[120]; /* what is wrong, and what would be right; one line, NUL-terminated */
};

/* The HTTP header fields of an answer. NUL-terminated strings. */
struct shmlimit_fields {
	uint32_t struct_size; /* sizeof(struct shmlimit_fields) */
	uint32_t reserved32;
	char policy[SHMLIMIT_FIELD_MAX]; /* RateLimit-Policy: "login";q=15;w=30 */
	char limit[SHMLIMIT_FIELD_MAX];  /* RateLimit: "login";r=14;t=2 */
	/* Retry-After: 2; empty unless denied, and empty if no retry would ever fit */
	char retry_after[16];
};

/*
 * ---- Segments -------------------------------------------------------------
 *
 * A segment is a file in /dev/shm. The segment web of layout version 11 is
 * /dev/shm/shmlimit.11.web. A library has one layout version, and only shmlimit_next_layout() and
 * shmlimit_destroy_layout() reach segments of others. So two versions of the library can run side
 * by side, as they do during an upgrade, each with segments of its own.
 *
 * A segment's name has 1 to SHMLIMIT_NAME_MAX bytes, contains no '/' and no control character, and
 * does not begin with '.'. Errors that all these functions share: -EILSEQ and -ENAMETOOLONG for a
 * bad name, -EACCES, and errors of the system (-EMFILE, -ENOMEM ...).
 *
 * Threads: safe. Signals: do not call these functions in handlers. Fork: a handle that was
 * opened before fork() works in parent and children alike. A process may open a segment several
 * times. Cost: system calls; call these functions at start-up.
 */

/*
 * Create a segment and, if `out` is not NULL, open it. `options` NULL means all defaults. All
 * memory is reserved now, so a decision never fails because /dev/shm is full. The segment
 * appears under its name in one step, complete. A creator that is killed at any point leaves
 * nothing behind.
 *
 * With SHMLIMIT_OPTION_FIT a /dev/shm that has too little room for the slots gets a smaller table:
 * as many as shmlimit_fit() says. shmlimit_info() has both numbers, and shmlimit_grow() makes it
 * larger when there is room.
 *
 * Returns 0, or: -EEXIST the name is taken; -ENOSPC /dev/shm has too little room; -EINVAL an
 * option is out of range; -E2BIG a field is set that this library does not know; -EPERM the
 * group cannot be set; -ENOSYS, -ENODEV, -EDQUOT, as shmlimit_strerror() has them. After any error
 * nothing was created and *out is untouched.
 */
int shmlimit_create(const char *name, const struct shmlimit_options *options,
                    struct shmlimit **out);

/*
 * How many slots would a segment of these `options` have that is created now with
 * SHMLIMIT_OPTION_FIT? options->slots, if /dev/shm has room for them. Otherwise half as many, or a
 * quarter and so on, down to SHMLIMIT_SLOTS_MIN, so that the slots take half of the room at most.
 * Creates and reserves nothing. The limit of a cgroup or of RLIMIT_FSIZE is not seen here; where
 * that is the narrower one, shmlimit_create() makes still fewer slots. So it does where several
 * processes create segments at the same moment, also one of one name, since each holds room that
 * the others do not see: shmlimit_grow() then gives the segment the slots that fit.
 *
 * Returns 0, or 1: fewer than were asked for. Then *slots is set. Otherwise: -ENOSPC there is no
 * room for a segment of any size; -EINVAL `slots` is NULL or an option is out of range; -E2BIG a
 * field is set that this library does not know.
 */
int shmlimit_fit(const struct shmlimit_options *options, uint64_t *slots);

/*
 * Open a segment, and with SHMLIMIT_OPEN_CREATE create it with these `options` if there is none of
 * this name. Any number of processes may do that at once: one of them creates the segment,
 * complete, and all open the same one. A segment that exists stays as it is, whatever the options
 * say. `options` NULL means all defaults.
 *
 * With SHMLIMIT_OPEN_READ_ONLY it is mapped without write permission: read permission on the file
 * suffices, and every call that would write returns -EROFS. The header is checked before it is
 * used, and the checked values are kept. A header that is overwritten later misleads no process
 * that already has the segment open.
 *
 * The owner of a file can truncate it, which kills every process that has it mapped with SIGBUS.
 * Any user can create a segment under a free name. So set SHMLIMIT_OPEN_TRUSTED unless you trust
 * all users of the host. The file is then checked before it is mapped: its owner must be root, the
 * effective user of this process or options->owner, it must have no other hard link, and the file
 * system must have reserved its first table.
 *
 * Returns 0, or: -ENOENT no such segment; -EMEDIUMTYPE the file is not a segment; -EPERM its owner
 * is not trusted, or it has another hard link; -EPROTO it has another layout version; -EUCLEAN it
 * is damaged (see shmlimit_verify()); -ESTALE it was created before the last boot; -EXDEV it was
 * created in another time namespace, where clocks differ; -EINVAL a flag is unknown, an option is
 * out of range, CREATE goes with READ_ONLY, or an owner without TRUSTED; with CREATE also the
 * errors of shmlimit_create() except -EEXIST. After any error *out is untouched and the segment
 * unchanged.
 */
int shmlimit_open(const char *name, uint32_t flags, const struct shmlimit_options *options,
                  struct shmlimit **out);

/*
 * Release the handle. No thread may be inside a call on it. NULL is allowed. The segment and
 * its funnels stay, and other processes keep their handles.
 */
void shmlimit_close(struct shmlimit *limiter);

/*
 * Remove the name. Processes that have the segment open can go on using it, and share it with
 * each other only. Its memory is freed when the last of them closes it or terminates.
 *
 * Returns 0, or: -ENOENT no such segment; -EMEDIUMTYPE the file is not a segment, and was left
 * alone. Damaged segments can be destroyed.
 */
int shmlimit_destroy(const char *name);

/*
 * Like shmlimit_destroy(), but remove the segment of another layout version, which another version
 * of this library made. Returns also -EINVAL for a layout that is not 1 to SHMLIMIT_LAYOUT_MAX.
 */
int shmlimit_destroy_layout(const char *name, uint32_t layout);

/* The layout version of this library. Pure, and safe anywhere. */
uint32_t shmlimit_layout(void);

/*
 * Write the path of the segment's file, whether there is one or not, to `path`: for programs that
 * change its permissions, or watch it. Returns 0, or -EINVAL `path` is NULL. Pure, and safe
 * anywhere.
 */
int shmlimit_path(const char *name, char path[SHMLIMIT_PATH_MAX]);

/*
 * Returns 1 if the segment was destroyed or replaced under its name, 0 if not, or -errno.
 * Long-running processes use this to know when to reopen it. Cost: one system call.
 */
int shmlimit_gone(struct shmlimit *limiter);

/*
 * List the segments of this host that the caller may read, in byte order of their names. Start
 * with an empty string in `name`; each call replaces it by the next name. Files that begin as a
 * segment does are listed even if they cannot be opened.
 *
 * Returns 1, or 0 after the last one (`name` is then ""), or -errno. Names that appear or
 * vanish during the call may or may not be returned.
 */
int shmlimit_next(char name[SHMLIMIT_NAME_MAX + 1]);

/*
 * Like shmlimit_next(), but list the segments of all layout versions, in order of names and then of
 * layouts. Start with an empty string and 0. Those whose layout is not shmlimit_layout() were made
 * by another version of this library.
 */
int shmlimit_next_layout(char name[SHMLIMIT_NAME_MAX + 1], uint32_t *layout);

/*
 * Check whether `name` is a valid name of a segment, and `rule_name` one of a rule: for
 * programs that read names from a configuration before the segment exists. A NULL is not
 * checked. Returns 0, -EILSEQ or -ENAMETOOLONG. Pure: makes no system call, and is safe
 * anywhere.
 */
int shmlimit_check_names(const char *name, const char *rule_name);

/*
 * Give the segment a larger table of `slots` slots, at least twice as many as it has. Its name
 * stays, and all processes that have it open use the new table. Decisions go on: each key migrates
 * when it is next used, and no answer fails or differs because of it, except that a lease, a claim
 * and a backend's denial of a LEASE rule stay behind: the key asks its backend again. The memory of
 * the old table stays in use.
 *
 * Before the segment can grow again, all keys of the old table must have migrated or refilled;
 * this call checks that. With `slots` 0 it only checks. A key that a process had copied to the new
 * table when it was killed has migrated.
 *
 * Returns 0, or, with nothing changed: -EALREADY keys are left in the old table, so call again when
 * they have refilled; -EINVAL fewer than twice as many slots; -EFBIG more than options.slots_max of
 * the segment, or than its address space has room for; -ENOSPC /dev/shm has too little room;
 * -EROFS; -EACCES; -EAGAIN another process holds the lock; -ENOENT the segment was destroyed;
 * -EUCLEAN it is damaged. If killed inside: the segment has the larger table, or not. Calls exclude
 * each other and the writers of rules, and wait for them. Signals: not to be called from handlers.
 * Cost: reserving the memory, and one pass over the old table.
 */
int shmlimit_grow(struct shmlimit *limiter, uint64_t slots);

/* Fill *out; set out->struct_size to the size that the caller knows. Returns 0, -EINVAL. */
int shmlimit_info(struct shmlimit *limiter, struct shmlimit_info *out);

/*
 * Switch the whole segment off (on = 0) or on. While it is off, every decision of every process
 * answers allowed and touches no funnel, as if all rules were OFF. Takes effect with each
 * process's next decision. Returns 0, -EINVAL, -EROFS.
 */
int shmlimit_enable(struct shmlimit *limiter, uint32_t on);

/*
 * Count `n` requests that a server let pass (`refused` 0) or refused (1) because the segment or
 * a rule was missing. Servers call this when the segment is back, so that metrics show the
 * outage. Returns 0, -EINVAL, -EROFS. No system call.
 */
int shmlimit_count_undecided(struct shmlimit *limiter, uint32_t refused, uint64_t n);

/*
 * Write the contents of the segment to an open file, for shmlimit_load(): its options, switch,
 * rules, what each key has left, and the hash secret. Protect the file: anyone who can read it
 * can choose colliding keys. Counters, stored keys and leases are not saved; the tokens of a
 * lease that is not saved stay unspent.
 *
 * Decisions go on during the call. Each key is saved as of some moment of it. Writers of rules
 * wait for it. A read-only handle suffices. Writing starts at the file's current position; a
 * pipe is possible, and the call waits for its reader. Syncing the file is the caller's task.
 * If the segment has just grown, both tables are saved, and loaded; a key that migrated during the
 * call has after loading what it had in the new table.
 *
 * Returns 0, or: -ENOENT the segment was destroyed; -EUCLEAN a rule or the header is
 * damaged; -EAGAIN another process holds the lock; -EINVAL limiter is NULL; -ENOMEM; errors of
 * write(2). After any error the file is useless. Cost: one pass over the table, and 32 bytes a
 * live key; under a WINDOW rule also 8 bytes for each token that counts.
 */
int shmlimit_save(struct shmlimit *limiter, int fd);

/*
 * Create a segment from a file that shmlimit_save() wrote, perhaps before the last boot, and,
 * if `out` is not NULL, open it. Each key has the tokens that were saved, plus those that came
 * back since. The time since then is measured by the real-time clock; it is 0 if that clock
 * went back or `flags` has SHMLIMIT_LOAD_NO_ELAPSED. Where a time cannot be represented exactly, a
 * key has up to one tick of its rule less, never more. Counters start at 0. Mode and group are
 * the saved segment's; so is the owner if the caller is root.
 *
 * With SHMLIMIT_LOAD_CAN_GROW the segment can grow to 16 times its slots, or as far as the saved
 * one if that is more: for a segment that has grown as far as it can.
 *
 * With SHMLIMIT_LOAD_CHECK_ONLY the whole file is read and nothing is created. 0 then means that
 * the file can be loaded, given room and permissions. `name` and `out` are ignored.
 *
 * Reading starts at the file's current position and goes to its end. The checks detect
 * accidents, not attacks: trust the file only as far as you trust everyone who can write to it.
 * The segment appears in one step, complete. A caller that is killed at any point leaves
 * nothing behind.
 *
 * Returns 0, or: -EMEDIUMTYPE the file was not written by shmlimit_save(); -EPROTO it was
 * written by another version; -EUCLEAN it is damaged or incomplete; -EEXIST the name is taken;
 * -EINVAL a flag is unknown; -ENOSPC, -EPERM as for shmlimit_create(); -ENOMEM; errors of
 * read(2). After any error nothing was created and *out is untouched. Cost: that of creating,
 * and a sort of the live keys.
 */
int shmlimit_load(const char *name, int fd, uint32_t flags, struct shmlimit **out);

/*
 * Check everything in a segment that can be checked, even in one that cannot be opened: header,
 * geometry, rules, counters, every slot, and that no key has two slots. Reads only. The first `n`
 * findings are written to `problems`. If the header is bad, nothing else can be interpreted, and
 * that is the only finding.
 *
 * Returns the number of findings (0 = sound; may exceed n; at most INT_MAX), or -ENOENT,
 * -EMEDIUMTYPE. Safe beside running decisions: a suspicious value is read twice. Cost: one pass
 * over the table, and a sort.
 */
int shmlimit_verify(const char *name, struct shmlimit_problem *problems, size_t n);

/*
 * Repair what can be repaired without guessing, under the lock of the writers of rules. Reserved
 * fields become zero. A switch or state word that is out of range becomes the value that
 * decisions take it for. A slot that no key can use is freed. Of two slots of one key, the one
 * that is full later stays: it is not known which one decisions find, so the key gets no more than
 * before. Not repairable are a rule's name and parameters (set the rule again, or remove it), and
 * a segment that cannot be opened. The first `n` repairs are written to `repairs`, each with what
 * was done at the end of its text.
 *
 * Returns the number of repairs (may exceed n; at most INT_MAX), an error of shmlimit_open(),
 * or -EAGAIN if another process holds the lock. Call shmlimit_verify() afterwards to see what
 * is left. Safe beside running decisions. If killed inside: some repairs were made; call it
 * again.
 */
int shmlimit_repair(const char *name, struct shmlimit_problem *repairs, size_t n);

/*
 * ---- Rules ----------------------------------------------------------------
 *
 * A rule has a name and an id in its segment. The name has 1 to SHMLIMIT_RULE_NAME_MAX letters,
 * digits and . _ : @ + -. The id is 0 or more and stays the same while the rule exists: look it
 * up once, then use it for all decisions.
 *
 * '~' begins the name of a rule that a library makes for itself, such as ~throttle (see
 * shmlimit_throttle()); the command neither exports nor prunes those.
 *
 * Errors that all these functions share: -EILSEQ, -ENAMETOOLONG a bad rule name; of functions
 * that write, -EAGAIN another process holds the lock.
 *
 * Threads, processes, fork: safe. Signals: not to be called from handlers. Progress: writers wait
 * about 5 seconds for one another, on a flock(2) of the segment's file; the kernel releases the
 * lock when its holder dies. A process that can read the file can hold the lock for as long as it
 * likes. Writers open the file again by its name, so they need that name, and read permission, at
 * that moment too. No decision ever waits for the lock. If killed inside: the old state or the new
 * one is in force, never a mix.
 */

/*
 * Define the rule `rule_name`, or change it: capacity, rate, debt and mode at once, in all
 * processes, from the next decision of each. Keys keep their tokens, clamped to the new capacity,
 * and their debts, clamped to the new longest debt. Raising a limit denies nothing that the old
 * one would have allowed. A key without a slot is full, as always. Cost: two passes over the table
 * if anything but the mode changes.
 *
 * FUNNEL: a burst of `capacity`, then `refill` tokens every `period_ns`.
 * WINDOW: at most `capacity` tokens in any stretch of `period_ns`, exactly; `refill` is 0.
 * GCRA: as FUNNEL, for calls that bring no limit; all three can be 0. max_wait_ns is then what
 * programs give limits that they read from text. A key keeps the time at which it was empty when
 * the rule is changed, as where it is asked with another limit.
 * WARMUP: `refill` tokens every `period_ns` once warm. Each request waits for the debt before
 * it, as in Guava's RateLimiter.create(rate, warmupPeriod). The capacity is Guava's stored
 * permits, and follows from the rest. When the rule is changed, as by setRate(), a key keeps the
 * same part of the capacity, so that it is as cold as before, and its debt as time.
 * LEASE: capacity, refill and period of a funnel that many hosts share. A key without a slot has
 * no tokens: see shmlimit_lease_take().
 * HOLD: at most `capacity` places at once; one that is not left ends after `period_ns`, at most
 * 2^54 (208 days): see shmlimit_enter(). `refill` is 0.
 *
 * Returns the id (0 or more), or: -EDOM capacity, refill, period_ns or warmup_ns is 0 (GCRA: some
 * of the three are, but not all), or `least` of a rule with a law; -ERANGE the rule cannot be
 * represented exactly (see shmlimit_rule_range()), a WARMUP rule stores no whole token, or a LEASE
 * rule's capacity is above SHMLIMIT_LEASE_CAPACITY_MAX or, times the period over its common factor
 * with 1000 * refill, is 2^53 or more; -EFBIG a WINDOW or HOLD rule's capacity is above
 * SHMLIMIT_WINDOW_MAX; -EBUSY the rule exists and has another algorithm; -ENOPKG the system has no
 * data of the rule's time zone, or its offset follows no yearly rule; -EINVAL a mode, algorithm
 * or flag is unknown or does not go with the others, or a WARMUP rule's capacity or cold factor is
 * out of range; -E2BIG a field is set that this library does not know; -EXFULL the segment has
 * rules_max rules; -ENOSPC the list of rules is full and cannot grow; -ENOMEM the keys of a WINDOW
 * or HOLD rule need more memory for a larger capacity, and this process has no addresses for it
 * (RLIMIT_AS); -EROFS; -ENOENT the segment was destroyed. After any error nothing was changed. The
 * rule is checked first: on a read-only handle -EROFS means that the rule is valid.
 */
int shmlimit_rule_set(struct shmlimit *limiter, const char *rule_name,
                      const struct shmlimit_rule *rule);

/*
 * Give a rule to a program that brings its own limits, when it starts: the rule is set if it is
 * missing, or if this call was given another one last. So a program that starts with another limit
 * changes it, also to another algorithm: then its keys begin again, while its counters continue. A
 * call that runs during the change finds the old rule or the new one, and one that began before may
 * still be decided by the old one. So does the first call for a rule that was only set by hand
 * before. A rule that an operator has changed since is left alone, and so is what the call does not
 * say: a mode, if the given one is SHMLIMIT_ENFORCE; flags; and max_wait_ns and credit, if they are
 * 0. `mark` is ignored.
 *
 * Returns the id, or an error of shmlimit_rule_set() but -EBUSY. After an error nothing was
 * changed, so an old rule stays in force; the rule has the time in refused_unix_ns until this call
 * or shmlimit_rule_set() succeeds for it, and shmlimit check tells of it. Threads and processes may
 * call it at once. Killed inside: the rule is the old one or the new one. Cost: of an
 * unchanged rule that of shmlimit_rule_get().
 */
int shmlimit_rule_ensure(struct shmlimit *limiter, const char *rule_name,
                         const struct shmlimit_rule *rule);

/*
 * Read a limit as people write it, into *rule: set its struct_size and, for other algorithms than
 * FUNNEL, its algorithm before the call. Algorithm, mode, capacity, refill, period_ns, law, least
 * and zone are set; the other members stay as they are.
 *
 *	5/minute, 100 per hour, 10r/s, 1k/s, 1/1.5s   a rate, and a burst of its count
 *	0.5/s, 2.5 per minute, 1e-3/s                 exactly 1/2s, 5/2m, 1/1000s
 *	10/s burst 20                                 a burst of its own
 *	1000/hour strict                              at most 1000 in any hour
 *	1000/hour window                              the same, as a WINDOW
 *	10000/day in UTC, 500/hour in Europe/Berlin   a COUNTER, by the zone's calendar
 *	20 at once, 20 at once for 10 minutes         a HOLD; without a time for 60 s
 *	20 at once at most 5 minutes each             the same: SHMLIMIT_RULE_CUT_OFF
 *	auto at once, auto 8 to 64 at once by aimd    a number that is found: `law`, `least`
 *	0, 0/s, block                                 BLOCK: denies always
 *	unlimited, off                                OFF: allows always
 *
 * Units are ns, us, ms, s, m, h, d, w, month (30 days) and y (365 days), and their English words.
 * Case does not matter. shmlimit(7) has the whole grammar. The burst of a count that is a fraction
 * is the next whole number, such as 3 of 2.5/minute. A `strict` limit has half its count as burst
 * and half as rate, so a cost of more than half never fits.
 *
 * Returns 0; or -EINVAL, with *rule unchanged: the text is no limit, or not one that the algorithm
 * has. *wrong (unless NULL) then says where and why, and which limit is the nearest. A rule whose
 * numbers are too large is refused later, by shmlimit_rule_set(). No allocation, and no system call
 * except to read the data of a time zone that the text names, other than UTC; threads and forks are
 * safe. Signals: not to be called from handlers. Cost: about a microsecond.
 */
int shmlimit_rule_parse(const char *text, struct shmlimit_rule *rule,
                        struct shmlimit_problem *wrong);

/*
 * Write the limit of a rule as a text that shmlimit_rule_parse(), given the same algorithm, reads
 * as the same mode, capacity, refill and period; of a rule that is BLOCK or OFF only the mode is
 * written. A DRY_RUN rule is written as if enforced, and nothing that has no place in such a text
 * is. Returns 0; -EINVAL, also for a rule without a limit of its own, as GCRA and COUNTER can be;
 * or -E2BIG. Pure, like shmlimit_rule_parse().
 */
int shmlimit_rule_text(const struct shmlimit_rule *rule, char text[SHMLIMIT_RULE_TEXT_MAX]);

/*
 * Of a rate that is a double, `rate` tokens every `per_ns` nanoseconds, set *refill and *period_ns
 * for a rule or a limit: whole tokens, and whole nanoseconds. The rate is what its shortest decimal
 * says, as if that were written in shmlimit_rule_parse(): 0.1 every second is exactly 1 in 10
 * seconds. Where that decimal has more digits than fit, because the double was computed, it is the
 * simplest fraction that is the same double, so 1.0 / 3 becomes 1/3. It differs from `rate` by at
 * most one part in 2^53.
 *
 * Returns 0; or, with nothing changed: -EINVAL `rate` is NaN, infinite, 0 or below, `per_ns` is 0,
 * or a pointer is NULL; -ERANGE *refill would be 2^64 or more, or *period_ns above 2^60, which is
 * 36 years. Pure: no allocation, no system call; does not depend on the locale; threads and forks
 * are safe. Signals: not to be called from handlers. Cost: some microseconds.
 */
int shmlimit_rate_from_double(double rate, uint64_t per_ns, uint64_t *refill, uint64_t *period_ns);

/* Returns the id of a rule, or -ESRCH. No system call; cost: one comparison per rule. */
int shmlimit_rule_find(struct shmlimit *limiter, const char *rule_name);

/*
 * Fill *out (set its struct_size first) with the rule as it was set. Returns 0, -ESRCH,
 * -EINVAL, or -EUCLEAN if its capacity, refill or period is 0. No rule can be set like that, so
 * a process has overwritten it: set it again or remove it.
 */
int shmlimit_rule_get(struct shmlimit *limiter, int rule, struct shmlimit_rule *out);

/*
 * Returns the rule's algorithm (SHMLIMIT_FUNNEL ...), or -ESRCH, -EINVAL. An id can have another
 * algorithm after shmlimit_rule_ensure(), or after its rule was removed and another one set. No
 * system call; cost: reading two cache lines, little enough to ask before each decision.
 */
int shmlimit_rule_algorithm(struct shmlimit *limiter, int rule);

/*
 * Set *version to a number that says whether the rule of this id has changed: as long as it is
 * equal, so are the rule's name and all that shmlimit_rule_get() fills in but `mark` and
 * refused_unix_ns. A caller that keeps what it makes of a rule compares it before each use. It says
 * nothing across segments, and versions have no order. Returns 0, -ESRCH, -EINVAL. No system call;
 * cost: reading one cache line.
 */
int shmlimit_rule_version(struct shmlimit *limiter, int rule, uint64_t *version);

/*
 * Copy the name of a rule, NUL-terminated. A byte that is not allowed in a name, as a process
 * with write access can put there, is copied as '?'. Ids run from 0 to info.rules - 1. Returns
 * 0, -ESRCH.
 */
int shmlimit_rule_name(struct shmlimit *limiter, int rule, char name[SHMLIMIT_RULE_NAME_MAX + 1]);

/*
 * Set *capacity to the largest capacity that shmlimit_rule_set() accepts with the rest of
 * *rule; rule->capacity is ignored. For a WINDOW rule it is that of the largest possible
 * segment. Returns 0; -ERANGE no capacity is accepted with this rate and max_wait_ns; -EINVAL
 * an argument is NULL, or a WARMUP rule's capacity follows from the rest; or another error of
 * shmlimit_rule_set() for the rest of *rule. Needs no segment, makes no system call.
 */
int shmlimit_rule_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity);

/*
 * Fill *out (set its struct_size first) with the resolution and range of the rule's clock.
 * Returns 0, -ESRCH, -EINVAL.
 */
int shmlimit_rule_range(struct shmlimit *limiter, int rule, struct shmlimit_range *out);

/*
 * Remove the rule and all its funnels. Decisions with its id then return -ESRCH, until another
 * rule gets the id, which starts with full funnels and counters at zero. Returns 0, -ESRCH,
 * -EROFS, -ENOENT the segment was destroyed.
 */
int shmlimit_rule_remove(struct shmlimit *limiter, const char *rule_name);

/*
 * ---- Decisions ------------------------------------------------------------
 *
 * `rule` is an id. `key` is `key_len` bytes, 1 to SHMLIMIT_KEY_MAX; any bytes are allowed, NUL
 * included. A key that was never seen has a full funnel. `r` may be NULL. The time is the limiter's
 * clock, unless shmlimit_set_time() has set another.
 *
 * Errors that all these functions share, with nothing changed: -EMSGSIZE the key's length;
 * -ESRCH no rule has this id; -EINVAL limiter or key is NULL; -EROFS the handle is read-only
 * and the call would write.
 *
 * Threads, processes, fork: safe. Signals: safe in handlers, even if the handler interrupted a
 * decision. Progress: lock-free; no call waits for another process, and none makes a system
 * call (the vDSO reads the clock), except one in the first decision of a process after the
 * segment grew. If killed inside: the tokens were taken or not, and nothing is left to repair.
 * Cost: about a clock read, a hash of the key and a compare-and-swap. A denial writes nothing
 * to the table.
 *
 * A funnel consists of capacity, rate, tokens left and time of the last refill. It keeps whole
 * tokens as a number and the fraction of a token in the time, so asking often does not slow the
 * refill.
 */

/*
 * Take `cost` tokens if the funnel has them. `cost` 0 is a peek. A cost above the rule's
 * capacity is denied with retry_after_ns = UINT64_MAX. Returns SHMLIMIT_ALLOWED,
 * SHMLIMIT_DENIED or an error. Under a DRY_RUN rule a refusal takes nothing and returns
 * SHMLIMIT_ALLOWED with retry_after_ns > 0.
 */
int shmlimit_take(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                  uint64_t cost, struct shmlimit_result *r);

/*
 * Decide on a request, as the call that the verb names. By its rule's limit if request->limit is
 * NULL; a reservation then waits up to the rule's longest wait. Else by the limit that the request
 * brings, under a rule of GCRA. One rule serves any number of limits, such as those of a million
 * customers. Nothing of the limit is stored: a key has one time, at which its bucket was empty, in
 * steps of 1/4 ns. A token costs the time in which it comes back, rounded up to a step, so just
 * `capacity` pass at one instant, and then tokens come back no faster than `refill` in a period.
 *
 * A key that is asked with another limit keeps that time, and what has come back since is counted
 * by the limit that is asked. So a key never owes more than one time to full of that limit, and the
 * debt of reservations and charges on top: 5 a day that are used up deny 5 an hour for 12 minutes.
 * Of limits that alternate on a key each is allowed at most what it would be alone. All together,
 * each token counted as the time in which it comes back, are in any stretch of time at most that
 * time and the longest time to full of these limits. The price: a token of a short limit leaves
 * little to a longer one, until all limits that the key was asked with since would be full: after
 * one of 5 an hour, 5 a day are denied for up to 12 minutes. Where two limits hold at once, give
 * each a rule.
 *
 * SHMLIMIT_TAKE_SOME is for batches: it takes as many tokens as fit, `cost` at most, and the result
 * has their number in `granted`. That is the largest number of which a take would be allowed at
 * that moment; one compare-and-swap decides. If not even one fits the answer is denied, `granted`
 * is 0, and retry_after_ns is the time until one does. A cost above the capacity is no error.
 * `cost` 0 is a peek. A rule in DRY_RUN, or off, grants all of the cost. The call counts as one
 * decision. What does not fit is not asked for: under COUNT_REFUSED a call that gets nothing counts
 * as one token. Rules of HOLD have no such take, and neither have those of LEASE, where the backend
 * may have more than is known here: -EOPNOTSUPP.
 *
 * Under a HOLD rule the limit is a number of places, SHMLIMIT_LIMIT_PLACES, and a take of 1 with
 * request->place is an entry by it. It is allowed if fewer places of the key than that are held,
 * whatever the bounds by which they were entered: counting, comparing and entering are one step
 * over all processes. At most the rule's capacity counts, which says how much memory a key needs. A
 * lower bound ends no place, and denies until fewer are held; a higher one admits at once. Without
 * request->place the entry is never left, as by shmlimit_take().
 *
 * A peek of 1 with request->place is for callers that wait in a line, each at a place: it answers
 * as if no other caller had entered since this place was, so that limit - 1 - remaining were
 * entered before it and are still held. Places of holders that are known to be dead do not count:
 * see shmlimit_bind(). Of two entries within 65,536 ns of each other the one with the lower index
 * counts as the first, and a place that was renewed as entered then. By its rule's capacity:
 * request->limit is NULL.
 *
 * request->limit->max_wait_ns is the longest wait of a reservation and of an acquisition. Without a
 * limit, SHMLIMIT_ACQUIRE is shmlimit_acquire() with UINT64_MAX: it waits for tokens as long as the
 * rule allows, and for a pause until that is over. Of the result, `limit` and `remaining` are the
 * request's own; with SHMLIMIT_LIMIT_UNLIMITED both are UINT64_MAX, with _BLOCK 0, and nothing is
 * stored, and no place is held.
 *
 * Returns as those calls do, or, with nothing changed: -EINVAL request is NULL or has a share, the
 * verb or a flag is unknown, the limit or the place too small, the limit has places and a rate, a
 * peek has a limit and a place, or a verb that is neither take nor peek a place; -ETIME a peek's
 * place is not held, or its rule is off; -E2BIG a flag of the place is not known; -EDOM capacity,
 * refill or period_ns is 0, or neither the request nor its GCRA rule has a limit; -ERANGE the
 * capacity is above SHMLIMIT_CAPACITY_MAX, or of places above SHMLIMIT_WINDOW_MAX, or the time to
 * full or max_wait_ns above 366 days; -EOPNOTSUPP the request has a rate and its rule is not of
 * GCRA, or places or a place and its rule is not of HOLD, or its cost is not 1 and it has a place,
 * or the rule's algorithm does not have the operation. Threads, processes, signals, fork, progress:
 * as the call that the verb names. Cost: that call's, and a division for a limit.
 */
int shmlimit_decide(struct shmlimit *limiter, uint32_t verb, const struct shmlimit_request *request,
                    struct shmlimit_result *r);

/*
 * Read a limit's text, as shmlimit_rule_parse() does for a FUNNEL, into *limit: set its struct_size
 * before. max_wait_ns stays as it is. "block" and "unlimited" become flags, and so does "20 at
 * once", which says no time, since how long a place is held is the rule's; windows are refused.
 * Returns 0; or -EINVAL; -E2BIG; -ERANGE the numbers are too large for shmlimit_decide(); with
 * *limit unchanged, and *wrong filled. Pure, like shmlimit_rule_parse().
 */
int shmlimit_limit_parse(const char *text, struct shmlimit_limit *limit,
                         struct shmlimit_problem *wrong);

/*
 * Take from several limits, all or none: for example per address, per user and for the whole
 * site, or 20 a second and 1,000 an hour for one key. There are 1 to SHMLIMIT_REQUESTS_MAX
 * `requests`. `results` has room for as many, or is NULL. The answer is allowed if all of them
 * are. At the first denial or error, the tokens taken so far are given back, and *failed
 * (unless NULL) is the index of that request. Results are filled up to that one. Each key is
 * then as it was before, unless another process changed it since. Then it gets back what was
 * taken, less what has refilled since, as far as its count's period, its lease and its rule are
 * still the same. A key whose state ended in the meantime is like a new one. Of each request with
 * a place the place is left, and its value 0.
 *
 * The requests are decided one after the other, in their order and as of one time; put the one that
 * denies most first. Until tokens are given back, other callers see fewer tokens than there are,
 * and may be denied. A limit that denies most and comes last takes a part of their rate from the
 * other users of the first one: see bench/README.md. No limit is ever exceeded. If killed inside:
 * the tokens taken so far stay taken. Each rule counts its own decision, even if it was given back.
 * -E2BIG a flag of a request's place is not known; -EINVAL a request has a share and no place, or
 * no request before it has one; nothing was taken then. Cost: n takes.
 *
 * With `share` a key may enter while it holds fewer places than `share` times the places that are
 * free in the limit before it: with 64 for the site and a share of 4 (4 * SHMLIMIT_SHARE_ONE) for
 * each customer, one that is alone gets 52, and of four that ask for all of them each 15 or 16,
 * while 3 are free for others. The product is rounded down. The limit before it is the last request
 * before this one that has a place, and its free places are those before this call. A limit that
 * holds no place (in DRY_RUN, OFF, or without a slot) bounds nothing. Shares nest. The request's
 * own limit and its rule's bound it too, and *failed says which request denied: the limit itself,
 * or the share. A larger share is a higher priority. A share ends no place. Entries are one step
 * over all processes: what is free is counted after the key's places, and the swap of these proves
 * that none was entered since. A denial by a share looks for dead holders in the limit before it,
 * and may end as soon as any place there is left: its retry_after_ns is a second, or the period if
 * that is shorter.
 */
int shmlimit_take_all(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n,
                      size_t *failed, struct shmlimit_result *results);

/*
 * Decide a batch of independent requests. answers[i] is what shmlimit_take() would return for
 * request i: SHMLIMIT_ALLOWED, SHMLIMIT_DENIED or an error. `results` has room for as many, or
 * is NULL. The requests are decided in their order and as of one time, so a key may appear
 * several times. `n` 0 does nothing.
 *
 * Returns 0, or, with nothing decided: -EINVAL limiter, requests or answers is NULL, or a request
 * has a share. If killed inside: some requests were decided and some not.
 * Cost: one clock read, then n takes without one; up to 32 of them wait for memory at the same
 * time.
 */
int shmlimit_take_many(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n,
                       int *answers, struct shmlimit_result *results);

/*
 * Take `cost` tokens now or in advance. Missing tokens are borrowed from the funnel's future, and
 * r->wait_ns says how long to wait before going on: 0 if no token was missing. If the wait would
 * be longer than `max_wait_ns` or the rule's own, whichever is less, the answer is denied and
 * nothing changes. Never blocks. Several callers may hold reservations at once; each waits behind
 * the earlier ones. The cost may be above the capacity, as far as the wait allows, or 0. A
 * reservation that is not used may be given back with shmlimit_refund() as long as no later one
 * waits: a later one keeps its time, and the next one to reserve gets a time near it, so that more
 * pass there than the rule allows. Where callers go away, leave their turns unused; a gate's limit
 * with delay= has a line that moves up.
 */
int shmlimit_reserve(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                     uint64_t cost, uint64_t max_wait_ns, struct shmlimit_result *r);

/*
 * Reserve, then sleep until the tokens are there. Signals do not shorten the sleep. Returns as
 * shmlimit_reserve() does; r->wait_ns is the time that was waited. A denial waits for nothing but a
 * pause. This and shmlimit_decide() are the only calls on a limiter that block. They wait only for
 * the debt and the pauses of its own key, and never longer than `max_wait_ns`, whatever is written
 * to the segment; the rule's own longest wait does not bound the wait for a pause. A process with
 * write access can raise the rule's own longest wait, so a caller that shares the segment with
 * others passes a bound of its own instead of UINT64_MAX. If killed inside: the tokens are taken.
 * Signals: not to be called from handlers.
 */
int shmlimit_acquire(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                     uint64_t cost, uint64_t max_wait_ns, struct shmlimit_result *r);

/*
 * Take tokens for something that has already happened. Always applied, into debt up to the rule's
 * max_wait_ns and no further, to an empty funnel if that is 0. Not counted. Returns
 * SHMLIMIT_ALLOWED or an error. r->retry_after_ns is 0, or UINT64_MAX if only a part of the tokens
 * could be taken or a new key found no slot.
 */
int shmlimit_charge(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                    uint64_t tokens, struct shmlimit_result *r);

/*
 * Add request->n to the key's count under a COUNTER rule, or take away what is below 0, as INCREX
 * with ENX does in Redis 8.8 and Valkey 9.2. A key without a count counts 0; the first addition
 * starts its time to live, `ttl_ns` nanoseconds (0: the rule's period, which is the longest too),
 * and later ones leave that alone. When it is over the count is 0 again, and the slot free. `n` of
 * 0 reads, and then works on a read-only handle.
 *
 * Where the sum would be above `bound` (0 or more; at most the rule's capacity counts) or below 0:
 * SHMLIMIT_DENIED, nothing is written, and the answer's `applied` is 0; with
 * SHMLIMIT_COUNT_SATURATE the count becomes the bound, or 0, and `applied` is what that made of
 * `n`. With SHMLIMIT_COUNT_RESTART the time to live begins again, unless the call was denied; with
 * SHMLIMIT_COUNT_LONGER it does so only if the count then lives longer than without this call.
 *
 * Returns SHMLIMIT_ALLOWED or SHMLIMIT_DENIED, and fills *out unless it is NULL; or -EINVAL:
 * `request` is NULL or too small, its bound below 0, a flag unknown, or `out` says no size; -E2BIG:
 * a member is set that this library does not know; -ERANGE: ttl_ns is longer than the rule's
 * period; -EOPNOTSUPP: it is no COUNTER rule; or as shmlimit_take(). On any error nothing was
 * changed. Additions are counted as takes are. Without room for a new key the answer is on_full's.
 * A rule that is off answers allowed, with a count of 0. Cost, threads, processes, signals, fork:
 * as shmlimit_take().
 */
int shmlimit_count(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                   const struct shmlimit_count_request *request, struct shmlimit_count *out);

/*
 * Enter one of the key's places under a HOLD rule, if fewer than `capacity` are held. A place that
 * is not bound is held until shmlimit_leave(), or for the rule's period, whichever comes first: a
 * holder that was killed blocks it no longer than that. A holder that needs more time sets
 * SHMLIMIT_PLACE_BIND in place->flags, or calls shmlimit_renew() before the period is over; once it
 * is, another may have the place.
 *
 * With SHMLIMIT_PLACE_BIND the entry binds the place to the caller's process, as shmlimit_bind()
 * does, in the same step: killed anywhere, the process leaves no place that is held without it. A
 * process that cannot be registered holds the place all the same, unbound, and place->bind_error
 * says why: -ENODEV or -EXFULL.
 *
 * Returns SHMLIMIT_ALLOWED and fills *place (set its struct_size first); or SHMLIMIT_DENIED, and
 * place->value is 0; or -EINVAL: `place` is NULL or says a smaller size; -E2BIG: a flag of it is
 * not known; -EOPNOTSUPP: it is no HOLD rule; or as shmlimit_take(). *r, unless NULL: `remaining`
 * counts free places, `retry_after_ns` is the time until the first place ends if none is left. On
 * an error nothing was changed.
 *
 * The place is one of the key, whichever thread or process calls. With no slot for a new key
 * (on_full evict or allow), under a rule in DRY_RUN that would have denied, or one that is OFF, it
 * is allowed, and place->value is 0: nothing is held, and there is nothing to leave. An evicted
 * key's places are forgotten: with on_full deny they never are. Places are not saved. A place that
 * is held longer than its rule's period was shortened to keeps its end. If killed inside: nothing
 * was entered, or a place that ends by itself, or with the process that it is bound to.
 *
 * An entry by a bound of its own is shmlimit_decide()'s. shmlimit_take() on a HOLD rule with a cost
 * of 1 is an enter that is never left; a larger cost returns -EOPNOTSUPP, as shmlimit_refund() and
 * shmlimit_charge() do. Threads, processes, signals, fork: as shmlimit_take(). Cost: a take's, one
 * compare-and-swap more, and a look at each place that is held.
 */
int shmlimit_enter(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                   struct shmlimit_place *place, struct shmlimit_result *r);

/*
 * Renew a place: its period begins again now, and *place is changed. Returns 0, also where
 * place->value is 0; -ETIME: it is not held any more: it ended, was left, reset or evicted; nothing
 * was changed; or -EINVAL, -EMSGSIZE, -EROFS, -ESRCH, -EOPNOTSUPP as shmlimit_enter(). Not counted.
 * Cost: as shmlimit_enter().
 */
int shmlimit_renew(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                   struct shmlimit_place *place);

/*
 * Bind a place to a process, its holder. While that lives the place does not end by the clock,
 * unless the rule has SHMLIMIT_RULE_CUT_OFF, so nothing needs to be renewed. Once it is dead, an
 * entry that would be denied gets the place. Without it a place ends with its period, and a killed
 * holder's place is held until then.
 *
 * `pid` is a process of the caller's pid namespace, or a thread, which means its process; 0 = the
 * caller's own process, which must not execute another program while it holds the place, if
 * processes of other pid namespaces use the segment. *place does not change: any process that has a
 * copy of it can renew it, bind it to another process and leave it, before and after.
 *
 * Returns 0, also where place->value is 0; -ETIME as shmlimit_renew(); -ECHILD: there is no such
 * process, or it is a zombie; -ENODEV: /proc is missing, is of another namespace, or does not show
 * the process; -EXFULL: 1024 living processes have places of this segment already, see
 * shmlimit_info.unregistered; or -EINVAL, -EMSGSIZE, -EROFS, -ESRCH, -EOPNOTSUPP as
 * shmlimit_enter(). On an error the place is held as before.
 *
 * A living process's place is never given away. A place is bound to the whole process, through
 * execve(2), also while it is stopped, and not to its children: a forked child is another process.
 * One that is bound again is bound to the new process alone. A renewal, a larger table and a clock
 * that stepped back keep it bound. Holders of another pid namespace are dead if no process of it
 * has the segment open any more and they had bound places to themselves; else their places end with
 * the period, as do those of processes that a sandbox hides. Entries that are not denied ask for no
 * holder. One that is denied asks the kernel about each process with a place, 10 us, at most once
 * in 10 ms for all processes: for so long a dead holder may count as alive. `remaining` of a denial
 * counts a dead process's place until an entry has freed it. If killed inside: the place is bound
 * or not. Threads, fork: as shmlimit_take(). Signals: not to be called from handlers. Cost: a
 * take's; the first call of a process registers it, which takes 30 us.
 */
int shmlimit_bind(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                  struct shmlimit_place *place, uint32_t pid);

/*
 * Leave a place, from any process. Returns as shmlimit_renew(); *place is not changed. A place is
 * left once: a second leave returns -ETIME and changes nothing, also if another holder has the
 * place by then. Works while the rule is OFF. Not counted. Cost: less than a take.
 *
 * Under a rule with a law the time since the place was entered counts for the number of places, see
 * shmlimit.7; place->flags can say that the work was dropped (SHMLIMIT_PLACE_DROPPED), or that its
 * time is not to count (SHMLIMIT_PLACE_UNTIMED). Killed inside: the place is left or not, and its
 * time counts or not. Then enter and leave cost 1.5 times as much.
 */
int shmlimit_leave(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                   const struct shmlimit_place *place);

/*
 * Returns what a take would answer, without taking. Writes nothing, counts nothing, and works
 * on a read-only handle. Does not look for a free slot: a key without one is reported as full, even
 * if a take would find no slot for it.
 */
int shmlimit_peek(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                  uint64_t cost, struct shmlimit_result *r);

/*
 * redis-cell's CL.THROTTLE key capacity count period [quantity] and its reply, for programs that
 * pass the limit with each request. Takes `quantity` tokens (0: peeks) from a funnel of `capacity`
 * that gets `refill` tokens back every `period_s` seconds. All triples are under one GCRA rule,
 * ~throttle, which the first call makes. A key that is asked with another triple never owes more
 * than one time to full of that triple, see shmlimit_decide(); in redis-cell it owes as much
 * time as it did.
 *
 *	reply[0]   0 allowed, 1 denied: also the value returned
 *	reply[1]   capacity
 *	reply[2]   tokens left
 *	reply[3]   seconds until a retry fits, rounded up; -1 if allowed, or if none ever fits
 *	reply[4]   seconds until the funnel is full, rounded up
 *
 * `reply` may be NULL. (redis-cell takes max_burst and reports max_burst + 1 as the limit; here
 * both are the capacity.) Errors besides those of shmlimit_take(): -EDOM, -ERANGE as for
 * shmlimit_decide(); of the first call in a segment -EXFULL, no room for the rule, and -EAGAIN,
 * another process holds the lock of the writers of rules. The call does not wait for that lock:
 * nothing was taken, try again. Signals: not to be called from handlers. Cost: a take with a limit.
 */
int shmlimit_throttle(struct shmlimit *limiter, const void *key, size_t key_len, uint64_t capacity,
                      uint64_t refill, uint64_t period_s, uint64_t quantity, int64_t reply[5]);

/*
 * Give `tokens` back, first to a debt, then up to the capacity: for a request that was
 * admitted, or a reservation that was made, and then not carried out. Give back only tokens
 * that were taken, or the key gets more than its rate. Not counted. Does nothing for a key without
 * a slot, which is full. Returns SHMLIMIT_ALLOWED or an error.
 */
int shmlimit_refund(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                    uint64_t tokens, struct shmlimit_result *r);

/*
 * Pause a key: deny all its requests for the next for_ns nanoseconds, whatever tokens it has; for
 * example after the server that the key names has answered 429 or 503 with Retry-After. Takes,
 * reservations, entries, counts and leases are denied, peeks too; retry_after_ns is the time until
 * the pause ends, or the rule's own if that is longer, and `remaining` is as without a pause.
 * Charges, refunds and renewals work, and places stay held. shmlimit_acquire() sleeps until the
 * pause is over, also one that begins while it waits, and then reserves: so callers that wait go on
 * by the rule's rate, and not all at once.
 *
 * Of two pauses the one that ends later stays. for_ns 0: the key's pause ends now. At most 366
 * days. It ends by itself, and is saved with the segment. A rule that is OFF, BLOCK or DRY_RUN
 * ignores pauses. Pauses are keys of a COUNTER rule, ~pause, that the first call makes: protected,
 * named by the rule, a blank and the key; without it nothing is paused.
 *
 * Returns 0; or SHMLIMIT_DENIED: not paused, since there is no slot for the pause, or ~pause or the
 * segment is off. Errors: -EINVAL, -EMSGSIZE, -EROFS, -ESRCH as shmlimit_take(); -ERANGE: longer
 * than that, or than ~pause counts, whose period an operator may have lowered; -EOPNOTSUPP: ~pause
 * is no COUNTER, or is the rule. Of the first call in a segment also those of shmlimit_rule_set().
 *
 * A request that had read the rule before and swaps its key's word after may pass once; after this
 * call has returned none does that begins then. If killed inside: the key is paused or not.
 * Threads, fork: as shmlimit_take(). Signals: not to be called from handlers. Cost: two takes. A
 * rule without pauses decides as if there were none. A decision under one with pauses costs two or
 * three takes more, until a few seconds after the last of them would have ended, also if it was
 * ended before. So do those under a rule that is set, or in a segment that is loaded, while there
 * are pauses.
 */
int shmlimit_pause(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                   uint64_t for_ns);

/*
 * Is a key paused? For a caller that has waited for a reservation without shmlimit_acquire(): if
 * so, it waits for *left_ns, and reserves again. It gives nothing back: its turn passed unused, as
 * all turns of the pause. Returns SHMLIMIT_DENIED with the time that is left in *left_ns, unless
 * that is NULL, or SHMLIMIT_ALLOWED and 0: also while the rule or the segment does not enforce.
 * Writes nothing and counts nothing. Errors: as shmlimit_peek(). Cost: 5 ns while the rule has no
 * pauses; else a take.
 */
int shmlimit_paused(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
                    uint64_t *left_ns);

/*
 * Restore all tokens of one key (`key` not NULL), of every key of one rule (`key` NULL), or of
 * every key of every rule (`rule` SHMLIMIT_ALL_RULES, `key` NULL). Returns the number of keys that
 * were in the table, at most INT_MAX, or an error: -ESRCH for any other id that no rule has,
 * -EINVAL a key with all rules. 0 means that there was nothing to reset: each of these keys already
 * had all its tokens. A key that has refilled may still be counted. All rules: pauses end, too. A
 * concurrent decision falls before or after the reset, for each key by itself. If killed inside:
 * each key is as it was, or full. Cost: for one key, a look-up; else one pass over the table.
 */
int shmlimit_reset(struct shmlimit *limiter, int rule, const void *key, size_t key_len);

/*
 * Like shmlimit_reset(), for a key of which only the fingerprint is known, as shmlimit_slot()
 * reports it. All keys of the rule with this fingerprint are reset. Among 10 million keys, two
 * share one with a probability of about 0.16. Cost: one pass over the table. -EINVAL if no key
 * can have the fingerprint.
 */
int shmlimit_reset_fingerprint(struct shmlimit *limiter, int rule, uint64_t fingerprint);

/*
 * The limiter's clock: nanoseconds since an arbitrary point before the first decision of this boot.
 * `limiter` NULL: the precise clock.
 */
uint64_t shmlimit_now(struct shmlimit *limiter);

/*
 * For simulations, replays of logs and tests, and to decide several times by one reading of the
 * clock: from now on the calls with this handle use the time *now_ns, in nanoseconds since a point
 * of the caller's choice, instead of reading the clock. It stands still until it is set again;
 * NULL: the clock again. Returns 0, or -EINVAL: `limiter` is NULL. shmlimit_acquire(), which would
 * sleep, then returns -EOPNOTSUPP.
 *
 * Use only one clock for a segment: decisions, rule changes and growth alike. The times of
 * different handles may differ a little, as those of threads do, but must not lag behind one
 * another by more than one second or half the rule's time to full, whichever is less, or a key may
 * get more than its rate. A time that is older than the funnel by more than that plus the rule's
 * longest debt counts as a clock that stepped back, and the funnel refills from there. A funnel
 * that was full by a later time may have been forgotten since; for an older time it is then full,
 * too. Whether the holders of places live is asked by the host's clock. Saved files have the host's
 * real time.
 *
 * Threads: safe; the threads of a handle have one time. Processes: each handle has its own. Signals
 * and fork: safe. Cost: a store.
 */
int shmlimit_set_time(struct shmlimit *limiter, const uint64_t *now_ns);

/*
 * ---- Introspection --------------------------------------------------------
 */

/*
 * Fill *out (set its struct_size first) for one rule, or with the sum of all rules (`rule`
 * SHMLIMIT_ALL_RULES). Returns 0, -ESRCH, -EINVAL.
 */
int shmlimit_counters(struct shmlimit *limiter, int rule, struct shmlimit_counters *out);

/*
 * Fill *out (set its struct_size first) with the contents of slot `index` as of now_ns. Indexes
 * run from 0 to info.slots + info.old_slots - 1: first the slots of the current table, then
 * those of the old table while keys may be left there. Reads only, and never disturbs a
 * decision. Returns 0, -EINVAL.
 *
 * While there are two tables, a key that migrates between the calls, or whose process was killed
 * as it migrated, can be in both: what the current table has is right. So a walk reads the old
 * table first, and forgets what it then finds in the current one.
 */
int shmlimit_slot(struct shmlimit *limiter, uint64_t index, struct shmlimit_slot *out,
                  uint64_t now_ns);

/*
 * Copy the key of slot `index`, which shmlimit_slot() reported as *slot, if the segment stores
 * keys (options.store_keys). `size` is the room in `key`; SHMLIMIT_KEY_MAX suffices. *key_len
 * (unless NULL) becomes the key's whole length. It is more than the number of bytes copied if
 * the key is longer than the segment stores; the copy is then the key's beginning.
 *
 * Returns the number of bytes copied, or -EINVAL, -ENOBUFS. 0 means that the key is not known:
 * the segment stores none; the process that claimed the slot has not written the key yet, or
 * was killed before; or another key's bytes are stored there. The stored bytes are not trusted
 * but hashed again, so a returned key is the slot's. Keys can contain any bytes: escape them
 * before writing them to a terminal. Reads only, and never disturbs a decision.
 */
int shmlimit_slot_key(struct shmlimit *limiter, uint64_t index, const struct shmlimit_slot *slot,
                      void *key, size_t size, size_t *key_len);

/*
 * ---- Keys and answers -----------------------------------------------------
 *
 * For servers. Pure functions: no segment, no system call; safe anywhere.
 */

/*
 * Make a key from the network of an address, so that a client that controls a whole network
 * counts as one client. `address` is 4 or 16 bytes in network order; an IPv4-mapped IPv6
 * address counts as IPv4. The first `prefix_v4` bits of an IPv4 address count, 0 to 32, and the
 * first `prefix_v6` bits of an IPv6 address, 0 to 128. 32 and 64 are what one customer usually
 * has. The key consists of family, prefix length and network, so two that differ in one of
 * these never share a key. SHMLIMIT_KEY_IP_MAX bytes suffice.
 *
 * Returns the key's length, or: -EINVAL an argument is NULL or out of range; -ENOBUFS
 * `key_size` is too small. After any error nothing was written.
 */
int shmlimit_key_ip(const void *address, size_t address_len, unsigned prefix_v4, unsigned prefix_v6,
                    void *key, size_t key_size);

/*
 * Like shmlimit_key_ip(), but takes the address as text, in any form in which people, servers and
 * proxies write one: 203.0.113.9, 203.0.113.9:50001, 2001:db8::1, [2001:db8::1],
 * [2001:db8::1]:50001, fe80::1%eth0; with blanks, a line's end or double quotes around it. A port
 * does not count, so all connections of a client have one key. The zone of an IPv6 address (%eth0)
 * does not count, since it names the interface of this host and not the client.
 *
 * With `nth` 0 the text is one address. Any other `nth` takes a list with commas between its
 * elements, such as the field X-Forwarded-For: 1 is the first element, 2 the second, -1 the last,
 * -2 the last but one. Each proxy appends the address that it was asked from, and a client can
 * write anything in front: behind N proxies that you run, -N is the client, and 1 can be forged.
 *
 * Returns the same values as shmlimit_key_ip(); -EINVAL also for text that is not an address, and
 * for a list without an nth element. A text is read once, in time that grows with its length.
 */
int shmlimit_key_ip_text(const char *text, int nth, unsigned prefix_v4, unsigned prefix_v6,
                         void *key, size_t key_size);

/*
 * Write an answer as the HTTP fields RateLimit-Policy, RateLimit and Retry-After
 * (draft-ietf-httpapi-ratelimit-headers-10). `name` is the policy's name, for example the
 * rule's: 1 to SHMLIMIT_RULE_NAME_MAX bytes of printable ASCII, which this function quotes.
 * `rule` is what shmlimit_rule_get() filled, `answer` and `r` what a decision returned. Set
 * out->struct_size first.
 *
 *	q   the rule's capacity
 *	w   seconds in which that many tokens come back, at least 1
 *	r   tokens left
 *	t   seconds: if denied, until a retry fits; else until the funnel is full
 *
 * For a HOLD rule there is no w, t or Retry-After, since nobody knows when a place will become
 * free; qu="concurrent-requests" says that q and r are places:
 *
 *	"reports";q=2;qu="concurrent-requests"
 *	"reports";r=0
 *
 * A BLOCK rule has q=0 and r=0, without times and Retry-After. For a GCRA rule without a limit of
 * its own there is no w: where the call brought the limit, pass a rule with its numbers. For a
 * COUNTER rule with refill 0 there is no w: set that where the call says how long a count lives, as
 * a ban does, since the rule's period is only the longest time.
 *
 * A client that spreads r requests over t is never denied. Retry-After is the t of a denial, at
 * least 1; it is missing if no retry would ever fit. Seconds are rounded up. No number has more
 * than 15 digits, the limit for an Integer of a structured field. A request with several limits
 * sends one field for each, or joins them with commas.
 *
 * Returns 0, or: -EINVAL an argument is NULL or unknown, or a struct_size too small; -EILSEQ,
 * -ENAMETOOLONG a bad name; -E2BIG the rule is longer than this library knows, and has a value
 * there.
 */
int shmlimit_fields(const char *name, const struct shmlimit_rule *rule, int answer,
                    const struct shmlimit_result *r, struct shmlimit_fields *out);

/*
 * Describe an error of this library: a static string, also for values that the library never
 * returns. Takes the value as returned (negative) or as an errno (positive). Safe anywhere.
 *
 *	EINVAL        an argument is NULL, unknown, or out of range
 *	E2BIG         a field is set that this library does not know
 *	EILSEQ        a name is empty or contains a forbidden character
 *	ENAMETOOLONG  a name is too long
 *	EMSGSIZE      a key is not 1 to 1024 bytes long
 *	EDOM          a rule's capacity, refill, period or warm-up is 0
 *	ERANGE        a rule cannot be represented exactly
 *	EFBIG         a table is larger than the segment was created for, or a window than 65,536
 *	EBUSY         a rule's algorithm cannot be changed: remove the rule first
 *	EOPNOTSUPP    the rule's algorithm does not have this operation
 *	EALREADY      the table grew, and keys are left in the old one
 *	ETIME         the place is not held: it ended, was left, or lost its slot
 *	ECHILD        no such process, to bind a place to
 *	ENOPKG        no data of this time zone, or no yearly rule for its offset
 *	ESRCH         no such rule
 *	EXFULL        the segment has no room for another rule, or for another process with places
 *	EROFS         the handle is read-only, or /dev/shm is
 *	EAGAIN        another process holds the lock of the writers of rules
 *	ENOENT        no such segment
 *	EEXIST        a segment or file of this name exists
 *	EMEDIUMTYPE   not a shmlimit segment, or not a saved one
 *	EPROTO        a segment, or a saved one, of another version
 *	EUCLEAN       a damaged segment or rule, or a damaged saved one
 *	ESTALE        a segment created before the last boot
 *	EXDEV         a segment of another time namespace
 *	EACCES        no permission on the segment
 *	EPERM         the segment belongs to neither root nor this user, or its group cannot be set
 *	ENOSYS        a sandbox, such as a seccomp filter, refuses a system call
 *	ENODEV        /dev/shm is no tmpfs, or /proc is missing
 *	EDQUOT        a quota, or a limit on the size of files, is exceeded
 *	ENOSPC        no room left in /dev/shm
 *	ENOBUFS       a buffer is too small
 */
const char *shmlimit_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
