/*
 * columns.h: a table whose columns are as wide as they need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <stddef.h>

/* Columns as wide as they need. */
struct table {
	const char *align; /* one character a column: 'l' or 'r' */
	size_t count, room;
	char **cell;
	int failed; /* out of memory */
};

void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_words(struct table *table, const char *words); /* each a cell: the head */
int table_print(struct table *table);                     /* prints and frees; a status */
void table_free(struct table *table);

#endif
