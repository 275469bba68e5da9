/*
 * header: see header.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "header.h"

static int verdict(int error, const char **why, const char *text)
{
	if (why != NULL)
		*why = text;
	return error;
}

int header_check(const struct layout_header *header, uint64_t size, const struct header_host *host, const char **why)
{
	static const uint8_t unknown[16];
	struct layout_offsets offsets;

	if (size < sizeof(header->magic) || memcmp(header->magic, LAYOUT_MAGIC, sizeof(header->magic)) != 0)
		return verdict(-EMEDIUMTYPE, why, "the first 8 bytes are not \"shmlimit\"");
	if (size < sizeof(*header))
		return verdict(-EUCLEAN, why, "the file is shorter than its header");
	/* I11 */
	if (header->version != LAYOUT_VERSION || header->byte_order != LAYOUT_BYTE_ORDER)
		return verdict(-EPROTO, why, "the layout version or byte order is another");
	if (header->fingerprint != layout_fingerprint())
		return verdict(-EPROTO, why, "the layout was compiled differently");
	if (header->checksum != layout_checksum(header))
		return verdict(-EUCLEAN, why, "the header's checksum does not match");
	if (!layout_offsets(header, &offsets))
		return verdict(-EUCLEAN, why, "a count in the header is out of range");
	if (header->rules_offset != offsets.rules || header->counters_offset != offsets.counters ||
	    header->slots_offset != offsets.slots || header->names_offset != offsets.names ||
	    header->size != offsets.size)
		return verdict(-EUCLEAN, why, "the header's offsets do not follow from its counts");
	if (size < offsets.end || size > offsets.file)
		return verdict(-EUCLEAN, why, "the file is not as long as its header says");
	if (header->on_full > SHMLIMIT_FULL_DENY || header->clock > SHMLIMIT_CLOCK_COARSE)
		return verdict(-EUCLEAN, why, "an option in the header is unknown");
	if (header->lines_asked != 0 &&
	    (header->lines_asked <= header->lines || header->lines_asked > header->lines_max))
		return verdict(-EUCLEAN, why, "the slots that were asked for are out of range");
	for (size_t i = 0; i < sizeof(header->reserved) / sizeof(header->reserved[0]); i++)
		if (header->reserved[i] != 0)
			return verdict(-EUCLEAN, why, "a reserved field of the header is not zero");
	if (memcmp(header->boot_id, unknown, sizeof(unknown)) != 0 &&
	    memcmp(host->boot_id, unknown, sizeof(unknown)) != 0 &&
	    memcmp(header->boot_id, host->boot_id, sizeof(unknown)) != 0)
		return verdict(-ESTALE, why, "it was created before the last boot");
	if (header->time_namespace != 0 && host->time_namespace != 0 && header->time_namespace != host->time_namespace)
		return verdict(-EXDEV, why, "it was created in another time namespace");
	return verdict(0, why, "");
}
