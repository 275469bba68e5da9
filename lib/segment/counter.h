/*
 * counter: counting without contending. A block of counters for each CPU,
 * which processes on that CPU add to, and a few stripes that any process may add to
 * atomically; a total is the sum over all.
 *
 * On x86-64 a thread adds to its CPU's block with one plain instruction inside
 * a restartable sequence (rseq(2), registered for every thread by glibc 2.35
 * and later): if the kernel moves, preempts or signals the thread before that
 * instruction it goes to the abort label instead and adds to a stripe. No thread
 * owns a block, so there is nothing to claim, nothing to hand on when a
 * process is killed, and fork, threads and pid namespaces change nothing (I10).
 * Where there is no rseq (other machines, older libraries, emulators,
 * ThreadSanitizer) every count goes to a stripe.
 *
 * WHY NOT a block for each thread: a process has to find out that its owner is
 * dead, which takes system calls, and goes wrong across pid namespaces. WHY
 * NOT an atomic add to the CPU's block: it costs as much as the compare-and-swap
 * itself, and may not be mixed with plain adds: hence the stripes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_COUNTER_H
#define SHMLIMIT_LIB_COUNTER_H

#include "atomic.h"
#include "limiter.h"

/* A schedule that is repeated finds each call on the same CPU: on none. */
#if defined(__has_include) && !defined(SHMLIMIT_POINTS)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define COUNTER_HAS_CPU 1
#if defined(__x86_64__) && !defined(ATOMIC_BUILTINS)
#define COUNTER_RSEQ 1
#endif
#endif
#endif

/*
 * A number that differs between threads that run at the same time, cheaply:
 * the CPU where that is known, else some bits of `entropy`.
 */
static inline uint32_t counter_stripe(const struct shmlimit *l, uint64_t entropy)
{
#ifdef COUNTER_HAS_CPU
	if (__rseq_size != 0) {
		const char *area;
		uint32_t cpu;

#ifdef __x86_64__
		__asm__("movq %%fs:0, %0" : "=r"(area));
#else
		area = __builtin_thread_pointer();
#endif
		cpu = load_relaxed32((const uint32_t *)(const void *)(area + __rseq_offset));
		return cpu % l->stripes;
	}
#endif
	return (uint32_t)((entropy * 0x9e3779b97f4a7c15u) >> 33) % l->stripes;
}

/* The number of a stripe's block: stripes come after the CPUs. */
static inline uint64_t *counter_line(const struct shmlimit *l, uint32_t block, int64_t rule)
{
	return (uint64_t *)(void *)(l->counters + layout_counter_offset(l->counter_stride, block, rule));
}

/*
 * Add n to word `which` of the line of a rule, or (rule < 0) of the blocks' own, of an attached
 * segment.
 */
static inline void counter_add_n(const struct shmlimit *l, int64_t rule, unsigned which, uint64_t n, uint64_t entropy)
{
#ifdef COUNTER_RSEQ
	/*
	 * struct rseq at %fs:__rseq_offset: cpu_id at 4 (negative, so beyond any
	 * count of CPUs, while unregistered), rseq_cs at 8. The descriptor says
	 * from 1: to 2: is the sequence, and where it aborts to; the signature
	 * before the abort label is glibc's RSEQ_SIG. rseq_cs is cleared after
	 * the sequence, or the kernel might read it when this code is unloaded.
	 */
	unsigned char *base = l->counters + (uint64_t)(rule + 1) * LINE + (uint64_t)which * sizeof(uint64_t);
	uint64_t stride = l->counter_stride;

	__asm__ goto(
		".pushsection __rseq_cs, \"aw\"\n\t"
		".balign 32\n"
		"3:\n\t"
		".long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t"
		".popsection\n\t"
		"leaq 3b(%%rip), %%rax\n\t"
		"movq %%rax, %%fs:8(%[area])\n"
		"1:\n\t"
		"movl %%fs:4(%[area]), %%eax\n\t"
		"cmpl %[cpus], %%eax\n\t"
		"jae %l[stripe]\n\t"
		"imulq %[stride], %%rax\n\t"
		"addq %[n], (%[base], %%rax)\n"
		"2:\n\t"
		"movq $0, %%fs:8(%[area])\n\t"
		".pushsection __rseq_failure, \"ax\"\n\t"
		".byte 0x0f, 0xb9, 0x3d\n\t"
		".long 0x53053053\n"
		"4:\n\t"
		"jmp %l[stripe]\n\t"
		".popsection\n\t"
		:
		: [area] "r"(__rseq_offset), [cpus] "r"(l->cpus), [stride] "r"(stride), [base] "r"(base), [n] "er"(n)
		: "memory", "cc", "rax"
		: stripe);
	return;
stripe:
	/* The kernel cleared this if it aborted the sequence, but not if there is no such CPU. */
	__asm__ volatile("movq $0, %%fs:8(%[area])" : : [area] "r"(__rseq_offset) : "memory");
#endif
	add_relaxed(counter_line(l, l->cpus + counter_stripe(l, entropy), rule) + which, n);
}

/* Add one to a counter of a rule. */
static inline void counter_add(const struct shmlimit *l, uint32_t rule, enum counter which, uint64_t entropy)
{
	counter_add_n(l, rule, which, 1, entropy);
}

/* Add to a counter of leases: those stand in the blocks' own lines, after the nonces. */
static inline void counter_add_lease(const struct shmlimit *l, enum lease_counter which, uint64_t n, uint64_t entropy)
{
	counter_add_n(l, -1, offsetof(struct layout_block, leases) / sizeof(uint64_t) + which, n, entropy);
}

/* Add what the CPUs and stripes counted for the id of a rule, ever, to sums. */
void counter_sum(const struct shmlimit *l, uint32_t rule, uint64_t sums[COUNTERS]);

/* A number that no other call on this segment ever returned or will. */
static inline uint64_t counter_nonce(const struct shmlimit *l, uint64_t entropy)
{
	uint32_t stripe = counter_stripe(l, entropy);

	/*
	 * 12 bits of stripe leave 2^52 nonces a stripe: at 10^8 a second they last for 500 days of
	 * doing nothing else.
	 */
	return take_ticket(&((struct layout_block *)(void *)counter_line(l, l->cpus + stripe, -1))->nonces) << 12 |
	       stripe;
}

#endif
