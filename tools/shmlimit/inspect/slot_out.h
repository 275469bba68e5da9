/*
 * slot_out.h: live slots as text and as JSON. A million of them is printed in less than a second;
 * printf() alone, six fields a slot, would take longer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SLOT_OUT_H
#define SLOT_OUT_H

#include "key_text.h"
#include "top_keys.h"

#define SLOT_OUT_BUFFER 65536
#define SLOT_OUT_LINE (8 * KEY_TEXT_LEN) /* a key, each byte of it as \\u0000 and in hexadecimal, and all else */

/* What is printed next, and the names of rules, asked for once each. */
struct slot_out {
	struct shmlimit *limiter;
	int keeps_keys;
	size_t len;
	char (*name)[SHMLIMIT_RULE_NAME_MAX + 1];
	char *known;
	char text[SLOT_OUT_BUFFER + SLOT_OUT_LINE];
};

struct slot_out *slot_out_new(struct shmlimit *limiter); /* NULL: out of memory, which was said */
void slot_out_free(struct slot_out *out);                /* NULL is allowed */

void out_bytes(struct slot_out *out, const char *text, size_t len);
void out_text(struct slot_out *out, const char *text);
void out_spaces(struct slot_out *out, size_t n);
void out_number(struct slot_out *out, uint64_t number);
void out_fingerprint(struct slot_out *out, uint64_t fingerprint);
void out_key(struct slot_out *out, const struct top_key *slot); /* "#" and its fingerprint if it is not known, as top */
/*
 * Print the buffer if it holds more bytes than that: called after each line, and with 0 after the
 * last one.
 */
void out_flush(struct slot_out *out, size_t above);

const char *out_rule_name(struct slot_out *out, int rule);            /* "": the rule was removed since */
void out_slot_json(struct slot_out *out, const struct top_key *slot); /* an object, on one line */

unsigned digits_of(uint64_t number);

#endif
