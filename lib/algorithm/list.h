/*
 * list: the algorithms, each by its number in shmlimit.h and the name of its row and of its traits.
 * An algorithm is entered here and nowhere else. ALGORITHM(number, name) is defined before this is
 * included, each time as what a line is to become.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* clang-format off */
ALGORITHM(SHMLIMIT_FUNNEL, funnel)
ALGORITHM(SHMLIMIT_WARMUP, warmup)
ALGORITHM(SHMLIMIT_WINDOW, window)
ALGORITHM(SHMLIMIT_LEASE, lease)
ALGORITHM(SHMLIMIT_COUNTER, counter)
ALGORITHM(SHMLIMIT_HOLD, hold)
ALGORITHM(SHMLIMIT_GCRA, gcra)
/* clang-format on */
#undef ALGORITHM
