/*
 * keep_errno: the contract is that the library leaves errno as it was. A function that calls
 * the C library, which sets errno when it fails, begins with KEEP_ERRNO.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_KEEP_ERRNO_H
#define SHMLIMIT_LIB_KEEP_ERRNO_H

#include <errno.h>

#define KEEP_ERRNO __attribute__((cleanup(restore_errno), unused)) int errno_before = errno

static inline void restore_errno(const int *before)
{
	errno = *before;
}

#endif
