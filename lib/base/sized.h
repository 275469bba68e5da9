/*
 * sized: structures of the contract that may grow. Their first member says how
 * many bytes the caller, perhaps compiled against another release, knows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_SIZED_H
#define SHMLIMIT_LIB_SIZED_H

#include <stddef.h>

/*
 * Copy a caller's structure into `known` bytes, zero where the caller's is shorter.
 * Returns 0, -EINVAL if it is NULL or says less than its own first member,
 * -E2BIG if it is longer and says something in the part beyond.
 */
int sized_in(void *to, const void *from, size_t known);

/*
 * Zero what a caller's structure has beyond `known` bytes, which the caller of this function fills.
 * Returns 0 or -EINVAL.
 */
int sized_rest(void *to, size_t known);

/*
 * Copy `known` bytes out, as many as the caller has; zero the rest of the caller's structure, keep
 * its size. Returns 0 or -EINVAL.
 */
int sized_out(void *to, const void *from, size_t known);

#endif
