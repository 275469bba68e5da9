/*
 * refused.h: which system calls a sandbox refuses.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef REFUSED_H
#define REFUSED_H

#define REFUSED_LEN 128

/*
 * The names, as "fallocate, flock", of those that the library needs: they are tried. "a system
 * call": none is found.
 */
const char *refused_calls(char text[REFUSED_LEN]);

#endif
