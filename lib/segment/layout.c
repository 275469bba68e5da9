/*
 * layout: sizes, offsets and checks of the segment's bytes. Pure arithmetic.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "layout.h"
#include "hash.h"
#include "whole.h"

/* a run of a window's lines must not meet itself */
#define LINES_MIN (SHMLIMIT_SLOTS_MIN / SLOTS_PER_LINE)
/* one tebibyte, less than 2^62 with all cells: no overflow below */
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

struct layout_parts layout_parts(uint64_t lines, uint64_t names)
{
	struct layout_parts parts;

	parts.names = lines * LINE;
	parts.size = parts.names + lines * SLOTS_PER_LINE * layout_names_words(names) * sizeof(uint64_t);
	return parts;
}

/*
 * All sizes of a power of two have 22 times as many tokens. The regions before it together are
 * rounded up to a page, and have a page each besides: so each has its last page.
 */
uint64_t layout_region(uint64_t lines_max, unsigned size)
{
	unsigned shift = size >> 2, rest = size & 3;
	uint64_t tokens = 22 * (((uint64_t)1 << shift) - 1) + ((uint64_t)(rest * 4 + rest * (rest - 1) / 2) << shift);

	return layout_next_page(2 * lines_max * SLOTS_PER_LINE * CELLS_BYTES * tokens) + (uint64_t)size * 4096;
}

int layout_offsets(const struct layout_header *counts, struct layout_offsets *out)
{
	uint64_t lines = counts->lines, lines_max = counts->lines_max, names = counts->names;
	uint32_t rules = counts->rules_max;
	uint32_t cpus = counts->cpus, stripes = counts->stripes;
	struct layout_parts parts;

	if (lines < LINES_MIN || lines > lines_max || lines_max > LINES_MAX || names > SHMLIMIT_KEY_MAX ||
	    names != layout_names(names) || counts->rules < 1 || counts->rules > rules || rules > SHMLIMIT_RULES_MAX ||
	    cpus < 1 || cpus > BLOCKS_MAX || stripes < 1 || stripes > BLOCKS_MAX)
		return 0;
	out->rules = LAYOUT_HOLDERS_OFFSET + LAYOUT_HOLDERS * sizeof(struct layout_holder);
	out->counters = out->rules + layout_records(0, rules).size;
	out->area = out->counters + layout_counter_stride(rules) * (cpus + stripes);
	out->slots = out->area + LAYOUT_AREA;
	parts = layout_parts(lines, names);
	out->names = out->slots + parts.names;
	out->end = out->slots + parts.size;
	out->size = layout_next_page(out->end);
	/*
	 * Each is at least twice the previous one: all but the largest together are smaller than
	 * it, their last pages apart.
	 */
	if (lines_max > lines)
		out->size += layout_next_page(2 * layout_parts(lines_max, names).size);
	out->size += (bit_length(lines_max / lines) - 1) * (uint64_t)(2 * 4096);
	out->file = out->size + layout_region(lines_max, CELLS_SIZE_MAX + 1);
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
		offsetof(struct layout_header, names_offset),
		offsetof(struct layout_header, names),
		offsetof(struct layout_header, lines_max),
		offsetof(struct layout_header, rules_now),
		offsetof(struct layout_header, tables),
		offsetof(struct layout_header, swept),
		offsetof(struct layout_header, sweep),
		offsetof(struct layout_header, unregistered),
		LAYOUT_HOLDERS,
		sizeof(struct layout_holder),
		sizeof(struct layout_rule),
		CELLS_SIZE_MAX,
		offsetof(struct layout_rule, name),
		offsetof(struct layout_rule, counted_before),
		offsetof(struct layout_rule, params),
		sizeof(struct layout_params),
		offsetof(struct layout_params, num),
		offsetof(struct layout_params, back),
		offsetof(struct layout_params, shape),
		offsetof(struct layout_params, count),
		offsetof(struct layout_params, warmup_ns),
		offsetof(struct layout_params, zone),
		offsetof(struct layout_header, unix_ns),
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
