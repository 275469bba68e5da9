/*
 * sized: see sized.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "sized.h"

/* No structure of ours is longer than a page, so a size beyond is an uninitialised one. */
#define SIZE_MAX_CALLER 4096u

static uint32_t caller_size(const void *structure)
{
	uint32_t size;

	if (structure == NULL)
		return 0;
	memcpy(&size, structure, sizeof(size));
	return size > SIZE_MAX_CALLER ? 0 : size;
}

int sized_in(void *to, const void *from, size_t known)
{
	uint32_t size = caller_size(from);

	if (size < 2 * sizeof(size))
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (((const unsigned char *)from)[i] != 0)
			return -E2BIG;
	if (size < known)
		memset((unsigned char *)to + size, 0, known - size);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

int sized_rest(void *to, size_t known)
{
	uint32_t size = caller_size(to);

	if (size < 2 * sizeof(size))
		return -EINVAL;
	if (size > known)
		memset((unsigned char *)to + known, 0, size - known);
	return 0;
}

int sized_out(void *to, const void *from, size_t known)
{
	uint32_t size = caller_size(to);

	if (sized_rest(to, known) != 0)
		return -EINVAL;
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &size, sizeof(size));
	return 0;
}
