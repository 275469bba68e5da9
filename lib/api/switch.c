/*
 * switch: turn all limits of a segment on or off.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "atomic.h"
#include "export.h"
#include "limiter.h"

EXPORT int shmlimit_switch(struct shmlimit *l, uint32_t on)
{
	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (on == 0)
		set_bits(&l->header->state, STATE_OFF);
	else
		clear_bits(&l->header->state, STATE_OFF);
	return 0;
}
