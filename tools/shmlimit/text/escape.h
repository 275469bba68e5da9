/*
 * escape.h: bytes of any origin as text for terminals and files.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Bytes of any origin as text for terminals and files. Each byte of what does not print as it is
 * becomes \xNN. All that the command writes goes through here, unless JSON's own escapes do it.
 */
enum {
	ESCAPE_BACKSLASH = 1, /* and a backslash becomes two: no two inputs become one text */
	ESCAPE_EXPORT = 2,    /* for a file: the same in every locale */
};

#define ESCAPE_ONE_LEN 5
/* The character, or byte, that `from` begins with. Returns how many bytes that is. */
size_t escape_one(char to[ESCAPE_ONE_LEN], const void *from, size_t len, unsigned how);
/* All of it, into 4 * len + 1 bytes. Returns where it ends. */
char *escape(char *to, const void *from, size_t len, unsigned how);
void print_clean(FILE *to, const char *text); /* escaped, backslashes as they are */
/*
 * How many bytes the UTF-8 character has that `from`, of 1 byte or more, begins with; 0: it begins
 * with none.
 */
size_t utf8_read(const void *from, size_t len, uint32_t *c);

#endif
