/*
 * operand: where in memory an x86-64 instruction reads or writes, for finding
 * those that look at the segment. Total: it may be wrong about what no compiler
 * makes of our code (a test that stops too often stops for nothing), and says 0
 * for what cannot be the segment: rip-relative, on the stack, thread-local.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_OPERAND_H
#define TESTS_CRASH_OPERAND_H

#include <stdint.h>
#include <string.h>
#include <sys/user.h>

/* The prefixes that extend the numbers of registers, and where the opcode stands. */
struct operand_code {
	const unsigned char *opcode;
	unsigned index_high, base_high; /* 8 or 0 */
	int map;                        /* 0: one byte; 1: 0f; 2: 0f 38, 0f 3a */
	int local;                      /* by way of fs or gs */
};

static inline struct operand_code operand_prefixes(const unsigned char *p)
{
	struct operand_code code = { 0 };

	for (; *p == 0x66 || *p == 0x67 || *p == 0xf0 || *p == 0xf2 || *p == 0xf3 || *p == 0x2e || *p == 0x3e ||
	       *p == 0x64 || *p == 0x65;
	     p++)
		code.local |= *p == 0x64 || *p == 0x65;
	if ((*p & 0xf0) == 0x40) {
		code.index_high = *p & 2 ? 8 : 0;
		code.base_high = *p & 1 ? 8 : 0;
		p++;
	}
	if (*p == 0xc5) {
		code.map = 1;
		p += 2;
	} else if (*p == 0xc4 || *p == 0x62) {
		/* These have the bits inverted. */
		code.index_high = p[1] & 0x40 ? 0 : 8;
		code.base_high = p[1] & 0x20 ? 0 : 8;
		code.map = (p[1] & 3) == 1 ? 1 : 2;
		p += *p == 0xc4 ? 3 : 4;
	} else if (*p == 0x0f) {
		p++;
		code.map = *p == 0x38 || *p == 0x3a ? 2 : 1;
		p += code.map - 1;
	}
	code.opcode = p;
	return code;
}

/* A byte follows that says which operands, and the one in memory is more than an address or a hint. */
static inline int operand_is_memory(struct operand_code code)
{
	unsigned op = *code.opcode;

	if (code.map == 2)
		return 1;
	if (code.map == 1)
		return op >= 0x10 && (op < 0x18 || op > 0x1f) && (op < 0x30 || op > 0x37) && op != 0x77 &&
		       (op < 0x80 || op > 0x8f) && (op < 0xc8 || op > 0xcf) && op != 0xa2;
	return (op < 0x40 && (op & 7) < 4) || op == 0x63 || op == 0x69 || op == 0x6b ||
	       (op >= 0x80 && op <= 0x8f && op != 0x8d) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
	       (op >= 0xd0 && op <= 0xd3) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static inline uint64_t operand_register(const struct user_regs_struct *r, unsigned number)
{
	const uint64_t values[16] = { r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
		                      r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

	return values[number];
}

/* The address, or 0. */
static inline uint64_t operand_address(const unsigned char *at, const struct user_regs_struct *r)
{
	struct operand_code code = operand_prefixes(at);
	const unsigned char *p = code.opcode + 1;
	unsigned mod = *p >> 6, rm = *p & 7, base = rm;
	uint64_t address = 0;
	int32_t far;

	if (code.local || !operand_is_memory(code) || mod == 3 || (mod == 0 && rm == 5))
		return 0;
	p++;
	if (rm == 4) {
		unsigned index = (*p >> 3 & 7) + code.index_high;

		base = *p & 7;
		if (index != 4)
			address = operand_register(r, index) << (*p >> 6);
		p++;
	}
	memcpy(&far, p, sizeof(far));
	if (mod == 0 && base == 5)
		return address + (uint64_t)(int64_t)far;
	address += operand_register(r, base + code.base_high);
	if (mod == 1)
		address += (uint64_t)(int64_t)(int8_t)*p;
	else if (mod == 2)
		address += (uint64_t)(int64_t)far;
	return address;
}

#endif
