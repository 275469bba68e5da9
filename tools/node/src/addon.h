/*
 * addon: what the files of the addon share. A limiter, a gate or a backend is a small number to JavaScript: its place in a table.
 * Each environment, which is the main thread or a worker thread of Node, has its own tables.
 *
 * Functions for JavaScript return 0 or more, or a negative errno value, of which the classes in index.js make an
 * exception. Figures of an answer go to `numbers`, which JavaScript sees as a Float64Array: so a call allocates nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_NODE_ADDON_H
#define SHMLIMIT_NODE_ADDON_H

#define NAPI_VERSION 6
#include <node_api.h>

#include "shmlimit_gate.h"

/* Bytes for a key: as many as a key may have, and enough to see that it has more. */
#define KEY_SIZE (SHMLIMIT_KEY_MAX + 8)

#define WHOLE_MAX 9007199254740992.0 /* 2^53: JavaScript has whole numbers up to it */

/* Where the figures are. */
enum number {
	LIMIT,
	REMAINING,
	WAIT_MS,
	RETRY_AFTER_MS,
	RESET_AFTER_MS,
	COUNT,
	APPLIED,
	TTL_MS,
	GRANTED,
	OUTCOME,
	STATUS,
	FAILURE,
	DENIED_BY,
	GATE_REMAINING,
	GATE_RETRY_AFTER_MS,
	NUMBERS
};

struct table {
	void **items;
	uint32_t count;
};

struct addon {
	double *numbers;
	napi_ref keeps_numbers;
	struct table limiters, gates, hosts;
};

/* The place of the item, or -ENOMEM. */
int table_add(struct table *table, void *item);

/* The item at a place that JavaScript gave, or NULL. */
void *table_get(napi_env env, const struct table *table, napi_value place);

/* Also takes it out of the table. */
void *table_remove(napi_env env, struct table *table, napi_value place);

/* Its addon, and up to `max` arguments; those that are missing are undefined. */
struct addon *arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t max);

napi_value integer(napi_env env, int64_t value);

/* A whole number from 0 to 2^53. Returns 0 or -EINVAL. */
int read_whole(napi_env env, napi_value value, uint64_t *out);

/* Milliseconds, as nanoseconds; Infinity is UINT64_MAX. Returns 0 or -EINVAL. */
int read_ms(napi_env env, napi_value value, uint64_t *out_ns);
double to_ms(uint64_t ns);

/*
 * Tokens that come back every *period_ns, of a number: whole, or what its shortest decimal says, and then *period_ns is
 * changed. 0, or an error of shmlimit_rate_from_double().
 */
int to_rate(double rate, uint64_t *refill, uint64_t *period_ns);

/* UTF-8 without NUL, which C would take for the end. Returns 0, -EINVAL, -EILSEQ or -ENAMETOOLONG. */
int read_name(napi_env env, napi_value value, char *name, size_t size);

/* The bytes of a string, in `buffer`, or of a Uint8Array, where they are. NULL: it is neither. */
const void *read_bytes(napi_env env, napi_value value, char *buffer, size_t size, size_t *length);

struct method {
	const char *name;
	napi_callback function;
};
extern const struct method segment_methods[], limiter_methods[], gate_methods[], ask_methods[], pending_methods[],
	hosts_methods[];

void limiter_free(void *limiter);
void gate_end(void *gate);
void hosts_end(void *hosts);

#endif
