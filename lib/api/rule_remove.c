/*
 * rule_remove: take a rule away, and all that its keys have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "table.h"

EXPORT int shmlimit_rule_remove(struct shmlimit *l, const char *rule_name)
{
	int error, lock, id;

	if (l == NULL)
		return -EINVAL;
	error = name_check_any_rule(rule_name);
	if (error == 0 && l->read_only)
		error = -EROFS;
	if (error == 0)
		error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error != 0)
		return error;
	id = rule_find(l, rule_name);
	if (id >= 0) {
		uint64_t *published = &l->rules[id].published;

		/* ORDER before the slots are freed: a claim that ends after that asks rule_holds(). */
		publish(published, load_acquire(published) & ~(uint64_t)1);
		table_clear(l, id);
	}
	segment_unlock(lock);
	return id < 0 ? id : 0;
}
