/*
 * window_row: what WINDOW's row and fast_window.h share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WINDOW_ROW_H
#define SHMLIMIT_LIB_WINDOW_ROW_H

#include "algorithm.h"

/*
 * Fill *r after an operation, as which `recorded` tokens were admitted. *v, too, where a charge was
 * more than there is.
 */
void window_report(const struct look *k, const struct request *q, const struct window_balance *b, uint64_t recorded,
                   struct verdict *v, struct shmlimit_result *r);

#endif
