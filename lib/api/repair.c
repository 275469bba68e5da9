/*
 * repair: repair what can be repaired without guessing. verify.c has how.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "segment.h"
#include "verify.h"

EXPORT int shmlimit_repair(const char *name, struct shmlimit_problem *repairs, size_t n)
{
	struct findings findings = { repairs, repairs == NULL ? 0 : n, 0, 1 };
	struct shmlimit *l;
	int error, lock;

	error = shmlimit_open(name, 0, &l);
	if (error != 0)
		return error;
	error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error == 0) {
		error = verify_all(l, &findings);
		segment_unlock(lock);
	}
	shmlimit_close(l);
	return error != 0 ? error : findings.count;
}
