/*
 * log_record.h: where a record of a log ends: it is a line, or one of several JSON objects of a
 * line, side by side or in an array. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LOG_RECORD_H
#define LOG_RECORD_H

#include <stddef.h>

struct log_record {
	size_t begin, end; /* of the record */
	size_t next;       /* behind it, or behind what is no record */
	int found;         /* is it one? */
	int inside;        /* what follows is of the same line */
};

/*
 * Looks at the bytes at which a record begins, or, if `inside`, at which a line goes on behind an
 * object. `whole`: there are no more bytes. Returns 0 if more of them are needed.
 */
int log_record_find(const char *at, size_t len, int inside, int whole, struct log_record *out);

#endif
