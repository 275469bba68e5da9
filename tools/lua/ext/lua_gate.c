/*
 * lua_gate: the module shmlimit.gate for Lua 5.3 and 5.4: the limits of a server in one call per request, as a text describes
 * them. resty/shmlimit/gate.lua is the same by LuaJIT's FFI.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "lua_value.h"
#include "shmlimit_gate.h"

#define GATE "shmlimit.gate"
#define HELD "shmlimit.gate.held"

struct lua_gate {
	struct shmlimit_gate *gate;         /* NULL: it is closed, and calls return an error */
	struct shmlimit_gate_answer answer; /* the last one, for its fields */
	char buffer[SHMLIMIT_GATE_BUFFER];
};

/* A request's keys, which are on Lua's stack. */
struct lua_keys {
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n;
};

static struct lua_gate *gate(lua_State *L)
{
	return luaL_checkudata(L, 1, GATE);
}

static int module_new(lua_State *L)
{
	size_t length;
	const char *spec = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &length) : NULL;
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	struct lua_gate *self;
	int answer;

	if (!spec || strlen(spec) != length)
		return luaL_error(L, "a spec must be a string without NUL");
	self = lua_newuserdata(L, sizeof(*self));
	self->gate = NULL;
	self->answer = (struct shmlimit_gate_answer){ .struct_size = sizeof(self->answer) };
	luaL_setmetatable(L, GATE);
	answer = shmlimit_gate_open(spec, &self->gate);
	if (answer == 0)
		return 1;
	self->gate = NULL;
	if (answer != -EINVAL || shmlimit_gate_check(spec, &wrong) == 0)
		return value_failure(L, answer, NULL);
	lua_pushnil(L);
	lua_pushlstring(L, spec + wrong.offset, wrong.length);
	lua_pushfstring(L, "%s: %s", lua_tostring(L, -1), wrong.text);
	lua_remove(L, -2);
	lua_pushinteger(L, EINVAL);
	return 3;
}

static int gate_attach(lua_State *L)
{
	int answer = shmlimit_gate_attach(gate(L)->gate);

	if (answer < 0)
		return value_failure(L, answer, NULL);
	lua_pushboolean(L, 1);
	return 1;
}

static int gate_limits(lua_State *L)
{
	struct lua_gate *self = gate(L);

	lua_pushinteger(L, self->gate ? (lua_Integer)shmlimit_gate_limits(self->gate) : 0);
	return 1;
}

/* forwarded(peer[, field]): is it to be said now that the peer, which is the key, is a proxy? Once in a process; without a field: may it be? */
static int gate_forwarded(lua_State *L)
{
	size_t length;
	const char *peer = luaL_checklstring(L, 2, &length);
	struct shmlimit_gate_key key = { .bytes = peer, .length = (uint32_t)length };

	lua_pushboolean(
		L, shmlimit_gate_forwarded(gate(L)->gate, &key, 1, peer, length, luaL_optstring(L, 3, NULL), "") == 1);
	return 1;
}

/* The key of the i-th limit: a string, nil, or { key, cost, limit }, which stays on the stack with what it points to. */
static void read_key(lua_State *L, int arg, struct shmlimit_gate_key *key, uint32_t limit)
{
	size_t length = 0;
	int at = arg;

	*key = (struct shmlimit_gate_key){ .limit = limit };
	if (lua_istable(L, arg)) {
		at = lua_gettop(L) + 1;
		for (int i = 1; i <= 3; i++)
			lua_rawgeti(L, arg, i);
		if (!lua_isnil(L, at + 1)) {
			double cost = lua_tonumber(L, at + 1);

			if (lua_type(L, at + 1) != LUA_TNUMBER || !(cost >= 0 && cost <= 0x1p53) ||
			    cost != (double)(uint64_t)cost)
				luaL_error(L, "a cost must be a whole number of 0 to 2^53");
			key->cost = (uint64_t)cost;
		}
		key->parsed = luaL_testudata(L, at + 2, LUA_LIMIT);
		if (lua_type(L, at + 2) == LUA_TSTRING) {
			key->rate = lua_tolstring(L, at + 2, &length);
			key->rate_length = (uint32_t)length;
		} else if (!lua_isnil(L, at + 2) && !key->parsed) {
			luaL_error(L, "a limit must be a text, or what shmlimit.limit() returned");
		}
	}
	if (lua_isnoneornil(L, at))
		return;
	if (lua_type(L, at) != LUA_TSTRING && lua_type(L, at) != LUA_TNUMBER)
		luaL_error(L, "a key must be a string, nil, or { key, cost, limit }");
	key->bytes = lua_tolstring(L, at, &length);
	key->length = (uint32_t)length;
}

/* The keys that are the arguments from `first` to `last`. */
static void read_keys(lua_State *L, int first, int last, struct lua_keys *all)
{
	all->n = (size_t)(last - first + 1);
	if (all->n > SHMLIMIT_REQUESTS_MAX)
		luaL_error(L, "a request has at most %d keys", SHMLIMIT_REQUESTS_MAX);
	luaL_checkstack(L, 4 * SHMLIMIT_REQUESTS_MAX, NULL);
	for (int i = first; i <= last; i++)
		read_key(L, i, &all->keys[i - first], (uint32_t)(i - first));
}

static int push_answer(lua_State *L, int answer, const struct shmlimit_gate_answer *out)
{
	static const char *const outcomes[] = { "unlimited", "passed",  "rejected",       "rejected_dry_run",
		                                "failed",    "delayed", "delayed_dry_run" };

	if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED) {
		lua_pushnil(L);
		lua_pushinteger(L, 0);
		lua_pushinteger(L, 0);
		value_push_tokens(L, UINT64_MAX);
		lua_pushstring(L, "failed");
		lua_pushstring(L, shmlimit_strerror(answer));
		return 6;
	}
	lua_pushboolean(L, answer == SHMLIMIT_ALLOWED);
	lua_pushinteger(L, out->status);
	value_push_ns(L, out->retry_after_ns);
	value_push_tokens(L, out->remaining);
	lua_pushstring(L, outcomes[out->outcome]);
	if (out->error)
		lua_pushstring(L, shmlimit_strerror(out->error));
	else
		lua_pushnil(L);
	return 6;
}

static void prepare(struct lua_gate *self)
{
	self->answer.buffer = self->buffer;
	self->answer.buffer_size = sizeof(self->buffer);
	self->answer.field_count = 0;
}

static int gate_ask(lua_State *L)
{
	struct lua_gate *self = gate(L);
	struct lua_keys all;

	read_keys(L, 2, lua_gettop(L), &all);
	prepare(self);
	return push_answer(L, shmlimit_gate_ask(self->gate, all.keys, all.n, &self->answer), &self->answer);
}

/* As ask(), with what is to be left or settled as the seventh: { held, keys ... }; nil where there is nothing. */
static int gate_enter(lua_State *L)
{
	struct lua_gate *self = gate(L);
	struct lua_keys all;
	struct shmlimit_gate_held *held;
	int n = lua_gettop(L);
	int answer;

	lua_createtable(L, n, 1);
	held = lua_newuserdata(L, sizeof(*held));
	*held = (struct shmlimit_gate_held){ .struct_size = sizeof(*held) };
	luaL_setmetatable(L, HELD);
	lua_rawseti(L, n + 1, 1);
	lua_pushinteger(L, n - 1);
	lua_setfield(L, n + 1, "n");
	for (int i = 2; i <= n; i++) {
		lua_pushvalue(L, i);
		lua_rawseti(L, n + 1, i);
	}
	read_keys(L, 2, n, &all);
	prepare(self);
	answer = shmlimit_gate_enter(self->gate, all.keys, all.n, &self->answer, held);
	push_answer(L, answer, &self->answer);
	if (held->count || held->bill_count)
		lua_pushvalue(L, n + 1);
	else
		lua_pushnil(L);
	return 7;
}

/*
 * What enter() returned, which is at 2, and its keys from `first` on. Returns NULL where there is nothing to leave.
 */
static struct shmlimit_gate_held *read_held(lua_State *L, int first, struct lua_keys *all)
{
	struct shmlimit_gate_held *held;
	lua_Integer n;

	if (lua_isnil(L, 2))
		return NULL;
	luaL_checktype(L, 2, LUA_TTABLE);
	luaL_checkstack(L, 2 * SHMLIMIT_REQUESTS_MAX, NULL);
	lua_getfield(L, 2, "n");
	n = lua_tointeger(L, first);
	lua_rawgeti(L, 2, 1);
	held = luaL_testudata(L, first + 1, HELD);
	if (!held || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		luaL_error(L, "what is left must be what enter() returned");
	for (lua_Integer i = 0; i < n; i++)
		lua_rawgeti(L, 2, i + 2);
	read_keys(L, first + 2, first + 1 + (int)n, all);
	return held;
}

static int push_done(lua_State *L, int answer)
{
	if (answer < 0)
		return value_failure(L, answer, NULL);
	lua_pushboolean(L, 1);
	return 1;
}

static int gate_leave(lua_State *L)
{
	struct lua_gate *self = gate(L);
	struct lua_keys all;
	struct shmlimit_gate_held *held;

	lua_settop(L, 2);
	held = read_held(L, 3, &all);
	return push_done(L, held ? shmlimit_gate_leave(self->gate, all.keys, all.n, held) : 0);
}

/* A number of tokens for each key, or nil where it is not known. */
static int gate_settle(lua_State *L)
{
	struct lua_gate *self = gate(L);
	struct lua_keys all;
	struct shmlimit_gate_held *held;
	uint64_t used[SHMLIMIT_REQUESTS_MAX];

	lua_settop(L, 2 + SHMLIMIT_REQUESTS_MAX);
	for (int i = 0; i < SHMLIMIT_REQUESTS_MAX; i++)
		used[i] = value_tokens(L, 3 + i, SHMLIMIT_GATE_NOT_KNOWN);
	held = read_held(L, 3 + SHMLIMIT_REQUESTS_MAX, &all);
	return push_done(L, held ? shmlimit_gate_settle(self->gate, all.keys, all.n, used, held) : 0);
}

/* Set the header fields of the last answer in a table, or return a new one. Fields of one name are joined. */
static int gate_fields(lua_State *L)
{
	struct lua_gate *self = gate(L);

	lua_settop(L, 2);
	lua_newtable(L);
	for (uint32_t i = 0; i < self->answer.field_count; i++) {
		const struct shmlimit_gate_field *field = &self->answer.fields[i];

		if (lua_getfield(L, 3, field->name) == LUA_TNIL)
			lua_pushstring(L, field->value);
		else
			lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), field->value);
		lua_setfield(L, 3, field->name);
		lua_pop(L, 1);
	}
	if (lua_isnil(L, 2))
		return 1;
	lua_pushnil(L);
	while (lua_next(L, 3)) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_settable(L, 2);
	}
	lua_pushvalue(L, 2);
	return 1;
}

static int gate_close(lua_State *L)
{
	struct lua_gate *self = gate(L);

	shmlimit_gate_close(self->gate);
	self->gate = NULL;
	return 0;
}

static const luaL_Reg methods[] = { { "attach", gate_attach }, { "limits", gate_limits },
	                            { "ask", gate_ask },       { "forwarded", gate_forwarded },
	                            { "enter", gate_enter },   { "leave", gate_leave },
	                            { "settle", gate_settle }, { "fields", gate_fields },
	                            { "close", gate_close },   { NULL, NULL } };
static const luaL_Reg functions[] = { { "new", module_new }, { NULL, NULL } };
static const luaL_Reg no_methods[] = { { NULL, NULL } };

__attribute__((visibility("default"))) int luaopen_shmlimit_gate(lua_State *L);

int luaopen_shmlimit_gate(lua_State *L)
{
	value_class(L, GATE, methods, gate_close);
	value_class(L, HELD, no_methods, NULL);
	luaL_newlib(L, functions);
	lua_pushstring(L, SHMLIMIT_VERSION);
	lua_setfield(L, -2, "_VERSION");
	return 1;
}
