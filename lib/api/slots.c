/*
 * slots: the slots of the table and their keys, for introspection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "algorithm.h"
#include "export.h"
#include "generation.h"
#include "rule.h"
#include "sized.h"
#include "stored_key.h"
#include "sweep.h"

static void describe_slot(const struct shmlimit *l, const struct table_slot *here, struct when when, int old,
                          struct shmlimit_slot *out)
{
	const struct algorithm *a;
	struct rule_view view;
	struct balance b;
	uint64_t tag = here->seen.tag;
	struct look k;

	out->rule = -1;
	out->fingerprint = 0;
	if (tag == 0) {
		out->state = SHMLIMIT_SLOT_FREE;
		return;
	}
	out->fingerprint = tag_fingerprint(rule_plain(l, tag));
	if (tag & TAG_TENTATIVE) {
		out->state = SHMLIMIT_SLOT_TENTATIVE;
		return;
	}
	if (rule_load_tag(l, tag, &view) != 0) {
		out->state = SHMLIMIT_SLOT_STALE;
		return;
	}
	out->rule = (int32_t)tag_rule(tag);
	a = algorithm_of(&view.params);
	k = look_make(l, here->t, here->slot, &view.params, when);
	a->read(&k, here->seen.word, &b);
	if (sweep_is_over(l, here, when)) {
		k.slot = NULL;
		a->none(&k, &b);
	}
	/* What stays in the old table has expired there. */
	if (!old || !a->stays)
		a->show(&k, &b, out);
	out->state = out->reset_after_ns == 0 ? SHMLIMIT_SLOT_REFILLED : SHMLIMIT_SLOT_LIVE;
}

EXPORT int shmlimit_slot(struct shmlimit *l, uint64_t index, struct shmlimit_slot *out, uint64_t now_ns)
{
	struct shmlimit_slot slot = { 0 };
	struct generation tables;
	struct table_slot here;

	if (l == NULL)
		return -EINVAL;
	generation_read(l, &tables);
	here.slot = generation_slot(&tables, index, &here.t);
	if (here.slot == NULL)
		return -EINVAL;
	/* BOUND: a slot that changes under every look is shown as one of the things that it was. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		here.seen = slot_read(here.slot);
		if (slot_unchanged(here.slot, here.seen))
			break;
	}
	/*
	 * In the old table it makes no difference that a slot is frozen, except for those that were
	 * being claimed.
	 */
	if (here.t == &tables.old && (here.seen.tag & TAG_FROZEN) != 0)
		here.seen.tag = (here.seen.tag & TAG_TENTATIVE) != 0 ? 0 : here.seen.tag & ~TAG_FROZEN;
	describe_slot(l, &here, when_given(now_ns), here.t == &tables.old, &slot);
	return sized_out(out, &slot, sizeof(slot));
}

EXPORT int shmlimit_slot_key(struct shmlimit *l, uint64_t index, const struct shmlimit_slot *slot, void *key,
                             size_t size, size_t *key_len)
{
	unsigned char bytes[SHMLIMIT_KEY_MAX];
	struct shmlimit_slot asked;
	struct layout_slot *there;
	const struct table *t;
	struct generation tables;
	size_t kept, length;

	if (l == NULL || key == NULL)
		return -EINVAL;
	generation_read(l, &tables);
	there = generation_slot(&tables, index, &t);
	if (there == NULL)
		return -EINVAL;
	if (sized_in(&asked, slot, sizeof(asked)) != 0 || asked.rule >= SHMLIMIT_RULES_MAX)
		return -EINVAL;
	if (l->names_max == 0 || asked.rule < 0)
		return 0;
	kept = stored_key_read(l, t, there, tag_pack(asked.fingerprint, (uint32_t)asked.rule, 0), bytes, &length);
	if (kept > size)
		return -ENOBUFS;
	if (kept == 0)
		return 0;
	memcpy(key, bytes, kept);
	if (key_len != NULL)
		*key_len = length;
	return (int)kept;
}
