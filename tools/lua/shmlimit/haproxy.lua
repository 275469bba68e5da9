-- shmlimit.haproxy: actions and a filter for HAProxy 2.6 or later. README.md says how they are configured.
--
-- SPDX-License-Identifier: BSD-2-Clause
local core, filter = core, filter
local ceil = math.ceil
local ESRCH = 3 -- there is no such rule

-- That proxies write.
local FIELDS = { "X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP" }
local ADVICE = "http-request set-src names the client of a proxy"

-- Say once in a process that behind a proxy all clients are one. Where the field has the peer's address, that is a client's. `proxies` is a gate
-- that needs no segment. Rules of responses do not see the fields of requests.
local function look(proxies, txn, key)
	if not proxies:forwarded(key) or key ~= tostring(txn.f:src() or "") then
		return
	end
	for _, field in ipairs(FIELDS) do
		local value = txn.f:req_hdr(field)
		if value and value ~= "" then
			if not value:find(key, 1, true) and proxies:forwarded(key, field) then
				core.log(core.warning, "shmlimit: a request from " .. key .. " has a field " .. field .. ": behind a proxy all clients are one, since its " ..
					"address is the key (" .. ADVICE .. "; if it is no proxy: proxy_warning = false)")
			end
			return
		end
	end
end

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

-- Register the actions lua.shmlimit_peek, lua.shmlimit_take and lua.shmlimit_enter, and the filter lua.shmlimit_leave, for one
-- limiter. Rules are given by their names. With { proxy_warning = false } a proxy whose address is the key is not reported.
return function(limiter, options)
	local held, last = {}, 0
	local quiet = options and (options.proxy_warning == false or options.proxy_warning == "no")
	local proxies = not quiet and require("shmlimit.gate").new("segment=any rule=any")

	-- The key that a variable has; without one the limit does not apply.
	local function key_of(txn, variable)
		local key = txn:get_var(variable)
		if key == nil or key == "" then
			return
		end
		key = tostring(key)
		if proxies then
			look(proxies, txn, key)
		end
		return key
	end

	-- A rule that is missing denies nothing, as ban is before the first ban.
	core.register_action("shmlimit_peek", { "tcp-req", "tcp-res", "http-req", "http-res" }, function(txn, rule, variable)
		local key = key_of(txn, variable)
		if not key then
			return
		end
		local allowed, remaining, wait = limiter:peek(rule, key)
		if allowed == nil and wait == ESRCH then
			allowed, remaining, wait = true, 2 ^ 31, 0
		end
		tell(txn, rule, allowed, remaining, wait)
	end, 2)

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
		if not txn:get_var("txn.shmlimit_leaves") then
			tell(txn, rule, nil, "shmlimit_enter needs the line \"filter lua.shmlimit_leave\" in its frontend or backend")
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

	-- Leaves the places of a request at its end. HAProxy begins to analyze the request, and the response if a server or an applet
	-- gives one, and in the end calls end_analyze() for each of the two that it began. So the end is when none is open; what HAProxy
	-- answers itself, as a denial or a redirect, is never analyzed as a response.
	local Leave = { id = "shmlimit: leave places", flags = filter.FLT_CFG_FL_HTX }
	Leave.__index = Leave

	function Leave:new()
		return setmetatable({}, Leave)
	end

	function Leave:start_analyze(txn, channel)
		if not channel:is_resp() then
			self.request = true
			txn:set_var("txn.shmlimit_leaves", true)
			return
		end
		self.response = true
	end

	-- A tunnel, such as a WebSocket, begins. Without a filter of its data the analysis would end here.
	function Leave:http_headers(txn, message)
		local channel = message.channel
		if channel:is_resp() and (tonumber(message:get_stline().code) == 101 or txn.sf:method() == "CONNECT") then
			filter.register_data_filter(self, channel)
		end
	end

	-- Lets all data pass.
	function Leave:tcp_payload()
	end

	function Leave:end_analyze(txn, channel)
		self[channel:is_resp() and "response" or "request"] = nil
		if self.request or self.response then
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
