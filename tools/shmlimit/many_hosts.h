/*
 * many_hosts.h: libshmlimit-global, with which this program may be linked, or not: each function is
 * NULL then.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef MANY_HOSTS_H
#define MANY_HOSTS_H

#include "shmlimit_global.h"

#pragma weak shmlimit_global_open
#pragma weak shmlimit_global_close
#pragma weak shmlimit_global_take
#pragma weak shmlimit_global_peek
#pragma weak shmlimit_global_reset
#pragma weak shmlimit_global_ping
#pragma weak shmlimit_global_serve
#pragma weak shmlimit_global_status
#pragma weak shmlimit_global_server
#pragma weak shmlimit_global_failures
#pragma weak shmlimit_global_breaker_ns

/* What deadline_ns 0 stands for in the options of a handle on a backend. */
#define DEADLINE_DEFAULT_NS UINT64_C(50000000)

/* What a command says that cannot do without it. */
#define MANY_HOSTS_MISSING "this shmlimit was built without the library for many hosts, which needs hiredis"

static inline int has_many_hosts(void)
{
	return shmlimit_global_open != NULL;
}

static inline uint64_t many_hosts_failures(struct shmlimit *limiter, int rule)
{
	return has_many_hosts() ? shmlimit_global_failures(limiter, rule) : 0;
}

#endif
