/*
 * reset: fill funnels up again, by freeing their slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>

#include "export.h"
#include "rule.h"
#include "table.h"

/* A writer that frees and claims slots beside the walk can make it count more than there are. */
static int count(uint64_t keys)
{
	return keys < INT_MAX ? (int)keys : INT_MAX;
}

EXPORT int shmlimit_reset(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	struct rule_view view;
	uint64_t hash;
	int error;

	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (rule < 0)
		return count(table_clear(l, -1));
	error = rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	if (key == NULL)
		return count(table_clear(l, rule));
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	return count(table_forget(l, &(struct table_key){ hash, tag_pack(hash, (uint32_t)rule, rule_version(&view)) }));
}

EXPORT int shmlimit_reset_fingerprint(struct shmlimit *l, int rule, uint64_t fingerprint)
{
	struct rule_view view;
	int error;

	if (l == NULL || rule < 0 || fingerprint == 0 || fingerprint >> (64 - TAG_FINGERPRINT_SHIFT) != 0)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	error = rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	return count(table_forget_fingerprint(l, tag_pack(fingerprint, (uint32_t)rule, 0)));
}
