/*
 * slot: one place of the table, for those who look in.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "generation.h"
#include "lease.h"
#include "ring.h"
#include "rule.h"
#include "sized.h"
#include "warmup.h"

static void describe_funnel(const struct layout_terms *terms, struct funnel funnel, struct funnel_time at,
                            uint64_t debt, struct shmlimit_slot *out)
{
	out->remaining = funnel.quota;
	out->debt_ns = funnel_stamp_to_ns(terms, at, debt);
	out->reset_after_ns = funnel_ns_until(terms, funnel, terms->capacity, at);
}

static void describe_window(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                            const struct layout_terms *terms, uint64_t word, uint64_t now_ns,
                            struct shmlimit_slot *out)
{
	struct ring ring = ring_read(l, t, slot, terms, word, now_ns);

	out->remaining = terms->capacity - ring_used(l, t, slot, terms, &ring, 0, now_ns);
	if (ring.valid == 0)
		return;
	out->reset_after_ns = window_wait(terms, ring.w.last_ns, now_ns);
	if ((int64_t)(ring.w.last_ns - now_ns) > 0)
		out->debt_ns = ring.w.last_ns - now_ns;
}

static void describe_lease(const struct layout_terms *terms, uint64_t word, uint64_t now_ns,
                           struct shmlimit_slot *out)
{
	static const uint32_t states[] = { SHMLIMIT_SLOT_TOKENS, SHMLIMIT_SLOT_DENIED, SHMLIMIT_SLOT_ASKED };
	struct lease lease = lease_read(terms, word, now_ns);

	out->remaining = lease_held(&lease);
	out->reset_after_ns = lease_wait(&lease);
	if (out->reset_after_ns != 0)
		out->lease = states[lease.state];
}

static void describe(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                     struct slot_seen seen, uint64_t now_ns, int old, struct shmlimit_slot *out)
{
	struct rule_view view;
	struct funnel_time at;
	struct funnel funnel;

	out->rule = -1;
	out->fingerprint = 0;
	if (seen.tag == 0) {
		out->state = SHMLIMIT_SLOT_FREE;
		return;
	}
	out->fingerprint = tag_fingerprint(rule_plain(l, seen.tag));
	if (seen.tag & TAG_TENTATIVE) {
		out->state = SHMLIMIT_SLOT_TENTATIVE;
		return;
	}
	if (rule_load_tag(l, seen.tag, &view) != 0) {
		out->state = SHMLIMIT_SLOT_STALE;
		return;
	}
	out->rule = (int32_t)tag_rule(seen.tag);
	switch (terms_algorithm(&view.terms)) {
	case SHMLIMIT_WINDOW:
		describe_window(l, t, slot, &view.terms, seen.word, now_ns, out);
		break;
	case SHMLIMIT_WARMUP:
		at = funnel_time(&view.terms, now_ns);
		funnel = warmup_leak(&view.terms, seen.word, at);
		describe_funnel(&view.terms, funnel, at, warmup_debt(&view.terms, funnel, at), out);
		out->remaining = warmup_tokens(&view.terms, funnel.quota);
		out->reset_after_ns = warmup_ns_until_full(&view.terms, funnel, at);
		break;
	case SHMLIMIT_LEASE:
		/* Leases do not move: those in the old table have expired. */
		if (!old)
			describe_lease(&view.terms, seen.word, now_ns, out);
		break;
	default:
		at = funnel_time(&view.terms, now_ns);
		funnel = funnel_leak(&view.terms, seen.word, at);
		describe_funnel(&view.terms, funnel, at, funnel_debt(&view.terms, funnel, at), out);
	}
	out->state = out->reset_after_ns == 0 ? SHMLIMIT_SLOT_REFILLED : SHMLIMIT_SLOT_LIVE;
}

EXPORT int shmlimit_slot(struct shmlimit *l, uint64_t index, uint64_t now_ns, struct shmlimit_slot *out)
{
	struct shmlimit_slot slot = { 0 };
	struct generation tables;
	struct layout_slot *there;
	const struct table *t;
	struct slot_seen seen;

	if (l == NULL)
		return -EINVAL;
	generation_read(l, &tables);
	there = generation_slot(&tables, index, &t);
	if (there == NULL)
		return -EINVAL;
	/* BOUND: a slot that changes under every look is at least shown as one of the things it was. */
	for (int i = 0; i < RULE_RETRIES; i++) {
		seen = slot_read(there);
		if (slot_unchanged(there, seen))
			break;
	}
	/* In the old table it makes no difference that a slot is frozen, but for those that were being claimed. */
	if (t == &tables.old && (seen.tag & TAG_FROZEN) != 0)
		seen.tag = (seen.tag & TAG_TENTATIVE) != 0 ? 0 : seen.tag & ~TAG_FROZEN;
	describe(l, t, there, seen, now_ns, t == &tables.old, &slot);
	return sized_out(out, &slot, sizeof(slot));
}
