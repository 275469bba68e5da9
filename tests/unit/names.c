/*
 * names: the keys that are stored beside their slots (I5, I7): the key that is shown is the slot's, whatever bytes the
 * store has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "generation.h"
#include "limiter.h"
#include "stored_key.h"
#include "unit.h"

#define T0 (100 * SECOND)
#define NAMES 30

static struct shmlimit *l;
static int rule;

/* The only live slot there is of the rule. */
static uint64_t live(struct shmlimit_slot *slot)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(l, &info);
	for (uint64_t i = 0; i < info.slots + info.old_slots; i++) {
		*slot = (struct shmlimit_slot){ .struct_size = sizeof(*slot) };
		if (shmlimit_slot(l, i, slot, T0) == 0 && slot->state == SHMLIMIT_SLOT_LIVE && slot->rule == rule)
			return i;
	}
	bail("no slot is live");
}

/* What is shown of the one live slot's key, "?" if it is not known. */
static const char *shown(size_t *key_len)
{
	static char key[SHMLIMIT_KEY_MAX + 1];
	struct shmlimit_slot slot;
	uint64_t index = live(&slot);
	int n = shmlimit_slot_key(l, index, &slot, key, SHMLIMIT_KEY_MAX, key_len);

	if (n <= 0)
		return n == 0 ? "?" : "error";
	key[n] = '\0';
	return key;
}

static void take(const char *key, size_t key_len)
{
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	if (shmlimit_take(at_time(l, T0), rule, key, key_len, 1, NULL) != SHMLIMIT_ALLOWED)
		bail("a new key is denied");
}

static uint64_t *entry(void)
{
	struct shmlimit_slot slot;

	return (uint64_t *)(void *)((unsigned char *)l->tables->slots + table_parts(l, l->tables).names) +
	       live(&slot) * layout_names_words(l->names_max);
}

static struct shmlimit *create(uint32_t names)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .store_keys = names };

	return unit_create("names", &options);
}

static void sizes(void)
{
	static const uint32_t asked[] = { 0, 1, 14, 15, 22, 23, 62, 1022, 1023, 1024 };
	static const uint32_t kept[] = { 0, 14, 14, 22, 22, 30, 62, 1022, 1024, 1024 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t none = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		l = create(asked[i]);
		shmlimit_info(l, &info);
		is(info.store_keys, kept[i], "a segment made for %u bytes of a key keeps %u", asked[i], kept[i]);
		none = i == 0 ? info.size : none;
		is(info.size - none, 64 * (kept[i] == 0 ? 0 : (kept[i] + 9) / 8 * 8),
		   "a segment has no more room for keys than was asked for");
		is(shmlimit_verify(unit_name, NULL, 0), 0, "such a segment is sound");
		shmlimit_close(l);
	}
}

static void keys(void)
{
	char longest[SHMLIMIT_KEY_MAX];
	size_t key_len = 0, bad = 0;

	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = (char)('a' + i % 26);
	for (size_t n = 1; n <= sizeof(longest); n++) {
		size_t kept = n <= NAMES ? n : NAMES - 8;
		const char *key;

		take(longest, n);
		key = shown(&key_len);
		bad += strlen(key) != kept || memcmp(key, longest, kept) != 0 || key_len != n;
	}
	is(bad, 0, "a key of 1 to 1024 bytes is shown, a longer one than is kept by its beginning and its length");
	take("a\0b", 3);
	shown(&key_len);
	is(key_len, 3, "a NUL is a byte like others");
}

static void verbs(void)
{
	struct shmlimit_rule w = {
		.struct_size = sizeof(w), .algorithm = SHMLIMIT_WINDOW, .capacity = 3, .period_ns = 1000 * SECOND
	};
	struct shmlimit_rule leased = { .struct_size = sizeof(leased),
		                        .algorithm = SHMLIMIT_LEASE,
		                        .capacity = 3,
		                        .refill = 1,
		                        .period_ns = 1000 * SECOND };
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_request request = { .rule = rule, .key = "many", .key_len = 4, .cost = 1 };
	int64_t reply[5];
	int funnel = rule, answer;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_take_many(at_time(l, T0), &request, 1, &answer, NULL);
	is_str(shown(NULL), "many", "take_many names what it claims");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	request.key = "all";
	request.key_len = 3;
	shmlimit_take_all(at_time(l, T0), &request, 1, NULL, NULL);
	is_str(shown(NULL), "all", "take_all does");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_charge(at_time(l, T0), rule, "charge", 6, 1, NULL);
	is_str(shown(NULL), "charge", "charge does");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	rule = shmlimit_rule_set(at_time(l, T0), "w", &w);
	shmlimit_take(at_time(l, T0), rule, "window", 6, 1, NULL);
	is_str(shown(NULL), "window", "a window has a name");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	rule = shmlimit_rule_set(at_time(l, T0), "leased", &leased);
	shmlimit_lease_take(at_time(l, T0), rule, "lease", 5,
	                    &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                      .cost = 1,
	                                                      .lease_ns = SECOND,
	                                                      .claim_ns = SECOND },
	                    &lease, NULL);
	is_str(shown(NULL), "lease", "a lease has one");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	shmlimit_throttle(l, "throttle", 8, 5, 1, 1000000, 1, reply);
	rule = shmlimit_rule_find(l, "~throttle");
	is_str(shown(NULL), "throttle", "throttle names, too");
	rule = funnel;
}

/* No stored text is trusted. */
static void lies(void)
{
	static char longer[NAMES + 1];
	struct shmlimit_slot slot;
	uint64_t *words, kept[4], n = sizeof(kept) / sizeof(kept[0]);
	size_t shown_wrong = 0;

	take("alice", 5);
	words = entry();
	memcpy(kept, words, sizeof(kept));
	for (unsigned bit = 0; bit < 16 + 5 * 8; bit++) {
		words[bit / 64] ^= (uint64_t)1 << bit % 64;
		shown_wrong += strcmp(shown(NULL), "?") != 0;
		words[bit / 64] ^= (uint64_t)1 << bit % 64;
	}
	is(shown_wrong, 0, "a key of which one bit is wrong is not shown");
	is_str(shown(NULL), "alice", "the right one is");

	live(&slot);
	stored_key_write(l, l->tables, &l->tables->slots[live(&slot)], 0, key_bytes("mallory", 7));
	is_str(shown(NULL), "?", "a stored name of another key is not shown");
	memset(words, 0xff, sizeof(kept));
	is_str(shown(NULL), "?", "a stored length beyond the longest key shows nothing");
	memset(words, 0, sizeof(kept));
	is_str(shown(NULL), "?", "a stored length of 0 shows nothing");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "none of which is damage");

	memset(longer, 'x', sizeof(longer));
	take(longer, sizeof(longer));
	words = entry();
	memcpy(kept, words, sizeof(kept));
	for (unsigned bit = 0; bit < n * 64; bit++) {
		words[bit / 64] ^= (uint64_t)1 << bit % 64;
		shown_wrong += strcmp(shown(NULL), "?") != 0;
		words[bit / 64] ^= (uint64_t)1 << bit % 64;
	}
	is(shown_wrong, 0,
	   "the beginning of a longer key, with one bit of it, its length or its seal wrong, is not shown");
	is(strlen(shown(NULL)), NAMES - 8, "the right one is");
	take("bob", 3);
	memcpy(entry(), kept, sizeof(kept));
	is_str(shown(NULL), "?", "the beginning of another's key is not this slot's");
}

static void arguments(void)
{
	struct shmlimit_slot slot, free_slot = { .struct_size = sizeof(free_slot), .rule = -1 };
	struct shmlimit *unnamed;
	char key[SHMLIMIT_KEY_MAX];
	uint64_t index;

	take("alice", 5);
	index = live(&slot);
	is(shmlimit_slot_key(NULL, index, &slot, key, sizeof(key), NULL), -EINVAL, "no limiter");
	is(shmlimit_slot_key(l, 64, &slot, key, sizeof(key), NULL), -EINVAL, "no such slot");
	is(shmlimit_slot_key(l, index, NULL, key, sizeof(key), NULL), -EINVAL, "nothing seen there");
	is(shmlimit_slot_key(l, index, &slot, NULL, sizeof(key), NULL), -EINVAL, "no room at all");
	is(shmlimit_slot_key(l, index, &slot, key, 4, NULL), -ENOBUFS, "too little of it");
	is(shmlimit_slot_key(l, index, &slot, key, 5, NULL), 5, "just enough");
	is(shmlimit_slot_key(l, index, &free_slot, key, sizeof(key), NULL), 0, "a free slot has no key");
	slot.fingerprint ^= 2;
	is(shmlimit_slot_key(l, index, &slot, key, sizeof(key), NULL), 0,
	   "what was another key's is not known any more");
	slot.fingerprint ^= 2;
	slot.rule++;
	is(shmlimit_slot_key(l, index, &slot, key, sizeof(key), NULL), 0,
	   "a name stored under another rule is not shown");
	slot.rule = INT32_MAX;
	is(shmlimit_slot_key(l, index, &slot, key, sizeof(key), NULL), -EINVAL,
	   "shmlimit_slot_key() needs a rule that exists");
	shmlimit_close(l);
	l = unnamed = create(0);
	rule = unit_rule(l, "r", 5, 1, 1000000 * SECOND);
	take("alice", 5);
	is_str(shown(NULL), "?", "a segment that keeps no keys shows none");
	shmlimit_close(unnamed);
}

/* A key that migrates keeps its stored text, and introspection shows it once. */
static void grows(void)
{
	const char *beginning = "a key of which there is more than is kept of it, and that is much";
	size_t key_len;

	l = create(NAMES);
	rule = unit_rule(l, "r", 5, 1, 1000000 * SECOND);
	take("alice", 5);
	is(shmlimit_grow(at_time(l, T0), 128), 0, "the table grows");
	is_str(shown(NULL), "alice", "a key that has not moved is shown as it was");
	if (shmlimit_take(at_time(l, T0), rule, "alice", 5, 1, NULL) != SHMLIMIT_ALLOWED)
		bail("denied");
	ok(strcmp(shown(&key_len), "alice") == 0 && key_len == 5, "a key that moved has its name");
	take(beginning, strlen(beginning));
	is(shmlimit_grow(at_time(l, T0), 256), 0, "it grows again");
	if (shmlimit_take(at_time(l, T0), rule, beginning, strlen(beginning), 1, NULL) != SHMLIMIT_ALLOWED)
		bail("denied");
	ok(strncmp(shown(&key_len), beginning, strlen(shown(NULL))) == 0 && key_len == strlen(beginning),
	   "a key's beginning moves with it when the table grows again");
	shmlimit_close(l);
}

int main(void)
{
	sizes();
	l = create(NAMES);
	rule = unit_rule(l, "r", 5, 1, 1000000 * SECOND);
	keys();
	verbs();
	lies();
	arguments();
	grows();
	return tap_done();
}
