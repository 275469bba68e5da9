/*
 * Laws of lib/segment/layout.h and layout.c, and of where lib/table/table.h looks for a key:
 * tags, words of rules, offsets. For all inputs but where a law assumes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/base/hash.c"
#include "../../../lib/segment/layout.c"
#include "law.h"

/* a tag gives back rule, version and fingerprint, and is never that of a free slot */
int law_tag(uint64_t hash, unsigned rule, uint64_t version)
{
	uint64_t tag = tag_pack(hash, rule, version), mask = ((uint64_t)1 << 48) - 1;

	assume(rule < SHMLIMIT_RULES_MAX);
	return tag != 0 && tag_rule(tag) == rule && (tag & TAG_VERSION) == version % RULE_VERSIONS &&
	       (tag & (TAG_TENTATIVE | TAG_FROZEN)) == 0 &&
	       tag_fingerprint(tag_plain(tag, version)) == ((hash & mask) | 1);
}

/* ... with a rule beyond the last */
int false_tag(uint64_t hash, unsigned rule)
{
	return tag_rule(tag_pack(hash, rule, 0)) == rule;
}

/* the version before, the two before it and the next know the tag as theirs; no two versions have the same one */
int law_tag_version(uint64_t hash, unsigned rule, uint64_t version, uint64_t other)
{
	uint64_t tag = tag_pack(hash, rule, version), low = ((uint64_t)1 << 49) - 1;

	assume(rule < SHMLIMIT_RULES_MAX);
	return tag_version(tag, version - 1) == version && tag_version(tag, version) == version &&
	       tag_version(tag, version + 1) == version && tag_version(tag, version + 2) == version &&
	       ((version & low) == (other & low)) == (tag == tag_pack(hash, rule, other));
}

/* ... nor does the version after those */
int false_tag_version(uint64_t hash, unsigned rule, uint64_t version)
{
	assume(rule < SHMLIMIT_RULES_MAX);
	return tag_version(tag_pack(hash, rule, version), version + 3) == version;
}

/* two tags are of one key where fingerprint and rule are the same, whatever version and flags are */
int law_same_key(uint64_t a, uint64_t b)
{
	return tag_same_key(a, b) == (tag_fingerprint(a) == tag_fingerprint(b) && tag_rule(a) == tag_rule(b));
}

/* ... or the whole tag */
int false_same_key(uint64_t a, uint64_t b)
{
	return tag_same_key(a, b) == (a == b);
}

/* the word that is published gives back version, mode, whether it is in use, and what it says of pauses */
int law_published(uint64_t version, unsigned mode, unsigned in_use, uint64_t paused)
{
	uint64_t word = published_pack(version, mode, in_use != 0);

	assume(version < (uint64_t)1 << 33 && mode <= 3 && published_paused(paused) == paused);
	return published_paused(word) == 0 && published_version(word | paused) == version &&
	       published_mode(word | paused) == mode && published_in_use(word | paused) == (in_use != 0) &&
	       published_paused(word | paused) == paused;
}

/* a first try decides under a rule that is on, and has no pauses */
int law_in_force(uint64_t word)
{
	return published_in_force(word) == (published_is_on(word) && published_paused(word) == 0);
}

/* ... of a fifth mode */
int false_published(uint64_t version, unsigned mode)
{
	assume(version < (uint64_t)1 << 33 && mode <= 4);
	return published_mode(published_pack(version, mode, 1)) == mode;
}

/* a rule's shape gives back its numbers */
int law_shape(unsigned quota_bits, unsigned token_bits, unsigned algorithm, unsigned shift, unsigned extra)
{
	struct layout_params t = { 0 };

	assume(quota_bits < 64 && token_bits < 64 && algorithm < 256 && shift < 128 && extra < 64);
	t.shape = params_shape(quota_bits, token_bits, algorithm, shift);
	params_set_extra(&t, extra);
	return params_quota_bits(&t) == quota_bits && params_token_bits(&t) == token_bits &&
	       params_algorithm(&t) == algorithm && params_inverse_shift(&t) == shift && params_unit_bits(&t) == extra;
}

/* ... with 7 bits of a token */
int false_shape(unsigned token_bits)
{
	struct layout_params t = { .shape = params_shape(1, token_bits & 127, 0, 0) };

	return params_token_bits(&t) == (token_bits & 127);
}

static struct layout_header counts_of(uint64_t lines, uint64_t lines_max, unsigned rules, unsigned cpus,
                                      unsigned stripes)
{
	return (struct layout_header){ .lines = lines,
		                       .lines_max = lines_max,
		                       .rules = rules,
		                       .rules_max = rules,
		                       .cpus = cpus,
		                       .stripes = stripes };
}

/* whatever counts are not refused: parts follow one another, on their lines, and the sum is far from 2^64 */
int law_offsets(uint64_t lines, uint64_t lines_max, uint64_t names, unsigned rules, unsigned cpus, unsigned stripes)
{
	struct layout_header counts = counts_of(lines, lines_max, rules, cpus, stripes);
	struct layout_offsets o = { 0 };

	counts.names = names;
	if (!layout_offsets(&counts, &o))
		return 1;
	return o.rules < o.counters && o.counters < o.area && o.area + LAYOUT_AREA == o.slots && o.slots < o.names &&
	       o.names <= o.end && o.end <= o.size && o.size < o.file && o.file < (uint64_t)1 << 62 &&
	       o.counters % LINE == 0 && o.area % 4096 == 0 && o.slots % 4096 == 0 && o.size % 4096 == 0 &&
	       o.names % 8 == 0;
}

/* ... below 2^58 */
int false_offsets(uint64_t lines, uint64_t lines_max, uint64_t names, unsigned rules, unsigned cpus, unsigned stripes)
{
	struct layout_header counts = counts_of(lines, lines_max, rules, cpus, stripes);
	struct layout_offsets o = { 0 };

	counts.names = names;
	return !layout_offsets(&counts, &o) || o.file < (uint64_t)1 << 58;
}

/* the counters of every rule in every block lie before the area, of 32 rules and 32 blocks at the most */
int law_counters(uint64_t lines, unsigned rules, unsigned cpus, unsigned stripes, unsigned block, unsigned rule)
{
	struct layout_offsets o = { 0 };
	struct layout_header counts;

	rules = 1 + (rules & 31);
	cpus = 1 + (cpus & 15);
	stripes = 1 + (stripes & 15);
	block &= 63;
	rule &= 31;
	counts = counts_of(lines, lines, rules, cpus, stripes);
	assume(layout_offsets(&counts, &o) != 0);
	assume(block < cpus + stripes && rule < rules);
	return o.counters + layout_counter_offset(layout_counter_stride(rules), block, rule) + LINE <= o.area &&
	       o.counters + layout_counter_offset(layout_counter_stride(rules), block, -1) >= o.counters;
}

/* ... of one block more, too */
int false_counters(uint64_t lines, unsigned rules, unsigned cpus, unsigned stripes, unsigned block, unsigned rule)
{
	struct layout_offsets o = { 0 };
	struct layout_header counts;

	counts = counts_of(lines, lines, rules, cpus, stripes);
	assume(layout_offsets(&counts, &o) != 0);
	assume(block <= cpus + stripes && rule < rules);
	return o.counters + layout_counter_offset(layout_counter_stride(rules), block, rule) + LINE <= o.area;
}
