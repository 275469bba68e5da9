/*
 * algorithm: see algorithm.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "algorithm.h"
#include "clock.h"
#include "lease.h"
#include "ring.h"
#include "warmup.h"

int algorithm_compile(const struct shmlimit_rule *rule, uint32_t window_max, struct layout_terms *terms)
{
	memset(terms, 0, sizeof(*terms));
	if (rule->algorithm != SHMLIMIT_WARMUP && (rule->warmup_ns != 0 || rule->cold_factor_milli != 0))
		return -EINVAL;
	switch (rule->algorithm) {
	case SHMLIMIT_FUNNEL:
		return (rule->flags & ~SHMLIMIT_NEXT_PAYS) != 0 ? -EINVAL : funnel_compile(rule, terms);
	case SHMLIMIT_WARMUP:
		return warmup_compile(rule, terms);
	case SHMLIMIT_WINDOW:
		return window_compile(rule, window_max, terms);
	case SHMLIMIT_LEASE:
		return lease_compile(rule, terms);
	default:
		return -EINVAL;
	}
}

int algorithm_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity)
{
	struct shmlimit_rule spec = *rule;
	struct layout_terms terms;
	uint64_t refused = SHMLIMIT_CAPACITY_MAX + 1;
	int error;

	if (rule->algorithm == SHMLIMIT_WARMUP)
		return -EINVAL;
	if (rule->algorithm == SHMLIMIT_WINDOW)
		spec.count = 0; /* or it must be the capacity */
	*capacity = spec.capacity = 1;
	error = algorithm_compile(&spec, SHMLIMIT_WINDOW_MAX, &terms);
	if (error != 0)
		return error;
	/* BOUND: it is halved 48 times. What a larger capacity needs is more of the same. */
	while (refused - *capacity > 1) {
		spec.capacity = *capacity + (refused - *capacity) / 2;
		if (algorithm_compile(&spec, SHMLIMIT_WINDOW_MAX, &terms) == 0)
			*capacity = spec.capacity;
		else
			refused = spec.capacity;
	}
	return 0;
}

void algorithm_rule(const struct layout_terms *terms, struct shmlimit_rule *out)
{
	out->algorithm = terms_algorithm(terms);
	out->flags = terms_flags(terms);
	out->capacity = terms->capacity;
	out->count = terms->count;
	out->period_ns = terms->period_ns;
	out->max_wait_ns = terms->max_wait_ns;
	if (out->algorithm != SHMLIMIT_WARMUP)
		return;
	out->capacity = warmup_tokens(terms, terms->capacity);
	out->warmup_ns = terms->warmup_ns;
	out->cold_factor_milli = terms_cold_factor_milli(terms);
}

void algorithm_range(const struct layout_terms *terms, struct shmlimit_range *out)
{
	switch (terms_algorithm(terms)) {
	case SHMLIMIT_WINDOW:
		window_range(terms, out);
		break;
	case SHMLIMIT_LEASE:
		lease_range(terms, out);
		break;
	default:
		funnel_range(terms, out);
	}
}

uint64_t algorithm_wait(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                        const struct layout_terms *terms, uint64_t word, struct funnel_time at, int given)
{
	struct lease lease;
	struct ring ring;

	switch (terms_algorithm(terms)) {
	case SHMLIMIT_WINDOW:
		ring = ring_read(l, t, slot, terms, word, at.now_ns);
		if (!ring.complete && !given) {
			at.now_ns = clock_read(l->clock_id);
			ring = ring_read(l, t, slot, terms, word, at.now_ns);
		}
		return ring.valid == 0 ? 0 : window_wait(terms, ring.w.last_ns, at.now_ns);
	case SHMLIMIT_WARMUP:
		return warmup_ns_until_full(terms, warmup_leak(terms, word, at), at);
	case SHMLIMIT_LEASE:
		lease = lease_read(terms, word, at.now_ns);
		return lease_wait(&lease);
	default:
		return funnel_ns_until(terms, funnel_leak(terms, word, at), terms->capacity, at);
	}
}

uint64_t algorithm_idle_ns(const struct shmlimit *l, const struct layout_terms *terms, uint64_t word,
                           struct funnel_time at)
{
	uint64_t age;

	switch (terms_algorithm(terms)) {
	case SHMLIMIT_WINDOW:
		age = l->window_max == 0 ? 0 : at.now_ns - window_unpack(terms, word, l->window_max, at.now_ns).last_ns;
		return (int64_t)age < 0 ? 0 : age;
	case SHMLIMIT_LEASE:
		age = at.now_ns - lease_read(terms, word, at.now_ns).until_ns;
		return age & UINT64_MAX >> LEASE_TIME_SHIFT;
	default:
		age = at.stamp - (word & ~(((uint64_t)1 << terms_quota_bits(terms)) - 1));
		return age > terms->back ? 0 : funnel_stamp_to_ns(terms, at, age);
	}
}

uint64_t algorithm_convert(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                           const struct layout_terms *from, uint64_t word, const struct layout_terms *to,
                           uint64_t now_ns)
{
	struct ring ring;

	switch (terms_algorithm(to)) {
	case SHMLIMIT_WINDOW:
		/* The cells stay as they are. */
		ring = ring_read(l, t, slot, from, word, now_ns);
		/* An admission that left the window long ago has no time that the word could tell. */
		if (window_wait(to, ring.w.last_ns, now_ns) == 0)
			ring = ring_empty(now_ns);
		return window_pack(to, ring.w);
	case SHMLIMIT_WARMUP:
		return warmup_convert(from, word, to, now_ns);
	case SHMLIMIT_LEASE:
		return lease_convert(from, word, to);
	default:
		return funnel_convert(from, word, to, now_ns);
	}
}

const char *algorithm_fault(const struct layout_terms *terms, uint64_t word, uint32_t window_max)
{
	uint64_t low = word & (((uint64_t)1 << terms_quota_bits(terms)) - 1), n;

	if (terms_algorithm(terms) == SHMLIMIT_LEASE && (word >> terms_quota_bits(terms) & 3) > LEASE_ASKED)
		return "a state that no lease has";
	if (terms_algorithm(terms) != SHMLIMIT_WINDOW)
		return low > terms->capacity ? "more tokens than its rule's capacity" : NULL;
	n = low & (((uint64_t)1 << terms_cell_bits(terms)) - 1);
	if (n >= 2 * layout_cells(window_max))
		return "a place beyond its ring";
	if (low >> terms_cell_bits(terms) >= window_max ||
	    (n < layout_cells(window_max) && low >> terms_cell_bits(terms) >= n && n != 0))
		return "more tokens taken last than its ring holds";
	return NULL;
}

const char *algorithm_mend(const struct layout_terms *terms, uint64_t word, uint32_t window_max, uint64_t *mended)
{
	uint64_t mask = ((uint64_t)1 << terms_quota_bits(terms)) - 1;
	struct window w;

	*mended = 0;
	switch (terms_algorithm(terms)) {
	case SHMLIMIT_LEASE:
		return NULL;
	case SHMLIMIT_WINDOW:
		if (window_max == 0)
			return NULL;
		/* The time is kept as it is, and so is where the ring ends, if it does. */
		w = window_unpack(terms, word, window_max, 0);
		if (w.n != 0 && w.n < layout_cells(window_max) && w.k > w.n)
			w.k = w.n;
		*mended = (word & ~mask) | (w.k - 1) << terms_cell_bits(terms) | w.n;
		return "set to what its ring holds, as it counted";
	default:
		*mended = (word & ~mask) | terms->capacity;
		return "set to the capacity, as it counted";
	}
}
