-- resty.shmlimit.segment: the segment of the limiters req, count and conn, which comes and goes under its name.
--
-- All objects of a Lua state share one handle of each segment. Once a second, by nginx's clock, it is opened again if it was
-- destroyed or replaced.
--
-- SPDX-License-Identifier: BSD-2-Clause
local shmlimit = require(rawget(_G, "jit") and "resty.shmlimit" or "shmlimit")
local ngx = rawget(_G, "ngx")
local type = type
local now = ngx and ngx.now or os.time

local Segment = {}
Segment.__index = Segment

-- Each kind of limiter has one rule, whatever the number of objects: their limits come with the calls. '~' says that a library
-- made it.
local RULES = {
	["~req"] = { algorithm = "gcra" },
	["~count"] = { algorithm = "counter" },
}
local opened = {}

local function attach(self)
	local limiter, err = shmlimit.open(self.name, self.options)
	if not limiter then
		return nil, err
	end
	self.limiter, self.ids, self.held = limiter, {}, {}
	self.renewed = self.renewed or {} -- conn's timers
	return limiter
end

-- The limiter, opened again where that is due; or nil, err.
function Segment:current()
	local time = now()
	if time < self.look_at then
		return self.limiter, self.err
	end
	self.look_at = time + 1
	if not self.limiter or self.limiter:gone() then
		local _
		_, self.err = attach(self)
		if self.err then
			-- No other process would count what the old one admits.
			self.limiter = nil
		end
	end
	return self.limiter, self.err
end

-- The limiter, and the id of one of its rules, which is made where it is missing; or nil, err.
function Segment:rule(name, rule)
	local limiter, err = self:current()
	if not limiter then
		return nil, err
	end
	local id = self.ids[name]
	if not id then
		id = limiter:rule_find(name)
		if not id then
			id, err = limiter:rule_ensure(name, rule or RULES[name])
			if not id then
				return nil, err
			end
		end
		self.ids[name] = id
	end
	return limiter, id
end

-- A decision failed: if its rule was removed, it is looked up again with the next one.
function Segment:failed(err)
	self.ids = {}
	return nil, err
end

local M = {}

-- The segment of a name, which is created if it is missing; or one that M.open() returned, with options of its own.
function M.get(segment)
	if type(segment) == "table" and getmetatable(segment) == Segment then
		return segment
	elseif type(segment) ~= "string" then
		return nil, "a segment must be its name, or what resty.shmlimit.segment.open() returned"
	end
	if opened[segment] then
		return opened[segment]
	end
	return M.open(segment)
end

-- With the options of shmlimit.open(). It is created if it is missing.
function M.open(name, options)
	local self = { name = name, options = { create = true }, look_at = now() + 1 }
	for option, value in pairs(options or {}) do
		self.options[option] = value
	end
	local limiter, err = attach(self)
	if not limiter then
		return nil, err
	end
	opened[name] = setmetatable(self, Segment)
	return self
end

-- In nginx a proxy whose address is a key is reported, where libshmlimit-gate is installed.
local look = function() end
if rawget(_G, "jit") and rawget(_G, "ngx") then
	local found, forwarded = pcall(require, "resty.shmlimit.forwarded")
	look = found and forwarded.look or look
end

-- A key of lua-resty's limiters is a string, or a number as it is printed; else an error.
function M.key(key)
	if type(key) == "number" then
		key = tostring(key)
	elseif type(key) ~= "string" then
		return nil, key == nil and "nil key" or "a key must be a string"
	end
	if key == "" then
		return nil, "empty key"
	elseif #key > 1024 then
		return nil, "key too long"
	end
	look(key)
	return key
end

return M
