/*
 * native: what the files of the extension share.
 *
 * The interpreter's lock (GVL) is held during every call that cannot wait, since
 * giving it up costs more than a decision. It is released where a call may wait:
 * for the lock of writers of rules, for memory, or for a Redis server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_RUBY_NATIVE_H
#define SHMLIMIT_RUBY_NATIVE_H

#include <ruby.h>

#include "shmlimit_gate.h"

#define SECOND_NS UINT64_C(1000000000)

/* A handle that must not be closed while a thread without the GVL uses it. */
struct use {
	int threads;
};

/* A key's bytes belong to a String or Symbol: keep `owner` on the stack while they are used. */
struct key {
	VALUE owner;
	const char *bytes;
	size_t length;
};

/* Raise Shmlimit::Error: "WHAT: what shmlimit_strerror() says", with the number as its errno. Does not return. */
__attribute__((noreturn)) void native_raise(int error, const char *what);

/* Raise Shmlimit::Error for `error`, if it is one (below 0), of a key under a rule. Returns the answer else. */
int native_check(int error, VALUE rule);

struct key native_key(VALUE key);
uint64_t native_u64(VALUE number, const char *what);
/* Seconds, as any number, to nanoseconds; nil is 0. */
uint64_t native_ns(VALUE seconds, const char *what);
/*
 * Tokens that come back every *period_ns: an Integer, or a Float, which is what its shortest decimal says, and then
 * *period_ns is changed.
 */
uint64_t native_rate(VALUE refill, uint64_t *period_ns);

/* Nanoseconds to seconds; UINT64_MAX is Float::INFINITY. */
VALUE native_seconds(uint64_t ns);

/* Call function(arg) without the GVL, with the handle in use. */
int native_wait(struct use *use, int (*function)(void *arg), void *arg);
/* Raise if another thread uses the handle; else it may be closed. */
void native_check_unused(const struct use *use);

void limiter_init(VALUE shmlimit);
void decision_init(VALUE shmlimit, VALUE limiter);
void gate_init(VALUE shmlimit);
void counts_init(VALUE shmlimit);

#endif
