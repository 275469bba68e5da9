/*
 * law: what a file of laws begins with, see ../prove.py. A law takes plain
 * numbers, assumes what its bounds are, and returns whether it holds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_TESTS_PROOF_LAW_H
#define SHMLIMIT_TESTS_PROOF_LAW_H

#ifdef NATIVE
int assumptions_broken;

static inline void assume(int truth)
{
	if (!truth)
		assumptions_broken = 1;
}
#else
void assume(int truth);
#endif

#endif
