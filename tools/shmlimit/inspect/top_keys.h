/*
 * top_keys.h: the live slots that matter most, and how all slots are used.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

#include "command.h"
#include "key_text.h"

/* What comes first. */
enum top_keys_order {
	TOP_KEYS_BY_RESET,     /* the longest time to full */
	TOP_KEYS_BY_DENIAL,    /* the deepest in denial, then the nearest to it */
	TOP_KEYS_BY_NEAR,      /* the nearest to denial, then those that are denied */
	TOP_KEYS_BY_DEBT,      /* the largest debt */
	TOP_KEYS_BY_REMAINING, /* the fewest whole tokens */
};

/* What shmlimit_slot() said of a slot, small enough for a million of them. */
struct top_key {
	uint64_t index, fingerprint;
	uint64_t remaining, debt_ns, reset_after_ns;
	int32_t rule;
	uint32_t share; /* of the capacity that is left, 2^-32ths; 0: denied now */
	uint32_t lease; /* what it says, of a LEASE rule; else 0 */
	/* of a rule with a law: places there may be now, or 0; and how many wait, in thousandths */
	uint32_t number, queue_milli;
	uint64_t base_ns;
};

struct top_keys {
	uint64_t limit;       /* how many to keep, or to visit */
	int rule;             /* of this rule only; -1: of all */
	uint64_t fingerprint; /* with this one only; 0: of all */
	int denied;           /* those only that would be denied one token */
	const char *match;    /* those only whose key, as it is shown, matches this pattern; NULL: all */
	enum top_keys_order order;
	/* Not NULL: is given each slot in the table's order, and none is kept. A status. */
	int (*visit)(void *context, const struct top_key *slot);
	void *context;
	struct top_key *busiest; /* by rule, of keys with a number, live or not, the one that holds most; or NULL */
	uint64_t states[SHMLIMIT_SLOT_STALE + 1];
	uint64_t found; /* live slots that these choose */
	size_t count;   /* kept */
	struct top_key *slot;
	size_t room;
};

/* Does a come before b? Less than 0: yes. No two slots are equal. */
int top_key_compare(enum top_keys_order order, const struct top_key *a, const struct top_key *b);

/*
 * Look at slots `first` to `first` + n - 1, as they are now, and put them in order with those that
 * are kept already. A key that these have twice, since it migrates or the process that copied it
 * was killed, is listed once: as it is in the new table. Returns a status; keys->slot is the
 * caller's to free in any case.
 */
int top_keys_scan(struct shmlimit *limiter, uint64_t first, uint64_t n, struct top_keys *keys);

/*
 * The key of a slot: returns how many bytes of it are kept, 0 if it is not known, and its whole
 * length.
 */
size_t top_key_bytes(unsigned char key[SHMLIMIT_KEY_MAX], struct shmlimit *limiter, const struct top_key *seen,
                     size_t *key_len);
/* The same for people, or NULL if it is not known. */
const char *top_key_show(char text[KEY_TEXT_LEN], struct shmlimit *limiter, const struct top_key *seen);

#endif
