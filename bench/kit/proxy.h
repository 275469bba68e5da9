/*
 * proxy: a process between a client and a Unix socket, as a network is between them: each way takes its time, and some
 * replies are late. What is late holds back what comes after it on its connection, as with TCP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_PROXY_H
#define BENCH_KIT_PROXY_H

#include <stdint.h>
#include <sys/types.h>

/* May be changed while it runs. */
struct proxy_terms {
	uint64_t delay_ns;   /* each way */
	uint64_t late_ns;    /* how much later a late reply comes */
	unsigned late_milli; /* late pieces of replies in 1,000 */
};

struct proxy {
	pid_t pid;
	struct proxy_terms *terms;
};

/* From the socket `from`, which it makes, to the socket `to`. It ends with the program, if proxy_end() does not end it. */
struct proxy proxy_start(const char *from, const char *to);
void proxy_end(struct proxy *proxy);

#endif
