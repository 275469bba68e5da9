/*
 * attach: what create, open and verify share on the way to a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ATTACH_H
#define SHMLIMIT_LIB_ATTACH_H

#include "header.h"
#include "limiter.h"
#include "segment.h"

/* Where this process stands. */
void attach_host(struct header_host *host);

#endif
