/*
 * print.c: what goes to standard output, as lines or as JSON. Names and texts
 * that stand in a segment are somebody else's bytes: a terminal never gets
 * their control characters, a JSON reader never gets what is not UTF-8.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

void print_clean(FILE *to, const char *text)
{
	for (; *text != '\0'; text++)
		putc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
}

void print_line(const char *name, const char *format, ...)
{
	char text[SHMLIMIT_KEY_MAX + TEXT_LEN];        /* nothing that is printed is longer than a key */
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	print_clean(stdout, name);
	fputs(": ", stdout);
	print_clean(stdout, text);
	putchar('\n');
}

int print_json(json_t *root)
{
	int error;

	if (root == NULL)
		return fail_memory();
	error = json_dumpf(root, stdout, JSON_INDENT(2));
	json_decref(root);
	if (error != 0 && !ferror(stdout))     /* what could not be written, main() reports */
		return fail_memory();
	putchar('\n');
	return STATUS_OK;
}

/* WHY NOT json_integer() alone: it is signed. What lies above becomes the nearest double. */
json_t *json_number(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

json_t *json_duration(uint64_t ns)
{
	return ns == UINT64_MAX ? json_null() : json_number(ns);
}

json_t *json_text(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	json_t *json = json_string(text);
	char *copy, *end;

	if (json != NULL)
		return json;
	copy = end = malloc(strlen(text) * 3 + 1);
	if (copy == NULL)
		return NULL;
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x80)
			*end++ = *text;
		else
			end = stpcpy(end, replacement);
	}
	*end = '\0';
	json = json_string(copy);
	free(copy);
	return json;
}

void json_append(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}
