-- resty.shmlimit.count: a fixed window, with the interface of lua-resty-limit-traffic's resty.limit.count.
--
-- SPDX-License-Identifier: BSD-2-Clause
local segment = require "resty.shmlimit.segment"
local assert, type, floor, setmetatable = assert, type, math.floor, setmetatable
local key_of = segment.key

local M = { _VERSION = "1.0.0" }
local mt = { __index = M }

function M.new(name, limit, window)
	assert(type(limit) == "number" and type(window) == "number" and limit > 0 and window > 0, "limit and window must be above 0")
	if limit >= 2 ^ 31 then
		return nil, "limit must be below 2^31"
	elseif window < 1e-9 or window > 366 * 86400 then
		return nil, "window must be 1 ns to 366 days"
	end
	local from, err = segment.get(name)
	if not from then
		return nil, err
	end
	local limiter, id = from:rule("~count")
	if not limiter then
		return nil, id
	end
	-- WHY NOT return that at once: LuaJIT does not compile it as a tail call.
	local self = setmetatable({ segment = from, limit = limit, bound = floor(limit), window = window }, mt)
	return self
end

-- Add to the key's count: ok, remaining, reset; or nil, err.
local function add(self, key, n)
	local err
	key, err = key_of(key)
	if not key then
		return nil, err
	end
	local limiter, id = self.segment:rule("~count")
	if not limiter then
		return nil, id
	end
	local ok, count, _, ttl = limiter:count(id, key, n, self.bound, self.window)
	if ok == nil then
		return self.segment:failed(count)
	end
	return ok, self.limit - count, ttl
end

-- 0, what is left, and the seconds until the window is over; or nil, "rejected", and these seconds.
function M:incoming(key, commit)
	local ok, remaining, reset = add(self, key, commit and 1 or 0)
	if ok == nil then
		return nil, remaining
	end
	if not commit then
		ok, remaining = remaining >= 1, remaining - 1
	end
	if not ok then
		return nil, "rejected", reset
	end
	return 0, remaining, reset
end

-- What is left then. A window that is over has nothing to give back.
function M:uncommit(key)
	assert(key ~= nil, "nil key")
	local ok, remaining = add(self, key, -1)
	if ok == nil then
		return nil, remaining
	end
	return remaining
end

return M
