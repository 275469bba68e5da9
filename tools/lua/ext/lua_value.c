/*
 * lua_value: see lua_value.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "lua_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOKENS_MAX 9007199254740992.0

int value_failure(lua_State *L, int answer, const char *what)
{
	lua_pushnil(L);
	lua_pushfstring(L, "%s%s%s", what ? what : "", what ? ": " : "", shmlimit_strerror(answer));
	lua_pushinteger(L, answer < 0 ? -answer : answer);
	return 3;
}

int value_unread(lua_State *L, const char *what, const struct shmlimit_problem *problem)
{
	lua_pushnil(L);
	lua_pushfstring(L, "limit %s: %s", what, problem->text);
	lua_pushinteger(L, EINVAL);
	return 3;
}

/* Is it a whole number of this range? *n gets it. */
static int is_whole(lua_State *L, int arg, double least, double most, double *n)
{
	*n = lua_tonumber(L, arg);
	return lua_type(L, arg) == LUA_TNUMBER && *n >= least && *n <= most && floor(*n) == *n;
}

int64_t value_whole(lua_State *L, int arg, const char *what, double least, double most)
{
	double n;
	char range[80];

	if (!is_whole(L, arg, least, most, &n)) {
		snprintf(range, sizeof(range), "%.0f to %.0f", least, most);
		return luaL_error(L, "%s must be a whole number of %s", what, range);
	}
	return (int64_t)n;
}

uint64_t value_tokens(lua_State *L, int arg, uint64_t if_none)
{
	double n;

	if (lua_isnoneornil(L, arg))
		return if_none;
	if (!is_whole(L, arg, 0, TOKENS_MAX, &n))
		return (uint64_t)luaL_error(L, "tokens must be a whole number of 0 to 2^53");
	return (uint64_t)n;
}

uint64_t value_ns(lua_State *L, int arg, const char *what)
{
	double seconds = lua_tonumber(L, arg);

	if (lua_type(L, arg) != LUA_TNUMBER || !(seconds >= 0))
		return (uint64_t)luaL_error(L, "%s must be a number of seconds, 0 or more", what);
	return seconds >= 0x1p63 / 1e9 ? UINT64_MAX : (uint64_t)(seconds * 1e9 + 0.5);
}

double value_number(lua_State *L, int arg, const char *what)
{
	if (lua_type(L, arg) != LUA_TNUMBER)
		luaL_error(L, "%s must be a number", what);
	return lua_tonumber(L, arg);
}

void value_rate(lua_State *L, double rate, uint64_t *refill, uint64_t *period_ns)
{
	char said[120];
	int error;

	if (rate >= 0 && rate <= TOKENS_MAX && floor(rate) == rate) {
		*refill = (uint64_t)rate;
		return;
	}
	error = shmlimit_rate_from_double(rate, *period_ns, refill, period_ns);
	if (error == 0)
		return;
	if (error == -ERANGE)
		snprintf(said, sizeof(said), "refill %.14g: the nearest that can be is %.14g", rate,
		         rate < 1 ? (double)*period_ns * 0x1p-60 : 0x1p64 - 2048);
	else
		snprintf(said, sizeof(said), "refill %.14g: must be a finite number above 0, of a period above 0",
		         rate);
	luaL_error(L, "%s", said);
}

const char *value_name(lua_State *L, int arg, const char *what)
{
	size_t length;
	const char *name = lua_type(L, arg) == LUA_TSTRING ? lua_tolstring(L, arg, &length) : NULL;

	if (!name || strlen(name) != length)
		luaL_error(L, "%s must be a string without NUL", what);
	return name;
}

const char *value_key(lua_State *L, int arg, size_t *length)
{
	if (lua_type(L, arg) != LUA_TSTRING && lua_type(L, arg) != LUA_TNUMBER)
		luaL_error(L, "a key must be a string");
	return lua_tolstring(L, arg, length);
}

int value_choice(lua_State *L, int arg, const char *what, const char *const names[])
{
	const char *given = lua_type(L, arg) == LUA_TSTRING ? lua_tostring(L, arg) : NULL;

	for (int i = 0; given && names[i]; i++)
		if (strcmp(names[i], given) == 0)
			return i;
	return luaL_error(L, "there is no %s %s", what, luaL_tolstring(L, arg, NULL));
}

const struct shmlimit_limit *value_limit(lua_State *L, int arg, struct shmlimit_limit *room)
{
	struct shmlimit_problem problem = { 0 };
	const struct shmlimit_limit *limit = luaL_testudata(L, arg, LUA_LIMIT);
	const char *text;

	if (limit)
		return limit;
	if (lua_type(L, arg) != LUA_TSTRING)
		luaL_error(L, "a limit must be a text, or what shmlimit.limit() returned");
	text = value_name(L, arg, "a limit");
	*room = (struct shmlimit_limit){ .struct_size = sizeof(*room) };
	if (shmlimit_limit_parse(text, room, &problem) == 0)
		return room;
	value_unread(L, text, &problem);
	return NULL;
}

void value_push_tokens(lua_State *L, uint64_t tokens)
{
	if (tokens > INT64_MAX)
		lua_pushnumber(L, HUGE_VAL);
	else
		lua_pushinteger(L, (lua_Integer)tokens);
}

void value_push_ns(lua_State *L, uint64_t ns)
{
	lua_pushnumber(L, ns == UINT64_MAX ? HUGE_VAL : (double)ns / 1e9);
}

void value_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction collect)
{
	luaL_newmetatable(L, name);
	lua_newtable(L);
	luaL_setfuncs(L, methods, 0);
	lua_setfield(L, -2, "__index");
	if (collect) {
		lua_pushcfunction(L, collect);
		lua_setfield(L, -2, "__gc");
	}
	/* Lua code that got the metatable could call its __gc. */
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
