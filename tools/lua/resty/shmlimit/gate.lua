-- resty.shmlimit.gate: the limits of a server in one call per request, as a text describes them: see shmlimit_gate(3).
--
-- In nginx a request that waits for a Redis server does so in ngx.sleep(), where its phase can; other requests go on.
--
-- SPDX-License-Identifier: BSD-2-Clause
local ffi = require "ffi"
require "resty.shmlimit.cdef"
local forwarded = require "resty.shmlimit.forwarded"

local G = ffi.load("libshmlimit-gate.so.1")
local C = ffi.load("libshmlimit.so.1")
local ngx = rawget(_G, "ngx")
local select, type, error, tostring, huge, max = select, type, error, tostring, math.huge, math.max

local Gate = { _VERSION = "1.0.0" }
Gate.__index = Gate

local KEYS_MAX, PENDING, EAGAIN = 16, 2, 11
local OUTCOMES = { [0] = "unlimited", "passed", "rejected", "rejected_dry_run", "failed", "delayed", "delayed_dry_run" }
local YIELDS = { rewrite = true, access = true, content = true, timer = true, server_rewrite = true, ssl_cert = true }

local LIMIT_T = ffi.typeof("struct shmlimit_limit")
local keys = ffi.new("struct shmlimit_gate_key[?]", KEYS_MAX)
local anchors = {}
local answer = ffi.new("struct shmlimit_gate_answer")
local buffer = ffi.new("char[6784]")
Gate.buffer = buffer -- `answer` has only its address
local wrong = ffi.new("struct shmlimit_gate_wrong")
local pending = ffi.new("struct shmlimit_gate_pending *[1]")
answer.struct_size, answer.buffer_size, answer.buffer = ffi.sizeof(answer), ffi.sizeof(buffer), buffer
wrong.struct_size = ffi.sizeof(wrong)

-- Halves of `remaining` and `retry_after_ns`, as in resty.shmlimit.
local words = ffi.cast("const uint32_t *", ffi.cast("const char *", answer) + ffi.offsetof("struct shmlimit_gate_answer", "remaining"))
local LOW = ffi.abi("le") and 0 or 1
local function whole(at)
	local high = words[2 * at + 1 - LOW]
	if high == 0xffffffff then
		return huge
	end
	return high * 4294967296 + words[2 * at + LOW]
end

local function strerror(errno)
	return ffi.string(C.shmlimit_strerror(errno))
end

-- Requests that were last polled before then have lost their client.
local function cancel(handle, waiting, before)
	for waits, entry in pairs(waiting) do
		if entry.polled < before then
			G.shmlimit_gate_cancel(handle, waits, entry.held)
			waiting[waits] = nil
		end
	end
end

function Gate.new(spec)
	if type(spec) ~= "string" or spec:find("\0", 1, true) then
		error("a spec must be a string without NUL", 2)
	end
	local out = ffi.new("struct shmlimit_gate *[1]")
	local rc = G.shmlimit_gate_open(spec, out)
	if rc == -22 and G.shmlimit_gate_check(spec, wrong) ~= 0 then
		return nil, spec:sub(wrong.offset + 1, wrong.offset + wrong.length) .. ": " .. ffi.string(wrong.text), 22
	elseif rc < 0 then
		return nil, strerror(rc), -rc
	end
	-- What waits is cancelled before the gate goes. WHY NOT a method: it would hold the gate, which then is never collected.
	local waiting = {}
	local handle = ffi.gc(out[0], function(unused)
		cancel(unused, waiting, huge)
		G.shmlimit_gate_close(unused)
	end)
	return setmetatable({ handle = handle, waiting = waiting, looks = forwarded.wanted(handle) }, Gate)
end

-- Open the segment now, so that problems show at the start.
function Gate:attach()
	local rc = G.shmlimit_gate_attach(self.handle)
	if rc < 0 then
		return nil, strerror(rc), -rc
	end
	return true
end

function Gate:limits()
	return tonumber(G.shmlimit_gate_limits(self.handle))
end

-- The n-th key of a request: a string, nil for a limit that does not apply, or { key, cost, limit }.
local function put(n, key)
	local to, cost, rate = keys[n], 0, nil
	if type(key) == "table" then
		key, cost, rate = key[1], key[2] or 0, key[3]
		if type(cost) ~= "number" or not (cost >= 0 and cost <= 2 ^ 53 and cost % 1 == 0) then
			error("a cost must be a whole number of 0 to 2^53", 4)
		end
	end
	if key == nil then
		key = ""
	elseif type(key) == "number" then
		key = tostring(key)
	elseif type(key) ~= "string" then
		error("a key must be a string, nil, or { key, cost, limit }", 4)
	end
	to.limit, to.bytes, to.length, to.cost = n, key, #key, cost
	to.rate, to.rate_length, to.parsed = nil, 0, nil
	if type(rate) == "string" then
		to.rate, to.rate_length = rate, #rate
	elseif ffi.istype(LIMIT_T, rate) then
		to.parsed = rate
	elseif rate ~= nil then
		error("a limit must be a text, or what shmlimit.limit() returned", 4)
	end
	anchors[2 * n + 1], anchors[2 * n + 2] = key, rate or false
end

local function put_all(n, ...)
	if n > KEYS_MAX then
		error("a request has at most 16 keys", 3)
	end
	for i = 1, n do
		put(i - 1, (select(i, ...)))
	end
	return n
end

local function finish(rc)
	if rc ~= 0 and rc ~= 1 then
		return nil, 0, 0, huge, "failed", strerror(rc)
	end
	return rc == 0, answer.status, whole(1) / 1e9, whole(0), OUTCOMES[answer.outcome], answer.error ~= 0 and strerror(answer.error) or nil
end

-- Wait for what the agent of the host asks a Redis server.
local function wait(self, held)
	local waits, entry, rc = pending[0], { held = held }, PENDING
	cancel(self.handle, self.waiting, ngx.now() - 60)
	self.waiting[waits] = entry
	while rc == PENDING do
		entry.polled = ngx.now()
		-- Below a millisecond nginx does not sleep.
		ngx.sleep(max(whole(1) / 1e9, 0.001))
		if self.waiting[waits] ~= entry then
			-- The gate was closed, or the whole process stood still for a minute: `waits` is no more.
			return -EAGAIN
		end
		rc = G.shmlimit_gate_poll(self.handle, waits, answer, held)
	end
	self.waiting[waits] = nil
	return rc
end

local function decide(self, n, held)
	local rc = -EAGAIN
	if self.looks then
		for i = 1, n do
			forwarded.look(anchors[2 * i - 1])
		end
	end
	if ngx and YIELDS[ngx.get_phase()] then
		rc = G.shmlimit_gate_begin(self.handle, keys, n, answer, held, pending)
		if rc == PENDING then
			-- Other requests use the arrays while this one waits.
			local copy = { unpack(anchors, 1, 2 * n) }
			rc = wait(self, held)
			if rc == -EAGAIN then
				for i = 1, n do
					put(i - 1, { copy[2 * i - 1], nil, copy[2 * i] or nil })
				end
			end
		end
	end
	if rc == -EAGAIN and held then
		rc = G.shmlimit_gate_enter(self.handle, keys, n, answer, held)
	elseif rc == -EAGAIN then
		rc = G.shmlimit_gate_ask(self.handle, keys, n, answer)
	end
	return rc
end

-- allowed, status, retry_after, remaining, outcome, error; a key for each limit of the spec, in its order.
function Gate:ask(...)
	return finish(decide(self, put_all(select("#", ...), ...), nil))
end

-- As ask(), with what is to be left or settled as the seventh: nil where there is nothing.
function Gate:enter(...)
	local held = ffi.new("struct shmlimit_gate_held")
	held.struct_size = ffi.sizeof(held)
	local allowed, status, retry_after, remaining, outcome, err = finish(decide(self, put_all(select("#", ...), ...), held))
	return allowed, status, retry_after, remaining, outcome, err, (held.count > 0 or held.bill_count > 0) and { held, n = select("#", ...), ... } or nil
end

function Gate:leave(places)
	if places == nil then
		return true
	end
	for i = 1, places.n do
		put(i - 1, places[i + 1])
	end
	local rc = G.shmlimit_gate_leave(self.handle, keys, places.n, places[1])
	if rc < 0 then
		return nil, strerror(rc), -rc
	end
	return true
end

-- What a request of limits with estimate= turned out to cost: a number of tokens for each key, or nil where it is not known.
local used = ffi.new("uint64_t[?]", KEYS_MAX)
function Gate:settle(places, ...)
	if places == nil then
		return true
	end
	for i = 1, places.n do
		local tokens = (select(i, ...))
		if tokens ~= nil and (type(tokens) ~= "number" or not (tokens >= 0 and tokens <= 2 ^ 53 and tokens % 1 == 0)) then
			error("tokens must be a whole number of 0 to 2^53", 2)
		end
		used[i - 1] = tokens or 0xffffffffffffffffULL
		put(i - 1, places[i + 1])
	end
	local rc = G.shmlimit_gate_settle(self.handle, keys, places.n, used, places[1])
	if rc < 0 then
		return nil, strerror(rc), -rc
	end
	return true
end

-- Set the header fields of the last answer in `headers`, such as ngx.header; with a new table, return them.
function Gate:fields(headers)
	local fields = {}
	for i = 0, answer.field_count - 1 do
		local name, value = ffi.string(answer.fields[i].name), ffi.string(answer.fields[i].value)
		fields[name] = fields[name] and fields[name] .. ", " .. value or value
	end
	if headers == nil then
		return fields
	end
	for name, value in pairs(fields) do
		headers[name] = value
	end
	return headers
end

-- A request that waits in it fails.
function Gate:close()
	if self.handle ~= nil then
		cancel(self.handle, self.waiting, huge)
		G.shmlimit_gate_close(ffi.gc(self.handle, nil))
		self.handle = nil
	end
end

return Gate
