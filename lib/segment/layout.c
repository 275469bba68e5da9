/*
 * layout: sizes, offsets and checks of the segment's bytes. Pure arithmetic.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "layout.h"
#include "hash.h"

/* a run of a window's lines must not meet itself */
#define LINES_MIN (SHMLIMIT_SLOTS_MIN / SLOTS_PER_LINE)
/* one tebibyte, 2^56 with rings: no overflow below */
#define LINES_MAX (SHMLIMIT_SLOTS_MAX / SLOTS_PER_LINE)
#define BLOCKS_MAX 4096u /* more CPUs than any machine that Linux runs on */

uint64_t layout_names(uint64_t asked)
{
	/* Two words at the least: a key that is too long needs one for its seal. */
	uint64_t words = asked > 6 ? layout_names_words(asked) : 2;

	if (asked == 0)
		return 0;
	return words * 8 - 2 < SHMLIMIT_KEY_MAX ? words * 8 - 2 : SHMLIMIT_KEY_MAX;
}

/* WHY NOT the largest that there is: the ticks of long windows would be longer, and the addresses more. */
#define WINDOW_LIMIT 1024u

uint32_t layout_window_limit(uint32_t window_max, uint32_t asked)
{
	if (asked != 0)
		return asked;
	if (window_max < WINDOW_LIMIT)
		return WINDOW_LIMIT;
	return window_max < SHMLIMIT_WINDOW_MAX / 2 ? 2 * window_max : SHMLIMIT_WINDOW_MAX;
}

struct layout_parts layout_parts(uint64_t lines, uint32_t window_max, uint64_t names)
{
	struct layout_parts parts;

	parts.rings = lines * LINE;
	parts.names = parts.rings + lines * SLOTS_PER_LINE * layout_cells(window_max) * sizeof(uint64_t);
	parts.size = parts.names + lines * SLOTS_PER_LINE * layout_names_words(names) * sizeof(uint64_t);
	return parts;
}

/*
 * Addresses of tables with longer rings: for all that there can be, up to this many and as many as 32 first tables
 * take. They are no memory, but programs have them limited (ulimit -v).
 */
#define LONGER_ADDRESSES ((uint64_t)1 << 30)

static inline uint64_t longer_addresses(uint64_t first, uint64_t largest)
{
	uint64_t most = LONGER_ADDRESSES + 32 * first;

	return 3 * largest < most ? 3 * largest : most;
}

int layout_offsets(const struct layout_header *counts, struct layout_offsets *out)
{
	uint64_t lines = counts->lines, lines_max = counts->lines_max, names = counts->names;
	uint32_t window_max = counts->window_max, rules = counts->rules_max;
	uint32_t cpus = counts->cpus, stripes = counts->stripes;
	struct layout_parts parts;

	if (lines < LINES_MIN || lines > lines_max || lines_max > LINES_MAX || window_max > counts->window_limit ||
	    counts->window_limit > SHMLIMIT_WINDOW_MAX || names > SHMLIMIT_KEY_MAX || names != layout_names(names) ||
	    counts->rules < 1 || counts->rules > rules || rules > SHMLIMIT_RULES_MAX || cpus < 1 || cpus > BLOCKS_MAX ||
	    stripes < 1 || stripes > BLOCKS_MAX)
		return 0;
	out->rules = 4096;
	out->counters = out->rules + layout_records(0, rules).size;
	out->area = out->counters + layout_counter_stride(rules) * (cpus + stripes);
	out->slots = out->area + LAYOUT_AREA;
	parts = layout_parts(lines, window_max, names);
	out->rings = out->slots + parts.rings;
	out->names = out->slots + parts.names;
	out->end = out->size = out->slots + parts.size;
	if (lines_max == lines && counts->window_limit == window_max)
		return 1;
	/*
	 * Each is at least twice the previous one: all but the largest together are smaller than
	 * it, their last pages apart.
	 */
	out->size = layout_next_page(out->end) + GENERATIONS_MAX * 4096u;
	if (counts->window_limit > window_max)
		out->size += longer_addresses(parts.size, layout_parts(lines_max, counts->window_limit, names).size);
	if (lines_max > lines)
		out->size += 2 * layout_parts(lines_max, window_max, names).size;
	return 1;
}

uint64_t layout_fingerprint(void)
{
	/*
	 * FNV-1a over every number that a reader depends on; the values are fixed, so the loop
	 * folds away.
	 */
	const uint64_t numbers[] = {
		sizeof(struct layout_header),
		offsetof(struct layout_header, size),
		offsetof(struct layout_header, secret),
		offsetof(struct layout_header, checksum),
		offsetof(struct layout_header, state),
		offsetof(struct layout_header, rings_offset),
		offsetof(struct layout_header, names_offset),
		offsetof(struct layout_header, names),
		offsetof(struct layout_header, lines_max),
		offsetof(struct layout_header, window_limit),
		offsetof(struct layout_header, rules_now),
		offsetof(struct layout_header, tables),
		offsetof(struct layout_header, swept),
		offsetof(struct layout_header, sweep),
		sizeof(struct layout_rule),
		offsetof(struct layout_rule, name),
		offsetof(struct layout_rule, counted_before),
		offsetof(struct layout_rule, params),
		sizeof(struct layout_params),
		offsetof(struct layout_params, num),
		offsetof(struct layout_params, back),
		offsetof(struct layout_params, shape),
		offsetof(struct layout_params, count),
		offsetof(struct layout_params, warmup_ns),
		COUNTERS,
		sizeof(struct layout_block),
		sizeof(struct layout_slot),
		LAYOUT_AREA,
		RULE_VERSIONS,
		TAG_RULE_SHIFT,
		TAG_FINGERPRINT_SHIFT,
	};
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		hash = (hash ^ numbers[i]) * 0x100000001b3u;
	return hash;
}

uint64_t layout_checksum(const struct layout_header *header)
{
	/* A fixed key: against accidents, not against a process with write access. */
	static const uint64_t key[2] = { 0x73686d6c696d6974u, LAYOUT_VERSION };

	return hash_bytes(key, offsetof(struct layout_header, checksum), header,
	                  offsetof(struct layout_header, checksum));
}
