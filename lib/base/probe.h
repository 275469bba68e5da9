/*
 * probe: where a tracer can look on: a nop each, and a note that says where it is
 * and what is in which register. shmlimit.7 says what they are. Without
 * <sys/sdt.h>, or with NO_PROBES, there are none.
 *
 * Their arguments are what is at hand there. WHY NOT more of them, the key or the
 * tokens left: every decision would have to keep these, for tracers that are hardly ever there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_PROBE_H
#define SHMLIMIT_LIB_PROBE_H

#if defined(__has_include) && !defined(NO_PROBES)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define PROBE(name, rule, hash, third) DTRACE_PROBE3(shmlimit, name, rule, hash, third)
#endif
#endif

#ifndef PROBE
#define PROBE(name, rule, hash, third) ((void)(rule), (void)(hash), (void)(third))
#endif

#endif
