/*
 * registry: see registry.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "clock.h"
#include "hash.h"
#include "holder.h"
#include "registry.h"
#include "segment.h"

#define START_SHIFT 24
#define START_MASK (((uint64_t)1 << 24) - 1)
#define PID_SHIFT 42
#define BOOT_SHIFT 32
#define BOOT_MASK 1023u
#define SEEN_SHIFT 40
#define SEEN_ALIVE ((uint64_t)1 << 39)
#define SEEN_TIME (SEEN_ALIVE - 1)
#define SEEN_NS_SHIFT 20
/* After an attempt to register that failed, another one is made this often. */
#define RETRY_NS ((uint64_t)1000000000)
/* BOUND: a swap is lost only to a process that registers. */
#define TRIES 64

/* ---- This process ---- */

/*
 * What a forked child must not take for its own. WHY NOT getpid(): it is a system call, and a child
 * in another pid namespace can have the same. The kernel clears the page in a child; where it is
 * too old for that, fork() calls forget().
 */
struct own {
	uint64_t epoch; /* of this process among its forks: 0 = not known yet */
	uint64_t space; /* its pid namespace; 0 = not known */
};

static struct own *own_page; /* of this process and its children */
static struct own own_plain; /* where there is no page */
static uint64_t epochs;      /* that this process and its parents had */

static void forget(void)
{
	store_relaxed(&own_plain.epoch, 0);
}

/* A page is made by the first call. */
static struct own *own_make(void)
{
	uint64_t *known = (uint64_t *)(void *)&own_page;
	struct own *page = segment_page_of_process();

	if (page == NULL) {
		page = &own_plain;
		(void)pthread_atfork(NULL, NULL, forget);
	}
	/* ORDER pairs with load_acquire() in own_read(). */
	if (!word_cas(known, 0, (uintptr_t)page) && page != &own_plain)
		segment_unmap(page, 4096);
	return (struct own *)(uintptr_t)load_acquire(known);
}

static struct own *own_read(void)
{
	struct own *own = (struct own *)(uintptr_t)load_acquire((uint64_t *)(void *)&own_page);

	if (__builtin_expect(own == NULL, 0))
		own = own_make();
	if (__builtin_expect(load_acquire(&own->epoch) == 0, 0)) {
		/* WHY before the epoch: a thread that sees that sees this. */
		store_relaxed(&own->space, holder_namespace() & UINT32_MAX);
		(void)word_cas(&own->epoch, 0, take_ticket(&epochs) + 1);
	}
	return own;
}

/* A hash of this boot's id; 0: not known. */
static uint64_t boot_read(void)
{
	static const uint64_t key[2] = { 0x686f6c64, 0x6572 };
	static uint64_t known; /* and 1024 */
	uint8_t id[16], unknown[16] = { 0 };
	uint64_t boot = load_relaxed(&known);

	if (boot != 0)
		return boot & BOOT_MASK;
	segment_boot_id(id);
	for (unsigned i = 0; i < sizeof(id); i++)
		unknown[0] |= id[i];
	boot = unknown[0] == 0 ? 0 : 1 + hash_bytes(key, 0, id, sizeof(id)) % BOOT_MASK;
	store_relaxed(&known, boot | (BOOT_MASK + 1));
	return boot;
}

uint64_t registry_now_ns(void)
{
	return clock_read(CLOCK_MONOTONIC_COARSE);
}

/* ---- Asking ---- */

static struct layout_holder *holder_at(const struct shmlimit *l, uint64_t entry)
{
	return (struct layout_holder *)(void *)((char *)l->header + LAYOUT_HOLDERS_OFFSET) + entry;
}

static uint64_t seen_as(uint64_t number, int alive, uint64_t now_ns)
{
	return (number & REGISTRY_GENERATION) << SEEN_SHIFT | (alive ? SEEN_ALIVE : 0) |
	       (now_ns >> SEEN_NS_SHIFT & SEEN_TIME);
}

/* What the kernel says. */
static enum registry_answer look(const struct shmlimit *l, uint64_t number, uint64_t process, uint64_t space)
{
	uint64_t own = load_relaxed(&own_read()->space), boot = boot_read(), then = process >> BOOT_SHIFT & BOOT_MASK;

	if (boot != 0 && then != 0 && boot != then)
		return HOLDER_DEAD;
	if (own == 0 || (process & UINT32_MAX) == 0)
		return HOLDER_UNKNOWN;
	if (own != (process & UINT32_MAX)) {
		int locked = space != number ? -EAGAIN
		                             : segment_space_locked(l->name, l->device, l->inode, process & UINT32_MAX);

		return locked == 0 ? HOLDER_DEAD : HOLDER_UNKNOWN;
	}
	return holder_is_over((uint32_t)(process >> PID_SHIFT), number >> START_SHIFT & START_MASK, START_MASK)
	               ? HOLDER_DEAD
	               : HOLDER_ALIVE;
}

__attribute__((cold, noinline)) static enum registry_answer
ask_kernel(const struct shmlimit *l, struct layout_holder *e, uint64_t number, uint64_t now_ns)
{
	uint64_t process = load_acquire(&e->process), space = load_acquire(&e->space);
	enum registry_answer answer;

	/* ORDER pairs with pair_cas() in take_entry(): both are of one holder. */
	if (load_again(&e->number) != number)
		return HOLDER_DEAD;
	answer = look(l, number, process, space);
	/* ORDER pairs with word_cas() in registry_close(). Its lock is gone then: it may live. */
	if (answer == HOLDER_DEAD && load_again(&e->space) != space)
		answer = HOLDER_UNKNOWN;
	if (answer != HOLDER_DEAD && !l->read_only)
		store_relaxed(&e->seen, seen_as(number, answer == HOLDER_ALIVE, now_ns));
	return answer;
}

enum registry_answer registry_ask(const struct shmlimit *l, uint64_t number, uint64_t now_ns)
{
	struct layout_holder *e;
	uint64_t there, seen;

	if (!registry_is_number(number))
		return HOLDER_UNKNOWN;
	e = holder_at(l, registry_entry(number));
	there = load_acquire(&e->number);
	if (there != number) {
		/* A later holder has the entry, or it is damaged. */
		if (!registry_is_number(there) || registry_entry(there) != registry_entry(number) ||
		    ((there - number) & REGISTRY_GENERATION) > REGISTRY_GENERATION / 2 ||
		    ((there - number) & REGISTRY_GENERATION) == 0)
			return HOLDER_UNKNOWN;
		return HOLDER_DEAD;
	}
	seen = load_relaxed(&e->seen);
	if (seen >> SEEN_SHIFT == (number & REGISTRY_GENERATION) &&
	    (((now_ns >> SEEN_NS_SHIFT) - seen) & SEEN_TIME) < REGISTRY_FRESH_NS >> SEEN_NS_SHIFT)
		return (seen & SEEN_ALIVE) != 0 ? HOLDER_ALIVE : HOLDER_UNKNOWN;
	return ask_kernel(l, e, number, now_ns);
}

/* ---- Registering ---- */

static uint64_t number_next(uint64_t entry, uint64_t start, uint64_t before)
{
	uint64_t generation = (before + 1) & REGISTRY_GENERATION;

	return REGISTRY_FIRST | entry << REGISTRY_ENTRY_SHIFT | (start & START_MASK) << START_SHIFT |
	       (generation == 0 ? 1 : generation);
}

/* ORDER full: number and process together. Pairs with load_again() in ask_kernel(). */
static int take_entry(struct layout_holder *e, uint64_t entry, const uint64_t before[2], uint64_t process,
                      uint64_t start, uint64_t *number)
{
	*number = number_next(entry, start, before[0]);
	return pair_cas(e, before, (uint64_t[2]){ *number, process });
}

/*
 * The process's own entry, from before or by another handle; else the first that was never given.
 */
static int find_entry(const struct shmlimit *l, uint64_t process, uint64_t start, uint64_t *entry, uint64_t *number)
{
	*entry = LAYOUT_HOLDERS;
	for (uint64_t i = 0; i < LAYOUT_HOLDERS; i++) {
		struct layout_holder *e = holder_at(l, i);

		*number = load_acquire(&e->number);
		if (*number == 0) {
			*entry = *entry == LAYOUT_HOLDERS ? i : *entry;
		} else if (load_acquire(&e->process) == process &&
		           (*number >> START_SHIFT & START_MASK) == (start & START_MASK) &&
		           load_again(&e->number) == *number && registry_is_number(*number) &&
		           registry_entry(*number) == i) {
			return 1;
		}
	}
	return 0;
}

/* The first entry, from one of its own on, whose process is dead. BOUND: once over the entries. */
static uint64_t find_dead(const struct shmlimit *l, uint64_t process)
{
	uint64_t begin = (process * 0x9e3779b97f4a7c15u) >> 32, now_ns = registry_now_ns();

	for (uint64_t i = 0; i < LAYOUT_HOLDERS; i++) {
		uint64_t entry = (begin + i) % LAYOUT_HOLDERS, number = load_acquire(&holder_at(l, entry)->number);

		/* A number of another entry is damage: of no process. */
		if (!registry_is_number(number) || registry_entry(number) != entry ||
		    registry_ask(l, number, now_ns) == HOLDER_DEAD)
			return entry;
	}
	return LAYOUT_HOLDERS;
}

static int enlist(const struct shmlimit *l, uint32_t pid, uint64_t start, uint64_t *number)
{
	uint64_t process = (uint64_t)pid << PID_SHIFT | boot_read() << BOOT_SHIFT | load_relaxed(&own_read()->space);
	uint64_t entry;

	if ((process & UINT32_MAX) == 0)
		return -ENODEV;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before[2];

		if (find_entry(l, process, start, &entry, number))
			return 0;
		if (entry == LAYOUT_HOLDERS)
			entry = find_dead(l, process);
		if (entry == LAYOUT_HOLDERS)
			return -EXFULL;
		before[0] = load_acquire(&holder_at(l, entry)->number);
		before[1] = load_acquire(&holder_at(l, entry)->process);
		if (registry_is_number(before[0]) && registry_entry(before[0]) == entry &&
		    registry_ask(l, before[0], registry_now_ns()) != HOLDER_DEAD)
			continue;
		if (take_entry(holder_at(l, entry), entry, before, process, start, number))
			return 0;
	}
	return -EXFULL;
}

int registry_counted(const struct shmlimit *l, int error)
{
	if (error == -EXFULL)
		add_relaxed(&l->header->unregistered, 1);
	return error;
}

int registry_process(const struct shmlimit *l, uint32_t pid, uint64_t *number)
{
	uint64_t start;
	int error = holder_find(&pid, &start);

	return error != 0 ? error : enlist(l, pid, start, number);
}

/* A lock that says that a process of this namespace lives: see registry.h. */
static void keep_space(const struct shmlimit *l, const struct own *own, uint64_t number)
{
	struct limiter_holder *mine = &l->self->holder;
	uint64_t page = (uintptr_t)segment_lock_space(l->name, l->device, l->inode, load_relaxed(&own->space));

	store_relaxed(&mine->page, page);
	if (page != 0)
		store_relaxed(&holder_at(l, registry_entry(number))->space, number);
}

/*
 * Several threads may register at once: each finds the entry that the first of them took, or
 * takes it.
 */
__attribute__((cold, noinline)) static int register_self(const struct shmlimit *l, const struct own *own,
                                                         uint64_t *number)
{
	struct limiter_holder *mine = &l->self->holder;
	uint64_t now_ns = registry_now_ns(), epoch = load_acquire(&own->epoch), start,
		 owner = load_acquire(&mine->epoch), failed_epoch = load_acquire(&mine->failed_epoch);
	uint32_t pid = 0;
	int error;

	if (failed_epoch == epoch && now_ns - load_relaxed(&mine->failed_ns) < RETRY_NS)
		return -(int)load_relaxed(&mine->failed_with);
	error = holder_find(&pid, &start);
	if (error == 0)
		error = enlist(l, pid, start, number);
	if (error != 0) {
		store_relaxed(&mine->failed_with, (uint64_t)-error);
		store_relaxed(&mine->failed_ns, now_ns);
		/* ORDER the error before the epoch; pairs with load_acquire() above. */
		if (failed_epoch != epoch)
			(void)word_cas(&mine->failed_epoch, failed_epoch, epoch);
		return error;
	}
	/* ORDER the number before the epoch; pairs with load_acquire() in registry_self(). */
	store_relaxed(&mine->number, *number);
	if (owner != epoch && word_cas(&mine->epoch, owner, epoch))
		keep_space(l, own, *number);
	return 0;
}

int registry_self(const struct shmlimit *l, uint64_t *number)
{
	const struct own *own = own_read();
	struct limiter_holder *mine = &l->self->holder;

	if (__builtin_expect(load_acquire(&mine->epoch) != load_acquire(&own->epoch), 0))
		return register_self(l, own, number);
	*number = load_relaxed(&mine->number);
	return 0;
}

/* What is bound stays bound; processes of other pid namespaces know no more if this one lives. */
void registry_close(struct shmlimit *l)
{
	uint64_t page = l->holder.page, number = l->holder.number;

	if (page == 0 || l->holder.epoch != load_relaxed(&own_read()->epoch))
		return;
	/* ORDER before the lock goes with the page; pairs with load_again() in ask_kernel(). */
	(void)word_cas(&holder_at(l, registry_entry(number))->space, number, 0);
	segment_unmap((void *)(uintptr_t)page, 4096);
}
