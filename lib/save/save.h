/*
 * save: shmlimit_save() and _load(), their clocks given. For tests: what is
 * saved at one time must be what was there, to the tick.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_SAVE_H
#define SHMLIMIT_LIB_SAVE_H

#include "rebase.h"
#include "when.h"

int save(struct shmlimit *l, int fd, struct when when);

/* `given` NULL: the host's clocks. Of what is given then_ns is the file's. */
int load(const char *name, int fd, uint32_t flags, const struct rebase *given, struct shmlimit **out);

#endif
