/*
 * nearest.c: the word that was probably meant.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <string.h>

#include "nearest.h"

#define LEN_MAX 31

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * Letters to be added, removed, replaced, or swapped with their neighbour, to make b of a: row by
 * row of a table.
 */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][LEN_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2], *oldest;
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > LEN_MAX || b_len > LEN_MAX)
		return LEN_MAX;
	for (size_t j = 0; j <= b_len; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
	unsigned found = distance(nearest->word, candidate);
	size_t len = strlen(nearest->word);

	/* Of a short word everything is near. */
	if (found > (len < 4 ? 1u : 2u) || (nearest->best[0] != '\0' && found >= nearest->distance))
		return;
	nearest->distance = found;
	snprintf(nearest->best, sizeof(nearest->best), "%s", candidate);
}

const char *nearest_text(struct nearest *nearest, const char *dashes)
{
	if (nearest->best[0] == '\0')
		return "";
	snprintf(nearest->text, sizeof(nearest->text), "did you mean %s%s? ", dashes, nearest->best);
	return nearest->text;
}
