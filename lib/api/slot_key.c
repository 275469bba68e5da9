/*
 * slot_key: the key of a slot, for introspection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "generation.h"
#include "sized.h"
#include "stored_key.h"

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
