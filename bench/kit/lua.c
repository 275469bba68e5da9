/*
 * lua: see lua.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <lua5.1/lauxlib.h>
#include <lua5.1/lualib.h>

#include "bench.h"
#include "lua.h"

/* Values are strings, and what is missing is false, as in Redis. */
static const char around[] =
	"local values, ends, now, verbs = {}, {}, 0, {}\n"
	"local function value(key)\n"
	"  if ends[key] and ends[key] <= now then values[key], ends[key] = nil, nil end\n"
	"  return values[key]\n"
	"end\n"
	"function verbs.TIME()\n"
	"  return { string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000) }\n"
	"end\n"
	"function verbs.GET(key) return value(key) or false end\n"
	"function verbs.SET(key, text, _, ms) values[key], ends[key] = text, now + ms * 1000 end\n"
	"redis = { error_reply = error, call = function(verb, ...) return verbs[verb](...) end }\n"
	"KEYS, ARGV = {}, {}\n"
	"local script = ...\n"
	"return function(at, key, ...)\n"
	"  now, KEYS[1] = at, key\n"
	"  for i = 1, math.max(#ARGV, select('#', ...)) do ARGV[i] = (select(i, ...)) end\n"
	"  return unpack(script())\n"
	"end\n";

static lua_State *state;

static void check(int error, const char *what)
{
	if (error != 0)
		bench_fail(what, lua_tostring(state, -1));
}

void lua_begin(const char *script)
{
	state = luaL_newstate();
	if (state == NULL)
		bench_fail("Lua", "no memory");
	luaL_openlibs(state);
	check(luaL_loadbuffer(state, around, sizeof(around) - 1, "=around"), "Lua");
	check(luaL_loadstring(state, script), "the script");
	check(lua_pcall(state, 1, 1, 0), "Lua");
	/* What is called stays at the bottom of the stack. */
}

void lua_ask(uint64_t now_us, const char *key, size_t key_len, char *const *args, int arg_count, int64_t *reply, int n)
{
	lua_pushvalue(state, 1);
	lua_pushnumber(state, (lua_Number)now_us);
	lua_pushlstring(state, key, key_len);
	for (int i = 0; i < arg_count; i++)
		lua_pushstring(state, args[i]);
	check(lua_pcall(state, 2 + arg_count, n, 0), "the script");
	for (int i = 0; i < n; i++)
		reply[i] = (int64_t)lua_tonumber(state, i - n);
	lua_settop(state, 1);
}

void lua_end(void)
{
	lua_close(state);
}
