/*
 * window_row: what WINDOW's row and fast_window.h share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WINDOW_ROW_H
#define SHMLIMIT_LIB_WINDOW_ROW_H

#include "algorithm.h"

/* Fill *r after an operation: the window was *ring, and is *after since `recorded` tokens were admitted. */
void window_report(const struct look *k, const struct ring *ring, const struct request *q, struct verdict *v,
                   const struct window *after, uint64_t recorded, struct shmlimit_result *r);

#endif
