/*
 * atomic: every access to memory that another process may write, and the only
 * place that says how it is ordered. Three kinds:
 *
 *   slots      read in two loads, changed by one 16-byte compare-and-swap
 *   cells      of a slot's ring: changed by a compare-and-swap each; a place's two by one of 16 bytes
 *   published  a word swapped in after what it announces, loaded before it, as the header's state
 *   counters   added to (see counter.h for the cheaper way)
 *
 * ORDER. Every compare-and-swap of a slot is a full barrier in both
 * directions. That is what claiming needs (table.c): "place mine, then look at
 * the others" is Dekker's pattern, right only if the placing is visible before
 * the looking begins, on both sides. On x86 a locked instruction is one; on
 * weakly ordered machines ck's load_atomic and atomic_load fences (dmb) make
 * it one.
 *
 *	access              order      pairs with
 *	slot_cas            full       slot_cas of the others
 *	slot_read           acquire    slot_cas; tag before word
 *	slot_unchanged      acquire    slot_read before it, slot_cas between
 *	load_acquire        acquire    publish of a rule's `published`; cell_cas
 *	cell_cas            full       load_acquire of a cell; slot_unchanged before, slot_cas after
 *	load_word           *          load_again: what is read by the one stays before the other
 *	publish             full       load_acquire; slot_cas then load_again, in a claim
 *	word_cas            full       the same, of the header's state and a rule's `published`
 *	pair_cas            full       load_acquire, of a process's own list of tables, of a place, of a holder
 *	load_is_older       none       sweep_lower(), by a rule writer's sweep before publish()
 *	load_relaxed        none       statistics, switches: any recent value will do; stored keys
 *	store_relaxed       none       what publish or word_cas announces after it; names
 *	add_relaxed         none       counters; take_ticket; set_bits and clear_bits, of switches
 *
 * WHY NOT the compiler's __atomic for 16 bytes: gcc calls libatomic for it,
 * which may take a lock that lives in one process. Built for ThreadSanitizer,
 * which cannot see into inline assembly, the same accesses are builtins; clang's
 * runtime then takes such a lock, so only threads of one process can be tested so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ATOMIC_H
#define SHMLIMIT_LIB_ATOMIC_H

#include <stdint.h>

#include "layout.h"

#if UINTPTR_MAX < UINT64_MAX
#error "shmlimit needs a 64-bit machine: a slot changes by one 16-byte compare-and-swap, which 32-bit ones do not have"
#endif
#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ < 27
#error "shmlimit needs glibc 2.27 or later (memfd_create), or musl"
#endif

#if defined(__SANITIZE_THREAD__)
#define ATOMIC_BUILTINS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATOMIC_BUILTINS 1
#endif
#endif

struct slot_seen {
	uint64_t tag, word;
};

#ifdef ATOMIC_BUILTINS

static inline uint64_t load_relaxed(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint32_t load_relaxed32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint64_t load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t load_word(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t load_again(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void publish(uint64_t *p, uint64_t value)
{
	__atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}

static inline void store_relaxed(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static inline void set_bits(uint64_t *p, uint64_t bits)
{
	__atomic_fetch_or(p, bits, __ATOMIC_RELAXED);
}

static inline void clear_bits(uint64_t *p, uint64_t bits)
{
	__atomic_fetch_and(p, ~bits, __ATOMIC_RELAXED);
}

static inline void add_relaxed(uint64_t *p, uint64_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static inline uint64_t take_ticket(uint64_t *p)
{
	return __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
}

static inline int pair_cas(void *pair, const uint64_t old[2], const uint64_t new[2])
{
	unsigned __int128 before = (unsigned __int128)old[1] << 64 | old[0];
	unsigned __int128 after = (unsigned __int128)new[1] << 64 | new[0];

	return __sync_bool_compare_and_swap((unsigned __int128 *)pair, before, after);
}

static inline int word_cas(uint64_t *word, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(word, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline void fence_load(void)
{
}

#else

#include <ck_pr.h>

#if defined(__aarch64__) && !defined(CK_MD_RMO)
#error "this ck_md.h describes another machine: on aarch64 the fences of a strongly ordered one would be empty"
#endif

static inline uint64_t load_relaxed(const uint64_t *p)
{
	return ck_pr_load_64(p);
}

static inline uint32_t load_relaxed32(const uint32_t *p)
{
	return ck_pr_load_32(p);
}

static inline uint64_t load_acquire(const uint64_t *p)
{
	uint64_t value = ck_pr_load_64(p);

	ck_pr_fence_acquire();
	return value;
}

static inline uint64_t load_word(const uint64_t *p)
{
	return ck_pr_load_64(p);
}

static inline uint64_t load_again(const uint64_t *p)
{
	ck_pr_fence_load();
	return ck_pr_load_64(p);
}

static inline void publish(uint64_t *p, uint64_t value)
{
	ck_pr_fence_release();
	(void)ck_pr_fas_64(p, value);
	ck_pr_fence_atomic_load();
}

static inline void store_relaxed(uint64_t *p, uint64_t value)
{
	ck_pr_store_64(p, value);
}

static inline void set_bits(uint64_t *p, uint64_t bits)
{
	ck_pr_or_64(p, bits);
}

static inline void clear_bits(uint64_t *p, uint64_t bits)
{
	ck_pr_and_64(p, ~bits);
}

static inline void add_relaxed(uint64_t *p, uint64_t n)
{
	ck_pr_add_64(p, n);
}

static inline uint64_t take_ticket(uint64_t *p)
{
	return ck_pr_faa_64(p, 1);
}

static inline int pair_cas(void *pair, const uint64_t old[2], const uint64_t new[2])
{
	uint64_t before[2] = { old[0], old[1] };
	uint64_t after[2] = { new[0], new[1] };
	int won;

	ck_pr_fence_load_atomic();
	won = ck_pr_cas_64_2(pair, before, after);
	ck_pr_fence_atomic_load();
	return won;
}

static inline int word_cas(uint64_t *word, uint64_t old, uint64_t new)
{
	int won;

	ck_pr_fence_load_atomic();
	won = ck_pr_cas_64(word, old, new);
	ck_pr_fence_atomic_load();
	return won;
}

static inline void fence_load(void)
{
	ck_pr_fence_load();
}

#endif

static inline int slot_cas(struct layout_slot *slot, struct slot_seen old, uint64_t tag, uint64_t word)
{
	return pair_cas(slot, (uint64_t[2]){ old.tag, old.word }, (uint64_t[2]){ tag, word });
}

static inline int cell_cas(uint64_t *cell, uint64_t old, uint64_t new)
{
	return word_cas(cell, old, new);
}

/* now - *since > *after. In every decision: two loads that are operands, and no register more. */
static inline int load_is_older(uint64_t now, const uint64_t *since, const uint64_t *after)
{
#if defined(__x86_64__) && !defined(ATOMIC_BUILTINS)
	__asm__ goto("movq %[now], %%rax\n\t"
	             "subq %[since], %%rax\n\t"
	             "cmpq %%rax, %[after]\n\t"
	             "jb %l[older]"
	             :
	             : [now] "r"(now), [since] "m"(*since), [after] "m"(*after)
	             : "cc", "rax"
	             : older);
	return 0;
older:
	return 1;
#else
	return now - load_relaxed(since) > load_relaxed(after);
#endif
}

#ifdef SHMLIMIT_POINTS
#include "point.h"

/* A macro is not expanded within itself: each of these is followed by the function of its name. */
#define load_relaxed(p) (point_reached(POINT_LOAD, p), load_relaxed(p))
#define load_relaxed32(p) (point_reached(POINT_LOAD, p), load_relaxed32(p))
#define load_acquire(p) (point_reached(POINT_LOAD, p), load_acquire(p))
#define load_word(p) (point_reached(POINT_LOAD, p), load_word(p))
#define load_again(p) (point_reached(POINT_LOAD, p), load_again(p))
#define load_is_older(now, since, after) (point_reached(POINT_LOAD, since), load_is_older(now, since, after))
#define publish(p, value) (point_reached(POINT_SWAP, p), publish(p, value))
#define store_relaxed(p, value) (point_reached(POINT_STORE, p), store_relaxed(p, value))
#define set_bits(p, bits) (point_reached(POINT_STORE, p), set_bits(p, bits))
#define clear_bits(p, bits) (point_reached(POINT_STORE, p), clear_bits(p, bits))
#define word_cas(p, ...) (point_reached(POINT_SWAP, p), word_cas(p, __VA_ARGS__))
#define pair_cas(p, ...) (point_reached(POINT_SWAP, p), pair_cas(p, __VA_ARGS__))
#define take_ticket(p) (point_reached(POINT_TICKET, p), take_ticket(p))
#define slot_cas(slot, ...) (point_reached(POINT_SWAP_SLOT, slot), slot_cas(slot, __VA_ARGS__))
#define cell_cas(cell, ...) (point_reached(POINT_SWAP, cell), cell_cas(cell, __VA_ARGS__))
#define ck_backoff_eb(backoff) ((void)(backoff), point_reached(POINT_PAUSE, NULL))
#endif

/*
 * The two halves may be of two moments. A compare-and-swap proves that they
 * belonged together; a caller that will not do one asks slot_unchanged().
 */
static inline struct slot_seen slot_read(const struct layout_slot *slot)
{
	struct slot_seen seen;

	seen.tag = load_acquire(&slot->tag);
	seen.word = load_acquire(&slot->word);
	return seen;
}

/*
 * True if `seen` stood in the slot as a whole at some moment: tag, word, tag,
 * word were read in this order and agree. (Only a slot that went to another
 * key with that very word, and back, in the middle of both readings could
 * deceive; and it would cost that one caller one mistaken denial.)
 */
static inline int slot_unchanged(const struct layout_slot *slot, struct slot_seen seen)
{
	fence_load();
	return load_acquire(&slot->tag) == seen.tag && load_acquire(&slot->word) == seen.word;
}

#endif
