/*
 * lua_limiter: the module shmlimit for Lua 5.3 and 5.4: segments, rules and decisions. README.md says what each call returns;
 * resty/shmlimit.lua is the same by LuaJIT's FFI.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lua_value.h"

#define LIMITER "shmlimit.limiter"
#define PLACE "shmlimit.place"
#define RULE_LAST (SHMLIMIT_RULES_MAX - 1)
#define COUNT_MAX 2147483647.0
#define TOKENS_MAX 9007199254740992.0
#define FAILED(L, answer, rule) value_failure((L), (answer), rule_words((L), (rule)))

struct lua_limiter {
	struct shmlimit *handle; /* NULL: it is closed, and calls return an error */
	char name[SHMLIMIT_NAME_MAX + 1];
};

/* What a call is about, as its first three arguments have it. */
struct asked {
	struct shmlimit *handle;
	int rule; /* below 0: the error of looking it up */
	const char *key;
	size_t key_len;
};

static struct lua_limiter *limiter(lua_State *L)
{
	return luaL_checkudata(L, 1, LIMITER);
}

static const char *rule_words(lua_State *L, int arg)
{
	return lua_pushfstring(L, "rule %s", luaL_tolstring(L, arg, NULL));
}

static int rule_of(lua_State *L, int arg)
{
	double id = lua_tonumber(L, arg);

	if (lua_type(L, arg) != LUA_TNUMBER)
		return shmlimit_rule_find(limiter(L)->handle, value_name(L, arg, "a rule"));
	if (!(id >= 0 && id <= RULE_LAST) || id != (int)id)
		return luaL_error(L, "a rule must be its name, or its id of 0 to %d", RULE_LAST);
	return (int)id;
}

static struct asked asked(lua_State *L)
{
	struct asked a = { .handle = limiter(L)->handle };

	a.rule = rule_of(L, 2);
	a.key = value_key(L, 3, &a.key_len);
	return a;
}

static int push_decision(lua_State *L, int answer, const struct shmlimit_result *r)
{
	if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, answer == SHMLIMIT_ALLOWED);
	value_push_tokens(L, r->remaining);
	value_push_ns(L, answer == SHMLIMIT_ALLOWED ? r->wait_ns : r->retry_after_ns);
	value_push_ns(L, r->reset_after_ns);
	value_push_tokens(L, r->limit);
	return 5;
}

/* By the limit that is argument `arg`, if there is one. */
static int operate(lua_State *L, enum shmlimit_verb verb, int arg)
{
	struct asked a = asked(L);
	struct shmlimit_request q = { .rule = a.rule, .key = a.key, .key_len = a.key_len };
	struct shmlimit_limit room;
	struct shmlimit_result r;

	q.cost = value_tokens(L, 4, 1);
	if (!lua_isnoneornil(L, arg)) {
		q.limit = value_limit(L, arg, &room);
		if (q.limit == NULL)
			return 3;
	}
	return push_decision(L, shmlimit_decide(a.handle, verb, &q, &r), &r);
}

static int limiter_take(lua_State *L)
{
	return operate(L, SHMLIMIT_TAKE, 5);
}

/* As limiter_take(), but how many tokens were taken in place of whether. */
static int limiter_take_some(lua_State *L)
{
	struct asked a = asked(L);
	struct shmlimit_request q = { .rule = a.rule, .key = a.key, .key_len = a.key_len };
	struct shmlimit_limit room;
	struct shmlimit_result r;
	int answer, n;

	if (lua_isnoneornil(L, 4))
		return luaL_error(L, "tokens must be a whole number of 0 to 2^53");
	q.cost = value_tokens(L, 4, 1);
	if (!lua_isnoneornil(L, 5)) {
		q.limit = value_limit(L, 5, &room);
		if (q.limit == NULL)
			return 3;
	}
	answer = shmlimit_decide(a.handle, SHMLIMIT_TAKE_SOME, &q, &r);
	n = push_decision(L, answer, &r);
	if (answer >= 0) {
		value_push_tokens(L, r.granted);
		lua_replace(L, -n - 1);
	}
	return n;
}

static int limiter_peek(lua_State *L)
{
	return operate(L, SHMLIMIT_PEEK, 5);
}
static int limiter_charge(lua_State *L)
{
	return operate(L, SHMLIMIT_CHARGE, 5);
}
static int limiter_refund(lua_State *L)
{
	return operate(L, SHMLIMIT_REFUND, 5);
}

static int limiter_reserve(lua_State *L)
{
	struct asked a = asked(L);
	struct shmlimit_result r;
	uint64_t tokens = value_tokens(L, 4, 1);
	uint64_t max_wait_ns = lua_isnoneornil(L, 5) ? UINT64_MAX : value_ns(L, 5, "max_wait");

	if (lua_isnoneornil(L, 6))
		return push_decision(L, shmlimit_reserve(a.handle, a.rule, a.key, a.key_len, tokens, max_wait_ns, &r),
		                     &r);
	if (!lua_isnil(L, 5))
		return luaL_error(L, "a limit has its own max_wait");
	return operate(L, SHMLIMIT_RESERVE, 6);
}

static int limiter_count(lua_State *L)
{
	static const char *const ways[] = { "saturate", "restart", NULL };
	static const uint32_t flags[] = { SHMLIMIT_COUNT_SATURATE, SHMLIMIT_COUNT_RESTART };
	struct asked a = asked(L);
	struct shmlimit_count_request request = { .struct_size = sizeof(request), .n = 1, .bound = (int64_t)COUNT_MAX };
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	const char *way;
	int answer;

	if (!lua_isnoneornil(L, 4))
		request.n = value_whole(L, 4, "n", -COUNT_MAX, COUNT_MAX);
	if (!lua_isnoneornil(L, 5))
		request.bound = value_whole(L, 5, "bound", 0, COUNT_MAX);
	if (!lua_isnoneornil(L, 6))
		request.ttl_ns = value_ns(L, 6, "ttl");
	if (!lua_isnoneornil(L, 7)) {
		way = lua_tostring(L, 7);
		for (int i = 0; ways[i]; i++)
			if (way && strcmp(way, ways[i]) == 0)
				request.flags = flags[i];
		if (!request.flags)
			return luaL_error(L, "a count is \"saturate\" or \"restart\"");
	}
	answer = shmlimit_count(a.handle, a.rule, a.key, a.key_len, &request, &out);
	if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, answer == SHMLIMIT_ALLOWED);
	lua_pushinteger(L, out.count);
	lua_pushinteger(L, out.applied);
	value_push_ns(L, out.ttl_ns);
	return 4;
}

/* The place, or false, and what other decisions return. */
static int limiter_enter(lua_State *L)
{
	struct asked a = asked(L);
	struct shmlimit_request q = { .rule = a.rule, .key = a.key, .key_len = a.key_len, .cost = 1 };
	struct shmlimit_place *place;
	struct shmlimit_limit room;
	struct shmlimit_result r;
	int answer, n;

	if (!lua_isnoneornil(L, 4)) {
		q.limit = value_limit(L, 4, &room);
		if (q.limit == NULL)
			return 3;
	}
	lua_settop(L, 3);
	place = lua_newuserdata(L, sizeof(*place));
	/* If this process dies, the place is free. One that is not bound ends with its period. */
	*place = (struct shmlimit_place){ .struct_size = sizeof(*place), .flags = SHMLIMIT_PLACE_BIND };
	luaL_setmetatable(L, PLACE);
	q.place = place;
	answer = shmlimit_decide(a.handle, SHMLIMIT_TAKE, &q, &r);
	n = push_decision(L, answer, &r);
	if (answer == SHMLIMIT_ALLOWED) {
		lua_pushvalue(L, 4);
		lua_replace(L, -n - 1);
	}
	return n;
}

static int limiter_renew(lua_State *L)
{
	struct asked a = asked(L);
	struct shmlimit_place *place = luaL_testudata(L, 4, PLACE);
	int answer;

	if (!place)
		return luaL_error(L, "a place must be what enter() returned");
	answer = shmlimit_renew(a.handle, a.rule, a.key, a.key_len, place);
	if (answer < 0)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, 1);
	return 1;
}

static int limiter_leave(lua_State *L)
{
	struct asked a = asked(L);
	struct shmlimit_place *place = luaL_testudata(L, 4, PLACE);
	const char *how = lua_isnoneornil(L, 5) ? NULL : lua_tostring(L, 5);
	int answer;

	if (!place)
		return luaL_error(L, "a place must be what enter() returned");
	place->flags = 0;
	if (how != NULL && strcmp(how, "dropped") == 0)
		place->flags = SHMLIMIT_PLACE_DROPPED;
	else if (how != NULL && strcmp(how, "untimed") == 0)
		place->flags = SHMLIMIT_PLACE_UNTIMED;
	else if (!lua_isnoneornil(L, 5))
		return luaL_error(L, "work that ends is \"dropped\" or \"untimed\"");
	answer = shmlimit_leave(a.handle, a.rule, a.key, a.key_len, place);
	if (answer < 0)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, 1);
	return 1;
}

/*
 * The request at the top of the stack, which it leaves there, and on it what the request points to: a key that is a number
 * becomes another string. Returns false if its limit cannot be read.
 */
static int read_request(lua_State *L, struct shmlimit_request *request, struct shmlimit_limit *room)
{
	int at = lua_gettop(L);

	if (lua_type(L, at) != LUA_TTABLE)
		return luaL_error(L, "a request must be { rule, key, tokens, limit }");
	for (int i = 1; i <= 4; i++)
		lua_rawgeti(L, at, i);
	*request = (struct shmlimit_request){ .rule = rule_of(L, at + 1) };
	request->key = value_key(L, at + 2, &request->key_len);
	request->cost = value_tokens(L, at + 3, 1);
	if (lua_isnil(L, at + 4))
		return 1;
	request->limit = value_limit(L, at + 4, room);
	return request->limit != NULL;
}

static int limiter_take_all(lua_State *L)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_limit rooms[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit *handle = limiter(L)->handle;
	size_t n, failed = 0;
	int answer;

	luaL_checktype(L, 2, LUA_TTABLE);
	n = lua_rawlen(L, 2);
	if (n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return luaL_error(L, "the number of requests must be a whole number of 1 to %d", SHMLIMIT_REQUESTS_MAX);
	luaL_checkstack(L, 6 * SHMLIMIT_REQUESTS_MAX, NULL);
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(L, 2, (lua_Integer)i + 1);
		if (!read_request(L, &requests[i], &rooms[i])) {
			lua_pushinteger(L, (lua_Integer)i + 1);
			return 4;
		}
	}
	answer = shmlimit_take_all(handle, requests, n, &failed, results);
	if (answer == SHMLIMIT_ALLOWED) {
		lua_pushboolean(L, 1);
		return 1;
	}
	if (answer == SHMLIMIT_DENIED) {
		lua_pushboolean(L, 0);
		lua_pushinteger(L, (lua_Integer)failed + 1);
		value_push_ns(L, results[failed].retry_after_ns);
		return 3;
	}
	lua_rawgeti(L, 2, (lua_Integer)failed + 1);
	lua_rawgeti(L, -1, 1);
	FAILED(L, answer, lua_gettop(L));
	lua_pushinteger(L, (lua_Integer)failed + 1);
	return 4;
}

/* pause(rule, key, seconds) */
static int limiter_pause(lua_State *L)
{
	struct shmlimit *handle = limiter(L)->handle;
	size_t key_len;
	const char *key = value_key(L, 3, &key_len);
	int answer = shmlimit_pause(handle, rule_of(L, 2), key, key_len, value_ns(L, 4, "a pause"));

	if (answer < 0)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, answer == SHMLIMIT_ALLOWED);
	return 1;
}

/* paused(rule, key): for how many seconds still */
static int limiter_paused(lua_State *L)
{
	struct shmlimit *handle = limiter(L)->handle;
	size_t key_len;
	const char *key = value_key(L, 3, &key_len);
	uint64_t left_ns = 0;
	int answer = shmlimit_paused(handle, rule_of(L, 2), key, key_len, &left_ns);

	if (answer < 0)
		return FAILED(L, answer, 2);
	value_push_ns(L, left_ns);
	return 1;
}

static int limiter_reset(lua_State *L)
{
	struct shmlimit *handle = limiter(L)->handle;
	int rule = lua_isnoneornil(L, 2) ? SHMLIMIT_ALL_RULES : rule_of(L, 2);
	size_t key_len = 0;
	const char *key = lua_isnoneornil(L, 3) ? NULL : value_key(L, 3, &key_len);
	int answer;

	answer = shmlimit_reset(handle, rule, key, key_len);
	if (answer < 0)
		return FAILED(L, answer, 2);
	lua_pushinteger(L, answer);
	return 1;
}

/* A member of a rule's table: its name is at -2 and its value at -1. */
static void read_member(lua_State *L, struct shmlimit_rule *rule, double *rate)
{
	static const char *const modes[] = { "enforce", "dry_run", "off", "block", NULL };
	static const struct {
		const char *name;
		uint32_t flag;
	} flags[] = { { "next_pays", SHMLIMIT_RULE_NEXT_PAYS },
		      { "count_refused", SHMLIMIT_RULE_COUNT_REFUSED },
		      { "protected", SHMLIMIT_RULE_PROTECTED },
		      { "cut_off", SHMLIMIT_RULE_CUT_OFF } };
	const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
	int value = lua_gettop(L);

	if (strcmp(name, "algorithm") == 0 || strcmp(name, "limit") == 0)
		return;
	if (strcmp(name, "mode") == 0)
		rule->mode = (uint32_t)value_choice(L, value, "mode", modes);
	else if (strcmp(name, "period") == 0)
		rule->period_ns = value_ns(L, value, name);
	else if (strcmp(name, "max_wait") == 0)
		rule->max_wait_ns = value_ns(L, value, name);
	else if (strcmp(name, "warmup") == 0)
		rule->warmup_ns = value_ns(L, value, name);
	else if (strcmp(name, "capacity") == 0)
		rule->capacity = (uint64_t)value_whole(L, value, name, 0, TOKENS_MAX);
	else if (strcmp(name, "refill") == 0)
		*rate = value_number(L, value, name);
	else if (strcmp(name, "credit") == 0)
		rule->credit = (uint32_t)value_whole(L, value, name, 0, COUNT_MAX);
	else if (strcmp(name, "cold_factor") == 0) {
		lua_pushnumber(L, lua_tonumber(L, value) * 1000);
		rule->cold_factor_milli =
			(uint32_t)value_whole(L, value + 1, "cold_factor in thousandths", 0, COUNT_MAX);
		lua_pop(L, 1);
	} else {
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			if (strcmp(name, flags[i].name) == 0) {
				rule->flags |= lua_toboolean(L, value) ? flags[i].flag : 0;
				return;
			}
		luaL_error(L, "a rule has no member %s", luaL_tolstring(L, value - 1, NULL));
	}
}

/* The rule at `arg`, a text or a table. Returns 0, or the number of results of an error. */
static int read_rule(lua_State *L, int arg, struct shmlimit_rule *rule)
{
	static const char *const algorithms[] = { "funnel", "warmup", "window",       "lease", "counter",
		                                  "hold",   "gcra",   "token_bucket", NULL };
	struct shmlimit_problem problem = { 0 };
	const char *text = NULL;
	int type = lua_type(L, arg), algorithm;

	*rule = (struct shmlimit_rule){ .struct_size = sizeof(*rule) };
	if (type != LUA_TSTRING && type != LUA_TTABLE)
		luaL_error(L, "a rule must be a text such as 5/minute, or a table");
	if (type == LUA_TSTRING) {
		text = value_name(L, arg, "limit");
	} else {
		if (lua_getfield(L, arg, "algorithm") != LUA_TNIL) {
			algorithm = value_choice(L, -1, "algorithm", algorithms);
			rule->algorithm = algorithm == 7 ? SHMLIMIT_FUNNEL : (uint32_t)algorithm;
		}
		if (lua_getfield(L, arg, "limit") != LUA_TNIL)
			text = value_name(L, -1, "limit");
	}
	if (text && shmlimit_rule_parse(text, rule, &problem) != 0)
		return value_unread(L, text, &problem);
	if (type == LUA_TTABLE) {
		double rate = (double)rule->refill;

		lua_pushnil(L);
		while (lua_next(L, arg)) {
			read_member(L, rule, &rate);
			lua_pop(L, 1);
		}
		value_rate(L, rate, &rule->refill, &rule->period_ns);
	}
	return 0;
}

static int set_rule(lua_State *L, int (*set)(struct shmlimit *, const char *, const struct shmlimit_rule *))
{
	struct shmlimit *handle = limiter(L)->handle;
	struct shmlimit_rule rule;
	int n, id;

	lua_settop(L, 3);
	n = read_rule(L, 3, &rule);
	if (n)
		return n;
	id = set(handle, value_name(L, 2, "a rule's name"), &rule);
	if (id < 0)
		return FAILED(L, id, 2);
	lua_pushinteger(L, id);
	return 1;
}

static int limiter_rule_set(lua_State *L)
{
	return set_rule(L, shmlimit_rule_set);
}
static int limiter_rule_ensure(lua_State *L)
{
	return set_rule(L, shmlimit_rule_ensure);
}

static int limiter_rule_find(lua_State *L)
{
	int id = shmlimit_rule_find(limiter(L)->handle, value_name(L, 2, "a rule's name"));

	if (id < 0)
		return FAILED(L, id, 2);
	lua_pushinteger(L, id);
	return 1;
}

static int limiter_rule_remove(lua_State *L)
{
	int answer = shmlimit_rule_remove(limiter(L)->handle, value_name(L, 2, "a rule's name"));

	if (answer < 0)
		return FAILED(L, answer, 2);
	lua_pushboolean(L, 1);
	return 1;
}

static int limiter_gone(lua_State *L)
{
	int answer = shmlimit_gone(limiter(L)->handle);

	if (answer < 0)
		return value_failure(L, answer, NULL);
	lua_pushboolean(L, answer);
	return 1;
}

static int limiter_name(lua_State *L)
{
	lua_pushstring(L, limiter(L)->name);
	return 1;
}

static int limiter_close(lua_State *L)
{
	struct lua_limiter *self = limiter(L);

	shmlimit_close(self->handle);
	self->handle = NULL;
	return 0;
}

/* An option of open(), its name at -2 and its value at -1. Returns true if it is one of a segment that is created. */
static int read_option(lua_State *L, uint32_t *flags, struct shmlimit_options *options)
{
	static const char *const on_full[] = { "evict", "allow", "deny", NULL };
	const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
	int value = lua_gettop(L);
	const struct {
		const char *name;
		uint32_t *small;
		uint64_t *large;
		double most;
	} numbers[] = { { "slots", NULL, &options->slots, (double)SHMLIMIT_SLOTS_MAX },
		        { "mode", &options->mode, NULL, 0777 },
		        { "rules", &options->rules, NULL, SHMLIMIT_RULES_MAX },
		        { "store_keys", &options->store_keys, NULL, SHMLIMIT_KEY_MAX },
		        { "slots_max", NULL, &options->slots_max, (double)SHMLIMIT_SLOTS_MAX } };

	if (strcmp(name, "read_only") == 0) {
		*flags |= lua_toboolean(L, value) ? SHMLIMIT_OPEN_READ_ONLY : 0;
		return 0;
	}
	if (strcmp(name, "create") == 0) {
		*flags |= lua_toboolean(L, value) ? SHMLIMIT_OPEN_CREATE : 0;
		return 0;
	}
	if (strcmp(name, "owner") == 0) {
		options->owner = (uint32_t)value_whole(L, value, name, 0, UINT32_MAX);
		return 0;
	}
	if (strcmp(name, "on_full") == 0) {
		options->on_full = (uint32_t)value_choice(L, value, "on_full", on_full);
		return 1;
	}
	if (strcmp(name, "coarse_clock") == 0) {
		options->clock = lua_toboolean(L, value) ? SHMLIMIT_CLOCK_COARSE : SHMLIMIT_CLOCK_PRECISE;
		return 1;
	}
	if (strcmp(name, "group") == 0) {
		options->gid = (uint32_t)value_whole(L, value, name, 0, UINT32_MAX - 1);
		options->flags = SHMLIMIT_OPTION_GROUP;
		return 1;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(name, numbers[i].name) == 0) {
			uint64_t n = (uint64_t)value_whole(L, value, name, 1, numbers[i].most);

			if (numbers[i].large)
				*numbers[i].large = n;
			else
				*numbers[i].small = (uint32_t)n;
			return 1;
		}
	return luaL_error(L, "there is no option %s", luaL_tolstring(L, value - 1, NULL));
}

static int module_open(lua_State *L)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	uint32_t flags = SHMLIMIT_OPEN_TRUSTED;
	const char *name = value_name(L, 1, "a segment's name");
	const char *needs_create = NULL;
	struct lua_limiter *self;
	struct shmlimit *handle;
	int answer;

	lua_settop(L, 2);
	if (!lua_isnil(L, 2)) {
		luaL_checktype(L, 2, LUA_TTABLE);
		lua_pushnil(L);
		while (lua_next(L, 2)) {
			if (read_option(L, &flags, &options))
				needs_create = lua_tostring(L, 3);
			lua_pop(L, 1);
		}
	}
	if (needs_create && !(flags & SHMLIMIT_OPEN_CREATE))
		return luaL_error(L, "option %s is of a segment that is created: it needs create", needs_create);
	/* It is there before the handle, so that no error of Lua loses that. */
	self = lua_newuserdata(L, sizeof(*self));
	self->handle = NULL;
	luaL_setmetatable(L, LIMITER);
	answer = shmlimit_open(name, flags, &options, &handle);
	if (answer < 0)
		return value_failure(L, answer, lua_pushfstring(L, "segment %s", name));
	self->handle = handle;
	snprintf(self->name, sizeof(self->name), "%s", name);
	return 1;
}

static int module_destroy(lua_State *L)
{
	const char *name = value_name(L, 1, "a segment's name");
	int answer = shmlimit_destroy(name);

	if (answer < 0)
		return value_failure(L, answer, lua_pushfstring(L, "segment %s", name));
	lua_pushboolean(L, 1);
	return 1;
}

/* A member of a limit's table: its name is at -2 and its value at -1. */
static void read_limit_member(lua_State *L, struct shmlimit_limit *limit, double *rate)
{
	const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
	int value = lua_gettop(L);

	if (strcmp(name, "capacity") == 0)
		limit->capacity = (uint64_t)value_whole(L, value, name, 0, TOKENS_MAX);
	else if (strcmp(name, "refill") == 0)
		*rate = value_number(L, value, name);
	else if (strcmp(name, "period") == 0)
		limit->period_ns = value_ns(L, value, name);
	else if (strcmp(name, "max_wait") == 0)
		limit->max_wait_ns = value_ns(L, value, name);
	else
		luaL_error(L, "a limit has no member %s", luaL_tolstring(L, value - 1, NULL));
}

static int module_limit(lua_State *L)
{
	struct shmlimit_limit *limit;
	struct shmlimit_problem problem = { 0 };
	const char *text;
	double rate = 0;

	lua_settop(L, 2);
	limit = lua_newuserdata(L, sizeof(*limit));
	*limit = (struct shmlimit_limit){ .struct_size = sizeof(*limit) };
	luaL_setmetatable(L, LUA_LIMIT);
	if (lua_istable(L, 1)) {
		lua_pushnil(L);
		while (lua_next(L, 1)) {
			read_limit_member(L, limit, &rate);
			lua_pop(L, 1);
		}
		value_rate(L, rate, &limit->refill, &limit->period_ns);
	} else {
		text = value_name(L, 1, "a limit");
		if (shmlimit_limit_parse(text, limit, &problem) != 0)
			return value_unread(L, text, &problem);
	}
	if (!lua_isnil(L, 2))
		limit->max_wait_ns = value_ns(L, 2, "max_wait");
	lua_pushvalue(L, 3);
	return 1;
}

static int module_key_ip(lua_State *L)
{
	const char *text = value_name(L, 1, "an address");
	unsigned prefix_v4 = lua_isnoneornil(L, 2) ? 32 : (unsigned)value_whole(L, 2, "prefix_v4", 0, 32);
	unsigned prefix_v6 = lua_isnoneornil(L, 3) ? 64 : (unsigned)value_whole(L, 3, "prefix_v6", 0, 128);
	int nth = lua_isnoneornil(L, 4) ? 0 : (int)value_whole(L, 4, "nth", -1024, 1024);
	char key[SHMLIMIT_KEY_IP_MAX];
	int n = shmlimit_key_ip_text(text, nth, prefix_v4, prefix_v6, key, sizeof(key));

	if (n < 0)
		return value_failure(L, n, lua_pushfstring(L, "address %s", text));
	lua_pushlstring(L, key, (size_t)n);
	return 1;
}

static const luaL_Reg methods[] = { { "take", limiter_take },           { "take_some", limiter_take_some },
	                            { "peek", limiter_peek },           { "charge", limiter_charge },
	                            { "refund", limiter_refund },       { "reserve", limiter_reserve },
	                            { "count", limiter_count },         { "enter", limiter_enter },
	                            { "renew", limiter_renew },         { "leave", limiter_leave },
	                            { "take_all", limiter_take_all },   { "reset", limiter_reset },
	                            { "pause", limiter_pause },         { "paused", limiter_paused },
	                            { "rule_set", limiter_rule_set },   { "rule_ensure", limiter_rule_ensure },
	                            { "rule_find", limiter_rule_find }, { "rule_remove", limiter_rule_remove },
	                            { "gone", limiter_gone },           { "name", limiter_name },
	                            { "close", limiter_close },         { NULL, NULL } };
static const luaL_Reg functions[] = { { "open", module_open },
	                              { "destroy", module_destroy },
	                              { "limit", module_limit },
	                              { "key_ip", module_key_ip },
	                              { NULL, NULL } };
static const luaL_Reg no_methods[] = { { NULL, NULL } };

__attribute__((visibility("default"))) int luaopen_shmlimit(lua_State *L);

int luaopen_shmlimit(lua_State *L)
{
	value_class(L, LIMITER, methods, limiter_close);
	value_class(L, LUA_LIMIT, no_methods, NULL);
	value_class(L, PLACE, no_methods, NULL);
	luaL_newlib(L, functions);
	lua_pushstring(L, SHMLIMIT_VERSION);
	lua_setfield(L, -2, "_VERSION");
	return 1;
}
