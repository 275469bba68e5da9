/*
 * lua_value: what Lua passes, checked, and what it gets. The texts are those of resty/shmlimit.lua: what is a mistake of the
 * program is raised, and anything else is nil, a text and an errno.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LUA_VALUE_H
#define LUA_VALUE_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "shmlimit.h"

#define LUA_LIMIT "shmlimit.limit" /* names of metatables */

/* Return values: nil, "what: why", errno. `what` may be NULL. */
int value_failure(lua_State *L, int answer, const char *what);
/* The same of a text that could not be read. */
int value_unread(lua_State *L, const char *what, const struct shmlimit_problem *problem);

/* A whole number at `arg`. Above 2^53 there is none that Lua 5.1 could tell from its neighbours. */
int64_t value_whole(lua_State *L, int arg, const char *what, double least, double most);
/* Tokens at `arg`, or `if_none`. */
uint64_t value_tokens(lua_State *L, int arg, uint64_t if_none);
/* Seconds at `arg`, as nanoseconds; UINT64_MAX: never. */
uint64_t value_ns(lua_State *L, int arg, const char *what);
double value_number(lua_State *L, int arg, const char *what);

/*
 * Tokens that come back every *period_ns: whole, or what the shortest decimal of the number says, and then *period_ns is
 * changed. Raises an error that names it.
 */
void value_rate(lua_State *L, double rate, uint64_t *refill, uint64_t *period_ns);
/* A string without NUL. */
const char *value_name(lua_State *L, int arg, const char *what);
/* The bytes of a key; a number becomes its text. */
const char *value_key(lua_State *L, int arg, size_t *length);
/* Which of `names` the string at `arg` is; raises "there is no WHAT". */
int value_choice(lua_State *L, int arg, const char *what, const char *const names[]);

/*
 * The limit at `arg`: what shmlimit.limit() returned, or a text that is read into *room. NULL: there is none, and what
 * value_unread() wants is on the stack.
 */
const struct shmlimit_limit *value_limit(lua_State *L, int arg, struct shmlimit_limit *room);

/* Tokens, or math.huge; and seconds. */
void value_push_tokens(lua_State *L, uint64_t tokens);
void value_push_ns(lua_State *L, uint64_t ns);

/* A new class: its methods, and what is called when an object is collected. */
void value_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction collect);

#endif
