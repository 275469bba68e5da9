-- resty.shmlimit.conn: requests in progress, with the interface of lua-resty-limit-traffic's resty.limit.conn.
--
-- Each request that goes on holds a place of its key for `hold` seconds. Its worker renews the place in time, so the request may take
-- longer; that of a worker that was killed is free again.
-- All objects of a segment share a HOLD rule with room for the largest of their limits. A key's places are looked at before one is
-- entered, and counted after: of several that enter the last place at once, those that are above the limit leave again.
--
-- SPDX-License-Identifier: BSD-2-Clause
local segment = require "resty.shmlimit.segment"
local assert, type, floor, max, setmetatable = assert, type, math.floor, math.max, setmetatable
local ngx = rawget(_G, "ngx")
local key_of = segment.key

local M = { _VERSION = "1.0.0" }
local mt = { __index = M }

local PLACES_MAX = 65536
local HOLD = 60

local function check(limit, burst)
	return type(limit) == "number" and type(burst) == "number" and limit > 0 and burst >= 0
end

-- The rule that has room for this number of places: objects of several limits share it, and it is enlarged for the largest.
local function spec(self, places)
	local capacity = 16
	while capacity < places do
		capacity = capacity * 2
	end
	-- A request whose leaving() is never called has its place no longer, also while its worker lives.
	return { algorithm = "hold", capacity = capacity, period = self.hold, cut_off = true }
end

-- The limiter, and the rule's id.
local function rule(self)
	local from = self.segment
	local limiter, err = from:current()
	if not limiter then
		return nil, err
	elseif from.ids[self.rule_name] then
		return limiter, from.ids[self.rule_name]
	end
	return from:rule(self.rule_name, spec(self, self.max + self.burst))
end

function M.new(name, conn, burst, default_conn_delay, hold)
	assert(check(conn, burst) and type(default_conn_delay) == "number" and default_conn_delay > 0,
		"conn must be above 0, burst 0 or more, default_conn_delay above 0")
	hold = hold or HOLD
	assert(type(hold) == "number" and hold > 0 and hold <= 208 * 86400, "hold must be above 0 and at most 208 days, in seconds")
	if conn + burst > PLACES_MAX then
		return nil, "conn and burst must be at most 65536 together"
	end
	local from, err = segment.get(name)
	if not from then
		return nil, err
	end
	local limiter
	limiter, err = from:current()
	if not limiter then
		return nil, err
	end
	local self = setmetatable({ segment = from, max = conn, burst = burst, unit_delay = default_conn_delay, committed = false,
		hold = hold, rule_name = hold == HOLD and "~conn" or "~conn." .. hold }, mt)
	limiter, err = rule(self)
	if not limiter then
		return nil, err
	end
	return self
end

-- Places of a key that this Lua state holds, oldest first: the newest ones, which last longest, stay for those in progress.
-- A queue that is empty is used again.
local spare
local function keep(self, key, place)
	local held, name = self.segment.held, self.rule_name .. "\0" .. key
	local queue = held[name]
	if not queue then
		queue, spare = spare or {}, nil
		queue.first, queue.last, queue.key, queue.rule_name = 1, 0, key, self.rule_name
		held[name] = queue
	end
	queue.last = queue.last + 1
	queue[queue.last] = place
end

-- Renew what a rule's requests hold, now and as long as there is any. Not in a worker that shuts down: it gets no timers.
local function renew(premature, self)
	local from, any = self.segment, false
	from.renewed[self.rule_name] = nil
	local limiter, id = rule(self)
	if premature or not limiter then
		return
	end
	for _, queue in pairs(from.held) do
		if queue.rule_name == self.rule_name then
			any = true
			for i = queue.first, queue.last do
				limiter:renew(id, queue.key, queue[i])
			end
		end
	end
	if any then
		from.renewed[self.rule_name] = ngx.timer.at(self.hold / 3, renew, self)
	end
end

-- WHY NOT with the first request of a Lua state: with lua_code_cache off each request has a state of its own, which a timer
-- would keep.
local function renew_later(self)
	local from = self.segment
	from.entered = (from.entered or 0) + 1
	if ngx and from.entered > 1 and not from.renewed[self.rule_name] then
		from.renewed[self.rule_name] = ngx.timer.at(self.hold / 3, renew, self)
	end
end

local function oldest(held, key)
	local queue = held[key]
	if not queue then
		return nil
	end
	local place = queue[queue.first]
	queue[queue.first] = nil
	queue.first = queue.first + 1
	if queue.first > queue.last then
		held[key], spare = nil, queue
	end
	return place
end

-- The seconds to wait, and the number of requests in progress with this one; or nil, "rejected".
function M:incoming(key, commit)
	self.committed = false
	local err
	key, err = key_of(key)
	if not key then
		return nil, err
	end
	local limiter, id = rule(self)
	if not limiter then
		return nil, id
	end
	local most = self.max + self.burst
	local ok, free, _, _, all = limiter:peek(id, key)
	if ok ~= nil and most >= all + 1 then
		id, err = limiter:rule_set(self.rule_name, spec(self, most))
		if not id then
			return nil, err
		end
		ok, free, _, _, all = limiter:peek(id, key)
	end
	if ok == nil then
		return self.segment:failed(free)
	end
	local conn = all - free + 1
	if conn > most then
		return nil, "rejected"
	end
	if commit then
		local place
		place, free, _, _, all = limiter:enter(id, key)
		if place == nil then
			return self.segment:failed(free)
		elseif not place then
			return nil, "rejected"
		end
		conn = max(all - free, 1)
		if conn > most then
			limiter:leave(id, key, place)
			return nil, "rejected"
		end
		keep(self, key, place)
		renew_later(self)
		self.committed = true
	end
	if conn > self.max then
		return self.unit_delay * floor((conn - 1) / self.max), conn
	end
	return 0, conn
end

function M:is_committed()
	return self.committed
end

-- The request is over: the number of those in progress; or nil, err.
function M:uncommit(key)
	assert(key ~= nil, "nil key")
	local err
	key, err = key_of(key)
	if not key then
		return nil, err
	end
	local limiter, id = rule(self)
	if not limiter then
		return nil, id
	end
	local place = oldest(self.segment.held, self.rule_name .. "\0" .. key)
	if not place then
		return nil, "not found"
	end
	-- One that is over, or of a segment that was replaced since, is not held any more.
	limiter:leave(id, key, place)
	local ok, free, _, _, all = limiter:peek(id, key)
	if ok == nil then
		return self.segment:failed(free)
	end
	return all - free
end

function M:leaving(key, req_latency)
	local conn, err = self:uncommit(key)
	if not conn then
		return nil, err
	end
	if req_latency then
		self.unit_delay = (req_latency + self.unit_delay) / 2
	end
	return conn
end

function M:set_conn(conn)
	assert(check(conn, self.burst), "conn must be above 0")
	self.max = conn
end

function M:set_burst(burst)
	assert(check(self.max, burst), "burst must be 0 or more")
	self.burst = burst
end

return M
