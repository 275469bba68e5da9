/*
 * print.c: what goes to standard output, as lines or as JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "escape.h"
#include "fail.h"
#include "key_text.h"
#include "number_text.h"
#include "print.h"

void print_line(const char *name, const char *format, ...)
{
	char text[KEY_TEXT_LEN]; /* nothing that is printed is longer than a key */
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	print_clean(stdout, name);
	fputs(": ", stdout);
	print_clean(stdout, text);
	putchar('\n');
}

/*
 * JSON has escapes of its own. They hide nothing from a program, and a terminal gets printable
 * ASCII only.
 */
static char *json_escaped(json_t *root, size_t flags)
{
	static const char del[] = "\\u007f";
	char *plain = root != NULL ? json_dumps(root, flags | JSON_ENSURE_ASCII) : NULL, *text, *to;

	/* The one control character that jansson leaves alone. */
	if (plain == NULL || strchr(plain, 0x7f) == NULL)
		return plain;
	text = to = malloc(strlen(plain) * (sizeof(del) - 1) + 1);
	for (const char *p = plain; text != NULL && *p != '\0'; p++) {
		if (*p == 0x7f)
			to = stpcpy(to, del);
		else
			*to++ = *p;
	}
	if (text != NULL)
		*to = '\0';
	free(plain);
	return text;
}

char *json_write(json_t *root)
{
	return json_escaped(root, JSON_INDENT(2));
}

char *json_write_line(json_t *root)
{
	return json_escaped(root, 0);
}

int print_json(json_t *root)
{
	char *text = json_write(root);

	json_decref(root);
	if (text == NULL)
		return fail_memory();
	puts(text);
	free(text);
	return STATUS_OK;
}

/*
 * WHY NOT a number always: most programs read one as a double, and no digit of a counter or a time
 * is to be lost.
 */
json_t *json_number(uint64_t value)
{
	char digits[TEXT_LEN];

	if (value <= JSON_NUMBER_MAX)
		return json_integer((json_int_t)value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return json_string(digits);
}

json_t *json_duration(uint64_t ns)
{
	return ns == UINT64_MAX ? json_null() : json_number(ns);
}

json_t *json_text(const char *text)
{
	static const char unknown_char[] = "\xef\xbf\xbd";
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
			end = stpcpy(end, unknown_char);
	}
	*end = '\0';
	json = json_string(copy);
	free(copy);
	return json;
}

json_t *json_bytes(const void *bytes, size_t len)
{
	json_t *json = json_stringn(bytes, len);

	return json != NULL ? json : json_null();
}

void json_append(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}
