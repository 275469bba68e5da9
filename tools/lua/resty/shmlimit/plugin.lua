-- resty.shmlimit.plugin: what the plugins for Kong and APISIX share. A configuration has `spec`, the text of a gate, and `keys`, which
-- say where the key of each of its limits comes from.
--
-- SPDX-License-Identifier: BSD-2-Clause
local Gate = require "resty.shmlimit.gate"

local M = {}

-- A gate for each configuration, which is closed when that is gone.
local gates = setmetatable({}, { __mode = "k" })

-- true, or nil and what is wrong with a configuration.
function M.check(conf)
	if type(conf.spec) ~= "string" or type(conf.keys) ~= "table" then
		return nil, "spec must be a text, and keys a list"
	end
	local gate, err = Gate.new(conf.spec)
	if not gate then
		return nil, "spec: " .. err
	end
	local limits = gate:limits()
	gate:close()
	if limits ~= #conf.keys then
		return nil, ("spec has %d limits (rule=...), and keys has %d"):format(limits, #conf.keys)
	end
	return true
end

-- Ask the limits of a configuration. `key_of` returns the key of an element of `keys`, or nil where that limit does not apply.
-- Returns allowed, the HTTP status of a refusal, the header fields, an error for the log, and what M.leave() wants after the request.
function M.enter(conf, key_of)
	local gate, err = gates[conf], nil
	if not gate then
		gate, err = Gate.new(conf.spec)
		if not gate then
			return false, 500, {}, err
		end
		gates[conf] = gate
	end
	local keys, n = {}, #conf.keys
	for i = 1, n do
		keys[i] = key_of(conf.keys[i])
	end
	local allowed, status, _, _, _, why, places = gate:enter(unpack(keys, 1, n))
	if allowed == nil then
		return false, 500, {}, why
	end
	return allowed, status, gate:fields(), why, places and { gate, places }
end

function M.leave(held)
	if held then
		held[1]:leave(held[2])
	end
end

return M
