/*
 * probes: a tracer sees each decision that is counted, once, as what it was. A breakpoint in place of each probe's nop
 * counts what a tracer would: that is beside the counters, for each operation, on the first try and on the general path.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

/* WHY NOT under ThreadSanitizer: it has no shadow memory for the program's own code, into which breakpoints are written. */
#if defined(__x86_64__) && __has_include(<sys/sdt.h>) && !defined(NO_PROBES) && !defined(UNDER_TSAN)
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define T0 (1000 * SECOND)
#define PROBES_MAX 256
#define ROUNDS 20000

static struct probe {
	unsigned char *at;
	enum { ALLOW, DENY, OTHER } kind;
} probes[PROBES_MAX];
static unsigned probes_n;
static volatile sig_atomic_t seen[3], lost;

/* The instruction after the breakpoint goes on as after the nop. */
static void met(int number, siginfo_t *info, void *context)
{
	const unsigned char *at =
		(const unsigned char *)(uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] - 1;

	(void)number;
	(void)info;
	for (unsigned i = 0; i < probes_n; i++)
		if (probes[i].at == at) {
			seen[probes[i].kind]++;
			return;
		}
	lost++;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

/* Each note: where the probe is, where the linker put .stapsdt.base when it wrote that, a semaphore; two names. */
static void read_notes(const unsigned char *notes, size_t size, uintptr_t base_now)
{
	for (size_t i = 0; i + sizeof(Elf64_Nhdr) < size;) {
		const Elf64_Nhdr *note = (const void *)(notes + i);
		const unsigned char *desc = notes + i + sizeof(*note) + (note->n_namesz + 3) / 4 * 4;
		const char *provider = (const char *)desc + 24, *name = provider + strlen(provider) + 1;
		uint64_t words[3];

		memcpy(words, desc, sizeof(words));
		if (strcmp(provider, "shmlimit") == 0 && probes_n < PROBES_MAX)
			probes[probes_n++] = (struct probe){
				(unsigned char *)(base_now + (words[0] - words[1])),
				strcmp(name, "allow") == 0  ? ALLOW
				: strcmp(name, "deny") == 0 ? DENY
							    : OTHER,
			};
		i = (size_t)(desc - notes) + (note->n_descsz + 3) / 4 * 4;
	}
}

static void find_probes(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const Elf64_Shdr *notes = NULL, *base = NULL, *sections;
	const unsigned char *file;
	const Elf64_Ehdr *header;
	uintptr_t loaded = 0;
	const char *names;
	struct stat s;

	if (fd < 0 || fstat(fd, &s) != 0)
		bail("/proc/self/exe: %s", strerror(errno));
	file = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	header = (const void *)file;
	sections = (const void *)(file + header->e_shoff);
	names = (const char *)file + sections[header->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, ".note.stapsdt") == 0)
			notes = &sections[i];
		if (strcmp(names + sections[i].sh_name, ".stapsdt.base") == 0)
			base = &sections[i];
	}
	if (notes == NULL || base == NULL)
		bail("the program has no probes");
	dl_iterate_phdr(first_object, &loaded);
	read_notes(file + notes->sh_offset, notes->sh_size, loaded + base->sh_addr);
	close(fd);
}

/* A breakpoint is one byte, as a nop is. */
static void arm(void)
{
	struct sigaction action = { .sa_sigaction = met, .sa_flags = SA_SIGINFO | SA_NODEFER };
	long page = sysconf(_SC_PAGESIZE);

	sigaction(SIGTRAP, &action, NULL);
	for (unsigned i = 0; i < probes_n; i++) {
		unsigned char *begin = probes[i].at - (uintptr_t)probes[i].at % (uintptr_t)page;

		if (*probes[i].at != 0x90 && *probes[i].at != 0xcc)
			bail("no nop at a probe");
		if (mprotect(begin, (size_t)page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
			bail("mprotect: %s", strerror(errno));
		*probes[i].at = 0xcc;
		mprotect(begin, (size_t)page, PROT_READ | PROT_EXEC);
	}
}

#define RULES 6
static struct shmlimit *l;
static int rules[RULES];
static struct rng rng;

/* Any call, of which some are no operation of that rule, and some are not counted. */
static void call(int id, uint64_t now_ns)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct shmlimit_result result, *r = rng_below(&rng, 2) ? &result : NULL;
	uint64_t n = rng_below(&rng, 4);
	int key = (int)rng_below(&rng, 24);

	switch (rng_below(&rng, 14)) {
	case 0:
		shmlimit_take(at_clock(l), id, &key, sizeof(key), n, r);
		break;
	case 1:
		shmlimit_reserve(at_time(l, now_ns), id, &key, sizeof(key), n, rng_below(&rng, 2 * SECOND), r);
		break;
	case 2:
		shmlimit_charge(at_time(l, now_ns), id, &key, sizeof(key), n, r);
		break;
	case 3:
		shmlimit_refund(at_time(l, now_ns), id, &key, sizeof(key), n, r);
		break;
	case 4:
		shmlimit_peek(at_time(l, now_ns), id, &key, sizeof(key), n, r);
		break;
	case 5:
		shmlimit_lease_take(
			at_time(l, now_ns), id, &key, sizeof(key),
			&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                          .cost = n,
		                                          .lease_ns = SECOND,
		                                          .claim_ns = SECOND / 10 },
			&lease, r);
		break;
	case 6:
		shmlimit_lease_deposit(at_time(l, now_ns), id, &key, sizeof(key), n, rng_below(&rng, 3), 0, SECOND, r);
		break;
	case 7:
		shmlimit_lease_deny(at_time(l, now_ns), id, &key, sizeof(key), n, SECOND, r);
		break;
	case 8:
		shmlimit_count(at_time(l, now_ns), id, &key, sizeof(key),
		               &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                                 .n = (int64_t)n - 1,
		                                                 .bound = 5 },
		               &count);
		break;
	case 9:
		if (shmlimit_enter(at_time(l, now_ns), id, &key, sizeof(key), &hold, r) == SHMLIMIT_ALLOWED && n != 0)
			shmlimit_leave(at_time(l, now_ns), id, &key, sizeof(key), &hold);
		break;
	default:
		shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), n, r);
		break;
	}
}

static void many(uint32_t on_full)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .on_full = on_full };
	uint64_t now_ns = T0, allowed = 0, denied = 0;
	int saw_allowed = seen[ALLOW], saw_denied = seen[DENY];

	l = unit_create("probes", &options);
	unit_rules(l, rules, RULES, T0);
	for (int i = 0; i < ROUNDS; i++) {
		call(rules[rng_below(&rng, RULES)], now_ns);
		now_ns += rng_below(&rng, SECOND / 100);
	}
	for (int i = 0; i < RULES; i++) {
		struct shmlimit_counters c = unit_counters(l, rules[i]);

		allowed += c.allowed;
		denied += c.denied;
		ok(c.allowed != 0 && c.denied != 0, "rule %d allows and denies", i);
	}
	is(seen[ALLOW] - saw_allowed, allowed, "the probe allow is met as often as calls were allowed");
	is(seen[DENY] - saw_denied, denied, "the probe deny is met as often as calls were denied");
	shmlimit_close(l);
}

int main(void)
{
	if (under_valgrind())
		return tap_skip_all("valgrind keeps a copy of the program");
	rng.state = rng_seed();
	find_probes();
	ok(probes_n > 4 && probes_n < PROBES_MAX, "the library has probes: %u", probes_n);
	arm();
	many(SHMLIMIT_FULL_EVICT);
	many(SHMLIMIT_FULL_ALLOW);
	many(SHMLIMIT_FULL_DENY);
	is(lost, 0, "no other breakpoint is met");
	return tap_done();
}
#else
int main(void)
{
	return tap_skip_all("probes are tested on x86-64, with <sys/sdt.h>, and without ThreadSanitizer");
}
#endif
