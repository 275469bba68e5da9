-- resty.shmlimit.req: limit_req with its delay, with the interface of lua-resty-limit-traffic's resty.limit.req.
--
-- The first request of a key passes; one that comes sooner than 1 / rate later is delayed until it conforms, and one that would
-- be delayed for more than burst / rate is rejected. That is a bucket of one token with reservations.
--
-- SPDX-License-Identifier: BSD-2-Clause
local shmlimit = require(rawget(_G, "jit") and "resty.shmlimit" or "shmlimit")
local segment = require "resty.shmlimit.segment"
local assert, type, setmetatable = assert, type, setmetatable
local key_of = segment.key

local M = { _VERSION = "1.0.0" }
local mt = { __index = M }

-- The limit of a rate, which the library reads as what its shortest decimal says. It rounds the time of each token up, by 1/4 ns
-- at most; so that just the burst of one instant passes, the longest wait is longer by as much.
local function compile(rate, burst)
	local longest = burst / rate + (burst / 4 + 1) * 1e-9
	return { rate = rate, burst = burst, limit = shmlimit.limit { capacity = 1, refill = rate, period = 1, max_wait = longest }, longest = longest }
end

-- Those of the last rates and bursts, since most programs call new() with each request. Below 0, since LuaJIT compiles no access to
-- a table that has some of its numbers as an array.
local known, known_count = {}, 0
local function compiled(rate, burst)
	local of_rate = known[-rate - 0.5]
	local found = of_rate and of_rate[-burst - 0.5]
	if not found or found.rate ~= rate or found.burst ~= burst then
		if known_count >= 1000 then
			known, known_count, of_rate = {}, 0, nil
		end
		if not of_rate then
			of_rate = {}
			known[-rate - 0.5] = of_rate
		end
		found = compile(rate, burst)
		of_rate[-burst - 0.5], known_count = found, known_count + 1
	end
	return found
end

local function check(rate, burst)
	return type(rate) == "number" and type(burst) == "number" and rate > 0 and burst >= 0 and rate <= 1e9
end

function M.new(name, rate, burst)
	assert(check(rate, burst), "rate must be above 0 and at most 1e9, burst 0 or more")
	local from, err = segment.get(name)
	if not from then
		return nil, err
	end
	local self = setmetatable({ segment = from, rate = rate, burst = burst }, mt)
	local limiter, id = from:rule("~req")
	if not limiter then
		return nil, id
	end
	-- A rate that is too small, or a burst that is too long, is refused here and not with a request.
	local params = compiled(rate, burst)
	if not params.checked then
		local ok, remaining = limiter:peek(id, "~", 1, params.limit)
		if ok == nil then
			return nil, "rate and burst: " .. remaining
		end
		params.checked = true
	end
	return self
end

-- delay in seconds, and excess in requests; or nil, "rejected".
function M:incoming(key, commit)
	local err
	key, err = key_of(key)
	if not key then
		return nil, err
	end
	local limiter, id = self.segment:rule("~req")
	if not limiter then
		return nil, id
	end
	local params = compiled(self.rate, self.burst)
	if commit then
		local ok, remaining, wait = limiter:reserve(id, key, 1, nil, params.limit)
		if ok then
			return wait, wait * self.rate
		elseif ok == nil then
			return self.segment:failed(remaining)
		end
		return nil, "rejected"
	end
	local ok, remaining, wait = limiter:peek(id, key, 1, params.limit)
	if ok then
		return 0, 0
	elseif ok == nil then
		return self.segment:failed(remaining)
	elseif wait > params.longest then
		return nil, "rejected"
	end
	return wait, wait * self.rate
end

function M:uncommit(key)
	assert(key ~= nil, "nil key")
	local err
	key, err = key_of(key)
	if not key then
		return nil, err
	end
	local limiter, id = self.segment:rule("~req")
	if not limiter then
		return nil, id
	end
	local params = compiled(self.rate, self.burst)
	local ok, remaining = limiter:refund(id, key, 1, params.limit)
	if ok == nil then
		return self.segment:failed(remaining)
	end
	return true
end

function M:set_rate(rate)
	assert(check(rate, self.burst), "rate must be above 0 and at most 1e9")
	self.rate = rate
end

function M:set_burst(burst)
	assert(check(self.rate, burst), "burst must be 0 or more")
	self.burst = burst
end

return M
