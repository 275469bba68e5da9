/*
 * reset: restore all tokens, by freeing slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>

#include "export.h"
#include "rule.h"
#include "table.h"

/* A writer that frees and claims slots beside the walk can make it count more than there are. */
static int keys_answer(uint64_t keys)
{
	return keys < INT_MAX ? (int)keys : INT_MAX;
}

EXPORT int shmlimit_reset(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	struct rule_view view;
	struct table_key wanted;
	int error;

	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (rule == SHMLIMIT_ALL_RULES)
		return key == NULL ? keys_answer(table_clear(l, -1)) : -EINVAL;
	if (rule < 0)
		return -ESRCH;
	error = rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	if (key == NULL)
		return keys_answer(table_clear(l, rule));
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	wanted = table_key(hash_bytes(l->secret, (uint32_t)rule, key, key_len), (uint32_t)rule, rule_version(&view));
	/* It may have a slot in the old table too. */
	return table_forget(l, &wanted) != 0;
}

EXPORT int shmlimit_reset_fingerprint(struct shmlimit *l, int rule, uint64_t fingerprint)
{
	struct rule_view view;
	int error;

	if (l == NULL || fingerprint % 2 == 0 || fingerprint >> (64 - TAG_FINGERPRINT_SHIFT) != 0)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	error = rule < 0 ? -ESRCH : rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	return keys_answer(table_forget_fingerprint(l, (uint32_t)rule, fingerprint));
}
