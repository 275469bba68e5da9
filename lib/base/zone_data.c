/*
 * zone_data: see zone_data.h. The file's last line is a POSIX TZ string, which says what comes
 * after the last change that the file lists. Most files list changes until 2037, which are then the
 * same.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "zone_data.h"

#define HEADER_BYTES 44u
#define TYPE_BYTES 6u
#define LIST_MAX 100000u /* more than any list has, and small enough that no product overflows */

/* How many of each a part of the file has, and how large a time is. */
struct part {
	const unsigned char *times;
	unsigned long utc, standard, leaps, changes, types, letters, time_bytes, bytes;
};

static uint64_t number_at(const unsigned char *at, unsigned long bytes)
{
	uint64_t n = 0;

	for (unsigned long i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

/* The part that begins there, if all of it is there. */
static int read_part(const unsigned char *at, unsigned long len, unsigned long time_bytes, struct part *part)
{
	unsigned long *counts[] = { &part->utc,     &part->standard, &part->leaps,
		                    &part->changes, &part->types,    &part->letters };

	if (len < HEADER_BYTES || memcmp(at, "TZif", 4) != 0 || at[4] < '2')
		return 0;
	for (unsigned i = 0; i < 6; i++) {
		*counts[i] = number_at(at + 20 + 4 * (unsigned long)i, 4);
		if (*counts[i] > LIST_MAX)
			return 0;
	}
	part->times = at + HEADER_BYTES;
	part->time_bytes = time_bytes;
	part->bytes = HEADER_BYTES + part->changes * (time_bytes + 1) + part->types * TYPE_BYTES + part->letters +
	              part->leaps * (time_bytes + 4) + part->standard + part->utc;
	return part->bytes <= len;
}

/* Are the changes that it lists from now_s on those of the zone, and the offset at now_s, too? */
static int agrees(const struct part *part, int64_t now_s, const struct zone *zone)
{
	const unsigned char *kinds = part->times + part->changes * part->time_bytes, *types = kinds + part->changes;
	int64_t offset_s = zone_offset(zone, now_s);

	for (unsigned long i = 0; i < part->changes; i++) {
		int64_t at_s = (int64_t)number_at(part->times + i * part->time_bytes, part->time_bytes);
		int64_t listed_s;

		if (kinds[i] >= part->types)
			return 0;
		listed_s = (int32_t)number_at(types + kinds[i] * TYPE_BYTES, 4);
		if (at_s <= now_s)
			offset_s = listed_s;
		else if (listed_s != zone_offset(zone, at_s))
			return 0;
	}
	return offset_s == zone_offset(zone, now_s);
}

int zone_data_read(const unsigned char *bytes, unsigned long len, int64_t now_s, struct zone *zone)
{
	struct part first, second;
	const unsigned char *line, *end;

	if (!read_part(bytes, len, 4, &first) || !read_part(bytes + first.bytes, len - first.bytes, 8, &second) ||
	    second.leaps != 0)
		return -EINVAL;
	line = bytes + first.bytes + second.bytes;
	len -= first.bytes + second.bytes;
	if (len < 2 || *line != '\n')
		return -EINVAL;
	line++;
	end = memchr(line, '\n', len - 1);
	if (end == NULL || zone_parse((const char *)line, (unsigned long)(end - line), zone) != 0)
		return -EINVAL;
	return agrees(&second, now_s, zone) ? 0 : -EINVAL;
}

static int is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
	       c == '-';
}

int zone_data_is_name(const char *name)
{
	char before = '/';

	for (; is_name_char(*name) || (*name == '/' && before != '/'); name++)
		before = *name;
	return *name == '\0' && before != '/';
}
