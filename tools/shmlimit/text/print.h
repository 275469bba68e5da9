/*
 * print.h: lines and JSON on standard output.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef PRINT_H
#define PRINT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A line `name: value`; JSON. */
void print_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
int print_json(json_t *root);        /* takes the reference; NULL means out of memory; a status */
char *json_write(json_t *root);      /* the same as text, which is the caller's to free, or NULL */
char *json_write_line(json_t *root); /* on one line */
#define JSON_NUMBER_MAX (UINT64_C(1) << 53)
json_t *json_number(uint64_t value);               /* above that, a string of its digits */
json_t *json_duration(uint64_t ns);                /* UINT64_MAX, never, becomes null */
json_t *json_text(const char *text);               /* bytes that are not UTF-8 become U+FFFD */
json_t *json_bytes(const void *bytes, size_t len); /* null if they are not UTF-8 */
void json_append(json_t **list, json_t *item);     /* takes the item; out of memory makes *list NULL */

#endif
