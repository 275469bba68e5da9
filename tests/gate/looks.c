/*
 * looks: a gate looks after its segment once a second, however many requests it decides: a look makes system calls, and a
 * request makes none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "gate.h"

/* The clock that is read may be a coarse one, which lags by a tick of the kernel. */
#define TICK_MS 10

static uint64_t looked_ms[2];
static int looks;

int __real_shmlimit_gone(struct shmlimit *l);
int __wrap_shmlimit_gone(struct shmlimit *l);

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What a look begins with, where there is a segment. */
int __wrap_shmlimit_gone(struct shmlimit *l)
{
	if (looks < 2)
		looked_ms[looks] = now_ms();
	looks++;
	return __real_shmlimit_gone(l);
}

int main(void)
{
	struct shmlimit *l = unit_create("looks", NULL);
	struct shmlimit_gate *gate = gate_new("create=yes rule=site rate=9/s");

	looks = 0;
	while (looks < 2) {
		for (int i = 0; i < 100; i++)
			(void)ASK(gate, "user:42", 0);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	ok(looked_ms[1] - looked_ms[0] + TICK_MS >= 1000,
	   "the second look comes a second after the first: %" PRIu64 " ms", looked_ms[1] - looked_ms[0]);
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	return tap_done();
}
