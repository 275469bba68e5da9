/*
 * columns.c: columns as wide as what stands in them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "command.h"
#include "escape.h"
#include "fail.h"

#define WIDEST 64 /* bytes of a cell that others are put under; a longer one moves the rest of its own line */

static int make_room(struct table *table)
{
	size_t room = table->room > 0 ? 2 * table->room : 64;
	char **cell;

	if (table->count < table->room)
		return 0;
	cell = realloc(table->cell, room * sizeof(*cell));
	if (cell == NULL)
		return -1;
	table->cell = cell;
	table->room = room;
	return 0;
}

void table_cell(struct table *table, const char *format, ...)
{
	char *plain, *text;
	size_t len;
	va_list ap;

	if (table->failed || make_room(table) < 0) {
		table->failed = 1;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&plain, format, ap) < 0)
		plain = NULL;
	va_end(ap);
	len = plain != NULL ? strlen(plain) : 0;
	text = plain != NULL ? malloc(4 * len + 1) : NULL;
	if (text == NULL) {
		table->failed = 1;
	} else {
		escape(text, plain, len, 0);
		table->cell[table->count++] = text;
	}
	free(plain);
}

void table_words(struct table *table, const char *words)
{
	int len;

	for (; *words != '\0'; words += len, words += strspn(words, " ")) {
		len = (int)strcspn(words, " ");
		table_cell(table, "%.*s", len, words);
	}
}

/* WHY NOT as wide as the longest: one long name would push all other lines out of sight. */
static size_t column_width(const struct table *table, size_t column, size_t columns)
{
	size_t width = 0;

	for (size_t i = column; i < table->count; i += columns) {
		size_t len = strlen(table->cell[i]);

		if (len > width && len <= WIDEST)
			width = len;
	}
	return width;
}

static void print_cell(const char *text, size_t width, int right, int last)
{
	int pad = strlen(text) < width ? (int)(width - strlen(text)) : 0;

	printf("%*s", right ? pad : 0, "");
	fputs(text, stdout);
	if (last)
		putchar('\n');
	else
		printf("%*s", (right ? 0 : pad) + 2, "");
}

static void print_cells(const struct table *table, const size_t *width, size_t columns)
{
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % columns;

		print_cell(table->cell[i], width[column], table->align[column] == 'r', column == columns - 1);
	}
}

void table_free(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cell[i]);
	free(table->cell);
}

int table_print(struct table *table)
{
	size_t columns = strlen(table->align);
	size_t *width = calloc(columns, sizeof(*width));
	int failed = table->failed || width == NULL;

	if (!failed) {
		for (size_t column = 0; column < columns; column++)
			width[column] = column_width(table, column, columns);
		print_cells(table, width, columns);
	}
	table_free(table);
	free(width);
	return failed ? fail_memory() : STATUS_OK;
}
