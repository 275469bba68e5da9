-- resty.shmlimit: one limit for all processes of a host, through LuaJIT's FFI. README.md says what each call returns.
--
-- A call that decides allocates nothing, with the JIT compiler or without: 64-bit numbers of an answer are read as two halves
-- of 32 bits, since the interpreter would make an object of each.
--
-- SPDX-License-Identifier: BSD-2-Clause
local bit = require "bit"
local ffi = require "ffi"
require "resty.shmlimit.cdef"

local C = ffi.load("libshmlimit.so.1")
local type, error, tostring, huge = type, error, tostring, math.huge

local M = { _VERSION = "1.0.0" }
local Limiter = {}
Limiter.__index = Limiter

local RULES_MAX, COUNT_MAX, WHOLE_MAX = 4096, 2 ^ 31 - 1, 2 ^ 53
local NEVER_NS = 0xffffffffffffffffULL
local ALL_RULES = -0x80000000
local ALGORITHMS = { funnel = 0, token_bucket = 0, warmup = 1, window = 2, lease = 3, counter = 4, hold = 5, gcra = 6 }
local MODES = { enforce = 0, dry_run = 1, off = 2, block = 3 }
local ON_FULL = { evict = 0, allow = 1, deny = 2 }
local RULE_FLAGS = { next_pays = 0x1, count_refused = 0x2, protected = 0x4, cut_off = 0x10 }
local OPEN_READ_ONLY, OPEN_TRUSTED, OPEN_CREATE = 0x100, 0x200, 0x400
local VERBS = { take = 0, peek = 1, reserve = 2, charge = 3, refund = 4, take_some = 6 }
local COUNT_FLAGS = { saturate = 0x10000, restart = 0x20000 }
local OPTION_GROUP = 0x1000000
local PLACE_BIND, PLACE_ENDS = 0x80000, { dropped = 0x400000, untimed = 0x800000 }
local LIMIT_T, PLACE_T = ffi.typeof("struct shmlimit_limit"), ffi.typeof("struct shmlimit_place")

-- Between a call and the reading of its answer nothing yields, so one of each is enough.
local result = ffi.new("struct shmlimit_result")
local count_request = ffi.new("struct shmlimit_count_request")
local counted = ffi.new("struct shmlimit_count")
local info = ffi.new("struct shmlimit_info")
local parsed = ffi.new(LIMIT_T)
local problem = ffi.new("struct shmlimit_problem")
local request, kept = ffi.new("struct shmlimit_request"), {} -- kept: what the request points to
local requests, results = ffi.new("struct shmlimit_request[16]"), ffi.new("struct shmlimit_result[16]")
local failed_index = ffi.new("size_t[1]")
local left_ns = ffi.new("uint64_t[1]")
count_request.struct_size, counted.struct_size = ffi.sizeof(count_request), ffi.sizeof(counted)
info.struct_size, parsed.struct_size = ffi.sizeof(info), ffi.sizeof(parsed)

local LOW = ffi.abi("le") and 0 or 1
local HIGH = 1 - LOW
local halves, highs = ffi.cast("const uint32_t *", result), ffi.cast("const int32_t *", result)
local count_halves, count_signed = ffi.cast("const uint32_t *", counted), ffi.cast("const int32_t *", counted)

-- The word at this index of an answer, in tokens or in nanoseconds. Most are small. From 2^63 on it is never, or no limit.
local function whole(low, high, at)
	local n = high[2 * at + HIGH]
	if n == 0 then
		return low[2 * at + LOW]
	elseif n < 0 then
		return huge
	end
	return n * 4294967296 + low[2 * at + LOW]
end

local function signed(at)
	return count_signed[2 * at + HIGH] * 4294967296 + count_halves[2 * at + LOW]
end

local function strerror(answer)
	return ffi.string(C.shmlimit_strerror(answer))
end

local function failure(answer, what)
	return nil, (what or "") .. strerror(answer), answer < 0 and -answer or answer
end

-- What is no number of this range is a mistake of the program.
local function check(n, what, least, most)
	if type(n) ~= "number" or not (n >= least and n <= most and n % 1 == 0) then
		error(what .. " must be a whole number of " .. string.format("%.0f to %.0f", least, most), 3)
	end
	return n
end

local function check_seconds(seconds, what)
	if type(seconds) ~= "number" or not (seconds >= 0) then
		error(what .. " must be a number of seconds, 0 or more", 3)
	end
	return seconds >= 2 ^ 63 / 1e9 and NEVER_NS or seconds * 1e9 + 0.5
end

-- Tokens that come back every out.period_ns: whole, or what the shortest decimal of the number says. To be called last.
local rate_out = ffi.new("uint64_t[2]")
local function set_rate(out, rate)
	if type(rate) ~= "number" then
		error("refill must be a number", 3)
	end
	if rate >= 0 and rate <= WHOLE_MAX and rate % 1 == 0 then
		out.refill = rate
		return
	end
	local answer = C.shmlimit_rate_from_double(rate, out.period_ns, rate_out, rate_out + 1)
	if answer == -34 then
		local nearest = rate < 1 and tonumber(out.period_ns) / 2 ^ 60 or 2 ^ 64 - 2048
		error(string.format("refill %.14g: the nearest that can be is %.14g", rate, nearest), 3)
	elseif answer ~= 0 then
		error(string.format("refill %.14g: must be a finite number above 0, of a period above 0", rate), 3)
	end
	out.refill, out.period_ns = rate_out[0], rate_out[1]
end

local function check_name(name, what, level)
	if type(name) ~= "string" or name:find("\0", 1, true) then
		error(what .. " must be a string without NUL", level or 3)
	end
	return name
end

-- A number is a key too, as it is printed.
local function key_of(key)
	if type(key) == "string" then
		return key
	elseif type(key) ~= "number" then
		error("a key must be a string", 3)
	end
	return tostring(key)
end

-- The id of a rule that is given by its id or its name; below 0: there is none.
local function id_of(self, rule)
	if type(rule) ~= "number" then
		return C.shmlimit_rule_find(self.handle, check_name(rule, "a rule", 4))
	elseif not (rule >= 0 and rule < RULES_MAX and rule % 1 == 0) then
		error("a rule must be its name, or its id of 0 to " .. RULES_MAX - 1, 3)
	end
	return rule
end

local function no_rule(rule)
	return "rule " .. tostring(rule) .. ": "
end

-- A limit that comes with a call: what M.limit() made, or its text.
local function limit_of(limit)
	if type(limit) == "string" then
		parsed.max_wait_ns = 0
		if limit:find("\0", 1, true) or C.shmlimit_limit_parse(limit, parsed, problem) ~= 0 then
			return nil, "limit " .. limit:gsub("%z.*", "") .. ": " .. ffi.string(problem.text)
		end
		return parsed
	elseif not ffi.istype(LIMIT_T, limit) then
		error("a limit must be a text, or what shmlimit.limit() returned", 3)
	end
	return limit
end

-- What a decision says: allowed, remaining, wait, reset_after, limit.
local function decided(answer, rule)
	if answer == 0 then
		return true, whole(halves, highs, 1), whole(halves, highs, 2) / 1e9, whole(halves, highs, 4) / 1e9, whole(halves, highs, 0)
	elseif answer == 1 then
		return false, whole(halves, highs, 1), whole(halves, highs, 3) / 1e9, whole(halves, highs, 4) / 1e9, whole(halves, highs, 0)
	end
	return failure(answer, no_rule(rule))
end

local function tokens_of(tokens)
	if tokens == nil then
		return 1
	elseif type(tokens) ~= "number" or not (tokens >= 0 and tokens <= WHOLE_MAX and tokens % 1 == 0) then
		error("tokens must be a whole number of 0 to 2^53", 3)
	end
	return tokens
end

-- A decision by a limit that comes with the call.
local function decide_by(self, verb, rule, id, key, tokens, limit, place)
	local err
	if limit ~= nil then
		limit, err = limit_of(limit)
		if not limit then
			return nil, err, 22
		end
	end
	request.rule, request.key, request.key_len, request.cost, request.limit = id, key, #key, tokens, limit
	request.place = place
	kept[1], kept[2] = key, limit
	local answer = C.shmlimit_decide(self.handle, verb, request, result)
	-- The collector must not free what the request points to before the call is over.
	kept[1], kept[2] = nil, nil
	return decided(answer, rule)
end

-- An operation of a key and a number of tokens.
local function operate(self, rule, key, tokens, limit, plain, verb)
	local id = id_of(self, rule)
	key, tokens = key_of(key), tokens_of(tokens)
	if limit == nil then
		return decided(plain(self.handle, id, key, #key, tokens, result), rule)
	end
	return decide_by(self, verb, rule, id, key, tokens, limit)
end

-- WHY NOT a function that makes these: LuaJIT then reads what they have in common again with each call, 10 ns of 65.
local take = C.shmlimit_take
function Limiter:take(rule, key, tokens, limit)
	return operate(self, rule, key, tokens, limit, take, VERBS.take)
end

-- As take, but how many tokens were taken in place of whether.
function Limiter:take_some(rule, key, tokens, limit)
	local id = id_of(self, rule)
	key, tokens = key_of(key), tokens_of(tokens ~= nil and tokens or -1)
	local allowed, remaining, wait, reset_after, most = decide_by(self, VERBS.take_some, rule, id, key, tokens, limit)
	if allowed == nil then
		return nil, remaining, wait
	end
	return whole(halves, highs, 5), remaining, wait, reset_after, most
end

local peek = C.shmlimit_peek
function Limiter:peek(rule, key, tokens, limit)
	return operate(self, rule, key, tokens, limit, peek, VERBS.peek)
end

local charge = C.shmlimit_charge
function Limiter:charge(rule, key, tokens, limit)
	return operate(self, rule, key, tokens, limit, charge, VERBS.charge)
end

local refund = C.shmlimit_refund
function Limiter:refund(rule, key, tokens, limit)
	return operate(self, rule, key, tokens, limit, refund, VERBS.refund)
end

function Limiter:reserve(rule, key, tokens, max_wait, limit)
	local id = id_of(self, rule)
	key, tokens = key_of(key), tokens_of(tokens)
	if limit == nil then
		local wait_ns = max_wait == nil and NEVER_NS or check_seconds(max_wait, "max_wait")
		return decided(C.shmlimit_reserve(self.handle, id, key, #key, tokens, wait_ns, result), rule)
	elseif max_wait ~= nil then
		error("a limit has its own max_wait", 2)
	end
	return decide_by(self, VERBS.reserve, rule, id, key, tokens, limit)
end

function Limiter:count(rule, key, n, bound, ttl, how)
	local id = id_of(self, rule)
	key = key_of(key)
	count_request.n = check(n or 1, "n", -COUNT_MAX, COUNT_MAX)
	count_request.bound = check(bound or COUNT_MAX, "bound", 0, COUNT_MAX)
	count_request.ttl_ns = ttl and check_seconds(ttl, "ttl") or 0
	count_request.flags = how and (COUNT_FLAGS[how] or error('a count is "saturate" or "restart"', 2)) or 0
	local answer = C.shmlimit_count(self.handle, id, key, #key, count_request, counted)
	if answer == 0 or answer == 1 then
		return answer == 0, signed(1), signed(2), whole(count_halves, count_signed, 3) / 1e9
	end
	return failure(answer, no_rule(rule))
end

-- A place, or false. With a limit of places, it is free while fewer are held than that.
function Limiter:enter(rule, key, by)
	local id = id_of(self, rule)
	key = key_of(key)
	-- If this process dies, the place is free. One that is not bound ends with its period.
	local place = PLACE_T(ffi.sizeof(PLACE_T), 0, 0, PLACE_BIND)
	local allowed, remaining, wait, reset_after, limit
	if by == nil then
		allowed, remaining, wait, reset_after, limit = decided(C.shmlimit_enter(self.handle, id, key, #key, place, result), rule)
	else
		allowed, remaining, wait, reset_after, limit = decide_by(self, VERBS.take, rule, id, key, 1, by, place)
	end
	return allowed and place, remaining, wait, reset_after, limit
end

local function place_operation(name)
	local call = C["shmlimit_" .. name]
	return function(self, rule, key, place, how)
		local id = id_of(self, rule)
		key = key_of(key)
		if not ffi.istype(PLACE_T, place) then
			error("a place must be what enter() returned", 2)
		end
		if how ~= nil then
			place.flags = PLACE_ENDS[how] or error('work that ends is "dropped" or "untimed"', 2)
		end
		local answer = call(self.handle, id, key, #key, place)
		if answer < 0 then
			return failure(answer, no_rule(rule))
		end
		return true
	end
end

Limiter.renew = place_operation("renew")
-- With "dropped" the work failed by overload; with "untimed" how long it took says nothing of the load: see shmlimit.7.
Limiter.leave = place_operation("leave")

-- All or none of a list of { rule, key, tokens, limit }: true, or false with the index of the one that denies and its wait.
function Limiter:take_all(list)
	local n, kept = #list, {}
	check(n, "the number of requests", 1, 16)
	for i = 1, n do
		local rule, key, tokens, limit = list[i][1], list[i][2], list[i][3], list[i][4]
		local request, err = requests[i - 1], nil
		request.rule, key = id_of(self, rule), key_of(key)
		request.key, request.key_len, request.cost = key, #key, tokens_of(tokens)
		if type(limit) == "string" then
			limit, err = M.limit(limit)
			if not limit then
				return nil, err, 22, i
			end
		end
		request.limit = limit and limit_of(limit)
		kept[2 * i - 1], kept[2 * i] = key, limit
	end
	local answer = C.shmlimit_take_all(self.handle, requests, n, failed_index, results)
	-- The collector must not free what the requests point to before the call is over.
	kept[1] = nil
	if answer == 0 then
		return true
	end
	local i = tonumber(failed_index[0])
	if answer == 1 then
		return false, i + 1, whole(ffi.cast("const uint32_t *", results[i]), ffi.cast("const int32_t *", results[i]), 3) / 1e9
	end
	local text, errno = select(2, failure(answer, no_rule(list[i + 1] and list[i + 1][1])))
	return nil, text, errno, i + 1
end

-- Nothing of the key passes for so long, in all processes. A longer pause stays; 0 ends one.
function Limiter:pause(rule, key, seconds)
	key = key_of(key)
	local answer = C.shmlimit_pause(self.handle, id_of(self, rule), key, #key, check_seconds(seconds, "a pause"))
	if answer < 0 then
		return failure(answer, no_rule(rule))
	end
	return answer == 0
end

-- For how many seconds the key is paused still; 0: it is not.
function Limiter:paused(rule, key)
	key = key_of(key)
	local answer = C.shmlimit_paused(self.handle, id_of(self, rule), key, #key, left_ns)
	if answer < 0 then
		return failure(answer, no_rule(rule))
	end
	return tonumber(left_ns[0]) / 1e9
end

function Limiter:reset(rule, key)
	local id = rule ~= nil and id_of(self, rule) or ALL_RULES
	key = key ~= nil and key_of(key) or nil
	local answer = C.shmlimit_reset(self.handle, id, key, key and #key or 0)
	if answer < 0 then
		return failure(answer, no_rule(rule))
	end
	return answer
end

-- A rule of a text such as "5/minute", or of a table.
local function rule_of(rule)
	local out = ffi.new("struct shmlimit_rule")
	out.struct_size = ffi.sizeof(out)
	local given = type(rule) == "string" and { limit = rule } or rule
	if type(given) ~= "table" then
		error("a rule must be a text such as 5/minute, or a table", 3)
	end
	if given.algorithm ~= nil then
		out.algorithm = ALGORITHMS[given.algorithm] or error("there is no algorithm " .. tostring(given.algorithm), 3)
	end
	if given.limit ~= nil and C.shmlimit_rule_parse(check_name(given.limit, "limit"), out, problem) ~= 0 then
		return nil, "limit " .. given.limit .. ": " .. ffi.string(problem.text), 22
	end
	local rate
	for name, value in pairs(given) do
		if name == "mode" then
			out.mode = MODES[value] or error("there is no mode " .. tostring(value), 3)
		elseif name == "period" or name == "max_wait" or name == "warmup" then
			out[name .. "_ns"] = check_seconds(value, name)
		elseif name == "capacity" then
			out[name] = check(value, name, 0, WHOLE_MAX)
		elseif name == "refill" then
			rate = value
		elseif name == "credit" then
			out.credit = check(value, name, 0, COUNT_MAX)
		elseif name == "cold_factor" then
			out.cold_factor_milli = check(value * 1000, "cold_factor in thousandths", 0, COUNT_MAX)
		elseif RULE_FLAGS[name] then
			out.flags = bit.bor(out.flags, value and RULE_FLAGS[name] or 0)
		elseif name ~= "algorithm" and name ~= "limit" then
			error("a rule has no member " .. tostring(name), 3)
		end
	end
	if rate ~= nil then
		set_rate(out, rate)
	end
	return out
end

local function setter(call)
	return function(self, name, rule)
		local given, err, errno = rule_of(rule)
		if not given then
			return nil, err, errno
		end
		local id = call(self.handle, check_name(name, "a rule's name"), given)
		if id < 0 then
			return failure(id, no_rule(name))
		end
		return id
	end
end

Limiter.rule_set = setter(C.shmlimit_rule_set)
Limiter.rule_ensure = setter(C.shmlimit_rule_ensure)

function Limiter:rule_find(name)
	local id = C.shmlimit_rule_find(self.handle, check_name(name, "a rule's name"))
	if id < 0 then
		return failure(id, no_rule(name))
	end
	return id
end

function Limiter:rule_remove(name)
	local answer = C.shmlimit_rule_remove(self.handle, check_name(name, "a rule's name"))
	if answer < 0 then
		return failure(answer, no_rule(name))
	end
	return true
end

-- Was the segment destroyed or replaced under its name?
function Limiter:gone()
	local answer = C.shmlimit_gone(self.handle)
	if answer < 0 then
		return failure(answer)
	end
	return answer == 1
end

function Limiter:name()
	return self.segment
end

-- Calls on a limiter that is closed fail, since its handle is NULL.
function Limiter:close()
	if self.handle ~= nil then
		C.shmlimit_close(ffi.gc(self.handle, nil))
		self.handle = nil
	end
end

local OPTIONS = { slots = 2 ^ 36, mode = 511, rules = RULES_MAX, store_keys = 1024, slots_max = 2 ^ 36 }

function M.open(name, options)
	local flags, made = OPEN_TRUSTED, ffi.new("struct shmlimit_options")
	local needs_create
	made.struct_size = ffi.sizeof(made)
	for option, value in pairs(options or {}) do
		if option == "read_only" then
			flags = flags + (value and OPEN_READ_ONLY or 0)
		elseif option == "create" then
			flags = flags + (value and OPEN_CREATE or 0)
		elseif option == "owner" then
			made.owner = check(value, option, 0, 2 ^ 32 - 1)
		else
			needs_create = option
			if option == "on_full" then
				made.on_full = ON_FULL[value] or error("there is no on_full " .. tostring(value), 2)
			elseif option == "coarse_clock" then
				made.clock = value and 1 or 0
			elseif option == "group" then
				made.gid, made.flags = check(value, option, 0, 2 ^ 32 - 2), OPTION_GROUP
			elseif OPTIONS[option] then
				made[option] = check(value, option, 1, OPTIONS[option])
			else
				error("there is no option " .. tostring(option), 2)
			end
		end
	end
	if needs_create and not (options and options.create) then
		error("option " .. needs_create .. " is of a segment that is created: it needs create", 2)
	end
	local out = ffi.new("struct shmlimit *[1]")
	local answer = C.shmlimit_open(check_name(name, "a segment's name"), flags, made, out)
	if answer < 0 then
		return failure(answer, "segment " .. name .. ": ")
	end
	return setmetatable({ segment = name, handle = ffi.gc(out[0], C.shmlimit_close) }, Limiter)
end

function M.destroy(name)
	local answer = C.shmlimit_destroy(check_name(name, "a segment's name"))
	if answer < 0 then
		return failure(answer, "segment " .. name .. ": ")
	end
	return true
end

-- A limit that comes with calls, read once: of a text, or of a table with capacity, refill, period and max_wait.
function M.limit(limit, max_wait)
	local out = LIMIT_T(ffi.sizeof(LIMIT_T))
	if type(limit) == "table" then
		for name, value in pairs(limit) do
			if name == "capacity" then
				out[name] = check(value, name, 0, WHOLE_MAX)
			elseif name == "refill" then
				-- It is read with the period.
			elseif name == "period" or name == "max_wait" then
				out[name .. "_ns"] = check_seconds(value, name)
			else
				error("a limit has no member " .. tostring(name), 2)
			end
		end
		if limit.refill ~= nil then
			set_rate(out, limit.refill)
		end
	elseif C.shmlimit_limit_parse(check_name(limit, "a limit"), out, problem) ~= 0 then
		return nil, "limit " .. limit .. ": " .. ffi.string(problem.text), 22
	end
	if max_wait ~= nil then
		out.max_wait_ns = check_seconds(max_wait, "max_wait")
	end
	return out
end

-- The key of the network that an address is in.
local ip_key = ffi.new("char[18]")
function M.key_ip(text, prefix_v4, prefix_v6, nth)
	local n = C.shmlimit_key_ip_text(check_name(text, "an address"), check(nth or 0, "nth", -1024, 1024),
		check(prefix_v4 or 32, "prefix_v4", 0, 32), check(prefix_v6 or 64, "prefix_v6", 0, 128), ip_key, 18)
	if n < 0 then
		return failure(n, "address " .. text .. ": ")
	end
	return ffi.string(ip_key, n)
end

return M
