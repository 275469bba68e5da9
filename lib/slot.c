/*
 * slot: one place of the table, for those who look in.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "funnel.h"
#include "rule.h"
#include "sized.h"

static void describe(const struct shmlimit *l, struct slot_seen seen, uint64_t now_ns, struct shmlimit_slot *out)
{
	struct rule_view view;
	struct funnel_time at;
	struct funnel funnel;

	out->rule = -1;
	out->fingerprint = tag_fingerprint(seen.tag);
	if (seen.tag == 0) {
		out->state = SHMLIMIT_SLOT_FREE;
		return;
	}
	if (seen.tag & TAG_TENTATIVE) {
		out->state = SHMLIMIT_SLOT_TENTATIVE;
		return;
	}
	if (rule_load_tag(l, seen.tag, &view) != 0) {
		out->state = SHMLIMIT_SLOT_STALE;
		return;
	}
	at = funnel_time(&view.terms, now_ns);
	funnel = funnel_leak(&view.terms, seen.word, at);
	out->rule = (int32_t)tag_rule(seen.tag);
	out->remaining = funnel.quota;
	out->debt_ns = funnel_stamp_to_ns(&view.terms, at, funnel_debt(&view.terms, funnel, at));
	out->reset_after_ns = funnel_ns_until(&view.terms, funnel, view.terms.capacity, at);
	out->state = funnel_is_full(&view.terms, funnel) ? SHMLIMIT_SLOT_REFILLED : SHMLIMIT_SLOT_LIVE;
}

EXPORT int shmlimit_slot(struct shmlimit *l, uint64_t index, uint64_t now_ns, struct shmlimit_slot *out)
{
	struct shmlimit_slot slot = { 0 };
	struct slot_seen seen;

	if (l == NULL || index >= l->lines * SLOTS_PER_LINE)
		return -EINVAL;
	/* BOUND: a slot that changes under every look is at least shown as one of the things it was. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		seen = slot_read(&l->slots[index]);
		if (slot_unchanged(&l->slots[index], seen))
			break;
	}
	describe(l, seen, now_ns, &slot);
	return sized_out(out, &slot, sizeof(slot));
}
