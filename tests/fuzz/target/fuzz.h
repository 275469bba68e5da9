/*
 * fuzz: what the targets share: numbers out of an input, and laws that hold
 * whatever it is. A target is one file with libFuzzer's entry, which AFL++ builds
 * too; ../fuzz.sh runs them, ../replay.sh is their test.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A law that is broken ends the program, as a crash does: the input that did it is then kept. */
#define law(condition, ...) \
	do { \
		if (!(condition)) { \
			dprintf(STDERR_FILENO, "%s:%d: law broken: %s: ", __FILE__, __LINE__, #condition); \
			dprintf(STDERR_FILENO, __VA_ARGS__); \
			dprintf(STDERR_FILENO, "\n"); \
			abort(); \
		} \
	} while (0)

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes as a number, the lowest first; zeros when there are no more. */
static inline uint64_t input_number(struct input *in, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes && in->left > 0; i++, in->left--)
		number |= (uint64_t)*in->at++ << 8 * i;
	return number;
}

/* Numbers of all sizes: a byte says how many follow, or that it is at the edge of 64 bits. */
static inline uint64_t input_any(struct input *in)
{
	uint64_t how = input_number(in, 1);

	if (how >= 0xf0)
		return how < 0xf8 ? ((uint64_t)1 << 63) + how - 0xf4 : UINT64_MAX - (how - 0xf8);
	return input_number(in, how % 8 + 1) << how / 8 % 16;
}

#endif
