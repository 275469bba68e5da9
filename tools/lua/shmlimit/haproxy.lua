-- shmlimit.haproxy: actions and a filter for HAProxy 2.6 or later. README.md says how they are configured.
--
-- SPDX-License-Identifier: BSD-2-Clause
local core, filter = core, filter
local ceil = math.ceil

-- What http-request rules ask: txn.shmlimit_allowed and txn.shmlimit_denied are set where there is a decision, so that
-- "if !{ var(txn.shmlimit_allowed) -m bool }" fails closed and "if { var(txn.shmlimit_denied) -m bool }" open.
local function tell(txn, rule, allowed, remaining, wait)
	if allowed == nil then
		txn:set_var("txn.shmlimit_error", remaining)
		core.log(core.warning, "shmlimit: " .. remaining)
		return
	end
	txn:set_var("txn.shmlimit_rule", rule)
	txn:set_var("txn.shmlimit_allowed", allowed and true or false)
	txn:set_var("txn.shmlimit_denied", not allowed)
	txn:set_var("txn.shmlimit_remaining", remaining < 2 ^ 31 and remaining or 2 ^ 31 - 1)
	txn:set_var("txn.shmlimit_wait", wait < 2 ^ 31 and ceil(wait) or 2 ^ 31 - 1)
end

-- The key that a variable has; without one the limit does not apply.
local function key_of(txn, variable)
	local key = txn:get_var(variable)
	return key ~= nil and key ~= "" and tostring(key) or nil
end

-- Register the actions lua.shmlimit_take and lua.shmlimit_enter, and the filter lua.shmlimit_leave, for one limiter. Rules are
-- given by their names.
return function(limiter)
	local held, last = {}, 0

	core.register_action("shmlimit_take", { "tcp-req", "tcp-res", "http-req", "http-res" }, function(txn, rule, variable)
		local key = key_of(txn, variable)
		if key then
			tell(txn, rule, limiter:take(rule, key))
		end
	end, 2)

	core.register_action("shmlimit_enter", { "http-req" }, function(txn, rule, variable)
		local key = key_of(txn, variable)
		if not key then
			return
		end
		local place, remaining, wait = limiter:enter(rule, key)
		tell(txn, rule, place, remaining, wait)
		if place then
			last = last + 1
			held[last] = { rule, key, place, txn:get_var("txn.shmlimit_place") }
			txn:set_var("txn.shmlimit_place", last)
		end
	end, 2)

	-- The response has been sent, or the client has gone: all places of the request are left.
	local Leave = { id = "shmlimit: leave places", flags = filter.FLT_CFG_FL_HTX }
	Leave.__index = Leave

	function Leave:new()
		return setmetatable({}, Leave)
	end

	function Leave:end_analyze(txn, channel)
		if not channel:is_resp() then
			return
		end
		local at = txn:get_var("txn.shmlimit_place")
		while at do
			local place = held[at]
			held[at] = nil
			if place then
				limiter:leave(place[1], place[2], place[3])
			end
			at = place and place[4]
		end
	end

	core.register_filter("shmlimit_leave", Leave, function(leave)
		return leave
	end)
end
