/*
 * library: structures of shmlimit.h and shmlimit_gate.h, and the functions that bind() gets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_PYTHON_LIBRARY_H
#define SHMLIMIT_PYTHON_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#define REQUESTS_MAX 16
#define FIELDS_MAX 36
#define BUFFER_EACH 416
#define BUFFER_REST 128

struct result {
	uint64_t limit, remaining, wait_ns, retry_after_ns, reset_after_ns, granted;
};

struct request {
	int32_t rule;
	uint32_t reserved32;
	const void *key;
	size_t key_len;
	uint64_t cost;
	const void *limit;
	void *place;
};

enum verb { VERB_TAKE = 0, VERB_PEEK = 1 };

struct count_request {
	uint32_t struct_size, flags;
	int64_t n, bound;
	uint64_t ttl_ns;
};

struct count {
	uint32_t struct_size, reserved32;
	int64_t count, applied;
	uint64_t ttl_ns;
};

struct gate_key {
	uint32_t limit, length;
	const void *bytes;
	uint64_t cost;
	const char *rate;
	uint32_t rate_length, share;
	const void *parsed;
};

struct gate_field {
	const char *name, *value;
	uint32_t name_length, value_length;
};

struct gate_answer {
	uint32_t struct_size, buffer_size;
	char *buffer;
	uint32_t outcome, status;
	int32_t error;
	uint32_t denied_by;
	uint64_t remaining, retry_after_ns;
	uint32_t field_count, reserved32;
	struct gate_field fields[FIELDS_MAX];
};

struct gate_held {
	uint32_t struct_size, count;
	uint64_t segment;
	struct {
		uint32_t key;
		int32_t rule;
		uint32_t struct_size, index;
		uint64_t value;
		uint32_t flags;
		int32_t bind_error;
	} places[REQUESTS_MAX];
	uint32_t bill_count, reserved32;
	struct {
		uint32_t key, reserved32;
		uint64_t paid;
	} bills[REQUESTS_MAX];
};

#ifdef SHMLIMIT_GATE_H /* tests/native.sh includes it */
#define SAME(s, m) \
	_Static_assert(sizeof(struct s) == sizeof(struct shmlimit_##s) && \
	                       offsetof(struct s, m) == offsetof(struct shmlimit_##s, m), \
	               #s)
SAME(result, reset_after_ns);
SAME(request, limit);
SAME(count, ttl_ns);
SAME(gate_key, parsed);
SAME(gate_field, value_length);
SAME(gate_answer, fields);
SAME(gate_held, bills);
_Static_assert((int)VERB_TAKE == (int)SHMLIMIT_TAKE && (int)VERB_PEEK == (int)SHMLIMIT_PEEK, "verbs");
_Static_assert(BUFFER_EACH == SHMLIMIT_GATE_BUFFER_EACH && REQUESTS_MAX == SHMLIMIT_REQUESTS_MAX, "constants");
#endif

/* The library's functions, in the order of limiter.py's tuple. */
struct functions {
	int (*rule_find)(void *limiter, const char *rule);
	int (*decide)(void *limiter, uint32_t verb, const struct request *request, struct result *r);
	int (*count)(void *limiter, int rule, const void *key, size_t key_len, const struct count_request *request,
	             struct count *out);
	int (*gate_ask)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out);
	int (*gate_enter)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out,
	                  struct gate_held *held);
	int (*gate_begin)(void *gate, const struct gate_key *keys, size_t n, struct gate_answer *out,
	                  struct gate_held *held, void **pending);
	int (*gate_leave)(void *gate, const struct gate_key *keys, size_t n, struct gate_held *held);
	int (*gate_attach)(void *gate);
	void (*gate_report)(void *gate, void (*report)(void *arg, int bad, const char *text), void *arg);
};

#endif
