/*
 * room: what the spec asks for that its segment may not have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_ROOM_H
#define SHMLIMIT_GATE_ROOM_H

#include <errno.h>

#include "spec.h"

/* Is this the error of a rule for which there is no room, or not yet? */
static inline int room_lacks(int error)
{
	return error == -EXFULL || error == -ENOSPC;
}

/* Writes what a rule lacks. Returns the length. `error`: see room_lacks(). */
int room_text(char *to, size_t size, int error, const struct shmlimit_info *info);

/*
 * Call `say` for each option of the spec that its segment does not have: options are of a segment
 * that is created, and one that exists stays as it is.
 */
void room_options(const struct spec *spec, const struct shmlimit_info *info, void (*say)(void *arg, const char *text),
                  void *arg);

#endif
