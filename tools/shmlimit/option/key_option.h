/*
 * key_option.h: a key as it was given: an operand, or an option.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef KEY_OPTION_H
#define KEY_OPTION_H

#include <stddef.h>
#include <stdint.h>

#include "command.h"

/*
 * A key as it was given, as an operand or by an option. Rows of the tables of commands that take
 * one; the operand KEY is then left out, and is NULL.
 */
#define KEY_OPTION_ROWS \
	{ "key-ip", "ADDR", "instead of KEY: the key that servers make from an address, or from ADDR/N" }, \
		{ "key-text", "TEXT", "instead of KEY: this text as it stands, also if it is an address" }, \
	{ \
		"key-hex", "HEX", "instead of KEY: its bytes in hexadecimal" \
	}
#define KEY_PREFIX_ROW \
	{ \
		"prefix", "N,M", "bits of --key-ip that count (default 32,64), or of a KEY that is an address" \
	}
#define KEY_FINGERPRINT_ROW \
	{ \
		"fingerprint", "HEX", "instead of KEY: the fingerprint that inspect shows" \
	}

/* What one customer has. */
#define KEY_PREFIX_V4 32u
#define KEY_PREFIX_V6 64u

struct key {
	const char *text; /* as an operand or --key had it, or NULL; see key_form.h for one that is an address */
	size_t len;       /* 0: only its fingerprint is known */
	unsigned char bytes[SHMLIMIT_KEY_MAX];
	uint64_t fingerprint;
};

int key_text_parse(const char *text, struct key *key);                     /* a status; as an operand */
int key_ip_parse(const char *text, const char *prefix, struct key *key);   /* as --key-ip; prefix: --prefix or NULL */
int key_parse(const struct call *call, const char *text, struct key *key); /* a status; text: KEY, or NULL */
/* "24" or "24,64", up to `end`. Returns 0 if it is neither; what it lacks stays as it is. */
int prefixes_parse(const char *text, const char *end, unsigned *v4, unsigned *v6);

#endif
