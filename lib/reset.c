/*
 * reset: fill funnels up again, by freeing their slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "rule.h"
#include "table.h"

EXPORT int shmlimit_reset(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	struct rule_view view;
	uint64_t hash;
	int error;

	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (rule < 0) {
		table_clear(l, -1);
		return 0;
	}
	error = rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	if (key == NULL) {
		table_clear(l, rule);
		return 0;
	}
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	table_forget(l, &(struct table_key){ hash, tag_pack(hash, (uint32_t)rule, rule_version(&view)) });
	return 0;
}
