/*
 * layout: the bytes of a segment. Everything that two processes share stands
 * here, once; nothing of one process (no pointer, no lock object) ever does.
 *
 *	0        header        identity and geometry, then six lines that change
 *	4096     holders       1024 entries of 32 bytes: processes that places are bound to, see registry.h
 *	36864    rules         rules_max * 704 bytes
 *	...      counters      (cpus + stripes) blocks, each at a page, of (1 + rules_max) lines
 *	                       of records and blocks only what rules_now rules need is reserved; the rest are holes
 *	...      area          LAYOUT_AREA bytes at a page, for libshmlimit-global: shmlimit_area()
 *	...      table         slots: lines of 4, 64-byte aligned
 *	                       names: an entry for each slot: its key, see stored_key.h
 *	...      larger tables, each at a page, one for each time that it grew, and behind each a
 *	         word that says where it is: see layout_table_mark(); holes until then
 *	size     regions of cells, one for each size of logs, see cells.h; holes until they are used
 *
 * A slot is 16 bytes and only ever changes by one 16-byte compare-and-swap:
 *
 *	       63                              16 15        4 3         0
 *	tag  : [ fingerprint : 48              ] [ rule : 12 ] [ flags : 4 ], see tag_pack()
 *	word : [ timestamp : 64 - Q                         ] [ quota : Q ]
 *	       ... of a FUNNEL rule with Q = 0: when the funnel is empty, see funnel.h
 *	       ... of a WINDOW rule, whose admissions stand in the slot's cells:
 *	word : [ timestamp : 64 - Q ] [ tokens taken last - 1 ] [ cells ]
 *	       ... of a GCRA rule:
 *	word : [ when the bucket was empty : 59 ] [ place : 5 ], see gcra.h
 *	       ... of a LEASE rule:
 *	word : [ timestamp : 56 - Q ] [ size : 6 ] [ state : 2 ] [ quota : Q ]
 *
 *	flags: 3 TENTATIVE   being claimed; the word is a nonce, not a funnel
 *	       2 FROZEN      of a table that a larger one follows: never changed to an unfrozen one
 *	       1..0          number of the rule's version, modulo 4
 *	tag 0: free. All-zero memory is a valid empty table.
 *
 * Numbers are in the machine's byte order; the header tells which.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LAYOUT_H
#define SHMLIMIT_LIB_LAYOUT_H

#include "shmlimit_lease.h"

#define LAYOUT_MAGIC "shmlimit" /* the first 8 bytes, without a NUL */
#define LAYOUT_VERSION 11u
#define LAYOUT_BYTE_ORDER 0x01020304u

#define LINE 64u /* bytes that two cores pass to and fro as one */
#define SLOTS_PER_LINE 4u
#define LAYOUT_AREA 77824u /* 64 requests of libshmlimit-global, and a page for all of them */
#define LAYOUT_HOLDERS 1024u
#define LAYOUT_HOLDERS_OFFSET 4096u
#define GCRA_PLACES 32u  /* a GCRA word has 5 bits for one */
#define RULE_VERSIONS 4u /* a reader of version n is safe until n + 4 is being written */

/* The largest sweep_after_ns, four years: with longer ones nothing would be gained. */
#define SWEEP_AFTER_MAX_NS ((uint64_t)1 << 57)

struct layout_header {
	/* Written before any process sees the segment, never after. */
	uint8_t magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint64_t fingerprint; /* of the sizes and offsets below: see layout_fingerprint() */
	uint64_t size;        /* of all but the regions of cells: bytes of the mapping, whole pages */
	uint64_t lines;       /* of slots, of the first table */
	uint64_t slots_offset;
	uint64_t rules_offset;
	uint64_t counters_offset;
	uint32_t rules;   /* that the list began with */
	uint32_t cpus;    /* counter blocks with one writer at a time: a CPU */
	uint32_t stripes; /* counter blocks that are added to atomically */
	uint32_t on_full;
	uint32_t clock;
	uint32_t rules_max; /* the longest list of rules */
	uint64_t secret[2]; /* of the keyed hash */
	uint8_t boot_id[16];
	uint64_t time_namespace; /* inode number */
	uint64_t created_unix_ns;
	uint64_t names_offset;
	uint64_t names;        /* bytes of a key that an entry has room for; 0 = no entries */
	uint64_t lines_max;    /* of the largest table that it can grow to */
	uint64_t lines_asked;  /* that there was no room for; 0 = the first table has as many as were asked for */
	uint64_t reserved[10]; /* zero */
	uint64_t checksum;     /* of everything above: see layout_checksum() */

	/* What changes: a line that each decision reads. */
	uint64_t state __attribute__((aligned(64))); /* see state_pack() */
	struct layout_table {
		uint64_t offset; /* of its slots: a page's beginning */
		uint64_t lines;
		/*
				  * generation g stands in tables[g % 2]; the first is described
				  * above
				  */
	} tables[2];
	uint64_t sweep_after_ns; /* a table that was swept longer ago is due: see sweep.h */
	struct layout_swept {
		/* every entry that was over before this time was freed */
		uint64_t ns;
		uint64_t round;               /* the sweep that did so */
	} swept __attribute__((aligned(16))); /* changed by one compare-and-swap */

	/* And a line for the rest. */
	struct layout_sweep {
		uint64_t ns;     /* what swept.ns becomes when the round is done */
		uint64_t cursor; /* of the round, and the chunk that comes next: see sweep.c */
	} sweep __attribute__((aligned(64)));
	/* requests that were let pass, and refused: see shmlimit_count_undecided() */
	uint64_t undecided[2];
	uint64_t owed;         /* the longest debt that a GCRA word had, in its ticks: see gcra_row.h */
	uint64_t unregistered; /* times that a process found no entry among the holders */
	uint64_t rules_now;    /* records that are reserved: it only grows, under the lock */
	uint64_t unix_ns;      /* nanoseconds since 1970 when the segment's clock was 0: see calendar.h */

	/* And what GCRA's words do not say. */
	uint64_t longest[GCRA_PLACES] __attribute__((aligned(64))); /* times to full, in ticks: see gcra_row.h */
};

/* A process that places are bound to. */
struct layout_holder {
	uint64_t number, process; /* changed by one compare-and-swap */
	uint64_t seen, space;
} __attribute__((aligned(16)));

/*
 * One word says which tables there are, so that one swap changes it: bit 0
 * the segment is switched off, 1 the old table may still hold keys, 2.. how
 * often the table has grown: the generation of the new one.
 */
#define STATE_OFF ((uint64_t)1)
#define STATE_MOVING ((uint64_t)2)
#define STATE_SHIFT 2

static inline uint64_t state_pack(uint64_t generation, int moving)
{
	return generation << STATE_SHIFT | (moving ? STATE_MOVING : 0);
}

static inline uint64_t state_generation(uint64_t state)
{
	return state >> STATE_SHIFT;
}

/*
 * Each table has at least twice as many slots as the previous one, or is the first: from SLOTS_MIN
 * to SLOTS_MAX these are at most 32.
 */
#define GENERATIONS_MAX 32u

/* What the word behind a larger table says: a damaged header does not lead into a hole. */
static inline uint64_t layout_table_mark(uint64_t offset, uint64_t lines)
{
	return (offset ^ lines << 32 ^ lines >> 32) | 1;
}

/*
 * Sizes of a key's cells: four for each power of two, for 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 ... to
 * 65,536 tokens or places; those above no rule has.
 */
#define CELLS_SIZES 64u
#define CELLS_SIZE_MAX 56u
#define CELLS_BYTES 16u /* of a token or a place: two cells */

#define FOUR_SIZES(shift) 4u << (shift), 5u << (shift), 6u << (shift), 7u << (shift)
/* WHY NOT by shifts: a decision takes 7 instructions more each time that it asks. */
static const uint32_t TOKENS_OF_SIZE[CELLS_SIZES] = { FOUR_SIZES(0),  FOUR_SIZES(1),  FOUR_SIZES(2),  FOUR_SIZES(3),
	                                              FOUR_SIZES(4),  FOUR_SIZES(5),  FOUR_SIZES(6),  FOUR_SIZES(7),
	                                              FOUR_SIZES(8),  FOUR_SIZES(9),  FOUR_SIZES(10), FOUR_SIZES(11),
	                                              FOUR_SIZES(12), FOUR_SIZES(13), FOUR_SIZES(14), FOUR_SIZES(15) };

static inline uint64_t cells_tokens(unsigned size)
{
	return TOKENS_OF_SIZE[size % CELLS_SIZES];
}

/*
 * One version of a rule. A FUNNEL's decision reads no more than `inverse`.
 * "Stamps" are ticks where the word has them, shifted left by Q. A WARMUP's
 * funnel holds units, 2^params_unit_bits() a token. A WINDOW counts in
 * nanoseconds: `back` is its period, `ahead` and `debt` are what they say. A LEASE
 * too; its num / den are tokens a nanosecond.
 */
struct layout_params {
	uint64_t capacity; /* tokens; WARMUP: units */
	uint64_t scale[2]; /* ticks a nanosecond, times 2^118: low half, high half */
	uint64_t num, den; /* ticks a nanosecond, as an exact fraction */
	uint64_t back;     /* stamp: elapsed time above this is a timestamp in the future */
	/* stamp: that much may a timestamp honestly be in the future: debt + slack */
	uint64_t ahead;
	uint64_t shape; /* see params_shape() */

	uint64_t inverse;     /* nanoseconds a tick, times 2^params_inverse_shift(), rounded down */
	uint64_t debt;        /* stamp: the longest debt */
	uint64_t max_wait_ns; /* the longest wait that a reservation may buy */
	/*
	 * low half: SHMLIMIT_RULE_NEXT_PAYS ...; high half: WARMUP's cold factor, 1/1000; LEASE's
	 * credit; HOLD's least number that a law finds
	 */
	uint64_t flags;
	uint64_t count; /* as the caller gave it */
	uint64_t period_ns;
	uint64_t warmup_ns; /* WARMUP only, else zero */
	uint64_t reserved;  /* zero */

	/* COUNTER only, else zero: of a calendar period. num and den are then its zone's words. */
	char zone[SHMLIMIT_ZONE_MAX];
	uint64_t reserved_tail[3]; /* zero */
};

/*
 * Bits 0..5 quota bits Q; 8..13 token bits, Q + f where a token is 2^f ticks; 16..23 the algorithm;
 * 24..30 the shift of the inverse; 32..37 what only one algorithm has: WARMUP the unit bits, WINDOW
 * the bits of a number of cells, HOLD the law, COUNTER its enum calendar; 40..45 the size of its
 * keys' cells, see cells.h, where they have any. A WINDOW's "token bits" are those of a
 * nanosecond's number that its words leave out. The rest is zero.
 */
static inline uint64_t params_shape(unsigned quota_bits, unsigned token_bits, unsigned algorithm,
                                    unsigned inverse_shift)
{
	return (uint64_t)quota_bits | (uint64_t)token_bits << 8 | (uint64_t)algorithm << 16 |
	       (uint64_t)inverse_shift << 24;
}

static inline unsigned params_inverse_shift(const struct layout_params *params)
{
	return params->shape >> 24 & 127;
}

static inline unsigned params_quota_bits(const struct layout_params *params)
{
	return params->shape & 63;
}

static inline unsigned params_token_bits(const struct layout_params *params)
{
	return params->shape >> 8 & 63;
}

static inline unsigned params_algorithm(const struct layout_params *params)
{
	return params->shape >> 16 & 255;
}

static inline void params_set_extra(struct layout_params *params, unsigned extra)
{
	params->shape |= (uint64_t)extra << 32;
}

static inline unsigned params_unit_bits(const struct layout_params *params)
{
	return params->shape >> 32 & 63;
}

static inline unsigned params_calendar(const struct layout_params *params)
{
	return params->shape >> 32 & 63;
}

static inline unsigned params_cell_bits(const struct layout_params *params)
{
	return params->shape >> 32 & 63;
}

/* HOLD: SHMLIMIT_LAW_VEGAS ...; 0: the capacity is the number of places */
static inline unsigned params_law(const struct layout_params *params)
{
	return params->shape >> 32 & 63;
}

static inline unsigned params_cells_size(const struct layout_params *params)
{
	return params->shape >> 40 & (CELLS_SIZES - 1);
}

static inline void params_set_cells_size(struct layout_params *params, unsigned size)
{
	params->shape |= (uint64_t)size << 40;
}

/* The largest capacity that its keys have cells for: they have twice as many. */
static inline uint64_t params_tokens(const struct layout_params *params)
{
	return cells_tokens(params_cells_size(params));
}

static inline uint32_t params_flags(const struct layout_params *params)
{
	return (uint32_t)params->flags;
}

static inline int params_is_protected(const struct layout_params *params)
{
	return (params->flags & SHMLIMIT_RULE_PROTECTED) != 0;
}

static inline uint32_t params_cold_factor_milli(const struct layout_params *params)
{
	return (uint32_t)(params->flags >> 32);
}

static inline uint32_t params_credit(const struct layout_params *params)
{
	return (uint32_t)(params->flags >> 32);
}

static inline uint32_t params_least(const struct layout_params *params)
{
	return (uint32_t)(params->flags >> 32);
}

struct layout_rule {
	uint64_t published; /* version, mode, in use: see published_pack() */
	/* the version that the rule began with: what is older was another rule's */
	uint64_t born;
	/* when a version's parameters were set, by the real-time clock; as params[] */
	uint64_t set_unix_ns[RULE_VERSIONS];
	uint64_t mark;            /* shmlimit_rule.mark */
	uint64_t refused_unix_ns; /* shmlimit_rule.refused_unix_ns */
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	/* what the id's counters were when this rule got it */
	uint64_t counted_before[8];
	struct layout_params params[RULE_VERSIONS]; /* version n is in params[n % RULE_VERSIONS] */
};

/*
 * One word says all that is in force, so that one swap changes it: bit 0 in use, 1..2 the mode,
 * 3..30 until when keys of it may be paused, see pause.h, 31.. the version.
 */
#define PUBLISHED_PAUSED UINT64_C(0x7ffffff8)
#define PUBLISHED_VERSION_SHIFT 31

static inline uint64_t published_pack(uint64_t version, uint32_t mode, int in_use)
{
	return version << PUBLISHED_VERSION_SHIFT | (uint64_t)mode << 1 | (uint64_t)in_use;
}

static inline uint64_t published_version(uint64_t published)
{
	return published >> PUBLISHED_VERSION_SHIFT;
}

/* Of a paused_until(); 0: no key is paused. */
static inline uint64_t published_paused(uint64_t published)
{
	return published & PUBLISHED_PAUSED;
}

static inline uint32_t published_mode(uint64_t published)
{
	return published >> 1 & 3;
}

static inline int published_in_use(uint64_t published)
{
	return published & 1;
}

/* In use, and of a mode below SHMLIMIT_OFF and _BLOCK: one comparison for both. */
static inline int published_is_on(uint64_t published)
{
	return (published & 5) == 1;
}

/* ... and without pauses: what a first try asks. */
static inline int published_in_force(uint64_t published)
{
	return (published & (PUBLISHED_PAUSED | 5)) == 1;
}

/* Counters of one rule in one block: a line, in the order of struct shmlimit_counters. */
enum counter {
	COUNT_ALLOWED,
	COUNT_DENIED,
	COUNT_SHADOW_DENIED,
	COUNT_CLAIMS,
	COUNT_RECLAIMS,
	COUNT_EVICTIONS,
	COUNT_NO_SLOT,
	COUNT_FAILED_CAS,
	COUNTERS,
};

/* Counters of all LEASE rules in one block, in the order of struct shmlimit_lease_counters. */
enum lease_counter {
	LEASE_LEASES,
	LEASE_LEASED,
	LEASE_SPENT,
	LEASE_EXPIRED,
	LEASE_KNOWN_DENIALS,
	LEASE_BACKEND_ERRORS,
	LEASE_BREAKER_OPENINGS,
	LEASE_COUNTERS,
};

/* A block: this line, then a line of counters for each rule. */
struct layout_block {
	uint64_t nonces; /* handed out from this block */
	uint64_t leases[LEASE_COUNTERS];
};

struct layout_slot {
	uint64_t tag;
	uint64_t word;
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct layout_header) == 10 * LINE, "the header is ten lines");
_Static_assert(offsetof(struct layout_header, checksum) == 4 * LINE - 8, "no byte of a header is unchecked");
_Static_assert(offsetof(struct layout_header, state) == 4 * LINE, "what changes has its own lines");
_Static_assert(offsetof(struct layout_header, sweep) == 5 * LINE, "what a decision reads is one of them");
_Static_assert((SHMLIMIT_SLOTS_MAX >> GENERATIONS_MAX) == SHMLIMIT_SLOTS_MIN, "no segment grows more often");
_Static_assert(SHMLIMIT_WINDOW_MAX == 4 << (CELLS_SIZE_MAX / 4), "the largest size is for the largest capacity");
_Static_assert(offsetof(struct layout_params, inverse) == LINE, "what every decision reads is one line");
_Static_assert(sizeof(struct layout_params) == 3 * LINE, "params are three lines");
_Static_assert(sizeof(struct layout_rule) == 15 * LINE, "a rule is fifteen lines");
_Static_assert(COUNTERS * sizeof(uint64_t) == LINE, "a rule's counters are a line");
_Static_assert(sizeof(((struct layout_rule *)0)->counted_before) == COUNTERS * sizeof(uint64_t),
               "and so is what they were before");
_Static_assert(sizeof(struct layout_block) == LINE, "a block begins with a line");
_Static_assert(sizeof(struct layout_slot) * SLOTS_PER_LINE == LINE, "four slots are a line");

#define TAG_TENTATIVE ((uint64_t)8)
#define TAG_FROZEN ((uint64_t)4)
#define TAG_VERSION ((uint64_t)3)
#define TAG_FLAGS ((uint64_t)15)
#define TAG_RULE_SHIFT 4
#define TAG_RULE_MASK ((uint64_t)(SHMLIMIT_RULES_MAX - 1))
#define TAG_FINGERPRINT_SHIFT 16

/* set in the tag of every key: a tag of 0 means free */
#define TAG_USED ((uint64_t)1 << TAG_FINGERPRINT_SHIFT)

/*
 * What a version of a rule changes in the tags of its keys: two flags, and the fingerprint above
 * its lowest bit.
 */
static inline uint64_t tag_of_version(uint64_t version)
{
	return (version & ~TAG_VERSION) << (TAG_FINGERPRINT_SHIFT - 1) | (version & TAG_VERSION);
}

/*
 * The tag of a key's committed slot. The fingerprint is the hash's low 48 bits, the
 * lowest of them set. Each version of the rule has another tag for the key. A
 * process may be stopped just before it swaps a slot, while the rule is changed four
 * times: the two flags are then what they were, and the word may be too, but the tag
 * is not, so that the swap fails.
 */
static inline uint64_t tag_pack(uint64_t hash, uint32_t rule, uint64_t version)
{
	uint64_t fingerprint = hash << TAG_FINGERPRINT_SHIFT | TAG_USED;

	return (fingerprint ^ tag_of_version(version)) | (uint64_t)rule << TAG_RULE_SHIFT;
}

/*
 * The version that a tag is of, where its rule's is `version`, or was when the tag was read: that
 * one, or a neighbour.
 */
static inline uint64_t tag_version(uint64_t tag, uint64_t version)
{
	return version + 1 - ((version + 1 - tag) & TAG_VERSION);
}

/* The same tag as version 0 would have it, where the rule's version is `version`. */
static inline uint64_t tag_plain(uint64_t tag, uint64_t version)
{
	return tag ^ tag_of_version(tag_version(tag, version));
}

/* Of a plain tag. */
static inline uint64_t tag_fingerprint(uint64_t tag)
{
	return tag >> TAG_FINGERPRINT_SHIFT;
}

static inline uint32_t tag_rule(uint64_t tag)
{
	return (uint32_t)(tag >> TAG_RULE_SHIFT & TAG_RULE_MASK);
}

/* Two plain tags are of one key under one rule, whatever their flags. */
static inline int tag_same_key(uint64_t a, uint64_t b)
{
	return ((a ^ b) & ~TAG_FLAGS) == 0;
}

/*
 * Bytes of a key that an entry of names has room for, when `asked` (1 to SHMLIMIT_KEY_MAX; 0 =
 * none) were asked for.
 */
uint64_t layout_names(uint64_t asked);

/* 8-byte words of an entry: the key and two bytes of its length. */
static inline uint64_t layout_names_words(uint64_t names)
{
	return names == 0 ? 0 : (names + 2 + 7) / 8;
}

/* Where the parts of a table begin, in bytes from its first slot. */
struct layout_parts {
	uint64_t names, size;
};

struct layout_parts layout_parts(uint64_t lines, uint64_t names);

/*
 * Bytes of the region of a size, in a segment of up to this many lines: whole pages. See cells.h.
 */
static inline uint64_t layout_region_bytes(uint64_t lines_max, unsigned size)
{
	return (2 * lines_max * SLOTS_PER_LINE * CELLS_BYTES * cells_tokens(size) + 4095) & ~(uint64_t)4095;
}

/* Where it begins, from the first one's beginning. */
uint64_t layout_region(uint64_t lines_max, unsigned size);

/*
 * Where things begin, in bytes, given a header's counts: lines to names. Returns 0 when these are
 * out of range.
 */
struct layout_offsets {
	uint64_t rules, counters, area, slots, names;
	uint64_t end;  /* of the first table: so much is reserved at once */
	uint64_t size; /* room for all the others too: there the cells begin */
	uint64_t file; /* the end of these */
};

int layout_offsets(const struct layout_header *counts, struct layout_offsets *out);

/* Pieces of a file. */
struct layout_range {
	uint64_t offset, size; /* of the first */
	uint64_t stride;       /* from one to the next */
	uint32_t pieces;
};

/* Where what comes next may begin, after what ends at `end`. */
static inline uint64_t layout_next_page(uint64_t end)
{
	return (end + 4095) & ~(uint64_t)4095;
}

/*
 * From a block of counters to the next: each begins at a page, so that what is unused of it is
 * whole pages.
 */
static inline uint64_t layout_counter_stride(uint32_t rules_max)
{
	return layout_next_page((rules_max + 1u) * (uint64_t)LINE);
}

/*
 * What a list of `rules` rules takes of the records and the counters, which begin at `offset`:
 * whole pages.
 */
static inline struct layout_range layout_records(uint64_t offset, uint32_t rules)
{
	return (struct layout_range){ offset, layout_next_page((uint64_t)rules * sizeof(struct layout_rule)), 0, 1 };
}

static inline struct layout_range layout_counters(uint64_t offset, uint32_t blocks, uint32_t rules_max, uint32_t rules)
{
	return (struct layout_range){ offset, layout_counter_stride(rules), layout_counter_stride(rules_max), blocks };
}

/* Bytes of both, up to the longest list, that such a list leaves unused. */
static inline uint64_t layout_holes(uint32_t blocks, uint32_t rules_max, uint32_t rules)
{
	return layout_records(0, rules_max).size - layout_records(0, rules).size +
	       (layout_counter_stride(rules_max) - layout_counter_stride(rules)) * blocks;
}

/* A number that differs when a differently compiled library would see other bytes. */
uint64_t layout_fingerprint(void);

/* Of the part of the header that never changes. */
uint64_t layout_checksum(const struct layout_header *header);

/*
 * The line of counters of one rule, or (rule < 0) the block's own line, from the first block's
 * beginning.
 */
static inline uint64_t layout_counter_offset(uint64_t stride, uint32_t block, int64_t rule)
{
	return block * stride + (uint64_t)(rule + 1) * LINE;
}

#endif
