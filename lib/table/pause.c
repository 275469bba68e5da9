/*
 * pause: see pause.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "algorithm.h"
#include "pause.h"
#include "table.h"

int pause_key_make(const struct shmlimit *l, uint32_t rule, uint64_t published, struct key_bytes key,
                   struct pause_key *out)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct rule_view view;
	size_t len;

	if (rule_read(l, rule, &view, name) != 0 || view.published != published)
		return 0;
	/* No rule's name has a blank, so no two pairs have one key. */
	len = strlen(name);
	memcpy(out->bytes, name, len);
	out->bytes[len] = ' ';
	memcpy(out->bytes + len + 1, key.bytes, key.len);
	out->len = len + 1 + key.len;
	return 1;
}

int pause_mark(const struct shmlimit *l, uint32_t rule, uint64_t published, uint64_t end_ns, uint64_t now_ns)
{
	uint64_t *word = &l->rules[rule].published, paused = paused_until(end_ns);

	/*
	 * BOUND: a round fails only if another process swapped the word; the caller begins again
	 * after as many.
	 */
	for (int i = 0; i < RULE_RETRIES; i++) {
		uint64_t now = load_acquire(word);

		if (!published_in_use(now) || published_version(now) != published_version(published))
			return 0;
		if (paused_ahead(published_paused(now), now_ns) >= paused_ahead(paused, now_ns) ||
		    word_cas(word, now, (now & ~PUBLISHED_PAUSED) | paused))
			return 1;
	}
	return 0;
}

/* The longest time of those in a table. */
static uint64_t longest_in(const struct shmlimit *l, const struct table *t, uint32_t rule, uint64_t now_ns)
{
	uint64_t longest_ns = 0, wait_ns;

	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		struct slot_seen seen = slot_read(&t->slots[i]);
		struct rule_view view;
		struct look k;

		if ((seen.tag & ~TAG_FROZEN) == 0 || tag_rule(seen.tag) != rule ||
		    rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0 ||
		    params_algorithm(&view.params) != SHMLIMIT_COUNTER)
			continue;
		k = look_make(l, t, &t->slots[i], &view.params, when_given(now_ns));
		wait_ns = algorithm_wait(&k, seen.word);
		if (wait_ns > longest_ns)
			longest_ns = wait_ns;
	}
	return longest_ns;
}

uint64_t pause_last(const struct shmlimit *l, uint64_t now_ns)
{
	uint64_t in_old, in_new, longest_ns;
	int rule = rule_find(l, PAUSE_RULE);
	struct generation tables;

	if (rule < 0)
		return 0;
	generation_read(l, &tables);
	/* The old table first: a key moves to the new one. */
	in_old = longest_in(l, &tables.old, (uint32_t)rule, now_ns);
	in_new = longest_in(l, &tables.now, (uint32_t)rule, now_ns);
	longest_ns = in_old > in_new ? in_old : in_new;
	if (longest_ns == 0)
		return 0;
	return paused_until(now_ns + (longest_ns < PAUSE_MAX_NS ? longest_ns : PAUSE_MAX_NS));
}

void pause_resume(const struct shmlimit *l, uint64_t now_ns)
{
	uint64_t paused = pause_last(l, now_ns);
	int own = rule_find(l, PAUSE_RULE);

	for (uint32_t id = 0, rules = rule_count(l); id < rules && paused != 0; id++)
		if ((int)id != own && published_in_use(load_acquire(&l->rules[id].published)))
			set_bits(&l->rules[id].published, paused);
}
