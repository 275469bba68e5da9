/*
 * lua: a backend's script, in the Lua that backends have, over hashes and a clock of
 * its own. What there is of redis.call is TIME, GET and SET.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_LUA_H
#define BENCH_KIT_LUA_H

#include <stddef.h>
#include <stdint.h>

/* Start again, with this script and without keys. */
void lua_begin(const char *script);

/* What the script returns for one key, at that time, by the backend's clock: n numbers. */
void lua_ask(uint64_t now_us, const char *key, size_t key_len, char *const *args, int arg_count, int64_t *reply, int n);

void lua_end(void);

#endif
